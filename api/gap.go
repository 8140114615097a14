package api

import (
	"encoding/json"
	"time"
)

// A GapID names a topic of questions that somebody acted on.
type GapID string

// Prefixes of the identifiers of gaps and of deliveries to webhooks.
const (
	GapPrefix    = "gap_"
	ReportPrefix = "rpt_"
)

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

// A ReportHook is the destination of a project's weekly report.
type ReportHook struct {
	Project   ProjectID `json:"project"`
	URL       string    `json:"url"`
	Secret    string    `json:"secret"`             // the name of the stored secret that deliveries are signed with
	TimeZone  string    `json:"timeZone,omitempty"` // in which a week begins; UTC if empty
	Off       bool      `json:"off,omitempty"`      // nothing is sent
	OffReason string    `json:"offReason,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// ReportStatus is the state of a delivery.
type ReportStatus string

const (
	ReportPending   ReportStatus = "pending" // it will be sent, also after a crash
	ReportDelivered ReportStatus = "delivered"
	ReportFailed    ReportStatus = "failed" // it was tried as often as it may be
)

// A ReportDelivery is one report on its way to a webhook.
type ReportDelivery struct {
	ID        string          `json:"id"` // what the receiver knows it by: the same in every attempt
	Project   ProjectID       `json:"project"`
	Week      string          `json:"week"` // such as 2026-W47
	Test      bool            `json:"test,omitempty"`
	Payload   json.RawMessage `json:"payload"`
	Status    ReportStatus    `json:"status"`
	Attempts  int             `json:"attempts"`
	Next      time.Time       `json:"next"`           // of the next attempt
	Code      int             `json:"code,omitempty"` // HTTP status of the last attempt
	Error     string          `json:"error,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	EndedAt   *time.Time      `json:"endedAt,omitempty"`
}
