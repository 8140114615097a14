package router_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/router"
)

// signed stands in for the verifier: a token is SUBJECT and groups behind it, with spaces between them.
type signed struct{}

func (signed) Verify(_ context.Context, _ api.Project, token string) (api.Reader, error) {
	parts := strings.Fields(token)
	switch {
	case len(parts) == 0 || parts[0] == "bad":
		return api.Reader{}, &api.StateError{Kind: api.ErrUnauthorized, Reason: "the reader token is not valid: it has expired"}
	case parts[0] == "unknown":
		return api.Reader{}, api.ErrUnavailable
	}
	return api.Reader{Subject: parts[0], Groups: parts[1:]}, nil
}

func takesTokens(d *router.Deps) { d.Readers = signed{} }

// at is a path that a pattern matches, of project acme.
func at(pattern string) string {
	return strings.NewReplacer(":projectId", "acme", ":domain", "docs.acme.example", ":id", "thr_1", "*file", "llms.txt").Replace(pattern)
}

const staff = `"filter":{"groups":["staff"]}`

// Every operation that takes JSON is sent groups wherever some operation takes them. A new operation either refuses them
// from keys that may not name any, or is named here as one that knows none.
func TestNoOperationBelievesAKeyAboutGroups(t *testing.T) {
	h := build(t, takesTokens, func(d *router.Deps) { d.Tools = tools{} })
	none := []string{"/v2/agent/:projectId/job", "/v2/agent/:projectId/job/:id/message", "/v2/agent/:projectId/job/:id/archive",
		"/v2/agent/:projectId/job/:id/cancel", "/v1/agent/:projectId/job", "/v1/project/update/:projectId",
		"/discovery/v1/feedback/:domain", "/v1/feedback/:domain", "/discovery/v1/contact/:domain", "/mcp/agent/:projectId"}
	body := `{"model":"docs.acme.example","fp":"anonymous","messages":[{"role":"user","content":"pay?","parts":[{"type":"text","text":"pay?"}]}],"input":"pay?","query":"pay",` +
		`"path":"staff","groups":["staff"],` + staff + `,"questions":[{"question":"pay?",` + staff + `}],"prompt":"pay",` +
		`"threadId":"t","runId":"r","forwardedProps":{` + staff + `},"messageId":"m"}`
	refused := 0
	for _, op := range h.server.JSONOperations() {
		pattern := op[1]
		if slices.Contains(none, pattern) {
			continue
		}
		keys := []string{h.assistant}
		if strings.Contains(pattern, ":projectId") {
			keys = []string{h.admin}
		} else if strings.Contains(pattern, "assistant") {
			body := strings.Replace(body, `{"model"`, `{"explain":true,"model"`, 1)
			if status, text := h.said(op[0], at(pattern), h.admin, body); status != http.StatusForbidden || !strings.Contains(text, "groups") {
				t.Errorf("an admin key with %s names groups: %d %s", pattern, status, text)
			}
		}
		for _, key := range keys {
			for _, token := range []string{"", "alice staff"} {
				headers := []string{}
				if token != "" {
					headers = append(headers, "X-Docent-Reader", token)
				}
				status, text := h.said(op[0], at(pattern), key, body, headers...)
				if status != http.StatusForbidden || !strings.Contains(text, "groups") {
					t.Errorf("%s with the token %q names groups: %d %s", pattern, token, status, text)
				}
				if token == "" && (!strings.Contains(text, "--kind server") || !strings.Contains(text, "X-Docent-Reader")) {
					t.Errorf("%s: the refusal does not say the fix: %s", pattern, text)
				}
				refused++
			}
		}
	}
	if want := 2 * 12; refused != want { // assistant 1 and 2, search, page with and without a prefix, completions, responses, AG-UI, and the evaluation
		t.Errorf("%d requests were refused, want %d", refused, want)
	}
	if h.threads.asked > 0 || h.docs.last.Text != "" {
		t.Error("a question or search that named groups went on")
	}
}

// said returns the status and the text of an answer.
func (h *house) said(method, path, key, body string, headers ...string) (int, string) {
	h.t.Helper()
	res := h.do(method, path, key, body, headers...)
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestAServerKeyNamesGroups(t *testing.T) {
	h := build(t, takesTokens)
	server := h.key(api.Key{Kind: api.ServerKey, Org: "org-a", Project: "acme"})
	h.text(200, "POST", "/discovery/v1/search/docs.acme.example", server, `{"query":"pay",`+staff+`}`)
	if got := h.docs.last.Filter.Groups; !slices.Equal(got, []string{"staff"}) {
		t.Errorf("searched with the groups %q", got)
	}
	h.text(200, "POST", "/discovery/v1/page/docs.acme.example", server, `{"path":"staff","groups":["staff"]}`)
	h.text(200, "POST", v2, server, `{"fp":"u1","messages":[{"role":"user","content":"pay?"}],`+staff+`}`)
	if got := h.threads.last; !slices.Equal(got.Query.Filter.Groups, []string{"staff"}) || got.Reader != "u1" {
		t.Errorf("asked with the groups %q as %q", got.Query.Filter.Groups, got.Reader)
	}
	h.text(404, "POST", "/discovery/v1/page/docs.other.example", server, `{"path":"staff","groups":["staff"]}`)
	h.text(403, "GET", "/v2/agent/acme/jobs", server, "")
}

func TestAServerKeyIsRefusedFromBrowsers(t *testing.T) {
	h := build(t)
	server := h.key(api.Key{Kind: api.ServerKey, Org: "org-a", Project: "acme"})
	text, _ := h.text(403, "POST", "/discovery/v1/search/docs.acme.example", server, `{"query":"pay"}`, "Origin", "https://docs.acme.example")
	if !strings.Contains(text, "secret") || !strings.Contains(text, "browser") {
		t.Error(text)
	}
}

func TestAServerKeyWithGroupsIsForThoseAlone(t *testing.T) {
	h := build(t)
	server := h.key(api.Key{Kind: api.ServerKey, Org: "org-a", Project: "acme", Groups: []string{"staff", "beta"}})
	search := "/discovery/v1/search/docs.acme.example"
	for body, want := range map[string][]string{`{"query":"pay"}`: {"staff", "beta"}, `{"query":"pay",` + staff + `}`: {"staff"}} {
		h.text(200, "POST", search, server, body)
		if got := h.docs.last.Filter.Groups; !slices.Equal(got, want) {
			t.Errorf("%s is searched with %q, want %q", body, got, want)
		}
	}
	h.text(403, "POST", search, server, `{"query":"pay","filter":{"groups":["staff","board"]}}`)
}

func TestAReaderTokenSaysWhoReadsAndInWhichGroups(t *testing.T) {
	h := build(t, takesTokens)
	token := []string{"X-Docent-Reader", "alice staff"}
	h.text(200, "POST", "/discovery/v1/search/docs.acme.example", h.assistant, `{"query":"pay"}`, token...)
	if got := h.docs.last.Filter.Groups; !slices.Equal(got, []string{"staff"}) {
		t.Errorf("searched with the groups %q", got)
	}
	h.text(200, "POST", "/discovery/v1/page/docs.acme.example", h.assistant, `{"path":"staff"}`, token...)
	h.text(404, "POST", "/discovery/v1/page/docs.acme.example", h.assistant, `{"path":"staff"}`, "X-Docent-Reader", "bob")
	h.text(200, "POST", v2, h.assistant, ask, token...)
	if got := h.threads.last; !slices.Equal(got.Query.Filter.Groups, []string{"staff"}) || got.Reader != "alice" || got.Caller != "alice" {
		t.Errorf("asked with the groups %q as %q, %q", got.Query.Filter.Groups, got.Reader, got.Caller)
	}
	h.text(200, "POST", v2, h.assistant, ask)
	if got := h.threads.last; len(got.Query.Filter.Groups) > 0 || got.Reader != "" || got.Caller != "anonymous" {
		t.Errorf("without a token: %q as %q", got.Query.Filter.Groups, got.Reader)
	}
}

func TestAReaderTokenThatIsNotValidIsNeverAnsweredAsNone(t *testing.T) {
	h := build(t, takesTokens, func(d *router.Deps) { d.Tools = tools{} })
	open := h.catalog.projects["acme"]
	open.Options.Public = true
	h.catalog.projects["acme"] = open
	for _, op := range h.server.ReaderOperations() {
		for _, key := range []string{h.assistant, ""} {
			if key == "" && !strings.HasPrefix(op[1], "/mcp") && !strings.HasPrefix(op[1], "/llms") {
				continue
			}
			for _, tokens := range [][]string{{"bad"}, {""}, {"alice", "alice"}} {
				req, err := http.NewRequestWithContext(t.Context(), op[0], h.url+at(op[1]), http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				if key != "" {
					req.Header.Set("Authorization", "Bearer "+key)
				}
				req.Header["X-Docent-Reader"] = tokens
				res, err := h.unchecked().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), `"reader_token"`) {
					t.Errorf("%v with the tokens %q: %d %s", op, tokens, res.StatusCode, text)
				}
			}
		}
	}
	h.text(503, "POST", "/discovery/v1/search/docs.acme.example", h.assistant, `{"query":"pay"}`, "X-Docent-Reader", "unknown")
}
