package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/api/stream"
	"docent/internal/budget"
	"docent/internal/gzipped"
	"docent/internal/measure"
	"docent/persistence/cluster"
	"docent/router/peer"
	"docent/router/reqbody"
)

// An exchange is one request and its response: the response writer that handlers get, with what the log and the metrics
// will say about it.
type exchange struct {
	http.ResponseWriter
	id      string
	started time.Time
	began   time.Time // by the clock that cannot jump, for the duration
	client  netip.Addr
	gzip    bool // the caller takes compressed answers
	secure  bool // the caller came over TLS, to us or to a trusted proxy

	patience time.Duration // for writing the answer

	route   string       // pattern
	page    bool         // errors are pages
	openai  bool         // errors are in OpenAI's form
	whole   bool         // the answer is sent in one piece
	asked   stream.Asked // what the answer repeats
	key     api.Key
	project api.Project
	reader  *api.Reader // as a token says; nil without one
	signed  string      // that token, if the reader has let a client in
	bound   bool        // the key is for its project alone: a client has come by OAuth
	job     api.JobID
	thread  api.ThreadID

	status  int
	bytes   int64
	code    string // of the error
	err     error  // for the log
	how     string // a stream has ended
	stream  func() // gives the slot back: the answer is a stream of events
	aborted bool   // the connection ends without an answer
	moved   bool   // package sockets answers; what it did is accounted for at its end

	traced context.Context // nil if the request is not traced

	server *Server
	holds  *budget.Account // what the client holds; nil if nothing bounds it
	work   budget.Kind     // of what it needs a place to be worked on
	place  budget.Kind     // that it has, where placed
	placed bool
	free   func() // gives the memory of its body back
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	x.status = cmp.Or(x.status, http.StatusOK)
	n, err := x.ResponseWriter.Write(b)
	x.bytes += int64(n)
	return n, err
}

// deadline gives the answer its time: a caller that does not take it in holds nothing for ever. The server lifts it
// again after the request.
func (x *exchange) deadline() {
	http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now().Add(x.patience)) // where it can
}

// begin writes what stands in every response.
func (x *exchange) begin() {
	h := x.Header()
	h.Set("X-Request-Id", x.id)
	h.Set("X-Content-Type-Options", "nosniff")
}

// Unwrap lets http.ResponseController find deadlines and flushing.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// exchange begins the answer to a request.
func (s *Server) exchange(w http.ResponseWriter, req *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, started: s.Now(), began: time.Now(), id: requestID(req), route: "unknown",
		server: s, patience: s.Bounds.WriteTimeout, gzip: gzipped.Taken(req)}
	x.client, x.secure = peer.Of(req, s.TrustedProxies)
	x.begin()
	if x.secure && s.HSTS > 0 {
		x.Header().Set("Strict-Transport-Security", "max-age="+strconv.FormatInt(int64(s.HSTS.Seconds()), 10))
	}
	return x
}

// tooManyFields refuses a request that would hold many times the bytes that were sent.
func tooManyFields(h http.Header) bool {
	if len(h) > maxHeaderFields {
		return true
	}
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n > maxHeaderFields
}

// refusedBody is how long the body of a request is waited for that was refused without it: who is sending it gets to
// read the answer.
const refusedBody = time.Second

// cutBody ends the connection of a request whose body nobody wants. Over HTTP/2 the end of the answer ends the stream.
func (x *exchange) cutBody(req *http.Request) {
	if req.ContentLength != 0 && req.ProtoMajor == 1 {
		x.Header().Set("Connection", "close")
		http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Now().Add(refusedBody))
	}
}

// refuseHead answers a request whose head is too large, and reads no body of it.
func (s *Server) refuseHead(x *exchange, req *http.Request) {
	s.metrics.refuse("header_fields")
	s.fail(x, req, errHead)
	s.note(req.Context(), x.account(req.Method))
}

// ServeHTTP answers one request: it names it, guards it and writes its line in the log.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x := s.exchange(w, req)
	if s.isDraining() {
		x.Header().Set("Connection", "close") // over HTTP/2 it has the client take its next requests elsewhere
	}
	handle(req)
	if tooManyFields(req.Header) {
		s.refuseHead(x, req)
		return
	}
	if req.ContentLength != 0 {
		// Also for a body that nobody reads: the server reads it to its end after the answer.
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.Bounds.ReadTimeout))
	}
	s.metrics.inFlight.Inc()
	defer func() {
		v := recover()
		if v != nil && v != http.ErrAbortHandler {
			x.err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			s.fail(x, req, errPanic)
		}
		s.finish(x)
		if x.moved {
			return
		}
		s.metrics.inFlight.Dec()
		s.note(req.Context(), x.account(req.Method))
		if x.aborted || v != nil && x.status != http.StatusInternalServerError {
			panic(http.ErrAbortHandler) // the response had begun, or there is none: only a broken connection tells the client
		}
	}()
	if req.Method == http.MethodOptions && req.URL.Path == "*" { // of the service itself (RFC 9110, 9.3.7)
		x.Header().Set("Allow", "GET, HEAD, OPTIONS, POST")
		x.WriteHeader(http.StatusNoContent)
		return
	}
	if strings.ContainsFunc(req.URL.Path, unicode.IsControl) { // the router's table has no place for NUL
		s.fail(x, req, &api.StateError{Kind: api.ErrNotFound,
			Reason: "there is no such operation: a path has no control characters"})
		return
	}
	if path := req.URL.EscapedPath(); path != "/" && (bunrouter.CleanPath(path) != path || strings.HasSuffix(path, "/")) {
		// The router would redirect, and a redirected POST becomes a GET.
		if to := strings.TrimSuffix(path, "/"); req.Method == http.MethodGet && s.Pages != nil && wantsPage(req) &&
			bunrouter.CleanPath(to) == to { // somebody has typed it
			if req.URL.RawQuery != "" {
				to += "?" + req.URL.RawQuery
			}
			http.Redirect(x, req, to, http.StatusMovedPermanently)
			return
		}
		s.fail(x, req, &api.StateError{Kind: api.ErrNotFound,
			Reason: "there is no such operation: a path has no empty parts and no slash at its end"})
		return
	}
	if err := s.router.ServeHTTPError(x, req); err != nil {
		s.fail(x, req, err)
	}
}

// Refuse answers a request with an error, for who stands before the API and cannot hand a request on to it. The error has
// the form that the request's operation gives its own. Where there is nothing to answer it panics with
// http.ErrAbortHandler.
func (s *Server) Refuse(w http.ResponseWriter, req *http.Request, err error) {
	x := s.exchange(w, req)
	path := req.URL.EscapedPath()
	for i := range s.routes {
		if r := &s.routes[i]; r.takes(req.Method) && matches(r.pattern, path) {
			x.at(r)
		}
	}
	s.fail(x, req, err)
	s.note(req.Context(), x.account(req.Method))
	if x.aborted {
		panic(http.ErrAbortHandler) // an answer without anything would look like one that is whole
	}
}

// An account is what the log and the metrics say about a request at its end.
type account struct {
	id      string
	client  netip.Addr
	began   time.Time
	method  string
	route   string
	key     api.KeyID
	project api.ProjectID
	job     api.JobID
	thread  api.ThreadID
	status  int
	bytes   int64
	code    string
	how     string // a stream has ended
	err     error
	traced  context.Context
}

func (x *exchange) account(method string) account {
	return account{id: x.id, client: x.client, began: x.began, method: method, route: x.route, key: x.key.ID,
		project: x.project.ID, job: x.job, thread: x.thread, status: x.status, bytes: x.bytes, code: x.code, how: x.how,
		err: x.err, traced: x.traced}
}

// note writes the request's line in the log and counts it.
func (s *Server) note(ctx context.Context, a account) {
	took := time.Since(a.began)
	if a.status == 0 {
		if errors.Is(a.err, context.Canceled) || errors.Is(a.err, cluster.ErrLeft) {
			a.status = statusGone
		} else {
			a.status = http.StatusOK
		}
	}
	if a.traced != nil {
		ctx = a.traced
		a.endTrace()
	}
	s.metrics.request(a.route, a.method, a.status, took, measure.TraceOf(ctx))
	if a.route == "/healthz" || a.route == "/readyz" {
		if a.status < 400 {
			return // a probe every second says nothing
		}
	}
	if !s.logs(ctx, &a) {
		return
	}
	attrs := make([]slog.Attr, 0, 15)
	attrs = append(attrs, slog.String("request", a.id), slog.String("method", a.method), slog.String("route", a.route),
		slog.Int("status", a.status), slog.Duration("took", took), slog.Int64("bytes", a.bytes),
		slog.String("client", a.client.String()))
	for _, v := range []struct{ name, value string }{{"key", string(a.key)}, {"project", string(a.project)},
		{"job", string(a.job)}, {"thread", string(a.thread)}, {"how", a.how}, {"code", a.code}} {
		if v.value != "" {
			attrs = append(attrs, slog.String(v.name, v.value))
		}
	}
	if a.err != nil {
		attrs = append(attrs, slog.String("error", a.err.Error()))
	}
	s.Log.LogAttrs(context.WithoutCancel(ctx), a.level(), "request", attrs...)
}

func (a *account) level() slog.Level {
	if a.status >= 500 && a.status != http.StatusServiceUnavailable {
		return slog.LevelError
	}
	return slog.LevelInfo
}

// logs is whether the log wants to know of a request.
func (s *Server) logs(ctx context.Context, a *account) bool { return s.Log.Enabled(ctx, a.level()) }

// requestID is the caller's own, when it is sane, or a new one.
func requestID(req *http.Request) string {
	if id := req.Header.Get("X-Request-Id"); reqbody.SaneID(id) {
		return id
	}
	return api.NewID(api.RequestPrefix, time.Now())
}

func unescape(v string) string {
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

func unique(in []string) []string {
	slices.Sort(in)
	return slices.Compact(in)
}
