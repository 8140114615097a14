package router

import (
	"sync"
	"time"

	"docent/api"
)

// An admission refuses commands while those before them wait too long for an actor and its journal. It goes by what it
// measures, not by a guess at what the machine can do: the least time that a command took in the last interval. Where
// even the luckiest one waited long, there is a queue that does not drain, and one more would only wait with the others; a
// burst, or one command that is slow by itself, moves the least time by nothing.
//
// A few commands at once are always let in, and of the others one now and then: they show by their own time when the queue
// has gone, or that it was only some actors that did not answer.
type admission struct {
	most     time.Duration // that a command may wait
	interval time.Duration
	always   int // commands at once that are never refused
	now      func() time.Time

	mu      sync.Mutex
	working int
	moved   time.Time     // when a command last ended, or began where there was none
	probed  time.Time     // when one was last let in to find out
	since   time.Time     // beginning of the interval
	ended   int           // commands in it
	least   time.Duration // that one of them took
	queue   time.Duration // the least time of the interval before
}

func newAdmission(most time.Duration) *admission {
	return &admission{most: most, interval: most, always: 16, now: time.Now}
}

// enter lets a command in, until leave is called, or says when to come back.
func (a *admission) enter() (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := a.now()
	a.roll(began)
	if a.working >= a.always && a.queue > a.most {
		if began.Sub(a.probed) >= a.interval/10 {
			a.probed = began
			return a.begin(began), nil
		}
		return nil, &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: min(max(a.queue, time.Second), 30*time.Second)}
	}
	return a.begin(began), nil
}

// begin counts a command in.
func (a *admission) begin(began time.Time) (leave func()) {
	if a.working == 0 {
		a.moved = began
	}
	a.working++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.now()
		a.roll(now)
		if took := now.Sub(began); a.ended == 0 || took < a.least {
			a.least = took
		}
		a.ended++
		a.working--
		a.moved = now
	}
}

// roll begins a new interval when the last one is over.
func (a *admission) roll(now time.Time) {
	if now.Sub(a.since) < a.interval {
		return
	}
	switch {
	case a.ended > 0:
		a.queue = a.least
	case a.working > 0:
		a.queue = now.Sub(a.moved) // nothing has moved since
	default:
		a.queue = 0
	}
	a.since, a.ended, a.least = now, 0, 0
}

// standing is the time that commands wait now, as far as it was measured.
func (a *admission) standing() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roll(a.now())
	return a.queue
}

// admitCommand lets a command that makes work go to its actor.
func (s *Server) admitCommand() (leave func(), err error) {
	leave, err = s.admission.enter()
	if err != nil {
		s.metrics.refuse("queue")
	}
	return leave, err
}
