package cache

import (
	"context"
	"errors"
	"testing"
)

// What was not used for longest goes first, and what would take half of the cache is not kept.
func TestACacheStaysWithinItsBytes(t *testing.T) {
	c := Cache[string, string]{Most: 10, Size: func(_, v string) int64 { return int64(len(v)) }}
	for _, key := range []string{"a", "b", "c"} {
		c.Put(key, "1234")
		c.Get("a")
	}
	if _, ok := c.Get("b"); ok || c.Holds() != 8 {
		t.Errorf("%d bytes are held, and b: %v", c.Holds(), ok)
	}
	if c.Put("d", "123456"); c.Holds() != 8 {
		t.Errorf("%d bytes are held", c.Holds())
	}
	c.Drop("a")
	if _, ok := c.Get("a"); ok || c.Holds() != 4 {
		t.Errorf("%d bytes are held, and a: %v", c.Holds(), ok)
	}
}

// A caller that waits may leave, and is told if the work breaks off; the next one begins it again.
func TestWorkIsShared(t *testing.T) {
	var all Flights[string, int]
	f, first := all.Join("a")
	if again, second := all.Join("a"); !first || second || again != f {
		t.Fatal("two do the same work")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left was told %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		all.Land("a", f, func() (int, error) { panic("broken") })
	}()
	if _, err := f.Wait(t.Context()); !errors.Is(err, ErrBrokenOff) {
		t.Errorf("the caller that waited was told %v", err)
	}
	f, first = all.Join("a")
	all.Land("a", f, func() (int, error) { return 7, nil })
	if n, err := f.Wait(t.Context()); !first || n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
