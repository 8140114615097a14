package people

import (
	"context"
	"net/url"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/web/oidc"
)

// Catalog is what the pages about people use of the catalog.
type Catalog interface {
	// AcceptInvitation lets in an existing person if p has an id, otherwise a new one.
	AcceptInvitation(ctx context.Context, hash [32]byte, p api.Person, password, verified string) (api.Person, api.Invitation,
		error)
	AddInvitation(ctx context.Context, i api.Invitation, hash [32]byte) (api.Invitation, error)
	AddLink(ctx context.Context, l api.Link, hash [32]byte) (api.Link, error)
	AddPerson(ctx context.Context, p api.Person, password string) (api.Person, error)
	DisablePerson(ctx context.Context, id api.PersonID, disable bool) error
	EndSession(ctx context.Context, id api.SessionID) error
	EndSessionsOf(ctx context.Context, q api.SessionQuery) error
	InvitationByHash(ctx context.Context, hash [32]byte) (api.Invitation, error) // also one that is over
	Invitations(ctx context.Context, org api.OrgID) ([]api.Invitation, error)
	KeyByHash(ctx context.Context, hash [32]byte) (api.Key, error)
	LinkByHash(ctx context.Context, hash [32]byte) (api.Link, error)
	LinkIdentity(ctx context.Context, id api.PersonID, issuer, subject string) error
	Links(ctx context.Context) ([]api.Link, error) // those that can still be used
	Members(ctx context.Context, org api.OrgID) ([]api.Member, error)
	Organization(ctx context.Context, id api.OrgID) (name string, err error)
	Password(ctx context.Context, id api.PersonID) (string, error)
	Person(ctx context.Context, id api.PersonID) (api.Person, error)
	// PersonByEmail also gives what is kept of the password.
	PersonByEmail(ctx context.Context, email string) (p api.Person, password string, err error)
	PersonByIdentity(ctx context.Context, issuer, subject string) (api.Person, error)
	Projects(ctx context.Context) ([]api.Project, error)
	RemoveMember(ctx context.Context, id api.PersonID, org api.OrgID) error
	RenamePerson(ctx context.Context, id api.PersonID, name string) error
	RevokeInvitation(ctx context.Context, org api.OrgID, id api.InvitationID) (api.Invitation, error)
	RevokeLink(ctx context.Context, id api.LinkID) error
	Sessions(ctx context.Context, q api.SessionQuery) ([]api.SignIn, error)
	SetOperator(ctx context.Context, id api.PersonID, operator bool) error
	SetPassword(ctx context.Context, id api.PersonID, password string) error
	SetRole(ctx context.Context, id api.PersonID, org api.OrgID, role api.Role) error
	TouchKey(id api.KeyID, at time.Time) // records the last use, some time later
	UseLink(ctx context.Context, hash [32]byte) (api.Link, error)
}

// Counts are uses that several nodes count together, within bounds.
type Counts interface {
	Give(ctx context.Context, names ...string) error
	Take(ctx context.Context, window time.Duration, bounds ...catalog.Bound) (wait time.Duration, err error)
}

// Provider signs people in by OpenID Connect.
type Provider interface {
	// Begin gives the address that the browser is sent to, and what it keeps meanwhile.
	Begin(ctx context.Context, redirect string) (address string, f oidc.Flow, err error)
	// Finish fails with oidc.ErrRefused if the answer is not to be trusted.
	Finish(ctx context.Context, redirect string, f oidc.Flow, answer url.Values) (oidc.Identity, error)
	Name() string
}
