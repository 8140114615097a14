package automation

import (
	"context"
	"log/slog"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/agent/affected"
	"docent/api"
	"docent/forge"
	"docent/internal/task"
)

// Deps is what a Runner needs of the outside. All of it is required, but Stored.
type Deps struct {
	Catalog       Catalog
	Jobs          job.Asker
	Claims        startjob.Claims
	Documentation Documentation
	Code          Code
	Updates       Updates
	IDs           *api.IDs
	Now           func() time.Time
	Log           *slog.Logger
	Tasks         task.Starter

	// Stored is a secret that was entered on a page, by the name that a project refers to it by.
	Stored func(name string) (string, error)

	// Owns reports whether this node does what has a name.
	Owns func(name string) bool
}

// A Catalog holds the automations and their runs.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	Automation(ctx context.Context, id api.AutomationID) (api.Automation, error)
	Automations(ctx context.Context, project api.ProjectID) ([]api.Automation, error)
	ChangeAutomation(ctx context.Context, id api.AutomationID, change func(*api.Automation)) error
	BeginRun(ctx context.Context, run api.AutomationRun, change func(*api.Automation)) (_ api.AutomationRun, begun bool,
		_ error)
	SaveRun(ctx context.Context, run api.AutomationRun) error
	OpenRuns(ctx context.Context) ([]api.AutomationRun, error)
	SaveDelivery(ctx context.Context, project api.ProjectID, d api.Delivery) error
}

// Documentation is a project's repository.
type Documentation interface {
	// File reads a file as it is now on the documentation's branch, and says at which commit that is.
	File(ctx context.Context, p api.Project, path string) (data []byte, commit string, err error)
	// PullState is the state of a branch's pull request; empty if there is none.
	PullState(ctx context.Context, p api.Project, branch string) (api.PullState, error)
	// Change is what a commit of a repository changes since another one, or by itself if that is empty or not known: as git
	// writes it, with the commits, newest first, and whether a name still stands in the code.
	Change(ctx context.Context, p api.Project, from, to string) (Change, error)
	// Proposed is what a pull request for the branch of a repository with code changes: its diff, without what is not shown, and
	// whether a name stands in the code once it is merged. Docs is the documentation's folder, if that lies there too.
	Proposed(ctx context.Context, p api.Project, docs, diff string) (Change, error)
	// Pages are the files of the documentation as it is now on its branch, by their paths in the repository.
	Pages(ctx context.Context, p api.Project) (affected.Docs, error)
}

// A Change is what several commits change.
type Change struct {
	Diff    string
	Commits []forge.Commit
	Alive   func(name string) bool
}

// Updates read a project's documentation again.
type Updates interface {
	Start(ctx context.Context, project api.ProjectID) (api.UpdateID, error)
}
