package search

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// A tally counts what became of look-ups in one kind of cache, of all projects.
type tally struct{ hits, misses, shared atomic.Uint64 }

func (t *tally) add(hit bool) {
	if hit {
		t.hits.Add(1)
	} else {
		t.misses.Add(1)
	}
}

type tallies struct{ terms, texts, results tally }

var (
	descLookups = prometheus.NewDesc("docent_search_lookups_total",
		"Look-ups in what searches remember: results of whole queries, terms (the weights of one word), texts of sections. Result says hit, miss, or shared: somebody was searching for the same.",
		[]string{"cache", "result"}, nil)
	descMemory = prometheus.NewDesc("docent_search_memory_bytes",
		"Memory that open indexes hold, what they remember included, as far as it is counted.", nil, nil)
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
	shared := l.tallies.results.shared.Load()
	count("results", "shared", shared)
	for _, t := range []struct {
		name   string
		tally  *tally
		shared uint64
	}{{"results", &l.tallies.results, shared}, {"terms", &l.tallies.terms, 0}, {"texts", &l.tallies.texts, 0}} {
		misses := t.tally.misses.Load()
		count(t.name, "hit", t.tally.hits.Load())
		count(t.name, "miss", misses-min(misses, t.shared)) // who shares a search has missed first
	}
	c <- prometheus.MustNewConstMetric(descMemory, prometheus.GaugeValue, float64(l.Memory()))
	c <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(l.Open()))
}
