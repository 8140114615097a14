package sources

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/backoff"
	"docent/persistence/catalog/nodes"
)

// Nodes are the servers that answer from the same sources. Each reads and indexes them by itself; what only one of them
// has, an upload or what was collected, it gives to all.
//
// A source has a number, which rises when all are to read it again. A node says up to which number it has read, and an
// update has ended when every node has.
type Nodes interface {
	// Take brings a collected source's folder to what the nodes were given last, and says whether it has changed.
	Take(ctx context.Context, p api.Project, dir string) (changed bool, err error)
	// Collect runs f while no other node collects the source, and gives all nodes what dir holds then, whether f failed
	// or not. What was uploaded is theirs already.
	Collect(ctx context.Context, p api.Project, dir string, f func(context.Context) error) error
	// Forget removes what nodes were given of a source.
	Forget(ctx context.Context, id api.ProjectID) error

	// Heads are the numbers of all sources.
	Heads(ctx context.Context) (map[api.ProjectID]nodes.Head, error)
	// Follow calls look when a source may have changed and when read receives, until ctx ends. Look reports whether it has
	// seen to all of it; else it is called again.
	Follow(ctx context.Context, read <-chan struct{}, look func(ctx context.Context) (whole bool))
	// Turn makes all nodes read a source again.
	Turn(ctx context.Context, id api.ProjectID, commit string) (number int64, err error)
	// Serves says that this node has read a source up to a number; Behind names the other nodes that have not.
	Serves(ctx context.Context, id api.ProjectID, number int64) error
	Behind(ctx context.Context, id api.ProjectID, number int64) (names []string, err error)
}

// Single is the Nodes of a server that is alone: what it has read all have, and no source has a number.
type Single struct{}

func (Single) Take(context.Context, api.Project, string) (bool, error)             { return false, nil }
func (Single) Forget(context.Context, api.ProjectID) error                         { return nil }
func (Single) Heads(context.Context) (map[api.ProjectID]nodes.Head, error)         { return nil, nil }
func (Single) Follow(context.Context, <-chan struct{}, func(context.Context) bool) {}
func (Single) Turn(context.Context, api.ProjectID, string) (int64, error)          { return 0, nil }
func (Single) Serves(context.Context, api.ProjectID, int64) error                  { return nil }
func (Single) Behind(context.Context, api.ProjectID, int64) (names []string, _ error) {
	return nil, nil
}

func (Single) Collect(ctx context.Context, _ api.Project, _ string, f func(context.Context) error) error {
	return f(ctx)
}

const (
	nodesAgain = 15 * time.Second // after a reading that failed
	nodesWait  = 30 * time.Second // that an update waits for other nodes
	nodesAsk   = 100 * time.Millisecond
	turnTries  = 5 // to tell other nodes that a source was read
)

// following is what a Reader knows of the nodes' numbers.
type following struct {
	mu     sync.Mutex
	known  map[api.ProjectID]int64 // that sources have at least
	served map[api.ProjectID]int64 // that this node has said it serves
	runs   map[api.ProjectID]*catching
	read   chan struct{} // receives when one of them has ended
}

// A catching is a reading of a source that another node has turned.
type catching struct {
	done  chan struct{} // closed when it has ended
	again time.Time     // when it is tried again; zero if it went well
}

func (c *catching) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// number is the one that a source has, as far as it is known here.
func (f *following) number(id api.ProjectID) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[id]
}

func (f *following) learn(id api.ProjectID, number int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[id] = max(f.known[id], number)
}

func (f *following) behind(id api.ProjectID, number int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served[id] < number
}

func (f *following) forget(id api.ProjectID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, id)
	delete(f.served, id)
	delete(f.runs, id)
}

// served tells the other nodes that a source was read here, which had a number before.
func (s *Reader) served(ctx context.Context, id api.ProjectID, number int64) {
	if !s.follows.behind(id, number) {
		return
	}
	if err := s.Nodes.Serves(ctx, id, number); err != nil {
		s.Log.Warn("could not yet tell other nodes what this node serves", "project", id, "error", err)
		return
	}
	s.follows.mu.Lock()
	defer s.follows.mu.Unlock()
	s.follows.served[id] = max(s.follows.served[id], number)
}

// turned makes the other nodes read a source as it is here. It reports whether they could be told.
func (s *Reader) turned(ctx context.Context, id api.ProjectID) (number int64, told bool) {
	pause := backoff.Exponential(nodesAsk, time.Second)
	for tries := 1; ; tries++ {
		var err error
		if number, err = s.Nodes.Turn(ctx, id, s.Index.Commit(id)); err == nil {
			break
		}
		if tries == turnTries || backoff.Sleep(ctx, pause(tries)) != nil {
			s.Log.Warn("could not tell other nodes that a source was read; they notice at their next check", "project", id, "error", err)
			return 0, false
		}
	}
	s.follows.learn(id, number)
	s.served(ctx, id, number)
	return number, true
}

// moved makes the other nodes read a source that was found to have moved, unless one of them was first to see it.
func (s *Reader) moved(ctx context.Context, id api.ProjectID) {
	heads, err := s.Nodes.Heads(ctx)
	if err == nil && heads[id].Commit == s.Index.Commit(id) {
		return
	}
	s.turned(ctx, id)
}

// everywhere returns when every node answers from a source as it is here, or when those that do not have had their time.
func (s *Reader) everywhere(ctx context.Context, id api.ProjectID, progress Progress) {
	number, told := s.turned(ctx, id)
	if !told {
		progress("other nodes could not be told, and read it when they look by themselves", 0, 0)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, nodesWait)
	defer cancel()
	var behind []string
	for said := false; ; said = true {
		now, err := s.Nodes.Behind(ctx, id, number)
		if err == nil {
			if behind = now; len(behind) == 0 {
				return
			}
		}
		if !said && len(behind) > 0 {
			progress("other nodes read it too", 0, 0)
		}
		if backoff.Sleep(ctx, nodesAsk) != nil {
			break
		}
	}
	if len(behind) > 0 {
		progress("not read yet by "+strings.Join(behind, ", ")+", which follows by itself", 0, 0)
		s.Log.Warn("some nodes have not read a source yet; they continue on their own", "project", id, "node", strings.Join(behind, ", "))
	}
}

// catchUp begins to read each source that another node has turned, and drops what was removed. It is whole if nothing has
// to be looked at again.
func (s *Reader) catchUp(ctx context.Context) (whole bool) {
	heads, err := s.Nodes.Heads(ctx)
	var projects []api.Project
	if err == nil {
		whole = s.dropRemoved(ctx)
		projects, err = s.Catalog.Projects(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Debug("whether sources have changed is not known", "error", err)
		}
		return false
	}
	for _, project := range projects {
		for _, p := range project.Parts() {
			head, ok := heads[p.ID]
			if !ok {
				continue
			}
			s.follows.learn(p.ID, head.Number)
			if s.follows.behind(p.ID, head.Number) {
				s.catch(ctx, p)
				whole = false // until it was read
			}
		}
	}
	return whole && s.follows.idle()
}

// idle reports whether nothing is being read that another node has turned.
func (f *following) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.runs {
		if !c.ended() {
			return false
		}
	}
	return true
}

// catch reads a source that another node has turned, in the background.
func (s *Reader) catch(ctx context.Context, p api.Project) *catching {
	s.follows.mu.Lock()
	defer s.follows.mu.Unlock()
	if c := s.follows.runs[p.ID]; c != nil && (!c.ended() || time.Now().Before(c.again)) {
		return c
	}
	c := &catching{done: make(chan struct{})}
	s.follows.runs[p.ID] = c
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		close(c.done)
		return c
	}
	s.work.Go("search/sources.catch", func() {
		defer close(c.done)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		if err := s.readTurned(ctx, p); err != nil {
			c.again = time.Now().Add(nodesAgain)
			s.Report(p.ID, err)
		}
		select {
		case s.follows.read <- struct{}{}:
		default:
		}
	})
	return c
}

// readTurned reads a source. What another node has collected is not collected again.
func (s *Reader) readTurned(ctx context.Context, p api.Project) error {
	end, err := s.turn(ctx, p.ID)
	if err != nil {
		return err
	}
	defer end()
	_, _, err = s.read(ctx, p, !p.Kind.Collected() || p.Kind == api.SourceZip, func(string, int, int) {})
	return err
}

// CatchUp returns when what this node answers from is as new as what others do, or when ctx ends: a node that was away
// does so before it takes requests. What has no index yet is not waited for.
func (s *Reader) CatchUp(ctx context.Context) error {
	heads, err := s.Nodes.Heads(ctx)
	if err != nil {
		return err
	}
	projects, err := s.Catalog.Projects(ctx)
	if err != nil {
		return err
	}
	var waits []*catching
	for _, project := range projects {
		for _, p := range project.Parts() {
			head, ok := heads[p.ID]
			here := s.Index.Commit(p.ID)
			if !ok || here == "" || here == head.Commit {
				continue
			}
			s.follows.learn(p.ID, head.Number)
			waits = append(waits, s.catch(s.ctx, p))
		}
	}
	for _, c := range waits {
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// dropRemoved drops the indexes of sources that another node has removed. It reports whether it could look: what is being
// added here is not in the catalog yet.
func (s *Reader) dropRemoved(ctx context.Context) bool {
	if !s.adding.TryLock() {
		return false
	}
	defer s.adding.Unlock()
	held := s.Index.Projects() // before the catalog is asked: what is indexed from now on is there
	used, err := s.used(ctx)
	if err != nil {
		return false
	}
	for _, id := range held {
		if used[id] {
			continue
		}
		s.Log.Info("removed a source that no longer exists", "project", id)
		if err := s.dropHere(ctx, id); err != nil {
			s.Report(id, err)
		}
	}
	return true
}

// used are the sources that projects have.
func (s *Reader) used(ctx context.Context) (map[api.ProjectID]bool, error) {
	projects, err := s.Catalog.Projects(ctx)
	used := map[api.ProjectID]bool{}
	for _, p := range projects {
		for _, part := range p.Parts() {
			used[part.ID] = true
		}
	}
	return used, err
}

// dropHere forgets all that this node has of a source; the repository of a project's own source stays, as when it is
// removed here.
func (s *Reader) dropHere(ctx context.Context, id api.ProjectID) error {
	end, err := s.turn(ctx, id) // no reading brings back what is removed
	if err != nil {
		return err
	}
	defer end()
	s.Forget(id)
	s.folders().forget(id)
	s.forget(id)
	s.follows.forget(id)
	errs := []error{s.Index.Remove(id), os.RemoveAll(s.CollectedDir(id))}
	if _, label := api.SplitSource(id); label != "" {
		errs = append(errs, s.Repositories.Discard(ctx, id))
	}
	return errors.Join(errs...)
}
