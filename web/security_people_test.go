package web_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/web"
)

// plant gives a browser a cookie, as somebody on the way to it could.
func (b *browser) plant(name, value string) {
	u, _ := url.Parse(b.url)
	b.client.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

func (b *browser) signedIn() bool {
	b.t.Helper()
	return b.do(http.MethodGet, "/console", nil).StatusCode == http.StatusOK
}

// The cookie from before the sign-in is worth nothing afterwards to anybody who knew or planted it.
func TestASignInMakesATokenThatNobodyHad(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.browser()
	const planted = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	b.plant("docent_session", planted)
	b.signIn(h.admin, "/console")
	first := b.cookie("docent_session")
	if first == "" || first == planted || !b.signedIn() {
		t.Fatalf("after the sign-in the cookie is %q", first)
	}
	thief := h.browser()
	thief.plant("docent_session", planted)
	if thief.signedIn() {
		t.Error("the planted token is signed in")
	}
	b.send("/login", url.Values{"key": {h.admin}, "token": {b.token(b.open("/console"))}})
	if second := b.cookie("docent_session"); second == first || second == "" {
		t.Errorf("signing in again keeps the token")
	}
	thief.plant("docent_session", first)
	if thief.signedIn() {
		t.Error("the token before the second sign-in is still good")
	}
}

func TestASessionThatEndedCannotBePlayedAgain(t *testing.T) {
	t.Parallel()
	h := build(t)
	b, thief := h.browser(), h.browser()
	b.signIn(h.admin, "/console")
	thief.plant("docent_session", b.cookie("docent_session"))
	if !thief.signedIn() {
		t.Fatal("the stolen token is not good while the session goes on: this test sees nothing")
	}
	b.send("/logout", url.Values{"token": {b.token(b.open("/console"))}})
	if thief.signedIn() {
		t.Error("after the sign-out the token is still good")
	}
}

func TestARevokedKeysSessionIsOutAtOnce(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.browser()
	b.signIn(h.admin, "/console")
	if !b.signedIn() {
		t.Fatal("not signed in")
	}
	key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(h.admin))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.catalog.RevokeKey(t.Context(), key.ID, h.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if b.signedIn() {
		t.Error("the key is revoked, and the session goes on")
	}
}

// A way back leads to a page of ours, whatever a link to the sign-in page says.
func TestNoSignInLeadsToAnotherSite(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, evil := range []string{
		"//evil.example", "///evil.example", "////evil.example/console/", `/\evil.example`, `\\evil.example`, "https://evil.example/console/",
		"https:evil.example", "javascript:alert(1)", "data:text/html,x", "/\t/evil.example", "/console/\r\nX: y", "%2f%2fevil.example",
		"/%2fevil.example", "/console/../../../evil", "/logout", "/login/oidc", "/enter/x", "http:///console/", "console/",
		"@evil.example", "/.evil.example", "//user@evil.example/console/", "https://evil.example\\@localhost/console/",
	} {
		b := h.browser()
		form := b.open("/login?next=" + url.QueryEscape(evil))
		hidden := regexp.MustCompile(`name="next" value="([^"]*)"`).FindStringSubmatch(form)
		res := b.send("/login", url.Values{"key": {h.admin}, "next": {evil}, "token": {b.token(form)}})
		to := res.Header.Get("Location")
		if res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/console") || strings.Contains(to, "\\") {
			t.Errorf("%q leads to %q (%s)", evil, to, res.Status)
		}
		if hidden == nil || !strings.HasPrefix(hidden[1], "/console") {
			t.Errorf("%q is on the page as %q", evil, hidden)
		}
		u, err := url.Parse(to)
		if err != nil || u.IsAbs() || u.Host != "" {
			t.Errorf("%q leads to %q", evil, to)
		}
	}
}

var masked = regexp.MustCompile(`name="token" value="[^"]+"`)

// Whether somebody has an account, is disabled, or signs in another way, the page does not tell.
func TestTheSignInPageDoesNotTellWhoHasAnAccount(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.person("olga", api.RoleOwner)
	disabled := h.person("disabled", api.RoleViewer)
	if err := h.catalog.DisablePerson(t.Context(), disabled.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := h.catalog.AddPerson(t.Context(), api.Person{Email: "none@example.com", Name: "No password",
		Roles: map[api.OrgID]api.Role{"org-a": api.RoleViewer}}, ""); err != nil {
		t.Fatal(err)
	}
	answer := func(email, password string) (int, string) {
		t.Helper()
		res := h.browser().signInAs(email+"@example.com", password)
		page, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, strings.ReplaceAll(masked.ReplaceAllString(string(page), ""), email, "")
	}
	status, page := answer("nobody", secret)
	if status != http.StatusUnauthorized {
		t.Fatalf("%d: %s", status, page)
	}
	for email, password := range map[string]string{"olga": "wrong", "disabled": secret, "none": "", "maria": ""} {
		if s, p := answer(email, password); s != status || p != page {
			t.Errorf("%s: %d, and not the same page:\n%s", email, s, p)
		}
	}
}

// from is a browser at another address of this machine.
func (h *fixture) from(ip string) *browser {
	b := h.browser()
	b.client.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext}
	return b
}

func TestGuessingIsStopped(t *testing.T) {
	t.Parallel()
	h := build(t)
	maria := h.person("maria", api.RoleViewer)
	guess := func(b *browser, email, password string) int { return b.signInAs(email, password).StatusCode }
	b := h.from("127.0.0.1")
	guess(b, maria.Email, secret) // what succeeds does not count
	for range 10 {
		if got := guess(h.from("127.0.0.1"), "some@example.com", "x"); got != http.StatusUnauthorized {
			t.Fatalf("a wrong password: %d", got)
		}
	}
	late := h.from("127.0.0.1")
	if got := guess(late, maria.Email, secret); got != http.StatusTooManyRequests {
		t.Errorf("the eleventh from this address, with the right password: %d", got)
	}
	if got := late.signIn(h.admin, "/console").StatusCode; got != http.StatusTooManyRequests {
		t.Errorf("with a key: %d", got)
	}
	if got := guess(h.from("127.0.0.2"), maria.Email, secret); got != http.StatusSeeOther {
		t.Errorf("from another address: %d", got)
	}
	h.clock.advance(10*time.Minute + time.Second)
	if got := guess(h.from("127.0.0.1"), maria.Email, secret); got != http.StatusSeeOther {
		t.Errorf("after the window: %d", got)
	}
	// Many addresses guess the password of one account.
	refused := 0
	for i := range 40 {
		if guess(h.from("127.0.1."+string(rune('1'+i%9))), "maria@EXAMPLE.com", "x") == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("of forty guesses at one account %d were refused, want ten", refused)
	}
	if got := guess(h.from("127.0.0.9"), maria.Email, secret); got != http.StatusTooManyRequests {
		t.Errorf("one more, with the right password: %d", got)
	}
}

// Who guesses somebody's password from many addresses does not keep that person's own browser out.
func TestGuessesFromElsewhereKeepNobodyOutOfTheirOwnBrowser(t *testing.T) {
	t.Parallel()
	h := build(t)
	maria, olaf := h.person("maria", api.RoleViewer), h.person("olaf", api.RoleViewer)
	own := h.from("127.0.0.7")
	if got := own.signInAs(maria.Email, secret).StatusCode; got != http.StatusSeeOther {
		t.Fatalf("the first time: %d", got)
	}
	for i := range 40 {
		h.from("127.0.1."+string(rune('1'+i%9))).signInAs(maria.Email, "x")
		h.from("127.0.2."+string(rune('1'+i%9))).signInAs(olaf.Email, "x")
	}
	if got := own.signInAs(maria.Email, secret).StatusCode; got != http.StatusSeeOther {
		t.Errorf("the browser that she signs in with: %d", got)
	}
	if got := h.from("127.0.0.8").signInAs(maria.Email, secret).StatusCode; got != http.StatusTooManyRequests {
		t.Errorf("another browser: %d", got)
	}
	// Her browser is no way to another account, and its own guesses are counted.
	if got := own.signInAs(olaf.Email, secret).StatusCode; got != http.StatusTooManyRequests {
		t.Errorf("another account in her browser: %d", got)
	}
	refused := 0
	for range 15 {
		if own.signInAs(maria.Email, "x").StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("guesses in a known browser are not counted")
	}
}

// Many guesses at once are as many as one after the other.
func TestGuessingAtOnceIsNoWayAround(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.person("maria", api.RoleViewer)
	b := h.browser()
	form := url.Values{"email": {"maria@example.com"}, "password": {"x"}, "token": {b.token(b.open("/login"))}}
	var many sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for range 40 {
		many.Go(func() {
			status := b.send("/login", form).StatusCode
			mu.Lock()
			defer mu.Unlock()
			counts[status]++
		})
	}
	many.Wait()
	if counts[http.StatusUnauthorized] != 10 || counts[http.StatusTooManyRequests] != 30 {
		t.Errorf("%v", counts)
	}
}

// An owner has power over the people of the own organization, and over nobody else.
func TestAnOwnerHasNoPowerOverOthersPeople(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.as(h.person("olga", api.RoleOwner))
	stranger, err := h.catalog.AddPerson(t.Context(), api.Person{Email: "s@example.com", Name: "S",
		Roles: map[api.OrgID]api.Role{"org-b": api.RoleViewer}}, "")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := h.catalog.AddPerson(t.Context(), api.Person{Email: "both@example.com", Name: "Both",
		Roles: map[api.OrgID]api.Role{"org-a": api.RoleViewer, api.DefaultOrg: api.RoleOwner}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"role", "remove", "disable", "link", "end"} {
		b.post(404, "/console/org-a/people/"+form, "person", string(stranger.ID), "role", "owner")
		b.post(404, "/console/org-b/people/"+form, "person", string(stranger.ID), "role", "owner")
		b.post(404, "/console/org-a/people/"+form, "person", "usr_none", "role", "owner")
	}
	// By the link of who is elsewhere too an owner would get in there.
	for _, form := range []string{"link", "disable", "end"} {
		b.post(403, "/console/org-a/people/"+form, "person", string(shared.ID))
	}
	if n := strings.Count(b.open("/console/org-a/people"), "Create a password link"); n != 1 {
		t.Errorf("the page offers a link for %d people, want the one of this organization alone", n)
	}
	b.text(404, "/console/org-b/people")
	b.text(404, "/console/org-b/audit.csv")
	b.text(404, "/console/nobody/people")
	viewer := h.as(h.person("maria", api.RoleViewer))
	page := viewer.open("/console/org-a/people")
	for _, never := range []string{"/people/invite", "/people/role", "/people/remove", "Open invitations"} {
		if strings.Contains(page, never) {
			t.Errorf("a viewer's page has %q", never)
		}
	}
	viewer.text(403, "/console/org-a/audit")
	viewer.text(403, "/console/org-a/audit.csv")
}

// Over TLS the cookies bear the name that no other host can plant.
func TestCookiesAreBoundToTheHost(t *testing.T) {
	t.Parallel()
	h := build(t, func(d *web.Deps) { d.PublicURL = "https://docent.example.com" })
	res := h.browser().do(http.MethodGet, "/login", nil)
	found := false
	for _, c := range res.Cookies() {
		found = found || c.Name == "__Host-docent_visit"
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" ||
			c.SameSite != http.SameSiteLaxMode {
			t.Errorf("%+v", c)
		}
	}
	if !found {
		t.Errorf("the cookies are %v", res.Cookies())
	}
	// A cookie without the prefix, as another host of the domain could set it, is nobody's.
	m := h.person("maria", api.RoleOwner)
	token := "BBBBBBBBBBBBBBBBBBBBBBBBBB"
	if _, err := h.catalog.AddSession(t.Context(), api.SignIn{Kind: api.SessionOfPerson, Person: m.ID,
		ExpiresAt: h.clock.Now().Add(time.Hour), Idle: time.Hour}, api.HashSecret(token)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"docent_session": http.StatusSeeOther, "__Host-docent_session": http.StatusOK} {
		if res := h.browser().do(http.MethodGet, "/console/account", nil, "Cookie", name+"="+token); res.StatusCode != want {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
}
