package review

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/forge/host"
	"docent/internal/task"
)

// Deps is what a Reviewer needs of the outside. All of it is required, but Here.
type Deps struct {
	Catalog Catalog
	Hosts   Hosts
	Jobs    Jobs
	Starter Starter
	IDs     *api.IDs
	Now     func() time.Time
	Log     *slog.Logger
	Tasks   task.Starter
	// Cell runs the parsers of Kinds on comments.
	Cell func(ctx context.Context, kind string, input []byte) ([]byte, error)

	// Here says which of what has a name this node does, of several; all of it where nil.
	Here func(name string) bool
}

func (d Deps) complete() error {
	for name, missing := range map[string]bool{
		"Catalog": d.Catalog == nil, "Hosts": d.Hosts == nil, "Jobs": d.Jobs == nil, "Starter": d.Starter == nil,
		"IDs": d.IDs == nil, "Now": d.Now == nil, "Log": d.Log == nil, "Cell": d.Cell == nil, "Tasks": d.Tasks == nil,
	} {
		if missing {
			return fmt.Errorf("review: Deps.%s is missing", name)
		}
	}
	return nil
}

// here is whether this node does what has that name.
func (d Deps) here(name string) bool { return d.Here == nil || d.Here(name) }

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

// Jobs are the agent's.
type Jobs interface {
	Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error)
}

// A Starter gives a job a further instruction, once for its key.
type Starter interface {
	FollowUp(ctx context.Context, id api.JobID, r startjob.Request) (job.Reply, error)
}
