package console

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"docent/api"
	"docent/tests/harness"
	"docent/web/console"
)

// The tests of this file hold every page and every form to the table of routes: a route that is new is covered by
// being in it.

// guests are whom the tests know, by what they may do: roles in org-a, an owner of org-b, an admin key of org-a, and who
// runs the server.
var guests = []string{"nobody", "stranger", "viewer", "key", "editor", "owner", "operator"}

// allows is what the table promises: who may. A key may what an editor may, but where it takes a person.
func allows(need, who string) bool {
	return map[string]int{"anybody": 0, "signed in": 1, "viewer": 2, "editor": 3, "owner": 5, "operator": 6, "a person": 7}[need] <=
		slices.Index(guests, who)
}

var parameter = regexp.MustCompile(`[:*]([a-z]+)`)

// address is an address of a pattern, in org-a. What its other parts name may not be there.
func address(pattern string) string {
	return parameter.ReplaceAllStringFunc(pattern, func(p string) string {
		return cmp.Or(map[string]string{":org": "org-a", ":domain": "docs.acme.example"}[p], "nothing-of-that-name")
	})
}

// certain reports whether what a pattern names is there.
func certain(pattern string) bool { return !strings.Contains(address(pattern), "nothing-of-that-name") }

// atTheDoor is what the guard of all pages says; what a form says of its own fields is another matter.
var atTheDoor = regexp.MustCompile(`there is no such (page|project)|this needs (the role|a person)|this form is out of date`)

// absent are the pages that a server without a provider of identities does not have.
var absent = map[string]bool{"/console/account/connect": true}

// A guarded is the whole program with the organizations org-a, which has one project, and org-b.
type guarded struct{ *harness.Console }

func newGuarded(t *testing.T, pages map[string]string) *guarded {
	t.Helper()
	h := newConsoleHouse(t)
	for _, org := range []api.OrgID{"org-a", "org-b"} {
		if err := h.App.Stores.Catalog.AddOrganization(t.Context(), org, string(org)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := h.App.Stores.Catalog.AddProject(t.Context(), api.Project{ID: "acme", Org: "org-a", Domain: "docs.acme.example",
		Source: harness.WriteFiles(t, pages)}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.App.Stores.Source.Refresh(t.Context(), p, func(string, int, int) {}); err != nil {
		t.Fatal(err)
	}
	return &guarded{h}
}

// A guest is a browser, with what its forms bring along.
type guest struct {
	*guarded
	client *http.Client
	token  string
}

// guest is a browser in which somebody is signed in.
func (h *guarded) guest(who string) *guest {
	h.T.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.T.Fatal(err)
	}
	g := &guest{guarded: h, client: &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if who != "nobody" {
		now := time.Now()
		in := api.SignIn{Kind: api.SessionOfLink, How: "test", CreatedAt: now, ExpiresAt: now.Add(time.Hour), Idle: time.Hour}
		switch who {
		case "operator":
		case "key":
			hash := api.HashSecret(rand.Text())
			if _, err := h.App.Stores.Catalog.AddKey(h.T.Context(), api.Key{Kind: api.AdminKey, Org: "org-a"}, hash); err != nil {
				h.T.Fatal(err)
			}
			in.Kind, in.Key = api.SessionOfKey, hash[:]
		default:
			roles := map[api.OrgID]api.Role{"org-a": api.Role(who)}
			if who == "stranger" {
				roles = map[api.OrgID]api.Role{"org-b": api.RoleOwner}
			}
			p, err := h.App.Stores.Catalog.AddPerson(h.T.Context(), api.Person{Name: who, Email: rand.Text() + "@example.com",
				Roles: roles}, "")
			if err != nil {
				h.T.Fatal(err)
			}
			in.Kind, in.Person = api.SessionOfPerson, p.ID
		}
		token := rand.Text()
		if _, err := h.App.Stores.Catalog.AddSession(h.T.Context(), in, api.HashSecret(token)); err != nil {
			h.T.Fatal(err)
		}
		u, _ := url.Parse(h.URL)
		jar.SetCookies(u, []*http.Cookie{{Name: "docent_session", Value: token, Path: "/"}})
	}
	m := harness.FormToken.FindStringSubmatch(harness.TextOf(h.T, g.do(http.MethodGet, "/login", nil)))
	if m == nil {
		h.T.Fatal("the page of the sign-in has no form")
	}
	g.token = html.UnescapeString(m[1])
	return g
}

// do sends a request, with headers as pairs of name and value. It does not wait for the end of a stream.
func (g *guest) do(method, path string, form url.Values, headers ...string) *http.Response {
	g.T.Helper()
	req, err := http.NewRequestWithContext(g.T.Context(), method, g.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		g.T.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	res, err := g.client.Do(req)
	if err != nil {
		g.T.Fatal(err)
	}
	g.T.Cleanup(func() { res.Body.Close() })
	return res
}

func TestEachPageIsForThoseWhomTheTableNames(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	seen := 0
	for _, who := range guests {
		g := h.guest(who)
		for _, r := range h.App.Pages.Rules() {
			if r.Method == http.MethodPost {
				g = h.guest(who) // the form before may have ended the session
			}
			if r.NotKeys && who == "key" && r.Need != "operator" {
				r.Need = "a person"
			}
			if problem := g.misplaced(r, who); problem != "" {
				t.Errorf("%s %s (%s) for %s: %s", r.Method, address(r.Pattern), r.Need, who, problem)
			}
			seen++
		}
	}
	t.Logf("%d combinations", seen)
}

// misplaced is what is wrong with what somebody is answered.
func (g *guest) misplaced(r console.Rule, who string) string {
	var form url.Values
	if r.Method == http.MethodPost {
		form = url.Values{"token": {g.token}}
	}
	res := g.do(r.Method, address(r.Pattern), form)
	text, to := harness.TextOf(g.T, res), res.Header.Get("Location")
	led := res.StatusCode == http.StatusSeeOther && strings.HasPrefix(to, "/login?")
	ok, problem := allows(r.Need, who), ""
	switch {
	case res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable:
		problem = "it breaks"
	case r.Need == "anybody":
		if led {
			problem = "anybody may"
		}
	case who == "nobody":
		if !led {
			problem = "should be led to the sign-in"
		}
	case ok && absent[r.Pattern] && res.StatusCode == http.StatusNotFound:
	case ok && (led || atTheDoor.MatchString(text)) && certain(r.Pattern):
		problem = "should be let in"
	case ok && r.Method == http.MethodGet && certain(r.Pattern) && res.StatusCode >= 400:
		problem = "should see the page"
	case !ok && (r.Need == "operator" || who == "stranger"):
		if res.StatusCode != http.StatusNotFound || !strings.Contains(text, "there is no such page") {
			problem = "should not learn that there is something"
		}
	case !ok && (res.StatusCode != http.StatusForbidden || !strings.Contains(text, "this needs ")):
		problem = "should be refused"
	}
	if problem != "" {
		problem += fmt.Sprintf(", and is answered %d %s", res.StatusCode, to)
	}
	return problem
}

// changes is a number that grows with each change of what is stored.
func (h *guarded) changes() uint64 {
	return h.App.Stores.Catalog.Revision() + h.App.Journal.Position()
}

// A form of another site, one with no token, with somebody else's, or of another kind is refused for anyone who may do
// most, and nothing has changed.
func TestFormsOfOthersAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	g, other := h.guest("operator"), h.guest("operator")
	right := url.Values{"token": {g.token}, "id": {"job_1"}}
	attacks := []struct {
		name    string
		form    url.Values
		headers []string
	}{
		{"no token", url.Values{"id": {"job_1"}}, nil},
		{"an empty token", url.Values{"token": {""}}, nil},
		{"a wrong token", url.Values{"token": {strings.Repeat("A", len(g.token))}}, nil},
		{"another session's token", url.Values{"token": {other.token}}, nil},
		{"another site", right, []string{"Sec-Fetch-Site", "cross-site"}},
		{"another host of the same site", right, []string{"Sec-Fetch-Site", "same-site"}},
		{"another origin", right, []string{"Origin", "https://evil.example"}},
		{"no origin", right, []string{"Origin", "null"}},
		{"text", right, []string{"Content-Type", "text/plain"}},
		{"JSON", right, []string{"Content-Type", "application/json"}},
		{"several parts", right, []string{"Content-Type", "multipart/form-data; boundary=x"}},
		{"no type", right, []string{"Content-Type", ""}},
	}
	before, forms := h.changes(), 0
	for _, r := range h.App.Pages.Rules() {
		if r.Method != http.MethodPost {
			continue
		}
		forms++
		for _, a := range attacks {
			res := g.do(http.MethodPost, address(r.Pattern), a.form, a.headers...)
			if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s with %s is answered %d", r.Pattern, a.name, res.StatusCode)
			}
			res.Body.Close()
		}
	}
	if g.do(http.MethodGet, "/console/account", nil).StatusCode != http.StatusOK {
		t.Error("somebody else's form signed the visitor out")
	}
	if after := h.changes(); after != before {
		t.Errorf("forms of others changed what is stored %d times", after-before)
	}
	// The same form from a page of ours is taken.
	res := g.do(http.MethodPost, "/console/system/retry", url.Values{"token": {g.token}, "id": {api.NewID(api.JobPrefix, time.Now())}},
		"Sec-Fetch-Site", "same-origin", "Origin", h.URL)
	if res.StatusCode != http.StatusSeeOther {
		t.Errorf("our own form is answered %d: %s", res.StatusCode, harness.TextOf(t, res))
	}
	if forms < 10 {
		t.Errorf("only %d forms were tried", forms)
	}
}

// Nothing is done by following a link, or by looking at a page beforehand.
func TestLookingAtPagesChangesNothing(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	g := h.guest("operator")
	g.do(http.MethodGet, "/console", nil)
	before := h.changes()
	for _, r := range h.App.Pages.Rules() {
		switch r.Method {
		case http.MethodGet:
			g.do(http.MethodGet, address(r.Pattern), nil).Body.Close()
			g.do(http.MethodHead, address(r.Pattern), nil).Body.Close()
		case http.MethodPost:
		default:
			t.Errorf("%s %s: a form without scripts has GET and POST alone", r.Method, r.Pattern)
		}
		if after := h.changes(); after != before {
			t.Errorf("looking at %s changed what is stored", r.Pattern)
			before = after
		}
	}
}

func TestEveryPageKeepsToThePolicy(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	checked := 0
	for _, who := range guests {
		g := h.guest(who)
		for _, r := range h.App.Pages.Rules() {
			if r.Method != http.MethodGet {
				continue
			}
			for _, parts := range [][]string{nil, {"HX-Request", "true"}} {
				res := g.do(http.MethodGet, address(r.Pattern), nil, parts...)
				if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
					checkPage(t, fmt.Sprintf("GET %s for %s", r.Pattern, who), res, harness.TextOf(t, res))
					checked++
				}
				if got := res.Header.Get("X-Content-Type-Options"); got != "nosniff" {
					t.Errorf("GET %s: X-Content-Type-Options is %q", r.Pattern, got)
				}
				res.Body.Close()
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d pages were looked at", checked)
	}
	t.Logf("%d pages", checked)
}

// The name that a request gives this host is nothing that pages, cookies or redirects repeat.
func TestTheHostHeaderIsNotRepeated(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	for _, who := range []string{"nobody", "operator"} {
		g := h.guest(who)
		cookie := ""
		u, _ := url.Parse(h.URL)
		for _, c := range g.client.Jar.Cookies(u) {
			cookie += c.String() + "; "
		}
		for _, r := range h.App.Pages.Rules() {
			if r.Method != http.MethodGet {
				continue
			}
			res := g.do(http.MethodGet, address(r.Pattern), nil, "Host", "evil.example", "X-Forwarded-Host", "evil.example",
				"X-Host", "evil.example", "Forwarded", "host=evil.example", "X-Original-Url", "https://evil.example/",
				"Cookie", cookie)
			for name, values := range res.Header {
				if strings.Contains(strings.Join(values, " "), "evil") {
					t.Errorf("GET %s: %s is %q", r.Pattern, name, values)
				}
			}
			if strings.Contains(harness.TextOf(t, res), "evil.example") {
				t.Errorf("GET %s repeats the host", r.Pattern)
			}
		}
	}
}

// consolePolicy is what pages allow themselves: docs/operate/security.mdx promises it.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// checkPage is what every HTML answer keeps to: the policy in its head, and nothing in it that the policy forbids.
func checkPage(t testing.TB, where string, res *http.Response, body string) {
	t.Helper()
	for name, want := range map[string]string{"Content-Security-Policy": consolePolicy, "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", where, name, got, want)
		}
	}
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			for _, problem := range unsafeElement(n) {
				t.Errorf("%s: <%s> %s", where, n.Data, problem)
			}
		}
	}
}

// unsafeElement is what is wrong with an element.
func unsafeElement(n *html.Node) (problems []string) {
	attr := map[string]string{}
	for _, a := range n.Attr {
		attr[a.Key] = a.Val
		value := strings.ToLower(strings.TrimSpace(a.Val))
		switch {
		case strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"), strings.HasPrefix(a.Key, "data-hx"):
			problems = append(problems, "has the handler "+a.Key)
		case a.Key == "style":
			problems = append(problems, "has a style")
		case slices.Contains([]string{"href", "src", "action", "formaction", "xlink:href", "sse-connect", "hx-get", "hx-post"},
			a.Key):
			if strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "vbscript:") ||
				strings.HasPrefix(value, "data:") {
				problems = append(problems, "leads to "+a.Val)
			}
		case (a.Key == "hx-vals" || a.Key == "hx-headers") && strings.HasPrefix(value, "js"):
			problems = append(problems, "evaluates "+a.Key)
		}
	}
	elsewhere := func(address string) bool { return !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") }
	switch n.Data {
	case "script":
		if n.FirstChild != nil || elsewhere(attr["src"]) {
			problems = append(problems, "is not a file of ours: "+attr["src"])
		}
	case "style", "iframe", "object", "embed", "base", "applet":
		problems = append(problems, "is not for pages")
	case "link":
		if elsewhere(attr["href"]) {
			problems = append(problems, "loads "+attr["href"])
		}
	case "form":
		if action, ok := attr["action"]; ok && elsewhere(action) {
			problems = append(problems, "is sent to "+action)
		}
		if strings.EqualFold(attr["method"], "post") && !hasToken(n) {
			problems = append(problems, "to "+attr["action"]+" has no token")
		}
	case "a":
		if attr["target"] == "_blank" && !strings.Contains(attr["rel"], "noopener") {
			problems = append(problems, "opens a window that can reach this one")
		}
	case "meta":
		if strings.EqualFold(attr["http-equiv"], "refresh") {
			problems = append(problems, "leads away by itself")
		}
	}
	return problems
}

func hasToken(form *html.Node) bool {
	for n := range form.Descendants() {
		if n.Type == html.ElementNode && n.Data == "input" {
			for _, a := range n.Attr {
				if a.Key == "name" && a.Val == "token" {
					return true
				}
			}
		}
	}
	return false
}
