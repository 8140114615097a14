package outcomes

import (
	"context"

	"docent/actors/job"
	"docent/api"
)

// A Catalog knows the pull requests of the built-in host.
type Catalog interface {
	UntoldPulls(ctx context.Context, after string, limit int) ([]api.PullRequest, error)
	PullTold(ctx context.Context, id string, state api.PullState) error
}

// Jobs finds or starts the actor of a job and asks it.
type Jobs interface {
	Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error)
}
