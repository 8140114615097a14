package api

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/api/client"
	"docent/tests/harness"
)

// What a site does not publish is in no answer, no source, no search and no page, whichever generator makes the site.
func TestExcludedPagesAreNeitherAnsweredNorOfferedAsSources(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	for _, kind := range []string{"mintlify", "mkdocs", "vitepress", "docusaurus", "hugo", "starlight", "plain"} {
		a, err := txtar.ParseFile("../../search/testdata/published/" + kind + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		files, secrets := map[string]string{}, []string{}
		for _, f := range a.Files {
			if files[f.Name] = string(f.Data); strings.Contains(files[f.Name], "Bluefin") {
				secrets = append(secrets, f.Name)
			}
		}
		if len(secrets) < 3 {
			t.Fatalf("%s has %d secrets", kind, len(secrets))
		}
		p := harness.NewProject(t, data, kind, harness.WriteFiles(t, files))
		out := harness.Docent(t, "ask", "--url", server.URL, "--domain", p.Domain, "--key", p.Assistant, "--json",
			"What is the launch codename?")
		var got client.Answer
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, "Bluefin") {
			t.Errorf("%s: the answer is %s", kind, out)
		}
		for _, s := range got.Sources {
			for _, name := range secrets {
				if strings.Contains(s.URL, strings.TrimSuffix(name, filepath.Ext(name))) {
					t.Errorf("%s: %s is a source", kind, s.URL)
				}
			}
		}
		client := server.Client(p.Assistant)
		var hits json.RawMessage
		if err := client.Post(t.Context(), "/discovery/v1/search/"+p.Domain,
			map[string]any{"query": "launch codename Bluefin", "pageSize": 50}, &hits); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(hits), "Bluefin") {
			t.Errorf("%s: the search finds %s", kind, hits)
		}
		for _, name := range secrets {
			var page json.RawMessage
			if err := client.Post(t.Context(), "/discovery/v1/page/"+p.Domain, map[string]any{"path": name},
				&page); err == nil && strings.Contains(string(page), "Bluefin") {
				t.Errorf("%s: %s is read: %s", kind, name, page)
			}
		}
	}
}
