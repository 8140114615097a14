package catalog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
)

// What a look-up remembers is bounded: anyone can ask for names and keys that do not exist.
const (
	mostFound   = 1 << 16
	mostMissing = 1 << 12
	loadTime    = 10 * time.Second
)

// A lookup answers from memory for a short time. Callers that miss at the same time share one query, and a query that
// began before a change is neither remembered nor shared with those who ask after it.
type lookup[K comparable, V any] struct {
	load  func(context.Context, K) (V, error) // api.ErrNotFound where there is none
	stale time.Duration
	now   func() time.Time

	hits, misses atomic.Uint64

	mu      sync.RWMutex
	found   map[K]found[V]
	missing map[K]time.Time // until when
	flights map[K]*flight[V]
}

type found[V any] struct {
	value V
	until time.Time
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

func newLookup[K comparable, V any](o Options, load func(context.Context, K) (V, error)) *lookup[K, V] {
	l := &lookup[K, V]{load: load, stale: o.Stale, now: o.Now}
	l.forget()
	return l
}

// forget makes every later look-up ask the database.
func (l *lookup[K, V]) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found, l.missing, l.flights = make(map[K]found[V]), make(map[K]time.Time), make(map[K]*flight[V])
}

func (l *lookup[K, V]) get(ctx context.Context, key K) (V, error) {
	now := l.now()
	l.mu.RLock()
	value, known, err := l.remembered(key, now)
	l.mu.RUnlock()
	if known {
		l.hits.Add(1)
		return value, err
	}

	l.mu.Lock()
	// Once more: a query of another may have ended between the two locks.
	if value, known, err = l.remembered(key, now); known {
		l.mu.Unlock()
		l.hits.Add(1)
		return value, err
	}
	l.misses.Add(1)
	f, running := l.flights[key]
	if !running {
		f = &flight[V]{done: make(chan struct{})}
		l.flights[key] = f
		// Not on this caller's context: others may wait for the same answer when it goes away.
		go l.fly(context.WithoutCancel(ctx), key, f)
	}
	l.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// remembered gives what is known of a key now. The lock is the caller's to hold.
func (l *lookup[K, V]) remembered(key K, now time.Time) (value V, known bool, err error) {
	if hit, ok := l.found[key]; ok && now.Before(hit.until) {
		return hit.value, true, nil
	}
	if until, gone := l.missing[key]; gone && now.Before(until) {
		return value, true, api.ErrNotFound
	}
	return value, false, nil
}

func (l *lookup[K, V]) fly(ctx context.Context, key K, f *flight[V]) {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	defer close(f.done)
	f.err = api.Guard(func() (err error) {
		f.value, err = l.load(ctx, key)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flights[key] != f {
		return // something was changed meanwhile
	}
	delete(l.flights, key)
	delete(l.found, key)
	delete(l.missing, key)
	until := l.now().Add(l.stale)
	switch {
	case f.err == nil:
		dropOne(l.found, mostFound)
		l.found[key] = found[V]{f.value, until}
	case errors.Is(f.err, api.ErrNotFound):
		dropOne(l.missing, mostMissing)
		l.missing[key] = until
	}
}

// dropOne makes room for one more entry where there are as many as may be.
func dropOne[K comparable, V any](m map[K]V, most int) {
	if len(m) < most {
		return
	}
	for k := range m { // any: the order of a map is random
		delete(m, k)
		return
	}
}

var descLookups = prometheus.NewDesc("docent_catalog_lookups_total",
	"Look-ups of API keys, projects and domains, by what became of them: hit (answered from memory) or miss (asked of the database, or of who is asking it).",
	[]string{"of", "result"}, nil)

// Describe implements prometheus.Collector.
func (c *Catalog) Describe(ch chan<- *prometheus.Desc) { ch <- descLookups }

// Collect implements prometheus.Collector.
func (c *Catalog) Collect(ch chan<- prometheus.Metric) {
	count := func(of string, hits, misses *atomic.Uint64) {
		ch <- prometheus.MustNewConstMetric(descLookups, prometheus.CounterValue, float64(hits.Load()), of, "hit")
		ch <- prometheus.MustNewConstMetric(descLookups, prometheus.CounterValue, float64(misses.Load()), of, "miss")
	}
	count("keys", &c.keys.hits, &c.keys.misses)
	count("projects", &c.projects.hits, &c.projects.misses)
	count("domains", &c.domains.hits, &c.domains.misses)
}
