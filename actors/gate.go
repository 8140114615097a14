package actors

import (
	"context"
	"slices"
	"sync"

	"docent/api"
)

// A gate lets a bounded number through at once. Those who wait go project by project in turn, and within a project in
// the order in which they came: one project's hundred jobs do not hold up another's one.
type gate struct {
	mu      sync.Mutex
	free    int
	queues  map[api.ProjectID][]chan struct{}
	order   []api.ProjectID // of projects that wait; the first is next
	inside  int
	waiting int
}

func newGate(n int) *gate {
	return &gate{free: n, queues: make(map[api.ProjectID][]chan struct{})}
}

// Acquire waits for its turn. Release gives it back, once.
func (g *gate) Acquire(ctx context.Context, project api.ProjectID) (release func(), err error) {
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
	if len(g.queues[project]) == 0 {
		g.order = append(g.order, project)
	}
	g.queues[project] = append(g.queues[project], turn)
	g.waiting++
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
	i := slices.Index(g.queues[project], turn)
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
	close(queue[0])
	g.waiting--
	if len(queue) == 1 {
		delete(g.queues, project)
		return
	}
	g.queues[project] = queue[1:]
	g.order = append(g.order, project)
}

// load tells how many are inside and how many wait.
func (g *gate) load() (inside, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside, g.waiting
}
