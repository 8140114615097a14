package cache

import (
	"context"
	"errors"
	"sync"
)

// Flights are the pieces of work under way that several callers may wait for. It is not singleflight's: a caller that
// waits may leave, and the work runs in the goroutine that its first caller says.
type Flights[K comparable, V any] struct {
	mu    sync.Mutex
	under map[K]*Flight[V]
}

// A Flight is one piece of work under way.
type Flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// ErrBrokenOff answers those who waited for work that panicked.
var ErrBrokenOff = errors.New("the work broke off")

// Join returns the flight under a key. The first to join must have it land.
func (l *Flights[K, V]) Join(key K) (f *Flight[V], first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f = l.under[key]; f != nil {
		return f, false
	}
	if l.under == nil {
		l.under = make(map[K]*Flight[V])
	}
	f = &Flight[V]{done: make(chan struct{}), err: ErrBrokenOff}
	l.under[key] = f
	return f, true
}

// Land does the work of a flight and ends it for all who wait.
func (l *Flights[K, V]) Land(key K, f *Flight[V], work func() (V, error)) {
	defer func() {
		l.mu.Lock()
		delete(l.under, key)
		l.mu.Unlock()
		close(f.done)
	}()
	f.value, f.err = work()
}

// Wait returns what the work came to.
func (f *Flight[V]) Wait(ctx context.Context) (value V, err error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
