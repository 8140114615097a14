package search

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
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"
	"golang.org/x/sync/errgroup"

	"docent/api"
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

// An update is one run of Update.
type update struct {
	library *Library
	project api.Project
	tree    Tree
	old     *snapshot // nil where there is nothing to build upon
	records []*record // the new generation's, in the order of their paths
	sources map[*record]*source
	fresh   map[*record][]byte // contents that were read now
	written *os.File           // the new generation's text, once it is complete
	where   site.Site          // how the site's generator shows the pages
	places  map[string]site.Place
	sizes   map[string]int64         // of all files of the tree, by their paths in it
	decided map[string]site.Decision // what becomes of the files that may be pages, by path

	passing sync.Mutex
	passed  map[string]string // why other files are no pages, by path; nil where nobody asks
	report  Report
}

// Update makes the index of a project show the tree. Files that have not changed since the last update are not read. Until
// it is done, queries are answered from the state before; then from the new one. When it fails, nothing has changed.
func (l *Library) Update(ctx context.Context, project api.Project, tree Tree, progress func(done, total int)) (Report, error) {
	shelf, err := l.shelf(project.ID)
	if err != nil {
		return Report{}, err
	}
	shelf.updating.Lock()
	defer shelf.updating.Unlock()
	project.DocsDir = strings.Trim(path.Clean("/"+project.DocsDir), "/")
	u := &update{
		library: l, project: project, tree: tree,
		sources: make(map[*record]*source), fresh: make(map[*record][]byte),
	}
	u.report.Commit = tree.Commit()
	old, err := l.acquire(project.ID)
	switch {
	case err == nil:
		defer old.release()
		if old.manifest.DocsDir == project.DocsDir {
			u.old = old
		}
	case errors.Is(err, ErrNotIndexed):
		l.log.Info("index is built anew", "project", project.ID, "reason", err)
	default:
		return Report{}, fmt.Errorf("open the index of %s: %w", project.ID, err)
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	if err := u.read(ctx, progress); err != nil {
		return Report{}, fmt.Errorf("read the documentation of %s: %w", project.ID, err)
	}
	if err := u.decide(ctx, time.Now()); err != nil {
		return Report{}, fmt.Errorf("read the documentation of %s: %w", project.ID, err)
	}
	todo := u.derive()
	u.count()
	if u.old != nil && len(todo) == 0 && len(u.report.Added)+len(u.report.Modified)+len(u.report.Removed) == 0 && len(u.old.records) == len(u.records) &&
		u.old.manifest.Language == u.where.Language() {
		if label := labelOf(&u.where); u.old.manifest.Commit != u.report.Commit || u.old.manifest.SiteURL != u.report.SiteURL || !reflect.DeepEqual(u.old.manifest.Site, label) {
			err = shelf.relabel(u.old, u.report.Commit, u.report.SiteURL, label)
		}
		return u.report, err
	}
	next, err := shelf.nextGeneration()
	if err != nil {
		return Report{}, err
	}
	dir := filepath.Join(shelf.dir, next)
	if err := u.write(ctx, dir, todo); err != nil {
		os.RemoveAll(dir)
		return Report{}, fmt.Errorf("index %s: %w", project.ID, err)
	}
	u.records, u.sources = nil, nil // the new generation is read from disk, as every later process reads it
	if err := shelf.serve(next); err != nil {
		return Report{}, fmt.Errorf("switch %s to its new index: %w", project.ID, err)
	}
	return u.report, nil
}

// read finds out which files count, takes over what is known of the unchanged ones and reads the others.
func (u *update) read(ctx context.Context, progress func(done, total int)) error {
	files, err := u.tree.Files(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]*record)
	if u.old != nil {
		for _, r := range u.old.records {
			known[r.Path] = r
		}
	}
	var changed []*record
	u.sizes = make(map[string]int64, len(files))
	for _, f := range files {
		u.sizes[f.Path] = f.Size
		rel, ok := site.Relative(u.project.DocsDir, f.Path)
		if !ok {
			continue
		}
		k := classify(rel)
		if k == kindIgnored {
			if site.IsPage(rel) {
				u.pass(rel, "hidden files and folders, and those of programs, are no pages")
			}
			continue
		}
		if f.Size > maxFileSize && k == kindPage && isData(rel) && !describesByName(rel) {
			continue
		}
		if f.Size > maxFileSize {
			u.pass(rel, "is bigger than a page that someone wrote")
			u.library.log.Warn("file is too big to be indexed", "project", u.project.ID, "path", f.Path, "bytes", f.Size)
			continue
		}
		if r := known[rel]; r != nil && r.Hash == f.Hash && f.Hash != "" {
			u.records = append(u.records, r)
			continue
		}
		r := &record{Path: rel, Hash: f.Hash, Kind: k}
		u.records = append(u.records, r)
		changed = append(changed, r)
	}
	slices.SortFunc(u.records, func(a, b *record) int { return strings.Compare(a.Path, b.Path) })
	u.records = slices.CompactFunc(u.records, func(a, b *record) bool { return a.Path == b.Path })
	var mu sync.Mutex
	var done atomic.Int64
	held := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(u.library.options.Workers)
	for _, r := range changed {
		g.Go(onPage(r, func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			content, err := u.tree.Read(gctx, path.Join(u.project.DocsDir, r.Path))
			if err != nil {
				return err
			}
			var src *source
			text, forReaders := content, true
			if r.Kind == kindPage && len(content) <= maxFileSize {
				text, forReaders = pageText(r.Path, content)
			}
			if len(content) > maxFileSize || !isText(content) {
				u.pass(r.Path, "is no text")
				r.Kind, content = kindIgnored, nil
			} else if content = text; !forReaders {
				r.Kind, content = kindIgnored, nil
			} else {
				r.Size, r.CRC = int64(len(content)), crc32.Checksum(content, castagnoli)
				src = readSource(r, content)
			}
			mu.Lock()
			defer mu.Unlock()
			u.fresh[r] = content
			if src != nil {
				if held += len(content); held > holdParsed {
					src.sections, src.headings = nil, nil // read again when it is indexed: memory stays bounded
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
		next = u.old.manifest.NextUID
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
func (u *update) derive() []*record {
	byKey := make(map[string]*record, len(u.records))
	parts := make(map[string]*record)
	for _, r := range u.records {
		switch r.Kind {
		case kindPage:
			byKey[site.PageKey(r.Path)] = r
		case kindPart:
			parts[r.Path] = r
		}
	}
	titles := make(map[string]string) // of folders, by their index pages
	shown := make(map[*record]string, len(byKey))
	for _, r := range u.records {
		if r.Kind != kindPage {
			continue
		}
		shown[r] = u.where.Shown(r.page())
		for _, address := range append([]string{shown[r]}, r.Aliases...) {
			if key := site.AddressKey(address); byKey[key] == nil {
				byKey[key] = r
			}
		}
		if key := site.PageKey(r.Path); key == strings.Trim(path.Dir(r.Path), "./") {
			titles[path.Dir(r.Path)] = r.Title
		}
	}
	incoming := make(map[*record]map[string]int)
	for _, r := range u.records {
		if r.Kind != kindPage {
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
	var todo []*record
	for i, r := range u.records {
		if r.Kind != kindPage {
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
			at.Crumbs = u.where.Crumbs(r.page(), titles)
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
			// Known content, new neighbours. The old generation keeps its own record.
			clone := *r
			clone.Sections = nil
			r = &clone
			u.records[i] = r
		}
		if src == nil {
			src = &source{}
			u.sources[r] = src
		}
		src.place, src.links, src.parts = at, links, nil
		for _, p := range r.Imports {
			if parts[p] != nil {
				src.parts = append(src.parts, p)
			}
		}
		r.Derived, r.Shown, r.Crumbs = derived, address, at.Crumbs
		r.Versions, r.Current, r.Locale, r.Docs, r.Same = v.Versions, v.Current, v.Language, v.Docs, v.Same
		todo = append(todo, r)
	}
	return todo
}

// pass notes why a file is not even looked at as a page.
func (u *update) pass(file, why string) {
	u.passing.Lock()
	defer u.passing.Unlock()
	if u.passed != nil {
		u.passed[file] = why
	}
}

// decide finds out which files the site shows as pages, and which it does not.
func (u *update) decide(ctx context.Context, now time.Time) error {
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
		if r.Kind == kindNavigation || r.Kind == kindIgnored {
			continue
		}
		e := site.Entry{Path: r.Path, Front: r.Front, OpenAPI: !site.IsPage(r.Path), Importers: importers[r.Path]}
		if at, ok := u.place(r, u.where.Shown(r.page())); ok {
			e.Place = &at
		}
		entries, numbers = append(entries, e), append(numbers, i)
	}
	u.decided = make(map[string]site.Decision, len(entries))
	for n, d := range u.where.Decide(entries, now) {
		r := u.records[numbers[n]]
		u.decided[r.Path] = d
		kind := kindPage
		switch d.State {
		case site.Included:
			kind = kindPart
		case site.LeftOut:
			kind = kindLeftOut
		}
		if !d.State.IsPage() {
			u.report.LeftOut++
		}
		hidden := d.State == site.Unlisted
		if r.Kind == kind && r.Hidden == hidden {
			continue
		}
		if _, fresh := u.fresh[r]; !fresh { // queries read the old generation's record now
			clone := *r
			r = &clone
			u.records[numbers[n]] = r
		}
		if kind != kindPage {
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
func (u *update) place(r *record, address string) (site.Place, bool) {
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
func (u *update) site(read func(string) ([]byte, error)) site.Site {
	files := make([]string, len(u.records))
	for i, r := range u.records {
		files[i] = r.Path
	}
	return site.Open(u.project, files, read)
}

// reader reads files of the site by their paths from the documentation folder, those too that the index does not hold.
func (u *update) reader(ctx context.Context) func(string) ([]byte, error) {
	byPath := make(map[string]*record, len(u.records))
	for _, r := range u.records {
		byPath[r.Path] = r
	}
	return func(p string) ([]byte, error) {
		if r := byPath[p]; r != nil && (r.Kind == kindNavigation || site.IsPage(p)) { // of other files something else is kept
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

// source is the name that says how the record's text is read.
func (r *record) source() string {
	if isData(r.Path) {
		return r.Path + ".md" // see pageText
	}
	return r.Path
}

// page is what a record's file says of its own address.
func (r *record) page() site.Page {
	return site.Page{Path: r.Path, Title: r.Title, Slug: r.Slug, ID: r.ID, Address: r.Address}
}

// content is a file's text: as read now, or as the old generation holds it.
func (u *update) content(r *record) ([]byte, error) {
	if c, ok := u.fresh[r]; ok {
		return c, nil
	}
	if u.written != nil {
		return readContent(u.written, r)
	}
	return u.old.content(r)
}

// editions tells the version and the language of each page.
func (u *update) editions(shown map[*record]string) map[*record]site.Edition {
	var pages []site.EditionPage
	var records []*record
	for _, r := range u.records {
		if address, ok := shown[r]; ok {
			at, _ := u.place(r, address)
			pages = append(pages, site.EditionPage{Path: r.Path, Version: r.Version, Language: r.Language, Place: at})
			records = append(records, r)
		}
	}
	out := make(map[*record]site.Edition, len(pages))
	for i, v := range u.where.Editions(pages) {
		out[records[i]] = v
	}
	return out
}

// navigation reads the files that name pages. Their contents are at hand even when they have not changed.
func (u *update) navigation(read func(string) ([]byte, error)) map[string]site.Place {
	places := make(map[string]site.Place)
	for _, r := range u.records {
		if r.Kind != kindNavigation {
			continue
		}
		content, err := u.content(r)
		if err != nil {
			u.library.log.Warn("navigation cannot be read", "project", u.project.ID, "path", r.Path, "error", err)
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
func (u *update) count() {
	before := make(map[string]*record)
	if u.old != nil {
		for _, r := range u.old.records {
			if r.Kind == kindPage {
				before[r.Path] = r
			}
		}
	}
	for _, r := range u.records {
		if r.Kind != kindPage {
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

// write makes the generation in dir.
func (u *update) write(ctx context.Context, dir string, todo []*record) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	m := manifest{Schema: schemaVersion, Analysis: analysisVersion, Commit: u.report.Commit, DocsDir: u.project.DocsDir, SiteURL: u.report.SiteURL, Site: labelOf(&u.where), Language: u.where.Language()}
	for _, r := range u.records {
		m.NextUID = max(m.NextUID, r.UID+1)
	}
	if u.old != nil {
		m.NextUID = max(m.NextUID, u.old.manifest.NextUID)
		m.Dead = u.old.manifest.Dead
		for _, r := range u.old.records { // what the new postings no longer show
			if i, ok := slices.BinarySearchFunc(u.records, r.Path, func(n *record, p string) int { return strings.Compare(n.Path, p) }); !ok || u.records[i] != r {
				m.Dead += len(r.Sections)
			}
		}
	}
	whole := u.old == nil || u.old.segments >= maxSegments || float64(len(todo)) > maxTodoShare*float64(len(u.records)) ||
		float64(m.Dead) > maxDeadShare*float64(u.old.manifest.Sections)
	if whole {
		m.Dead = 0
		for i, r := range u.records {
			if r.Kind == kindPage && u.sources[r] == nil {
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
	made := make(map[*record]bool, len(todo))
	u.report.Sections = 0
	keep := func(r *record) error {
		made[r] = true
		if r.Kind == kindPage {
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

// describesByName tells a document that describes an API by its name.
func describesByName(p string) bool {
	base := strings.ToLower(path.Base(p))
	return strings.Contains(base, "openapi") || strings.Contains(base, "swagger")
}

// onPage is work on one page. What the page makes the program panic with says which page it is, and ends the update alone.
func onPage(r *record, work func() error) func() error {
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
func (u *update) documents(ctx context.Context, todo []*record, keep func(*record) error, use func(*record, []*document.Document) error) error {
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(u.library.options.Workers)
	for _, r := range todo {
		g.Go(onPage(r, func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			mu.Lock()
			src := u.sources[r]
			delete(u.sources, r)
			mu.Unlock()
			if src.sections == nil {
				content, err := u.content(r)
				if err != nil {
					return fmt.Errorf("content of %s: %w", r.Path, err)
				}
				full := readSource(r, content)
				full.place, full.links, full.parts = src.place, src.links, src.parts
				src = full
			}
			for _, p := range src.parts {
				i, ok := slices.BinarySearchFunc(u.records, p, func(r *record, p string) int { return strings.Compare(r.Path, p) })
				if !ok {
					continue
				}
				text, err := u.content(u.records[i])
				if err != nil {
					return fmt.Errorf("content of %s: %w", p, err)
				}
				src.include(p, text)
			}
			src.name(&u.where)
			docs := describe(r, src)
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
func (u *update) writeWhole(ctx context.Context, dir, index string, todo []*record, keep func(*record) error) error {
	empty := true
	b, err := bleve.NewBuilder(index, readyMade{indexMapping().(*mapping.IndexMappingImpl)}, map[string]interface{}{
		"batchSize": 1000, "mergeMax": 20, "buildPathPrefix": dir,
	})
	if err != nil {
		return fmt.Errorf("begin index: %w", err)
	}
	err = u.documents(ctx, todo, keep, func(r *record, docs []*document.Document) error {
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
func (u *update) writeChanges(ctx context.Context, index string, todo []*record, keep func(*record) error) error {
	if err := linkIndex(filepath.Join(u.old.dir, "index"), index); err != nil {
		return fmt.Errorf("take over the index: %w", err)
	}
	idx, err := bleve.Open(index)
	if err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	batch := idx.NewBatch()
	made := make(map[string]bool)
	err = u.documents(ctx, todo, keep, func(r *record, docs []*document.Document) error {
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
		kept[r.UID] = r.Kind == kindPage
	}
	for _, r := range todo {
		kept[r.UID] = false
	}
	for _, r := range u.old.records {
		if kept[r.UID] {
			continue
		}
		for n := range r.Sections {
			if id := sectionID(r.UID, n); !made[id] {
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
func (u *update) writeText(name string) (_ *os.File, err error) {
	f, err := create(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	served := make(map[*record]bool) // queries read these records now: one that moves is cloned
	if u.old != nil {
		for _, r := range u.old.records {
			served[r] = true
		}
	}
	w := bufio.NewWriterSize(f, 1<<18)
	var at int64
	for i, r := range u.records {
		if content, ok := u.fresh[r]; ok {
			_, err = w.Write(content)
		} else {
			_, err = io.Copy(w, io.NewSectionReader(u.old.text, r.Offset, r.Size))
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

func sectionID(uid uint32, n int) string {
	return strconv.FormatUint(uint64(uid), 36) + "." + strconv.Itoa(n)
}

func parseSectionID(id string) (uid uint32, n int, ok bool) {
	a, b, found := strings.Cut(id, ".")
	u, err1 := strconv.ParseUint(a, 36, 32)
	n, err2 := strconv.Atoi(b)
	return uint32(u), n, found && err1 == nil && err2 == nil
}
