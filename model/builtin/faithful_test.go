package builtin

import (
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/bench/corpora"
	"docent/internal/testing/need"
	"docent/model"
	"docent/model/builtin/blocks"
	"docent/site/markup"
)

// ownPages are those of Docent's own documentation.
func ownPages(t testing.TB) corpora.Tree {
	t.Helper()
	tree := corpora.Tree{}
	for _, pattern := range []string{"*.mdx", "*/*.mdx", "*/*.md"} {
		files, err := filepath.Glob(filepath.Join("../../docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if tree[file], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	return tree
}

// Every block of code, table and identifier that an answer can quote is the page's, byte for byte.
func TestWhatIsQuotedIsThePages(t *testing.T) {
	t.Parallel()
	quotesAreThePages(t, "docs", ownPages(t))
}

func TestWhatIsQuotedOfWholeSetsIsThePages(t *testing.T) {
	need.Everything(t, "reads whole documentation sets")
	t.Parallel()
	for _, set := range strings.Fields("docusaurus electron fastapi hugo mintlify prometheus vite") {
		quotesAreThePages(t, set, corpora.Judged(t, set))
	}
}

var spans = regexp.MustCompile("`+[^`\n]+`+")

func quotesAreThePages(t *testing.T, set string, tree corpora.Tree) {
	codes, rows, names := 0, 0, 0
	for name, src := range tree {
		if ext := path.Ext(name); ext != ".md" && ext != ".mdx" {
			continue
		}
		page := markup.Parse(name, src)
		source := string(src)
		squeezed := strings.Join(strings.Fields(source+" "+html.UnescapeString(source)+" "+page.Plain(page.Body)), " ")
		lines := strings.Split(strings.ReplaceAll(source, "\r\n", "\n"), "\n")
		for _, section := range page.Sections(0) {
			text := string(src[section.Span.Start:section.Span.End])
			for _, b := range blocks.Parse(&model.Passage{Path: name, Title: "x", Text: text}) {
				all := strings.Split(b.Text, "\n")
				for i := 0; i < len(all); i++ {
					fence := strings.TrimLeft(all[i], " -*+0123456789.)")
					if !strings.HasPrefix(fence, "```") {
						continue
					}
					marks := fence[:len(fence)-len(strings.TrimLeft(fence, "`"))]
					from := i + 1
					for i++; i < len(all) && strings.TrimSpace(all[i]) != marks; i++ {
						continue
					}
					codes++
					if body := all[from:i]; !strings.Contains(body[0], "{'") && !stands(lines, body, b.Kind == code) {
						t.Errorf("%s/%s: no such code on the page:\n%s", set, name, strings.Join(body, "\n"))
					}
				}
				if b.Kind == table {
					for _, row := range all {
						for _, c := range blocks.Cells(row) {
							rows++
							if c = strings.TrimSpace(c); strings.HasPrefix(c, "`") && strings.HasSuffix(c, "`") {
								names++
							}
						}
					}
				}
				if b.Kind == code {
					continue
				}
				for _, span := range spans.FindAllString(b.Text, -1) {
					if in := strings.Trim(span, "` "); !strings.HasPrefix(span, "` ") && !strings.Contains(squeezed, strings.Join(strings.Fields(in), " ")) {
						t.Errorf("%s/%s: the page has no %s", set, name, span)
					}
					names++
				}
			}
		}
	}
	t.Logf("%s: %d blocks of code, %d cells, %d identifiers", set, codes, rows, names)
	if codes < 20 || names < 100 {
		t.Errorf("%s: too few", set)
	}
}

// stands reports whether a page has these lines one after the other, with the same indentation before all of them or,
// within a list, before each.
func stands(page, code []string, exactly bool) bool {
	if len(code) == 0 {
		return true
	}
	bare := func(l string) string { return strings.TrimLeft(html.UnescapeString(l), " \t>") }
	for at := 0; at+len(code) <= len(page); at++ {
		margin, ok := strings.CutSuffix(page[at], code[0])
		ok = ok && strings.Trim(margin, " \t>-*+0123456789.)") == ""
		for n := 0; (ok || !exactly) && n < len(code); n++ {
			line, whole := strings.CutPrefix(page[at+n], margin)
			if ok = whole && line == code[n] || bare(page[at+n]) == bare(code[n]) ||
				n == 0 && strings.HasSuffix(bare(page[at]), bare(code[0])); !ok {
				break
			}
		}
		if ok {
			return true
		}
	}
	// In HTML the code begins and ends within lines.
	return strings.Contains(markup.HTMLCode(strings.Join(page, "\n")), strings.Join(code, "\n"))
}
