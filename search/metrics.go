package search

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// A lookupCount counts what became of lookups in one kind of cache, of all projects.
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
	descMeaning = prometheus.NewDesc("docent_search_meaning_questions_total",
		"Searches that asked for meaning: with a vector, with one that was remembered with its result, or by words alone "+
			"because none could be had.", []string{"result"}, nil)
	descVectors = prometheus.NewDesc("docent_search_meaning_sections",
		"Sections of all indexes that can be found by meaning, by whether their vector is there or still missing.",
		[]string{"vector"}, nil)
	descOpen = prometheus.NewDesc("docent_search_indexes_open", "Indexes that are open.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *Library) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLookups, descMemory, descOpen, descMeaning, descVectors} {
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
	near := l.meaning()
	if near == nil {
		return
	}
	for result, n := range map[string]*atomic.Uint64{"vector": &near.used.helped, "remembered": &near.used.cached,
		"words": &near.used.without} {
		c <- prometheus.MustNewConstMetric(descMeaning, prometheus.CounterValue, float64(n.Load()), result)
	}
	there, missing := 0, 0
	for _, m := range l.Meanings() {
		there, missing = there+m.Embedded, missing+m.Sections-m.Embedded
	}
	c <- prometheus.MustNewConstMetric(descVectors, prometheus.GaugeValue, float64(there), "there")
	c <- prometheus.MustNewConstMetric(descVectors, prometheus.GaugeValue, float64(missing), "missing")
}
