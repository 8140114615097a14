package web

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/crawl"
	"docent/forge"
	"docent/gaps"
	"docent/gaps/tracker"
	"docent/health"
	"docent/ingest"
	"docent/model"
	"docent/persistence/catalog"
	"docent/search"
	"docent/startjob"
	"docent/web/oidc"
	"docent/weekly"
)

// Catalog knows projects and keys.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	ProjectByDomain(ctx context.Context, domain string) (api.Project, error)
	Projects(ctx context.Context) ([]api.Project, error)
	KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error)
	TouchKey(id api.KeyID, at time.Time) // records the last use, some time later
}

// Keys knows API keys, also those that have ended.
type Keys interface {
	Keys(ctx context.Context, q catalog.KeyQuery) ([]api.Key, error)
	AddKey(ctx context.Context, k api.Key, hash [32]byte) (api.Key, error)
	RevokeKey(ctx context.Context, id api.KeyID, at time.Time) error
}

// Allowances says what is left of quotas: of those of a project, and of those of a key that is used in it.
type Allowances interface {
	OfProject(p api.Project) []Allowance
	OfKey(p api.Project, k api.Key) []Allowance
}

// An Allowance is what is left of one quota.
type Allowance struct {
	Of    string // what is counted, such as "questions this month"
	Limit int    // none where negative
	Left  int
	Reset time.Duration // until the first of what is counted is free again
}

// Conversations lists what was asked and answered. The lists are some seconds old at most.
type Conversations interface {
	Conversations(ctx context.Context, q catalog.ConversationQuery) (list []catalog.Conversation, next string, err error)
	// ThreadQuestions are the questions of threads, also those that were replaced, in the order of the threads.
	ThreadQuestions(ctx context.Context, project api.ProjectID, threads []api.ThreadID) ([]api.QuestionRow, error)
	CallerTotals(ctx context.Context, project api.ProjectID, caller string) (threads, questions int, err error)
	// Watch tells that something listed of a project has changed, until stop.
	Watch(project api.ProjectID) (changed <-chan struct{}, stop func())
}

// Threads knows conversations in full.
type Threads interface {
	Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error)
	Forget(ctx context.Context, id api.ThreadID, cmd thread.Forget) error
}

// Eraser deletes everything of one person, in the background.
type Eraser interface {
	// Erase begins, unless it goes on already. Ended is called when nothing is left, or with why something is.
	Erase(project api.ProjectID, caller string, ended func(removed int, err error)) (began bool, err error)
	// Erasure is how far the last one of that person has come.
	Erasure(project api.ProjectID, caller string) (e Erasure, begun bool)
	// Watch tells when it has come further, and is closed when it has ended, or where there is none.
	Watch(project api.ProjectID, caller string) <-chan struct{}
}

// An Erasure deletes everything of one person.
type Erasure struct {
	Done, Total int // conversations; Total is 0 while they are being looked for
	Ended       bool
	Failed      string // why not everything is deleted
	At          time.Time
}

// Pulls shows, merges and closes the built-in host's pull requests. A merge that cannot be done is
// forge.ErrMergeConflict or an api error.
type Pulls interface {
	Pull(ctx context.Context, id string) (api.PullRequest, error)
	Diff(ctx context.Context, id string) (forge.Diff, error)
	// CommitDiff is what one of its commits changes; api.ErrNotFound where it has no such commit.
	CommitDiff(ctx context.Context, id, commit string) (forge.Diff, error)
	Merge(ctx context.Context, id string) (api.PullRequest, error)
	Close(ctx context.Context, id string) (api.PullRequest, error)
	// Ends are the commit that a pull request builds on, and its newest one.
	Ends(ctx context.Context, id string) (base, head string, err error)
	// PullFile is a file as it is, or as it was before; fs.ErrNotExist where that version has none.
	PullFile(ctx context.Context, id, path string, before bool) ([]byte, error)
}

// Readers puts a question as readers do: in the same queue and under the same quotas, but for those of keys. It names the
// turn, and where no thread is named the question opens one.
type Readers interface {
	Put(ctx context.Context, client netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn, error)
}

// Tries are the threads that the playground has asked in. Those that another node runs can be read here.
type Tries interface {
	Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error)
	Resume(ctx context.Context, id api.ThreadID, cmd thread.Resume) (thread.Turn, error)
	Stop(ctx context.Context, id api.ThreadID, cmd thread.Stop) error
}

// Finder searches a project's documentation, and says why it found what. search.ErrNotIndexed says that there is no
// index that can be used; one is made then.
type Finder interface {
	Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error)
	Explain(ctx context.Context, project api.ProjectID, q search.Query, expected ...string) (search.Explanation, error)
	Names(ctx context.Context, project api.ProjectID, places []search.Place) ([]search.Named, error)
	TrialWeights() []search.TrialWeight
	Indexed(ctx context.Context, project api.ProjectID) error
}

// Models knows the models that can be asked, and what they would get. Name is the configured name that another one
// stands for; the empty one is the default.
type Models interface {
	Choices() []model.Choice
	Name(name string) string
	Prompt(name string, req model.Request) (model.Prompt, error)
}

// People knows who may sign in, who is signed in, and who did what. Tokens are known by their SHA-256.
type People interface {
	Organization(ctx context.Context, id api.OrgID) (name string, err error)

	AddPerson(ctx context.Context, p api.Person, password string) (api.Person, error)
	Person(ctx context.Context, id api.PersonID) (api.Person, error)
	// PersonByEmail also gives what is kept of the password.
	PersonByEmail(ctx context.Context, email string) (p api.Person, password string, err error)
	PersonByIdentity(ctx context.Context, issuer, subject string) (api.Person, error)
	Password(ctx context.Context, id api.PersonID) (string, error)
	SetPassword(ctx context.Context, id api.PersonID, password string) error
	RenamePerson(ctx context.Context, id api.PersonID, name string) error
	LinkIdentity(ctx context.Context, id api.PersonID, issuer, subject string) error
	DisablePerson(ctx context.Context, id api.PersonID, disable bool) error

	Members(ctx context.Context, org api.OrgID) ([]api.Member, error)
	SetRole(ctx context.Context, id api.PersonID, org api.OrgID, role api.Role) error
	RemoveMember(ctx context.Context, id api.PersonID, org api.OrgID) error

	Sessions
	Invitations
	AuditLog
}

// Sessions knows who is signed in.
type Sessions interface {
	AddSession(ctx context.Context, in api.SignIn, hash [32]byte) (api.SignIn, error)
	SessionByHash(ctx context.Context, hash [32]byte) (api.SignIn, error) // also one that has ended
	Sessions(ctx context.Context, q api.SessionQuery) ([]api.SignIn, error)
	EndSession(ctx context.Context, id api.SessionID) error
	EndSessionsOf(ctx context.Context, q api.SessionQuery) error
	// RenewSession gives a session another token; the one before is good for some seconds more.
	RenewSession(ctx context.Context, id api.SessionID, hash [32]byte, rights string) (bool, error)
	TouchSession(in api.SignIn, at time.Time) // records when it was last seen, some time later
}

// Invitations knows who was invited, and the links that let in once.
type Invitations interface {
	AddInvitation(ctx context.Context, i api.Invitation, hash [32]byte) (api.Invitation, error)
	InvitationByHash(ctx context.Context, hash [32]byte) (api.Invitation, error) // also one that is over
	Invitations(ctx context.Context, org api.OrgID) ([]api.Invitation, error)
	RevokeInvitation(ctx context.Context, org api.OrgID, id api.InvitationID) (api.Invitation, error)
	// AcceptInvitation lets in a person who is there already where p has an id, and else a new one.
	AcceptInvitation(ctx context.Context, hash [32]byte, p api.Person, password string) (api.Person, api.Invitation, error)

	AddLink(ctx context.Context, l api.Link, hash [32]byte) (api.Link, error)
	LinkByHash(ctx context.Context, hash [32]byte) (api.Link, error)
	UseLink(ctx context.Context, hash [32]byte) (api.Link, error)
}

// AuditLog knows who did what.
type AuditLog interface {
	Audit(ctx context.Context, e api.AuditEntry) error
	AuditLog(ctx context.Context, q api.AuditQuery) ([]api.AuditEntry, error)
	// AuditWords are the actions, and the people by id, that the log names.
	AuditWords(ctx context.Context, org api.OrgID) (actions []string, who map[string]string, err error)
}

// Provider signs people in by OpenID Connect.
type Provider interface {
	Name() string
	// Begin gives the address that the browser is sent to, and what it keeps meanwhile.
	Begin(ctx context.Context, redirect string) (address string, f oidc.Flow, err error)
	// Finish fails with oidc.ErrRefused where the answer is not to be trusted.
	Finish(ctx context.Context, redirect string, f oidc.Flow, answer url.Values) (oidc.Identity, error)
}

// System is the running server.
type System interface {
	Status() (health.Status, error)
	// Log is at most n records of the log of a level and above, the newest first. FollowLog tells of new ones until stop.
	Log(n int, level slog.Level) []health.Record
	FollowLog() (changed <-chan struct{}, stop func())
	// Retry recovers a job or thread in quarantine. An error says why it failed again; api.ErrNotFound that it is not in
	// quarantine.
	Retry(ctx context.Context, id string) error
	BackUp() (dir string, err error) // in the background
}

// Setup adds projects, changes them and looks at sources. What takes long is a task, which goes on when nobody watches.
type Setup interface {
	// Find says where a text leads that somebody has pasted: a place, or a site with the repositories that it links to.
	Find(ctx context.Context, text string) (ingest.Place, []ingest.Candidate, error)
	// Keep stores a secret that was entered and gives the name that a project refers to it by; Drop removes it.
	Keep(project api.ProjectID, secret string) (name string, err error)
	Drop(name string) error

	Look(p api.Project) (ingest.Task, error)
	Add(p api.Project) (ingest.Task, error)
	Change(p api.Project) (ingest.Task, error)
	Check(p api.Project) (ingest.Task, error)
	SetToken(p api.Project, secret string) (ingest.Task, error)
	// AddSource, SetSource and ReadSource read a further source; RemoveSource removes it with its index.
	AddSource(project api.ProjectID, s api.Source) (ingest.Task, error)
	SetSource(project api.ProjectID, s api.Source) (ingest.Task, error)
	ReadSource(project api.ProjectID, label string) (ingest.Task, error)
	RemoveSource(ctx context.Context, project api.ProjectID, label string) error
	// Preview reads the first pages of a web site, within seconds, to show how it would be read.
	Preview(ctx context.Context, s api.Source) (crawl.Report, error)
	// Upload reads a zip to its end; it becomes the pages of a source of the kind zip, which is added where there is none
	// of its label. A zip that is no zip, or too large, is an *api.InvalidError for the field zip.
	Upload(ctx context.Context, project api.ProjectID, s api.Source, zip io.Reader) (ingest.Task, error)
	// Discard forgets what was looked at and not added. Only what a fresh look has read may be discarded.
	Discard(ctx context.Context, id api.ProjectID) error
	Remove(ctx context.Context, id api.ProjectID) error
	// Rereads reports whether a change of settings has the documentation read again.
	Rereads(before, after api.Project) bool
	// NewWebhook gives the project's webhook a new secret; RemoveWebhook takes it away.
	NewWebhook(ctx context.Context, id api.ProjectID) (secret string, err error)
	RemoveWebhook(ctx context.Context, id api.ProjectID) error
	// Keys makes an admin key and an assistant key; their secrets are nowhere else.
	Keys(ctx context.Context, p api.Project) (admin, assistant string, err error)
	Limits() api.Limits // those of projects that set none
	// Models are the names that a project may choose among.
	Models() []ModelChoice
}

// A ModelChoice is a configured model.
type ModelChoice struct {
	Name    string
	Default bool
	State   string // in words; empty where there is nothing to say
}

// Counts are uses that several nodes count together, within bounds.
type Counts interface {
	Take(ctx context.Context, window time.Duration, bounds ...catalog.Bound) (wait time.Duration, err error)
	Give(ctx context.Context, names ...string) error
}

// Tasks are the long pieces of work on projects.
type Tasks interface {
	Task(id string) (ingest.Task, error)
	Newest(project api.ProjectID) (ingest.Task, bool)
	Watch(ctx context.Context, id string) <-chan struct{}
	Cancel(id string) error
	LastCheck(project api.ProjectID) (search.Check, time.Time, bool)
}

// Sources say how far the documentation was read, and have it read again.
type Sources interface {
	Shown(ctx context.Context, p api.Project) (SourceState, error)
	All(ctx context.Context, project api.ProjectID) ([]ingest.Source, error)  // the project's own first
	Updates(ctx context.Context, project api.ProjectID) ([]api.Update, error) // newest first
	Reindex(ctx context.Context, project api.ProjectID) (api.UpdateID, error)
	// LastDelivery is the last push that a code host has delivered, and Refused the last one that was refused.
	LastDelivery(ctx context.Context, project api.ProjectID) (api.Delivery, error)
	Refused(project api.ProjectID) (api.Delivery, bool)
	// TryWebhook sends a push as the code host would, and says what came of it.
	TryWebhook(ctx context.Context, p api.Project) ([]WebhookTry, error)
}

// A SourceState is the commit that answers are given from.
type SourceState struct {
	Commit  string // empty where there is no index
	Message string
	Author  string
	At      time.Time
	Address string    // where readers find the pages
	LeftOut string    // why the source is not read any more; empty as a rule
	Looked  time.Time // when the source was last looked at; zero where the server has not yet
	Failed  string    // why that failed
}

// A WebhookTry is what came of one push that was sent to try a webhook.
type WebhookTry struct {
	Address string
	From    string // in words: by its public address, or on this machine
	Status  int    // 0 where there was no answer
	Outcome string
	Good    bool
}

// An Answer is one as a reader sees it.
type Answer struct {
	Text    string
	Sources []AnswerSource
	Done    bool
	Failed  string // why there is none
}

// An AnswerSource is a page that an answer cites.
type AnswerSource struct{ Title, URL string }

// Figures tells how projects fare. The lists are some seconds old at most.
type Figures interface {
	// Watch tells that something listed of a project has changed, until stop.
	Watch(project api.ProjectID) (changed <-chan struct{}, stop func())
	Days(ctx context.Context, q catalog.AnalyticsQuery, zone *time.Location) ([]catalog.Day, error)
	Questions(ctx context.Context, q catalog.AnalyticsQuery) (list []api.QuestionRow, next string, err error)
	Jobs(ctx context.Context, q catalog.JobQuery) ([]api.JobRow, error)
	Pulls(ctx context.Context, project api.ProjectID, state api.PullState) ([]api.PullRequest, error)
	Keys(ctx context.Context, q catalog.KeyQuery) ([]api.Key, error)
	Updates(ctx context.Context, project api.ProjectID, most int) ([]api.Update, error)
}

// Projects tells how what projects stand on is: their index, their source, their model and their limits.
type Projects interface {
	Condition(ctx context.Context, p api.Project) (Condition, error)
}

// Usage counts what was asked and searched for.
type Usage interface {
	Totals(ctx context.Context, q catalog.AnalyticsQuery) (catalog.QuestionTotals, error)
	Days(ctx context.Context, q catalog.AnalyticsQuery, zone *time.Location) ([]catalog.Day, error)
	Callers(ctx context.Context, q catalog.AnalyticsQuery) ([]catalog.CallerCount, string, error)
	SearchesWithoutResult(ctx context.Context, q catalog.AnalyticsQuery) ([]catalog.SearchCount, string, error)
	CitedPages(ctx context.Context, q catalog.AnalyticsQuery) ([]catalog.CitedPage, string, error)
}

// Topics are what readers ask about, and what becomes of topics that the documentation lacks.
type Topics interface {
	Topics(ctx context.Context, project api.ProjectID, from, to time.Time) (tracker.Listing, error)
	Asked(ctx context.Context, project api.ProjectID, from, to time.Time) (tracker.Listing, error)
	// Find finds a topic by its id or that of a question in it.
	Find(ctx context.Context, project api.ProjectID, id string, now time.Time) (tracker.Topic, error)
	Nearest(ctx context.Context, project api.ProjectID, t *tracker.Topic) (*gaps.Near, error)
	SinceMerge(ctx context.Context, gap api.Gap) (tracker.Since, error)
	AskAgain(ctx context.Context, p api.Project, t *tracker.Topic) ([]tracker.Verdict, error)
	Open(ctx context.Context, p api.Project, id string, o tracker.Order) (api.Gap, error)
	Dismiss(ctx context.Context, project api.ProjectID, id, by, reason string) (api.Gap, error)
	Restore(ctx context.Context, project api.ProjectID, id string) (api.Gap, error)
}

// Indexes know the pages of the documentation.
type Indexes interface {
	Pages(ctx context.Context, project api.ProjectID) ([]search.PageName, error)
}

// Kinds tell what kind of model a name stands for: a local one is built in, and an agent with it writes no text itself.
type Kinds interface {
	Local(name string) bool
}

// Reports makes weekly reports and sends them.
type Reports interface {
	Make(ctx context.Context, p api.Project, w weekly.Week) (weekly.Report, error)
	CheckURL(address string) (problem string)
	Test(ctx context.Context, project api.ProjectID) (id string, err error)
}

// ReportStore keeps where weekly reports are sent, and what came of it.
type ReportStore interface {
	ReportHook(ctx context.Context, project api.ProjectID) (api.ReportHook, error)
	SetReportHook(ctx context.Context, h api.ReportHook) error
	RemoveReportHook(ctx context.Context, project api.ProjectID) error
	Reports(ctx context.Context, project api.ProjectID, limit int) ([]api.ReportDelivery, error)
}

// ReportSecrets keeps what deliveries are signed with.
type ReportSecrets interface {
	Keep(project api.ProjectID, text string) (name string, err error)
	Drop(name string) error
}

// Jobs finds or starts the actor of a job and asks it.
type Jobs interface {
	Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error)
}

// Work gives instructions to jobs: within the quotas, and once for a request's key.
type Work interface {
	Create(ctx context.Context, r startjob.Request) (job.Reply, error)
	FollowUp(ctx context.Context, id api.JobID, r startjob.Request) (job.Reply, error)
}

// Listings are what pages about the agent list.
type Listings interface {
	Jobs(ctx context.Context, q catalog.JobQuery) ([]api.JobRow, error)
	Askers(ctx context.Context, project api.ProjectID) ([]string, error) // who asked for jobs, by their ids
	Keys(ctx context.Context, q catalog.KeyQuery) ([]api.Key, error)
	PullsPage(ctx context.Context, q catalog.PullQuery) ([]api.PullRequest, error)
	Watch(project api.ProjectID) (changed <-chan struct{}, stop func()) // tells when one of them has changed

	Comments(ctx context.Context, pull string) ([]api.Comment, error)
	AddComment(ctx context.Context, c api.Comment) (api.Comment, error)
	RemoveComment(ctx context.Context, pull, author, id string) error
	TakeComments(ctx context.Context, pull, author, message string) ([]api.Comment, error)
	SettleComments(ctx context.Context, pull, message string, sent bool) error
}

// Automations start jobs by themselves.
type Automations interface {
	Automations(ctx context.Context, project api.ProjectID) ([]api.Automation, error)
	Automation(ctx context.Context, id api.AutomationID) (api.Automation, error)
	Runs(ctx context.Context, id api.AutomationID, limit int) ([]api.AutomationRun, error)
	// AddAutomation checks that the prompt file is there and that the cron line names times; what is wrong is an
	// api.InvalidError.
	AddAutomation(ctx context.Context, a api.Automation) (api.Automation, error)
	PauseAutomation(ctx context.Context, id api.AutomationID, paused bool) error
	RemoveAutomation(ctx context.Context, id api.AutomationID) error
	RunAutomation(ctx context.Context, id api.AutomationID) error // now, or as soon as may be
}

// Webhooks tell other systems what happens.
type Webhooks interface {
	Webhooks(ctx context.Context, project api.ProjectID) ([]api.WebhookStatus, error)
	Webhook(ctx context.Context, id string) (api.WebhookStatus, error)
	Deliveries(ctx context.Context, id string, limit int) ([]api.WebhookDelivery, error) // newest first
	Waiting(ctx context.Context, project api.ProjectID, kinds []api.EventKind, after uint64) (events int, err error)

	Add(ctx context.Context, project api.ProjectID, address string, kinds []api.EventKind) (w api.Webhook, secret string, err error)
	Remove(ctx context.Context, id string) error
	Pause(ctx context.Context, id string, off bool) error
	// Rotate makes a new secret. The old one goes on for a day, unless it is to end now.
	Rotate(ctx context.Context, id string, now bool) (secret string, err error)
	// Test and Replay send one event now, and say what came of it.
	Test(ctx context.Context, id string) (api.WebhookDelivery, error)
	Replay(ctx context.Context, id, event string) (api.WebhookDelivery, error)
	ReplaySince(ctx context.Context, id string, since time.Time) (events int, err error)
}
