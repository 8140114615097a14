package router

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/api"
	"docent/router/reqbody"
)

const (
	sessionCookie = "docent_session"
	visitCookie   = "docent_visit" // before sign-in: what the sign-in form's token belongs to
	sessionLife   = 2 * time.Hour
	formBytes     = 16 << 10
)

// A session is a browser that was signed in with an admin key. The cookie names the key by its hash and is signed;
// the key is looked up on every use, so that revoking it ends the session at once.
type session struct {
	key   api.Key
	value string // of the cookie
}

// sign appends a signature that only this service can make for that purpose.
func (s *Server) sign(purpose string, payload []byte) []byte {
	mac := hmac.New(sha256.New, s.Secret)
	mac.Write([]byte(purpose))
	mac.Write([]byte{0})
	mac.Write(payload)
	return mac.Sum(nil)
}

// seal makes a session cookie: expiry, the key's hash, a nonce, and the signature of these.
func (s *Server) seal(hash [32]byte, expires time.Time) string {
	payload := binary.BigEndian.AppendUint64(nil, uint64(expires.Unix()))
	payload = append(payload, hash[:]...)
	payload = append(payload, nonce()...)
	return base64.RawURLEncoding.EncodeToString(append(payload, s.sign("session", payload)...))
}

func nonce() []byte {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand crashes the program instead
	return b
}

// session is who is signed in, if somebody is and the key is still good.
func (s *Server) session(x *exchange, req bunrouter.Request) (session, bool, error) {
	cookie, err := req.Cookie(sessionCookie)
	if err != nil {
		return session{}, false, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	const payload = 8 + 32 + 16
	if err != nil || len(raw) != payload+sha256.Size || !same(raw[payload:], s.sign("session", raw[:payload])) {
		return session{}, false, nil
	}
	if expires := time.Unix(int64(binary.BigEndian.Uint64(raw)), 0); !s.Now().Before(expires) {
		return session{}, false, nil
	}
	key, err := s.keyByHash(req.Context(), [32]byte(raw[8:40]), x.client, x.started)
	switch {
	case errors.Is(err, api.ErrUnauthorized), errors.Is(err, api.ErrForbidden):
		return session{}, false, nil
	case err != nil:
		return session{}, false, err
	}
	if key.Kind != api.AdminKey {
		return session{}, false, nil
	}
	x.key = key
	return session{key: key, value: cookie.Value}, true, nil
}

// token is what a form must bring along: it belongs to the cookie, so another site's form does not know it.
func (s *Server) token(cookie string) string {
	return base64.RawURLEncoding.EncodeToString(s.sign("form", []byte(cookie)))
}

var errForm = &api.StateError{Kind: api.ErrForbidden,
	Reason: "this form is out of date or came from another site: reload the page and send it again"}

// form reads a form that a browser sent from one of our pages.
func (s *Server) form(x *exchange, req bunrouter.Request) (url.Values, error) {
	if err := s.csrf.Check(req.Request); err != nil {
		return nil, errForm
	}
	kind, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return nil, &reqbody.MediaError{Reason: "send the form as application/x-www-form-urlencoded"}
	}
	raw, release, err := s.bodies.Bytes(x.ResponseWriter, req.Request, formBytes)
	if err != nil {
		return nil, err
	}
	defer release()
	values, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, &api.InvalidError{Problems: []api.Problem{{Field: "body", Message: "must be a form: " + err.Error()}}}
	}
	return values, nil
}

func (s *Server) setCookie(x *exchange, name, value string, life time.Duration) {
	c := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true,
		Secure:   x.secure || strings.HasPrefix(s.PublicURL, "https://"),
		SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(x, c)
}

// visit is the cookie that the sign-in form's token belongs to, made where there is none.
func (s *Server) visit(x *exchange, req bunrouter.Request) string {
	if c, err := req.Cookie(visitCookie); err == nil && len(c.Value) == 22 {
		return c.Value
	}
	v := base64.RawURLEncoding.EncodeToString(nonce())
	s.setCookie(x, visitCookie, v, time.Hour)
	return v
}

// local keeps a way back on this site: a path of ours, and nothing that a browser could read as another host.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/pulls/") ||
		strings.ContainsAny(next, "\\\r\n") {
		return "/"
	}
	return u.Path
}

func (s *Server) showLogin(x *exchange, req bunrouter.Request) error {
	who, ok, err := s.session(x, req)
	if err != nil {
		return err
	}
	v := loginView{Next: local(req.URL.Query().Get("next"))}
	if ok {
		v.Key, v.Token = who.key.Name, s.token(who.value)
		v.Key = cmp.Or(v.Key, string(who.key.ID))
	} else {
		v.Token = s.token(s.visit(x, req))
	}
	return s.render(x, http.StatusOK, "login", "Sign in", v)
}

func (s *Server) login(x *exchange, req bunrouter.Request) error {
	values, err := s.form(x, req)
	if err != nil {
		return err
	}
	visit, err := req.Cookie(visitCookie)
	if err != nil || !same([]byte(values.Get("token")), []byte(s.token(visit.Value))) {
		return errForm
	}
	who := counted(x.client)
	if wait := s.attempts.wait(who, s.Now()); wait > 0 {
		s.metrics.refuse("sign_in")
		return &api.LimitError{Name: "sign-in", Limit: maxAttempts, Window: attemptWindow, RetryAfter: wait}
	}
	secret := strings.TrimSpace(values.Get("key"))
	key, err := s.principal(req.Context(), secret, x.client, x.started)
	refused := errors.Is(err, api.ErrUnauthorized) || errors.Is(err, api.ErrForbidden)
	if err != nil && !refused {
		return err
	}
	if refused || key.Kind != api.AdminKey {
		s.attempts.add(who, s.Now())
		return s.render(x, http.StatusUnauthorized, "login", "Sign in",
			loginView{Next: local(values.Get("next")), Token: s.token(visit.Value),
				Problem: "This is not an admin key that may be used from here."})
	}
	x.key = key
	s.Catalog.TouchKey(key.ID, x.started)
	s.setCookie(x, sessionCookie, s.seal(api.HashSecret(secret), s.Now().Add(sessionLife)), sessionLife)
	s.setCookie(x, visitCookie, "", 0)
	return seeOther(x, local(values.Get("next")))
}

func (s *Server) logout(x *exchange, req bunrouter.Request) error {
	values, err := s.form(x, req)
	if err != nil {
		return err
	}
	who, ok, err := s.session(x, req)
	if err != nil {
		return err
	}
	if ok && !same([]byte(values.Get("token")), []byte(s.token(who.value))) {
		return errForm
	}
	s.setCookie(x, sessionCookie, "", 0)
	return seeOther(x, "/login")
}

func seeOther(x *exchange, path string) error {
	x.Header().Set("Location", path)
	x.Header().Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusSeeOther)
	return nil
}

const (
	maxAttempts   = 10 // failed sign-ins of one address in a window
	attemptWindow = 10 * time.Minute
	maxAddresses  = 10_000
)

// attempts counts failed sign-ins by address. Keys cannot be guessed; this spares the log and the processor.
type attempts struct {
	mu     sync.Mutex
	failed map[string]attempt
}

type attempt struct {
	count int
	until time.Time
}

func newAttempts() *attempts { return &attempts{failed: map[string]attempt{}} }

func (a *attempts) wait(who string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.failed[who]
	if !ok || v.count < maxAttempts {
		return 0
	}
	return max(0, v.until.Sub(now))
}

func (a *attempts) add(who string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.failed[who]
	if !now.Before(v.until) {
		v = attempt{until: now.Add(attemptWindow)}
	}
	v.count++
	if len(a.failed) >= maxAddresses {
		for k, old := range a.failed { // those that are over go first; where none is, any
			if !now.Before(old.until) {
				delete(a.failed, k)
			}
		}
		for k := range a.failed {
			if len(a.failed) < maxAddresses {
				break
			}
			delete(a.failed, k)
		}
	}
	a.failed[who] = v
}
