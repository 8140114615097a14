package scripted

import (
	"sync"
	"sync/atomic"
	"time"
)

// A wheel calls sleepers to the tick, all that are due in the same one from one place. With a timer or a goroutine
// for each of thousands of sleepers, each call would rouse a processor of its own.
//
// Nobody waits for a lock: who goes to sleep puts itself on the stack of the tick in which it is due, and the
// wheel's goroutine takes whole stacks. It runs while somebody sleeps.
type wheel struct {
	tick  time.Duration
	begin time.Time
	slots [wheelSlots]atomic.Pointer[sleeper]
	at    atomic.Int64 // the last tick whose sleepers were woken

	sleeping atomic.Int64
	mu       sync.Mutex
	turning  bool
}

const wheelSlots = 4096

func newWheel(tick time.Duration) *wheel { return &wheel{tick: tick, begin: time.Now()} }

// A sleeper is called when its time has come, and says when it wants to be called again.
type sleeper struct {
	fire  func(now time.Time) (next time.Time, again bool)
	due   int64 // tick of the wheel
	under *sleeper
}

// wake has the sleeper called at the time, or up to a tick later; not by the caller, as a rule, whose stack stays small so.
func (w *wheel) wake(s *sleeper, at time.Time) {
	if w.sleeping.Add(1) == 1 {
		w.turn()
	}
	s.due = max(w.after(at), w.at.Load()+1)
	w.put(s)
}

// after is the first tick that is not before a time.
func (w *wheel) after(at time.Time) int64 { return int64((at.Sub(w.begin) + w.tick - 1) / w.tick) }

// put puts a sleeper on the stack of its tick. Where the wheel has passed that already, its stack is taken again.
func (w *wheel) put(s *sleeper) {
	slot := &w.slots[s.due%wheelSlots]
	due := s.due // it is the wheel's from here on
	for {
		top := slot.Load()
		s.under = top
		if slot.CompareAndSwap(top, s) {
			break
		}
	}
	if now := w.at.Load(); now >= due {
		w.empty(slot, now)
	}
}

// empty calls the sleepers of a slot that are due, and puts back those of a later round.
func (w *wheel) empty(slot *atomic.Pointer[sleeper], now int64) {
	for s := slot.Swap(nil); s != nil; {
		under := s.under
		s.under = nil
		if s.due <= now {
			next, again := s.fire(w.begin.Add(time.Duration(now) * w.tick))
			if !again {
				w.sleeping.Add(-1)
				s = under
				continue
			}
			s.due = w.after(next)
		}
		w.put(s)
		s = under
	}
}

// turn has the wheel's goroutine run.
func (w *wheel) turn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turning {
		return
	}
	w.turning = true
	now := int64(time.Since(w.begin) / w.tick)
	w.at.Store(now)
	for i := range w.slots { // others may have come meanwhile, for a time that has just been passed over
		w.empty(&w.slots[i], now)
	}
	go w.run()
}

func (w *wheel) run() {
	for {
		next := time.Duration(w.at.Load()+1) * w.tick
		time.Sleep(next - time.Since(w.begin))
		for now := int64(time.Since(w.begin) / w.tick); w.at.Load() < now; {
			at := w.at.Add(1) // before the slot is emptied: who comes to it later sees that it is passed
			w.empty(&w.slots[at%wheelSlots], at)
		}
		w.mu.Lock()
		if w.sleeping.Load() == 0 {
			w.turning = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
	}
}
