package thread

import (
	"context"

	"docent/api"
	"docent/model"
	"docent/model/rewrite"
	"docent/search"
)

// A Finder finds what the documentation of a project says.
type Finder interface {
	// Search answers search.ErrNotIndexed if the project has no index that can be used.
	Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error)
	// Around gives the sections that stand together with one on its page, for a reader of these groups; nothing if none do.
	Around(ctx context.Context, project api.ProjectID, at search.Place, groups []string) ([]search.Hit, error)
}

// A Searcher finds, and sees to it that there is an index.
type Searcher interface {
	Finder
	// Indexed builds such a project's index, and returns when it is there, or with the reason why it cannot be built now.
	Indexed(ctx context.Context, project api.ProjectID) error
}

// Pages gives whole pages, those that are restricted to groups only to their readers.
type Pages interface {
	// Page answers api.ErrNotFound if there is no such page for a reader of these groups.
	Page(ctx context.Context, project api.ProjectID, path string, groups []string) (search.Page, error)
}

// A Rewriter asks a language model to read a question together with its conversation.
type Rewriter interface {
	// By is the model that does so for the named one; empty if none does.
	By(name string) string
	// Rewrite stops after a short time of its own.
	Rewrite(ctx context.Context, name string, q rewrite.Question) (rewrite.Reading, error)
}

// A Model writes an answer in pieces. It stops soon after ctx ends.
type Model interface {
	Answer(ctx context.Context, name string, req model.Request, emit func(model.Delta) error) (model.Result, error)
	// Local is whether the processors of this machine are what makes the answer.
	Local(name string) bool
	// FallsBack is whether another model answers if this one gave an error and has written nothing.
	FallsBack(name string, cause error) bool
	// Fallback lets that other model answer. The answer says so.
	Fallback(ctx context.Context, name string, req model.Request, emit func(model.Delta) error) (model.Result, error)
}
