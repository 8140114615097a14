// Package tracing follows a question or a job through all packages as one trace of OpenTelemetry, and sends it to a
// collector by OTLP over HTTP.
//
// A trace begins at the edge, or where the server starts something by itself. Whether it is sampled is decided there,
// once. From then on the context says so: below a trace that is not sampled, and while tracing is off, Start returns
// the zero Span, which allocates nothing and does nothing.
//
// What goes on for longer than a process does, a job or a turn, has a durable span: its id is made from what it is about,
// and its trace is in the journal. Spans below it are sent as they end, also by the process that takes the work up
// after a crash, and the one that sees its end sends the durable span itself. See decision 0040.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says where traces go and which. What is empty has its value from the standard OTEL_ variable of the
// environment, or its default.
type Config struct {
	Endpoint string   // of the collector: http://localhost:4318; off if this and the environment are empty
	Headers  string   // name=value,name=value: as OTEL_EXPORTER_OTLP_HEADERS
	Sample   *float64 // the part of traces that is kept, from 0 to 1
	Tell     bool     // servers called over HTTP learn of the trace, see Transport
	Version  string   // of the program

	Getenv func(string) string
	Log    *slog.Logger
}

// A Tracer makes spans and sends them. A nil Tracer is tracing that is off.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
	sender   *sender
	tell     bool
	began    time.Time
	closed   atomic.Bool
}

// on counts the tracers at work, so that nothing looks for a span while there is none.
var on atomic.Int32

// New sets tracing up; the Tracer is nil if it is off. The collector need not be there.
func New(c Config) (*Tracer, error) {
	o, err := c.options()
	if err != nil || o == nil {
		return nil, err
	}
	client, err := newClient(o)
	if err != nil {
		return nil, err
	}
	// Until it is started an exporter has nothing to send: the context bounds nothing.
	exporter, err := otlptrace.New(context.Background(), client)
	if err != nil {
		return nil, fmt.Errorf("set up the export of traces: %w", err)
	}
	described, err := resource.New(context.Background(), resource.WithHost(), resource.WithService(),
		resource.WithAttributes(attribute.String("service.name", "docent"), attribute.String("service.version", c.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		c.Log.Warn("traces lack details of their origin", "error", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.Log.Debug("opentelemetry", "error", err) }))
	t := &Tracer{began: time.Now(), tell: c.Tell, sender: newSender(exporter, o, c.Log)}
	t.provider = sdk.NewTracerProvider(sdk.WithResource(described), sdk.WithIDGenerator(ids{}),
		sdk.WithSampler(sampler{o.sampler}), sdk.WithSpanProcessor(t.sender))
	t.tracer = t.provider.Tracer("docent", trace.WithInstrumentationVersion(c.Version))
	on.Add(1)
	c.Log.Info("traces are sent", "endpoint", client.url.Redacted(), "sampler", o.sampler.Description())
	return t, nil
}

// Close sends what has ended, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil || !t.closed.CompareAndSwap(false, true) {
		return nil
	}
	on.Add(-1)
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Describe is a part of prometheus.Collector.
func (t *Tracer) Describe(ch chan<- *prometheus.Desc) { ch <- spansDesc }

// Collect counts spans by what became of them. Nothing is counted while tracing is off.
func (t *Tracer) Collect(ch chan<- prometheus.Metric) {
	if t == nil {
		return
	}
	for _, c := range []struct {
		result string
		n      *atomic.Uint64
	}{{"sent", &t.sender.sent}, {"failed", &t.sender.failed}, {"dropped", &t.sender.dropped}} {
		ch <- prometheus.MustNewConstMetric(spansDesc, prometheus.CounterValue, float64(c.n.Load()), c.result)
	}
}

var spansDesc = prometheus.NewDesc("docent_trace_spans_total",
	"Spans of traces by what became of them: sent, failed if the collector did not take them, dropped if the queue was full.",
	[]string{"result"}, nil)
