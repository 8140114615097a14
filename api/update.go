package api

import "time"

// An UpdateID names one run that re-indexes a project's documentation.
type UpdateID string

// UpdateStatus is the state of such a run.
type UpdateStatus string

const (
	UpdateQueued     UpdateStatus = "queued"
	UpdateInProgress UpdateStatus = "in_progress"
	UpdateSuccess    UpdateStatus = "success"
	UpdateFailure    UpdateStatus = "failure"
)

// An Update is one run that reads a project's documentation again and indexes what changed.
type Update struct {
	ID        UpdateID     `json:"id"`
	Project   ProjectID    `json:"project"`
	Status    UpdateStatus `json:"status"`
	Summary   string       `json:"summary,omitempty"` // how it went, for a person
	Logs      []string     `json:"logs,omitempty"`
	CreatedAt time.Time    `json:"createdAt"`
	StartedAt *time.Time   `json:"startedAt,omitempty"`
	EndedAt   *time.Time   `json:"endedAt,omitempty"`
	Attempts  int          `json:"attempts,omitempty"` // how often it was begun
	Commit    UpdateCommit `json:"commit"`
}

// Open reports whether the run has yet to come to its end.
func (u Update) Open() bool { return u.Status == UpdateQueued || u.Status == UpdateInProgress }

// An UpdateCommit is the state of the documentation that an update came to, and which files are other than before.
// Paths are relative to the documentation folder.
type UpdateCommit struct {
	SHA      string   `json:"sha,omitempty"` // empty until it is known
	Ref      string   `json:"ref,omitempty"`
	Message  string   `json:"message,omitempty"`
	Added    []string `json:"added,omitempty"`
	Modified []string `json:"modified,omitempty"`
	Removed  []string `json:"removed,omitempty"`
}
