package actors

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A directory finds the actors of one kind by their ids.
type directory struct {
	system   *System
	kind     string // "job" or "thread"; also the log's key
	make     func(id string, self teller) resident
	hopeless func(error) bool // whether an error of Recover cannot be cured by trying again
	seed     maphash.Seed
	shards   []*actor.PID
	live     atomic.Int64
	awake    int // children that a shard keeps awake before it puts the longest unused to sleep

	// All children have the same props: an own producer for each would take more memory than the rest that the runtime
	// holds of an idle one. So a new incarnation asks here which entry it is of.
	props  *actor.Props
	mu     sync.Mutex
	coming map[string]*entry
}

// expect says of which entry the next incarnation of a child is.
func (d *directory) expect(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.coming[e.id] = e
}

// arrived is the entry of a new incarnation; nil where none is expected.
func (d *directory) arrived(id string) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.coming[id]
	delete(d.coming, id)
	return e
}

// childID is the id of the job or thread that an actor is.
func childID(pid *actor.PID) string { return pid.Id[strings.LastIndexByte(pid.Id, '/')+1:] }

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
}

type phase uint8

const (
	awake   phase = iota
	leaving       // poisoned; what comes is held back
	failing       // waits for its restart
	asleep        // parked, with no child
)

// An entry is what a supervisor knows of a child. Its parked field is shared with the child.
type entry struct {
	id         string
	pid        *actor.PID
	phase      phase
	poisoned   bool          // its end is in its mailbox: what comes now would be lost there
	n          uint64        // envelopes forwarded
	used       time.Duration // since the system began
	prev, next *entry        // in shard.used
	held       []*envelope
	trouble    *trouble // nil for one that never failed
	parked     atomic.Pointer[ParkedError]
}

// trouble is what is known of a child that has failed.
type trouble struct {
	failures   []time.Time // recent ones
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
			s.d.system.log.Error("a supervisor failed", "supervisor", ctx.Self().Id, "panic", fmt.Sprint(r), "message", fmt.Sprintf("%T", msg), "stack", string(debug.Stack()))
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
	case mayGo:
		s.letGo(ctx, msg)
	case *actor.Terminated:
		s.terminated(ctx, msg)
	case restartNow:
		s.restart(ctx, msg.entry)
	case sweepNow:
		s.sweepOld(ctx)
		s.startSweep(ctx)
	case *actor.Stopping:
		s.stopping = true
		s.sweep.Stop()
		for _, e := range s.entries {
			for _, held := range e.held {
				held.request.answer(nil, errStopping())
			}
			e.held = nil
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
	e := s.entries[msg.id]
	if e == nil {
		e = &entry{id: msg.id}
		s.entries[msg.id] = e
		s.spawn(ctx, e)
	}
	if err := e.parked.Load(); err != nil {
		msg.request.answer(nil, err)
		return
	}
	if e.poisoned {
		e.held = append(e.held, msg)
		return
	}
	s.pass(ctx, e, msg)
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
	s.d.expect(e)
	pid, err := ctx.SpawnNamed(s.d.props, e.id)
	if err != nil { // the name is taken until a child has ended, and that is when we forget it
		s.d.arrived(e.id)
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

// check asks a child whether it waits for anything. One that does is asked again when its turn comes anew.
func (s *shard) check(ctx actor.Context, e *entry) {
	e.used = s.now()
	s.used.toEnd(e)
	ctx.Send(e.pid, idleCheck{e.n})
}

// letGo puts a child to sleep, unless something was sent to it after it said that it waits for nothing. It is poisoned:
// stopping it would lose what is queued.
func (s *shard) letGo(ctx actor.Context, msg mayGo) {
	e := msg.entry
	if s.stopping || s.entries[e.id] != e || e.phase != awake || e.n != msg.n {
		return
	}
	e.phase, e.poisoned = leaving, true
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
	s.d.arrived(e.id) // of a restart that did not come about any more
	if e.phase == awake {
		s.used.remove(e)
	}
	held := e.held
	e.held = nil
	if e.parked.Load() != nil {
		e.phase, e.pid = asleep, nil // the entry stays, to answer with the error
		for _, h := range held {
			s.forward(ctx, h)
		}
		return
	}
	if len(held) == 0 {
		delete(s.entries, e.id)
		return
	}
	s.spawn(ctx, e)
	for _, h := range held {
		s.pass(ctx, e, h)
	}
}

// HandleFailure is called by the runtime, in the supervisor's goroutine, when a child has panicked. The child's mailbox
// rests until it is restarted; what is queued there waits.
func (s *shard) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, _ any) {
	stats.Reset() // it would grow for ever; we keep our own
	s.d.system.counts.failures.Add(1)
	e := s.entries[childID(child)]
	if e == nil || s.stopping {
		supervisor.StopChildren(child)
		return
	}
	if e.phase == awake {
		s.used.remove(e)
	}
	if e.trouble == nil {
		e.trouble = &trouble{}
	}
	tr := e.trouble
	e.phase, tr.supervisor = failing, supervisor
	now := time.Now()
	deps := &s.d.system.deps
	recent := tr.failures[:0]
	for _, at := range tr.failures {
		if now.Sub(at) < deps.FailureWindow {
			recent = append(recent, at)
		}
	}
	tr.failures = append(recent, now)
	hopeless, ok := reason.(*parkFailure)
	if !ok && len(tr.failures) <= deps.MaxFailures {
		s.restartIn(deps.Backoff(len(tr.failures)), e)
		return
	}
	err := &ParkedError{Kind: s.d.kind, ID: e.id}
	if ok {
		err.Err = hopeless.err
	} else {
		err.Err = fmt.Errorf("%w: it failed %d times within %v, last: %v", errInternal, len(tr.failures), deps.FailureWindow, reason)
	}
	e.parked.Store(err)
	s.d.system.counts.parked.Add(1)
	s.d.system.log.Error("an actor is parked: it answers with an error until the service starts again", s.d.kind, e.id, "error", err.Err)
	s.d.system.park(err)
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
	if s.stopping || s.entries[e.id] != e || e.phase != failing {
		return
	}
	if !e.poisoned && e.parked.Load() == nil { // otherwise it comes back only to answer what waits, and goes
		s.d.system.counts.restarts.Add(1)
	}
	s.d.expect(e)
	e.trouble.supervisor.RestartChildren(e.pid)
	if e.poisoned || e.parked.Load() != nil {
		e.phase = leaving
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

// Backoff doubles from first to limit, with a jitter of half of it, so that what failed together does not come back
// together.
func Backoff(first, limit time.Duration) func(n int) time.Duration {
	return func(n int) time.Duration {
		pause := first
		for i := 1; i < n && pause < limit; i++ {
			pause *= 2
		}
		pause = min(pause, limit)
		return pause/2 + rand.N(pause/2+1)
	}
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
