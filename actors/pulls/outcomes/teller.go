package outcomes

import (
	"context"
	"docent/internal/background"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/internal/backoff"
)

// A Teller tells jobs.
type Teller struct {
	Catalog Catalog
	Jobs    Jobs
	Changed <-chan struct{} // receives when a pull request may have changed
	Log     *slog.Logger
	// Here says which jobs this node runs, of several: it tells those. All where nil.
	Here func(stream string) bool
}

const (
	page       = 100
	retryFirst = time.Second
	retryMost  = 10 * time.Minute
)

// Run tells what there is to tell, now and whenever something has changed, until ctx ends.
func (t *Teller) Run(ctx context.Context) {
	pause := backoff.Exponential(retryFirst, retryMost)
	for failures := 0; ctx.Err() == nil; {
		var again <-chan time.Time
		if err := background.Guard(func() error { return t.Step(ctx) }); err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			t.Log.Warn("jobs do not know yet what became of their pull requests", "error", err)
			again = time.After(pause(failures))
		}
		select {
		case <-ctx.Done():
		case <-t.Changed:
		case <-again:
		}
	}
}

// Step tells once what there is to tell. A job that does not answer holds up no other.
func (t *Teller) Step(ctx context.Context) error {
	var failed []error
	after := ""
	for {
		pulls, err := t.Catalog.UntoldPulls(ctx, after, page)
		if err != nil {
			return err
		}
		for _, p := range pulls {
			after = p.ID
			if p.Job != "" && t.Here != nil && !t.Here(job.Stream(p.Job)) {
				continue
			}
			if err := t.tell(ctx, p); err != nil {
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

func (t *Teller) tell(ctx context.Context, p api.PullRequest) error {
	if p.Job != "" {
		_, err := t.Jobs.Ask(ctx, p.Job, job.PullIs{Project: p.Project, Branch: p.Head, State: p.State})
		if err != nil && !errors.Is(err, api.ErrNotFound) { // a job of before, or a branch that others published
			return err
		}
	}
	return t.Catalog.PullTold(ctx, p.ID, p.State)
}
