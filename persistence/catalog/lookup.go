package catalog

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"docent/api"
)

// What a look-up remembers is bounded: anyone can ask for names and keys that do not exist. These do not take the room
// of the others.
const (
	mostFound   = 1 << 16
	mostMissing = 1 << 12
	loadTime    = 10 * time.Second
)

// A lookup answers from memory for a short time. Callers that miss at the same time share one query, and a query that
// began before a change is neither remembered nor shared with those who ask after it.
type lookup[K comparable, V any] struct {
	load  func(context.Context, K) (V, error) // api.ErrNotFound where there is none
	name  func(K) string                      // another for each key
	stale time.Duration
	now   func() time.Time

	mostFound, mostMissing int

	hits, misses atomic.Uint64
	current      atomic.Pointer[answers[K, V]]
}

// answers are those to questions that were asked between two changes.
type answers[K comparable, V any] struct {
	found   *lru.Cache[K, found[V]]
	missing *lru.Cache[K, time.Time] // until when
	loads   singleflight.Group
}

type found[V any] struct {
	value V
	until time.Time
}

func newLookup[K comparable, V any](o Options, name func(K) string,
	load func(context.Context, K) (V, error)) *lookup[K, V] {
	l := &lookup[K, V]{load: load, name: name, stale: o.Stale, now: o.Now, mostFound: mostFound, mostMissing: mostMissing}
	l.forget()
	return l
}

// forget makes every later look-up ask the database.
func (l *lookup[K, V]) forget() {
	found, err := lru.New[K, found[V]](l.mostFound)
	missing, also := lru.New[K, time.Time](l.mostMissing)
	if err := errors.Join(err, also); err != nil {
		panic(err) // a bound that is not positive
	}
	l.current.Store(&answers[K, V]{found: found, missing: missing})
}

func (l *lookup[K, V]) get(ctx context.Context, key K) (value V, err error) {
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
		// Not on this caller's context: others may wait for the same answer when it goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
		defer cancel()
		var value V
		err := api.Guard(func() (err error) {
			value, err = l.load(ctx, key)
			return err
		})
		switch until := l.now().Add(l.stale); {
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

// remembered gives what is known of a key now.
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
	count("people", &c.people.hits, &c.people.misses)
	count("sessions", &c.sessions.hits, &c.sessions.misses)
}
