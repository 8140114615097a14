package readertoken

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"docent/api"
	"docent/internal/outbound"
	"docent/persistence/secrets"
)

const (
	first  = "dct_rds_FIRST0123456789012345678901234567890123456789"
	second = "dct_rds_SECOND123456789012345678901234567890123456789"
)

var (
	start = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	local = outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
)

// a lab is a verifier with a clock and secrets.
type lab struct {
	*Verifier
	now     time.Time
	reads   int
	project api.Project
}

func newLab(policy outbound.Policy) *lab {
	l := &lab{now: start, project: api.Project{ID: "acme", Domain: "docs.acme.example",
		ReaderSecrets: []api.ReaderSecret{{ID: "1", File: "acme.1"}, {ID: "2", File: "acme.2"}}}}
	stored := map[string]string{"acme.1": first, "acme.2": second}
	l.Verifier = New(func(name string) (string, error) {
		l.reads++
		if text, ok := stored[name]; ok {
			return text, nil
		}
		return "", secrets.ErrMissing
	}, policy, func() time.Time { return l.now }, slog.New(slog.DiscardHandler))
	return l
}

// claims of a good token, with changes; a nil value leaves a claim out.
func claimed(changes jwt.MapClaims) jwt.MapClaims {
	c := jwt.MapClaims{"sub": "alice", "groups": []string{"staff"}, "aud": "docs.acme.example", "exp": start.Add(time.Hour).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func sign(t *testing.T, method jwt.SigningMethod, key any, c jwt.MapClaims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	maps.Copy(token.Header, header)
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func hs(t *testing.T, secret string, changes jwt.MapClaims) string {
	t.Helper()
	return sign(t, jwt.SigningMethodHS256, []byte(secret), claimed(changes), nil)
}

func TestATokenOfEitherSecretSaysWhoTheReaderIs(t *testing.T) {
	t.Parallel()
	l := newLab(local)
	for _, secret := range []string{first, second} {
		for _, aud := range []any{"docs.acme.example", "acme", []string{"https://app.example", "acme"}} {
			r, err := l.Verify(t.Context(), l.project, hs(t, secret, jwt.MapClaims{"aud": aud}))
			if err != nil || r.Subject != "alice" || !slices.Equal(r.Groups, []string{"staff"}) {
				t.Errorf("with the audience %v: %+v, %v", aud, r, err)
			}
		}
	}
	if l.reads != 2 {
		t.Errorf("the secrets were read %d times, want once each", l.reads)
	}
	if r, err := l.Verify(t.Context(), l.project, hs(t, first, jwt.MapClaims{"groups": nil})); err != nil || len(r.Groups) > 0 {
		t.Errorf("without groups: %+v, %v", r, err)
	}
	l.project.ReaderSecrets = l.project.ReaderSecrets[1:] // the first is retired
	if _, err := l.Verify(t.Context(), l.project, hs(t, first, nil)); !errors.Is(err, api.ErrUnauthorized) {
		t.Errorf("a token of a retired secret: %v", err)
	}
}

func TestATokenThatProvesNothingIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(local)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, claimed(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	good := hs(t, first, nil)
	many := make([]string, api.MaxGroups+1)
	for i := range many {
		many[i] = fmt.Sprint("g", i)
	}
	for name, c := range map[string]struct{ token, says string }{
		"an empty one":                  {"", "not a JWT"},
		"no JWT":                        {"hello", "not a JWT"},
		"a signature cut off":           {good[:strings.LastIndexByte(good, '.')+1], "signature"},
		"another secret":                {hs(t, first+"x", nil), "signature"},
		"an empty secret":               {hs(t, "", nil), "signature"},
		"none":                          {none, "signature"},
		"HS512":                         {sign(t, jwt.SigningMethodHS512, []byte(first), claimed(nil), nil), "signature"},
		"RS256":                         {sign(t, jwt.SigningMethodRS256, rsaKey, claimed(nil), nil), "signature"},
		"an extension":                  {sign(t, jwt.SigningMethodHS256, []byte(first), claimed(nil), map[string]any{"crit": []string{"b64"}}), "crit"},
		"expired":                       {hs(t, first, jwt.MapClaims{"exp": start.Add(-leeway - time.Second).Unix()}), "expired"},
		"no end":                        {hs(t, first, jwt.MapClaims{"exp": nil}), "exp"},
		"an end too far ahead":          {hs(t, first, jwt.MapClaims{"exp": start.Add(MaxLife + time.Hour).Unix()}), "24 hours"},
		"not yet":                       {hs(t, first, jwt.MapClaims{"nbf": start.Add(time.Hour).Unix()}), "clock"},
		"signed in the future":          {hs(t, first, jwt.MapClaims{"iat": start.Add(time.Hour).Unix()}), "clock"},
		"no audience":                   {hs(t, first, jwt.MapClaims{"aud": nil}), "aud"},
		"another audience":              {hs(t, first, jwt.MapClaims{"aud": "docs.other.example"}), "docs.acme.example"},
		"no subject":                    {hs(t, first, jwt.MapClaims{"sub": nil}), "sub"},
		"a blank subject":               {hs(t, first, jwt.MapClaims{"sub": " "}), "sub"},
		"nobody":                        {hs(t, first, jwt.MapClaims{"sub": "anonymous"}), "nobody"},
		"a subject with a control":      {hs(t, first, jwt.MapClaims{"sub": "a\x00b"}), "sub"},
		"a subject that is long":        {hs(t, first, jwt.MapClaims{"sub": strings.Repeat("a", 257)}), "sub"},
		"groups as a string":            {hs(t, first, jwt.MapClaims{"groups": "staff"}), "groups"},
		"an empty group":                {hs(t, first, jwt.MapClaims{"groups": []string{""}}), "groups[0]"},
		"too many groups":               {hs(t, first, jwt.MapClaims{"groups": many}), "groups"},
		"too long":                      {hs(t, first, jwt.MapClaims{"x": strings.Repeat("a", maxToken)}), "longer"},
		"ES256 without a JWKS address":  {sign(t, jwt.SigningMethodES256, key(t), claimed(nil), nil), "JWKS"},
		"an end that is no number":      {hs(t, first, jwt.MapClaims{"exp": "soon"}), "exp"},
		"an end beyond what time holds": {hs(t, first, jwt.MapClaims{"exp": 1e300}), ""},
	} {
		r, err := l.Verify(t.Context(), l.project, c.token)
		var said *api.StateError
		if !errors.As(err, &said) || !errors.Is(err, api.ErrUnauthorized) || !strings.Contains(said.Reason, c.says) {
			t.Errorf("%s: %+v, %v; want a refusal that says %q", name, r, err, c.says)
		}
	}
	l.project.ReaderSecrets = nil
	if _, err := l.Verify(t.Context(), l.project, good); !errors.Is(err, api.ErrUnauthorized) {
		t.Errorf("a project that takes no tokens: %v", err)
	}
	l.project.ReaderSecrets = []api.ReaderSecret{{ID: "3", File: "acme.3"}} // as after a restore
	if _, err := l.Verify(t.Context(), l.project, good); !errors.Is(err, api.ErrUnauthorized) {
		t.Errorf("a secret that is not there: %v", err)
	}
}

func TestSecretsThatCannotBeReadAreNoVerdict(t *testing.T) {
	t.Parallel()
	l := newLab(local)
	l.secret = func(string) (string, error) { return "", errors.New("the database is down") }
	if _, err := l.Verify(t.Context(), l.project, hs(t, first, nil)); !errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrUnauthorized) {
		t.Error(err)
	}
}

func key(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A publisher serves a key set, and counts how often.
type publisher struct {
	*httptest.Server
	asked atomic.Int64
	body  atomic.Value // of []byte; nil for a failure
}

func publish(t *testing.T, keys ...jose.JSONWebKey) *publisher {
	t.Helper()
	p := &publisher{}
	p.set(t, keys...)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p.asked.Add(1)
		body, _ := p.body.Load().([]byte)
		switch {
		case req.URL.Path == "/moved":
			http.Redirect(w, req, "/", http.StatusFound)
		case body == nil:
			http.Error(w, "down", http.StatusInternalServerError)
		default:
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *publisher) set(t *testing.T, keys ...jose.JSONWebKey) {
	t.Helper()
	body, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	p.body.Store(body)
}

func es(t *testing.T, k *ecdsa.PrivateKey, kid string) string {
	t.Helper()
	return sign(t, jwt.SigningMethodES256, k, claimed(nil), map[string]any{"kid": kid})
}

func public(k *ecdsa.PrivateKey, kid string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Public(), KeyID: kid, Use: "sig", Algorithm: "ES256"}
}

func TestPublishedKeysAreFetchedOnceInAWhile(t *testing.T) {
	t.Parallel()
	one, two := key(t), key(t)
	p := publish(t, public(one, "one"))
	l := newLab(local)
	l.project.ReaderJWKS, l.project.ReaderSecrets = p.URL, nil
	verify := func(token string) error {
		t.Helper()
		r, err := l.Verify(t.Context(), l.project, token)
		if err == nil && r.Subject != "alice" {
			t.Errorf("%+v", r)
		}
		return err
	}
	for range 3 {
		if err := verify(es(t, one, "one")); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // made-up key ids are no requests
		if err := verify(es(t, two, "two")); !errors.Is(err, api.ErrUnauthorized) {
			t.Errorf("an unknown key: %v", err)
		}
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("the address was asked %d times", n)
	}
	p.set(t, public(one, "one"), public(two, "two")) // a rotation
	l.now = l.now.Add(retryAfter)
	if err := verify(es(t, two, "two")); err != nil {
		t.Errorf("a key that was added: %v", err)
	}
	p.set(t, public(two, "two"))
	l.now = l.now.Add(freshFor)
	if err := verify(es(t, one, "one")); !errors.Is(err, api.ErrUnauthorized) {
		t.Errorf("a key that was taken back: %v", err)
	}
	p.body.Store([]byte(nil)) // the address fails
	l.now = l.now.Add(freshFor)
	if err := verify(es(t, two, "two")); err != nil {
		t.Errorf("while the address fails: %v", err)
	}
	if n := p.asked.Load(); n != 4 {
		t.Errorf("the address was asked %d times, want 4", n)
	}
	l.now = start.Add(keptFor + 3*freshFor)
	if _, err := l.published(l.project).find(t.Context(), "two"); err == nil {
		t.Error("keys of yesterday are used while the address fails")
	}
}

// A published key is public. A signature by HS256 with its text, or by ES256 with a secret, proves nothing.
func TestAPublishedKeyIsNeverASecret(t *testing.T) {
	t.Parallel()
	k := key(t)
	p := publish(t, public(k, "one"))
	l := newLab(local)
	l.project.ReaderJWKS = p.URL
	for _, secret := range []string{string(p.body.Load().([]byte)), "one", p.URL} {
		token := sign(t, jwt.SigningMethodHS256, []byte(secret), claimed(nil), map[string]any{"kid": "one"})
		if _, err := l.Verify(t.Context(), l.project, token); !errors.Is(err, api.ErrUnauthorized) {
			t.Errorf("signed with %q: %v", secret, err)
		}
	}
	if _, err := l.Verify(t.Context(), l.project, es(t, k, "one")); err != nil {
		t.Error(err)
	}
	if _, err := l.Verify(t.Context(), l.project, es(t, key(t), "one")); !errors.Is(err, api.ErrUnauthorized) {
		t.Errorf("another key of the same kid: %v", err)
	}
}

func TestAnAddressOfKeysHasBounds(t *testing.T) {
	t.Parallel()
	p := publish(t, public(key(t), "one"))
	if err := Check(t.Context(), local, p.URL); err != nil {
		t.Error(err)
	}
	many := make([]jose.JSONWebKey, maxKeys+1)
	for i := range many {
		many[i] = public(key(t), fmt.Sprint(i))
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set := func(keys ...jose.JSONWebKey) string {
		body, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for body, says := range map[string]string{
		`{}`: "not a JSON Web Key Set", `[]`: "not a JSON Web Key Set", `{"keys":[]}`: "no key for ES256",
		set(jose.JSONWebKey{Key: other.Public(), KeyID: "p384"}):  "no key for ES256",
		set(jose.JSONWebKey{Key: []byte("shared"), KeyID: "oct"}): "no key for ES256",
		set(jose.JSONWebKey{Key: key(t), KeyID: "private"}):       "no key for ES256",
		set(many...): "more than 16",
		`{"keys":[],"x":"` + strings.Repeat("a", maxKeySet) + `"}`: "more than 65536 bytes",
	} {
		p.body.Store([]byte(body))
		if err := Check(t.Context(), local, p.URL); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %v, want %q", body, err, says)
		}
	}
	asked := p.asked.Load()
	for address, says := range map[string]string{p.URL + "/moved": "without a redirect",
		strings.Replace(p.URL, "127.0.0.1", "169.254.169.254", 1): "no address of a receiver", "http://example.com/keys": "https",
		"https://user:pass@example.com/": "password"} {
		if err := Check(t.Context(), local, address); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", address, err, says)
		}
	}
	if err := Check(t.Context(), outbound.Policy{Setting: "webhook_allow"}, p.URL); err == nil || !strings.Contains(err.Error(), "webhook_allow") {
		t.Errorf("this machine without the setting: %v", err)
	}
	if n := p.asked.Load(); n != asked+1 {
		t.Errorf("%d requests were made, want the one that is redirected", n-asked)
	}
}

func TestAWaitForKeysEndsNotWithItsRequest(t *testing.T) {
	t.Parallel()
	k := key(t)
	p := publish(t, public(k, "one"))
	l := newLab(local)
	l.project.ReaderJWKS = p.URL
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Verify(ctx, l.project, es(t, k, "one")); err != nil {
		t.Error(err)
	}
}
