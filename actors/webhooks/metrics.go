package webhooks

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
)

var (
	waitingDesc = prometheus.NewDesc("docent_webhooks_waiting",
		"Outgoing webhooks that have events which their receiver has not taken yet.", nil, nil)
	sinceDesc = prometheus.NewDesc("docent_webhook_oldest_event_timestamp_seconds",
		"When the event was first sent that has been tried for longest; absent where none is tried again.", nil, nil)
)

// figures are what monitoring reads.
type figures struct {
	attempts *prometheus.CounterVec
	mu       sync.Mutex
	states   map[string]int
	waiting  int       // webhooks with events that were not taken yet
	since    time.Time // when the first attempt was of the event that has been tried for longest; zero if none is
}

var statesDesc = prometheus.NewDesc("docent_webhooks", "Outgoing webhooks by state: ok, retrying (an event is not taken and is tried again), failing (events are given up), off.", []string{"state"}, nil)

func (f *figures) begin() {
	f.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_webhook_attempts_total",
		Help: "Attempts to deliver an event, by what came of them: delivered, waiting (it is tried again), given up."}, []string{"result"})
	for _, s := range []api.DeliveryStatus{api.DeliveryDelivered, api.DeliveryWaiting, api.DeliveryGivenUp} {
		f.attempts.WithLabelValues(string(s))
	}
	f.see(nil, 0)
}

func (f *figures) attempt(s api.DeliveryStatus) { f.attempts.WithLabelValues(string(s)).Inc() }

func (f *figures) see(hooks []api.WebhookStatus, waiting int) {
	states := map[string]int{"ok": 0, "retrying": 0, "failing": 0, "off": 0}
	var since time.Time
	for _, w := range hooks {
		states[w.Condition()]++
		if at := w.State.Since; !w.Off && at != nil && (since.IsZero() || at.Before(since)) {
			since = *at
		}
	}
	f.mu.Lock()
	f.states, f.waiting, f.since = states, waiting, since
	f.mu.Unlock()
}

// Describe is a prometheus.Collector's.
func (h *Hooks) Describe(c chan<- *prometheus.Desc) {
	h.figures.attempts.Describe(c)
	c <- statesDesc
	c <- waitingDesc
	c <- sinceDesc
}

// Collect is a prometheus.Collector's.
func (h *Hooks) Collect(c chan<- prometheus.Metric) {
	h.figures.attempts.Collect(c)
	h.figures.mu.Lock()
	defer h.figures.mu.Unlock()
	c <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(h.figures.waiting))
	if at := h.figures.since; !at.IsZero() {
		c <- prometheus.MustNewConstMetric(sinceDesc, prometheus.GaugeValue, float64(at.Unix()))
	}
	for state, n := range h.figures.states {
		c <- prometheus.MustNewConstMetric(statesDesc, prometheus.GaugeValue, float64(n), state)
	}
}
