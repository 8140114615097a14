package thread

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/persistence/journal"
	"docent/stream"
)

// Deps is what a thread needs of the outside.
type Deps struct {
	Journal  Journal
	Searcher Searcher
	Model    Model
	Projects Projects
	Slots    Slots
	Now      func() time.Time
	Log      *slog.Logger
	Context  context.Context // ends when the service stops
	Go       func(func())    // starts an effect; whoever stops the service waits for it
	// Backoff is the pause before try n (from 1) of something that failed for now.
	Backoff func(n int) time.Duration
	// TurnLimit bounds one answer altogether, waiting for its turn apart.
	TurnLimit time.Duration
	// AnswerLimit bounds the bytes of one answer.
	AnswerLimit int

	resting atomic.Int64 // turns that wait for a model, without a slot
}

// Snapshots are written after snapshotEvery events, and after more in a long thread, so that what they cost altogether
// grows with the thread and not with its square; and when the thread goes to sleep.
const snapshotEvery = 64

// chatsEnd is after the end of any thread: a chat leads to its thread until the thread goes, or goes on in another chat.
var chatsEnd = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// ChatClaim is the key of the claim that tells which thread a client's chat continues in. The claim's owner is the thread's
// stream.
func ChatClaim(chat string) string { return "chat/" + chat }

// An Actor is one thread at work. All its methods are called by one goroutine at a time; effects send it messages.
type Actor struct {
	id      api.ThreadID
	stream  string
	deps    *Deps
	self    Self
	state   state
	seq     uint64 // of the last event applied
	snapped uint64 // that the newest snapshot covers
	logs    map[api.TurnID]*stream.Log
	run     *run
}

// New makes the actor of a thread; Recover it before anything else.
func New(id api.ThreadID, deps *Deps, self Self) *Actor {
	return &Actor{id: id, stream: Stream(id), deps: deps, self: self, state: state{id: id}}
}

// Recover rebuilds the thread from the journal and takes up the turn that it calls for. A *RecoverError cannot be cured
// by trying again.
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
	for _, e := range a.state.open {
		// What a reader had seen of it before may differ from what comes now: the stream begins anew, and a reader who
		// resumes gets one whole answer.
		a.openLog(e.Turn)
	}
	a.settle(true, nil)
	return nil
}

// Command does what a command asks and replies once: with a Turn, a Conversation or an error.
func (a *Actor) Command(cmd Command, reply func(any, error)) {
	switch cmd := cmd.(type) {
	case Ask:
		a.put(&cmd, reply)
	case Resume:
		turn, err := a.resume(cmd)
		if err != nil {
			reply(nil, err)
			return
		}
		reply(turn, nil)
	case Read:
		if _, err := a.state.decide(cmd, a.now()); err != nil {
			reply(nil, err)
			return
		}
		reply(a.state.conversation(), nil)
	case Rate:
		events, err := a.state.decide(cmd, a.now())
		if err == nil {
			err = a.commit(events, journal.Append{})
		}
		reply(nil, err)
		if errors.Is(err, journal.ErrSequence) {
			panic(err)
		}
	case Forget:
		reply(nil, a.forget(cmd))
	default:
		reply(nil, fmt.Errorf("a thread does not know %T", cmd))
	}
}

// put takes a question. It is kept out of the frame of Command, as asked.event is.
//
//go:noinline
func (a *Actor) put(cmd *Ask, reply func(any, error)) {
	turn, err := a.ask(cmd)
	if err != nil {
		reply(nil, err)
		if errors.Is(err, journal.ErrSequence) {
			panic(err) // another writer was there: start again from what the journal really holds
		}
		return
	}
	reply(turn, nil)
	briefed := cmd.Briefed
	if !turn.Fresh {
		briefed = nil // it was told of the question that is repeated
	}
	a.settle(false, briefed)
}

// forget removes the thread. Afterwards the actor is one of a thread that nobody opened.
func (a *Actor) forget(cmd Forget) error {
	if _, err := a.state.decide(Read{Project: cmd.Project}, a.now()); err != nil {
		return err
	}
	c := a.state.conversation()
	if !cmd.Unused.IsZero() && (len(a.state.open) > 0 || c.Used().After(cmd.Unused)) {
		return &api.StateError{Kind: api.ErrConflict, Reason: "the thread is in use"}
	}
	if err := a.deps.Journal.Delete(a.stream, c.Claims()...); err != nil {
		return err
	}
	if a.run != nil {
		a.run.stop()
		a.run = nil
	}
	for turn := range a.logs {
		a.closeLog(turn, stream.Part{Kind: stream.Error, Text: "This conversation was removed."})
	}
	a.state, a.seq, a.snapped = state{id: a.id}, 0, 0
	a.deps.Log.Info("thread removed", "project", c.Project, "thread", a.id)
	return nil
}

func (a *Actor) ask(cmd *Ask) (Turn, error) {
	now := a.now()
	msg := asked{Ask: cmd}
	var secret string
	if !a.state.opened && cmd.New {
		secret = rand.Text() + rand.Text()
		msg.keyHash = sha256.Sum256([]byte(secret))
	}
	events, err := a.state.decide(msg, now)
	if err != nil {
		return Turn{}, err
	}
	if len(events) == 0 {
		e, _ := a.state.repeat(cmd)
		return Turn{Thread: a.id, ID: e.Turn, Log: a.logOf(e)}, nil
	}
	more := journal.Append{Uses: cmd.Uses}
	if cmd.Chat != "" { // also where it is the same chat: another thread may have been opened in it meanwhile
		more.Claim = &journal.Claim{Key: ChatClaim(cmd.Chat), Owner: a.stream, Expires: chatsEnd, Replaces: true}
		if a.state.chat != "" && a.state.chat != cmd.Chat {
			more.Release = ChatClaim(a.state.chat)
		}
	}
	if err := a.commit(events, more); err != nil {
		return Turn{}, err
	}
	return Turn{Thread: a.id, ID: cmd.Turn, Key: secret, Log: a.openLog(cmd.Turn), Fresh: true}, nil
}

func (a *Actor) resume(cmd Resume) (Turn, error) {
	if _, err := a.state.decide(cmd, a.now()); err != nil {
		return Turn{}, err
	}
	e, _ := a.state.newest()
	return Turn{Thread: a.id, ID: e.Turn, Log: a.logOf(e)}, nil
}

// Own takes a message that the actor's own effects and timers sent.
func (a *Actor) Own(msg any) {
	m, ok := msg.(*runMessage)
	if !ok {
		panic(fmt.Sprintf("a thread does not know %T", msg))
	}
	a.result(m)
}

// result takes what a turn's run says. Runs of earlier incarnations and attempts are not listened to.
func (a *Actor) result(msg *runMessage) {
	if msg.run != a.run || a.run == nil {
		msg.run.stop()
		return
	}
	events, err := a.state.decide(msg.body, a.now())
	if err == nil {
		err = a.commit(events, journal.Append{})
	}
	switch {
	case errors.Is(err, journal.ErrSequence):
		panic(err)
	case err != nil:
		// The journal cannot take it now. Readers are told so rather than kept waiting; the answer is not thrown away but
		// offered again, and whoever resumes gets it.
		msg.tries++
		a.deps.Log.Warn("the journal does not take a thread's event, trying again", "thread", a.id, "tries", msg.tries, "error", err)
		if done, ok := msg.body.(turnDone); ok && msg.tries == 1 {
			turn := a.run.turn
			finish(a.logs[turn], stream.Part{Kind: stream.Error, Text: "The answer could not be stored. Please load it again in a moment."})
			replay(a.openLog(turn), done.sources, done.text)
		}
		time.AfterFunc(a.deps.Backoff(msg.tries), func() { a.self.Tell(msg) })
		return
	}
	if _, ok := msg.body.(begun); ok {
		if w, ok := a.state.pending(); ok && w.attempt == a.run.attempt {
			close(a.run.begin)
		}
		a.settle(false, nil)
		return
	}
	a.run.stop()
	a.run = nil
	a.settle(false, nil)
}

// commit makes events facts: first in the journal, together with what else the append has; then in the state, then in the
// streams.
func (a *Actor) commit(events []Event, more journal.Append) error {
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
	more.Stream, more.After, more.Events, more.Pending, more.Urgency = a.stream, a.seq, stored, pending, journal.AtOnce
	switch events[len(events)-1].(type) {
	case Asked:
		more.Urgency = journal.Soon
	case Answered: // its reader has all of its text by now, and then sees it end
		more.Urgency = journal.Later
	}
	// The append outlives the service's context: a stop must not leave it open whether it took place.
	seq, err := a.deps.Journal.Append(context.WithoutCancel(a.deps.Context), more)
	switch {
	case errors.Is(err, journal.ErrSequence):
		return fmt.Errorf("%w: append to %s: %w", api.ErrUnavailable, a.stream, err)
	case err != nil:
		a.deps.Log.Error("append failed", "thread", a.id, "error", err)
		return fmt.Errorf("append to %s: %w", a.stream, errors.Join(err, &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: 5 * time.Second}))
	}
	before := a.state
	a.state, a.seq = next, seq
	if a.seq-a.snapped >= max(snapshotEvery, a.snapped/2) {
		a.snapshot()
	}
	for _, ev := range events {
		a.follow(before, ev)
	}
	return nil
}

// follow brings what is now a fact to the turn's stream, and to the log.
func (a *Actor) follow(before state, ev Event) {
	switch ev := ev.(type) {
	case Asked:
		for _, old := range before.open {
			if _, stays := index(a.state.open, old.Turn); !stays {
				a.closeLog(old.Turn, stream.Part{Kind: stream.Error, Text: "This question was asked anew; its answer comes there."})
			}
		}
	case Answered:
		e, _ := a.state.find(ev.Turn)
		a.closeLog(ev.Turn, finishPart(a.id, e))
		a.deps.Log.Info("answered", "project", a.state.project, "thread", a.id, "turn", ev.Turn, "answered", ev.Answered,
			"model", ev.Model, "fallbackFor", ev.FallbackFor, "sources", len(ev.Sources), "seconds", ev.At.Sub(e.Asked).Seconds())
	case TurnFailed:
		a.closeLog(ev.Turn, stream.Part{Kind: stream.Error, Text: ev.Reason})
		a.deps.Log.Warn("turn failed", "project", a.state.project, "thread", a.id, "turn", ev.Turn, "reason", ev.Reason)
	case Rated:
		a.deps.Log.Info("rated", "project", a.state.project, "thread", a.id, "turn", ev.Turn, "rating", ev.Feedback.Rating)
	case Retried:
		if ev.Reason == Panicked { // the next run writes to a stream of its own
			a.closeLog(ev.Turn, stream.Part{Kind: stream.Error, Text: "The answer broke off because of an internal error and is being written anew. Please load it again."})
			a.openLog(ev.Turn)
		}
	}
}

// openLog opens the stream of a turn's answer. Its readers have the first part at once and then wait with the turn. It is
// every reader's: the thread's secret is not in it.
func (a *Actor) openLog(turn api.TurnID) *stream.Log {
	log := stream.NewLog(stream.Limit(2 * a.deps.AnswerLimit))
	log.Append(stream.Part{Kind: stream.Start, Message: string(turn), Thread: string(a.id)})
	if a.logs == nil {
		a.logs = make(map[api.TurnID]*stream.Log)
	}
	a.logs[turn] = log
	return log
}

func (a *Actor) closeLog(turn api.TurnID, end stream.Part) {
	finish(a.logs[turn], end)
	delete(a.logs, turn)
	if len(a.logs) == 0 {
		a.logs = nil // an idle thread holds no map
	}
}

// logOf is the stream of an exchange's answer: the one that is being written, or one made from what is stored.
func (a *Actor) logOf(e Exchange) *stream.Log {
	if log, ok := a.logs[e.Turn]; ok {
		return log
	}
	log := stream.NewLog()
	log.Append(stream.Part{Kind: stream.Start, Message: string(e.Turn), Thread: string(a.id)})
	if e.Error != "" {
		replay(log, nil, e.Text)
		finish(log, stream.Part{Kind: stream.Error, Text: e.Error})
		return log
	}
	replay(log, e.Sources, e.Answer)
	finish(log, finishPart(a.id, e))
	return log
}

func replay(log *stream.Log, sources []Source, text string) {
	for _, s := range sources {
		log.Append(sourcePart(s))
	}
	if text != "" {
		log.Append(stream.Part{Kind: stream.Text, Text: text})
	}
}

func finish(log *stream.Log, end stream.Part) {
	if log == nil {
		return
	}
	log.Append(end)
	log.Close()
}

func finishPart(thread api.ThreadID, e Exchange) stream.Part {
	reason := e.Reason
	if reason == "" {
		reason = "stop"
	}
	p := stream.Part{Kind: stream.Finish, Message: string(e.Turn), Thread: string(thread), Reason: reason, Usage: e.Usage}
	if e.FallbackFor != "" {
		p.Model, p.Fallback = e.Model, true // which model should have answered is not for readers
	}
	return p
}

func (a *Actor) snapshot() {
	data, err := a.state.snapshot()
	if err != nil {
		a.deps.Log.Error("no snapshot", "thread", a.id, "error", err)
		return
	}
	a.deps.Journal.Snapshot(a.stream, a.seq, data)
	a.snapped = a.seq
}

// settle starts the turn that the state calls for, and stops a run that it no longer calls for. Briefed is told when the
// turn that starts has been briefed, or at once where none does.
func (a *Actor) settle(recovered bool, briefed func()) {
	w, ok := a.state.pending()
	if a.run != nil && (!ok || a.run.attempt != w.attempt) {
		a.run.stop()
		a.run = nil
	}
	if ok && a.run == nil && a.deps.Context.Err() == nil {
		a.start(w, recovered, briefed)
	} else if briefed != nil {
		briefed()
	}
}

// Empty reports whether no such thread was ever opened: its actor has nothing to stay for.
func (a *Actor) Empty() bool { return !a.state.opened }

// Idle reports whether the actor waits for nothing and may go to sleep.
func (a *Actor) Idle() bool { return a.run == nil && len(a.state.open) == 0 }

// Close ends the actor. Its run stops without a result: who recovers the thread answers the turn anew. Readers get a
// proper end. Whole says that the actor has not failed: what it knows is worth a snapshot, so that the journal need keep
// nothing of it in memory.
func (a *Actor) Close(whole bool) {
	if a.run != nil {
		a.run.stop()
		a.run = nil
	}
	for _, log := range a.logs {
		finish(log, stream.Part{Kind: stream.Error, Text: "The answer was interrupted. It will be finished; load it again in a moment."})
	}
	a.logs = nil
	if whole && a.state.opened && a.seq > a.snapped {
		a.snapshot()
	}
}

func (a *Actor) now() time.Time { return a.deps.Now().UTC().Truncate(time.Millisecond) }
