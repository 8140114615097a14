// Package server runs a server: it opens the stores, starts the actors, and wires the pages, the API and everything
// that works in the background.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"docent/actors"
	"docent/actors/automation"
	"docent/actors/gaps"
	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/actors/persistent"
	"docent/actors/pulls/review"
	"docent/actors/reports"
	"docent/actors/thread"
	"docent/actors/webhooks"
	"docent/actors/written"
	"docent/agent"
	"docent/api"
	"docent/bench"
	"docent/cmd/docent/build"
	"docent/cmd/docent/config"
	"docent/cmd/docent/control"
	"docent/cmd/docent/doctor"
	"docent/cmd/docent/operator"
	"docent/cmd/docent/stores"
	"docent/forge"
	"docent/internal/background"
	"docent/internal/health"
	"docent/internal/systemd"
	"docent/internal/tracing"
	"docent/model"
	"docent/model/registry"
	"docent/model/rewrite"
	"docent/persistence/backup"
	"docent/persistence/catalog"
	"docent/persistence/cluster"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/router"
	forwarding "docent/router/forward"
	"docent/router/mcp"
	"docent/router/oauth"
	"docent/router/readertoken"
	"docent/router/reqbody"
	"docent/search"
	"docent/search/sources"
	"docent/web"
	"docent/web/people"
)

// oneThreadMore sets GOMAXPROCS to one more than the number of processors, unless the operator has set it. The
// journal's sync occupies one of these threads while it waits for the disk, and a thread whose queue of goroutines is
// never empty rarely looks at ready connections: decision 0013.
func oneThreadMore(set string) {
	if set == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Run runs the server until ctx ends, and stops it in order.
func Run(ctx context.Context, c config.Config, stderr io.Writer) error {
	log := config.NewLogger(c, stderr)
	if limit := config.MemoryLimit(c.MemoryLimit, os.Getenv("GOMEMLIMIT"), os.ReadFile); limit > 0 {
		if err := config.EnoughMemory(limit); err != nil && c.MemoryLimit == 0 {
			return err
		}
		debug.SetMemoryLimit(limit)
	}
	oneThreadMore(os.Getenv("GOMAXPROCS"))
	manager := systemd.New(log)
	started := manager.Starting("Opening " + c.Data)
	defer started()
	dir, err := datadir.Open(c.Data, datadir.Server, 10*time.Second)
	if err != nil {
		return err
	}
	defer dir.Close()
	dir.WatchCrashes(log)
	listener, err := listen(c)
	if err != nil {
		return err
	}
	defer listener.Close()
	front, err := newFront(c, dir, listener, log)
	if err != nil {
		return err
	}
	defer front.close()
	if c.PublicURL == "" {
		c.PublicURL = front.public.String()
	}
	watched, err := watch(c, log)
	if err != nil {
		return err
	}
	defer watched.close()
	address, _ := ownURL(c.Scheme(), listener.Addr())
	a, err := New(ctx, Deps{Dir: dir, Config: c, Log: log, Address: address, front: front, manager: manager})
	if err != nil {
		return err
	}
	watched.shows(a)
	if front.everywhere {
		log.Warn("links to pull requests work only on this machine: set public_url to the address that others reach it at", "url", c.PublicURL)
	}
	if from := c.From("listen"); socketActivated() && from != "" {
		log.Warn("listen is not used: systemd listens, at the address in the socket unit (systemctl edit docent.socket)",
			"address", listener.Addr().String(), "listen", c.Listen, "from", from)
	}
	a.greet(ctx, stderr)
	started()
	return a.serve(ctx, listener)
}

// greet says what an operator should know who has just started the server: variables that were meant to be settings,
// and on an empty data directory what to do next.
func (a *Server) greet(ctx context.Context, stderr io.Writer) {
	for _, line := range a.config.Removed() {
		a.Log.Warn(line)
	}
	projects, err := a.Stores.Catalog.Projects(ctx)
	if err != nil {
		a.Log.Error("list the projects", "error", err)
		return
	}
	for _, line := range a.config.UnknownVariables(os.Environ(), projects) {
		a.Log.Warn(line)
	}
	for _, doubt := range a.config.Doubts() {
		a.Log.Warn("setting "+doubt.Setting+": "+doubt.Message, "fix", doubt.Fix)
	}
	if len(projects) > 0 {
		return
	}
	next := []string{
		"docent project add docs --data " + a.config.Data + " --domain docs.example.com --source PATH-or-URL",
		"docent key create --data " + a.config.Data + " --project docs --kind assistant",
		"docent key create --data " + a.config.Data + " --project docs --kind admin",
	}
	if a.config.LogFormat == "json" { // a log goes to many places: no link that lets somebody in
		a.Log.Info("no project yet", "next", append([]string{"docent console --data " + a.config.Data}, next...))
		return
	}
	link, err := a.Operator.Link(ctx, "", operator.OperatorLink)
	if err != nil {
		a.Log.Error("make the link to the console", "error", err)
		return
	}
	fmt.Fprintf(stderr, "There is no project yet. Set one up in the console; this link signs you in once, within an hour\n"+
		"(docent console --data %s prints another one):\n\n  %s\n\n"+
		"Or add one and make its keys by command, while this server runs:\n\n  %s\n\n",
		a.config.Data, link.URL, strings.Join(next, "\n  "))
}

// A Server is everything that serves, wired.
type Server struct {
	config   config.Config
	Log      *slog.Logger
	dir      *datadir.Dir
	Stores   *stores.Stores
	Operator *operator.Service // what operators can do, by command and on pages
	nodes    membership
	members  *cluster.Members // nil if this server is alone, as are the next three
	Journal  journal.Store
	System   *actors.System
	Edge     *router.Server
	endpoint *forwarding.Endpoint
	forward  *forwarding.Forwarder
	forgets  http.Handler // removes threads, whichever node runs them
	Pages    *web.Server
	tools    *mcp.Servers
	Updates  *sources.Updates
	Tasks    *sources.Tasks
	ids      *api.IDs
	address  string // under which this machine reaches the server
	models   *registry.Registry
	backups  *backup.Keeper
	tail     *health.Tail // of the log
	probes   doctor.Probes
	tracer   *tracing.Tracer // nil while there are no traces

	drained      func(context.Context, *http.Server, net.Listener)                  // ends the edge
	counts       people.Counts                                                      // what all nodes count; nil if this server counts by itself
	usedProof    func(context.Context, string, time.Duration) (bool, func(), error) // the same of solutions
	readerTokens *readertoken.Verifier
	clients      *oauth.Server // nil without a public address that tokens may be sent to
	warmed       chan struct{} // closed once the indexes are open

	automations *automation.Runner
	starter     startjob.Starter // gives instructions to jobs from pages
	topics      *gaps.Tracker
	written     *written.Writer // nil if no model writes questions
	reports     *reports.Reports
	reviews     *review.Reviewer
	hooks       *webhooks.Hooks
	chats       chats

	front    *front       // how clients get in
	entrance http.Handler // the edge, or what has other nodes answer
	manager  *systemd.Notifier
	stops    atomic.Bool // the server is about to end

	listings []*catalog.Projector
	upkeep   upkeep

	work       context.Context // ends when jobs and turns must stop
	CancelWork context.CancelFunc
	closers    []func() error // in the order of opening
}

// Deps are what a server is made of. Only one that serves clients has an address, a front and a manager.
type Deps struct {
	Dir     *datadir.Dir
	Config  config.Config
	Log     *slog.Logger
	Address string            // under which this machine reaches the server
	front   *front            // how clients get in
	manager *systemd.Notifier // who started the server
}

// New opens the stores, the journal and the actors, and builds the edge. What is pending wakes in the background.
func New(ctx context.Context, d Deps) (_ *Server, err error) {
	a := &Server{config: d.Config, dir: d.Dir, address: d.Address, front: d.front, manager: d.manager, tail: new(health.Tail)}
	log := traced(a.alsoKept(d.Log))
	a.Log = log
	a.upkeep.began = time.Now()
	a.work, a.CancelWork = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			a.CancelWork()
			err = errors.Join(err, a.Close())
		}
	}()
	metrics := prometheus.NewRegistry()
	a.upkeep.metrics = metrics
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		bench.AnonymousMemory())
	if err := a.openTracing(); err != nil {
		return nil, err
	}
	if a.front != nil && a.front.certs != nil {
		metrics.MustRegister(a.front.certs)
	}

	if err := a.openStorage(ctx); err != nil {
		return nil, err
	}
	if a.warmed = make(chan struct{}); a.front != nil {
		a.background(func(ctx context.Context) { // beside all that follows
			defer close(a.warmed)
			a.Stores.Library.Warm(ctx)
		})
	}
	c := a.config
	if err := a.startListings(); err != nil {
		return nil, fmt.Errorf("start the listings: %w", err)
	}
	if err := a.settle(ctx); err != nil {
		return nil, err
	}
	a.upkeep.pending = a.Journal.Stats().Pending

	connected, err := a.Stores.Catalog.LanguageModels(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the models: %w", err)
	}
	models, err := registry.New(config.WithConnected(c, connected, a.Stores.Secrets.Read))
	if err != nil {
		return nil, fmt.Errorf("set up the models: %w", err)
	}
	editor, err := newEditor(c, a.dir, models, a.Stores.Library, operator.Repositories{Hub: a.Stores.Hub}, a.Stores.Source.Files, log)
	if err != nil {
		return nil, fmt.Errorf("set up the agent: %w", err)
	}
	docs := sources.Documents{Library: a.Stores.Library, Reader: a.Stores.Source}
	deps := actorLimits(c)
	deps.Model, deps.Rewriter = models, rewrite.New(models)
	deps.Tracer = a.tracer
	deps.Journal, deps.Projects, deps.Log, deps.Now, deps.Context = a.Journal, a.Stores.Catalog, log, c.Now, a.work
	deps.Place = a.nodes
	deps.Editor, deps.Forge, deps.Searcher, deps.Pages = editor, treeForge{a.Stores.Hub}, docs, docs
	if a.System, err = actors.Start(ctx, deps); err != nil {
		return nil, fmt.Errorf("start the actors: %w", err)
	}
	a.closers = append(a.closers, a.stopActors)
	a.backups = a.newBackups()
	models.Count(&a.Stores.Embeds)
	metrics.MustRegister(a.System, a.Journal, models, a.Stores.Library, a.Stores.Catalog, a.Stores.Source, processFigures{a})
	a.models = models

	ids, err := a.openAutomations(ctx, docs)
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, func() error { a.backups.Close(); return nil })
	a.Operator = a.newOperations()
	secret, err := a.Stores.Catalog.Secret(ctx, operator.SessionSecret)
	if err != nil {
		return nil, fmt.Errorf("read the secret of session cookies: %w", err)
	}
	if a.Pages, err = a.newPages(secret); err != nil {
		return nil, err
	}
	a.openChats(secret)
	if err := a.openEdge(ids, docs, secret, metrics); err != nil {
		return nil, err
	}
	a.openForward()
	return a, nil
}

// openEdge opens what clients of the API speak to.
func (a *Server) openEdge(ids *api.IDs, docs sources.Documents, secret []byte, metrics *prometheus.Registry) (err error) {
	c, log := a.config, a.Log
	a.tools = mcp.New(mcp.Deps{Pages: a.Stores.Library, Log: log, Tracer: a.tracer, Version: build.Get().Version,
		Secret: secret, Node: c.NodeID, Elsewhere: a.sessionAt, ClientShare: c.MaxClientShare, Unlimited: c.UnlimitedClient()})
	a.closers = append(a.closers, func() error { a.tools.Close(); return nil })
	var about func(http.ResponseWriter, *http.Request) error
	if a.front != nil {
		manual := &manualAssistant{app: a}
		a.closers = append(a.closers, manual.close)
		about = manual.serve
	}
	a.Edge, err = router.New(router.Deps{
		Now: c.Now, IDs: ids,
		Jobs: a.System.Jobs(), Threads: a.System.Threads(), Catalog: a.Stores.Catalog,
		Quotas: a.Journal.Quotas(), Claims: a.Journal, Documents: docs, Models: a.models,
		Updates: a.Updates, Pushes: a.automations, Reviews: a.reviews, Analytics: a.Stores.Catalog, Pages: a.Pages,
		Tools: a.tools, Readers: a.readerTokens, OAuth: a.clients, Further: a.chats.routes(), UsedProof: a.usedProof,
		Log: log, Metrics: metrics, Tracer: a.tracer, Parents: router.Parents(c.Tracing.Parents), Version: build.Get().Version, Secret: secret, PublicURL: c.PublicURL,
		HSTS: c.StrictTransport(), Limits: c.Limits, TrustedProxies: config.Prefixes(c.TrustedProxies), MetricsFrom: config.Prefixes(c.MetricsFrom),
		ClientShare: c.MaxClientShare, Unlimited: config.Prefixes(c.Unlimited),
		Ready: a.ready,
		Bounds: router.Bounds{BodyBytes: c.MaxBody, Requests: c.MaxRequests, Streams: c.MaxStreams,
			Pace: c.StreamPace.Duration},

		Manual: about, HandlerStreams: c.StreamWriter == config.WriterHandler, Together: a.nodes.Several(),
	})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { a.Edge.Close(); return nil })
	return nil
}

// newOperations are what operators can do with this server.
func (a *Server) newOperations() *operator.Service {
	return operator.New(a.Stores, &operator.Running{
		Log: a.Log, Work: a.work, Address: a.address, Journal: a.Journal, System: a.System, Listings: a.listings,
		Automations: a.automations, Hooks: a.hooks, Updates: a.Updates, Tasks: a.Tasks, Models: a.models, Backups: a.backups,
		Tail: a.tail, Probes: &a.probes, Status: a.Status, Forget: a.forget,
		Cluster: a.nodes.Status,
		Evaluate: func(ctx context.Context, p api.Project, e reqbody.Evaluation) ([]router.EvaluatedAnswer, error) {
			return a.Edge.Evaluate(ctx, p, e) // the edge has the pages, which have these operations
		},
	})
}

// openStorage opens what keeps things: the stores, where there are several nodes this one's place among them, and the
// journal.
func (a *Server) openStorage(ctx context.Context) (err error) {
	if a.config.Shared() {
		a.config.NodeID = cluster.NewID()
	}
	if a.Stores, err = stores.Open(ctx, a.dir, a.config, a.Log); err != nil {
		return err
	}
	a.closers = append(a.closers, a.Stores.Close)
	a.Stores.Sweep(ctx, a.Log)
	if err := a.join(ctx); err != nil {
		return err
	}
	if a.Journal, err = stores.OpenJournal(ctx, a.dir, &a.config, func(reason string) { a.members.End(reason) }, a.Log); err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	a.closers = append(a.closers, a.Journal.Close)
	unpair, err := stores.Pair(ctx, a.dir, a.Journal, a.Stores.Catalog)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { unpair(); return nil })
	return nil
}

// openAutomations makes what reads documentation and starts jobs by itself, and the ids of new ones.
func (a *Server) openAutomations(ctx context.Context, docs sources.Documents) (*api.IDs, error) {
	a.Updates, a.Tasks = sources.NewUpdates(a.Stores.Source, a.System.Tasks()), sources.NewTasks(a.config.Now, a.Log)
	a.closers = append(a.closers, a.Tasks.Close)
	newest, err := a.Stores.Catalog.NewestJob(ctx)
	if err != nil {
		return nil, err
	}
	ids := a.newIDs()
	a.ids = ids
	ids.After(api.JobPrefix, string(newest)) // listings are in the order of ids, whatever the clock says
	a.automations, err = automation.New(automation.Deps{
		Catalog: a.Stores.Catalog, Jobs: a.knownJobs(), Claims: a.Journal, Documentation: operator.Repositories{Hub: a.Stores.Hub}, Code: a.Stores.Hub,
		Updates: a.Updates, Owns: a.nodes.Owns, IDs: ids, Now: a.config.Now, Log: a.Log, Stored: a.Stores.Secrets.Read,
		Tasks: a.System.Tasks(),
	})
	if err != nil {
		return nil, err
	}
	a.Stores.Source.Listen(a.automations.DocumentationAt)
	return ids, a.openInsights(ids, docs)
}

// alsoKept is a log whose newest records the console can show as well.
func (a *Server) alsoKept(log *slog.Logger) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(a.config.LogLevel)) // validated
	return slog.New(slog.NewMultiHandler(log.Handler(), a.tail.Handler(level)))
}

// actorLimits are the actors' limits, which are settings.
func actorLimits(c config.Config) actors.Deps {
	return actors.Deps{
		Idle: c.IdleAfter.Duration, RunningJobs: c.MaxRunningJobs, OpenJobs: c.MaxOpenJobs, RunningTurns: c.MaxTurns,
		RunLimit: c.JobTimeout.Duration, Patience: c.JobPatience.Duration, TurnLimit: c.TurnTimeout.Duration,
		AnswerBudget: model.Budget{Tokens: c.AnswerTokens, Cost: c.AnswerCost * 10_000}, // a cent is 10,000 millionths of a dollar
	}
}

// startListings lets the listings of jobs and of questions follow the journal.
func (a *Server) startListings() error {
	list, err := stores.NewListings(a.Stores.Catalog, a.Journal, a.Log)
	for _, l := range list {
		a.listings = append(a.listings, l.Projector)
		a.closers = append(a.closers, func() error { l.End(); return nil })
		a.background(func(ctx context.Context) { cluster.RunExclusive(ctx, a.nodes, "task/listing/"+l.Name(), l.Run) })
	}
	return err
}

// mostWarming is how long requests wait at the start for the indexes to be open.
const mostWarming = 2 * time.Second

// background runs f until the server closes. What was opened before f began is closed after it has ended.
func (a *Server) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running background.Work
	running.Go("cmd/docent/server.background", func() { f(ctx) })
	a.closers = append(a.closers, func() error {
		cancel()
		running.Wait()
		return nil
	})
}

// serve accepts requests until ctx ends, then stops: no new work, streams drain, actors stop, stores close.
func (a *Server) serve(ctx context.Context, listener net.Listener) (err error) {
	a.catchUp(ctx)
	stopControl := a.control(ctx)
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	var followed background.Work
	followed.Essential("follow sources", func() { a.Stores.Source.Follow(following, a.config.PollInterval.Duration) })
	server := &http.Server{
		Handler: a.closing(a.probes.Before(a.entrance)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
	}
	a.Edge.Attach(server)
	select {
	case <-a.warmed:
	case <-time.After(mostWarming):
	case <-ctx.Done():
	}
	failed := make(chan error, 1)
	background.Essential("serve clients", func() { failed <- server.Serve(a.front.connections(a.Edge, listener)) })
	a.background(a.front.keep)
	a.closers = append(a.closers, a.System.Tasks().Close) // before what they work with
	a.upkeep.begin(a)
	if a.written != nil {
		a.written.Start()
	}
	a.System.Tasks().Start(pullCheck{a}.task())
	a.background(a.together)
	if a.forward != nil {
		a.forward.Open()
	}
	a.run()
	a.Log.Info("serving", "address", listener.Addr().String(), "url", a.config.PublicURL, "data", a.config.Data)
	stopWatch := a.announce()
	defer stopWatch()

	select {
	case <-ctx.Done():
		a.Log.Info("stopping", "drain", a.config.DrainTimeout.Duration)
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	case <-a.nodes.Evicted():
		return a.givenUp()
	}
	a.leaving()
	a.chats.slack.Leave()
	drain, cancel := context.WithTimeout(context.Background(), a.config.DrainTimeout.Duration)
	defer cancel()
	a.drained(drain, server, listener)
	stopControl()
	stopFollowing()
	followed.Wait()
	a.CancelWork()
	err = errors.Join(err, a.Close())
	a.Log.Info("stopped")
	return err
}

// control lets the operator's commands reach this process until the returned function is called. Where that cannot be,
// as on a full disk, it tries again: readers can be served without it.
func (a *Server) control(ctx context.Context) (stop func()) {
	stop, err := control.Serve(a.dir, a.Operator.Run, a.Log)
	if err == nil {
		return stop
	}
	a.Log.Error("operator commands cannot reach this server yet", "error", err)
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan func(), 1)
	background.Go("cmd/docent/server.control", func() {
		for {
			select {
			case <-ctx.Done():
				stopped <- func() {}
				return
			case <-time.After(controlRetry):
				if stop, err := control.Serve(a.dir, a.Operator.Run, a.Log); err == nil {
					stopped <- stop
					return
				}
			}
		}
	})
	return func() {
		cancel()
		(<-stopped)()
	}
}

// controlRetry is how long after a failure the operator's commands are listened for again.
const controlRetry = 2 * time.Second

func (a *Server) stopActors() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return a.System.Stop(ctx)
}

// Close closes what is open, in the reverse order.
func (a *Server) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	return errors.Join(errs...)
}

// treeForge gives the job's port the tree as an interface.
type treeForge struct{ *forge.Hub }

func (f treeForge) Tree(ctx context.Context, p api.Project, commit string) (agent.Tree, error) {
	return f.Hub.Tree(ctx, p, commit)
}

// Each port with what serves it.
var (
	_ agent.History            = (*forge.Tree)(nil)
	_ agent.Linked             = (*forge.Tree)(nil)
	_ job.Forge                = treeForge{}
	_ job.Editor               = (*agent.Agent)(nil)
	_ persistent.Journal       = journal.Store(nil)
	_ thread.Searcher          = sources.Documents{}
	_ thread.Model             = (*registry.Registry)(nil)
	_ persistent.Projects      = (*catalog.Catalog)(nil)
	_ forge.PullStore          = (*catalog.Catalog)(nil)
	_ search.Tree              = (*forge.Tree)(nil)
	_ sources.Catalog          = (*catalog.Catalog)(nil)
	_ sources.Repositories     = (*forge.Hub)(nil)
	_ sources.Index            = (*search.Library)(nil)
	_ router.Catalog           = (*catalog.Catalog)(nil)
	_ router.Quotas            = journal.Quotas(nil)
	_ router.Documents         = sources.Documents{}
	_ router.Pages             = (*web.Server)(nil)
	_ router.Tools             = (*mcp.Servers)(nil)
	_ mcp.Pages                = (*search.Library)(nil)
	_ router.Threads           = (*actors.Threads)(nil)
	_ router.Analytics         = (*catalog.Catalog)(nil)
	_ router.Updates           = (*sources.Updates)(nil)
	_ router.Models            = (*registry.Registry)(nil)
	_ router.Pushes            = (*automation.Runner)(nil)
	_ router.Reviews           = (*review.Reviewer)(nil)
	_ automation.Catalog       = (*catalog.Catalog)(nil)
	_ automation.Documentation = operator.Repositories{}
	_ automation.Updates       = (*sources.Updates)(nil)
)
