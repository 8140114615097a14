package web_test

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/web"
	"docent/web/console"
)

// byKey is a browser at an address of this machine in which somebody tries to sign in with a key.
func (h *fixture) byKey(secret, address string) *browser {
	h.t.Helper()
	b := h.from(address)
	b.signIn(secret, "/console")
	return b
}

// The attack as it was found: a key for one address and one hour invites an owner of the default organization, who is the
// operator from anywhere and permanently.
func TestAKeyNeverBecomesAnOperator(t *testing.T) {
	t.Parallel()
	h := build(t)
	ends := h.clock.Now().Add(time.Hour)
	for name, scopes := range map[string][]string{"write": {api.ScopeWrite}, "both": nil} {
		b := h.byKey(h.key(api.Key{Kind: api.AdminKey, Org: api.DefaultOrg, Name: name, Scopes: scopes,
			AllowIP: []string{"127.0.0.7"}, ExpiresAt: &ends}), "127.0.0.7")
		form := url.Values{"role": {"owner"}, "token": {b.token(b.open("/login"))}}
		res := b.send("/console/default/people/invite", form)
		page := b.read(res)
		if m := shownLink.FindStringSubmatch(page); m != nil {
			guest := h.browser()
			guest.send(m[1], url.Values{"token": {guest.token(guest.open(m[1]))}, "name": {"Eve"}, "email": {name + "@example.com"},
				"password": {secret}})
			if guest.do(http.MethodGet, "/console/system", nil).StatusCode == http.StatusOK {
				t.Errorf("the key %s became an operator", name)
			}
			t.Errorf("the key %s invited an owner", name)
		}
		res = b.send("/console/org-a/docs.acme.example/keys/create", form)
		if strings.Contains(b.read(res), "dct_adm_") {
			t.Errorf("the key %s made a key", name)
		}
	}
	// Who owns the default organization does not run the server by that.
	owner, err := h.catalog.AddPerson(t.Context(), api.Person{Email: "olga@example.com", Name: "Olga",
		Roles: map[api.OrgID]api.Role{api.DefaultOrg: api.RoleOwner}}, kept())
	if err != nil {
		t.Fatal(err)
	}
	b := h.as(owner)
	b.text(200, "/console/default/people")
	b.text(404, "/console/system")
	b.text(404, "/console/setup")
}

// pages are the addresses of the console that a test asks for, in the organization org-a, by method.
func (h *fixture) pages(method string) (list []console.Rule) {
	for _, r := range h.server.Rules() {
		if r.Method == method {
			r.Pattern = strings.NewReplacer(":org", "org-a", ":domain", "docs.acme.example", ":thread", "thr_1", ":id", "x",
				":label", "x", ":task", "x", ":update", "x", ":seq", "1", ":token", "x", ":file", "x").Replace(r.Pattern)
			list = append(list, r)
		}
	}
	return list
}

func TestAKeyNeverOpensThePeoplePageNorKeysNorTheAuditLog(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.browser()
	b.signIn(h.admin, "/console")
	for _, path := range []string{"/console/org-a/people", "/console/org-a/docs.acme.example/keys"} {
		page, _ := b.text(403, path)
		contains(t, page, "needs a person")
	}
	for _, path := range []string{"/console/org-a/audit", "/console/org-a/audit.csv"} {
		b.text(403, path)
	}
	token, found := b.token(b.open("/console/account")), 0
	for _, r := range h.pages("POST") {
		if r.NotKeys {
			found++
			if res := b.send(r.Pattern, url.Values{"token": {token}}); res.StatusCode != 403 && res.StatusCode != 404 {
				t.Errorf("%s is answered %s", r.Pattern, res.Status)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d forms are for people alone", found)
	}
	page := b.open("/console/org-a/docs.acme.example")
	for _, never := range []string{`/people"`, `/keys"`, `/audit"`} {
		if strings.Contains(page, never) {
			t.Errorf("the menu leads a key to %s", never)
		}
	}
}

// A key's session is no more than the key: what lasts longer than the key does, nobody makes with it.
func TestAKeysSessionIsNoOwners(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.browser()
	b.signIn(h.admin, "/console")
	b.text(200, "/console/org-a/docs.acme.example")
	b.text(200, "/console/org-a/docs.acme.example/jobs/new")
	token := b.token(b.open("/console/account"))
	for _, r := range h.pages("POST") {
		if r.Need != "owner" && r.Need != "operator" {
			continue
		}
		if res := b.send(r.Pattern, url.Values{"token": {token}}); res.StatusCode != 403 && res.StatusCode != 404 {
			t.Errorf("%s (%s) is answered %s", r.Pattern, r.Need, res.Status)
		}
	}
}

func TestAKeyReadsInTheConsoleNothingThatItsScopesDeny(t *testing.T) {
	t.Parallel()
	h := build(t)
	write, read := h.browser(), h.browser()
	write.signIn(h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeWrite}}), "/console")
	read.signIn(h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeRead}}), "/console")
	for _, r := range h.pages("GET") {
		if r.Need == "anybody" || r.Need == "signed in" {
			continue
		}
		if res := write.do("GET", r.Pattern, nil); res.StatusCode != 403 && res.StatusCode != 404 {
			t.Errorf("a key that may only write gets %s: %s", r.Pattern, res.Status)
		}
	}
	if page := write.open("/console?all=1"); strings.Contains(page, "docs.acme.example") {
		t.Error("a key that may only write sees the projects")
	}
	read.text(200, "/console/org-a/docs.acme.example")
	token := read.token(read.open("/console/account"))
	for _, r := range h.pages("POST") {
		if r.Need == "anybody" || r.Need == "signed in" {
			continue
		}
		if res := read.send(r.Pattern, url.Values{"token": {token}}); res.StatusCode != 403 && res.StatusCode != 404 {
			t.Errorf("a key that may only read does %s: %s", r.Pattern, res.Status)
		}
	}
}

// The key is looked up at each request, whatever became of it since the sign-in.
func TestAKeysSessionEndsWithTheKeyAndHoldsAtItsAddressesAlone(t *testing.T) {
	t.Parallel()
	h := build(t)
	ends := h.clock.Now().Add(time.Hour)
	secret := h.key(api.Key{Kind: api.AdminKey, Org: "org-a", AllowIP: []string{"127.0.0.7"}, ExpiresAt: &ends})
	b, thief := h.byKey(secret, "127.0.0.7"), h.from("127.0.0.8")
	if !b.signedInTo("/console/org-a/docs.acme.example") {
		t.Fatal("the key is not signed in")
	}
	thief.plant("docent_session", b.cookie("docent_session"))
	if thief.signedInTo("/console/org-a/docs.acme.example") {
		t.Error("its session holds at another address")
	}
	h.clock.advance(59 * time.Minute)
	if !b.signedInTo("/console/org-a/docs.acme.example") {
		t.Error("its session ended before the key")
	}
	h.clock.advance(2 * time.Minute)
	if b.signedInTo("/console/org-a/docs.acme.example") {
		t.Error("its session goes on after the key has expired")
	}
}

// signedInTo reports whether a page is shown, and not the sign-in.
func (b *browser) signedInTo(path string) bool {
	b.t.Helper()
	return b.do(http.MethodGet, path, nil).StatusCode == http.StatusOK
}

func TestOnlyAnOperatorMakesOperators(t *testing.T) {
	t.Parallel()
	h := build(t)
	olga, maria := h.person("olga", api.RoleOwner), h.person("maria", api.RoleViewer)
	owner := h.as(olga)
	owner.post(404, "/console/org-a/people/operator", "person", string(olga.ID))
	op := h.byLink()
	op.post(303, "/console/org-a/people/operator", "person", string(maria.ID))
	m := h.as(maria)
	m.text(200, "/console/system")
	contains(t, owner.open("/console/org-a/people"), "operator</span>")
	// The account of an operator is in no owner's hands: who had a link for it would run the server.
	for _, form := range []string{"link", "disable", "end", "remove"} {
		contains(t, owner.post(403, "/console/org-a/people/"+form, "person", string(maria.ID)), "operator of this server")
	}
	m.post(303, "/console/org-a/people/operator", "person", string(maria.ID), "take", "yes")
	m.text(404, "/console/system")
	owner.post(303, "/console/org-a/people/disable", "person", string(maria.ID))
	log, err := h.catalog.AuditLog(t.Context(), api.AuditQuery{Org: "org-a", Action: "person.operator", Limit: 10})
	if err != nil || len(log) != 2 || log[1].Object != maria.Email || log[1].Detail != "given" || log[0].WhoID != string(maria.ID) {
		t.Errorf("the log says %+v, %v", log, err)
	}
}

// byLink is a browser in which somebody came by an operator's link.
func (h *fixture) byLink() *browser {
	h.t.Helper()
	b, token := h.browser(), rand.Text()
	if _, err := h.catalog.AddLink(h.t.Context(), api.Link{ExpiresAt: h.clock.Now().Add(time.Hour)}, api.HashSecret(token)); err != nil {
		h.t.Fatal(err)
	}
	b.send("/enter/"+token, url.Values{"token": {b.token(b.open("/enter/" + token))}})
	return b
}

// value is what a page's forms name first.
func value(t testing.TB, page, name string) string {
	t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page names no %s:\n%s", name, page)
	}
	return m[1]
}

func TestASessionByAnOperatorsLinkIsListedAndEnds(t *testing.T) {
	t.Parallel()
	h := build(t)
	op := h.person("olga", api.RoleViewer)
	if err := h.catalog.SetOperator(t.Context(), op.ID, true); err != nil {
		t.Fatal(err)
	}
	b, one := h.as(op), h.byLink()
	h.clock.advance(time.Second)
	two := h.byLink()
	page := b.open("/console/system")
	contains(t, page, "Sessions by an operator's link", "lnk_")
	b.post(404, "/console/system/end", "session", "ses_none")
	b.post(303, "/console/system/end", "session", value(t, page, "session")) // the youngest
	if two.signedIn() || !one.signedIn() {
		t.Error("not the session that was meant has ended")
	}
	// A person's session is nothing that this form ends.
	mine, err := h.catalog.Sessions(t.Context(), api.SessionQuery{Person: op.ID})
	if err != nil || len(mine) != 1 {
		t.Fatal(mine, err)
	}
	b.post(404, "/console/system/end", "session", string(mine[0].ID))
	three := h.byLink()
	contains(t, three.open("/console/account"), "End all other sessions")
	three.post(303, "/console/account/end-others")
	if one.signedIn() || !three.signedIn() || !b.signedIn() {
		t.Error("not all other sessions by links, and only these, have ended")
	}
}

func TestAnUnusedLinkCanBeTakenBack(t *testing.T) {
	t.Parallel()
	h := build(t)
	olga, maria := h.person("olga", api.RoleOwner), h.person("maria", api.RoleViewer)
	owner, op := h.as(olga), h.byLink()
	path := link(t, owner.post(200, "/console/org-a/people/link", "person", string(maria.ID)))
	page := owner.open("/console/org-a/people")
	contains(t, page, "Unused links")
	owner.post(404, "/console/org-a/people/unlink", "link", "lnk_none")
	h.as(maria).post(403, "/console/org-a/people/unlink", "link", value(t, page, "link"))
	owner.post(303, "/console/org-a/people/unlink", "link", value(t, page, "link"))
	h.browser().text(404, path)
	if _, err := h.catalog.AddLink(t.Context(), api.Link{ID: "lnk_operators", ExpiresAt: h.clock.Now().Add(time.Hour)},
		api.HashSecret("THELINK")); err != nil {
		t.Fatal(err)
	}
	owner.post(404, "/console/org-a/people/unlink", "link", "lnk_operators") // the operator's is no owner's
	h.browser().text(200, "/enter/THELINK")
	contains(t, op.open("/console/system"), "lnk_operators")
	op.post(303, "/console/system/unlink", "link", "lnk_operators")
	h.browser().text(404, "/enter/THELINK")
}

// The key that the widget's preview asks with holds from everywhere and for hours: no session of a key gets one.
func TestAKeysSessionGetsNoKeyForThePreview(t *testing.T) {
	t.Parallel()
	h := build(t, func(d *web.Deps) {
		d.PreviewKey = func(api.Project, time.Time) string { return "dct_preview_given" }
	})
	b := h.browser()
	b.signIn(h.admin, "/console")
	page, _ := b.text(200, "/console/org-a/docs.acme.example/widget")
	if strings.Contains(page, "dct_preview_given") {
		t.Error("a key's session gets a key without the key's limits")
	}
	contains(t, h.as(h.person("maria", api.RoleViewer)).open("/console/org-a/docs.acme.example/widget"), "dct_preview_given")
}

func TestNoLinkRepeatsAForgedHost(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"", "http://localhost:8080", "https://docent.example.com"} {
		h := build(t, func(d *web.Deps) { d.PublicURL = public })
		if strings.HasPrefix(public, "https:") {
			continue // cookies are TLS's then; links have the configured address
		}
		maria := h.person("maria", api.RoleViewer)
		b := h.as(h.person("olga", api.RoleOwner))
		session := "docent_session=" + b.cookie("docent_session")
		for path, form := range map[string]url.Values{
			"/console/org-a/people/invite":                 {"role": {"viewer"}},
			"/console/org-a/people/link":                   {"person": {string(maria.ID)}},
			"/console/org-a/docs.acme.example/keys/create": {"kind": {"assistant"}},
		} {
			form.Set("token", b.token(b.open("/console/account")))
			res := b.sendTo("evil.example", path, form, "Cookie", session)
			for _, c := range res.Cookies() {
				b.plant(c.Name, c.Value)
			}
			page := b.open(res.Header.Get("Location"))
			if res.StatusCode != 303 || strings.Contains(page, "evil.example") {
				t.Errorf("public_url %q: %s: %s, %s", public, path, res.Status, page)
			}
			if strings.Contains(path, "people") {
				contains(t, page, "public_url")
			}
			// The address at which the connection came in is no invention.
			res = b.send(path, form)
			contains(t, b.open(res.Header.Get("Location")), b.url)
		}
	}
}

// sendTo sends a form whose request calls its host something.
func (b *browser) sendTo(host, path string, form url.Values, headers ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Transport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { res.Body.Close() })
	return res
}
