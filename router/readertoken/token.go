// Package readertoken verifies who the readers of a site are, by tokens that the site's own server signs: JWTs with the
// claims sub, groups, aud and exp.
//
// A token is signed with HS256 and one of the project's reader secrets, or with ES256 and a key that the site publishes
// as a JSON Web Key Set. Which of the two is decided by the algorithm in its header, and each algorithm has keys of its
// own kind only: a published key is never taken for a secret.
package readertoken

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"docent/api"
	"docent/internal/outbound"
	"docent/persistence/secrets"
)

const (
	// MaxLife is how far ahead a token's exp may be: what a site takes from a reader takes effect within that time.
	MaxLife = 24 * time.Hour
	// maxToken is how many bytes a token may have.
	maxToken = 8 << 10
	// maxSubject is how many characters sub may have, as fp.
	maxSubject = 256
	// leeway is how far the clocks of the site's server and of this one may be apart.
	leeway = 30 * time.Second
	// anonymous is the fp of readers that nobody knows, and so nobody's sub.
	anonymous = "anonymous"
)

// A Verifier verifies reader tokens of all projects. It must not be copied.
type Verifier struct {
	secret func(name string) (string, error)
	client *fetcher
	now    func() time.Time
	log    *slog.Logger

	mu   sync.Mutex
	held map[api.ProjectID]*held
}

// held is what is remembered of a project: its secrets, which never change under one name, and its published keys.
type held struct {
	files   []string
	secrets []jwt.VerificationKey
	keys    *keySet
}

// New returns a verifier. Secret reads a stored secret; now defaults to time.Now. Published keys are fetched from where
// the policy lets requests go.
func New(secret func(name string) (string, error), policy outbound.Policy, now func() time.Time, log *slog.Logger) *Verifier {
	if now == nil {
		now = time.Now
	}
	return &Verifier{secret: secret, client: newFetcher(policy), now: now, log: log, held: map[api.ProjectID]*held{}}
}

// Verify returns whom a token of a project names. It fails with an *api.StateError of the kind api.ErrUnauthorized, whose
// reason is for the client, if the token is not valid, and with api.ErrUnavailable if that cannot be known now.
func (v *Verifier) Verify(ctx context.Context, p api.Project, token string) (api.Reader, error) {
	if len(p.ReaderSecrets) == 0 && p.ReaderJWKS == "" {
		return api.Reader{}, refuse("this project takes no reader tokens: create a secret to sign them with by docent reader-secret create %s", p.ID)
	}
	if len(token) > maxToken {
		return api.Reader{}, refuse("it is longer than %d bytes", maxToken)
	}
	var claims struct {
		jwt.RegisteredClaims
		Groups []string `json:"groups"`
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256", "ES256"}), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway),
		jwt.WithIssuedAt(), jwt.WithAudience(p.Domain, string(p.ID)), jwt.WithTimeFunc(v.now), jwt.WithStrictDecoding())
	_, err := parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) { return v.keys(ctx, p, t) })
	if err != nil {
		return api.Reader{}, v.reason(p, err)
	}
	switch {
	case claims.ExpiresAt.After(v.now().Add(MaxLife + leeway)):
		return api.Reader{}, refuse("its exp is more than %d hours ahead: sign tokens that end sooner, and fresh ones as they end",
			int(MaxLife.Hours()))
	case strings.TrimSpace(claims.Subject) == "":
		return api.Reader{}, refuse("the claim sub is missing: it says who the reader is")
	case claims.Subject == anonymous:
		return api.Reader{}, refuse("the claim sub is %q, which is nobody: send no token for readers who are not signed in", anonymous)
	case utf8.RuneCountInString(claims.Subject) > maxSubject || strings.ContainsFunc(claims.Subject, unicode.IsControl):
		return api.Reader{}, refuse("the claim sub must have at most %d characters, none of them a control character", maxSubject)
	case len(claims.Groups) > api.MaxGroups:
		return api.Reader{}, refuse("the claim groups must have at most %d entries", api.MaxGroups)
	}
	for i, g := range claims.Groups {
		if strings.TrimSpace(g) == "" || utf8.RuneCountInString(g) > api.MaxGroup {
			return api.Reader{}, refuse("the claim groups[%d] must have 1 to %d characters", i, api.MaxGroup)
		}
	}
	return api.Reader{Subject: claims.Subject, Groups: claims.Groups, Until: claims.ExpiresAt.Time}, nil
}

// refuse says why a token is not valid, in words for the client.
func refuse(format string, args ...any) error {
	return &api.StateError{Kind: api.ErrUnauthorized, Reason: "the reader token is not valid: " + fmt.Sprintf(format, args...)}
}

// reason turns what the parser says into what a client can act on. Claims are only spoken of once the signature is good.
func (v *Verifier) reason(p api.Project, err error) error {
	var refused *api.StateError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, api.ErrUnavailable):
		return err
	case errors.Is(err, jwt.ErrTokenMalformed):
		return refuse("it is not a JWT with a header, claims and a signature, or its claims have another form: " +
			"sub is a string, groups an array of strings, exp a number of seconds")
	case errors.Is(err, jwt.ErrTokenExpired):
		return refuse("it has expired: fetch a fresh one from the site's server")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return refuse("the claims exp and aud are required: exp is when it ends, aud is %q", p.Domain)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return refuse("it is for another audience: aud must be %q", p.Domain)
	case errors.Is(err, jwt.ErrTokenUsedBeforeIssued), errors.Is(err, jwt.ErrTokenNotValidYet):
		return refuse("its iat or nbf lies in the future: look at the clock of the server that signs")
	case errors.Is(err, jwt.ErrTokenInvalidClaims):
		return refuse("its claims are not valid: sub, groups, aud and exp are needed")
	}
	return refuse("its signature is not one of this project: sign with HS256 and a reader secret in use, " +
		"or with ES256 and a key that the project's JWKS address publishes")
}

// keys are those that may have signed a token, by its algorithm.
func (v *Verifier) keys(ctx context.Context, p api.Project, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, refuse("its header has crit, which names extensions that are not known here")
	}
	switch t.Method {
	case jwt.SigningMethodHS256:
		if len(p.ReaderSecrets) == 0 {
			return nil, refuse("it is signed with HS256, and this project has no reader secret")
		}
		keys, err := v.secrets(p)
		if err != nil {
			v.log.Error("could not read a reader secret", "project", p.ID, "error", err)
			return nil, fmt.Errorf("read the reader secrets of %s: %w: %w", p.ID, api.ErrUnavailable, err)
		}
		if len(keys) == 0 {
			return nil, refuse("the project's reader secrets are not on this server, as after a restore: create a new one")
		}
		return jwt.VerificationKeySet{Keys: keys}, nil
	case jwt.SigningMethodES256:
		if p.ReaderJWKS == "" {
			return nil, refuse("it is signed with ES256, and this project has no JWKS address")
		}
		kid, _ := t.Header["kid"].(string)
		keys, err := v.published(p).find(ctx, kid)
		if err != nil {
			return nil, fmt.Errorf("fetch the reader keys of %s: %w: %w", p.ID, api.ErrUnavailable, err)
		}
		if len(keys) == 0 {
			return nil, refuse("the project's JWKS address publishes no ES256 key of its kid")
		}
		return jwt.VerificationKeySet{Keys: keys}, nil
	}
	return nil, refuse("its algorithm is not HS256 or ES256")
}

// of is what is remembered of a project.
func (v *Verifier) of(p api.Project) *held {
	h := v.held[p.ID]
	if h == nil {
		h = &held{}
		v.held[p.ID] = h
	}
	return h
}

// secrets are the project's reader secrets. Those that are not there are left out.
func (v *Verifier) secrets(p api.Project) (keys []jwt.VerificationKey, err error) {
	files := make([]string, len(p.ReaderSecrets))
	for i, s := range p.ReaderSecrets {
		files[i] = s.File
	}
	v.mu.Lock()
	h := v.of(p)
	if slices.Equal(h.files, files) {
		defer v.mu.Unlock()
		return h.secrets, nil
	}
	v.mu.Unlock()
	for _, name := range files {
		text, err := v.secret(name)
		switch {
		case errors.Is(err, secrets.ErrMissing):
			continue
		case err != nil:
			return nil, err
		}
		keys = append(keys, []byte(text))
	}
	if len(keys) == len(files) {
		v.mu.Lock()
		defer v.mu.Unlock()
		h.files, h.secrets = files, keys
	}
	return keys, nil
}

// published are the keys at the project's JWKS address.
func (v *Verifier) published(p api.Project) *keySet {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.of(p)
	if h.keys == nil || h.keys.url != p.ReaderJWKS {
		h.keys = &keySet{url: p.ReaderJWKS, client: v.client, now: v.now, log: v.log.With("project", p.ID)}
	}
	return h.keys
}

// Check fetches the keys at an address once, and says what is wrong with it to who enters it.
func Check(ctx context.Context, policy outbound.Policy, url string) error {
	if _, err := newFetcher(policy).fetch(ctx, url); err != nil {
		return &api.InvalidError{Problems: []api.Problem{{Field: "readerJwks", Message: err.Error()}}}
	}
	return nil
}
