package overload

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
)

var plain = Rule{Working: 10, Waiting: 4000, Limit: 1600 * time.Millisecond, Lease: 250 * time.Millisecond}

func TestTheRuleSaysWhoWaitsAndWhoIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		load     load
		want     verdict
		expected time.Duration
	}{
		"nobody is there":                        {load{0, 0, 1}, enters, 0},
		"there is room, however slow it was":     {load{9, 0, 0}, enters, 0},
		"it is the next one":                     {load{10, 0, 100}, waits, 110 * time.Millisecond},
		"others are before it":                   {load{10, 89, 100}, waits, time.Second},
		"it can just be answered in time":        {load{10, 149, 100}, waits, 1600 * time.Millisecond},
		"it would be answered too late":          {load{10, 150, 100}, refused, 1610 * time.Millisecond},
		"the same on a machine that does more":   {load{10, 150, 1000}, waits, 161 * time.Millisecond},
		"the queue is as long as it may be":      {load{10, 4000, 1e6}, refused, 4011 * time.Microsecond},
		"nothing moves":                          {load{10, 0, 0}, refused, maxRetry},
		"it moves so slowly that nobody can say": {load{10, 3000, 1e-9}, refused, maxRetry},
	} {
		got, expected := plain.decide(c.load)
		if got != c.want || expected.Round(time.Microsecond) != c.expected {
			t.Errorf("%s: %v after %v, want %v after %v", name, got, expected, c.want, c.expected)
		}
	}
}

func TestWhoIsRefusedHearsWhenTheOthersWillBeAnswered(t *testing.T) {
	for _, c := range []struct {
		expected time.Duration
		spread   float64
		want     time.Duration
	}{
		{100 * time.Millisecond, 0, time.Second}, {100 * time.Millisecond, 0.5, 1500 * time.Millisecond},
		{2 * time.Second, 0, 2 * time.Second}, {2 * time.Second, 0.999, 3998 * time.Millisecond},
		{20 * time.Second, 0.9, 30 * time.Second}, {maxRetry, 0, 30 * time.Second},
	} {
		if got := retryAfter(c.expected, c.spread); got != c.want {
			t.Errorf("%v, %v: %v, want %v", c.expected, c.spread, got, c.want)
		}
	}
}

// A machine is one that gets so many requests done in a second, all of whose tickets are taken while it is busy.
type machine struct {
	*Queue
	t     *testing.T
	each  time.Duration // that a request takes
	skew  atomic.Int64  // by how much its clock is ahead: the process stood still for so long
	began time.Time

	mu       sync.Mutex
	stands   time.Time       // until then nothing gets done
	took     []time.Duration // of those that were let in
	refused  []time.Duration // when, from the beginning
	longest  int             // queue
	requests sync.WaitGroup
}

// run is a test on a machine in a bubble of its own time.
func run(t *testing.T, rule Rule, rate int, test func(*machine)) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, each: time.Duration(rule.Working) * time.Second / time.Duration(rate), began: time.Now()}
		m.Queue = newQueue(rule, func() time.Time { return time.Now().Add(time.Duration(m.skew.Load())) })
		test(m)
		m.requests.Wait()
		if s := m.Stats(); s.Working != 0 || s.Waiting != 0 || s.Expected != 0 {
			t.Errorf("at the end: %+v", s)
		}
	})
}

// ask is one request.
func (m *machine) ask() {
	m.requests.Go(func() {
		came := time.Now()
		p, err := m.Enter(context.Background())
		m.mu.Lock()
		defer m.mu.Unlock()
		var busy *api.BusyError
		switch {
		case err == nil:
			needs := m.each + max(0, time.Until(m.stands))
			m.mu.Unlock()
			time.Sleep(needs)
			p.Done()
			m.mu.Lock()
			m.took = append(m.took, time.Since(came))
		case !errors.Is(err, api.ErrOverloaded) || !errors.As(err, &busy) || busy.RetryAfter < leastRetry ||
			busy.RetryAfter > maxRetry:
			m.t.Errorf("refused with %v", err)
		case time.Since(came) > 0:
			m.t.Errorf("refused after %v", time.Since(came))
		default:
			m.refused = append(m.refused, time.Since(m.began))
		}
	})
}

// press sends so many requests in a second, for a while.
func (m *machine) press(rate int, during time.Duration) {
	gap := time.Second / time.Duration(rate)
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(gap) {
		m.ask()
		m.longest = max(m.longest, m.Stats().Waiting)
	}
}

// burst sends so many at once.
func (m *machine) burst(n int) {
	for range n {
		m.ask()
	}
	synctest.Wait()
}

// answered forgets what was before, and says how many were let in and refused, and how long all but one in a hundred
// took.
func (m *machine) answered() (done, refused int, p99 time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done, refused = len(m.took), len(m.refused)
	if slices.Sort(m.took); done > 0 {
		p99 = m.took[done*99/100]
	}
	m.took, m.refused = nil, nil
	return done, refused, p99
}

func TestACrowdAtTheStartIsRefusedByTheBoundAlone(t *testing.T) {
	for _, rate := range []int{20, 1000} { // whatever the machine will turn out to do
		run(t, Rule{Working: 10, Waiting: 500, Limit: 1500 * time.Millisecond, Lease: 250 * time.Millisecond}, rate,
			func(m *machine) {
				m.burst(510)
				if _, refused, _ := m.answered(); refused != 0 {
					t.Errorf("%d of a burst for which there is room were refused", refused)
				}
				m.burst(5)
				if _, refused, _ := m.answered(); refused != 5 {
					t.Errorf("%d of 5 were refused that the queue has no room for", refused)
				}
			})
	}
}

// A server that has just started answers a burst slowly at first: it accepts connections and reads its indexes.
func TestACrowdAtTheStartIsNotJudgedByItsFirstMoments(t *testing.T) {
	run(t, plain, 200, func(m *machine) {
		for i := range 5 {
			m.press(2500, 80*time.Millisecond)
			m.mu.Lock()
			m.each = time.Duration(plain.Working) * time.Second / time.Duration(200+200*i)
			m.mu.Unlock()
		}
		m.requests.Wait()
		if done, refused, p99 := m.answered(); refused != 0 || p99 > 2*time.Second {
			t.Errorf("%d were answered, one in a hundred after %v, and %d refused", done, p99, refused)
		}
	})
}

func TestNobodyIsRefusedWhoCouldBeAnsweredInTime(t *testing.T) {
	run(t, plain, 1000, func(m *machine) {
		m.press(950, 10*time.Second)
		for range 3 {
			m.burst(1000) // takes one second
			m.press(100, 3*time.Second)
		}
		m.press(1800, time.Second) // 800 wait at its end
		m.requests.Wait()
		if _, refused, p99 := m.answered(); refused != 0 || p99 > 2*time.Second {
			t.Errorf("%d were refused, and one in a hundred took %v", refused, p99)
		}
	})
}

func TestPastSaturationTheMachineStaysBusyAndAnswersInTime(t *testing.T) {
	for _, factor := range []int{2, 10} {
		run(t, plain, 1000, func(m *machine) {
			m.press(100, 2*time.Second)
			m.answered()
			m.press(factor*1000, 10*time.Second)
			done, refused, p99 := m.answered()
			if done < 9500 {
				t.Errorf("%d times the load: %d were answered in the time of 10000", factor, done)
			}
			if refused < (factor-1)*10000-5000 {
				t.Errorf("%d times the load: %d were refused", factor, refused)
			}
			if factor == 2 && p99 > 2*time.Second {
				t.Errorf("one in a hundred of those who were let in took %v", p99)
			}
			if m.longest > plain.Waiting {
				t.Errorf("%d waited at once", m.longest)
			}
			m.press(100, 2*time.Second)
			m.answered()
			m.press(100, 2*time.Second)
			if _, refused, p99 := m.answered(); refused != 0 || p99 > m.each {
				t.Errorf("two seconds after the load has dropped %d are refused, and one in a hundred takes %v", refused, p99)
			}
		})
	}
}

// A measured rate is that of the last queue: if that was long ago, the machine may have lost its neighbors since.
func TestAMachineThatWasSlowIsGivenAnotherChance(t *testing.T) {
	run(t, plain, 100, func(m *machine) {
		m.press(200, 10*time.Second)
		if rate := m.Stats().Rate; rate < 90 || rate > 110 {
			t.Errorf("a hundred a second were measured as %v", rate)
		}
		m.requests.Wait()
		time.Sleep(6 * forget)
		m.answered()
		m.mu.Lock()
		m.each /= 10
		m.mu.Unlock()
		m.burst(1000)
		m.requests.Wait()
		if done, refused, _ := m.answered(); refused != 0 {
			t.Errorf("%d of a burst were refused, and %d answered", refused, done)
		}
	})
}

func TestAProcessThatStoodStillRefusesNobodyForIt(t *testing.T) {
	run(t, plain, 1000, func(m *machine) {
		m.press(1050, 5*time.Second) // a queue
		if m.Stats().Waiting == 0 {
			t.Fatal("nobody waits")
		}
		m.answered()
		m.skew.Add(int64(5 * time.Second))
		m.burst(500) // who came meanwhile
		m.press(900, 3*time.Second)
		m.requests.Wait()
		if _, refused, p99 := m.answered(); refused != 0 || p99 > 2*time.Second {
			t.Errorf("%d were refused, and one in a hundred took %v", refused, p99)
		}
	})
}

// While nothing gets done, a request that comes cannot be answered in time; a moment after, every one can.
func TestADiskThatStoodStillRefusesNobodyAfterwards(t *testing.T) {
	run(t, plain, 1000, func(m *machine) {
		m.press(500, time.Second)
		m.mu.Lock()
		m.stands = time.Now().Add(5 * time.Second)
		m.mu.Unlock()
		m.press(500, 5*time.Second)
		if _, refused, _ := m.answered(); refused < 500 {
			t.Errorf("%d were refused of those who came while nothing moved", refused)
		}
		m.press(500, 3*time.Second)
		m.answered()
		m.press(500, 3*time.Second)
		if _, refused, p99 := m.answered(); refused != 0 || p99 > 100*time.Millisecond {
			t.Errorf("afterwards %d are refused, and one in a hundred takes %v", refused, p99)
		}
	})
}

func TestARequestThatIsSlowByItselfHoldsUpNobodyElse(t *testing.T) {
	run(t, plain, 1000, func(m *machine) {
		var stuck []*Ticket
		for range plain.Working {
			p, err := m.Enter(m.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stuck = append(stuck, p)
		}
		m.burst(1)
		time.Sleep(plain.Lease + 2*tick)
		if done, _, _ := m.answered(); done != 1 {
			t.Error("a request that came then is not answered")
		}
		if p, err := m.Enter(m.t.Context()); err != nil { // while nobody waits, at once
			t.Error(err)
		} else {
			p.Done()
		}
		for _, p := range stuck {
			p.Done()
			p.Done()
		}
	})
}

func TestThoseWhoWaitAreLetInInTurnAndOneThatLeavesGivesUpItsPlace(t *testing.T) {
	run(t, Rule{Working: 1, Waiting: 3, Limit: time.Second, Lease: time.Hour}, 1000, func(m *machine) {
		first, err := m.Enter(m.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		let := make(chan int, 3)
		tickets := make([]*Ticket, 3)
		errs := make([]error, 3)
		gone, leave := context.WithCancel(m.t.Context())
		var all sync.WaitGroup
		for i, ctx := range []context.Context{m.t.Context(), gone, m.t.Context()} {
			all.Go(func() {
				if tickets[i], errs[i] = m.Enter(ctx); errs[i] == nil {
					let <- i
				}
			})
			synctest.Wait()
		}
		if err := m.Check(); !errors.Is(err, api.ErrOverloaded) {
			t.Errorf("three wait, and a fourth is told %v", err)
		}
		leave()
		synctest.Wait()
		if !errors.Is(errs[1], context.Canceled) {
			t.Errorf("the one that left was told %v", errs[1])
		}
		if err := m.Check(); err != nil {
			t.Errorf("its ticket in the queue is not free: %v", err)
		}
		first.Done()
		if i := <-let; i != 0 {
			t.Errorf("number %d was let in first", i)
		}
		first.Done() // a second time changes nothing
		synctest.Wait()
		if s := m.Stats(); s.Working != 1 || s.Waiting != 1 {
			t.Errorf("%+v", s)
		}
		tickets[0].Done()
		if i := <-let; i != 2 {
			t.Errorf("number %d was let in next", i)
		}
		tickets[2].Done()
		all.Wait()
	})
}

// Who leaves in the very moment in which it is let in leaves no ticket behind.
func TestALeaverThatIsLetInLeavesNoPlaceBehind(t *testing.T) {
	run(t, Rule{Working: 1, Waiting: 1, Limit: time.Second, Lease: time.Hour}, 1000, func(m *machine) {
		for range 100 {
			p, err := m.Enter(m.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(m.t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				if p, err := m.Enter(ctx); err == nil {
					p.Done()
				}
			})
			synctest.Wait()
			all.Go(leave)
			all.Go(p.Done)
			all.Wait()
			if s := m.Stats(); s.Working != 0 || s.Waiting != 0 {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func TestTheStopOfTheServiceSendsThoseAwayWhoWait(t *testing.T) {
	run(t, Rule{Working: 1, Waiting: 2, Limit: time.Second, Lease: time.Hour}, 1000, func(m *machine) {
		p, err := m.Enter(m.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := m.Enter(m.t.Context())
				told <- err
			}()
		}
		synctest.Wait()
		m.Close()
		for range 2 {
			if err := <-told; !errors.Is(err, api.ErrShuttingDown) {
				t.Errorf("who waited was told %v", err)
			}
		}
		if _, err := m.Enter(m.t.Context()); !errors.Is(err, api.ErrShuttingDown) {
			t.Errorf("who comes is told %v", err)
		}
		p.Done()
	})
}
