package actors

import (
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"docent/api"
)

// A directory finds the actors of one kind by their ids.
type directory struct {
	system *System
	kind   string // "job", "thread" or "task"; also the log's key
	make   func(id string, self self) behavior
	seed   maphash.Seed
	shards []*actor.PID
	live   atomic.Int64
	awake  int // children that a shard keeps awake before it puts the longest unused to sleep

	everywhere bool // each of several nodes may run the actors

	// All children have the same props: an own producer for each would take more memory than the rest that the runtime
	// holds of an idle one. So a new incarnation asks here which entry it is of.
	props         *actor.Props
	mu            sync.Mutex
	pendingSpawns map[string]*entry
}

// expectSpawn says of which entry the next incarnation of a child is.
func (d *directory) expectSpawn(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pendingSpawns[e.id] = e
}

// takeSpawn is the entry of a new incarnation; nil if none is expected.
func (d *directory) takeSpawn(id string) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.pendingSpawns[id]
	delete(d.pendingSpawns, id)
	return e
}

// childID is the id of the job or thread, or the name of the task, that an actor is.
func childID(pid *actor.PID) string { return pid.Id[strings.IndexByte(pid.Id, '/')+1:] }

// send hands an envelope to the supervisor of its id.
func (d *directory) send(e *envelope) {
	n := maphash.String(d.seed, e.id) % uint64(len(d.shards))
	d.system.runtime.Root.Send(d.shards[n], e)
}

// A shard supervises the actors of a share of the ids. Only its own goroutine uses it.
type shard struct {
	d        *directory
	entries  map[string]*entry
	used     list // children, the longest unused first
	self     *actor.PID
	stopping bool
	sweep    *time.Timer
	leaving  map[string]func() // by id: who waits for the end of a child that another node is to run
}

type phase uint8

const (
	awake       phase = iota
	passivating       // poisoned; what comes is stashed
	restarting        // waits for its restart
	quarantined       // with no child
)

// An entry is what a supervisor knows of a child. Its quarantine is shared with the child.
type entry struct {
	id         string
	pid        *actor.PID
	phase      phase
	poisoned   bool          // its end is in its mailbox: what comes now would be lost there
	n          uint64        // envelopes forwarded
	used       time.Duration // since the system began
	prev, next *entry        // in shard.used
	stashed    []*envelope
	failures   *failures // nil for one that never failed
	quarantine atomic.Pointer[QuarantinedError]
}

// failures are what is known of a child that has failed.
type failures struct {
	recent     []time.Time
	supervisor actor.Supervisor
}

// Messages of a supervisor to itself.
type (
	sweepNow   struct{}
	restartNow struct{ entry *entry }
)

// Receive is called by the runtime, for one message at a time.
func (s *shard) Receive(ctx actor.Context) {
	msg := ctx.Message()
	defer func() {
		// A supervisor that panicked on would be restarted, and that stops all its children.
		if r := recover(); r != nil {
			s.d.system.counts.failures.Add(1)
			s.d.system.log.Error("a supervisor failed", "supervisor", ctx.Self().Id, "panic", fmt.Sprint(r), "message",
				fmt.Sprintf("%T", msg), "stack", string(debug.Stack()))
			if e, ok := msg.(*envelope); ok {
				e.request.answer(nil, errInternal)
			}
		}
	}()
	switch msg := msg.(type) {
	case *actor.Started:
		s.self = ctx.Self()
		s.entries = make(map[string]*entry)
		s.startSweep(ctx)
	case *envelope:
		s.forward(ctx, msg)
	case passivate:
		s.passivate(ctx, msg)
	case *actor.Terminated:
		s.terminated(ctx, msg)
	case restartNow:
		s.restart(ctx, msg.entry)
	case release:
		s.release(ctx, msg)
	case sweepNow:
		s.sweepOld(ctx)
		s.startSweep(ctx)
	case *actor.Stopping:
		s.stopping = true
		s.sweep.Stop()
		for _, e := range s.entries {
			for _, waiting := range e.stashed {
				waiting.request.answer(nil, errStopping())
			}
			e.stashed = nil
		}
	case *actor.Stopped:
		s.entries, s.used = nil, list{}
		s.d.system.shards.Done()
	case *actor.Restarting:
	default:
		s.d.system.counts.unhandled.Add(1)
		s.d.system.log.Error("unhandled message", "supervisor", ctx.Self().Id, "type", fmt.Sprintf("%T", msg))
	}
}

func (s *shard) startSweep(ctx actor.Context) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	s.sweep = time.AfterFunc(max(s.d.system.deps.Idle/4, time.Millisecond), func() { root.Send(self, sweepNow{}) })
}

func (s *shard) forward(ctx actor.Context, msg *envelope) {
	if s.stopping {
		msg.request.answer(nil, errStopping())
		return
	}
	if _, ok := msg.request.command.(retry); ok {
		s.retry(ctx, msg)
		return
	}
	if !s.d.here(msg.id) {
		msg.request.answer(nil, errMoved)
		return
	}
	e := s.entries[msg.id]
	if e == nil {
		e = &entry{id: msg.id}
		s.entries[msg.id] = e
		s.spawn(ctx, e)
	}
	if err := e.quarantine.Load(); err != nil {
		msg.request.answer(nil, err)
		return
	}
	if e.poisoned {
		e.stashed = append(e.stashed, msg)
		return
	}
	s.pass(ctx, e, msg)
}

// retry lifts the quarantine of an actor and recovers it again. Its earlier failures no longer count.
func (s *shard) retry(ctx actor.Context, msg *envelope) {
	e := s.entries[msg.id]
	if e == nil || e.quarantine.Load() == nil {
		msg.request.answer(nil, fmt.Errorf("%w: no quarantined %s %s", api.ErrNotFound, s.d.kind, msg.id))
		return
	}
	if e.phase != quarantined { // its last incarnation still answers what was queued
		e.stashed = append(e.stashed, msg)
		return
	}
	s.d.system.release(s.d.kind, e.id)
	next := &entry{id: e.id}
	s.entries[e.id] = next
	s.spawn(ctx, next)
	msg.request.command = wake{}
	s.pass(ctx, next, msg)
}

func (s *shard) pass(ctx actor.Context, e *entry, msg *envelope) {
	e.n++
	msg.n = e.n
	e.used = s.now()
	if e.phase == awake {
		s.used.toEnd(e)
	}
	ctx.Send(e.pid, msg)
}

func (s *shard) spawn(ctx actor.Context, e *entry) {
	s.d.expectSpawn(e)
	pid, err := ctx.SpawnNamed(s.d.props, e.id)
	if err != nil { // the name is taken until a child has ended, and that is when we forget it
		s.d.takeSpawn(e.id)
		delete(s.entries, e.id)
		panic(fmt.Errorf("spawn %s: %w", e.id, err))
	}
	e.pid, e.phase, e.poisoned = pid, awake, false
	s.used.toEnd(e)
	s.d.system.counts.live.Add(1)
	s.d.live.Add(1)
	for n := s.used.len - s.d.awake; n > 0 && s.used.first != e; n-- {
		s.check(ctx, s.used.first)
	}
}

// mailbox gives back the memory of a burst, and costs the least for actors that are mostly idle.
var mailbox = actor.UnboundedLockfree()

func (s *shard) sweepOld(ctx actor.Context) {
	now := s.now()
	for n := s.used.len; n > 0 && now-s.used.first.used >= s.d.system.deps.Idle; n-- {
		s.check(ctx, s.used.first)
	}
}

// now is the time since the system began.
func (s *shard) now() time.Duration { return time.Since(s.d.system.began) }

// check asks a child whether it waits for anything. One that does is asked again at its next turn.
func (s *shard) check(ctx actor.Context, e *entry) {
	e.used = s.now()
	s.used.toEnd(e)
	ctx.Send(e.pid, idleCheck{e.n})
}

// passivate puts a child to sleep, unless something was sent to it after it said that it waits for nothing. It is
// poisoned: stopping it would lose what is queued.
func (s *shard) passivate(ctx actor.Context, msg passivate) {
	e := msg.entry
	if s.stopping || s.entries[e.id] != e || e.phase != awake || e.n != msg.n {
		return
	}
	e.phase, e.poisoned = passivating, true
	s.used.remove(e)
	s.d.system.counts.passivations.Add(1)
	ctx.Poison(e.pid)
}

func (s *shard) terminated(ctx actor.Context, msg *actor.Terminated) {
	s.d.system.counts.live.Add(-1)
	s.d.live.Add(-1)
	e := s.entries[childID(msg.Who)]
	if e == nil || s.stopping {
		return
	}
	s.d.takeSpawn(e.id) // of a restart that did not come about any more
	if done := s.leaving[e.id]; done != nil {
		delete(s.leaving, e.id)
		defer done()
	}
	if !s.d.here(e.id) {
		s.moved(e)
		return
	}
	if e.phase == awake {
		s.used.remove(e)
	}
	stashed := e.stashed
	e.stashed = nil
	if e.quarantine.Load() != nil {
		e.phase, e.pid = quarantined, nil // the entry stays, to answer with the error
		for _, waiting := range stashed {
			s.forward(ctx, waiting)
		}
		return
	}
	if len(stashed) == 0 {
		delete(s.entries, e.id)
		return
	}
	s.spawn(ctx, e)
	for _, waiting := range stashed {
		s.pass(ctx, e, waiting)
	}
}

// HandleFailure is called by the runtime, in the supervisor's goroutine, when a child has panicked. The child's mailbox
// rests until it is restarted; what is queued there waits.
func (s *shard) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	stats *actor.RestartStatistics, reason, _ any) {
	stats.Reset() // it would grow forever; we keep our own
	s.d.system.counts.failures.Add(1)
	e := s.entries[childID(child)]
	if e == nil || s.stopping {
		supervisor.StopChildren(child)
		return
	}
	if e.phase == awake {
		s.used.remove(e)
	}
	if e.failures == nil {
		e.failures = &failures{}
	}
	f := e.failures
	e.phase, f.supervisor = restarting, supervisor
	if !s.d.here(e.id) {
		s.restartIn(0, e) // as one that answers what is queued, and then ends
		return
	}
	now := time.Now()
	deps := &s.d.system.deps
	if passes(reason) { // however long the journal is away, the actor is well
		s.restartIn(deps.Backoff(1), e)
		return
	}
	f.recent = slices.DeleteFunc(f.recent, func(at time.Time) bool { return now.Sub(at) >= deps.FailureWindow })
	f.recent = append(f.recent, now)
	permanent, ok := reason.(*permanentFailure)
	if !ok && len(f.recent) <= deps.MaxFailures {
		s.restartIn(deps.Backoff(len(f.recent)), e)
		return
	}
	err := &QuarantinedError{Kind: s.d.kind, ID: e.id, At: deps.Now().UTC()}
	if ok {
		err.Err = permanent.err
	} else {
		err.Err = fmt.Errorf("%w: it failed %d times within %v, last: %v", errInternal, len(f.recent), deps.FailureWindow,
			reason)
	}
	e.quarantine.Store(err)
	s.d.system.log.Error("an actor was quarantined: it returns errors until it is retried or the server restarts", s.d.kind,
		e.id, "error", err.Err)
	s.d.system.quarantine(err)
	s.restartIn(0, e) // as one that answers what is queued, and then ends
}

func (s *shard) restartIn(pause time.Duration, e *entry) {
	self, root := s.self, s.d.system.runtime.Root
	if pause <= 0 {
		root.Send(self, restartNow{e})
		return
	}
	// The supervisor restarts the child itself, later: a restart that reaches a child which has stopped meanwhile would
	// bring it back to a life that nobody knows of.
	time.AfterFunc(pause, func() { root.Send(self, restartNow{e}) })
}

func (s *shard) restart(ctx actor.Context, e *entry) {
	if s.stopping || s.entries[e.id] != e || e.phase != restarting {
		return
	}
	moved := !s.d.here(e.id)
	if !e.poisoned && !moved && e.quarantine.Load() == nil { // otherwise it comes back only to answer what waits, and goes
		s.d.system.counts.restarts.Add(1)
	}
	s.d.expectSpawn(e)
	e.failures.supervisor.RestartChildren(e.pid)
	if e.poisoned || moved || e.quarantine.Load() != nil {
		e.phase = passivating
		if !e.poisoned {
			e.poisoned = true
			ctx.Poison(e.pid)
		}
		return
	}
	e.phase = awake
	e.used = s.now()
	s.used.toEnd(e)
}

// A list holds entries in the order of their use.
type list struct {
	first, last *entry
	len         int
}

func (l *list) has(e *entry) bool { return e.prev != nil || e.next != nil || l.first == e }

func (l *list) remove(e *entry) {
	if !l.has(e) {
		return
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

func (l *list) toEnd(e *entry) {
	l.remove(e)
	e.prev = l.last
	if l.last != nil {
		l.last.next = e
	} else {
		l.first = e
	}
	l.last = e
	l.len++
}
