package agent_test

import (
	"strings"
	"testing"

	"docent/api"
)

// Where links lead follows from what makes the site: from its configuration, or from what the project says. The text
// of links stays in the form that it had.
func TestLinksFollowAPageByItsAddressOnEveryGenerator(t *testing.T) {
	for _, c := range []struct {
		name    string
		project api.Project
		docs    string
		files   map[string]string
		prompt  string
		want    map[string]string // links of the pages afterwards
	}{
		{"Docusaurus orders files by numbers", api.Project{}, "", map[string]string{
			"docusaurus.config.js":      "export default { presets: [['classic', { docs: { routeBasePath: 'guide' } }]] }",
			"docs/01-intro/02-setup.md": "# Setup\n",
			"docs/01-intro/01-start.md": "# Start\n\n[a](/guide/intro/setup) [b](./02-setup.md) [c](setup) [d](/guide/intro/setup#x)\n",
		}, "move docs/01-intro/02-setup.md to docs/03-more/01-install.md",
			map[string]string{"docs/01-intro/01-start.md": "# Start\n\n[a](/guide/more/install) [b](../03-more/01-install.md) [c](../more/install) [d](/guide/more/install#x)\n"}},
		{"the project says that it is Docusaurus", api.Project{Site: api.SiteDocusaurus}, "", map[string]string{
			"docs/01-a.md": "# A\n", "docs/b.md": "# B\n\n[a](/docs/a)\n",
		}, "move docs/01-a.md to docs/02-c.md", map[string]string{"docs/b.md": "# B\n\n[a](/docs/c)\n"}},
		{"a slug stays where it is", api.Project{}, "", map[string]string{
			"docusaurus.config.js": "export default { presets: [['classic', {}]] }",
			"docs/a.md":            "---\nslug: /start\n---\n# A\n", "docs/b.md": "# B\n\n[a](/docs/start) [b](a.md)\n",
		}, "move docs/a.md to docs/deep/c.md", map[string]string{"docs/b.md": "# B\n\n[a](/docs/start) [b](deep/c.md)\n"}},
		{"VitePress with extensions", api.Project{}, "docs", map[string]string{
			"docs/.vitepress/config.ts": "export default { title: 'X', themeConfig: {} }",
			"docs/guide/a.md":           "# A\n",
			"docs/b.md":                 "# B\n\n[a](/guide/a.html) [b](/guide/a) [c](./guide/a.md) [d](guide/a.html#x)\n",
		}, "move guide/a.md to more/c.md",
			map[string]string{"docs/b.md": "# B\n\n[a](/more/c.html) [b](/more/c) [c](./more/c.md) [d](more/c.html#x)\n"}},
		{"Hugo with a slug and another name", api.Project{}, "", map[string]string{
			"hugo.toml": "baseURL = 'https://x.dev/base/'\ntitle = 'X'\n", "content/docs/_index.md": "---\ntitle: Docs\n---\n",
			"content/docs/a.md": "---\ntitle: A\nslug: first\naliases: [/old/]\n---\n",
			"content/docs/b.md": "---\ntitle: B\n---\n[a](/docs/first/) [b](/base/docs/first/) [c](../first/) [d](https://x.dev/base/docs/first/) [e](/old/)\n",
		}, "move content/docs/a.md to content/more/a.md",
			map[string]string{"content/docs/b.md": "---\ntitle: B\n---\n[a](/more/first/) [b](/base/more/first/) [c](../../more/first/) [d](https://x.dev/base/more/first/) [e](/old/)\n"}},
		{"Starlight", api.Project{}, "", map[string]string{
			"astro.config.mjs":             "import starlight from '@astrojs/starlight';\nexport default defineConfig({ site: 'https://x.dev', base: '/docs', integrations: [starlight({ title: 'X' })] })",
			"src/content/docs/guides/a.md": "---\ntitle: A\n---\n",
			"src/content/docs/b.md":        "---\ntitle: B\n---\n[a](/docs/guides/a/) [b](./guides/a.md)\n",
		}, "move guides/a.md to more/c.md",
			map[string]string{"src/content/docs/b.md": "---\ntitle: B\n---\n[a](/docs/more/c/) [b](./more/c.md)\n"}},
		{"MkDocs in a folder of its own", api.Project{}, "", map[string]string{
			"mkdocs.yml": "site_name: X\ndocs_dir: manual\nnav:\n  - a.md\n  - b.md\n", "manual/a.md": "# A\n",
			"manual/b.md": "# B\n\n[a](a.md) [b](/a/)\n",
		}, "move a.md to more/c.md",
			map[string]string{"manual/b.md": "# B\n\n[a](more/c.md) [b](/more/c/)\n",
				"mkdocs.yml": "site_name: X\ndocs_dir: manual\nnav:\n  - more/c.md\n  - b.md\n"}},
		{"the project says that no generator makes it", api.Project{Site: api.SitePlain}, "", map[string]string{
			"docs.json": `{"navigation": {"pages": ["a", "b"]}}`, "a.md": "# A\n", "b.md": "# B\n\n[a](/a)\n",
		}, "move a.md to c.md",
			map[string]string{"docs.json": `{"navigation": {"pages": ["a", "b"]}}`, "b.md": "# B\n\n[a](/c)\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, c.files)
			j.project, j.docs = c.project, c.docs
			res := j.must(c.prompt)
			for f, want := range c.want {
				if got := j.tree.files()[f]; got != want {
					t.Errorf("%s: %q, want %q\n%s", f, got, want, res.Message)
				}
			}
		})
	}
}

// A pasted page address means the page that is shown there, not a file of that name.
func TestAPageIsNamedByTheAddressThatReadersSee(t *testing.T) {
	files := map[string]string{
		"docusaurus.config.js": "export default { url: 'https://acme.dev', baseUrl: '/', presets: [['classic', {}]] }",
		"docs/01-a.md":         "---\nslug: b\n---\n# A\n", "docs/02-c.md": "# C\n",
		"docs/b/index.md": "---\nslug: /elsewhere\n---\n# B\n",
	}
	for _, name := range []string{"/docs/b", "/docs/b/"} {
		j := newJob(t, files)
		j.must(`append "zyxwv" to ` + name)
		if got := j.tree.files()["docs/01-a.md"]; !strings.Contains(got, "zyxwv") {
			t.Errorf("%s: %s", name, j.last.Message)
		}
	}
}

// A new page goes where the generator looks for pages.
func TestANewPageGoesWhereTheGeneratorLooksForIt(t *testing.T) {
	for _, c := range []struct {
		config, text, dir string
		site              api.SiteKind
	}{
		{"docusaurus.config.js", "export default { presets: [['classic', { docs: { path: 'handbook' } }]] }", "handbook", ""},
		{"hugo.toml", "title = 'X'\n", "content", ""},
		{"mkdocs.yml", "site_name: X\ndocs_dir: manual\n", "manual", ""},
		{"astro.config.mjs", "export default { integrations: [] }", "src/content/docs", api.SiteStarlight},
	} {
		j := newJob(t, map[string]string{c.config: c.text, c.dir + "/a.md": "---\ntitle: A\n---\n"})
		j.project.Site = c.site
		j.must(`create page guides/new.md titled "New"`)
		if _, ok := j.tree.files()[c.dir+"/guides/new.md"]; !ok {
			t.Errorf("%s: %s", c.config, j.last.Message)
		}
	}
}
