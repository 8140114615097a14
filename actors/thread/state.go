package thread

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/api/stream"
	"docent/model"
)

const (
	maxInterrupted = 8  // runs that ended with the process before the turn is given up
	maxPanicked    = 2  // runs that failed in the program
	maxWaiting     = 16 // questions that wait in one thread
	maxChanges     = 10 // of the rating of one answer: each is kept, and told to webhooks
	// What a model sees of the conversation so far.
	historyTurns = 10
	historyBytes = 16 << 10
	// maxReplaced is how many exchanges are kept that were replaced.
	maxReplaced = 256
)

// A state is all that is known of a thread. It is a value: apply returns a new one and leaves the old one as it was.
type state struct {
	id      api.ThreadID
	opened  bool
	project api.ProjectID
	caller  string
	reader  string // as the site's server said when the thread was opened; empty if it did not
	keyHash [32]byte
	at      time.Time

	done []Exchange // answered or failed, oldest first
	open []Exchange // accepted and unanswered, in the order asked; the first is in hand
	// replaced are the newest exchanges that others took the place of, and what came after those: what the reader no
	// longer sees. The operator does, and a rating is often the reason why.
	replaced []Exchange
	chat     string // of the newest question that was asked in one
	attempt  int    // of the turn in hand; results of earlier ones are ignored
	// How often the turn in hand broke off.
	interrupted, panicked int
	left                  int // how often of the former in good order
}

// work is the turn that the state calls for now.
type work struct {
	attempt int
	turn    api.TurnID
}

// pending tells which work the state calls for. It is asked after every event and once after recovery.
func (s *state) pending() (work, bool) {
	if len(s.open) == 0 {
		return work{}, false
	}
	return work{s.attempt, s.open[0].Turn}, true
}

// Results of effects. They never leave this package.
type (
	// asked is an Ask with the hash of the secret that a new thread gets.
	asked struct {
		*Ask
		keyHash [32]byte
	}
	// stopped is a Stop with what was written by then.
	stopped struct {
		Stop
		text string
	}
	begun        = persistent.Begun
	turnLeft     = persistent.RunLeft
	turnPanicked = persistent.RunPanicked
	// turnDone is the outcome of a turn.
	turnDone struct {
		attempt int
		text    string
		sources []Source
		result  model.Result
		err     error
		trace   *Trace

		unindexed bool // there was no index to answer from, and nothing was written
	}
)

// decide tells which facts follow from a message, or why none may. No events and no error: nothing changes.
func (s *state) decide(msg any, now time.Time) ([]Event, error) {
	if last := s.latest(); now.Before(last) {
		now = last // the clock was set back; a thread's time is not
	}
	switch msg := msg.(type) {
	case asked:
		return s.ask(msg, now)
	case Resume:
		return nil, s.resume(&msg, now)
	case Read:
		if !s.opened || s.project != msg.Project {
			return nil, api.ErrNotFound
		}
		return nil, nil
	case Rate:
		return s.rate(&msg, now)
	case HandOver:
		return s.handOver(&msg, now)
	case stopped:
		return s.stop(&msg, now)

	case begun:
		if !s.current(msg.Attempt) {
			return nil, nil
		}
		if s.interrupted+1-s.left >= maxInterrupted {
			return []Event{TurnFailed{Turn: s.open[0].Turn,
				Reason: "The answer broke off too often and was given up. Please ask again.", At: now}}, nil
		}
		return []Event{Retried{Turn: s.open[0].Turn, Reason: persistent.Interrupted, At: now}}, nil
	case turnLeft:
		if !s.current(msg.Attempt) {
			return nil, nil
		}
		return []Event{Retried{Turn: s.open[0].Turn, Reason: persistent.Left, At: now}}, nil
	case turnPanicked:
		if !s.current(msg.Attempt) {
			return nil, nil
		}
		if s.panicked+1 >= maxPanicked {
			return []Event{TurnFailed{Turn: s.open[0].Turn, Reason: "The answer failed because of an internal error.", At: now}},
				nil
		}
		return []Event{Retried{Turn: s.open[0].Turn, Reason: persistent.Panicked, At: now}}, nil
	case turnDone:
		return s.end(&msg, now)
	}
	return nil, fmt.Errorf("a thread does not know %T", msg)
}

// end tells what follows from the end of the turn in hand. It is kept out of the frame of decide, as asked.event is.
//
//go:noinline
func (s *state) end(done *turnDone, now time.Time) ([]Event, error) {
	if !s.current(done.attempt) {
		return nil, nil
	}
	turn := s.open[0].Turn
	if done.err != nil {
		reason := "The answer could not be completed. Please try again."
		if done.text != "" {
			reason = "The answer broke off here and is not complete. Please ask again."
		}
		return []Event{TurnFailed{Turn: turn, Reason: reason, Text: done.text, At: now, Usage: usage(&done.result),
			Trace: done.trace}}, nil
	}
	return []Event{Answered{Turn: turn, Text: done.text, Sources: done.sources, Model: done.result.Model,
		Answered: done.result.Answered,
		Usage:    usage(&done.result), Reason: done.result.Reason, At: now, FallbackFor: done.result.FallbackFor,
		Trace: done.trace, Channel: s.open[0].Channel, Degraded: done.result.Degraded}}, nil
}

// Stopped is why there is no answer, or no whole one, if somebody has ended it.
const Stopped = "The answer was stopped."

func (s *state) stop(cmd *stopped, now time.Time) ([]Event, error) {
	if !s.opened || s.project != cmd.Project {
		return nil, api.ErrNotFound
	}
	if len(s.open) == 0 || s.open[0].Turn != cmd.Turn {
		return nil, nil
	}
	return []Event{TurnFailed{Turn: cmd.Turn, Reason: Stopped, Text: cmd.text, At: now}}, nil
}

// latest is when something last happened in the thread, other than a rating.
func (s *state) latest() time.Time {
	last := s.at
	if e, ok := s.newest(); ok && e.Asked.After(last) {
		last = e.Asked
	}
	if n := len(s.done); n > 0 && s.done[n-1].Ended.After(last) {
		last = s.done[n-1].Ended
	}
	return last
}

// current reports whether a result is of the turn in hand.
func (s *state) current(attempt int) bool { return len(s.open) > 0 && attempt == s.attempt }

// ErrKey refuses a caller who shows no key although one is required, or a wrong one. To a caller who could not know of
// the thread without it, the thread does not exist.
var ErrKey = fmt.Errorf("%w: the thread's key is missing or wrong", api.ErrNotFound)

// admit refuses a caller that may not continue the thread, in the same way as if there were none.
func (s *state) admit(project *api.Project, caller, reader, key string) error {
	if !s.opened || s.project != project.ID || s.caller != caller || s.reader != reader {
		return api.ErrNotFound
	}
	return s.unlock(key, project.Options.RequireThreadKey)
}

// unlock checks a key, even if none is required.
func (s *state) unlock(key string, required bool) error {
	if key == "" && !required {
		return nil
	}
	hash := sha256.Sum256([]byte(key))
	if subtle.ConstantTimeCompare(hash[:], s.keyHash[:]) != 1 {
		return ErrKey
	}
	return nil
}

// resume refuses a caller that may not read the newest answer. A chat stands for its caller: who knows it has asked in
// it.
func (s *state) resume(cmd *Resume, now time.Time) error {
	caller := cmd.Caller
	if cmd.Chat != "" {
		if subtle.ConstantTimeCompare([]byte(cmd.Chat), []byte(s.chat)) != 1 {
			return api.ErrNotFound
		}
		caller = cmp.Or(caller, s.caller)
	}
	if err := s.admit(&cmd.Project, caller, cmd.Reader, cmd.ThreadKey); err != nil {
		return err
	}
	if e, _ := s.newest(); cmd.Within > 0 && e.Done && now.Sub(e.Ended) > cmd.Within {
		return api.ErrNotFound
	}
	return nil
}

func (s *state) ask(msg asked, now time.Time) ([]Event, error) {
	if !s.opened {
		if !msg.New {
			return nil, api.ErrNotFound
		}
		return []Event{
			Opened{Project: msg.Project.ID, Caller: msg.Caller, KeyHash: msg.keyHash, At: now, Reader: msg.Reader},
			msg.event(now, ""),
		}, nil
	}
	repeat, again := s.repeat(msg.Ask)
	// Who opens a thread has no key to show yet, also when asking once more.
	project := msg.Project
	if msg.New && again && repeat.Turn == msg.Turn {
		project.Options.RequireThreadKey = false
	}
	if err := s.admit(&project, msg.Caller, msg.Reader, msg.ThreadKey); err != nil {
		return nil, err
	}
	if again {
		return nil, nil
	}
	if len(s.open) > maxWaiting {
		return nil, &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: 10 * time.Second}
	}
	return []Event{msg.event(now, s.instead(msg.Ask))}, nil
}

// instead is the exchange that a question takes the place of, empty if it is a further one. The client says so, by
// the ids of its messages, and shows its reader the conversation up to there and the new answer.
func (s *state) instead(cmd *Ask) api.TurnID {
	newest, _ := s.newest()
	if !cmd.Regenerate && cmd.Instead == "" {
		if same(cmd, &newest) { // SDK 4 regenerates without saying so
			return newest.Turn
		}
		return ""
	}
	for _, id := range []string{cmd.Instead, cmd.Message} {
		for _, list := range [][]Exchange{s.open, s.done} {
			for i := len(list) - 1; i >= 0 && id != ""; i-- {
				if string(list[i].Turn) == id || list[i].Message == id {
					return list[i].Turn
				}
			}
		}
	}
	// A client without ids means the newest. A message with an id that is not known here may never have got here.
	if cmd.Regenerate && (cmd.Message == "" || newest.Message == "" || cmd.Text == newest.Question) {
		return newest.Turn
	}
	return ""
}

// same reports whether a client's message is one that was asked: some clients give each of their messages the same id.
func same(cmd *Ask, e *Exchange) bool {
	return cmd.Message != "" && cmd.Message == e.Message && cmd.Text == e.Question
}

func (s *state) rate(cmd *Rate, now time.Time) ([]Event, error) {
	caller := cmp.Or(cmd.Caller, s.caller)
	if err := s.admit(&cmd.Project, caller, cmd.Reader, cmd.ThreadKey); err != nil {
		return nil, err
	}
	e, ok := s.find(cmd.Turn)
	if !ok {
		return nil, api.ErrNotFound
	}
	said := Feedback{Rating: cmd.Rating, Comment: cmd.Comment, At: now}
	if f := e.Feedback; f != nil {
		if f.Rating == cmd.Rating && f.Comment == cmd.Comment {
			return nil, nil
		}
		if said.Changes = f.Changes + 1; said.Changes > maxChanges {
			return nil, &api.StateError{Kind: api.ErrConflict, Reason: "this answer was rated too often: the last rating stays"}
		}
	}
	return []Event{Rated{Turn: cmd.Turn, Feedback: said, Channel: e.Channel}}, nil
}

func (s *state) handOver(cmd *HandOver, now time.Time) ([]Event, error) {
	if cmd.Project.Widget.Contact != api.ContactForm {
		return nil, &api.StateError{Kind: api.ErrNotFound, Reason: "nobody takes messages here: the project's contact is not the form"}
	}
	if err := s.admit(&cmd.Project, cmp.Or(cmd.Caller, s.caller), cmd.Reader, cmd.ThreadKey); err != nil {
		return nil, err
	}
	turns := slices.Concat(s.done, s.open)
	at, ok := index(turns, cmd.Turn)
	if !ok {
		return nil, api.ErrNotFound
	}
	cmd.Contact.At = now
	for _, e := range turns[at:] {
		if e.Contact == nil {
			continue
		}
		if cmd.Contact.At = e.Contact.At; e.Turn == cmd.Turn && *e.Contact == cmd.Contact {
			return nil, nil
		}
		return nil, &api.StateError{Kind: api.ErrConflict,
			Reason: "people have this conversation already: ask a further question before you write to them again"}
	}
	return []Event{HandedOver{Turn: cmd.Turn, Contact: cmd.Contact}}, nil
}

// repeat finds the exchange that a question was put in already. A request that took long on its way, as between nodes of
// which one was stopped, may come after its client has sent the message again, and gone on: the names of turns say when
// their requests came to the service, and its own is the earlier one.
func (s *state) repeat(cmd *Ask) (Exchange, bool) {
	for _, list := range [][]Exchange{s.open, s.done, s.replaced} {
		if i, ok := index(list, cmd.Turn); ok {
			return list[i], true
		}
	}
	for _, list := range [][]Exchange{s.open, s.done} {
		for i := len(list) - 1; i >= 0 && api.Earlier(api.TurnPrefix, string(cmd.Turn), string(list[i].Turn)); i-- {
			if same(cmd, &list[i]) {
				return list[i], true
			}
		}
	}
	newest, ok := s.newest()
	if !ok || cmd.Regenerate {
		return Exchange{}, false
	}
	if same(cmd, &newest) {
		return newest, !newest.Done // once it is answered, the same message asks for another answer: SDK 4 regenerates so
	}
	// A request that lay in the socket of a stopped node has a late name. A client that gives all its messages one id
	// says nothing of earlier ones by it.
	if cmd.Instead != "" || cmd.Message == newest.Message {
		return Exchange{}, false
	}
	for _, list := range [][]Exchange{s.open, s.done} {
		for i := len(list) - 1; i >= 0; i-- {
			if same(cmd, &list[i]) {
				return list[i], true
			}
		}
	}
	return Exchange{}, false
}

func (s *state) newest() (Exchange, bool) {
	if n := len(s.open); n > 0 {
		return s.open[n-1], true
	}
	if n := len(s.done); n > 0 {
		return s.done[n-1], true
	}
	return Exchange{}, false
}

// find finds an exchange of the conversation, or one that was rated before it was replaced.
func (s *state) find(turn api.TurnID) (Exchange, bool) {
	for _, list := range [][]Exchange{s.open, s.done} {
		if i, ok := index(list, turn); ok {
			return list[i], true
		}
	}
	if i, ok := index(s.replaced, turn); ok && s.replaced[i].Feedback != nil {
		return s.replaced[i], true
	}
	return Exchange{}, false
}

// index is the place of a turn in a list, if it is there.
func index(list []Exchange, turn api.TurnID) (int, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Turn == turn {
			return i, true
		}
	}
	return 0, false
}

// event is the fact that the question was put. Like all that the actor's goroutine calls for a question it is kept
// from growing its caller's frame: a goroutine begins with a small stack, and each time that it outgrows it the stack
// is copied.
//
//go:noinline
func (a asked) event(now time.Time, instead api.TurnID) Event {
	return Asked{Exchange: exchange(a.Ask, now), Replaces: instead != "", From: instead, Chat: a.Chat}
}

func exchange(cmd *Ask, now time.Time) Exchange {
	q := cmd.Query
	q.Text = ""
	return Exchange{Turn: cmd.Turn, Message: cmd.Message, Question: cmd.Text, Asked: now,
		Wanted:  &Wanted{slices.Clone(cmd.Context), q, cmd.Model, cmd.Explain, cmd.Before, cmd.Setting},
		Channel: cmd.Channel, Page: q.CurrentPath, Traced: cmd.Traced}
}

// apply is total: ev has happened.
func (s state) apply(ev Event) state {
	switch ev := ev.(type) {
	case Opened:
		s.opened = true
		s.project, s.caller, s.keyHash, s.at = ev.Project, ev.Caller, ev.KeyHash, ev.At
		s.reader = ev.Reader
	case Asked:
		if ev.Replaces {
			s = s.cut(ev.From)
		}
		if len(s.open) == 0 {
			s = s.next()
		}
		s.open = append(slices.Clip(s.open), ev.Exchange)
		if ev.Chat != "" {
			s.chat = ev.Chat
		}
	case Answered:
		s = s.close(ev.Turn, func(e *Exchange) {
			e.Answer, e.Sources, e.Model, e.Answered = ev.Text, ev.Sources, ev.Model, ev.Answered
			e.Usage, e.Reason, e.Ended, e.FallbackFor = ev.Usage, ev.Reason, ev.At, ev.FallbackFor
			e.Trace, e.Degraded = ev.Trace, ev.Degraded
		})
	case TurnFailed:
		s = s.close(ev.Turn, func(e *Exchange) {
			e.Error, e.Text, e.Ended, e.Usage, e.Trace = ev.Reason, ev.Text, ev.At, ev.Usage, ev.Trace
		})
	case Retried:
		switch ev.Reason {
		case persistent.Panicked:
			s.panicked++
			s.attempt++
		case persistent.Left:
			s.left++
		default:
			s.interrupted++
		}
	case Rated:
		s = s.note(ev.Turn, func(e *Exchange) { e.Feedback = &ev.Feedback })
	case HandedOver:
		s = s.note(ev.Turn, func(e *Exchange) { e.Contact = &ev.Contact })
	}
	return s
}

// note changes what is kept of an exchange, wherever it is.
func (s state) note(turn api.TurnID, change func(*Exchange)) state {
	for _, list := range []*[]Exchange{&s.open, &s.done, &s.replaced} {
		if i, ok := index(*list, turn); ok {
			*list = slices.Clone(*list) // the old state keeps its own
			change(&(*list)[i])
		}
	}
	return s
}

// next counts the turn that comes in hand as a new attempt.
func (s state) next() state {
	s.attempt++
	s.interrupted, s.left, s.panicked = 0, 0, 0
	return s
}

// cut takes an exchange out of the conversation, with all that came after it. Events from before exchanges had to be
// named mean the last one, and keep it only if it was rated.
func (s state) cut(from api.TurnID) state {
	named := from != ""
	if newest, ok := s.newest(); ok && !named {
		from = newest.Turn
	}
	var gone []Exchange
	if i, ok := index(s.done, from); ok {
		gone = slices.Concat(s.done[i:], s.open)
		s.done, s.open = s.done[:i:i], nil // the next append copies: the old state keeps its own
	} else if i, ok := index(s.open, from); ok {
		gone = slices.Clone(s.open[i:])
		s.open = s.open[:i:i]
	}
	for i := range gone {
		gone[i].Wanted = nil // it will not be answered any more
	}
	if !named {
		gone = slices.DeleteFunc(gone, func(e Exchange) bool { return !e.Done || e.Feedback == nil })
	}
	if len(gone) > 0 {
		s.replaced = slices.Concat(s.replaced, gone)
		s.replaced = s.replaced[max(0, len(s.replaced)-maxReplaced):]
	}
	return s
}

// close moves the turn in hand to the answered ones. What it took to answer is not kept.
func (s state) close(turn api.TurnID, change func(*Exchange)) state {
	if len(s.open) == 0 || s.open[0].Turn != turn {
		return s
	}
	e := s.open[0]
	e.Done = true
	change(&e)
	e.Wanted = nil
	s.open = slices.Clone(s.open[1:])
	s.done = append(slices.Clip(s.done), e)
	return s.next()
}

// history is what a model sees of the conversation before the turn in hand: the newest answered exchanges that fit, or
// what the client has kept of it if the thread opens with that turn.
func (s *state) history() []model.Message {
	if len(s.done) == 0 && len(s.open) > 0 && s.open[0].Wanted != nil {
		return s.open[0].Wanted.Before
	}
	var out []model.Message
	size := 0
	for i := len(s.done) - 1; i >= 0 && len(out) < 2*historyTurns; i-- {
		e := s.done[i]
		if e.Error != "" {
			continue
		}
		answer := spoken(e.Answer)
		if size += len(e.Question) + len(answer); size > historyBytes {
			break
		}
		out = append(out, model.Message{Role: "assistant", Text: answer}, model.Message{Role: "user", Text: e.Question})
	}
	slices.Reverse(out)
	return out
}

// spoken is an answer without what was put around it: the notice that another model answers, the block of suggestions.
func spoken(answer string) string {
	text, _ := stream.Suggested(model.WithoutInstead(answer))
	return text
}

func (s *state) conversation() Conversation {
	return Conversation{Thread: s.id, Project: s.project, Caller: s.caller, Opened: s.at, Chat: s.chat,
		Turns:    slices.Concat(s.done, s.open),
		Replaced: slices.Clone(s.replaced)}
}
