package sources

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/search/page"
	"docent/site/published"
)

// What the repository keeps from readers is kept from them on the site too, and the site answers where it has its pages.
func TestWhatReadersAreAnsweredFromIsDecided(t *testing.T) {
	t.Parallel()
	const at = "https://docs.acme.dev/"
	record := func(path string, hidden bool, groups ...string) *page.Record {
		return &page.Record{Path: path, Hidden: hidden, Groups: groups}
	}
	files := []*page.Record{record("a.md", false), record("b.md", false), record("hidden.md", true)}
	var pages []published.Page
	for _, name := range []string{"a", "b", "hidden", "made"} {
		pages = append(pages, published.Page{Path: name + ".md", URL: at + name})
	}
	for name, c := range map[string]struct {
		project  api.Project
		files    []*page.Record
		pages    []published.Page
		site     bool
		withheld string
	}{
		"covered":              {api.Project{AnswersFrom: api.FromBetter}, files, pages, true, "hidden.md"},
		"not covered":          {api.Project{AnswersFrom: api.FromBetter}, files, pages[:1], false, ""},
		"the project says so":  {api.Project{AnswersFrom: api.FromSite}, files, pages[:1], true, ""},
		"or otherwise":         {api.Project{AnswersFrom: api.FromSource}, files, pages, false, "hidden.md"},
		"with patterns":        {api.Project{AnswersFrom: api.FromBetter, Exclude: []string{"internal/"}}, files, pages, true, "hidden.md made.md"},
		"with groups":          {api.Project{AnswersFrom: api.FromSite}, append(slices.Clone(files), record("staff.md", false, "staff")), pages, false, "hidden.md"},
		"nothing may be shown": {api.Project{AnswersFrom: api.FromSite}, files, pages[2:3], false, "hidden.md"},
	} {
		var known []published.File
		for _, r := range c.files {
			known = append(known, published.File{Path: r.Path, URL: at + strings.TrimSuffix(r.Path, ".md"), Hidden: r.Hidden})
		}
		m := Published{Map: published.Match(c.pages, known, ""), withheld: map[string]string{}}
		m.decide(c.project, "commit", c.files)
		if got := strings.Join(slices.Sorted(maps.Keys(m.withheld)), " "); m.Site != c.site || got != c.withheld {
			t.Errorf("%s: from the site: %t, withheld: %s (%s)", name, m.Site, got, m.why)
		}
	}
}

// mdBook shows its first chapter where the book begins too: that page is of the chapter's file, and no address differs.
func TestWhereASiteBeginsIsItsFirstPage(t *testing.T) {
	t.Parallel()
	const at = "https://book.acme.dev"
	chapters := []*page.Record{{Path: "one.md", Shown: "one.html", Order: 1}, {Path: "two.md", Shown: "two.html", Order: 2}}
	home := &page.Record{Path: "index.md", Shown: "index.html", Order: 2}
	for _, files := range [][]*page.Record{chapters, append(slices.Clone(chapters), home)} {
		var pages []published.Page
		var shown []published.Shown
		for _, name := range []string{"index", "one", "two"} {
			pages = append(pages, published.Page{Path: name + ".md", URL: at + "/" + strings.Replace(name+".html", "index.html", "", 1)})
		}
		for _, r := range files {
			shown = append(shown, published.Shown{Path: r.Path, URL: r.URL(at, "")})
		}
		m := published.Match(pages, filesOf(files, at, func(string) func() []byte { return nil }), "")
		want := "one.md"
		if len(files) > 2 {
			want = "index.md"
		}
		if row, _ := m.Of("index.md"); row.File != want {
			t.Errorf("the start is of %q, not %s", row.File, want)
		}
		if c := published.Compare(&m, nil, shown, nil, "", nil); len(c.Addresses) > 0 || c.Mapped != len(files) || len(c.Made) > 0 {
			t.Errorf("%+v", c)
		}
	}
}

// A change of every page is told by some of them, and changes that no page tells are given up.
func TestTheLookForAChangeOnASiteIsBounded(t *testing.T) {
	t.Parallel()
	files, pages := []forge.FileDiff{}, map[string]string{}
	for i := range 2000 {
		name := fmt.Sprintf("p%d.md", i)
		files = append(files, forge.FileDiff{Path: name, Unified: "-Press the red lever and hold it down.\n+Press the blue button and wait for the whistle.\n"})
		pages[name] = name
	}
	looks, read := maxLooks, 0
	page := func(text string) func(string) []byte {
		return func(string) []byte { read++; return []byte(text) }
	}
	if after, before := tells(files, pages, page("Press the blue button and wait for the whistle."), &looks); after != maxTelling ||
		before != 0 || read != maxTelling || looks != maxLooks-read {
		t.Errorf("%d after, %d before, of %d pages read", after, before, read)
	}
	for range 2 {
		if after, before := tells(files, pages, page("Nothing of it."), &looks); after+before != 0 || read != maxLooks {
			t.Errorf("%d after, %d before, of %d pages read in all", after, before, read)
		}
	}
}
