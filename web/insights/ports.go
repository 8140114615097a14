package insights

import (
	"context"
	"time"

	"docent/actors/gaps"
	"docent/actors/gaps/topics"
	"docent/actors/reports"
	"docent/actors/thread"
	"docent/api"
	"docent/model"
	"docent/persistence/catalog"
	"docent/search"
)

// Catalog is what the pages about readers use of the catalog. Its lists are some seconds old at most.
type Catalog interface {
	AgentReads(ctx context.Context, q catalog.AnalyticsQuery) ([]catalog.PageReads, error)
	CallerTotals(ctx context.Context, project api.ProjectID, caller string) (threads, questions int, err error)
	Callers(ctx context.Context, q catalog.AnalyticsQuery) ([]catalog.CallerCount, string, error)
	CitedPages(ctx context.Context, q catalog.AnalyticsQuery) ([]catalog.CitedPage, string, error)
	Conversations(ctx context.Context, q catalog.ConversationQuery) (list []catalog.Conversation, next string, err error)
	Days(ctx context.Context, q catalog.AnalyticsQuery, zone *time.Location) ([]catalog.Day, error)
	SearchesWithoutResult(ctx context.Context, q catalog.AnalyticsQuery) ([]catalog.SearchCount, string, error)
	// ThreadQuestions are the questions of threads, also those that were replaced, in the order of the threads.
	ThreadQuestions(ctx context.Context, project api.ProjectID, threads []api.ThreadID) ([]api.QuestionRow, error)
	Totals(ctx context.Context, q catalog.AnalyticsQuery) (catalog.QuestionTotals, error)
	// Watch tells that something listed of a project has changed, until stop.
	Watch(project api.ProjectID) (changed <-chan struct{}, stop func())
}

// Eraser deletes everything of one person, in the background.
type Eraser interface {
	// Erase begins, unless it goes on already. Ended is called when nothing is left, or with why something is.
	Erase(project api.ProjectID, caller string, ended func(removed int, err error)) (began bool, err error)
	// Erasure is how far the last one of that person has come.
	Erasure(project api.ProjectID, caller string) (e Erasure, begun bool)
	// Watch tells when it has come further, and is closed when it has ended, or if there is none.
	Watch(project api.ProjectID, caller string) <-chan struct{}
}

// Finder searches a project's documentation, and says why it found what. search.ErrNotIndexed says that there is no
// index that can be used; one is made then.
type Finder interface {
	Around(ctx context.Context, project api.ProjectID, at search.Place, groups []string) ([]search.Hit, error)
	Indexed(ctx context.Context, project api.ProjectID) error
	Explain(ctx context.Context, project api.ProjectID, q search.Query, expected ...string) (search.Explanation, error)
	Names(ctx context.Context, project api.ProjectID, places []search.Place) ([]search.Named, error)
	Pages(ctx context.Context, project api.ProjectID) ([]search.PageInfo, error)
	Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error)
	TrialWeights() []search.TrialWeight
}

// Models knows the models that can be asked, and what they would get. Name is the configured name that another one
// stands for; the empty one is the default.
type Models interface {
	Choices() []model.Choice
	Name(name string) string
	Prompt(name string, req model.Request) (model.Prompt, error)
}

// Reports makes weekly reports.
type Reports interface {
	Make(ctx context.Context, p api.Project, w reports.Week) (reports.Report, error)
}

// Threads knows conversations in full.
type Threads interface {
	Forget(ctx context.Context, id api.ThreadID, cmd thread.Forget) error
	Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error)
}

// Topics are what readers ask about, and what becomes of topics that the documentation lacks.
type Topics interface {
	AskAgain(ctx context.Context, p api.Project, t *gaps.Topic) ([]gaps.Verdict, error)
	Asked(ctx context.Context, project api.ProjectID, from, to time.Time) (gaps.Listing, error)
	Dismiss(ctx context.Context, project api.ProjectID, id, by, reason string) (api.Gap, error)
	// Find finds a topic by its id or that of a question in it.
	Find(ctx context.Context, project api.ProjectID, id string, now time.Time) (gaps.Topic, error)
	Nearest(ctx context.Context, project api.ProjectID, t *gaps.Topic) (*topics.Near, error)
	Open(ctx context.Context, p api.Project, id string, o gaps.Order) (api.Gap, error)
	Restore(ctx context.Context, project api.ProjectID, id string) (api.Gap, error)
	SinceMerge(ctx context.Context, gap api.Gap) (gaps.Since, error)
	Topics(ctx context.Context, project api.ProjectID, from, to time.Time) (gaps.Listing, error)
}

// An Erasure deletes everything of one person.
type Erasure struct {
	Done, Total int // conversations; Total is 0 while they are being looked for
	Ended       bool
	Failed      string // why not everything is deleted
	At          time.Time
}
