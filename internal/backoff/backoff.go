// Package backoff computes the delays before something is tried again, and waits for them.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Exponential is the pause before try n, from 1: it doubles from first to limit, with a jitter of half of it, so that
// what failed together does not come back together.
func Exponential(first, limit time.Duration) func(n int) time.Duration {
	return func(n int) time.Duration {
		pause := first
		for i := 1; i < n && pause < limit; i++ {
			pause *= 2
		}
		pause = min(pause, limit)
		return pause/2 + rand.N(pause/2+1)
	}
}

// Sleep waits for d, or until ctx ends: then it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
