// Package background starts goroutines. It is the only package of Docent with a go statement: nobody but a goroutine
// itself can recover what it panics with, so a bare one that meets hostile content ends the server and all its streams.
package background

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// A PanicError is a panic that was recovered, so that it ends one piece of work and not the process. It is for the log.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Guard runs f and returns a panic in it as a *PanicError.
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			panics.Add(1)
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

var panics atomic.Uint64

// Panics returns how many panics this package has recovered since the process started.
func Panics() uint64 { return panics.Load() }

// Go runs f in a goroutine of its own. A panic in f is logged with the name of the work and ends f alone: what others
// wait for, f releases in a deferred call.
func Go(name string, f func()) {
	go guarded(name, f)
}

// Essential is Go for work that the process cannot be right without, such as a loop that writes the journal. A panic in
// f is logged with the name of the work and ends the process, which recovers when it starts again.
func Essential(name string, f func()) {
	go func() {
		defer func() {
			if v := recover(); v != nil {
				slog.Error("essential work panicked", "work", name, "error", fmt.Sprint(v))
				panic(v)
			}
		}()
		f()
	}()
}

// guarded runs f and logs a panic in it.
func guarded(name string, f func()) {
	if err := Guard(func() error { f(); return nil }); err != nil {
		slog.Error("background work panicked", "work", name, "error", err)
	}
}

// Work is a sync.WaitGroup whose goroutines are started as by Go.
type Work struct{ sync.WaitGroup }

// Go runs f in a goroutine that Wait waits for. A panic in f is logged with the name of the work.
func (w *Work) Go(name string, f func()) {
	w.Add(1)
	go func() {
		defer w.Done()
		guarded(name, f)
	}()
}

// Essential is Go for work that the process cannot be right without, as the function Essential says.
func (w *Work) Essential(name string, f func()) {
	w.Add(1)
	Essential(name, func() {
		defer w.Done()
		f()
	})
}

// A Group is an errgroup.Group in which a panic is the error of the one function, a *PanicError. The zero value is valid.
type Group struct {
	group  errgroup.Group
	cancel context.CancelCauseFunc // nil for the zero value
}

// WithContext returns a group and a context that ends with the group's first error, or when Wait returns.
func WithContext(ctx context.Context) (*Group, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Group{cancel: cancel}, ctx
}

// SetLimit bounds how many functions run at once. It is called before Go.
func (g *Group) SetLimit(n int) { g.group.SetLimit(n) }

// Go runs f in a goroutine of the group, once there is a place for it.
func (g *Group) Go(f func() error) {
	g.group.Go(func() error {
		err := Guard(f)
		if err != nil && g.cancel != nil {
			g.cancel(err)
		}
		return err
	})
}

// Wait waits for all functions of the group and returns their first error.
func (g *Group) Wait() error {
	err := g.group.Wait()
	if g.cancel != nil {
		g.cancel(err)
	}
	return err
}
