package forge

import (
	"context"

	"docent/api"
)

// A PullStore keeps the built-in host's pull requests, and knows the projects that they belong to. It fails with
// api.ErrNotFound if there is none.
type PullStore interface {
	// Project is a project as it stands now.
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	// FindPull is the open pull request of a head branch.
	FindPull(ctx context.Context, project api.ProjectID, head string) (api.PullRequest, error)
	// LatestPull is the youngest pull request of a head branch, in whatever state.
	LatestPull(ctx context.Context, project api.ProjectID, head string) (api.PullRequest, error)
	// AddPull stores a pull request under the next number of its project. If the head branch has an open one already
	// it stores nothing and answers with that one.
	AddPull(ctx context.Context, pull api.PullRequest) (api.PullRequest, error)
	// UpdatePull changes title, text, state, digest and times, and answers with what is stored then.
	UpdatePull(ctx context.Context, pull api.PullRequest) (api.PullRequest, error)
	Pull(ctx context.Context, id string) (api.PullRequest, error)
	// EqualPulls lists a project's open pull requests with a digest of their change or without one, the newest first.
	EqualPulls(ctx context.Context, project api.ProjectID, digest string, limit int) ([]api.PullRequest, error)
	// Pulls lists a project's pull requests, newest first; of any state if state is empty.
	Pulls(ctx context.Context, project api.ProjectID, state api.PullState) ([]api.PullRequest, error)
}
