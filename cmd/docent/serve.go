package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/persistent"
	"docent/actors/thread"
	"docent/agent"
	"docent/api"
	"docent/automation"
	"docent/backup"
	"docent/bench"
	"docent/cluster"
	forwarding "docent/cluster/forward"
	"docent/control"
	"docent/datadir"
	"docent/doctor"
	"docent/forge"
	"docent/gaps/tracker"
	"docent/health"
	"docent/ingest"
	"docent/mcp"
	"docent/model"
	"docent/model/registry"
	"docent/model/remote"
	"docent/model/rewrite"
	"docent/model/scripted"
	"docent/outcomes"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/review"
	"docent/router"
	"docent/search"
	"docent/startjob"
	"docent/systemd"
	"docent/tracing"
	"docent/web"
	"docent/webhooks"
	"docent/weekly"
)

func newServeCommand(prog program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: datadir.Server, Short: "Run the server in the foreground", Args: cobra.NoArgs,
		Long: "Run the server in the foreground. SIGTERM or Ctrl-C stops it gently: open streams may finish, up to drain_timeout.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := LoadConfig(file, os.LookupEnv, cmd.Flags())
			if err != nil {
				return err
			}
			return serve(cmd.Context(), prog.configured(c), cmd.ErrOrStderr())
		},
	}
	settingFlags(cmd, &file)
	return cmd
}

func newLogger(c Config, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // validated
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		options.ReplaceAttr = inSeconds
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// inSeconds has durations in a unit that machines can compare; slog's own is the nanosecond.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// oneThreadMore sets GOMAXPROCS to one more than the number of processors, unless the operator has set it. The
// journal's sync occupies one of these threads while it waits for the disk, and a thread whose queue of goroutines is
// never empty rarely looks at ready connections: decision 0013.
func oneThreadMore(set string) {
	if set == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// serve runs the server until ctx ends, and stops it in order.
func serve(ctx context.Context, c Config, stderr io.Writer) error {
	log := newLogger(c, stderr)
	if limit := memoryLimit(c.MemoryLimit, os.Getenv("GOMEMLIMIT"), os.ReadFile); limit > 0 {
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
	everywhere := false
	if c.PublicURL == "" {
		c.PublicURL, everywhere = front.publicURL(listener.Addr())
	}
	operator, err := watch(c, log)
	if err != nil {
		return err
	}
	defer operator.close()
	a, err := newApp(ctx, dir, c, log)
	if err != nil {
		return err
	}
	operator.shows(a)
	if everywhere {
		log.Warn("links to pull requests work on this machine only: set public_url to the address under which others reach it", "url", c.PublicURL)
	}
	if from := c.from["listen"]; socketActivated() && from != "" {
		log.Warn("listen is not used: systemd listens, at the address in the socket unit (systemctl edit docent.socket)",
			"address", listener.Addr().String(), "listen", c.Listen, "from", from)
	}
	a.greet(ctx, stderr)
	a.manager = manager
	a.front = front
	if err := front.attach(a); err != nil {
		a.cancelWork()
		return errors.Join(err, a.close())
	}
	started()
	return a.serve(ctx, listener)
}

// ownURL is the address under which this machine reaches a listener. One that listens on all of the machine's
// addresses has none that a link could begin with; it also listens where the machine calls itself.
func ownURL(scheme string, addr net.Addr) (url string, everywhere bool) {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return scheme + net.JoinHostPort("localhost", strconv.Itoa(tcp.Port)), true
	}
	return scheme + addr.String(), false
}

// greet says what an operator should know who has just started the server: variables that were meant to be settings,
// and on an empty data directory what to do next.
func (a *app) greet(ctx context.Context, stderr io.Writer) {
	for _, line := range a.config.deprecations() {
		a.log.Warn(line)
	}
	projects, err := a.stores.catalog.Projects(ctx)
	if err != nil {
		a.log.Error("list the projects", "error", err)
		return
	}
	for _, line := range a.config.unknownVariables(os.Environ(), projects) {
		a.log.Warn(line)
	}
	for _, doubt := range a.config.doubts() {
		a.log.Warn("setting "+doubt.Setting+": "+doubt.Message, "fix", doubt.Fix)
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
		a.log.Info("there is no project yet", "next", append([]string{"docent console --data " + a.config.Data}, next...))
		return
	}
	ops := a.stores.operations()
	ops.app = a
	link, err := ops.link(ctx, "", operatorLink)
	if err != nil {
		a.log.Error("make the link to the console", "error", err)
		return
	}
	fmt.Fprintf(stderr, "There is no project yet. Set one up in the console; this link lets you in once, within an hour\n"+
		"(docent console --data %s prints another one):\n\n  %s\n\n"+
		"Or add one and make its keys by command, while this server runs:\n\n  %s\n\n",
		a.config.Data, link.URL, strings.Join(next, "\n  "))
}

// An app is every room, wired.
type app struct {
	config  Config
	log     *slog.Logger
	dir     *datadir.Dir
	stores  *stores
	nodes   *cluster.Members // nil where this server is alone
	journal journal.Store
	system  *actors.System
	edge    *router.Server
	forward *forwarding.Forwarder // nil where this server is alone
	forgets http.Handler          // removes threads, whichever node runs them; nil where this server is alone
	pages   *web.Server
	tools   *mcp.Servers
	updates *ingest.Updates
	tasks   *ingest.Tasks
	ids     *api.IDs
	address string // under which this machine reaches the server
	models  *registry.Registry
	backups *backup.Keeper
	tail    *health.Tail // of the log
	probes  doctor.Probes
	tracer  *tracing.Tracer // nil while there are no traces

	automations *automation.Runner
	starter     startjob.Starter // gives instructions to jobs from pages
	topics      *tracker.Tracker
	reports     *weekly.Reports
	reviews     *review.Reviewer
	hooks       *webhooks.Hooks

	front    *front       // how clients get in
	entrance http.Handler // the edge, or what has other nodes answer
	manager  *systemd.Notifier
	stops    atomic.Bool // the server is about to end

	listings []*catalog.Projector
	rows     thread.Rows // of the listing of questions
	upkeep   upkeep

	work       context.Context // ends when jobs and turns must stop
	cancelWork context.CancelFunc
	closers    []func() error // in the order of opening
}

// newApp opens the stores, the journal and the actors, and builds the edge. What is pending wakes in the background.
func newApp(ctx context.Context, dir *datadir.Dir, c Config, log *slog.Logger) (_ *app, err error) {
	a := &app{config: c, dir: dir, tail: new(health.Tail)}
	log = traced(a.alsoKept(log))
	a.log = log
	a.upkeep.began = time.Now()
	a.work, a.cancelWork = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			a.cancelWork()
			err = errors.Join(err, a.close())
		}
	}()
	metrics := prometheus.NewRegistry()
	a.upkeep.metrics = metrics
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		bench.AnonymousMemory())
	if err := a.openTracing(); err != nil {
		return nil, err
	}

	if err := a.openStorage(ctx); err != nil {
		return nil, err
	}
	c = a.config
	if err := a.startListings(); err != nil {
		return nil, fmt.Errorf("start the listings: %w", err)
	}
	if err := a.settle(ctx); err != nil {
		return nil, err
	}
	a.upkeep.pending = a.journal.Stats().Pending

	models, err := registry.New(modelConfig(c))
	if err != nil {
		return nil, fmt.Errorf("set up the models: %w", err)
	}
	editor, err := newEditor(c, dir, models, a.stores.library, log)
	if err != nil {
		return nil, fmt.Errorf("set up the agent: %w", err)
	}
	docs := ingest.Documents{Library: a.stores.library, Reader: a.stores.source}
	deps := actorLimits(c)
	deps.Model, deps.Rewriter = models, rewrite.New(models)
	deps.Tracer = a.tracer
	if a.nodes != nil {
		deps.Place = a.nodes
		metrics.MustRegister(a.nodes)
	}
	deps.Journal, deps.Projects, deps.Log, deps.Now, deps.Context = a.journal, a.stores.catalog, log, c.now, a.work
	deps.Editor, deps.Forge, deps.Searcher, deps.Pages = editor, treeForge{a.stores.hub}, docs, docs
	if a.system, err = actors.Start(ctx, deps); err != nil {
		return nil, fmt.Errorf("start the actors: %w", err)
	}
	a.closers = append(a.closers, a.stopActors)
	a.backups = a.newBackups()
	models.Count(&a.stores.embeds)
	metrics.MustRegister(a.system, a.journal, models, a.stores.library, a.stores.catalog, a.stores.source, processFigures{a})
	a.models = models

	ids, err := a.openAutomations(ctx, docs)
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, func() error { a.backups.Close(); return nil })
	secret, err := a.stores.catalog.Secret(ctx, "session-cookies")
	if err != nil {
		return nil, fmt.Errorf("read the secret of session cookies: %w", err)
	}
	if a.pages, err = a.newPages(secret); err != nil {
		return nil, err
	}
	a.tools = mcp.New(mcp.Deps{Pages: a.stores.library, Log: log, Tracer: a.tracer, Version: buildVersion().Version,
		Node: c.nodeID, Elsewhere: a.sessionAt})
	a.closers = append(a.closers, func() error { a.tools.Close(); return nil })
	a.edge, err = router.New(router.Deps{
		Now: c.now, IDs: ids,
		Jobs: a.system.Jobs(), Threads: a.system.Threads(), Catalog: a.stores.catalog,
		Quotas: a.journal.Quotas(), Claims: a.journal, Documents: docs, Models: models,
		Updates: a.updates, Pushes: a.automations, Reviews: a.reviews, Analytics: a.stores.catalog, Pages: a.pages,
		Tools: a.tools, UsedProof: takeProof(a.stores.catalog.Counts()),
		Log: log, Metrics: metrics, Tracer: a.tracer, Parents: router.Parents(c.Tracing.Parents), Version: buildVersion().Version, Secret: secret, PublicURL: c.PublicURL,
		HSTS: c.HSTS.Duration, Limits: c.Limits, TrustedProxies: prefixes(c.TrustedProxies), MetricsFrom: prefixes(c.MetricsFrom),
		Ready: a.stores.catalog.Ping,
		Bounds: router.Bounds{BodyBytes: c.MaxBody, Requests: c.MaxRequests, Streams: c.MaxStreams,
			Pace: c.StreamPace.Duration},

		HandlerStreams: c.StreamWriter == writerHandler, Together: a.nodes != nil,
	})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, func() error { a.edge.Close(); return nil })
	if err := a.openForward(); err != nil {
		return nil, err
	}
	return a, nil
}

// openStorage opens what keeps things: the stores, where there are several nodes this one's place among them, and the
// journal.
func (a *app) openStorage(ctx context.Context) (err error) {
	if a.config.shared() {
		a.config.nodeID = cluster.NewID()
	}
	if a.stores, err = openStores(ctx, a.dir, a.config, a.log); err != nil {
		return err
	}
	a.closers = append(a.closers, a.stores.Close)
	a.stores.sweep(ctx, a.log)
	if err := a.join(ctx); err != nil {
		return err
	}
	if a.stores.nodes != nil {
		if err := a.stores.nodes.Among(ctx, sourceNodes{a.nodes}); err != nil {
			return err
		}
	}
	if a.journal, err = openJournal(ctx, a.dir, &a.config, a.nodes, a.log); err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	a.closers = append(a.closers, a.journal.Close)
	unpair, err := pair(ctx, a.dir, a.journal, a.stores.catalog)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { unpair(); return nil })
	return nil
}

// openAutomations makes what reads documentation and starts jobs by itself, and the ids of new ones.
func (a *app) openAutomations(ctx context.Context, docs ingest.Documents) (*api.IDs, error) {
	a.updates, a.tasks = ingest.NewUpdates(a.stores.source), ingest.NewTasks(a.config.now, a.log)
	a.updates.Here = a.here()
	a.closers = append(a.closers, a.updates.Close, a.tasks.Close)
	newest, err := a.stores.catalog.NewestJob(ctx)
	if err != nil {
		return nil, err
	}
	ids := a.newIDs()
	a.ids = ids
	ids.After(api.JobPrefix, string(newest)) // listings are in the order of ids, whatever the clock says
	a.automations, err = automation.New(automation.Deps{
		Catalog: a.stores.catalog, Jobs: a.knownJobs(), Claims: a.journal, Documentation: repositories{a.stores.hub},
		Updates: a.updates, Here: a.here(), IDs: ids, Now: a.config.now, Log: a.log, Stored: a.stores.secrets.Read,
	})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, a.automations.Close)
	a.stores.source.Listen(a.automations.DocumentationAt)
	return ids, a.openInsights(ids, docs)
}

// alsoKept is a log whose newest records the console can show as well.
func (a *app) alsoKept(log *slog.Logger) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(a.config.LogLevel)) // validated
	return slog.New(slog.NewMultiHandler(log.Handler(), a.tail.Handler(level)))
}

// actorLimits are the actors' limits, which are settings.
func actorLimits(c Config) actors.Deps {
	return actors.Deps{
		Idle: c.IdleAfter.Duration, RunningJobs: c.MaxRunningJobs, OpenJobs: c.MaxOpenJobs, RunningTurns: c.MaxTurns,
		RunLimit: c.JobTimeout.Duration, TurnLimit: c.TurnTimeout.Duration,
		AnswerBudget: model.Budget{Tokens: c.AnswerTokens, Cost: c.AnswerCost * 10_000}, // a cent is 10,000 millionths of a dollar
	}
}

// startListings lets the listings of jobs and of questions follow the journal.
func (a *app) startListings() error {
	jobs, err := a.journal.Follow(catalog.JobListing)
	if err != nil {
		return err
	}
	a.follow(catalog.NewProjector(a.stores.catalog, jobs, a.jobRow, a.log), jobs.Close)
	threads, err := a.journal.Follow(catalog.QuestionListing)
	if err != nil {
		return err
	}
	a.follow(catalog.NewThreadProjector(a.stores.catalog, threads, a.threadRow, a.log), threads.Close)
	return nil
}

func (a *app) follow(projector *catalog.Projector, end func()) {
	a.listings = append(a.listings, projector)
	a.closers = append(a.closers, func() error { end(); return nil })
	a.background(func(ctx context.Context) { a.nodes.Alone(ctx, "task/listing/"+projector.Name(), projector.Run) })
}

// background runs f until the app closes. What was opened before f began is closed after it has ended.
func (a *app) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	a.closers = append(a.closers, func() error {
		cancel()
		running.Wait()
		return nil
	})
}

// serve accepts requests until ctx ends, then stops: no new work, streams drain, actors stop, stores close.
func (a *app) serve(ctx context.Context, listener net.Listener) (err error) {
	a.address, _ = ownURL(a.config.scheme(), listener.Addr())
	a.catchUp(ctx)
	stopControl := a.control(ctx)
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	var followed sync.WaitGroup
	followed.Go(func() { a.stores.source.Follow(following, a.config.PollInterval.Duration) })
	server := &http.Server{
		Handler: a.closing(a.probes.Before(a.entrance)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	a.edge.Attach(server)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(a.front.connections(a.edge, listener)) }()
	a.background(a.front.keep)
	a.upkeep.begin(a)
	a.updates.Resume()
	a.automations.Start()
	a.reports.Start()
	a.reviews.Start()
	a.hooks.Start()
	a.background(a.topics.Warm)
	a.background((&outcomes.Teller{Catalog: a.stores.catalog, Jobs: a.system.Jobs(), Changed: a.stores.turned, Log: a.log,
		Here: a.here()}).Run)
	a.background(a.together)
	if err := a.listenToNodes(); err != nil {
		return errors.Join(err, server.Close(), a.close())
	}
	a.run()
	a.log.Info("serving", "address", listener.Addr().String(), "url", a.config.PublicURL, "data", a.config.Data)
	stopWatch := a.announce()
	defer stopWatch()

	select {
	case <-ctx.Done():
		a.log.Info("stopping", "drain", a.config.DrainTimeout.Duration)
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	case <-a.nodes.Given():
		return a.givenUp()
	}
	a.leaving()
	drain, cancel := context.WithTimeout(context.Background(), a.config.DrainTimeout.Duration)
	defer cancel()
	if a.nodes != nil {
		a.drainNode(drain, server, listener)
	} else {
		a.drain(drain, server, listener)
	}
	a.leave()
	stopControl()
	stopFollowing()
	followed.Wait()
	a.cancelWork()
	err = errors.Join(err, a.close())
	a.log.Info("stopped")
	return err
}

// control lets the operator's commands reach this process until the returned function is called. Where that cannot be,
// as on a full disk, it tries again: readers can be served without it.
func (a *app) control(ctx context.Context) (stop func()) {
	ops := a.stores.operations()
	ops.app = a
	stop, err := control.Serve(a.dir, ops.run, a.log)
	if err == nil {
		return stop
	}
	a.log.Error("the operator's commands cannot reach this server yet", "error", err)
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan func(), 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				stopped <- func() {}
				return
			case <-time.After(controlRetry):
				if stop, err := control.Serve(a.dir, ops.run, a.log); err == nil {
					stopped <- stop
					return
				}
			}
		}
	}()
	return func() {
		cancel()
		(<-stopped)()
	}
}

// controlRetry is how long after a failure the operator's commands are listened for again.
const controlRetry = 2 * time.Second

func (a *app) stopActors() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return a.system.Stop(ctx)
}

// close closes what is open, in the reverse order.
func (a *app) close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	return errors.Join(errs...)
}

// jobRow is a job's line in the listings, from its journal.
func (a *app) jobRow(_ context.Context, stream string) (api.JobRow, bool, error) {
	recovered, err := a.journal.Load(stream)
	if err != nil {
		return api.JobRow{}, false, err
	}
	return job.Row(api.JobID(strings.TrimPrefix(stream, job.Stream(""))), recovered)
}

// threadRow is a thread as analytics see it, from its journal.
func (a *app) threadRow(_ context.Context, stream string, since uint64) (api.ThreadRow, bool, error) {
	id := api.ThreadID(strings.TrimPrefix(stream, thread.Stream("")))
	first, events, err := a.journal.LoadSince(stream, since)
	if err != nil {
		return api.ThreadRow{}, false, err
	}
	if row, ok := a.rows.Changed(id, first, events); ok {
		return row, true, nil
	}
	recovered, err := a.journal.Load(stream)
	if err != nil {
		return api.ThreadRow{}, false, err
	}
	return a.rows.Whole(id, recovered)
}

// treeForge gives the job's port the tree as an interface.
type treeForge struct{ *forge.Hub }

func (f treeForge) Tree(ctx context.Context, p api.Project, commit string) (agent.Tree, error) {
	return f.Hub.Tree(ctx, p, commit)
}

// repositories give automations what they need of the documentation's repositories.
type repositories struct{ *forge.Hub }

func (r repositories) File(ctx context.Context, p api.Project, path string) ([]byte, string, error) {
	tip, _, err := r.Sync(ctx, p, func(string) {})
	if err != nil {
		return nil, "", err
	}
	tree, err := r.Tree(ctx, p, tip.Commit)
	if err != nil {
		return nil, "", err
	}
	data, err := tree.Read(ctx, path)
	return data, tip.Commit, err
}

func (r repositories) PullState(ctx context.Context, p api.Project, branch string) (api.PullState, error) {
	tip, err := r.Tip(ctx, p, branch)
	return tip.Pull, err
}

// Each port with what serves it.
var (
	_ agent.History            = (*forge.Tree)(nil)
	_ agent.Linked             = (*forge.Tree)(nil)
	_ job.Forge                = treeForge{}
	_ job.Editor               = (*agent.Agent)(nil)
	_ persistent.Journal       = journal.Store(nil)
	_ thread.Searcher          = ingest.Documents{}
	_ thread.Model             = (*registry.Registry)(nil)
	_ persistent.Projects      = (*catalog.Catalog)(nil)
	_ forge.PullStore          = (*catalog.Catalog)(nil)
	_ search.Tree              = (*forge.Tree)(nil)
	_ ingest.Catalog           = (*catalog.Catalog)(nil)
	_ ingest.Repositories      = (*forge.Hub)(nil)
	_ ingest.Index             = (*search.Library)(nil)
	_ router.Catalog           = (*catalog.Catalog)(nil)
	_ router.Quotas            = journal.Quotas(nil)
	_ router.Claims            = journal.Store(nil)
	_ router.Documents         = ingest.Documents{}
	_ router.Pages             = (*web.Server)(nil)
	_ router.Tools             = (*mcp.Servers)(nil)
	_ mcp.Pages                = (*search.Library)(nil)
	_ router.Threads           = (*actors.Threads)(nil)
	_ router.Analytics         = (*catalog.Catalog)(nil)
	_ router.Updates           = (*ingest.Updates)(nil)
	_ router.Models            = (*registry.Registry)(nil)
	_ router.Pushes            = (*automation.Runner)(nil)
	_ router.Reviews           = (*review.Reviewer)(nil)
	_ automation.Catalog       = (*catalog.Catalog)(nil)
	_ automation.Claims        = journal.Store(nil)
	_ automation.Documentation = repositories{}
	_ automation.Jobs          = (*actors.Jobs)(nil)
	_ automation.Updates       = (*ingest.Updates)(nil)
)

func modelConfig(c Config) registry.Config {
	out := registry.Config{Default: c.Model, Aliases: maps.Clone(c.ModelAliases)}
	if _, taken := out.Aliases[agent.Rules]; !taken {
		if out.Aliases == nil {
			out.Aliases = map[string]string{}
		}
		out.Aliases[agent.Rules] = model.Builtin // which a job reports that the built-in instructions carried out
	}
	for name, m := range c.Models {
		out.Models = append(out.Models, registry.Named{
			Name: name, Provider: m.Provider, Judge: m.ClaimsModel,
			Rewrite: m.Rewrite, RewriteTimeout: m.RewriteTimeout.Duration,
			Remote: remote.Config{
				BaseURL: m.BaseURL, Model: m.Model, Key: m.key.Value, Whole: m.Whole, Searches: m.Searches, Attempts: m.Attempts,
				MaxTokens: m.MaxTokens, Window: m.Window, Total: m.Timeout.Duration, Idle: m.Idle.Duration,
				NoFallback: m.Fallback != nil && !*m.Fallback, FallbackAfter: m.FallbackAfter.Duration,
				Claims: cmp.Or(m.Claims, remote.ClaimsRemove),
				Price:  remote.Price{Prompt: m.PromptPrice, Cached: m.CachedPrice, Completion: m.CompletionPrice},
			},
			Script: scripted.Script{
				First: m.FirstDelay.Duration, Rate: m.Rate, Jitter: m.Jitter.Duration, Parts: m.Parts, Text: m.Text,
				Window: m.Window,
			},
		})
	}
	return out
}

func prefixes(texts []string) []netip.Prefix {
	list := []netip.Prefix{} // not nil: none means none
	for _, text := range texts {
		if p, err := parsePrefix(text); err == nil { // validated
			list = append(list, p)
		}
	}
	return list
}
