package work

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"docent/forge"
	"docent/web/diff"
)

// FuzzDiffs feeds what is shown of a pull request: whatever a repository holds makes a page, and each line of a hunk
// is on it.
func FuzzDiffs(f *testing.F) {
	f.Add("@@ -1,2 +1,3 @@ x\n a\n-b\n+c\n\\ No newline at end of file\n")
	f.Add("@@ -0,0 +1 @@\r\n+\r\n")
	f.Add("no hunk\n@@\n@@ -x +y @@\n ")
	f.Fuzz(func(t *testing.T, text string) {
		lines := 0
		for _, h := range diff.Hunks(text) {
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

// FuzzReadable feeds pages as a repository may hold them: what is shown of them has no element that the page's author
// wrote, and loads nothing.
func FuzzReadable(f *testing.F) {
	f.Add("a.mdx", "---\ntitle: \"T <b>\"\n---\nimport X from './x'\n\n<Card title=\"Hi\">\n  text <script>alert(1)</script>\n</Card>\n")
	f.Add("a.md", "![x](https://evil.example/i.png) [y](javascript:alert(1)) <img src=x onerror=alert(1)>\n\n<div>\nx\n</div>\n")
	f.Add("a.md", "[x]: https://e.example\n\n[x] <https://e.example> `<b>`\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if len(text) > 10_000 {
			return
		}
		blocks, err := readable(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			z := html.NewTokenizer(strings.NewReader(string(b.HTML)))
			for z.Next() != html.ErrorToken {
				tok := z.Token()
				switch tok.Data {
				case "script", "img", "iframe", "object", "style", "form", "link", "svg", "video", "audio":
					if tok.Type == html.StartTagToken || tok.Type == html.SelfClosingTagToken {
						t.Fatalf("%q shows %s", text, b.HTML)
					}
				}
				for _, a := range tok.Attr {
					if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" ||
						a.Key == "href" && !strings.HasPrefix(a.Val, "http") && !strings.HasPrefix(a.Val, "mailto:") {
						t.Fatalf("%q shows %s", text, b.HTML)
					}
				}
			}
		}
	})
}
