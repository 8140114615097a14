package cli

import (
	"os"
	"strings"
	"testing"
)

// shown is Markdown as a terminal shows it, with its codes in brackets.
func shown(t *testing.T, parts ...string) string {
	t.Helper()
	var b strings.Builder
	m := &Markdown{w: &b}
	for _, p := range parts {
		if _, err := m.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), "\x1b", "")
}

func TestMarkdownIsShownAsATerminalCan(t *testing.T) {
	for src, want := range map[string]string{
		"Run `docent serve` **now**, see [Start](https://x.example/s).\n": "Run [36mdocent serve[39m [1mnow[22m, see [4mStart[24m (https://x.example/s).\n",
		"# Head\nText\nand more\n":                                        "[1mHead[22m\nText\nand more\n",
		"1. one\n2. two\n   - in\n":                                       "1. one\n2. two\n   • in\n",
		"```bash\na  b\n\nc\n```\n":                                       "    [36ma  b[39m\n\n    [36mc[39m\n",
		"> said\n> so\n":                                                  "│ said\n│ so\n",
		"| a | bb |\n| --- | --- |\n| ccc | `d` |\n":                      "[1ma[22m    [1mbb[22m\nccc  [36md[39m\n",
		"a\x1b[2Jb \x07c\n":                                               "a[2Jb c\n",
		"snake\\_case, a &amp; b, `c\\_d &amp;`\n":                        "snake_case, a & b, [36mc\\_d &amp;[39m\n",
		"\\&amp; &#27;[2J &lt;b&gt; &#x9b;2J\n":                           "&amp; [2J <b> 2J\n",
		"First.\n\nSecond.\n\n\n- a\n- b\n\n  more\n\n":                   "First.\n\nSecond.\n\n• a\n\n• b\n\n  more\n",
	} {
		if got := shown(t, src); got != want {
			t.Errorf("%q is shown as\n%q, not\n%q", src, got, want)
		}
		if got := shown(t, strings.Split(src, "")...); got != want {
			t.Errorf("%q, a character at a time, is shown as\n%q", src, got)
		}
	}
}

// What is whole is shown before what follows has come.
func TestABlockIsShownWhenItIsWhole(t *testing.T) {
	var b strings.Builder
	m := &Markdown{w: &b}
	for _, step := range []struct{ write, shown string }{
		{"First", ""}, {".\n\n", ""}, {"S", "First.\n"}, {"econd.\n\n  more", "First.\n"},
		{"\n\n```\ncode\n\nT", "First.\n\nSecond.\n\nmore\n"},
	} {
		_, _ = m.Write([]byte(step.write))
		if b.String() != step.shown {
			t.Errorf("after %q there is %q", step.write, b.String())
		}
	}
	long := strings.Repeat("x", maxBlock+2)
	if got := shown(t, long, " end"); got != long+"\n\nend\n" && got != long+"\n\n end\n" {
		t.Errorf("a long block is shown in %d bytes", len(got))
	}
}

// Where no person looks, nothing is added.
func TestNoColorsWithoutATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m := NewMarkdown(file)
	if _, err := m.Write([]byte("**a**")); err != nil || m.Close() != nil || WriteDiff(file, "+b\n") != nil {
		t.Error(err)
	}
	OpenInBrowser(file, "https://x.example")
	if got, _ := os.ReadFile(file.Name()); string(got) != "**a**+b\n" {
		t.Errorf("it holds %q", got)
	}
}

func TestADiffHasColors(t *testing.T) {
	got := strings.ReplaceAll(coloredDiff("--- a\n+++ b\n@@ -1 +1 @@\n-o\x1b[2J\n+n\n c"), "\x1b", "")
	if want := "[1m--- a[0m\n[1m+++ b[0m\n[36m@@ -1 +1 @@[0m\n[31m-o[2J[0m\n[32m+n[0m\n c"; got != want {
		t.Errorf("%q", got)
	}
}
