package sources

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
)

// freshness is what metrics report of a source.
type freshness struct {
	kind    api.SourceKind
	failing bool      // the last reading failed
	read    time.Time // when it was last read, or found to be as it was; zero if it never was since the program began
}

// after is what is reported once one more reading has ended.
func (f freshness) after(kind api.SourceKind, r Reading) freshness {
	f.kind, f.failing = kind, r.Err != nil
	if !f.failing {
		f.read = r.At
	}
	return f
}

var (
	descSources = prometheus.NewDesc("docent_sources",
		"Sources of documentation that were read since the start, by kind (files: a folder or a repository, web, zip, issues) and by state: current, or failing (readers are answered from what was read before).",
		[]string{"kind", "state"}, nil)
	descOldest = prometheus.NewDesc("docent_source_oldest_read_timestamp_seconds",
		"When the source of a kind was last read, or found to be unchanged, for which that is longest ago.", []string{"kind"}, nil)
)

// Describe makes a Reader a prometheus.Collector.
func (s *Reader) Describe(ch chan<- *prometheus.Desc) {
	ch <- descSources
	ch <- descOldest
}

// Collect makes a Reader a prometheus.Collector. No label names a project: `docent status` does.
func (s *Reader) Collect(ch chan<- prometheus.Metric) {
	type figures struct {
		current, failing int
		oldest           time.Time
	}
	kinds := map[api.SourceKind]figures{}
	s.mu.Lock()
	for _, f := range s.fresh {
		k := kinds[f.kind]
		if f.failing {
			k.failing++
		} else {
			k.current++
		}
		if !f.read.IsZero() && (k.oldest.IsZero() || f.read.Before(k.oldest)) {
			k.oldest = f.read
		}
		kinds[f.kind] = k
	}
	s.mu.Unlock()
	for kind, k := range kinds {
		kind := cmp.Or(string(kind), "files")
		ch <- prometheus.MustNewConstMetric(descSources, prometheus.GaugeValue, float64(k.current), kind, "current")
		ch <- prometheus.MustNewConstMetric(descSources, prometheus.GaugeValue, float64(k.failing), kind, "failing")
		if !k.oldest.IsZero() {
			ch <- prometheus.MustNewConstMetric(descOldest, prometheus.GaugeValue, float64(k.oldest.Unix()), kind)
		}
	}
}
