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
	"docent/web/people"
)

// late is a provider that is known only when the pages have their address.
type late struct{ *oidc.Provider }

// withProvider is a server whose people sign in with a real provider, which is called Tide.
func withProvider(t *testing.T, options ...func(*web.Deps)) (*fixture, *oidctest.Provider) {
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
	back := b.joins(tide, path, oidctest.Maria)
	header(t, b.do(http.MethodGet, back, nil), "Location", "/console")
	contains(t, b.open("/console/account"), "maria@example.com", "editor of org-a", "can sign in with Tide",
		"Set password")
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

// joins sends the form of an invitation's page and signs in at the provider. It gives the address that the provider
// sends the browser back to.
func (b *browser) joins(p *oidctest.Provider, path string, u oidctest.User) (back string) {
	b.t.Helper()
	res := b.send(path+"/provider", url.Values{"token": {b.token(b.open(path))}})
	_, address, ok := strings.Cut(res.Header.Get("Refresh"), "0; url=")
	if res.StatusCode != 200 || !ok {
		b.t.Fatalf("%s %v", res.Status, res.Header)
	}
	back, err := p.SignIn(address, u)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimPrefix(back, b.url)
}

func TestFollowingALinkNeverAcceptsAnInvitation(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t)
	path := link(t, h.as(h.person("olga", api.RoleOwner)).post(200, "/console/org-a/people/invite", "role", "owner"))
	known, err := h.catalog.AddPerson(t.Context(), api.Person{Email: "maria@example.com", Name: "M",
		Roles: map[api.OrgID]api.Role{"org-b": api.RoleEditor}}, "")
	if err != nil {
		t.Fatal(err)
	}
	b := h.browser()
	res := b.do(http.MethodGet, b.through(tide, "/login/oidc?invite="+strings.TrimPrefix(path, "/invite/"), oidctest.Maria), nil)
	if page, _ := io.ReadAll(res.Body); !b.signedInTo("/console/account") {
		t.Fatalf("not signed in: %s %s", res.Status, page)
	}
	if res := b.do(http.MethodPost, path+"/provider", nil); res.StatusCode/100 == 2 {
		t.Errorf("a form without a token: %s", res.Status)
	}
	if p, err := h.catalog.Person(t.Context(), known.ID); err != nil || len(p.Roles) != 1 {
		t.Errorf("a link that was followed made %+v of her, %v", p, err)
	}
	h.clock.advance(time.Minute)
	header(t, b.do(http.MethodGet, b.joins(tide, path, oidctest.Maria), nil), "Location", "/console")
	p, err := h.catalog.Person(t.Context(), known.ID)
	if err != nil || p.Roles["org-a"] != api.RoleOwner || p.Home != "org-b" {
		t.Errorf("who has joined is %+v, %v", p, err)
	}
}

func TestAnInvitationForAnAddressNeedsThatAddressVerified(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t)
	owner := h.as(h.person("olga", api.RoleOwner))
	path := link(t, owner.post(200, "/console/org-a/people/invite", "role", "editor", "email", "maria@example.com"))
	form := url.Values{"name": {"M"}, "email": {"maria@example.com"}, "password": {secret}}
	b := h.browser()
	form.Set("token", b.token(b.open(path)))
	if res := b.send(path, form); res.StatusCode != 403 || b.signedIn() {
		t.Errorf("with a password: %s", res.Status)
	}
	b = h.browser()
	if res := b.do(http.MethodGet, b.joins(tide, path, oidctest.Eve), nil); res.StatusCode != 403 || b.signedIn() {
		t.Errorf("with the address that the provider has not verified: %s", res.Status)
	}
	b = h.browser()
	header(t, b.do(http.MethodGet, b.joins(tide, path, oidctest.Maria), nil), "Location", "/console")
	contains(t, b.open("/console/account"), "editor of org-a")
}

func TestTheOwnersOfAPersonsFirstOrganizationKeepTheirRights(t *testing.T) {
	t.Parallel()
	h := build(t)
	maria, olga := h.person("maria", api.RoleViewer), h.as(h.person("olga", api.RoleOwner))
	h.clock.advance(time.Minute)
	if err := h.catalog.SetRole(t.Context(), maria.ID, "org-b", api.RoleOwner); err != nil {
		t.Fatal(err)
	}
	other, err := h.catalog.AddPerson(t.Context(), api.Person{Email: "bo@example.com", Name: "Bo",
		Roles: map[api.OrgID]api.Role{"org-b": api.RoleOwner}}, "")
	if err != nil {
		t.Fatal(err)
	}
	m := h.as(maria)
	menu := olga.open("/console/org-a/people")
	contains(t, menu, "Disable", "End all sessions")
	h.as(other).post(403, "/console/org-b/people/disable", "person", string(maria.ID))
	olga.post(403, "/console/org-a/people/link", "person", string(maria.ID)) // it would be one into org-b too
	olga.post(303, "/console/org-a/people/disable", "person", string(maria.ID))
	if m.signedIn() {
		t.Error("the session of who is disabled goes on")
	}
}

func TestWhoMayComeWithTheProvider(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t, func(d *web.Deps) {
		d.Newcomers = people.Newcomers{Domains: []string{"Elsewhere.example"}, Org: "org-b", Role: api.RoleViewer}
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

// The person who has chosen a password for an address need not own it: the two are connected by one who knows both.
func TestAnAccountWithAPasswordIsConnectedByItsOwner(t *testing.T) {
	t.Parallel()
	h, tide := withProvider(t)
	h.person("maria", api.RoleViewer)
	b := h.browser()
	res := b.do(http.MethodGet, b.through(tide, "/login/oidc", oidctest.Maria), nil)
	page, _ := io.ReadAll(res.Body)
	if res.StatusCode != 403 || b.signedIn() || !strings.Contains(string(page), "Sign in with its password") {
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
