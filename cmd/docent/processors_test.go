package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// during lets p see a load, in processors, for some time, and gives the number of processors after each tick.
func during(p *processors, load float64, d time.Duration) (counts []int) {
	for ; d > 0; d -= loadTick {
		counts = append(counts, p.tick(loadTick, time.Duration(load*float64(loadTick))))
	}
	return counts
}

func TestProcessorsFollowTheLoad(t *testing.T) {
	for _, c := range []struct {
		most int
		load float64
		want int
	}{
		{4, 0, 2}, {4, 0.4, 2}, {4, 1.1, 2}, {4, 1.3, 3}, {4, 2.3, 4}, {16, 1.1, 2}, {16, 3, 5}, {16, 9, 15}, {16, 12.5, 16}, {3, 0, 2},
	} {
		p := newProcessors(c.most)
		counts := during(p, c.load, loadCalm)
		if got := counts[len(counts)-1]; got != c.want {
			t.Errorf("a load of %g on %d processors takes %d, want %d", c.load, c.most, got, c.want)
		}
		for i, n := range counts[:len(counts)-1] {
			if n != c.most {
				t.Errorf("a load of %g on %d processors: %d of them after %d ticks", c.load, c.most, n, i+1)
			}
		}
	}
}

func TestABusyMomentHasAllProcessorsAtOnce(t *testing.T) {
	p := newProcessors(8)
	during(p, 0.5, loadCalm)
	if counts := during(p, 1.5, loadBusyTicks*loadTick); counts[0] != 2 || counts[loadBusyTicks-1] != 8 {
		t.Fatalf("there are %v", counts)
	}
	if n := p.tick(2*loadTick, loadTick); n != 8 { // a tick that comes late
		t.Fatalf("a moment later there are %d", n)
	}
}

func TestAMomentThatIsNoLoadChangesNothing(t *testing.T) {
	p := newProcessors(8)
	during(p, 0.5, loadCalm)
	for range 100 { // such as a collection of garbage each second
		for _, n := range append(during(p, 2, loadTick), during(p, 0.5, time.Second)...) {
			if n != 2 {
				t.Fatalf("there are %d", n)
			}
		}
	}
}

func TestALoadThatGoesUpAndDownIsNotFollowedEachTime(t *testing.T) {
	p := newProcessors(4)
	changes, last := 0, 4
	for second := range 180 {
		if second == 60 {
			changes = 0
		}
		for _, n := range append(during(p, 0.2, time.Second), during(p, 2, loadBusyTicks*loadTick)...) {
			if n != last {
				changes, last = changes+1, n
			}
		}
	}
	if changes > 4 {
		t.Errorf("in the second and third minute the number changed %d times", changes)
	}
	during(p, 0.2, 2*loadCalmMost) // which was to be trusted
	during(p, 4, loadBusyTicks*loadTick)
	if counts := during(p, 0.2, loadCalm); counts[len(counts)-1] != 2 {
		t.Errorf("after a long calm there are %d", counts[len(counts)-1])
	}
}

func TestTheNumberOfProcessorsIsSetAndSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		load, total, at := 0.3, 0.0, time.Now()
		used := func() (time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			total += load * time.Since(at).Seconds()
			at = time.Now()
			return time.Duration(total * 1e9), nil
		}
		use := func(next float64) {
			used()
			mu.Lock()
			defer mu.Unlock()
			load = next
		}
		var was []string
		set := func(n int, all bool) int {
			was = append(was, fmt.Sprint(n, all))
			if all {
				return 6 // the container has got more meanwhile
			}
			return n
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			newProcessors(4).follow(ctx, used, set)
		}()
		time.Sleep(5 * time.Second)
		use(4)
		time.Sleep(5 * time.Second)
		use(2)
		time.Sleep(5 * time.Second)
		stop()
		<-done
		if want := []string{"2 false", "4 true", "4 false", "6 true"}; !slices.Equal(was, want) {
			t.Errorf("%v, want %v", was, want)
		}
	})
}
