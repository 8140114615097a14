package thread

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/journal"
)

var (
	seed  = flag.Uint64("seed", 0, "run this one simulation, and tell its story")
	plant = flag.String("plant", "", "with -seed: the planted defect to run it with")
)

const steps = 250 // of one simulation, with the faults on

// simulations is how many to run: DOCENT_TEST_STEPS steps altogether, or so many by default.
func simulations(t *testing.T, standard uint64) uint64 {
	t.Helper()
	text := os.Getenv("DOCENT_TEST_STEPS")
	if text == "" {
		return standard
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DOCENT_TEST_STEPS: %v", err)
	}
	return (n + steps - 1) / steps
}

// TestSimulation drives the state machine with questions that are repeated and replaced, and with results that come late,
// twice, out of order or not at all, over crashes that forget all but what the journal holds. A failure names its seed:
// go test ./actors/thread -run TestSimulation$ -seed N -v tells how it came about.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		tell(t, *seed, plants[*plant])
		return
	}
	count := simulations(t, 120)
	var next, done atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := next.Add(1); n <= count && !t.Failed(); n = next.Add(1) {
				if err := newSimulation(n, machine{}).run(); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	t.Logf("%d simulations of %d steps", done.Load(), steps)
}

// tell runs one simulation and tells its story.
func tell(t *testing.T, seed uint64, m machine) {
	s := newSimulation(seed, m)
	s.story = t.Logf
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// A machine is the state machine under test. A planted defect replaces a part of it; the zero machine is the real one.
type machine struct {
	decide   func(s state, msg any, now time.Time) ([]Event, error)
	apply    func(s state, ev Event) state
	snapshot func(s state) state // what is kept of a state
}

func (m machine) taking(s state, msg any, now time.Time) ([]Event, error) {
	if m.decide != nil {
		return m.decide(s, msg, now)
	}
	return s.decide(msg, now)
}

func (m machine) applying(s state, ev Event) state {
	if m.apply != nil {
		return m.apply(s, ev)
	}
	return s.apply(ev)
}

type simulation struct {
	seed    uint64
	story   func(format string, args ...any) // nil where nobody listens
	machine machine
	rng     *rand.Rand
	now     time.Time
	state   state
	journal []journal.Event
	snap    []byte
	snapAt  int
	flying  []any
	expect  []string          // turns that the conversation must hold, in this order
	ended   map[string]string // turns that came to an end, with what the reader was told
	worked  map[int]string    // the turn that an attempt was made for
	stormy  bool              // it crashes all the time
	broken  int               // crashes that broke off the turn in hand
	turns   int
	where   string
}

// A violation is what a simulation has found.
type violation struct{ error }

func newSimulation(seed uint64, m machine) *simulation {
	return &simulation{seed: seed, machine: m, rng: rand.New(rand.NewPCG(seed, 3)), now: t0, state: state{id: testID},
		stormy: seed%4 == 0, ended: make(map[string]string), worked: make(map[int]string)}
}

func (s *simulation) fail(format string, args ...any) {
	panic(violation{fmt.Errorf("seed %d, %s: %s", s.seed, s.where, fmt.Sprintf(format, args...))})
}

// run goes to the end, or to the first thing that is not as it must be.
func (s *simulation) run() (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case violation:
			err = r.error
		default:
			err = fmt.Errorf("seed %d, %s: panic: %v", s.seed, s.where, r)
		}
	}()
	s.take(opens("0", "first"))
	s.expect = []string{"0"}
	for i := range steps {
		s.now = s.now.Add(time.Duration(s.rng.IntN(8000)) * time.Millisecond)
		if s.rng.IntN(50) == 0 { // the clock jumps
			s.now = s.now.Add([]time.Duration{-time.Hour, 24 * time.Hour}[s.rng.IntN(2)])
		}
		s.where = fmt.Sprint("step ", i)
		if s.stormy && s.rng.IntN(3) == 0 {
			s.crash()
			s.check()
			continue
		}
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
		for n := 0; len(s.flying) > 0; n++ {
			if n == 10_000 {
				s.fail("results of effects are never done with")
			}
			s.deliver()
			s.check()
		}
	}
	if n := len(s.state.open); n > 0 {
		s.fail("%d questions stay open", n)
	}
	return nil
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
			if s.rng.IntN(3) > 0 { // or another question under its id
				cmd.Text = e.Question
			}
		}
	}
	from := "" // the turn that the reader no longer sees, with all that came after it
	if s.rng.IntN(8) == 0 {
		s.turns++
		turn = fmt.Sprint(s.turns)
		from = s.expect[s.rng.IntN(len(s.expect))]
		cmd.Turn, cmd.Regenerate = api.TurnID(turn), s.rng.IntN(2) == 0
		e, _ := s.state.find(api.TurnID(from))
		if cmd.Instead = from; s.rng.IntN(2) == 0 {
			cmd.Instead = e.Message
			for _, later := range s.state.conversation().Turns { // the newest under that id is meant
				if later.Message == e.Message {
					from = string(later.Turn)
				}
			}
		}
	}
	before := s.state
	events, err := s.take(cmd)
	if len(events) == 0 {
		newest, _ := before.newest()
		if err == nil && !slices.Contains(s.expect, turn) && (newest.Done || newest.Message != cmd.Message || newest.Question != cmd.Text) {
			s.fail("turn %s is acknowledged and nothing is kept of it", turn)
		}
		return
	}
	if known := slices.Contains(s.expect, turn); known {
		s.fail("turn %s was asked twice", turn)
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

func (s *simulation) rate() {
	turn := s.expect[s.rng.IntN(len(s.expect))]
	r := []api.Rating{api.RatedUp, api.RatedDown}[s.rng.IntN(2)]
	s.take(rates(turn, r))
	if e, ok := s.state.find(api.TurnID(turn)); !ok || e.Feedback == nil || e.Feedback.Rating != r {
		s.fail("turn %s was rated %s: %+v", turn, r, e)
	}
}

// take does what the actor does with a message.
func (s *simulation) take(msg any) ([]Event, error) {
	events, err := s.machine.taking(s.state, msg, s.now)
	if s.story != nil {
		s.story("%s: %T %+v -> %v, %v", s.where, msg, msg, events, err)
	}
	if err != nil && !errors.Is(err, api.ErrOverloaded) {
		s.fail("%v", err)
	}
	for _, ev := range events {
		stored, encodeErr := encode(ev)
		if encodeErr != nil {
			s.fail("%v", encodeErr)
		}
		s.journal = append(s.journal, stored)
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
			if len(s.state.open) > 0 && ev.Replaces {
				if _, open := index(s.state.open[1:], ev.From); !open {
					s.broken = 0 // the turn in hand is another one
				}
			}
		}
		s.state = s.machine.applying(s.state, ev)
	}
	if s.rng.IntN(10) == 0 && s.state.opened {
		keep := s.state
		if s.machine.snapshot != nil {
			keep = s.machine.snapshot(keep)
		}
		var snapErr error
		if s.snap, snapErr = keep.snapshot(); snapErr != nil {
			s.fail("%v", snapErr)
		}
		s.snapAt = len(s.journal)
	}
	return events, err
}

// own holds a result that changes something to the turn that it is a result of.
func (s *simulation) own(msg any, turn api.TurnID) {
	attempt := 0
	switch msg := msg.(type) {
	case turnDone:
		attempt = msg.attempt
	case turnPanicked:
		attempt = msg.attempt
	default:
		return
	}
	if of := s.worked[attempt]; of != string(turn) {
		s.fail("a result of attempt %d, made for turn %s, is taken for %s", attempt, of, turn)
	}
}

func (s *simulation) end(turn api.TurnID, told string) {
	if was, ok := s.ended[string(turn)]; ok {
		s.fail("turn %s ends twice: %q and %q", turn, was, told)
	}
	if told != "!" && told != "answer to "+string(turn) {
		s.fail("turn %s gets %q", turn, told)
	}
	s.ended[string(turn)] = told
	s.broken = 0
}

func (s *simulation) crash() {
	rec := journal.Recovered{Seq: uint64(len(s.journal)), Events: s.journal}
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
		s.broken++
		s.take(begun{w.attempt})
		if s.broken >= maxInterrupted {
			s.fail("the turn in hand begins anew after %d crashes", s.broken)
		}
	}
}

func (s *simulation) work() {
	w, ok := s.state.pending()
	if !ok {
		return
	}
	s.worked[w.attempt] = string(w.turn)
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
	open, at := false, time.Time{}
	for _, e := range s.state.conversation().Turns {
		got = append(got, string(e.Turn))
		if open && e.Done {
			s.fail("turn %s ended before an earlier one", e.Turn)
		}
		open = open || !e.Done
		if e.Asked.Before(at) || e.Done && e.Ended.Before(e.Asked) {
			s.fail("turn %s was asked at %v and ended at %v, after one of %v", e.Turn, e.Asked, e.Ended, at)
		}
		at = e.Asked
		if told, ok := s.ended[string(e.Turn)]; ok != e.Done || e.Done && e.Error == "" && e.Answer != told {
			s.fail("turn %s: %+v, but told %q", e.Turn, e, told)
		}
	}
	if !slices.Equal(got, s.expect) {
		s.fail("the conversation is %v, not %v", got, s.expect)
	}
	if s.state.interrupted >= maxInterrupted || s.state.panicked >= maxPanicked {
		s.fail("it goes on after %d crashes, %d panics", s.state.interrupted, s.state.panicked)
	}
}
