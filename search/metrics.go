package search

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// A lookupCount counts what became of look-ups in one kind of cache, of all projects.
type lookupCount struct{ hits, misses, shared atomic.Uint64 }

func (t *lookupCount) add(hit bool) {
	if hit {
		t.hits.Add(1)
	} else {
		t.misses.Add(1)
	}
}

type lookups struct{ terms, texts, results lookupCount }

var (
	descLookups = prometheus.NewDesc("docent_search_lookups_total",
		"Look-ups in the caches of searches: results of whole queries, terms (the weights of one word), texts of sections. "+
			"Result is hit, miss, or shared: another caller was running the same search.",
		[]string{"cache", "result"}, nil)
	descMemory = prometheus.NewDesc("docent_search_memory_bytes",
		"Memory that open indexes hold, with their caches, as far as it is counted.", nil, nil)
	descOpen = prometheus.NewDesc("docent_search_indexes_open", "Indexes that are open.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *Library) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLookups, descMemory, descOpen} {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Library) Collect(c chan<- prometheus.Metric) {
	count := func(cache, result string, n uint64) {
		c <- prometheus.MustNewConstMetric(descLookups, prometheus.CounterValue, float64(n), cache, result)
	}
	shared := l.lookups.results.shared.Load()
	count("results", "shared", shared)
	for _, t := range []struct {
		name    string
		lookups *lookupCount
		shared  uint64
	}{{"results", &l.lookups.results, shared}, {"terms", &l.lookups.terms, 0}, {"texts", &l.lookups.texts, 0}} {
		misses := t.lookups.misses.Load()
		count(t.name, "hit", t.lookups.hits.Load())
		count(t.name, "miss", misses-min(misses, t.shared)) // who shares a search has missed first
	}
	c <- prometheus.MustNewConstMetric(descMemory, prometheus.GaugeValue, float64(l.Memory()))
	c <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(l.Open()))
}
