package api

import "time"

// JobStatus is the state of a job.
type JobStatus string

const (
	JobActive    JobStatus = "active"
	JobCompleted JobStatus = "completed"
	JobFailed    JobStatus = "failed"
)

// JobSource is the repository and branch that a job starts from.
type JobSource struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref"`
}

// Outcome says for programs what became of an instruction that has ended well.
type Outcome string

const (
	OutcomeChanged       Outcome = "changed"        // the pages were changed; in a dry run, they would be
	OutcomeNothingToDo   Outcome = "nothing_to_do"  // it was understood, and there was nothing to change
	OutcomeNotUnderstood Outcome = "not_understood" // no part of it was carried out: say it in other words
	// it was understood and cannot be carried out as it stands: say what the message asks for
	OutcomeNeedsDetail Outcome = "needs_detail"
)

// A Job is the agent's work on one request, as version 2 of the API shows it.
type Job struct {
	ID         JobID      `json:"id"`
	Status     JobStatus  `json:"status"`
	Source     JobSource  `json:"source"`
	Model      string     `json:"model"`
	PRLink     *string    `json:"prLink"`
	CreatedAt  time.Time  `json:"createdAt"`
	ArchivedAt *time.Time `json:"archivedAt"`
	// Additions that a client may ignore.
	Title     string    `json:"title"`
	Message   string    `json:"message"`
	UpdatedAt time.Time `json:"updatedAt"`
	// Outcome is of the last instruction that has ended; empty while the job is active, if it has failed, and in jobs
	// of before it was kept.
	Outcome Outcome `json:"outcome,omitempty"`
}

// HaltReason says why a session of version 1 stands still. The API spells the field "haultReason".
type HaltReason string

const (
	HaltCompleted     HaltReason = "completed"
	HaltMisconfigured HaltReason = "github_missconfigured"
	HaltError         HaltReason = "error"
	HaltProcessing    HaltReason = "processing"
	HaltInterrupted   HaltReason = "interrupted"
)

// A Todo is one thing on a job's list.
type Todo struct {
	ID       string `json:"id"`
	Content  string `json:"content"`
	Status   string `json:"status"`   // pending, in_progress, completed, cancelled
	Priority string `json:"priority"` // high, medium, low
}

// A Session is a job as the deprecated version 1 of the API shows it. The spelling is the specification's.
type Session struct {
	SessionID       JobID      `json:"sessionId"`
	Subdomain       string     `json:"subdomain"`
	Branch          string     `json:"branch"`
	Haulted         bool       `json:"haulted"`
	HaultReason     HaltReason `json:"haultReason"`
	PullRequestLink string     `json:"pullRequestLink"`
	MessageToUser   string     `json:"messageToUser"`
	Todos           []Todo     `json:"todos"`
	UserID          string     `json:"userId"`
	Title           string     `json:"title"`
	CreatedAt       time.Time  `json:"createdAt"`
}

// A JobRow is one line of the job listings: all that both versions of the API show, and the journal position that it
// reflects.
type JobRow struct {
	Project  ProjectID
	Job      Job
	Branch   string
	Halt     HaltReason
	Todos    []Todo
	User     string // id of the key that created the job
	Archived bool
	Seq      uint64 // the job's last event that this row reflects
	Spent    Spent  `json:",omitzero"`
	DryRun   bool   `json:",omitempty"` // nothing is published
	// Pull is the state of the job's newest pull request, as far as the job has heard; empty if there is none.
	Pull PullState `json:",omitempty"`
	// Joined says that the pull request is another job's, which changed the same.
	Joined bool `json:",omitempty"`
}

// Spent is what a job has used of language models, over all its instructions.
type Spent struct {
	Steps  int           `json:"steps,omitempty"` // answers
	Tokens int64         `json:"tokens,omitempty"`
	Cost   int64         `json:"cost,omitempty"` // millionths of a US dollar
	Time   time.Duration `json:"time,omitempty"` // of work, in nanoseconds
}

// Session is the row in the form of version 1.
func (r JobRow) Session(subdomain string) Session {
	s := Session{
		SessionID: r.Job.ID, Subdomain: subdomain, Branch: r.Branch, Haulted: r.Job.Status != JobActive,
		HaultReason: r.Halt, MessageToUser: r.Job.Message, Todos: r.Todos, UserID: r.User,
		Title: r.Job.Title, CreatedAt: r.Job.CreatedAt,
	}
	if r.Job.PRLink != nil {
		s.PullRequestLink = *r.Job.PRLink
	}
	if s.Todos == nil {
		s.Todos = []Todo{}
	}
	return s
}

// PullState is the state of a pull request.
type PullState string

const (
	PullOpen   PullState = "open"
	PullMerged PullState = "merged"
	PullClosed PullState = "closed"
)

// A PullRequest of the built-in code host. Its ID cannot be guessed: anyone with the link may read it.
type PullRequest struct {
	ID        string     `json:"id"`
	Project   ProjectID  `json:"project"`
	Number    int        `json:"number"` // counts up within the project
	Job       JobID      `json:"job,omitempty"`
	Head      string     `json:"head"` // branch with the changes
	Base      string     `json:"base"` // branch that they are meant for
	Title     string     `json:"title"`
	Body      string     `json:"body"` // Markdown
	Draft     bool       `json:"draft"`
	State     PullState  `json:"state"`
	MergedAs  string     `json:"mergedAs,omitempty"` // commit on the base branch
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
	ClosedAt  *time.Time `json:"closedAt,omitempty"`

	// Change is a digest of what it changes: equal changes have the same one. It is empty if nobody has computed it.
	Change string `json:"-"`
}
