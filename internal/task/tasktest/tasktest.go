// Package tasktest runs tasks step by step, where a test says so.
package tasktest

import (
	"context"
	"slices"
	"sync"

	"docent/internal/background"
	"docent/internal/task"
)

// maxAttempts is how often Run handles a task that fails.
const maxAttempts = 100

// A Queue keeps the tasks that were started. It is a task.Starter.
type Queue struct {
	mu    sync.Mutex
	queue []string             // started, and not handled since
	tasks map[string]task.Task // that are not done
}

// Start is a task.Starter's.
func (q *Queue) Start(t task.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tasks == nil {
		q.tasks = map[string]task.Task{}
	}
	if _, known := q.tasks[t.Name]; !known {
		q.tasks[t.Name] = t
	}
	if !slices.Contains(q.queue, t.Name) {
		q.queue = append(q.queue, t.Name)
	}
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
		t := q.tasks[q.queue[0]]
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
			case again < 0:
				q.mu.Lock()
				delete(q.tasks, t.Name)
				if slices.Contains(q.queue, t.Name) {
					q.tasks[t.Name] = t
				}
				q.mu.Unlock()
			}
			break
		}
	}
}
