package router

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/actors/job"
	"docent/api"
)

// delayedJobs answers after a while.
type delayedJobs struct {
	mu    sync.Mutex
	delay time.Duration
}

func (d *delayedJobs) Ask(ctx context.Context, _ api.JobID, _ job.Command) (job.Reply, error) {
	d.mu.Lock()
	delay := d.delay
	d.mu.Unlock()
	time.Sleep(delay)
	return job.Reply{}, nil
}

func (d *delayedJobs) set(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = delay
}

// press sends commands at a steady rate for a while and counts how many were refused.
func press(t *testing.T, s *Server, rate int, during time.Duration) (sent, refused int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range int(during/time.Second) * rate {
		time.Sleep(time.Second / time.Duration(rate))
		sent++
		all.Go(func() {
			_, err := s.command(t.Context(), "job_x", job.FollowUp{})
			var busy *api.BusyError
			if err == nil {
				return
			}
			if !errors.Is(err, api.ErrOverloaded) || !errors.As(err, &busy) || busy.RetryAfter < time.Second || busy.RetryAfter > 30*time.Second {
				t.Errorf("refused with %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			refused++
		})
	}
	all.Wait()
	return sent, refused
}

func pressed(t *testing.T) (*Server, *delayedJobs) {
	jobs := &delayedJobs{delay: 5 * time.Millisecond}
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return &Server{Deps: Deps{Jobs: jobs, Bounds: Bounds{}.withDefaults()}, metrics: m, admission: newAdmission(2 * time.Second)}, jobs
}

func TestCommandsAreRefusedWhileTheQueueStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, jobs := pressed(t)
		if _, refused := press(t, s, 100, 10*time.Second); refused != 0 {
			t.Fatalf("%d were refused of a service that is quick", refused)
		}
		jobs.set(4 * time.Second) // a disk that has become slow
		sent, refused := press(t, s, 100, 30*time.Second)
		if refused < sent/2 {
			t.Errorf("%d of %d were refused while each took four seconds", refused, sent)
		}
		if refused == sent {
			t.Error("nothing was let in: nobody would notice that the queue has gone")
		}
		if q := s.admission.standing(); q < 2*time.Second {
			t.Errorf("the queue is said to take %v", q)
		}
		jobs.set(5 * time.Millisecond)
		press(t, s, 100, 5*time.Second) // finds out
		if _, refused := press(t, s, 100, 10*time.Second); refused != 0 {
			t.Errorf("%d were refused after the queue had gone", refused)
		}
	})
}

func TestADiskThatStandsStillIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, jobs := pressed(t)
		jobs.set(25 * time.Second) // nothing ends for that long
		sent, refused := press(t, s, 100, 20*time.Second)
		if refused < sent/2 {
			t.Errorf("%d of %d were refused while nothing moved", refused, sent)
		}
	})
}

func TestActorsThatDoNotAnswerHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, jobs := pressed(t)
		jobs.set(25 * time.Second)
		var slow sync.WaitGroup
		for range 40 {
			slow.Go(func() { _, _ = s.command(t.Context(), "job_slow", job.FollowUp{}) })
		}
		time.Sleep(10 * time.Second) // with nobody else there, it looks like a queue
		jobs.set(5 * time.Millisecond)
		press(t, s, 10, 3*time.Second)
		if _, refused := press(t, s, 10, 5*time.Second); refused != 0 {
			t.Errorf("%d were refused though the others are answered at once", refused)
		}
		slow.Wait()
	})
}

func TestABurstAndASlowCommandAreNoQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, jobs := pressed(t)
		jobs.set(20 * time.Second)
		var slow sync.WaitGroup
		for range 40 { // as actors that wait for their restart
			slow.Go(func() { _, _ = s.command(t.Context(), "job_slow", job.FollowUp{}) })
		}
		synctest.Wait()
		jobs.set(5 * time.Millisecond)
		for range 5000 { // all at once
			slow.Go(func() {
				if _, err := s.command(t.Context(), "job_x", job.FollowUp{}); err != nil {
					t.Error(err)
				}
			})
		}
		if _, refused := press(t, s, 100, 10*time.Second); refused != 0 {
			t.Errorf("%d were refused", refused)
		}
		slow.Wait()
	})
}
