package remote

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/internal/measure"
)

// latencies are how long requests to endpoints take, by the models' names.
type latencies struct{ first, whole *prometheus.HistogramVec }

// metrics are made with the first model.
func (s *Set) metrics() *latencies {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.took == nil {
		s.took = &latencies{
			first: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docent_model_first_text_seconds",
				Help:    "Time from a request to a model's endpoint until the first text of its reply.",
				Buckets: []float64{.05, .1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60}}, []string{"model"}),
			whole: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docent_model_request_duration_seconds",
				Help:    "Time of a request to a model's endpoint until the end of its reply, failed ones included.",
				Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300}}, []string{"model"}),
		}
	}
	return s.took
}

// timed is what a model's requests are measured by.
func (l *latencies) timed(name string) timed {
	return timed{first: l.first.WithLabelValues(name), whole: l.whole.WithLabelValues(name)}
}

type timed struct{ first, whole prometheus.Observer }

// request measures one request. The functions that it returns are called when the reply's first text has come, and at its
// end.
func (t timed) request(ctx context.Context) (text, end func()) {
	began, from := time.Now(), measure.TraceOf(ctx)
	return sync.OnceFunc(func() { measure.Seconds(t.first, time.Since(began), from) }),
		func() { measure.Seconds(t.whole, time.Since(began), from) }
}

// Describe makes a Set a prometheus.Collector.
func (s *Set) Describe(ch chan<- *prometheus.Desc) {
	s.metrics().first.Describe(ch)
	s.metrics().whole.Describe(ch)
}

// Collect makes a Set a prometheus.Collector.
func (s *Set) Collect(ch chan<- prometheus.Metric) {
	s.metrics().first.Collect(ch)
	s.metrics().whole.Collect(ch)
}
