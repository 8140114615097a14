package api

import (
	"cmp"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"docent/internal/brief"
)

// IDs of people and of what lets them in.
type (
	PersonID     string
	SessionID    string
	InvitationID string
	LinkID       string
	AuditID      string
)

// Prefixes of these.
const (
	PersonPrefix     = "usr_"
	SessionPrefix    = "ses_"
	InvitationPrefix = "inv_"
	LinkPrefix       = "lnk_"
	AuditPrefix      = "aud_"
)

// A Role says what a person may do in an organization. Each role may do what the one before it may.
type Role string

// The roles, the least of them first.
const (
	RoleViewer Role = "viewer" // reads everything but secrets
	RoleEditor Role = "editor" // also gives work, merges and closes
	RoleOwner  Role = "owner"  // also keys, settings and people
)

// Roles are all roles, the least first.
var Roles = []Role{RoleViewer, RoleEditor, RoleOwner}

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return slices.Contains(Roles, r) }

// AtLeast reports whether r may do whatever the other one may. What is no role may nothing.
func (r Role) AtLeast(other Role) bool {
	return r.Valid() && slices.Index(Roles, r) >= slices.Index(Roles, other)
}

// A Person signs in to the console. What is kept of a password is not part of it.
type Person struct {
	ID          PersonID       `json:"id"`
	Email       string         `json:"email"`
	Name        string         `json:"name"`
	HasPassword bool           `json:"hasPassword"`
	Issuer      string         `json:"issuer,omitempty"`   // of the OpenID Connect provider that knows this person
	Subject     string         `json:"subject,omitempty"`  // the person's name at that provider
	Roles       map[OrgID]Role `json:"roles"`              // shared with other callers: read only
	Home        OrgID          `json:"-"`                  // where this person was first; empty if in several from the start
	Operator    bool           `json:"operator,omitempty"` // runs the server; follows from no role
	CreatedAt   time.Time      `json:"createdAt"`
	DisabledAt  *time.Time     `json:"disabledAt,omitempty"` // since when this person may not sign in
	SeenAt      *time.Time     `json:"seenAt,omitempty"`     // some seconds late
}

// CleanEmail is the spelling under which an email address is kept and found.
func CleanEmail(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// Validate says everything that is wrong with a person who is to be stored: an *InvalidError, or nil.
func (p Person) Validate() error {
	var found problems
	if problem := emailProblem(p.Email); problem != "" {
		found.add("email", "%s", problem)
	}
	if strings.TrimSpace(p.Name) == "" {
		found.add("name", "say how others call you")
	}
	found.text("name", p.Name, 100)
	for org, role := range p.Roles {
		if !role.Valid() {
			found.add("roles["+string(org)+"]", "must be viewer, editor or owner")
		}
	}
	return found.err()
}

// emailProblem says why an address cannot be one, or nothing.
func emailProblem(s string) string {
	const form = "must be an email address, such as maria@example.com"
	at, err := mail.ParseAddress(s)
	if err != nil || at.Name != "" || at.Address != s || len(s) > 254 || !utf8.ValidString(s) {
		return form
	}
	if s != CleanEmail(s) || strings.ContainsAny(s, " \"<>") {
		return form
	}
	return ""
}

// A Member is a person in an organization.
type Member struct {
	Person
	Role  Role      `json:"role"`
	Since time.Time `json:"since"`
}

// A SessionKind says who a session belongs to.
type SessionKind string

// Sessions belong to a person, to an admin key, or to a visitor with a one-time link that the operator printed. That of a
// client is no browser's: a person, or a reader of a project, has let a program in by OAuth.
const (
	SessionOfPerson SessionKind = "person"
	SessionOfKey    SessionKind = "key"
	SessionOfLink   SessionKind = "link"
	SessionOfClient SessionKind = "client"
)

// A SignIn is a browser that is signed in. Of its token only the hash is stored.
type SignIn struct {
	ID        SessionID     `json:"id"`
	Kind      SessionKind   `json:"kind"`
	Person    PersonID      `json:"person,omitempty"`
	Key       []byte        `json:"-"`                // the hash of the key's secret; of a client that a reader let in, that of the reader's name
	Link      LinkID        `json:"link,omitempty"`   // which link it came by
	Rights    string        `json:"rights,omitempty"` // those for which its token was made
	Client    string        `json:"client,omitempty"` // address
	Agent     string        `json:"agent,omitempty"`  // as the browser names itself
	How       string        `json:"how,omitempty"`    // password, key, link, invitation, or the provider's name
	CreatedAt time.Time     `json:"createdAt"`
	SeenAt    time.Time     `json:"seenAt"` // some seconds late
	ExpiresAt time.Time     `json:"expiresAt"`
	Idle      time.Duration `json:"idle"` // it ends when it was not seen for so long
	EndedAt   *time.Time    `json:"endedAt,omitempty"`
}

// Live reports whether a session is good at a time.
func (s SignIn) Live(now time.Time) bool {
	return s.EndedAt == nil && now.Before(s.ExpiresAt) && now.Before(s.SeenAt.Add(s.Idle))
}

// A SessionQuery says whose sessions are meant: a person's, those of a key by the hash of its secret, or those that began
// with the operator's one-time links.
type SessionQuery struct {
	Person PersonID
	Key    []byte
	Links  bool
	Except SessionID // not this one
}

// An Invitation lets one person into an organization, once.
type Invitation struct {
	ID        InvitationID `json:"id"`
	Org       OrgID        `json:"org"`
	Role      Role         `json:"role"`
	Email     string       `json:"email,omitempty"` // who it is for; if empty, anybody who has it
	By        string       `json:"by"`              // who invites, for people
	ByID      PersonID     `json:"byId,omitempty"`  // if a person does: the invitation ends with their right to invite
	CreatedAt time.Time    `json:"createdAt"`
	ExpiresAt time.Time    `json:"expiresAt"`
	UsedAt    *time.Time   `json:"usedAt,omitempty"`
	UsedBy    PersonID     `json:"usedBy,omitempty"`
	RevokedAt *time.Time   `json:"revokedAt,omitempty"`
}

// Open reports whether an invitation can still be accepted.
func (i Invitation) Open(now time.Time) bool {
	return i.UsedAt == nil && i.RevokedAt == nil && now.Before(i.ExpiresAt)
}

// Validate says everything that is wrong with an invitation that is to be made: an *InvalidError, or nil.
func (i Invitation) Validate() error {
	var found problems
	if !i.Role.Valid() {
		found.add("role", "must be viewer, editor or owner")
	}
	if i.Email != "" {
		if problem := emailProblem(i.Email); problem != "" {
			found.add("email", "%s", problem)
		}
	}
	return found.err()
}

// A Link lets its holder in, once: as the operator, or as the person that it names.
type Link struct {
	ID        LinkID     `json:"id"`
	Person    PersonID   `json:"person,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"`
	UsedAt    *time.Time `json:"usedAt,omitempty"`
}

// An AuditEntry says who did what. Entries are only added.
type AuditEntry struct {
	ID      AuditID   `json:"id"`
	Org     OrgID     `json:"org"`
	Project ProjectID `json:"project,omitempty"`
	At      time.Time `json:"at"`
	WhoID   string    `json:"whoId"` // a person's or a key's id; "link" or "command line" of the operator
	Who     string    `json:"who"`   // their name at that time
	Action  string    `json:"action"`
	Object  string    `json:"object,omitempty"` // what it was done to
	Detail  string    `json:"detail,omitempty"`
	Client  string    `json:"client,omitempty"` // address
}

// An AuditQuery says which entries to list, the youngest first. What is empty does not matter.
type AuditQuery struct {
	Org     OrgID
	Project ProjectID
	WhoID   string
	Action  string
	From    time.Time // not before
	Until   time.Time // before
	After   AuditID   // older than this one: the last of the page before
	Limit   int
}

// printable is a text from outside in a form that every database keeps.
func printable(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return brief.Bytes(strings.ReplaceAll(s, "\x00", "\uFFFD"), most, "…")
}

// Clean makes an entry fit to be stored, whatever it was made of.
func (e AuditEntry) Clean() AuditEntry {
	e.WhoID, e.Who = printable(e.WhoID, 100), printable(cmp.Or(e.Who, e.WhoID), 200)
	e.Action, e.Object = printable(e.Action, 100), printable(e.Object, 500)
	e.Detail, e.Client = printable(e.Detail, 2000), printable(e.Client, 100)
	return e
}

// Clean makes what a browser says of itself fit to be stored.
func (s SignIn) Clean() SignIn {
	s.Client, s.Agent, s.How = printable(s.Client, 100), printable(s.Agent, 300), printable(s.How, 100)
	return s
}
