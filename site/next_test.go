package site

import (
	"maps"
	"slices"
	"testing"

	"docent/api"
)

// The addresses of Next.js' own documentation are those of nextjs.org; the others are by the documentation of Nextra 4,
// Fumadocs and Next.js' routers.
func TestNextSitesShowNeitherNumbersNorGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		project api.Project
		files   map[string]string // and their addresses; those of configurations are their texts
		config  string
		kind    api.SiteKind
	}{
		"the documentation of Next.js": {files: map[string]string{"index.mdx": "", "01-app/index.mdx": "app",
			"01-app/02-guides/01-forms.mdx":                  "app/guides/forms",
			"01-app/03-api-reference/04-functions/after.mdx": "app/api-reference/functions/after",
			"02-pages/04-api-reference/(extra)/x.mdx":        "pages/api-reference/x",
			"02-pages/2024-notes.mdx":                        "pages/2024-notes"},
			kind: api.SiteNext},
		"a part of it": {project: api.Project{DocsDir: "docs"},
			files: map[string]string{"01-app/a.mdx": "app/a", "02-pages/b.mdx": "pages/b"}, kind: api.SiteNext},
		"Fumadocs": {files: map[string]string{"content/docs/(guide)/start.mdx": "docs/start",
			"content/docs/index.mdx": "docs", "content/docs/01-a.mdx": "docs/01-a"}, kind: api.SiteNext},
		"Nextra": {config: "next.config.mjs",
			files: map[string]string{"content/guide/start.mdx": "guide/start", "content/index.mdx": ""}, kind: api.SiteNext},
		"the app router": {config: "next.config.ts",
			files: map[string]string{"src/app/docs/(a)/start/page.mdx": "docs/start", "src/app/page.mdx": ""},
			kind:  api.SiteNext},
		"languages": {config: "next.config.js",
			files: map[string]string{"pages/start.en.mdx": "start", "pages/start.fr.mdx": "fr/start"}, kind: api.SiteNext},
		"the docs folder": {project: api.Project{DocsDir: "content/docs"}, config: "../../next.config.js",
			files: map[string]string{"(guide)/start.mdx": "start", "index.mdx": ""}, kind: api.SiteNext},
		"a docs folder beside an application": {project: api.Project{DocsDir: "docs"}, config: "../next.config.js",
			files: map[string]string{"guide/start.md": "guide/start", "content/a.md": "content/a"}, kind: api.SiteNext},
		"an mdBook": {files: map[string]string{"SUMMARY.md": "SUMMARY", "01-a/x.md": "01-a/x",
			"02-b/y.md": "02-b/y"}},
		"a folder": {files: map[string]string{"01-a/x.mdx": "01-a/x", "other/y.mdx": "other/y"}},
		"a plain folder": {project: api.Project{Site: api.SitePlain},
			files: map[string]string{"01-a/x.mdx": "01-a/x", "02-b/(y).mdx": "02-b/(y)"}, kind: api.SitePlain},
	} {
		files := slices.Sorted(maps.Keys(c.files))
		if c.config != "" {
			files = append(files, c.config)
		}
		s := Open(c.project, files, func(string) ([]byte, error) {
			return []byte("export default { basePath: '/base', i18n: { locales: ['en', 'fr'], defaultLocale: 'en' } }"), nil
		})
		if s.Kind != c.kind {
			t.Errorf("%s is taken for %q", name, s.Kind)
		}
		for file, want := range c.files {
			if got := s.Shown(Page{Path: file}); got != want {
				t.Errorf("%s: %s is shown at %q, not at %q", name, file, got, want)
			}
		}
		if base, ok := s.LinkBase(); c.config != "" && (base != "base" || !ok) {
			t.Errorf("%s: the base is %q, %v", name, base, ok)
		}
	}
}
