package issues

import (
	"context"
	"time"

	"docent/api"
	"docent/forge/host"
)

// A Host gives the threads of a repository.
type Host interface {
	Issues(ctx context.Context, p api.Project, since time.Time, tell func(host.Thread) error) error
	IssueComments(ctx context.Context, p api.Project, number int) ([]host.Said, error)
	Discussions(ctx context.Context, p api.Project, since time.Time, tell func(host.Thread) error) error
}
