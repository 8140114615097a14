// Package quota counts uses against limits, over sliding windows and calendar months.
package quota

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"docent/api"
)

// A Window is the span over which a quota counts.
type Window uint8

const (
	SlidingHour   Window = iota + 1
	SlidingDay           //
	CalendarMonth        // UTC
)

// A Use is one use of one quota.
type Use struct {
	Name   string // which of the limits, for people and headers: "project-hour"
	Key    string // what is counted: "project/<id>"
	Window Window
	Limit  int // uses in a window; negative for none
}

// Counters counts uses against limits. Its counters are the authority in the process; the counts of accepted uses are
// stored with the events that they belong to (journal.Append) and read again when the journal is opened, so a crash
// forgets reservations that nothing came of, and no accepted use.
//
// A sliding window is counted in slots, of a minute for the hour and of a quarter of an hour for the day. A use counts
// until the whole of its slot is older than the window: a limit is kept exactly, and a use may count one slot longer.
//
// The clock may jump. Forward, it ends windows early, as the time that it shows says; what ended is kept for another
// day, so that it counts again when the clock comes back. Backward, uses that now lie in the future are counted as if
// they had just happened, for one more window; their own time is kept, so that they count by it again when the clock is
// right. None is forgotten.
//
// A use with a negative limit is not counted.
type Counters struct {
	mu       sync.Mutex
	counters map[key]*counter
}

type key struct {
	window Window
	key    string
}

// A counter holds its slots by end, the earliest first.
type counter struct{ slots []slot }

type slot struct {
	end   int64 // Unix seconds; the slot counts until then
	again int64 // the same for a slot that lies in the future, if not 0: the clock went back
	count int
}

// Keep is how long counts stay after they ended, for a clock that comes back.
const Keep = 25 * time.Hour

// New makes counters that have counted nothing yet.
func New() *Counters { return &Counters{counters: make(map[key]*counter)} }

// Known reports whether w is one of the windows.
func (w Window) Known() bool { return w >= SlidingHour && w <= CalendarMonth }

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

// End says until when a use at now counts, in Unix seconds.
func (w Window) End(now time.Time) int64 {
	if w == CalendarMonth {
		year, month, _ := now.UTC().Date()
		return time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	s := now.Unix()
	start := s - ((s%w.slot())+w.slot())%w.slot()
	return start + w.slot() + w.span()
}

// Length is that of the window that holds now.
func (w Window) Length(now time.Time) time.Duration {
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
		return w.End(now.Add(5 * time.Minute))
	}
	return w.End(now) + 2*w.slot()
}

// Reserve takes all of the uses or none. It fails with an *api.LimitError that names the limit which is used up; of
// several, the one that is free again last. The uses count from now on.
func (q *Counters) Reserve(now time.Time, uses []Use) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var refused *api.LimitError
	for i := range uses {
		u := &uses[i]
		if u.Limit < 0 || !u.Window.Known() {
			continue
		}
		want := 1 // and one for each time that the list names the same before
		for j := range i {
			if uses[j].Key == u.Key && uses[j].Window == u.Window && uses[j].Limit >= 0 {
				want++
			}
		}
		c := q.counters[key{u.Window, u.Key}]
		if c != nil {
			c.settle(u.Window, now)
		}
		if wait, ok := c.room(u.Window, now, u.Limit-want); !ok && (refused == nil || wait > refused.RetryAfter) {
			length := u.Window.Length(now)
			refused = &api.LimitError{Name: u.Name, Limit: u.Limit, Window: length, RetryAfter: min(wait, length)}
		}
	}
	if refused != nil {
		return refused
	}
	for i := range uses {
		if u := &uses[i]; u.Limit >= 0 && u.Window.Known() {
			q.add(key{u.Window, u.Key}, u.Window.End(now), 1)
		}
	}
	return nil
}

// Release gives uses back whose work was not accepted; now is the time that was given to Reserve. It must not be called
// for uses that an append has stored.
func (q *Counters) Release(now time.Time, uses []Use) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uses {
		u := &uses[i]
		if u.Limit < 0 || !u.Window.Known() {
			continue
		}
		k := key{u.Window, u.Key}
		c := q.counters[k]
		if c == nil {
			continue
		}
		c.settle(u.Window, now)
		c.take(u.Window.End(now))
		if len(c.slots) == 0 {
			delete(q.counters, k)
		}
	}
}

// Remaining tells how many uses are left at now, and after which time the first of those that count is free again (for
// a month, all of them). With none counted, that is the length of the window. A limit that is negative leaves -1.
func (q *Counters) Remaining(now time.Time, use Use) (left int, reset time.Duration) {
	if use.Limit < 0 || !use.Window.Known() {
		return -1, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.counters[key{use.Window, use.Key}]
	if c == nil {
		return use.Limit, use.Window.reset(now)
	}
	c.settle(use.Window, now)
	reset = use.Window.reset(now)
	slots := c.counting(use.Window, now)
	if len(slots) > 0 {
		// The slot may end later: nobody is told to wait for longer than the window.
		reset = min(slots[0].until(now), use.Window.Length(now))
	}
	return max(0, use.Limit-total(slots)), reset
}

func (w Window) reset(now time.Time) time.Duration {
	if w == CalendarMonth {
		return time.Unix(w.End(now), 0).Sub(now)
	}
	return w.Length(now)
}

// Load adds count uses of name that were stored, of a slot that ends at end (Window.End). It is called before anyone
// reserves.
func (q *Counters) Load(w Window, name string, end int64, count int) { q.add(key{w, name}, end, count) }

// Sweep forgets what ended long ago.
func (q *Counters) Sweep(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, c := range q.counters {
		c.forget(now)
		if len(c.slots) == 0 {
			delete(q.counters, k)
		}
	}
}

func (q *Counters) add(k key, end int64, n int) {
	c := q.counters[k]
	if c == nil {
		c = &counter{}
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
	c.slots = append(c.slots, slot{})
	copy(c.slots[i+1:], c.slots[i:])
	c.slots[i] = slot{end: end, count: n}
}

func (s slot) until(now time.Time) time.Duration { return time.Unix(s.end, 0).Sub(now) }

// counting are the slots that count at now, that which ends first before the others. Of one whose uses lie in the
// future, the end is that until which they count again.
func (c *counter) counting(w Window, now time.Time) []slot {
	latest := w.latest(now)
	ended := sort.Search(len(c.slots), func(i int) bool { return c.slots[i].until(now) > 0 })
	slots := c.slots[ended:]
	past := len(slots)
	for past > 0 && slots[past-1].end > latest {
		past--
	}
	if past == len(slots) {
		return slots
	}
	out := slices.Clone(slots[:past])
	for _, s := range slots[past:] {
		if s.end = s.again; s.until(now) > 0 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b slot) int { return cmp.Compare(a.end, b.end) })
	return out
}

func total(slots []slot) (n int) {
	for _, s := range slots {
		n += s.count
	}
	return n
}

// room reports whether at most most uses count, and if not, after which time that will be so.
func (c *counter) room(w Window, now time.Time, most int) (time.Duration, bool) {
	if most < 0 { // no use will ever be free
		return w.reset(now), false
	}
	if c == nil {
		return 0, true
	}
	slots := c.counting(w, now)
	n := total(slots)
	if n <= most {
		return 0, true
	}
	for _, s := range slots {
		if n -= s.count; n <= most {
			return s.until(now), false
		}
	}
	return w.reset(now), false
}

// settle makes uses that lie in the future count as if they had happened at now. If they count so already, since the
// clock went back, that does not begin again.
func (c *counter) settle(w Window, now time.Time) {
	latest, end := w.latest(now), w.End(now)
	for i := len(c.slots) - 1; i >= 0; i-- {
		switch s := &c.slots[i]; {
		case s.end > latest:
			if s.again == 0 || s.again > latest {
				s.again = end
			}
		case s.again != 0:
			s.again = 0 // the clock is right
		case s.until(now) <= 0:
			return // and so have all earlier ones ended
		}
	}
}

// take removes one use: from the slot that ends at end, or else from the nearest earlier one, or else from the first.
// So those that stay count no shorter than they should.
func (c *counter) take(end int64) {
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

func (c *counter) forget(now time.Time) {
	n := 0
	for n < len(c.slots) && c.slots[n].end+int64(Keep/time.Second) < now.Unix() {
		n++
	}
	if n > 0 {
		c.slots = append([]slot(nil), c.slots[n:]...)
	}
}
