package sources

import (
	"context"
	"log/slog"

	"docent/api"
	"docent/forge"
	"docent/search"
	"docent/search/page"
)

// Deps is what reading documentation needs of the outside.
type Deps struct {
	Catalog      Catalog
	Repositories Repositories
	Index        Index
	Guard        *Guard
	Log          *slog.Logger

	Collectors map[api.SourceKind]Collector
	Collecting string // folder of what they collect

	Nodes Nodes // that answer from the same sources

	// BeforeIndexing is called with each project before its files are indexed; nil for nothing. A test ends the process
	// here, as hostile content would.
	BeforeIndexing func(api.Project)
}

// A Catalog holds the projects, and the updates that clients asked for.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	Projects(ctx context.Context) ([]api.Project, error)
	ProjectByDomain(ctx context.Context, domain string) (api.Project, error)
	AddProject(ctx context.Context, p api.Project) (api.Project, error)
	ChangeProject(ctx context.Context, id api.ProjectID, change func(api.Project) (api.Project, error)) (api.Project, error)
	RemoveProject(ctx context.Context, id api.ProjectID) error

	AddUpdate(ctx context.Context, project api.ProjectID) (u api.Update, added bool, err error)
	SaveUpdate(ctx context.Context, u api.Update) error
	Update(ctx context.Context, id api.UpdateID) (api.Update, error)
	LastUpdate(ctx context.Context, project api.ProjectID) (api.Update, error)
	OpenUpdates(ctx context.Context) ([]api.Update, error)
}

// Repositories hold the documentation as it came from its sources.
type Repositories interface {
	Sync(ctx context.Context, p api.Project, progress func(text string)) (tip forge.Tip, moved bool, err error)
	Tree(ctx context.Context, p api.Project, commit string) (*forge.Tree, error)
	// Holds reports whether there is a repository under a project's id; Discard removes one that no project is kept in.
	Holds(id api.ProjectID) bool
	Discard(ctx context.Context, id api.ProjectID) error
	// Rights says what a code host leaves open of the project's credentials, or why they do not do.
	Rights(ctx context.Context, p api.Project) (open string, err error)
}

// An Index is what readers' questions are answered from.
type Index interface {
	Commit(project api.ProjectID) string
	Projects() []api.ProjectID // that have an index
	Update(ctx context.Context, p api.Project, tree search.Tree, progress func(done, total int)) (search.Report, error)
	Check(ctx context.Context, p api.Project, tree search.Tree, progress func(done, total int)) (search.Check, error)
	Held(index api.ProjectID) (pages []*page.Record, siteURL string, err error)
	Size(project api.ProjectID) (pages, sections int)
	Lost(project api.ProjectID) string // the rule that leaves out a large part of its files
	Remove(project api.ProjectID) error
}

// A Progress hears how far a piece of work is: what is being done, and how much of how much (a total of 0 if that is
// not known).
type Progress = func(text string, done, total int)
