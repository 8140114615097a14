package job

import (
	"context"

	"docent/agent"
	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
)

// A Journal keeps the job's events. An append that returned without an error is on disk.
type Journal interface {
	Append(ctx context.Context, a journal.Append) (last uint64, err error)
	Load(stream string) (journal.Recovered, error)
	// Snapshot stores a state that covers the events up to seq, some time later; losing it loses nothing.
	Snapshot(stream string, seq uint64, state []byte)
}

// An Editor carries out one instruction on a tree. It reports progress, and it stops soon after ctx ends.
type Editor interface {
	Edit(ctx context.Context, task agent.Task, progress func(agent.Progress)) (agent.Result, error)
	// Model is which one will carry out a task with that model's name, as users see it.
	Model(name string) string
}

// A Forge reads and publishes. All of it may be repeated.
type Forge interface {
	// Source is what jobs of the project work on, as far as is known at once.
	Source(project api.Project) api.Source
	// Tip says where the branch stands; for a branch that does not exist, or whose pull request is merged or closed,
	// Pull says so and Commit is the base's head. Published is the commit that was published to the branch before, or
	// empty: where the built-in host has lost it, it is brought back, or that is forge.ErrLost.
	TipAfter(ctx context.Context, project api.Project, branch, published string) (forge.Tip, error)
	Tree(ctx context.Context, project api.Project, commit string) (agent.Tree, error)
	Publish(ctx context.Context, p forge.Publication) (forge.Published, error)
}

// Projects finds a project as it stands now.
type Projects interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
}

// Slots bounds how many runs work at once. Whoever waits gets a slot in a fair order among projects.
type Slots interface {
	Acquire(ctx context.Context, project api.ProjectID) (release func(), err error)
}

// Self is the way by which the outside reaches the actor: a message to itself, from any goroutine.
type Self interface{ Tell(msg any) }
