package markup_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/internal/testing/need"
	"docent/site/markup"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sound checks what every page promises, whatever its bytes.
func sound(t testing.TB, p *markup.Page) {
	t.Helper()
	n := len(p.Src)
	in := func(what string, s markup.Span) {
		t.Helper()
		if s.Start < 0 || s.End < s.Start || s.End > n {
			t.Fatalf("%s: %s %v of %d bytes", p.Path, what, s, n)
		}
	}
	within := func(what string, inner, outer markup.Span) {
		t.Helper()
		in(what, inner)
		if inner.Start < outer.Start || inner.End > outer.End {
			t.Fatalf("%s: %s %v outside %v", p.Path, what, inner, outer)
		}
	}
	in("front", p.Front.Span)
	in("body", p.Body)
	if p.Front.Kind != "" {
		within("front body", p.Front.Body, p.Front.Span)
	}
	last := 0
	for _, h := range p.Headings {
		in("heading", h.Span)
		within("heading text", h.Inner, h.Span)
		if h.Level < 1 || h.Level > 6 || h.Span.Start < last {
			t.Fatalf("%s: heading %+v", p.Path, h)
		}
		last = h.Span.End
	}
	last = 0
	for _, l := range p.Links {
		in("link", l.Span)
		within("link destination", l.At, l.Span)
		if l.Kind != markup.ReferenceLink && string(p.Src[l.At.Start:l.At.End]) != l.Dest {
			t.Fatalf("%s: %q stands where the link goes to %q", p.Path, p.Src[l.At.Start:l.At.End], l.Dest)
		}
		if l.Span.Start < last {
			t.Fatalf("%s: links out of order", p.Path)
		}
		last = l.Span.Start
	}
	last = 0
	for _, c := range p.Code {
		in("code", c.Span)
		within("code text", c.Inner, c.Span)
		if c.Span.Start < last {
			t.Fatalf("%s: code out of order", p.Path)
		}
		last = c.Span.Start
	}
	last = 0
	for i, tag := range p.Tags {
		in("tag", tag.Span)
		if tag.Span.Start < last {
			t.Fatalf("%s: tags overlap", p.Path)
		}
		last = tag.Span.End
		for _, a := range tag.Attrs {
			within("attribute", a.Value, tag.Span)
		}
		if tag.Partner >= 0 && p.Tags[tag.Partner].Partner != i {
			t.Fatalf("%s: tag %d is not its partner's partner", p.Path, i)
		}
	}
	last = 0
	for _, s := range p.Prose {
		in("prose", s)
		if s.Start < last || s.Start == s.End {
			t.Fatalf("%s: prose %v after %d", p.Path, s, last)
		}
		last = s.End
		if s.Start < p.Body.Start {
			t.Fatalf("%s: prose in the front matter", p.Path)
		}
	}
	// Prose holds no code and no destination.
	disjoint := func(what string, s markup.Span) {
		t.Helper()
		i, _ := slices.BinarySearchFunc(p.Prose, s.Start, func(a markup.Span, at int) int {
			if a.End <= at {
				return -1
			}
			return 1
		})
		if i < len(p.Prose) && s.Start < s.End && p.Prose[i].Start < s.End {
			t.Fatalf("%s: prose %q overlaps the %s %q", p.Path, p.Src[p.Prose[i].Start:p.Prose[i].End], what,
				p.Src[s.Start:s.End])
		}
	}
	for _, c := range p.Code {
		disjoint("code", c.Inner)
	}
	for _, l := range p.Links {
		disjoint("destination", l.At)
	}
	for _, tag := range p.Tags {
		disjoint("tag", tag.Span)
	}
	for _, sec := range p.Sections(3) {
		in("section", sec.Span)
	}
	_ = p.Title()
	_ = p.Plain(p.Body)
	out, err := markup.Apply(p.Src, nil)
	if err != nil || !bytes.Equal(out, p.Src) {
		t.Fatalf("%s: no edits changed the page", p.Path)
	}
}

func TestRealPagesKeepEveryPromise(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	// Faults that the pages really have.
	real := map[string]bool{
		"prometheus-docs/guides/contributing.md:226": true, // a fence without an end
	}
	for set, pages := range sets(t) {
		for name, src := range pages {
			p := markup.Parse(name, src)
			sound(t, p)
			for _, pr := range p.Problems {
				if at := fmt.Sprintf("%s/%s:%d", set, name, pr.Line); !real[at] {
					t.Errorf("%s %s", at, pr.Message)
				}
			}
			crlf := bytes.ReplaceAll(bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
			q := markup.Parse(name, append([]byte("\xef\xbb\xbf"), crlf...))
			sound(t, q)
			if len(q.Links) != len(p.Links) || len(q.Headings) != len(p.Headings) || len(q.Tags) != len(p.Tags) ||
				len(q.Code) != len(p.Code) || len(q.Problems) != len(p.Problems) {
				t.Errorf("%s/%s reads differently with CRLF and a byte order mark", set, name)
			}
		}
	}
}

// reference is a slow and simple reading of a page: fences and code spans blanked out by regular expressions, then
// headings and inline links by line.
func reference(name string, src []byte) (heads, dests []string) {
	text := string(src)
	if m := re(`(?s)\A---\n.*?\n---\n`).FindString(text); m != "" {
		text = text[len(m):]
	}
	mdx := strings.HasSuffix(name, ".mdx")
	var lines []string
	before := "" // the last line that is not blank
	fence, deep := "", 0
	open := re("^([ \t>]*)(?:[-*+] +|[0-9]+[.)] +)?(`{3,}|~{3,})([^`]*)$")
	for _, l := range strings.Split(text, "\n") {
		if m := open.FindStringSubmatch(l); m != nil {
			if fence == "" {
				fence, deep = m[2], len(m[1])
				continue
			} else if m[2][0] == fence[0] && len(m[2]) >= len(fence) && strings.TrimSpace(m[3]) == "" &&
				(mdx || len(m[1]) < deep+4) {
				fence = ""
				continue
			}
		}
		if fence != "" {
			l = ""
		}
		if strings.TrimSpace(l) != "" {
			if !mdx && strings.HasPrefix(l, "    ") && !re(`^\s|^[-*+] |^[0-9]+\. `).MatchString(before) &&
				lines[len(lines)-1] == "" {
				l = "" // indented code
			} else {
				before = l
			}
		}
		lines = append(lines, l)
	}
	text = strings.Join(lines, "\n")
	text = re("(?s)<!--.*?-->|\\{/\\*.*?\\*/\\}").ReplaceAllString(text, "")
	text = re("``[^`\n]+(?:`[^`\n]+)*``|`[^`\n]*(?:\n[^`\n]+)?`").ReplaceAllString(text, "")
	for _, l := range strings.Split(text, "\n") {
		if m := re(`^ {0,3}(#{1,6}) +\S`).FindStringSubmatch(l); m != nil {
			heads = append(heads, m[1])
		}
	}
	for _, m := range re(`\[[^\[\]]*\]\(([^()\s]+)\)`).FindAllStringSubmatch(text, -1) {
		dests = append(dests, m[1])
	}
	return heads, dests
}

var compiled = map[string]*regexp.Regexp{}

func re(expr string) *regexp.Regexp {
	if compiled[expr] == nil {
		compiled[expr] = regexp.MustCompile(expr)
	}
	return compiled[expr]
}

func TestEveryLinkAndHeadingOfRealPagesIsFound(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	links, headings := 0, 0
	for set, pages := range sets(t) {
		for name, src := range pages {
			p := markup.Parse(name, src)
			heads, dests := reference(name, src)
			levels, found := map[string]int{}, map[string]int{}
			for _, h := range p.Headings {
				levels[strings.Repeat("#", h.Level)]++
			}
			for _, l := range p.Links {
				found[l.Dest]++
			}
			for _, h := range heads {
				headings++
				if levels[h]--; levels[h] < 0 {
					t.Errorf("%s/%s: a heading of level %d is missing", set, name, len(h))
				}
			}
			for _, d := range dests {
				links++
				if found[d]--; found[d] < 0 {
					t.Errorf("%s/%s: the link to %s is missing", set, name, d)
				}
			}
		}
	}
	t.Logf("%d links and %d headings of the reference", links, headings)
	if links < 1000 || headings < 1000 {
		t.Fatal("the reference found too little to compare with")
	}
}

// Long hostile input: a scanner that looked back or ahead without bound would not finish.
func TestHostileInputIsReadInLinearTime(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	for _, unit := range []string{
		"[", "]", "![", "[a](", "[a](b[", "[a](b \"", "`", "` `` ``` ", "{", "}", "{{", "{`", "{'", "<", "<a ", "<a b=\"",
		"<a b='", "<a {", "<!--", "&", "&#",
		"*", "*a _b ~~c ", "_", "**a* ", "> ", "- ", "1. ", "#", "# a\n", "```\n", "~~~\n", "    ", "\t", "\\", "\\\"",
		"|", "a|b\n-|-\n", "<b>", "</b>", "<a><b></a>", "[a]: b\n", "[a][b]",
		"import {\n", "export const a = (\n", "http://a", "www.", "http://(", "<script>", "<pre>", "$$\n", ":::\n", "=\n",
		"a\n=\n", "{/*", "\r\n", "- - > ", "[^a]: b\n", "!!! a\n", "<a\n\n",
	} {
		src := []byte(strings.Repeat(unit, 200_000/len(unit)))
		for _, name := range []string{"a.md", "a.mdx"} {
			sound(t, markup.Parse(name, src))
		}
	}
}

func TestPagesReadAsGolden(t *testing.T) {
	pages, err := filepath.Glob("testdata/pages/*.md*")
	if err != nil || len(pages) < 12 {
		t.Fatal(len(pages), err)
	}
	for _, f := range pages {
		t.Run(filepath.Base(f), func(t *testing.T) {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			p := markup.Parse(filepath.Base(f), src)
			sound(t, p)
			got := dump(p)
			golden := strings.TrimSuffix(f, filepath.Ext(f)) + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func dump(p *markup.Page) string {
	var b strings.Builder
	fmt.Fprintf(&b, "title %q\n", p.Title())
	for _, h := range p.Headings {
		fmt.Fprintf(&b, "heading %d %q #%s\n", h.Level, h.Text, h.Anchor)
	}
	for _, l := range p.Links {
		fmt.Fprintf(&b, "link %d %q -> %q\n", l.Kind, l.Text, l.Dest)
	}
	for _, c := range p.Code {
		if !c.Inline {
			fmt.Fprintf(&b, "code %q %q %d lines\n", c.Lang, c.Info, strings.Count(string(p.Src[c.Inner.Start:c.Inner.End]),
				"\n"))
		}
	}
	for _, pr := range p.Problems {
		fmt.Fprintf(&b, "problem %d %s\n", pr.Line, pr.Message)
	}
	for _, s := range p.Prose {
		fmt.Fprintf(&b, "prose %q\n", p.Src[s.Start:s.End])
	}
	for _, s := range p.Sections(0) {
		fmt.Fprintf(&b, "section %q %v\n", s.Heading, s.Trail)
		for _, l := range strings.Split(s.Body, "\n") {
			fmt.Fprintf(&b, "\t%s\n", l)
		}
		if s.Code != "" {
			for _, l := range strings.Split(s.Code, "\n") {
				fmt.Fprintf(&b, "\t| %s\n", l)
			}
		}
	}
	return b.String()
}

func TestSlugsAreGitHubs(t *testing.T) {
	for in, want := range map[string]string{
		"Hello, World!": "hello-world", "What's new?": "whats-new", "a_b c-d": "a_b-c-d", "Größe  2": "größe--2",
		"C++ & Go": "c--go", "": "",
	} {
		if got := markup.Slug(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	p := markup.Parse("a.md", []byte("# A\n# A\n# A-1\n# A\n## B {#a}\n"))
	var got []string
	for _, h := range p.Headings {
		got = append(got, h.Anchor)
	}
	if want := []string{"a", "a-1", "a-1-1", "a-2", "a"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHeadingsSayTheirOwnIDsAsEachGeneratorWritesThem(t *testing.T) {
	for line, want := range map[string]markup.Heading{
		"## Set up {#start}":       {Text: "Set up", Anchor: "start", Custom: true},
		"## Set up {: #start .x }": {Text: "Set up", Anchor: "start", Custom: true},
		"## Set up {/* #start */}": {Text: "Set up", Anchor: "start", Custom: true},
		"## Set up \\{#start\\}":   {Text: "Set up", Anchor: "start", Custom: true},
		"## Set up %{#start}%":     {Text: "Set up", Anchor: "start", Custom: true},
		"## Set up [#start]":       {Text: "Set up", Anchor: "start", Custom: true},
		"## Set up [#start] ##":    {Text: "Set up", Anchor: "start", Custom: true},
		"## Fixed [#12]":           {Text: "Fixed [#12]", Anchor: "fixed-12"},
		"## Fixed [it][#start]":    {Text: "Fixed [it][#start]", Anchor: "fixed-itstart"},
	} {
		h := markup.Parse("a.mdx", []byte(line+"\n\nText.\n")).Headings[0]
		if got := (markup.Heading{Text: h.Text, Anchor: h.Anchor, Custom: h.Custom}); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestApplyRefusesOverlapAndOutside(t *testing.T) {
	src := []byte("0123456789")
	e := func(a, b int, s string) markup.Edit {
		return markup.Edit{Span: markup.Span{Start: a, End: b}, New: []byte(s)}
	}
	got, err := markup.Apply(src, []markup.Edit{e(8, 9, "x"), e(2, 2, "a"), e(2, 2, "b"), e(2, 4, "")})
	if err != nil || string(got) != "01ab4567x9" {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range [][]markup.Edit{{e(2, 5, ""), e(4, 6, "")}, {e(-1, 2, "")}, {e(5, 4, "")}, {e(5, 11, "")}} {
		if _, err := markup.Apply(src, bad); err == nil {
			t.Errorf("%v was applied", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	pages, _ := filepath.Glob("testdata/pages/*.md*")
	for _, p := range pages {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, strings.HasSuffix(p, "x"))
	}
	for _, c := range templates {
		f.Add([]byte(c.page), false)
	}
	f.Add([]byte("---\na: b\n---\n- > ```\n  > x\n\n[a]: <b> \"c\"\n\\"), false)
	f.Fuzz(func(t *testing.T, src []byte, mdx bool) {
		name := "a.md"
		if mdx {
			name = "a.mdx"
		}
		p := markup.Parse(name, src)
		sound(t, p)
		for _, c := range p.Comments {
			if c.Start < 0 || c.End > len(src) || c.Start >= c.End {
				t.Fatalf("%q has a comment at %v", src, c)
			}
		}
		if shown := p.Readable(markup.Span{End: len(src)}, everything, func(dest string, below bool) (string, bool) {
			if strings.Contains(dest, "{{") || strings.Contains(dest, "{%") {
				t.Fatalf("%q leads to %q", src, dest)
			}
			return dest, !below
		}); len(p.Templates)+len(p.Comments)+len(p.Links)+len(p.Headings)+len(p.Code) == 0 && shown != string(src) {
			t.Fatalf("%q is shown as %q", src, shown)
		}
		if edits, err := p.SetFront("title", "A: \"b\" #c"); err == nil {
			out, err := markup.Apply(src, edits)
			if err != nil {
				t.Fatal(err)
			}
			if q := markup.Parse(name, out); q.Front.Values["title"] != "A: \"b\" #c" {
				t.Fatalf("%q set the title to %v", out, q.Front.Values["title"])
			}
		}
	})
}
