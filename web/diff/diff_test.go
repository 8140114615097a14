package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"docent/internal/testing/growth"
	"docent/web/diff"
)

// shown is a line as a page marks it up: what changed stands in brackets.
func shown(l diff.Line) string {
	if l.Pieces == nil {
		return l.Text
	}
	var b strings.Builder
	for _, p := range l.Pieces {
		if p.Changed {
			b.WriteString("[" + p.Text + "]")
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestLinesBearTheNumbersOfTheirVersions(t *testing.T) {
	t.Parallel()
	hunks := diff.Read("@@ -10,3 +12,3 @@ Title\n same <i>\n-old A\n+new <B>\r\n after\n" +
		"@@ -0,0 +1 @@\n+text\n\\ No newline at end of file\n")
	if len(hunks) != 2 || hunks[0].Header != "@@ -10,3 +12,3 @@ Title" {
		t.Fatalf("%+v", hunks)
	}
	var got []string
	for _, h := range hunks {
		for _, l := range h.Lines {
			got = append(got, fmt.Sprintf("%s %d %d %q", l.Kind, l.Old, l.New, l.Text))
		}
	}
	want := []string{`same 10 12 "same <i>"`, `del 11 0 "old A"`, `add 0 13 "new <B>"`, `same 12 14 "after"`,
		`add 0 1 "text"`, `note 0 0 " No newline at end of file"`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestTheWordsThatChangedAreMarked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, marked, as string }{
		{"Please log in to the site.", "Please sign in to the site.", "Please [log] in to the site.",
			"Please [sign] in to the site."},
		{"one two three four", "one 2, 3 three four", "one [two] three four", "one [2, 3] three four"},
		{"the price is 10 per seat and month", "the price is 12 per seat and month",
			"the price is [10] per seat and month", "the price is [12] per seat and month"},
		{"the word is long enough here", "the word is quite long enough here", "the word is long enough here",
			"the word is[ quite] long enough here"},
		{"東京都に住む人", "東京に住む人", "東京[都]に住む人", "東京に住む人"},
		{"completely different words stand here", "nothing of that kind remained", "completely different words stand here",
			"nothing of that kind remained"},
		{"---", "***", "---", "***"},
		{"bad \xff\xfe bytes stay as they are", "bad \xff bytes stay as they are", "bad \xff[\xfe] bytes stay as they are",
			"bad \xff bytes stay as they are"},
	} {
		h := diff.Read("@@ -1 +1 @@\n-" + c.old + "\n+" + c.new + "\n")
		if got := shown(h[0].Lines[0]); got != c.marked {
			t.Errorf("%q became %q, want %q", c.old, got, c.marked)
		}
		if got := shown(h[0].Lines[1]); got != c.as {
			t.Errorf("%q became %q, want %q", c.new, got, c.as)
		}
	}
}

func TestALineFindsItsCounterpartAmongOthers(t *testing.T) {
	t.Parallel()
	h := diff.Read("@@ -1,3 +1,4 @@\n-Start the server with docent serve.\n-This line is gone.\n" +
		"-Stop the server with Ctrl-C.\n+## A new heading\n+Start the server with docent run.\n" +
		"+Stop the server with SIGTERM.\n+And one more.\n same\n")[0]
	var got []string
	for _, r := range h.Rows() {
		text := func(l *diff.Line) string {
			if l == nil {
				return ""
			}
			return shown(*l)
		}
		got = append(got, text(r.Old)+" | "+text(r.New))
	}
	want := []string{" | ## A new heading",
		"Start the server with docent [serve]. | Start the server with docent [run].",
		"This line is gone. | ",
		"Stop the server with [Ctrl-C]. | Stop the server with [SIGTERM].",
		" | And one more.", "same | same"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestADiffIsCutIntoItsFiles(t *testing.T) {
	t.Parallel()
	files := diff.Files("--- a/a b.md\n+++ b/a b.md\n@@ -1,2 +1,2 @@\n--- a/not.md\n+++ b/not.md\n same\n" +
		"\\ No newline at end of file\n--- /dev/null\n+++ b/new.md\n@@ -0,0 +1 @@\n+x\n" +
		"rename from old.md\nrename to to.md\n--- a/old.md\n+++ b/to.md\n@@ -1 +1 @@\n-x\n+y\n" +
		"--- a/gone.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n# 3 more files are not shown\n")
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprintf("%s<%s +%d -%d %q", f.Path, f.From, f.Added, f.Deleted, f.Unified))
	}
	want := []string{
		`a b.md< +1 -1 "@@ -1,2 +1,2 @@\n--- a/not.md\n+++ b/not.md\n same\n\\ No newline at end of file\n"`,
		`new.md< +1 -0 "@@ -0,0 +1 @@\n+x\n"`, `to.md<old.md +1 -1 "@@ -1 +1 @@\n-x\n+y\n"`,
		`gone.md< +0 -1 "@@ -1 +0,0 @@\n-x\n"`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if n := len(diff.Files("nothing\n@@ -1 +1 @@\n-x\n+y\n")); n != 0 {
		t.Errorf("%d files in what names none", n)
	}
}

// Whatever is read, no line is lost, none is shown twice, and the pieces of a line are its text.
func FuzzRead(f *testing.F) {
	f.Add("@@ -1 +1 @@\n-a b\n+a c\n")
	f.Add("@@ -1,2 +1 @@\n-a\n\\ No newline\n+a\n+b\n\\ x\n c\n@@\n-\n")
	f.Add("@@ -9999999999999999999999 +x @@\n+\xff\n-\u0301\n")
	f.Fuzz(func(t *testing.T, unified string) {
		diff.Files(unified)
		for _, h := range diff.Read(unified) {
			olds, news := map[*diff.Line]int{}, map[*diff.Line]int{}
			at := [2]*diff.Line{}
			for _, r := range h.Rows() {
				if r.Old != nil {
					olds[r.Old]++
					at[0] = r.Old
				}
				if r.New != nil {
					news[r.New]++
					at[1] = r.New
				}
			}
			for i := range h.Lines {
				l := &h.Lines[i]
				var text strings.Builder
				for _, p := range l.Pieces {
					text.WriteString(p.Text)
				}
				if l.Pieces != nil && text.String() != l.Text {
					t.Errorf("the pieces of %q are %q", l.Text, text.String())
				}
				if n := olds[l]; l.Kind == diff.Deleted && n != 1 {
					t.Errorf("%q stands %d times on the left", l.Text, n)
				}
				if n := news[l]; l.Kind == diff.Added && n != 1 {
					t.Errorf("%q stands %d times on the right", l.Text, n)
				}
			}
		}
	})
}

func TestTheFilesOfAChangeStandInTheirFolders(t *testing.T) {
	t.Parallel()
	var walk func(list []*diff.Node, indent string) string
	walk = func(list []*diff.Node, indent string) string {
		var b strings.Builder
		for _, n := range list {
			fmt.Fprintf(&b, "%s%s %d\n", indent, n.Name, n.File)
			b.WriteString(walk(n.Below, indent+"  "))
		}
		return b.String()
	}
	got := walk(diff.Tree([]string{"index.md", "docs/guides/setup/a.md", "docs/guides/setup/b.md", "docs/guides/c.md",
		"docs.json", "x/y/z.md"}), "")
	want := "docs/guides -1\n  setup -1\n    a.md 1\n    b.md 2\n  c.md 3\nx/y -1\n  z.md 5\ndocs.json 4\nindex.md 0\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	deep := strings.Repeat("d/", 2000) + "f.md"
	list, depth := diff.Tree([]string{deep, "d/e.md"}), 0
	for ; len(list) > 0; list = list[0].Below {
		depth++
	}
	if depth > 20 {
		t.Errorf("a file %d folders deep", depth)
	}
}

func TestTwiceTheDiffIsTwiceTheWork(t *testing.T) {
	growth.Check(t, "docent/web/diff,github.com/aymanbagabas/go-udiff/lcs",
		func(_ *testing.T, text string) { // every line of the text became another one
			var b strings.Builder
			b.WriteString("@@ -1 +1 @@\n")
			for l := range strings.Lines(text) {
				b.WriteString("-" + strings.TrimSuffix(l, "\n") + "\n")
			}
			for l := range strings.Lines(text) {
				b.WriteString("+" + strings.ReplaceAll(strings.TrimSuffix(l, "\n"), "a", "b x") + "\n")
			}
			for _, h := range diff.Read(b.String()) {
				h.Rows()
			}
		},
		func(_ *testing.T, text string) { // one line became many
			h := diff.Read("@@ -1 +1 @@\n-" + strings.ReplaceAll(text, "\n", " ") + "\n+" + strings.ReplaceAll(text, " ", "\n+"))
			h[0].Rows()
		},
		func(_ *testing.T, text string) { diff.Tree(strings.Split(strings.ReplaceAll(text, " ", "/"), "\n")) },
	)
}

func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	text.WriteString("@@ -1 +1 @@\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "-Line %d of the page says how to log in to the service and what to do then.\n", i)
		fmt.Fprintf(&text, "+Line %d of the page says how to sign in to the service, and what to do then.\n context\n", i)
	}
	b.ReportAllocs()
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		diff.Read(text.String())
	}
}
