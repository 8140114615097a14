package markup

import (
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// repeated are forms whose repetition once took time with the square of their number, or might.
var repeated = []struct{ before, again, then, after string }{
	{again: "- ", after: "x"}, {again: "* ", after: "x"}, {again: "- * ", after: "x"}, {again: "> - ", after: "x"},
	{again: "1. ", after: "x"}, {again: "- ", then: "x"},
	{again: "![x", then: "](a)"}, {again: "[x", then: "](a)"}, {again: "[x](a ("}, {again: "[x](<"}, {again: "[x](a \""},
	{again: "[x](("}, {again: "[", then: "]"},
	{again: "\n- $$"}, {again: "$$\na\n"}, {again: "{%x"}, {again: "{:"}, {again: "{#a"}, {again: "{{x"}, {again: "{"},
	{again: "{", then: "}"}, {again: "{x\n\n"},
	{again: "`x``y"}, {again: "``\n`"}, {again: "~~~x\n"}, {again: "<a b="}, {again: "<a b='\""}, {again: "<!--"},
	{again: "<pre>"}, {again: "<b>", then: "</b>"}, {again: "<a {"},
	{again: "# x\n"}, {again: "x\n===\n"}, {again: "**x_*"}, {again: "\\ "}, {again: "&amp"}, {again: "|-|\n"},
	{again: "[a]: b\n"}, {again: "[^a]: b\n\n"}, {again: "import x from 'y'\n"},
	{again: "export const a = {\n"}, {again: "!!! a\n    "}, {again: ":::a\n"}, {again: "> "}, {again: ">\n- "},
	{again: "<script>"}, {again: "http://a("}, {again: "/*"}, {again: "'`"},
	{again: "{{< comment >}}"}, {again: "{% comment %}"}, {again: "{% raw %}"}, {before: "# ", again: "{{< comment >}}"},
	{again: "{! "}, {again: "{/* "}, {again: "{/**/}{/* "}, {again: "{* a.b"}, {again: "--8<--\n"},
	{again: "[x]({{< ref a >}}"}, {again: "{{< a b="}, {again: "{{< comment >}}/comment"}, {again: "{% raw %}endraw"},
}

func TestTwiceTheTextIsTwiceTheWork(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	t.Parallel()
	for _, c := range repeated {
		for _, name := range []string{"a.md", "a.mdx", "a.rst", "a.adoc"} {
			work(t, name, c.before, c.again, c.then, c.after)
		}
	}
}

// FuzzWork looks for forms whose work grows faster than their number.
func FuzzWork(f *testing.F) {
	need.NoRace(f, "one goroutine computes for long")
	for _, c := range repeated {
		f.Add(c.before, c.again, c.then, c.after, false)
		f.Add(c.before, c.again, c.then, c.after, true)
	}
	f.Fuzz(func(t *testing.T, before, again, then, after string, mdx bool) {
		if len(before)+len(again)+len(then)+len(after) > 64 {
			return
		}
		name := "a.md"
		if mdx {
			name = "a.mdx"
		}
		work(t, name, before, again, then, after)
	})
}

// work holds the steps for twice the text against those for the text. What is looked at some thousand bytes ahead at
// most counts as linear: the text is long enough for that to show.
func work(t *testing.T, name, before, again, then, after string) {
	t.Helper()
	steps := func(n int) int {
		_, count := parse(name, []byte(before+strings.Repeat(again, n)+strings.Repeat(then, n)+after))
		return count
	}
	n := max(1500, 16<<10/max(1, len(again)+len(then))) // longer than what is looked at ahead
	if once, twice := steps(n), steps(2*n); twice > 3*once+20_000 {
		t.Errorf("%s: %q %q×%d %q×%d %q: %d steps, and %d for twice the text", name, before, again, n, then, n, after, once,
			twice)
	}
}
