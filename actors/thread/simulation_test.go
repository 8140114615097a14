package thread

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"docent/actors/simulation"
	"docent/api"
)

// TestSimulation drives the state machine with questions that are repeated and replaced, and with results that come
// late, twice, out of order or not at all, over crashes that forget all but what the journal holds.
func TestSimulation(t *testing.T) { simulation.Run(t, 120, simulate) }

func simulate(seed uint64, plant string, story simulation.Story) error {
	return newSimulation(seed, plants[plant], story).run()
}

// A life is one thread.
type life struct {
	simulation.Life[state, Event]
	expect []string          // turns that the conversation must hold, in this order
	ended  map[string]string // turns that came to an end, with what the reader was told
	worked map[int]string    // the turn that an attempt was made for
	stormy bool              // it crashes all the time
	turns  int
}

func newSimulation(seed uint64, plant simulation.Plant[state, Event], story simulation.Story) *life {
	s := &life{Life: simulation.New(&kind, plant, seed, 3, story), stormy: seed%4 == 0,
		ended: make(map[string]string), worked: make(map[int]string)}
	s.ID, s.Now, s.State, s.Normal, s.Happens = string(testID), t0, state{id: testID}, normal, s.happens
	return s
}

func (s *life) run() error { return s.Guard(s.live) }

func (s *life) live() {
	s.take(opens(named(0), "first"))
	s.expect = []string{named(0)}
	for i := range simulation.Steps {
		s.Step(i, 8000)
		if s.stormy && s.Rand.IntN(3) == 0 {
			s.Crash(maxInterrupted)
			s.check()
			continue
		}
		switch n := s.Rand.IntN(100); {
		case n < 25:
			s.ask()
		case n < 32:
			s.Crash(maxInterrupted)
		case n < 38:
			s.rate()
		case n < 65:
			s.work()
		default:
			s.deliver()
		}
		s.check()
	}
	s.Where = "in peace"
	for range 10 * len(s.expect) {
		if len(s.State.open) == 0 {
			break
		}
		s.work()
		s.Drain(func() { s.deliver(); s.check() })
	}
	if n := len(s.State.open); n > 0 {
		s.Fail("%d questions stay open", n)
	}
}

// named is a name that sorts by when it was made, as real ones do.
func named(turn int) string { return fmt.Sprintf("%06d", turn) }

func (s *life) ask() {
	if s.turns == 0 || s.Rand.IntN(4) > 0 {
		s.turns++
	}
	turn := named(s.turns)
	cmd := asks(turn, "q"+turn)
	cmd.Regenerate = s.Rand.IntN(6) == 0
	if s.Rand.IntN(6) == 0 { // the newest message once more, as a turn of its own
		if e, ok := s.State.newest(); ok {
			s.turns++
			turn = named(s.turns)
			cmd.Turn, cmd.Message = api.TurnID(turn), e.Message
			if s.Rand.IntN(3) > 0 { // or another question under its id
				cmd.Text = e.Question
			}
		}
	}
	from := "" // the turn that the reader no longer sees, with all that came after it
	if s.Rand.IntN(8) == 0 {
		s.turns++
		turn = named(s.turns)
		from = s.expect[s.Rand.IntN(len(s.expect))]
		cmd.Turn, cmd.Regenerate = api.TurnID(turn), s.Rand.IntN(2) == 0
		e, _ := s.State.find(api.TurnID(from))
		if cmd.Instead = from; s.Rand.IntN(2) == 0 {
			cmd.Instead = e.Message
			for _, later := range s.State.conversation().Turns { // the newest under that id is meant
				if later.Message == e.Message {
					from = string(later.Turn)
				}
			}
		}
	}
	before := s.State
	events, err := s.take(cmd)
	if len(events) == 0 {
		newest, _ := before.newest()
		_, replaced := index(before.replaced, api.TurnID(turn)) // it comes once more
		if err == nil && !replaced && !slices.Contains(s.expect, turn) && (newest.Done || newest.Message != cmd.Message ||
			newest.Question != cmd.Text) {
			s.Fail("turn %s is acknowledged and nothing is kept of it", turn)
		}
		return
	}
	if known := slices.Contains(s.expect, turn); known {
		s.Fail("turn %s was asked twice", turn)
	}
	newest, _ := before.newest()
	if from == "" && newest.Message == cmd.Message && (cmd.Regenerate || newest.Question == cmd.Text) {
		from = string(newest.Turn)
	}
	if from != "" {
		s.expect = s.expect[:slices.Index(s.expect, from)]
	}
	s.expect = append(s.expect, turn)
}

func (s *life) rate() {
	turn := s.expect[s.Rand.IntN(len(s.expect))]
	r := []api.Rating{api.RatedUp, api.RatedDown}[s.Rand.IntN(2)]
	s.take(rates(turn, r))
	if e, ok := s.State.find(api.TurnID(turn)); !ok || e.Feedback == nil || e.Feedback.Rating != r {
		s.Fail("turn %s was rated %s: %+v", turn, r, e)
	}
}

// take does what the actor does with a message.
func (s *life) take(msg any) ([]Event, error) {
	events, err := s.Take(msg)
	if err != nil && !errors.Is(err, api.ErrOverloaded) {
		s.Fail("%v", err)
	}
	return events, err
}

func (s *life) happens(msg any, ev Event) {
	switch ev := ev.(type) {
	case Answered:
		s.own(msg, ev.Turn)
		s.end(ev.Turn, ev.Text)
	case TurnFailed:
		s.own(msg, ev.Turn)
		s.end(ev.Turn, "!")
	case Retried:
		s.own(msg, ev.Turn)
	case Asked:
		if len(s.State.open) > 0 && ev.Replaces {
			if _, open := index(s.State.open[1:], ev.From); !open {
				s.Broken = 0 // the turn in hand is another one
			}
		}
	}
}

// own holds a result that changes something to the turn that it is a result of.
func (s *life) own(msg any, turn api.TurnID) {
	attempt := 0
	switch msg := msg.(type) {
	case turnDone:
		attempt = msg.attempt
	case turnPanicked:
		attempt = msg.Attempt
	default:
		return
	}
	if of := s.worked[attempt]; of != string(turn) {
		s.Fail("a result of attempt %d, made for turn %s, is taken for %s", attempt, of, turn)
	}
}

func (s *life) end(turn api.TurnID, told string) {
	if was, ok := s.ended[string(turn)]; ok {
		s.Fail("turn %s ends twice: %q and %q", turn, was, told)
	}
	if told != "!" && told != "answer to "+string(turn) {
		s.Fail("turn %s gets %q", turn, told)
	}
	s.ended[string(turn)] = told
	s.Broken = 0
}

func (s *life) work() {
	w, ok := s.State.pending()
	if !ok {
		return
	}
	s.worked[w.attempt] = string(w.turn)
	switch s.Rand.IntN(13) {
	case 12: // somebody stops it, or another one that is not in hand
		s.Flying = append(s.Flying, turnDone{attempt: w.attempt, text: "answer to " + string(w.turn)})
		turn := w.turn
		if s.Rand.IntN(2) == 0 {
			turn = api.TurnID(s.expect[s.Rand.IntN(len(s.expect))])
		}
		events, _ := s.take(stopped{Stop: Stop{Project: "p", Turn: turn}, text: "answer"})
		if (len(events) > 0) != (turn == w.turn) {
			s.Fail("stopping turn %s while %s is in hand: %v", turn, w.turn, events)
		}
	case 0:
		s.Flying = append(s.Flying, turnPanicked{Attempt: w.attempt})
	case 1:
		s.Flying = append(s.Flying, turnDone{attempt: w.attempt, err: errors.New("down")})
	default:
		s.Flying = append(s.Flying, turnDone{attempt: w.attempt, text: "answer to " + string(w.turn),
			trace: &Trace{First: Micros(w.attempt), Passages: "500 a.md#\n"}})
	}
}

func (s *life) deliver() {
	if msg := s.Arrives(); msg != nil {
		s.take(msg)
	}
}

// check holds the state to what must be true of it at any time.
func (s *life) check() {
	var got []string
	open, at := false, time.Time{}
	for _, e := range s.State.conversation().Turns {
		got = append(got, string(e.Turn))
		if open && e.Done {
			s.Fail("turn %s ended before an earlier one", e.Turn)
		}
		open = open || !e.Done
		if e.Asked.Before(at) || e.Done && e.Ended.Before(e.Asked) {
			s.Fail("turn %s was asked at %v and ended at %v, after one of %v", e.Turn, e.Asked, e.Ended, at)
		}
		at = e.Asked
		if told, ok := s.ended[string(e.Turn)]; ok != e.Done || e.Done && e.Error == "" && e.Answer != told {
			s.Fail("turn %s: %+v, but told %q", e.Turn, e, told)
		}
	}
	if !slices.Equal(got, s.expect) {
		s.Fail("the conversation is %v, not %v", got, s.expect)
	}
	if s.State.interrupted-s.State.left >= maxInterrupted || s.State.panicked >= maxPanicked {
		s.Fail("it goes on after %d crashes, %d panics", s.State.interrupted, s.State.panicked)
	}
}
