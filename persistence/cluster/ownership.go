package cluster

import (
	"context"

	"docent/internal/health"
)

// Ownership says which of the nodes runs what has a name. *Members is that of one of several nodes, Single that of a server
// that is alone. Once Owns is false for a name it stays so until what has the name has ended here and another node has run
// it.
type Ownership interface {
	// Owns reports whether this node runs what has the name, now. It never waits.
	Owns(name string) bool
	// Check returns nil if this node runs what has the name, and an *ElsewhereError if another one does; that is noted in
	// the context's Slot. If nobody does, it waits a while for one that is to come, and then returns an *api.BusyError. It
	// waits for nobody who has left: the request of the context's Slot then ends with ErrLeft.
	Check(ctx context.Context, name string) error
	// Hold returns a context under which what has the name runs here, and release, which says once that it has ended. The
	// context ends when another node is to run it, and already when this node cannot know that none does; the other one
	// begins after release. The context is nil if this node may not run what has the name. A node that was stopped may
	// still run it when it wakes: it can write nothing then.
	Hold(ctx context.Context, name string) (held context.Context, release func())
	// Changed is closed when the other methods may say something else than before.
	Changed() <-chan struct{}
	// Several reports whether other nodes go on with what ends here.
	Several() bool
}

// RunExclusive runs f on the node that runs the name, as often as this node comes to run it, until ctx ends or f returns
// by itself. The context of f is that of Hold.
func RunExclusive(ctx context.Context, nodes Ownership, name string, f func(context.Context)) {
	for ctx.Err() == nil {
		changed := nodes.Changed()
		if run, release := nodes.Hold(ctx, name); run != nil {
			f(run)
			byItself := run.Err() == nil
			release()
			if byItself {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// Single is the Ownership of a server that is alone: it runs everything.
type Single struct{}

func (Single) Owns(string) bool                    { return true }
func (Single) Check(context.Context, string) error { return nil }
func (Single) Changed() <-chan struct{}            { return nil }
func (Single) Several() bool                       { return false }

func (Single) Hold(ctx context.Context, _ string) (context.Context, func()) {
	return context.WithCancel(ctx)
}

// What Members have beside Ownership: nobody evicts a server that is alone, and there is no other node to see.

func (Single) Handle(Handler)           {}
func (Single) Evicted() <-chan struct{} { return nil }
func (Single) Serving() error           { return nil }
func (Single) Status() *health.Cluster  { return nil }
