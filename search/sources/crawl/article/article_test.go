package article

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func read(t *testing.T, source string) (Article, error) {
	t.Helper()
	at, _ := url.Parse("https://docs.example.com/guide/start")
	return Read([]byte(source), at, func(u *url.URL) bool {
		return u.Host == "docs.example.com" && strings.HasPrefix(u.Path, "/guide")
	})
}

// The text of a page is what its readers read, as the generators of documentation write it.
func TestPagesOfGeneratorsAreReadAsTheirReadersSeeThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, html, title, want string }{
		{"Docusaurus", `<html lang="en"><head><title>Set up | Acme</title></head><body><nav class="navbar">Acme Docs</nav><aside><ul><li><a href="/guide/x">X</a></li></ul></aside>
			<main><article><nav class="theme-doc-breadcrumbs" aria-label="Breadcrumbs"><ul><li><a aria-label="Home page" href="/"></a></li><li><span>Guides</span></li><li><span>Set up</span></li></ul></nav>
			<div class="theme-doc-markdown markdown"><header><h1>Set up</h1></header><p>Install <code>acme</code>.</p>
			<h2 class="anchor anchorWithStickyNavbar_x" id="first-step">First step<a href="#first-step" class="hash-link" aria-label="Direct link to First step" title="Direct link to First step">&#8203;</a></h2>
			<div class="theme-admonition theme-admonition-warning alert alert--warning"><div class="admonitionHeading_x"><span class="admonitionIcon_x"><svg></svg></span>warning</div><div class="admonitionContent_x"><p>Mind this.</p></div></div>
			<div class="theme-tabs-container tabs-container"><ul role="tablist" class="tabs"><li role="tab">npm</li><li role="tab">Yarn</li></ul><div class="margin-top--md"><div role="tabpanel"><p>One.</p></div><div role="tabpanel" hidden=""><p>Two.</p></div></div></div>
			<div class="language-bash codeBlockContainer_x theme-code-block"><div class="codeBlockTitle_x">run.sh</div><div class="codeBlockContent_x"><pre class="prism-code language-bash"><code class="codeBlockLines_x"><span class="token-line"><span class="token plain">npm install</span><br></span><span class="token-line" style="x">  acme --save<br></span></code></pre><div class="buttonGroup__x"><button>Copy</button></div></div></div></div>
			<footer class="theme-doc-footer"><a class="theme-edit-this-page" href="x">Edit this page</a></footer></article><nav class="pagination-nav"><a>Next</a></nav></main><footer>© Acme</footer></body></html>`,
			"Set up", "Install `acme`.\n\n## First step {#first-step}\n\n> **warning**\n> \n> Mind this.\n\n**npm**\n\nOne.\n\n**Yarn**\n\nTwo.\n\nrun.sh\n\n```bash\nnpm install\n  acme --save\n```\n"},
		{"VitePress", `<body><div class="VPDoc"><main><div class="vp-doc"><h1 id="set-up" tabindex="-1">Set up <a class="header-anchor" href="#set-up" aria-label="Permalink to &quot;Set up&quot;">&#8203;</a></h1>
			<h2 id="_1-first" tabindex="-1">1. First <a class="header-anchor" href="#_1-first">&#8203;</a></h2><div class="tip custom-block"><p class="custom-block-title">TIP</p><p>Do it.</p></div>
			<div class="language-js vp-adaptive-theme"><button title="Copy Code" class="copy"></button><span class="lang">js</span><pre class="shiki vp-code"><code><span class="line"><span>const a</span></span>
<span class="line"><span>  = 1</span></span></code></pre></div>
			<div class="vp-code-group"><div class="tabs"><input type="radio"><label>npm</label><input type="radio"><label>pnpm</label></div><div class="blocks"><div class="language-sh active"><pre><code>npm i</code></pre></div><div class="language-sh"><pre><code>pnpm i</code></pre></div></div></div>
			<details class="details custom-block"><summary>More</summary><p>Folded.</p></details></div></main></div></body>`,
			"Set up", "## 1. First {#_1-first}\n\n> **TIP**\n> \n> Do it.\n\n```js\nconst a\n  = 1\n```\n\n**npm**\n\n```sh\nnpm i\n```\n\n**pnpm**\n\n```sh\npnpm i\n```\n\n**More**\n\nFolded.\n"},
		{"Material for MkDocs", `<body><main class="md-main"><div class="md-content"><article class="md-content__inner md-typeset"><a href="x" title="Edit this page" class="md-content__button md-icon"><svg/></a><h1 id="set-up">Set up<a class="headerlink" href="#set-up" title="Permanent link">&para;</a></h1>
			<div class="admonition note"><p class="admonition-title">Note</p><p>Read.</p></div><div class="tabbed-set tabbed-alternate"><input type="radio"><input type="radio"><div class="tabbed-labels"><label>C</label><label>Go</label></div><div class="tabbed-content"><div class="tabbed-block"><p>In C.</p></div><div class="tabbed-block"><p>In Go.</p></div></div></div>
			<div class="highlight"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1
2</pre></div></td><td class="code"><div><pre><code class="language-py">a = 1
b = 2</code></pre></div></td></tr></table></div><dl><dt>Term</dt><dd><p>What it is.</p></dd></dl></article></div></main></body>`,
			"Set up", "> **Note**\n> \n> Read.\n\n**C**\n\nIn C.\n\n**Go**\n\nIn Go.\n\n```py\na = 1\nb = 2\n```\n\n**Term**\n\nWhat it is.\n"},
		{"Sphinx", `<body><div class="document"><div class="documentwrapper"><div class="body" role="main"><section id="set-up"><h1>Set up<a class="headerlink" href="#set-up" title="Link to this heading">¶</a></h1><section id="first"><h2>First<a class="headerlink" href="#first">¶</a></h2>
			<div class="highlight-python3 notranslate"><div class="highlight"><pre><span></span><span class="kn">import</span> os
</pre></div></div><dl class="py function"><dt class="sig sig-object py" id="os.getenv"><span class="sig-name">os.getenv</span>(<em>key</em>)<a class="headerlink" href="#os.getenv">¶</a></dt><dd><p>Reads it.</p></dd></dl></section></section></div></div></div></body>`,
			"Set up", "## First {#first}\n\n```python3\nimport os\n```\n\n#### `os.getenv(key)` {#os.getenv}\n\nReads it.\n"},
		{"docutils with a table of contents", `<body><header><h1><a href="/">Acme</a></h1></header><div role="main"><section id="set-up"><h1>Set up<a class="headerlink" href="#set-up">¶</a></h1><section id="first">
			<h2><a class="toc-backref" href="#id2" role="doc-backlink">First</a><a class="headerlink" href="#first">¶</a></h2><p>Text.</p></section></section></div></body>`,
			"Set up", "## First {#first}\n\nText.\n"},
		{"a list of what follows", `<body><main><h1>Set up</h1><h2 id="contents">Table of Contents</h2><ol id="markdown-toc"><li><a href="#a">One</a><ol><li><a href="#b">Two</a></li></ol></li><li><a href="#c">Three</a></li></ol>
			<p>Begin here.</p><h2 id="a">One</h2><p>1</p><h3 id="b">Two</h3><p>2</p><h2 id="c">Three</h2><p>3</p><p>One of</p><ul><li><a href="#d">D</a></li><li><a href="#e">E</a></li><li><a href="#f">F</a></li></ul><p id="d">Run <code><span>copy</span></code>.</p><p id="e">E</p><p id="f">F</p></main></body>`,
			"Set up", "Begin here.\n\n## One {#a}\n\n1\n\n### Two {#b}\n\n2\n\n## Three {#c}\n\n3\n\nOne of\n\n- [D](#d)\n- [E](#e)\n- [F](#f)\n\nRun `copy`.\n\nE\n\nF\n"},
		{"mdBook without a title in the text", `<html><head><title>Examples - The Book</title></head><body><div id="menu-bar"><h1 class="menu-title">The Book</h1></div><div id="content"><main><p>One.</p></main></div></body></html>`,
			"Examples", "One.\n"},
		{"code in a note", `<main><h1>Set up</h1><div class="admonition note"><p class="admonition-title">Note</p><p>Run</p><pre>a

# b
c</pre><ul><li><p>or</p><pre>d
# e</pre></li></ul></div><ul><li><div class="admonition tip"><pre>f
# g</pre></div></li></ul></main>`,
			"Set up", "> **Note**\n> \n> Run\n> \n> ```\n> a\n> \n> # b\n> c\n> ```\n> \n> - or\n>   \n>   ```\n>   d\n>   # e\n>   ```\n\n- > **Tip**\n  > \n  > ```\n  > f\n  > # g\n  > ```\n"},
		{"Starlight", `<body><main><div class="content-panel"><h1 id="_top">Set up</h1></div><div class="content-panel"><div class="sl-markdown-content"><div class="sl-heading-wrapper level-h2"><h2 id="first">First</h2><a class="sl-anchor-link" href="#first"><span class="sr-only">Section titled “First”</span></a></div>
			<aside aria-label="Tip" class="starlight-aside starlight-aside--tip"><p class="starlight-aside__title" aria-hidden="true"><svg/>Tip</p><div class="starlight-aside__content"><p>Do.</p></div></aside>
			<div class="expressive-code"><figure class="frame"><figcaption class="header"><span class="title">a.js</span></figcaption><pre data-language="js"><code><div class="ec-line"><div class="code">let a</div></div><div class="ec-line"><div class="code">  = 1</div></div></code></pre><div class="copy"><button></button></div></figure></div>
			<starlight-tabs><div class="tablist-wrapper"><ul role="tablist"><li role="presentation"><a role="tab" href="#tab-panel-0" id="tab-0">A</a></li><li><a role="tab" href="#tab-panel-1" id="tab-1">B</a></li></ul></div><div id="tab-panel-0" aria-labelledby="tab-0" role="tabpanel"><p>Of A.</p></div><div id="tab-panel-1" role="tabpanel" hidden><p>Of B.</p></div></starlight-tabs></div></div></main></body>`,
			"Set up", "## First {#first}\n\n> **Tip**\n> \n> Do.\n\na.js\n\n```js\nlet a\n  = 1\n```\n\n**A**\n\nOf A.\n\n**B**\n\nOf B.\n"},
		{"a page without any of them", `<body><div id="menu"><a href="/a">a</a><a href="/b">b</a></div><div class="story"><h1>Set up</h1>` + strings.Repeat("<p>A long text, with commas, that a reader of this page reads from its beginning to its very end.</p>", 5) + `</div><div id="footer">© Acme</div></body>`,
			"Set up", strings.TrimSuffix(strings.Repeat("A long text, with commas, that a reader of this page reads from its beginning to its very end.\n\n", 5), "\n")},
		{"tables and pictures", `<main><h1>Set up</h1><table><thead><tr><th>Flag</th><th>What</th></tr></thead><tbody><tr><td><code>-v</code></td><td><p>More.</p><p>Much | more.</p></td></tr><tr><td>-q</td><td><ul><li>a</li><li>b</li></ul></td></tr></tbody></table>
			<img src="/i.png" alt="The page"><img src="/deco.svg"><img alt="inline" src="data:image/png;base64,xx"></main>`,
			"Set up", "| Flag | What |\n|---|---|\n| `-v` | More.  <br />Much \\| more. |\n| -q | • a  <br />• b |\n\n![The page](https://docs.example.com/i.png)inline\n"},
		{"links and lists", `<main><h1>Set up</h1><ol><li><p>Get <a href="../guide/get?x=1#a">it</a>.</p><pre><code class="language-sh">a
  b</code></pre></li><li><a href="https://x.example/y">Run</a> <a href="javascript:x()">it</a> <a href="#below">below</a> <a href="/other">o</a></li></ol><p>1 * 2 &lt;b&gt; _x_ {y}</p></main>`,
			"Set up", "1. Get [it](/guide/get?x=1#a).\n   \n   ```sh\n   a\n     b\n   ```\n2. [Run](https://x.example/y) it [below](#below) [o](https://docs.example.com/other)\n\n1 * 2 &lt;b&gt; \\_x_ {y}\n"},
	} {
		got, err := read(t, c.html)
		if err != nil || got.Title != c.title || string(got.Markdown) != c.want {
			t.Errorf("%s: %q, %v\n%s\nwant\n%s\n%q", c.name, got.Title, err, got.Markdown, c.want, got.Markdown)
		}
	}
}

func TestAPageSaysWhatItIsCalledAndWhereItBelongs(t *testing.T) {
	t.Parallel()
	got, err := read(t, `<html lang="de-AT"><head><title>Los | Acme</title><base href="/guide/"><meta name="description" content="Wie es  geht.">
		<link rel="alternate canonical" href="start?x=1#y"><meta name="ROBOTS" content="noindex, nofollow"></head>
		<body><nav aria-label="breadcrumb"><ol><li><a href="/">Home</a></li><li><a href="/guide">Anleitung /</a></li><li>Los</li></ol></nav><main><h2>Los</h2><p>Text <a href="a#b">a</a> <a href="a">b</a><a href="c" rel="nofollow">c</a></p></main></body></html>`)
	if err != nil || got.Title != "Los" || got.Language != "de-AT" || got.Description != "Wie es geht." ||
		!slices.Equal(got.Trail, []string{"Anleitung"}) || got.Canonical != "https://docs.example.com/guide/start?x=1" ||
		!got.NoIndex || !got.NoFollow || !slices.Equal(got.Links, []string{"https://docs.example.com/", "https://docs.example.com/guide", "https://docs.example.com/guide/a"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLabelsThatArePanelsOfOtherTabsAreNoFault(t *testing.T) {
	t.Parallel()
	got, err := read(t, `<main><h1>N</h1><p>Some text.</p><div class="tabbed-set"><div class="blocks"><p>X</p></div><div class="tabs blocks">
		<label>L1</label></div><div class="tabs"><label>L2</label></div></div></main>`)
	if err != nil || !strings.Contains(string(got.Markdown), "Some text.") {
		t.Errorf("%s, %v", got.Markdown, err)
	}
}

// The work is counted: what is looked at in search of panels grows with the page, not with its third power.
func TestTabsWithoutIdsTakeWorkInProportionToThePage(t *testing.T) {
	t.Parallel()
	page := func(n int) *html.Node {
		doc, err := html.Parse(strings.NewReader("<main>" + strings.Repeat("<ul role=tablist><li role=tab>a<li role=tab>b</ul>", n) +
			strings.Repeat("<div role=tabpanel><p>x</div>", n) + "</main>"))
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	for _, n := range []int{100, 1000, 10_000} {
		doc := page(n)
		nodes, left := 0, 0
		for range doc.Descendants() {
			nodes++
		}
		left = maxPanelSteps + maxStepsEach*nodes
		for _, list := range all(doc, tabLists) {
			panelsOf(list, all(list, tabElements), doc, nil, &left)
		}
		if left < -n {
			t.Errorf("%d lists: %d steps beyond what they may take", n, -left)
		}
	}
}

func TestAWideCellTakesNoMoreThanItsPage(t *testing.T) {
	t.Parallel()
	got, err := read(t, "<table><tr><td colspan=40000000>a</td></tr></table>")
	if err != nil || len(got.Markdown) > 20_000 || !strings.Contains(string(got.Markdown), "a") {
		t.Errorf("%d bytes, %v", len(got.Markdown), err)
	}
}

// Nothing in a page makes its reading fail, or gives its headings anchors that it does not have.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"<main><h2 id=\"a{b}\">x</h2>\ue000616263\ue001", "<table><tr><td><table><tr><td><pre>x", "<dl><dt><dd><dt id=x class=sig>",
		"<ul role=tablist><li role=tab>a</ul><div role=tabpanel>b", "<pre><pre>x</pre>", "<details><summary><details><summary>",
		"<div class=tabbed-set><div class=blocks><p>X</p></div><div class='tabs blocks'><label>L1</label></div><div class=tabs><label>L2",
		"<table><tr><td colspan=40000000 rowspan=9>a", "<aside><aside>", "<h1><h1>", "<a href=#x><h2>y</h2></a>", "<div class=admonition><div class=admonition>x"} {
		f.Add(s)
	}
	at, _ := url.Parse("https://docs.example.com/")
	f.Fuzz(func(t *testing.T, source string) {
		a, err := Read(Decode([]byte(source), "text/html"), at, func(*url.URL) bool { return true })
		if err == nil && a.Words == 0 {
			t.Error("a page without words is read")
		}
		if most := 300_000 + 50*len(source); len(a.Markdown) > most {
			t.Errorf("%d bytes were made of %d", len(a.Markdown), len(source))
		}
		if strings.ContainsAny(string(a.Markdown), "\ue000\ue001") {
			t.Errorf("%q", a.Markdown)
		}
	})
}

// The link to edit a page names its file, however a generator says it.
func TestTheLinkToEditAPageIsFound(t *testing.T) {
	t.Parallel()
	const file = "https://github.com/acme/docs/edit/main/docs/a.md"
	for link, want := range map[string]string{
		`<a class="theme-edit-this-page" href="` + file + `">✎</a>`:                                        file,
		`<a rel="edit" title="Edit this page" class="md-content__button md-icon" href="` + file + `"></a>`: file,
		`<a class="VPLink link edit-link-button" href="` + file + `">Verbessern</a>`:                       file,
		`<a href="` + file + `" rel="nofollow">Edit this page on GitHub</a>`:                               file,
		`<a aria-label="Suggest an edit" href="` + file + `"><i></i></a>`:                                  file,
		`<a href="../_sources/start.rst.txt" rel="nofollow">View page source</a>`:                          "https://docs.example.com/_sources/start.rst.txt",
		`<p>See <a href="https://github.com/acme/docs/blob/main/lib/x.go">the code</a></p>`:                "",
		`<a href="https://example.com/improve">Improve this page</a>`:                                      "",
	} {
		a, err := read(t, `<main><h1>A</h1><p>Text of it.</p>`+link+`</main>`)
		if err != nil || a.Edit != want {
			t.Errorf("%s: %q, %v", link, a.Edit, err)
		}
	}
}

// A link that leads editors to the page's file is no text of the page, however its generator writes it. A link in a
// sentence, or to another file, is.
func TestTheLinkToEditAPageIsNoText(t *testing.T) {
	t.Parallel()
	const file = "https://codeberg.org/acme/docs/_edit/main/guide/start.md"
	for _, c := range []struct{ link, want string }{
		{`<a rel="edit" href="` + file + `">Edit</a>`, "Text.\n"},
		{`<p><a href="` + file + `" title="Edit this page">✏️ Edit</a></p>`, "Text.\n"},
		{`<ul><li><a href="` + file + `">Edit this page on Codeberg</a></li></ul>`, "Text.\n"},
		{`<div class="tools"><a class="edit" href="` + file + `">Improve it</a></div>`, "Text.\n"},
		{`<p>Then <a href="` + file + `">edit the file</a> by hand.</p>`, "Then [edit the file](" + file + ") by hand.\n\nText.\n"},
		{`<p><a href="https://github.com/acme/app/blob/main/demo.go">demo.go</a></p>`, "[demo.go](https://github.com/acme/app/blob/main/demo.go)\n\nText.\n"},
	} {
		a, err := read(t, `<main><h1>Start</h1>`+c.link+`<p>Text.</p></main>`)
		if err != nil || string(a.Markdown) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.link, a.Markdown, err, c.want)
		}
	}
}
