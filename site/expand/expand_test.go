package expand

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/internal/testing/need"
)

var blanks = regexp.MustCompile(`\n{3,}`)

func expanded(rules Rules, files map[string]string, name string) Text {
	return Page(&rules, name, []byte(files[name]), func(file string) ([]byte, error) {
		if body, ok := files[file]; ok {
			return []byte(body), nil
		}
		return nil, fs.ErrNotExist
	}, func(label string) string {
		for file, body := range files {
			if slices.Contains(Labels([]byte(body)), label) {
				return file
			}
		}
		return ""
	})
}

// Each generator's own forms are replaced by what they take in; what is not there is left out and counted.
func TestPagesAreExpandedAsTheirGeneratorsDo(t *testing.T) {
	for name, c := range map[string]struct {
		rules Rules
		files map[string]string
		page  string
		want  string
		left  int
	}{
		"imports, constants and properties": {Rules{Kind: api.SiteMintlify}, map[string]string{
			"a.mdx":            "import Part from '/s/part.mdx';\nimport {port} from '/s/values.js';\nexport const release = '7.4';\n\nGet {release} at {port}, {missing.x}.\n\n<Part limit=\"12\" />\n",
			"s/part.mdx":       "---\ntitle: x\n---\nimport Deep from './deep.mdx';\n\nHolds {limit} keys.\n\n<Deep />\n",
			"s/deep.mdx":       "Deep words.\n",
			"s/values.js":      "export const port = 7443;\n",
			"not/../../secret": "x",
		}, "a.mdx", "Get 7.4 at 7443, .\n\nHolds 12 keys.\n\nDeep words.", 1},
		"regions and lines of VitePress": {Rules{Kind: api.SiteVitePress}, map[string]string{
			"a.md": "<!--@include: ./p.md{2,3}-->\n\n<<< @/c.ts#main\n", "p.md": "one\ntwo\nthree\nfour\n",
			"c.ts": "x\n// #region main\ncall();\n// #endregion main\n"}, "a.md", "two\nthree\n\n```ts\ncall();\n```", 0},
		"anchors of mdBook": {Rules{Kind: api.SiteMdBook}, map[string]string{
			"a.md": "```rust\n{{#include x.rs:part}}\n```\n{{#include gone.md}}\n", "x.rs": "// ANCHOR: part\nfn f() {}\n// ANCHOR_END: part\n"},
			"a.md", "```rust\nfn f() {}\n```", 1},
		"a cycle ends": {Rules{Kind: api.SiteMkDocs, Bases: []string{"."}}, map[string]string{"a.md": "A\n\n--8<-- \"b.md\"\n", "b.md": "B\n\n--8<-- \"a.md\"\n"},
			"a.md", "A\n\nB", 1},
		"branches, values and loops of Liquid": {Rules{Kind: api.SiteJekyll, Values: map[string]any{"page": map[string]any{"kind": ErrUnknown}, "site": map[string]any{"beta": true, "plans": ErrUnknown,
			"data": map[string]any{"plans": []any{map[string]any{"name": "Gold", "seats": 300, "url": "/gold/"}, map[string]any{"name": "Tin", "seats": 2}}, "words": map[string]any{"a": "x", "b": "y"}}}}}, map[string]string{
			"a.md": "---\nlevel: 2\ntags: [a, b]\n---\n{% if site.beta and page.level > 1 %}Beta.{% else %}No.{% endif %}{% unless site.beta %}No.{% elsif true %}Yes.{% endunless %}\n" +
				"{%- case page.level -%}{% when 1 %}One{% when 2, 3 %}Two{% else %}More{% endcase %}\n\n{% assign best = site.data.plans | where: \"name\", \"Gold\" | first %}{{ best.name | upcase }} has {{ best.seats }}.\n\n" +
				"{% for p in site.data.plans limit:5 %}\n- [{{ p.name }}]({{ p.url | relative_url }}) {{ forloop.index }}{% if p.seats > 100 %} big{% endif %}{% include n.md who=p.name %}\n{% endfor %}\n" +
				"{% for w in site.data.words %}{{ w[0] }}={{ w[1] }}{% unless forloop.last %}, {% endunless %}{% endfor %} {% for i in (1..3) reversed %}{{ i }}{% endfor %}{% if page.tags contains \"a\" %} a{% endif %}\n\n" +
				"{% for p in site.posts %}Never.{% endfor %}{% for p in site.plans %}Never.{% endfor %}{% if page.kind == 'x' %}Never.{% endif %}{% if page.gone %}Never.{% endif %}{% raw %}{% if x %}{% endraw %}\n", "_includes/n.md": " for {{ include.who }}"}, "a.md",
			"---\nlevel: 2\ntags: [a, b]\n---\nBeta.Yes.Two\n\nGOLD has 300.\n\n- [Gold]({{ \"/gold/\" | relative_url }}) 1 big for Gold\n\n- [Tin]() 2 for Tin\n\na=x, b=y 321 a\n\n{% raw %}{% if x %}{% endraw %}", 4},
		"a section that Fumadocs includes": {Rules{Kind: api.SiteNext}, map[string]string{
			"a.mdx": "Before.\n\n<include>./b.mdx#use-it</include>\n\n<include>./b.mdx#own</include>\n\n<include>./b.mdx#gone</include>\n\n<include lang=\"ts\">./c.ts#main</include>\n",
			"b.mdx": "# B\n\nNever.\n\n<section id=\"own\">\n\nOwn words.\n\n</section>\n\n## Use it\n\nUse.\n\n### Deep\n\nDeeper.\n\n## Next\n\nNever.\n", "c.ts": "no();\n// #region main\ncall();\n// #endregion main\n"},
			"a.mdx", "Before.\n\n## Use it\n\nUse.\n\n### Deep\n\nDeeper.\n\nOwn words.\n\n```ts\ncall();\n```", 1},
		"parameters of an include": {Rules{Kind: api.SiteJekyll, Values: map[string]any{"site": map[string]any{"v": "3"}}}, map[string]string{
			"a.md": "{% include n.md who=\"me\" %} {{ site.v }}\n", "_includes/n.md": "Hello {{ include.who }}."}, "a.md", "Hello me. 3", 0},
		"what Liquid leaves as it is": {Rules{Kind: api.SiteJekyll}, map[string]string{
			"a.md": "{% raw %}\n```\n{%- include n.md -%}\n```\n{%endraw%}\n", "_includes/n.md": "No."}, "a.md", "{% raw %}\n```\n{%- include n.md -%}\n```\n{%endraw%}", 0},
		"what Liquid leaves as it is in code": {Rules{Kind: api.SiteJekyll}, map[string]string{
			"a.md": "```\n{% raw %}{{ x }}{% endraw %}\n```\n"}, "a.md", "```\n{{ x }}\n```", 0},
		"tags of Liquid on a site without it": {Rules{}, map[string]string{
			"a.md": "```\n{% raw %}{{ x }}{% endraw %}\n```\n"}, "a.md", "```\n{% raw %}{{ x }}{% endraw %}\n```", 0},
		"comments of MDX": {Rules{Kind: api.SiteMintlify}, map[string]string{
			"a.mdx": "export const v = '1';\n\n{/* the API's own */}\n\nIt is {v}. {/* a */ /* b\n*/} {/* a */ f() /* b */}\n"}, "a.mdx", "It is 1.", 1},
		"templates that code shows": {Rules{Kind: api.SiteMintlify}, map[string]string{
			"a.md": "Put `{{x}}` in:\n\n```text\n{{y}}\n```\n\n{{z}}\n"}, "a.md", "Put `{{x}}` in:\n\n```text\n{{y}}\n```\n\n{{z}}", 1},
		"Markdown that MyST includes": {Rules{Kind: api.SiteSphinx}, map[string]string{
			"docs/a.md": "```{include} ../b.md\n```\n", "b.md": "## One\n\nSee `x`.\n"}, "docs/a.md", "## One\n\nSee `x`.", 0},
		"a part of Markdown that MyST includes": {Rules{Kind: api.SiteSphinx}, map[string]string{
			"docs/a.md": "```{include} ../b.md\n:start-after: <!-- docs -->\n```\n", "b.md": "Badges.\n<!-- docs -->\nText.\n"}, "docs/a.md", "Text.", 0},
		"what kramdown has below": {Rules{Kind: api.SiteJekyll}, map[string]string{
			"a.md": "* TOC\n{:toc}\n\n## One\n{: #own .wide}\n\nText of HTML.\n{: .note}\n\n*[HTML]: Hyper\n\n```\n{: .shown}\n*[x]: y\n```\n"},
			"a.md", "## One {#own}\n\nText of HTML.\n\n```\n{: .shown}\n*[x]: y\n```", 0},
		"references to objects": {Rules{Kind: api.SiteMkDocs, Autorefs: true}, map[string]string{
			"a.md": "??? tip \"Own\"\n    See [File][a.b.File], [`a.C`][] and [x][y].\n\n[y]: z\n"},
			"a.md", "??? tip \"Own\"\n    See File, `a.C` and [x][y].\n\n[y]: z", 0},
		"icons of Material": {Rules{Kind: api.SiteMkDocs}, map[string]string{
			"a.md": "On :material-android: phones{ .x } | :material-check:{ .ok } | :octicons-x-16: `:material-android:`\n"},
			"a.md", "On  phones{ .x } | ✓ |  `:material-android:`", 0},
		"marks of VitePress": {Rules{Kind: api.SiteVitePress}, map[string]string{
			"a.md": "[[toc]]\n\n::: warning Own\nMore.\n:::\n\n```js\nlet a = 1 // [!code highlight]\n```\n"},
			"a.md", "::: warning Own\nMore.\n:::\n\n```js\nlet a = 1\n```", 0},
		"figures and parameters of Hugo": {Rules{Kind: api.SiteHugo, Values: map[string]any{"params": map[string]any{"version": "2"}}}, map[string]string{
			"a.md": "{{< figure src=\"/d.png\" title=\"The desk\" alt=\"A desk\" >}}\n\n{{% param \"Version\" %}}\n"}, "a.md", "![A desk](/d.png) The desk\n\n2", 0},
		"roles of extlinks, captions and titles of Sphinx": {Rules{Kind: api.SiteSphinx, Roles: map[string][2]string{"issue": {"https://a.test/%s", "issue %s"}, "gh": {"https://g.test/%s", ""}}}, map[string]string{
			"a.rst": "A\n=\n\nSee :issue:`4`, :issue:`that <5>`, :gh:`x`, :doc:`d/b`, :doc:`/c`, :doc:`gone`, :ref:`far`, :ref:`near <far>`, :ref:`in-md` and :ref:`gone`.\n\n" +
				".. code-block:: py\n   :caption: call.py\n\n   x = 1\n\n.. literalinclude:: y.py\n   :caption: The *y*\n\n.. table:: Sizes\n\n   = =\n   a b\n   = =\n",
			"d/b.rst": "B *page*\n========\n\n.. _far:\n\nFar away\n--------\n", "c.md": "# C page\n\n(in-md)=\n## In it\n", "y.py": "y = 2\n"},
			"a.rst", "# A\n\nSee [issue 4](https://a.test/4), [that](https://a.test/5), [https://g.test/x](https://g.test/x), [B page](d/b.rst), [C page](/c.rst), [gone](gone.rst), Far away, near, In it and gone.\n\n" +
				"**call.py**\n\n```py\nx = 1\n```\n\n**The *y***\n\n```py\ny = 2\n```\n\n**Sizes**\n\n|  |  |\n| --- | --- |\n| a | b |", 0},
		"titles in MyST": {Rules{Kind: api.SiteSphinx}, map[string]string{
			"a.md": "(top)=\n# A\n\n{doc}`c`, {ref}`far`, {ref}`top`, [](c.md), [](#far).\n\n```{code-block} py\n:caption: call.py\nx\n```\n", "c.md": "# C page\n\n(far)=\n## Far away\n"},
			"a.md", "# A\n\n[C page](c.rst), Far away, A, [C page](c.md), [Far away](#far).\n\n**call.py**\n\n```py\nx\n```", 0},
		"reStructuredText": {Rules{Kind: api.SiteSphinx, Values: map[string]any{"release": "2.1"}}, map[string]string{
			"a.rst": ".. _top:\n\nTitle\n=====\n\n.. a comment\n\nUse ``x`` of |release|, see :ref:`top` and `docs <https://a.dev>`_::\n\n    run\n\n.. include:: part.txt\n\n" +
				"Part\n----\n\n* one\n* two\n\n==== ====\nName Size\n==== ====\na    1\n==== ====\n\n.. automodule:: x\n",
			"part.txt": "Included **words**.\n"}, "a.rst",
			"# Title\n\nUse `x` of 2.1, see Title and [docs](https://a.dev):\n\n```\nrun\n```\n\nIncluded **words**.\n\n## Part\n\n- one\n- two\n\n| Name | Size |\n| --- | --- |\n| a | 1 |", 1},
		"AsciiDoc": {Rules{Kind: api.SiteAntora, Values: map[string]any{"c": map[string]any{"product": "Core"}}}, map[string]string{
			"c/modules/ROOT/pages/a.adoc": "= Use {product}\n:local: 5\n\n// hidden\nWait {local} s.\n\nifdef::internal[]\nSecret.\nendif::[]\n\n[#own]\n== First *part*\n\n* one\n** two\n\n" +
				"[source,bash]\n----\nrun <1>\n----\n\ninclude::partial$p.adoc[]\n\nSee xref:ops:b.adoc#x[that].\n\n|===\n|K |V\n\n|a |1\n|===\n",
			"c/modules/ROOT/partials/p.adoc": "Port 7443.\n"}, "c/modules/ROOT/pages/a.adoc",
			"# Use Core\n\nWait 5 s.\n\n## First **part** {#own}\n\n- one\n   - two\n\n```bash\nrun\n```\n\nPort 7443.\n\nSee [that](../../ops/pages/b.adoc#x).\n\n| K | V |\n| --- | --- |\n| a | 1 |", 0},
		"a notebook": {Rules{}, map[string]string{"a.ipynb": `{"cells": [{"cell_type": "markdown", "source": ["# T\n", "x"]}, {"cell_type": "code", "source": "f()", "outputs": [{"text": ["42\n"]}]}]}`},
			"a.ipynb", "# T\nx\n\n```python\nf()\n```\n\n```\n42\n```", 0},
	} {
		got := expanded(c.rules, c.files, c.page)
		if text := blanks.ReplaceAllString(strings.TrimSpace(string(got.Content)), "\n\n"); text != c.want {
			t.Errorf("%s:\n%q\nnot\n%q", name, text, c.want)
		}
		if len(got.Left) != c.left {
			t.Errorf("%s: left out %q", name, got.Left)
		}
	}
}

// Files outside of the repository are not read.
// What is for some readers stands on no page that others read, by whatever form it would be taken in.
func TestAPageTakesInNoTextThatItsReadersMayNotRead(t *testing.T) {
	const secret = "swordfish"
	for name, c := range map[string]struct {
		rules Rules
		page  string
		text  string
	}{
		"imports of MDX":               {Rules{Kind: api.SiteMintlify}, "a.mdx", "import Secret from './s.md'\n\n<Secret />\n"},
		"values of MDX":                {Rules{Kind: api.SiteMintlify}, "a.mdx", "import {word} from './v.mdx'\n\nIt is {word}.\n"},
		"snippets":                     {Rules{Kind: api.SiteMintlify}, "a.mdx", "<Snippet file=\"s.md\" />\n"},
		"MkDocs":                       {Rules{Kind: api.SiteMkDocs, Bases: []string{"."}}, "a.md", "--8<-- \"s.md\"\n\n{% include-markdown \"s.md\" %}\n"},
		"mdBook":                       {Rules{Kind: api.SiteMdBook}, "a.md", "{{#include s.md}}\n"},
		"VitePress":                    {Rules{Kind: api.SiteVitePress}, "a.md", "<!--@include: ./s.md-->\n\n<<< ./s.md\n"},
		"Jekyll":                       {Rules{Kind: api.SiteJekyll}, "a.md", "{% include_relative s.md %}\n"},
		"reStructuredText":             {Rules{Kind: api.SiteSphinx}, "a.rst", ".. include:: s.md\n\n.. literalinclude:: s.md\n\n.. include:: s.rst\n"},
		"MyST":                         {Rules{Kind: api.SiteSphinx}, "a.md", "```{include} s.md\n```\n\n```{literalinclude} s.rst\n```\n"},
		"AsciiDoc":                     {Rules{Kind: api.SiteAntora}, "a.adoc", "= A\n\ninclude::s.md[]\n\ninclude::s.adoc[]\n"},
		"a file between":               {Rules{Kind: api.SiteMdBook}, "a.md", "{{#include between.md}}\n"},
		"no front matter's usual form": {Rules{Kind: api.SiteMdBook}, "a.md", "{{#include late.md}}\n{{#include wrong.md}}\n"},
	} {
		for groups, reads := range map[string]bool{"": false, "partner": false, "staff, partner": false, "staff": true} {
			front := "---\ngroups: [" + groups + "]\n---\n\n"
			if groups == "" {
				front = ""
			}
			files := map[string]string{c.page: front + c.text, "between.md": "{{#include s.md}}\n",
				"s.md":          "---\ntitle: S\ngroups: [staff]\n---\n\nThe " + secret + ".\n",
				"v.mdx":         "---\ngroups: [staff]\n---\n\nexport const word = '" + secret + "'\n",
				"snippets/s.md": "---\ngroups: staff\n---\n\nThe " + secret + ".\n",
				"s.rst":         ":groups: staff\n\nThe " + secret + ".\n",
				"s.adoc":        ":page-groups: staff\n\nThe " + secret + ".\n",
				"late.md":       "\n---\ngroups: [staff]\n---\n\nThe " + secret + ".\n",
				"wrong.md":      "---\ntitle: a: b\ngroups: staff\n---\n\nThe " + secret + ".\n"}
			got := expanded(c.rules, files, c.page)
			if text := string(got.Content); strings.Contains(text, secret) != reads {
				t.Errorf("%s: readers of %q read the text: %t\n%s", name, groups, !reads, text)
			}
			if !reads && len(got.Left) == 0 && name != "values of MDX" && name != "snippets" {
				t.Errorf("%s: nobody is told", name)
			}
		}
	}
}

func TestFilesOutsideOfTheRepositoryAreNotRead(t *testing.T) {
	files := map[string]string{"docs/a.md": "Own.\n\n--8<-- \"p.md\"\n\n--8<-- \"../../etc/passwd\"\n\nEnd.\n", "docs/p.md": "Part {{ x }}.\n"}
	got := expanded(Rules{Kind: api.SiteMkDocs, Bases: []string{"docs"}, Values: map[string]any{"x": "of it"}}, files, "docs/a.md")
	if !strings.Contains(string(got.Content), "Part of it.") {
		t.Errorf("%q", got.Content)
	}
	if slices.ContainsFunc(got.Files, func(f string) bool { return strings.HasPrefix(f, "..") || strings.HasPrefix(f, "/") }) {
		t.Errorf("looked for %q", got.Files)
	}
}

// A file that doubles itself many times over is cut off at the bound.
func TestWhatIsMadeOfAPageIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("p%d.md", i)] = strings.Repeat(fmt.Sprintf("--8<-- \"p%d.md\"\n\n", i+1), 30)
	}
	files["p12.md"] = strings.Repeat("word ", 2000)
	if got := expanded(Rules{Kind: api.SiteMkDocs, Bases: []string{"."}}, files, "p0.md"); len(got.Content) > 4*mostMade || len(got.Left) == 0 {
		t.Errorf("%d bytes, %d left out", len(got.Content), len(got.Left))
	}
}

// Values that hold each other, or stand in many places, make no more of a page than files do, and a file is not read again
// for each place that names it.
func TestWhatValuesMakeOfAPageIsBounded(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	doubled, nested := ":a0: x\n", ".. |a0| replace:: x\n"
	for i := range 24 {
		doubled += fmt.Sprintf(":a%d: {a%d}{a%[2]d}\n", i+1, i)
	}
	for i := range 4 {
		nested += fmt.Sprintf(".. |a%d| replace:: %s\n", i+1, strings.Repeat(fmt.Sprintf("|a%d| ", i), 60))
	}
	long := strings.Repeat("word ", 20_000)
	target := "https://a.dev/" + strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		rules Rules
		page  string
	}{
		"attributes":     {Rules{}, "a.adoc\n= T\n" + doubled + "\n{a24}\n"},
		"substitutions":  {Rules{Kind: api.SiteSphinx}, "a.rst\n" + nested + "\n|a4|\n"},
		"targets":        {Rules{Kind: api.SiteSphinx}, "a.rst\n.. _it: " + target + "\n\n" + strings.Repeat("it_ ", 200) + "\n"},
		"references":     {Rules{Kind: api.SiteSphinx}, "a.rst\n.. _it: " + target + "\n\n" + strings.Repeat("`it`_ `that <it_>`_ ", 100) + "\n"},
		"titles":         {Rules{Kind: api.SiteSphinx}, "a.rst\n.. _it:\n\n" + long + "\n" + strings.Repeat("=", len(long)) + "\n\n" + strings.Repeat(":ref:`it` ", 200) + "\n"},
		"settings":       {Rules{Values: map[string]any{"v": long}}, "a.md\n" + strings.Repeat("{{ v }}\n", 200)},
		"constants":      {Rules{Kind: api.SiteMintlify}, "a.mdx\nexport const v = '" + long + "';\n\n" + strings.Repeat("{v}\n", 200)},
		"front matter":   {Rules{Kind: api.SiteHugo}, "a.md\n---\nparams: {v: \"" + long + "\"}\n---\n" + strings.Repeat("{{< param v >}}\n", 200)},
		"imported twice": {Rules{Kind: api.SiteMintlify}, "a.mdx\nimport A from './b.mdx';\n\n" + strings.Repeat("<A />\n\n", 5000)},
		"loops in loops": {Rules{Kind: api.SiteJekyll}, "a.md\n" + strings.Repeat("{% for i in (1..1000) %}", 5) + "x" + strings.Repeat("{% endfor %}", 5)},
		"texts in texts": {Rules{Kind: api.SiteJekyll}, "a.md\n{% assign s = 'aaaaaaaaaa' %}{% for i in (1..500) %}{% assign s = s | append: s %}{% endfor %}" + strings.Repeat("{{ s }}", 200)},
		"imports":        {Rules{Kind: api.SiteMintlify}, "a.mdx\n" + strings.Repeat("import A from './b.mdx';\n", 5000)},
		"tags":           {Rules{}, "a.adoc\ninclude::t.txt[tags=" + strings.Repeat("a;", 200) + "]\n"},
	} {
		file, content, _ := strings.Cut(c.page, "\n")
		reads := 0
		got := Page(&c.rules, file, []byte(content), func(name string) ([]byte, error) {
			switch reads++; name {
			case "b.mdx":
				return []byte("Part.\n"), nil
			case "t.txt":
				return []byte("tag::a[]\n" + long + "\nend::a[]\n"), nil
			}
			return nil, fs.ErrNotExist
		}, nil)
		if len(got.Content) > 2*mostMade || reads > 2*mostTaken || len(got.Left) == 0 {
			t.Errorf("%s: %d bytes of %d, %d reads, %d left out", name, len(got.Content), len(content), reads, len(got.Left))
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, seed := range []string{"A\n=\n\n.. note::\n   x\n\n* a\n\n  b\n", "= T\n\n|===\n|a |b\n|===\n", "import A from './b.mdx'\n\n<A x={1}>{y}</A>", "{{#include a:1:2}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, name := range []string{"a.rst", "a.adoc", "a.mdx", "a.md", "a.org", "a.ipynb"} {
			for _, kind := range []api.SiteKind{api.SiteMkDocs, api.SiteVitePress, api.SiteMdBook, api.SiteSphinx, api.SiteJekyll} {
				expanded(Rules{Kind: kind, Bases: []string{"."}}, map[string]string{name: src, "b.mdx": src}, name)
			}
		}
	})
}

// What goes through long lists and texts counts by their length, so that a loop over them ends.
func TestLongValuesOfLiquidCountByTheirLength(t *testing.T) {
	list := make([]any, 5000)
	for i := range list {
		list[i] = map[string]any{"a": "x"}
	}
	values := map[string]any{"site": map[string]any{"list": list, "text": strings.Repeat("a", 5000)}}
	for _, of := range []string{"site.list | where: 'a', 'x'", "site.text | upcase", "site.list == 'x'", "site.list contains site.text"} {
		r := &liquidReader{expander: &expander{Rules: &Rules{Values: values}}, scopes: []map[string]any{{}}}
		times := 0
		for err := error(nil); err == nil && times < mostSteps; times++ {
			if strings.Contains(of, "|") {
				_, err = r.eval(of)
			} else {
				_, err = r.holds(of)
			}
		}
		if most := mostSteps*perStep/len(list) + 1; times > most {
			t.Errorf("%s is evaluated %d times, %d at most", of, times, most)
		}
	}
}
