package search

import (
	"context"
	"errors"
	"sync"
)

// flights are the pieces of work under way that several callers may wait for. It is not singleflight's: a caller that
// waits may leave, and the work runs in the goroutine that its first caller says.
type flights[K comparable, V any] struct {
	mu    sync.Mutex
	under map[K]*flight[V]
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// errBrokenOff answers those who waited for a search that panicked.
var errBrokenOff = errors.New("the search broke off")

// join returns the flight under a key. The first to join must have it land.
func (l *flights[K, V]) join(key K) (f *flight[V], first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f = l.under[key]; f != nil {
		return f, false
	}
	if l.under == nil {
		l.under = make(map[K]*flight[V])
	}
	f = &flight[V]{done: make(chan struct{}), err: errBrokenOff}
	l.under[key] = f
	return f, true
}

// land does the work of a flight and ends it for all who wait.
func (l *flights[K, V]) land(key K, f *flight[V], work func() (V, error)) {
	defer func() {
		l.mu.Lock()
		delete(l.under, key)
		l.mu.Unlock()
		close(f.done)
	}()
	f.value, f.err = work()
}

func (f *flight[V]) wait(ctx context.Context) (value V, err error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
