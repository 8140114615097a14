package actors_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/backoff"
	"docent/persistence/journal"
)

// TestJournals holds the journal in memory to what the real one does, as far as actors rely on it: then what the other
// tests show on it may be believed.
func TestJournals(t *testing.T) {
	for name, open := range map[string]func(*testing.T) actors.Journal{
		"memory": func(*testing.T) actors.Journal { return newMemory() },
		"bbolt":  func(t *testing.T) actors.Journal { return openJournal(t, filepath.Join(t.TempDir(), "journal")) },
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			ctx := t.Context()
			ev := func(names ...string) (out []journal.Event) {
				for _, n := range names {
					out = append(out, journal.Event{Type: n, Data: []byte("data of " + n)})
				}
				return out
			}
			if rec, err := j.Load("job/a"); err != nil || rec.Seq != 0 || rec.Snapshot != nil || len(rec.Events) != 0 {
				t.Fatalf("an unknown stream: %+v, %v", rec, err)
			}
			last, err := j.Append(ctx, journal.Append{Stream: "job/a", Events: ev("x", "y"), Pending: true})
			if err != nil || last != 2 {
				t.Fatal(last, err)
			}
			if _, err := j.Append(ctx, journal.Append{Stream: "job/a", After: 1, Events: ev("z")}); !errors.Is(err,
				journal.ErrSequence) {
				t.Errorf("a stale append: %v", err)
			}
			if _, err := j.Append(ctx, journal.Append{Stream: "job/b", After: 1, Events: ev("z")}); !errors.Is(err,
				journal.ErrSequence) {
				t.Errorf("an append to the middle of a new stream: %v", err)
			}
			pending := func() (out []string) {
				if err := j.Pending(func(s string) bool { out = append(out, s); return true }); err != nil {
					t.Error(err)
				}
				return out
			}
			claim := journal.Claim{Key: "k", Owner: "job/c", Ref: "r", Expires: time.Now().Add(time.Hour)}
			if _, err := j.Append(ctx, journal.Append{Stream: "job/c", Events: ev("x"), Pending: true,
				Claim: &claim}); err != nil {
				t.Fatal(err)
			}
			if got := pending(); !slices.Equal(got, []string{"job/a", "job/c"}) {
				t.Errorf("pending: %v", got)
			}
			other := claim
			other.Owner = "job/d"
			var claimed *journal.ClaimedError
			if _, err := j.Append(ctx, journal.Append{Stream: "job/d", Events: ev("x"), Claim: &other}); !errors.As(err,
				&claimed) || claimed.Claim.Owner != "job/c" {
				t.Errorf("a taken key: %v", err)
			}
			if rec, err := j.Load("job/d"); err != nil || rec.Seq != 0 {
				t.Errorf("the refused append wrote: %+v, %v", rec, err)
			}
			other.Replaces = true
			if _, err := j.Append(ctx, journal.Append{Stream: "job/d", Events: ev("x"), Claim: &other}); err != nil {
				t.Errorf("a key taken over: %v", err)
			}
			if c, ok, err := j.Claim("k", time.Now()); err != nil || !ok || c.Owner != "job/d" {
				t.Errorf("who holds the key: %+v, %v, %v", c, ok, err)
			}
			if _, ok, _ := j.Claim("k", time.Now().Add(2*time.Hour)); ok {
				t.Error("an expired claim is found")
			}
			if _, err := j.Append(ctx, journal.Append{Stream: "job/a", After: 2, Events: ev("z")}); err != nil {
				t.Fatal(err)
			}
			if got := pending(); !slices.Equal(got, []string{"job/c"}) {
				t.Errorf("pending: %v", got)
			}
			j.Snapshot("job/a", 2, []byte("state"))
			for { // some time later
				rec, err := j.Load("job/a")
				if err != nil || rec.Seq != 3 {
					t.Fatalf("%+v, %v", rec, err)
				}
				if n := len(rec.Events); uint64(n) != rec.Seq-rec.SnapSeq || rec.Events[n-1].Type != "z" ||
					string(rec.Events[n-1].Data) != "data of z" {
					t.Fatalf("%+v", rec)
				}
				if rec.SnapSeq == 2 && string(rec.Snapshot) == "state" {
					break
				}
				if err := ctx.Err(); err != nil {
					t.Fatal("the snapshot does not come")
				}
				time.Sleep(time.Millisecond) // polls what the journal does in the background
			}
		})
	}
}

func openJournal(t testing.TB, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Log: discard, CheckpointEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func TestJobsAndThreadsOutliveRestartsOnTheRealJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	w := newWorld(t, nil)
	jobs, threads := make([]api.JobID, 20), make([]api.ThreadID, 20)
	for i := range jobs {
		jobs[i], threads[i] = newJob(), newThread()
	}
	for round := range 4 {
		j, err := journal.Open(path, journal.Options{Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		w.journal = j
		w.start()
		var all sync.WaitGroup
		for i := range jobs {
			all.Go(func() {
				if round == 0 {
					w.create(jobs[i], "one")
				} else {
					w.ask(jobs[i], job.FollowUp{Project: "p", ID: fmt.Sprint(round), Prompt: fmt.Sprint("round ", round)})
				}
				q := question(fmt.Sprint("a question of round ", round))
				q.New = round == 0
				log := w.put(threads[i], q).Log
				if i%2 == 0 { // the others are cut off wherever they are
					w.settled(jobs[i])
					read(t, log)
				}
			})
		}
		all.Wait()
		w.stop()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.journal = openJournal(t, path)
	w.start()
	defer w.stop()
	<-w.system.Woken()
	for i := range jobs {
		row := w.settled(jobs[i])
		if row.Job.Status != api.JobCompleted || row.Job.Message != "Done: round 3" || w.host.commits(branch(jobs[i])) != 4 {
			t.Errorf("%+v, %d commits", row.Job, w.host.commits(branch(jobs[i])))
		}
		for { // unfinished turns are taken up by themselves
			c := w.conversation(threads[i])
			if n := len(c.Turns); n != 4 {
				t.Fatalf("%d turns", n)
			}
			if last := c.Turns[3]; last.Done {
				if last.Answer != "You ask: a question of round 3 " {
					t.Errorf("%+v", last)
				}
				break
			}
			turn, err := w.system.Threads().Resume(t.Context(), threads[i],
				thread.Resume{Project: project("p"), Caller: "anonymous"})
			if err != nil {
				t.Fatal(err)
			}
			read(t, turn.Log)
		}
	}
	if w.host.opened != len(jobs) {
		t.Errorf("%d pull requests", w.host.opened)
	}
}

// TestPassivationLosesNoCommand sends to actors that go to sleep all the time, from many sides.
func TestPassivationLosesNoCommand(t *testing.T) {
	w := newWorld(t, func(d *actors.Deps) { d.Idle, d.Awake = time.Millisecond, 1 })
	w.start()
	const senders, each = 8, 1500
	ids := make([]api.JobID, 20)
	for i := range ids {
		ids[i] = newJob()
		w.create(ids[i], "nothing")
		w.settled(ids[i])
	}
	var answered atomic.Int64
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range each {
				id := ids[(s*7+i)%len(ids)]
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				row, err := w.system.Jobs().Ask(ctx, id, job.Read{Project: "p"})
				cancel()
				if err != nil || row.Row.Job.ID != id {
					t.Errorf("%s: %+v, %v", id, row, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	all.Wait()
	st := w.system.Stats()
	if answered.Load() != senders*each || st.Passivations < 100 {
		t.Errorf("%d of %d answered, %d passivations", answered.Load(), senders*each, st.Passivations)
	}
	t.Logf("%d commands over %d incarnations", answered.Load(), st.Recoveries)
	w.stop()
}

func TestAnIdleActorGoesToSleepAndABusyOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		idle, busy, watched := newJob(), newJob(), newJob()
		w.create(idle, "nothing")
		w.create(watched, "nothing")
		w.create(busy, "block")
		w.settled(idle)
		row := w.settled(watched)
		go w.system.Jobs().Ask(t.Context(), watched, job.Watch{Project: "p", After: row.Seq,
			Until: time.Now().Add(time.Hour)})
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if n := w.system.Stats().Live; n != 2 {
			t.Errorf("%d actors are awake", n)
		}
		if rec, _ := w.journal.Load(job.Stream(idle)); rec.SnapSeq != rec.Seq {
			t.Errorf("the sleeping actor left its snapshot at %d of %d", rec.SnapSeq, rec.Seq)
		}
		if again := w.settled(idle); again.Job.Message != "Nothing to change." {
			t.Errorf("%+v", again)
		}
		close(w.writer.letGo)
		w.settled(busy)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := w.system.Stats().Live; n != 0 {
			t.Errorf("%d actors are awake", n)
		}
	})
}

func TestTheLongestUnusedSleepWhenTooManyAreAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.Shards, d.Awake = 1, 10 }).start()
		defer w.stop()
		for range 100 {
			id := newJob()
			w.create(id, "nothing")
			w.settled(id)
			synctest.Wait()
			if n := w.system.Stats().Live; n > 11 {
				t.Fatalf("%d actors are awake", n)
			}
		}
	})
}

func TestAStreamThatCannotBeReadParksItsActorAlone(t *testing.T) {
	for name, damage := range map[string]func(*memoryStream){
		"a damaged record":     func(s *memoryStream) { s.corrupt = true },
		"an unknown event":     func(s *memoryStream) { s.events[1].Type = "job.reticulated.9" },
		"an event that is cut": func(s *memoryStream) { s.events[1].Data = s.events[1].Data[:3] },
		"a snapshot of later":  func(s *memoryStream) { s.snapshot = []byte{0xa1, 0x00, 0x18, 0x63}; s.snapSeq = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil).start()
				bad, good := newJob(), newJob()
				w.create(bad, "block")
				w.create(good, "nothing")
				synctest.Wait()
				w.stop()
				w.memory.change(job.Stream(bad), func(s *memoryStream) { s.snapshot, s.snapSeq = nil, 0; damage(s) })
				w.start()
				defer w.stop()
				<-w.system.Woken()
				for range 3 {
					_, err := w.system.Jobs().Ask(t.Context(), bad, job.Read{Project: "p"})
					var quarantined *actors.QuarantinedError
					if !errors.As(err, &quarantined) || !errors.Is(err, journal.ErrCorrupt) {
						t.Errorf("%v", err)
					}
				}
				w.settled(good)
				synctest.Wait()
				st := w.system.Stats()
				if len(st.Quarantined) != 1 || st.Quarantined[0].ID != string(bad) || st.Recoveries != 1 {
					t.Errorf("%+v", st)
				}
				if log := w.log.String(); !strings.Contains(log, "quarantined") || !strings.Contains(log, string(bad)) {
					t.Error("the log does not tell")
				}
				time.Sleep(time.Hour)
				if st := w.system.Stats(); st.Failures != 1 {
					t.Errorf("it was tried again: %+v", st)
				}
			})
		})
	}
}

// TestAnActorThatKeepsFailing: each command meets a journal that another writer has been at, until there is peace.
func TestAnActorThatKeepsFailingIsRestartedLaterEachTimeAndThenQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.Backoff = backoff.Exponential(time.Second, 30*time.Second) }).start()
		defer w.stop()
		bad, good := newJob(), newJob()
		w.create(bad, "nothing")
		w.create(good, "nothing")
		w.settled(bad)
		w.memory.mu.Lock()
		w.memory.fail = func(a journal.Append) error {
			if a.Stream == job.Stream(bad) {
				return journal.ErrSequence
			}
			return nil
		}
		w.memory.mu.Unlock()
		began := time.Now()
		var pauses []time.Duration
		for i := range 6 {
			_, err := w.system.Jobs().Ask(t.Context(), bad, job.FollowUp{Project: "p", ID: "f", Prompt: "x"})
			if !errors.Is(err, api.ErrUnavailable) {
				t.Fatalf("failure %d: %v", i, err)
			}
			if i < 5 { // what waits in its mailbox is answered after the restart
				before := time.Now()
				w.ask(bad, job.Read{Project: "p"})
				pauses = append(pauses, time.Since(before))
			}
		}
		for i := 1; i < len(pauses); i++ {
			if pauses[i] < pauses[i-1]*9/10 || pauses[i] < time.Second<<i/2 {
				t.Errorf("pauses %v", pauses)
			}
		}
		t.Log("pauses", pauses, "altogether", time.Since(began))
		var quarantined *actors.QuarantinedError
		if _, err := w.system.Jobs().Ask(t.Context(), bad, job.Read{Project: "p"}); !errors.As(err, &quarantined) {
			t.Errorf("%v", err)
		}
		w.settled(good)
		st := w.system.Stats()
		if st.Failures != 6 || st.Restarts != 5 || len(st.Quarantined) != 1 || st.Quarantined[0].ID != string(bad) ||
			st.Recoveries < 7 {
			t.Errorf("%+v", st)
		}
		shown := gathered(t, w.system)
		for name, want := range map[string]int{"failures_total": st.Failures, "restarts_total": st.Restarts, "quarantined": 1,
			"parked":             1,
			"dead_letters_total": st.DeadLetters, "recovery_seconds": st.Recoveries} {
			if got, ok := shown["docent_actors_"+name]; !ok || got != float64(want) {
				t.Errorf("docent_actors_%s is %v, want %d", name, got, want)
			}
		}
	})
}

func TestWhoAskedAFailingActorIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.start()
		defer w.stop()
		id := newJob()
		w.create(id, "nothing")
		w.settled(id)
		w.memory.mu.Lock()
		w.memory.fail = func(journal.Append) error { panic("the journal fell over") }
		w.memory.mu.Unlock()
		if _, err := w.system.Jobs().Ask(t.Context(), id, job.Archive{Project: "p"}); err == nil ||
			strings.Contains(err.Error(), "fell over") {
			t.Errorf("%v", err)
		}
		if log := w.log.String(); !strings.Contains(log, "the journal fell over") ||
			!strings.Contains(log, "memory).Append") {
			t.Error("the log lacks the panic or its stack")
		}
	})
}

func TestAnAskerWhoLeavesInTimeHasAskedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.Backoff = func(int) time.Duration { return time.Minute } }).start()
		defer w.stop()
		id := newJob()
		w.create(id, "nothing")
		row := w.settled(id)
		w.memory.mu.Lock()
		w.memory.fail = func(journal.Append) error { return journal.ErrSequence }
		w.memory.mu.Unlock()
		w.system.Jobs().Ask(t.Context(), id, job.Archive{Project: "p"}) // the actor rests for a minute
		w.memory.mu.Lock()
		w.memory.fail = nil
		w.memory.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.system.Jobs().Ask(ctx, id, job.Archive{Project: "p"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if after := w.ask(id, job.Read{Project: "p"}); after.Archived || after.Seq != row.Seq {
			t.Errorf("%+v", after)
		}
	})
}

func TestStopAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		id := newJob()
		w.create(id, "block")
		thr := newThread()
		turn := w.put(thr, opening("block"))
		synctest.Wait()
		row := w.ask(id, job.Read{Project: "p"})
		watched := make(chan error, 1)
		go func() {
			r, err := w.system.Jobs().Ask(context.Background(), id, job.Watch{Project: "p", After: row.Seq,
				Until: time.Now().Add(time.Hour)})
			if err == nil && r.Row.Job.Status != api.JobActive {
				err = errors.New("a run that was stopped ended its job")
			}
			watched <- err
		}()
		synctest.Wait()
		w.stop()
		if err := <-watched; err != nil {
			t.Error(err)
		}
		if _, end := told(read(t, turn.Log)); end != stream.Error {
			t.Error(end)
		}
		if _, err := w.system.Jobs().Ask(t.Context(), id, job.Read{Project: "p"}); !errors.Is(err, api.ErrShuttingDown) {
			t.Errorf("after the stop: %v", err)
		}
		if err := w.system.Stop(t.Context()); err != nil {
			t.Errorf("a second stop: %v", err)
		}
	})
}

func TestStopLeavesWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		stuck := make(chan struct{})
		w.writer.onEdit = func(agentTask) { <-stuck } // an editor that does not stop when told
		w.start()
		w.create(newJob(), "one")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := w.system.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		close(stuck)
	})
}

func TestManyPendingStreamsWakeWhileTheServiceAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.Waking = 3 }).start()
		var ids []api.ThreadID
		for range 100 {
			ids = append(ids, newThread())
			w.put(ids[len(ids)-1], opening("block"))
		}
		w.stop()
		close(w.talker.letGo)
		w.start()
		defer w.stop()
		read(t, w.put(newThread(), opening("a new one")).Log)
		<-w.system.Woken()
		synctest.Wait()
		for _, id := range ids {
			if c := w.conversation(id); len(c.Turns) != 1 || c.Turns[0].Answer != "You ask: block " {
				t.Errorf("%+v", c.Turns)
			}
		}
	})
}

// gathered is what the metrics of a system show, of histograms how much they have counted.
func gathered(t *testing.T, system prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(system); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		switch m := f.GetMetric()[0]; {
		case m.GetGauge() != nil:
			got[f.GetName()] = m.GetGauge().GetValue()
		case m.GetCounter() != nil:
			got[f.GetName()] = m.GetCounter().GetValue()
		case m.GetHistogram() != nil:
			got[f.GetName()] = float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

func TestTheSystemIsACollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		w.create(newJob(), "nothing")
		synctest.Wait()
		got := gathered(t, w.system)
		if got["docent_actors_live"] != 1 || got["docent_actors_recovery_seconds"] != 1 {
			t.Errorf("%v", got)
		}
	})
}

// TestWorkThatComesAsAnActorGoesToSleepIsDone gives instructions at the moments at which actors fall asleep. Nobody
// asks again: what was accepted has to be done by itself.
func TestWorkThatComesAsAnActorGoesToSleepIsDone(t *testing.T) {
	w := newWorld(t, func(d *actors.Deps) { d.Idle, d.Awake, d.Shards, d.RunningJobs = 200*time.Microsecond, 1, 1, 100 })
	w.start()
	defer w.stop()
	ids := make([]api.JobID, 16)
	for i := range ids {
		ids[i] = newJob()
		w.create(ids[i], "nothing")
	}
	// done waits until a job is at rest. It looks at the journal, not at the actor: asking would wake it.
	done := func(id api.JobID) error {
		for {
			rec, _ := w.journal.Load(job.Stream(id))
			row, _, err := job.Row(id, rec)
			switch {
			case err != nil:
				return err
			case row.Job.Status == api.JobCompleted:
				return nil
			case t.Context().Err() != nil || time.Now().After(deadline(t)):
				return fmt.Errorf("%s sleeps with work to do: %+v", id, row)
			}
			runtime.Gosched()
		}
	}
	const each = 150
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			for n := range each {
				_, err := w.system.Jobs().Ask(t.Context(), id, job.FollowUp{Project: "p", ID: fmt.Sprint(n), Prompt: "nothing"})
				for errors.Is(err, api.ErrOverloaded) { // on a busy machine instructions may come faster than they are carried out
					if err = done(id); err == nil {
						_, err = w.system.Jobs().Ask(t.Context(), id, job.FollowUp{Project: "p", ID: fmt.Sprint(n), Prompt: "nothing"})
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
				for range (i + n) % 7 * 50 {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if err := done(id); err != nil {
			t.Fatal(err)
		}
	}
	if st := w.system.Stats(); st.Passivations < 50 {
		t.Errorf("only %d passivations", st.Passivations)
	}
	for _, id := range ids {
		if slices.Contains(w.memory.types(job.Stream(id)), "job.retried.1") {
			t.Errorf("%s was put to sleep in the middle of its work", id)
		}
	}
}

// deadline is a little before the test's own, so that a failure tells what it waited for.
func deadline(t *testing.T) time.Time {
	if d, ok := t.Deadline(); ok {
		return d.Add(-2 * time.Second)
	}
	return time.Now().Add(time.Hour)
}
