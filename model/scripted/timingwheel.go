package scripted

import (
	"sync"
	"sync/atomic"
	"time"

	"docent/internal/background"
)

// A timingWheel fires timers to the tick: all that are due in one tick from one goroutine. With a runtime timer or a
// goroutine for each of thousands of timers, each would wake a processor of its own.
//
// There is no lock on the way: a timer that is set goes onto the stack of the tick in which it is due, and the wheel's
// goroutine takes whole stacks. The goroutine runs while a timer is set.
type timingWheel struct {
	tick  time.Duration
	begin time.Time
	slots [wheelSlots]atomic.Pointer[timer]
	at    atomic.Int64 // the last tick whose timers were fired

	set     atomic.Int64 // timers
	mu      sync.Mutex
	running bool
}

const wheelSlots = 4096

func newTimingWheel(tick time.Duration) *timingWheel {
	return &timingWheel{tick: tick, begin: time.Now()}
}

// A timer is fired when it is due, and says when it wants to be fired again.
type timer struct {
	fire  func(now time.Time) (next time.Time, again bool)
	due   int64 // tick of the wheel
	under *timer
}

// start sets a timer, which is fired at the time or up to a tick later: as a rule not by the caller, whose stack stays
// small.
func (w *timingWheel) start(t *timer, at time.Time) {
	if w.set.Add(1) == 1 {
		w.ensureRunning()
	}
	t.due = max(w.after(at), w.at.Load()+1)
	w.put(t)
}

// after is the first tick that is not before a time.
func (w *timingWheel) after(at time.Time) int64 {
	return int64((at.Sub(w.begin) + w.tick - 1) / w.tick)
}

// put puts a timer on the stack of its tick. If the wheel has passed that already, its stack is taken again.
func (w *timingWheel) put(t *timer) {
	slot := &w.slots[t.due%wheelSlots]
	due := t.due // it is the wheel's from here on
	for {
		top := slot.Load()
		t.under = top
		if slot.CompareAndSwap(top, t) {
			break
		}
	}
	if now := w.at.Load(); now >= due {
		w.empty(slot, now)
	}
}

// empty fires the timers of a slot that are due, and puts back those of a later round.
func (w *timingWheel) empty(slot *atomic.Pointer[timer], now int64) {
	for t := slot.Swap(nil); t != nil; {
		under := t.under
		t.under = nil
		if t.due <= now {
			next, again := t.fire(w.begin.Add(time.Duration(now) * w.tick))
			if !again {
				w.set.Add(-1)
				t = under
				continue
			}
			t.due = w.after(next)
		}
		w.put(t)
		t = under
	}
}

// ensureRunning starts the wheel's goroutine if it does not run.
func (w *timingWheel) ensureRunning() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return
	}
	w.running = true
	now := int64(time.Since(w.begin) / w.tick)
	w.at.Store(now)
	for i := range w.slots { // timers may have been set meanwhile for a time that has just passed
		w.empty(&w.slots[i], now)
	}
	background.Go("model/scripted.ensureRunning", w.run)
}

func (w *timingWheel) run() {
	for {
		next := time.Duration(w.at.Load()+1) * w.tick
		time.Sleep(next - time.Since(w.begin))
		for now := int64(time.Since(w.begin) / w.tick); w.at.Load() < now; {
			at := w.at.Add(1) // before the slot is emptied: a timer put there later sees that it has passed
			w.empty(&w.slots[at%wheelSlots], at)
		}
		w.mu.Lock()
		if w.set.Load() == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
	}
}
