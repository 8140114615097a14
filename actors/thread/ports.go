package thread

import (
	"context"

	"docent/api"
	"docent/model"
	"docent/persistence/journal"
	"docent/search"
)

// A Journal keeps the thread's events. An append that returned without an error is on disk.
type Journal interface {
	Append(ctx context.Context, a journal.Append) (last uint64, err error)
	Load(stream string) (journal.Recovered, error)
	Snapshot(stream string, seq uint64, state []byte)
	// Delete removes the stream with everything of it, and those of the claims that it holds.
	Delete(stream string, claims ...string) error
}

// A Searcher finds what the documentation of a project says.
type Searcher interface {
	// Search answers search.ErrNotIndexed where the project has no index that can be used.
	Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error)
	// Indexed has such a project's index made, and returns when it is there, or with the reason why it cannot be made now.
	Indexed(ctx context.Context, project api.ProjectID) error
}

// A Model writes an answer in pieces. It stops soon after ctx ends.
type Model interface {
	Answer(ctx context.Context, name string, req model.Request, emit func(model.Delta) error) (model.Result, error)
	// Local is whether the processors of this machine are what makes the answer.
	Local(name string) bool
	// FallsBack is whether another model answers where this one gave an error and has written nothing.
	FallsBack(name string, cause error) bool
	// Fallback lets that other model answer. The answer says so.
	Fallback(ctx context.Context, name string, req model.Request, emit func(model.Delta) error) (model.Result, error)
}

// Projects finds a project as it stands now.
type Projects interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
}

// Slots bounds how many turns are answered at once. Whoever waits gets a slot in a fair order among projects.
type Slots interface {
	Acquire(ctx context.Context, project api.ProjectID) (release func(), err error)
}

// Self is the way by which the outside reaches the actor: a message to itself, from any goroutine.
type Self interface{ Tell(msg any) }
