// Package overload decides who is let in when more is asked than the machine carries.
//
// A fixed number of requests is worked on at once, and others wait in the order in which they came. A request is let in
// if its answer can be expected within the limit, and refused at once if not. The expectation is Little's law:
// the requests before it, divided by the rate at which requests lately left while others waited. A request beyond the
// limit, or beyond the bound of the queue, is refused with the time after which to try again. One that was let in to
// wait is not refused later.
package overload

import (
	"container/list"
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"docent/api"
)

// A Rule says who waits and who is refused.
type Rule struct {
	Working int           // at once; more wait
	Waiting int           // at once; more are refused
	Limit   time.Duration // within which an admitted request should have its answer
	// Lease is how long a request counts as worked on. One that takes longer waits for a disk, or for an actor that does
	// not answer, and keeps nobody else out.
	Lease time.Duration
}

const (
	// window is the time that the measured rate looks back. What was assumed before counts for a third after it, and for
	// an eighth after two: a burst is answered the faster the more of it has come.
	window = time.Second
	// forget is the time in which most of a measured rate is forgotten while nobody waits: neighbors come and go.
	forget = 5 * time.Second
	// tick is how often the queue is looked at while somebody waits.
	tick = 50 * time.Millisecond
	// lapse is the most that counts of the time between two looks. What is longer is a process that did not run at all,
	// which says nothing about what it carries.
	lapse = 5 * tick

	leastRetry, maxRetry = time.Second, 30 * time.Second
)

// A load is what a decision goes by.
type load struct {
	working, waiting int
	rate             float64 // at which requests leave, a second
}

type verdict uint8

const (
	enters verdict = iota
	waits
	refused
)

// decide is the rule: what becomes of a request that comes now, and after which time it is expected to have its answer.
func (r Rule) decide(l load) (verdict, time.Duration) {
	if l.working < r.Working && l.waiting == 0 {
		return enters, 0
	}
	expected := maxRetry
	if s := float64(l.working+l.waiting+1) / l.rate; s < maxRetry.Seconds() {
		expected = time.Duration(s * float64(time.Second))
	}
	if l.waiting >= r.Waiting || expected > r.Limit {
		return refused, expected
	}
	return waits, expected
}

// A meter measures the rate at which requests leave while others wait, a second. While nobody waits it would measure
// how many come.
type meter struct {
	assumed float64 // while nothing is known
	rate    float64
	at      time.Time
}

// pass takes in the time until now, in which there were others waiting or not.
func (m *meter) pass(now time.Time, waited bool) {
	past := max(now.Sub(m.at), 0)
	m.at = now
	if waited {
		m.rate *= math.Exp(-min(past, lapse).Seconds() / window.Seconds())
		return
	}
	m.rate = m.assumed + (m.rate-m.assumed)*math.Exp(-past.Seconds()/forget.Seconds())
}

// left takes in a request that has left while others waited.
func (m *meter) left() { m.rate += 1 / window.Seconds() }

// A Queue lets requests in by a Rule.
type Queue struct {
	rule Rule
	now  func() time.Time

	mu      sync.Mutex
	meter   meter
	working list.List // of *Ticket, the oldest first
	waiting list.List // of *waiter, the oldest first
	timer   *time.Timer
	closed  bool
}

// A Ticket is what a request has while it is worked on.
type Ticket struct {
	queue *Queue
	since time.Time
	at    *list.Element // nil if it no longer counts
	left  bool
}

type waiter struct {
	told   chan struct{} // closed when it is decided
	ticket *Ticket
	err    error
}

// New makes a queue. Its rate is not known yet: it is assumed that a full queue can be answered within the limit,
// so that at first the bound alone refuses.
func New(rule Rule) *Queue { return newQueue(rule, time.Now) }

func newQueue(rule Rule, now func() time.Time) *Queue {
	rate := float64(rule.Working+rule.Waiting) / rule.Limit.Seconds()
	q := &Queue{rule: rule, now: now, meter: meter{assumed: rate, rate: rate, at: now()}}
	q.timer = time.AfterFunc(time.Hour, q.look)
	q.timer.Stop()
	return q
}

// Check gives the error that Enter would give now, and no ticket. It is for the time before a request is read.
func (q *Queue) Check() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, err := q.judge()
	return err
}

// Enter gives the request a ticket, for which it may wait until ctx ends, or refuses it at once with an
// *api.BusyError. The caller calls the ticket's Done.
func (q *Queue) Enter(ctx context.Context) (*Ticket, error) {
	q.mu.Lock()
	v, err := q.judge()
	if err != nil {
		q.mu.Unlock()
		return nil, err
	}
	if v == enters {
		p := q.start()
		q.mu.Unlock()
		return p, nil
	}
	w := &waiter{told: make(chan struct{})}
	at := q.waiting.PushBack(w)
	if q.waiting.Len() == 1 {
		q.timer.Reset(tick)
	}
	q.mu.Unlock()
	select {
	case <-w.told:
		return w.ticket, w.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
	select {
	case <-w.told: // in that very moment
		if w.ticket != nil {
			q.leave(w.ticket)
		}
	default:
		q.waiting.Remove(at)
	}
	return nil, ctx.Err()
}

// Done says that the request is worked on no more: the next one gets its turn. A second call changes nothing.
func (t *Ticket) Done() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.pass()
	t.queue.leave(t)
}

// Close refuses requests that wait and those that come: the service stops.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.waiting.Len() > 0 {
		w := q.waiting.Remove(q.waiting.Front()).(*waiter)
		w.err = errClosed
		close(w.told)
	}
}

var errClosed = &api.BusyError{Kind: api.ErrShuttingDown, RetryAfter: 5 * time.Second}

// A Stats is how a queue stands.
type Stats struct {
	Working, Waiting int
	Expected         time.Duration // until a request that comes now is admitted and answered; 0 if none waits
	Rate             float64       // at which requests leave while others wait, a second, as far as it was measured
}

// Stats tells it.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
	s := Stats{Working: q.working.Len(), Waiting: q.waiting.Len(), Rate: q.meter.rate}
	_, s.Expected = q.rule.decide(q.load())
	return s
}

// What follows is called with the lock held.

func (q *Queue) load() load { return load{q.working.Len(), q.waiting.Len(), q.meter.rate} }

// pass takes in the time that has passed, before anything changes.
func (q *Queue) pass() { q.meter.pass(q.now(), q.waiting.Len() > 0) }

// judge decides about a request that comes now.
func (q *Queue) judge() (verdict, error) {
	if q.closed {
		return refused, errClosed
	}
	q.pass()
	q.expire()
	v, expected := q.rule.decide(q.load())
	if v == refused {
		return v, &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: retryAfter(expected, rand.Float64())}
	}
	return v, nil
}

// retryAfter is when someone who is refused should try again: when those before it will have their answers, and not
// all of them at the same moment. Spread is from 0 to 1.
func retryAfter(expected time.Duration, spread float64) time.Duration {
	after := max(expected, leastRetry)
	return min(after+time.Duration(spread*float64(after)), maxRetry)
}

func (q *Queue) start() *Ticket {
	p := &Ticket{queue: q, since: q.meter.at}
	p.at = q.working.PushBack(p)
	return p
}

func (q *Queue) leave(p *Ticket) {
	if p.left {
		return
	}
	p.left = true
	if q.waiting.Len() > 0 {
		q.meter.left()
	}
	q.release(p)
}

func (q *Queue) release(p *Ticket) {
	if p.at == nil {
		return
	}
	q.working.Remove(p.at)
	p.at = nil
	if q.waiting.Len() > 0 {
		w := q.waiting.Remove(q.waiting.Front()).(*waiter)
		w.ticket = q.start()
		close(w.told)
	}
}

// expire gives the turns of requests whose lease is over to those that wait.
func (q *Queue) expire() {
	for q.working.Len() > 0 {
		p := q.working.Front().Value.(*Ticket)
		if q.meter.at.Sub(p.since) < q.rule.Lease {
			return
		}
		q.release(p)
	}
}

// look is at the queue every tick while somebody waits.
func (q *Queue) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
	q.expire()
	if q.waiting.Len() > 0 {
		q.timer.Reset(tick)
	}
}
