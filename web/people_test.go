package web_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"docent/api"
)

const secret = "tall ships in fog"

// kept returns the secret as it is stored. Hashing is slow by design: what is stored says how slow, and here it is not.
var kept = sync.OnceValue(func() string {
	salt, encode := make([]byte, 16), base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, encode(salt),
		encode(argon2.IDKey([]byte(secret), salt, 1, 8, 1, 32)))
})

// person makes a person of org-a, whose password is secret.
func (h *fixture) person(name string, role api.Role) api.Person {
	h.t.Helper()
	p, err := h.catalog.AddPerson(h.t.Context(), api.Person{Email: name + "@example.com", Name: strings.ToUpper(name),
		Roles: map[api.OrgID]api.Role{"org-a": role}}, kept())
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// as is a browser in which a person has signed in: without the work of a password, which is much under the race
// detector.
func (h *fixture) as(p api.Person) *browser {
	h.t.Helper()
	b, token := h.browser(), rand.Text()
	if _, err := h.catalog.AddSession(h.t.Context(), api.SignIn{Kind: api.SessionOfPerson, Person: p.ID, How: "password",
		CreatedAt: h.clock.Now(), ExpiresAt: h.clock.Now().Add(30 * 24 * time.Hour), Idle: 7 * 24 * time.Hour},
		api.HashSecret(token)); err != nil {
		h.t.Fatal(err)
	}
	b.plant("docent_session", token)
	b.open("/console/account") // the rights are noted, and the token is another one
	return b
}

func (b *browser) signInAs(email, password string) *http.Response {
	b.t.Helper()
	return b.send("/login", url.Values{"email": {email}, "password": {password}, "next": {"/console"},
		"token": {b.token(b.open("/login"))}})
}

// post sends a form as a page of ours has it, and expects that status: of the page that it leads to, if that is 200.
func (b *browser) post(status int, path string, pairs ...string) string {
	b.t.Helper()
	form := url.Values{"token": {b.token(b.open("/console/account"))}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	res := b.send(path, form)
	if status == http.StatusOK && res.StatusCode == http.StatusSeeOther {
		page, _ := b.text(status, res.Header.Get("Location"))
		return page
	}
	page, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != status {
		b.t.Fatalf("POST %s: %d, want %d: %s", path, res.StatusCode, status, page)
	}
	return string(page)
}

func contains(t testing.TB, page string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

var shownLink = regexp.MustCompile(`<code id="link">http://[^/]+(/[^<]*)</code>`)

// link is the path of the link that a page shows once.
func link(t testing.TB, page string) string {
	t.Helper()
	m := shownLink.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no link in %s", page)
	}
	return html.UnescapeString(m[1])
}

func TestAPersonSignsInWithAPassword(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.person("maria", api.RoleViewer)
	b := h.browser()
	res := b.signInAs(" Maria@Example.com", secret)
	header(t, res, "Location", "/console")
	page := b.open("/console/account")
	contains(t, page, "maria@example.com", "viewer of org-a", "this one")
}

func TestASessionEndsByTime(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.as(h.person("maria", api.RoleViewer))
	for range 4 { // seen now and then it goes on, to its end
		h.clock.advance(6 * 24 * time.Hour)
		if !b.signedIn() {
			t.Fatal("it ended although it was in use")
		}
	}
	h.clock.advance(6*24*time.Hour + time.Minute)
	if b.signedIn() {
		t.Error("it goes on after thirty days")
	}
	if b.signInAs("maria@example.com", secret); !b.signedIn() {
		t.Error("signing in again does not work")
	}
	h.clock.advance(29 * 24 * time.Hour) // with no visit
	if b.signedIn() {
		t.Error("a session by password goes on after a month")
	}
	idle := h.as(h.person("ida", api.RoleViewer))
	h.clock.advance(7*24*time.Hour + time.Minute)
	if idle.signedIn() {
		t.Error("it goes on after a week without a visit")
	}
	key := h.browser()
	key.signIn(h.admin, "/console")
	h.clock.advance(2*time.Hour + time.Minute)
	if key.signedIn() {
		t.Error("a key's session goes on after two hours")
	}
}

func TestAPersonEndsSessions(t *testing.T) {
	t.Parallel()
	h := build(t)
	maria, eve := h.person("maria", api.RoleViewer), h.person("eve", api.RoleOwner)
	one, two, three, other := h.as(maria), h.as(maria), h.as(maria), h.as(eve)
	sessions, err := h.catalog.Sessions(t.Context(), api.SessionQuery{Person: maria.ID})
	if err != nil || len(sessions) != 3 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	page := one.open("/console/account")
	if n := strings.Count(page, `action="/console/account/end"`); n != 2 {
		t.Errorf("%d other sessions are listed", n)
	}
	other.post(404, "/console/account/end", "session", string(sessions[0].ID)) // not hers
	if !three.signedIn() {
		t.Fatal("somebody else ended it")
	}
	ids := regexp.MustCompile(`name="session" value="([^"]+)"`).FindAllStringSubmatch(page, -1)
	one.post(303, "/console/account/end", "session", ids[0][1])
	if two.signedIn() == three.signedIn() || !one.signedIn() {
		t.Error("not the one session that was meant has ended")
	}
	one.post(303, "/console/account/end-others")
	if two.signedIn() || three.signedIn() || !one.signedIn() || !other.signedIn() {
		t.Error("not all others of this person, and only these, have ended")
	}
}

func TestAPasswordIsChanged(t *testing.T) {
	t.Parallel()
	h := build(t)
	maria := h.person("maria", api.RoleViewer)
	b, elsewhere := h.as(maria), h.as(maria)
	contains(t, b.post(400, "/console/account/password", "current", "wrong", "password", "short"),
		"is not your password", "must have at least 10 characters")
	before := b.cookie("docent_session")
	b.post(303, "/console/account/password", "current", secret, "password", "another good phrase")
	if elsewhere.signedIn() || !b.signedIn() || b.cookie("docent_session") == before {
		t.Error("other sessions go on, or this one has the same token or ended")
	}
	if res := h.browser().signInAs(maria.Email, secret); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the old password: %s", res.Status)
	}
	if res := h.browser().signInAs(maria.Email, "another good phrase"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("with the new one: %s", res.Status)
	}
	b.post(303, "/console/account/name", "name", "Maria <b>M</b>")
	contains(t, b.open("/console/account"), "Maria &lt;b&gt;M&lt;/b&gt;")
	b.post(400, "/console/account/name", "name", " ")
}

func TestAnOwnerInvitesByLink(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.as(h.person("olga", api.RoleOwner))
	contains(t, b.post(400, "/console/org-a/people/invite", "role", "root"), "must be viewer, editor or owner")
	page := b.post(200, "/console/org-a/people/invite", "role", "editor")
	contains(t, page, "lets one person in as editor", "Open invitations", "anyone with the link")
	path := link(t, page)
	if strings.Contains(b.open("/console/org-a/people"), path) {
		t.Error("the link is shown again")
	}
	guest := h.browser()
	asked := guest.open(path)
	contains(t, asked, "OLGA invites you", "as <strong>editor</strong>")
	fill := func(email, password string) *http.Response {
		return guest.send(path, url.Values{"token": {guest.token(guest.open(path))}, "name": {"Gustav"}, "email": {email},
			"password": {password}})
	}
	if res := fill("gustav", "short"); res.StatusCode != 400 {
		t.Errorf("with a bad form: %s", res.Status)
	}
	if res := fill("olga@example.com", secret); res.StatusCode != 409 {
		t.Errorf("with somebody's address: %s", res.Status)
	}
	header(t, fill("Gustav@example.com", secret), "Location", "/console")
	contains(t, guest.open("/console/account"), "editor of org-a")
	for _, method := range []string{"GET", "POST"} { // it is used up
		late := h.browser()
		res := late.do(method, path, url.Values{"token": {late.token(late.open("/login"))}})
		if res.StatusCode != 404 {
			t.Errorf("%s again: %s", method, res.Status)
		}
	}
	// Without single sign-on nobody can verify an address.
	contains(t, b.post(400, "/console/org-a/people/invite", "role", "viewer", "email", "ann@example.com"), "verified")
	path = link(t, b.post(200, "/console/org-a/people/invite", "role", "viewer"))
	ann := h.browser()
	res := ann.send(path, url.Values{"token": {ann.token(ann.open(path))}, "name": {"Ann"}, "email": {"ann@example.com"},
		"password": {secret}})
	header(t, res, "Location", "/console")
	// Who is signed in joins as they are.
	path = link(t, b.post(200, "/console/org-a/people/invite", "role", "owner"))
	ann.send(path, url.Values{"token": {ann.token(ann.open(path))}})
	if p, _, err := h.catalog.PersonByEmail(t.Context(), "ann@example.com"); err != nil || p.Roles["org-a"] != api.RoleOwner {
		t.Errorf("Ann is %+v, %v", p, err)
	}
	// One that is taken back or has expired lets nobody in.
	path = link(t, b.post(200, "/console/org-a/people/invite", "role", "owner"))
	id := regexp.MustCompile(`name="invitation" value="([^"]+)"`).FindStringSubmatch(b.open("/console/org-a/people"))
	b.post(303, "/console/org-a/people/revoke", "invitation", id[1])
	h.browser().text(404, path)
	path = link(t, b.post(200, "/console/org-a/people/invite", "role", "owner"))
	h.clock.advance(7*24*time.Hour - time.Minute)
	h.browser().text(200, path)
	h.clock.advance(time.Minute)
	h.browser().text(404, path)
}

func TestAnOwnerChangesPeople(t *testing.T) {
	t.Parallel()
	h := build(t)
	olga, maria := h.person("olga", api.RoleOwner), h.person("maria", api.RoleViewer)
	b, m := h.as(olga), h.as(maria)
	page := b.open("/console/org-a/people")
	contains(t, page, "maria@example.com", `aria-label="Role of MARIA"`, "What each role can do")
	before := m.cookie("docent_session")
	b.post(303, "/console/org-a/people/role", "person", string(maria.ID), "role", "editor")
	m.open("/console/account")
	if m.cookie("docent_session") == before || !m.signedIn() {
		t.Error("other rights, and the same token; or signed out")
	}
	b.post(303, "/console/org-a/people/end", "person", string(maria.ID))
	if m.signedIn() {
		t.Error("a session that the owner has ended goes on")
	}
	m = h.as(maria)
	b.post(303, "/console/org-a/people/disable", "person", string(maria.ID))
	if m.signedIn() {
		t.Error("the session of who is disabled goes on")
	}
	if res := h.browser().signInAs(maria.Email, secret); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("who is disabled signs in: %s", res.Status)
	}
	b.post(303, "/console/org-a/people/disable", "person", string(maria.ID), "enable", "yes")
	m = h.as(maria)
	path := link(t, b.post(200, "/console/org-a/people/link", "person", string(maria.ID)))
	lost := h.browser()
	contains(t, lost.open(path), "Sign in to the console as MARIA")
	lost.send(path, url.Values{"token": {lost.token(lost.open(path))}})
	lost.post(303, "/console/account/password", "password", "another good phrase") // without the old one
	if m.signedIn() || !lost.signedIn() {
		t.Error("after the change of the password the other session goes on")
	}
	b.post(303, "/console/org-a/people/remove", "person", string(maria.ID))
	if lost.signedIn() {
		t.Error("the session of who is removed goes on")
	}
	for _, form := range [][]string{{"role", "role", "viewer"}, {"remove", "", ""}, {"disable", "", ""}} {
		page := b.post(409, "/console/org-a/people/"+form[0], "person", string(olga.ID), form[1], form[2])
		contains(t, page, "last owner")
	}
	log, err := h.catalog.AuditLog(t.Context(), api.AuditQuery{Org: "org-a", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range log {
		if e.WhoID == string(olga.ID) {
			actions = append(actions, e.Action+" "+e.Object)
		}
	}
	want := "person.remove maria@example.com,person.link maria@example.com,person.enable maria@example.com," +
		"person.disable maria@example.com,session.end maria@example.com,person.role maria@example.com"
	if got := strings.Join(actions, ","); !strings.HasPrefix(got, want) {
		t.Errorf("the log says %s", got)
	}
}

func TestRefusedSignInsRenamesAndLogoutsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	h := build(t)
	maria := h.person("maria", api.RoleViewer)
	b := h.as(maria)
	b.post(303, "/console/account/name", "name", "Maria M")
	b.send("/logout", url.Values{"token": {b.token(b.open("/console/account"))}})
	if res := h.browser().signInAs(maria.Email, "a wrong good phrase"); res.StatusCode != http.StatusUnauthorized {
		t.Fatalf("a wrong password: %s", res.Status)
	}
	missing := []string{"person.rename", "session.logout", "session.refused"}
	for wait := time.Now().Add(time.Minute); len(missing) > 0; { // a refusal is written when its answer is on its way
		log, err := h.catalog.AuditLog(t.Context(), api.AuditQuery{Org: "org-a", Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		missing = slices.DeleteFunc(missing, func(action string) bool {
			return slices.ContainsFunc(log, func(e api.AuditEntry) bool { return e.Action == action && e.Client != "" })
		})
		if time.Now().After(wait) {
			t.Fatalf("the log lacks %v", missing)
		}
		runtime.Gosched()
	}
}

func TestTheOperatorsLink(t *testing.T) {
	t.Parallel()
	h := build(t)
	token := "OPERATORSLINK"
	if _, err := h.catalog.AddLink(t.Context(), api.Link{ExpiresAt: h.clock.Now().Add(time.Hour)},
		api.HashSecret(token)); err != nil {
		t.Fatal(err)
	}
	b := h.browser()
	for range 3 { // looking does not use it up
		contains(t, b.open("/enter/"+token), "as the operator")
	}
	res := b.send("/enter/"+token, url.Values{"token": {b.token(b.open("/enter/" + token))}})
	header(t, res, "Location", "/console")
	contains(t, b.open("/console"), "docs.acme.example", "docs.other.example")
	h.browser().text(404, "/enter/"+token)
	contains(t, b.post(400, "/console/account/make", "name", "", "email", "x", "password", "y"), "aria-invalid")
	b.post(303, "/console/account/make", "name", "Olga", "email", "olga@example.com", "password", secret)
	contains(t, b.open("/console/account"), "owner of default")
	if res := h.browser().signInAs("olga@example.com", secret); res.StatusCode != http.StatusSeeOther {
		t.Errorf("%s", res.Status)
	}
	b.text(404, "/console/nobody/people")
}

func TestTheAuditLogIsReadAndExported(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.as(h.person("olga", api.RoleOwner))
	for i := range 120 {
		who := "usr_1"
		if i%3 == 0 {
			who = "usr_2"
		}
		h.clock.advance(time.Minute)
		if err := h.catalog.Audit(t.Context(), api.AuditEntry{Org: "org-a", WhoID: who, Who: "name of " + who,
			Action: "key.create", Object: "=1+1", Detail: "<script>"}); err != nil {
			t.Fatal(err)
		}
	}
	h.catalog.Audit(t.Context(), api.AuditEntry{Org: "org-b", WhoID: "usr_3", Who: "not to be seen", Action: "x"})
	page := b.open("/console/org-a/audit")
	if n := strings.Count(page, "class=\"broken\">&lt;script&gt;</td>"); n != 50 || strings.Contains(page, "not to be seen") {
		t.Errorf("%d entries on the first page", n)
	}
	seen := 50
	for older := regexp.MustCompile(`href="([^"]*)" rel="next"`); older.MatchString(page); {
		page = b.open(html.UnescapeString(older.FindStringSubmatch(page)[1]))
		seen += strings.Count(page, "class=\"broken\">&lt;script&gt;</td>")
	}
	if seen != 120 {
		t.Errorf("%d entries in all", seen)
	}
	page = b.open("/console/org-a/audit?who=usr_2&from=2026-11-21&until=2026-11-21")
	if n := strings.Count(page, "class=\"broken\">&lt;script&gt;</td>"); n != 40 {
		t.Errorf("%d entries of usr_2", n)
	}
	contains(t, b.open("/console/org-a/audit?who=usr_2&from=2026-11-22"), "No matching entries")
	rows, err := csv.NewReader(b.do("GET", "/console/org-a/audit.csv?who=usr_2", nil).Body).ReadAll()
	if err != nil || len(rows) != 41 || rows[1][4] != "'=1+1" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
