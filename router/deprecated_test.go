package router_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Every answer of a deprecated operation says so, refusals too, and no answer of another operation does.
func TestAnswersOfDeprecatedOperationsSayWhatFollowsThem(t *testing.T) {
	h := build(t)
	p := h.catalog.projects["acme"]
	p.Limits.KeyMonth = 2
	h.catalog.projects["acme"] = p
	id := h.create()
	const (
		message = "</discovery/v2/assistant/docs.acme.example/message>"
		stream  = "</discovery/v2/assistant/docs.acme.example/message/my%20chat/stream>"
	)
	session := `{"messages":[{"role":"user","content":"do it"}]}`
	for _, c := range []struct {
		status                  int
		method, path, key, body string
		successor               string
	}{
		{400, "POST", "/v1/agent/acme/job", h.admin, "{}", "</v2/agent/acme/job>"},
		{401, "POST", "/v1/agent/acme/job", "", session, "</v2/agent/acme/job>"},
		{200, "GET", "/v1/agent/acme/jobs", h.admin, "", "</v2/agent/acme/jobs>"},
		{404, "GET", "/v1/agent/nobody/jobs", h.admin, "", "</v2/agent/nobody/jobs>"},
		{200, "GET", "/v1/agent/acme/job/" + id, h.admin, "", "</v2/agent/acme/job/" + id + ">"},
		{404, "GET", "/v1/agent/acme/job/%3E%20", h.admin, "", "</v2/agent/acme/job/%3E%20>"},
		{200, "POST", v1, h.assistant, ask, message},
		{200, "POST", "/v1/assistant/docs.acme.example/message", h.assistant, ask, message},
		{429, "POST", v1, h.assistant, ask, message},
		{401, "POST", v1, "dct_pub_wrong", ask, message},
		{403, "POST", v1, h.admin, ask, message},
		{204, "GET", v1 + "?chatId=my%20chat", h.assistant, "", stream},
		{204, "HEAD", v1 + "?chatId=my%20chat", h.assistant, "", stream},
		{400, "GET", v1, h.assistant, "", ""}, // of what chat
	} {
		_, res := h.text(c.status, c.method, c.path, c.key, c.body)
		since, until := res.Header.Get("Deprecation"), res.Header.Get("Sunset")
		if end, err := http.ParseTime(until); since != "@1767225600" || err != nil || end.Before(time.Unix(1767225600, 0)) {
			t.Errorf("%s %s: deprecated %q until %q, %v", c.method, c.path, since, until, err)
		}
		link := res.Header.Get("Link")
		if want := c.successor + `; rel="successor-version"`; c.successor == "" && link != "" || c.successor != "" &&
			link != want {
			t.Errorf("%s %s: the link is %q, not %q", c.method, c.path, link, want)
		}
		if strings.Contains(c.path, "assistant") && !strings.Contains(res.Header.Get("Access-Control-Expose-Headers"),
			"Deprecation, Sunset, Link") {
			t.Errorf("%s %s: a page may not read the headers", c.method, c.path)
		}
	}
	// The five operations, each asked more than once, are told of once.
	if n := strings.Count(h.log.String(), "a client used a deprecated operation"); n != 5 {
		t.Errorf("the log tells of %d uses of deprecated operations", n)
	}
	for _, c := range []struct{ method, path, key, body string }{
		{"POST", v2, h.assistant, ask}, {"GET", v2 + "/chat/stream", h.assistant, ""},
		{"GET", "/v2/agent/acme/jobs", h.admin, ""},
		{"POST", "/v1/search/docs.acme.example", h.assistant, `{"query":"install"}`},
		{"POST", "/v1/project/update/acme", h.admin, ""},
		{"GET", "/v1/analytics/acme/searches", h.admin, ""}, {"GET", "/healthz", "", ""},
	} {
		res := h.do(c.method, c.path, c.key, c.body)
		for _, name := range []string{"Deprecation", "Sunset", "Link"} {
			if got := res.Header.Get(name); got != "" {
				t.Errorf("%s %s: %s is %q", c.method, c.path, name, got)
			}
		}
	}
}

// Chat clients show their users the body as it came: it is written to be read.
func TestRefusalsAreWrittenForWhoReadsThem(t *testing.T) {
	h := build(t)
	for key, want := range map[string]string{"": "this page sends no API key",
		"dct_pub_wrong": "the API key of this page is mistyped"} {
		for _, path := range []string{v1, v2, "/v1/search/docs.acme.example"} {
			raw, res := h.text(401, "POST", path, key, ask, "Origin", "https://docs.acme.example")
			if !strings.Contains(raw, want) || !strings.Contains(raw, "Please tell those who run this site.") ||
				strings.Contains(raw, "Bearer") || res.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with the key %q: %s", path, key, raw)
			}
		}
		if raw, _ := h.text(401, "GET", "/v2/agent/acme/jobs", key, ""); strings.Contains(raw, "this page") ||
			strings.Contains(raw, "this site") {
			t.Errorf("the agent's callers are told of pages: %s", raw)
		}
	}
	// Text stands as it is, not as it would stand in HTML.
	if page, _ := h.text(200, "POST", "/v1/page/docs.acme.example", h.assistant,
		`{"path":"guide/start"}`); !strings.Contains(page, "a <b> && c") {
		t.Errorf("a page is answered as %s", page)
	}
}
