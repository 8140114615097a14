package system

import (
	"context"
	"log/slog"

	"docent/api"
	"docent/internal/health"
)

// Catalog is what the pages about the server use of the catalog.
type Catalog interface {
	AuditLog(ctx context.Context, q api.AuditQuery) ([]api.AuditEntry, error)
	// AuditWords are the actions, and the people by id, that the log names.
	AuditWords(ctx context.Context, org api.OrgID) (actions []string, who map[string]string, err error)
	EndSession(ctx context.Context, id api.SessionID) error
	Links(ctx context.Context) ([]api.Link, error) // those that can still be used
	Organization(ctx context.Context, id api.OrgID) (name string, err error)
	Person(ctx context.Context, id api.PersonID) (api.Person, error)
	Projects(ctx context.Context) ([]api.Project, error)
	RevokeLink(ctx context.Context, id api.LinkID) error
	Sessions(ctx context.Context, q api.SessionQuery) ([]api.SignIn, error)
}

// System is the running server.
type System interface {
	BackUp() (dir string, err error) // in the background
	FollowLog() (changed <-chan struct{}, stop func())
	// Log is at most n records of the log of a level and above, the newest first. FollowLog tells of new ones until stop.
	Log(n int, level slog.Level) []health.Record
	// Retry recovers a job or thread in quarantine. An error says why it failed again; api.ErrNotFound that it is not in
	// quarantine.
	Retry(ctx context.Context, id string) error
	Status() (health.Status, error)
}
