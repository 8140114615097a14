// Package task describes work that comes due by itself: no request asks for it, and nobody waits for its answer.
//
// A task keeps nothing of its own on disk. What is due stands in the table that it works on, and Handle reads it from
// there: a process that dies loses a timer, and the next one finds the same rows. So work is done at least once, and
// what it does outside bears a key by which it is done once. Package actors runs tasks, each as an actor.
package task

import (
	"context"
	"time"
)

// Done is what a Handle returns that has nothing more to do. The next Start of the name starts over.
const Done time.Duration = -1

// A Task is work under a name. Of one name, one Handle runs at a time.
type Task struct {
	// Name is the kind of the task, and of tasks for many targets, a slash and the target. Metrics bear the kind.
	Name string

	// Place names what runs on one of several nodes at a time: the task runs on the node that runs it. Before another
	// node begins, the context of Handle has ended and Handle has returned. An empty Place is every node.
	Place string

	// Handle does what is due, and returns after how long it is to be called again: at once for 0, never for Done. An
	// error counts as an attempt, and the next one, a number higher, comes after the task's pause or after again,
	// whichever is longer. A panic is an error.
	Handle func(ctx context.Context, attempt int) (again time.Duration, err error)

	// Pause is how long after so many failures in a row the next attempt comes; default 200 ms, doubling to 10 s.
	Pause func(failures int) time.Duration
}

// A Starter starts tasks.
type Starter interface {
	// Start has a task handled now, and returns before it is. One that runs under the name already is handled once more
	// after that, by the Handle that it has; one that waits after a failure goes on waiting.
	Start(t Task)
}

// Slots bound how many of those who take one are at work at once.
type Slots chan struct{}

// Take waits for a slot, which give returns.
func (s Slots) Take(ctx context.Context) (give func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
