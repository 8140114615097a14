package job

import (
	"fmt"
	"strings"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/persistence/journal"
)

// Deps is what a job needs of the outside.
type Deps struct {
	persistent.Deps
	Editor Editor
	Forge  Forge
	// bounds how many edits are begun and not ended, be it that they work or that they wait for a model; nil does not
	Open persistent.Slots
	// Patience bounds how long one run goes on asking a code host that does not answer.
	Patience time.Duration
	// RunLimit bounds one run altogether.
	RunLimit time.Duration
	// Oldest hears when the oldest instruction of a job was given that has not ended; zero if none is left or the job is
	// not awake any more. It is nil if nobody counts.
	Oldest func(id api.JobID, given time.Time)
	// Ended hears how each instruction ended, and how long after it was given; nil if nobody counts.
	Ended func(result string, took time.Duration)
}

// What Deps.Ended hears beside the outcomes of package api.
const (
	ResultFailed        = "failed"
	ResultMisconfigured = "misconfigured" // the code host refuses the project's address or credentials
	ResultCancelled     = "cancelled"
)

// kind is the pure part of a job.
var kind = persistent.Kind[state, Event]{
	Name:     "job",
	Codec:    codec,
	New:      func(id string) state { return state{id: api.JobID(id)} },
	Decide:   (*state).decide,
	Apply:    state.apply,
	Pending:  func(s *state) (int, bool) { w, ok := s.pending(); return w.attempt, ok },
	Exists:   func(s *state) bool { return s.created },
	Snapshot: (*state).snapshot,
	Restore: func(id string, seq uint64, data []byte) (state, error) {
		s, err := restore(api.JobID(id), data)
		return s.at(seq), err
	},
}

// Stream is the name of a job's stream in the journal.
func Stream(id api.JobID) string { return kind.Stream(string(id)) }

// OfStream is the job whose stream that is; ok is false for another stream.
func OfStream(stream string) (id api.JobID, ok bool) {
	name, ok := strings.CutPrefix(stream, Stream(""))
	return api.JobID(name), ok
}

// An Actor is one job at work. All its methods are called by one goroutine at a time; effects send it messages.
type Actor struct {
	persistent.Actor[state, Event]
	deps     *Deps
	progress *reporter // of the run in hand
	edits    Edits     // of the run in hand, so far
	began    time.Time // the run in hand; for traces
	watchers map[*watcher]struct{}
	sweep    int       // so many watchers are looked through for ones that have gone
	oldest   time.Time // as Deps.Oldest was told
}

// A watcher waits for the job to move beyond an event.
type watcher struct {
	Watch
	gone  <-chan struct{} // closed when nobody waits any more; may be nil
	reply func(Reply, error)
	timer *time.Timer
}

// watchOver says that a watcher's time has passed.
type watchOver struct{ w *watcher }

// New makes the actor of a job; Recover it before anything else.
func New(id api.JobID, deps *Deps, self persistent.Self) *Actor {
	return &Actor{Actor: persistent.New(&kind, string(id), &deps.Deps, self), deps: deps}
}

// Recover rebuilds the job from the journal and takes up what it calls for.
func (a *Actor) Recover() error {
	err := a.Actor.Recover()
	if err == nil {
		a.settle(true)
	}
	return err
}

// Command does what a command asks and replies once: now, or for a Watch when the time has come. Gone, if it is not
// nil, is closed when nobody waits for the reply any more.
func (a *Actor) Command(cmd Command, gone <-chan struct{}, reply func(Reply, error)) {
	events, err := a.Decide(cmd)
	if err != nil {
		reply(Reply{}, err)
		return
	}
	if watch, ok := cmd.(Watch); ok {
		a.watch(watch, gone, reply)
		return
	}
	var more journal.Append
	switch cmd := cmd.(type) {
	case Create:
		more.Uses, more.Claim = cmd.Uses, cmd.Claim
	case FollowUp:
		more.Uses, more.Claim = cmd.Uses, cmd.Claim
	}
	if err := a.commit(events, more); err != nil {
		reply(Reply{}, err)
		persistent.RestartIfBehind(err)
		return
	}
	reply(Reply{Row: a.State.row(a.Seq), Fresh: len(events) > 0}, nil)
	a.settle(false)
}

// Own takes a message that the actor's own effects and timers sent.
func (a *Actor) Own(msg any) {
	switch msg := msg.(type) {
	case *persistent.Result:
		a.result(msg)
	case watchOver:
		if _, waits := a.watchers[msg.w]; waits {
			delete(a.watchers, msg.w)
			msg.w.reply(a.watched(msg.w.Watch), nil)
		}
	default:
		panic(fmt.Sprintf("a job does not know %T", msg))
	}
}

// result takes what a run says.
func (a *Actor) result(res *persistent.Result) {
	taken := a.Listen(res, func(events []Event) error { return a.commit(events, journal.Append{}) })
	if !taken {
		return
	}
	switch body := res.Body.(type) {
	case begun:
	case progressed:
		a.progress.told(res.Run)
	case stepped:
		close(body.kept)
	case drafted:
		a.showEdits(body.edits)
	default:
		a.StopRun()
	}
	a.settle(false)
}

// commit makes events facts, and tells those who watch.
func (a *Actor) commit(events []Event, more journal.Append) error {
	before := a.State
	if err := a.Commit(events, more); err != nil || len(events) == 0 {
		return err
	}
	a.tellEnds(&before, events)
	a.logChange(&before)
	a.trace(&before, events)
	if a.State.attempt != before.attempt && a.edits.Diff != "" {
		a.edits = Edits{Version: a.edits.Version + 1} // what is edited again, or is done, is no longer a draft
	}
	a.wakeWatchers()
	return nil
}

// tellEnds tells who counts how instructions ended. A failure ends those that wait as well.
func (a *Actor) tellEnds(before *state, events []Event) {
	if a.deps.Ended == nil {
		return
	}
	for _, ev := range events {
		switch ev := ev.(type) {
		case Finished:
			if len(before.queue) > 0 {
				a.deps.Ended(string(ev.Outcome), ev.At.Sub(before.queue[0].At))
			}
		case Failed:
			result := ResultFailed
			switch ev.Reason {
			case api.HaltMisconfigured:
				result = ResultMisconfigured
			case api.HaltInterrupted:
				result = ResultCancelled
			}
			for _, in := range before.queue {
				a.deps.Ended(result, ev.At.Sub(in.At))
			}
		}
	}
}

// showEdits tells those who watch what the edit in hand comes to.
func (a *Actor) showEdits(edits Edits) {
	edits.Version = a.edits.Version + 1
	a.edits = edits
	a.wakeWatchers()
}

// logChange writes a line for each change of the job's status.
func (a *Actor) logChange(before *state) {
	if before.status == a.State.status && before.phase == a.State.phase {
		return
	}
	if took := a.State.spent; took != before.spent {
		a.deps.Log.InfoContext(a.Context(), "a job used a language model", "project", a.State.project, "job", a.State.id, "model", a.State.model,
			"steps", took.Steps-before.spent.Steps, "tokens", took.Tokens-before.spent.Tokens, "microdollars",
			took.Cost-before.spent.Cost,
			"took", took.Time-before.spent.Time)
	}
	a.deps.Log.InfoContext(a.Context(), "job", "project", a.State.project, "job", a.State.id, "status", a.State.status, "phase",
		a.State.phase.String(),
		"attempt", a.State.attempt, "halt", a.State.halt, "event", a.Seq)
}

// settle starts the work that the state calls for, and stops work that it no longer calls for.
func (a *Actor) settle(recovered bool) {
	if given := a.State.oldest(); a.deps.Oldest != nil && given != a.oldest {
		a.oldest = given
		a.deps.Oldest(a.State.id, given)
	}
	if a.Settle() {
		a.start(recovered)
	}
}

func (a *Actor) watch(cmd Watch, gone <-chan struct{}, reply func(Reply, error)) {
	a.forgetGone()
	wait := time.Until(cmd.Until) // by the clock that cannot be set
	if a.news(cmd) || wait <= 0 {
		reply(a.watched(cmd), nil)
		return
	}
	w := &watcher{Watch: cmd, gone: gone, reply: reply}
	w.timer = time.AfterFunc(wait, func() { a.Self.Tell(watchOver{w}) })
	a.watchers[w] = struct{}{}
}

// news reports whether there is something that who watches has not seen.
func (a *Actor) news(w Watch) bool { return a.Seq > w.After || w.Edits && a.edits.Version > w.Seen }

// watched is what a watcher learns.
func (a *Actor) watched(w Watch) Reply {
	r := Reply{Row: a.State.row(a.Seq)}
	if w.Log {
		r.Log = a.State.entries(w.After)
		if w.After < a.State.dropped {
			r.Omitted = a.State.dropped
		}
	}
	if w.Edits && a.edits.Version > w.Seen {
		edits := a.edits
		r.Edits = &edits
	}
	return r
}

// forgetGone forgets watchers that nobody waits for any more. It looks through them when they have doubled in number,
// so that a thousand who follow one job cost a thousand looks at each event, and not their square.
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
		if !a.news(w.Watch) {
			continue
		}
		delete(a.watchers, w)
		w.timer.Stop()
		w.reply(a.watched(w.Watch), nil)
	}
}

// Idle reports whether the actor waits for nothing and may go to sleep.
func (a *Actor) Idle() bool { return a.Actor.Idle() && len(a.watchers) == 0 }

// Close ends the actor, see persistent.Actor. Watchers get the job as it stands.
func (a *Actor) Close(whole bool) {
	for w := range a.watchers {
		w.timer.Stop()
		w.reply(a.watched(w.Watch), nil)
	}
	a.watchers = nil
	if a.deps.Oldest != nil && !a.oldest.IsZero() {
		a.deps.Oldest(a.State.id, time.Time{})
	}
	a.Actor.Close(whole)
}
