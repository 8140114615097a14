package job

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/actors/simulation"
	"docent/agent"
	"docent/api"
	"docent/forge"
)

// TestSimulation drives the state machine with commands that are repeated, and with results of effects that come late,
// twice, out of order or not at all, over crashes that forget all but what the journal holds.
func TestSimulation(t *testing.T) { simulation.Run(t, 300, simulate) }

func simulate(seed uint64, plant string, story simulation.Story) error {
	return newSimulation(seed, plants[plant], hostPlants[plant], story).run()
}

// hostDefects are what the publication of an edit may do wrong.
type hostDefects struct{ repeatsCommits, repeatsPulls, ignoresMoves bool }

// A life is one job, and its code host.
type life struct {
	simulation.Life[state, Event]
	working  work // the run in hand, as the actor would have it
	accepted []string
	known    map[string]bool // accepted ones
	ended    []string
	updated  time.Time
	worked   map[int]string // the instruction that an attempt was made for
	stormy   bool           // it crashes all the time
	shaky    bool           // it panics all the time
	ids      int
	host     hostDefects
	commits  map[string][]string // the code host's, by branch
	pulls    map[string]api.PullState
	told     map[string]api.PullState // what the journal says of them
	opened   int
	spent    int          // steps of instructions that ended
	kept     []agent.Step // of the instruction in hand, by the simulation's own account
	said     int          // answers of the model
}

func newSimulation(seed uint64, plant simulation.Plant[state, Event], host hostDefects, story simulation.Story) *life {
	s := &life{Life: simulation.New(&kind, plant, seed, 2, story), host: host, stormy: seed%4 == 0, shaky: seed%4 == 1,
		worked: make(map[int]string), known: make(map[string]bool), commits: make(map[string][]string),
		pulls: make(map[string]api.PullState), told: make(map[string]api.PullState)}
	s.ID, s.Now, s.State, s.Normal, s.Decided, s.Happens = string(testID), t0, state{id: testID}, normal, s.decided,
		s.happens
	return s
}

// run goes to the end, or to the first thing that is not as it must be.
func (s *life) run() error { return s.Guard(s.live) }

func (s *life) live() {
	s.take(create("p0"))
	s.accept(string(testID))
	for i := range simulation.Steps {
		s.Step(i, 1000)
		if s.stormy && s.Rand.IntN(3) == 0 {
			s.crash()
			s.check()
			continue
		}
		switch n := s.Rand.IntN(100); {
		case n < 8:
			id := fmt.Sprint("f", s.ids)
			if s.ids == 0 || s.Rand.IntN(3) > 0 {
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
					s.pulls[branch] = []api.PullState{api.PullMerged, api.PullClosed}[s.Rand.IntN(2)]
				}
			}
		case n < 20: // somebody else pushes
			for branch := range s.commits {
				s.commits[branch] = append(s.commits[branch], fmt.Sprint("foreign", i))
			}
		case n < 22:
			s.tell()
		case n < 60:
			s.work()
		default:
			s.deliver()
		}
		s.check()
	}
	s.Where = "in peace"
	for range 1000 { // the faults stop: the job must come to an end
		if s.State.phase == idle {
			break
		}
		s.working = work{}
		s.work()
		s.Drain(func() { s.deliver(); s.check() })
	}
	if s.State.phase != idle {
		s.Fail("the job does not end: %+v", s.State)
	}
	s.tell()
	for _, p := range s.State.pulls {
		if s.pulls[p.Branch] != p.State || s.told[p.Branch] != p.State {
			s.Fail("the pull request of %s is %s, and the job has it as %s", p.Branch, s.pulls[p.Branch], p.State)
		}
	}
	if !slices.Equal(s.ended, s.accepted) {
		s.Fail("instructions ended %v, accepted %v", s.ended, s.accepted)
	}
}

// tell reports the state of the pull requests, again and again.
func (s *life) tell() {
	for _, branch := range slices.Sorted(maps.Keys(s.pulls)) {
		err := s.take(PullIs{Project: "p", Branch: branch, State: s.pulls[branch]})
		if published := s.told[branch] != ""; (err == nil) != published {
			s.Fail("told of %s, which the job has published %v: %v", branch, published, err)
		}
	}
}

// accept remembers an instruction that was acknowledged. One that comes again is the same.
func (s *life) accept(id string) {
	if !s.known[id] {
		s.known[id] = true
		s.accepted = append(s.accepted, id)
	}
}

func (s *life) take(msg any) error {
	_, err := s.Take(msg)
	return err
}

// decided holds the run to going on as soon as its step is acknowledged: what is acknowledged is kept, and nothing
// else is.
func (s *life) decided(msg any, events []Event) {
	step, keeps := s.mustKeep(msg)
	if got := slices.ContainsFunc(events, func(ev Event) bool { _, ok := ev.(Stepped); return ok }); got != keeps {
		s.Fail("step %d of round %d: kept %v, want %v; before it were %d", step.Number, step.Round, got, keeps, len(s.kept))
	}
}

// happens holds an event to the message that it follows from.
func (s *life) happens(msg any, ev Event) {
	switch ev.(type) {
	case Stepped:
		s.own(msg)
		s.Broken = 0 // it goes on: what broke off before was not this step's fault
		step, _ := s.mustKeep(msg)
		if step.Number == 1 {
			s.kept = nil // each further round starts over
		}
		s.kept = append(s.kept, step)
	case Finished, Failed:
		if n := len(s.State.steps); n > 0 {
			s.spent += s.State.steps[n-1].Spent.Steps
		}
		s.kept = nil
	}
	switch ev := ev.(type) {
	case Edited:
		s.own(msg)
		if s.State.queue[0].ID != ev.Result.Commit {
			s.Fail("the edit of %s is taken for %s", ev.Result.Commit, s.State.queue[0].ID)
		}
		s.Broken = 0
	case Retried:
		s.own(msg)
		if ev.Reason == persistent.Interrupted && s.Broken == 0 {
			s.Fail("an interruption is counted that did not happen")
		}
	case Finished:
		s.own(msg)
		if s.State.phase == publishing && !s.published(s.State.queue[0].ID) {
			s.Fail("%s is finished, and its edit is on no branch: %v", s.State.queue[0].ID, s.commits)
		}
		s.ended = append(s.ended, s.State.queue[0].ID)
		if e := ev.Ended; e.Instruction != s.State.queue[0].ID || e.Waiting != len(s.State.queue)-1 {
			s.Fail("%s ends with %d more, and the event says %+v", s.State.queue[0].ID, len(s.State.queue)-1, e)
		}
		s.Broken = 0
	case Published:
		if first := s.told[s.State.branch] == ""; first != ev.Opened {
			s.Fail("the first publication of %s: %v, said to be %v", s.State.branch, first, ev.Opened)
		}
		if ev.Opened {
			s.told[s.State.branch] = api.PullOpen
		}
	case PullChanged:
		if was := s.told[ev.Branch]; was == ev.State || was == api.PullMerged || was == "" {
			s.Fail("the pull request of %s was %q, and changes to %s", ev.Branch, was, ev.State)
		}
		s.told[ev.Branch] = ev.State
	case Failed:
		for _, in := range s.State.queue {
			s.ended = append(s.ended, in.ID)
		}
		s.Broken = 0
	}
}

// mustKeep reports whether a message is a step that has to be kept: the next one of the run in hand.
func (s *life) mustKeep(msg any) (agent.Step, bool) {
	m, ok := msg.(stepped)
	if !ok || s.State.phase != editing || m.attempt != s.State.attempt {
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

func (s *life) crash() {
	s.working = work{}
	s.Crash(maxInterrupted)
	if s.State.seq != uint64(s.Events()) {
		s.Fail("recovered at event %d of %d", s.State.seq, s.Events())
	}
}

// own holds a result that changes something to the instruction that it is a result of.
func (s *life) own(msg any) {
	attempt := 0
	switch msg := msg.(type) {
	case editDone:
		attempt = msg.attempt
	case publishDone:
		attempt = msg.attempt
	case runPanicked:
		attempt = msg.Attempt
	case stepped:
		attempt = msg.attempt
	default:
		return
	}
	if of := s.worked[attempt]; of != s.State.queue[0].ID {
		s.Fail("a result of attempt %d, made for %s, is taken for %s", attempt, of, s.State.queue[0].ID)
	}
}

// published reports whether a branch has the edit of an instruction.
func (s *life) published(id string) bool {
	for _, commits := range s.commits {
		if slices.ContainsFunc(commits, func(c string) bool { return strings.HasPrefix(c, id+" on ") }) {
			return true
		}
	}
	return false
}

// normal makes states comparable: encodings do not tell an empty slice from none.
func normal(s state) state {
	for _, p := range []any{&s.queue, &s.seen, &s.todos, &s.earlier, &s.log, &s.steps, &s.pulls} {
		if v := reflect.ValueOf(p).Elem(); v.Len() == 0 {
			v.SetZero()
		}
	}
	return s
}

// work performs what is pending, to a result that goes on its way: once, mostly.
func (s *life) work() {
	w, ok := s.State.pending()
	if !ok || w == s.working {
		return
	}
	s.working = w
	s.worked[w.attempt] = s.State.queue[0].ID
	for range 1 + s.Rand.IntN(5)/4 { // two runs of the same attempt: one of a dead incarnation
		s.Flying = append(s.Flying, s.perform(w))
	}
}

func (s *life) perform(w work) any {
	if often := map[bool]int{false: 20, true: 3}; s.Rand.IntN(often[s.shaky]) == 0 {
		return runPanicked{Attempt: w.attempt}
	}
	if w.phase == editing {
		if s.Rand.IntN(15) == 0 {
			return editDone{attempt: w.attempt, err: errors.New("the model is down")}
		}
		number := max(s.State.number, 1)
		for s.pulls[s.State.branchName(number)] == api.PullMerged || s.pulls[s.State.branchName(number)] == api.PullClosed {
			number++
		}
		branch := s.State.branchName(number)
		s.step(w, s.head(branch))
		e := edit(branch, number, "a.md")
		e.Parent = s.head(branch)
		e.Result.Commit = s.State.queue[0].ID
		if s.Rand.IntN(5) == 0 {
			e.Result.Changes = nil
		}
		return editDone{attempt: w.attempt, edited: e}
	}
	e := s.State.edited
	commit := fmt.Sprintf("%s on %s at %d", e.Result.Commit, e.Parent, e.At.UnixMilli())
	there := false
	for _, c := range s.commits[e.Branch] {
		there = there || c == commit
	}
	if !there || s.host.repeatsCommits {
		if s.Rand.IntN(10) == 0 {
			return publishDone{attempt: w.attempt, err: forge.ErrTemporary}
		}
		if !s.host.ignoresMoves && !s.host.repeatsCommits && s.head(e.Branch) != e.Parent ||
			s.pulls[e.Branch] == api.PullMerged || s.pulls[e.Branch] == api.PullClosed {
			return publishDone{attempt: w.attempt, err: forge.ErrMoved}
		}
		s.commits[e.Branch] = append(s.commits[e.Branch], commit)
	}
	if s.pulls[e.Branch] == "" || s.host.repeatsPulls {
		s.pulls[e.Branch] = api.PullOpen
		s.opened++
	}
	return publishDone{attempt: w.attempt, result: forge.Published{Commit: commit, Link: "/pulls/" + e.Branch}}
}

// step lets an edit with a language model go on for some steps, from what is recorded. Like all results they may come
// late, twice, in another order or never.
func (s *life) step(w work, commit string) {
	next := agent.Step{Round: 1, Commit: s.State.queue[0].ID + " on " + commit}
	if n := len(s.State.steps); n > 0 {
		last := s.State.steps[n-1]
		next.Round, next.Number, next.Spent = last.Round, last.Number, last.Spent
		if last.Commit != next.Commit {
			next.Round, next.Number = last.Round+1, 0
		}
	}
	for range s.Rand.IntN(4) {
		next.Number++
		next.Spent.Steps++
		s.said++
		next.Reply.Text = fmt.Sprint("answer ", s.said) // asked again, a model says something else
		s.Flying = append(s.Flying, stepped{attempt: w.attempt, step: next})
	}
}

func (s *life) head(branch string) string {
	if c := s.commits[branch]; len(c) > 0 {
		return c[len(c)-1]
	}
	return "base"
}

// deliver brings one of the results that are on their way, any of them, and may keep it to bring it again.
func (s *life) deliver() {
	msg := s.Arrives()
	if msg == nil {
		return
	}
	if s.Rand.IntN(6) == 0 {
		s.take(progressed{attempt: s.State.attempt - s.Rand.IntN(2), Progress: agent.Progress{Text: "going on"}})
	}
	s.take(msg)
}

// check holds the state to what must be true of it at any time.
func (s *life) check() {
	st := s.State
	if st.updatedAt.Before(s.updated) {
		s.Fail("the job was changed at %v and then at %v", s.updated, st.updatedAt)
	}
	s.updated = st.updatedAt
	if (st.phase == idle) != (st.status != api.JobActive) || (st.phase != idle) != (len(st.queue) > 0) {
		s.Fail("phase %v, status %s, %d instructions", st.phase, st.status, len(st.queue))
	}
	if (st.halt == api.HaltProcessing) != (st.status == api.JobActive) {
		s.Fail("halt %s in status %s", st.halt, st.status)
	}
	if (st.phase == publishing) != (len(st.edited.Result.Changes) > 0) {
		s.Fail("phase %v with %d changes to publish", st.phase, len(st.edited.Result.Changes))
	}
	for i, step := range st.steps {
		if step.Number != i+1 || step.Round != st.steps[0].Round || step.Commit != st.steps[0].Commit {
			s.Fail("step %d of round %d on %s stands at %d", step.Number, step.Round, step.Commit, i+1)
		}
		if len(st.queue) == 0 || !strings.HasPrefix(step.Commit, st.queue[0].ID+" on ") {
			s.Fail("a step on %q is kept, of another instruction", step.Commit)
		}
	}
	if len(st.steps)+len(s.kept) > 0 && !reflect.DeepEqual(st.steps, s.kept) {
		s.Fail("the steps of the instruction in hand are\n%+v\nrecorded were\n%+v", st.steps, s.kept)
	}
	if st.spent.Steps != s.spent {
		s.Fail("%d steps are counted, %d were recorded", st.spent.Steps, s.spent)
	}
	for i, id := range s.ended {
		if s.accepted[i] != id {
			s.Fail("instructions ended %v, accepted %v", s.ended, s.accepted)
		}
	}
	if s.opened > len(s.pulls) {
		s.Fail("%d pull requests were opened for %d branches", s.opened, len(s.pulls))
	}
	open := 0
	for _, p := range s.pulls {
		if p == api.PullOpen {
			open++
		}
	}
	if open > 1 {
		s.Fail("%d open pull requests", open)
	}
	if st.interrupted-st.left >= maxInterrupted || st.panicked >= maxPanicked || st.stale >= maxStale {
		s.Fail("it goes on after %d crashes, %d panics, %d moves", st.interrupted, st.panicked, st.stale)
	}
	// No instruction stands twice in one branch: it is edited again only if it was not published.
	for branch, commits := range s.commits {
		seen := make(map[string]bool)
		for _, c := range commits {
			var id string
			if n, _ := fmt.Sscanf(c, "%s on", &id); n == 1 && id[0] == 'f' && len(id) < 6 {
				if seen[id] {
					s.Fail("%s was published twice in %s: %v", id, branch, commits)
				}
				seen[id] = true
			}
		}
	}
}
