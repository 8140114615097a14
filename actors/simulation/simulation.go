// Package simulation provides tests of persistent actors. It puts the pure part of a kind through whole lives of
// messages that are repeated, results that come late, twice, in another order or never, and crashes that forget all but
// what the journal holds; and it holds these lives to finding defects that were planted into the kind.
package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/internal/background"
	"docent/persistence/journal"
)

var (
	seed   = flag.Uint64("seed", 0, "run this one simulation, and tell its story")
	plant  = flag.String("plant", "", "with -seed: the planted defect to run it with")
	update = flag.Bool("update", false, "rewrite the golden files")
)

// Steps is how many one simulation has with the faults on.
const Steps = 250

// A Plant is a defect that somebody might write into a kind. It replaces a part of it; the zero one is the real kind.
type Plant[S any, E any] struct {
	Decide func(s S, msg any, now time.Time) ([]E, error)
	Apply  func(s S, ev E) S
	Keep   func(s S) S // what a snapshot holds of a state
}

// A Story is written as a simulation goes; nil if nobody listens.
type Story func(format string, args ...any)

// A Life is one actor, its journal, and what is on its way to it.
type Life[S, E any] struct {
	ID     string
	Rand   *rand.Rand
	Now    time.Time
	State  S
	Flying []any  // results on their way; all of a dead incarnation's are still delivered
	Broken int    // crashes that broke off the work in hand
	Where  string // in the simulation, for a failure's words

	// Decided receives what follows from a message; Happens of each of these events, before it is applied.
	Decided func(msg any, events []E)
	Happens func(msg any, ev E)
	// Normal makes states comparable: encodings do not tell an empty slice from none.
	Normal func(S) S

	seed    uint64
	story   Story
	kind    *persistent.Kind[S, E]
	plant   Plant[S, E]
	journal []journal.Event
	snap    []byte
	snapAt  int
}

// New makes a life of a kind; stream tells its random numbers from those of other kinds.
func New[S, E any](kind *persistent.Kind[S, E], plant Plant[S, E], seed, stream uint64, story Story) Life[S, E] {
	return Life[S, E]{Rand: rand.New(rand.NewPCG(seed, stream)), seed: seed, story: story, kind: kind, plant: plant}
}

// A violation is what a simulation has found.
type violation struct{ error }

// Fail ends the simulation with what it has found.
func (l *Life[S, E]) Fail(format string, args ...any) {
	panic(violation{fmt.Errorf("seed %d, %s: %s", l.seed, l.Where, fmt.Sprintf(format, args...))})
}

// Guard runs a simulation to its end, or to the first thing that is not as it must be.
func (l *Life[S, E]) Guard(run func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case violation:
			err = r.error
		default:
			err = fmt.Errorf("seed %d, %s: panic: %v", l.seed, l.Where, r)
		}
	}()
	run()
	return nil
}

// Step begins a step: some time passes, and now and then the clock jumps.
func (l *Life[S, E]) Step(i, milliseconds int) {
	l.Now = l.Now.Add(time.Duration(l.Rand.IntN(milliseconds)) * time.Millisecond)
	if l.Rand.IntN(50) == 0 {
		l.Now = l.Now.Add([]time.Duration{-time.Hour, 24 * time.Hour}[l.Rand.IntN(2)])
	}
	l.Where = fmt.Sprint("step ", i)
}

// Take does what the actor does with a message.
func (l *Life[S, E]) Take(msg any) ([]E, error) {
	decide, apply := l.plant.Decide, l.plant.Apply
	if decide == nil {
		decide = func(s S, msg any, now time.Time) ([]E, error) { return l.kind.Decide(&s, msg, now) }
	}
	if apply == nil {
		apply = l.kind.Apply
	}
	events, err := decide(l.State, msg, l.Now)
	if l.story != nil {
		l.story("%s: %T %+v -> %v, %v", l.Where, msg, msg, events, err)
	}
	if err != nil {
		return nil, err
	}
	if l.Decided != nil {
		l.Decided(msg, events)
	}
	for _, ev := range events {
		stored, err := l.kind.Codec.Encode(ev)
		if err != nil {
			l.Fail("%v", err)
		}
		l.journal = append(l.journal, stored)
		l.Happens(msg, ev)
		l.State = apply(l.State, ev)
	}
	if l.Rand.IntN(10) == 0 && l.kind.Exists(&l.State) {
		keep := l.State
		if l.plant.Keep != nil {
			keep = l.plant.Keep(keep)
		}
		if l.snap, err = l.kind.Snapshot(&keep); err != nil {
			l.Fail("%v", err)
		}
		l.snapAt = len(l.journal)
	}
	return events, nil
}

// Events is how many there are so far.
func (l *Life[S, E]) Events() int { return len(l.journal) }

// Crash forgets all but the journal, and takes up the work in hand, which may break off less than most times. Results
// of runs of before may still arrive: the mailbox outlives a restart.
func (l *Life[S, E]) Crash(most int) {
	rec := journal.Recovered{Seq: uint64(len(l.journal)), Events: l.journal}
	if l.snap != nil && l.Rand.IntN(2) == 0 {
		rec.Snapshot, rec.SnapSeq, rec.Events = l.snap, uint64(l.snapAt), l.journal[l.snapAt:]
	}
	got, err := l.kind.Recovered(l.ID, rec)
	if err != nil {
		l.Fail("recover: %v", err)
	}
	if !reflect.DeepEqual(l.Normal(got), l.Normal(l.State)) {
		l.Fail("recovered\n%+v\nfrom\n%+v", got, l.State)
	}
	l.State = got
	if l.Rand.IntN(2) == 0 {
		l.Flying = nil // the process died, not only the actor
	}
	if attempt, ok := l.kind.Pending(&l.State); ok {
		l.Broken++
		l.Take(persistent.Begun{Attempt: attempt})
		if l.Broken >= most {
			l.Fail("the work in hand starts over after %d crashes", l.Broken)
		}
	}
}

// Arrives is one of the results that are on their way, any of them; it may be kept to arrive again. It is nil if
// none is.
func (l *Life[S, E]) Arrives() any {
	if len(l.Flying) == 0 {
		return nil
	}
	i := l.Rand.IntN(len(l.Flying))
	msg := l.Flying[i]
	if l.Rand.IntN(5) > 0 {
		l.Flying = append(l.Flying[:i], l.Flying[i+1:]...)
	}
	return msg
}

// Drain delivers until nothing is on its way.
func (l *Life[S, E]) Drain(deliver func()) {
	for n := 0; len(l.Flying) > 0; n++ {
		if n == 10_000 {
			l.Fail("results of effects are never done with: %+v", l.State)
		}
		deliver()
	}
}

// A Runner runs the simulation of a seed, with a planted defect if it is given the name of one.
type Runner func(seed uint64, plant string, story Story) error

// Run runs so many simulations, or DOCENT_TEST_STEPS steps altogether. A failure names its seed:
// go test ./actors/job -run TestSimulation$ -seed N -v tells how it came about.
func Run(t *testing.T, count uint64, run Runner) {
	if *seed != 0 {
		if err := run(*seed, *plant, t.Logf); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text := os.Getenv("DOCENT_TEST_STEPS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("DOCENT_TEST_STEPS: %v", err)
		}
		count = (n + Steps - 1) / Steps
	}
	var next, done atomic.Uint64
	var workers background.Work
	for range runtime.GOMAXPROCS(0) {
		workers.Go("actors/simulation.Run", func() {
			for n := next.Add(1); n <= count && !t.Failed(); n = next.Add(1) {
				if err := run(n, "", nil); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	t.Logf("%d simulations of %d steps", done.Load(), Steps)
}

// FindPlanted is the check of the check: each planted defect must be found, from a seed that finds it again.
// go test ./actors/job -run TestSimulation$ -seed N -plant NAME -v tells how.
func FindPlanted(t *testing.T, plants []string, run Runner) {
	const most = 400
	slices.Sort(plants)
	for _, name := range plants {
		t.Run(name, func(t *testing.T) {
			for n := uint64(1); n <= most; n++ {
				first := run(n, name, nil)
				if first == nil {
					continue
				}
				at, _, _ := strings.Cut(first.Error(), ": ")
				if again := run(n, name, nil); again == nil || !strings.HasPrefix(again.Error(), at+": ") {
					t.Fatalf("found, and not found again from its seed:\n%v\n%v", first, again)
				}
				t.Logf("found: %.300s", first.Error())
				return
			}
			t.Errorf("not found in %d simulations", most)
		})
	}
}
