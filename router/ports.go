package router

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence/catalog/insights"
	"docent/persistence/catalog/listing"
	"docent/persistence/quota"
	"docent/search"
)

// Threads finds or starts the actor of a thread and asks it.
type Threads interface {
	Ask(ctx context.Context, id api.ThreadID, cmd thread.Ask) (thread.Turn, error)
	Resume(ctx context.Context, id api.ThreadID, cmd thread.Resume) (thread.Turn, error)
	Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error)
	Rate(ctx context.Context, id api.ThreadID, cmd thread.Rate) error
	HandOver(ctx context.Context, id api.ThreadID, cmd thread.HandOver) error
	Forget(ctx context.Context, id api.ThreadID, cmd thread.Forget) error
	// Chat finds the thread that a client's chat goes on in, named as in thread.Ask.
	Chat(chat string) (api.ThreadID, bool)
}

// Catalog answers what is asked across actors. It caches: a lookup costs no query on the hot path, and a change made
// through this process is seen at once.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	ProjectByDomain(ctx context.Context, domain string) (api.Project, error)
	// KeyByHash finds a key by the SHA-256 of its secret: api.ErrNotFound if there is none. Revoked and expired keys
	// are found.
	KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error)
	TouchKey(id api.KeyID, at time.Time) // records the last use, some time later
	Jobs(ctx context.Context, q listing.JobQuery) ([]api.JobRow, error)
}

// Quotas counts uses. Reserve takes all of the uses or none, and fails with *api.LimitError; the uses count from then
// on. Release gives them back when the work was not accepted. Remaining tells what is left, for headers.
type Quotas interface {
	Reserve(now time.Time, uses []quota.Use) error
	Release(now time.Time, uses []quota.Use)
	Remaining(now time.Time, use quota.Use) (left int, reset time.Duration)
}

// Models knows the language models that jobs may ask for. Resolve gives the name that a job keeps: an empty one
// if the project's model is meant. An unknown name is an api.InvalidError.
//
// Local reports whether a model's answers are made by this machine's own processors, so that they are there at once.
type Models interface {
	Resolve(name string) (string, error)
	Local(name string) bool
}

// Documents searches a project's documentation and shows its pages. A page that does not exist,
// or that is not for these groups, is api.ErrNotFound.
type Documents interface {
	Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error)
	Page(ctx context.Context, project api.ProjectID, path string, groups []string) (search.Page, error)
	// Published are the pages that every reader may find, in the order of their paths.
	Published(ctx context.Context, project api.ProjectID) ([]search.PageInfo, error)
	// Commit is the commit that is searched; empty if there is no index.
	Commit(project api.ProjectID) string
	// Address is the public URL of the documentation; empty if not known.
	Address(project api.ProjectID) string
}

// Pages are what people look at in a browser.
type Pages interface {
	// Routes yields the method and the pattern of each page.
	Routes() iter.Seq2[string, string]
	// ServePage answers a request for one of them. Secure is whether the visitor came over TLS. What it fails with is
	// shown by FailPage, unless the answer has begun.
	ServePage(w http.ResponseWriter, req *http.Request, client netip.Addr, secure bool) error
	// FailPage writes an error for a person.
	FailPage(w http.ResponseWriter, req *http.Request, status int, message string, problems []api.Problem, request string)
}

// Readers verifies the tokens by which a site's server says who a reader is. It fails with api.ErrUnauthorized, and the
// reason for the client, if a token is not valid for the project.
type Readers interface {
	Verify(ctx context.Context, p api.Project, token string) (api.Reader, error)
}

// Tools are what agents in editors use, over the Model Context Protocol.
type Tools interface {
	// ServeReaders answers a client that reads a project's documentation, ServeAgent one that works with its jobs. From
	// is the client's address. What they do comes back as requests to the API, in the client's name.
	ServeReaders(w http.ResponseWriter, req *http.Request, p api.Project, from netip.Addr)
	ServeAgent(w http.ResponseWriter, req *http.Request, p api.Project, from netip.Addr)
}

// Updates re-index a project's documentation in the background. Start returns once the run is accepted durably: it
// comes to success or failure also when the process dies. Status finds a run of any project.
type Updates interface {
	Start(ctx context.Context, project api.ProjectID) (api.UpdateID, error)
	Status(ctx context.Context, id api.UpdateID) (api.Update, error)
}

// Pushes take in what code hosts say of pushes. Secret is what the project's host signs with; empty if it takes
// none, and api.ErrNotFound if there is no such project. Push starts what waits for the push, durably once it has
// returned, and returns the update that re-indexes the documentation, if there is one.
type Pushes interface {
	Secret(ctx context.Context, project api.ProjectID) (string, error)
	Push(ctx context.Context, project api.ProjectID, push api.Push) (api.UpdateID, error)
	// Pull starts what waits for a change of that pull request, durably once it has returned; it is false if nothing does.
	Pull(ctx context.Context, project api.ProjectID, hint api.PullHint) (bool, error)
	// Delivered receives each request to the webhook of a project that has a secret.
	Delivered(ctx context.Context, project api.ProjectID, d api.Delivery)
}

// Reviews take in what code hosts say of pull requests: that there may be news, durably once Hint has returned. It is
// false if the pull request is none of a job of the project.
type Reviews interface {
	Hint(ctx context.Context, project api.ProjectID, hint api.PullHint) (bool, error)
}

// Analytics tell what was asked, rated and searched for. A cursor that they did not give is api.ErrInvalid.
// RecordSearch and RecordRead do not wait; client tells searchers apart and is not kept.
type Analytics interface {
	Questions(ctx context.Context, q insights.AnalyticsQuery) ([]api.QuestionRow, string, error)
	Totals(ctx context.Context, q insights.AnalyticsQuery) (insights.QuestionTotals, error)
	Callers(ctx context.Context, q insights.AnalyticsQuery) ([]insights.CallerCount, string, error)
	Feedback(ctx context.Context, q insights.AnalyticsQuery) ([]api.QuestionRow, string, error)
	PageFeedback(ctx context.Context, q insights.AnalyticsQuery) ([]insights.PageCount, string, error)
	Searches(ctx context.Context, q insights.AnalyticsQuery) (list []insights.SearchCount, next string, total int, err error)
	RecordSearch(project api.ProjectID, client, query string, results int)
	RecordRead(project api.ProjectID, way, page string)
}
