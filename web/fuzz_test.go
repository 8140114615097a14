package web

import (
	"strings"
	"testing"

	"docent/forge"
)

// FuzzDiffs feeds what is shown of a pull request: whatever a repository holds makes a page, and each line of a hunk
// is on it.
func FuzzDiffs(f *testing.F) {
	f.Add("@@ -1,2 +1,3 @@ x\n a\n-b\n+c\n\\ No newline at end of file\n")
	f.Add("@@ -0,0 +1 @@\r\n+\r\n")
	f.Add("no hunk\n@@\n@@ -x +y @@\n ")
	f.Fuzz(func(t *testing.T, text string) {
		lines := 0
		for _, h := range hunks(text) {
			lines += 1 + len(h.Lines)
		}
		if most := strings.Count(text, "\n") + 1; lines > most {
			t.Fatalf("%d lines were made of %d", lines, most)
		}
		if q := forge.QuotePath(text); strings.ContainsAny(q, "\n\r\x00") {
			t.Fatalf("%q was quoted as %q", text, q)
		}
	})
}
