package actors_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
)

func newJob() api.JobID { return api.JobID(api.NewID(api.JobPrefix, time.Now())) }

func (w *world) create(id api.JobID, prompt string) api.JobRow {
	w.t.Helper()
	return w.ask(id, job.Create{Project: project("p"), User: "key_1", Prompt: prompt})
}

func (w *world) ask(id api.JobID, cmd job.Command) api.JobRow {
	w.t.Helper()
	r, err := w.system.Jobs().Ask(w.t.Context(), id, cmd)
	if err != nil {
		w.t.Fatalf("%T: %v", cmd, err)
	}
	return r.Row
}

// settled waits until the job is active no more.
func (w *world) settled(id api.JobID) api.JobRow {
	w.t.Helper()
	row := w.ask(id, job.Read{Project: "p"})
	for row.Job.Status == api.JobActive {
		row = w.ask(id, job.Watch{Project: "p", After: row.Seq, Until: time.Now().Add(time.Hour)})
	}
	return row
}

func branch(id api.JobID) string { return "docent/" + string(id) }

func TestAJobBecomesOnePullRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		row := w.create(id, "rename a")
		if row.Job.Status != api.JobActive || row.Job.PRLink != nil || row.Halt != api.HaltProcessing ||
			row.Job.Title != "rename a" {
			t.Errorf("the answer to create: %+v", row)
		}
		row = w.settled(id)
		if row.Job.Status != api.JobCompleted || row.Job.PRLink == nil || *row.Job.PRLink != "/pulls/pr1" ||
			row.Halt != api.HaltCompleted {
			t.Errorf("in the end: %+v", row)
		}
		if row.Job.Message != "Done: rename a" || row.Job.Title != "Did rename a" || row.Branch != branch(id) ||
			row.Job.Model != "rules-1" {
			t.Errorf("what the job says: %+v", row)
		}
		if len(row.Todos) != 1 || row.Todos[0].Status != "completed" {
			t.Errorf("todos: %+v", row.Todos)
		}
		rec, _ := w.journal.Load(job.Stream(id))
		if listed, ok, err := job.Row(id, rec); err != nil || !ok ||
			fmt.Sprint(listed.Job.Message, listed.Seq) != fmt.Sprint(row.Job.Message, row.Seq) {
			t.Errorf("the row for listings %+v, %v, %v is not the actor's %+v", listed, ok, err, row)
		}
	})
}

// What a job works on and with is right in the first answer, which is all that the caller of a job that waits for its
// turn sees.
func TestAJobShowsItsSourceAndModelFromTheFirstAnswerOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		for _, c := range []struct{ asked, projects, want string }{
			{"", "", "rules-1"}, {"", "its own", "the model called its own"}, {"another", "its own", "the model called another"},
		} {
			p := project("p")
			p.Repository, p.Branch, p.Source, p.Model = "", "", "/srv/secret/place", c.projects
			id := newJob()
			first := w.ask(id, job.Create{Project: p, Prompt: "nothing", Model: c.asked})
			if want := (api.JobSource{Repository: "p", Ref: base}); first.Job.Source != want || first.Job.Model != c.want {
				t.Errorf("the first answer says %+v and %q", first.Job.Source, first.Job.Model)
			}
			last := w.settled(id)
			if last.Job.Source != first.Job.Source {
				t.Errorf("the last answer says %+v", last.Job.Source)
			}
			if got, want := w.writer.seen(), cmp.Or(c.asked, c.projects); got[len(got)-1].Model != want {
				t.Errorf("the editor was asked for %q, not for %q", got[len(got)-1].Model, want)
			}
			rec, _ := w.journal.Load(job.Stream(id))
			if listed, ok, err := job.Row(id, rec); err != nil || !ok || listed.Job.Source != last.Job.Source {
				t.Errorf("the row for listings is %+v, %v, %v", listed, ok, err)
			}
		}
	})
}

func TestAFollowUpGoesToTheSameBranchAndPullRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		w.create(id, "one")
		first := w.settled(id)
		row := w.ask(id, job.FollowUp{Project: "p", ID: "f1", Prompt: "two"})
		if row.Job.Status != api.JobActive || row.Job.PRLink == nil {
			t.Errorf("the answer to a follow-up says %s with link %v", row.Job.Status, row.Job.PRLink)
		}
		row = w.settled(id)
		if *row.Job.PRLink != *first.Job.PRLink || w.host.opened != 1 || w.host.commits(branch(id)) != 2 {
			t.Errorf("link %s, %d pull requests, %d commits", *row.Job.PRLink, w.host.opened, w.host.commits(branch(id)))
		}
		tasks := w.writer.seen()
		if e := tasks[1].Earlier; len(e) != 1 || e[0].Prompt != "one" || e[0].Message != "Done: one" || e[0].Commit == "" {
			t.Errorf("the agent was told of earlier instructions: %+v", e)
		}
		again, err := w.system.Jobs().Ask(t.Context(), id, job.FollowUp{Project: "p", ID: "f1", Prompt: "two"})
		if err != nil || again.Fresh || again.Row.Seq != row.Seq {
			t.Errorf("a repeated follow-up changed something: %+v, %v", again, err)
		}
	})
}

func TestAFollowUpAfterAMergeOpensANewPullRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		w.create(id, "one")
		first := w.settled(id)
		w.host.merge(branch(id))
		if row := w.ask(id, job.FollowUp{Project: "p", ID: "f1", Prompt: "two"}); row.Job.PRLink == nil ||
			*row.Job.PRLink != *first.Job.PRLink {
			t.Errorf("the link changed before there is a new one: %v", row.Job.PRLink)
		}
		row := w.settled(id)
		if row.Branch != branch(id)+"-2" || *row.Job.PRLink == *first.Job.PRLink || w.host.opened != 2 {
			t.Errorf("branch %s, link %s", row.Branch, *row.Job.PRLink)
		}
		w.host.merge(branch(id) + "-2")
		w.ask(id, job.FollowUp{Project: "p", ID: "f2", Prompt: "three"})
		if row = w.settled(id); row.Branch != branch(id)+"-3" {
			t.Errorf("branch %s", row.Branch)
		}
	})
}

func TestAFollowUpToALostBranchFailsPlainly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.start()
		defer w.stop()
		id := newJob()
		w.create(id, "one")
		row := w.settled(id)
		if row.Job.Status != api.JobCompleted {
			t.Fatalf("%+v", row.Job)
		}
		w.host.mu.Lock()
		delete(w.host.branches, row.Branch)
		w.host.mu.Unlock()
		w.ask(id, job.FollowUp{Project: "p", ID: "f", Prompt: "two"})
		row = w.settled(id)
		if row.Job.Status != api.JobFailed || row.Halt != api.HaltError || !strings.HasSuffix(row.Job.Message, " is lost.") {
			t.Errorf("%+v", row)
		}
		if w.host.published != 1 || len(w.writer.seen()) != 1 {
			t.Errorf("published %d times, edited %d times", w.host.published, len(w.writer.seen()))
		}
		w.host.keeps = true // as after the repository was restored
		w.ask(id, job.FollowUp{Project: "p", ID: "g", Prompt: "three"})
		if row = w.settled(id); row.Job.Status != api.JobCompleted || w.host.commits(row.Branch) != 2 {
			t.Errorf("%+v with %d commits", row, w.host.commits(row.Branch))
		}
		r, err := w.system.Jobs().Ask(t.Context(), id, job.Watch{Project: "p", Log: true})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(r.Log, func(e job.Entry) bool { return strings.Contains(e.Text, "brought back") }) {
			t.Errorf("the log does not say that the commit was brought back: %+v", r.Log)
		}
	})
}

func TestFollowUpsToAnActiveJobAreDoneInTheOrderSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		w.create(id, "block")
		for i := range 5 {
			if row := w.ask(id, job.FollowUp{Project: "p", ID: fmt.Sprint(i),
				Prompt: fmt.Sprint("step ", i)}); row.Job.Status != api.JobActive {
				t.Fatal(row.Job.Status)
			}
		}
		synctest.Wait()
		if n := len(w.writer.seen()); n != 1 {
			t.Fatalf("%d edits at once", n)
		}
		close(w.writer.letGo)
		w.settled(id)
		var prompts []string
		for _, task := range w.writer.seen() {
			prompts = append(prompts, task.Prompt)
		}
		if got := strings.Join(prompts, ","); got != "block,step 0,step 1,step 2,step 3,step 4" {
			t.Error(got)
		}
		if n := w.host.commits(branch(id)); n != 6 || w.host.opened != 1 {
			t.Errorf("%d commits, %d pull requests", n, w.host.opened)
		}
	})
}

func TestCancelStopsAnActiveJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		w.create(id, "block")
		w.ask(id, job.FollowUp{Project: "p", ID: "f", Prompt: "after"})
		synctest.Wait()
		row := w.ask(id, job.Cancel{Project: "p"})
		if row.Job.Status != api.JobFailed || row.Job.Message != "cancelled" || row.Halt != api.HaltInterrupted ||
			row.Todos[0].Status != "cancelled" {
			t.Errorf("%+v", row)
		}
		synctest.Wait() // the edit's context has ended
		if st := w.system.Stats(); st.RunningJobs != 0 {
			t.Errorf("%d runs go on", st.RunningJobs)
		}
		if again := w.ask(id, job.Cancel{Project: "p"}); again.Seq != row.Seq {
			t.Error("a repeated cancel changed something")
		}
		w.ask(id, job.FollowUp{Project: "p", ID: "g", Prompt: "again"})
		if row = w.settled(id); row.Job.Status != api.JobCompleted {
			t.Errorf("a follow-up after a cancel: %+v", row)
		}
		var state *api.StateError
		if _, err := w.system.Jobs().Ask(t.Context(), id, job.Cancel{Project: "p"}); !errors.As(err, &state) ||
			!errors.Is(err, api.ErrConflict) {
			t.Errorf("cancel of a completed job: %v", err)
		}
	})
}

func TestAnArchivedJobTakesNoInstruction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		w.create(id, "nothing")
		if row := w.settled(id); row.Job.Status != api.JobCompleted || row.Job.PRLink != nil ||
			row.Job.Message != "Nothing to change." {
			t.Errorf("%+v", row)
		}
		row := w.ask(id, job.Archive{Project: "p"})
		if row.Job.ArchivedAt == nil || !row.Archived {
			t.Errorf("%+v", row)
		}
		var state *api.StateError
		if _, err := w.system.Jobs().Ask(t.Context(), id, job.FollowUp{Project: "p", ID: "f",
			Prompt: "more"}); !errors.As(err, &state) || !errors.Is(err, api.ErrConflict) {
			t.Errorf("follow-up to an archived job: %v", err)
		}
	})
}

func TestNobodysJobIsNotFoundAndLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		for range 50 {
			if _, err := w.system.Jobs().Ask(t.Context(), newJob(), job.Read{Project: "p"}); !errors.Is(err, api.ErrNotFound) {
				t.Fatal(err)
			}
		}
		if _, err := w.system.Jobs().Ask(t.Context(), "../../etc", job.Read{Project: "p"}); !errors.Is(err, api.ErrNotFound) {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := w.system.Stats().Live; n != 0 {
			t.Errorf("%d actors stayed", n)
		}
		id := newJob()
		w.create(id, "nothing")
		for _, cmd := range []job.Command{job.Read{Project: "q"}, job.FollowUp{Project: "q", ID: "f"},
			job.Watch{Project: "q"}, job.Archive{Project: "q"},
			job.Cancel{Project: "q"}, job.Create{Project: project("q")}} {
			if _, err := w.system.Jobs().Ask(t.Context(), id, cmd); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%T of another project: %v", cmd, err)
			}
		}
	})
}

func TestANilCommandIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		if _, err := w.system.Jobs().Ask(t.Context(), newJob(), nil); err == nil {
			t.Error("no error")
		}
	})
}

func TestWatchAnswersWhenTheJobMovesOrTheTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		id := newJob()
		w.create(id, "block")
		synctest.Wait()
		row := w.ask(id, job.Read{Project: "p"})
		began := time.Now()
		if same := w.ask(id, job.Watch{Project: "p", After: row.Seq,
			Until: began.Add(30 * time.Second)}); same.Seq != row.Seq {
			t.Errorf("seq %d", same.Seq)
		}
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("answered after %v", waited)
		}
		moved := make(chan api.JobRow)
		go func() {
			moved <- w.ask(id, job.Watch{Project: "p", After: row.Seq, Until: time.Now().Add(time.Hour)})
		}()
		synctest.Wait()
		began = time.Now()
		close(w.writer.letGo)
		if r := <-moved; r.Seq <= row.Seq || time.Since(began) != 0 {
			t.Errorf("seq %d after %v", r.Seq, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		row = w.settled(id)
		if _, err := w.system.Jobs().Ask(ctx, id, job.Watch{Project: "p", After: row.Seq,
			Until: time.Now().Add(time.Hour)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a watcher that leaves: %v", err)
		}
	})
}

func TestWhatWasAcceptedIsDoneAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		id := newJob()
		w.create(id, "block")
		w.ask(id, job.FollowUp{Project: "p", ID: "f", Prompt: "after"})
		synctest.Wait()
		w.stop()
		close(w.writer.letGo)
		w.start()
		defer w.stop()
		<-w.system.Woken()
		synctest.Wait() // nobody asks: it wakes by itself
		row := w.ask(id, job.Read{Project: "p"})
		if row.Job.Status != api.JobCompleted || row.Job.Message != "Done: after" || w.host.opened != 1 ||
			w.host.commits(branch(id)) != 2 {
			t.Errorf("%+v, %d pull requests", row, w.host.opened)
		}
		if got := w.memory.types(job.Stream(id)); !slices.Contains(got, "job.retried.1") {
			t.Errorf("the run that broke off is not counted: %v", got)
		}
	})
}

func TestAPublicationWhoseOutcomeWasLostIsNotMadeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		crashed := make(chan struct{})
		w.host.lose = func(forge.Publication) error { // the process ends after the host has acted
			w.host.lose = nil
			w.memory.mu.Lock()
			w.memory.fail = func(journal.Append) error { return errors.New("the process is gone") }
			w.memory.mu.Unlock()
			close(crashed)
			return nil
		}
		w.start()
		id := newJob()
		w.create(id, "one")
		<-crashed
		synctest.Wait()
		w.stop()
		w.memory.fail = nil
		w.start()
		defer w.stop()
		if row := w.settled(id); row.Job.Status != api.JobCompleted || w.host.opened != 1 || w.host.commits(branch(id)) != 1 {
			t.Errorf("%+v, %d pull requests, %d commits", row.Job, w.host.opened, w.host.commits(branch(id)))
		}
		if w.host.published != 2 || len(w.writer.seen()) != 1 {
			t.Errorf("published %d times, edited %d times", w.host.published, len(w.writer.seen()))
		}
	})
}

func TestABranchThatMovedIsEditedAnewAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		moves := 0
		w.host.fail = func(p forge.Publication) error {
			if moves++; moves <= 2 {
				return forge.ErrMoved
			}
			return nil
		}
		w.start()
		defer w.stop()
		id := newJob()
		w.create(id, "one")
		if row := w.settled(id); row.Job.Status != api.JobCompleted || len(w.writer.seen()) != 3 {
			t.Errorf("%+v after %d edits", row.Job, len(w.writer.seen()))
		}
		moves = -100
		w.host.fail = func(p forge.Publication) error { return forge.ErrMoved }
		w.ask(id, job.FollowUp{Project: "p", ID: "f", Prompt: "two"})
		if row := w.settled(id); row.Job.Status != api.JobFailed || len(w.writer.seen()) != 3+5 {
			t.Errorf("%+v after %d edits", row.Job, len(w.writer.seen()))
		}
	})
}

func TestACodeHostThatDoesNotAnswerIsAskedAgainForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		down := true
		w.host.fail = func(forge.Publication) error {
			if down {
				return forge.ErrTemporary
			}
			return nil
		}
		w.start()
		defer w.stop()
		id := newJob()
		began := time.Now()
		w.create(id, "one")
		row := w.settled(id)
		if row.Job.Status != api.JobFailed || row.Halt != api.HaltError ||
			!strings.Contains(row.Job.Message, "did not answer") {
			t.Errorf("%+v", row)
		}
		if took := time.Since(began); took < time.Minute || took > 3*time.Minute {
			t.Errorf("gave up after %v", took)
		}
		w.host.fail = func(forge.Publication) error { return fmt.Errorf("token: %w", forge.ErrMisconfigured) }
		w.ask(id, job.FollowUp{Project: "p", ID: "f", Prompt: "two"})
		if row := w.settled(id); row.Halt != api.HaltMisconfigured {
			t.Errorf("%+v", row)
		}
	})
}

func TestAnInstructionThatBreaksTheAgentFailsAndHarmsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		bad, good := newJob(), newJob()
		w.create(bad, "panic")
		w.create(good, "one")
		row := w.settled(bad)
		if row.Job.Status != api.JobFailed || row.Halt != api.HaltError ||
			len(slices.DeleteFunc(w.writer.seen(), func(task agentTask) bool { return task.Prompt != "panic" })) != 3 {
			t.Errorf("%+v", row)
		}
		if row := w.settled(good); row.Job.Status != api.JobCompleted {
			t.Errorf("%+v", row)
		}
		if !strings.Contains(w.log.String(), "stack=") {
			t.Error("the stack is not in the log")
		}
		w.ask(bad, job.FollowUp{Project: "p", ID: "f", Prompt: "fail"})
		if row := w.settled(bad); row.Job.Status != api.JobFailed || !strings.Contains(row.Job.Message, "nonsense") {
			t.Errorf("%+v", row)
		}
	})
}

func TestAnInstructionThatKillsTheProcessIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := newJob()
		w.start()
		w.create(id, "block")
		starts := 0
		for {
			time.Sleep(2 * time.Minute) // virtual: work that broke off often rests before it starts over
			synctest.Wait()
			if row := w.ask(id, job.Read{Project: "p"}); row.Job.Status == api.JobFailed {
				break
			}
			if starts++; starts > 20 {
				t.Fatal("it loops")
			}
			w.crash()
			w.start()
		}
		w.stop()
		if n := len(w.writer.seen()); n != 8 {
			t.Errorf("%d attempts", n)
		}
	})
}

// Upgrades, and moves from node to node, end work in good order: however often that happens to work that takes long, it
// is not taken for work that kills the process.
func TestStopsInGoodOrderDoNotUseUpAJobsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := newJob()
		w.start()
		w.create(id, "block")
		const stops = 20
		for range stops {
			time.Sleep(2 * time.Minute) // virtual
			w.stop()
			w.start()
		}
		time.Sleep(time.Second)
		if n := len(w.writer.seen()); n != stops+1 {
			t.Errorf("the work began %d times, want %d: it did not begin at once after each stop", n, stops+1)
		}
		close(w.writer.letGo)
		if row := w.settled(id); row.Job.Status != api.JobCompleted {
			t.Errorf("%+v", row.Job)
		}
		w.stop()
	})
}

func TestARowOfCrashesDoesNotUseUpAJobsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		id := newJob()
		w.start()
		w.create(id, "block")
		for range 30 { // the process dies soon after each start, no matter what is to blame
			synctest.Wait()
			w.crash()
			w.start()
		}
		close(w.writer.letGo)
		if row := w.settled(id); row.Job.Status != api.JobCompleted {
			t.Errorf("%+v", row.Job)
		}
		w.stop()
	})
}

func TestAWaitingJobIsNotCountedAsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.RunningJobs = 1 })
		w.start()
		first, second := newJob(), newJob()
		w.create(first, "block")
		synctest.Wait()
		w.create(second, "one")
		for range 5 {
			synctest.Wait()
			w.crash()
			w.start()
		}
		synctest.Wait()
		retried := 0
		for _, typ := range w.memory.types(job.Stream(second)) {
			if typ == "job.retried.1" {
				retried++
			}
		}
		if retried > 2 { // one for each kind of its work that began after a restart, however many restarts it waited for
			t.Errorf("%d retries: %v", retried, w.memory.types(job.Stream(second)))
		}
		close(w.writer.letGo)
		w.settled(first)
		w.settled(second)
		w.stop()
	})
}

func TestAnIdempotencyKeyThatIsTakenSaysWhoHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		first, second := newJob(), newJob()
		claim := func(id api.JobID) *journal.Claim {
			return &journal.Claim{Key: "k", Owner: job.Stream(id), Expires: time.Now().Add(time.Hour)}
		}
		w.ask(first, job.Create{Project: project("p"), Prompt: "nothing", Claim: claim(first)})
		_, err := w.system.Jobs().Ask(t.Context(), second, job.Create{Project: project("p"), Prompt: "nothing",
			Claim: claim(second)})
		var claimed *journal.ClaimedError
		if !errors.As(err, &claimed) || claimed.Claim.Owner != job.Stream(first) {
			t.Fatal(err)
		}
		w.settled(first)
		synctest.Wait()
		if _, err := w.system.Jobs().Ask(t.Context(), second, job.Read{Project: "p"}); !errors.Is(err, api.ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestAtMostSoManyRunsWorkAtOnceInAFairOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.RunningJobs = 2 })
		w.writer.begun = make(chan string, 100)
		w.start()
		defer w.stop()
		var ids []api.JobID
		for i := range 6 {
			id := newJob()
			ids = append(ids, id)
			w.create(id, fmt.Sprint("block ", i))
			synctest.Wait()
		}
		other := newJob()
		if _, err := w.system.Jobs().Ask(t.Context(), other, job.Create{Project: project("q"), Prompt: "q"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := w.system.Stats(); st.RunningJobs != 2 || st.WaitingJobs != 5 {
			t.Errorf("%d run, %d wait", st.RunningJobs, st.WaitingJobs)
		}
		w.writer.letGo <- struct{}{} // one of p's goes on; its successor is p's, then q's turn
		synctest.Wait()
		w.writer.letGo <- struct{}{}
		synctest.Wait()
		close(w.writer.letGo)
		for _, id := range ids {
			w.settled(id)
		}
		var order []string
		for len(w.writer.begun) > 0 {
			order = append(order, <-w.writer.begun)
		}
		if i := slices.Index(order, "q"); i > 4 {
			t.Errorf("the other project's only job waited: %v", order)
		}
	})
}

// The age of the oldest instruction is that since it was given, over restarts, whether it waits or is worked on; and the
// jobs that a restart makes queue again go on in the order in which their instructions were given.
func TestTheAgeOfTheOldestInstructionAndItsTurnSurviveRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.RunningJobs, d.OpenJobs = 1, 1 })
		w.writer.begun = make(chan string, 1000)
		w.start()
		if age := w.system.Stats().OldestInstruction; age != 0 {
			t.Errorf("nothing was given, %v ago", age)
		}
		var ids []api.JobID
		for i := range 6 {
			ids = append(ids, newJob())
			w.create(ids[i], fmt.Sprint("block ", i))
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		for n := range 3 {
			w.crash()
			w.start()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if age, want := w.system.Stats().OldestInstruction.Round(time.Second), time.Duration(6+10*(n+1))*time.Minute; age != want {
				t.Errorf("after restart %d the oldest was given %v ago, not %v", n+1, age, want)
			}
		}
		late := newJob()
		w.create(late, "block late")
		synctest.Wait()
		for len(w.writer.begun) > 0 {
			<-w.writer.begun
		}
		close(w.writer.letGo)
		for _, id := range append(ids, late) {
			w.settled(id)
		}
		synctest.Wait()
		var order []string
		for len(w.writer.begun) > 0 {
			order = append(order, <-w.writer.begun)
		}
		if !slices.IsSorted(order) || len(order) < 6 {
			t.Errorf("they went on as %q", order)
		}
		if age := w.system.Stats().OldestInstruction; age != 0 {
			t.Errorf("all have ended, and one was given %v ago", age)
		}
		w.stop()
	})
}
