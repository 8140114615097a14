package web_test

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"docent/api"
	"docent/web"
)

// The tests of this file hold every page and every form to the table of routes: a route that is new is covered by
// being in it.

// visitors are whom the tests know, by what they may do: roles in org-a, an owner of org-b, and who runs the server.
var visitors = []string{"nobody", "stranger", "viewer", "editor", "owner", "operator"}

// visitor is a browser in which somebody is signed in.
func (h *house) visitor(who string) *browser {
	h.t.Helper()
	b := h.browser()
	if who == "nobody" {
		return b
	}
	in := api.SignIn{Kind: api.SessionOfLink, How: "test", Client: "127.0.0.1", CreatedAt: h.clock.Now(),
		ExpiresAt: h.clock.Now().Add(time.Hour), Idle: time.Hour}
	if who != "operator" {
		roles := map[api.OrgID]api.Role{"org-a": api.Role(who)}
		if who == "stranger" {
			roles = map[api.OrgID]api.Role{"org-b": api.RoleOwner}
		}
		p, err := h.catalog.AddPerson(h.t.Context(), api.Person{Name: who, Email: rand.Text() + "@example.com", Roles: roles}, "")
		if err != nil {
			h.t.Fatal(err)
		}
		in.Kind, in.Person = api.SessionOfPerson, p.ID
	}
	token := rand.Text()
	if _, err := h.catalog.AddSession(h.t.Context(), in, api.HashSecret(token)); err != nil {
		h.t.Fatal(err)
	}
	b.plant("docent_session", token)
	return b
}

// allows is what the table promises: who may.
func allows(need, who string) bool {
	return map[string]int{"anybody": 0, "signedIn": 1, "viewer": 2, "editor": 3, "owner": 4, "operator": 5}[need] <=
		slices.Index(visitors, who)
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

func bodyOf(t testing.TB, res *http.Response) string {
	t.Helper()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return "" // it does not end
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// atTheDoor is what the guard of all pages says; what a form says of its own fields is another matter.
var atTheDoor = regexp.MustCompile(`there is no such (page|project)|this needs the role|this form is out of date`)

// absent are the pages that a server without a provider of identities does not have.
var absent = map[string]bool{"/console/account/connect": true}

func TestEachPageIsForThoseWhoTheTableNames(t *testing.T) {
	h := build(t)
	browsers, tokens := map[string]*browser{}, map[string]string{}
	for _, who := range visitors {
		browsers[who] = h.visitor(who)
		if who != "nobody" {
			tokens[who] = browsers[who].token(browsers[who].open("/login"))
		}
	}
	seen := 0
	for _, r := range h.server.Rules() {
		if r.Pattern == "/logout" {
			continue // whoever does that is nobody afterwards
		}
		for _, who := range visitors {
			seen++
			path, b := address(r.Pattern), browsers[who]
			var res *http.Response
			if r.Method == http.MethodPost {
				res = b.send(path, url.Values{"token": {tokens[who]}})
			} else {
				res = b.do(r.Method, path, nil)
			}
			to := res.Header.Get("Location")
			led := res.StatusCode == http.StatusSeeOther && strings.HasPrefix(to, "/login")
			var problem string
			switch ok := allows(r.Need, who); {
			case r.Need == "anybody":
				if led || res.StatusCode == http.StatusForbidden && r.Method == http.MethodGet {
					problem = "anybody may"
				}
			case who == "nobody":
				if !led {
					problem = "should be led to the sign-in"
				}
			case ok && absent[r.Pattern] && res.StatusCode == http.StatusNotFound:
			case ok && (led || atTheDoor.MatchString(bodyOf(t, res)) || res.StatusCode >= 500):
				problem = "should be let in"
			case ok && r.Method == http.MethodGet && certain(r.Pattern) && res.StatusCode >= 400:
				problem = "should see the page"
			case !ok && (r.Need == "operator" || who == "stranger"):
				if res.StatusCode != http.StatusNotFound || !strings.Contains(bodyOf(t, res), "there is no such page") {
					problem = "should not learn that there is something"
				}
			case !ok && (res.StatusCode != http.StatusForbidden || !strings.Contains(bodyOf(t, res), "this needs the role")):
				problem = "should be refused"
			}
			if problem != "" {
				t.Errorf("%s %s (%s) for %s: %s, and is answered %d %s", r.Method, path, r.Need, who, problem, res.StatusCode, to)
			}
			res.Body.Close()
		}
	}
	t.Logf("%d combinations", seen)
}

// A form of another site, one with no token, with somebody else's, or of another kind is refused for whoever may do
// most, and nothing has changed.
func TestFormsOfOthersAreRefusedAndChangeNothing(t *testing.T) {
	h := build(t)
	b, other := h.visitor("operator"), h.visitor("operator")
	token, theirs := b.token(b.open("/console")), other.token(other.open("/console"))
	right := url.Values{"token": {token}, "id": {"job_1"}}
	attacks := []struct {
		name    string
		form    url.Values
		headers []string
	}{
		{"no token", url.Values{"id": {"job_1"}}, nil},
		{"an empty token", url.Values{"token": {""}}, nil},
		{"a wrong token", url.Values{"token": {strings.Repeat("A", len(token))}}, nil},
		{"another session's token", url.Values{"token": {theirs}}, nil},
		{"another site", right, []string{"Sec-Fetch-Site", "cross-site"}},
		{"another host of the same site", right, []string{"Sec-Fetch-Site", "same-site"}},
		{"another origin", right, []string{"Origin", "https://evil.example"}},
		{"no origin", right, []string{"Origin", "null"}},
		{"text", right, []string{"Content-Type", "text/plain"}},
		{"JSON", right, []string{"Content-Type", "application/json"}},
		{"several parts", right, []string{"Content-Type", "multipart/form-data; boundary=x"}},
		{"no type", right, []string{"Content-Type", ""}},
	}
	before := h.catalog.Revision()
	for _, r := range h.server.Rules() {
		if r.Method != http.MethodPost {
			continue
		}
		for _, a := range attacks {
			res := b.send(address(r.Pattern), a.form, a.headers...)
			if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s with %s is answered %d", r.Pattern, a.name, res.StatusCode)
			}
		}
	}
	if !b.signedIn() {
		t.Error("somebody else's form signed the visitor out")
	}
	if len(h.system.retried) > 0 || h.system.backups > 0 {
		t.Error("a form of somebody else's acted on the server")
	}
	if after := h.catalog.Revision(); after != before {
		t.Errorf("a form of somebody else's changed the catalogue %d times", after-before)
	}
	// The same form from a page of ours is taken.
	if res := b.send("/console/system/retry", right, "Sec-Fetch-Site", "same-origin"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("our own form is answered %d", res.StatusCode)
	}
}

// Nothing is done by following a link.
func TestEveryRouteReadsOrIsAForm(t *testing.T) {
	h := build(t)
	b := h.visitor("operator")
	b.open("/console")
	before := h.catalog.Revision()
	for _, r := range h.server.Rules() {
		switch r.Method {
		case http.MethodGet:
			b.do(http.MethodGet, address(r.Pattern), nil).Body.Close()
			b.do(http.MethodHead, address(r.Pattern), nil).Body.Close()
		case http.MethodPost:
		default:
			t.Errorf("%s %s: a form without scripts has GET and POST alone", r.Method, r.Pattern)
		}
	}
	if after := h.catalog.Revision(); after != before {
		t.Errorf("reading all pages changed the catalogue %d times", after-before)
	}
}

// checkPage is what every HTML answer keeps to: the policy in its head, and nothing in it that the policy forbids.
func checkPage(t testing.TB, where string, res *http.Response, body string) {
	t.Helper()
	for name, want := range map[string]string{"Content-Security-Policy": web.Policy, "X-Content-Type-Options": "nosniff",
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

func TestEveryPageKeepsToThePolicy(t *testing.T) {
	h := build(t)
	checked := 0
	for _, who := range []string{"nobody", "stranger", "viewer", "owner", "operator"} {
		b := h.visitor(who)
		for _, r := range h.server.Rules() {
			if r.Method != http.MethodGet {
				continue
			}
			for _, parts := range [][]string{nil, {"HX-Request", "true"}} {
				res := b.do(http.MethodGet, address(r.Pattern), nil, parts...)
				if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
					checkPage(t, fmt.Sprintf("GET %s for %s", r.Pattern, who), res, bodyOf(t, res))
					checked++
				} else if csp := res.Header.Get("Content-Security-Policy"); csp != "" && csp != web.Policy {
					t.Errorf("GET %s: the policy is %s", r.Pattern, csp)
				}
				res.Body.Close()
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d pages were looked at", checked)
	}
	t.Logf("%d pages", checked)
}

// A link of ours never leads to another host, whatever somebody writes into it.
func TestNothingLeadsToAnotherHost(t *testing.T) {
	h := build(t)
	for _, next := range []string{
		"https://evil.example", "//evil.example", `/\evil.example`, `\\evil.example`, "/\t/evil.example", "https:evil.example",
		"javascript:alert(1)", "/console/../../evil", "//evil.example/console", "/console@evil.example", "http:///evil.example",
		"/pulls/..//evil.example", "\r\nLocation: https://evil.example", "/console\r\nSet-Cookie: a=b", "%2f%2fevil.example",
		"/console/%0d%0aSet-Cookie:a=b", "https://user@evil.example/console",
	} {
		b := h.browser()
		res := b.signIn(h.admin, next)
		to := res.Header.Get("Location")
		u, err := url.Parse(to)
		if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
			strings.Contains(to, `\`) || res.Header.Get("Set-Cookie") == "a=b" {
			t.Errorf("after the sign-in %q leads to %q", next, to)
		}
		page, _ := h.browser().text(200, "/login?next="+url.QueryEscape(next))
		doc, err := html.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			for _, a := range n.Attr {
				if (a.Key == "href" || a.Key == "action") && (!strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") ||
					strings.HasPrefix(a.Val, "//")) {
					t.Errorf("the page for %q has %s=%q", next, a.Key, a.Val)
				}
			}
		}
	}
}

// The name that a request gives this host is nothing that pages, cookies or redirects repeat.
func TestTheHostHeaderIsNotRepeated(t *testing.T) {
	h := build(t)
	b := h.visitor("operator")
	for _, r := range h.server.Rules() {
		if r.Method != http.MethodGet || strings.HasSuffix(r.Pattern, "/live") || strings.Contains(r.Pattern, "asset") {
			continue
		}
		req, err := http.NewRequest(http.MethodGet, h.url+address(r.Pattern), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(&http.Cookie{Name: "docent_session", Value: b.cookie("docent_session")})
		req.Host = "evil.example"
		for _, name := range []string{"X-Forwarded-Host", "X-Host", "Forwarded", "X-Original-Url"} {
			req.Header.Set(name, "evil.example")
		}
		res, err := b.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range res.Header {
			if strings.Contains(strings.Join(values, " "), "evil") {
				t.Errorf("GET %s: %s is %q", r.Pattern, name, values)
			}
		}
		if strings.Contains(bodyOf(t, res), "evil.example") {
			t.Errorf("GET %s repeats the host", r.Pattern)
		}
		res.Body.Close()
	}
}
