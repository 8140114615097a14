package database

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/internal/background"
)

// stopped is a clock that stands still.
func stopped() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }

func TestLookupsStayBounded(t *testing.T) {
	const maxFound, maxMissing = 512, 64
	loads := 0
	l := newLookup(Options{Now: stopped, Stale: time.Second}, strconv.Itoa,
		func(_ context.Context, n int) (int, error) {
			loads++
			if n < 0 {
				return 0, api.ErrNotFound
			}
			return n, nil
		})
	l.maxFound, l.maxMissing = maxFound, maxMissing
	l.Forget()
	for n := range maxFound + maxFound/2 {
		l.Get(t.Context(), n)
		l.Get(t.Context(), -1-n)
	}
	a := l.current.Load()
	if a.found.Len() != maxFound || a.missing.Len() != maxMissing {
		t.Errorf("%d found and %d missing are remembered", a.found.Len(), a.missing.Len())
	}
	if want := 2 * (maxFound + maxFound/2); loads != want {
		t.Errorf("%d loads, want %d", loads, want)
	}
	missed := l.misses.Load()
	for _, n := range a.found.Keys() {
		l.Get(t.Context(), n)
	}
	if hits := l.hits.Load(); missed != uint64(loads) || hits != maxFound || l.misses.Load() != missed {
		t.Errorf("counted %d misses and %d hits, of %d loads", l.misses.Load(), hits, loads)
	}
}

// A query that takes too long says nothing of what it looks for: who asked may ask again.
func TestALookupThatTakesTooLongMayBeAskedAgain(t *testing.T) {
	l := newLookup(Options{Now: stopped, Stale: time.Second}, strings.Clone,
		func(context.Context, string) (int, error) { return 0, context.DeadlineExceeded })
	if _, err := l.Get(t.Context(), "x"); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a caller is told %v", err)
	}
}

func TestLookupThatBeganBeforeAChangeIsNotRemembered(t *testing.T) {
	loads := make(chan chan string)
	l := newLookup(Options{Now: stopped, Stale: time.Hour}, strings.Clone,
		func(_ context.Context, key string) (string, error) {
			answer := make(chan string)
			loads <- answer
			return <-answer, nil
		})
	ask := func() chan string {
		got := make(chan string, 1)
		go func() {
			v, _ := l.Get(t.Context(), "key")
			got <- v
		}()
		return got
	}
	before := ask()
	old := <-loads
	l.Forget() // a change is acknowledged here
	after := ask()
	fresh := <-loads // the second caller does not share the first one's query
	fresh <- "new"
	if got := <-after; got != "new" {
		t.Errorf("a look-up after the change returns %q", got)
	}
	old <- "old"
	<-before
	if got := <-ask(); got != "new" {
		t.Errorf("what was read before the change is remembered: %q", got)
	}
}

// A key that is dropped is asked for again, even by who asks while an older query for it is on its way; others are remembered.
func TestADroppedKeyIsAskedForAgain(t *testing.T) {
	loads := make(chan chan string, 1)
	l := newLookup(Options{Now: stopped, Stale: time.Hour}, strings.Clone,
		func(_ context.Context, key string) (string, error) {
			if key == "other" {
				return "one", nil
			}
			answer := make(chan string)
			loads <- answer
			return <-answer, nil
		})
	ask := func() chan string {
		got := make(chan string, 1)
		go func() {
			v, _ := l.Get(t.Context(), "key")
			got <- v
		}()
		return got
	}
	l.Get(t.Context(), "other")
	before := ask()
	old := <-loads
	l.Drop("key")
	after := ask()
	fresh := <-loads
	fresh <- "new"
	if got := <-after; got != "new" {
		t.Errorf("a look-up after the change returns %q", got)
	}
	old <- "old"
	<-before
	if got := <-ask(); got != "new" {
		t.Errorf("what was read before the change is remembered: %q", got)
	}
	missed := l.misses.Load()
	if l.Get(t.Context(), "other"); l.misses.Load() != missed {
		t.Error("another key is asked for again")
	}
	l.Drop("key")
	again := ask()
	next := <-loads
	next <- "newer"
	if got := <-again; got != "newer" {
		t.Errorf("a remembered key that is dropped is %q", got)
	}
}

func TestCallersAtOnceShareOneQuery(t *testing.T) {
	const keys, callers = 2000, 8
	var loads atomic.Int64
	l := newLookup(Options{Now: stopped, Stale: time.Hour}, strconv.Itoa,
		func(_ context.Context, n int) (int, error) {
			loads.Add(1)
			if n%2 == 1 {
				return 0, api.ErrNotFound
			}
			return n, nil
		})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := range keys {
				if v, err := l.Get(t.Context(), n); (n%2 == 1) != errors.Is(err, api.ErrNotFound) || err == nil && v != n {
					t.Errorf("%d: got %d, error %v", n, v, err)
				}
			}
		})
	}
	wg.Wait()
	if got := loads.Load(); got != keys {
		t.Errorf("%d queries for %d keys", got, keys)
	}
	if got := l.hits.Load() + l.misses.Load(); got != keys*callers {
		t.Errorf("%d look-ups are counted, of %d", got, keys*callers)
	}
}

func TestLookupOutlivesItsFirstCaller(t *testing.T) {
	started, proceed := make(chan struct{}), make(chan struct{})
	l := newLookup(Options{Now: stopped, Stale: time.Hour}, strings.Clone,
		func(ctx context.Context, key string) (string, error) {
			close(started)
			<-proceed
			return "value", ctx.Err()
		})
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := l.Get(leaving, "key")
		left <- err
	}()
	<-started
	second := make(chan error, 1)
	go func() {
		_, err := l.Get(t.Context(), "key")
		second <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left got %v", err)
	}
	close(proceed)
	if err := <-second; err != nil {
		t.Errorf("the other caller got %v", err)
	}
}

func TestALookUpThatPanicsIsAnErrorForThoseWhoWaitForIt(t *testing.T) {
	l := newLookup(Options{Now: time.Now, Stale: time.Minute}, strings.Clone,
		func(context.Context, string) (int, error) { panic("an odd row") })
	for range 2 {
		var panicked *background.PanicError
		if _, err := l.Get(t.Context(), "key"); !errors.As(err, &panicked) {
			t.Errorf("the look-up says %v", err)
		}
	}
}
