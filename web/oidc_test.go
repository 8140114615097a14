package web_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/web"
	"docent/web/oidc"
	"docent/web/oidc/oidctest"
)

// late is a provider that is known only when the pages have their address.
type late struct{ *oidc.Provider }

// withProvider is a house whose people sign in with a real provider, which is called Tide.
func withProvider(t *testing.T, options ...func(*web.Deps)) (*house, *oidctest.Provider) {
	t.Helper()
	to := new(late)
	h := build(t, append(options, func(d *web.Deps) { d.Provider = to })...)
	real := oidctest.Start(t, h.url+"/login/callback")
	to.Provider = oidc.New(oidc.Config{Name: "Tide", Issuer: real.Issuer, ClientID: oidctest.ClientID,
		ClientSecret: oidctest.ClientSecret})
	return h, real
}

// through signs in at the provider: from an address of ours to the one that the provider sends the browser back to.
func (b *browser) through(p *oidctest.Provider, from string, u oidctest.User) (back string) {
	b.t.Helper()
	res := b.do(http.MethodGet, from, nil)
	if res.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("GET %s: %s", from, res.Status)
	}
	back, err := p.SignIn(res.Header.Get("Location"), u)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimPrefix(back, b.url)
}

func TestAnInvitedPersonJoinsWithTheProvider(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t)
	owner := h.as(h.person("olga", api.RoleOwner))
	path := link(t, owner.post(200, "/console/org-a/people/invite", "role", "editor"))
	b := h.browser()
	contains(t, b.open(path), "Join with Tide")
	back := b.through(tide, "/login/oidc?invite="+strings.TrimPrefix(path, "/invite/"), oidctest.Maria)
	header(t, b.do(http.MethodGet, back, nil), "Location", "/console")
	contains(t, b.open("/console/account"), "maria@example.com", "editor of org-a", "can sign in with Tide",
		"Choose the password")
	contains(t, owner.open("/console/org-a/people"), "Maria Lindqvist", "Tide")

	// Afterwards the button on the sign-in page is enough.
	again := h.browser()
	contains(t, again.open("/login"), "Sign in with Tide")
	back = again.through(tide, "/login/oidc?next=/console/account", oidctest.Maria)
	header(t, again.do(http.MethodGet, back, nil), "Location", "/console/account")
	if !again.signedIn() {
		t.Error("not signed in")
	}
	// What the provider sent back is good once, and in the browser that began.
	for who, other := range map[string]*browser{"the same browser": again, "another one": h.browser()} {
		if res := other.do(http.MethodGet, back, nil); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with the same answer: %s", who, res.Status)
		}
	}
	victim := h.browser()
	stolen := h.browser().through(tide, "/login/oidc", oidctest.Maria)
	victim.through(tide, "/login/oidc", oidctest.Olga) // has begun a sign-in of its own
	if res := victim.do(http.MethodGet, stolen, nil); res.StatusCode != http.StatusUnauthorized || victim.signedIn() {
		t.Errorf("a browser takes the answer to another one's sign-in: %s", res.Status)
	}
	p, _, err := h.catalog.PersonByEmail(t.Context(), "maria@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.catalog.DisablePerson(t.Context(), p.ID, true); err != nil {
		t.Fatal(err)
	}
	gone := h.browser()
	back = gone.through(tide, "/login/oidc", oidctest.Maria)
	if res := gone.do(http.MethodGet, back, nil); res.StatusCode != http.StatusForbidden || gone.signedIn() {
		t.Errorf("who is disabled: %s", res.Status)
	}
}

func TestWhoMayComeWithTheProvider(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t, func(d *web.Deps) {
		d.Newcomers = web.Newcomers{Domains: []string{"Elsewhere.example"}, Org: "org-b", Role: api.RoleViewer}
	})
	come := func(u oidctest.User) (*browser, int, string) {
		t.Helper()
		b := h.browser()
		res := b.do(http.MethodGet, b.through(tide, "/login/oidc", u), nil)
		page, _ := io.ReadAll(res.Body)
		return b, res.StatusCode, string(page)
	}
	if b, status, page := come(oidctest.Maria); status != 403 || b.signedIn() || !strings.Contains(page, "no account here") {
		t.Errorf("a stranger: %d %s", status, page)
	}
	b, status, page := come(oidctest.Olga)
	if status != 303 || !strings.Contains(b.open("/console/account"), "viewer of org-b") {
		t.Errorf("one of a domain that is let in: %d %s", status, page)
	}
	// A person without another way in is known by the verified address. The same address that nobody has verified is
	// nobody's.
	known, err := h.catalog.AddPerson(t.Context(), api.Person{Email: "maria@example.com", Name: "M",
		Roles: map[api.OrgID]api.Role{"org-a": api.RoleEditor}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if b, status, page := come(oidctest.Eve); status != 403 || b.signedIn() {
		t.Errorf("with an address that is not verified: %d %s", status, page)
	}
	if b, status, page := come(oidctest.Maria); status != 303 || !strings.Contains(b.open("/console/account"), "editor of org-a") {
		t.Errorf("with the verified address: %d %s", status, page)
	}
	if p, err := h.catalog.PersonByIdentity(t.Context(), tide.Issuer, oidctest.Maria.ID); err != nil || p.ID != known.ID {
		t.Errorf("%+v, %v", p, err)
	}
}

// Whoever has chosen a password for an address need not be who has it: the two are connected by who knows both.
func TestAnAccountWithAPasswordIsConnectedByItsOwner(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t)
	h.person("maria", api.RoleViewer)
	b := h.browser()
	res := b.do(http.MethodGet, b.through(tide, "/login/oidc", oidctest.Maria), nil)
	page, _ := io.ReadAll(res.Body)
	if res.StatusCode != 403 || b.signedIn() || !strings.Contains(string(page), "Sign in with the password") {
		t.Fatalf("%s: %s", res.Status, page)
	}
	b.signInAs("maria@example.com", secret)
	res = b.send("/console/account/connect", url.Values{"token": {b.token(b.open("/console/account"))}})
	_, address, ok := strings.Cut(res.Header.Get("Refresh"), "0; url=")
	if res.StatusCode != 200 || !ok {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	back, err := tide.SignIn(address, oidctest.Maria)
	if err != nil {
		t.Fatal(err)
	}
	back = strings.TrimPrefix(back, h.url)
	if res := h.as(h.person("eve", api.RoleViewer)).do(http.MethodGet, back, nil); res.StatusCode != 401 {
		t.Errorf("in another person's browser: %s", res.Status)
	}
	header(t, b.do(http.MethodGet, back, nil), "Location", "/console/account")
	other := h.browser()
	other.do(http.MethodGet, other.through(tide, "/login/oidc", oidctest.Maria), nil)
	contains(t, other.open("/console/account"), "maria@example.com")
	b.post(303, "/console/account/disconnect")
	other = h.browser()
	if res := other.do(http.MethodGet, other.through(tide, "/login/oidc", oidctest.Maria), nil); res.StatusCode != 403 {
		t.Errorf("once it is disconnected: %s", res.Status)
	}
}

func TestAProviderThatIsDownHarmsNothing(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t)
	tide.Stop()
	b := h.browser()
	page, _ := b.text(503, "/login/oidc")
	contains(t, page, "Tide cannot be reached now", `name="password"`)
	began := time.Now()
	b.signInAs(h.person("maria", api.RoleViewer).Email, secret)
	if !b.signedIn() || time.Since(began) >= 10*time.Second { // for which a provider is waited for
		t.Error("without the provider nobody can sign in with a password")
	}
}

func TestWithoutAProviderThereIsNoSuchPage(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.browser().text(404, "/login/oidc")
	h.browser().text(404, "/login/callback?code=x&state=y")
}
