package backoff

import (
	"context"
	"sync"
	"time"
)

// An Allowance is the time that some work has. Time that it waited for others is given back to it.
type Allowance struct {
	mu    sync.Mutex
	until time.Time
	timer *time.Timer
}

// WithAllowance returns a context that ends with the allowance: the cause is then context.DeadlineExceeded.
func WithAllowance(ctx context.Context, d time.Duration) (context.Context, *Allowance, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &Allowance{until: time.Now().Add(d)}
	a.timer = time.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, a, func() {
		a.timer.Stop()
		cancel(nil)
	}
}

// Extend gives time back, before or after it is waited. The context does not end earlier for it.
func (a *Allowance) Extend(d time.Duration) {
	if a == nil || d <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = a.until.Add(d)
	if a.timer.Stop() { // else it has ended
		a.timer.Reset(time.Until(a.until))
	}
}
