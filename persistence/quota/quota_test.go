package quota

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func hourly(limit int) []Use {
	return []Use{{Name: "project-hour", Key: "project/p", Window: SlidingHour, Limit: limit}}
}

func wantLimit(t *testing.T, err error, name string, retry time.Duration) {
	t.Helper()
	var limit *api.LimitError
	if !errors.As(err, &limit) || limit.Name != name || limit.RetryAfter != retry {
		t.Fatalf("%v, want %s after %v", err, name, retry)
	}
}

func TestAQuotaIsKeptByAnyNumberAtOnce(t *testing.T) {
	q := New()
	var wg sync.WaitGroup
	var taken atomic.Int64
	for range 64 {
		wg.Go(func() {
			for range 10 {
				if q.Reserve(noon, hourly(100)) == nil {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 100 {
		t.Fatalf("%d uses of 100", taken.Load())
	}
	if left, _ := q.Remaining(noon, hourly(100)[0]); left != 0 {
		t.Fatalf("%d left", left)
	}
}

// A use may count until the end of its slot, which lies after the window; nobody is told to wait for that long.
func TestNobodyIsToldToWaitForLongerThanTheWindow(t *testing.T) {
	for _, use := range []Use{{"project-hour", "p", SlidingHour, 1}, {"ip-day", "ip", SlidingDay, 1}} {
		q := New()
		for _, now := range []time.Time{noon, noon.Add(19 * time.Second)} {
			q.Reserve(now, []Use{use}) // the first one is accepted
			var limit *api.LimitError
			if err := q.Reserve(now, []Use{use}); !errors.As(err, &limit) || limit.RetryAfter > limit.Window {
				t.Errorf("%s: %v", use.Name, err)
			}
			if _, reset := q.Remaining(now, use); reset > limit.Window {
				t.Errorf("%s: more in %v", use.Name, reset)
			}
		}
	}
}

func TestReserveTakesAllOrNone(t *testing.T) {
	q := New()
	uses := []Use{
		{"key-month", "key/k", CalendarMonth, 10},
		{"org-hour", "org/o", SlidingHour, 3},
		{"ip-day", "ip/i", SlidingDay, 2},
		{"none", "x", SlidingHour, -1},
	}
	for range 2 {
		if err := q.Reserve(noon, uses); err != nil {
			t.Fatal(err)
		}
	}
	wantLimit(t, q.Reserve(noon, uses), "ip-day", 24*time.Hour)
	for i, want := range []int{8, 1, 0, -1} {
		if left, _ := q.Remaining(noon, uses[i]); left != want {
			t.Errorf("%s: %d left, want %d", uses[i].Name, left, want)
		}
	}
	q.Release(noon, uses)
	if err := q.Reserve(noon, uses); err != nil {
		t.Fatal(err)
	}
	// The same twice in one list counts twice.
	if err := q.Reserve(noon, []Use{uses[1], uses[1]}); err == nil {
		t.Fatal("four of three")
	}
	if left, _ := q.Remaining(noon, uses[1]); left != 1 {
		t.Fatalf("%d left", left)
	}
	q.Release(noon, uses)
	q.Release(noon, uses)
	q.Release(noon, uses) // more than were taken
	if len(q.counters) != 0 {
		t.Fatalf("%d counters are left", len(q.counters))
	}
	wantLimit(t, q.Reserve(noon, hourly(0)), "project-hour", time.Hour)
}

func TestASlidingHourSlides(t *testing.T) {
	q := New()
	at := noon.Add(30 * time.Second)
	for i := range 3 { // at 12:00, 12:20 and 12:40
		if err := q.Reserve(at.Add(time.Duration(i)*20*time.Minute), hourly(3)); err != nil {
			t.Fatal(err)
		}
	}
	now := noon.Add(50 * time.Minute)
	wantLimit(t, q.Reserve(now, hourly(3)), "project-hour", 11*time.Minute)
	if left, reset := q.Remaining(now, hourly(3)[0]); left != 0 || reset != 11*time.Minute {
		t.Fatal(left, reset)
	}
	now = now.Add(11*time.Minute - 1)
	wantLimit(t, q.Reserve(now, hourly(3)), "project-hour", 1)
	if err := q.Reserve(now.Add(1), hourly(3)); err != nil {
		t.Fatal(err)
	}
	wantLimit(t, q.Reserve(now.Add(1), hourly(3)), "project-hour", 20*time.Minute)
	// Two at once must wait for the one after as well, and one under a lower limit too.
	wantLimit(t, q.Reserve(now.Add(1), hourly(2)), "project-hour", 40*time.Minute)
}

func TestAMonthEndsWithTheCalendar(t *testing.T) {
	q := New()
	use := []Use{{"key-month", "key/k", CalendarMonth, 1}}
	now := time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC)
	if err := q.Reserve(now, use); err != nil {
		t.Fatal(err)
	}
	wantLimit(t, q.Reserve(now, use), "key-month", time.Minute)
	elsewhere := now.In(time.FixedZone("east", 5*3600)) // if it is January already
	wantLimit(t, q.Reserve(elsewhere, use), "key-month", time.Minute)
	if err := q.Reserve(now.Add(time.Minute), use); err != nil {
		t.Fatal(err)
	}
}

// TestNoWindowHoldsMoreThanItsLimit compares with the plain rule: of the uses that were granted, no window of that
// length holds more than the limit; and a use is refused only when the window, one slot longer, is full.
func TestNoWindowHoldsMoreThanItsLimit(t *testing.T) {
	for _, w := range []Window{SlidingHour, SlidingDay} {
		q := New()
		r := rand.New(rand.NewPCG(3, uint64(w)))
		const limit = 20
		length, slot := w.Length(noon), time.Duration(w.slot())*time.Second
		var granted []time.Time
		within := func(now time.Time, d time.Duration) (n int) {
			for _, g := range granted {
				if now.Sub(g) < d {
					n++
				}
			}
			return n
		}
		now := noon
		for range 5000 {
			now = now.Add(time.Duration(r.Int64N(int64(length / 8))))
			err := q.Reserve(now, []Use{{"n", "k", w, limit}})
			switch {
			case err == nil:
				if within(now, length) >= limit {
					t.Fatalf("one more than %d", limit)
				}
				granted = append(granted, now)
			case within(now, length+slot) < limit:
				t.Fatal("refused without need")
			default:
				var le *api.LimitError
				errors.As(err, &le)
				if left, _ := q.Remaining(now.Add(le.RetryAfter), Use{"n", "k", w, limit}); left < 1 {
					t.Fatal("nothing is free when it should be")
				}
				if left, _ := q.Remaining(now.Add(le.RetryAfter-1), Use{"n", "k", w, limit}); left > 0 {
					t.Fatal("something is free before it should be")
				}
			}
		}
	}
}

func TestAClockThatJumpsBreaksNoWindow(t *testing.T) {
	for _, w := range []Window{SlidingHour, SlidingDay, CalendarMonth} {
		use := []Use{{"n", "k", w, 5}}
		for _, jump := range []time.Duration{-time.Hour, -24 * time.Hour, -40 * 24 * time.Hour} {
			q := New()
			for range 5 {
				if err := q.Reserve(noon, use); err != nil {
					t.Fatal(err)
				}
			}
			back := noon.Add(jump)
			err := q.Reserve(back, use)
			if err == nil {
				t.Fatalf("window %d, clock back by %v: uses are forgotten", w, jump)
			}
			var le *api.LimitError
			if errors.As(err, &le); le.RetryAfter > w.Length(back)+time.Duration(w.slot())*time.Second {
				t.Fatalf("window %d, clock back by %v: refused for %v", w, jump, le.RetryAfter)
			}
		}
		// Forward by a day and back: what ended in between counts again.
		q := New()
		for range 4 {
			if err := q.Reserve(noon, use); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Reserve(noon.Add(24*time.Hour), use); err != nil {
			t.Fatal(err)
		}
		q.Sweep(noon.Add(24 * time.Hour))
		if q.Reserve(noon.Add(time.Minute), use) == nil {
			t.Fatalf("window %d: uses are forgotten", w)
		}
	}
}

// TestAClockThatGoesBackAndForthForgetsNoUse sets the clock back, lets something be used, and sets it right again.
func TestAClockThatGoesBackAndForthForgetsNoUse(t *testing.T) {
	for _, w := range []Window{SlidingHour, SlidingDay, CalendarMonth} {
		for _, jump := range []time.Duration{2 * time.Hour, 20 * time.Hour, 40 * 24 * time.Hour} {
			q := New()
			use := []Use{{"n", "k", w, 30}}
			take := func(now time.Time, n int) {
				t.Helper()
				for range n {
					if err := q.Reserve(now, use); err != nil {
						t.Fatal(err)
					}
				}
			}
			left := func(now time.Time) int {
				left, _ := q.Remaining(now, use[0])
				return left
			}
			take(noon, 21)
			back := noon.Add(-jump)
			take(back, 1)
			q.Sweep(back)
			if got := left(back); got != 8 {
				t.Errorf("window %d, clock back by %v: %d left, want 8", w, jump, got)
			}
			// Nobody is refused for longer than one more window, however long the clock stays so.
			later := back.Add(w.Length(back) + time.Duration(w.slot())*time.Second)
			if jump > 2*w.Length(back) {
				if got := left(later); got != 30 {
					t.Errorf("window %d, a window after the clock went back by %v: %d left, want all", w, jump, got)
				}
			}
			if got := left(noon.Add(time.Minute)); got > 9 {
				t.Errorf("window %d, clock back by %v and right again: %d left, want 9 at most", w, jump, got)
			}
			take(noon.Add(time.Minute), 8)
			if got := left(noon.Add(2 * time.Minute)); got > 1 {
				t.Errorf("window %d, clock back by %v and right again, 8 more uses: %d left", w, jump, got)
			}
		}
	}
}

func TestOldCountsAreForgotten(t *testing.T) {
	q := New()
	for i := range 1000 {
		if err := q.Reserve(noon.Add(time.Duration(i)*time.Second),
			[]Use{{"ip-day", fmt.Sprint("ip/", i), SlidingDay, 5}}); err != nil {
			t.Fatal(err)
		}
	}
	q.Sweep(noon.Add(24 * time.Hour))
	if len(q.counters) != 1000 {
		t.Fatalf("%d counters", len(q.counters))
	}
	q.Sweep(noon.Add(52 * time.Hour))
	if len(q.counters) != 0 {
		t.Fatalf("%d counters", len(q.counters))
	}
}
