package thread

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/api/stream"
	"docent/internal/outage"
	"docent/model"
	"docent/persistence/journal"
)

// Deps is what a thread needs of the outside.
type Deps struct {
	persistent.Deps
	Searcher Searcher
	Model    Model
	Rewriter Rewriter // nil if questions are searched for as they stand
	Pages    Pages    // nil if models cannot read on
	// TurnLimit bounds one answer altogether, waiting for its turn apart.
	TurnLimit time.Duration
	// AnswerLimit bounds the bytes of one answer.
	AnswerLimit int
	// Budget bounds what the calls of language models for one answer use altogether.
	Budget model.Budget

	// Open hears when a thread's answer begins to be written, with 1, and when that has ended, with -1; nil if nobody
	// counts.
	Open func(id api.ThreadID, by int32)
	// Ended hears how each answer ended; nil if nobody counts.
	Ended func(result string)

	unread  outage.Outages // models that rewrite no question now
	resting atomic.Int64   // turns that wait for a model, without a slot
}

// What Deps.Ended hears.
const (
	ResultAnswered   = "answered"
	ResultUnanswered = "unanswered" // the documentation does not answer the question
	ResultFailed     = "failed"
	ResultStopped    = "stopped" // by somebody
)

// tellEnd tells who counts how an answer ended.
func (d *Deps) tellEnd(result string) {
	if d.Ended != nil {
		d.Ended(result)
	}
}

// kind is the pure part of a thread.
var kind = persistent.Kind[state, Event]{
	Name:     "thread",
	Codec:    codec,
	New:      func(id string) state { return state{id: api.ThreadID(id)} },
	Decide:   (*state).decide,
	Apply:    state.apply,
	Pending:  func(s *state) (int, bool) { w, ok := s.pending(); return w.attempt, ok },
	Exists:   func(s *state) bool { return s.opened },
	Snapshot: (*state).snapshot,
	Restore:  func(id string, _ uint64, data []byte) (state, error) { return restore(api.ThreadID(id), data) },
	Grows:    true,
}

// Stream is the name of a thread's stream in the journal.
func Stream(id api.ThreadID) string { return kind.Stream(string(id)) }

// chatsEnd is after the end of any thread: a chat leads to its thread until the thread goes, or goes on in another
// chat.
var chatsEnd = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// ChatClaim is the key of the claim that tells which thread a client's chat continues in. The claim's owner is the
// thread's stream.
func ChatClaim(chat string) string { return "chat/" + chat }

// An Actor is one thread at work. All its methods are called by one goroutine at a time; effects send it messages.
type Actor struct {
	persistent.Actor[state, Event]
	deps *Deps
	logs map[api.TurnID]*stream.Log
}

// New makes the actor of a thread; Recover it before anything else.
func New(id api.ThreadID, deps *Deps, self persistent.Self) *Actor {
	return &Actor{Actor: persistent.New(&kind, string(id), &deps.Deps, self), deps: deps}
}

// Recover rebuilds the thread from the journal and takes up the turn that it calls for.
func (a *Actor) Recover() error {
	if err := a.Actor.Recover(); err != nil {
		return err
	}
	for _, e := range a.State.open {
		// What a reader had seen of it before may differ from what comes now: the stream starts over, and a reader who
		// resumes gets one whole answer.
		a.openLog(e.Turn)
	}
	a.settle(true, nobodyWaits)
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
		if _, err := a.Decide(cmd); err != nil {
			reply(nil, err)
			return
		}
		reply(a.State.conversation(), nil)
	case Rate, HandOver:
		events, err := a.Decide(cmd)
		if err == nil {
			err = a.commit(events, journal.Append{})
		}
		reply(nil, err)
		persistent.RestartIfBehind(err)
	case Stop:
		err := a.stop(cmd)
		reply(nil, err)
		persistent.RestartIfBehind(err)
		a.settle(false, nobodyWaits)
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
		persistent.RestartIfBehind(err)
		return
	}
	prepared := func() {}
	if turn.Fresh {
		ready := make(chan struct{})
		turn.Prepared, prepared = ready, sync.OnceFunc(func() { close(ready) })
	}
	reply(turn, nil)
	a.settle(false, prepared)
}

// stop ends the answer in hand. Its run is stopped when the thread settles.
func (a *Actor) stop(cmd Stop) error {
	msg := stopped{Stop: cmd}
	if log := a.logs[cmd.Turn]; log != nil {
		msg.text = log.Text(0)
	}
	events, err := a.Decide(msg)
	if err == nil {
		err = a.commit(events, journal.Append{})
	}
	return err
}

// forget removes the thread. Afterwards the actor is one of a thread that nobody opened.
func (a *Actor) forget(cmd Forget) error {
	if _, err := a.Decide(Read{Project: cmd.Project}); err != nil {
		return err
	}
	c := a.State.conversation()
	if !cmd.Unused.IsZero() && (len(a.State.open) > 0 || c.Used().After(cmd.Unused)) {
		return &api.StateError{Kind: api.ErrConflict, Reason: "the thread is in use"}
	}
	open := a.State.open
	if err := a.Delete(c.Claims()...); err != nil {
		return err
	}
	for i := range open {
		a.trace(&open[i], a.deps.Now(), "removed")
	}
	for turn := range a.logs {
		a.closeLog(turn, stream.Part{Kind: stream.Error, Text: "This conversation was removed."})
	}
	a.deps.Log.Info("thread removed", "project", c.Project, "thread", a.State.id)
	return nil
}

func (a *Actor) ask(cmd *Ask) (Turn, error) {
	msg := asked{Ask: cmd}
	var secret string
	if !a.State.opened && cmd.New {
		secret = rand.Text() + rand.Text()
		msg.keyHash = sha256.Sum256([]byte(secret))
	}
	events, err := a.Decide(msg)
	if err != nil {
		return Turn{}, err
	}
	if len(events) == 0 {
		e, _ := a.State.repeat(cmd)
		return Turn{Thread: a.State.id, ID: e.Turn, Log: a.logOf(e)}, nil
	}
	more := journal.Append{Uses: cmd.Uses}
	if cmd.Chat != "" { // even if it is the same chat: another thread may have been opened in it meanwhile
		more.Claim = &journal.Claim{Key: ChatClaim(cmd.Chat), Owner: a.Stream, Expires: chatsEnd, Replaces: true}
		if a.State.chat != "" && a.State.chat != cmd.Chat {
			more.Release = ChatClaim(a.State.chat)
		}
	}
	if err := a.commit(events, more); err != nil {
		return Turn{}, err
	}
	return Turn{Thread: a.State.id, ID: cmd.Turn, Key: secret, Log: a.openLog(cmd.Turn), Fresh: true}, nil
}

func (a *Actor) resume(cmd Resume) (Turn, error) {
	if _, err := a.Decide(cmd); err != nil {
		return Turn{}, err
	}
	e, _ := a.State.newest()
	return Turn{Thread: a.State.id, ID: e.Turn, Log: a.logOf(e)}, nil
}

// Own takes a message that the actor's own effects and timers sent.
func (a *Actor) Own(msg any) {
	res, ok := msg.(*persistent.Result)
	if !ok {
		panic(fmt.Sprintf("a thread does not know %T", msg))
	}
	taken := a.Listen(res, func(events []Event) error {
		err := a.commit(events, journal.Append{})
		if done, ok := res.Body.(turnDone); ok && err != nil && res.Tries == 0 && !errors.Is(err, journal.ErrSequence) {
			a.refused(&done)
		}
		return err
	})
	if !taken {
		return
	}
	if _, ok := res.Body.(begun); !ok {
		a.StopRun()
	}
	a.settle(false, nobodyWaits)
}

// refused tells readers that the journal cannot take their answer now, rather than keep them waiting. It is not
// thrown away but offered again, and a reader who resumes gets it.
func (a *Actor) refused(done *turnDone) {
	turn := a.State.open[0].Turn
	if a.deps.Place.Several() { // who comes again may find a node that can store it
		a.logs[turn].Break()
	}
	finish(a.logs[turn], stream.Part{Kind: stream.Error,
		Text: "The answer could not be stored. Please load it again in a moment."})
	replay(a.openLog(turn), done.sources, done.text)
}

// commit makes events facts: first in the journal, together with what else the append has; then in the state, then in
// the streams.
func (a *Actor) commit(events []Event, more journal.Append) error {
	if len(events) == 0 {
		return nil
	}
	more.Urgency = journal.AtOnce
	switch events[len(events)-1].(type) {
	case Asked:
		more.Urgency = journal.Soon
	case Answered: // its reader has all of its text by now, and then sees it end
		more.Urgency = journal.Later
	}
	before := a.State.open
	if err := a.Commit(events, more); err != nil {
		return err
	}
	for _, ev := range events {
		a.follow(before, ev)
	}
	return nil
}

// follow brings what is now a fact to the turn's stream, and to the log.
func (a *Actor) follow(before []Exchange, ev Event) {
	switch ev := ev.(type) {
	case Asked:
		for _, old := range before {
			if _, stays := index(a.State.open, old.Turn); !stays {
				a.closeLog(old.Turn, stream.Part{Kind: stream.Error, Text: "This question was asked again. Its answer is in the new reply."})
				a.trace(&old, ev.Exchange.Asked, "replaced")
			}
		}
	case Answered:
		e, _ := a.State.find(ev.Turn)
		a.closeLog(ev.Turn, finishPart(a.State.id, e))
		a.trace(&e, ev.At, "")
		a.deps.Log.InfoContext(a.Context(), "answered", "project", a.State.project, "thread", a.State.id, "turn", ev.Turn, "answered",
			ev.Answered,
			"model", ev.Model, "fallback_for", ev.FallbackFor, "sources", len(ev.Sources), "seconds",
			ev.At.Sub(e.Asked).Seconds())
		result := ResultUnanswered
		if ev.Answered {
			result = ResultAnswered
		}
		a.deps.tellEnd(result)
	case TurnFailed:
		result := ResultFailed
		if ev.Reason == Stopped {
			result = ResultStopped
		}
		a.deps.tellEnd(result)
		a.closeLog(ev.Turn, stream.Part{Kind: stream.Error, Text: ev.Reason})
		e, _ := a.State.find(ev.Turn)
		a.trace(&e, ev.At, "failed")
		a.deps.Log.WarnContext(a.Context(), "turn failed", "project", a.State.project, "thread", a.State.id, "turn", ev.Turn, "reason", ev.Reason)
	case Rated:
		a.deps.Log.InfoContext(a.Context(), "rated", "project", a.State.project, "thread", a.State.id, "turn", ev.Turn, "rating",
			ev.Feedback.Rating)
	case HandedOver:
		a.deps.Log.InfoContext(a.Context(), "handed over to people", "project", a.State.project, "thread", a.State.id, "turn", ev.Turn)
	case Retried:
		if ev.Reason == persistent.Panicked { // the next run writes to a stream of its own
			a.closeLog(ev.Turn, stream.Part{Kind: stream.Error,
				Text: "The answer broke off because of an internal error and is being written again. Please reload it."})
			a.openLog(ev.Turn)
		}
	}
}

// openLog opens the stream of a turn's answer. Its readers have the first part at once and then wait with the turn.
// It is every reader's: the thread's secret is not in it.
func (a *Actor) openLog(turn api.TurnID) *stream.Log {
	log := stream.NewLog(stream.Limit(2 * a.deps.AnswerLimit))
	log.Append(stream.Part{Kind: stream.Start, Message: string(turn), Thread: string(a.State.id)})
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
	log.Append(stream.Part{Kind: stream.Start, Message: string(e.Turn), Thread: string(a.State.id)})
	if e.Error != "" {
		replay(log, nil, e.Text)
		explained(log, e.Trace)
		finish(log, stream.Part{Kind: stream.Error, Text: e.Error})
		return log
	}
	replay(log, e.Sources, e.Answer)
	explained(log, e.Trace)
	finish(log, finishPart(a.State.id, e))
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
	reason := cmp.Or(e.Reason, "stop")
	p := stream.Part{Kind: stream.Finish, Message: string(e.Turn), Thread: string(thread), Reason: reason, Usage: e.Usage}
	if e.FallbackFor != "" {
		p.Model, p.Fallback = e.Model, true // which model should have answered is not for readers
	}
	p.Degraded = e.Degraded
	return p
}

// settle starts the turn that the state calls for, and stops a run that it no longer calls for. It has prepared
// called, once or more: by the run that starts, or here if none does.
func (a *Actor) settle(recovered bool, prepared func()) {
	if a.Settle() {
		a.start(recovered, prepared)
	} else {
		prepared()
	}
}

// nobodyWaits is the prepared of a turn whose reader was answered already.
func nobodyWaits() {}

// Close ends the actor, see persistent.Actor. Readers get a proper end; those of an actor that another node is to run are
// broken off, so that they come again and go on there.
func (a *Actor) Close(whole bool) {
	for _, log := range a.logs {
		if a.Moved() {
			log.Break()
			continue
		}
		finish(log, stream.Part{Kind: stream.Error,
			Text: "The answer was interrupted. It will be finished; load it again in a moment."})
	}
	a.logs = nil
	a.Actor.Close(whole)
}
