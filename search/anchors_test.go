package search

import (
	"testing"

	"docent/api"
)

// A hit's address ends in the anchor that the site's generator made, also once the generator is set differently.
func TestHitsHaveTheAnchorsOfTheSite(t *testing.T) {
	t.Parallel()
	l := openTest(t, Options{})
	for _, c := range []struct{ config, anchor string }{
		{"site_url: https://x.com/\n", "whats-new_1"},
		{"site_url: https://x.com/\nmarkdown_extensions:\n  - toc:\n      slugify: !!python/object/apply:pymdownx.slugs.slugify\n        kwds: {case: none}\n", "Whats-new_1"},
	} {
		files := map[string]string{"mkdocs.yml": c.config,
			"docs/a.md": "# Title\n\n## What’s new\n\nOld.\n\n## What’s new\n\nneedle\n"}
		if _, err := l.Update(t.Context(), api.Project{ID: "p"}, &memTree{commit: c.anchor, files: files}, nil); err != nil {
			t.Fatal(err)
		}
		hits, err := l.Search(t.Context(), "p", Query{Text: "needle"})
		if want := "https://x.com/a/#" + c.anchor; err != nil || len(hits) != 1 || hits[0].Anchor != c.anchor ||
			hits[0].URL != want {
			t.Errorf("the hits are %+v, not at %s: %v", hits, want, err)
		}
	}
}
