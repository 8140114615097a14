package actors

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
)

func TestAGateLetsProjectsThroughInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		first, err := g.Acquire(t.Context(), "x", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		next := make(chan func())
		for _, name := range []string{"a1", "a2", "a3", "b1", "c1", "b2"} {
			go func() {
				release, err := g.Acquire(t.Context(), api.ProjectID(name[:1]), time.Time{})
				if err != nil {
					t.Error(err)
				}
				order = append(order, name) // one is inside at a time
				next <- release
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if got := g.oldest(); got != time.Minute {
			t.Errorf("the oldest has waited for %v", got)
		}
		first()
		first() // a second release is none
		for range 6 {
			release := <-next
			synctest.Wait()
			if inside, _ := g.load(); inside != 1 {
				t.Errorf("%d inside", inside)
			}
			release()
		}
		if got := strings.Join(order, " "); got != "a1 b1 c1 a2 b2 a3" {
			t.Error(got)
		}
		if g.oldest() != 0 {
			t.Errorf("nobody waits, for %v", g.oldest())
		}
		if inside, waiting := g.load(); inside != 0 || waiting != 0 || len(g.queues) != 0 || len(g.order) != 0 {
			t.Errorf("%d inside, %d waiting, %v, %v", inside, waiting, g.queues, g.order)
		}
	})
}

func TestWhoLeavesTheGateTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		release, _ := g.Acquire(t.Context(), "a", time.Time{})
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := g.Acquire(ctx, "a", time.Time{})
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		release()
		if _, err := g.Acquire(t.Context(), "b", time.Time{}); err != nil {
			t.Error(err)
		}
		if inside, waiting := g.load(); inside != 1 || waiting != 0 {
			t.Errorf("%d inside, %d waiting", inside, waiting)
		}
	})
}

// Within a project the instruction that was given first goes first, in whatever order they queue, as after a restart; a
// clock that was set back puts nothing last.
func TestAnOldInstructionNeverWaitsBehindALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		first, err := g.Acquire(t.Context(), "x", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var order []string
		next := make(chan func())
		queue := func(name string, given time.Time) {
			go func() {
				release, err := g.Acquire(t.Context(), api.ProjectID(name[:1]), given)
				if err != nil {
					t.Error(err)
				}
				order = append(order, name)
				next <- release
			}()
			synctest.Wait()
		}
		queue("a3", began.Add(-time.Minute))
		queue("a1", began.Add(-time.Hour))
		queue("a5", began.Add(20*time.Hour)) // by a clock that was set back since
		time.Sleep(time.Second)
		queue("a6", time.Time{})
		queue("b2", time.Time{})
		queue("a2", began.Add(-30*time.Minute))
		queue("b1", began.Add(-2*time.Hour))
		if got := g.oldest(); got != 2*time.Hour+time.Second {
			t.Errorf("the oldest was given %v ago", got)
		}
		first()
		for range 7 {
			release := <-next
			synctest.Wait()
			// however many come later, the next of the old ones is the next of its project
			if len(order) == 2 {
				queue("a7", time.Time{})
			}
			release()
		}
		(<-next)()
		if got := strings.Join(order, " "); got != "a1 b1 a2 b2 a3 a5 a6 a7" {
			t.Error(got)
		}
	})
}
