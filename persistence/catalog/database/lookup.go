package database

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"docent/api"
	"docent/internal/background"
)

// What a lookup remembers is bounded: anyone can ask for names and keys that do not exist. These do not take the room
// of the others.
const (
	maxFound   = 1 << 16
	maxMissing = 1 << 12
	loadTime   = 10 * time.Second
)

// A Lookup answers from memory for a short time. Callers that miss at the same time share one query, and a query that
// began before a change is neither remembered nor shared with those who ask after it.
type Lookup[K comparable, V any] struct {
	load  func(context.Context, K) (V, error) // api.ErrNotFound if there is none
	name  func(K) string                      // another for each key
	stale time.Duration
	now   func() time.Time

	maxFound, maxMissing int

	hits, misses atomic.Uint64
	current      atomic.Pointer[answers[K, V]]
}

// answers are those to questions that were asked between two changes.
type answers[K comparable, V any] struct {
	found   *lru.Cache[K, found[V]]
	missing *lru.Cache[K, time.Time] // until when
	loads   singleflight.Group

	mu      sync.Mutex // orders what is remembered and what is dropped
	dropped int        // how often keys were dropped
}

type found[V any] struct {
	value V
	until time.Time
}

func newLookup[K comparable, V any](o Options, name func(K) string,
	load func(context.Context, K) (V, error)) *Lookup[K, V] {
	l := &Lookup[K, V]{load: load, name: name, stale: o.Stale, now: o.Now, maxFound: maxFound, maxMissing: maxMissing}
	l.Forget()
	return l
}

// Forget makes every later lookup ask the database.
func (l *Lookup[K, V]) Forget() {
	found, err := lru.New[K, found[V]](l.maxFound)
	missing, also := lru.New[K, time.Time](l.maxMissing)
	if err := errors.Join(err, also); err != nil {
		panic(err) // a bound that is not positive
	}
	l.current.Store(&answers[K, V]{found: found, missing: missing})
}

// Drop makes every later lookup of these keys ask the database, and leaves the others remembered.
func (l *Lookup[K, V]) Drop(keys ...K) {
	a := l.current.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropped++ // what is being loaded now may be of before
	for _, key := range keys {
		a.loads.Forget(l.name(key))
		a.found.Remove(key)
		a.missing.Remove(key)
	}
}

// Get looks a key up, and fails with api.ErrNotFound if there is nothing.
func (l *Lookup[K, V]) Get(ctx context.Context, key K) (value V, err error) {
	a := l.current.Load()
	if value, known, err := a.remembered(key, l.now()); known {
		l.hits.Add(1)
		return value, err
	}
	l.misses.Add(1)
	answer := a.loads.DoChan(l.name(key), func() (any, error) {
		if value, known, err := a.remembered(key, l.now()); known { // another's query has just ended
			return value, err
		}
		a.mu.Lock()
		dropped := a.dropped
		a.mu.Unlock()
		// Not on this caller's context: others may wait for the same answer when it goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
		defer cancel()
		var value V
		err := background.Guard(func() (err error) {
			value, err = l.load(ctx, key)
			return err
		})
		if errors.Is(err, context.DeadlineExceeded) { // the time is the lookup's own: the caller may ask again
			err = fmt.Errorf("%w: %w", api.ErrUnavailable, err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		switch until := l.now().Add(l.stale); {
		case a.dropped != dropped:
		case err == nil:
			a.found.Add(key, found[V]{value, until})
		case errors.Is(err, api.ErrNotFound):
			a.missing.Add(key, until)
		}
		return value, err
	})
	select {
	case got := <-answer:
		value, _ = got.Val.(V)
		return value, got.Err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// remembered returns what is known of a key now.
func (a *answers[K, V]) remembered(key K, now time.Time) (value V, known bool, err error) {
	if hit, ok := a.found.Get(key); ok && now.Before(hit.until) {
		return hit.value, true, nil
	}
	if until, gone := a.missing.Get(key); gone && now.Before(until) {
		return value, true, api.ErrNotFound
	}
	return value, false, nil
}

var descLookups = prometheus.NewDesc("docent_catalog_lookups_total",
	"Look-ups of API keys, projects, domains, people and sessions, by what became of them: hit (answered from memory) or miss (asked of the database, or of who is asking it).",
	[]string{"of", "result"}, nil)

// registered is a lookup as the database knows it.
type registered struct {
	group, of    string
	forget       func()
	hits, misses *atomic.Uint64
}

// NewLookup makes a lookup that forgets with its group (Forget), and is counted under the name that it is of.
func NewLookup[K comparable, V any](db *DB, group, of string, name func(K) string,
	load func(context.Context, K) (V, error)) *Lookup[K, V] {
	l := newLookup(db.options, name, load)
	db.lookups = append(db.lookups, registered{group, of, l.Forget, &l.hits, &l.misses})
	return l
}

// Describe implements prometheus.Collector.
func (db *DB) Describe(ch chan<- *prometheus.Desc) { ch <- descLookups }

// Collect implements prometheus.Collector.
func (db *DB) Collect(ch chan<- prometheus.Metric) {
	for _, l := range db.lookups {
		ch <- prometheus.MustNewConstMetric(descLookups, prometheus.CounterValue, float64(l.hits.Load()), l.of, "hit")
		ch <- prometheus.MustNewConstMetric(descLookups, prometheus.CounterValue, float64(l.misses.Load()), l.of, "miss")
	}
}
