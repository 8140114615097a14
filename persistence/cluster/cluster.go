// Package cluster implements which of several nodes runs what. Nodes share a PostgreSQL database; which of them is
// there, and which runs the actors of a shard, is in its tables, and an evicted node can no longer write.
//
// A name such as "job/<id>", "thread/<id>" or "task/webhooks" belongs to a shard, and a shard to one node at a time. A
// server that is alone is Single, which runs everything.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"
)

// Shards is into how many parts all names are divided. It is stored with them and does not change.
const Shards = 256

// Shard is the part that a name belongs to. Every version and every node gives the same.
func Shard(name string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	sum := h.Sum64()
	return int((sum ^ sum>>32) % Shards)
}

// A Node is one process of the cluster, from its start to its end. One that starts again is another node.
type Node struct {
	ID      string    // of this life of the process
	Name    string    // that the operator knows it by; node_name
	Address string    // of its internal listener, HOST:PORT
	Version string    // of the program
	Started time.Time // by the clock of the database
	Leaving bool      // it takes no more shards
}

// An ElsewhereError says that another node runs what a name stands for. The request belongs there, as a whole.
type ElsewhereError struct {
	Name string
	Node Node
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("%s is run by node %s", e.Name, e.Node.Name)
}

// ErrLeft says that the client left while its request waited for the node that runs its actor. Unlike with an error of
// the context, it is sure that nothing of it was begun.
var ErrLeft = errors.New("the client left before the request was begun")

// A Slot holds what was found out while a request was handled: that it belongs to another node.
type Slot struct {
	elsewhere  atomic.Pointer[ElsewhereError]
	repeatable atomic.Bool
	left       <-chan struct{} // closed when nobody waits for the request any more
}

type slotKey struct{}

// WithSlot returns a context with a slot in which the handling of a request notes that it belongs elsewhere.
func WithSlot(ctx context.Context) (context.Context, *Slot) {
	s := &Slot{left: ctx.Done()}
	return context.WithValue(ctx, slotKey{}, s), s
}

// Elsewhere is what was noted first, or nil.
func (s *Slot) Elsewhere() *ElsewhereError { return s.elsewhere.Load() }

// Repeats reports whether the request may be carried out twice with the effect of once.
func (s *Slot) Repeats() bool { return s.repeatable.Load() }

// Repeatable notes in the context's slot, if there is one, that the request may be carried out twice with the effect of
// once: its method does not say so, but what handles it knows.
func Repeatable(ctx context.Context) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		s.repeatable.Store(true)
	}
}

// left is closed when nobody waits any more for the request that the context is of, though the context may go on.
func left(ctx context.Context) <-chan struct{} {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		return s.left
	}
	return nil
}

type onceKey struct{}

// WithOnce gives the handling of a request the name of what it is, however often and by whichever node it is handled.
func WithOnce(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, onceKey{}, name)
}

// Once is that name, which no two requests share; empty if no other node has forwarded the request.
func Once(ctx context.Context) string {
	name, _ := ctx.Value(onceKey{}).(string)
	return name
}

// Note notes in the context's slot, if there is one, that the request belongs to another node. The first note counts.
func Note(ctx context.Context, e *ElsewhereError) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		s.elsewhere.CompareAndSwap(nil, e)
	}
}
