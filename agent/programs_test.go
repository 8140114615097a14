package agent_test

import (
	"maps"
	"path"
	"strings"
	"testing"
)

// A page that moves or goes takes its entries in the navigation along, on every generator: even if that is a
// program, of which texts alone are changed, and every other byte stays.
func TestAMovedOrDeletedPageLeavesNoEntryBehind(t *testing.T) {
	const docusaurus = "export default { url: 'https://acme.dev', presets: [['classic', { docs: { sidebarPath: './sidebars.ts' } }]],\n  themeConfig: { navbar: { items: [{ type: 'doc', docId: 'guides/a', label: 'A' }, { to: '/docs/guides/a#x', label: 'X' }] } } }\n"
	const sidebars = "const sidebars: SidebarsConfig = {\n  docs: [\n    'intro',\n    {\n      type: 'category',\n      label: 'Guides', // all\n      link: { type: 'doc', id: 'guides/a' },\n      items: [\n        'guides/a',\n        { type: 'doc', id: \"guides/a\", label: 'A' },\n        'guides/b',\n      ],\n    },\n  ],\n};\nexport default sidebars;\n"
	const vitepress = "import { defineConfig } from 'vitepress'\nexport default defineConfig({\n  themeConfig: {\n    nav: [{ text: 'A', link: '/guide/a' }],\n    sidebar: {\n      '/guide/': [\n        { text: 'Guide', base: '/guide/', items: [\n          { text: 'A', link: 'a' },\n          { text: 'B', link: 'b' },\n        ] },\n        { text: 'A', link: '/guide/a.html#x' },\n      ],\n      '/other/': more(),\n    },\n  },\n})\nfunction more() {\n  return [{ text: 'A', link: '/guide/a', items: [] }]\n}\n"
	const starlight = "import starlight from '@astrojs/starlight';\nexport default defineConfig({ integrations: [starlight({ title: 'X', sidebar: [\n  { label: 'G', items: ['guides/a', { slug: 'guides/a' }, { label: 'B', link: '/guides/b/' }] },\n  { label: 'A', link: '/guides/a/' },\n] })] });\n"
	page := func(title string) string { return "---\ntitle: " + title + "\n---\n" }
	for _, c := range []struct {
		name  string
		files map[string]string
		from  string
		to    string
		nav   string
		moved func(string) string // what the navigation says after the move
		gone  string              // and after the deletion
	}{
		{"Docusaurus", map[string]string{"docusaurus.config.js": docusaurus, "sidebars.ts": sidebars,
			"docs/01-intro.md": "# I\n", "docs/guides/a.md": page("A"), "docs/guides/b.md": page("B")},
			"docs/guides/a.md", "docs/more/02-c.md", "sidebars.ts", strings.NewReplacer("guides/a", "more/c").Replace,
			"const sidebars: SidebarsConfig = {\n  docs: [\n    'intro',\n    {\n      type: 'category',\n      label: 'Guides', // all\n      items: [\n        'guides/b',\n      ],\n    },\n  ],\n};\nexport default sidebars;\n"},
		{"Docusaurus' bar", map[string]string{"docusaurus.config.js": docusaurus, "sidebars.ts": sidebars,
			"docs/01-intro.md": "# I\n", "docs/guides/a.md": page("A"), "docs/guides/b.md": page("B")},
			"docs/guides/a.md", "docs/more/02-c.md", "docusaurus.config.js", strings.NewReplacer("guides/a", "more/c").Replace,
			strings.NewReplacer("{ type: 'doc', docId: 'guides/a', label: 'A' }, { to: '/docs/guides/a#x', label: 'X' }",
				"").Replace(docusaurus)},
		{"Docusaurus in JSON",
			map[string]string{"docusaurus.config.js": strings.Replace(docusaurus, "sidebars.ts", "sidebars.json", 1),
				"sidebars.json": "{\"docs\": [\"guides/b\", \"guides/a\"]}\n", "docs/guides/a.md": page("A"),
				"docs/guides/b.md": page("B")},
			"docs/guides/a.md", "docs/guides/c.md", "sidebars.json", strings.NewReplacer("guides/a", "guides/c").Replace,
			"{\"docs\": [\"guides/b\"]}\n"},
		{"VitePress", map[string]string{".vitepress/config.ts": vitepress, "index.md": "# H\n", "guide/a.md": page("A"),
			"guide/b.md": page("B")},
			"guide/a.md", "guide/c.md", ".vitepress/config.ts",
			strings.NewReplacer("link: 'a'", "link: 'c'", "/guide/a", "/guide/c").Replace,
			strings.NewReplacer("{ text: 'A', link: '/guide/a' }],\n    sidebar", "],\n    sidebar",
				"          { text: 'A', link: 'a' },\n", "", "        { text: 'A', link: '/guide/a.html#x' },\n", "",
				"link: '/guide/a', items", "items").Replace(vitepress)},
		{"Starlight", map[string]string{"astro.config.mjs": starlight, "src/content/docs/guides/a.md": page("A"),
			"src/content/docs/guides/b.md": page("B")},
			"guides/a.md", "more/c.md", "astro.config.mjs", strings.NewReplacer("guides/a", "more/c").Replace,
			strings.NewReplacer("'guides/a', { slug: 'guides/a' }, ", "", "  { label: 'A', link: '/guides/a/' },\n",
				"").Replace(starlight)},
		{"MkDocs", map[string]string{"mkdocs.yml": "site_name: X\nnav:\n  - A: guides/a.md\n  - guides/b.md\n",
			"docs/guides/a.md": "# A\n", "docs/guides/b.md": "# B\n"},
			"guides/a.md", "more/c.md", "mkdocs.yml", strings.NewReplacer("guides/a", "more/c").Replace,
			"site_name: X\nnav:\n  - guides/b.md\n"},
		{"mdBook", map[string]string{"book.toml": "[book]\n",
			"src/SUMMARY.md": "# Summary\n\n- [A](guides/a.md)\n- [B](guides/b.md)\n", "src/guides/a.md": "# A\n",
			"src/guides/b.md": "# B\n"},
			"src/guides/a.md", "src/more/c.md", "src/SUMMARY.md", strings.NewReplacer("guides/a", "more/c").Replace,
			"# Summary\n\n- [B](guides/b.md)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, c.files)
			res := j.must("move " + c.from + " to " + c.to)
			if got, want := j.tree.files()[c.nav], c.moved(c.files[c.nav]); got != want {
				t.Errorf("moved: %s\ngot\n%s\nwant\n%s", res.Message, got, want)
			}
			if strings.Contains(res.Message, "still names") {
				t.Error(res.Message)
			}
			j = newJob(t, c.files)
			res = j.must("delete page " + c.from)
			if got := j.tree.files()[c.nav]; got != c.gone {
				t.Errorf("deleted: %s\ngot\n%s\nwant\n%s", res.Message, got, c.gone)
			}
			if strings.Contains(res.Message, "still names") {
				t.Error(res.Message)
			}
			j.must("undo")
			if got := j.tree.files(); !maps.Equal(got, c.files) {
				t.Errorf("undone: %s: %q", j.last.Message, got[c.nav])
			}
		})
	}
}

// What names a page and cannot be changed is reported to the author of the instruction, and to the reviewers.
func TestANavigationThatStillNamesAPageIsSaid(t *testing.T) {
	for _, c := range []struct {
		name, docs string
		files      map[string]string
		from, says string
	}{
		{"a sidebar outside of the documentation", "docs",
			map[string]string{"docusaurus.config.js": "export default { presets: [['classic', {}]] }",
				"sidebars.js": "module.exports = { docs: ['a', 'b'] }\n", "docs/a.md": "# A\n", "docs/b.md": "# B\n"}, "a.md",
			"sidebars.js still names a.md"},
		{"a docs.json outside of the documentation", "docs",
			map[string]string{"docs.json": `{"navigation": {"pages": ["docs/a", "docs/b"]}}`,
				"docs/a.mdx": "---\ntitle: A\n---\n", "docs/b.mdx": "---\ntitle: B\n---\n"}, "a.mdx",
			"docs.json still names a.mdx"},
		{"a mkdocs.yml outside of the documentation", "docs",
			map[string]string{"mkdocs.yml": "site_name: X\nnav:\n  - A: a.md\n  - b.md\n", "docs/a.md": "# A\n",
				"docs/b.md": "# B\n"}, "a.md", "mkdocs.yml still names a.md"},
		{"a computed entry", "",
			map[string]string{".vitepress/config.ts": "const a = '/guide/a' + end\nexport default { themeConfig: { sidebar: [] } }\n", "guide/a.md": "# A\n"}, "guide/a.md", ".vitepress/config.ts still names guide/a.md"},
		{"a part of docs.json",
			"", map[string]string{"docs.json": `{"navigation": {"$ref": "nav/main.json"}}`,
				"nav/main.json": `{"groups": [{"group": "G", "pages": ["guides/a", "guides/b"]}]}`,
				"guides/a.mdx":  "---\ntitle: A\n---\n", "guides/b.mdx": "---\ntitle: B\n---\n"}, "guides/a.mdx",
			"nav/main.json still names guides/a.mdx"},
		{"Jupyter Book", "",
			map[string]string{"_toc.yml": "format: jb-book\nroot: index\nchapters:\n- file: guides/a\n", "index.md": "# I\n",
				"guides/a.md": "# A\n"}, "guides/a.md", "_toc.yml still names guides/a.md"},
		{"Nextra", "", map[string]string{"guides/_meta.json": `{"a": "The A", "b": "The B"}`, "guides/a.md": "# A\n",
			"guides/b.md": "# B\n"}, "guides/a.md", "guides/_meta.json still names guides/a.md"},
		{"a list of MkDocs on one line",
			"", map[string]string{"mkdocs.yml": "site_name: X\nnav: [{A: guides/a.md}, guides/b.md]\n",
				"docs/guides/a.md": "# A\n", "docs/guides/b.md": "# B\n"}, "docs/guides/a.md",
			"mkdocs.yml still names docs/guides/a.md"},
		{"another language of MkDocs",
			"", map[string]string{"mkdocs.yml": "site_name: X\nINHERIT: base.yml\n", "docs/guides/a.md": "# A\n",
				"extra/mkdocs.yml": "docs_dir: ../docs\nnav:\n  - A: ../docs/guides/a.md\n  - docs/guides/a.md\n"},
			"docs/guides/a.md", "extra/mkdocs.yml still names"},
		{"a menu of Hugo", "",
			map[string]string{"hugo.toml": "title = 'X'\n[[menus.main]]\nname = 'A'\npageRef = '/guides/a'\n",
				"content/guides/a.md": "---\ntitle: A\n---\n"}, "guides/a.md", "hugo.toml still names content/guides/a.md"},
	} {
		for _, prompt := range []string{"move " + c.from + " to elsewhere/new-name" + path.Ext(c.from),
			"delete page " + c.from} {
			j := newJob(t, c.files)
			j.docs = c.docs
			res := j.must(prompt)
			if !strings.Contains(res.Message, c.says) || !strings.Contains(strings.ReplaceAll(res.Body, `\`, ""), c.says) {
				t.Errorf("%s: %s: %s", c.name, prompt, res.Message)
			}
		}
	}
}
