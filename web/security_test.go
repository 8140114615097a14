package web_test

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"docent/api"
)

// visitor is a browser in which somebody is signed in.
func (h *fixture) visitor(who string) *browser {
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

// A link of ours never leads to another host, whatever somebody writes into it.
func TestNothingLeadsToAnotherHost(t *testing.T) {
	t.Parallel()
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
