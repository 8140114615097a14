package catalogtest

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"time"

	"docent/persistence/catalog"
)

// A Place is a database of its own for one test, which may be opened several times.
type Place struct {
	T   *testing.T
	DSN string
}

// EachPlace runs a test on SQLite, and on PostgreSQL if there is a server.
func EachPlace(t *testing.T, test func(*testing.T, Place)) {
	Each(t, func(t *testing.T, dsn string) { test(t, Place{T: t, DSN: dsn}) })
}

// Open opens the catalog of the place until the test ends.
func (p Place) Open(o catalog.Options) *catalog.Catalog {
	p.T.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := catalog.Open(p.T.Context(), p.DSN, o)
	if err != nil {
		p.T.Fatal(err)
	}
	look := watchPlans(p, c)
	p.T.Cleanup(func() {
		look()
		if err := c.Close(); err != nil {
			p.T.Error(err)
		}
	})
	return c
}

// A Clock stands still until it is moved.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock makes a clock.
func NewClock() *Clock {
	return &Clock{at: time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)}
}

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Add moves the clock on.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Must returns a value, or ends the test if there is an error.
func Must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Fill sets every field of a struct to something that is not its zero value, so that a field that is not stored shows.
func Fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, *n*int(time.Millisecond), time.UTC)))
			return
		}
		for i := range v.NumField() {
			Fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		Fill(v.Index(0), n)
		Fill(v.Index(1), n)
	case reflect.String:
		v.SetString(fmt.Sprintf("väl'ue \"%d\" \\ ? ?0 \x00 {{x}}", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	default:
		panic("fill does not know " + v.Type().String())
	}
}

// Soon waits until something holds.
func Soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// Second is the error of a call that also has a value.
func Second[T any](_ T, err error) error { return err }
