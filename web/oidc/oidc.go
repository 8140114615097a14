// Package oidc signs people in with a provider of OpenID Connect: the authorization code flow with PKCE, state and
// nonce.
//
// The provider is asked for its description when somebody first signs in. While it cannot be reached, it is asked again
// after growing pauses, and everything else goes on.
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"docent/api"
	"docent/internal/background"
)

// A Config names a provider and what it knows this installation as.
type Config struct {
	Name         string // on the button
	Issuer       string
	ClientID     string
	ClientSecret func() string // asked for with each sign-in; nil for a client without one
	Scopes       []string      // openid, email and profile if empty
	Now          func() time.Time
}

// A Flow is one sign-in on its way. The browser keeps it meanwhile.
type Flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
}

// An Identity is whom the provider says that somebody is.
type Identity struct {
	Issuer        string
	Subject       string
	Email         string // in the spelling that people are found by
	EmailVerified bool
	Name          string
}

// Verified is the address that the provider has verified; empty if there is none.
func (i Identity) Verified() string {
	if !i.EmailVerified {
		return ""
	}
	return i.Email
}

// ErrRefused says that the provider, or the person there, refused, or that the answer cannot be trusted.
var ErrRefused = errors.New("the sign-in was refused")

const (
	timeout     = 10 * time.Second // of one request
	describedIn = time.Hour        // how long a description is good
	firstPause  = time.Second
	maxPause    = time.Minute
	maxAnswer   = 1 << 20
)

// A Provider is one provider. It may be used by many goroutines at once.
type Provider struct {
	config Config
	client *http.Client

	mu        sync.Mutex
	described *oidc.Provider
	until     time.Time     // when the description is asked for again
	pause     time.Duration // after the last failure
	failed    error
	asking    chan struct{} // closed when the answer is there; nil if nobody asks
}

// New makes a provider. It asks nothing of it yet.
func New(c Config) *Provider {
	if c.Now == nil {
		c.Now = time.Now
	}
	if len(c.Scopes) == 0 {
		c.Scopes = []string{"email", "profile"}
	}
	if !slices.Contains(c.Scopes, oidc.ScopeOpenID) {
		c.Scopes = append([]string{oidc.ScopeOpenID}, c.Scopes...)
	}
	return &Provider{config: c, client: &http.Client{Timeout: timeout, Transport: bounded{http.DefaultTransport}}}
}

// bounded reads no more of an answer than a provider has reason to send.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// Name is what the provider is called on pages.
func (p *Provider) Name() string { return cmp.Or(p.config.Name, "single sign-on") }

// describe is the provider's description. Those who need it at the same time share one request.
func (p *Provider) describe(ctx context.Context) (*oidc.Provider, error) {
	for {
		p.mu.Lock()
		if p.config.Now().Before(p.until) {
			defer p.mu.Unlock()
			return p.described, p.failed
		}
		asking := p.asking
		if asking == nil {
			asking = make(chan struct{})
			p.asking = asking
			background.Go("web/oidc.describe", func() { p.ask(context.WithoutCancel(ctx), asking) })
		}
		p.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask asks for the description, and remembers what has come of it.
func (p *Provider) ask(ctx context.Context, done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), timeout)
	defer cancel()
	var fresh *oidc.Provider
	err := background.Guard(func() (err error) {
		fresh, err = oidc.NewProvider(ctx, p.config.Issuer)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = nil
	if err == nil {
		p.described, p.failed, p.pause, p.until = fresh, nil, 0, p.config.Now().Add(describedIn)
		return
	}
	p.pause = min(max(firstPause, 2*p.pause), maxPause)
	p.until = p.config.Now().Add(p.pause)
	if p.described == nil {
		p.failed = fmt.Errorf("%w: ask the provider %s for its description: %w", api.ErrUnavailable, p.config.Issuer, err)
	}
}

func (p *Provider) oauth(described *oidc.Provider, redirect string) *oauth2.Config {
	c := &oauth2.Config{ClientID: p.config.ClientID, Endpoint: described.Endpoint(), RedirectURL: redirect, Scopes: p.config.Scopes}
	if p.config.ClientSecret != nil {
		c.ClientSecret = p.config.ClientSecret()
	}
	return c
}

// Begin begins a sign-in: the browser is sent to the address, and comes back to redirect.
func (p *Provider) Begin(ctx context.Context, redirect string) (address string, f Flow, err error) {
	described, err := p.describe(ctx)
	if err != nil {
		return "", Flow{}, err
	}
	f = Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return p.oauth(described, redirect).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)),
		f, nil
}

// Finish ends a sign-in with what the browser brought back. It fails with ErrRefused if that is not the answer to
// this flow, and with api.ErrUnavailable if the provider cannot be asked.
func (p *Provider) Finish(ctx context.Context, redirect string, f Flow, answer url.Values) (Identity, error) {
	if f.State == "" || subtle.ConstantTimeCompare([]byte(f.State), []byte(answer.Get("state"))) != 1 {
		return Identity{}, fmt.Errorf("%w: it was not begun in this browser, or too long ago", ErrRefused)
	}
	if iss := answer.Get("iss"); iss != "" && iss != p.config.Issuer {
		return Identity{}, fmt.Errorf("%w: the answer is of another provider", ErrRefused)
	}
	if reason := answer.Get("error"); reason != "" {
		return Identity{}, fmt.Errorf("%w: the provider says %.100q", ErrRefused, reason)
	}
	described, err := p.describe(ctx)
	if err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	oauth := p.oauth(described, redirect)
	token, err := oauth.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok && said.Response.StatusCode < 500 {
			return Identity{}, fmt.Errorf("%w: the provider does not take the code: %w", ErrRefused, err)
		}
		return Identity{}, fmt.Errorf("%w: exchange the code: %w", api.ErrUnavailable, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, fmt.Errorf("%w: the provider gives no ID token", ErrRefused)
	}
	verified, err := described.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.config.Now}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: the ID token: %w", ErrRefused, err)
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(f.Nonce)) != 1 {
		return Identity{}, fmt.Errorf("%w: the ID token is of another sign-in", ErrRefused)
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return Identity{}, fmt.Errorf("%w: the ID token's claims: %w", ErrRefused, err)
	}
	// Of a token for several parties, azp names the one that it was issued to.
	if c.AuthorizedParty != p.config.ClientID && (c.AuthorizedParty != "" || len(verified.Audience) > 1) {
		return Identity{}, fmt.Errorf("%w: the ID token is issued to another client", ErrRefused)
	}
	if c.Email == "" || c.Name == "" {
		if err := p.more(ctx, described, oauth, token, verified.Subject, &c); err != nil {
			return Identity{}, err
		}
	}
	return c.identity(verified.Issuer, verified.Subject), nil
}

// more asks the provider for what the ID token does not say: many keep it short.
func (p *Provider) more(ctx context.Context, described *oidc.Provider, oauth *oauth2.Config, token *oauth2.Token,
	subject string, c *claims) error {
	if described.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := described.UserInfo(ctx, oauth.TokenSource(ctx, token))
	if err != nil {
		return fmt.Errorf("%w: ask who it is: %w", api.ErrUnavailable, err)
	}
	if info.Subject != subject {
		return fmt.Errorf("%w: the provider names two different people", ErrRefused)
	}
	var found claims
	if err := info.Claims(&found); err != nil {
		return fmt.Errorf("%w: the provider's answer: %w", ErrRefused, err)
	}
	if c.Email == "" {
		c.Email, c.Verified = found.Email, found.Verified
	}
	c.Name, c.Preferred = cmp.Or(c.Name, found.Name), cmp.Or(c.Preferred, found.Preferred)
	return nil
}

// claims are what providers say of people. Some write email_verified as a text.
type claims struct {
	Email     string          `json:"email"`
	Verified  json.RawMessage `json:"email_verified"`
	Name      string          `json:"name"`
	Preferred string          `json:"preferred_username"`

	AuthorizedParty string `json:"azp"`
}

func (c claims) identity(issuer, subject string) Identity {
	verified := strings.Trim(string(c.Verified), `"`) == "true"
	email := api.CleanEmail(c.Email)
	return Identity{Issuer: issuer, Subject: subject, Email: email, EmailVerified: verified && email != "",
		Name: cmp.Or(strings.TrimSpace(c.Name), c.Preferred, email)}
}
