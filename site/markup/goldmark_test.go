package markup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"docent/internal/testing/need"
	"docent/site/markup"
)

// differences are what plain Markdown is read differently in, on purpose or for want of a reader that misses it.
var differences = []struct{ form, why string }{
	{`^---`, "the page may have front matter"},
	{`(?m)^[ \t>*+-]*(?:!!!|===)[ \t]`, "an admonition or a tab of Python-Markdown"},
	{`(?m)(?:^|[ \t>])(?:[-+*]|[0-9]+[.)])[ \t]*\n[ \t>]*\n`,
		"a list item that begins with blank lines goes on behind them"},
	{`\]:.*\n?.*\n[ \t>]*(?:[-+*=]|[0-9])`, "what follows a definition is read as if it followed a paragraph"},
	{`\]:[^\n]*\n[ \t>]*["'(]`, "the title of a definition is one line and holds none of its own marks"},
	{`\[[^\]]*\n[^\]]*\]:`, "the label of a definition is one line"},
	{`\[[^\]]*<.*\]:`, "an address in the label of a definition is an address"},
	{`(?m)(?:[-+*]|[0-9][.)])[ \t]+>`, "a block quote within a list item hides how far the item is indented"},
	{`(?m)^(?:\t| {4,})[ \t]*>`, "the same"},
	{`\]\[[^\]]*\]\(`, "which definitions there are is known at the end: here [](…) is a link"},
	{`(?s)\[[^\]]*\[[^\]]*\].*\]\(`, "the same: here the outer brackets are"},
	{`\[[^\[\]]*[*_][^\[\]]*\]\[`, "the same: emphasis pairs over the text of a reference"},
	{`\]\[[^\]]*[^a-z\]]`, "the same: what may be the label of a reference is no text"},
	{`\[\]\[`, "a reference has text"},
	{`\]\([^)]*` + "`", "code begins before it is known that it stands in a destination"},
	{`\[[ xX]\]|\[!\w`, "the mark of a task or an alert"},
	{`(?m)^[ \t]*\n[ \t]*>`, "a blank line does not part two block quotes"},
	{`(?m)(?:^|[ \t>])(?:[-+*>]|[0-9][.)]) *\t|^[ >]+\t`, "goldmark miscounts a tab within a container"},
	{`\\\\\\\n|\\ +\n`, "goldmark keeps the backslash"},
	{`\]\([^)\s]*\([^)\s]*\s`, "goldmark takes a parenthesis that is never closed into a destination, which CommonMark does not"},
}

var different = func() (all []*regexp.Regexp) {
	for _, d := range differences {
		all = append(all, regexp.MustCompile(d.form))
	}
	return all
}()

func differs(src []byte) bool {
	return slices.ContainsFunc(different, func(re *regexp.Regexp) bool { return re.Match(src) })
}

// vocabulary is what the pages are made of that both readers get: plain Markdown, and none of what the dialects add to
// it.
var vocabulary = []string{
	"a", "b", "word", " ", "  ", "\n", "\n", "\n", "\n\n", "\n\n", "    ", "\t", "# ", "## ", "#", "- ", "- ", "+ ", "1. ",
	"2) ", "> ",
	"> ", ">", "```\n", "```", "~~~\n", "````\n", "`", "``", "*", "**", "_", "__", "***", "[", "]", "(/x)", "](/y)",
	"![", "[z]",
	"[z]: /z\n", "\\", "&amp;", "&#42;", "<mailto:a@b.example>", "---\n", "===\n", "***\n", ".", ",", "-", "=", "!", "\"",
	"(", ")", "é",
	"  \n", "\\\n",
}

func spell(words []byte) []byte {
	var b []byte
	for _, c := range words {
		b = append(b, vocabulary[int(c)%len(vocabulary)]...)
	}
	return b
}

// FuzzGoldmark holds the scanner to reading plain Markdown as goldmark does: headings, code, links, list items, and
// with the text that a reader sees what is emphasis, escape or entity.
func FuzzGoldmark(f *testing.F) {
	for n := range vocabulary {
		f.Add([]byte{byte(n), byte(n + 1), byte(2 * n)})
	}
	f.Fuzz(func(t *testing.T, words []byte) {
		if len(words) <= 40 {
			agree(t, spell(words))
		}
	})
}

func TestPlainMarkdownIsReadAsGoldmarkReadsIt(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		words := make([]byte, 1+r.IntN(14))
		for i := range words {
			words[i] = byte(r.IntN(len(vocabulary)))
		}
		agree(t, spell(words))
	}
}

func agree(t *testing.T, src []byte) {
	t.Helper()
	if differs(src) {
		return
	}
	if got, want := ours(src), theirs(src); !slices.Equal(got, want) {
		t.Errorf("%q is read as\n%q, by goldmark as\n%q", src, got, want)
	}
}

// plain is text without escapes and entities.
func plain(v []byte) []byte {
	var out []byte
	for len(v) > 0 {
		if v[0] == '\\' && len(v) > 1 && util.IsPunct(v[1]) {
			out = append(out, v[1])
			v = v[2:]
			continue
		}
		n := bytes.IndexByte(v[1:], '\\') + 1
		if n == 0 {
			n = len(v)
		}
		out = append(out, util.ResolveEntityNames(util.ResolveNumericReferences(v[:n]))...)
		v = v[n:]
	}
	return out
}

func line(src []byte, at int) int { return bytes.Count(src[:at], []byte("\n")) + 1 }

// squeeze leaves out white space, and the marks of block quotes, which code in one holds.
func squeeze(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), ""), ">", "")
}

// ours is a page as the scanner reads it.
func ours(src []byte) []string {
	p := markup.Parse("a.md", src)
	var out []string
	for _, h := range p.Headings {
		if h.Inner.Start == h.Inner.End {
			out = append(out, fmt.Sprintf("heading %d", h.Level))
			continue
		}
		out = append(out, fmt.Sprintf("heading %d in line %d", h.Level, line(src, h.Span.Start)))
	}
	for _, c := range p.Code {
		if c.Inline {
			out = append(out, fmt.Sprintf("code %q", squeeze(string(src[c.Inner.Start:c.Inner.End]))))
		} else if squeeze(string(src[c.Inner.Start:c.Inner.End])) != "" {
			out = append(out, fmt.Sprintf("block of code in line %d", line(src, c.Inner.Start)))
		}
	}
	for _, l := range p.Links {
		if l.Kind != markup.ReferenceDefinition {
			out = append(out, fmt.Sprintf("link to %s", l.Dest))
		}
	}
	out = append(out, fmt.Sprintf("%d items", len(p.Items)))
	return append(out, "text "+squeeze(p.Plain(p.Body)))
}

// theirs is a page as goldmark reads it.
func theirs(src []byte) []string {
	doc := goldmark.New().Parser().Parse(text.NewReader(src))
	var heads, codes, links []string
	var all strings.Builder
	items := 0
	lines := func(n ast.Node) {
		for i := range n.Lines().Len() {
			s := n.Lines().At(i)
			all.Write(s.Value(src))
		}
	}
	_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Lines().Len() == 0 {
				heads = append(heads, fmt.Sprintf("heading %d", n.Level))
				return ast.WalkContinue, nil
			}
			heads = append(heads, fmt.Sprintf("heading %d in line %d", n.Level, line(src, n.Lines().At(0).Start)))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if n.Lines().Len() > 0 {
				var b strings.Builder
				for i := range n.Lines().Len() {
					s := n.Lines().At(i)
					b.Write(s.Value(src))
				}
				if squeeze(b.String()) != "" {
					codes = append(codes, fmt.Sprintf("block of code in line %d", line(src, n.Lines().At(0).Start)))
				}
				lines(n)
			}
		case *ast.CodeSpan:
			var b strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					b.Write(t.Segment.Value(src))
				}
			}
			codes = append(codes, fmt.Sprintf("code %q", squeeze(b.String())))
			all.WriteString(b.String())
			return ast.WalkSkipChildren, nil
		case *ast.Link:
			links = append(links, "link to "+string(n.Destination))
		case *ast.Image:
			links = append(links, "link to "+string(n.Destination))
		case *ast.AutoLink:
			all.Write(n.URL(src))
			for p := n.Parent(); p != nil; p = p.Parent() {
				if p.Kind() == ast.KindLink { // an address within the text of a link is text
					return ast.WalkContinue, nil
				}
			}
			links = append(links, "link to "+string(n.URL(src)))
		case *ast.ListItem:
			items++
		case *ast.Text:
			v := n.Segment.Value(src)
			if !n.IsRaw() {
				v = plain(v)
			}
			all.Write(v)
		case *ast.String:
			all.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	out := append(append(heads, codes...), links...)
	out = append(out, fmt.Sprintf("%d items", items))
	return append(out, "text "+squeeze(all.String()))
}

// promised are the sections of CommonMark that the scanner reads. What it does not read is how HTML blocks end.
var promised = strings.Split("Tabs, Precedence, Thematic breaks, ATX headings, Setext headings, Indented code blocks, "+
	"Fenced code blocks, Link reference definitions, Paragraphs, Blank lines, Block quotes, List items, Lists, Inlines, "+
	"Backslash escapes, Entity and numeric character references, Code spans, Emphasis and strong emphasis, Links, Images, "+
	"Autolinks, Hard line breaks, Soft line breaks, Textual content", ", ")

// otherwise are the examples that the scanner reads otherwise, each with its reason.
var otherwise = map[string][]int{
	"an address in the attribute of a tag is a link, and within a tag is no heading": {21, 31, 91, 344, 475, 476, 477, 642,
		643},
	"an address that stands bare is a link, as on GitHub":                            {602, 608, 611},
	"only addresses with :// or mailto: stand between < and >, others are tags":      {597, 598, 601, 609, 610},
	"a line --- opens front matter":                                                  {96},
	"goldmark leaves escapes and entities in a destination, which the site resolves": {23, 33, 202},
	"references that are not numbers of a character are resolved as browsers do it":  {28},
	"labels and titles of definitions are one line, with simple marks":               {196, 200, 201, 208, 541},
	"what follows a definition is read as if it followed a paragraph":                {216},
	"what is shown of a reference's label is its source, but for the marks at its ends, and so it is for an address": {
		20, 194, 480, 481, 550, 554, 558, 559, 573, 576, 585, 589,
	},
	"emphasis pairs over the text of a reference, since definitions are known at the end": {534, 535, 564},
	"so does a reference over a link, and one over another":                               {532, 533, 569, 571},
	"a list item within two block quotes ends at a line that names them without blanks":   {259},
	"characters beyond ASCII are letters":                                                 {353, 354},
	"an escaped mark in angle brackets is read as it stands":                              {493},
	"labels are compared in lower case, and hold no brackets":                             {540, 549},
}

func TestExamplesOfCommonMark(t *testing.T) {
	t.Parallel()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/goldmark").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "_test", "spec.json"))
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Markdown, Section string
		Example           int
	}
	if err := json.Unmarshal(data, &examples); err != nil {
		t.Fatal(err)
	}
	except := slices.Concat(slices.Collect(maps.Values(otherwise))...)
	n := 0
	for _, e := range examples {
		if !slices.Contains(promised, e.Section) {
			continue
		}
		n++
		got, want := ours([]byte(e.Markdown)), theirs([]byte(e.Markdown))
		if slices.Equal(got, want) == slices.Contains(except, e.Example) {
			t.Errorf("%s, example %d: %q is read as\n%q, by goldmark as\n%q", e.Section, e.Example, e.Markdown, got, want)
		}
	}
	if n < 400 {
		t.Errorf("there are only %d examples", n)
	}
}
