package job

import (
	"context"

	"docent/agent"
	"docent/api"
	"docent/forge"
)

// An Editor carries out one instruction on a tree. It reports progress, and it stops soon after ctx ends.
type Editor interface {
	Edit(ctx context.Context, task agent.Task, progress func(agent.Progress)) (agent.Result, error)
	// Model is which one will carry out a task with that model's name, as users see it.
	Model(name string) string
}

// A Forge reads and publishes. All of it may be repeated.
type Forge interface {
	// Source is what jobs of the project work on, as far as is known at once.
	Source(project api.Project) api.JobSource
	// Tip returns the branch's state; for a branch that does not exist, or whose pull request is merged or closed,
	// Pull says so and Commit is the base's head. Published is the commit that was published to the branch before, or
	// empty: if the built-in host has lost it, it is brought back, or that is forge.ErrLost.
	TipAfter(ctx context.Context, project api.Project, branch, published string) (forge.Tip, error)
	Tree(ctx context.Context, project api.Project, commit string) (agent.Tree, error)
	Publish(ctx context.Context, p forge.Publication) (forge.Published, error)
}
