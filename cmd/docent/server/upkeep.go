package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/actors/retention"
)

// upkeep is what a serving process does and knows beside its work.
type upkeep struct {
	metrics *prometheus.Registry
	began   time.Time
	ready   atomic.Int64 // nanoseconds from the beginning until requests were taken
	woken   atomic.Int64 // nanoseconds until all that was pending had been taken up
	pending int          // streams that called for work at the start
}

// begin begins the upkeep once the server takes requests. It ends before the server closes.
func (u *upkeep) begin(a *Server) {
	u.ready.Store(int64(time.Since(u.began)))
	a.background(func(ctx context.Context) {
		select {
		case <-a.System.Woken():
			u.woken.Store(int64(time.Since(u.began)))
		case <-ctx.Done():
		}
	})
	if unused := a.config.ThreadRetention.Duration; unused > 0 {
		keeper := retention.Keeper{Threads: a.System.Threads(), Now: a.config.Now, Log: a.Log, Owns: a.nodes.Owns,
			Journal: func() retention.Streams { return a.Journal }}
		a.System.Tasks().Start(keeper.Task(unused))
	}
}
