package webhooks

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
)

// figures are what monitoring reads.
type figures struct {
	attempts *prometheus.CounterVec
	mu       sync.Mutex
	states   map[string]int
}

var statesDesc = prometheus.NewDesc("docent_webhooks", "Outgoing webhooks by state: ok, retrying (an event is not taken and is tried again), failing (events are given up), off.", []string{"state"}, nil)

func (f *figures) begin() {
	f.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_webhook_attempts_total",
		Help: "Attempts to deliver an event, by what came of them: delivered, waiting (it is tried again), given up."}, []string{"result"})
	for _, s := range []api.DeliveryStatus{api.DeliveryDelivered, api.DeliveryWaiting, api.DeliveryGivenUp} {
		f.attempts.WithLabelValues(string(s))
	}
	f.see(nil)
}

func (f *figures) attempt(s api.DeliveryStatus) { f.attempts.WithLabelValues(string(s)).Inc() }

func (f *figures) see(hooks []api.WebhookStatus) {
	states := map[string]int{"ok": 0, "retrying": 0, "failing": 0, "off": 0}
	for _, w := range hooks {
		states[w.Condition()]++
	}
	f.mu.Lock()
	f.states = states
	f.mu.Unlock()
}

// Describe is a prometheus.Collector's.
func (h *Hooks) Describe(c chan<- *prometheus.Desc) {
	h.figures.attempts.Describe(c)
	c <- statesDesc
}

// Collect is a prometheus.Collector's.
func (h *Hooks) Collect(c chan<- prometheus.Metric) {
	h.figures.attempts.Collect(c)
	h.figures.mu.Lock()
	defer h.figures.mu.Unlock()
	for state, n := range h.figures.states {
		c <- prometheus.MustNewConstMetric(statesDesc, prometheus.GaugeValue, float64(n), state)
	}
}
