package operator

import (
	"context"
	"errors"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/web/insights"
)

// erasures delete everything of single persons, for the console. What they know is lost with the process: the pages
// then show what is left, and somebody begins again.
type erasures struct {
	ops     *Service
	running background.Work

	mu   sync.Mutex
	each map[person]*erasure
}

type person struct {
	project api.ProjectID
	caller  string
}

type erasure struct {
	insights.Erasure
	watchers []chan struct{}
}

// erasuresKept is how many that have ended are remembered.
const erasuresKept = 1000

// Erase begins to delete everything of a person, unless it goes on already.
func (e *erasures) Erase(project api.ProjectID, caller string, ended func(int, error)) (bool, error) {
	who := person{project, caller}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.each[who]; now != nil && !now.Ended {
		return false, nil
	}
	if e.ops.server.Work.Err() != nil {
		return false, &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second}
	}
	if e.each == nil || len(e.each) > erasuresKept {
		kept := make(map[person]*erasure)
		for of, one := range e.each {
			if !one.Ended {
				kept[of] = one
			}
		}
		e.each = kept
	}
	e.each[who] = &erasure{Erasure: insights.Erasure{At: time.Now()}}
	e.running.Go("cmd/docent/operator.Erase", func() { ended(e.erase(e.ops.server.Work, who)) })
	return true, nil
}

// erase finds the person's threads in the journal, which knows of all, and has each forget itself.
func (e *erasures) erase(ctx context.Context, who person) (removed int, err error) {
	err = background.Guard(func() error {
		_, err := e.ops.deleteThreads(ctx, ThreadParams{Project: who.project, Caller: who.caller},
			func(_ string, done, total int) {
				removed = max(removed, done)
				e.change(who, func(now *insights.Erasure) { now.Done, now.Total = max(now.Done, done), total })
			})
		return err
	})
	e.change(who, func(now *insights.Erasure) {
		now.Ended, now.At = true, time.Now()
		switch {
		case ctx.Err() != nil:
			now.Failed = "the server was stopped"
		case errors.Is(err, api.ErrUnavailable):
			now.Failed = "the data directory could not be written"
		case err != nil:
			now.Failed = "the server's log says why"
			e.ops.server.Log.Error("could not delete a person's data", "project", who.project, "error", err)
		}
	})
	return removed, err
}

// change changes what is known of an erasure, and tells those who watch it.
func (e *erasures) change(who person, to func(*insights.Erasure)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.each[who]
	to(&now.Erasure)
	for _, w := range now.watchers {
		select {
		case w <- struct{}{}:
		default: // it has not looked since the last change
		}
		if now.Ended {
			close(w)
		}
	}
	if now.Ended {
		now.watchers = nil
	}
}

// Erasure is how far the last one of a person has come.
func (e *erasures) Erasure(project api.ProjectID, caller string) (insights.Erasure, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.each[person{project, caller}]
	if now == nil {
		return insights.Erasure{}, false
	}
	return now.Erasure, true
}

// Watch tells when it has come further.
func (e *erasures) Watch(project api.ProjectID, caller string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed := make(chan struct{}, 1)
	if now := e.each[person{project, caller}]; now != nil && !now.Ended {
		now.watchers = append(now.watchers, changed)
	} else {
		close(changed)
	}
	return changed
}
