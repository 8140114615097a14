package console

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
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
	// SessionCookie is the cookie that holds a session's token.
	SessionCookie = "docent_session"
	visitCookie   = "docent_visit" // before sign-in: what the sign-in form's token belongs to
)

// cookieName is the name under which the browser keeps a cookie. Over TLS it has the prefix with which the browser
// takes it from this host alone, so that no other host of the same domain can plant one.
func (v *Visit) cookieName(name string) string {
	if v.tls() {
		return "__Host-" + name
	}
	return name
}

// tls reports whether browsers reach this service over TLS.
func (v *Visit) tls() bool { return v.secure || strings.HasPrefix(v.server.PublicURL, "https://") }

// Cookie returns what the browser keeps under a name; empty if it keeps nothing.
func (v *Visit) Cookie(name string) string {
	c, err := v.Req.Cookie(v.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// recognize finds out who is signed in, if somebody is. The session and its owner are looked up on every
// visit, so that it ends at once when it is ended, when the person is removed or disabled, and when the key is revoked.
func (s *Server) recognize(v *Visit) error {
	who, ok, err := s.identify(v)
	if err != nil || !ok {
		return err
	}
	v.SignedIn, v.Who = true, who
	v.About("", "")
	s.Catalog.TouchSession(who.SignIn, v.Now)
	return s.renew(v)
}

// identify looks up who the visit's cookie stands for.
func (s *Server) identify(v *Visit) (Visitor, bool, error) {
	token := v.Cookie(SessionCookie)
	if len(token) != len(rand.Text()) {
		return Visitor{}, false, nil
	}
	in, err := s.Catalog.SessionByHash(v.Context(), api.HashSecret(token))
	if errors.Is(err, api.ErrNotFound) || err == nil && !in.Live(v.Now) {
		return Visitor{}, false, nil
	}
	if err != nil {
		return Visitor{}, false, err
	}
	who, err := s.belongs(v, in)
	switch {
	case errors.Is(err, api.ErrNotFound), errors.Is(err, api.ErrUnauthorized), errors.Is(err, api.ErrForbidden):
		return Visitor{}, false, nil
	case err != nil:
		return Visitor{}, false, err
	}
	who.SignIn, who.session = in, string(in.ID)
	return who, true, nil
}

// belongs is whom a session belongs to, with the rights that they have now.
func (s *Server) belongs(v *Visit, in api.SignIn) (Visitor, error) {
	switch in.Kind {
	case api.SessionOfPerson:
		p, err := s.Catalog.Person(v.Context(), in.Person)
		if err != nil {
			return Visitor{}, err
		}
		return personVisitor(p)
	case api.SessionOfKey:
		if len(in.Key) != 32 {
			return Visitor{}, api.ErrUnauthorized
		}
		key, err := s.Catalog.KeyByHash(v.Context(), [32]byte(in.Key))
		if err != nil {
			return Visitor{}, err
		}
		if key.Kind != api.AdminKey {
			return Visitor{}, api.ErrUnauthorized
		}
		return KeyVisitor(key), key.Good(v.Now, v.Client)
	case api.SessionOfLink:
		return LinkVisitor(), nil
	}
	return Visitor{}, api.ErrUnauthorized
}

// personVisitor is who has signed in as a person.
func personVisitor(p api.Person) (Visitor, error) {
	if p.DisabledAt != nil {
		return Visitor{}, api.ErrUnauthorized
	}
	return Visitor{ID: string(p.ID), Name: p.Name, Person: p, Rights: p.Rights()}, nil
}

// KeyVisitor returns who has signed in with an admin key.
func KeyVisitor(key api.Key) Visitor {
	return Visitor{ID: string(key.ID), Name: cmp.Or(key.Name, string(key.ID)), Key: key, Rights: key.Rights()}
}

// LinkVisitor returns who has come by the operator's link.
func LinkVisitor() Visitor {
	return Visitor{ID: "link", Name: "Operator", Rights: api.Rights{Operator: true}}
}

// held is what a visitor may do, as a session remembers it.
func (w Visitor) held() string {
	var all []string
	for _, org := range slices.Sorted(maps.Keys(w.Rights.Roles)) {
		all = append(all, string(org)+":"+string(w.Rights.Roles[org]))
	}
	if w.Rights.Operator {
		all = append(all, "operator")
	}
	return strings.Join(all, " ")
}

// renew gives the session another token when its rights have changed. Only a page does so: of the requests that a page
// makes for its parts, any may come first.
func (s *Server) renew(v *Visit) error {
	rights := v.Who.held()
	if v.Who.SignIn.Rights == rights || v.Req.Method != http.MethodGet || v.Partial() ||
		!strings.Contains(v.Req.Header.Get("Accept"), "text/html") {
		return nil
	}
	token := rand.Text()
	renewed, err := s.Catalog.RenewSession(v.Context(), v.Who.SignIn.ID, api.HashSecret(token), rights)
	if errors.Is(err, api.ErrNotFound) { // it has just ended
		v.SignedIn, v.Who = false, Visitor{}
		return nil
	}
	if err != nil || !renewed {
		return err
	}
	v.SetCookie(SessionCookie, token, v.Who.SignIn.ExpiresAt.Sub(v.Now))
	return nil
}

// Begin signs a visitor in, under a token that nobody had before. The session that this browser had ends.
func (s *Server) Begin(v *Visit, who Visitor, in api.SignIn) error {
	life, idle := personLife, personIdle
	switch in.Kind {
	case api.SessionOfKey:
		life, idle = keyLife, keyLife
		if end := who.Key.ExpiresAt; end != nil {
			life = min(life, end.Sub(v.Now))
		}
	case api.SessionOfLink:
		life, idle = linkLife, linkIdle
	}
	if v.SignedIn {
		if err := s.Catalog.EndSession(v.Context(), v.Who.SignIn.ID); err != nil {
			return err
		}
	}
	in.Client, in.Agent, in.Rights = v.Client.String(), v.Req.UserAgent(), who.held()
	in.CreatedAt, in.ExpiresAt, in.Idle = v.Now, v.Now.Add(life), idle
	token := rand.Text()
	in, err := s.Catalog.AddSession(v.Context(), in, api.HashSecret(token))
	if err != nil {
		return err
	}
	who.SignIn, who.session = in, string(in.ID)
	v.SignedIn, v.Who, v.token = true, who, ""
	v.About("", "")
	v.SetCookie(SessionCookie, token, life)
	v.SetCookie(visitCookie, "", 0)
	v.AuditMine("session.begin", device(in.Agent), strings.TrimSpace("by "+in.How+" "+string(in.Link)))
	return nil
}

// BeginPerson signs a person in.
func (s *Server) BeginPerson(v *Visit, p api.Person, how string) error {
	who, err := personVisitor(p)
	if err != nil {
		return err
	}
	return s.Begin(v, who, api.SignIn{Kind: api.SessionOfPerson, Person: p.ID, How: how})
}

// still reports whether the visitor may still see what the visit asked for, with the same rights. A part of a page that
// is live asks before each change: what it shows was made for these rights, and a browser with others asks for it
// again.
func (s *Server) still(v *Visit) bool {
	if !v.SignedIn {
		return true
	}
	later := *v
	later.Now = s.Now()
	who, ok, err := s.identify(&later)
	if err != nil {
		return false
	}
	later.Who, later.SignedIn = who, ok
	return ok && who.held() == v.Who.held() && s.place(&later, v.route) == nil
}

// Audit writes into the log of the visit's organization who did what to what. A secret is no detail.
func (v *Visit) Audit(action, object, detail string) {
	org := cmp.Or(v.Org, api.DefaultOrg)
	v.AuditIn(org, v.Project.ID, action, object, detail)
}

// AuditMine writes what a visitor did with the own account into the log of each organization that the visitor is in.
func (v *Visit) AuditMine(action, object, detail string) {
	for org := range v.Who.Rights.Roles {
		v.AuditIn(org, "", action, object, detail)
	}
	if len(v.Who.Rights.Roles) == 0 {
		v.AuditIn(api.DefaultOrg, "", action, object, detail)
	}
}

// AuditOf writes what concerns a person's account, by somebody who is not signed in, into the log of each organization
// that the person is in.
func (v *Visit) AuditOf(p api.Person, action, detail string) {
	for org := range p.Roles {
		v.AuditIn(org, "", action, p.Email, detail)
	}
}

// AuditIn writes into the log what belongs to another organization or project than the visit's address.
func (v *Visit) AuditIn(org api.OrgID, project api.ProjectID, action, object, detail string) {
	// What was done is done: it is written also when the browser has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.Context()), 5*time.Second)
	defer cancel()
	err := v.server.Catalog.Audit(ctx, api.AuditEntry{Org: org, Project: project, WhoID: v.Who.ID, Who: v.Who.Name,
		Action: action, Object: object, Detail: detail, Client: v.Client.String()})
	if err != nil {
		v.server.Log.Error("could not write an audit log entry", "error", err, "who", v.Who.ID, "action", action, "object", object,
			"detail", detail)
	}
}

// A SessionLine is a session as pages list it.
type SessionLine struct {
	api.SignIn
	Device string
	Here   bool
}

// SessionLines returns sessions as pages list them.
func (v *Visit) SessionLines(all []api.SignIn) []SessionLine {
	lines := make([]SessionLine, len(all))
	for i, in := range all {
		lines[i] = SessionLine{in, device(in.Agent), in.ID == v.Who.SignIn.ID}
		if in.Kind == api.SessionOfClient {
			lines[i].Device = in.Agent
		}
	}
	return lines
}

// device is what a browser says of itself, in words that people recognize.
func device(agent string) string {
	name := first(agent, [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}, "Unknown browser")
	system := first(agent, [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"},
		{"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}, "")
	if system == "" {
		return name
	}
	return name + " on " + system
}

// first is the name of the first sign that a text has.
func first(text string, signs [][2]string, none string) string {
	for _, s := range signs {
		if strings.Contains(text, s[0]) {
			return s[1]
		}
	}
	return none
}

// An OpenLink is a one-time link that nobody has used yet.
type OpenLink struct {
	api.Link
	For string // the person whom it lets in; empty for the operator
}

func nonce() []byte {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand crashes the program instead
	return b
}

// token is what a form must bring along: it belongs to the cookie, so another site's form does not know it. It looks
// different in each answer, so that the length of compressed answers tells nothing of it.
func (s *Server) token(cookie string) string {
	secret := api.Sign(s.Secret, "form", []byte(cookie))
	mask := make([]byte, len(secret))
	rand.Read(mask) // never fails: crypto/rand crashes the program instead
	subtle.XORBytes(secret, secret, mask)
	return base64.RawURLEncoding.EncodeToString(append(mask, secret...))
}

// isToken reports whether a token belongs to a cookie.
func (s *Server) isToken(token, cookie string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 2*sha256.Size {
		return false
	}
	secret := raw[sha256.Size:]
	subtle.XORBytes(secret, secret, raw[:sha256.Size])
	return hmac.Equal(secret, api.Sign(s.Secret, "form", []byte(cookie)))
}

// ours reports whether a form that was sent is from a page of this visitor's.
func (s *Server) ours(v *Visit) bool {
	belongs := v.Who.session
	if !v.SignedIn {
		if belongs = v.Cookie(visitCookie); belongs == "" {
			return false
		}
	}
	return s.isToken(v.Form.Get("token"), belongs)
}

// visitCookie is the cookie that the sign-in form's token belongs to, made if there is none.
func (s *Server) visitCookie(v *Visit) string {
	if value := v.Cookie(visitCookie); len(value) == 22 {
		return value
	}
	value := base64.RawURLEncoding.EncodeToString(nonce())
	v.SetCookie(visitCookie, value, time.Hour)
	return value
}
