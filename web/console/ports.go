package console

import (
	"context"
	"net/netip"
	"time"

	"docent/actors/thread"
	"docent/api"
)

// Catalog is what the console uses of the catalog: projects, sessions with whom they belong to, and the audit log.
type Catalog interface {
	AddSession(ctx context.Context, in api.SignIn, hash [32]byte) (api.SignIn, error)
	Audit(ctx context.Context, e api.AuditEntry) error
	EndSession(ctx context.Context, id api.SessionID) error
	KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error)
	Person(ctx context.Context, id api.PersonID) (api.Person, error)
	ProjectByDomain(ctx context.Context, domain string) (api.Project, error)
	// RenewSession gives a session another token; the one before is good for some seconds more.
	RenewSession(ctx context.Context, id api.SessionID, hash [32]byte, rights string) (bool, error)
	SessionByHash(ctx context.Context, hash [32]byte) (api.SignIn, error) // also one that has ended
	TouchSession(in api.SignIn, at time.Time)                             // records when it was last seen, some time later
}

// Readers puts a question as readers do: in the same queue and under the same quotas, but for those of keys. It names the
// turn, and if no thread is named the question opens one.
type Readers interface {
	Put(ctx context.Context, client netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn, error)
}

// Tries are the threads that the playground has asked in. Those that another node runs can be read here.
type Tries interface {
	Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error)
	Resume(ctx context.Context, id api.ThreadID, cmd thread.Resume) (thread.Turn, error)
	Stop(ctx context.Context, id api.ThreadID, cmd thread.Stop) error
}
