package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api/stream"
	"docent/tests/harness"
)

// aTracker plays the one listing of issues that the test reads.
func aTracker(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/issues/7/comments"):
			fmt.Fprint(w, `[{"body":"Clean the limescale filter with vinegar, then start it again.","author_association":"MEMBER","user":{"login":"dan","type":"User"},"created_at":"2026-11-02T00:00:00Z"}]`)
		case strings.HasSuffix(r.URL.Path, "/repos/acme/kettle/issues"):
			fmt.Fprint(w, `[{"number":7,"title":"Error E42 after a week","body":"The kettle shows E42 on its display.","state":"closed","state_reason":"completed","comments":1,"html_url":"https://github.com/acme/kettle/issues/7","closed_at":"2026-11-02T00:00:00Z","updated_at":"2026-11-02T00:00:00Z","user":{"login":"ann","type":"User"}}]`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// One project of documentation, an API reference, a blog for staff and issues: questions are answered from each with
// citations, and the blog is for its audience alone, by every way out.
func TestOneProjectOfFourSources(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "kettle", harness.WriteFiles(t, map[string]string{
		"boil.md": "# Boiling\n\nThe kettle boils water at ninety degrees.\n"}), "--site-url", "https://docs.example.com", "--public")
	harness.Docent(t, "source", "add", "kettle", "api", "--data", data, "--site-url", "https://api.example.com",
		"--weight", "1.2",
		"--address", harness.WriteFiles(t, map[string]string{"openapi.yaml": "openapi: 3.0.3\ninfo: {title: Kettle, version: '1'}\npaths:\n  /v1/temperature:\n    put:\n      summary: Set the temperature\n      description: Sets the thermostat of the kettle.\n      responses: {'204': {description: Set.}}\n"}))
	harness.Docent(t, "source", "add", "kettle", "blog", "--data", data, "--kind", "zip", "--group", "staff", "--site-url", "https://blog.example.com")
	harness.Docent(t, "source", "add", "kettle", "issues", "--data", data, "--kind", "issues", "--address", aTracker(t)+"/acme/kettle")
	harness.Docent(t, "source", "upload", "kettle", "blog", harness.ZipOf(t, map[string]string{
		"blog-main/merger.md": "# The merger\n\nAcme buys Zyxcorp for nine marbles, which is a secret.\n"}), "--data", data)

	post := func(key, path string, body map[string]any) *http.Response {
		t.Helper()
		resp, err := server.Client(key).Do(t.Context(), http.MethodPost, path, body)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	ofServer := strings.TrimSpace(harness.Docent(t, "key", "create", "--data", data, "--project", "kettle", "--kind",
		"server"))
	keyFor := func(filter map[string]any) string {
		if filter["groups"] != nil {
			return ofServer // readers' keys don't say which groups a reader is in
		}
		return p.Assistant
	}
	cited := func(question string, filter map[string]any) (sources []string, text string) {
		t.Helper()
		d := stream.NewDecoder(stream.UIMessages, post(keyFor(filter), "/discovery/v2/assistant/"+p.Domain+"/message", map[string]any{
			"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": question}}, "filter": filter}).Body)
		for {
			part, err := d.Next()
			if err != nil {
				t.Fatal(err)
			}
			switch part.Kind {
			case stream.Source:
				sources = append(sources, part.Label+" "+part.URL)
			case stream.Text:
				text += part.Text
			case stream.Error:
				t.Fatal(part.Text)
			case stream.Finish:
				return sources, text
			}
		}
	}
	staff := map[string]any{"groups": []string{"staff"}}
	for question, c := range map[string]struct {
		want   string
		filter map[string]any
	}{
		"At how many degrees does the kettle boil water?": {"docs https://docs.example.com/boil", nil},
		"What does PUT /v1/temperature do?":               {"api https://api.example.com/", nil},
		"What do I do about error E42?":                   {"issues https://github.com/acme/kettle/issues/7", nil},
		"For how many marbles does Acme buy Zyxcorp?":     {"blog https://blog.example.com/merger", staff},
		"How many degrees does the kettle boil water at?": {"docs https://docs.example.com/boil", map[string]any{"sources": []string{"docs"}}},
	} {
		sources, text := cited(question, c.filter)
		if !slices.ContainsFunc(sources, func(s string) bool { return strings.HasPrefix(s, c.want) }) {
			t.Errorf("%s: %v\n%s", question, sources, text)
		}
	}

	// What everybody gets says nothing of the blog, whatever is asked.
	const secret = "Zyxcorp"
	outlets := map[string]string{}
	read := func(name string, resp *http.Response) {
		t.Helper()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		outlets[name] = string(raw)
	}
	for name, filter := range map[string]map[string]any{"": nil, " by label": {"sources": []string{"blog"}},
		" with another group": {"groups": []string{"partners"}, "sources": []string{"blog"}}} {
		sources, text := cited("Which company does Acme buy for nine marbles?", filter)
		outlets["assistant"+name] = text + strings.Join(sources, " ")
		read("search"+name, post(keyFor(filter), "/discovery/v1/search/"+p.Domain,
			map[string]any{"query": "Acme buys marbles secret merger", "filter": filter}))
	}
	for _, path := range []string{"@blog/merger.md", "/@blog/merger", "https://blog.example.com/merger"} {
		resp, err := server.Client(p.Assistant).Do(t.Context(), http.MethodPost, "/discovery/v1/page/"+p.Domain,
			map[string]any{"path": path})
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s is read: %s", path, resp.Status)
		} else if !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"llms.txt", "llms-full.txt", "@blog/merger.md"} {
		resp, err := http.Get(server.URL + "/llms/" + p.Domain + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		read("llms "+path, resp)
		resp.Body.Close()
	}
	session, err := harness.Connect(t, overHTTP(server.URL+"/mcp/"+p.Domain, p.Assistant))
	if err != nil {
		t.Fatal(err)
	}
	for tool, arguments := range map[string]map[string]any{
		"search": {"query": "Acme buys marbles merger", "sources": []string{"blog"}}, "read_page": {"path": "@blog/merger.md"},
		"ask": {"question": "Which company does Acme buy?"}} {
		outlets["mcp "+tool], _ = harness.CallTool(t, session, tool, arguments)
	}
	// Nor do suggested questions, a denial with what comes nearest, or an evaluation.
	harness.Docent(t, "project", "set", "kettle", "--data", data, "--suggestions", "--deflection", "help@example.com")
	for _, question := range []string{"At how many degrees does the kettle boil water?", "Who pays for the merger of Acme?",
		"Which marbles does the merger name?"} {
		sources, text := cited(question, nil)
		outlets["suggestions of "+question] = text + strings.Join(sources, " ")
	}
	admin := harness.NewKey(t, data, "kettle", "admin")
	read("evaluation", post(admin, "/v1/evaluation/kettle", map[string]any{"questions": []any{map[string]any{"question": "Who pays for the merger of Acme?"}}}))
	for name, said := range outlets {
		if strings.Contains(said, secret) || strings.Contains(said, "blog.example.com") {
			t.Errorf("%s tells everybody: %s", name, said)
		}
	}
	if full := outlets["llms llms-full.txt"]; !strings.Contains(full, "limescale") || !strings.Contains(outlets["llms llms.txt"], "@issues/") {
		t.Errorf("llms.txt leaves the issues out: %s", outlets["llms llms.txt"])
	}
	var hits []struct {
		Path     string
		Metadata struct{ Source string }
	}
	resp := post(keyFor(staff), "/discovery/v1/search/"+p.Domain, map[string]any{"query": "marbles", "filter": staff})
	if err := json.NewDecoder(resp.Body).Decode(&hits); err != nil || len(hits) == 0 || hits[0].Path != "@blog/merger.md" ||
		hits[0].Metadata.Source != "blog" {
		t.Errorf("staff find %+v, %v", hits, err)
	}

	// It is the same after a restart, and a source that is removed is gone.
	server.Stop()
	server.Start()
	if sources, _ := cited("What do I do about error E42?", nil); !slices.Contains(sources, "issues https://github.com/acme/kettle/issues/7") {
		t.Errorf("after a restart: %v", sources)
	}
	harness.Docent(t, "source", "remove", "kettle", "issues", "--data", data)
	if sources, _ := cited("What do I do about error E42?", nil); strings.Contains(strings.Join(sources, " "), "issues") {
		t.Errorf("after it was removed: %v", sources)
	}
}

// A project whose source is only read answers readers, and a job for it is refused with what to do.
func TestAJobOnASourceThatIsOnlyReadIsRefused(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	harness.Docent(t, "project", "add", "wiki", "--data", data, "--domain", "wiki.example.com", "--kind", "zip")
	harness.Docent(t, "source", "upload", "wiki", "docs", harness.ZipOf(t, map[string]string{"a.md": "# Apples\n\nApples are green.\n"}), "--data", data)
	admin := harness.NewKey(t, data, "wiki", "admin")
	resp, err := server.Client(admin).Do(t.Context(), http.MethodPost, "/v2/agent/wiki/job",
		map[string]any{"prompt": "Rename Apples to Pears."})
	if err == nil {
		resp.Body.Close()
		t.Errorf("a job is accepted: %s", resp.Status)
	} else if said := err.Error(); !strings.Contains(said, "409") || !strings.Contains(said, "docent source add") {
		t.Errorf("%v", err)
	}
	found, err := server.Client(harness.NewKey(t, data, "wiki", "assistant")).Do(t.Context(), http.MethodPost,
		"/discovery/v1/search/wiki.example.com", map[string]any{"query": "apples"})
	if err != nil {
		t.Fatal(err)
	}
	defer found.Body.Close()
	if raw, _ := io.ReadAll(found.Body); !strings.Contains(string(raw), "green") {
		t.Errorf("readers find %s", raw)
	}
}
