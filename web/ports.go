package web

import (
	"context"
	"time"

	"docent/api"
	"docent/forge"
)

// Catalog knows projects and keys.
type Catalog interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	ProjectByDomain(ctx context.Context, domain string) (api.Project, error)
	Projects(ctx context.Context) ([]api.Project, error)
	KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error)
	TouchKey(id api.KeyID, at time.Time) // records the last use, some time later
}

// Pulls shows, merges and closes the built-in host's pull requests. A merge that cannot be done is
// forge.ErrMergeConflict or an api error.
type Pulls interface {
	Pull(ctx context.Context, id string) (api.PullRequest, error)
	Diff(ctx context.Context, id string) (forge.Diff, error)
	Merge(ctx context.Context, id string) (api.PullRequest, error)
	Close(ctx context.Context, id string) (api.PullRequest, error)
}

// People knows who may sign in, who is signed in, and who did what. Tokens are known by their SHA-256.
type People interface {
	Person(ctx context.Context, id api.PersonID) (api.Person, error)

	AddSession(ctx context.Context, in api.SignIn, hash [32]byte) (api.SignIn, error)
	SessionByHash(ctx context.Context, hash [32]byte) (api.SignIn, error) // also one that has ended
	EndSession(ctx context.Context, id api.SessionID) error
	// RenewSession gives a session another token; the one before is good for some seconds more.
	RenewSession(ctx context.Context, id api.SessionID, hash [32]byte, rights string) (bool, error)
	TouchSession(in api.SignIn, at time.Time) // records when it was last seen, some time later

	Audit(ctx context.Context, e api.AuditEntry) error
}
