package actors_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/api"
	"docent/persistence/journal"
)

// What an operator has cured (a disk that could not be read, a stream that was repaired) comes back without a restart,
// with the work that it had to do.
func TestAQuarantinedActorThatIsRetriedGoesOnWithItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		bad := newJob()
		w.create(bad, "block")
		synctest.Wait()
		w.stop()
		close(w.writer.letGo)
		w.memory.change(job.Stream(bad), func(s *memoryStream) { s.corrupt = true })
		w.start()
		defer w.stop()
		<-w.system.Woken()
		synctest.Wait()
		was := w.system.Stats().Quarantined
		if len(was) != 1 || was[0].ID != string(bad) || was[0].Kind != "job" || was[0].At.IsZero() || was[0].Err == nil {
			t.Fatalf("quarantined: %+v", was)
		}

		time.Sleep(time.Minute)
		var still *actors.QuarantinedError
		if err := w.system.Retry(t.Context(), string(bad)); !errors.As(err, &still) || !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("a retry that fails says %v", err)
		}
		synctest.Wait()
		if now := w.system.Stats().Quarantined; len(now) != 1 || !now[0].At.After(was[0].At) {
			t.Errorf("after a retry that failed: %+v", now)
		}

		w.memory.change(job.Stream(bad), func(s *memoryStream) { s.corrupt = false })
		if err := w.system.Retry(t.Context(), string(bad)); err != nil {
			t.Fatal(err)
		}
		if now := w.system.Stats().Quarantined; len(now) != 0 {
			t.Errorf("still listed: %+v", now)
		}
		if row := w.settled(bad); row.Job.Status != api.JobCompleted {
			t.Errorf("its work: %+v", row.Job)
		}
		if err := w.system.Retry(t.Context(), string(bad)); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a retry of one that is well: %v", err)
		}
		if err := w.system.Retry(t.Context(), string(newThread())); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("a retry of one that never was: %v", err)
		}
		if err := w.system.Retry(t.Context(), "../journal"); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("a retry of no id: %v", err)
		}
	})
}

// Commands and retries that come at the moment of the failure, from many sides, are all answered, and the actor is as
// well as its journal in the end.
func TestRetriesThatCoincideLoseNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *actors.Deps) { d.MaxFailures = 1 }).start()
		defer w.stop()
		id := newJob()
		w.create(id, "nothing")
		w.settled(id)
		for range 20 {
			w.memory.mu.Lock()
			w.memory.fail = func(journal.Append) error { return journal.ErrSequence }
			w.memory.mu.Unlock()
			for range 2 {
				_, _ = w.system.Jobs().Ask(t.Context(), id, job.FollowUp{Project: "p", ID: "f", Prompt: "x"})
			}
			w.memory.mu.Lock()
			w.memory.fail = nil
			w.memory.mu.Unlock()
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { _, _ = w.system.Jobs().Ask(t.Context(), id, job.Read{Project: "p"}) })
				all.Go(func() {
					if err := w.system.Retry(t.Context(), string(id)); err != nil && !errors.Is(err, api.ErrNotFound) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			synctest.Wait()
			if len(w.system.Stats().Quarantined) > 0 { // all retries came before the failure was known
				if err := w.system.Retry(t.Context(), string(id)); err != nil {
					t.Fatal(err)
				}
			}
			w.settled(id)
			if st := w.system.Stats(); len(st.Quarantined) != 0 {
				t.Fatalf("%+v", st.Quarantined)
			}
		}
	})
}
