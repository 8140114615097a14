package router

import (
	"net/http"
	"strconv"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/internal/tracing"
	"docent/router/peer"
)

// Parents says whose traceparent is followed: a caller that is followed decides whether a trace is sampled, which
// costs. What another one says is kept as a link.
type Parents string

// Whose traces go on here; nobody's if empty.
const (
	ParentsAdmin   Parents = "admin"   // those of callers with an admin key
	ParentsProxies Parents = "proxies" // and those that trusted proxies send, who have to remove what strangers sent
)

// trace begins the trace of a request that is let in. What was refused before has none: strangers have no way to fill
// the collector.
func (s *Server) trace(x *exchange, req bunrouter.Request) bunrouter.Request {
	if s.Tracer == nil {
		return req
	}
	return s.begin(x, req)
}

// begin is kept out of the frame of the function that serves: a stream stands on it.
//
//go:noinline
func (s *Server) begin(x *exchange, req bunrouter.Request) bunrouter.Request {
	ctx, span := tracing.StartAs(req.Context(), req.Method+" "+x.route, tracing.Server) // of a tool, say
	if !span.On() {
		from := tracing.Origin{Parent: tracing.Extract(req.Header)}
		switch s.Parents {
		case ParentsProxies:
			from.Trusted = x.key.Kind == api.AdminKey || peer.In(s.TrustedProxies, peer.Address(req.RemoteAddr))
		case ParentsAdmin:
			from.Trusted = x.key.Kind == api.AdminKey
		}
		ctx, span = s.Tracer.Root(req.Context(), req.Method+" "+x.route, tracing.Server, x.started, from)
	}
	if span.On() {
		x.traced = ctx
		span.Str("http.request.method", req.Method)
		span.Str("http.route", x.route)
		span.Str("url.scheme", scheme(x.secure))
		span.Str("docent.request", x.id)
	}
	return req.WithContext(ctx)
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

// endTrace ends the span of a request, once all is known of it. Of its address only the route is said: a path or a
// query may hold what lets somebody in.
func (a *account) endTrace() {
	span := tracing.At(a.traced)
	span.Int("http.response.status_code", int64(a.status))
	span.Int("http.response.body.size", a.bytes)
	span.Str("docent.key", string(a.key))
	span.Str("docent.project", string(a.project))
	span.Str("docent.job", string(a.job))
	span.Str("docent.thread", string(a.thread))
	span.Str("docent.error.code", a.code)
	switch {
	case a.status >= http.StatusInternalServerError:
		span.Failed(strconv.Itoa(a.status))
	case a.err != nil && a.status < http.StatusBadRequest: // the answer broke off
		span.Failed(tracing.Kind(a.err))
	}
	span.End()
}
