package glob

import (
	"io/fs"
	"testing"
)

// Patterns mean what they mean to git.
func TestPatternsLeaveOutWhatGitWould(t *testing.T) {
	for _, c := range []struct {
		lines []string
		file  string
		out   bool
	}{
		{[]string{"internal/"}, "internal/plan.md", true},
		{[]string{"internal/"}, "a/internal/b/plan.md", true},
		{[]string{"internal/"}, "internal", false}, // a file
		{[]string{"/internal"}, "a/internal/plan.md", false},
		{[]string{"a/b"}, "a/b/c.md", true},
		{[]string{"a/b"}, "x/a/b/c.md", false},
		{[]string{"*.draft.mdx"}, "deep/er/x.draft.mdx", true},
		{[]string{"**/a/b"}, "a/x/a/b", true}, // git goes back
		{[]string{"a/**.md"}, "a/x.md", true},
		{[]string{"a/**.md"}, "a/b/x.md", false},
		{[]string{"a/**/b.md"}, "a/b.md", true},
		{[]string{"a/**/b.md"}, "a/x/y/b.md", true},
		{[]string{"**/internal/**"}, "x/internal/y/z.md", true},
		{[]string{"abc/**"}, "abc/d/e.md", true},
		{[]string{"*.md", "!keep.md"}, "x/keep.md", false},
		{[]string{"dir/", "!dir/keep.md"}, "dir/keep.md", true}, // what lies in a folder that is left out stays out
		{[]string{"dir/*", "!dir/keep.md"}, "dir/keep.md", false},
		{[]string{"# a comment", "", "  ", "x.md  "}, "x.md", true},
		{[]string{`\#x.md`}, "#x.md", true},
		{[]string{`\!x.md`}, "!x.md", true},
		{[]string{"{a,b}.md"}, "a.md", false}, // git knows no braces
		{[]string{"{a,b}.md"}, "{a,b}.md", true},
		{[]string{"[ab].md\r"}, "b.md", true},
		{[]string{"[!ab].md"}, "b.md", false},
		{[]string{"é*.md"}, "x/été.md", true},
	} {
		list, bad := ReadList(c.lines)
		by := list.LastAsGit(c.file)
		if got := by != nil && !by.Keep; got != c.out || len(bad) > 0 {
			t.Errorf("%q leaves out %s: %t (%q are none)", c.lines, c.file, got, bad)
		}
	}
}

func FuzzReadList(f *testing.F) {
	f.Add("internal/\n!x", "internal/x")
	f.Add("**/a/**/b[c\\", "a/b")
	f.Add("{{{{{{", "{")
	f.Fuzz(func(t *testing.T, lines, file string) {
		if !fs.ValidPath(file) || file == "." {
			return
		}
		list, _ := ReadList([]string{lines})
		by := list.LastAsGit(file)
		if by != nil && len(list) == 1 && !by.Keep && list.Last(file) == nil {
			t.Errorf("%q leaves out %q to git alone", lines, file)
		}
	})
}
