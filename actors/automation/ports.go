package automation

import (
	"context"
	"log/slog"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/internal/task"
)

// Deps is what a Runner needs of the outside. All of it is required, but Stored.
type Deps struct {
	Catalog       Catalog
	Jobs          job.Asker
	Claims        startjob.Claims
	Documentation Documentation
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
}

// Updates read a project's documentation again.
type Updates interface {
	Start(ctx context.Context, project api.ProjectID) (api.UpdateID, error)
}
