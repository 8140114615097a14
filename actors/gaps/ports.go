package gaps

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/actors/thread"
	"docent/api"
	"docent/model"
	"docent/persistence/catalog/insights"
	"docent/search"
)

// Deps is what a Tracker needs of the outside. All of it is required.
type Deps struct {
	Catalog   Catalog
	Documents Documents
	Model     Model
	Starter   Starter
	Jobs      job.Asker
	Pulls     Pulls
	Now       func() time.Time
	Log       *slog.Logger
}

// A Catalog has the questions, and keeps what was decided about topics.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	Projects(ctx context.Context) ([]api.Project, error)
	OpenQuestions(ctx context.Context, q insights.AnalyticsQuery) ([]insights.QuestionMark, bool, error)
	QuestionMarks(ctx context.Context, q insights.AnalyticsQuery) ([]insights.QuestionMark, bool, error)
	QuestionsOf(ctx context.Context, project api.ProjectID, ids []api.TurnID) ([]api.QuestionRow, error)
	Gap(ctx context.Context, project api.ProjectID, id api.GapID) (api.Gap, error)
	Gaps(ctx context.Context, project api.ProjectID, states ...api.GapState) ([]api.Gap, error)
	KeepGap(ctx context.Context, g api.Gap) (api.Gap, error)
	ChangeGap(ctx context.Context, project api.ProjectID, id api.GapID, change func(*api.Gap) error) (api.Gap, error)
	// LatestPull is the newest pull request of the built-in host for a branch.
	LatestPull(ctx context.Context, project api.ProjectID, head string) (api.PullRequest, error)
}

// Documents are the indexes of the documentation.
type Documents interface {
	thread.Finder
	Rarity(ctx context.Context, project api.ProjectID, terms []string) (in []int, of int, err error)
	Commit(project api.ProjectID) string // that the index shows; empty if there is none
}

// A Model answers a question from passages.
type Model interface {
	Answer(ctx context.Context, name string, req model.Request, emit func(model.Delta) error) (model.Result, error)
}

// A Starter opens jobs, once for a key.
type Starter interface {
	Create(ctx context.Context, r startjob.Request) (job.Reply, error)
	Started(project api.ProjectID, key string) (api.JobID, bool, error)
}

// Pulls tell the state of a branch's pull request, on whatever code host; empty if there is none.
type Pulls interface {
	PullState(ctx context.Context, p api.Project, branch string) (api.PullState, error)
}

// unindexed reports whether the documentation cannot be asked now, which is no reason to show nothing.
func unindexed(err error) bool { return errors.Is(err, search.ErrNotIndexed) }
