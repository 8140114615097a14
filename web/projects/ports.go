package projects

import (
	"context"
	"io"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/search"
	"docent/search/sources"
	"docent/search/sources/crawl"
)

// Allowances says what is left of quotas: of those of a project, and of those of a key that is used in it.
type Allowances interface {
	OfKey(p api.Project, k api.Key) []Allowance
	OfProject(p api.Project) []Allowance
}

// Automations start jobs by themselves.
type Automations interface {
	// AddAutomation checks that the prompt file is there and that the cron line names times; what is wrong is an
	// api.InvalidError.
	AddAutomation(ctx context.Context, a api.Automation) (api.Automation, error)
	Automation(ctx context.Context, id api.AutomationID) (api.Automation, error)
	Automations(ctx context.Context, project api.ProjectID) ([]api.Automation, error)
	PauseAutomation(ctx context.Context, id api.AutomationID, paused bool) error
	RemoveAutomation(ctx context.Context, id api.AutomationID) error
	RunAutomation(ctx context.Context, id api.AutomationID) error // now, or as soon as may be
	Runs(ctx context.Context, id api.AutomationID, limit int) ([]api.AutomationRun, error)
}

// Catalog is what the pages about projects use of the catalog.
type Catalog interface {
	AddKey(ctx context.Context, k api.Key, hash [32]byte) (api.Key, error)
	Days(ctx context.Context, q catalog.AnalyticsQuery, zone *time.Location) ([]catalog.Day, error)
	Jobs(ctx context.Context, q catalog.JobQuery) ([]api.JobRow, error)
	Keys(ctx context.Context, q catalog.KeyQuery) ([]api.Key, error)
	Members(ctx context.Context, org api.OrgID) ([]api.Member, error)
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	ProjectByDomain(ctx context.Context, domain string) (api.Project, error)
	Projects(ctx context.Context) ([]api.Project, error)
	Pulls(ctx context.Context, project api.ProjectID, state api.PullState) ([]api.PullRequest, error)
	Questions(ctx context.Context, q catalog.AnalyticsQuery) (list []api.QuestionRow, next string, err error)
	RevokeKey(ctx context.Context, id api.KeyID, at time.Time) error
	// RotateKey stores the successor that follow makes of a key, which itself ends at until.
	RotateKey(ctx context.Context, id api.KeyID, follow func(api.Key) (next api.Key, hash [32]byte), until time.Time) (api.Key, error)
	Updates(ctx context.Context, project api.ProjectID, most int) ([]api.Update, error)
	// Watch tells that something listed of a project has changed, until stop.
	Watch(project api.ProjectID) (changed <-chan struct{}, stop func())
}

// Conditions tells how what projects stand on is: their index, their source, their model and their limits.
type Conditions interface {
	Condition(ctx context.Context, p api.Project) (Condition, error)
}

// Secrets keeps what was entered, such as tokens of repositories. A project refers to it by the name that Keep returns.
type Secrets interface {
	Keep(project api.ProjectID, secret string) (name string, err error)
	Drop(name string) error
}

// Setup adds projects, changes them and looks at sources. What takes long is a task, which goes on when nobody watches.
type Setup interface {
	Add(p api.Project) (sources.Task, error)
	// AddSource, SetSource and ReadSource read a further source; RemoveSource removes it with its index.
	AddSource(project api.ProjectID, s api.Source) (sources.Task, error)
	Change(p api.Project) (sources.Task, error)
	Check(p api.Project) (sources.Task, error)
	// Discard forgets what was looked at and not added. Only what a fresh look has read may be discarded.
	Discard(ctx context.Context, id api.ProjectID) error
	// Find says where a text that somebody has pasted leads: a place, or a site with the repositories that it links to.
	Find(ctx context.Context, text string) (sources.Place, []sources.Candidate, error)
	// Keys makes an admin key and an assistant key; their secrets are nowhere else.
	Keys(ctx context.Context, p api.Project) (admin, assistant NewKey, err error)
	Limits() api.Limits // those of projects that set none
	Look(p api.Project) (sources.Task, error)
	// Models are the names that a project may choose among.
	Models() []ModelChoice
	// NewReaderSecret gives the project a further secret to sign reader tokens with, which is shown once; it fails with
	// api.ErrConflict if there are two. RetireReaderSecret ends one.
	NewReaderSecret(ctx context.Context, id api.ProjectID) (name, secret string, err error)
	// NewWebhook gives the project's webhook a new secret; RemoveWebhook takes it away.
	NewWebhook(ctx context.Context, id api.ProjectID) (secret string, err error)
	// Preview reads the first pages of a web site, within seconds, to show how it would be read.
	Preview(ctx context.Context, s api.Source) (crawl.Report, error)
	ReadSource(project api.ProjectID, label string) (sources.Task, error)
	Remove(ctx context.Context, id api.ProjectID) error
	RemoveSource(ctx context.Context, project api.ProjectID, label string) error
	RemoveWebhook(ctx context.Context, id api.ProjectID) error
	// Rereads reports whether a change of settings requires reading the documentation again.
	Rereads(before, after api.Project) bool
	RetireReaderSecret(ctx context.Context, id api.ProjectID, name string) error
	// SetChat has the project's assistant answer in a kind of chat, with tokens one a line, or not any more if there are none.
	SetChat(ctx context.Context, id api.ProjectID, app api.Channel, tokens string) (name string, err error)
	SetSource(project api.ProjectID, s api.Source) (sources.Task, error)
	SetToken(p api.Project, secret string) (sources.Task, error)
	// Upload reads a zip to its end; it becomes the pages of a source of the kind zip, which is added if there is none
	// of its label. A zip that is no zip, or too large, is an *api.InvalidError for the field zip.
	Upload(ctx context.Context, project api.ProjectID, s api.Source, zip io.Reader) (sources.Task, error)
}

// Sources say how far the documentation was read, and have it read again.
type Sources interface {
	All(ctx context.Context, project api.ProjectID) ([]sources.Source, error) // the project's own first
	// LastDelivery is the last push that a code host has delivered, and Refused the last one that was refused.
	LastDelivery(ctx context.Context, project api.ProjectID) (api.Delivery, error)
	Refused(project api.ProjectID) (api.Delivery, bool)
	Reindex(ctx context.Context, project api.ProjectID) (api.UpdateID, error)
	Shown(ctx context.Context, p api.Project) (SourceState, error)
	// TryWebhook sends a push as the code host would, and says what came of it.
	TryWebhook(ctx context.Context, p api.Project) ([]WebhookTry, error)
	Updates(ctx context.Context, project api.ProjectID) ([]api.Update, error) // newest first
}

// Tasks are the long pieces of work on projects.
type Tasks interface {
	Cancel(id string) error
	LastCheck(project api.ProjectID) (search.Check, time.Time, bool)
	Newest(project api.ProjectID) (sources.Task, bool)
	Task(id string) (sources.Task, error)
	Watch(ctx context.Context, id string) <-chan struct{}
}

// Webhooks tell other systems what happens.
type Webhooks interface {
	Add(ctx context.Context, project api.ProjectID, address string, kinds []api.EventKind) (w api.Webhook, secret string, err error)
	Deliveries(ctx context.Context, id string, limit int) ([]api.WebhookDelivery, error) // newest first
	Pause(ctx context.Context, id string, off bool) error
	Remove(ctx context.Context, id string) error
	Replay(ctx context.Context, id, event string) (api.WebhookDelivery, error)
	ReplaySince(ctx context.Context, id string, since time.Time) (events int, err error)
	// Rotate makes a new secret. The old one goes on for a day, unless it is to end now.
	Rotate(ctx context.Context, id string, now bool) (secret string, err error)
	// Test and Replay send one event now, and say what came of it.
	Test(ctx context.Context, id string) (api.WebhookDelivery, error)
	Waiting(ctx context.Context, project api.ProjectID, kinds []api.EventKind, after uint64) (events int, err error)
	Webhook(ctx context.Context, id string) (api.WebhookStatus, error)
	Webhooks(ctx context.Context, project api.ProjectID) ([]api.WebhookStatus, error)
}

// An Allowance is what is left of one quota.
type Allowance struct {
	Of    string // what is counted, such as "questions this month"
	Limit int    // none if negative
	Left  int
	Reset time.Duration // until the first of what is counted is free again
	Key   api.KeyID     // whose quota it is; empty if it is not a key's
}

// A NewKey is a key that was made just now.
type NewKey struct {
	ID     api.KeyID
	Secret string
}

// A ModelChoice is a configured model.
type ModelChoice struct {
	Name    string
	Default bool
	State   string // in words; empty if there is nothing to say
}

// A SourceState is the commit that answers are given from.
type SourceState struct {
	Commit  string // empty if there is no index
	Message string
	Author  string
	At      time.Time
	Address string    // public URL of the pages
	LeftOut string    // why the source is no longer read; empty as a rule
	Looked  time.Time // when the source was last looked at; zero if the server has not yet
	Failed  string    // why that failed
}

// A WebhookTry is what came of one push that was sent to try a webhook.
type WebhookTry struct {
	Address string
	From    string // in words: by its public address, or on this machine
	Status  int    // 0 if there was no answer
	Outcome string
	Good    bool
}
