package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/persistence/catalog"
)

func same(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

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
	return same(secret, api.Sign(s.Secret, "form", []byte(cookie)))
}

// ours reports whether a form that was sent is from a page of this visitor's.
func (s *Server) ours(v *visit) bool {
	belongs := v.who.session
	if !v.signedIn {
		if belongs = v.cookie(visitCookie); belongs == "" {
			return false
		}
	}
	return s.isToken(v.form().Get("token"), belongs)
}

// visitCookie is the cookie that the sign-in form's token belongs to, made where there is none.
func (s *Server) visitCookie(v *visit) string {
	if value := v.cookie(visitCookie); len(value) == 22 {
		return value
	}
	value := base64.RawURLEncoding.EncodeToString(nonce())
	v.setCookie(visitCookie, value, time.Hour)
	return value
}

// local keeps a way back on this site: a path of ours, and nothing that a browser could read as another host.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" ||
		strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return "/console"
	}
	for _, ours := range []string{"/pulls/", "/invite/", "/console/"} {
		if strings.HasPrefix(u.Path, ours) {
			return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
		}
	}
	return "/console"
}

type loginView struct {
	Next     string
	Problem  string
	Email    string
	Provider string // the name of the provider of OpenID Connect; empty where there is none
	ByKey    bool   // an admin key was tried
}

func (s *Server) showLogin(v *visit) error {
	return s.loginPage(v, http.StatusOK, loginView{Next: local(v.query("next"))})
}

func (s *Server) loginPage(v *visit, status int, view loginView) error {
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	return s.renderStatus(v, status, "login", "Sign in", view)
}

// login signs in with an e-mail address and a password, or with an admin key.
func (s *Server) login(v *visit) error {
	bounds := []bound{{"address " + api.Network(v.client), mostOfAddress}}
	byKey := v.form().Has("key")
	email := api.CleanEmail(v.form().Get("email"))
	if !byKey {
		bounds = append(bounds, bound{"account " + email, mostOfAccount})
	}
	wait, err := s.attempt(v, bounds...)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &api.LimitError{Name: "sign-in", Limit: mostOfAddress, Window: attemptWindow, RetryAfter: wait}
	}
	view := loginView{Next: local(v.form().Get("next")), ByKey: byKey, Email: email}
	var ok bool
	if byKey {
		view.Problem = "This is not an admin key that may be used from here."
		ok, err = s.loginByKey(v)
	} else {
		view.Problem = "This address and this password do not belong together, or may not sign in here."
		ok, err = s.loginByPassword(v, email)
	}
	switch {
	case err != nil:
		s.giveBack(v, bounds...)
		return err
	case !ok:
		s.Log.Warn("a sign-in was refused", "client", v.client.String(), "key", byKey)
		return s.loginPage(v, http.StatusUnauthorized, view)
	}
	s.giveBack(v, bounds...)
	return v.seeOther(view.Next)
}

// loginByPassword takes as long for an address that nobody has as for a wrong password, and says no more.
func (s *Server) loginByPassword(v *visit, email string) (bool, error) {
	p, kept, err := s.People.PersonByEmail(v.Context(), email)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return false, err
	}
	ok, err := s.passwords.Verify(v.Context(), kept, v.form().Get("password"))
	if err != nil || !ok || p.DisabledAt != nil {
		return false, err
	}
	return true, s.beginPerson(v, p, "password")
}

func (s *Server) loginByKey(v *visit) (bool, error) {
	secret := strings.TrimSpace(v.form().Get("key"))
	if kind, ok := api.ParseSecret(secret); !ok || kind != api.AdminKey {
		return false, nil
	}
	hash := api.HashSecret(secret)
	key, err := s.Catalog.KeyByHash(v.Context(), hash)
	switch {
	case errors.Is(err, api.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case key.Kind != api.AdminKey || key.Good(v.now, v.client) != nil:
		return false, nil
	}
	s.Catalog.TouchKey(key.ID, v.now)
	return true, s.begin(v, keyVisitor(key), api.SignIn{Kind: api.SessionOfKey, Key: hash[:], How: "admin key"})
}

// How many sign-ins may fail in a window: those of one address, and those of one account from wherever. The second one
// is higher: else who knows an address could keep its owner out.
const (
	mostOfAddress = 10
	mostOfAccount = 30
	attemptWindow = 10 * time.Minute
	mostCounted   = 10_000
)

// attempt counts one more attempt, or says how long to wait. Several nodes count together.
func (s *Server) attempt(v *visit, bounds ...bound) (wait time.Duration, err error) {
	if s.Counts == nil {
		return s.attempts.take(v.now, bounds...), nil
	}
	shared := make([]catalog.Bound, len(bounds))
	for i, b := range bounds {
		shared[i] = catalog.Bound{Name: counted + b.of, Most: b.most}
	}
	return s.Counts.Take(v.Context(), attemptWindow, shared...)
}

// giveBack takes back what an attempt has counted that did not fail.
func (s *Server) giveBack(v *visit, bounds ...bound) {
	if s.Counts == nil {
		s.attempts.giveBack(bounds...)
		return
	}
	names := make([]string, len(bounds))
	for i, b := range bounds {
		names[i] = counted + b.of
	}
	if err := s.Counts.Give(context.WithoutCancel(v.Context()), names...); err != nil {
		s.Log.Warn("a sign-in that did not fail counts as if it had", "error", err)
	}
}

// counted begins the names that attempts are counted under by several nodes.
const counted = "sign-in "

// attempts counts failed sign-ins. An attempt counts from its beginning, so that many at once are no way around.
type attempts struct {
	mu     sync.Mutex
	failed map[string]attempt
}

type attempt struct {
	count int
	until time.Time
}

// A bound is what attempts are counted for, and how many there may be.
type bound struct {
	of   string
	most int
}

func newAttempts() *attempts { return &attempts{failed: map[string]attempt{}} }

// take counts one more attempt, or says how long to wait.
func (a *attempts) take(now time.Time, bounds ...bound) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range bounds {
		if v, ok := a.failed[b.of]; ok && v.count >= b.most && now.Before(v.until) {
			wait = max(wait, v.until.Sub(now))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, b := range bounds {
		v := a.failed[b.of]
		if !now.Before(v.until) {
			v = attempt{until: now.Add(attemptWindow)}
		}
		v.count++
		a.room(now)
		a.failed[b.of] = v
	}
	return 0
}

// giveBack takes back what an attempt has counted that did not fail.
func (a *attempts) giveBack(bounds ...bound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range bounds {
		if v, ok := a.failed[b.of]; ok && v.count > 0 {
			v.count--
			a.failed[b.of] = v
		}
	}
}

// room forgets attempts where there are too many to remember: those that are over first, and where none is, any.
func (a *attempts) room(now time.Time) {
	if len(a.failed) < mostCounted {
		return
	}
	for k, old := range a.failed {
		if !now.Before(old.until) || old.count == 0 {
			delete(a.failed, k)
		}
	}
	for k := range a.failed {
		if len(a.failed) < mostCounted {
			return
		}
		delete(a.failed, k)
	}
}
