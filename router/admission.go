package router

import (
	linked "container/list"
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	runtimemetrics "runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"docent/api"
)

// An admission refuses work while there is a queue that does not drain. It goes by what it measures, not by a guess at what
// the machine can do, and not by counts: ten thousand open streams that wait for their models are no queue.
//
// Two things are queued for. One is an actor and its journal: the measure is the least time that a command took in the last
// interval. Where even the luckiest one waited long, one more would only wait with the others; a burst, or one command
// that is slow by itself, moves the least time by nothing. A few commands at once are always let in, and of the others
// one now and then: they show by their own time when the queue has gone, or that it was only some actors that did not
// answer.
//
// The other is the processors. A question is inside from its arrival until its turn has found what the model is told, or, where
// this machine is the model, until its answer is made. The runtime measures how long goroutines were ready to run and did
// not. Where they wait, and those inside would take long, the processors have a backlog, and there is a bound: it follows the queue
// for the processors, so that they are busy and goroutines wait, but not for long.
//
// At first whoever comes beyond the bound waits: most likely it is a crowd that came at once, which is served one after
// another. Where about as many come as get out, or more, again and again, it is an overload: those who wait are refused, and so is everybody else
// beyond the bound, at once. It ends when nothing was refused for a while. While the processors have room
// there is no bound: on a slow disk as many are inside as it takes.
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

	delay     func() time.Duration // that goroutines were ready to run and did not, on average since the last call
	fewest    int                  // inside, that are no backlog; the bound goes down to half as many
	inside    int                  // what they take of the bound, which is in whole places
	looked    time.Time            // when the processors' queue was last looked at
	came, out int                  // since then: who wanted to be let in, and who has got out
	waited    time.Duration        // for a processor, before that
	pace      float64              // out a second, lately
	stands    time.Time            // since when about as many have come as got out, or more, while crowded
	span      span
	pile      pile
	state     crowding
	shut      atomic.Bool // there is a bound; for who does not hold the lock
	tell      func(bool)  // hears when there is a bound, and when there is none any more
	bound     int         // of inside, while there is one
	denied    time.Time   // when the last one was not let in at once, for want of processors
	waiting   linked.List // of *waiter, while crowded, in the order in which they came
}

// A crowding says what becomes of those who come.
type crowding uint8

const (
	roomy   crowding = iota // they are let in
	crowded                 // beyond the bound they wait: most likely they came together, and will be no more
	full                    // beyond the bound they are refused
)

// A span is as long as a burst, while somebody waits.
type span struct {
	from      time.Time
	came, out int
	after     bool // the one before, in which the queue grew
}

// A pile is those who came together to wait, until hardly anybody of them is left. One processor alone asks the network only
// when nothing else is to be run, which is when those who waited are through: in the meantime nobody seems to come, and then
// hundreds do. A crowd is one pile; where the next one is about as large as what got out of the one before, it is an overload.
type pile struct {
	began     time.Time // the first one
	from      time.Time
	came, out int // came is counted from where the one before was through
	through   bool
}

// grew takes in what was seen at a look, and says whether a pile has followed on one of its size.
func (p *pile) grew(now time.Time, came, out int, through bool) bool {
	p.came += came
	if through {
		if !p.through {
			p.through, p.came = true, 0
		}
		return false
	}
	again := false
	if p.through {
		again = now.Sub(p.began) >= burst && now.Sub(p.from) >= burst/4 && grows(p.came, p.out)
		*p = pile{began: p.began, from: now}
	}
	p.out += out
	return again
}

// A waiter is somebody who waits to be let in.
type waiter struct {
	came  time.Time
	told  chan struct{} // closed when it is decided
	place *place
	err   error
	at    *linked.Element
}

const (
	// A question takes a wholePlace, and a smallPlace once it is known that its model is elsewhere: until that is asked, this
	// machine does a third of the work that making an answer is, and for most of the time the question waits for the journal.
	wholePlace, smallPlace = 3, 1

	lookEvery = 10 * time.Millisecond
	// queueDelay of a goroutine that is ready to run, on average, says that the processors have a queue. Most of them are
	// handed over at once even then, so it is far less than what a question waits.
	queueDelay = 100 * time.Microsecond
	// tolerable is what a goroutine may wait for a processor behind the door: less, and the processors are idle now and then.
	tolerable = 4 * queueDelay
	// longBegin is how long those inside would take at the pace of those before them where there are too many.
	longBegin = 20 * time.Millisecond
	// burst is how long about as many come as get out, or more, while others wait, before they are more than a crowd that
	// came at once: readers rather wait that long than ask again.
	burst = 100 * time.Millisecond
	// calmAfter is how long nobody waited or was refused when there is no bound any more.
	calmAfter = 100 * time.Millisecond
	// comeBack is the time over which those who were refused are asked to come back, after a second.
	comeBack = 2 * time.Second
)

func newAdmission(most time.Duration) *admission {
	return &admission{most: most, interval: most, always: 16, now: time.Now, delay: schedulerDelay(), fewest: 6 * runtime.GOMAXPROCS(0), tell: func(bool) {}}
}

// schedulerDelay tells how long goroutines have waited for a processor, on average since the last call.
func schedulerDelay() func() time.Duration {
	sample := []runtimemetrics.Sample{{Name: "/sched/latencies:seconds"}}
	var before []uint64
	return func() time.Duration {
		runtimemetrics.Read(sample)
		if sample[0].Value.Kind() != runtimemetrics.KindFloat64Histogram {
			return 0 // a runtime that does not measure it
		}
		h := sample[0].Value.Float64Histogram()
		if before == nil {
			before = make([]uint64, len(h.Counts))
		}
		var n uint64
		sum := 0.0
		for i, count := range h.Counts {
			if fresh := count - before[i]; fresh > 0 {
				low, high := h.Buckets[i], h.Buckets[i+1]
				if math.IsInf(low, -1) {
					low = 0
				}
				if math.IsInf(high, 1) {
					high = low
				}
				n += fresh
				sum += float64(fresh) * (low + high) / 2
			}
		}
		copy(before, h.Counts)
		if n == 0 {
			return 0
		}
		return time.Duration(sum / float64(n) * float64(time.Second))
	}
}

// A place is what a piece of work takes in an admission.
type place struct {
	a        *admission
	came     time.Time
	takes    int // of the bound, until it has begun
	answered bool
	begun    bool
}

// reserve lets a request in of which nothing is known yet, has it wait, or says when to come back. While the processors have
// room there is no need for a place: it is nil.
func (a *admission) reserve() (*place, *waiter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.look(now)
	if a.state == roomy {
		return nil, nil, nil
	}
	a.came++
	switch {
	case a.inside < wholePlace*a.bound && a.waiting.Len() == 0:
		return a.inner(now), nil, nil
	case a.state == crowded:
		w := &waiter{came: now, told: make(chan struct{})}
		a.denied = now
		w.at = a.waiting.PushBack(w)
		return nil, w, nil
	}
	return nil, nil, a.refuse(now)
}

// wait is reserve for who can wait, until ctx ends.
func (a *admission) wait(ctx context.Context) (*place, error) {
	p, w, err := a.reserve()
	if w == nil {
		return p, err
	}
	select {
	case <-w.told:
		return w.place, w.err
	case <-ctx.Done():
		a.forget(w)
		return nil, ctx.Err()
	}
}

// forget takes a waiter out who waits no more.
func (a *admission) forget(w *waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-w.told:
		if w.place != nil {
			w.place.out()
		}
	default:
		a.waiting.Remove(w.at)
	}
}

// letIn lets those in who wait, as far as there is room: who came last goes first, as long as nobody has waited for long. If
// this is the beginning of an overload, those who will be refused are the ones who have waited, and the others are quick. The
// caller holds the lock.
func (a *admission) letIn(now time.Time) {
	for a.waiting.Len() > 0 && (a.state == roomy || a.inside < wholePlace*a.bound) {
		next := a.waiting.Front()
		if now.Sub(next.Value.(*waiter).came) < 2*burst {
			next = a.waiting.Back()
		}
		w := a.waiting.Remove(next).(*waiter)
		w.place = a.inner(now)
		close(w.told)
	}
}

// dismiss refuses those who wait. The caller holds the lock.
func (a *admission) dismiss(now time.Time) {
	for a.waiting.Len() > 0 {
		w := a.waiting.Remove(a.waiting.Front()).(*waiter)
		w.err = a.refuse(now)
		close(w.told)
	}
}

// stop refuses those who wait when the service stops.
func (a *admission) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dismiss(a.now())
}

// inner is a place for what needs the processors only. The caller holds the lock.
func (a *admission) inner(now time.Time) *place {
	a.inside += wholePlace
	return &place{a: a, came: now, takes: wholePlace, answered: true}
}

// enter lets a command in, which may have a place already, or says when to come back. The place is left in two steps.
func (a *admission) enter(held *place) (*place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if held == nil {
		if err := a.busy(now); err != nil {
			return nil, err
		}
		a.came++
	}
	a.roll(now)
	if a.working >= a.always && a.queue > a.most {
		if now.Sub(a.probed) < a.interval/10 {
			if held != nil {
				held.out()
			}
			return nil, &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: min(max(a.queue, time.Second), 30*time.Second)}
		}
		a.probed = now
	}
	if a.working == 0 {
		a.moved = now
	}
	a.working++
	if held == nil {
		held = a.inner(now)
	}
	held.came, held.answered = now, false
	return held, nil
}

// enterRead lets in what needs the processors only.
func (a *admission) enterRead(held *place) (*place, error) {
	if held != nil {
		return held, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if err := a.busy(now); err != nil {
		return nil, err
	}
	a.came++
	return a.inner(now), nil
}

// refuse is the answer to who is not let in. The caller holds the lock.
func (a *admission) refuse(now time.Time) error {
	a.denied = now
	// Not all of them at the same moment again.
	return &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: time.Second + rand.N(comeBack)}
}

// busy refuses a command that has no place while there are as many inside as may be. The caller holds the lock.
func (a *admission) busy(now time.Time) error {
	a.look(now)
	if a.state != full || a.inside < wholePlace*a.bound {
		return nil
	}
	return a.refuse(now)
}

// look finds out whether the processors have a queue.
func (a *admission) look(now time.Time) {
	past := now.Sub(a.looked)
	if past < lookEvery {
		return
	}
	a.waited = a.delay()
	came, out := a.came, a.out
	a.looked, a.came, a.out = now, 0, 0
	a.pace += min(1, past.Seconds()/(10*lookEvery).Seconds()) * (float64(out)/past.Seconds() - a.pace)
	if a.state == roomy {
		short := a.pace * longBegin.Seconds()
		if a.waited > queueDelay && a.inside > wholePlace*a.fewest && float64(a.inside) > wholePlace*short {
			a.state, a.stands, a.denied, a.bound = crowded, now, now, max(a.fewest, int(short))
			a.span, a.pile = span{from: now}, pile{began: now, from: now}
			a.close(true)
		}
		return
	}
	switch {
	case a.waited > 3*tolerable/2:
		a.bound = max((a.fewest+1)/2, a.bound*3/4)
	case a.waited > tolerable:
		a.bound = max((a.fewest+1)/2, a.bound-1-a.bound/16)
	default:
		a.bound += 1 + a.bound/16
	}
	switch {
	case a.waiting.Len() == 0 && now.Sub(a.denied) > calmAfter:
		a.state = roomy
		a.close(false)
	case a.state == full:
	default:
		over := a.pile.grew(now, came, out, a.waiting.Len() <= 3*a.bound)
		if a.waiting.Len() == 0 {
			a.stands, a.span = now, span{from: now}
			break
		}
		if !grows(came, out) {
			a.stands = now
		}
		a.span.came += came
		a.span.out += out
		over = over || now.Sub(a.stands) >= burst
		if now.Sub(a.span.from) >= burst { // what comes and gets out by fits and starts shows in the sum
			grew := grows(a.span.came, a.span.out)
			over = over || grew && a.span.after
			a.span = span{from: now, after: grew}
		}
		if over {
			a.state = full
			a.dismiss(now)
		}
	}
	a.letIn(now)
}

// close puts up the bound, or takes it away. The caller holds the lock.
func (a *admission) close(shut bool) {
	a.shut.Store(shut)
	a.tell(shut)
}

// grows is whether about as many have come as got out, or more: then those who wait will hardly become fewer.
func grows(came, out int) bool { return 4*came > 3*out }

// answer tells that the actor has answered: the work is on disk, or refused.
func (p *place) answer() {
	a := p.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.answered {
		return
	}
	p.answered = true
	now := a.now()
	a.roll(now)
	if took := now.Sub(p.came); a.ended == 0 || took < a.least {
		a.least = took
	}
	a.ended++
	a.working--
	a.moved = now
}

// begin tells that the work is under way, or will not be: what remains of it is the model's.
func (p *place) begin() {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	p.out()
}

// out is begin for who holds the lock.
func (p *place) out() {
	if p.begun {
		return
	}
	p.begun = true
	p.a.inside -= p.takes
	p.a.out++
	p.a.next()
}

// elsewhere tells that the question's model is not this machine's.
func (p *place) elsewhere() {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	if p.begun {
		return
	}
	p.a.inside -= p.takes - smallPlace
	p.takes = smallPlace
	p.a.next()
}

// next lets those in who wait, when there is room. The caller holds the lock.
func (a *admission) next() {
	if a.waiting.Len() > 0 {
		now := a.now()
		a.look(now)
		a.letIn(now)
	}
}

// leave gives the place back whole.
func (p *place) leave() {
	p.answer()
	p.begin()
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

// processors is the time that goroutines lately waited for a processor, and how many questions may be inside: 0 where
// there is no bound.
func (a *admission) processors() (waited time.Duration, bound int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.look(a.now())
	if a.state != roomy {
		bound = a.bound
	}
	return a.waited, bound
}

// admitWork lets a command that makes work go to its actor, in the place that it has already, if it does.
func (s *Server) admitWork(held *place) (*place, error) {
	p, err := s.admission.enter(held)
	return p, s.queued(err)
}

// queued counts a refusal of the admission.
func (s *Server) queued(err error) error {
	if err != nil {
		s.metrics.refuse("queue")
	}
	return err
}
