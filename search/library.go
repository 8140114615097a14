package search

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/internal/cell"
	"docent/internal/tracing"
	"docent/search/index"
	"docent/search/meaning"
	"docent/search/page"
)

// Options of a library. The zero value is ready to use.
type Options struct {
	// MaxOpen is how many indexes stay open; 64 if zero. One that is in use is never closed, so that no query waits for
	// another project's.
	MaxOpen int
	// IdleAfter is when an unused index is closed; 10 minutes if zero, never if negative.
	IdleAfter time.Duration
	// What each open index remembers, in bytes: decoded postings (32 MiB if zero), texts of sections that were found
	// lately (8 MiB if zero, none if negative), and results of queries (4 MiB if zero, none if negative).
	CacheBytes, TextBytes, ResultBytes int64
	// Memory is what open indexes may hold together, as far as it is counted; 512 MiB if zero. One index stays open
	// whatever it holds.
	Memory  int64
	Workers int // goroutines of one update; GOMAXPROCS if zero
	// What an update holds: sections that are written at once (1,000 if zero), and bytes of pages in parsed form (16 MiB
	// if zero).
	Batch  int
	Parsed int64
	Log    *slog.Logger
	Tuning *Tuning // weights of the ranking; DefaultTuning if nil
	// Cell runs the parsers of page.Kinds on files that may hold anything; in this process if nil, for tests.
	Cell func(ctx context.Context, kind string, input []byte) ([]byte, error)
	// Embedder makes the vectors by which sections are found by what they mean; by their words alone if nil.
	Embedder meaning.Embedder
	// MeaningInBoxes makes searches in boxes, which come with every key that is pressed, ask the embedder too.
	MeaningInBoxes bool
	// Sources are those of a project, its own first; each project has its own alone if nil.
	Sources func(ctx context.Context, project api.ProjectID) ([]Source, error)
	// Written gives the questions that were written for sections, by their keys. It is nil if none are.
	Written func(keys []SectionKey) (map[SectionKey][]string, error)
	Missing func(index api.ProjectID) // hears of a further source without an index; nil if nobody does
}

// A Library holds the indexes of all projects in one folder. It opens an index when a query comes for it and closes
// indexes that are not used. Only one process may use a folder at a time.
type Library struct {
	dir     string
	options Options
	tuning  Tuning
	log     *slog.Logger

	mu       sync.Mutex
	projects map[api.ProjectID]*projectIndex
	open     int            // snapshots that are open and current
	live     map[string]int // open snapshots by folder
	closed   bool
	memory   atomic.Int64 // that open snapshots hold
	lookups  lookups
	near     atomic.Pointer[semanticSearch]
	blend    blend
	inUse    background.Work
	done     chan struct{}
	swept    chan struct{}
}

// ErrClosed is the error of every call to a closed library.
var ErrClosed = errors.New("the documentation index is closed")

// A projectIndex is the index of one project: its folder and, while it is open, the snapshot that is served.
type projectIndex struct {
	library  *Library
	dir      string
	updating sync.Mutex // one update at a time
	opening  sync.Mutex // one opening at a time

	// Under library.mu:
	current *snapshot
	broken  error // why the generation on disk cannot be used; nil again after an update
	used    time.Time
}

// Open opens the library in dir. It makes the folder if it does not exist.
func Open(dir string, o Options) (*Library, error) {
	o.MaxOpen = cmp.Or(o.MaxOpen, 64)
	o.IdleAfter = cmp.Or(o.IdleAfter, 10*time.Minute)
	o.CacheBytes = cmp.Or(o.CacheBytes, 32<<20)
	o.TextBytes = cmp.Or(o.TextBytes, 8<<20)
	o.ResultBytes = cmp.Or(o.ResultBytes, 4<<20)
	o.Memory = cmp.Or(o.Memory, 512<<20)
	o.Batch = cmp.Or(o.Batch, 1000)
	o.Parsed = cmp.Or(o.Parsed, 16<<20)
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Cell == nil {
		o.Cell = cell.InProcess(page.Kinds()...)
	}
	o.Tuning = cmp.Or(o.Tuning, &DefaultTuning)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the documentation index: %w", err)
	}
	l := &Library{
		dir: dir, options: o, tuning: *o.Tuning, log: o.Log,
		projects: make(map[api.ProjectID]*projectIndex), live: make(map[string]int),
		done: make(chan struct{}), swept: make(chan struct{}),
		blend: defaultBlend,
	}
	l.near.Store(newSemanticSearch(o.Embedder, o.MeaningInBoxes))
	background.Go("search.Open", l.sweep)
	l.startEmbedding()
	return l, nil
}

// sweep closes idle indexes until the library is closed.
func (l *Library) sweep() {
	defer close(l.swept)
	if l.options.IdleAfter < 0 {
		<-l.done
		return
	}
	tick := time.NewTicker(max(l.options.IdleAfter/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case now := <-tick.C:
			l.mu.Lock()
			var idle []*snapshot
			for _, p := range l.projects {
				if p.current != nil && p.current.users == 0 && now.Sub(p.used) >= l.options.IdleAfter {
					idle = append(idle, p.shut())
				}
			}
			l.mu.Unlock()
			closeAll(idle)
		}
	}
}

// folderOf names a project's folder: any identifier gives a safe name, different ones give different names on file
// systems that ignore case as well.
func folderOf(project api.ProjectID) string {
	safe := project != ""
	for i := range len(project) {
		c := project[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			safe = false
		}
	}
	if safe && len(project) <= 100 {
		return string(project)
	}
	return "x_" + hex.EncodeToString([]byte(project))
}

func (l *Library) project(project api.ProjectID) (*projectIndex, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	p := l.projects[project]
	if p == nil {
		p = &projectIndex{library: l, dir: filepath.Join(l.dir, folderOf(project))}
		l.projects[project] = p
	}
	return p, nil
}

// acquire returns the served state of a project, open until it is released.
func (l *Library) acquire(project api.ProjectID) (*snapshot, error) {
	p, err := l.project(project)
	if err != nil {
		return nil, err
	}
	if snap, err := p.take(); snap != nil || err != nil {
		return snap, err
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	if snap, err := p.take(); snap != nil || err != nil {
		return snap, err
	}
	snap, err := p.load()
	if err != nil {
		if errors.Is(err, os.ErrNotExist) && !p.exists() {
			return nil, ErrNotIndexed // and asked again the next time
		}
		err = fmt.Errorf("%w: %w", ErrNotIndexed, err)
		l.mu.Lock()
		p.broken = err
		l.mu.Unlock()
		l.log.Warn("index cannot be used", "project", project, "error", err)
		return nil, err
	}
	surplus, err := l.install(p, snap, true)
	closeAll(surplus)
	if err != nil {
		snap.close()
		return nil, err
	}
	return snap, nil
}

func (p *projectIndex) exists() bool {
	_, err := os.Stat(filepath.Join(p.dir, "CURRENT"))
	return err == nil
}

// take returns the open snapshot for use; nil if none is open.
func (p *projectIndex) take() (*snapshot, error) {
	l := p.library
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if p.current == nil {
		return nil, p.broken
	}
	p.use(p.current)
	return p.current, nil
}

// use counts a user of a snapshot. The library's lock is held.
func (p *projectIndex) use(snap *snapshot) {
	snap.users++
	p.used = time.Now()
	p.library.inUse.Add(1)
}

// install makes a snapshot the served one and returns those to close.
func (l *Library) install(p *projectIndex, snap *snapshot, use bool) ([]*snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	var surplus []*snapshot
	if p.current != nil {
		if old := p.shut(); old.users == 0 {
			surplus = append(surplus, old)
		}
	}
	p.current, p.broken, p.used = snap, nil, time.Now()
	l.open++
	if use {
		p.use(snap)
	}
	return append(surplus, l.evict()...), nil
}

// shut takes the served snapshot out of service. Its last user closes it; if nobody uses it, the caller does.
func (p *projectIndex) shut() *snapshot {
	old := p.current
	p.current = nil
	old.retired = true
	p.library.open--
	return old
}

// evict shuts the longest unused snapshots while too many are open or they hold too much. Those in use stay.
func (l *Library) evict() []*snapshot {
	var out []*snapshot
	freed := int64(0)
	for l.open > l.options.MaxOpen || l.open > 1 && l.memory.Load()-freed > l.options.Memory {
		var oldest *projectIndex
		for _, p := range l.projects {
			if p.current != nil && p.current.users == 0 && (oldest == nil || p.used.Before(oldest.used)) {
				oldest = p
			}
		}
		if oldest == nil {
			break
		}
		snap := oldest.shut()
		freed += snap.holds()
		out = append(out, snap)
	}
	return out
}

func closeAll(list []*snapshot) {
	for _, s := range list {
		s.close()
	}
}

// release ends one use of a snapshot.
func (s *snapshot) release() {
	l := s.library
	l.mu.Lock()
	s.users--
	var surplus []*snapshot
	if s.users == 0 {
		if s.retired {
			surplus = append(surplus, s)
		} else {
			surplus = l.evict()
		}
	}
	l.mu.Unlock()
	closeAll(surplus)
	l.inUse.Done()
}

// load opens the generation that CURRENT names, after checking it.
func (p *projectIndex) load() (*snapshot, error) {
	raw, err := os.ReadFile(filepath.Join(p.dir, "CURRENT"))
	if err != nil {
		return nil, err
	}
	gen := strings.TrimSpace(string(raw))
	if filepath.Base(gen) != gen || !strings.HasPrefix(gen, "gen-") {
		return nil, errors.New("CURRENT is damaged")
	}
	return openSnapshot(filepath.Join(p.dir, gen), p.library, nil, nil)
}

// nextGeneration names the folder of the next generation and removes what an update that did not end left behind.
func (p *projectIndex) nextGeneration() (string, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return "", err
	}
	current := ""
	if raw, err := os.ReadFile(filepath.Join(p.dir, "CURRENT")); err == nil {
		current = strings.TrimSpace(string(raw))
	}
	last := 0
	for _, gen := range index.List(p.dir) {
		number, _, _ := strings.Cut(strings.TrimPrefix(gen, "gen-"), "-")
		if n, err := strconv.Atoi(number); err == nil {
			last = max(last, n)
		}
		if gen != current && !p.held(gen) {
			os.RemoveAll(filepath.Join(p.dir, gen))
		}
	}
	// The random end keeps names apart that are given again after Remove: a late reader of the old one removes its own.
	return fmt.Sprintf("gen-%08d-%s", last+1, rand.Text()[:8]), nil
}

// held reports whether a retired snapshot of a generation may still be in use. A snapshot removes its own folder when
// its last user is gone, so only folders of an earlier process are nobody's.
func (p *projectIndex) held(gen string) bool {
	p.library.mu.Lock()
	defer p.library.mu.Unlock()
	return p.library.live[filepath.Join(p.dir, gen)] > 0
}

// serve opens a complete generation, which may be known and go on with the snapshot before, and then makes it the one
// that queries and later processes see.
func (p *projectIndex) serve(gen string, known *index.Generation, before *snapshot) error {
	snap, err := openSnapshot(filepath.Join(p.dir, gen), p.library, known, before)
	if err != nil {
		return err
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	previous, _ := os.ReadFile(filepath.Join(p.dir, "CURRENT"))
	if err := index.ReplaceFile(filepath.Join(p.dir, "CURRENT"), []byte(gen+"\n")); err != nil {
		snap.close()
		return err
	}
	l := p.library
	l.mu.Lock()
	if p.current != nil {
		p.current.obsolete = true
	}
	l.mu.Unlock()
	surplus, err := l.install(p, snap, false)
	closeAll(surplus)
	if err != nil {
		snap.close()
		return err
	}
	if old := strings.TrimSpace(string(previous)); strings.HasPrefix(old, "gen-") && filepath.Base(old) == old &&
		!p.held(old) {
		os.RemoveAll(filepath.Join(p.dir, old))
	}
	return nil
}

// relabel records that a generation shows another commit as well.
func (p *projectIndex) relabel(snap *snapshot, m index.Manifest) error {
	if err := index.SaveManifest(snap.Dir, m); err != nil {
		return err
	}
	p.library.mu.Lock()
	defer p.library.mu.Unlock()
	snap.relabeled.Store(&m)
	return nil
}

// Update makes the index of a project show the tree. Files that have not changed since the last update are not read.
// Until it is done, queries are answered from the state before; then from the new one. When it fails, nothing has
// changed.
func (l *Library) Update(ctx context.Context, project api.Project, tree Tree,
	progress func(done, total int)) (Report, error) {
	p, err := l.project(project.ID)
	if err != nil {
		return Report{}, err
	}
	p.updating.Lock()
	defer p.updating.Unlock()
	var before *index.Generation
	old, err := l.acquire(project.ID)
	switch {
	case err == nil:
		defer old.release()
		before = old.Generation
	case errors.Is(err, ErrNotIndexed):
		l.log.Info("rebuilding index", "project", project.ID, "reason", err)
	default:
		return Report{}, fmt.Errorf("open the index of %s: %w", project.ID, err)
	}
	u, err := index.Read(ctx, l.updates(), project, tree, before, progress)
	if err != nil {
		return Report{}, err
	}
	defer u.Close()
	if !u.Changed() {
		if m, ok := u.Relabeled(); ok {
			err = p.relabel(old, m)
		}
		return u.Report(), err
	}
	next, err := p.nextGeneration()
	if err != nil {
		return Report{}, err
	}
	made, err := u.Write(ctx, filepath.Join(p.dir, next))
	if err != nil {
		return Report{}, err
	}
	if err := p.serve(next, made, old); err != nil {
		return Report{}, fmt.Errorf("switch %s to its new index: %w", project.ID, err)
	}
	if near := l.meaning(); near != nil {
		near.work.want(project.ID)
	}
	return u.Report(), nil
}

func (l *Library) updates() index.Options {
	return index.Options{Workers: l.options.Workers, Batch: l.options.Batch, Parsed: l.options.Parsed, Scratch: l.dir, Log: l.log,
		Cell: l.options.Cell}
}

// Check says what the index would show of a tree. It changes nothing.
func (l *Library) Check(ctx context.Context, project api.Project, tree Tree, progress func(done, total int)) (Check,
	error) {
	return index.Examine(ctx, l.updates(), project, tree, progress)
}

// Commit is the commit that the index of a project shows; empty if there is no usable index.
func (l *Library) Commit(project api.ProjectID) string { return l.labels(project).Commit }

// Address is the public URL of a project's documentation, as it was indexed: as the project says it, or as the
// site's configuration does. It is empty if neither does, and if there is no usable index.
func (l *Library) Address(project api.ProjectID) string { return l.labels(project).SiteURL }

// Size is how many pages and sections the index of a project shows; 0 if there is no usable index.
func (l *Library) Size(project api.ProjectID) (pages, sections int) {
	m := l.labels(project)
	return m.Pages, m.Sections
}

// Lost says which rule of the generator leaves out a large part of a project's files; empty if none does.
func (l *Library) Lost(project api.ProjectID) string { return l.labels(project).Lost }

func (l *Library) labels(project api.ProjectID) index.Manifest {
	snap, err := l.acquire(project)
	if err != nil {
		return index.Manifest{}
	}
	defer snap.release()
	return *snap.labels()
}

// Warm opens indexes, as many as may stay open, so that their first searches do not wait for that.
func (l *Library) Warm(ctx context.Context) {
	for _, project := range l.Projects() {
		if ctx.Err() != nil || l.Open() >= l.options.MaxOpen || l.Memory() >= l.options.Memory {
			return
		}
		l.labels(project)
	}
}

// Remove forgets a project. Queries that are under way end as they began.
func (l *Library) Remove(project api.ProjectID) error {
	p, err := l.project(project)
	if err != nil {
		return err
	}
	p.updating.Lock()
	defer p.updating.Unlock()
	p.opening.Lock()
	defer p.opening.Unlock()
	l.mu.Lock()
	var old *snapshot
	if p.current != nil {
		p.current.obsolete = true
		if old = p.shut(); old.users > 0 {
			old = nil
		}
	}
	p.broken = nil
	l.mu.Unlock()
	if near := l.meaning(); near != nil {
		near.work.forget(project)
	}
	if old != nil {
		old.close()
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the index of %s: %w", project, err)
	}
	return nil
}

// Memory is how many bytes open indexes hold, as far as they can be counted.
func (l *Library) Memory() int64 { return l.memory.Load() }

// Open is the number of indexes that are open now.
func (l *Library) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Close waits for the queries that are under way and closes every index.
func (l *Library) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	var idle []*snapshot
	for _, p := range l.projects {
		if p.current != nil {
			if old := p.shut(); old.users == 0 {
				idle = append(idle, old)
			}
		}
	}
	l.mu.Unlock()
	l.stopEmbedding()
	closeAll(idle)
	l.inUse.Wait()
	<-l.swept
	return nil
}

// Search finds the sections that answer a query best, one for each page. ErrNotIndexed says that there is no index yet.
// The lists within hits are shared with other callers: they may be read only.
func (l *Library) Search(ctx context.Context, project api.ProjectID, q Query) ([]Hit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, span := tracing.Start(ctx, "retrieve")
	hits, err := l.find(ctx, project, q)
	span.Int("docent.hits", int64(len(hits)))
	span.Done(err)
	return hits, err
}

func (l *Library) find(ctx context.Context, project api.ProjectID, q Query) ([]Hit, error) {
	asked, several, err := l.asked(ctx, project, &q.Filter)
	switch {
	case err != nil:
		return nil, err
	case several:
		q.Degraded = once(q.Degraded)
		return l.searchAll(ctx, asked, q)
	case len(asked) == 0: // the filter names a source that the project does not have
		return nil, nil
	}
	return l.searchOne(ctx, &asked[0], q)
}

func (l *Library) searchOne(ctx context.Context, p *Source, q Query) ([]Hit, error) {
	id, file := p.Index, p.File
	if q.Everywhere && p.Written != "" {
		id, file = p.Written, nil
	}
	snap, err := l.acquire(id)
	if err != nil {
		return nil, err
	}
	defer snap.release()
	hits, err := snap.search(ctx, q)
	for i := 0; file != nil && i < len(hits); i++ {
		hits[i].File = file(hits[i].Path)
	}
	return hits, err
}

// Page finds a page by its path: with or without extension and leading slash, as the path of its index, or as its URL.
// A page restricted to groups is found only with one of them.
func (l *Library) Page(ctx context.Context, project api.ProjectID, path string, groups []string) (Page, error) {
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	all, err := l.sources(ctx, project)
	if err != nil {
		return Page{}, err
	}
	return l.pageOf(all, path, groups)
}

// A Place is a section of a page.
type Place struct{ Path, Anchor string }

// Around gives the sections that stand together with one on its page, in their order: see page.Around.
func (l *Library) Around(ctx context.Context, project api.ProjectID, at Place, groups []string) ([]Hit, error) {
	all, err := l.sources(ctx, project)
	if err != nil {
		return nil, err
	}
	source, within, ok := sourceOf(all, at.Path, groups)
	if !ok {
		return nil, nil
	}
	snap, err := l.acquire(source.Index)
	if err != nil {
		return nil, err
	}
	defer snap.release()
	hits, err := snap.around(Place{within, at.Anchor}, groups)
	source.mark(hits)
	return hits, err
}

// A Named is what readers call a section, and where they find it. A section that the index no longer has is named by
// its page, and if that is gone too, the URL is empty.
type Named struct{ Title, Heading, URL string }

// Names names sections, each in its place; also of pages that are restricted to groups.
func (l *Library) Names(ctx context.Context, project api.ProjectID, places []Place) ([]Named, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all, err := l.sources(ctx, project)
	if err != nil {
		return nil, err
	}
	out := make([]Named, len(places))
	for i := range all {
		s := &all[i]
		snap, err := l.acquire(s.Index)
		if errors.Is(err, ErrNotIndexed) && !s.First {
			continue
		}
		if err != nil {
			return nil, err
		}
		for n, place := range places {
			if of, within, _ := sourceOf(all, place.Path, nil); of == s {
				out[n] = snap.named(Place{within, place.Anchor})
			}
		}
		snap.release()
	}
	return out, nil
}
