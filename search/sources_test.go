package search

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"docent/api"
)

// several is a library with one project of three sources: its docs, a blog that counts half, and pages for staff.
func several(t *testing.T) (*Library, api.Project) {
	t.Helper()
	p := api.Project{ID: "docs", SiteURL: "https://docs.example.com", Sources: []api.Source{
		{Label: "blog", Weight: 0.5, SiteURL: "https://blog.example.com"},
		{Label: "staff", Groups: []string{"staff"}, SiteURL: "https://staff.example.com"},
		{Label: "late"},
	}}
	var missing []api.ProjectID
	l := openTest(t, Options{
		Sources: func(_ context.Context, id api.ProjectID) ([]Source, error) {
			if id != p.ID {
				return nil, api.ErrNotFound
			}
			return sourcesFor(p), nil
		},
		Missing: func(id api.ProjectID) { missing = append(missing, id) },
	})
	pages := map[string]string{
		"": "# Quotas\n\nA quota limits how many requests a key may make in an hour.\n",
		"blog": "---\ntags: [news]\n---\n\n# Quotas explained\n\nWhy a quota limits how many requests a key may make in an hour.\n\n" +
			"## Pelicans\n\nA pelican eats fish.\n",
		"staff": "# Quotas of staff\n\nStaff may lift a quota for the merger with Zyxcorp, which nobody knows of.\n",
	}
	for label, text := range pages {
		mustUpdate(t, l, p.Of(label), &memTree{commit: "c", files: map[string]string{"quotas.md": text}})
	}
	return l, p
}

func paths(hits []Hit) (out []string) {
	for _, h := range hits {
		out = append(out, h.Source+" "+h.Path)
	}
	return out
}

func TestSeveralSourcesAnswerTogether(t *testing.T) {
	l, p := several(t)
	q := Query{Text: "how many requests does a quota allow", Limit: 5}
	if got, want := paths(mustSearch(t, l, p.ID, q)), []string{"docs quotas.md", "blog @blog/quotas.md"}; !slices.Equal(got, want) {
		t.Errorf("everybody finds %v", got)
	}
	hits := mustSearch(t, l, p.ID, Query{Text: "pelican fish"})
	if len(hits) == 0 || hits[0].URL != "https://blog.example.com/quotas#pelicans" || hits[0].Score > 0.5 {
		t.Errorf("the blog says %+v", hits)
	}
	q.Filter.Sources = []string{"blog"}
	if got := paths(mustSearch(t, l, p.ID, q)); !slices.Equal(got, []string{"blog @blog/quotas.md"}) {
		t.Errorf("of the blog alone: %v", got)
	}
	q.Filter.Sources = []string{"wiki"}
	if got := paths(mustSearch(t, l, p.ID, q)); len(got) != 0 {
		t.Errorf("of no source: %v", got)
	}
	q.Filter = Filter{Tag: "news"}
	if got := paths(mustSearch(t, l, p.ID, q)); !slices.Equal(got, []string{"blog @blog/quotas.md"}) {
		t.Errorf("with a tag: %v", got)
	}
	q.Filter = Filter{}
	q.Threshold = hits[0].Score + 0.4
	for _, h := range mustSearch(t, l, p.ID, q) {
		if h.Score < q.Threshold {
			t.Errorf("below the threshold: %+v", h)
		}
	}
	q.Threshold, q.Limit = 0, 1
	if got := paths(mustSearch(t, l, p.ID, q)); !slices.Equal(got, []string{"docs quotas.md"}) {
		t.Errorf("one page: %v", got)
	}
}

// Nobody without the group sees a word of a source with an audience, by whatever way.
func TestASourceWithAnAudienceIsForItAlone(t *testing.T) {
	l, p := several(t)
	secret := func(where string, texts ...string) {
		t.Helper()
		for _, s := range texts {
			if strings.Contains(s, "staff") || strings.Contains(s, "Zyxcorp") || strings.Contains(s, "Quotas of") {
				t.Errorf("%s tells %q", where, s)
			}
		}
	}
	for _, groups := range [][]string{nil, {"partners"}} {
		for _, filter := range []Filter{{Groups: groups}, {Groups: groups, Sources: []string{"staff"}}} {
			q := Query{Text: "Zyxcorp merger quota", Filter: filter, Everywhere: true}
			for _, h := range mustSearch(t, l, p.ID, q) {
				secret("search", h.Path, h.Title, h.Content, h.URL)
			}
			e, err := l.Explain(t.Context(), p.ID, q, "@staff/quotas.md")
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range e.Hits {
				secret("an explanation", h.Hit.Path, h.Hit.Content)
			}
			for _, x := range e.Expected {
				secret("an expected page", x.Title, x.URL) // its path is what was asked for
			}
		}
		for _, path := range []string{"@staff/quotas.md", "/@staff/quotas", "https://staff.example.com/quotas", "@staff/"} {
			if page, err := l.Page(t.Context(), p.ID, path, groups); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%s: %+v, %v", path, page, err)
			}
		}
	}
	listed, err := l.Published(t.Context(), p.ID)
	if err != nil || len(listed) != 2 {
		t.Errorf("published: %v, %v", listed, err)
	}
	for _, i := range listed {
		secret("the list", i.Path, i.Title, i.URL)
	}
	named, err := l.Pages(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range named {
		secret("the names", n.Path, n.Title)
	}
	if in, _, err := l.Rarity(t.Context(), p.ID, []string{"zyxcorp"}); err != nil || in[0] != 0 {
		t.Errorf("rarity: %v, %v", in, err)
	}
	q := Query{Text: "Zyxcorp merger quota", Filter: Filter{Groups: []string{"staff"}}}
	if hits := mustSearch(t, l, p.ID, q); len(hits) == 0 || hits[0].Path != "@staff/quotas.md" {
		t.Errorf("staff find %v", hits)
	}
	if page, err := l.Page(t.Context(), p.ID, "https://staff.example.com/quotas", []string{"staff"}); err != nil ||
		page.Path != "@staff/quotas.md" || !slices.Equal(page.Groups, []string{"staff"}) {
		t.Errorf("staff read %+v, %v", page, err)
	}
}

func TestPagesOfFurtherSourcesHaveTheirLabelInTheirPath(t *testing.T) {
	l, p := several(t)
	for path, want := range map[string]string{
		"quotas.md": "quotas.md", "@blog/quotas.md": "@blog/quotas.md", "/@blog/quotas": "@blog/quotas.md",
		"https://blog.example.com/quotas": "@blog/quotas.md", "https://docs.example.com/quotas": "quotas.md",
	} {
		if page, err := l.Page(t.Context(), p.ID, path, nil); err != nil || page.Path != want {
			t.Errorf("%s: %s, %v", path, page.Path, err)
		}
	}
	for _, path := range []string{"@wiki/quotas.md", "@late/quotas.md"} {
		if page, err := l.Page(t.Context(), p.ID, path, nil); err == nil {
			t.Errorf("%s: %+v", path, page)
		}
	}
	named, err := l.Names(t.Context(), p.ID, []Place{{"quotas.md", ""}, {"@blog/quotas.md", "pelicans"}, {"@late/x", ""}})
	if err != nil || named[0].Title != "Quotas" || named[1].Heading != "Pelicans" || named[2].URL != "" {
		t.Errorf("%+v, %v", named, err)
	}
	e, err := l.Explain(t.Context(), p.ID, Query{Text: "pelican"}, "@blog/quotas.md")
	if err != nil || len(e.Hits) == 0 || len(e.Expected) != 1 || e.Expected[0].Rank != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	sum := 0.0
	for _, part := range e.Hits[0].Parts {
		sum += part.Amount
	}
	if score := mustSearch(t, l, p.ID, Query{Text: "pelican"})[0].Score; e.Hits[0].Hit.Score != score || sum < score-1e-4 || sum > score+1e-4 {
		t.Errorf("the parts make %v of %v, which search gives as %v", sum, e.Hits[0].Hit.Score, score)
	}
}

// sourcesFor are the sources of a project, as sources.Reader.Answering has them of one without a published site.
func sourcesFor(p api.Project) []Source {
	parts := []Source{{Label: p.FirstLabel(), Index: p.ID, Weight: 1, First: true}}
	for _, s := range p.Sources {
		parts = append(parts, Source{Label: s.Label, Index: api.SourceID(p.ID, s.Label), Weight: s.Counts(), Groups: s.Groups})
	}
	return parts
}
