package page_test

import (
	"strings"
	"testing"

	"docent/search/page"
)

// What readers and programs get of an HTML page is Markdown, without what stands on every page, wherever it was cut.
func TestAPartOfAnHTMLPageIsShownAsMarkdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, html, want string }{
		{"a page", `<!doctype html><html><head><title>Old</title><script>ran()</script><style>p{}</style></head><body>
<header><a href="/">Site</a><button>Dark</button></header><nav><ul><li>Guide</li></ul></nav>
<main><h1>Old</h1><p>Run <code>old --fast</code>, see <a href="/new.html#a">new</a>.</p></main><footer>Imprint</footer></body></html>`,
			"# Old\n\nRun `old --fast`, see [new](/new.html#a)."},
		{"a section", `<h2 id="eggs">Eggs</h2><p>They lay <b>eggs</b>.</p><pre><code class="language-sh">lay
  eggs</code></pre></main></body></html>`, "## Eggs\n\nThey lay **eggs**.\n\n```sh\nlay\n  eggs\n```"},
		{"a table", `<h2>T</h2><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>`,
			"## T\n\n| a | b |\n|---|---|\n| 1 | 2 |"},
		{"what is hidden", `<p>seen</p><p hidden>unseen</p><nav>a<button>b</button></nav><!-- note -->`, "seen"},
		{"text", "a line", "a line"},
	} {
		if got := strings.TrimSpace(string(page.Markdown([]byte(c.html)))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	deep := strings.Repeat("<div>", 100_000) + "end"
	if got := string(page.Markdown([]byte(deep))); !strings.Contains(got, "end") {
		t.Error("the text within many elements is lost")
	}
}
