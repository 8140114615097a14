// Package tasktest runs tasks step by step, where a test says so.
package tasktest

import (
	"context"
	"sync"

	"docent/internal/background"
	"docent/internal/task"
)

// maxAttempts is how often Run handles a task that fails.
const maxAttempts = 100

// A Queue keeps the tasks that were started. It is a task.Starter.
type Queue struct {
	mu    sync.Mutex
	queue []task.Task
}

// Start is a task.Starter's.
func (q *Queue) Start(t task.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.queue {
		if waiting.Name == t.Name {
			return
		}
	}
	q.queue = append(q.queue, t)
}

// Run handles what was started, and what that starts, one after the other and without pauses, until ctx ends or all of it
// waits for a time to come.
func (q *Queue) Run(ctx context.Context) {
	for {
		q.mu.Lock()
		if len(q.queue) == 0 || ctx.Err() != nil {
			q.queue = nil
			q.mu.Unlock()
			return
		}
		t := q.queue[0]
		q.queue = q.queue[1:]
		q.mu.Unlock()
		for attempt := 1; attempt <= maxAttempts && ctx.Err() == nil; {
			again := task.Done
			switch err := background.Guard(func() (err error) { again, err = t.Handle(ctx, attempt); return err }); {
			case err != nil:
				attempt++
				continue
			case again == 0:
				attempt = 1
				continue
			}
			break
		}
	}
}
