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

// LanguageModels are those that answer and that do jobs.
type LanguageModels interface {
	List(ctx context.Context) (Models, error)
	// Save connects a model, or changes one. An empty key keeps the one that is stored.
	Save(ctx context.Context, m api.LanguageModel, key string, isNew bool) error
	Remove(ctx context.Context, name string) error
	// Names are the models that an endpoint lists; an api.InvalidError says why there are none. Old is the model that is changed,
	// whose stored key is used if none is entered.
	Names(ctx context.Context, m api.LanguageModel, key, old string) ([]string, error)
	// Test asks a model one question, and says what came of it.
	Test(ctx context.Context, name string) (found string, well bool, err error)
}

// Models are those of the configuration, and those that were connected.
type Models struct {
	List   []Model
	Chosen string // the model that the configuration has asked if none is named; empty if it leaves that open
}

// A Model is one of them.
type Model struct {
	api.LanguageModel
	Configured bool   // in the file or the environment
	Answers    bool   // it answers now if no model is named
	Agent      bool   // it does jobs now if no model is named
	Problem    string // why it is not used
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
