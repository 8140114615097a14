package issues

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/forge/host"
	"docent/search/sources"
)

// gitHub plays the host's listings of issues, comments and discussions.
type gitHub struct {
	issues      []map[string]any
	comments    map[int][]map[string]any
	discussions []map[string]any
	asked       []string
	fail        func(path string) bool
	token       string
}

func (g *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.asked = append(g.asked, r.Method+" "+r.URL.Path)
	var number int
	w.Header().Set("Content-Type", "application/json")
	switch _, err := fmt.Sscanf(r.URL.Path, "/api/v3/repos/acme/product/issues/%d/comments", &number); {
	case r.Header.Get("Authorization") != "Bearer "+g.token:
		w.WriteHeader(http.StatusUnauthorized)
	case g.fail != nil && g.fail(r.URL.Path):
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	case err == nil:
		_ = json.NewEncoder(w).Encode(append([]map[string]any{}, g.comments[number]...))
	case r.URL.Path == "/api/v3/repos/acme/product/issues":
		since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
		out := []map[string]any{}
		for _, i := range g.issues {
			if at, _ := time.Parse(time.RFC3339, i["updated_at"].(string)); !at.Before(since) {
				out = append(out, i)
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	case r.URL.Path == "/api/graphql":
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"repository": map[string]any{
			"discussions": map[string]any{"pageInfo": map[string]any{"hasNextPage": false}, "nodes": g.discussions}}}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func issue(n int, state, reason, title, body, updated string, more ...any) map[string]any {
	out := map[string]any{"number": n, "title": title, "body": body, "state": state, "state_reason": reason, "comments": 1,
		"html_url": fmt.Sprintf("https://github.com/acme/product/issues/%d", n), "updated_at": updated,
		"closed_at": updated, "user": map[string]any{"login": "ann", "type": "User"}}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

func said(login, association, body string) map[string]any {
	return map[string]any{"body": body, "author_association": association, "created_at": "2026-11-01T00:00:00Z",
		"user": map[string]any{"login": login, "type": "User"}}
}

func start(t *testing.T) (*gitHub, *Collector, api.Project, string) {
	t.Helper()
	t.Setenv("TEST_ISSUES_TOKEN", "ghp_secret")
	g := &gitHub{token: "ghp_secret", comments: map[int][]map[string]any{
		1: {said("bob", "NONE", "+1"), said("cat", "NONE", "I have the same trouble with my pelicans here."),
			said("dan", "MEMBER", "Set `feed = true`, then restart the server."),
			said("ci[bot]", "NONE", "This issue was marked as stale by a robot today.")},
		4: {said("dan", "MEMBER", "It works as it should, I am afraid.")},
	}, issues: []map[string]any{
		issue(1, "closed", "completed", "Pelicans are not fed", "<!-- tell us -->\n### What happened\n\nThe pelican stays hungry. <script>alert(1)</script>\n\n### Logs\n\n_No response_\n\n- [x] I searched", "2026-11-02T00:00:00Z"),
		issue(2, "open", "", "Still open", "Nobody knows.", "2026-11-03T00:00:00Z"),
		issue(3, "closed", "not_planned", "Turned down", "Paint it green.", "2026-11-04T00:00:00Z"),
		issue(4, "closed", "completed", "Not for docs", "Internal matter.", "2026-11-05T00:00:00Z", "labels", []map[string]any{{"name": "Internal"}}),
		issue(5, "closed", "completed", "A change", "It is a pull request.", "2026-11-06T00:00:00Z", "pull_request", map[string]any{"url": "x"}),
		issue(6, "closed", "completed", "Bump x to 2", "Bumps x.", "2026-11-07T00:00:00Z", "user", map[string]any{"login": "dependabot[bot]", "type": "Bot"}),
	}, discussions: []map[string]any{{"number": 9, "title": "How do I feed two?", "body": "I have two pelicans.", "isAnswered": true,
		"url": "https://github.com/acme/product/discussions/9", "answerChosenAt": "2026-11-08T00:00:00Z", "updatedAt": "2026-11-08T00:00:00Z",
		"author": map[string]any{"login": "eve", "__typename": "User"}, "labels": map[string]any{"nodes": []any{}},
		"comments": map[string]any{"nodes": []map[string]any{
			{"body": "Perhaps ask in the forum about it.", "createdAt": "2026-11-07T00:00:00Z", "authorAssociation": "NONE"},
			{"body": "Use `feeders: 2` in the file.", "isAnswer": true, "createdAt": "2026-11-08T00:00:00Z", "authorAssociation": "NONE"}}}}}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	p := api.Project{ID: "docs", Domain: "docs", Source: "/docs", Sources: []api.Source{{Label: "issues", Kind: api.SourceIssues,
		Address: server.URL + "/acme/product", TokenEnv: "TEST_ISSUES_TOKEN", Collect: api.Collect{Issues: api.IssueOptions{
			Without: []string{"internal"}, Discussions: true}}}}}.WithDefaults()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, sources.PagesDir), 0o700); err != nil {
		t.Fatal(err)
	}
	hosts := host.New(host.Options{Timeout: 10 * time.Second, Now: time.Now})
	return g, &Collector{Host: hosts, Now: time.Now}, p.Of("issues"), dir
}

func collect(t *testing.T, c *Collector, p api.Project, dir string) sources.Collected {
	t.Helper()
	found, err := c.Collect(context.Background(), p, dir, func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestThreadsThatWereSettledBecomePages(t *testing.T) {
	_, c, p, dir := start(t)
	if got := collect(t, c, p, dir); got.Pages != 2 || got.Changed != 2 {
		t.Fatalf("%+v", got)
	}
	raw, err := os.ReadFile(filepath.Join(dir, sources.PagesDir, "issue-1.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, want := range []string{`title: "Pelicans are not fed"`, `url: "https://github.com/acme/product/issues/1"`,
		"GitHub issue #1 (closed 2026-11-02)", "**What happened**\n\nThe pelican stays hungry.", "## Answer of a maintainer\n\nSet `feed = true`"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"tell us", "Logs", "No response", "I searched", "<script", "+1", "robot"} {
		if strings.Contains(text, not) {
			t.Errorf("it has %q:\n%s", not, text)
		}
	}
	if strings.Index(text, "maintainer") > strings.Index(text, "same trouble") {
		t.Errorf("a maintainer comes behind others:\n%s", text)
	}
	raw, err = os.ReadFile(filepath.Join(dir, sources.PagesDir, "discussion-9.md"))
	if err != nil || !strings.Contains(string(raw), "GitHub discussion #9 (answered 2026-11-08)") ||
		strings.Index(string(raw), "feeders: 2") > strings.Index(string(raw), "forum") {
		t.Errorf("%v\n%s", err, raw)
	}
}

func TestOnlyWhatChangedIsAskedForAgain(t *testing.T) {
	g, c, p, dir := start(t)
	collect(t, c, p, dir)
	g.asked = nil
	if got := collect(t, c, p, dir); got.Changed != 0 || got.Pages != 2 {
		t.Errorf("%+v", got)
	}
	for _, asked := range g.asked {
		if strings.Contains(asked, "comments") {
			t.Errorf("asked again for %s", asked)
		}
	}
	g.issues[0]["state"], g.issues[0]["updated_at"] = "open", "2026-11-20T00:00:00Z" // opened again
	g.issues[1]["state"], g.issues[1]["updated_at"] = "closed", "2026-11-21T00:00:00Z"
	if got := collect(t, c, p, dir); got.Changed != 2 || got.Pages != 2 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, sources.PagesDir, "issue-1.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an issue that was opened again: %v", err)
	}
	// A thread that is no more shows when all are listed again.
	g.issues = g.issues[1:]
	g.discussions = nil
	c.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
	if got := collect(t, c, p, dir); got.Pages != 1 {
		t.Errorf("%+v", got)
	}
}

// A host that wants to be left alone costs nothing that was read already.
func TestAReadingThatBreaksOffGoesOnWhereItWas(t *testing.T) {
	g, c, p, dir := start(t)
	g.fail = func(path string) bool { return strings.HasSuffix(path, "graphql") }
	if _, err := c.Collect(context.Background(), p, dir, func(string, int, int) {}); err == nil {
		t.Fatal("it did not fail")
	}
	g.fail, g.asked = nil, nil
	c.Host = host.New(host.Options{Timeout: 10 * time.Second, Now: time.Now})
	if got := collect(t, c, p, dir); got.Pages != 2 || got.Changed != 1 {
		t.Errorf("%+v", got)
	}
	for _, asked := range g.asked {
		if strings.Contains(asked, "comments") {
			t.Errorf("asked again for %s", asked)
		}
	}
}

func TestAWrongTokenIsSaidInWords(t *testing.T) {
	g, c, p, dir := start(t)
	g.token = "another"
	_, err := c.Collect(context.Background(), p, dir, func(string, int, int) {})
	if err == nil || !strings.Contains(err.Error(), "TEST_ISSUES_TOKEN") || strings.Contains(err.Error(), "ghp_secret") {
		t.Errorf("%v", err)
	}
}
