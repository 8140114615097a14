package api

import (
	"encoding/json"
	"slices"
	"time"
)

// An EventKind is what an outgoing webhook tells of.
type EventKind string

const (
	EventJobEnded           EventKind = "job.ended"
	EventPullOpened         EventKind = "pull_request.opened"
	EventPullMerged         EventKind = "pull_request.merged"
	EventPullClosed         EventKind = "pull_request.closed"
	EventQuestionUnanswered EventKind = "question.unanswered"
	EventAnswerRatedDown    EventKind = "answer.rated_down"
	EventReportWeekly       EventKind = "report.weekly"
	EventContactRequested   EventKind = "contact.requested"
	// EventTest is sent when somebody asks for it, and is no event of the journal.
	EventTest EventKind = "webhook.test"
)

// EventKinds are those that a webhook may ask for.
var EventKinds = []EventKind{EventJobEnded, EventPullOpened, EventPullMerged, EventPullClosed, EventQuestionUnanswered,
	EventAnswerRatedDown, EventContactRequested, EventReportWeekly}

const (
	WebhookPrefix = "whk_"
	EventPrefix   = "evt_"
	ReportPrefix  = "rpt_" // of the events of weekly reports
)

// IssuesURL stands in place of a webhook's address where events become issues of the project's repository.
const IssuesURL = "code-host://issues"

// A Webhook is an address that a project's events are sent to.
type Webhook struct {
	ID      string      `json:"id"`
	Project ProjectID   `json:"project"`
	URL     string      `json:"url"`
	Events  []EventKind `json:"events"` // that are sent; all, later kinds as well, if empty
	// Secret is the name of the stored secret that deliveries are signed with. Until OldUntil they are signed with
	// OldSecret as well.
	Secret    string     `json:"secret,omitempty"`
	OldSecret string     `json:"oldSecret,omitempty"`
	OldUntil  *time.Time `json:"oldUntil,omitempty"`
	Off       bool       `json:"off,omitempty"` // nothing is sent; what happens meanwhile waits
	OffReason string     `json:"offReason,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

// Wants reports whether events of a kind are sent to the webhook.
func (w Webhook) Wants(kind EventKind) bool {
	return len(w.Events) == 0 || slices.Contains(w.Events, kind)
}

// Kinds are those of the events that are sent to the webhook.
func (w Webhook) Kinds() []EventKind {
	if len(w.Events) == 0 {
		return EventKinds
	}
	return w.Events
}

// A WebhookState is how far a webhook's receiver has come.
type WebhookState struct {
	Webhook  string     `json:"-"`
	Version  int64      `json:"-"`        // of what people do to the state, which an attempt that goes on must not undo
	Position uint64     `json:"position"` // of the last event that is done with; the next one is the first after it
	Next     time.Time  `json:"next,omitzero"`
	Event    string     `json:"event,omitempty"`    // that is tried
	Attempts int        `json:"attempts,omitempty"` // of that event
	Since    *time.Time `json:"since,omitempty"`    // the first of these
	Failures int        `json:"failures,omitempty"` // one after the other
	Failing  *time.Time `json:"failing,omitempty"`  // since an event was given up; nil while the receiver is well
	Missed   int        `json:"missed,omitempty"`   // events that were given up since then
	Code     int        `json:"code,omitempty"`     // of the last attempt
	Error    string     `json:"error,omitempty"`    // of the last attempt; empty if it went well
	Reached  *time.Time `json:"reached,omitempty"`  // when the receiver last took an event
}

// A WebhookStatus is a webhook with how far its receiver has come.
type WebhookStatus struct {
	Webhook
	State WebhookState `json:"state"`
}

// Condition is a webhook's condition in a word: ok, retrying, failing or off.
func (w WebhookStatus) Condition() string {
	switch {
	case w.Off:
		return "off"
	case w.State.Failing != nil:
		return "failing"
	case w.State.Failures > 0:
		return "retrying"
	}
	return "ok"
}

// A WebhookEvent is an event of a project as it is sent. It waits for the webhooks that want it, and is kept for a while.
type WebhookEvent struct {
	ID       string          `json:"id"` // what receivers know it by: the same in every attempt
	Position uint64          `json:"position"`
	Project  ProjectID       `json:"project"`
	Kind     EventKind       `json:"kind"`
	Stream   string          `json:"stream"` // of the journal, that it comes from
	At       time.Time       `json:"at"`
	Payload  json.RawMessage `json:"payload"`
}

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

const (
	DeliveryWaiting   DeliveryStatus = "waiting" // it was tried, and will be again
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryGivenUp   DeliveryStatus = "given up"
	DeliveryFailed    DeliveryStatus = "failed" // a test or a replay, which are tried once
)

// A WebhookDelivery is an event on its way to a webhook, after its last attempt.
type WebhookDelivery struct {
	Webhook  string         `json:"webhook"`
	Event    string         `json:"event"`
	Kind     EventKind      `json:"kind"`
	EventAt  time.Time      `json:"eventAt"`
	Status   DeliveryStatus `json:"status"`
	Attempts int            `json:"attempts"`
	At       time.Time      `json:"at"`               // of the last attempt
	Code     int            `json:"code,omitempty"`   // HTTP status of the answer; 0 if there was none
	Error    string         `json:"error,omitempty"`  // empty if the receiver took it
	Answer   string         `json:"answer,omitempty"` // its beginning
}
