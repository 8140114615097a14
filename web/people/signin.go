package people

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/router/oauth"
	"docent/web/console"
)

// local keeps a way back on this site: a path of ours, and nothing that a browser could read as another host.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" ||
		strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return "/console"
	}
	for _, ours := range []string{"/pulls/", "/invite/", "/console/", oauth.AuthorizePath} {
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
	Provider string // the name of the provider of OpenID Connect; empty if there is none
	ByKey    bool   // an admin key was tried
}

func (s *handler) showLogin(v *console.Visit) error {
	return s.loginPage(v, http.StatusOK, loginView{Next: local(v.Query("next"))})
}

func (s *handler) loginPage(v *console.Visit, status int, view loginView) error {
	if s.Provider != nil {
		view.Provider = s.Provider.Name()
	}
	return s.RenderStatus(v, status, "login", "Sign in", view)
}

// login signs in with an email address and a password, or with an admin key.
func (s *handler) login(v *console.Visit) error {
	bounds := []catalog.Bound{bound("address "+api.Network(v.Client), maxOfAddress)}
	byKey := v.Form.Has("key")
	email := api.CleanEmail(v.Form.Get("email"))
	if !byKey {
		bounds = append(bounds, s.accountBound(v, email))
	}
	if err := s.attempt(v, bounds...); err != nil {
		return err
	}
	view := loginView{Next: local(v.Form.Get("next")), ByKey: byKey, Email: email}
	var ok bool
	var err error
	if byKey {
		view.Problem = "This is not an admin key, or it can't be used from your address."
		ok, err = s.loginByKey(v)
	} else {
		view.Problem = "Wrong email address or password, or the account can't sign in."
		ok, err = s.loginByPassword(v, email)
	}
	switch {
	case err != nil:
		s.giveBack(v, bounds...)
		return err
	case !ok:
		s.Log.Warn("a sign-in was refused", "client", v.Client.String(), "key", byKey)
		return s.loginPage(v, http.StatusUnauthorized, view)
	}
	s.giveBack(v, bounds...)
	return v.SeeOther(view.Next)
}

// loginByPassword takes as long for an address that nobody has as for a wrong password, and says no more.
func (s *handler) loginByPassword(v *console.Visit, email string) (bool, error) {
	p, kept, err := s.Catalog.PersonByEmail(v.Context(), email)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return false, err
	}
	ok, err := s.passwords.Verify(v.Context(), kept, v.Form.Get("password"))
	if err == nil && (!ok || p.DisabledAt != nil) {
		// Nobody waits for it: else the time of the answer would tell which addresses have an account.
		background.Go("audit a refused sign-in", func() { v.AuditOf(p, "session.refused", "password") })
	}
	if err != nil || !ok || p.DisabledAt != nil {
		return false, err
	}
	if err := s.BeginPerson(v, p, "password"); err != nil {
		return false, err
	}
	v.SetCookie(knownCookie, s.known(email, rand.Text()), knownLife)
	return true, nil
}

// A browser in which somebody has signed in with a password is known to the account for knownLife. Who fails from
// elsewhere, however often, does not keep it out; its own failures count for it alone.
const (
	knownCookie = "docent_known"
	knownLife   = 180 * 24 * time.Hour
)

// known is the mark of a browser that is known to an account.
func (s *handler) known(email, nonce string) string {
	return nonce + "." + hex.EncodeToString(api.Sign(s.Secret, "known browser", []byte(email+"\x00"+nonce)))
}

// accountBound is what an attempt to sign in to an account is counted for, beside its address.
func (s *handler) accountBound(v *console.Visit, email string) catalog.Bound {
	mark := v.Cookie(knownCookie)
	if nonce, _, ok := strings.Cut(mark, "."); ok && hmac.Equal([]byte(mark), []byte(s.known(email, nonce))) {
		return bound("browser "+nonce, maxOfAddress)
	}
	return bound("account "+email, maxOfAccount)
}

func (s *handler) loginByKey(v *console.Visit) (bool, error) {
	secret := strings.TrimSpace(v.Form.Get("key"))
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
	case key.Kind != api.AdminKey || key.Good(v.Now, v.Client) != nil:
		v.AuditIn(key.Org, "", "session.refused", string(key.ID), "admin key")
		return false, nil
	}
	s.Catalog.TouchKey(key.ID, v.Now)
	return true, s.Begin(v, console.KeyVisitor(key), api.SignIn{Kind: api.SessionOfKey, Key: hash[:], How: "admin key"})
}

// How many sign-ins may fail in a window: those of one address, and those of one account from wherever. The second one
// is higher: else who knows an address could keep its owner out.
const (
	maxOfAddress  = 10
	maxOfAccount  = 30
	maxOfClients  = 30 // that one person or reader is asked about, or lets in
	attemptWindow = 10 * time.Minute
	maxCounted    = 10_000
)

// attempt counts one more attempt, or fails if there were too many.
func (s *handler) attempt(v *console.Visit, bounds ...catalog.Bound) error {
	wait, err := s.Counts.Take(v.Context(), attemptWindow, bounds...)
	if err == nil && wait > 0 {
		err = &api.LimitError{Name: "sign-in", Limit: bounds[0].Most, Window: attemptWindow, RetryAfter: wait}
	}
	return err
}

// giveBack takes back what an attempt has counted that did not fail.
func (s *handler) giveBack(v *console.Visit, bounds ...catalog.Bound) {
	names := make([]string, len(bounds))
	for i, b := range bounds {
		names[i] = b.Name
	}
	if err := s.Counts.Give(context.WithoutCancel(v.Context()), names...); err != nil {
		s.Log.Warn("could not take back the count of a successful sign-in", "error", err)
	}
}

// bound is what attempts of one kind are counted for, and how many there may be.
func bound(of string, most int) catalog.Bound {
	return catalog.Bound{Name: "sign-in " + of, Most: most}
}

// attempts counts failed sign-ins if there is one node. An attempt counts from its beginning, so that many at once are
// no way around.
type attempts struct {
	now    func() time.Time
	mu     sync.Mutex
	failed map[attempted]attempt
}

// attempted is what attempts are counted for. Addresses that people type are as long as a form: they are not kept.
type attempted [sha256.Size]byte

func attemptedOf(name string) attempted { return sha256.Sum256([]byte(name)) }

type attempt struct {
	count int
	until time.Time
}

// Take counts one more attempt, or says how long to wait.
func (a *attempts) Take(_ context.Context, window time.Duration, bounds ...catalog.Bound) (wait time.Duration, err error) {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range bounds {
		if v, ok := a.failed[attemptedOf(b.Name)]; ok && v.count >= b.Most && now.Before(v.until) {
			wait = max(wait, v.until.Sub(now))
		}
	}
	if wait > 0 {
		return wait, nil
	}
	for _, b := range bounds {
		at := attemptedOf(b.Name)
		v := a.failed[at]
		if !now.Before(v.until) {
			v = attempt{until: now.Add(window)}
		}
		v.count++
		a.room(now)
		a.failed[at] = v
	}
	return 0, nil
}

// Give takes back what an attempt has counted.
func (a *attempts) Give(_ context.Context, names ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		if v, ok := a.failed[attemptedOf(name)]; ok && v.count > 0 {
			v.count--
			a.failed[attemptedOf(name)] = v
		}
	}
	return nil
}

// room forgets attempts if there are too many to remember: those that are over first, and if none is, any.
func (a *attempts) room(now time.Time) {
	if len(a.failed) < maxCounted {
		return
	}
	for k, old := range a.failed {
		if !now.Before(old.until) || old.count == 0 {
			delete(a.failed, k)
		}
	}
	for k := range a.failed {
		if len(a.failed) < maxCounted {
			return
		}
		delete(a.failed, k)
	}
}

// logout ends the session: its token is good for nothing any more.
func (s *handler) logout(v *console.Visit) error {
	if v.SignedIn {
		if err := s.Catalog.EndSession(v.Context(), v.Who.SignIn.ID); err != nil {
			return err
		}
		v.AuditMine("session.logout", v.Who.Name, v.Who.SignIn.How)
	}
	v.SetCookie(console.SessionCookie, "", 0)
	return v.SeeOther("/login")
}
