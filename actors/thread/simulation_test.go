package thread

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"docent/api"
	"docent/persistence"
)

var (
	seed  = flag.Uint64("seed", 0, "run this one simulation, and tell its story")
	seeds = flag.Uint64("seeds", 120, "how many simulations to run")
)

const steps = 250

// TestSimulation drives the state machine with questions that are repeated and replaced, and with results that come late,
// twice, out of order or not at all, over crashes that forget all but what the journal holds. A failure names its seed:
// go test ./actors/thread -run Simulation -seed N -v tells how it came about.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		newSimulation(t, *seed).run()
		return
	}
	for n := uint64(1); n <= *seeds && !t.Failed(); n++ {
		newSimulation(t, n).run()
	}
}

type simulation struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	now     time.Time
	state   state
	journal []persistence.Event
	snap    []byte
	snapAt  int
	flying  []any
	expect  []string          // turns that the conversation must hold, in this order
	ended   map[string]string // turns that came to an end, with what the reader was told
	turns   int
	where   string
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	return &simulation{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 3)), now: t0, state: state{id: testID}, ended: make(map[string]string)}
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d, %s: %s", s.seed, s.where, fmt.Sprintf(format, args...))
}

func (s *simulation) run() {
	s.take(opens("0", "first"))
	s.expect = []string{"0"}
	for i := range steps {
		s.now = s.now.Add(time.Duration(s.rng.IntN(8000)) * time.Millisecond)
		s.where = fmt.Sprint("step ", i)
		switch n := s.rng.IntN(100); {
		case n < 25:
			s.ask()
		case n < 32:
			s.crash()
		case n < 38:
			s.rate()
		case n < 65:
			s.work()
		default:
			s.deliver()
		}
		s.check()
	}
	s.where = "in peace"
	for range 10 * len(s.expect) {
		if len(s.state.open) == 0 {
			break
		}
		s.work()
		for len(s.flying) > 0 {
			s.deliver()
			s.check()
		}
	}
	if n := len(s.state.open); n > 0 {
		s.fail("%d questions stay open", n)
	}
}

func (s *simulation) ask() {
	if s.turns == 0 || s.rng.IntN(4) > 0 {
		s.turns++
	}
	turn := fmt.Sprint(s.turns)
	cmd := asks(turn, "q"+turn)
	cmd.Regenerate = s.rng.IntN(6) == 0
	if s.rng.IntN(6) == 0 { // the newest message once more, as a turn of its own
		if e, ok := s.state.newest(); ok {
			s.turns++
			turn = fmt.Sprint(s.turns)
			cmd.Turn, cmd.Message = api.TurnID(turn), e.Message
		}
	}
	before := s.state
	events := s.take(cmd)
	if len(events) == 0 {
		return
	}
	if known := slices.Contains(s.expect, turn); known {
		s.fail("turn %s was asked twice", turn)
	}
	if events[0].(Asked).Replaces {
		old, _ := before.newest()
		s.expect = slices.DeleteFunc(s.expect, func(t string) bool { return t == string(old.Turn) })
	}
	s.expect = append(s.expect, turn)
}

func (s *simulation) rate() {
	turn := s.expect[s.rng.IntN(len(s.expect))]
	r := []api.Rating{api.RatedUp, api.RatedDown}[s.rng.IntN(2)]
	s.take(rates(turn, r))
	if e, ok := s.state.find(api.TurnID(turn)); !ok || e.Feedback == nil || e.Feedback.Rating != r {
		s.fail("turn %s was rated %s: %+v", turn, r, e)
	}
}

// take does what the actor does with a message.
func (s *simulation) take(msg any) []Event {
	events, err := s.state.decide(msg, s.now)
	if *seed != 0 {
		s.t.Logf("%s: %T %+v -> %v, %v", s.where, msg, msg, events, err)
	}
	if err != nil && !errors.Is(err, api.ErrOverloaded) {
		s.fail("%v", err)
	}
	for _, ev := range events {
		stored, err := encode(ev)
		if err != nil {
			s.fail("%v", err)
		}
		s.journal = append(s.journal, stored)
		switch ev := ev.(type) {
		case Answered:
			s.end(ev.Turn, ev.Text)
		case TurnFailed:
			s.end(ev.Turn, "!")
		}
		s.state = s.state.apply(ev)
	}
	if s.rng.IntN(10) == 0 && s.state.opened {
		if s.snap, err = s.state.snapshot(); err != nil {
			s.fail("%v", err)
		}
		s.snapAt = len(s.journal)
	}
	return events
}

func (s *simulation) end(turn api.TurnID, told string) {
	if was, ok := s.ended[string(turn)]; ok {
		s.fail("turn %s ends twice: %q and %q", turn, was, told)
	}
	if told != "!" && told != "answer to "+string(turn) {
		s.fail("turn %s gets %q", turn, told)
	}
	s.ended[string(turn)] = told
}

func (s *simulation) crash() {
	rec := persistence.Recovered{Seq: uint64(len(s.journal)), Events: s.journal}
	if s.snap != nil && s.rng.IntN(2) == 0 {
		rec.Snapshot, rec.SnapSeq, rec.Events = s.snap, uint64(s.snapAt), s.journal[s.snapAt:]
	}
	got, err := recovered(testID, rec)
	if err != nil {
		s.fail("recover: %v", err)
	}
	if !reflect.DeepEqual(normal(got), normal(s.state)) {
		s.fail("recovered\n%+v\nfrom\n%+v", got, s.state)
	}
	s.state = got
	if s.rng.IntN(2) == 0 {
		s.flying = nil
	}
	if w, ok := s.state.pending(); ok {
		s.take(begun{w.attempt})
	}
}

func (s *simulation) work() {
	w, ok := s.state.pending()
	if !ok {
		return
	}
	switch s.rng.IntN(12) {
	case 0:
		s.flying = append(s.flying, turnPanicked{w.attempt})
	case 1:
		s.flying = append(s.flying, turnDone{attempt: w.attempt, err: errors.New("down")})
	default:
		s.flying = append(s.flying, turnDone{attempt: w.attempt, text: "answer to " + string(w.turn)})
	}
}

func (s *simulation) deliver() {
	if len(s.flying) == 0 {
		return
	}
	i := s.rng.IntN(len(s.flying))
	msg := s.flying[i]
	if s.rng.IntN(5) > 0 {
		s.flying = append(s.flying[:i], s.flying[i+1:]...)
	}
	s.take(msg)
}

// check holds the state to what must be true of it at any time.
func (s *simulation) check() {
	var got []string
	open := false
	for _, e := range s.state.conversation().Turns {
		got = append(got, string(e.Turn))
		if open && e.Done {
			s.fail("turn %s ended before an earlier one", e.Turn)
		}
		open = open || !e.Done
		if told, ok := s.ended[string(e.Turn)]; ok != e.Done || e.Done && e.Error == "" && e.Answer != told {
			s.fail("turn %s: %+v, but told %q", e.Turn, e, told)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(s.expect) {
		s.fail("the conversation is %v, not %v", got, s.expect)
	}
	if s.state.interrupted >= maxInterrupted || s.state.panicked >= maxPanicked {
		s.fail("it goes on after %d crashes, %d panics", s.state.interrupted, s.state.panicked)
	}
}
