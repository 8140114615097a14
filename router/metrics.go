package router

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/stream"
)

// metrics are what the edge counts. No label comes from a caller: routes are patterns.
type metrics struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	inFlight prometheus.Gauge
	refused  *prometheus.CounterVec
	streams  map[stream.Form]*streamMetrics
	jobs     *streamMetrics // streams that follow a job
}

// streamMetrics are those of one wire form.
type streamMetrics struct {
	open    prometheus.Gauge
	parts   prometheus.Counter
	flushes prometheus.Counter
	bytes   prometheus.Counter
	ends    map[string]prometheus.Counter
}

func (m *streamMetrics) end(how string) { m.ends[how].Inc() }

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	var (
		open = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "docent_streams_open",
			Help: "Streams that are being written, by form: the assistant's v1 and v2, and those that follow a job."},
			[]string{"form"})
		parts = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_stream_parts_total",
			Help: "Parts of answers and events of jobs written to readers."}, []string{"form"})
		flushes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_stream_flushes_total",
			Help: "Flushes of streams to their readers: parts divided by flushes is how many went together."}, []string{"form"})
		bytes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_stream_bytes_total",
			Help: "Bytes of answers and of jobs' logs written to readers."}, []string{"form"})
		ends = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_streams_ended_total",
			Help: "Streams that ended, by how: finished, gone (the reader left), stalled (it took nothing in), cut (the service stopped), broken (the turn ended without an end)."},
			[]string{"form", "how"})
	)
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_http_requests_total",
			Help: "Requests answered."}, []string{"route", "method", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docent_http_request_duration_seconds",
			Help:    "Time from a request's arrival to the end of its answer; streams last as long as they are read.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}},
			[]string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "docent_http_requests_in_flight",
			Help: "Requests that have no answer yet, streams included."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_refused_total",
			Help: "Requests refused, by reason: requests, queue, streams, waits, body_memory, quota, unauthorized, sign_in."},
			[]string{"reason"}),
		streams: map[stream.Form]*streamMetrics{},
	}
	for _, c := range []prometheus.Collector{m.requests, m.took, m.inFlight, m.refused,
		open, parts, flushes, bytes, ends} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	form := func(name string) *streamMetrics {
		sm := &streamMetrics{open: open.WithLabelValues(name), parts: parts.WithLabelValues(name),
			flushes: flushes.WithLabelValues(name), bytes: bytes.WithLabelValues(name),
			ends: map[string]prometheus.Counter{}}
		for _, how := range []string{"finished", "gone", "stalled", "cut", "broken"} {
			sm.ends[how] = ends.WithLabelValues(name, how)
		}
		return sm
	}
	m.streams[stream.DataStream], m.streams[stream.UIMessages], m.jobs = form("v1"), form("v2"), form("job")
	return m, nil
}

func (m *metrics) stream(form stream.Form) *streamMetrics { return m.streams[form] }

func (m *metrics) request(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) refuse(reason string) { m.refused.WithLabelValues(reason).Inc() }
