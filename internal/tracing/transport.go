package tracing

import (
	"context"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var w3c propagation.TraceContext

// Extract reads where a request's caller is in a trace, by W3C's traceparent; invalid if it does not say.
func Extract(h http.Header) trace.SpanContext {
	if h.Get("Traceparent") == "" {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.HeaderCarrier(h)))
}

// Transport is base with a span for each request that is made in a trace. If the configuration says so, who is asked
// learns of the trace by W3C's traceparent.
func Transport(base http.RoundTripper) http.RoundTripper { return &transport{base} }

type transport struct{ base http.RoundTripper }

// RoundTrip makes a request. Its span ends when the head of the answer has come: a body may stream for minutes, and
// its reader has a span around both. Neither path nor query is recorded: they may hold secrets.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, span := StartAs(req.Context(), req.Method, Client)
	if !span.On() {
		return t.base.RoundTrip(req)
	}
	span.Str("http.request.method", req.Method)
	span.Str("server.address", req.URL.Hostname())
	span.Str("url.scheme", req.URL.Scheme)
	if port, err := strconv.Atoi(req.URL.Port()); err == nil {
		span.Int("server.port", int64(port))
	}
	if tracer, _ := traced(ctx); tracer.tell {
		req = req.Clone(ctx)
		w3c.Inject(ctx, propagation.HeaderCarrier(req.Header))
	} else {
		req = req.WithContext(ctx)
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil {
		span.Int("http.response.status_code", int64(resp.StatusCode))
		if resp.StatusCode >= 400 {
			span.Failed(strconv.Itoa(resp.StatusCode))
		}
	}
	span.Done(err)
	return resp, err
}

// CloseIdleConnections closes those of the base, if it can.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
