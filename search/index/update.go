package index

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"
	"golang.org/x/sync/errgroup"

	"docent/api"
	"docent/search/analysis"
	"docent/search/page"
	"docent/site"
)

const (
	maxFileSize = 2 << 20 // a bigger file is no page that someone wrote
	// Bounds of what an incremental update leaves behind: beyond them the postings are written afresh, from the
	// contents that the index holds.
	maxSegments  = 12
	maxDeadShare = 0.25
	maxTodoShare = 0.5
	holdParsed   = 16 << 20 // bytes of pages that are kept in parsed form between reading and indexing
)

// Options of an update.
type Options struct {
	Workers int // goroutines
	Log     *slog.Logger
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
	// Where readers find the documentation, and what says so. Both are empty where nobody does.
	SiteURL, SiteURLFrom string
	Warnings             []site.Warning // what of the site's configuration could not be read
}

// An Update makes the next generation of an index.
type Update struct {
	Options
	project api.Project
	tree    Tree
	old     *Generation    // nil where there is nothing to build upon
	todo    []*page.Record // whose documents have to be made
	records []*page.Record // the new generation's, in the order of their paths
	sources map[*page.Record]*page.Source
	fresh   map[*page.Record][]byte // contents that were read now
	written *os.File                // the new generation's text, once it is complete
	where   site.Site               // how the site's generator shows the pages
	places  map[string]site.Place
	sizes   map[string]int64         // of all files of the tree, by their paths in it
	decided map[string]site.Decision // what becomes of the files that may be pages, by path

	passing sync.Mutex
	passed  map[string]string // why other files are no pages, by path; nil where nobody asks
	report  Report
}

// Read reads what has changed of a tree since the old generation, which may be nil, and works out what has to be made anew.
func Read(ctx context.Context, o Options, project api.Project, tree Tree, old *Generation, progress func(done, total int)) (*Update, error) {
	u := newUpdate(o, project, tree)
	if old != nil && old.Manifest.DocsDir == u.project.DocsDir {
		u.old = old
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	if err := u.begin(ctx, progress); err != nil {
		return nil, err
	}
	u.todo = u.derive()
	u.count()
	return u, nil
}

func newUpdate(o Options, project api.Project, tree Tree) *Update {
	project.DocsDir = strings.Trim(path.Clean("/"+project.DocsDir), "/")
	u := &Update{Options: o, project: project, tree: tree, sources: make(map[*page.Record]*page.Source), fresh: make(map[*page.Record][]byte)}
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

// Changed tells whether a new generation has to be made.
func (u *Update) Changed() bool {
	return u.old == nil || len(u.todo)+len(u.report.Added)+len(u.report.Modified)+len(u.report.Removed) > 0 || len(u.old.Records) != len(u.records) ||
		u.old.Manifest.Language != u.where.Language()
}

// Relabelled is the manifest of the old generation, of which nothing has changed, for the new commit; ok is false where it says
// the same.
func (u *Update) Relabelled() (m Manifest, ok bool) {
	m = u.old.Manifest
	m.Commit, m.SiteURL, m.Site = u.report.Commit, u.report.SiteURL, labelOf(&u.where)
	return m, m.Commit != u.old.Manifest.Commit || m.SiteURL != u.old.Manifest.SiteURL || !reflect.DeepEqual(m.Site, u.old.Manifest.Site)
}

// read finds out which files count, takes over what is known of the unchanged ones and reads the others.
func (u *Update) read(ctx context.Context, progress func(done, total int)) error {
	files, err := u.tree.Files(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]*page.Record)
	if u.old != nil {
		for _, r := range u.old.Records {
			known[r.Path] = r
		}
	}
	var changed []*page.Record
	u.sizes = make(map[string]int64, len(files))
	for _, f := range files {
		u.sizes[f.Path] = f.Size
		rel, ok := site.Relative(u.project.DocsDir, f.Path)
		if !ok {
			continue
		}
		k := page.Classify(rel)
		if k == page.KindIgnored {
			if site.IsPage(rel) {
				u.pass(rel, "hidden files and folders, and those of programs, are no pages")
			}
			continue
		}
		if f.Size > maxFileSize && k == page.KindPage && page.IsData(rel) && !page.DescribesByName(rel) {
			continue
		}
		if f.Size > maxFileSize {
			u.pass(rel, "is bigger than a page that someone wrote")
			u.Log.Warn("file is too big to be indexed", "project", u.project.ID, "path", f.Path, "bytes", f.Size)
			continue
		}
		if r := known[rel]; r != nil && r.Hash == f.Hash && f.Hash != "" {
			u.records = append(u.records, r)
			continue
		}
		r := &page.Record{Path: rel, Hash: f.Hash, Kind: k}
		u.records = append(u.records, r)
		changed = append(changed, r)
	}
	slices.SortFunc(u.records, func(a, b *page.Record) int { return strings.Compare(a.Path, b.Path) })
	u.records = slices.CompactFunc(u.records, func(a, b *page.Record) bool { return a.Path == b.Path })
	var mu sync.Mutex
	var done atomic.Int64
	held := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(u.Workers)
	for _, r := range changed {
		g.Go(onPage(r, func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			content, err := u.tree.Read(gctx, path.Join(u.project.DocsDir, r.Path))
			if err != nil {
				return err
			}
			var src *page.Source
			text, forReaders := content, true
			if r.Kind == page.KindPage && len(content) <= maxFileSize {
				text, forReaders = page.Text(r.Path, content)
			}
			if len(content) > maxFileSize || !isText(content) {
				u.pass(r.Path, "is no text")
				r.Kind, content = page.KindIgnored, nil
			} else if content = text; !forReaders {
				r.Kind, content = page.KindIgnored, nil
			} else {
				r.Size, r.CRC = int64(len(content)), crc32.Checksum(content, castagnoli)
				src = page.Read(r, content)
			}
			mu.Lock()
			defer mu.Unlock()
			u.fresh[r] = content
			if src != nil {
				if held += len(content); held > holdParsed {
					src.Forget() // read again when it is indexed: memory stays bounded
				}
				u.sources[r] = src
			}
			progress(int(done.Add(1)), len(changed))
			return nil
		}))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	next := uint32(1)
	if u.old != nil {
		next = u.old.Manifest.NextUID
	}
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

// isText refuses what holds a zero byte or is mostly not UTF-8, as images and archives do.
func isText(content []byte) bool {
	return !bytes.ContainsRune(content[:min(len(content), 8000)], 0)
}

// derive works out what files contribute to each other's documents: navigation gives pages their other names, a link's
// text describes the page that it points to, imported parts are seen in the pages that import them. It returns the
// records whose documents have to be made.
func (u *Update) derive() []*page.Record {
	byKey := make(map[string]*page.Record, len(u.records))
	parts := make(map[string]*page.Record)
	for _, r := range u.records {
		switch r.Kind {
		case page.KindPage:
			byKey[site.PageKey(r.Path)] = r
		case page.KindPart:
			parts[r.Path] = r
		}
	}
	titles := make(map[string]string) // of folders, by their index pages
	shown := make(map[*page.Record]string, len(byKey))
	for _, r := range u.records {
		if r.Kind != page.KindPage {
			continue
		}
		shown[r] = u.where.Shown(r.Page())
		for _, address := range append([]string{shown[r]}, r.Aliases...) {
			if key := site.AddressKey(address); byKey[key] == nil {
				byKey[key] = r
			}
		}
		if key := site.PageKey(r.Path); key == strings.Trim(path.Dir(r.Path), "./") {
			titles[path.Dir(r.Path)] = r.Title
		}
	}
	incoming := make(map[*page.Record]map[string]int)
	for _, r := range u.records {
		if r.Kind != page.KindPage {
			continue
		}
		for _, l := range r.Links {
			to := byKey[l.To]
			if to == nil || to == r || l.Text == "" {
				continue
			}
			if incoming[to] == nil {
				incoming[to] = make(map[string]int)
			}
			incoming[to][l.Text]++
		}
	}
	editions := u.editions(shown)
	var todo []*page.Record
	for i, r := range u.records {
		if r.Kind != page.KindPage {
			continue
		}
		links := make([]string, 0, len(incoming[r]))
		for text := range incoming[r] {
			links = append(links, text)
		}
		slices.Sort(links)
		address, v := shown[r], editions[r]
		at, _ := u.place(r, address)
		if len(at.Crumbs) == 0 {
			at.Crumbs = u.where.Crumbs(r.Page(), titles)
		}
		h := fnv.New64a()
		fmt.Fprintf(h, "%q %q %q %q %t %q %t %q %q %q", u.where.AnchorRule(), at.Names, at.Crumbs, address, r.Hidden, v.Versions, v.Current, v.Language, v.Docs, v.Same)
		for _, s := range links {
			fmt.Fprintf(h, "l%d:%s", len(s), s)
		}
		for _, p := range r.Imports {
			if part := parts[p]; part != nil {
				fmt.Fprintf(h, "p%s:%s", p, part.Hash)
			}
		}
		derived := h.Sum64()
		src := u.sources[r]
		if src == nil && derived == r.Derived {
			continue
		}
		if src == nil {
			// Known content, new neighbours. The old generation keeps its own page.Record.
			clone := *r
			clone.Sections = nil
			r = &clone
			u.records[i] = r
		}
		if src == nil {
			src = &page.Source{}
			u.sources[r] = src
		}
		src.Place, src.Links, src.Parts = at, links, nil
		for _, p := range r.Imports {
			if parts[p] != nil {
				src.Parts = append(src.Parts, p)
			}
		}
		r.Derived, r.Shown, r.Crumbs = derived, address, at.Crumbs
		r.Versions, r.Current, r.Locale, r.Docs, r.Same = v.Versions, v.Current, v.Language, v.Docs, v.Same
		todo = append(todo, r)
	}
	return todo
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
	read := u.reader(ctx)
	u.where = u.site(read)
	if err := u.where.Unreadable(); err != nil {
		return err // the site that readers see was made before, and so is the index that they are answered from
	}
	u.places = u.navigation(read)
	u.report.SiteURL, u.report.SiteURLFrom = u.where.Address()
	u.report.Warnings = u.where.Warnings()
	importers := make(map[string][]string)
	for _, r := range u.records {
		for _, p := range r.Imports {
			if list := importers[p]; p != r.Path && (len(list) == 0 || list[len(list)-1] != r.Path) {
				importers[p] = append(list, r.Path)
			}
		}
	}
	var entries []site.Entry
	var numbers []int
	for i, r := range u.records {
		if r.Kind == page.KindNavigation || r.Kind == page.KindIgnored {
			continue
		}
		e := site.Entry{Path: r.Path, Front: r.Front, OpenAPI: !site.IsPage(r.Path), Importers: importers[r.Path]}
		if at, ok := u.place(r, u.where.Shown(r.Page())); ok {
			e.Place = &at
		}
		entries, numbers = append(entries, e), append(numbers, i)
	}
	u.decided = make(map[string]site.Decision, len(entries))
	for n, d := range u.where.Decide(entries, now) {
		r := u.records[numbers[n]]
		u.decided[r.Path] = d
		kind := page.KindPage
		switch d.State {
		case site.Included:
			kind = page.KindPart
		case site.LeftOut:
			kind = page.KindLeftOut
		}
		if !d.State.IsPage() {
			u.report.LeftOut++
		}
		hidden := d.State == site.Unlisted
		if r.Kind == kind && r.Hidden == hidden {
			continue
		}
		if _, fresh := u.fresh[r]; !fresh { // queries read the old generation's page.Record now
			clone := *r
			r = &clone
			u.records[numbers[n]] = r
		}
		if kind != page.KindPage {
			delete(u.sources, r)
		}
		if r.Kind != kind {
			r.Sections, r.Derived = nil, 0
		}
		r.Kind, r.Hidden = kind, hidden
	}
	return nil
}

// place is what the navigation says of a page.
func (u *Update) place(r *page.Record, address string) (site.Place, bool) {
	at, listed := u.places[site.PageKey(r.Path)]
	if !listed && u.where.Kind == api.SiteDocusaurus {
		at, listed = u.places[site.WithoutNumbers(site.PageKey(r.Path))]
	}
	if !listed {
		at, listed = u.places[site.AddressKey(address)]
	}
	return at, listed
}

// site is what the files say of the generator.
func (u *Update) site(read func(string) ([]byte, error)) site.Site {
	files := make([]string, len(u.records))
	for i, r := range u.records {
		files[i] = r.Path
	}
	return site.Open(u.project, files, read)
}

// reader reads files of the site by their paths from the documentation folder, those too that the index does not hold.
func (u *Update) reader(ctx context.Context) func(string) ([]byte, error) {
	byPath := make(map[string]*page.Record, len(u.records))
	for _, r := range u.records {
		byPath[r.Path] = r
	}
	return func(p string) ([]byte, error) {
		if r := byPath[p]; r != nil && (r.Kind == page.KindNavigation || site.IsPage(p)) { // of other files something else is kept
			return u.content(r)
		}
		full := path.Join(u.project.DocsDir, p)
		if !fs.ValidPath(full) || u.sizes[full] > maxFileSize {
			return nil, fs.ErrNotExist
		}
		if _, there := u.sizes[full]; !there {
			return nil, fs.ErrNotExist
		}
		return u.tree.Read(ctx, full)
	}
}

// content is a file's text: as read now, or as the old generation holds it.
func (u *Update) content(r *page.Record) ([]byte, error) {
	if c, ok := u.fresh[r]; ok {
		return c, nil
	}
	if u.written != nil {
		return readContent(u.written, r)
	}
	return u.old.Content(r)
}

// editions tells the version and the language of each page.
func (u *Update) editions(shown map[*page.Record]string) map[*page.Record]site.Edition {
	var pages []site.EditionPage
	var records []*page.Record
	for _, r := range u.records {
		if address, ok := shown[r]; ok {
			at, _ := u.place(r, address)
			pages = append(pages, site.EditionPage{Path: r.Path, Version: r.Version, Language: r.Language, Place: at})
			records = append(records, r)
		}
	}
	out := make(map[*page.Record]site.Edition, len(pages))
	for i, v := range u.where.Editions(pages) {
		out[records[i]] = v
	}
	return out
}

// navigation reads the files that name pages. Their contents are at hand even when they have not changed.
func (u *Update) navigation(read func(string) ([]byte, error)) map[string]site.Place {
	places := make(map[string]site.Place)
	for _, r := range u.records {
		if r.Kind != page.KindNavigation {
			continue
		}
		content, err := u.content(r)
		if err != nil {
			u.Log.Warn("navigation cannot be read", "project", u.project.ID, "path", r.Path, "error", err)
			continue
		}
		site.ReadNavigation(r.Path, content, read, func(page string, p site.Place) {
			dir := path.Join("/", u.project.DocsDir, path.Dir(r.Path))
			if strings.HasPrefix(page, "/") && site.Configures(r.Path) == api.SiteVitePress {
				dir = strings.TrimSuffix(strings.TrimSuffix(dir, "/config"), "/.vitepress")
			}
			full := path.Join(dir, page)
			if rest, ok := strings.CutPrefix(full+"/", path.Join("/", u.project.DocsDir)+"/"); ok && u.project.DocsDir != "" {
				full = "/" + rest
			}
			key := site.PageKey(full)
			known, ok := places[key]
			if !ok {
				places[key] = p
				return
			}
			known.Join(p)
			places[key] = known
		})
	}
	return places
}

// count fills the report with what has changed between the old records and the new ones.
func (u *Update) count() {
	before := make(map[string]*page.Record)
	if u.old != nil {
		for _, r := range u.old.Records {
			if r.Kind == page.KindPage {
				before[r.Path] = r
			}
		}
	}
	for _, r := range u.records {
		if r.Kind != page.KindPage {
			continue
		}
		u.report.Pages++
		u.report.Sections += len(r.Sections)
		was := before[r.Path]
		delete(before, r.Path)
		switch {
		case was == nil:
			u.report.Added = append(u.report.Added, r.Path)
		case was.Hash != r.Hash:
			u.report.Modified = append(u.report.Modified, r.Path)
		}
	}
	for p := range before {
		u.report.Removed = append(u.report.Removed, p)
	}
	slices.Sort(u.report.Removed)
}

// Write makes the generation in dir, and lets go of what was read: it is read from disk from now on, as every later process
// reads it.
func (u *Update) Write(ctx context.Context, dir string) error {
	err := u.write(ctx, dir)
	u.records, u.sources, u.todo = nil, nil, nil
	if err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("index %s: %w", u.project.ID, err)
	}
	return nil
}

func (u *Update) write(ctx context.Context, dir string) error {
	todo := u.todo
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	m := Manifest{Schema: schemaVersion, Analysis: analysis.Version, Commit: u.report.Commit, DocsDir: u.project.DocsDir, SiteURL: u.report.SiteURL, Site: labelOf(&u.where), Language: u.where.Language()}
	for _, r := range u.records {
		m.NextUID = max(m.NextUID, r.UID+1)
	}
	if u.old != nil {
		m.NextUID = max(m.NextUID, u.old.Manifest.NextUID)
		m.Dead = u.old.Manifest.Dead
		for _, r := range u.old.Records { // what the new postings no longer show
			if i, ok := slices.BinarySearchFunc(u.records, r.Path, func(n *page.Record, p string) int { return strings.Compare(n.Path, p) }); !ok || u.records[i] != r {
				m.Dead += len(r.Sections)
			}
		}
	}
	whole := u.old == nil || u.old.Segments >= maxSegments || float64(len(todo)) > maxTodoShare*float64(len(u.records)) ||
		float64(m.Dead) > maxDeadShare*float64(u.old.Manifest.Sections)
	if whole {
		m.Dead = 0
		for i, r := range u.records {
			if r.Kind == page.KindPage && u.sources[r] == nil {
				clone := *r
				clone.Sections, clone.Derived = nil, 0 // so that derive does not pass it over
				u.records[i] = &clone
			}
		}
		todo = u.derive()
	}
	// The text goes first: from here on contents are read back from the file, and need not be held in memory.
	index := filepath.Join(dir, "index")
	text, err := u.writeText(filepath.Join(dir, "text"))
	if err != nil {
		return err
	}
	defer text.Close()
	u.written, u.fresh = text, nil
	pages, err := createRecords(filepath.Join(dir, "pages"))
	if err != nil {
		return err
	}
	defer pages.close()
	// A record is written as soon as its documents are made, and what it knows of its sections is let go: the words of a
	// large site would fill more memory than everything else.
	made := make(map[*page.Record]bool, len(todo))
	u.report.Sections = 0
	keep := func(r *page.Record) error {
		made[r] = true
		if r.Kind == page.KindPage {
			u.report.Sections += len(r.Sections)
		}
		return pages.add(r)
	}
	if whole {
		err = u.writeWhole(ctx, dir, index, todo, keep)
	} else {
		err = u.writeChanges(ctx, index, todo, keep)
	}
	if err != nil {
		return err
	}
	for _, r := range u.records {
		if !made[r] {
			if err := keep(r); err != nil {
				return err
			}
		}
	}
	if err := pages.finish(); err != nil {
		return fmt.Errorf("write pages: %w", err)
	}
	m.Pages, m.Sections = u.report.Pages, u.report.Sections
	_, err = writeManifest(dir, m)
	return err
}

// onPage is work on one page. What the page makes the program panic with says which page it is, and ends the update alone.
func onPage(r *page.Record, work func() error) func() error {
	return func() error {
		err := api.Guard(work)
		var panicked *api.PanicError
		if errors.As(err, &panicked) {
			return fmt.Errorf("page %s: %w", r.Path, err)
		}
		return err
	}
}

// documents makes the documents of pages, several at a time, and hands them on one page at a time. A record is kept once
// and without its sections afterwards.
func (u *Update) documents(ctx context.Context, todo []*page.Record, keep func(*page.Record) error, use func(*page.Record, []*document.Document) error) error {
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(u.Workers)
	for _, r := range todo {
		g.Go(onPage(r, func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			mu.Lock()
			src := u.sources[r]
			delete(u.sources, r)
			mu.Unlock()
			if !src.Held() {
				content, err := u.content(r)
				if err != nil {
					return fmt.Errorf("content of %s: %w", r.Path, err)
				}
				full := page.Read(r, content)
				full.Place, full.Links, full.Parts = src.Place, src.Links, src.Parts
				src = full
			}
			for _, p := range src.Parts {
				i, ok := slices.BinarySearchFunc(u.records, p, func(r *page.Record, p string) int { return strings.Compare(r.Path, p) })
				if !ok {
					continue
				}
				text, err := u.content(u.records[i])
				if err != nil {
					return fmt.Errorf("content of %s: %w", p, err)
				}
				src.Include(p, text)
			}
			src.NameAnchors(&u.where)
			docs := page.Describe(r, src)
			mu.Lock()
			defer mu.Unlock()
			if err := use(r, docs); err != nil {
				return err
			}
			if err := keep(r); err != nil {
				return err
			}
			r.Sections = nil
			return nil
		}))
	}
	return g.Wait()
}

// readyMade lets Bleve's builder take documents that have their fields already.
type readyMade struct{ *mapping.IndexMappingImpl }

func (m readyMade) MapDocument(doc *document.Document, data interface{}) error {
	for _, f := range data.(*document.Document).Fields {
		doc.AddField(f)
	}
	return nil
}

// writeWhole writes all postings afresh, as one segment.
func (u *Update) writeWhole(ctx context.Context, dir, index string, todo []*page.Record, keep func(*page.Record) error) error {
	empty := true
	b, err := bleve.NewBuilder(index, readyMade{indexMapping().(*mapping.IndexMappingImpl)}, map[string]interface{}{
		"batchSize": 1000, "mergeMax": 20, "buildPathPrefix": dir,
	})
	if err != nil {
		return fmt.Errorf("begin index: %w", err)
	}
	err = u.documents(ctx, todo, keep, func(r *page.Record, docs []*document.Document) error {
		for _, d := range docs {
			empty = false
			if err := b.Index(d.ID(), d); err != nil {
				return fmt.Errorf("index %s: %w", r.Path, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if empty { // the builder cannot make an index of nothing
		if err := os.RemoveAll(index); err != nil {
			return err
		}
		idx, err := bleve.NewUsing(index, indexMapping(), bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore, nil)
		if err != nil {
			return fmt.Errorf("make empty index: %w", err)
		}
		return cmp.Or(idx.Close(), ownersOnly(index))
	}
	if err := b.Close(); err != nil {
		return fmt.Errorf("finish index: %w", err)
	}
	return cmp.Or(ownersOnly(index), removeBuildFolders(dir))
}

// ownersOnly takes the rights of others away from the one file of an index that Bleve gives them.
func ownersOnly(index string) error {
	return os.Chmod(filepath.Join(index, "index_meta.json"), 0o600)
}

// removeBuildFolders takes away what the builder used on its way.
func removeBuildFolders(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "index" {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeChanges takes over the old postings and applies the changes to them in one batch.
func (u *Update) writeChanges(ctx context.Context, index string, todo []*page.Record, keep func(*page.Record) error) error {
	if err := linkIndex(filepath.Join(u.old.Dir, "index"), index); err != nil {
		return fmt.Errorf("take over the index: %w", err)
	}
	idx, err := bleve.Open(index)
	if err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	batch := idx.NewBatch()
	made := make(map[string]bool)
	err = u.documents(ctx, todo, keep, func(r *page.Record, docs []*document.Document) error {
		for _, d := range docs {
			made[d.ID()] = true
			if err := batch.IndexAdvanced(d); err != nil {
				return fmt.Errorf("index %s: %w", r.Path, err)
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, idx.Close())
	}
	kept := make(map[uint32]bool, len(u.records))
	for _, r := range u.records {
		kept[r.UID] = r.Kind == page.KindPage
	}
	for _, r := range todo {
		kept[r.UID] = false
	}
	for _, r := range u.old.Records {
		if kept[r.UID] {
			continue
		}
		for n := range r.Sections {
			if id := page.SectionID(r.UID, n); !made[id] {
				batch.Delete(id)
			}
		}
	}
	if err := idx.Batch(batch); err != nil {
		return errors.Join(fmt.Errorf("apply the changes: %w", err), idx.Close())
	}
	return idx.Close()
}

// linkIndex makes a second index of the same segments. Segments never change; everything else is copied.
func linkIndex(from, to string) error {
	return filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if filepath.Ext(p) == ".zap" {
			if os.Link(p, target) == nil {
				return nil // else a file system without links: copy
			}
		}
		return copyFile(p, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	return cmp.Or(err, out.Close())
}

// writeText writes the contents of all files one after the other.
func (u *Update) writeText(name string) (_ *os.File, err error) {
	f, err := create(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	served := make(map[*page.Record]bool) // queries read these records now: one that moves is cloned
	if u.old != nil {
		for _, r := range u.old.Records {
			served[r] = true
		}
	}
	w := bufio.NewWriterSize(f, 1<<18)
	var at int64
	for i, r := range u.records {
		if content, ok := u.fresh[r]; ok {
			_, err = w.Write(content)
		} else {
			_, err = io.Copy(w, io.NewSectionReader(u.old.Text, r.Offset, r.Size))
		}
		if err != nil {
			return nil, err
		}
		if served[r] && r.Offset != at {
			clone := *r
			r = &clone
			u.records[i] = r
		}
		r.Offset = at
		at += r.Size
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return f, f.Sync()
}
