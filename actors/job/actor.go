package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"docent/api"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

// Deps is what a job needs of the outside.
type Deps struct {
	Journal  Journal
	Editor   Editor
	Forge    Forge
	Projects Projects
	Slots    Slots
	Open     Slots // bounds how many edits are begun and not ended, be it that they work or that they wait for a model; nil does not
	Now      func() time.Time
	Log      *slog.Logger
	Context  context.Context // ends when the service stops
	Go       func(func())    // starts an effect; whoever stops the service waits for it
	// Backoff is the pause before try n (from 1) of something that the outside refused for now.
	Backoff func(n int) time.Duration
	// Patience bounds how long one run goes on asking a code host that does not answer.
	Patience time.Duration
	// RunLimit bounds one run altogether.
	RunLimit time.Duration
}

// snapshotEvery is after how many events a snapshot is written; one is also written when the actor goes to sleep.
const snapshotEvery = 64

// An Actor is one job at work. All its methods are called by one goroutine at a time; effects send it messages.
type Actor struct {
	id       api.JobID
	stream   string
	deps     *Deps
	self     Self
	state    state
	seq      uint64 // of the last event applied
	snapped  uint64 // that the newest snapshot covers
	run      *run
	watchers map[*watcher]struct{}
	sweep    int // so many watchers are looked through for ones that have gone
}

// A watcher waits for the job to move beyond an event.
type watcher struct {
	after uint64
	log   bool
	gone  <-chan struct{} // closed when nobody waits any more; may be nil
	reply func(Reply, error)
	timer *time.Timer
}

// watchOver says that a watcher's time has passed.
type watchOver struct{ w *watcher }

// New makes the actor of a job; Recover it before anything else.
func New(id api.JobID, deps *Deps, self Self) *Actor {
	return &Actor{id: id, stream: Stream(id), deps: deps, self: self, state: state{id: id}}
}

// Recover rebuilds the job from the journal and takes up what it calls for. A *RecoverError cannot be cured by trying
// again.
func (a *Actor) Recover() error {
	rec, err := a.deps.Journal.Load(a.stream)
	if err != nil {
		if errors.Is(err, journal.ErrCorrupt) {
			return &RecoverError{Stream: a.stream, Seq: rec.Seq, Err: err}
		}
		return fmt.Errorf("load %s: %w", a.stream, err)
	}
	if a.state, err = recovered(a.id, rec); err != nil {
		return err
	}
	a.seq, a.snapped = rec.Seq, rec.SnapSeq
	a.settle(true)
	return nil
}

// Command does what a command asks and replies once: now, or for a Watch when the time has come. Gone, where it is not
// nil, is closed when nobody waits for the reply any more.
func (a *Actor) Command(cmd Command, gone <-chan struct{}, reply func(Reply, error)) {
	events, err := a.state.decide(cmd, a.now())
	if err != nil {
		reply(Reply{}, err)
		return
	}
	if watch, ok := cmd.(Watch); ok {
		a.watch(watch, gone, reply)
		return
	}
	var uses []quota.Use
	var claim *journal.Claim
	switch cmd := cmd.(type) {
	case Create:
		uses, claim = cmd.Uses, cmd.Claim
	case FollowUp:
		uses, claim = cmd.Uses, cmd.Claim
	}
	if err := a.commit(events, uses, claim); err != nil {
		reply(Reply{}, err)
		if errors.Is(err, journal.ErrSequence) {
			panic(err) // another writer was there: start again from what the journal really holds
		}
		return
	}
	reply(Reply{Row: a.state.row(a.seq), Fresh: len(events) > 0}, nil)
	a.settle(false)
}

// Own takes a message that the actor's own effects and timers sent.
func (a *Actor) Own(msg any) {
	switch msg := msg.(type) {
	case *runMessage:
		a.result(msg)
	case watchOver:
		if _, waits := a.watchers[msg.w]; waits {
			delete(a.watchers, msg.w)
			msg.w.reply(a.watched(msg.w.after, msg.w.log), nil)
		}
	default:
		panic(fmt.Sprintf("a job does not know %T", msg))
	}
}

// result takes what a run says. Runs of earlier incarnations and attempts are not listened to.
func (a *Actor) result(msg *runMessage) {
	if msg.run != a.run || a.run == nil {
		msg.run.stop()
		return
	}
	if p, ok := msg.body.(progressed); ok {
		p.attempt = msg.run.attempt
		msg.body = p
	}
	events, err := a.state.decide(msg.body, a.now())
	if err == nil {
		err = a.commit(events, nil, nil)
	}
	switch {
	case errors.Is(err, journal.ErrSequence):
		panic(err)
	case err != nil:
		// The journal cannot take it now. What the run brought is not thrown away: it is offered again.
		msg.tries++
		a.deps.Log.Warn("the journal does not take a job's event, trying again", "job", a.id, "tries", msg.tries, "error", err)
		time.AfterFunc(a.deps.Backoff(msg.tries), func() { a.self.Tell(msg) })
		return
	}
	switch msg.body.(type) {
	case begun:
		if w, ok := a.state.pending(); ok && w.attempt == a.run.attempt {
			close(a.run.begin)
		}
	case progressed:
		a.run.progress.told(a.run)
	case stepped:
		close(msg.body.(stepped).kept)
	default:
		a.run.stop()
		a.run = nil
	}
	a.settle(false)
}

// commit makes events facts: first in the journal, then in the state.
func (a *Actor) commit(events []Event, uses []quota.Use, claim *journal.Claim) error {
	if len(events) == 0 {
		return nil
	}
	next := a.state
	stored := make([]journal.Event, len(events))
	for i, ev := range events {
		var err error
		if stored[i], err = encode(ev); err != nil {
			return err
		}
		next = next.apply(ev)
	}
	_, pending := next.pending()
	// The append outlives the service's context: a stop must not leave it open whether it took place.
	seq, err := a.deps.Journal.Append(context.WithoutCancel(a.deps.Context), journal.Append{
		Stream: a.stream, After: a.seq, Events: stored, Pending: pending, Uses: uses, Claim: claim})
	var claimed *journal.ClaimedError
	switch {
	case errors.As(err, &claimed):
		return err
	case errors.Is(err, journal.ErrSequence):
		return fmt.Errorf("%w: append to %s: %w", api.ErrUnavailable, a.stream, err)
	case err != nil:
		a.deps.Log.Error("append failed", "job", a.id, "error", err)
		return fmt.Errorf("append to %s: %w", a.stream, errors.Join(err, &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: 5 * time.Second}))
	}
	before := a.state
	a.state, a.seq = next, seq
	if a.seq-a.snapped >= snapshotEvery {
		a.snapshot()
	}
	a.logChange(before)
	a.wakeWatchers()
	return nil
}

// logChange writes a line for each change of the job's status.
func (a *Actor) logChange(before state) {
	if before.status == a.state.status && before.phase == a.state.phase {
		return
	}
	if took := a.state.spent; took != before.spent {
		a.deps.Log.Info("a job used a language model", "project", a.state.project, "job", a.id, "model", a.state.model,
			"steps", took.Steps-before.spent.Steps, "tokens", took.Tokens-before.spent.Tokens, "microdollars", took.Cost-before.spent.Cost,
			"time", took.Time-before.spent.Time)
	}
	a.deps.Log.Info("job", "project", a.state.project, "job", a.id, "status", a.state.status, "phase", a.state.phase.String(),
		"attempt", a.state.attempt, "halt", a.state.halt, "event", a.seq)
}

func (a *Actor) snapshot() {
	data, err := a.state.snapshot()
	if err != nil {
		a.deps.Log.Error("no snapshot", "job", a.id, "error", err)
		return
	}
	a.deps.Journal.Snapshot(a.stream, a.seq, data)
	a.snapped = a.seq
}

// settle starts the work that the state calls for, and stops work that it no longer calls for.
func (a *Actor) settle(recovered bool) {
	w, ok := a.state.pending()
	if a.run != nil && (!ok || a.run.attempt != w.attempt) {
		a.run.stop()
		a.run = nil
	}
	if ok && a.run == nil && a.deps.Context.Err() == nil {
		a.start(w, recovered)
	}
}

func (a *Actor) watch(cmd Watch, gone <-chan struct{}, reply func(Reply, error)) {
	a.forgetGone()
	wait := time.Until(cmd.Until) // by the clock that cannot be set
	if a.seq > cmd.After || wait <= 0 {
		reply(a.watched(cmd.After, cmd.Log), nil)
		return
	}
	w := &watcher{after: cmd.After, log: cmd.Log, gone: gone, reply: reply}
	w.timer = time.AfterFunc(wait, func() { a.self.Tell(watchOver{w}) })
	a.watchers[w] = struct{}{}
}

// watched is what a watcher learns.
func (a *Actor) watched(after uint64, log bool) Reply {
	r := Reply{Row: a.state.row(a.seq)}
	if log {
		r.Log = a.state.entries(after)
		if after < a.state.dropped {
			r.Omitted = a.state.dropped
		}
	}
	return r
}

// forgetGone forgets watchers that nobody waits for any more. It looks through them when they have doubled in number, so that
// a thousand who follow one job cost a thousand looks at each event, and not their square.
func (a *Actor) forgetGone() {
	if a.watchers == nil {
		a.watchers = make(map[*watcher]struct{})
	}
	if len(a.watchers) < a.sweep {
		return
	}
	for w := range a.watchers {
		select {
		case <-w.gone:
			w.timer.Stop()
			delete(a.watchers, w)
		default:
		}
	}
	a.sweep = max(minSweep, 2*len(a.watchers))
}

const minSweep = 16

func (a *Actor) wakeWatchers() {
	for w := range a.watchers {
		if a.seq <= w.after {
			continue
		}
		delete(a.watchers, w)
		w.timer.Stop()
		w.reply(a.watched(w.after, w.log), nil)
	}
}

// Empty reports whether no such job was ever created: its actor has nothing to stay for.
func (a *Actor) Empty() bool { return !a.state.created }

// Idle reports whether the actor waits for nothing and may go to sleep.
func (a *Actor) Idle() bool {
	_, pending := a.state.pending()
	return a.run == nil && !pending && len(a.watchers) == 0
}

// Close ends the actor. Its run stops without a result: who recovers the job runs it again. Watchers get the job as it
// stands. Whole says that the actor has not failed: what it knows is worth a snapshot, so that the journal need keep
// nothing of it in memory.
func (a *Actor) Close(whole bool) {
	if a.run != nil {
		a.run.stop()
		a.run = nil
	}
	for w := range a.watchers {
		w.timer.Stop()
		w.reply(a.watched(w.after, w.log), nil)
	}
	a.watchers = nil
	if whole && a.state.created && a.seq > a.snapped {
		a.snapshot()
	}
}

func (a *Actor) now() time.Time { return a.deps.Now().UTC().Truncate(time.Millisecond) }
