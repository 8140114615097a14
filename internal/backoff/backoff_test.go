package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPausesDoubleUpToTheLimit(t *testing.T) {
	pause := Exponential(time.Second, 10*time.Second)
	for n, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second,
		1000: 10 * time.Second} {
		for range 100 {
			if got := pause(n); got < most/2 || got > most {
				t.Errorf("before try %d: %v, want %v to %v", n, got, most/2, most)
			}
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		began := time.Now()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, why) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != 61*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestTimeThatIsGivenBackIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, a, stop := WithAllowance(t.Context(), time.Minute)
		defer stop()
		a.Extend(2 * time.Hour)
		time.Sleep(2*time.Hour + 30*time.Second)
		if ctx.Err() != nil {
			t.Error("the time that was given back ends the context")
		}
		time.Sleep(time.Minute)
		a.Extend(time.Hour)
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("the context goes on: %v", context.Cause(ctx))
		}
	})
}
