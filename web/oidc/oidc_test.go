package oidc_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/web/oidc"
	"docent/web/oidc/oidctest"
)

const back = "http://localhost:8080/login/callback"

func newProvider(p *oidctest.Provider) *oidc.Provider {
	return oidc.New(oidc.Config{Name: "Tide", Issuer: p.Issuer, ClientID: oidctest.ClientID,
		ClientSecret: oidctest.ClientSecret})
}

func answer(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, back+"?") {
		t.Fatalf("sent back to %q, %v", address, err)
	}
	return u.Query()
}

func TestSignInWithARealProvider(t *testing.T) {
	t.Parallel()
	real := oidctest.Start(t, back)
	p := newProvider(real)
	for _, c := range []struct {
		user     oidctest.User
		email    string
		verified bool
	}{{oidctest.Maria, "maria@example.com", true}, {oidctest.Eve, "maria@example.com", false}} {
		address, flow, err := p.Begin(t.Context(), back)
		if err != nil {
			t.Fatal(err)
		}
		if q := must(url.Parse(address))(t).Query(); q.Get("code_challenge_method") != "S256" || q.Get("state") != flow.State ||
			q.Get("nonce") != flow.Nonce || strings.Contains(address, flow.Verifier) {
			t.Errorf("the browser is sent to %s", address)
		}
		got, err := p.Finish(t.Context(), back, flow, answer(t, must(real.SignIn(address, c.user))(t)))
		if err != nil {
			t.Fatal(err)
		}
		want := oidc.Identity{Issuer: real.Issuer, Subject: c.user.ID, Email: c.email, EmailVerified: c.verified,
			Name: c.user.FirstName + " " + c.user.LastName}
		if got != want {
			t.Errorf("it is %+v, want %+v", got, want)
		}
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestAnAnswerThatIsNotToThisFlowIsRefused(t *testing.T) {
	t.Parallel()
	real := oidctest.Start(t, back)
	p := newProvider(real)
	begin := func() (oidc.Flow, url.Values) {
		address, flow, err := p.Begin(t.Context(), back)
		if err != nil {
			t.Fatal(err)
		}
		return flow, answer(t, must(real.SignIn(address, oidctest.Maria))(t))
	}
	for name, spoil := range map[string]func(*oidc.Flow, url.Values){
		"another state":           func(_ *oidc.Flow, v url.Values) { v.Set("state", "x") },
		"no state at all":         func(f *oidc.Flow, v url.Values) { f.State = ""; v.Del("state") },
		"another browser's nonce": func(f *oidc.Flow, _ url.Values) { f.Nonce = "x" },
		"without its verifier":    func(f *oidc.Flow, _ url.Values) { f.Verifier = strings.Repeat("x", 43) },
		"another code":            func(_ *oidc.Flow, v url.Values) { v.Set("code", "x") },
		"of another issuer":       func(_ *oidc.Flow, v url.Values) { v.Set("iss", "https://evil.example.com") },
		"the person said no":      func(_ *oidc.Flow, v url.Values) { v.Set("error", "access_denied") },
	} {
		flow, v := begin()
		spoil(&flow, v)
		if got, err := p.Finish(t.Context(), back, flow, v); !errors.Is(err, oidc.ErrRefused) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	flow, v := begin()
	if _, err := p.Finish(t.Context(), back, flow, v); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Finish(t.Context(), back, flow, v); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("the same code again: %v", err)
	}
	other := oidc.New(oidc.Config{Issuer: real.Issuer, ClientID: oidctest.ClientID, ClientSecret: func() string { return "wrong" }})
	flow, v = begin()
	if _, err := other.Finish(t.Context(), back, flow, v); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("with a wrong secret: %v", err)
	}
}

func TestAProviderThatIsDownComesBack(t *testing.T) {
	t.Parallel()
	real := oidctest.Start(t, back)
	real.Stop()
	var clock atomic.Int64
	p := oidc.New(oidc.Config{Issuer: real.Issuer, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret,
		Now: func() time.Time { return time.Now().Add(time.Duration(clock.Load())) }})
	if _, _, err := p.Begin(t.Context(), back); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("while it is down: %v", err)
	}
	real.Run()
	clock.Add(int64(2 * time.Minute))
	address, flow, err := p.Begin(t.Context(), back)
	if err != nil {
		t.Fatalf("once it is back: %v", err)
	}
	v := answer(t, must(real.SignIn(address, oidctest.Maria))(t))
	real.Stop()
	if _, err := p.Finish(t.Context(), back, flow, v); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("when it goes away on the way: %v", err)
	}
}

// TestAProviderThatFailsIsLeftAlone counts what it is asked: one request, however many want to sign in, until the pause
// is over.
func TestAProviderThatFailsIsLeftAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "down", http.StatusBadGateway)
	}))
	t.Cleanup(down.Close)
	var clock atomic.Int64
	began := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	p := oidc.New(oidc.Config{Issuer: down.URL, ClientID: "x",
		Now: func() time.Time { return began.Add(time.Duration(clock.Load())) }})
	for round := range 3 {
		var many sync.WaitGroup
		for range 20 {
			many.Go(func() {
				if _, _, err := p.Begin(t.Context(), back); !errors.Is(err, api.ErrUnavailable) {
					t.Errorf("%v", err)
				}
			})
		}
		many.Wait()
		if got := asked.Load(); got != int32(round+1) {
			t.Fatalf("it was asked %d times in round %d", got, round)
		}
		clock.Add(int64(2 * time.Minute))
	}
}
