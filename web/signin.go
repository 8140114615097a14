package web

import (
	"crypto/hmac"
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
)

// sign is a signature that only this service can make for that purpose.
func (s *Server) sign(purpose string, payload []byte) []byte {
	mac := hmac.New(sha256.New, s.Secret)
	mac.Write([]byte(purpose))
	mac.Write([]byte{0})
	mac.Write(payload)
	return mac.Sum(nil)
}

func same(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

func nonce() []byte {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand crashes the program instead
	return b
}

// token is what a form must bring along: it belongs to the cookie, so another site's form does not know it. It looks
// different in each answer, so that the length of compressed answers tells nothing of it.
func (s *Server) token(cookie string) string {
	secret := s.sign("form", []byte(cookie))
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
	return same(secret, s.sign("form", []byte(cookie)))
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
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || strings.ContainsAny(next, "\\\r\n") ||
		!strings.HasPrefix(u.Path, "/pulls/") && u.Path != "/console" && !strings.HasPrefix(u.Path, "/console/") {
		return "/console"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

type loginView struct {
	Next    string
	Problem string
}

func (s *Server) showLogin(v *visit) error {
	return s.render(v, "login", "Sign in", loginView{Next: local(v.query("next"))})
}

func (s *Server) login(v *visit) error {
	who := api.Network(v.client)
	if wait := s.attempts.wait(who, v.now); wait > 0 {
		return &api.LimitError{Name: "sign-in", Limit: maxAttempts, Window: attemptWindow, RetryAfter: wait}
	}
	secret, next := strings.TrimSpace(v.form().Get("key")), local(v.form().Get("next"))
	key, err := s.adminKey(v, secret)
	if err != nil {
		return err
	}
	if key.ID == "" {
		s.attempts.add(who, v.now)
		return s.renderStatus(v, http.StatusUnauthorized, "login", "Sign in",
			loginView{Next: next, Problem: "This is not an admin key that may be used from here."})
	}
	s.Catalog.TouchKey(key.ID, v.now)
	hash := api.HashSecret(secret)
	if err := s.begin(v, keyVisitor(key), api.SignIn{Kind: api.SessionOfKey, Key: hash[:], How: "admin key"}); err != nil {
		return err
	}
	return v.seeOther(next)
}

// adminKey is the admin key that a secret stands for, if it is good now and from there; else a key without an ID.
func (s *Server) adminKey(v *visit, secret string) (api.Key, error) {
	if kind, ok := api.ParseSecret(secret); !ok || kind != api.AdminKey {
		return api.Key{}, nil
	}
	key, err := s.Catalog.KeyByHash(v.Context(), api.HashSecret(secret))
	switch {
	case errors.Is(err, api.ErrNotFound):
		return api.Key{}, nil
	case err != nil:
		return api.Key{}, err
	case key.Kind != api.AdminKey || key.Good(v.now, v.client) != nil:
		return api.Key{}, nil
	}
	return key, nil
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
