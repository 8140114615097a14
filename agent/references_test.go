package agent_test

import (
	"maps"
	"strings"
	"testing"
)

// What names a page in a generator's own form follows it when it moves, and only that changes.
func TestReferencesOfEveryGeneratorFollowAMove(t *testing.T) {
	t.Parallel()
	hugo := "baseURL = \"https://docs.acme.test/\"\n"
	for _, c := range []struct {
		name, prompt string
		files        map[string]string
		in, from, to string // a file, what stands in it before, and after
	}{
		{"Hugo relref from the content", "move content/guides/flows.md to content/privacy/flows.md",
			map[string]string{"hugo.toml": hugo, "content/guides/flows.md": "---\ntitle: Flows\n---\nx\n", "content/guides/_index.md": "---\ntitle: G\n---\n"},
			"content/_index.md", "A [one]({{< relref \"guides/flows.md\" >}}) B [two]({{% ref \"/guides/flows\" %}}) C [three](/guides/flows/) D [four](guides/flows.md)\n\n```\n{{< ref \"guides/flows.md#x\" >}}\n```\n",
			"A [one]({{< relref \"privacy/flows.md\" >}}) B [two]({{% ref \"/privacy/flows\" %}}) C [three](/privacy/flows/) D [four](privacy/flows.md)\n\n```\n{{< ref \"privacy/flows.md#x\" >}}\n```\n"},
		{"Hugo relref by name", "move content/guides/flows.md to content/guides/data.md",
			map[string]string{"hugo.toml": hugo, "content/guides/flows.md": "---\ntitle: Flows\n---\nx\n", "content/guides/_index.md": "---\ntitle: G\n---\n"},
			"content/other/a.md", "[x]({{< relref \"flows\" >}})\n", "[x]({{< relref \"data\" >}})\n"},
		{"VitePress include and snippet", "move parts/quota.md to shared/limits.md",
			map[string]string{".vitepress/config.mts": "export default {title: 'A'}\n", "parts/quota.md": "x\n"},
			"guide/a.md", "<!--@include: ../parts/quota.md{3,}-->\n\n<<< @/parts/quota.md#main{2}\n\n<!-- @include: @/parts/quota.md -->\n",
			"<!--@include: ../shared/limits.md{3,}-->\n\n<<< @/shared/limits.md#main{2}\n\n<!-- @include: @/shared/limits.md -->\n"},
		{"VitePress page that includes", "move guide/a.md to a.md",
			map[string]string{".vitepress/config.mts": "export default {title: 'A'}\n", "parts/quota.md": "x\n", "guide/b.md": "# B\n",
				"guide/a.md": "<!--@include: ../parts/quota.md-->\n[b](b.md)\n"},
			"a.md", "", "<!--@include: ./parts/quota.md-->\n[b](guide/b.md)\n"},
		{"mdBook include", "move src/parts/need.md to src/shared/need.md",
			map[string]string{"book.toml": "[book]\ntitle = \"A\"\n", "src/SUMMARY.md": "# Summary\n\n- [A](a.md)\n", "src/parts/need.md": "3 GB\n"},
			"src/a.md", "{{#include parts/need.md}}\n\n```\n{{#include parts/need.md:2:5}}\n```\n\n\\{{#include parts/need.md}}\n",
			"{{#include shared/need.md}}\n\n```\n{{#include shared/need.md:2:5}}\n```\n\n\\{{#include parts/need.md}}\n"},
		{"MkDocs snippets", "move docs/parts/a.md to docs/shared/b.md",
			map[string]string{"mkdocs.yml": "site_name: A\nmarkdown_extensions:\n  - pymdownx.snippets:\n      base_path: [docs]\n", "docs/parts/a.md": "x\n"},
			"docs/index.md", "--8<-- \"parts/a.md\"\n\n--8<--\nparts/a.md\n; parts/a.md\n--8<--\n\n{% include-markdown \"parts/a.md\" %}\n{% include \"./parts/a.md\" %}\n",
			"--8<-- \"shared/b.md\"\n\n--8<--\nshared/b.md\n; parts/a.md\n--8<--\n\n{% include-markdown \"shared/b.md\" %}\n{% include \"./shared/b.md\" %}\n"},
		{"MkDocs snippets from the configuration's folder", "move docs/parts/a.md to docs/shared/b.md",
			map[string]string{"mkdocs.yml": "site_name: A\nmarkdown_extensions:\n  - pymdownx.snippets\n", "docs/parts/a.md": "x\n"},
			"docs/index.md", "--8<-- \"docs/parts/a.md:part\"\n", "--8<-- \"docs/shared/b.md:part\"\n"},
		{"Jekyll link", "move guides/install.md to start/setup.md",
			map[string]string{"_config.yml": "title: A\n", "guides/install.md": "---\ntitle: I\n---\nx\n"},
			"index.md", "[install]({% link guides/install.md %}) and {{ site.baseurl }}{% link guides/install.md %}\n",
			"[install]({% link start/setup.md %}) and {{ site.baseurl }}{% link start/setup.md %}\n"},
		{"GitBook content-ref", "move docs/use/install.md to docs/start/install.md",
			map[string]string{".gitbook.yaml": "root: ./docs/\n", "docs/SUMMARY.md": "# Table of contents\n\n* [I](use/install.md)\n", "docs/use/install.md": "# I\n"},
			"docs/README.md", "{% content-ref url=\"use/install.md\" %}\n[install.md](use/install.md)\n{% endcontent-ref %}\n",
			"{% content-ref url=\"start/install.md\" %}\n[install.md](start/install.md)\n{% endcontent-ref %}\n"},
		{"wiki", "move Network-Ports.md to Ports-of-the-server.md",
			map[string]string{"Network-Ports.md": "x\n", "_Sidebar.md": "* [[Home]]\n"},
			"Home.md", "[[Network Ports]], [[the ports|Network-Ports]], [[Network-Ports#tcp]] and [[nothing]]\n",
			"[[Ports of the server]], [[the ports|Ports-of-the-server]], [[Ports-of-the-server#tcp]] and [[nothing]]\n"},
		{"DocFX include", "move includes/a.md to shared/a.md",
			map[string]string{"docfx.json": "{}\n", "includes/a.md": "x\n"},
			"articles/b.md", "[!INCLUDE [a](../includes/a.md)]\n\n[!INCLUDE[a](~/includes/a.md)]\n",
			"[!INCLUDE [a](../shared/a.md)]\n\n[!INCLUDE[a](~/shared/a.md)]\n"},
		{"Docusaurus loaders", "move docs/parts/_a.md to docs/shared/_a.md",
			map[string]string{"docusaurus.config.js": "module.exports = {title: 'A', presets: [['classic', {docs: {}}]]};\n", "docs/parts/_a.md": "x\n"},
			"docs/b.mdx", "import A from './parts/_a.md';\nimport Raw from '!!raw-loader!./parts/_a.md';\nimport C from '@site/docs/parts/_a.md';\n\n<A />\n",
			"import A from './shared/_a.md';\nimport Raw from '!!raw-loader!./shared/_a.md';\nimport C from '@site/docs/shared/_a.md';\n\n<A />\n"},
		{"Fumadocs include", "move content/docs/parts/a.mdx to content/docs/shared/b.mdx",
			map[string]string{"source.config.ts": "export const docs = defineDocs({dir: 'content/docs'});\n", "content/docs/parts/a.mdx": "x\n"},
			"content/docs/c.mdx", "<include>./parts/a.mdx</include>\n\n<include lang=\"md\">parts/a.mdx#x</include>\n",
			"<include>./shared/b.mdx</include>\n\n<include lang=\"md\">shared/b.mdx#x</include>\n"},
		{"Mintlify Snippet", "move snippets/a.mdx to snippets/b.mdx",
			map[string]string{"docs.json": "{\"navigation\": {\"pages\": [\"c\"]}}\n", "snippets/a.mdx": "x\n"},
			"c.mdx", "<Snippet file=\"a.mdx\" />\n\n`<Snippet file=\"a.mdx\" />`\n", "<Snippet file=\"b.mdx\" />\n\n`<Snippet file=\"a.mdx\" />`\n"},
		{"Sphinx with MyST", "move docs/guide/a.md to docs/start/a.md",
			map[string]string{"docs/conf.py": "extensions = ['myst_parser']\n", "docs/guide/a.md": "# A\n",
				"docs/other.rst": "x\n"},
			"docs/index.rst", "A\n=\n\n.. toctree::\n   :maxdepth: 1\n\n   guide/a\n   The A <guide/a>\n\nSee :doc:`guide/a` and :doc:`it </guide/a>`.\n\n.. include:: guide/a.md\n",
			"A\n=\n\n.. toctree::\n   :maxdepth: 1\n\n   start/a\n   The A <start/a>\n\nSee :doc:`start/a` and :doc:`it </start/a>`.\n\n.. include:: start/a.md\n"},
		{"MyST's own forms", "move docs/guide/a.md to docs/start/a.md",
			map[string]string{"docs/conf.py": "extensions = ['myst_parser']\n", "docs/guide/a.md": "# A\n"},
			"docs/index.md", "```{toctree}\n:maxdepth: 1\n\nguide/a\n```\n\nSee {doc}`guide/a` and {doc}`it <guide/a>`.\n\n```{include} guide/a.md\n```\n",
			"```{toctree}\n:maxdepth: 1\n\nstart/a\n```\n\nSee {doc}`start/a` and {doc}`it <start/a>`.\n\n```{include} start/a.md\n```\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			maps.Copy(files, c.files)
			if c.from != "" {
				files[c.in] = c.from
			}
			res := newJob(t, files).must(c.prompt)
			got := ""
			for _, ch := range res.Changes {
				if ch.Path == c.in {
					got = string(ch.Content)
				}
			}
			if got != c.to {
				t.Errorf("%s became\n%s\nnot\n%s\n%s", c.in, got, c.to, res.Message)
			}
		})
	}
}

// A page whose text others take in stays, and one that is listed leaves its list.
func TestAPageThatIsIncludedIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]map[string]string{
		"VitePress": {".vitepress/config.mts": "export default {}\n", "a.md": "<!--@include: ./part.md-->\n"},
		"mdBook":    {"book.toml": "[book]\nsrc = \".\"\n", "SUMMARY.md": "- [A](a.md)\n", "a.md": "{{#include part.md}}\n"},
		"MkDocs":    {"mkdocs.yml": "docs_dir: .\n", "a.md": "--8<-- \"part.md\"\n"},
		"DocFX":     {"docfx.json": "{}", "a.md": "[!INCLUDE [x](part.md)]\n"},
		"MDX":       {"docusaurus.config.js": "module.exports = {presets: [['classic', {docs: {path: '.'}}]]}", "a.mdx": "import P from '!!raw-loader!./part.md';\n\n<P />\n"},
		"MyST":      {"conf.py": "", "a.md": "```{include} part.md\n```\n"},
		"Sphinx":    {"conf.py": "", "a.rst": ".. include:: part.md\n"},
		"AsciiDoc":  {"a.adoc": "include::part.md[]\n"},
		"Fumadocs":  {"a.mdx": "<include>part.md</include>\n"},
		"Fern":      {"fern/docs.yml": "title: A\n", "a.mdx": "<Markdown src=\"part.md\" />\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c["part.md"] = "40 projects.\n"
			c["z.md"] = "# Z\n"
			for _, prompt := range []string{"delete page part.md", "delete page part.md and unlink it"} {
				res := newJob(t, c).do(prompt)
				if len(res.Changes) > 0 || !strings.Contains(res.Message, "is included in a.") {
					t.Errorf("%s: %d changes: %s", prompt, len(res.Changes), res.Message)
				}
			}
		})
	}
	for _, c := range []struct{ name, file, from, to string }{
		{"wiki", "Home.md", "See [[Old Page]] and [[the old one|Old-Page]].\n", "See Old Page and the old one.\n"},
		{"bar", "_Sidebar.md", "* [[Home]]\n* [[Old Page]]\n", "* [[Home]]\n"},
		{"Sphinx", "index.rst", ".. toctree::\n\n   a\n   Old-Page\n", ".. toctree::\n\n   a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, map[string]string{"Old-Page.md": "x\n", c.file: c.from, "z.md": "# Z\n"})
			res := j.must("delete page Old-Page.md and unlink it")
			if got := j.tree.files()[c.file]; got != c.to {
				t.Errorf("%q: %s", got, res.Message)
			}
		})
	}
}

// Anchors that a page gives to parts other than headings are known.
func TestAnchorsOfAttributeListsLive(t *testing.T) {
	t.Parallel()
	res := newJob(t, map[string]string{"mkdocs.yml": "site_name: A\nmarkdown_extensions: [attr_list]\n", "docs/index.md": "# Acme\n\n" +
		"See [the note](index.md#wait-note) and [keys](index.md#keys) and [the box](index.md#box).\n\nWaiting is normal.\n{ #wait-note }\n\n" +
		"[](){#keys}\n\nKeys are kept.\n\n<div id=\"box\" markdown>\n\nThe box.\n\n</div>\n"}).do("fix broken links")
	if !strings.Contains(res.Message, "no broken internal link") {
		t.Error(res.Message)
	}
}

// A page that moves leaves a redirect in its generator's own way, or it is said why none could be made.
func TestAMoveLeavesARedirectOfTheGenerator(t *testing.T) {
	t.Parallel()
	docusaurus := "module.exports = {title:'Acme', url:'https://docs.acme.test', baseUrl:'/', presets:[['classic',{docs:{routeBasePath:'/'}}]], plugins:[%s]};\n"
	for _, c := range []struct {
		name, from, to string // move
		files          map[string]string
		in, was, is    string // a file, what stands in it before, and after; is is what is said if there is none
	}{
		{"MkDocs", "docs/data-flows.md", "docs/privacy/data-flows.md", nil, "mkdocs.yml",
			"site_name: Acme\nplugins:\n  - search\n  - redirects:\n      redirect_maps:\n        old/start.md: index.md\n        was.md: data-flows.md\nnav:\n  - Home: index.md\n",
			"site_name: Acme\nplugins:\n  - search\n  - redirects:\n      redirect_maps:\n        old/start.md: index.md\n        was.md: privacy/data-flows.md\n        data-flows.md: privacy/data-flows.md\nnav:\n  - Home: index.md\n"},
		{"MkDocs without maps", "docs/data-flows.md", "docs/privacy/data-flows.md", nil, "mkdocs.yml",
			"plugins:\n  - redirects\n", "plugins:\n  - redirects:\n      redirect_maps:\n        data-flows.md: privacy/data-flows.md\n"},
		{"MkDocs by names", "docs/data-flows.md", "docs/privacy/data-flows.md", nil, "mkdocs.yml",
			"plugins:\n  redirects:\n    redirect_maps:\n      a.md: b.md", "plugins:\n  redirects:\n    redirect_maps:\n      a.md: b.md\n      data-flows.md: privacy/data-flows.md"},
		{"MkDocs without the plug-in", "docs/data-flows.md", "docs/privacy/data-flows.md",
			map[string]string{"mkdocs.yml": "site_name: Acme\n"}, "", "", "MkDocs makes them with the plug-in redirects"},
		{"Hugo", "content/data-flows.md", "content/privacy/data-flows.md", map[string]string{"hugo.toml": "baseURL = \"https://docs.acme.test/\"\n"},
			"content/privacy/data-flows.md", "---\ntitle: Data flows\naliases: [/flows/]\n---\nx\n", "---\ntitle: Data flows\naliases: [/flows/, /data-flows/]\n---\nx\n"},
		{"Hugo, an alias a line", "content/a/data-flows.md", "content/privacy/data-flows.md", map[string]string{"hugo.toml": "title = \"A\"\n"},
			"content/privacy/data-flows.md", "---\naliases:\n  - /was/\ntitle: D\n---\nx\n", "---\naliases:\n  - /was/\n  - /a/data-flows/\ntitle: D\n---\nx\n"},
		{"Hugo, none yet", "content/data-flows.md", "content/privacy/data-flows.md", map[string]string{"hugo.toml": "title = \"A\"\n"},
			"content/privacy/data-flows.md", "+++\ntitle = \"D\"\n+++\nx\n", "+++\ntitle = \"D\"\naliases = [\"/data-flows/\"]\n+++\nx\n"},
		{"Docusaurus", "docs/data-flows.md", "docs/privacy/data-flows.md", nil, "docusaurus.config.js",
			strings.Replace(docusaurus, "%s", "['@docusaurus/plugin-client-redirects',{redirects:[{from:'/old', to:'/intro'}]}]", 1),
			strings.Replace(docusaurus, "%s", "['@docusaurus/plugin-client-redirects',{redirects:[{from: '/data-flows', to: '/privacy/data-flows'}, {from:'/old', to:'/intro'}]}]", 1)},
		{"Docusaurus, an entry a line", "docs/data-flows.md", "docs/privacy/data-flows.md", nil, "docusaurus.config.js",
			strings.Replace(docusaurus, "%s", "[\n  \"@docusaurus/plugin-client-redirects\",\n  {\n    redirects: [\n      {from: \"/old\", to: \"/intro\"},\n    ],\n  },\n]", 1),
			strings.Replace(docusaurus, "%s", "[\n  \"@docusaurus/plugin-client-redirects\",\n  {\n    redirects: [\n      {from: \"/data-flows\", to: \"/privacy/data-flows\"},\n      {from: \"/old\", to: \"/intro\"},\n    ],\n  },\n]", 1)},
		{"Docusaurus without the plug-in", "docs/data-flows.md", "docs/privacy/data-flows.md",
			map[string]string{"docusaurus.config.js": strings.Replace(docusaurus, "%s", "", 1)}, "", "", "Docusaurus makes them with the plug-in client-redirects"},
		{"Starlight, with the navigation in the same file", "src/content/docs/data-flows.md", "src/content/docs/privacy/data-flows.md", nil, "astro.config.mjs",
			"import starlight from '@astrojs/starlight';\n\nexport default {\n  redirects: {\n    '/start': '/',\n  },\n  integrations: [starlight({ title: 'Acme', sidebar: ['data-flows'] })],\n};\n",
			"import starlight from '@astrojs/starlight';\n\nexport default {\n  redirects: {\n    '/data-flows': '/privacy/data-flows',\n    '/start': '/',\n  },\n  integrations: [starlight({ title: 'Acme', sidebar: ['privacy/data-flows'] })],\n};\n"},
		{"mdBook", "src/data-flows.md", "src/privacy/data-flows.md", map[string]string{"src/SUMMARY.md": "# Summary\n\n- [D](data-flows.md)\n"}, "book.toml",
			"[book]\ntitle = \"Acme\"\n\n[output.html.redirect]\n\"/old.html\" = \"index.html\"\n\n[build]\nx = 1\n",
			"[book]\ntitle = \"Acme\"\n\n[output.html.redirect]\n\"/old.html\" = \"index.html\"\n\"/data-flows.html\" = \"privacy/data-flows.html\"\n\n[build]\nx = 1\n"},
		{"mdBook, none yet", "src/a/data-flows.md", "src/privacy/data-flows.md", map[string]string{"src/SUMMARY.md": "# Summary\n\n- [D](a/data-flows.md)\n"}, "book.toml",
			"[book]\ntitle = \"Acme\"\n", "[book]\ntitle = \"Acme\"\n\n[output.html.redirect]\n\"/a/data-flows.html\" = \"../privacy/data-flows.html\"\n"},
		{"GitBook", "docs/data-flows.md", "docs/privacy/data-flows.md", map[string]string{"docs/SUMMARY.md": "# Table of contents\n\n* [D](data-flows.md)\n"}, ".gitbook.yaml",
			"root: ./docs/\nredirects:\n  old/start: README.md\n", "root: ./docs/\nredirects:\n  old/start: README.md\n  data-flows: privacy/data-flows.md\n"},
		{"GitBook, none yet", "docs/data-flows.md", "docs/privacy/data-flows.md", map[string]string{"docs/SUMMARY.md": "# Table of contents\n\n* [D](data-flows.md)\n"}, ".gitbook.yaml",
			"root: ./docs/\n", "root: ./docs/\nredirects:\n  data-flows: privacy/data-flows.md\n"},
		{"Jekyll", "data-flows.md", "privacy/data-flows.md", map[string]string{"_config.yml": "plugins:\n  - jekyll-redirect-from\n"}, "privacy/data-flows.md",
			"---\ntitle: D\nredirect_from: /setup/\n---\nx\n", "---\ntitle: D\nredirect_from: [/setup/, /data-flows.html]\n---\nx\n"},
		{"Jekyll, pretty", "data-flows.md", "privacy/data-flows.md", map[string]string{"_config.yml": "permalink: pretty\nplugins:\n  - jekyll-redirect-from\n"}, "privacy/data-flows.md",
			"---\ntitle: D\n---\nx\n", "---\ntitle: D\nredirect_from: [/data-flows/]\n---\nx\n"},
		{"Jekyll without the plug-in", "data-flows.md", "privacy/data-flows.md", map[string]string{"_config.yml": "title: A\n"}, "", "", "jekyll-redirect-from, which _config.yml does not name"},
		{"Sphinx with reredirects", "a/data-flows.md", "privacy/data-flows.md", nil, "conf.py",
			"extensions = ['myst_parser', 'sphinx_reredirects']\nredirects = {\n    \"old\": \"index.html\",\n}\n",
			"extensions = ['myst_parser', 'sphinx_reredirects']\nredirects = {\n    \"a/data-flows\": \"../privacy/data-flows.html\",\n    \"old\": \"index.html\",\n}\n"},
		{"Sphinx with rediraffe", "docs/data-flows.md", "docs/privacy/data-flows.md", nil, "docs/conf.py",
			"extensions = ['sphinxext.rediraffe']\nrediraffe_redirects = {}\n", "extensions = ['sphinxext.rediraffe']\nrediraffe_redirects = {\"data-flows.md\": \"privacy/data-flows.md\"}\n"},
		{"Sphinx with a file of rediraffe's", "docs/data-flows.md", "docs/privacy/data-flows.md",
			map[string]string{"docs/conf.py": "extensions = ['sphinxext.rediraffe']\nrediraffe_redirects = 'redirects.txt'\n"}, "docs/redirects.txt",
			"\"a.md\" \"b.md\"\n", "\"a.md\" \"b.md\"\n\"data-flows.md\" \"privacy/data-flows.md\"\n"},
		{"Sphinx without an extension", "data-flows.md", "privacy/data-flows.md", map[string]string{"conf.py": "extensions = []\n"}, "", "", "Sphinx makes them with an extension"},
		{"Antora", "modules/ROOT/pages/data-flows.adoc", "modules/ops/pages/privacy/data.adoc", map[string]string{"antora.yml": "name: acme\nversion: ~\n"},
			"modules/ops/pages/privacy/data.adoc", "= Data flows\n:toc:\n\nText.\n", "= Data flows\n:toc:\n:page-aliases: ROOT:data-flows.adoc\n\nText.\n"},
		{"Antora, one more", "modules/ROOT/pages/data-flows.adoc", "modules/ROOT/pages/privacy/data.adoc", map[string]string{"antora.yml": "name: acme\nversion: ~\n"},
			"modules/ROOT/pages/privacy/data.adoc", "= Data flows\n:page-aliases: flows.adoc\n\nText.\n", "= Data flows\n:page-aliases: flows.adoc, data-flows.adoc\n\nText.\n"},
		{"Next.js", "content/data-flows.mdx", "content/privacy/data-flows.mdx", map[string]string{"content/_meta.js": "export default {}\n"}, "next.config.mjs",
			"import nextra from 'nextra'\nconst withNextra = nextra({})\nexport default withNextra({\n  async redirects() {\n    return [\n      { source: '/old', destination: '/', permanent: true },\n    ]\n  },\n})\n",
			"import nextra from 'nextra'\nconst withNextra = nextra({})\nexport default withNextra({\n  async redirects() {\n    return [\n      { source: '/data-flows', destination: '/privacy/data-flows', permanent: true },\n      { source: '/old', destination: '/', permanent: true },\n    ]\n  },\n})\n"},
		{"Next.js without a list", "content/data-flows.mdx", "content/privacy/data-flows.mdx", map[string]string{"content/_meta.js": "export default {}\n",
			"next.config.mjs": "import nextra from 'nextra'\nexport default nextra({})({})\n"}, "", "", "Next.js makes them with redirects()"},
		{"VitePress", "data-flows.md", "privacy/data-flows.md", map[string]string{".vitepress/config.mts": "export default {}\n"}, "", "", "VitePress makes none of its own"},
		{"unknown", "data-flows.md", "privacy/data-flows.md", nil, "", "", "it is not known what makes the site"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{c.from: "# Data flows\n", "z.md": "# Z\n"}
			maps.Copy(files, c.files)
			switch c.in {
			case "":
			case c.to:
				files[c.from] = c.was
			default:
				files[c.in] = c.was
			}
			j := newJob(t, files)
			res := j.must("move " + c.from + " to " + c.to)
			switch got := j.tree.files()[c.in]; {
			case c.in == "" && (!strings.Contains(res.Message, c.is) || !strings.Contains(res.Body, "No redirect was added")):
				t.Errorf("%s\n%s", res.Message, res.Body)
			case c.in != "" && got != c.is:
				t.Errorf("%s became\n%s\nnot\n%s\n%s", c.in, got, c.is, res.Message)
			}
		})
	}
}

// A new page goes into the navigation of generators that show only what is listed, beside the pages of its folder.
func TestANewPageIsListed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, prompt string
		files        map[string]string
		in, was, is  string
	}{
		{"mdBook", `create page src/nested/disk.md titled "Disk"`, map[string]string{"book.toml": "[book]\ntitle = \"A\"\n", "src/nested/README.md": "# P\n", "src/a.md": "# A\n"},
			"src/SUMMARY.md", "# Summary\n\n[Intro](README.md)\n\n# Use\n\n- [A](a.md)\n- [Ports](nested/README.md)\n- [Draft]()\n",
			"# Summary\n\n[Intro](README.md)\n\n# Use\n\n- [A](a.md)\n- [Ports](nested/README.md)\n  - [Disk](nested/disk.md)\n- [Draft]()\n"},
		{"GitBook", `create page docs/use/ports.md titled "Ports"`, map[string]string{".gitbook.yaml": "root: ./docs/\n", "docs/use/install.md": "# I\n", "docs/README.md": "# A\n"},
			"docs/SUMMARY.md", "# Table of contents\n\n* [Welcome](README.md)\n\n## Use\n\n* [Install it](use/install.md)\n\n## More\n",
			"# Table of contents\n\n* [Welcome](README.md)\n\n## Use\n\n* [Install it](use/install.md)\n* [Ports](use/ports.md)\n\n## More\n"},
		{"a group of GitBook", `create page docs/ports.md titled "Ports" in group "Use"`, map[string]string{".gitbook.yaml": "root: ./docs/\n", "docs/use/install.md": "# I\n", "docs/README.md": "# A\n"},
			"docs/SUMMARY.md", "# Table of contents\n\n* [Welcome](README.md)\n\n## Use\n\n* [Install it](use/install.md)",
			"# Table of contents\n\n* [Welcome](README.md)\n\n## Use\n\n* [Install it](use/install.md)\n* [Ports](ports.md)"},
		{"Sphinx", `create page guide/b.md titled "B"`, map[string]string{"conf.py": "", "guide/a.md": "# A\n"},
			"index.rst", ".. toctree::\n   :maxdepth: 1\n\n   guide/a\n   other\n\nText.\n", ".. toctree::\n   :maxdepth: 1\n\n   guide/a\n   guide/b\n   other\n\nText.\n"},
		{"docsify", `create page guide/b.md titled "B"`, map[string]string{"guide/a.md": "# A\n"},
			"_sidebar.md", "* [Home](/)\n* [A](guide/a.md)\n", "* [Home](/)\n* [A](guide/a.md)\n* [B](guide/b.md)\n"},
		{"VitePress", `create page guide/b.md titled "B"`, map[string]string{"guide/a.md": "# A\n"}, ".vitepress/config.mts",
			"export default { themeConfig: { sidebar: [\n  { text: 'G', items: [\n    { text: 'A', link: '/guide/a' },\n  ] },\n] } }\n",
			"export default { themeConfig: { sidebar: [\n  { text: 'G', items: [\n    { text: 'A', link: '/guide/a' },\n    { text: 'B', link: '/guide/b' },\n  ] },\n] } }\n"},
		{"Docusaurus", `create page docs/guide/b.md titled "B"`, map[string]string{"docusaurus.config.js": "module.exports = {presets: [['classic', {docs: {sidebarPath: './sidebars.js'}}]]};\n", "docs/guide/a.md": "# A\n"}, "sidebars.js",
			"module.exports = {docs: ['intro', 'guide/a', {type: 'category', items: ['x']}]};\n", "module.exports = {docs: ['intro', 'guide/a', 'guide/b', {type: 'category', items: ['x']}]};\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{c.in: c.was}
			maps.Copy(files, c.files)
			j := newJob(t, files)
			res := j.must(c.prompt)
			if got := j.tree.files()[c.in]; got != c.is {
				t.Errorf("%s became\n%s\nnot\n%s\n%s", c.in, got, c.is, res.Message)
			}
		})
	}
	j := newJob(t, map[string]string{"conf.py": "", "guide/a.md": "# A\n", "index.rst": ".. toctree::\n   :glob:\n\n   guide/*\n   b\n"})
	if res := j.must(`create page guide/b.md titled "B"`); strings.Contains(res.Message, "navigation") || len(res.Changes) != 1 {
		t.Errorf("a pattern names it: %s", res.Message)
	}
}
