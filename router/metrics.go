package router

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api/stream"
	"docent/internal/budget"
	"docent/internal/measure"
)

// metrics are what the edge counts. No label comes from a caller: routes are patterns, and classes are of routes.
type metrics struct {
	classes  map[string]string // of routes
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	inFlight prometheus.Gauge
	refused  *prometheus.CounterVec
	streams  map[stream.Form]*streamMetrics
	jobs     *streamMetrics // streams that follow a job
	resumed  prometheus.Counter
	nothing  prometheus.Counter // there was to resume

	handshakes prometheus.Counter // over TLS, that failed
}

// streamMetrics are those of one wire form.
type streamMetrics struct {
	open    prometheus.Gauge
	parts   prometheus.Counter
	flushes prometheus.Counter
	bytes   prometheus.Counter
	ends    map[string]prometheus.Counter
	first   prometheus.Observer // time to the first text of an answer; nil if there are no answers
	whole   prometheus.Observer
}

func (m *streamMetrics) end(how string) { m.ends[how].Inc() }

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	var (
		open = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "docent_streams_open",
			Help: "Streams that are being written, by form: the assistant's v1, v2, openai, responses and ag-ui, and those that follow a job."},
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
		first = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docent_answer_first_text_seconds",
			Help:    "Time from a question's arrival until the first text of its answer is written to the reader, by form; resumed streams apart.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60}}, []string{"form"})
		whole = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docent_answer_duration_seconds",
			Help:    "Time from a question's arrival until the end of its answer is written to the reader, by form; resumed and broken streams apart.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300}}, []string{"form"})
		resumes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_stream_resumes_total",
			Help: "Requests to resume an answer, by result: found, or none (there is nothing to resume; chat clients ask on every page)."},
			[]string{"result"})
	)
	m := &metrics{
		classes: map[string]string{},
		handshakes: prometheus.NewCounter(prometheus.CounterOpts{Name: "docent_tls_handshake_failures_total",
			Help: "Connections over TLS that did not come about: scanners, clients that do not trust the certificate, or plain HTTP."}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_http_requests_total",
			Help: "Requests answered, by the class of their route: assistant (questions and resumed answers), search (search, pages, ratings), tools (MCP and llms.txt), agent, admin, console, probe, open or unknown."},
			[]string{"class", "route", "method", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docent_http_request_duration_seconds",
			Help:    "Time from a request's arrival to the end of its answer; streams last as long as they are read.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}},
			[]string{"class", "route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "docent_http_requests_in_flight",
			Help: "Requests that have no answer yet, streams included."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_refused_total",
			Help: "Requests and connections refused, by reason: queue, waits, quota, unauthorized, reader_token, proof_of_work, header_fields; the budget of which nothing is left (requests, bodies, body_memory, pages, streams, standing, sessions); with client_ before it, the budget of which one client holds its share; key_streams."},
			[]string{"reason"}),
		streams: map[stream.Form]*streamMetrics{},
	}
	reasons := []string{"queue", "waits", "quota", "unauthorized", "reader_token", "proof_of_work", "header_fields", "key_streams"}
	for _, k := range budget.Kinds() {
		if reasons = append(reasons, "client_"+k.String()); k != budget.Connections {
			reasons = append(reasons, k.String())
		}
	}
	for _, reason := range reasons {
		m.refused.WithLabelValues(reason) // a counter that begins with its first event shows no increase
	}
	for _, c := range []prometheus.Collector{m.requests, m.took, m.inFlight, m.refused, m.handshakes,
		open, parts, flushes, bytes, ends, first, whole, resumes} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	form := func(name string) *streamMetrics {
		sm := &streamMetrics{open: open.WithLabelValues(name), parts: parts.WithLabelValues(name),
			flushes: flushes.WithLabelValues(name), bytes: bytes.WithLabelValues(name),
			ends: map[string]prometheus.Counter{}}
		for _, how := range []string{"finished", "gone", "stalled", "cut", "moved", "broken"} {
			sm.ends[how] = ends.WithLabelValues(name, how)
		}
		return sm
	}
	m.jobs = form("job")
	for f, name := range map[stream.Form]string{stream.DataStream: "v1", stream.UIMessages: "v2", stream.Completions: "openai", stream.Responses: "responses", stream.AGUI: "ag-ui"} {
		m.streams[f] = form(name)
		m.streams[f].first, m.streams[f].whole = first.WithLabelValues(name), whole.WithLabelValues(name)
	}
	m.resumed, m.nothing = resumes.WithLabelValues("found"), resumes.WithLabelValues("none")
	return m, nil
}

func (m *metrics) stream(form stream.Form) *streamMetrics { return m.streams[form] }

// classify tells the classes of routes.
func (m *metrics) classify(routes []route) {
	for _, r := range routes {
		class := map[access]string{probe: "probe", open: "open", page: "console", agent: "agent", admin: "admin",
			assistant: "search", asking: "assistant",
			compatible: "assistant", tools: "tools"}[r.access]
		if r.access == agent && !strings.Contains(r.pattern, "/agent/") {
			class = "admin"
		}
		m.classes[r.pattern] = class
	}
}

func (m *metrics) request(route, method string, status int, took time.Duration, from measure.Trace) {
	class := cmp.Or(m.classes[route], "unknown")
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(class, route, method, strconv.Itoa(status)).Inc()
	measure.Seconds(m.took.WithLabelValues(class, route), took, from)
}

func (m *metrics) refuse(reason string) { m.refused.WithLabelValues(reason).Inc() }
