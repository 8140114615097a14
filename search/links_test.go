package search

import (
	"strings"
	"testing"

	"docent/api"
)

// shownOf is what a reader is shown of a page of the files.
func shownOf(t *testing.T, p api.Project, files map[string]string, page string) string {
	t.Helper()
	l := openTest(t, Options{})
	p.ID = "p"
	if _, err := l.Update(t.Context(), p, &memTree{commit: "1", files: files}, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := l.Page(t.Context(), p.ID, page, nil)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := l.Search(t.Context(), p.ID, Query{Text: "start needle", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if h.Path == page && h.Content != strings.TrimSpace(whole.Content) {
			t.Errorf("a hit on %s has %q, the page %q", page, h.Content, whole.Content)
		}
	}
	return strings.TrimSpace(whole.Content)
}

// Links of an answer lead where those of the site do, whose address may have a path.
func TestLinksLeadWhereThoseOfTheSiteDo(t *testing.T) {
	t.Parallel()
	const page = "needle\n"
	for _, c := range []struct {
		name    string
		project api.Project
		files   map[string]string
		page    string
		want    string
	}{
		{"VitePress puts its base before links", api.Project{SiteURL: "https://x.com/docs"}, map[string]string{
			".vitepress/config.ts": "export default { base: '/docs/', cleanUrls: true }",
			"guide/start.md":       "needle [a](/guide/other#part) [b](../guide/other.md) [c](/pic.png) [d](/docs/guide/other) [e](./other) [f](#here) [g](https://y.com/x)", "guide/other.md": page},
			"guide/start.md",
			"needle [a](https://x.com/docs/guide/other#part) [b](https://x.com/docs/guide/other) [c](https://x.com/docs/pic.png) [d](https://x.com/docs/guide/other) [e](https://x.com/docs/guide/other) [f](#here) [g](https://y.com/x)"},
		{"VitePress without an address", api.Project{},
			map[string]string{".vitepress/config.ts": "export default { base: '/docs/' }",
				"start.md": "needle [a](/guide/other) [c](/pic.png)", "guide/other.md": page},
			"start.md", "needle [a](/guide/other.html) [c](/docs/pic.png)"},
		{"Docusaurus puts its baseUrl before links", api.Project{}, map[string]string{
			"docusaurus.config.js": "module.exports = { url: 'https://x.org', baseUrl: '/app/', presets: [['classic', {}]] }",
			"docs/start.md":        "needle [a](/docs/other) [b](./02-other.md) [c](@site/docs/02-other.md) [d](/img/x.png) [e](other?x=1#y)", "docs/02-other.md": page},
			"docs/start.md",
			"needle [a](https://x.org/app/docs/other) [b](https://x.org/app/docs/other) [c](https://x.org/app/docs/other) [d](https://x.org/app/img/x.png) [e](https://x.org/app/docs/other?x=1#y)"},
		{"Docusaurus, the folder of its docs", api.Project{DocsDir: "docs"}, map[string]string{
			"docusaurus.config.js": "module.exports = { url: 'https://x.org', baseUrl: '/', presets: [['classic', {}]] }",
			"docs/start.md":        "needle [a](/docs/other) [b](/blog/x)", "docs/other.md": page},
			"start.md", "needle [a](https://x.org/docs/other) [b](https://x.org/blog/x)"},
		{"Mintlify puts the site's path before links", api.Project{SiteURL: "https://x.com/docs"}, map[string]string{
			"docs.json": "{}", "start.mdx": "needle [a](/guide/other) <Card href=\"/guide/other\">b</Card>",
			"guide/other.mdx": page},
			"start.mdx", "needle [a](https://x.com/docs/guide/other) <Card href=\"https://x.com/docs/guide/other\">b</Card>"},
		{"MkDocs leaves links with a slash alone", api.Project{}, map[string]string{
			"mkdocs.yml":          "site_url: https://x.com/docs/\n",
			"docs/start.md":       "needle [a](/guide/other/) [b](guide/other.md#part) [c](/docs/guide/other/)",
			"docs/guide/other.md": page},
			"docs/start.md", "needle [a](https://x.com/guide/other/) [b](https://x.com/docs/guide/other/#part) [c](https://x.com/docs/guide/other/)"},
		{"Starlight leaves links with a slash alone", api.Project{}, map[string]string{
			"astro.config.mjs":          "import starlight from '@astrojs/starlight'\nexport default defineConfig({ site: 'https://x.com', base: '/docs', integrations: [starlight({})] })",
			"src/content/docs/start.md": "needle [a](/guide/) [b](/docs/other/) [c](../other/)",
			"src/content/docs/other.md": page},
			"src/content/docs/start.md",
			"needle [a](https://x.com/guide/) [b](https://x.com/docs/other/) [c](https://x.com/docs/other/)"},
		{"Hugo finds pages by ref", api.Project{}, map[string]string{
			"hugo.toml":              "baseURL = 'https://x.com/docs/'\n",
			"content/start.md":       "needle [a]({{< ref \"guide/other.md\" >}}) [b]({{% relref \"/guide/other#part\" %}}) [c]({{< ref other >}}) [d]({{< param x >}}/y) [e](/guide/other/) [f](guide/other/)",
			"content/guide/other.md": page},
			"content/start.md",
			"needle [a](https://x.com/docs/guide/other/) [b](https://x.com/docs/guide/other/#part) [c](https://x.com/docs/guide/other/) d [e](https://x.com/guide/other/) [f](https://x.com/docs/guide/other/)"},
		{"a folder", api.Project{SiteURL: "https://x.com/docs"}, map[string]string{
			"start.md": "needle [a](/other) [b](guide/b.md) [c](/elsewhere) [d](missing.md)\n\n[e]: /other", "other.md": page,
			"guide/b.md": page},
			"start.md", "needle [a](https://x.com/docs/other) [b](https://x.com/docs/guide/b) [c](https://x.com/elsewhere) [d](missing.md)\n\n[e]: https://x.com/docs/other"},
	} {
		if got := shownOf(t, c.project, c.files, c.page); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// A page of Hugo's is found by the text of its shortcodes, and nobody is shown a comment.
func TestShortcodesAreFoundByTheirTextAndCommentsAreNot(t *testing.T) {
	t.Parallel()
	files := map[string]string{"hugo.toml": "baseURL = 'https://x.com/'\n",
		"content/a.md": "---\ntitle: Start\n---\n{{< comment >}}needle bluefin{{< /comment >}}\nRun {{< glossary_tooltip text=\"pods\" term_id=\"pod\" >}} now.\n"}
	if got, want := shownOf(t, api.Project{}, files, "content/a.md"), "Run pods now."; got != want {
		t.Errorf("shown %q, not %q", got, want)
	}
	l := openTest(t, Options{})
	if _, err := l.Update(t.Context(), api.Project{ID: "p"}, &memTree{commit: "1", files: files}, nil); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"pods": 1, "bluefin": 0, "glossary_tooltip": 0} {
		if hits, err := l.Search(t.Context(), "p", Query{Text: text}); err != nil || len(hits) != want {
			t.Errorf("%s finds %d pages, not %d: %v", text, len(hits), want, err)
		}
	}
}

// The base of the site may change though no page does.
func TestLinksFollowAChangeOfTheBase(t *testing.T) {
	t.Parallel()
	l := openTest(t, Options{})
	for _, base := range []string{"one", "two"} {
		files := map[string]string{".vitepress/config.ts": "export default { base: '/" + base + "/' }",
			"start.md": "needle [c](/pic.png)"}
		if _, err := l.Update(t.Context(), api.Project{ID: "p"}, &memTree{commit: base, files: files}, nil); err != nil {
			t.Fatal(err)
		}
		hits, err := l.Search(t.Context(), "p", Query{Text: "needle"})
		if err != nil || len(hits) != 1 || hits[0].Content != "needle [c](/"+base+"/pic.png)" {
			t.Errorf("hits are %+v, %v", hits, err)
		}
	}
}
