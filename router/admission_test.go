package router

import (
	"context"
	"errors"
	"runtime"
	"slices"
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
	a := newAdmission(2 * time.Second)
	a.delay = func() time.Duration { return 0 } // the processors have room
	return &Server{Deps: Deps{Jobs: jobs, Bounds: Bounds{}.withDefaults()}, metrics: m, admission: a}, jobs
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

// A simulation of questions that need a processor: all that are inside share what there is, and what waits for a disk or a
// model needs none.
type simulation struct {
	a       *admission
	at      time.Time
	carry   int           // questions a millisecond
	stall   time.Duration // that each waits for a disk, beside its work
	deaf    bool          // while others wait, one in 5 ms is heard of
	heard   time.Time
	inside  []*simulated    // the oldest first
	took    []time.Duration // of those that were accepted, in the order of their end
	refuse  []time.Duration // when, from the beginning
	waiting []*simulated
	longest time.Duration // that one waited for a refusal
	told    []bool        // whether there is a bound, each time that it came or went
	began   time.Time
}

type simulated struct {
	place  *place
	waiter *waiter
	came   time.Time
	ready  time.Time
	work   float64
}

// enter begins the work of a question that was let in.
func (s *simulation) enter(q *simulated) {
	p, err := s.a.enter(q.place)
	if err != nil {
		s.refuse = append(s.refuse, s.at.Sub(s.began))
		return
	}
	p.answer()
	q.place, q.ready, q.work = p, s.at.Add(s.stall), 1
	s.inside = append(s.inside, q)
}

func newSimulation(carry int, stall time.Duration) *simulation {
	s := &simulation{carry: carry, stall: stall, at: time.Unix(1e9, 0)}
	s.began = s.at
	s.a = newAdmission(2 * time.Second)
	s.a.fewest, s.a.now = 8, func() time.Time { return s.at }
	s.a.tell = func(crowded bool) { s.told = append(s.told, crowded) }
	s.a.delay = func() time.Duration { // what more than four do waits
		return time.Duration(max(0, s.runnable()-4)) * 200 * time.Microsecond / time.Duration(s.carry)
	}
	return s
}

func (s *simulation) runnable() int {
	n := 0
	for _, q := range s.inside {
		if !q.ready.After(s.at) {
			n++
		}
	}
	return n
}

// run lets questions come, so many in a millisecond.
func (s *simulation) run(a int, during time.Duration) {
	const step = 50 * time.Microsecond
	due := 0.0
	for end := s.at.Add(during); s.at.Before(end); s.at = s.at.Add(step) {
		due += float64(a) * step.Seconds() * 1000
		heard := int(due)
		if s.deaf && len(s.waiting) > 0 {
			heard = min(heard, int(s.at.Sub(s.heard)/(5*time.Millisecond)))
		}
		for ; heard > 0; heard-- {
			due--
			s.heard = s.at
			p, w, err := s.a.reserve()
			switch {
			case err != nil:
				s.refuse = append(s.refuse, s.at.Sub(s.began))
			case w != nil:
				s.waiting = append(s.waiting, &simulated{waiter: w, came: s.at})
			default:
				s.enter(&simulated{place: p, came: s.at})
			}
		}
		still := s.waiting[:0]
		for _, q := range s.waiting {
			select {
			case <-q.waiter.told:
				if q.waiter.err != nil {
					s.refuse = append(s.refuse, s.at.Sub(s.began))
					s.longest = max(s.longest, s.at.Sub(q.came))
					continue
				}
				q.place = q.waiter.place
				s.enter(q)
			default:
				still = append(still, q)
			}
		}
		s.waiting = still
		share := float64(s.carry) * step.Seconds() * 1000 / float64(max(4, s.runnable()))
		kept := s.inside[:0]
		for _, q := range s.inside {
			if !q.ready.After(s.at) {
				q.work -= share
			}
			if q.work > 0 {
				kept = append(kept, q)
				continue
			}
			q.place.begin()
			s.took = append(s.took, s.at.Sub(q.came))
		}
		s.inside = kept
	}
}

func TestPastSaturationAcceptedQuestionsStayQuick(t *testing.T) {
	s := newSimulation(2, 0)
	s.run(1, time.Second)
	if len(s.refuse) > 0 {
		t.Fatalf("%d were refused at half of what the processors carry", len(s.refuse))
	}
	before := len(s.took)
	s.run(4, 5*time.Second)
	took := s.took[before:]
	if len(took) < 2*5000*95/100 {
		t.Errorf("%d were answered in the time of 10000", len(took))
	}
	took = slices.Sorted(slices.Values(took)) // from its first moment on
	if p50, p99 := took[len(took)/2], took[len(took)*99/100]; p50 > 12*time.Millisecond || p99 > longBegin+lookEvery {
		t.Errorf("half took more than %v, one in a hundred more than %v", p50, p99)
	}
	if slowest := took[len(took)-1]; slowest > burst {
		t.Errorf("one took %v, most of it while it was not clear that this is no crowd", slowest)
	}
	if s.longest > burst+2*lookEvery {
		t.Errorf("one waited %v to be refused", s.longest)
	}
	dropped := s.at.Sub(s.began)
	s.run(1, 2*time.Second)
	if last := s.refuse[len(s.refuse)-1]; last > dropped+lookEvery {
		t.Errorf("the last was refused %v after the load had dropped", last-dropped)
	}
	if _, bound := s.a.processors(); bound != 0 {
		t.Errorf("a bound of %d remains", bound)
	}
	if want := []bool{true, false}; !slices.Equal(s.told, want) {
		t.Errorf("told was %v, want %v", s.told, want)
	}
}

// Something else takes half of the processors for a while, as the garbage collector does.
func TestFewerAreLetInWhileTheProcessorsHaveLess(t *testing.T) {
	s := newSimulation(2, 0)
	s.run(4, time.Second)
	s.carry = 1
	s.run(0, 2*lookEvery)
	before := len(s.took)
	s.run(4, time.Second)
	took := slices.Sorted(slices.Values(s.took[before:]))
	if len(took) < 950 {
		t.Errorf("%d were answered in the time of 1000", len(took))
	}
	if p50, p99 := took[len(took)/2], took[len(took)*99/100]; p50 > 7*time.Millisecond || p99 > lookEvery {
		t.Errorf("half took more than %v, one in a hundred more than %v: those inside are not fewer than at other times", p50, p99)
	}
}

func TestABurstThatTheProcessorsWorkOffIsNotRefused(t *testing.T) {
	s := newSimulation(2, 0)
	for range 5 {
		s.run(1000, time.Millisecond) // a thousand at once, work for half a second
		s.run(0, time.Second)
	}
	if len(s.refuse) > 0 {
		t.Errorf("%d were refused", len(s.refuse))
	}
}

// Readers who come together do not come at the same instant, and their connections take time to be read.
func TestACrowdThatTakesAMomentToComeIsNotRefused(t *testing.T) {
	for _, over := range []time.Duration{10 * time.Millisecond, 40 * time.Millisecond} {
		s := newSimulation(2, 0)
		s.run(1, time.Second)
		s.run(1000/int(over/time.Millisecond), over)
		s.run(1, 2*time.Second) // others come as before
		if len(s.refuse) > 0 {
			t.Errorf("of a crowd that came within %v %d were refused", over, len(s.refuse))
		}
		if len(s.waiting) > 0 || s.a.inside > 8*wholePlace {
			t.Errorf("two seconds later %d wait and %d are inside", len(s.waiting), s.a.inside)
		}
	}
}

// A little more than is carried, by fits and starts: now and then there is a moment in which nobody comes.
func TestAQueueThatStandsIsRefused(t *testing.T) {
	s := newSimulation(2, 0)
	s.run(1, time.Second)
	before := len(s.took)
	for range 100 {
		s.run(3, 40*time.Millisecond)
		s.run(0, 12*time.Millisecond)
	}
	took := slices.Sorted(slices.Values(s.took[before:]))
	if p99 := took[len(took)*99/100]; p99 > burst {
		t.Errorf("one in a hundred took more than %v", p99)
	}
	if s.longest > 2*burst+2*lookEvery {
		t.Errorf("one waited %v to be refused", s.longest)
	}
}

// A processor that is alone asks the network only when there is nothing else to do, and so does not see who comes while
// those who wait are let in.
func TestAnOverloadIsSeenByAProcessorThatAsksTheNetworkRarely(t *testing.T) {
	for _, load := range []int{3, 4, 5, 6} {
		s := newSimulation(2, 0)
		s.deaf = true
		s.run(1, time.Second)
		s.run(load, 2*time.Second)
		if len(s.refuse) == 0 || s.refuse[0] > time.Second+2*burst {
			t.Errorf("of %d questions where 2 are carried %d were refused, the first ones at %v", load, len(s.refuse), s.refuse[:min(1, len(s.refuse))])
		}
	}
	s := newSimulation(2, 0)
	s.deaf = true
	s.run(1, time.Second)
	s.run(25, 40*time.Millisecond) // a crowd, which takes half a second
	s.run(1, time.Second)
	if len(s.refuse) > 0 {
		t.Errorf("%d of a crowd were refused", len(s.refuse))
	}
}

// crowdedAdmission has room for one, and has others wait.
func crowdedAdmission() *admission {
	a := newAdmission(2 * time.Second)
	a.delay = func() time.Duration { return tolerable }
	a.fewest, a.bound, a.state = 1, 1, crowded
	a.shut.Store(true)
	a.looked, a.stands = time.Now(), time.Now()
	return a
}

func TestWhoWaitsIsLetInOrDismissedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := crowdedAdmission()
		first, err := a.wait(t.Context())
		if err != nil || first == nil {
			t.Fatal(first, err)
		}
		gone, leave := context.WithCancel(t.Context())
		var errs [3]error
		var places [3]*place
		var all sync.WaitGroup
		for i, ctx := range []context.Context{gone, t.Context(), t.Context()} {
			all.Go(func() { places[i], errs[i] = a.wait(ctx) })
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		if !errors.Is(errs[0], context.Canceled) || a.waiting.Len() != 2 {
			t.Errorf("who left heard %v, and %d wait", errs[0], a.waiting.Len())
		}
		first.leave()
		synctest.Wait()
		if places[2] == nil || places[1] != nil || a.inside != wholePlace {
			t.Errorf("%v was let in and %v, %d are inside", places[2], places[1], a.inside)
		}
		a.stop()
		all.Wait()
		if !errors.Is(errs[1], api.ErrOverloaded) || errs[2] != nil {
			t.Errorf("the others heard %v and %v", errs[1], errs[2])
		}
		places[2].leave()
		if a.inside != 0 {
			t.Errorf("%d are inside", a.inside)
		}
		late, w, err := a.reserve() // and one that was let in at the moment at which nobody waited for it any more
		if err != nil || w != nil {
			t.Fatal(w, err)
		}
		_, w, _ = a.reserve()
		late.leave()
		a.forget(w)
		if a.inside != 0 {
			t.Errorf("%d are inside", a.inside)
		}
	})
}

func TestQuestionsOfModelsElsewhereTakeLessRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := crowdedAdmission()
		let := make(chan *place, 5)
		for range cap(let) {
			go func() {
				p, err := a.wait(t.Context())
				if err != nil {
					t.Error(err)
				}
				let <- p
			}()
		}
		var inside []*place
		for range 3 { // three of them are as one
			synctest.Wait()
			if len(let) != 1 {
				t.Fatalf("%d more were let in beside %d", len(let), len(inside))
			}
			p := <-let
			p.elsewhere()
			p.elsewhere() // it is that already
			inside = append(inside, p)
		}
		synctest.Wait()
		if len(let) != 0 {
			t.Fatalf("%d more were let in beside %d", len(let), len(inside))
		}
		for range 2 {
			inside[0].leave()
			inside[0].elsewhere() // it is gone
			synctest.Wait()
			if len(let) != 1 {
				t.Fatalf("%d more were let in for one that left", len(let))
			}
			p := <-let
			p.elsewhere()
			inside = append(inside[1:], p)
		}
		for _, p := range inside {
			p.leave()
		}
		if a.inside != 0 {
			t.Errorf("%d are inside", a.inside)
		}
	})
}

func TestASlowDiskWithIdleProcessorsRefusesNothing(t *testing.T) {
	s := newSimulation(2, 300*time.Millisecond) // hundreds are inside, none of them waits for a processor
	s.run(1, 5*time.Second)
	if len(s.refuse) > 0 {
		t.Errorf("%d were refused", len(s.refuse))
	}
}

func TestSearchesTellNothingOfTheJournal(t *testing.T) {
	s := newSimulation(2, 0)
	slow, err := s.a.enter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		p, err := s.a.enterRead(nil)
		if err != nil {
			t.Fatal(err)
		}
		p.leave()
		s.at = s.at.Add(time.Millisecond)
	}
	if s.a.standing() < 2*time.Second {
		t.Error("the command that does not move is not seen among the searches")
	}
	slow.leave()
	slow.leave() // a second time changes nothing
	if s.a.inside != 0 || s.a.working != 0 {
		t.Errorf("%d inside, %d at work", s.a.inside, s.a.working)
	}
}

func TestTheRuntimeTellsHowLongGoroutinesWait(t *testing.T) {
	delay := schedulerDelay()
	delay()
	var all sync.WaitGroup
	for range 200 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for range 20 {
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	if delay() <= 0 {
		t.Error("nothing waited")
	}
}
