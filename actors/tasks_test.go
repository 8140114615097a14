package actors_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/internal/task"
	"docent/persistence/cluster"
)

func TestATaskIsHandledWhenItIsDueAndWhenItIsStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		began, tasks := time.Now(), w.system.Tasks()
		var at []time.Duration
		again := time.Hour
		a := task.Task{Name: "test", Handle: func(context.Context, int) (time.Duration, error) {
			at = append(at, time.Since(began))
			time.Sleep(time.Second)
			return again, nil
		}}
		tasks.Start(a)
		time.Sleep(10 * time.Minute)
		tasks.Start(a) // before its time
		synctest.Wait()
		tasks.Start(a) // while it is handled: once more
		tasks.Start(a)
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		again = task.Done
		time.Sleep(24 * time.Hour)
		tasks.Start(a) // starts over
		time.Sleep(time.Hour)
		synctest.Wait()
		minutes := 10 * time.Minute
		want := []time.Duration{0, minutes, minutes + time.Second, minutes + 2*time.Second + time.Hour,
			minutes + 3*time.Second + 2*time.Hour, 25*time.Hour + 11*time.Minute}
		if !slices.Equal(at, want) {
			t.Errorf("handled after %v, want %v", at, want)
		}
	})
}

func TestATaskThatFailsIsTriedAgainLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil).start()
		defer w.stop()
		began, tasks := time.Now(), w.system.Tasks()
		var at []time.Duration
		a := task.Task{Name: "test/one", Pause: func(n int) time.Duration { return time.Duration(n) * time.Minute },
			Handle: func(_ context.Context, attempt int) (time.Duration, error) {
				at = append(at, time.Since(began))
				switch attempt {
				case 1:
					return 0, errors.New("the disk is full")
				case 2:
					panic("an odd row")
				case 3:
					return time.Hour, errors.New("come back in an hour")
				}
				return task.Done, nil
			}}
		other := 0
		tasks.Start(a)
		tasks.Start(task.Task{Name: "test/other", Handle: func(context.Context, int) (time.Duration, error) {
			other++
			return task.Done, nil
		}})
		time.Sleep(time.Second)
		tasks.Start(a) // it waits
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		want := []time.Duration{0, time.Minute, 3 * time.Minute, time.Hour + 3*time.Minute}
		if !slices.Equal(at, want) || other != 1 {
			t.Errorf("handled after %v, want %v; the other one %d times", at, want, other)
		}
	})
}

// A task that runs alone ends here before another node begins, and begins with a Handle of its own when it comes back.
func TestATaskWithAPlaceRunsOnOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &lease{}
		w := newWorld(t, func(d *actors.Deps) { d.Place = p }).start()
		defer w.stop()
		runs := map[string]int{}
		start := func(of string) {
			w.system.Tasks().Start(task.Task{Name: "test", Place: "task/test", Handle: func(ctx context.Context, _ int) (time.Duration, error) {
				runs[of]++
				<-ctx.Done()
				return time.Minute, nil
			}})
			synctest.Wait()
		}
		start("elsewhere")
		p.here = true
		start("first")
		p.end()
		synctest.Wait()
		if p.held != 0 {
			t.Errorf("it is still held %d times", p.held)
		}
		start("second")
		if runs["elsewhere"] != 0 || runs["first"] != 1 || runs["second"] != 1 || p.held != 1 {
			t.Errorf("%v, held %d times", runs, p.held)
		}
	})
}

// A lease is a place that a test gives and takes.
type lease struct {
	cluster.Single
	here bool
	held int
	end  context.CancelFunc
}

func (l *lease) Hold(ctx context.Context, _ string) (context.Context, func()) {
	if !l.here {
		return nil, nil
	}
	l.held++
	held, end := context.WithCancel(ctx)
	l.end = end
	return held, func() { end(); l.held-- }
}
