package outcomes

import (
	"context"

	"docent/api"
)

// A Catalog knows the pull requests of the built-in host.
type Catalog interface {
	UntoldPulls(ctx context.Context, after string, limit int) ([]api.PullRequest, error)
	PullTold(ctx context.Context, id string, state api.PullState) error
}
