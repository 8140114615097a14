package review

import (
	"context"
	"log/slog"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/forge/host"
	"docent/internal/task"
)

// Deps is what a Reviewer needs of the outside. All of it is required.
type Deps struct {
	Catalog Catalog
	Hosts   Hosts
	Jobs    job.Asker
	Starter Starter
	IDs     *api.IDs
	Now     func() time.Time
	Log     *slog.Logger
	Tasks   task.Starter
	// Cell runs the parsers of Kinds on comments.
	Cell func(ctx context.Context, kind string, input []byte) ([]byte, error)

	// Owns reports whether this node does what has a name.
	Owns func(name string) bool
}

// A Catalog knows the projects and where their jobs' pull requests are, and keeps what was said on them.
type Catalog interface {
	Projects(ctx context.Context) ([]api.Project, error)
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	// ReviewsSince is since when comments are followed: older ones are no instructions.
	ReviewsSince(ctx context.Context) (time.Time, error)
	// UnfollowedPulls are jobs of a project with a pull request on a code host that is not followed.
	UnfollowedPulls(ctx context.Context, project api.ProjectID, limit int) ([]api.JobRow, error)
	FollowPull(ctx context.Context, p api.ReviewPull) error
	NextPull(ctx context.Context, project api.ProjectID) (api.ReviewPull, error)
	HintPull(ctx context.Context, project api.ProjectID, number int) (followed bool, err error)
	BeginLook(ctx context.Context, project api.ProjectID, number int, again time.Time) error
	EndLook(ctx context.Context, p api.ReviewPull, asks []api.ReviewAsk) error
	OpenAsks(ctx context.Context, limit int) ([]api.ReviewAsk, error)
	OpenAsk(ctx context.Context, id string) (api.ReviewAsk, error)
	SaveAsk(ctx context.Context, a api.ReviewAsk) error
	// SentComments are those on pull requests of the built-in host of which it is not stored what became of them.
	SentComments(ctx context.Context, limit int) ([]api.Comment, error)
	AnswerComments(ctx context.Context, pull, message string, answer func(*api.Comment)) error
}

// Hosts are the code hosts of projects.
type Hosts interface {
	// Comments are those on a pull request that appeared at a time or later, oldest first.
	Comments(ctx context.Context, p api.Project, number int, since time.Time) ([]host.Comment, error)
	// Reply answers a comment, once for a key.
	Reply(ctx context.Context, p api.Project, number int, to host.Comment, key, body string) error
	PullState(ctx context.Context, p api.Project, number int) (api.PullState, error)
}

// A Starter gives a job a further instruction, once for its key.
type Starter interface {
	FollowUp(ctx context.Context, id api.JobID, r startjob.Request) (job.Reply, error)
}
