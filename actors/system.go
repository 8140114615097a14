package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"

	"docent/actors/job"
	"docent/actors/persistent"
	"docent/actors/thread"
	"docent/api"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/required"
	"docent/internal/tracing"
	"docent/model"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

// A global of cmap: the runtime's registry is 1,024 of its maps; with 32 shards in each an idle actor takes 250 bytes
// more.
func init() { cmap.SHARD_COUNT = 1 }

// A Journal keeps what the actors know of themselves, and tells which of them had work to do when it was last closed.
type Journal interface {
	persistent.Journal
	// Pending yields the streams whose last events call for work.
	Pending(yield func(stream string) bool) error
	// Claim finds who holds a key.
	Claim(key string, now time.Time) (journal.Claim, bool, error)
}

// Deps is what the actors need of the outside. What has a value in its comment gets that if it is zero; all else is
// required. The settings of the server that end here have their defaults in its Config.
type Deps struct {
	Journal  Journal
	Projects persistent.Projects
	Editor   job.Editor
	Forge    job.Forge
	Searcher thread.Searcher
	Model    thread.Model
	Rewriter thread.Rewriter // nil if questions are searched for as they stand
	Pages    thread.Pages    // nil if models cannot read on a page
	Place    cluster.Ownership

	Log     *slog.Logger
	Now     func() time.Time // time.Now
	Tracer  *tracing.Tracer  // nil if nothing is traced
	Context context.Context  // ends when the service stops; context.Background()

	RunningJobs  int // runs that work at once
	OpenJobs     int // edits that are begun and not ended, with those that wait for a model
	RunningTurns int // answers that are written at once

	Idle   time.Duration // after which an actor with nothing to do goes to sleep
	Awake  int           // actors of a kind that are kept awake before the longest unused go to sleep; 100,000
	Shards int           // supervisors of a kind; 32
	Waking int           // streams that are woken at once after the start; 64

	Backoff       func(n int) time.Duration // pause before the n-th restart; 100 ms, doubling to 30 s
	MaxFailures   int                       // within FailureWindow, after which an actor is quarantined; 5
	FailureWindow time.Duration             // 1 min

	RetryFirst, RetryLimit time.Duration // pauses of a run that tries again; 200 ms, doubling to 15 s
	Patience               time.Duration // for how long it does; 2 min
	RunLimit               time.Duration // one run of a job
	TurnLimit              time.Duration // one answer
	AnswerLimit            int           // bytes of one answer; 256 KiB
	AnswerBudget           model.Budget  // tokens and cost of one answer; no limit
}

func (d *Deps) defaults() error {
	if err := required.Fields("actors", *d, "Journal", "Projects", "Editor", "Forge", "Searcher", "Model", "Place", "Log",
		"RunningJobs", "OpenJobs", "RunningTurns", "Idle", "RunLimit", "TurnLimit"); err != nil {
		return err
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	d.Context = cmp.Or(d.Context, context.Background())
	d.Awake, d.Shards, d.Waking = cmp.Or(d.Awake, 100_000), cmp.Or(d.Shards, 32), cmp.Or(d.Waking, 64)
	if d.Backoff == nil {
		d.Backoff = backoff.Exponential(100*time.Millisecond, 30*time.Second)
	}
	d.MaxFailures, d.FailureWindow = cmp.Or(d.MaxFailures, 5), cmp.Or(d.FailureWindow, time.Minute)
	d.RetryFirst, d.RetryLimit = cmp.Or(d.RetryFirst, 200*time.Millisecond), cmp.Or(d.RetryLimit, 15*time.Second)
	d.Patience, d.AnswerLimit = cmp.Or(d.Patience, 2*time.Minute), cmp.Or(d.AnswerLimit, 256<<10)
	return nil
}

// A System is the running actors.
type System struct {
	deps     Deps
	log      *slog.Logger
	began    time.Time
	ctx      context.Context // ends with Deps.Context, or with Stop
	cancel   context.CancelFunc
	runtime  *actor.ActorSystem
	jobs     Jobs
	threads  Threads
	tasks    *Tasks
	jobGate  *gate
	openGate *gate
	turnGate *gate
	counts   counts
	open     [cluster.Shards]atomic.Int32 // answers that are written, by the shards of their threads

	effects  effects
	shards   background.Work // that have not ended
	woken    chan struct{}   // closed when every pending stream was woken
	stopping atomic.Bool
	stopOnce sync.Once
	stopErr  error
	ended    chan struct{} // closed when all actors have ended, or were given up

	quarantineMu sync.Mutex
	quarantined  []QuarantinedError
}

// Start starts the actors. Pending streams wake in the background; commands are taken at once.
func Start(ctx context.Context, deps Deps) (*System, error) {
	if err := deps.defaults(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var pending []string
	if err := deps.Journal.Pending(func(stream string) bool {
		if deps.Place.Owns(stream) {
			pending = append(pending, stream)
		}
		return true
	}); err != nil {
		return nil, fmt.Errorf("list pending streams: %w", err)
	}
	s := &System{deps: deps, log: deps.Log, began: time.Now(), woken: make(chan struct{}), ended: make(chan struct{}),
		jobGate: newGate(deps.RunningJobs), openGate: newGate(max(deps.OpenJobs, deps.RunningJobs)),
		turnGate: newGate(deps.RunningTurns)}
	s.counts.init()
	s.ctx, s.cancel = context.WithCancel(deps.Context)
	s.runtime = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(quiet{deps.Log.Handler()}) }),
		// Its own log of dead letters is one of what quiet leaves out; a goroutine counts them for this long.
		actor.WithDeadLetterThrottleCount(1), actor.WithDeadLetterThrottleInterval(time.Millisecond))
	s.runtime.EventStream.Subscribe(s.deadLetter)
	s.jobs = Jobs{system: s, dir: s.newJobs()}
	s.threads = Threads{system: s, dir: s.newThreads()}
	s.tasks = s.newTasks()
	for _, d := range []*directory{s.jobs.dir, s.threads.dir, s.tasks.dir} {
		for i := range d.shards {
			props := actor.PropsFromProducer(func() actor.Actor { return &shard{d: d} }, actor.WithMailbox(mailbox))
			s.shards.Add(1)
			pid, err := s.runtime.Root.SpawnNamed(props, fmt.Sprintf("%ss-%d", d.kind, i))
			if err != nil {
				return nil, fmt.Errorf("start supervisor: %w", err)
			}
			d.shards[i] = pid
		}
	}
	background.Go("actors.Start", func() {
		defer close(s.woken)
		s.wake(pending)
	})
	return s, nil
}

// outside is what actors get of the outside, with the gate for their runs.
func (s *System) outside(slots *gate) persistent.Deps {
	return persistent.Deps{Place: s.deps.Place, Journal: s.deps.Journal, Projects: s.deps.Projects, Slots: slots, Now: s.deps.Now, Log: s.log,
		Tracer: s.deps.Tracer, Context: s.ctx,
		Go: s.effects.Go, Backoff: backoff.Exponential(s.deps.RetryFirst, s.deps.RetryLimit)}
}

func (s *System) newDirectory(kind string, build func(string, self) behavior) *directory {
	d := &directory{system: s, kind: kind, make: build, seed: maphash.MakeSeed(),
		shards: make([]*actor.PID, s.deps.Shards),
		awake:  max(1, s.deps.Awake/s.deps.Shards), pendingSpawns: make(map[string]*entry)}
	d.props = actor.PropsFromProducer(func() actor.Actor { return newEntity(d) }, actor.WithMailbox(mailbox))
	return d
}

// Jobs are the agent's jobs.
func (s *System) Jobs() *Jobs { return &s.jobs }

// Threads are the assistant's conversations.
func (s *System) Threads() *Threads { return &s.threads }

// Tasks are what comes due by itself.
func (s *System) Tasks() *Tasks { return s.tasks }

// Woken is closed when every stream that had work to do at the start was woken.
func (s *System) Woken() <-chan struct{} { return s.woken }

// wake starts the actors that had work to do, a bounded number at once.
func (s *System) wake(streams []string) {
	began := time.Now()
	free := make(chan struct{}, s.deps.Waking)
	var wakes background.Work
	for _, stream := range streams {
		kind, id, _ := strings.Cut(stream, "/")
		var d *directory
		switch kind {
		case s.jobs.dir.kind:
			d = s.jobs.dir
		case s.threads.dir.kind:
			d = s.threads.dir
		default:
			s.log.Error("a pending stream of an unknown kind", "stream", stream)
			continue
		}
		select {
		case free <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		wakes.Go("actors.wake", func() {
			defer func() { <-free }()
			if err := s.wakeOne(d, id); err != nil && s.ctx.Err() == nil {
				s.log.Error("a pending stream did not wake", "stream", stream, "error", err)
			}
		})
	}
	wakes.Wait()
	if len(streams) > 0 {
		s.log.Info("resuming pending work", "streams", len(streams), "seconds", time.Since(began).Seconds())
	}
}

// wakeOne starts an actor, unless another node does. As long as nobody can run it, it is tried again.
func (s *System) wakeOne(d *directory, id string) error {
	pause := backoff.Exponential(100*time.Millisecond, 5*time.Second)
	for n := 1; ; n++ {
		_, err := s.ask(s.ctx, d, id, wake{}, true)
		if elsewhere := (*cluster.ElsewhereError)(nil); errors.As(err, &elsewhere) {
			return nil
		}
		if !errors.Is(err, api.ErrUnavailable) || backoff.Sleep(s.ctx, pause(n)) != nil {
			return err
		}
	}
}

// Stop ends the actors: commands are refused, runs and turns are canceled and taken up at the next start, readers and
// watchers get a proper end. When ctx ends first, it leaves what does not end and says so.
func (s *System) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *System) stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.cancel()
	defer close(s.ended)
	for _, d := range []*directory{s.tasks.dir, s.jobs.dir, s.threads.dir} {
		for _, pid := range d.shards {
			s.runtime.Root.Poison(pid) // what is queued comes before it
		}
	}
	// The runtime's own Shutdown stops no actor, and its futures give up after ten seconds.
	if !wait(ctx, s.shards.Wait) {
		return fmt.Errorf("stop the actors: %d are still at work: %w", s.counts.live.Load(), context.Cause(ctx))
	}
	s.runtime.Shutdown()
	if !wait(ctx, func() { s.effects.Wait(); _ = s.tasks.Close() }) {
		return fmt.Errorf("stop the actors: effects are still at work: %w", context.Cause(ctx))
	}
	return nil
}

func wait(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	background.Go("actors.wait", func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// deadLetter answers commands that found no supervisor any more, and counts what else was lost.
func (s *System) deadLetter(event any) {
	letter, ok := event.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	switch msg := letter.Message.(type) {
	case *envelope:
		if s.stopping.Load() {
			msg.request.answer(nil, errStopping())
			return
		}
		msg.request.answer(nil, errors.New("no supervisor"))
	case own, idleCheck, passivate, sweepNow, restartNow:
		if s.stopping.Load() {
			return
		}
		if _, late := msg.(own); late {
			return // the end of a run whose actor has gone to sleep or stopped: recovery does not miss it
		}
	case actor.SystemMessage, actor.AutoReceiveMessage:
		return
	}
	s.counts.deadLetters.Add(1)
	s.log.Warn("dead letter", "to", letter.PID.GetId(), "type", fmt.Sprintf("%T", letter.Message))
}

func (s *System) quarantine(err *QuarantinedError) {
	s.quarantineMu.Lock()
	defer s.quarantineMu.Unlock()
	s.quarantined = append(s.quarantined, *err)
}

// release takes an actor off the list of those in quarantine.
func (s *System) release(kind, id string) {
	s.quarantineMu.Lock()
	defer s.quarantineMu.Unlock()
	s.quarantined = slices.DeleteFunc(s.quarantined,
		func(q QuarantinedError) bool { return q.Kind == kind && q.ID == id })
}

// Retry lifts the quarantine of a job or a thread, named by its id, and recovers it from the journal. Work that was
// pending is taken up. A *QuarantinedError says that it failed again, and why; api.ErrNotFound that it is not in
// quarantine.
func (s *System) Retry(ctx context.Context, id string) error {
	var d *directory
	switch {
	case api.ValidID(api.JobPrefix, id):
		d = s.jobs.dir
	case api.ValidID(api.ThreadPrefix, id):
		d = s.threads.dir
	default:
		return &api.InvalidError{Problems: []api.Problem{{Field: "id", Message: "must be the id of a job or a thread"}}}
	}
	_, err := s.ask(ctx, d, id, retry{}, true)
	s.log.Info("a quarantined actor was retried", d.kind, id, "error", err)
	return err
}

// effects counts the goroutines that reach outside. Actors start them; when the actors have ended, no more come.
type effects struct{ background.Work }

// Go starts an effect.
func (e *effects) Go(f func()) { e.Work.Go("effect of an actor", f) }

// quiet passes on what the runtime logs as a warning or worse: what it logs below, such as each panic without its
// stack, is logged better by us.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(n string) slog.Handler      { return quiet{q.Handler.WithGroup(n)} }
