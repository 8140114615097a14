package router

import (
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
// The other is the processors. A question is inside from its arrival until its turn has found what the model is told. The
// runtime measures how long goroutines were ready to run and did not. Where they wait, more questions come in than get out,
// and those inside would take long, the processors have a backlog. A crowd that came at once makes one, and is served. Where it
// stands for longer, the admission is full: nothing is let in until most of those inside have got out, and the bound is
// brought down or up so that goroutines wait for a processor, but not for long.
// The rest hears at once that there is none. It ends when nothing was refused for a while. While the processors have room
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

	delay   func() time.Duration // that goroutines were ready to run and did not, on average since the last call
	fewest  int                  // inside that the processors need to be busy: the bound is not lower
	inside  int
	looked  time.Time     // when the processors' queue was last looked at
	in, out int           // since then
	waited  time.Duration // for a processor, before that
	pace    float64       // out a second, lately
	stands  time.Time     // since when the processors have had a backlog; zero where they have none
	full    bool
	shut    atomic.Bool // the same, for who does not hold the lock
	bound   int         // of inside, while full
	refused time.Time   // when the last one was, for want of processors
}

const (
	lookEvery = 10 * time.Millisecond
	// queueDelay of a goroutine that is ready to run, on average, says that the processors have a queue. Most of them are
	// handed over at once even then, so it is far less than what a question waits.
	queueDelay = 100 * time.Microsecond
	// tolerable is what a goroutine may wait for a processor behind the door.
	tolerable = 4 * queueDelay
	// longBegin is how long those inside would take at the pace of those before them where there are too many.
	longBegin = 20 * time.Millisecond
	// burst is how long a backlog stands before it is more than a crowd that came at once: readers rather wait that long than
	// ask again.
	burst = 250 * time.Millisecond
	// calmAfter is how long nothing was refused when the processors are no longer called full.
	calmAfter = 100 * time.Millisecond
	// comeBack is the time over which those who were refused are asked to come back, after a second.
	comeBack = 2 * time.Second
)

func newAdmission(most time.Duration) *admission {
	return &admission{most: most, interval: most, always: 16, now: time.Now, delay: schedulerDelay(), fewest: 2 * runtime.GOMAXPROCS(0)}
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
	answered bool
	begun    bool
}

// reserve lets a request in of which nothing is known yet, or says when to come back. While the processors have room
// there is no need for a place: it is nil.
func (a *admission) reserve() (*place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if err := a.crowded(now); err != nil || !a.full {
		return nil, err
	}
	return a.inner(now), nil
}

// inner is a place for what needs the processors only. The caller holds the lock.
func (a *admission) inner(now time.Time) *place {
	a.inside++
	a.in++
	return &place{a: a, came: now, answered: true}
}

// enter lets a command in, which may have a place already, or says when to come back. The place is left in two steps.
func (a *admission) enter(held *place) (*place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if held == nil {
		if err := a.crowded(now); err != nil {
			return nil, err
		}
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
	if err := a.crowded(now); err != nil {
		return nil, err
	}
	return a.inner(now), nil
}

// refusal is why nothing is let in now for want of processors; nil where there is room. It is asked before anything is done
// for a request.
func (a *admission) refusal() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.crowded(a.now())
}

// crowded refuses while there are as many inside as may be. The caller holds the lock.
func (a *admission) crowded(now time.Time) error {
	a.look(now)
	if !a.full || a.inside < a.bound {
		return nil
	}
	a.refused = now
	// Not all of them at the same moment again.
	return &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: time.Second + rand.N(comeBack)}
}

// look finds out whether the processors have a queue.
func (a *admission) look(now time.Time) {
	past := now.Sub(a.looked)
	if past < lookEvery {
		return
	}
	a.waited = a.delay()
	in, out := a.in, a.out
	a.looked, a.in, a.out = now, 0, 0
	a.pace += min(1, past.Seconds()/(10*lookEvery).Seconds()) * (float64(out)/past.Seconds() - a.pace)
	queue := a.waited > queueDelay
	if !a.full {
		short := a.pace * longBegin.Seconds()
		switch {
		case !queue || a.inside <= 2*a.fewest || float64(a.inside) <= short:
			a.stands = time.Time{}
		case a.stands.IsZero():
			a.stands = now
		case in > out && now.Sub(a.stands) >= burst:
			a.full, a.bound, a.refused, a.stands = true, max(a.fewest, min(a.inside/2, int(short))), now, time.Time{}
			a.shut.Store(true)
		}
		return
	}
	switch {
	case now.Sub(a.refused) > calmAfter:
		a.full = false
		a.shut.Store(false)
	case a.waited > 3*tolerable/2:
		a.bound = max(a.fewest, min(a.bound, a.inside)*3/4)
	case a.waited > tolerable:
		a.bound = max(a.fewest, a.bound-1-a.bound/16)
	default:
		a.bound += 1 + a.bound/16
	}
}

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
	p.a.inside--
	p.a.out++
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
	if a.full {
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
