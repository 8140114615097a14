package api

import (
	"path"
	"strings"
	"time"
)

// An AutomationID names an automation.
type AutomationID string

// An Automation starts work of the agent by itself: at times, or when something was pushed.
type Automation struct {
	ID      AutomationID `json:"id"`
	Project ProjectID    `json:"project"`
	Name    string       `json:"name"`
	// path of the file with the instruction, in the documentation's repository
	Prompt     string `json:"prompt"`
	Cron       string `json:"cron,omitempty"`       // when; five fields
	TimeZone   string `json:"timeZone,omitempty"`   // of Cron; UTC if empty
	OnPush     bool   `json:"onPush,omitempty"`     // when the documentation has a new commit
	Repository string `json:"repository,omitempty"` // when this code repository, OWNER/NAME, is pushed to
	Branch     string `json:"branch,omitempty"`     // of that repository; its default branch if empty
	// It starts no job: pull requests of Repository (into Branch, or any) get a comment that names the pages they concern.
	Check bool `json:"check,omitempty"`
	// How long after a push to Repository further ones are waited for, such as 30m: they are one run.
	Window    string    `json:"window,omitempty"`
	DailyCap  int       `json:"dailyCap"`        // runs in a day, UTC
	Draft     bool      `json:"draft,omitempty"` // pull requests are opened as drafts
	CreatedAt time.Time `json:"createdAt"`
	Paused    bool      `json:"paused,omitempty"` // it runs only when started by hand

	// What has become of it.
	Next     *time.Time     `json:"next,omitempty"`     // when Cron is due
	SeenCode string         `json:"seenCode,omitempty"` // the commit of Repository that its last run was about
	Seen     string         `json:"seen,omitempty"`     // the documentation's commit that was looked at last
	Job      JobID          `json:"job,omitempty"`      // of the last run
	Last     *AutomationRun `json:"last,omitempty"`
}

// AutomationTrigger is why an automation runs.
type AutomationTrigger string

const (
	TriggerSchedule AutomationTrigger = "schedule"
	TriggerPush     AutomationTrigger = "push"
	TriggerManual   AutomationTrigger = "manual"
	TriggerPull     AutomationTrigger = "pull_request"
)

// RunStatus is the state of a run of an automation.
type RunStatus string

const (
	RunAccepted RunStatus = "accepted" // it will be carried out, also after a crash
	RunStarted  RunStatus = "started"  // a job has the instruction
	RunSkipped  RunStatus = "skipped"  // the day's runs were used up, or too many pull requests are open
	RunChecked  RunStatus = "checked"  // a pull request was looked at; Reason says what came of it
	RunFailed   RunStatus = "failed"
)

// An AutomationRun is one time that an automation was due.
type AutomationRun struct {
	Key        string            `json:"key"` // what it is due for: a time, or a commit. There is no second run for it
	Automation AutomationID      `json:"automation"`
	Project    ProjectID         `json:"project"`
	Trigger    AutomationTrigger `json:"trigger"`
	Repository string            `json:"repository,omitempty"` // that was pushed to, if it is not the documentation's
	Commit     string            `json:"commit,omitempty"`
	Pull       int               `json:"pull,omitempty"` // number of the pull request of Repository that is checked
	At         time.Time         `json:"at"`
	Status     RunStatus         `json:"status"`
	Reason     string            `json:"reason,omitempty"` // why it was skipped or has failed
	Job        JobID             `json:"job,omitempty"`
	FollowUp   bool              `json:"followUp,omitempty"` // the job was there before
}

// MaxWindow bounds how long an automation waits for further pushes.
const MaxWindow = 24 * time.Hour

// Wait is how long after a push further ones are waited for.
func (a Automation) Wait() time.Duration {
	d, _ := time.ParseDuration(a.Window)
	return min(max(d, 0), MaxWindow)
}

// MaxDailyCap bounds how often an automation may run in a day.
const MaxDailyCap = 1000

// Validate checks what can be checked without looking outside. Whether Cron can be read is for who keeps the time.
func (a Automation) Validate() error {
	var out problems
	if problem := projectIDProblem(string(a.Project)); problem != "" {
		out.add("project", "%s", problem)
	}
	if strings.TrimSpace(a.Name) == "" {
		out.add("name", "is required")
	}
	out.text("name", a.Name, 100)
	if a.Check && (a.Repository == "" || a.Cron != "" || a.OnPush || a.Draft) {
		out.add("check", "goes with a code repository alone: it starts no job")
	}
	switch p := a.Prompt; {
	case a.Check && p == "":
	case a.Check:
		out.add("prompt", "is not for a check, which starts no job")
	case p == "":
		out.add("prompt", "is required: the path of a file in the documentation's repository")
	case strings.HasPrefix(p, "/"), strings.Contains(p, "\\"), path.Clean(p) != p, p == ".", p == "..",
		strings.HasPrefix(p, "../"):
		out.add("prompt", "must be a path inside the repository, with slashes between its parts")
	}
	out.text("prompt", a.Prompt, 500)
	a.triggers(&out)
	if a.DailyCap < 1 || a.DailyCap > MaxDailyCap {
		out.add("dailyCap", "must be a whole number from 1 to %d", MaxDailyCap)
	}
	return out.err()
}

// triggers checks what an automation runs on.
func (a Automation) triggers(out *problems) {
	if a.Cron == "" && !a.OnPush && a.Repository == "" {
		out.add("cron", "is required, unless it runs on a push")
	}
	if a.Cron == "" && a.TimeZone != "" {
		out.add("timeZone", "belongs to a cron line")
	}
	if a.Repository != "" && (!validRepository(a.Repository) || !strings.Contains(a.Repository, "/")) {
		out.add("repository", "must have the form OWNER/NAME")
	}
	switch {
	case a.Branch != "" && a.Repository == "":
		out.add("branch", "belongs to a code repository")
	case a.Branch != "" && !ValidBranch(a.Branch):
		out.add("branch", "is not a branch name that git accepts")
	}
	if d, err := time.ParseDuration(a.Window); a.Window != "" && (err != nil || d < 0 || d > MaxWindow || a.Repository == "" || a.Check) {
		out.add("window", "must be a time of at most 24h, such as 30m, and belongs to pushes of a code repository")
	}
}

// A Push is what a code host says of a push to one branch.
type Push struct {
	Repository string // OWNER/NAME
	Branch     string
	Default    bool   // it is the repository's default branch
	Commit     string // the branch's current head
}
