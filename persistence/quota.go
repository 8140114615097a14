package persistence

import (
	"sync"
	"time"

	"docent/api"
)

// Quotas counts uses against limits. Its counters are the authority in the process; the counts of accepted uses are
// stored with the events that they belong to (Append.Uses) and read again when the journal is opened, so a crash
// forgets reservations that nothing came of, and no accepted use.
//
// A sliding window is counted in slots, of a minute for the hour and of a quarter of an hour for the day. A use counts
// until the whole of its slot is older than the window: a limit is kept exactly, and a use may count one slot longer.
//
// The clock may jump. Forward, it ends windows early, as the time that it shows says; what ended is kept for another
// day, so that it counts again when the clock comes back. Backward, uses that now lie in the future are counted as if
// they had just happened: none is forgotten, and none counts for longer than one more window.
//
// A use with a negative limit is not counted.
type Quotas struct {
	mu       sync.Mutex
	counters map[quotaKey]*quotaCounter
}

type quotaKey struct {
	window Window
	key    string
}

// A quotaCounter holds its slots by end, the earliest first.
type quotaCounter struct{ slots []quotaSlot }

type quotaSlot struct {
	end   int64 // Unix seconds; the slot counts until then
	count int
}

// quotaKeep is how long counts stay after they ended, for a clock that comes back.
const quotaKeep = int64(25 * time.Hour / time.Second)

func newQuotas() *Quotas { return &Quotas{counters: make(map[quotaKey]*quotaCounter)} }

func (w Window) known() bool { return w >= SlidingHour && w <= CalendarMonth }

// slot is the length of a slot of a sliding window, in seconds.
func (w Window) slot() int64 {
	if w == SlidingDay {
		return 15 * 60
	}
	return 60
}

// span is the length of a sliding window, in seconds.
func (w Window) span() int64 {
	if w == SlidingDay {
		return 24 * 60 * 60
	}
	return 60 * 60
}

// end says until when a use at now counts.
func (w Window) end(now time.Time) int64 {
	if w == CalendarMonth {
		year, month, _ := now.UTC().Date()
		return time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	s := now.Unix()
	start := s - ((s%w.slot())+w.slot())%w.slot()
	return start + w.slot() + w.span()
}

// length of the window that holds now.
func (w Window) length(now time.Time) time.Duration {
	if w == CalendarMonth {
		year, month, _ := now.UTC().Date()
		start := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
		return start.AddDate(0, 1, 0).Sub(start)
	}
	return time.Duration(w.span()) * time.Second
}

// latest is the last end that a slot can have at now. It lets a clock that steps back a little, or a caller who took
// the time a moment before another, find things in order.
func (w Window) latest(now time.Time) int64 {
	if w == CalendarMonth {
		return w.end(now.Add(5 * time.Minute))
	}
	return w.end(now) + 2*w.slot()
}

// Reserve takes all of the uses or none. It fails with an *api.LimitError that names the limit which is used up; of
// several, the one that is free again last. The uses count from now on.
func (q *Quotas) Reserve(now time.Time, uses []Use) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var refused *api.LimitError
	for i := range uses {
		u := &uses[i]
		if u.Limit < 0 || !u.Window.known() {
			continue
		}
		want := 1 // and one for each time that the list names the same before
		for j := range i {
			if uses[j].Key == u.Key && uses[j].Window == u.Window && uses[j].Limit >= 0 {
				want++
			}
		}
		c := q.counters[quotaKey{u.Window, u.Key}]
		if c != nil {
			c.settle(u.Window, now)
		}
		if wait, ok := c.room(u.Window, now, u.Limit-want); !ok && (refused == nil || wait > refused.RetryAfter) {
			refused = &api.LimitError{Name: u.Name, Limit: u.Limit, Window: u.Window.length(now), RetryAfter: min(wait, u.Window.length(now))}
		}
	}
	if refused != nil {
		return refused
	}
	for i := range uses {
		if u := &uses[i]; u.Limit >= 0 && u.Window.known() {
			q.add(quotaKey{u.Window, u.Key}, u.Window.end(now), 1)
		}
	}
	return nil
}

// Release gives uses back whose work was not accepted; now is the time that was given to Reserve. It must not be called
// for uses that an append has stored.
func (q *Quotas) Release(now time.Time, uses []Use) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uses {
		u := &uses[i]
		if u.Limit < 0 || !u.Window.known() {
			continue
		}
		k := quotaKey{u.Window, u.Key}
		c := q.counters[k]
		if c == nil {
			continue
		}
		c.settle(u.Window, now)
		c.take(u.Window.end(now))
		if len(c.slots) == 0 {
			delete(q.counters, k)
		}
	}
}

// Standing tells how many uses are left at now, and after which time the first of those that count is free again (for a
// month, all of them). With none counted, that is the length of the window. A limit that is negative leaves -1.
func (q *Quotas) Standing(now time.Time, use Use) (left int, reset time.Duration) {
	if use.Limit < 0 || !use.Window.known() {
		return -1, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.counters[quotaKey{use.Window, use.Key}]
	if c == nil {
		return use.Limit, use.Window.reset(now)
	}
	c.settle(use.Window, now)
	reset = use.Window.reset(now)
	for _, s := range c.slots {
		if until := s.until(now); until > 0 {
			reset = min(until, use.Window.length(now)) // the slot may end later: nobody is told to wait for longer than the window
			break
		}
	}
	return max(0, use.Limit-c.count(now)), reset
}

func (w Window) reset(now time.Time) time.Duration {
	if w == CalendarMonth {
		return time.Unix(w.end(now), 0).Sub(now)
	}
	return w.length(now)
}

// load adds what the journal has stored. It is called before anyone reserves.
func (q *Quotas) load(u useSlot, count uint32) {
	q.add(quotaKey{u.window, u.key}, u.end, int(count))
}

// sweep forgets what ended long ago.
func (q *Quotas) sweep(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, c := range q.counters {
		c.forget(now)
		if len(c.slots) == 0 {
			delete(q.counters, k)
		}
	}
}

func (q *Quotas) add(k quotaKey, end int64, n int) {
	c := q.counters[k]
	if c == nil {
		c = &quotaCounter{}
		q.counters[k] = c
	}
	i := len(c.slots)
	for i > 0 && c.slots[i-1].end > end {
		i--
	}
	if i > 0 && c.slots[i-1].end == end {
		c.slots[i-1].count += n
		return
	}
	c.slots = append(c.slots, quotaSlot{})
	copy(c.slots[i+1:], c.slots[i:])
	c.slots[i] = quotaSlot{end, n}
}

func (s quotaSlot) until(now time.Time) time.Duration { return time.Unix(s.end, 0).Sub(now) }

func (c *quotaCounter) count(now time.Time) int {
	n := 0
	for i := len(c.slots) - 1; i >= 0 && c.slots[i].until(now) > 0; i-- {
		n += c.slots[i].count
	}
	return n
}

// room says whether at most most uses count, and if not, after which time that will be so.
func (c *quotaCounter) room(w Window, now time.Time, most int) (time.Duration, bool) {
	if most < 0 { // no use will ever be free
		return w.reset(now), false
	}
	if c == nil {
		return 0, true
	}
	n := c.count(now)
	if n <= most {
		return 0, true
	}
	for _, s := range c.slots {
		if until := s.until(now); until > 0 {
			if n -= s.count; n <= most {
				return until, false
			}
		}
	}
	return w.reset(now), false
}

// settle counts uses that lie in the future as if they had happened at now.
func (c *quotaCounter) settle(w Window, now time.Time) {
	latest, moved := w.latest(now), 0
	for n := len(c.slots); n > 0 && c.slots[n-1].end > latest; n-- {
		moved += c.slots[n-1].count
		c.slots = c.slots[:n-1]
	}
	if moved == 0 {
		return
	}
	end := w.end(now)
	i := len(c.slots)
	for i > 0 && c.slots[i-1].end > end {
		i--
	}
	if i > 0 && c.slots[i-1].end == end {
		c.slots[i-1].count += moved
		return
	}
	c.slots = append(c.slots, quotaSlot{})
	copy(c.slots[i+1:], c.slots[i:])
	c.slots[i] = quotaSlot{end, moved}
}

// take removes one use: from the slot that ends at end, or else from the nearest earlier one, or else from the first.
// So those that stay count no shorter than they should.
func (c *quotaCounter) take(end int64) {
	if len(c.slots) == 0 {
		return
	}
	at := 0
	for i, s := range c.slots {
		if s.end <= end {
			at = i
		}
	}
	if c.slots[at].count--; c.slots[at].count <= 0 {
		c.slots = append(c.slots[:at], c.slots[at+1:]...)
	}
}

func (c *quotaCounter) forget(now time.Time) {
	n := 0
	for n < len(c.slots) && c.slots[n].end+quotaKeep < now.Unix() {
		n++
	}
	if n > 0 {
		c.slots = append([]quotaSlot(nil), c.slots[n:]...)
	}
}
