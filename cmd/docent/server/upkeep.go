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
	if a.nodes.Several() {
		a.background(a.followModels)
	}
	if unused := a.config.ThreadRetention.Duration; unused > 0 {
		keeper := retention.Keeper{Threads: a.System.Threads(), Now: a.config.Now, Log: a.Log, Owns: a.nodes.Owns,
			Journal: func() retention.Streams { return a.Journal }}
		a.System.Tasks().Start(keeper.Task(unused))
	}
}

// modelsEvery is how soon a node uses what was connected on another.
const modelsEvery = 5 * time.Second

// followModels has a node answer with the models that were connected on others.
func (a *Server) followModels(ctx context.Context) {
	tick := time.NewTicker(modelsEvery)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := a.Operator.UseModels(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			a.Log.Warn("could not read the connected language models; keeping the known ones", "error", err)
		}
		failed = err != nil
	}
}
