package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"docent/api"
)

// How long sessions are good, and after how long without a visit they end.
const (
	personLife, personIdle = 30 * 24 * time.Hour, 7 * 24 * time.Hour
	keyLife                = 2 * time.Hour
	linkLife, linkIdle     = 12 * time.Hour, 2 * time.Hour
)

const (
	sessionCookie = "docent_session"
	visitCookie   = "docent_visit" // before sign-in: what the sign-in form's token belongs to
)

// cookieName is the name under which the browser keeps a cookie. Over TLS it has the prefix with which the browser
// takes it from this host alone, so that no other host of the same domain can plant one.
func (v *visit) cookieName(name string) string {
	if v.tls() {
		return "__Host-" + name
	}
	return name
}

// tls reports whether browsers reach this service over TLS.
func (v *visit) tls() bool { return v.secure || strings.HasPrefix(v.server.PublicURL, "https://") }

// cookie is what the browser keeps under a name; empty where it keeps nothing.
func (v *visit) cookie(name string) string {
	c, err := v.Req.Cookie(v.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// recognise finds out who is signed in, if somebody is. The session, and whoever it belongs to, is looked up on every
// visit, so that it ends at once when it is ended, when the person is removed or disabled, and when the key is revoked.
func (s *Server) recognise(v *visit) error {
	who, ok, err := s.identify(v)
	if err != nil || !ok {
		return err
	}
	v.signedIn, v.who = true, who
	v.about("", "")
	s.People.TouchSession(who.signIn, v.now)
	return s.renew(v)
}

// identify looks up who the visit's cookie stands for.
func (s *Server) identify(v *visit) (visitor, bool, error) {
	token := v.cookie(sessionCookie)
	if len(token) != len(rand.Text()) {
		return visitor{}, false, nil
	}
	in, err := s.People.SessionByHash(v.Context(), api.HashSecret(token))
	if errors.Is(err, api.ErrNotFound) || err == nil && !in.Live(v.now) {
		return visitor{}, false, nil
	}
	if err != nil {
		return visitor{}, false, err
	}
	who, err := s.belongs(v, in)
	switch {
	case errors.Is(err, api.ErrNotFound), errors.Is(err, api.ErrUnauthorized), errors.Is(err, api.ErrForbidden):
		return visitor{}, false, nil
	case err != nil:
		return visitor{}, false, err
	}
	who.signIn, who.session = in, string(in.ID)
	return who, true, nil
}

// belongs is whom a session belongs to, with the rights that they have now.
func (s *Server) belongs(v *visit, in api.SignIn) (visitor, error) {
	switch in.Kind {
	case api.SessionOfPerson:
		p, err := s.People.Person(v.Context(), in.Person)
		if err != nil {
			return visitor{}, err
		}
		return personVisitor(p)
	case api.SessionOfKey:
		if len(in.Key) != 32 {
			return visitor{}, api.ErrUnauthorized
		}
		key, err := s.Catalog.KeyByHash(v.Context(), [32]byte(in.Key))
		if err != nil {
			return visitor{}, err
		}
		if key.Kind != api.AdminKey {
			return visitor{}, api.ErrUnauthorized
		}
		return keyVisitor(key), key.Good(v.now, v.client)
	case api.SessionOfLink:
		return visitor{id: "link", name: "Operator", operator: true}, nil
	}
	return visitor{}, api.ErrUnauthorized
}

// personVisitor is who has signed in as a person.
func personVisitor(p api.Person) (visitor, error) {
	if p.DisabledAt != nil {
		return visitor{}, api.ErrUnauthorized
	}
	return visitor{id: string(p.ID), name: p.Name, person: p, roles: p.Roles,
		operator: p.Roles[api.DefaultOrg] == api.RoleOwner}, nil
}

// keyVisitor is who has signed in with an admin key. A key that may only read makes a viewer.
func keyVisitor(key api.Key) visitor {
	role := api.RoleOwner
	if !key.Allows(api.ScopeWrite) {
		role = api.RoleViewer
	}
	return visitor{id: string(key.ID), name: cmp.Or(key.Name, string(key.ID)), key: key,
		roles: map[api.OrgID]api.Role{key.Org: role}}
}

// rights is what a visitor may do, as a session remembers it.
func (w visitor) rights() string {
	var all []string
	for _, org := range slices.Sorted(maps.Keys(w.roles)) {
		all = append(all, string(org)+":"+string(w.roles[org]))
	}
	if w.operator {
		all = append(all, "operator")
	}
	return strings.Join(all, " ")
}

// renew gives the session another token when its rights have changed. Only a page does so: of the requests that a page
// makes for its parts, any may come first.
func (s *Server) renew(v *visit) error {
	rights := v.who.rights()
	if v.who.signIn.Rights == rights || v.Req.Method != http.MethodGet || v.partial() ||
		!strings.Contains(v.Req.Header.Get("Accept"), "text/html") {
		return nil
	}
	token := rand.Text()
	renewed, err := s.People.RenewSession(v.Context(), v.who.signIn.ID, api.HashSecret(token), rights)
	if errors.Is(err, api.ErrNotFound) { // it has just ended
		v.signedIn, v.who = false, visitor{}
		return nil
	}
	if err != nil || !renewed {
		return err
	}
	v.setCookie(sessionCookie, token, v.who.signIn.ExpiresAt.Sub(v.now))
	return nil
}

// begin signs a visitor in, under a token that nobody had before. The session that this browser had ends.
func (s *Server) begin(v *visit, who visitor, in api.SignIn) error {
	life, idle := personLife, personIdle
	switch in.Kind {
	case api.SessionOfKey:
		life, idle = keyLife, keyLife
	case api.SessionOfLink:
		life, idle = linkLife, linkIdle
	}
	if v.signedIn {
		if err := s.People.EndSession(v.Context(), v.who.signIn.ID); err != nil {
			return err
		}
	}
	in.Client, in.Agent, in.Rights = v.client.String(), v.Req.UserAgent(), who.rights()
	in.CreatedAt, in.ExpiresAt, in.Idle = v.now, v.now.Add(life), idle
	token := rand.Text()
	in, err := s.People.AddSession(v.Context(), in, api.HashSecret(token))
	if err != nil {
		return err
	}
	who.signIn, who.session = in, string(in.ID)
	v.signedIn, v.who, v.token = true, who, ""
	v.about("", "")
	v.setCookie(sessionCookie, token, life)
	v.setCookie(visitCookie, "", 0)
	v.auditMine("session.begin", device(in.Agent), "by "+in.How)
	return nil
}

// beginPerson signs a person in.
func (s *Server) beginPerson(v *visit, p api.Person, how string) error {
	who, err := personVisitor(p)
	if err != nil {
		return err
	}
	return s.begin(v, who, api.SignIn{Kind: api.SessionOfPerson, Person: p.ID, How: how})
}

// still reports whether the visitor may still see what the visit asked for. A part of a page that is live asks before
// each change.
func (s *Server) still(v *visit) bool {
	if !v.signedIn {
		return true
	}
	later := *v
	later.now = s.Now()
	who, ok, err := s.identify(&later)
	if err != nil {
		return false
	}
	later.who, later.signedIn = who, ok
	return ok && s.place(&later, v.route) == nil
}

// logout ends the session: its token is good for nothing any more.
func (s *Server) logout(v *visit) error {
	if v.signedIn {
		if err := s.People.EndSession(v.Context(), v.who.signIn.ID); err != nil {
			return err
		}
	}
	v.setCookie(sessionCookie, "", 0)
	return v.seeOther("/login")
}

// audit writes into the log of the visit's organization who did what to what. A secret is no detail.
func (v *visit) audit(action, object, detail string) {
	org := v.org
	if org == "" {
		org = api.DefaultOrg
	}
	v.auditIn(org, v.project.ID, action, object, detail)
}

// auditMine writes what a visitor did with the own account into the log of each organization that the visitor is in.
func (v *visit) auditMine(action, object, detail string) {
	for org := range v.who.roles {
		v.auditIn(org, "", action, object, detail)
	}
	if len(v.who.roles) == 0 {
		v.auditIn(api.DefaultOrg, "", action, object, detail)
	}
}

// auditIn is audit for what belongs to another organization or project than the visit's address.
func (v *visit) auditIn(org api.OrgID, project api.ProjectID, action, object, detail string) {
	// What was done is done: it is written also when the browser has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.Context()), 5*time.Second)
	defer cancel()
	err := v.server.People.Audit(ctx, api.AuditEntry{Org: org, Project: project, WhoID: v.who.id, Who: v.who.name,
		Action: action, Object: object, Detail: detail, Client: v.client.String()})
	if err != nil {
		v.server.Log.Error("the audit log lacks an entry", "error", err, "who", v.who.id, "action", action, "object", object,
			"detail", detail)
	}
}
