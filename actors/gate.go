package actors

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"docent/api"
)

// A gate lets a bounded number through at once. Those who wait go project by project in turn, and within a project in
// the order in which their work was given: one project's hundred jobs do not hold up another's one, and what was given
// long ago does not wait behind what came later, however often a restart made all of them queue again.
type gate struct {
	mu      sync.Mutex
	free    int
	queues  map[api.ProjectID][]waiter
	order   []api.ProjectID // of projects that wait; the first is next
	inside  int
	waiting int
}

// A waiter waits for its turn.
type waiter struct {
	turn  chan struct{}
	since time.Time // its work was given
}

func newGate(n int) *gate {
	return &gate{free: n, queues: make(map[api.ProjectID][]waiter)}
}

// Acquire waits for its turn, as one whose work was given at a time; zero stands for now. Release gives it back, once.
func (g *gate) Acquire(ctx context.Context, project api.ProjectID, given time.Time) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	if g.free > 0 && g.waiting == 0 {
		g.free--
		g.inside++
		g.mu.Unlock()
		return sync.OnceFunc(g.release), nil
	}
	turn := make(chan struct{})
	g.queue(project, waiter{turn, given})
	g.mu.Unlock()
	select {
	case <-turn:
		if err := ctx.Err(); err != nil { // both at once, as when the service stops
			g.release()
			return nil, err
		}
		return sync.OnceFunc(g.release), nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.queues[project], func(w waiter) bool { return w.turn == turn })
	if i < 0 { // it was let through meanwhile
		g.passOn()
		return nil, ctx.Err()
	}
	g.waiting--
	if g.queues[project] = slices.Delete(g.queues[project], i, i+1); len(g.queues[project]) == 0 {
		delete(g.queues, project)
		g.order = slices.DeleteFunc(g.order, func(p api.ProjectID) bool { return p == project })
	}
	return nil, ctx.Err()
}

// queue lets one wait in the order of its project. Nothing was given later than now, whatever the clock said then. The
// caller holds the lock.
func (g *gate) queue(project api.ProjectID, w waiter) {
	now := time.Now()
	if w.since.IsZero() || w.since.After(now) {
		w.since = now
	}
	queue := g.queues[project]
	if len(queue) == 0 {
		g.order = append(g.order, project)
	}
	for i := len(queue) - 1; i >= 0 && queue[i].since.After(now); i-- {
		queue[i].since = now
	}
	i := sort.Search(len(queue), func(i int) bool { return queue[i].since.After(w.since) })
	g.queues[project] = slices.Insert(queue, i, w)
	g.waiting++
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passOn()
}

// passOn gives one's place to the next, or keeps it free. The caller holds the lock.
func (g *gate) passOn() {
	if len(g.order) == 0 {
		g.free++
		g.inside--
		return
	}
	project := g.order[0]
	g.order = g.order[1:]
	queue := g.queues[project]
	close(queue[0].turn)
	g.waiting--
	if len(queue) == 1 {
		delete(g.queues, project)
		return
	}
	g.queues[project] = queue[1:]
	g.order = append(g.order, project)
}

// oldest is how long ago the work was given that waits and was given first: 0 if nobody waits.
func (g *gate) oldest() (waited time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, queue := range g.queues {
		waited = max(waited, time.Since(queue[0].since))
	}
	return waited
}

// load tells how many are inside and how many wait.
func (g *gate) load() (inside, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside, g.waiting
}
