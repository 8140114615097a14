package index

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/internal/cell"
	"docent/search/page"
	"docent/site"
	"docent/site/sidebar"
)

const (
	maxFileSize = 2 << 20  // a bigger file is no page that someone wrote
	maxPDFSize  = 16 << 20 // most of such a file are pictures
	// Bounds of what an incremental update leaves behind: beyond them the postings are written afresh, from the
	// contents that the index holds.
	maxSegments  = 12
	maxDeadShare = 0.25
	maxTodoShare = 0.5
	maxLog       = 2  // times as long as what there is: a log of texts that is not gone on with
	maxBroken    = 20 // files of one update that break their parser
	// Changes are held until all are made, which afresh is done batch by batch: so many times what pages may hold in
	// parsed form.
	maxChanged = 16
)

// Options of an update.
type Options struct {
	Workers int    // goroutines
	Batch   int    // sections that are written at once
	Parsed  int64  // bytes of pages that are kept in parsed form between reading and indexing
	Scratch string // folder for what is read and not held in memory; the system's if empty
	Log     *slog.Logger
	// Cell runs the parsers of page.Kinds on files that may hold anything. It is required.
	Cell func(ctx context.Context, kind string, input []byte) ([]byte, error)
}

// A Report says what an update did to the index.
type Report struct {
	Commit   string
	Added    []string
	Modified []string
	Removed  []string
	Pages    int // in the index now
	Sections int
	LeftOut  int // files that could be pages, and that the site does not show
	// The public URL of the documentation, and what says so. Both are empty if nobody does.
	SiteURL, SiteURLFrom string
	Title                string         // what the site's configuration calls the product
	Warnings             []site.Warning // what of the site's configuration could not be read
	Lost                 string         // the rule that leaves out a large part of all pages, if one does
}

// An Update makes the next generation of an index.
type Update struct {
	Options
	project   api.Project
	tree      Tree
	old       *Generation    // nil if there is nothing to build on
	todo      []*page.Record // whose documents have to be made
	records   []*page.Record // the new generation's, in the order of their paths
	sources   map[*page.Record]*page.Source
	fresh     map[*page.Record][]byte // contents that were read now; nil if they lie in the spool, at the record's offset
	spool     *os.File                // without a name where the system has such files; nil if there is none
	spooled   int64                   // its bytes
	written   *os.File                // the new generation's text, once it is complete
	where     site.Site               // how the site's generator shows the pages
	places    map[string]site.Place
	folders   map[string]site.Place    // whose pages stand at these places of the navigation, as their generator orders them
	order     *sidebar.Rules           // by which it does
	listed    []uint32                 // the pages of the navigation in its order, by UID
	about     string                   // what the site's configuration says of it
	files     map[string]api.File      // all of the tree, by their paths in it
	decided   map[string]site.Decision // what becomes of the files that may be pages, by path
	standing  *standing                // what is known of the site
	textsOnly bool                     // nothing else has changed but the texts of pages: what the site's rules say of all pages stands

	passing sync.Mutex
	broken  []site.Warning    // files that broke their parser
	passed  map[string]string // why other files are no pages, by path; nil if nobody asks
	report  Report

	// why nothing is public, if somebody asks: it is not known what the site leaves out
	withheld string
}

// Read reads what has changed of a tree since the old generation, which may be nil, and works out what has to be
// indexed again.
func Read(ctx context.Context, o Options, project api.Project, tree Tree, old *Generation,
	progress func(done, total int)) (*Update, error) {
	u := newUpdate(o, project, tree)
	if old != nil && old.Manifest.DocsDir == u.project.DocsDir {
		u.old = old
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	if err := u.begin(ctx, progress); err != nil {
		u.Close()
		return nil, err
	}
	u.todo = u.derive()
	u.count()
	return u, nil
}

func newUpdate(o Options, project api.Project, tree Tree) *Update {
	project.DocsDir = strings.Trim(path.Clean("/"+project.DocsDir), "/")
	u := &Update{Options: o, project: project, tree: tree, sources: make(map[*page.Record]*page.Source),
		fresh: make(map[*page.Record][]byte)}
	u.report.Commit = tree.Commit()
	return u
}

// begin reads the files that have changed and decides which are pages.
func (u *Update) begin(ctx context.Context, progress func(done, total int)) error {
	err := u.read(ctx, progress)
	if err == nil {
		err = u.decide(ctx, time.Now())
	}
	if err != nil {
		return fmt.Errorf("read the documentation of %s: %w", u.project.ID, err)
	}
	return nil
}

// Report says what the update does to the index.
func (u *Update) Report() Report { return u.report }

// Changed reports whether a new generation has to be made.
func (u *Update) Changed() bool {
	return u.old == nil || len(u.todo)+len(u.report.Added)+len(u.report.Modified)+len(u.report.Removed) > 0 ||
		len(u.old.Records) != len(u.records) ||
		u.old.Manifest.Language != u.where.Language()
}

// Relabeled is the manifest of the old generation, of which nothing has changed, for the new commit; ok is false if
// it says the same.
func (u *Update) Relabeled() (m Manifest, ok bool) {
	m = u.old.Manifest
	m.Commit, m.SiteURL, m.Lost, m.Site = u.report.Commit, u.report.SiteURL, u.report.Lost, labelOf(&u.where)
	m.Listed, m.About = u.listed, u.about
	return m, !reflect.DeepEqual(m, u.old.Manifest)
}

// read finds out which files count, takes over what is known of the unchanged ones and reads the others.
func (u *Update) read(ctx context.Context, progress func(done, total int)) error {
	files, err := u.tree.Files(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]*page.Record)
	next := uint32(1)
	if u.old != nil {
		for _, r := range u.old.Records {
			known[r.Path] = r
		}
		next = u.old.Manifest.NextUID
	}
	if err := u.readChanged(ctx, u.list(files, known), progress); err != nil {
		return err
	}
	slices.SortFunc(u.records, func(a, b *page.Record) int { return strings.Compare(a.Path, b.Path) })
	u.records = slices.CompactFunc(u.records, func(a, b *page.Record) bool { return a.Path == b.Path })
	for _, r := range u.records {
		if r.UID == 0 {
			if k := known[r.Path]; k != nil {
				r.UID = k.UID
			} else {
				r.UID = next
				next++
			}
		}
	}
	return nil
}

// list fills the records with those of the files that count, and returns those that have changed.
func (u *Update) list(files []api.File, known map[string]*page.Record) (changed []*page.Record) {
	u.files = make(map[string]api.File, len(files))
	parts := make(map[string][]*page.Record) // of files that hold several pages
	for _, r := range known {
		if r.File != "" {
			parts[r.File] = append(parts[r.File], r)
		}
	}
	for _, f := range files {
		u.files[f.Path] = f
		rel, ok := site.Relative(u.project.DocsDir, f.Path)
		if !ok {
			continue
		}
		if r := known[rel]; r != nil && r.Hash == f.Hash && f.Hash != "" {
			u.records = append(append(u.records, parts[rel]...), r)
			continue
		}
		kind := page.Classify(rel)
		switch {
		case kind == page.KindIgnored:
			if site.IsPage(rel) {
				u.pass(rel, "hidden files and folders, and those of programs, are no pages")
			}
			continue
		case site.IsPDF(rel) && kind == page.KindPage && f.Size <= maxPDFSize:
		case f.Size > maxFileSize && kind == page.KindPage && page.IsData(rel) && !page.DescribesByName(rel):
			continue
		case f.Size > maxFileSize:
			u.pass(rel, "is bigger than a page that someone wrote")
			u.Log.Warn("file is too large to index", "project", u.project.ID, "path", f.Path, "bytes", f.Size)
			continue
		}
		r := &page.Record{Path: rel, Hash: f.Hash, Kind: kind}
		u.records, changed = append(u.records, r), append(changed, r)
	}
	return changed
}

// readChanged reads files, several at a time.
func (u *Update) readChanged(ctx context.Context, changed []*page.Record, progress func(done, total int)) error {
	var mu sync.Mutex
	held, done := 0, 0
	g, gctx := background.WithContext(ctx)
	g.SetLimit(u.Workers)
	for _, r := range changed {
		g.Go(onPage(r, func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			pages, err := u.readFile(gctx, r)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			u.fresh[r] = nil // of a file that holds nothing for readers
			for _, p := range pages {
				if p.record != r {
					u.records = append(u.records, p.record)
				}
				u.fresh[p.record] = p.content
				if held += len(p.content); int64(held) > u.Parsed {
					p.source.Forget() // read again when it is indexed: memory stays bounded
					if err := u.putAway(p); err != nil {
						return err
					}
				}
				u.sources[p.record] = p.source
			}
			done++
			progress(done, len(changed))
			return nil
		}))
	}
	return g.Wait()
}

// putAway keeps the content of a page on disk until it is written.
func (u *Update) putAway(p readPage) (err error) {
	if u.spool == nil {
		if u.spool, err = os.CreateTemp(u.Scratch, "read-*"); err != nil {
			return err
		}
		_ = os.Remove(u.spool.Name()) // Windows keeps the name of a file that is open; Close removes it there
	}
	if _, err := u.spool.WriteAt(p.content, u.spooled); err != nil {
		return fmt.Errorf("keep %s: %w", p.record.Path, err)
	}
	p.record.Offset, u.fresh[p.record] = u.spooled, nil
	u.spooled += int64(len(p.content))
	return nil
}

// Close lets go of what the update keeps on disk. It may be called more than once.
func (u *Update) Close() {
	if u.spool != nil {
		u.spool.Close()
		_ = os.Remove(u.spool.Name())
		u.spool = nil
	}
}

// A readPage is a page whose file was read now.
type readPage struct {
	record  *page.Record
	content []byte
	source  *page.Source
}

// readFile reads one file, with the pages that it holds. What holds nothing for readers is ignored: there are none.
func (u *Update) readFile(ctx context.Context, r *page.Record) ([]readPage, error) {
	content, err := u.tree.Read(ctx, path.Join(u.project.DocsDir, r.Path))
	if err != nil {
		return nil, err
	}
	texts, err := u.texts(ctx, r, content)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.Path, err)
	}
	if len(texts) == 0 {
		r.Kind = page.KindIgnored
		return nil, nil
	}
	pages := make([]readPage, len(texts))
	for i, t := range texts {
		p := r
		sum := crc32.Checksum(t.Content, castagnoli)
		if t.Path != "" {
			p = &page.Record{Path: t.Path, File: r.Path, Renders: t.Renders, Kind: r.Kind,
				Hash: fmt.Sprintf("%08x%x", sum, len(t.Content))}
		}
		p.Size, p.CRC = int64(len(t.Content)), sum
		pages[i] = readPage{p, t.Content, page.Read(p, t.Content)}
	}
	return pages, nil
}

// texts are the pages that a file holds. One that cannot be read holds none.
func (u *Update) texts(ctx context.Context, r *page.Record, content []byte) (texts []page.Text, err error) {
	isPDF := site.IsPDF(r.Path)
	if (isPDF || r.Kind == page.KindPage && page.IsData(r.Path)) && u.tooManyBroke() {
		u.pass(r.Path, "is not read, since too many files of this source broke the program that reads them")
		return nil, nil
	}
	if isPDF {
		content, err = u.Cell(ctx, page.KindPDF, content)
	}
	switch {
	case err != nil || isPDF && content == nil:
	case len(content) > maxFileSize || !isText(content):
		u.pass(r.Path, "is no text")
	case bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/")):
		u.pass(r.Path, "is a pointer of Git LFS, whose file is not there")
	case r.Kind == page.KindPage:
		texts, err = page.Texts(ctx, u.Cell, r.Path, content)
	default:
		texts = []page.Text{{Content: content}}
	}
	var unreadable *cell.UnreadableError
	if !errors.As(err, &unreadable) {
		return texts, err
	}
	u.Log.Warn("could not read a file", "project", u.project.ID, "path", r.Path, "error", err)
	u.pass(r.Path, "cannot be read: "+unreadable.Why)
	if unreadable.Broke {
		u.passing.Lock()
		defer u.passing.Unlock()
		u.broken = append(u.broken, site.Warning{File: path.Join(u.project.DocsDir, r.Path), Text: "is left out: " + unreadable.Why})
	}
	return nil, nil
}

// tooManyBroke reports whether so many files have broken their parser that no other one is tried: each costs seconds.
func (u *Update) tooManyBroke() bool {
	u.passing.Lock()
	defer u.passing.Unlock()
	return len(u.broken) >= maxBroken
}

// isText refuses what holds a zero byte, as images and archives do.
func isText(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) < 0
}

// pass notes why a file is not even looked at as a page.
func (u *Update) pass(file, why string) {
	u.passing.Lock()
	defer u.passing.Unlock()
	if u.passed != nil {
		u.passed[file] = why
	}
}

// decide finds out which files the site shows as pages, and which it does not.
func (u *Update) decide(ctx context.Context, now time.Time) error {
	known := u.stands(now)
	u.standing = &standing{project: u.project, read: make(map[string]string)}
	read := u.reader(ctx)
	if known != nil {
		u.where, u.standing.read = known.where, known.read
	} else {
		u.where = u.site(read)
	}
	if err := u.where.Unreadable(); err != nil {
		if u.passed == nil {
			return err // the site that readers see was made before, and so is the index that they are answered from
		}
		u.withheld = err.Error()
	}
	u.report.SiteURL, u.report.SiteURLFrom = u.where.Address()
	if c := u.where.Config(); c != "" && known != nil && u.project.Name != "" {
		u.about = u.old.Manifest.About
	} else if c != "" {
		text, _ := u.readAny(ctx, c) // what cannot be read has been told
		u.about = aboutOf(u.where.Kind, c, text)
		if u.project.Name == "" {
			u.report.Title = titleOf(u.where.Kind, c, text)
		}
	}
	if err := u.expand(ctx); err != nil {
		return err
	}
	if known != nil && u.onlyTexts() {
		u.nameFront()
		u.textsOnly, u.standing = true, known
		u.report.LeftOut, u.report.Lost = known.report.LeftOut, known.report.Lost
		u.report.Warnings = slices.Concat(known.report.Warnings, u.broken)
		return nil
	}
	u.places = u.navigation(read)
	u.byFolders(read)
	own := u.broken
	u.broken = nil
	u.nameUnread()
	lasting := slices.Concat(u.where.Warnings(), u.broken)
	u.broken = own
	importers := u.importers()
	var entries []site.Entry
	var numbers []int
	parts := make(map[string][]int) // of files that hold several pages
	for i, r := range u.records {
		if r.File != "" {
			parts[r.File] = append(parts[r.File], i)
			continue
		}
		if r.Kind == page.KindNavigation || r.Kind == page.KindIgnored {
			continue
		}
		e := site.Entry{Path: r.Path, Front: r.Front, OpenAPI: page.IsData(r.Path), Importers: importers[r.Path]}
		if at, ok := u.place(r, u.where.Shown(r.Page())); ok {
			e.Place = &at
		}
		entries, numbers = append(entries, e), append(numbers, i)
	}
	u.decided = make(map[string]site.Decision, len(entries))
	for n, d := range u.where.Decide(entries, now) {
		file := u.records[numbers[n]].Path
		if u.withheld != "" {
			d = site.Decision{State: site.LeftOut, Rule: "it is not known what the site leaves out", File: u.where.Config()}
		}
		u.decided[file] = d
		if !d.State.IsPage() {
			u.report.LeftOut++
		}
		for _, i := range append(parts[file], numbers[n]) {
			u.settle(i, d.State)
		}
	}
	if text := lost(entries, u.decided); text != "" && u.withheld == "" {
		u.report.Lost = text
		lasting = append(lasting, site.Warning{File: cmp.Or(u.where.Config(), u.project.DocsDir, "."), Text: text})
	}
	u.nameFront()
	u.report.Warnings = slices.Concat(lasting, u.broken)
	u.standing.where, u.standing.until, u.standing.report = u.where, nextDate(entries, now), u.report
	u.standing.report.Warnings = lasting
	return nil
}

// importers are the files that take each file in.
func (u *Update) importers() map[string][]string {
	importers := make(map[string][]string)
	for _, r := range u.records {
		for _, p := range r.Imports {
			p, ok := site.Relative(u.project.DocsDir, p)
			if !ok {
				continue
			}
			if list := importers[p]; p != r.Path && (len(list) == 0 || list[len(list)-1] != r.Path) {
				importers[p] = append(list, r.Path)
			}
		}
	}
	return importers
}

// lost says which rule of the generator leaves out more than a fifth of all Markdown files, if one does: it may not be
// the generator that it was taken for. What the project itself excludes, and what other pages show, is meant.
func lost(entries []site.Entry, decided map[string]site.Decision) string {
	all, by := 0, make(map[string]int)
	for _, e := range entries {
		if e.OpenAPI || site.IsPDF(e.Path) || page.IsHTML(e.Path) { // layouts are no Markdown
			continue
		}
		all++
		if d := decided[e.Path]; !d.State.IsPage() && len(e.Importers) == 0 && !strings.HasPrefix(d.Rule, "--") {
			by[d.Rule]++
		}
	}
	rule := ""
	for r, n := range by {
		if n > by[rule] || n == by[rule] && r < rule {
			rule = r
		}
	}
	if n := by[rule]; n > 2 && 5*n > all {
		return fmt.Sprintf("%d of %d Markdown files are not pages, by one rule: %q. If readers see them, set --site to the generator that makes them, or to plain",
			n, all, rule)
	}
	return ""
}

// settle makes a record what was decided of its file.
func (u *Update) settle(i int, state site.State) {
	r := u.records[i]
	kind := page.KindPage
	switch state {
	case site.Included:
		kind = page.KindPart
	case site.LeftOut:
		kind = page.KindLeftOut
	}
	hidden := state == site.Unlisted
	if r.Kind == kind && r.Hidden == hidden {
		return
	}
	if _, fresh := u.fresh[r]; !fresh { // queries read the old generation's page.Record now
		clone := *r
		r = &clone
		u.records[i] = r
	}
	if kind != page.KindPage {
		delete(u.sources, r)
	}
	if r.Kind != kind {
		r.Sections, r.Derived = nil, 0
	}
	r.Kind, r.Hidden = kind, hidden
}

// site is what the files say of the generator.
func (u *Update) site(read func(string) ([]byte, error)) site.Site {
	files := make([]string, 0, len(u.records))
	for _, r := range u.records {
		if r.File == "" {
			files = append(files, r.Path)
		}
	}
	return site.Open(u.project, files, read)
}

// reader reads files of the site by their paths from the documentation folder, those too that the index does not hold.
func (u *Update) reader(ctx context.Context) func(string) ([]byte, error) {
	return func(p string) ([]byte, error) {
		full := path.Join(u.project.DocsDir, p)
		if u.standing != nil {
			u.standing.read[full] = u.hashOf(full)
		}
		// of other files something else is kept
		if r := u.record(p); r != nil && (r.Kind == page.KindNavigation || site.IsPage(p)) {
			return u.content(r)
		}
		return u.readAny(ctx, full)
	}
}

// readAny reads any file of the tree that is not too big.
func (u *Update) readAny(ctx context.Context, full string) ([]byte, error) {
	if f, there := u.files[full]; !there || !fs.ValidPath(full) || f.Size > maxFileSize {
		return nil, fs.ErrNotExist
	}
	return u.tree.Read(ctx, full)
}

// content is a file's text: as read now, or as the old generation holds it.
func (u *Update) content(r *page.Record) ([]byte, error) {
	if c, ok := u.fresh[r]; ok {
		if c == nil && r.Size > 0 {
			return readContent(u.spool, r)
		}
		return c, nil
	}
	if u.written != nil {
		return readContent(u.written, r)
	}
	return u.old.Content(r)
}

// count fills the report with what has changed between the old records and the new ones.
func (u *Update) count() {
	isPage := func(r *page.Record) bool { return r != nil && r.Kind == page.KindPage }
	for _, r := range u.records {
		if isPage(r) {
			u.report.Pages++
			u.report.Sections += len(r.Sections)
		}
	}
	u.differences(func(old, now *page.Record) {
		switch {
		case !isPage(now):
			if isPage(old) {
				u.report.Removed = append(u.report.Removed, old.Path)
			}
		case !isPage(old):
			u.report.Added = append(u.report.Added, now.Path)
		case old.Hash != now.Hash:
			u.report.Modified = append(u.report.Modified, now.Path)
		}
	})
}

// onPage is work on one page. What the page makes the program panic with says which page it is, and ends the update
// alone.
func onPage(r *page.Record, work func() error) func() error {
	return func() error {
		err := background.Guard(work)
		if _, ok := errors.AsType[*background.PanicError](err); ok {
			return fmt.Errorf("page %s: %w", r.Path, err)
		}
		return err
	}
}
