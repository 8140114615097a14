package webhooks

import (
	"context"
	"log/slog"
	"time"

	"docent/api"
	"docent/internal/outbound"
	"docent/internal/task"
	"docent/persistence/journal"
)

// A Catalog keeps webhooks, the events that wait for them, and how deliveries went.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)

	AddWebhook(ctx context.Context, w api.Webhook, position uint64) error
	ChangeWebhook(ctx context.Context, id string, change func(*api.Webhook)) (api.Webhook, error)
	RemoveWebhook(ctx context.Context, id string) error
	Webhook(ctx context.Context, id string) (api.WebhookStatus, error)
	Webhooks(ctx context.Context, project api.ProjectID) ([]api.WebhookStatus, error)

	WebhookPosition(ctx context.Context) (pos uint64, begun bool, err error)
	AddEvents(ctx context.Context, events []api.WebhookEvent, gone []string, position uint64) error
	BeginEvents(ctx context.Context, position uint64) error
	RestartEvents(ctx context.Context, position uint64) error
	NewestEvents(ctx context.Context) (map[api.ProjectID]map[api.EventKind]uint64, error)
	NextEvent(ctx context.Context, project api.ProjectID, kinds []api.EventKind, after uint64) (api.WebhookEvent, error)
	Event(ctx context.Context, project api.ProjectID, id string) (api.WebhookEvent, error)
	TrimEvents(ctx context.Context, before time.Time, most int) (lost map[string]int, err error)

	SaveAttempt(ctx context.Context, s api.WebhookState, d *api.WebhookDelivery) error
	SaveSingle(ctx context.Context, d api.WebhookDelivery) error
	Rewind(ctx context.Context, id string, since time.Time) (int, error)
}

// Streams are those of the journal.
type Streams interface {
	Load(stream string) (journal.Recovered, error)
}

// A Log is a journal.Follower.
type Log interface {
	Position() uint64
	End() (uint64, error)
	Trimmed() uint64
	Changed() <-chan struct{}
	Ack(pos uint64)
	Log(pos uint64, wanted func(eventType string) bool, yield func(journal.Logged) bool) error
}

// A Sender sends messages where they may go.
type Sender interface {
	CheckURL(address string) (problem string)
	Send(ctx context.Context, m outbound.Message) (outbound.Answer, error)
}

// A Tracker opens issues in projects' repositories, one for each key.
type Tracker interface {
	OpenIssue(ctx context.Context, p api.Project, key, title, body string, since time.Time) (link string, err error)
}

// Secrets are what messages are signed with, by their names.
type Secrets interface {
	Keep(project api.ProjectID, text string) (name string, err error)
	Read(name string) (string, error)
	Drop(name string) error
}

// Deps is what deliveries need of the outside. All of it is required but PublicURL.
type Deps struct {
	Manager
	Streams   Streams
	Events    Log
	PublicURL string // where people reach the pages; events have no links where it is empty
	Tasks     task.Starter
}

// A Manager changes webhooks and sends single events for people, also if no server runs.
type Manager struct {
	Catalog Catalog
	Sender  Sender
	Secrets Secrets
	Tracker Tracker
	Now     func() time.Time
	Log     *slog.Logger
}
