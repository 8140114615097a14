package job

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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/agent"
	"docent/api"
	"docent/forge"
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

// TestSimulation drives the state machine with commands that are repeated, and with results of effects that come late,
// twice, out of order or not at all, over crashes that forget all but what the journal holds. A failure names its seed:
// go test ./actors/job -run TestSimulation$ -seed N -v tells how it came about.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		tell(t, *seed, plants[*plant])
		return
	}
	count := simulations(t, 300)
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
	host     hostDefects
}

// hostDefects are what the publication of an edit may do wrong.
type hostDefects struct{ repeatsCommits, repeatsPulls, ignoresMoves bool }

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

// A simulation is one job, its journal and its code host.
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

	working  work  // the run in hand, as the actor would have it
	flying   []any // results on their way; all of a dead incarnation's are still delivered
	accepted []string
	known    map[string]bool // accepted ones
	ended    []string
	updated  time.Time
	broken   int            // crashes that broke off the work in hand
	worked   map[int]string // the instruction that an attempt was made for
	stormy   bool           // it crashes all the time
	shaky    bool           // it panics all the time
	ids      int
	commits  map[string][]string // the code host's, by branch
	pulls    map[string]api.PullState
	opened   int
	spent    int          // steps of instructions that ended
	kept     []agent.Step // of the instruction in hand, by the simulation's own account
	said     int          // answers of the model
	where    string
}

// A violation is what a simulation has found.
type violation struct{ error }

func newSimulation(seed uint64, m machine) *simulation {
	return &simulation{seed: seed, machine: m, rng: rand.New(rand.NewPCG(seed, 2)), now: t0, state: state{id: testID},
		stormy: seed%4 == 0, shaky: seed%4 == 1, worked: make(map[int]string), known: make(map[string]bool), commits: make(map[string][]string), pulls: make(map[string]api.PullState)}
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
	s.take(create("p0"))
	s.accept(string(testID))
	for i := range steps {
		s.now = s.now.Add(time.Duration(s.rng.IntN(1000)) * time.Millisecond)
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
		case n < 8:
			id := fmt.Sprint("f", s.ids)
			if s.ids == 0 || s.rng.IntN(3) > 0 {
				s.ids++
				id = fmt.Sprint("f", s.ids)
			}
			if s.take(FollowUp{Project: "p", ID: id, Prompt: "do " + id}) == nil {
				s.accept(id)
			}
		case n < 9:
			s.take(Cancel{"p"})
		case n < 10:
			s.take(create("p0")) // a repeat
		case n < 15:
			s.crash()
		case n < 18: // somebody merges or closes what is open
			for branch, p := range s.pulls {
				if p == api.PullOpen {
					s.pulls[branch] = []api.PullState{api.PullMerged, api.PullClosed}[s.rng.IntN(2)]
				}
			}
		case n < 20: // somebody else pushes
			for branch := range s.commits {
				s.commits[branch] = append(s.commits[branch], fmt.Sprint("foreign", i))
			}
		case n < 60:
			s.work()
		default:
			s.deliver()
		}
		s.check()
	}
	s.where = "in peace"
	for range 1000 { // the faults stop: the job must come to an end
		if s.state.phase == idle {
			break
		}
		s.working = work{}
		s.work()
		for n := 0; len(s.flying) > 0; n++ {
			if n == 10_000 {
				s.fail("results of effects are never done with: %+v", s.state)
			}
			s.deliver()
			s.check()
		}
	}
	if s.state.phase != idle {
		s.fail("the job does not end: %+v", s.state)
	}
	if !slices.Equal(s.ended, s.accepted) {
		s.fail("instructions ended %v, accepted %v", s.ended, s.accepted)
	}
	return nil
}

// accept remembers an instruction that was acknowledged. One that comes again is the same.
func (s *simulation) accept(id string) {
	if !s.known[id] {
		s.known[id] = true
		s.accepted = append(s.accepted, id)
	}
}

// take does what the actor does with a message.
func (s *simulation) take(msg any) error {
	step, keeps := s.mustKeep(msg)
	events, err := s.machine.taking(s.state, msg, s.now)
	if s.story != nil {
		s.story("%s: %T %+v -> %v, %v", s.where, msg, msg, events, err)
	}
	if err != nil {
		return err
	}
	// The run goes on as soon as its step is acknowledged, so what is acknowledged is kept; and nothing else is.
	if got := slices.ContainsFunc(events, func(ev Event) bool { _, ok := ev.(Stepped); return ok }); got != keeps {
		s.fail("step %d of round %d: kept %v, want %v; before it were %d", step.Number, step.Round, got, keeps, len(s.kept))
	}
	for _, ev := range events {
		stored, err := encode(ev)
		if err != nil {
			s.fail("%v", err)
		}
		s.journal = append(s.journal, stored)
		switch ev.(type) {
		case Stepped:
			s.own(msg)
			s.broken = 0 // it goes on: what broke off before was not this step's fault
			if step.Number == 1 {
				s.kept = nil // a further round begins anew
			}
			s.kept = append(s.kept, step)
		case Finished, Failed:
			if n := len(s.state.steps); n > 0 {
				s.spent += s.state.steps[n-1].Spent.Steps
			}
			s.kept = nil
		}
		switch ev := ev.(type) {
		case Edited:
			s.own(msg)
			if s.state.queue[0].ID != ev.Result.Commit {
				s.fail("the edit of %s is taken for %s", ev.Result.Commit, s.state.queue[0].ID)
			}
			s.broken = 0
		case Retried:
			s.own(msg)
			if ev.Reason == Interrupted && s.broken == 0 {
				s.fail("an interruption is counted that did not happen")
			}
		case Finished:
			s.own(msg)
			if s.state.phase == publishing && !s.published(s.state.queue[0].ID) {
				s.fail("%s is finished, and its edit is on no branch: %v", s.state.queue[0].ID, s.commits)
			}
			s.ended = append(s.ended, s.state.queue[0].ID)
			s.broken = 0
		case Failed:
			for _, in := range s.state.queue {
				s.ended = append(s.ended, in.ID)
			}
			s.broken = 0
		}
		s.state = s.machine.applying(s.state, ev)
	}
	if s.rng.IntN(10) == 0 && s.state.created {
		keep := s.state
		if s.machine.snapshot != nil {
			keep = s.machine.snapshot(keep)
		}
		if s.snap, err = keep.snapshot(); err != nil {
			s.fail("%v", err)
		}
		s.snapAt = len(s.journal)
	}
	return nil
}

// mustKeep says whether a message is a step that has to be kept: the next one of the run in hand.
func (s *simulation) mustKeep(msg any) (agent.Step, bool) {
	m, ok := msg.(stepped)
	if !ok || s.state.phase != editing || m.attempt != s.state.attempt {
		return m.step, false
	}
	if len(s.kept) == 0 {
		return m.step, m.step.Number == 1
	}
	newest := s.kept[len(s.kept)-1]
	if m.step.Round == newest.Round {
		return m.step, m.step.Number == newest.Number+1 && m.step.Commit == newest.Commit
	}
	return m.step, m.step.Round == newest.Round+1 && m.step.Number == 1
}

// crash forgets all but the journal. Results of runs of before may still arrive: the mailbox outlives a restart.
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
	s.state, s.working = got, work{}
	if got.seq != uint64(len(s.journal)) {
		s.fail("recovered at event %d of %d", got.seq, len(s.journal))
	}
	if s.rng.IntN(2) == 0 {
		s.flying = nil // the process died, not only the actor
	}
	if w, ok := s.state.pending(); ok {
		s.broken++
		s.take(begun{w.attempt})
		if s.broken >= maxInterrupted {
			s.fail("the work in hand begins anew after %d crashes", s.broken)
		}
	}
}

// own holds a result that changes something to the instruction that it is a result of.
func (s *simulation) own(msg any) {
	attempt := 0
	switch msg := msg.(type) {
	case editDone:
		attempt = msg.attempt
	case publishDone:
		attempt = msg.attempt
	case runPanicked:
		attempt = msg.attempt
	case stepped:
		attempt = msg.attempt
	default:
		return
	}
	if of := s.worked[attempt]; of != s.state.queue[0].ID {
		s.fail("a result of attempt %d, made for %s, is taken for %s", attempt, of, s.state.queue[0].ID)
	}
}

// published says whether a branch has the edit of an instruction.
func (s *simulation) published(id string) bool {
	for _, commits := range s.commits {
		if slices.ContainsFunc(commits, func(c string) bool { return strings.HasPrefix(c, id+" on ") }) {
			return true
		}
	}
	return false
}

// normal makes states comparable: encodings do not tell an empty slice from none.
func normal(s state) state {
	for _, p := range []any{&s.queue, &s.seen, &s.todos, &s.earlier, &s.log, &s.steps} {
		if v := reflect.ValueOf(p).Elem(); v.Len() == 0 {
			v.SetZero()
		}
	}
	return s
}

// work performs what is pending, to a result that goes on its way: once, mostly.
func (s *simulation) work() {
	w, ok := s.state.pending()
	if !ok || w == s.working {
		return
	}
	s.working = w
	s.worked[w.attempt] = s.state.queue[0].ID
	for range 1 + s.rng.IntN(5)/4 { // two runs of the same attempt: one of a dead incarnation
		s.flying = append(s.flying, s.perform(w))
	}
}

func (s *simulation) perform(w work) any {
	if often := map[bool]int{false: 20, true: 3}; s.rng.IntN(often[s.shaky]) == 0 {
		return runPanicked{w.attempt}
	}
	if w.phase == editing {
		if s.rng.IntN(15) == 0 {
			return editDone{attempt: w.attempt, err: errors.New("the model is down")}
		}
		number := max(s.state.number, 1)
		for s.pulls[s.state.branchName(number)] == api.PullMerged || s.pulls[s.state.branchName(number)] == api.PullClosed {
			number++
		}
		branch := s.state.branchName(number)
		s.step(w, s.head(branch))
		e := edit(branch, number, "a.md")
		e.Parent = s.head(branch)
		e.Result.Commit = s.state.queue[0].ID
		if s.rng.IntN(5) == 0 {
			e.Result.Changes = nil
		}
		return editDone{attempt: w.attempt, edited: e}
	}
	e := s.state.edited
	commit := fmt.Sprintf("%s on %s at %d", e.Result.Commit, e.Parent, e.At.UnixMilli())
	there := false
	for _, c := range s.commits[e.Branch] {
		there = there || c == commit
	}
	if !there || s.machine.host.repeatsCommits {
		if s.rng.IntN(10) == 0 {
			return publishDone{attempt: w.attempt, err: forge.ErrTemporary}
		}
		if !s.machine.host.ignoresMoves && !s.machine.host.repeatsCommits && s.head(e.Branch) != e.Parent || s.pulls[e.Branch] == api.PullMerged || s.pulls[e.Branch] == api.PullClosed {
			return publishDone{attempt: w.attempt, err: forge.ErrMoved}
		}
		s.commits[e.Branch] = append(s.commits[e.Branch], commit)
	}
	if s.pulls[e.Branch] == "" || s.machine.host.repeatsPulls {
		s.pulls[e.Branch] = api.PullOpen
		s.opened++
	}
	return publishDone{attempt: w.attempt, result: forge.Published{Commit: commit, Link: "/pulls/" + e.Branch}}
}

// step lets an edit with a language model go on for some steps, from what is recorded. Like all results they may come
// late, twice, in another order or never.
func (s *simulation) step(w work, commit string) {
	next := agent.Step{Round: 1, Commit: s.state.queue[0].ID + " on " + commit}
	if n := len(s.state.steps); n > 0 {
		last := s.state.steps[n-1]
		next.Round, next.Number, next.Spent = last.Round, last.Number, last.Spent
		if last.Commit != next.Commit {
			next.Round, next.Number = last.Round+1, 0
		}
	}
	for range s.rng.IntN(4) {
		next.Number++
		next.Spent.Steps++
		s.said++
		next.Reply.Text = fmt.Sprint("answer ", s.said) // asked again, a model says something else
		s.flying = append(s.flying, stepped{attempt: w.attempt, step: next})
	}
}

func (s *simulation) head(branch string) string {
	if c := s.commits[branch]; len(c) > 0 {
		return c[len(c)-1]
	}
	return "base"
}

// deliver brings one of the results that are on their way, any of them, and may keep it to bring it again.
func (s *simulation) deliver() {
	if len(s.flying) == 0 {
		return
	}
	i := s.rng.IntN(len(s.flying))
	msg := s.flying[i]
	if s.rng.IntN(5) > 0 {
		s.flying = append(s.flying[:i], s.flying[i+1:]...)
	}
	if s.rng.IntN(6) == 0 {
		s.take(progressed{attempt: s.state.attempt - s.rng.IntN(2), Progress: agent.Progress{Text: "going on"}})
	}
	s.take(msg)
}

// check holds the state to what must be true of it at any time.
func (s *simulation) check() {
	st := s.state
	if st.updatedAt.Before(s.updated) {
		s.fail("the job was changed at %v and then at %v", s.updated, st.updatedAt)
	}
	s.updated = st.updatedAt
	if (st.phase == idle) != (st.status != api.JobActive) || (st.phase != idle) != (len(st.queue) > 0) {
		s.fail("phase %v, status %s, %d instructions", st.phase, st.status, len(st.queue))
	}
	if (st.halt == api.HaltProcessing) != (st.status == api.JobActive) {
		s.fail("halt %s in status %s", st.halt, st.status)
	}
	if (st.phase == publishing) != (len(st.edited.Result.Changes) > 0) {
		s.fail("phase %v with %d changes to publish", st.phase, len(st.edited.Result.Changes))
	}
	for i, step := range st.steps {
		if step.Number != i+1 || step.Round != st.steps[0].Round || step.Commit != st.steps[0].Commit {
			s.fail("step %d of round %d on %s stands at %d", step.Number, step.Round, step.Commit, i+1)
		}
		if len(st.queue) == 0 || !strings.HasPrefix(step.Commit, st.queue[0].ID+" on ") {
			s.fail("a step on %q is kept, of another instruction", step.Commit)
		}
	}
	if len(st.steps)+len(s.kept) > 0 && !reflect.DeepEqual(st.steps, s.kept) {
		s.fail("the steps of the instruction in hand are\n%+v\nrecorded were\n%+v", st.steps, s.kept)
	}
	if st.spent.Steps != s.spent {
		s.fail("%d steps are counted, %d were recorded", st.spent.Steps, s.spent)
	}
	for i, id := range s.ended {
		if s.accepted[i] != id {
			s.fail("instructions ended %v, accepted %v", s.ended, s.accepted)
		}
	}
	if s.opened > len(s.pulls) {
		s.fail("%d pull requests were opened for %d branches", s.opened, len(s.pulls))
	}
	open := 0
	for _, p := range s.pulls {
		if p == api.PullOpen {
			open++
		}
	}
	if open > 1 {
		s.fail("%d open pull requests", open)
	}
	if st.interrupted >= maxInterrupted || st.panicked >= maxPanicked || st.stale >= maxStale {
		s.fail("it goes on after %d crashes, %d panics, %d moves", st.interrupted, st.panicked, st.stale)
	}
	// No instruction stands twice in one branch: it is edited anew only where it was not published.
	for branch, commits := range s.commits {
		seen := make(map[string]bool)
		for _, c := range commits {
			var id string
			if n, _ := fmt.Sscanf(c, "%s on", &id); n == 1 && id[0] == 'f' && len(id) < 6 {
				if seen[id] {
					s.fail("%s was published twice in %s: %v", id, branch, commits)
				}
				seen[id] = true
			}
		}
	}
}
