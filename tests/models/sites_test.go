package models

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"docent/agent"
	"docent/api"
	"docent/bench/corpora"
	"docent/internal/testing/need"
	"docent/search"
	"docent/site"
)

var (
	_ agent.Tree  = corpora.Tree{}
	_ search.Tree = corpora.Tree{}
)

var siteKinds = []api.SiteKind{"", api.SitePlain, api.SiteMintlify, api.SiteDocusaurus, api.SiteVitePress, api.SiteHugo,
	api.SiteMkDocs, api.SiteStarlight, api.SiteNext}

// Whatever --site says, a page that a search shows at an address is the page that the agent edits when it is named by
// that address. The sites are those of the generators' rules, and whole documentation sets where they lie beside the
// checkout.
func TestSearchAndAgentAgreeOnWhereEachPageIsShown(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../search/testdata/published/*.txtar")
	if err != nil || len(names) < 5 {
		t.Fatalf("%d sites: %v", len(names), err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, tree := api.Project{ID: "p"}, corpora.Tree{}
		for line := range strings.Lines(string(a.Comment)) {
			if dir, ok := strings.CutPrefix(line, "docs-dir: "); ok {
				p.DocsDir = strings.TrimSpace(dir)
			}
		}
		for _, f := range a.Files {
			tree[f.Name] = f.Data
		}
		for _, kind := range siteKinds {
			p.Site = kind
			t.Run(filepath.Base(name)+" as "+string(kind), func(t *testing.T) { agree(t, p, tree, 1000) })
		}
	}
	if !need.All {
		return // without whole documentation sets
	}
	for _, set := range []struct {
		name, dir string
		kinds     []api.SiteKind
	}{
		{"docusaurus", "", []api.SiteKind{"", api.SitePlain}}, {"electron", "", []api.SiteKind{"", api.SiteDocusaurus}},
		{"fastapi", "", []api.SiteKind{""}},
		{"hugo", "", []api.SiteKind{"", api.SiteStarlight}}, {"mintlify", "", []api.SiteKind{"", api.SiteHugo}},
		{"prometheus", "docs", []api.SiteKind{"", api.SiteMkDocs}},
		{"vite", "", []api.SiteKind{""}}, {"vite", "docs", []api.SiteKind{""}},
	} {
		tree := corpora.Judged(t, set.name)
		for _, kind := range set.kinds {
			t.Run(set.name+" as "+string(kind), func(t *testing.T) {
				agree(t, api.Project{ID: "p", DocsDir: set.dir, Site: kind, SiteURL: "https://docs.acme.dev/base"}, tree, 60)
			})
		}
	}
}

var marked = regexp.MustCompile(`zyxwv\d+`)

// agree has the agent append a word of its own to each page, named by the address that a search gives it.
func agree(t *testing.T, p api.Project, tree corpora.Tree, most int) {
	t.Helper()
	library, err := search.Open(t.TempDir(), search.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { library.Close() })
	check, err := library.Check(t.Context(), p, tree, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if p.Site != "" && check.Site != p.Site {
		t.Fatalf("the site is %s, not %s", check.Site, p.Site)
	}
	taken := map[string]int{} // pages at one address
	for _, c := range check.Pages {
		taken[site.AddressKey(c.URL)]++
	}
	step := max(len(check.Pages)/most, 1)
	var prompt strings.Builder
	want := map[string]string{} // words by the file that they belong in
	for i := 0; i < len(check.Pages); i += step {
		c := check.Pages[i]
		if ext := path.Ext(c.Path); ext != ".md" && ext != ".mdx" || taken[site.AddressKey(c.URL)] > 1 ||
			strings.Contains(path.Clean("/"+c.Path), "/.") {
			continue // the agent edits Markdown, and readers find one page at an address
		}
		at, err := url.Parse(c.URL)
		if err != nil {
			t.Fatal(err)
		}
		address := strings.TrimSuffix(at.Path, "/")
		if address == "" || strings.Count(address, "/") < 1 || strings.ContainsAny(address, "\" ") {
			continue
		}
		word := fmt.Sprintf("zyxwv%d", i)
		want[path.Join(p.DocsDir, c.Path)] = word
		fmt.Fprintf(&prompt, "Append \"%s\" to %q.\n", word, address)
	}
	if len(want) == 0 {
		return
	}
	res, err := agent.New(agent.Options{}).Edit(t.Context(),
		agent.Task{Project: p, Prompt: prompt.String(), Tree: tree, DocsDir: p.DocsDir, Now: time.Unix(0, 0)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Changes) == 0 {
		t.Fatalf("the agent found none of %d pages: %.300s", len(want), res.Message)
	}
	got := map[string]string{}
	for _, c := range res.Changes {
		got[c.Path] = strings.Join(marked.FindAllString(string(c.Content), -1), ", ")
	}
	for file, word := range want {
		if got[file] != word {
			t.Errorf("%s was to get %q and got %q", file, word, got[file])
		}
	}
}
