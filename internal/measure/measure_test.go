package measure_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace"

	"docent/internal/measure"
)

// Only a trace that is kept is named: an exemplar that leads nowhere is worse than none.
func TestOnlyTracesThatAreKeptAreExemplars(t *testing.T) {
	config := trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}}
	dropped := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(config))
	config.TraceFlags = trace.FlagsSampled
	kept := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(config))
	for name, c := range map[string]struct {
		ctx  context.Context
		want measure.Trace
	}{
		"no context": {nil, ""}, "no trace": {t.Context(), ""}, "not sampled": {dropped, ""},
		"sampled": {kept, "01020000000000000000000000000000"},
	} {
		if got := measure.TraceOf(c.ctx); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h_seconds", Buckets: []float64{1}})
		measure.Seconds(h, 500*time.Millisecond, c.want)
		registry := prometheus.NewRegistry()
		registry.MustRegister(h)
		if n, err := testutil.GatherAndCount(registry); err != nil || n != 1 {
			t.Fatalf("%d, %v", n, err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := families[0].GetMetric()[0].GetHistogram()
		if got.GetSampleCount() != 1 || got.GetSampleSum() != 0.5 {
			t.Errorf("%s: %v", name, got)
		}
		var exemplar measure.Trace
		for _, l := range got.GetBucket()[0].GetExemplar().GetLabel() {
			exemplar = measure.Trace(l.GetValue())
		}
		if exemplar != c.want {
			t.Errorf("%s: the exemplar is %q, want %q", name, exemplar, c.want)
		}
	}
}
