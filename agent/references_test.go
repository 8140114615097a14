package agent_test

import (
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
			for f, text := range c.files {
				files[f] = text
			}
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
