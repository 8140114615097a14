package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/client"
	"docent/search"
)

// What a site does not publish is in no answer, no source, no search and no page, whichever generator makes the site.
func TestExcludedPagesAreNeitherAnsweredNorOfferedAsSources(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data)
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
		p := newTestProject(t, data, kind, writeFiles(t, files))
		out := docent(t, "ask", "--url", server.url, "--domain", p.domain, "--key", p.assistant, "--json", "What is the launch codename?")
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
		client := server.client(p.assistant)
		var hits json.RawMessage
		if err := client.Post(t.Context(), "/discovery/v1/search/"+p.domain, map[string]any{"query": "launch codename Bluefin", "pageSize": 50}, &hits); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(hits), "Bluefin") {
			t.Errorf("%s: the search finds %s", kind, hits)
		}
		for _, name := range secrets {
			var page json.RawMessage
			if err := client.Post(t.Context(), "/discovery/v1/page/"+p.domain, map[string]any{"path": name}, &page); err == nil && strings.Contains(string(page), "Bluefin") {
				t.Errorf("%s: %s is read: %s", kind, name, page)
			}
		}
	}
}

// The check says the same with a server and without one, and what it lists changes with the project's settings at once.
func TestProjectCheckListsWhatIsPublic(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{
		"index.md": "# Home\n\n[Plan](plan.md)\n", "plan.md": "# Plan\n\nThe launch codename is Bluefin.\n", "CLAUDE.md": "# For programs\n",
	})
	check := func() (c search.Check) {
		t.Helper()
		if err := json.Unmarshal([]byte(docent(t, "project", "check", "docs", "--data", data, "--json")), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	public := func(c search.Check) (out []string) {
		for _, p := range c.Pages {
			out = append(out, p.Path+" "+p.URL)
		}
		return out
	}
	p := newTestProject(t, data, "docs", source)
	if got := public(check()); !slices.Equal(got, []string{"index.md /", "plan.md /plan"}) {
		t.Errorf("public are %q", got)
	}
	server := newTestServer(t, data)
	docent(t, "project", "set", "--data", data, "--id", "docs", "--exclude", "plan.md", "--site-url", "https://docs.acme.dev")
	c := check()
	if got := public(c); !slices.Equal(got, []string{"index.md https://docs.acme.dev"}) {
		t.Errorf("public are %q", got)
	}
	if len(c.DeadLinks) != 1 || c.DeadLinks[0].Link != "plan.md" || !strings.Contains(c.DeadLinks[0].Why, "--exclude plan.md") {
		t.Errorf("dead are %q", c.DeadLinks)
	}
	var hits json.RawMessage
	if err := server.client(p.assistant).Post(t.Context(), "/discovery/v1/search/"+p.domain, map[string]any{"query": "codename"}, &hits); err != nil || strings.Contains(string(hits), "Bluefin") {
		t.Errorf("the search finds %s, %v", hits, err)
	}
	text := docent(t, "project", "check", "docs", "--data", data)
	for _, want := range []string{"address: https://docs.acme.dev (--site-url)", "Public pages: 1", "CLAUDE.md", "--exclude plan.md", "Links that lead to no public page: 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the check does not say %q:\n%s", want, text)
		}
	}
	if _, err := tryDocent(t, "project", "set", "--data", data, "--id", "docs", "--exclude", "plan/["); err == nil || !strings.Contains(err.Error(), `--exclude "plan/["`) {
		t.Errorf("a pattern that is none: %v", err)
	}
	docent(t, "project", "set", "--data", data, "--id", "docs", "--exclude", "")
	if got := public(check()); len(got) != 2 {
		t.Errorf("after the exclusion is taken back, public are %q", got)
	}
	if text := docent(t, "project", "check", "docs", "--data", data); !strings.Contains(text, "Nothing wrong was found.") {
		t.Errorf("the check does not say that all is well:\n%s", text)
	}
	if _, err := tryDocent(t, "project", "check", "nope", "--data", data); err == nil || !strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("a check of no project: %v", err)
	}
}
