// Package measure links measurements to the trace that they come from, so that a dashboard leads from a slow answer to
// what happened in it.
package measure

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// A Trace is the id of a trace that is kept; empty if there is none, or none that anybody will find.
type Trace string

// TraceOf is the trace that a context belongs to.
func TraceOf(ctx context.Context) Trace {
	if ctx == nil {
		return ""
	}
	if at := trace.SpanContextFromContext(ctx); at.IsSampled() {
		return Trace(at.TraceID().String())
	}
	return ""
}

// Seconds adds a duration to a histogram, with the trace as its exemplar if there is one.
func Seconds(o prometheus.Observer, took time.Duration, from Trace) {
	if with, ok := o.(prometheus.ExemplarObserver); ok && from != "" {
		with.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": string(from)})
		return
	}
	o.Observe(took.Seconds())
}
