package docs

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/api/client"
	"docent/bench/lab"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// A server shows its own documentation and answers questions about it, also without a project; the pages alone make no
// index, and nothing of it is among the projects.
func TestAServerExplainsItself(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t, filepath.Join(t.TempDir(), "data"))
	for path, want := range map[string]string{"/docs": `href="/docs/quickstart"`, "/docs/deploy/models": `id="`, "/": `href="/docs"`,
		"/docs/assistant/sites": `aria-current="page"`, "/docs/-/widget/settings/docs": "{}"} {
		if text, err := lab.Get(t.Context(), s.URL+path); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s has no %s: %v", path, want, err)
		}
	}
	picture, err := http.Get(s.URL + "/docs/images/console/overview.webp")
	if err != nil {
		t.Fatal(err)
	}
	picture.Body.Close()
	if got := picture.Header.Get("Content-Type"); got != "image/webp" {
		t.Errorf("a picture has the type %q", got)
	}
	for _, path := range []string{"/docs/no-such-page", "/docs/..%2fdocs.go", "/docs/images/none.webp", "/docs/-/healthz", "/docs/-/metrics"} {
		response, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
	made := filepath.Join(s.Data, datadir.Manual)
	if _, err := os.Stat(made); err == nil {
		t.Error("pages alone have made an index")
	}
	if got := strings.TrimSpace(harness.Docent(t, "docs", "--data", s.Data)); got != s.URL+"/docs" {
		t.Errorf("docent docs prints %q", got)
	}

	c := client.Client{Base: s.URL + "/docs/-", Key: "none"}
	a, err := c.Ask(t.Context(), client.Question{Domain: "docs", Caller: "anonymous", Text: "How do I make a backup?"}, io.Discard)
	if err != nil || len(a.Sources) == 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, source := range a.Sources {
		if _, err := lab.Get(t.Context(), source.URL); err != nil || !strings.HasPrefix(source.URL, s.URL+"/docs/") {
			t.Errorf("a source leads to %s: %v", source.URL, err)
		}
	}
	if _, err := c.Ask(t.Context(), client.Question{Domain: "docs", Caller: "anonymous", Thread: a.ThreadID,
		Text: "And how do I restore it?"}, io.Discard); err != nil {
		t.Errorf("a follow-up: %v", err)
	}
	if list := harness.Docent(t, "project", "list", "--data", s.Data, "--json"); strings.TrimSpace(list) != "" {
		t.Errorf("among the projects: %s", list)
	}
	s.Stop()
	if _, err := os.Stat(made); err == nil {
		t.Error("the index is there after the end")
	}
}
