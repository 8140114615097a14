package api

import "time"

// A GapID names a topic of questions that somebody acted on.
type GapID string

// GapPrefix begins the identifiers of gaps.
const GapPrefix = "gap_"

// GapState is the state of a gap.
type GapState string

const (
	GapOpen      GapState = "open"
	GapOpening   GapState = "opening"   // a job is about to be opened: it may be there already
	GapJob       GapState = "job"       // a job has it
	GapMerged    GapState = "merged"    // what the job changed was merged
	GapDismissed GapState = "dismissed" // somebody decided that nothing is to be done
)

// A Gap is a topic that the documentation lacks and that somebody acted on: what stays of it while questions come and go.
type Gap struct {
	ID       GapID              `json:"id"`
	Project  ProjectID          `json:"project"`
	State    GapState           `json:"state"`
	Anchor   TurnID             `json:"anchor"`   // a question of the topic, by which it was known before
	Question string             `json:"question"` // the most telling one
	Words    []string           `json:"words,omitempty"`
	Terms    map[string]float64 `json:"terms"` // by which later questions find it

	Attempt  int        `json:"attempt,omitempty"` // how many jobs were opened for it
	Prompt   string     `json:"prompt,omitempty"`  // of the last one
	Job      JobID      `json:"job,omitempty"`
	Branch   string     `json:"branch,omitempty"` // of that job
	OpenedBy string     `json:"openedBy,omitempty"`
	OpenedAt *time.Time `json:"openedAt,omitempty"`
	MergedAt *time.Time `json:"mergedAt,omitempty"`

	DismissedBy string     `json:"dismissedBy,omitempty"`
	DismissedAt *time.Time `json:"dismissedAt,omitempty"`
	Reason      string     `json:"reason,omitempty"` // of the dismissal

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}
