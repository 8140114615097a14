package site

import (
	"cmp"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"time"

	"docent/api"
)

// Versions are in the order of their numbers.
func TestVersionsAreOrderedByTheirNumbers(t *testing.T) {
	ordered := []string{"next", "v0.9", "1.0-rc.1", "1.0", "1.2.x", "1.9", "v1.10", "2", "10.1", "latest"}
	for i, a := range ordered {
		for k, b := range ordered {
			if got := compareVersions(a, b); got != cmp.Compare(i, k) {
				t.Errorf("%s and %s compare as %d", a, b, got)
			}
		}
	}
}

// A site of MkDocs with a configuration for each language publishes all of them: the one that the others inherit from
// at the root, the others below their languages' names.
func TestEachLanguageOfAnMkDocsSiteIsPublished(t *testing.T) {
	files := map[string]string{
		"docs/de/mkdocs.yml":    "INHERIT: ../en/mkdocs.yml\n",
		"docs/en/mkdocs.yml":    "site_name: X\nsite_url: https://acme.dev/\nexclude_docs: secret.md\n",
		"docs/em/mkdocs.yml":    "INHERIT: ../en/mkdocs.yml\n",
		"docs/de/docs/index.md": "", "docs/de/docs/a/b.md": "", "docs/en/docs/index.md": "", "docs/en/docs/a/b.md": "",
		"docs/de/docs/secret.md": "", "docs/example/mkdocs.yml": "site_name: Y\n", "docs/example/docs/x.md": "",
	}
	names := slices.Sorted(maps.Keys(files))
	s := Open(api.Project{}, names, func(p string) ([]byte, error) {
		if text, ok := files[p]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	})
	var entries []Entry
	var pages []EditionPage
	for _, f := range names {
		if IsPage(f) {
			entries, pages = append(entries, Entry{Path: f}), append(pages, EditionPage{Path: f})
		}
	}
	editions := s.Editions(pages)
	got := map[string]string{}
	for i, d := range s.Decide(entries, time.Time{}) {
		if d.State.IsPage() {
			got[entries[i].Path] = "/" + s.Shown(Page{Path: entries[i].Path}) + " " + editions[i].Language + " " +
				editions[i].Same
		}
	}
	want := map[string]string{"docs/en/docs/index.md": "/ en ", "docs/en/docs/a/b.md": "/a/b/ en a/b",
		"docs/de/docs/index.md": "/de/ de ", "docs/de/docs/a/b.md": "/de/a/b/ de a/b"}
	if !maps.Equal(got, want) || s.Config() != "docs/en/mkdocs.yml" || s.Language() != "en" {
		t.Errorf("%s, %s: got\n%q\nwant\n%q", s.Config(), s.Language(), got, want)
	}
}
