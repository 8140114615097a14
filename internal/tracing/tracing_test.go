package tracing_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"docent/internal/tracing"
)

// A collector takes traces in memory.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*tracepb.Span
	headers http.Header
	refuse  int // so many requests are told to come again
	body    []byte
}

func collect(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" && err == nil {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		var data tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.headers = r.Header
		if c.refuse > 0 {
			c.refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, rs := range data.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
		_, _ = w.Write(c.body)
	}))
	t.Cleanup(c.Close)
	return c
}

// tracer sends to the collector. The returned function stops it and gives the spans that were taken, by name.
func (c *collector) tracer(t *testing.T, env map[string]string) (*tracing.Tracer, func() map[string]*tracepb.Span) {
	t.Helper()
	tracer, err := tracing.New(tracing.Config{Endpoint: c.URL, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	stop := func() map[string]*tracepb.Span {
		if err := tracer.Close(t.Context()); err != nil {
			t.Error(err)
		}
		return c.named()
	}
	t.Cleanup(func() { _ = tracer.Close(context.Background()) })
	return tracer, stop
}

// named are the spans that were taken, by name; the last if several have one.
func (c *collector) named() map[string]*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		named[s.Name] = s
	}
	return named
}

func root(t *tracing.Tracer, ctx context.Context) (context.Context, tracing.Span) {
	return t.Root(ctx, "root", tracing.Server, time.Now(), tracing.Origin{})
}

func TestATraceArrivesWithItsSteps(t *testing.T) {
	c := collect(t)
	c.refuse = 1 // what it is offered again
	tracer, stop := c.tracer(t, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-token=a%2Cb,other=2",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
	ctx, span := root(tracer, t.Context())
	below, step := tracing.Start(ctx, "step")
	if tracing.Carried(below) == "" {
		t.Error("a sampled trace carries nothing")
	}
	step.Int("docent.count", 3)
	step.Done(fmt.Errorf("the words of a user: %w", &http.MaxBytesError{}))
	span.End()
	spans := stop()
	if len(spans) != 2 || !bytes.Equal(spans["step"].ParentSpanId, spans["root"].SpanId) ||
		!bytes.Equal(spans["step"].TraceId, spans["root"].TraceId) {
		t.Fatalf("%v", spans)
	}
	said := spans["step"].String()
	if !strings.Contains(said, "http.MaxBytesError") || strings.Contains(said, "words") || !strings.Contains(said, "STATUS_CODE_ERROR") {
		t.Errorf("the error is told as %s", said)
	}
	if c.headers.Get("X-Token") != "a,b" || c.headers.Get("Other") != "2" {
		t.Errorf("headers %v", c.headers)
	}
}

func TestADurableSpanIsTheSameInEveryProcess(t *testing.T) {
	c := collect(t)
	first, stop := c.tracer(t, nil)
	ctx, span := root(first, t.Context())
	carried, began := tracing.Carried(ctx), time.Now()
	ctx = first.Durable(carried, "job_1").Context(t.Context())
	_, step := tracing.Start(ctx, "before the crash")
	step.End()
	// A step that is open holds back what is below it, which the crash takes with it.
	open, _ := tracing.Start(ctx, "open")
	_, inner := tracing.Start(open, "below open")
	inner.End()
	span.End()
	stop()

	second, stop := c.tracer(t, nil)
	job := second.Durable(carried, "job_1")
	if !job.Lost(began) || job.Lost(time.Now().Add(time.Second)) {
		t.Error("what was begun in another process is not told from what was begun in this one")
	}
	run := job.Below("run 1")
	ctx = run.Context(t.Context())
	_, step = tracing.Start(ctx, "after the crash")
	step.End()
	run.Send("run", began, time.Now(), false, func(s tracing.Span) { s.Failed("x") })
	job.Send("job", began, time.Now(), false, func(tracing.Span) {})
	spans := stop()

	for child, parent := range map[string]string{"before the crash": "job", "after the crash": "run", "run": "job", "job": "root"} {
		if spans[child] == nil || spans[parent] == nil || !bytes.Equal(spans[child].ParentSpanId, spans[parent].SpanId) ||
			!bytes.Equal(spans[child].TraceId, spans[parent].TraceId) {
			t.Errorf("%s is not below %s", child, parent)
		}
	}
	if spans["open"] != nil || spans["below open"] != nil {
		t.Error("a span was sent whose parent never will be")
	}
}

func TestADurableSpanWhoseRequestIsLostBeginsItsTrace(t *testing.T) {
	c := collect(t)
	tracer, stop := c.tracer(t, map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}) // it was sampled when it began
	const carried = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	tracer.Durable(carried, "turn_1").Send("turn", time.Now(), time.Now(), true, func(tracing.Span) {})
	turn := stop()["turn"]
	if turn == nil || len(turn.ParentSpanId) != 0 || len(turn.Links) != 1 ||
		fmt.Sprintf("%x", turn.TraceId) != strings.Split(carried, "-")[0] {
		t.Errorf("%v", turn)
	}
}

func TestWhoIsNotTrustedDoesNotDecide(t *testing.T) {
	c := collect(t)
	tracer, stop := c.tracer(t, map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_always_off"})
	from := tracing.Extract(http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}})
	_, stranger := tracer.Root(t.Context(), "stranger", tracing.Server, time.Now(), tracing.Origin{Parent: from})
	_, friend := tracer.Root(t.Context(), "friend", tracing.Server, time.Now(), tracing.Origin{Parent: from, Trusted: true})
	if stranger.On() || !friend.On() {
		t.Errorf("sampled: stranger %v, friend %v", stranger.On(), friend.On())
	}
	friend.End()
	if got := stop()["friend"]; got == nil || trace.SpanID(got.ParentSpanId).String() != "b7ad6b7169203331" {
		t.Errorf("%v", got)
	}
}

func TestACollectorThatTakesNothingIsCounted(t *testing.T) {
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	var logged bytes.Buffer
	tracer, err := tracing.New(tracing.Config{Endpoint: dead.URL, Log: slog.New(slog.NewTextHandler(&logged, nil)),
		Getenv: func(name string) string {
			return map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "10"}[name]
		}})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, span := root(tracer, t.Context())
		span.End()
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(tracer)
	families, err := r.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	counts := map[string]float64{}
	for _, m := range families[0].Metric {
		counts[m.Label[0].GetValue()] = m.Counter.GetValue()
	}
	if counts["sent"] != 0 || counts["failed"] == 0 || counts["dropped"] == 0 || counts["failed"]+counts["dropped"] != 100 {
		t.Errorf("%v of 100 spans", counts)
	}
	if n := strings.Count(logged.String(), "does not accept traces"); n != 1 {
		t.Errorf("it is said %d times: %s", n, &logged)
	}
}

func TestWhatTheCollectorRejectsIsSaid(t *testing.T) {
	c := collect(t)
	c.body = []byte("\x0a\x08\x08\x03\x12\x04nono") // partial_success: 3 spans, "nono"
	var logged bytes.Buffer
	tracer, err := tracing.New(tracing.Config{Endpoint: c.URL + "/v1/traces", Log: slog.New(slog.NewTextHandler(&logged, nil)),
		Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	_, span := root(tracer, t.Context())
	span.End()
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(logged.String(), "rejected 3 spans") || !strings.Contains(logged.String(), "nono") {
		t.Errorf("logged: %s", &logged)
	}
}

func TestLinesWithinATraceNameIt(t *testing.T) {
	c := collect(t)
	tracer, _ := c.tracer(t, nil)
	var out bytes.Buffer
	log := slog.New(tracing.Handler(slog.NewJSONHandler(&out, nil))).With("project", "docs")
	ctx, _ := root(tracer, t.Context())
	log.InfoContext(ctx, "within")
	log.Info("without")
	var within, without map[string]any
	d := json.NewDecoder(&out)
	if err := errors.Join(d.Decode(&within), d.Decode(&without)); err != nil {
		t.Fatal(err)
	}
	at := trace.SpanContextFromContext(ctx)
	if within["trace_id"] != at.TraceID().String() || within["span_id"] != at.SpanID().String() || within["project"] != "docs" {
		t.Errorf("%v", within)
	}
	if without["trace_id"] != nil {
		t.Errorf("%v", without)
	}
}

func TestRequestsTellOfTheirTraceOnlyWhereTheyAreMeantTo(t *testing.T) {
	var told []string
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = append(told, r.Header.Get("Traceparent"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer host.Close()
	c := collect(t)
	for _, tell := range []bool{false, true} {
		tracer, err := tracing.New(tracing.Config{Endpoint: c.URL, Tell: tell, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, span := root(tracer, t.Context())
		client := http.Client{Transport: tracing.Transport(http.DefaultTransport)}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, host.URL+"/secret-path?token=secret-query", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		span.End()
		if err := tracer.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	put := c.named()["PUT"]
	if len(told) != 2 || told[0] != "" || !strings.Contains(told[1], fmt.Sprintf("%x", put.TraceId)) {
		t.Errorf("told %q", told)
	}
	if said := put.String(); strings.Contains(said, "secret") || !strings.Contains(said, "418") {
		t.Error(said)
	}
}

func TestSettingsOfTracing(t *testing.T) {
	for _, tc := range []struct {
		env      map[string]string
		endpoint string
		on       bool
		problem  string
	}{
		{nil, "", false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, "", true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}, "", false, ""},
		{map[string]string{"OTEL_SDK_DISABLED": "true"}, "http://localhost:4318", false, ""},
		{nil, "localhost:4318", false, "http://localhost:4318"},
		{nil, "http://me:secret@localhost:4318", false, "headers"},
		{map[string]string{"OTEL_TRACES_SAMPLER": "sometimes"}, "http://localhost:4318", false, "OTEL_TRACES_SAMPLER"},
		{map[string]string{"OTEL_TRACES_SAMPLER_ARG": "2"}, "http://localhost:4318", false, "from 0 to 1"},
		{map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "http://localhost:4318", false, "name=value"},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "https://localhost:4318", false, "CERTIFICATE"},
	} {
		tracer, err := tracing.New(tracing.Config{Endpoint: tc.endpoint, Getenv: func(name string) string { return tc.env[name] }})
		if (tracer != nil) != tc.on || (err != nil) != (tc.problem != "") ||
			err != nil && (!strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%v %q: on %v, %v", tc.env, tc.endpoint, tracer != nil, err)
		}
		_ = tracer.Close(t.Context())
	}
}

// What is called on every path costs nothing while there is no trace.
func TestWithoutATraceNothingIsAllocated(t *testing.T) {
	c := collect(t)
	ctx := t.Context()
	work := func() {
		ctx, span := tracing.Start(ctx, "step")
		span.Str("docent.project", "docs")
		span.Int("docent.count", 1)
		span.Done(nil)
		_ = tracing.Carried(ctx)
		_ = tracing.At(ctx)
	}
	if n := testing.AllocsPerRun(100, work); n != 0 {
		t.Errorf("%v allocations while tracing is off", n)
	}
	tracer, _ := c.tracer(t, map[string]string{"OTEL_TRACES_SAMPLER": "always_off"})
	ctx, span := root(tracer, ctx)
	if n := testing.AllocsPerRun(100, work); n != 0 || span.On() {
		t.Errorf("%v allocations below a trace that is not sampled", n)
	}
}
