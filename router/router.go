package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	pathpkg "path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bunrouter"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/api/stream"
	"docent/internal/budget"
	"docent/internal/required"
	"docent/internal/tracing"
	"docent/router/oauth"
	"docent/router/overload"
	"docent/router/proof"
	"docent/router/sockets"
)

// Deps is what the edge works with. The ports must be set; for the rest the zero value is a sensible default.
type Deps struct {
	Jobs      job.Asker
	Threads   Threads
	Catalog   Catalog
	Quotas    Quotas
	Claims    startjob.Claims
	Documents Documents
	Models    Models
	Updates   Updates
	Pushes    Pushes
	Reviews   Reviews
	Analytics Analytics
	Pages     Pages         // nil if only the API is served
	Tools     Tools         // nil if MCP is not served
	Readers   Readers       // nil if no reader tokens are taken
	OAuth     *oauth.Server // nil if clients come with keys alone
	Further   []oauth.Route // operations that know by themselves who calls

	Log     *slog.Logger
	Metrics *prometheus.Registry // what /metrics shows; the edge adds its own
	Tracer  *tracing.Tracer      // nil if requests are not traced
	Parents Parents              // whose traces go on here
	Now     func() time.Time
	IDs     *api.IDs                    // of jobs, threads and turns; the router's own if nil
	Ready   func(context.Context) error // why the service cannot serve yet; nil when it can
	Version string

	// Secret signs what browsers keep for us: at least 32 random bytes. It must outlive a restart.
	Secret []byte
	// PublicURL is the address at which clients reach the service, without a slash at the end. Links are made with it;
	// if empty, with the address that the request was sent to.
	PublicURL string
	// HSTS is how long browsers that came over TLS must keep to it; 0 is not at all.
	HSTS time.Duration
	// Limits are the quotas of projects that set none of their own. Zero is the default, negative is none.
	Limits api.Limits
	// UsedProof is proof.Challenges.Shared: several nodes remember together which solutions were used. Each by itself
	// if nil.
	UsedProof func(ctx context.Context, solution string, life time.Duration) (fresh bool, give func(), err error)
	// TrustedProxies may say in X-Forwarded-For and X-Forwarded-Proto for whom they speak.
	TrustedProxies []netip.Prefix
	// MetricsFrom may read /metrics without a key; loopback if nil. Others need an admin key.
	MetricsFrom []netip.Prefix
	Bounds      Bounds
	// ClientShare is how many percent of what is left one client address may hold: 5 if 0. With 100 nothing is bounded
	// for each client.
	ClientShare int
	// Unlimited are addresses that the budgets of clients do not hold; loopback if nil.
	Unlimited []netip.Prefix
	// Together is whether other nodes go on with the streams that end here with a stop: their readers are broken off, so
	// that they resume there.
	Together bool
	// HandlerStreams makes handlers write all streams, and package sockets none.
	HandlerStreams bool
	// Manual answers from Docent's own documentation; nil if nothing does.
	Manual func(w http.ResponseWriter, req *http.Request) error
}

// Bounds keep the memory and the time of the edge finite. Zero is the default, as DefaultBounds has it.
type Bounds struct {
	BodyBytes      int64         // of one request
	BodyMemory     int64         // of all request bodies that are being read
	Requests       int           // at once, waiting ones too, streams not counted
	Working        int           // questions, searches, jobs and feedback worked on at once; more wait
	Waiting        int           // of those, waiting at once
	Lease          time.Duration // that one of them counts as worked on, however long it is
	Streams        int           // open at once
	Waits          int           // polls held open at once; beyond them polls are answered without waiting
	ReadTimeout    time.Duration // for the body of a request
	WriteTimeout   time.Duration // for one write to a stream's reader
	CommandTimeout time.Duration // for an actor's answer
	Pace           time.Duration // least time between two writes of text to one reader; 0 is none
	KeepAlive      time.Duration // at most about twice this between two writes on a stream
}

// DefaultBounds are the bounds of a server without settings; the settings of docent have their defaults from here.
func DefaultBounds() Bounds {
	threads := runtime.GOMAXPROCS(0) // that run Go's code
	return Bounds{
		BodyBytes: 1 << 20, BodyMemory: 64 << 20, Requests: 20_000, Working: 48 * threads, Waiting: 2048 * threads,
		Lease: 250 * time.Millisecond, Streams: 20_000, Waits: 4096, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, CommandTimeout: 30 * time.Second, KeepAlive: 15 * time.Second,
	}
}

// DefaultClientShare is how many percent of what is left one client address may hold.
const DefaultClientShare = 5

// DefaultLimits are the quotas of projects that set none, if the operator sets none either.
func DefaultLimits() api.Limits {
	return api.Limits{ProjectHour: 100, KeyMonth: 10_000, OrgHour: 10_000, IPDay: 10_000}
}

func (b Bounds) withDefaults() Bounds {
	d := DefaultBounds()
	return Bounds{
		BodyBytes: cmp.Or(b.BodyBytes, d.BodyBytes), BodyMemory: cmp.Or(b.BodyMemory, d.BodyMemory),
		Requests: cmp.Or(b.Requests, d.Requests), Working: cmp.Or(b.Working, d.Working),
		Waiting: cmp.Or(b.Waiting, d.Waiting), Lease: cmp.Or(b.Lease, d.Lease), Streams: cmp.Or(b.Streams, d.Streams),
		Waits: cmp.Or(b.Waits, d.Waits), ReadTimeout: cmp.Or(b.ReadTimeout, d.ReadTimeout),
		WriteTimeout: cmp.Or(b.WriteTimeout, d.WriteTimeout), CommandTimeout: cmp.Or(b.CommandTimeout, d.CommandTimeout),
		Pace: b.Pace, KeepAlive: cmp.Or(b.KeepAlive, d.KeepAlive),
	}
}

// A Server is the whole API as one http.Handler.
type Server struct {
	Deps
	routes  []route
	router  *bunrouter.Router
	metrics *metrics
	scrape  http.Handler // shows the metrics

	queue   *overload.Queue
	budgets *budget.Table
	waits   atomic.Int64 // polls held open now

	retired context.Context // ends when others are to be asked
	retire  context.CancelFunc
	leaving context.Context // ends when new work is refused
	leave   context.CancelFunc
	cutting context.Context // ends when streams must end
	cut     context.CancelFunc
	ended   chan struct{} // yields a value when a stream ends while draining

	sockets      *sockets.Pool // nil if streams stay with their handlers
	unknownProxy sync.Once
	deprecated   sync.Map  // by their successors, those that were logged
	buffers      sync.Pool // of *[]byte
	proofs       *proof.Challenges
}

// New builds the API. Close ends what it runs beside requests.
func New(deps Deps) (*Server, error) {
	if err := required.Fields("router", deps, "Jobs", "Threads", "Catalog", "Quotas", "Claims", "Documents", "Models",
		"Updates", "Pushes", "Reviews", "Analytics"); err != nil {
		return nil, err
	}
	if len(deps.Secret) < 32 {
		return nil, errors.New("router: Deps.Secret must hold at least 32 bytes")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Metrics == nil {
		deps.Metrics = prometheus.NewRegistry()
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Ready == nil {
		deps.Ready = func(context.Context) error { return nil }
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	if deps.MetricsFrom == nil {
		deps.MetricsFrom = loopback
	}
	if deps.Unlimited == nil {
		deps.Unlimited = loopback
	}
	deps.ClientShare = cmp.Or(deps.ClientShare, DefaultClientShare)
	deps.PublicURL = strings.TrimRight(deps.PublicURL, "/")
	l, d := deps.Limits, DefaultLimits()
	deps.Limits = api.Limits{ProjectHour: cmp.Or(l.ProjectHour, d.ProjectHour), KeyMonth: cmp.Or(l.KeyMonth, d.KeyMonth),
		OrgHour: cmp.Or(l.OrgHour, d.OrgHour), IPDay: cmp.Or(l.IPDay, d.IPDay)}
	deps.Bounds = deps.Bounds.withDefaults()
	if deps.IDs == nil {
		deps.IDs = new(api.IDs)
	}
	s := &Server{
		Deps:    deps,
		budgets: newBudgets(deps.ClientShare, deps.Bounds),
		ended:   make(chan struct{}, 1),

		proofs: proof.New(deps.Secret, deps.Now()),
		scrape: newScrape(deps.Metrics, deps.Log),
	}
	s.proofs.Shared = deps.UsedProof
	s.retired, s.retire = context.WithCancel(context.Background())
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.cutting, s.cut = context.WithCancel(context.Background())
	s.queue = overload.New(overload.Rule{Working: deps.Bounds.Working, Waiting: deps.Bounds.Waiting, Limit: answerWithin,
		Lease: deps.Bounds.Lease})
	s.buffers.New = func() any { b := make([]byte, 0, 4096); return &b }
	if !deps.HandlerStreams {
		s.sockets = sockets.New(sockets.Options{Pace: deps.Bounds.Pace, KeepAlive: deps.Bounds.KeepAlive,
			WriteTimeout: deps.Bounds.WriteTimeout, Listener: s.listener, Log: deps.Log})
	}
	var err error
	if s.metrics, err = newMetrics(deps.Metrics); err != nil {
		return nil, fmt.Errorf("router: register metrics: %w", err)
	}
	for _, g := range []struct {
		name, help string
		value      func(overload.Stats) float64
	}{
		{"docent_queue_seconds",
			"Time in which a job, follow-up, question or search that comes now is expected to have its answer begun; 0 if nobody waits.",
			func(q overload.Stats) float64 { return q.Expected.Seconds() }},
		{"docent_queue_waiting", "Jobs, follow-ups, questions and searches that wait to be worked on.",
			func(q overload.Stats) float64 { return float64(q.Waiting) }},
		{"docent_queue_working", "Jobs, follow-ups, questions and searches that are worked on, until the model is asked.",
			func(q overload.Stats) float64 { return float64(q.Working) }},
		{"docent_queue_rate",
			"Jobs, follow-ups, questions and searches that this machine gets done in a second, as lately measured while others waited.",
			func(q overload.Stats) float64 { return q.Rate }},
	} {
		gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help},
			func() float64 { return g.value(s.queue.Stats()) })
		if err := deps.Metrics.Register(gauge); err != nil {
			return nil, fmt.Errorf("router: register metrics: %w", err)
		}
	}
	s.routes = s.table()
	s.metrics.classify(s.routes)
	s.router = bunrouter.New(bunrouter.WithNotFoundHandler(s.noRoute), bunrouter.WithMethodNotAllowedHandler(s.noRoute))
	for _, r := range s.routes {
		s.router.Handle(r.method, r.pattern, s.guarded(r))
		if r.method == http.MethodGet {
			s.router.Handle(http.MethodHead, r.pattern, s.guarded(r))
		}
	}
	// The router would redirect it to a path that ends in a slash, which is none.
	s.router.Handle(http.MethodGet, "/llms/:domain", s.noRoute)
	for _, pattern := range s.crossOrigin() {
		s.router.Handle(http.MethodOptions, pattern, s.preflight(pattern))
	}
	return s, nil
}

// A route is one operation: who may call it and what serves it.
type route struct {
	method, pattern string
	access          access
	serve           func(x *exchange, req bunrouter.Request) error
}

// early reports whether its requests are refused before anything is done for them, if those who come would wait for too
// long.
func (r *route) early() bool { return r.readers() && r.method == http.MethodPost }

// readers reports whether readers call it, with an assistant key.
func (r *route) readers() bool {
	return r.access == assistant || r.access == asking || r.access == compatible
}

// takes reports whether requests of a method may be its.
func (r *route) takes(method string) bool {
	return r.method == method || r.method == http.MethodGet && method == http.MethodHead
}

// at says which operation a request is for, by which its answers have their form, errors too.
func (x *exchange) at(r *route) {
	x.route, x.page, x.openai = r.pattern, r.access == page, r.access == compatible
	if r.crossOrigin() {
		allowOrigin(x.Header())
	}
}

// crossOrigin reports whether browsers call it from pages of other origins.
func (r *route) crossOrigin() bool { return r.readers() || r.access == tools || r.access == anywhere }

// An access is what a caller must show.
type access uint8

const (
	probe      access = iota // nothing; answered however busy the service is
	open                     // nothing
	anywhere                 // nothing; called from browsers on any origin
	page                     // nothing to read; errors are pages
	agent                    // an admin key, and a project of its organization
	admin                    // an admin key; what serves it finds out whose it is
	assistant                // an assistant key, and its project's domain; called from browsers on other origins
	asking                   // the same, or an admin key that wants to know how an answer comes about
	compatible               // an assistant key, of whose project it is; called as OpenAI's operations are
	tools                    // as for assistant, or nothing if the project lets everybody use the tools
)

// table is the whole API on one screen.
func (s *Server) table() []route {
	table := []route{
		{"POST", "/v2/agent/:projectId/job", agent, s.createJob},
		{"GET", "/v2/agent/:projectId/job/:id", agent, s.readJob},
		{"POST", "/v2/agent/:projectId/job/:id/message", agent, s.followUp},
		{"GET", "/v2/agent/:projectId/job/:id/events", agent, s.jobEvents},
		{"POST", "/v2/agent/:projectId/job/:id/archive", agent, s.archiveJob},
		{"POST", "/v2/agent/:projectId/job/:id/cancel", agent, s.cancelJob},
		{"GET", "/v2/agent/:projectId/jobs", agent, s.listJobs},
		{"POST", "/v1/agent/:projectId/job", agent, s.createSession},
		{"GET", "/v1/agent/:projectId/jobs", agent, s.listSessions},
		{"GET", "/v1/agent/:projectId/job/:id", agent, s.readSession},

		{"POST", "/v1/project/update/:projectId", agent, s.startUpdate},
		{"GET", "/v1/project/update-status/:statusId", admin, s.updateStatus},
		{"GET", "/v1/analytics/:projectId/assistant", agent, s.listConversations},
		{"GET", "/v1/analytics/:projectId/assistant/threads/:threadId", agent, s.readThread},
		{"GET", "/v1/analytics/:projectId/assistant/caller-stats", agent, s.callerStats},
		{"GET", "/v1/analytics/:projectId/searches", agent, s.listSearches},
		{"GET", "/v1/analytics/:projectId/feedback", agent, s.listFeedback},
		{"GET", "/v1/analytics/:projectId/feedback/by-page", agent, s.listPageFeedback},

		{"POST", "/v1/evaluation/:projectId", agent, s.evaluate},

		{"POST", "/v1/webhook/:projectId/push", open, s.webhook},

		{"GET", "/healthz", probe, s.health},
		{"GET", "/readyz", probe, s.ready},
		{"GET", "/metrics", probe, s.showMetrics},
		{"GET", "/openapi.json", open, s.description("application/json", openapiJSON)},
		{"GET", "/openapi.yaml", open, s.description("application/yaml", openapiYAML)},
		{"GET", "/widget/:file", open, s.readWidget},
		{"GET", "/widget/settings/:domain", open, s.widgetSettings},
		{"GET", "/discovery/v1/assistant/:domain/challenge", assistant, s.challenge},
		{"POST", "/discovery/v1/contact/:domain", assistant, s.handOver},
		{"POST", "/v1/chat/completions", compatible, s.ask(stream.Completions)},
		{"POST", "/v1/responses", compatible, s.ask(stream.Responses)},
		{"POST", "/v1/ag-ui/:domain", assistant, s.ask(stream.AGUI)},
		{"GET", "/v1/models", compatible, s.listModels},
		{"GET", "/v1/models/:model", compatible, s.readModel},
		{"GET", "/llms/:domain/*file", tools, s.readLLMS}, // llms.txt, llms-full.txt, and each page as Markdown
	}
	// Earlier clients leave the prefix out.
	for _, prefix := range []string{"/discovery", ""} {
		table = append(table,
			route{"POST", prefix + "/v1/assistant/:domain/message", asking, s.ask(stream.DataStream)},
			route{"GET", prefix + "/v1/assistant/:domain/message", asking, s.resumeChat},
			route{"POST", prefix + "/v2/assistant/:domain/message", asking, s.ask(stream.UIMessages)},
			route{"GET", prefix + "/v2/assistant/:domain/message/:id/stream", asking, s.resumeStream},
			route{"POST", prefix + "/v1/search/:domain", assistant, s.searchDocs},
			route{"POST", prefix + "/v1/page/:domain", assistant, s.readPage},
			route{"POST", prefix + "/v1/feedback/:domain", assistant, s.rateAnswer},
		)
	}
	return slices.Concat(table, s.toolRoutes(), s.oauthRoutes(), s.pages())
}

// crossOrigin are the patterns that browsers call from other origins.
func (s *Server) crossOrigin() []string {
	var patterns []string
	seen := map[string]bool{}
	for _, r := range s.routes {
		if r.crossOrigin() && !seen[r.pattern] {
			seen[r.pattern] = true
			patterns = append(patterns, r.pattern)
		}
	}
	return patterns
}

// guarded is an operation behind all that a request passes before it is served.
func (s *Server) guarded(r route) bunrouter.HandlerFunc {
	successor := r.successor()
	return func(w http.ResponseWriter, req bunrouter.Request) error {
		x := w.(*exchange)
		x.at(&r)
		if successor != "" {
			s.deprecate(x, &r, successor, req)
		}
		if r.access == probe {
			return r.serve(x, req)
		}
		if err := s.admit(x, req.Request); err != nil {
			return err
		}
		if r.early() {
			// Before anything is done for it: a refusal must cost little, or refusing is all that the server does. The
			// request enters the queue when it was read and may be answered: a client that is slow to send it, or has
			// no key, keeps nobody out.
			if err := s.queue.Check(); err != nil {
				return s.queued(err)
			}
		}
		if s.isDraining() && (!safe(req.Method) || r.readers()) {
			return &api.BusyError{Kind: api.ErrShuttingDown, RetryAfter: 5 * time.Second}
		}
		var kind api.KeyKind
		switch r.access {
		case agent, admin:
			kind = api.AdminKey
		case assistant, asking, compatible, tools:
			kind = api.AssistantKey
		default:
			return r.serve(x, s.trace(x, req))
		}
		if (r.access == tools || kind == api.AssistantKey && ofTools(req.Request)) && req.Header.Get("Authorization") == "" {
			if err := s.keyless(x, req); err != nil {
				return err
			}
			if err := s.identify(x, req.Request); err != nil {
				return err
			}
			return r.serve(x, s.trace(x, req))
		}
		if err := s.authorize(x, req, kind, r.access == asking); err != nil {
			if r.readers() && req.Header.Get("Origin") != "" { // a page, whose reader is shown what it is answered
				err = forReader(err)
			}
			return err
		}
		if r.access != admin {
			if err := s.findProject(x, req); err != nil {
				return err
			}
			if err := s.identify(x, req.Request); err != nil {
				return err
			}
		}
		return r.serve(x, s.trace(x, req))
	}
}

// noRoute answers a path that the router does not know, and a method that a known path does not take: bunrouter tells
// the two apart only for paths without parameters.
func (s *Server) noRoute(w http.ResponseWriter, req bunrouter.Request) error {
	path := req.URL.EscapedPath()
	var allow []string
	for _, r := range s.routes {
		if !matches(r.pattern, path) {
			continue
		}
		if x, ok := w.(*exchange); ok {
			x.at(&r)
		}
		allow = append(allow, r.method)
		if r.method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
		if r.crossOrigin() {
			allow = append(allow, http.MethodOptions)
		}
	}
	if x, ok := w.(*exchange); ok && x.page && req.Method == http.MethodGet && wantsPage(req.Request) && len(allow) > 0 {
		// Forms act below their page: somebody has opened what a form was sent to.
		x.Header().Set("Location", pathpkg.Dir(path))
		x.WriteHeader(http.StatusSeeOther)
		return nil
	}
	if len(allow) > 0 {
		return &methodError{method: req.Method, allow: unique(allow)}
	}
	if x, ok := w.(*exchange); ok && s.Pages != nil && wantsPage(req.Request) {
		x.page = true
		return &api.StateError{Kind: api.ErrNotFound, Reason: "there is no such page"}
	}
	return &api.StateError{Kind: api.ErrNotFound, Reason: "there is no such operation; /api and /openapi.json list them"}
}

// matches reports whether a path has the form of a pattern.
func matches(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if last := len(want) - 1; strings.HasPrefix(want[last], "*") && len(have) > last {
		want, have = want[:last], have[:last]
	}
	return slices.EqualFunc(want, have, func(w, h string) bool {
		return w == h || strings.HasPrefix(w, ":") && h != ""
	})
}

// param is a path parameter as the caller meant it.
func param(req bunrouter.Request, name string) string {
	v := req.Param(name)
	if req.URL.RawPath == "" {
		return v
	}
	return unescape(v)
}

// Retire says that the service is no longer ready, while it goes on to take work: other nodes take what comes next.
// Streams end that wait for nothing that was asked.
func (s *Server) Retire() { s.retire() }

func (s *Server) isDraining() bool { return s.leaving.Err() != nil }

func (s *Server) isCut() bool { return s.cutting.Err() != nil }

func (s *Server) beginDrain() {
	s.retire()
	s.leave()
	s.queue.Close()
}

// Drain refuses new work from now on and lets running streams come to their end. When ctx ends first, it ends them:
// their readers get an error in the stream's own form, and the turns go on without them.
func (s *Server) Drain(ctx context.Context) error {
	s.beginDrain()
	if err := s.Settle(ctx); err != nil {
		s.cutStreams()
		return fmt.Errorf("drain %d streams: %w", s.openStreams(), err)
	}
	return nil
}

// Settle waits until no stream is open, and fails when ctx ends first. Work is taken meanwhile, and may open further
// streams.
func (s *Server) Settle(ctx context.Context) error {
	for s.openStreams() > 0 {
		select {
		case <-s.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close ends what the server runs beside requests. Streams that are still open end.
func (s *Server) Close() {
	s.beginDrain()
	s.cutStreams()
	if s.sockets != nil {
		s.sockets.Close()
	}
}

// What one connection may have the server hold. Proxies and browsers send far less: nginx takes heads of 32 KiB.
const (
	maxHeaderBytes = 32 << 10 // of one request, over HTTP/2 too
	maxConcurrent  = 100      // requests at once over HTTP/2
	maxFrame       = 64 << 10
	// maxHeaderFields are as many header fields as a request may have: each takes more memory than its bytes.
	maxHeaderFields = 200
)

// cutStreams ends the streams that are open.
func (s *Server) cutStreams() {
	s.cut()
	if s.sockets != nil {
		s.sockets.Cut()
	}
}

// Attach makes the server write its streams on connections of the http.Server whose handler it is, if that is
// possible, and has what net/http answers by itself put into the API's form. It is called once, before the
// http.Server serves anything. Shutdown of the http.Server closes connections that wait for their next request, and
// does not wait for streams: Drain does.
func (s *Server) Attach(server *http.Server) {
	attachConns(server)
	// A stream over HTTP/2 has its deadlines, and a connection that takes nothing in, or is gone, ends with all of them.
	server.HTTP2 = &http.HTTP2Config{WriteByteTimeout: s.Bounds.WriteTimeout, SendPingTimeout: 2 * s.Bounds.KeepAlive,
		MaxConcurrentStreams: maxConcurrent, MaxReadFrameSize: maxFrame}
	server.MaxHeaderBytes = maxHeaderBytes
	if s.sockets != nil {
		s.sockets.Attach(server)
	}
}
