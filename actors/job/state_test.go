package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/actors/simulation"
	"docent/agent"
	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const testID = api.JobID("job_1")

func create(prompt string) Create {
	return Create{Project: api.Project{ID: "p"}, User: "key_1", Prompt: prompt,
		Source: api.JobSource{Repository: "o/r", Ref: "main"}, Works: "rules-1"}
}

func edit(branch string, number int, paths ...string) Edited {
	e := Edited{Branch: branch, Number: number, Base: "main", Parent: "c0", Repo: "o/r",
		Result: agent.Result{Model: "rules-1", Title: "Title", Commit: "Commit", Message: "Done."}}
	for _, p := range paths {
		e.Result.Changes = append(e.Result.Changes, agent.Change{Path: p, Content: []byte("x")})
	}
	return e
}

// play takes messages one after the other; a result without an attempt is one of the work in hand.
func play(t *testing.T, s state, msgs ...any) (state, error) {
	t.Helper()
	for i, msg := range msgs {
		events, err := s.decide(current(s, msg), t0.Add(time.Duration(i)*time.Second))
		if err != nil {
			return s, err
		}
		for _, ev := range events {
			s = s.apply(ev)
		}
	}
	return s, nil
}

// step is a step of the edit in hand.
func step(round, number int) stepped {
	return stepped{step: agent.Step{Round: round, Number: number, Spent: agent.Spent{Steps: number, Tokens: 10}}}
}

func current(s state, msg any) any {
	switch m := msg.(type) {
	case stepped:
		m.attempt = cmp.Or(m.attempt, s.attempt)
		return m
	case editDone:
		m.attempt = cmp.Or(m.attempt, s.attempt)
		return m
	case publishDone:
		m.attempt = cmp.Or(m.attempt, s.attempt)
		return m
	case begun:
		m.Attempt = cmp.Or(m.Attempt, s.attempt)
		return m
	case runLeft:
		m.Attempt = cmp.Or(m.Attempt, s.attempt)
		return m
	case runPanicked:
		m.Attempt = cmp.Or(m.Attempt, s.attempt)
		return m
	case progressed:
		m.attempt = cmp.Or(m.attempt, s.attempt)
		return m
	}
	return msg
}

var (
	follow  = FollowUp{Project: "p", ID: "f1", Prompt: "more"}
	edits   = editDone{edited: edit("docent/job_1", 1, "a.md")}
	nothing = editDone{edited: edit("docent/job_1", 1)}
	publish = publishDone{result: forge.Published{Commit: "c1", Link: "/pulls/1", New: true}}
)

func TestTransitions(t *testing.T) {
	done := []any{create("x"), edits, publish}
	for _, c := range []struct {
		name     string
		msgs     []any
		status   api.JobStatus
		phase    phase
		halt     api.HaltReason
		link     string
		waiting  int
		err      error
		contains string // of the message
	}{
		{name: "created", msgs: []any{create("x")}, status: api.JobActive, phase: editing, halt: api.HaltProcessing,
			waiting: 1},
		{name: "created twice", msgs: []any{create("x"), create("x")}, status: api.JobActive, phase: editing,
			halt: api.HaltProcessing, waiting: 1},
		{name: "edited", msgs: []any{create("x"), edits}, status: api.JobActive, phase: publishing, halt: api.HaltProcessing,
			waiting: 1},
		{name: "published", msgs: done, status: api.JobCompleted, halt: api.HaltCompleted, link: "/pulls/1",
			contains: "Done."},
		{name: "nothing to change", msgs: []any{create("x"), nothing}, status: api.JobCompleted, halt: api.HaltCompleted,
			contains: "Done."},
		{name: "follow-up to a completed job", msgs: append(done, follow), status: api.JobActive, phase: editing,
			halt: api.HaltProcessing, link: "/pulls/1", waiting: 1},
		{name: "follow-up twice", msgs: append(done, follow, follow), status: api.JobActive, phase: editing,
			halt: api.HaltProcessing, link: "/pulls/1", waiting: 1},
		{name: "follow-up to an active job waits", msgs: []any{create("x"), follow}, status: api.JobActive, phase: editing,
			halt: api.HaltProcessing, waiting: 2},
		{name: "and comes next", msgs: []any{create("x"), follow, edits, publish}, status: api.JobActive, phase: editing,
			halt: api.HaltProcessing, link: "/pulls/1", waiting: 1},
		{name: "edit failed", msgs: []any{create("x"), follow, editDone{err: errors.New("no such page")}},
			status: api.JobFailed, halt: api.HaltError, contains: "no such page"},
		{name: "follow-up to a failed job", msgs: []any{create("x"), editDone{err: errors.New("e")}, follow},
			status: api.JobActive, phase: editing, halt: api.HaltProcessing, waiting: 1},
		{name: "misconfigured", msgs: []any{create("x"), edits,
			publishDone{err: fmt.Errorf("x: %w", forge.ErrMisconfigured)}}, status: api.JobFailed, halt: api.HaltMisconfigured},
		{name: "moved", msgs: []any{create("x"), edits, publishDone{err: forge.ErrMoved}}, status: api.JobActive,
			phase: editing, halt: api.HaltProcessing, waiting: 1},
		{name: "cancelled", msgs: []any{create("x"), follow, Cancel{"p"}}, status: api.JobFailed, halt: api.HaltInterrupted,
			contains: "cancelled"},
		{name: "cancelled while publishing", msgs: []any{create("x"), edits, Cancel{"p"}}, status: api.JobFailed,
			halt: api.HaltInterrupted, contains: "cancelled"},
		{name: "cancelled twice", msgs: []any{create("x"), Cancel{"p"}, Cancel{"p"}}, status: api.JobFailed,
			halt: api.HaltInterrupted},
		{name: "cancel of a completed job", msgs: append(done, Cancel{"p"}), err: api.ErrConflict},
		{name: "archived while active", msgs: []any{create("x"), Archive{"p"}}, status: api.JobActive, phase: editing,
			halt: api.HaltProcessing, waiting: 1},
		{name: "follow-up to an archived job", msgs: append(done, Archive{"p"}, follow), err: api.ErrConflict},
		{name: "archived twice", msgs: append(done, Archive{"p"}, Archive{"p"}), status: api.JobCompleted,
			halt: api.HaltCompleted, link: "/pulls/1"},
		{name: "read of nothing", msgs: []any{Read{"p"}}, err: api.ErrNotFound},
		{name: "follow-up to nothing", msgs: []any{follow}, err: api.ErrNotFound},
		{name: "another project", msgs: []any{create("x"), FollowUp{Project: "q", ID: "z"}}, err: api.ErrNotFound},
		{name: "an old result", msgs: []any{create("x"), edits, editDone{attempt: 1, edited: edit("other", 9, "z.md")}},
			status: api.JobActive, phase: publishing, halt: api.HaltProcessing, waiting: 1},
		{name: "a result of a cancelled run", msgs: []any{create("x"), Cancel{"p"},
			editDone{attempt: 1, edited: edit("b", 1, "z")}}, status: api.JobFailed, halt: api.HaltInterrupted},
		{name: "three panics", msgs: []any{create("x"), runPanicked{}, runPanicked{}, runPanicked{}}, status: api.JobFailed,
			halt: api.HaltError, contains: "internal error"},
		{name: "two panics", msgs: []any{create("x"), runPanicked{}, runPanicked{}}, status: api.JobActive, phase: editing,
			halt: api.HaltProcessing, waiting: 1},
		{name: "eight crashes", msgs: []any{create("x"), begun{}, begun{}, begun{}, begun{}, begun{}, begun{}, begun{},
			begun{}}, status: api.JobFailed, halt: api.HaltError, contains: "broke off"},
		{name: "ends in good order", msgs: append([]any{create("x")}, slices.Repeat([]any{runLeft{}, begun{}}, 20)...),
			status: api.JobActive, phase: editing, halt: api.HaltProcessing, waiting: 1},
		{name: "ends in good order, and eight crashes", msgs: append([]any{create("x")}, append(slices.Repeat([]any{runLeft{}, begun{}}, 20),
			slices.Repeat([]any{begun{}}, 8)...)...), status: api.JobFailed, halt: api.HaltError, contains: "broke off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := play(t, state{id: testID}, c.msgs...)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil {
				return
			}
			if s.status != c.status || s.phase != c.phase || s.halt != c.halt || s.link != c.link || len(s.queue) != c.waiting ||
				!strings.Contains(s.message, c.contains) {
				t.Errorf("status %s, phase %v, halt %s, link %q, waiting %d, message %q", s.status, s.phase, s.halt, s.link,
					len(s.queue), s.message)
			}
			if _, pending := s.pending(); pending != (s.status == api.JobActive) {
				t.Errorf("%s, but pending is %v", s.status, pending)
			}
		})
	}
}

// A client learns from a job, and from the event that ends an instruction, what became of it.
func TestAJobSaysWhatBecameOfItsLastInstruction(t *testing.T) {
	with := func(o api.Outcome) editDone {
		e := edit("docent/job_1", 1)
		e.Result.Outcome = o
		return editDone{edited: e}
	}
	dry := create("x")
	dry.DryRun = true
	done := []any{create("x"), edits, publish}
	for _, c := range []struct {
		name string
		msgs []any
		want api.Outcome
	}{
		{"active", []any{create("x")}, ""},
		{"being published", []any{create("x"), edits}, ""},
		{"published", done, api.OutcomeChanged},
		{"a dry run", []any{dry, edits}, api.OutcomeChanged},
		{"nothing to do", []any{create("x"), with(api.OutcomeNothingToDo)}, api.OutcomeNothingToDo},
		{"no outcome said", []any{create("x"), with("")}, api.OutcomeNothingToDo},
		{"not understood", []any{create("x"), with(api.OutcomeNotUnderstood)}, api.OutcomeNotUnderstood},
		{"needs detail", []any{create("x"), with(api.OutcomeNeedsDetail)}, api.OutcomeNeedsDetail},
		{"nothing left to publish", []any{create("x"), edits, publishDone{err: forge.ErrNoChange}}, api.OutcomeNothingToDo},
		{"failed", []any{create("x"), editDone{err: errors.New("x")}}, ""},
		{"a follow-up is worked on", append(slices.Clone(done), follow), ""},
		{"a follow-up failed", append(slices.Clone(done), follow, editDone{err: errors.New("x")}), ""},
		{"a follow-up was not understood", append(slices.Clone(done), follow, with(api.OutcomeNotUnderstood)),
			api.OutcomeNotUnderstood},
	} {
		s, err := play(t, state{id: testID}, c.msgs...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.row(1).Job.Outcome; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if last := s.log[len(s.log)-1]; last.Type == EntryFinished && last.Outcome != c.want {
			t.Errorf("%s: the log says %q", c.name, last.Outcome)
		}
		data, err := s.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := restore(testID, data); err != nil || again.outcome != c.want {
			t.Errorf("%s: after a restart %q, %v", c.name, again.outcome, err)
		}
	}
	// An event of before outcomes were kept.
	s, _ := play(t, state{id: testID}, create("x"))
	if s = s.apply(Finished{Message: "d", At: t0}); s.row(1).Job.Outcome != "" || s.status != api.JobCompleted {
		t.Errorf("%+v", s.row(1).Job)
	}
}

func TestProgressShowsInTheRow(t *testing.T) {
	todo := []api.Todo{{ID: "1", Content: "look", Status: "in_progress", Priority: "high"}}
	s, err := play(t, state{id: testID}, create("Rename a\n\nto b"),
		progressed{Progress: agent.Progress{Title: "Rename  a", Todos: todo, Text: "one\nreading b.md"}})
	if err != nil {
		t.Fatal(err)
	}
	row := s.row(7)
	if row.Job.Title != "Rename a" || row.Job.Message != "reading b.md" || len(row.Todos) != 1 || row.Seq != 7 ||
		row.Session("p").Haulted {
		t.Errorf("%+v", row)
	}
	s, _ = play(t, s, Cancel{"p"})
	if s.todos[0].Status != "cancelled" || todo[0].Status != "in_progress" {
		t.Errorf("todos %v, and the editor's own %v", s.todos, todo)
	}
	for range 5 * maxLog {
		s = s.apply(Progressed{Text: "x", At: t0})
	}
	if len(s.log) > maxLog {
		t.Errorf("%d lines are kept", len(s.log))
	}
}

func TestOldStatesStayAsTheyWere(t *testing.T) {
	s, _ := play(t, state{id: testID}, create("x"), follow)
	before := fmt.Sprintf("%+v", s)
	a := s.apply(Prompted{ID: "a", Prompt: "a"})
	b := s.apply(Prompted{ID: "b", Prompt: "b"})
	if a.queue[2].ID != "a" || b.queue[2].ID != "b" {
		t.Error("two futures of one state share memory")
	}
	if after := fmt.Sprintf("%+v", s); after != before {
		t.Errorf("%s\nwas\n%s", after, before)
	}
}

// everyEvent is one of each kind with all fields set: what is on disk today is read tomorrow.
func everyEvent() []Event {
	return []Event{
		Created{Project: "p", Job: testID, User: "key_1", Source: api.JobSource{Repository: "o/r", Ref: "main"}, Model: "m",
			Draft: true, At: t0.Add(time.Millisecond)},
		Prompted{ID: "i", Prompt: "x", At: t0},
		Progressed{Title: "t", Todos: []api.Todo{{ID: "1", Content: "c", Status: "pending", Priority: "low"}}, Text: "l",
			At: t0},
		Edited{Branch: "b", Base: "main", Parent: "c0", Repo: "o/r", Number: 2, At: t0,
			Result: agent.Result{Model: "m", Title: "t", Commit: "c", Body: "b", Message: "d",
				Changes: []agent.Change{{Path: "a", Content: []byte{0, 255}, From: "z"}, {Path: "b", Delete: true}},
				Todos:   []api.Todo{{ID: "1"}}}},
		Stale{At: t0},
		Retried{Reason: persistent.Interrupted, At: t0},
		Retried{Reason: persistent.Panicked, At: t0},
		Published{Result: forge.Published{Commit: "c1", Number: 3, Link: "/l", New: true}, At: t0},
		Finished{Message: "d", At: t0},
		Failed{Reason: api.HaltError, Message: "e", At: t0},
		Archived{At: t0},
		Created{Project: "p", Job: testID, At: t0, Branch: "docs/next", DryRun: true},
		Edited{Branch: "b", Number: 1, At: t0,
			Files: []FileChange{{Path: "b", From: "a", Status: "moved", Added: 1, Removed: 2}}, Diff: "@@\n"},
		Stepped{At: t0, Step: agent.Step{Round: 2, Number: 3, Commit: "c0", State: "s", Left: 4, Cap: 5, Summary: true,
			Repairs: 1, Reviewed: "r", Misses: 1,
			Before: []agent.Turn{{Role: "tool", Text: "t", CallID: "c1", Failed: true},
				{Role: "assistant", Calls: []agent.Call{{ID: "c1", Name: "n", Arguments: "{}"}}}},
			Reply: agent.Reply{Model: "m", Text: "x", Calls: []agent.Call{{ID: "c2", Name: "n", Arguments: "{"}},
				Reason: "tools", Usage: agent.Usage{PromptTokens: 1, CachedTokens: 2, CompletionTokens: 3, Cost: 4}},
			Spent: agent.Spent{Steps: 1, Tokens: 2, Cost: 3, Time: 4, Bytes: 5}}},
		Created{Project: "p", Job: testID, Works: "rules-1", At: t0},
		Finished{Message: "d", At: t0, Outcome: api.OutcomeNeedsDetail},
		Edited{Branch: "b", Number: 1, At: t0, Result: agent.Result{Message: "d", Review: true, Outcome: api.OutcomeChanged}},
		Published{Result: forge.Published{Commit: "c1", Link: "/l"}, At: t0, Opened: true},
		Finished{Message: "d", At: t0, Ended: Ended{Instruction: "i", Link: "/l", Waiting: 2}},
		Failed{Reason: api.HaltError, Message: "e", At: t0, Ended: Ended{Instruction: "i", Link: "/l"}},
		PullChanged{Branch: "b", Link: "/l", State: api.PullMerged, At: t0},
	}
}

func TestWhatIsOnDiskStaysReadable(t *testing.T) {
	full, _ := play(t, state{id: testID}, create("x"), follow, progressed{Progress: agent.Progress{Text: "l"}}, step(1, 1),
		edits)
	// The snapshot is of before entries named their instruction.
	without := func(s state) state {
		s = normal(s)
		s.log, s.logBytes = slices.Clone(s.log), 0
		for i := range s.log {
			s.log[i].Instruction = ""
		}
		return s
	}
	simulation.Stored(t, &kind, string(testID), everyEvent(), full.seq, full, without)
}

func TestRow(t *testing.T) {
	if _, ok, err := Row(testID, journal.Recovered{}); ok || err != nil {
		t.Errorf("a job that does not exist: %v, %v", ok, err)
	}
	_, _, err := Row(testID, journal.Recovered{Seq: 1, Events: []journal.Event{{Type: "job.unknown.1"}}})
	var rec *persistent.RecoverError
	if !errors.As(err, &rec) || rec.Seq != 1 || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if _, _, err := Row(testID, journal.Recovered{Seq: 2}); !errors.As(err, &rec) {
		t.Errorf("a stream that lacks events: %v", err)
	}
}

// TestStories tells whole lives of jobs, event by event.
func TestStories(t *testing.T) {
	for name, msgs := range map[string][]any{
		"rename and more": {create("Rename a to b"), progressed{Progress: agent.Progress{Title: "Rename a", Text: "looking"}},
			edits, publish,
			follow, edits, publishDone{result: forge.Published{Commit: "c2", Link: "/pulls/1"}}, Archive{"p"}},
		"closed and merged": {create("x"), PullIs{"p", "", api.PullMerged}, edits, publish, PullIs{"p", "", api.PullOpen},
			PullIs{"p", "", api.PullClosed}, PullIs{"p", "", api.PullClosed}, PullIs{"p", "docent/job_1", api.PullOpen},
			PullIs{"p", "other", api.PullMerged}, PullIs{"q", "", api.PullMerged}, PullIs{"p", "", "lost"},
			PullIs{"p", "", api.PullMerged}, PullIs{"p", "", api.PullClosed}},
		"merged in between": {create("x"), edits, publish, follow, editDone{edited: edit("docent/job_1-2", 2, "b.md")},
			publishDone{result: forge.Published{Commit: "c2", Link: "/pulls/2", New: true}}},
		"step by step": {create("x"), step(1, 1), begun{}, step(1, 1), step(1, 3), step(1, 2), step(2, 1), step(1, 3),
			edits, step(2, 2), publish},
		"moved, crashed, done": {create("x"), begun{}, edits, publishDone{err: forge.ErrMoved}, runPanicked{}, edits, begun{},
			publish},
		"cancelled and again": {create("x"), follow, Cancel{"p"}, FollowUp{Project: "p", ID: "f2", Prompt: "try again"},
			nothing},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			s := state{id: testID}
			for i, msg := range msgs {
				events, err := s.decide(current(s, msg), t0.Add(time.Duration(i)*time.Second))
				fmt.Fprintf(&b, "> %s\n", strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", msg), "job."), "persistent."))
				if err != nil {
					fmt.Fprintf(&b, "  refused: %v\n", err)
				}
				for _, ev := range events {
					s = s.apply(ev)
					stored, _ := codec.Encode(ev)
					fmt.Fprintf(&b, "  %s\n", stored.Type)
				}
				r := s.row(uint64(i))
				link := "none"
				if r.Job.PRLink != nil {
					link = *r.Job.PRLink
				}
				fmt.Fprintf(&b, "  = %s/%v attempt %d, %d in hand or waiting, branch %s, link %s, %q: %q\n",
					s.status, s.phase, s.attempt, len(s.queue), s.branch, link, s.title, s.message)
			}
			file := strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-") + ".txt"
			if b.String() != simulation.Golden(t, file, b.String()) {
				t.Errorf("the story has changed (-update rewrites it):\n%s", b.String())
			}
		})
	}
}

// TestAJobWasCreatedWhenItsIDWasMade: listings are in the order of ids. A time that cannot be right is left out.
func TestAJobWasCreatedWhenItsIDWasMade(t *testing.T) {
	for name, c := range map[string]struct{ at, want time.Time }{
		"a moment before": {t0.Add(-437 * time.Millisecond), t0.Add(-437 * time.Millisecond)},
		"not said":        {time.Time{}, t0},
		"in the future":   {t0.Add(time.Second), t0},
		"long ago":        {t0.Add(-time.Hour), t0},
	} {
		cmd := create("append x")
		cmd.At = c.at
		s, err := play(t, state{id: testID}, cmd)
		if err != nil || !s.createdAt.Equal(c.want) {
			t.Errorf("%s: created at %v, want %v (%v)", name, s.createdAt, c.want, err)
		}
	}
}

func TestAJobThatJoinedGoesOnOnThatBranch(t *testing.T) {
	joins := publishDone{result: forge.Published{Commit: "c9", Link: "/pulls/9", Number: 9, Joined: "docent/job_0"}}
	s, err := play(t, state{id: testID}, create("x"), edits, joins)
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = restore(testID, data); err != nil {
		t.Fatal(err)
	}
	r := s.row(1)
	if *r.Job.PRLink != "/pulls/9" || r.Branch != "docent/job_0" || !r.Joined || r.Pull != "" ||
		!strings.Contains(r.Job.Message, "makes the same change already") || !strings.Contains(r.Job.Message, "/pulls/9") {
		t.Errorf("the job shows %+v", r)
	}
	if _, err := play(t, s, PullIs{"p", "docent/job_0", api.PullMerged}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a job hears of a pull request that it did not open: %v", err)
	}
	if s.branchName(s.number) != "docent/job_0" || s.branchName(s.number+1) != "docent/job_1-2" {
		t.Errorf("it goes on on %s, then %s", s.branchName(s.number), s.branchName(s.number+1))
	}
	onTop := publishDone{result: forge.Published{Commit: "c10", Link: "/pulls/9", Number: 9}}
	there, err := play(t, s, follow, editDone{edited: edit("docent/job_0", 1, "a.md")}, onTop)
	if r := there.row(1); err != nil || r.Branch != "docent/job_0" || !r.Joined || len(there.pulls) != 0 {
		t.Errorf("after a further instruction: %+v, %v", r, err)
	}
	// That one was merged: the next pull request is the job's own.
	own := publishDone{result: forge.Published{Commit: "c11", Link: "/pulls/10", Number: 10, New: true}}
	after, err := play(t, s, follow, editDone{edited: edit("docent/job_1-2", 2, "a.md")}, own)
	if r := after.row(1); err != nil || r.Branch != "docent/job_1-2" || r.Joined || r.Pull != api.PullOpen {
		t.Errorf("after the joined one was over: %+v, %v", r, err)
	}
}
