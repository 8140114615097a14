package outcomes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/internal/backoff"
	"docent/internal/task"
)

// A PullNotifier tells jobs what became of their pull requests.
type PullNotifier struct {
	Catalog Catalog
	Jobs    job.Asker
	// Owns reports whether this node runs a job: it tells those.
	Owns func(stream string) bool
}

const page = 100

// Task tells what there is to tell. It is started when a pull request may have changed.
func (n *PullNotifier) Task() task.Task {
	return task.Task{Name: "outcomes", Pause: backoff.Exponential(time.Second, 10*time.Minute),
		Handle: func(ctx context.Context, _ int) (time.Duration, error) { return task.Done, n.Step(ctx) }}
}

// Step tells once what there is to tell. A job that does not answer holds up no other.
func (n *PullNotifier) Step(ctx context.Context) error {
	var failed []error
	after := ""
	for {
		pulls, err := n.Catalog.UntoldPulls(ctx, after, page)
		if err != nil {
			return err
		}
		for _, p := range pulls {
			after = p.ID
			if p.Job != "" && !n.Owns(job.Stream(p.Job)) {
				continue
			}
			if err := n.tell(ctx, p); err != nil {
				failed = append(failed, fmt.Errorf("pull request %s: %w", p.ID, err))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if len(pulls) == 0 {
			return errors.Join(failed...)
		}
	}
}

func (n *PullNotifier) tell(ctx context.Context, p api.PullRequest) error {
	if p.Job != "" {
		_, err := n.Jobs.Ask(ctx, p.Job, job.PullIs{Project: p.Project, Branch: p.Head, State: p.State})
		if err != nil && !errors.Is(err, api.ErrNotFound) { // a job of before, or a branch that others published
			return err
		}
	}
	return n.Catalog.PullTold(ctx, p.ID, p.State)
}
