package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/bench/retrieval"
	"docent/internal/testing/need"
)

// front makes a page.
func front(lines, body string) string { return "---\n" + lines + "\n---\n\n" + body + "\n" }

// found lists what a query finds: path, version and language of each page, in the order of their paths.
func editionsFound(t *testing.T, l *Library, q Query) string {
	t.Helper()
	q.Limit = cmp.Or(q.Limit, 20)
	var out []string
	for _, h := range mustSearch(t, l, "x", q) {
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %s/%s", h.Path, h.Version, h.Language), "/ "))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// An asked query is what a reader of a site does, and what they are to find.
type askedQuery struct {
	q    Query
	want string
}

type editionsCase struct {
	name    string
	project api.Project
	files   map[string]string
	asked   []askedQuery
}

func checkEditions(t *testing.T, cases []editionsCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := openTest(t, Options{})
			c.project.ID = "x"
			mustUpdate(t, l, c.project, &memTree{commit: "1", files: c.files})
			for _, a := range c.asked {
				for _, box := range []bool{false, true} {
					a.q.Box = box
					if got := editionsFound(t, l, a.q); got != a.want {
						t.Errorf("%+v finds\n  %s\nwant\n  %s", a.q, got, a.want)
					}
				}
			}
		})
	}
}

var docusaurusSite = map[string]string{
	"docusaurus.config.js":                  `module.exports = { i18n: { defaultLocale: 'en', locales: ['en', 'fr'] }, presets: [['classic', { docs: { lastVersion: 'current', versions: { current: { label: '2.0' } } } }]] }`,
	"versions.json":                         `["1.0"]`,
	"docs/install.md":                       front("title: Install", "How to install Acme on your machine."),
	"docs/wombat.md":                        front("title: Wombats", "The wombat digs a burrow on your machine."),
	"versioned_docs/version-1.0/install.md": front("title: Install", "How to install Acme on your old machine."),
	"versioned_docs/version-1.0/gone.md":    front("title: Gone", "How to install the gizmo, which is gone now."),
	"i18n/fr/docusaurus-plugin-content-docs/current/install.md": front("title: Installer",
		"Comment installer Acme sur votre machine."),
	"i18n/fr/docusaurus-plugin-content-docs/version-1.0/install.md": front("title: Installer",
		"Comment installer Acme sur votre ancienne machine."),
	"blog/2024-release.md": front("title: Release", "How we install Acme on every machine."),
	"i18n/fr/docusaurus-plugin-content-blog/2024-release.md": front("title: Sortie",
		"Comment nous installons Acme sur chaque machine."),
	"src/pages/about.md":                                             front("title: About", "Acme makes a machine."),
	"i18n/fr/docusaurus-theme-classic/navbar.json":                   `{}`,
	"i18n/fr/docusaurus-plugin-content-docs/current/_partial.md":     "machine\n",
	"i18n/fr/docusaurus-plugin-content-docs/current/other/deeper.md": front("title: Plus", "Une autre machine."),
}

// The current version and the site's own language are found when nobody asks for others, and when others are asked
// for, only these.
func TestDocusaurusVersionsAndTranslationsAreKeptApart(t *testing.T) {
	const (
		now    = "docs/install.md 2.0/en"
		old    = "versioned_docs/version-1.0/install.md 1.0/en"
		gone   = "versioned_docs/version-1.0/gone.md 1.0/en"
		fr     = "i18n/fr/docusaurus-plugin-content-docs/current/install.md 2.0/fr"
		deeper = "i18n/fr/docusaurus-plugin-content-docs/current/other/deeper.md 2.0/fr"
		oldFr  = "i18n/fr/docusaurus-plugin-content-docs/version-1.0/install.md 1.0/fr"
		wombat = "docs/wombat.md 2.0/en"
		blog   = "blog/2024-release.md /en"
		blogFr = "i18n/fr/docusaurus-plugin-content-blog/2024-release.md /fr"
		about  = "src/pages/about.md /en"
	)
	list := func(paths ...string) string { slices.Sort(paths); return strings.Join(paths, ", ") }
	released := maps.Clone(docusaurusSite)
	released["docusaurus.config.js"] = `module.exports = { i18n: { defaultLocale: 'en', locales: ['en', 'fr'] } }`
	checkEditions(t, []editionsCase{{
		name: "docs is what readers see", files: docusaurusSite,
		asked: []askedQuery{
			{Query{Text: "how to install Acme on a machine"}, list(now, wombat, blog, about)},
			{Query{Text: "machine"}, list(now, wombat, blog, about)},
			{Query{Text: "gizmo"}, ""},
			{Query{Text: "machine", Filter: Filter{Version: "1.0"}}, list(old)},
			{Query{Text: "install the gizmo", Filter: Filter{Version: "1.0"}}, list(old, gone)},
			{Query{Text: "machine", Filter: Filter{Version: "2.0"}}, list(now, wombat)},
			{Query{Text: "machine", Filter: Filter{Version: "current"}},
				strings.ReplaceAll(list(now, wombat), "2.0", "current")},
			{Query{Text: "machine", Filter: Filter{Version: "3.0"}}, ""},
			{Query{Text: "machine", Filter: Filter{Language: "fr"}}, list(fr, deeper, blogFr)},
			{Query{Text: "machine", Filter: Filter{Language: "fr-CA"}}, list(fr, deeper, blogFr)},
			{Query{Text: "machine", Filter: Filter{Language: "en-US"}}, list(now, wombat, blog, about)},
			{Query{Text: "machine", Filter: Filter{Language: "de"}}, ""},
			{Query{Text: "machine", Filter: Filter{Language: "fr", Version: "1.0"}}, list(oldFr)},
			{Query{Text: "wombat", Filter: Filter{Language: "fr"}}, ""},
			{Query{Text: "comment installer Acme sur ma machine ?"}, list(fr, deeper, blogFr)},
			{Query{Text: "comment creuse le wombat ?"}, list(wombat)}, // nothing in French
			{Query{Text: "machine", CurrentPath: "/docs/1.0/install"}, list(old, blog, about)},
			{Query{Text: "gizmo", CurrentPath: "/docs/1.0/install"}, list(gone)},
			{Query{Text: "machine", CurrentPath: "https://x.example/fr/docs/install"}, list(fr, deeper, blogFr)},
			{Query{Text: "machine", CurrentPath: "/fr/docs/1.0/install"}, list(oldFr, blogFr)},
			{Query{Text: "machine", CurrentPath: "/fr/docs/wombat"}, list(fr, deeper, blogFr)}, // shown there in English
			{Query{Text: "machine", CurrentPath: "/fr/docs/1.0/gone"}, list(oldFr, blogFr)},
			{Query{Text: "machine", CurrentPath: "/fr/docs/install", Filter: Filter{Version: "2.0", Language: "en"}},
				list(now, wombat)},
			{Query{Text: "machine", CurrentPath: "/docs/install"}, list(now, wombat, blog, about)},
			{Query{Text: "docent", Asked: []string{"et docent ?", "comment installer Acme sur ma machine ?"}}, ""},
			{Query{Text: "machine", Asked: []string{"Acme ?", "comment installer Acme sur ma machine ?"}},
				list(fr, deeper, blogFr)},
			{Query{Text: "machine", Everywhere: true}, list(now, old, fr, deeper, oldFr, wombat, blog, blogFr, about)},
		},
	}, {
		name: "the newest release is what readers see", files: released,
		asked: []askedQuery{
			{Query{Text: "install machine"}, list(old, gone, blog, about)},
			{Query{Text: "wombat machine", Filter: Filter{Version: "next"}},
				list("docs/install.md Next/en", "docs/wombat.md Next/en")},
			{Query{Text: "machine", CurrentPath: "/docs/install"}, list(old, blog, about)},
			{Query{Text: "machine", CurrentPath: "/docs/next/install"},
				list("docs/install.md Next/en", "docs/wombat.md Next/en", blog, about)},
			{Query{Text: "machine", CurrentPath: "/fr/docs/install"}, list(oldFr, blogFr)},
		},
	}, {
		name: "without a configuration",
		files: map[string]string{"docs/install.md": "# Install\n\nThe machine.\n",
			"versioned_docs/version-1.0/install.md":                     "# Install\n\nThe machine.\n",
			"versioned_docs/version-2.0/install.md":                     "# Install\n\nThe machine.\n",
			"i18n/fr/docusaurus-plugin-content-docs/current/install.md": "# Installer\n\nLa machine.\n"},
		asked: []askedQuery{
			{Query{Text: "the machine"}, "docs/install.md Next"},
			{Query{Text: "machine", Filter: Filter{Version: "1.0"}}, "versioned_docs/version-1.0/install.md 1.0"},
			{Query{Text: "machine", Filter: Filter{Language: "fr"}},
				"i18n/fr/docusaurus-plugin-content-docs/current/install.md Next/fr"},
		},
	}, {
		name: "several documentations with versions of their own",
		files: map[string]string{
			"docusaurus.config.ts": `export default { presets: [['classic', { docs: { path: 'docs' } }]], plugins: [['@docusaurus/plugin-content-docs', { id: 'sdk', path: 'sdk', routeBasePath: 'sdk', lastVersion: 'v3' }]] }`,
			"docs/a.md":            "# A\n\nmachine\n", "versions.json": `["7"]`,
			"versioned_docs/version-7/a.md": "# A\n\nmachine\n",
			"sdk/b.md":                      "# B\n\nmachine\n", "sdk_versions.json": `["v4", "v3"]`,
			"sdk_versioned_docs/version-v3/b.md": "# B\n\nmachine\n", "sdk_versioned_docs/version-v4/b.md": "# B\n\nmachine\n",
		},
		asked: []askedQuery{
			{Query{Text: "machine"}, "sdk_versioned_docs/version-v3/b.md v3, versioned_docs/version-7/a.md 7"},
			{Query{Text: "machine", CurrentPath: "sdk_versioned_docs/version-v4/b.md"},
				"sdk_versioned_docs/version-v4/b.md v4, versioned_docs/version-7/a.md 7"},
			{Query{Text: "machine", Filter: Filter{Version: "v4"}}, "sdk_versioned_docs/version-v4/b.md v4"},
		},
	}, {
		name: "under a path of the domain", project: api.Project{SiteURL: "https://acme.example/base"}, files: docusaurusSite,
		asked: []askedQuery{
			{Query{Text: "machine", CurrentPath: "/base/docs/1.0/install"}, list(old, blog, about)},
			{Query{Text: "machine", CurrentPath: "https://acme.example/base/docs/1.0/install?x#y"}, list(old, blog, about)},
			{Query{Text: "machine", CurrentPath: "/base/fr/docs/wombat"}, list(fr, deeper, blogFr)},
		},
	}, {
		name: "only the docs folder is read", project: api.Project{DocsDir: "website/docs"},
		files: map[string]string{"website/docusaurus.config.js": "module.exports = {}", "website/versions.json": `["2", "1"]`,
			"website/docs/a.md": "# A\n\nmachine\n"},
		asked: []askedQuery{{Query{Text: "machine"}, "a.md Next"},
			{Query{Text: "machine", Filter: Filter{Version: "1"}}, ""}},
	}})
}

func TestNavigationOfMintlifyTellsVersionsAndLanguages(t *testing.T) {
	page := func(title string) string { return front("title: "+title, "The gadget of "+title+".") }
	files := map[string]string{
		"docs.json": `{"navigation": {"languages": [
			{"language": "en", "versions": [{"version": "v1", "groups": [{"group": "G", "pages": ["v1/start", "shared"]}]}, {"version": "v2", "default": true, "groups": [{"group": "G", "pages": ["v2/start", "shared", "untranslated"]}]}]},
			{"language": "fr", "versions": [{"version": "v2", "pages": ["fr/v2/start"]}]},
			{"language": "cn", "pages": ["cn/start"]}]}}`,
		"v1/start.mdx": page("start one"), "v2/start.mdx": page("start two"), "shared.mdx": page("both"),
		"untranslated.mdx": page("quokkas"),
		"fr/v2/start.mdx":  front("title: Début", "Le gadget du début, pour votre projet."),
		"cn/start.mdx":     front("title: 开始", "开始使用小工具 gadget"),
	}
	checkEditions(t, []editionsCase{{
		name: "docs.json", files: files,
		asked: []askedQuery{
			{Query{Text: "the gadget"}, "shared.mdx v2/en, untranslated.mdx v2/en, v2/start.mdx v2/en"},
			{Query{Text: "gadget", Filter: Filter{Version: "v1"}}, "shared.mdx v1/en, v1/start.mdx v1/en"},
			{Query{Text: "gadget", Filter: Filter{Version: "v2"}},
				"shared.mdx v2/en, untranslated.mdx v2/en, v2/start.mdx v2/en"},
			{Query{Text: "gadget", Filter: Filter{Language: "fr"}}, "fr/v2/start.mdx v2/fr"},
			{Query{Text: "gadget", Filter: Filter{Language: "fr", Version: "v1"}}, ""},
			{Query{Text: "gadget", Filter: Filter{Language: "zh-CN"}}, "cn/start.mdx /cn"},
			{Query{Text: "开始使用 gadget"}, "cn/start.mdx /cn"},
			{Query{Text: "où est le gadget de mon projet"}, "fr/v2/start.mdx v2/fr"},
			{Query{Text: "gadget", CurrentPath: "/v1/start"}, "shared.mdx v1/en, v1/start.mdx v1/en"},
			{Query{Text: "gadget", CurrentPath: "/shared"}, "shared.mdx v2/en, untranslated.mdx v2/en, v2/start.mdx v2/en"},
			{Query{Text: "gadget", CurrentPath: "/fr/v2/start"}, "fr/v2/start.mdx v2/fr"},
			{Query{Text: "quokkas", CurrentPath: "/fr/v2/start"}, "untranslated.mdx v2/en"},
		},
	}, {
		name: "versions of products", files: map[string]string{
			"docs.json": `{"navigation": {"products": [{"product": "A", "versions": [{"version": "2", "pages": ["a/2/x"]}, {"version": "1", "pages": ["a/1/x"]}]}, {"product": "B", "versions": [{"version": "9", "pages": ["b/9/x"]}]}]}}`,
			"a/2/x.mdx": page("a two"), "a/1/x.mdx": page("a one"), "b/9/x.mdx": page("b nine"),
		},
		asked: []askedQuery{
			{Query{Text: "gadget"}, "a/2/x.mdx 2, b/9/x.mdx 9"},
			{Query{Text: "gadget", Filter: Filter{Version: "1"}}, "a/1/x.mdx 1"},
			{Query{Text: "gadget", CurrentPath: "/a/1/x"}, "a/1/x.mdx 1, b/9/x.mdx 9"},
		},
	}, {
		name: "mint.json", files: map[string]string{
			"mint.json": `{"versions": [{"name": "v2"}, {"name": "v1"}], "navigation": [{"group": "G", "version": "v1", "pages": ["v1/x"]}, {"group": "G", "version": "v2", "pages": ["v2/x"]}, {"group": "All", "pages": ["y"]}]}`,
			"v1/x.mdx":  page("x one"), "v2/x.mdx": page("x two"), "y.mdx": page("y"),
		},
		asked: []askedQuery{{Query{Text: "gadget"}, "v2/x.mdx v2, y.mdx"},
			{Query{Text: "gadget", Filter: Filter{Version: "v1"}}, "v1/x.mdx v1"}},
	}})
}

func TestGeneratorsSayWhichLanguageAPageIsIn(t *testing.T) {
	en, fr := front("title: Start", "The gadget is here."), front("title: Début", "Le gadget est ici.")
	both := func(english, french string) []askedQuery {
		return []askedQuery{
			{Query{Text: "where is the gadget"}, english + " /en"}, {Query{Text: "gadget"}, english + " /en"},
			{Query{Text: "où est le gadget"}, french + " /fr"},
			{Query{Text: "gadget", Filter: Filter{Language: "fr"}}, french + " /fr"},
			{Query{Text: "gadget", Filter: Filter{Language: "en"}}, english + " /en"},
			{Query{Text: "gadget", CurrentPath: english}, english + " /en"},
			{Query{Text: "gadget", CurrentPath: french}, french + " /fr"},
		}
	}
	checkEditions(t, []editionsCase{
		{name: "hugo, folders",
			files: map[string]string{"hugo.toml": "defaultContentLanguage = 'en'\n[languages.en]\ncontentDir = 'content/en'\n[languages.fr]\ncontentDir = 'content/fr'\n",
				"content/en/start.md": en, "content/fr/start.md": fr},
			asked: append(both("content/en/start.md", "content/fr/start.md"),
				askedQuery{Query{Text: "gadget", CurrentPath: "/fr/start/"}, "content/fr/start.md /fr"},
				askedQuery{Query{Text: "gadget", CurrentPath: "/start/"}, "content/en/start.md /en"})},
		{name: "hugo, names of files",
			files: map[string]string{"content/_index.md": "",
				"config.yaml":      "defaultContentLanguage: en\nlanguages:\n  en: {weight: 1}\n  fr: {weight: 2}\n",
				"content/start.md": en, "content/start.fr.md": fr},
			asked: both("content/start.md", "content/start.fr.md")},
		{name: "hugo, a folder of settings",
			files: map[string]string{"config/_default/hugo.toml": "defaultContentLanguage = 'en'\n",
				"config/_default/languages.toml": "[en]\nweight = 1\n[fr]\nweight = 2\n", "content/start.en.md": en,
				"content/start.fr.md": fr},
			asked: both("content/start.en.md", "content/start.fr.md")},
		{name: "mkdocs, names of files",
			files: map[string]string{"mkdocs.yml": "theme:\n  name: material\nplugins:\n  - search\n  - i18n:\n      languages:\n        - {locale: en, default: true, name: English}\n        - {locale: fr, name: Français}\nmarkdown_extensions:\n  - x: !!python/name:a.b\n",
				"docs/start.md": en, "docs/start.fr.md": fr}, asked: both("docs/start.md", "docs/start.fr.md")},
		{name: "mkdocs, folders",
			files: map[string]string{"mkdocs.yml": "plugins:\n  i18n:\n    docs_structure: folder\n    languages:\n      - locale: en\n        default: true\n      - locale: fr\n", "docs/en/start.md": en, "docs/fr/start.md": fr},
			asked: both("docs/en/start.md", "docs/fr/start.md")},
		{name: "a site for each language", project: api.Project{Site: api.SitePlain},
			files: map[string]string{"docs/en/mkdocs.yml": "theme: {name: material, language: en}\n",
				"docs/fr/mkdocs.yml": "INHERIT: ../en/mkdocs.yml\n", "docs/en/docs/start.md": en, "docs/fr/docs/start.md": fr},
			asked: both("docs/en/docs/start.md", "docs/fr/docs/start.md")},
		{name: "vitepress", files: map[string]string{".vitepress/config.ts": "export default defineConfig({\n  lang: 'en',\n  locales: { root: { label: 'English', lang: 'en' }, fr: { label: 'Français', lang: 'fr', link: '/fr/' } } })", "start.md": en, "fr/start.md": fr},
			asked: both("start.md", "fr/start.md")},
		{name: "starlight", project: api.Project{Site: api.SiteStarlight},
			files: map[string]string{"astro.config.mjs": "export default defineConfig({ integrations: [starlight({ defaultLocale: 'root', locales: { root: { label: 'English', lang: 'en' }, fr: { label: 'Français' } } })] })",
				"src/content/docs/start.md": en, "src/content/docs/fr/start.md": fr},
			asked: both("src/content/docs/start.md", "src/content/docs/fr/start.md")},
		{name: "starlight, not recognized",
			files: map[string]string{"astro.config.mjs": "export default defineConfig({ integrations: [starlight({ defaultLocale: 'en', locales: { en: { label: 'English' }, fr: { label: 'Français' } } })] })",
				"src/content/docs/en/start.md": en, "src/content/docs/fr/start.md": fr},
			asked: both("src/content/docs/en/start.md", "src/content/docs/fr/start.md")},
		{name: "nextra, folders",
			files: map[string]string{"next.config.js": "module.exports = withNextra({ i18n: { locales: ['en', 'fr'], defaultLocale: 'en' } })", "content/en/start.mdx": en, "content/fr/start.mdx": fr},
			asked: both("content/en/start.mdx", "content/fr/start.mdx")},
		{name: "nextra", files: map[string]string{"next.config.mjs": "export default withNextra({ i18n: { locales: ['en', 'fr'], defaultLocale: 'en' } })", "pages/start.en.mdx": en, "pages/start.fr.mdx": fr},
			asked: both("pages/start.en.mdx", "pages/start.fr.mdx")},
		{name: "front matter",
			files: map[string]string{"start.md": front("title: Start\nlang: en", "The gadget is here."),
				"debut.md": front("title: Début\nlang: fr", "Le gadget est ici.")}, asked: both("start.md", "debut.md")},
		{name: "no generator, folders", files: map[string]string{"en/start.md": en, "fr/start.md": fr},
			asked: both("en/start.md", "fr/start.md")},
		{name: "no generator, names of files",
			files: map[string]string{"README.en.md": en, "README.md": en, "README.fr.md": fr},
			asked: []askedQuery{{Query{Text: "gadget", Filter: Filter{Language: "fr"}}, "README.fr.md /fr"}}},
		{name: "one language",
			files: map[string]string{"start.md": en, "python.md": front("title: P\nlanguage: python", "The gadget.")},
			asked: []askedQuery{
				{Query{Text: "gadget"}, "python.md, start.md"}, {Query{Text: "le gadget de mon projet"}, "python.md, start.md"},
				{Query{Text: "gadget", Filter: Filter{Language: "en"}}, "python.md, start.md"},
				{Query{Text: "gadget", Filter: Filter{Language: "fr"}}, ""},
				{Query{Text: "gadget", Filter: Filter{Version: "1.0"}}, ""}}},
		{name: "starlight with versions", project: api.Project{Site: api.SiteStarlight},
			files: map[string]string{"astro.config.mjs": "export default { integrations: [starlight({ plugins: [starlightVersions({ current: { label: '3.0' }, versions: [{ slug: '2.0' }, { slug: '1.0', label: 'One' }] })] })] }",
				"src/content/docs/start.md": en, "src/content/docs/2.0/start.md": en, "src/content/docs/1.0/start.md": en},
			asked: []askedQuery{
				{Query{Text: "gadget"}, "src/content/docs/start.md 3.0"},
				{Query{Text: "gadget", Filter: Filter{Version: "one"}}, "src/content/docs/1.0/start.md One"},
				{Query{Text: "gadget", CurrentPath: "/2.0/start/"}, "src/content/docs/2.0/start.md 2.0"}}},
		{name: "no generator, a folder for each version",
			files: map[string]string{"version-1.0/a.md": en, "version-2.0/a.md": en, "version-1.0/b.md": en, "b.md": en,
				"version-1.0/only.md": en}, asked: []askedQuery{
				{Query{Text: "gadget"}, "b.md, version-1.0/only.md 1.0, version-2.0/a.md 2.0"},
				{Query{Text: "gadget", Filter: Filter{Version: "1.0"}},
					"version-1.0/a.md 1.0, version-1.0/b.md 1.0, version-1.0/only.md 1.0"},
				{Query{Text: "gadget", CurrentPath: "/version-1.0/a"},
					"version-1.0/a.md 1.0, version-1.0/b.md 1.0, version-1.0/only.md 1.0"}}},
		{name: "versions in front matter",
			files: map[string]string{"a/x.md": front("title: X\nversion: 1.9", "The gadget."),
				"a-new/x.md": front("title: X\nversion: 1.10", "The gadget."),
				"1.9/y.md":   front("title: Y\nversion: 1.9", "The gadget."),
				"1.10/y.md":  front("title: Y\nversion: 1.10", "The gadget."), "z.md": front("title: Z", "The gadget.")},
			asked: []askedQuery{
				// Nothing says that 1.9 is over: of y there is a newer one, of x nobody knows.
				{Query{Text: "gadget"}, "1.10/y.md 1.10, a-new/x.md 1.10, a/x.md 1.9, z.md"},
				{Query{Text: "gadget", Filter: Filter{Version: "1.9"}}, "1.9/y.md 1.9, a/x.md 1.9"},
				{Query{Text: "gadget", CurrentPath: "/1.9/y"}, "1.9/y.md 1.9, a/x.md 1.9, z.md"}}},
	})
}

// A change of the configuration alone, or of the navigation, changes what readers find.
func TestVersionsAndLanguagesFollowTheConfiguration(t *testing.T) {
	l := openTest(t, Options{})
	files := maps.Clone(docusaurusSite)
	check := func(q Query, want string) {
		t.Helper()
		if got := editionsFound(t, l, q); got != want {
			t.Errorf("%+v finds\n  %s\nwant\n  %s", q, got, want)
		}
	}
	commit := 0
	update := func() {
		t.Helper()
		commit++
		mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: fmt.Sprint(commit), files: maps.Clone(files)})
	}
	update()
	check(Query{Text: "install"}, "blog/2024-release.md /en, docs/install.md 2.0/en")
	files["docusaurus.config.js"] = strings.Replace(files["docusaurus.config.js"], "lastVersion: 'current', ", "", 1)
	update()
	check(Query{Text: "install machine", Filter: Filter{Language: "en"}},
		"blog/2024-release.md /en, src/pages/about.md /en, versioned_docs/version-1.0/gone.md 1.0/en, versioned_docs/version-1.0/install.md 1.0/en")
	files["docusaurus.config.js"] = strings.ReplaceAll(files["docusaurus.config.js"], "'en'", "'de'")
	update()
	check(Query{Text: "Acme", Filter: Filter{Language: "de", Version: "2.0"}}, "docs/install.md 2.0/de")
}

// Every judged question, asked of real documentation that stands beside its earlier version and its translation, whose
// pages have the same titles and the same words: what is found is of one version and one language, and no worse than
// without them.
func TestJudgedQuestionsAreAnsweredInOneVersionAndOneLanguage(t *testing.T) {
	need.Everything(t, "one goroutine, over all judged queries")
	queries := judgedQueries(t)
	for _, name := range []string{"docusaurus", "fastapi", "vite"} {
		l := openTest(t, Options{})
		alone, beside := &memTree{commit: "1", files: map[string]string{}}, &memTree{commit: "1", files: map[string]string{}}
		for p, text := range corpus(t, name).files {
			alone.files["docs/"+p], beside.files["docs/"+p] = text, text
			beside.files["versioned_docs/version-0.9/"+p] = text
			if !strings.HasPrefix(p, "b") { // some are not translated
				beside.files["i18n/fr/docusaurus-plugin-content-docs/current/"+p] = text +
					"\n\n## Traduction\n\nCette page est traduite en français pour les lecteurs et les lectrices.\n"
			}
		}
		const config = "module.exports = { i18n: { defaultLocale: 'en', locales: ['en', 'fr'] }, presets: [['classic', { docs: { lastVersion: 'current', versions: { current: { label: '1.0' } } } }]] }"
		alone.files["docusaurus.config.js"], beside.files["docusaurus.config.js"] = config, config
		mustUpdate(t, l, api.Project{ID: "alone"}, alone)
		mustUpdate(t, l, api.Project{ID: "beside"}, beside)
		own := slices.DeleteFunc(slices.Clone(queries), func(q retrieval.Query) bool { return q.Corpus != name })
		for i := range own {
			own[i].Relevant = slices.Clone(own[i].Relevant)
			for k, p := range own[i].Relevant {
				own[i].Relevant[k] = "docs/" + p
			}
		}
		for _, box := range []bool{true, false} {
			score := map[string]retrieval.Score{}
			// nobody asks an assistant so
			asked := slices.DeleteFunc(slices.Clone(own), func(q retrieval.Query) bool { return !box && q.Kind == "prefix" })
			for _, project := range []api.ProjectID{"alone", "beside"} {
				outcomes, err := retrieval.Run(t.Context(), asked, func(ctx context.Context, q retrieval.Query) ([]retrieval.Found, error) {
					hits, err := l.Search(ctx, project, Query{Text: q.Query, Limit: 10, Box: box})
					for _, h := range hits {
						if project == "beside" && (h.Version != "1.0" || h.Language != "en") {
							t.Errorf("%s %q finds %s, version %s in %s", name, q.Query, h.Path, h.Version, h.Language)
						}
					}
					return found(hits, err)
				})
				if err != nil {
					t.Fatal(err)
				}
				score[string(project)] = retrieval.Summarize(outcomes, func(retrieval.Outcome) string { return "" })[""]
			}
			t.Logf("%-11s box %-5v %3d queries, alone hit@5 %.4f mrr %.4f, beside its copies %.4f and %.4f", name,
				box, len(asked), score["alone"].HitAt5, score["alone"].MRR, score["beside"].HitAt5, score["beside"].MRR)
			if score["beside"].HitAt5 < score["alone"].HitAt5-0.01 || score["beside"].MRR < score["alone"].MRR-0.01 {
				t.Errorf("%s is worse beside its copies: %+v, alone %+v", name, score["beside"], score["alone"])
			}
		}
		// As every reader: whatever is asked, all is of one version and one language, and the one that was asked for.
		for i, q := range own {
			ask := Query{Text: q.Query, Limit: 10, Box: i%2 == 0}
			want := "1.0 fr"
			switch i % 4 {
			case 0:
				ask.Filter = Filter{Version: "0.9"}
				want = "0.9 en"
			case 1:
				ask.Filter = Filter{Language: "fr"}
			case 2:
				ask.CurrentPath = "/fr/docs/anywhere"
			case 3:
				ask.CurrentPath, want = "/docs/0.9/anywhere", "0.9 en"
			}
			of := map[string]bool{}
			for _, h := range mustSearch(t, l, "beside", ask) {
				of[h.Version+" "+h.Language] = true
				if h.Language == "en" && want == "1.0 fr" && i%4 == 2 && strings.HasPrefix(h.Path, "docs/b") {
					want = "1.0 en" // it is not translated, and fits better than all that is
				}
			}
			if len(of) > 0 && (len(of) > 1 || !of[want]) {
				t.Errorf("%s %+v finds pages of %v", name, ask, of)
			}
		}
	}
}

// A version is shown where its generator shows it: the one that readers see first without its name.
func TestVersionsAndLanguagesStandInAddresses(t *testing.T) {
	config := func(docs string) string {
		return "export default { i18n: { defaultLocale: 'en', locales: ['en', 'fr'] }, presets: [['classic', { docs: {" +
			docs + "} }]], plugins: [['@docusaurus/plugin-content-docs', { id: 'sdk', path: 'sdk', routeBasePath: 'api' }]] }"
	}
	files := map[string]string{
		"versions.json": `["2", "1"]`, "docs/a.md": "# A\n", "versioned_docs/version-2/a.md": "# A\n",
		"versioned_docs/version-1/a.md":                         "# A\n",
		"i18n/fr/docusaurus-plugin-content-docs/current/a.md":   "# A\n",
		"i18n/fr/docusaurus-plugin-content-docs/version-2/a.md": "# A\n",
		"i18n/fr/docusaurus-plugin-content-docs/version-1/a.md": "# A\n",
		"i18n/fr/docusaurus-plugin-content-pages/about.md":      "# A\n", "sdk/b.md": "# B\n", "sdk_versions.json": `["9"]`,
		"sdk_versioned_docs/version-9/b.md": "# B\n",
	}
	for _, c := range []struct{ docs, want string }{
		{"", "/about /api/b /api/next/b /docs/1/a /docs/a /docs/next/a /fr/about /fr/docs/1/a /fr/docs/a /fr/docs/next/a"},
		{"lastVersion: 'current', routeBasePath: '/'", "/1/a /2/a /a /api/b /api/next/b /fr/1/a /fr/2/a /fr/a /fr/about"},
		{"lastVersion: '1', versions: { current: { path: 'edge' }, 2: { path: 'two' } }",
			"/api/b /api/next/b /docs/a /docs/edge/a /docs/two/a /fr/about /fr/docs/a /fr/docs/edge/a /fr/docs/two/a"},
	} {
		l := openTest(t, Options{})
		files["docusaurus.config.js"] = config(c.docs)
		mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: "1", files: maps.Clone(files)})
		s, err := l.acquire("x")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range s.pages {
			got = append(got, s.url(r, ""))
			if p, err := l.Page(t.Context(), "x", s.url(r, ""), nil); err != nil || p.Path != r.Path {
				t.Errorf("%s leads to %s, not to %s: %v", s.url(r, ""), p.Path, r.Path, err)
			}
		}
		s.release()
		slices.Sort(got)
		if want := strings.TrimPrefix(c.want, "/about "); strings.Join(got, " ") != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.docs, strings.Join(got, " "), want)
		}
	}
	for config, files := range map[string]map[string]string{
		"plugins:\n  - i18n:\n      languages: [{locale: en, default: true}, {locale: it}]\n":                               {"docs/a.md": "/a/", "docs/a.it.md": "/it/a/", "docs/b/index.it.md": "/it/b/", "docs/b/index.en.md": "/b/"},
		"plugins:\n  - i18n:\n      docs_structure: folder\n      languages: [{locale: en, default: true}, {locale: it}]\n": {"docs/en/a.md": "/a/", "docs/it/a.md": "/it/a/", "docs/it/index.md": "/it/", "docs/en/index.md": "/"},
		"defaultContentLanguage = 'en'\n[languages.en]\n[languages.it]\n":                                                   {"content/a.md": "/a/", "content/a.it.md": "/it/a/"},
	} {
		tree := &memTree{commit: "1", files: map[string]string{"mkdocs.yml": config}}
		if strings.HasPrefix(config, "default") {
			tree.files = map[string]string{"hugo.toml": config}
		}
		for p := range files {
			tree.files[p] = "# A\n\nText.\n"
		}
		l := openTest(t, Options{})
		mustUpdate(t, l, api.Project{ID: "x"}, tree)
		s, err := l.acquire("x")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.pages {
			if got := s.url(r, ""); got != files[r.Path] {
				t.Errorf("%s is shown at %s, want %s", r.Path, got, files[r.Path])
			}
		}
		if len(s.pages) != len(files) {
			t.Errorf("%d pages, want %d", len(s.pages), len(files))
		}
		s.release()
	}
	l := openTest(t, Options{})
	mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: "1", files: docusaurusSite})
	for address, want := range map[string]string{"/fr/docs/wombat": "docs/wombat.md",
		"/fr/docs/install": "i18n/fr/docusaurus-plugin-content-docs/current/install.md", "/docs/install": "docs/install.md"} {
		if p, err := l.Page(t.Context(), "x", address, nil); err != nil || p.Path != want {
			t.Errorf("%s is %s, want %s: %v", address, p.Path, want, err)
		}
	}
}

// The language of a question is one of the site's, and no other language is taken for what the site does not have.
func TestTheLanguageOfAQuestionIsOneOfTheSites(t *testing.T) {
	l := openTest(t, Options{})
	files := map[string]string{}
	for code, text := range map[string]string{
		"en": "Install the server and configure the proxy. Comment syntax and webhooks.",
		"de": "Der Server wird installiert und der Proxy eingerichtet. Webhooks.",
		"fr": "Installez le serveur et configurez le proxy.", "es": "Instalar el servidor y configurar el proxy.",
		"pt-BR": "Instalar o servidor e configurar o proxy.",
		"ja":    "サーバーをインストールして、プロキシを設定します。", "zh-CN": "安装服务器并配置代理。", "zh-TW": "安裝伺服器並設定代理。", "ko": "서버를 설치하고 프록시를 구성합니다.",
		"ru": "Установите сервер и настройте прокси.", "uk": "Встановіть сервер і налаштуйте проксі.",
		"pl": "Zainstaluj serwer i skonfiguruj proxy.",
	} {
		files[code+"/a.md"] = "# 1\n\n" + text + "\n"
	}
	mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: "1", files: files})
	s, err := l.acquire("x")
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	for text, want := range map[string]string{
		"how do I install the server?": "en", "install": "en", "server proxy": "en", "comment syntax": "en", "webhooks": "en",
		"proxy": "", "x7f": "",
		"wie richte ich den Proxy ein?": "de", "comment installer le serveur ?": "fr", "où est le proxy": "fr",
		"configurar el servidor": "es", "como configurar o servidor do meu proxy": "pt-BR",
		"servidor": "es", "サーバーの設定": "ja", "配置 proxy server": "zh-CN", "設定代理": "zh-TW", "서버 설치": "ko",
		"как настроить сервер": "ru", "налаштуйте сервер": "uk", "jak zainstalować serwer": "pl",
		"cum se instalează?": "", "what does 代理 mean in the proxy": "en",
	} {
		at, ok, err := s.languageOfText(t.Context(), text, false)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if ok {
			got = s.locales[at].shown
		}
		if got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
}

// A word is found with an article before it, and without.
func TestElidedArticlesAreNoPartOfAWord(t *testing.T) {
	l := openTest(t, Options{})
	mustUpdate(t, l, api.Project{ID: "x"}, &memTree{commit: "1", files: map[string]string{
		"fr/a.md": "# Début\n\nL’installation de l'outil jusqu'ici.\n", "it/a.md": "# Inizio\n\nPrima dell'installazione.\n",
		"en/a.md": "# Begin\n\nDon't ask the user's name.\n",
	}})
	for q, want := range map[string]string{"installation": "fr/a.md /fr", "l'outil": "fr/a.md /fr",
		"installazione": "it/a.md /it", "don't ask": "en/a.md /en", "user": "en/a.md /en"} {
		if got := editionsFound(t, l, Query{Text: q}); got != want {
			t.Errorf("%q finds %q, want %q", q, got, want)
		}
	}
}
