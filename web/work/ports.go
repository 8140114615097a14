package work

import (
	"context"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/forge"
	"docent/model"
	"docent/persistence/catalog"
)

// Catalog is what the pages about the agent use of the catalog. Its lists are some seconds old at most.
type Catalog interface {
	Automations(ctx context.Context, project api.ProjectID) ([]api.Automation, error)
	AddComment(ctx context.Context, c api.Comment) (api.Comment, error)
	Askers(ctx context.Context, project api.ProjectID) ([]string, error) // who asked for jobs, by their ids
	Comments(ctx context.Context, pull string) ([]api.Comment, error)
	GapOf(ctx context.Context, project api.ProjectID, job api.JobID) (api.Gap, error)
	Jobs(ctx context.Context, q catalog.JobQuery) ([]api.JobRow, error)
	Keys(ctx context.Context, q catalog.KeyQuery) ([]api.Key, error)
	Person(ctx context.Context, id api.PersonID) (api.Person, error)
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	PullsPage(ctx context.Context, q catalog.PullQuery) ([]api.PullRequest, error)
	RemoveComment(ctx context.Context, pull, author, id string) error
	SettleComments(ctx context.Context, pull, message string, sent bool) error
	TakeComments(ctx context.Context, pull, author, message string) ([]api.Comment, error)
	// Watch tells that something listed of a project has changed, until stop.
	Watch(project api.ProjectID) (changed <-chan struct{}, stop func())
}

// Models knows the models that can be asked, and what they would get. Name is the configured name that another one
// stands for; the empty one is the default.
type Models interface {
	Choices() []model.Choice
}

// Pulls shows, merges and closes the built-in host's pull requests. A merge that cannot be done is
// forge.ErrMergeConflict or an api error.
type Pulls interface {
	Close(ctx context.Context, id string) (api.PullRequest, error)
	// CommitDiff is what one of its commits changes; api.ErrNotFound if it has no such commit.
	CommitDiff(ctx context.Context, id, commit string) (forge.Diff, error)
	Diff(ctx context.Context, id string) (forge.Diff, error)
	// Ends are the commit that a pull request builds on, and its newest one.
	Ends(ctx context.Context, id string) (base, head string, err error)
	Merge(ctx context.Context, id string) (api.PullRequest, error)
	Pull(ctx context.Context, id string) (api.PullRequest, error)
	// PullFile is a file as it is, or as it was before; fs.ErrNotExist if that version has none.
	PullFile(ctx context.Context, id, path string, before bool) ([]byte, error)
}

// Work gives instructions to jobs: within the quotas, and once for a request's key. Ask waits for a job's answer also
// when the browser has gone, and what there is not has the name of a job.
type Work interface {
	Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error)
	Create(ctx context.Context, r startjob.Request) (job.Reply, error)
	FollowUp(ctx context.Context, id api.JobID, r startjob.Request) (job.Reply, error)
}
