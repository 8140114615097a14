package sources

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"docent/api"
	"docent/forge"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/cell"
	"docent/search"
)

// A Reader keeps the indexes true to the repositories: it reads a project's documentation and indexes what changed.
type Reader struct {
	Deps
	adding     sync.Mutex    // held while a project is added: two additions of one id must not both read into its repository
	slots      chan struct{} // how many projects are read at once
	collecting chan struct{} // how many sources are collected at once

	mu       sync.Mutex
	turns    map[api.ProjectID]*turn
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	work     background.Work
	watch    *folderWatch // of a server; nil in a command
	heard    func(context.Context, api.ProjectID, string)
	making   map[api.ProjectID]*making
	looking  map[api.ProjectID]bool // collected sources that are being looked at by themselves
	readings map[api.ProjectID]Reading
	fresh    map[api.ProjectID]freshness
	follows  following // other nodes
	sites    siteMaps
}

// A Reading is the last time that a project's documentation was read, or was found to be as it was.
type Reading struct {
	At     time.Time
	Commit string // empty if it failed
	Err    error
}

// A making is one attempt to give a project an index that had none that could be used.
type making struct {
	done chan struct{}
	err  error // once it is done
	ends time.Time
}

// failed reports whether an attempt has ended without an index.
func (m *making) failed() bool {
	select {
	case <-m.done:
		return m.err != nil
	default:
		return false
	}
}

// withoutFirst is a query to a project's further sources alone; ok is false if it asks for none.
func (s *Reader) withoutFirst(ctx context.Context, id api.ProjectID, q search.Query) (_ search.Query, ok bool) {
	p, err := s.Catalog.Project(ctx, id)
	if err != nil {
		return q, false
	}
	var labels []string
	for _, f := range p.Sources {
		if len(q.Filter.Sources) == 0 || slices.Contains(q.Filter.Sources, f.Label) {
			labels = append(labels, f.Label)
		}
	}
	q.Filter.Sources = labels
	return q, len(labels) > 0
}

// Missing schedules a build of a missing index, unless one is under way.
func (s *Reader) Missing(id api.ProjectID) { s.make(id) }

// makeAgain is how long after an attempt that failed the next one begins at the earliest.
const makeAgain = 4 * time.Second

// New makes a Reader. It does nothing by itself before Follow.
func New(deps Deps) *Reader {
	ctx, cancel := context.WithCancel(context.Background())
	return &Reader{
		Deps: deps, slots: make(chan struct{}, 2), collecting: make(chan struct{}, 4), turns: map[api.ProjectID]*turn{}, making: map[api.ProjectID]*making{},
		readings: map[api.ProjectID]Reading{}, fresh: map[api.ProjectID]freshness{}, looking: map[api.ProjectID]bool{},
		ctx: ctx, cancel: cancel,
		follows: following{known: map[api.ProjectID]int64{}, served: map[api.ProjectID]int64{},
			runs: map[api.ProjectID]*catching{}, read: make(chan struct{}, 1)},
		sites: siteMaps{known: map[api.ProjectID]*siteMap{}, moved: map[api.ProjectID]time.Time{}},
	}
}

// Close ends what goes on in the background and waits for it.
func (s *Reader) Close() {
	s.cancel()
	s.work.Wait()
}

// Refresh reads the project's documentation and brings its index up to date.
func (s *Reader) Refresh(ctx context.Context, p api.Project, progress Progress) (search.Report, error) {
	_, report, err := s.refreshTo(ctx, p, progress)
	return report, err
}

// refreshTo is Refresh; it also says to where on which branch. Every node answers from it when it returns.
func (s *Reader) refreshTo(ctx context.Context, p api.Project, progress Progress) (forge.Tip, search.Report, error) {
	tip, report, err := s.readNow(ctx, p, progress)
	if err == nil {
		s.everywhere(ctx, p.ID, progress)
	}
	return tip, report, err
}

// readNow reads a source again in its turn, on this node alone.
func (s *Reader) readNow(ctx context.Context, p api.Project, progress Progress) (forge.Tip, search.Report, error) {
	end, err := s.turn(ctx, p.ID)
	if err != nil {
		return forge.Tip{}, search.Report{}, err
	}
	defer end()
	if _, err := s.take(ctx, p); err != nil { // only what other nodes collect from now on is as new as is asked for
		return forge.Tip{}, search.Report{}, err
	}
	return s.read(ctx, p, true, progress)
}

// read is refreshTo for a caller that has the project's turn. What was collected before does if nothing fresh is
// asked for.
func (s *Reader) read(ctx context.Context, p api.Project, fresh bool, progress Progress) (tip forge.Tip, report search.Report,
	err error) {
	if err := ctx.Err(); err != nil { // of two ways that are open select takes any
		return forge.Tip{}, search.Report{}, err
	}
	slots := s.slots
	if fresh && p.Kind.Collected() { // which may take hours, of another server's
		slots = s.collecting
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return forge.Tip{}, search.Report{}, ctx.Err()
	}
	owner, _ := api.SplitSource(p.ID)
	ctx = cell.WithOwner(ctx, string(owner))
	kind, before := p.Kind, s.Index.Commit(p.ID) // not that of the folder in which it is collected
	number := s.follows.number(p.ID)
	defer func() {
		s.remember(p.ID, kind, tip.Commit, err)
		if err == nil {
			s.served(ctx, p.ID, number)
		}
	}()
	// Repositories hold anything: what one of them makes the program panic with is no other project's concern.
	err = background.Guard(func() error {
		if p, tip, err = s.fetch(ctx, p, fresh, progress); err != nil {
			return err
		}
		s.mu.Lock()
		heard := s.heard
		s.mu.Unlock()
		report, err = s.index(ctx, p, tip.Commit, progress)
		if _, label := api.SplitSource(p.ID); err == nil && heard != nil && label == "" {
			heard(ctx, p.ID, tip.Commit)
		}
		return err
	})
	if err == nil && before != tip.Commit {
		s.sourceMoved(p, before == "")
	}
	return tip, report, err
}

// remember keeps how a reading went. One that was called off says nothing of the documentation.
func (s *Reader) remember(id api.ProjectID, kind api.SourceKind, commit string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	r := Reading{At: s.Guard.now().UTC(), Commit: commit, Err: err}
	if err != nil {
		r.Commit = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings[id] = r
	s.fresh[id] = s.fresh[id].after(kind, r)
}

// forget forgets how a source was read that is no more.
func (s *Reader) forget(id api.ProjectID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readings, id)
	delete(s.fresh, id)
}

// LastReading is the result of a project's last reading since the program began; false if there was none.
func (s *Reader) LastReading(id api.ProjectID) (Reading, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.readings[id]
	return r, ok
}

// folders is what watches folders; nil, which does nothing, in a command.
func (s *Reader) folders() *folderWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch
}

// fetch brings the project's repository up to date with its source. It returns the project with the source that was
// read, which of a collected one is a folder.
func (s *Reader) fetch(ctx context.Context, p api.Project, fresh bool, progress Progress) (api.Project, forge.Tip,
	error) {
	end, err := s.Guard.begin(p.ID, stepFetch, "")
	if err != nil {
		return p, forge.Tip{}, err
	}
	defer end()
	collected := p.Kind.Collected()
	p, err = s.collect(ctx, p, fresh, progress)
	if err != nil {
		return p, forge.Tip{}, fmt.Errorf("collect the pages of %s: %w", p.ID, err)
	}
	tip, _, err := s.Repositories.Sync(ctx, p, func(text string) { progress(text, 0, 0) })
	if err != nil {
		return p, tip, fmt.Errorf("read the documentation of %s: %w", p.ID, err)
	}
	if !collected {
		s.folders().add(p)
	}
	return p, tip, nil
}

// Listen registers heard, which is called with the commit that a project's documentation was read at, each time.
func (s *Reader) Listen(heard func(context.Context, api.ProjectID, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = heard
}

// index brings the project's index to a commit.
func (s *Reader) index(ctx context.Context, p api.Project, commit string, progress Progress) (search.Report, error) {
	end, err := s.Guard.begin(p.ID, stepIndex, commit)
	if err != nil {
		return search.Report{}, err
	}
	defer end()
	if s.BeforeIndexing != nil {
		s.BeforeIndexing(p)
	}
	tree, err := s.Repositories.Tree(ctx, p, commit)
	if err != nil {
		return search.Report{}, fmt.Errorf("read the documentation of %s: %w", p.ID, err)
	}
	shown, err := s.shown(ctx, p, tree)
	if err != nil {
		return search.Report{}, err
	}
	report, err := s.Index.Update(ctx, p, shown, func(done, total int) { progress("indexing "+string(p.ID), done, total) })
	if err != nil {
		return report, fmt.Errorf("index the documentation of %s: %w", p.ID, err)
	}
	if changed := len(report.Added) + len(report.Modified) + len(report.Removed); changed > 0 {
		s.Log.Info("documentation indexed", "project", p.ID, "commit", commit, "pages", report.Pages,
			"sections", report.Sections,
			"added", len(report.Added), "modified", len(report.Modified), "removed", len(report.Removed))
	}
	return report, nil
}

// again brings the index to the commit that it is at, which says what there is.
func (s *Reader) again(ctx context.Context, p api.Project, commit string, progress Progress) (search.Report, error) {
	end, err := s.turn(ctx, p.ID)
	if err != nil {
		return search.Report{}, err
	}
	defer end()
	return s.index(ctx, p, commit, progress)
}

// Check brings a project's index up to date and says what is public of the same commit.
func (s *Reader) Check(ctx context.Context, p api.Project, progress Progress) (search.Check, error) {
	report, err := s.Refresh(ctx, p, progress)
	if err != nil {
		return search.Check{}, err
	}
	if site, ok := p.Published(); ok {
		if _, err := s.Refresh(ctx, site, progress); err != nil && ctx.Err() != nil {
			return search.Check{}, err // else the comparison says why it could not be read
		}
	}
	return s.checkAt(ctx, p, report.Commit, progress)
}

// Merged indexes a project again in the background: its documentation has just changed.
func (s *Reader) Merged(id api.ProjectID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	s.work.Go("search/sources.Merged", func() {
		p, err := s.Part(s.ctx, id)
		if err == nil {
			_, err = s.Refresh(s.ctx, p, func(string, int, int) {})
		}
		s.Report(id, err)
	})
}

// make schedules a build of the index of a project that has no usable one, unless one is under way.
func (s *Reader) make(id api.ProjectID) *making {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.making[id]; m != nil && (m.ends.IsZero() || time.Since(m.ends) < makeAgain) {
		return m
	}
	m := &making{done: make(chan struct{})}
	if m.err = s.ctx.Err(); m.err != nil {
		close(m.done)
		return m
	}
	s.making[id] = m
	s.work.Go("search/sources.make", func() {
		err := s.makeNow(id)
		s.Report(id, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		m.err, m.ends = err, time.Now()
		if err == nil {
			delete(s.making, id)
		}
		close(m.done)
	})
	return m
}

func (s *Reader) makeNow(id api.ProjectID) error {
	p, err := s.Part(s.ctx, id)
	if err != nil {
		return err
	}
	end, err := s.turn(s.ctx, id)
	if err != nil {
		return err
	}
	defer end()
	if s.Index.Commit(id) != "" {
		return nil // the last holder of the turn has made it
	}
	_, _, err = s.read(s.ctx, p, false, func(string, int, int) {})
	return err
}

// Part is a project by its id, or a further source by that of the project that is made of it.
func (s *Reader) Part(ctx context.Context, id api.ProjectID) (api.Project, error) {
	project, label := api.SplitSource(id)
	p, err := s.Catalog.Project(ctx, project)
	if err != nil || label == "" {
		return p, err
	}
	if p = p.Of(label); p.ID == "" {
		return p, fmt.Errorf("source %q of project %s: %w", label, project, api.ErrNotFound)
	}
	return p, nil
}

// Follow looks at every project's source now, when its folder changes, and every interval, until ctx ends.
func (s *Reader) Follow(ctx context.Context, interval time.Duration) {
	watch := newFolderWatch(s.Log, s.Merged)
	s.mu.Lock()
	s.watch = watch
	s.mu.Unlock()
	defer watch.Close()
	var follows background.Work
	follows.Go("search/sources.Follow", func() { s.Nodes.Follow(ctx, s.follows.read, s.catchUp) })
	defer follows.Wait()
	for {
		projects, err := s.Catalog.Projects(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.Error("list the projects", "error", err)
		}
		var round background.Group
		round.SetLimit(cap(s.slots))
		for _, project := range projects {
			round.Go(func() error { // so that no reader waits for the map of the site, such as after a start
				s.Published(project)
				return nil
			})
			for _, p := range project.Parts() {
				if !s.due(p) && s.Index.Commit(p.ID) != "" {
					continue
				}
				if p.Kind.Collected() {
					s.lookInBackground(ctx, p)
					continue
				}
				round.Go(func() error {
					s.Report(p.ID, s.lookAgain(ctx, p))
					return nil
				})
			}
		}
		_ = round.Wait()
		var next <-chan time.Time // never, if there is no interval
		if interval > 0 {
			next = time.After(interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
	}
}

// lookInBackground reads a collected source beside all others, which do not wait for it. Sources that are due at once,
// as after a restart, do not all begin at once.
func (s *Reader) lookInBackground(ctx context.Context, p api.Project) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking[p.ID] || s.ctx.Err() != nil {
		return
	}
	s.looking[p.ID] = true
	s.work.Go("search/sources.lookInBackground", func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.looking, p.ID)
		}()
		spread := min(p.Interval()/20, maxSpread)
		if s.Index.Commit(p.ID) != "" && spread > 0 && backoff.Sleep(ctx, rand.N(spread)) != nil {
			return
		}
		s.Report(p.ID, s.lookAgain(ctx, p))
	})
}

// maxSpread is within how much time collected sources begin that are due at once.
const maxSpread = 5 * time.Minute

// lookAgain reads a source in its turn. One that is not due lacks only its index.
func (s *Reader) lookAgain(ctx context.Context, p api.Project) error {
	end, err := s.turn(ctx, p.ID)
	if err != nil {
		return err
	}
	defer end()
	if _, err := s.take(ctx, p); err != nil {
		return err
	}
	fresh, before := s.due(p), s.Index.Commit(p.ID)
	_, _, err = s.read(ctx, p, fresh, func(string, int, int) {})
	if err == nil && fresh && before != "" && s.Index.Commit(p.ID) != before {
		s.moved(ctx, p.ID)
	}
	return err
}

// Report logs why a project's documentation could not be read; it is tried again later.
func (s *Reader) Report(id api.ProjectID, err error) {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, api.ErrNotFound) {
		s.Log.Error("could not update the documentation", "project", id, "error", err)
	}
}

// Forget lets a project be read again, whatever came of it before.
func (s *Reader) Forget(project api.ProjectID) { s.Guard.Forget(project) }

// LeftOut lists why projects are left out.
func (s *Reader) LeftOut() []string { return s.Guard.LeftOut() }
