package sites

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"docent/api"
	"docent/bench/corpora"
	"docent/internal/cell"
	"docent/search/index"
	"docent/search/page"
	"docent/site/markup"
)

// A reading is a page as it is published, or as Docent reads it from source.
type reading struct {
	title    string
	named    string // what the built page's own title says
	headings []heading
	ids      map[string]bool // all of a published page
	words    []string
	file     string // of what was read from source
	url      string // the same
	hidden   bool   // no reader finds it by searching
	redirect bool   // a published page that leads on
	bare     bool   // one whose text is none of the documentation's
}

// A heading has the anchors that lead to it, the generator's own first.
type heading struct {
	text    string
	anchors []string
}

// A look says which part of a built page readers see as its text.
type look struct {
	content cascadia.Matcher
	gone    cascadia.Matcher // what stands there and is none of it
}

func lookOf(content, gone string) (l look, err error) {
	if l.content, err = cascadia.ParseGroup(content); err != nil {
		return l, err
	}
	l.gone, err = cascadia.ParseGroup(gone + ", script, style, nav, button, template, noscript, [hidden]:not([role=tabpanel])")
	return l, err
}

// built reads the pages of a built site, by their addresses below its root.
func (l look) built(dir string) (map[string]*reading, error) {
	out := map[string]*reading{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path.Ext(name) != ".html" {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		r, err := l.page(src)
		if r == nil {
			r = &reading{bare: true}
		}
		out[addressKey(filepath.ToSlash(rel))] = r
		return err
	})
	return out, err
}

// addressKey is an address as static hosts know it: index.html is its folder, and /a, /a/ and /a.html are one.
func addressKey(at string) string {
	at = strings.TrimSuffix(strings.Trim(at, "/"), ".html")
	if at == "index" {
		return "/"
	}
	return "/" + strings.TrimSuffix(at, "/index")
}

// page reads a built page; nil if it holds nothing that is content.
func (l look) page(src []byte) (*reading, error) {
	doc, err := html.Parse(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	if bytes.Contains(src, []byte(`http-equiv="refresh"`)) || bytes.Contains(src, []byte("http-equiv=refresh")) {
		return &reading{redirect: true}, nil
	}
	content := cascadia.Query(doc, l.content)
	if content == nil || untranslated(doc) {
		return nil, nil
	}
	for _, n := range cascadia.QueryAll(content, l.gone) {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	r := &reading{ids: map[string]bool{}}
	for n := range doc.Descendants() {
		if id := attr(n, "id"); id != "" {
			r.ids[id] = true
		}
	}
	if t := cascadia.Query(doc, cascadia.MustCompile("title")); t != nil {
		r.title = textOf(t)
	}
	r.named = r.title
	var before []string
	named := false
	for _, n := range slices.Collect(content.Descendants()) {
		id := attr(n, "id")
		level := headingLevel(n)
		switch {
		case level == 0:
			if id != "" {
				before = append(before, id)
			}
			continue
		case level == 1 && !named:
			r.title, named = textOf(n), true
			n.Parent.RemoveChild(n)
		case level <= 4:
			if id != "" {
				before = append([]string{id}, before...)
			} else if parent := attr(n.Parent, "id"); n.Parent.Data == "section" && parent != "" {
				before = append([]string{parent}, before...)
			}
			for below := range n.Descendants() {
				if id := attr(below, "id"); id != "" {
					before = append(before, id)
				}
			}
			r.headings = append(r.headings, heading{textOf(n), before})
		}
		before = nil
	}
	r.words = wordsOf(textOf(content))
	return r, nil
}

// untranslated reports whether a page stands where its translation would, in the language that it is written in.
func untranslated(doc *html.Node) bool {
	main, whole := cascadia.Query(doc, cascadia.MustCompile("main[lang]")), cascadia.Query(doc, cascadia.MustCompile("html[lang]"))
	return main != nil && whole != nil && attr(main, "lang") != attr(whole, "lang")
}

func attr(n *html.Node, key string) string {
	if n != nil && n.Type == html.ElementNode {
		for _, a := range n.Attr {
			if a.Key == key {
				return a.Val
			}
		}
	}
	return ""
}

func headingLevel(n *html.Node) int {
	if n.Type == html.ElementNode && len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
		return int(n.Data[1] - '0')
	}
	return 0
}

var inline = map[string]bool{"a": true, "b": true, "i": true, "em": true, "strong": true, "code": true, "span": true, "kbd": true, "sub": true,
	"mark": true, "u": true, "s": true, "del": true, "abbr": true, "small": true, "tt": true, "cite": true, "samp": true, "var": true}

func textOf(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if n.Type == html.ElementNode && n.Data == "img" {
			b.WriteString(" " + attr(n, "alt"))
		}
		if n.Type == html.ElementNode && !inline[n.Data] {
			b.WriteByte(' ')
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
		if n.Type == html.ElementNode && !inline[n.Data] {
			b.WriteByte(' ')
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
}

// fromSource reads the pages of a repository as the index does, by their addresses below the root of the site.
func fromSource(t *testing.T, project api.Project, tree corpora.Tree) (pages map[string]*reading, of index.Manifest) {
	t.Helper()
	project.ID = "p"
	u, err := index.Read(t.Context(), index.Options{Workers: 2, Batch: 1000, Parsed: 64 << 20, Scratch: t.TempDir(), Cell: cell.InProcess(page.Kinds()...), Log: slog.New(slog.DiscardHandler)}, project, tree, nil, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	dir := filepath.Join(t.TempDir(), "index")
	g, err := u.Write(t.Context(), dir)
	if err == nil && g == nil {
		g, err = index.Open(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer g.Text.Close()
	pages = map[string]*reading{}
	for _, r := range g.Records {
		if r.Kind != page.KindPage || strings.HasSuffix(r.Path, ".txt") {
			continue
		}
		at, err := url.Parse(r.URL("", ""))
		if err != nil {
			t.Fatal(err)
		}
		content, err := g.Content(r)
		if err != nil {
			t.Fatal(err)
		}
		out := &reading{title: r.Title, file: r.Path, url: r.URL("", ""), hidden: r.Hidden}
		for _, s := range r.Sections {
			if s.Heading != "" {
				out.headings = append(out.headings, heading{s.Heading, []string{s.Anchor}})
			}
		}
		if page.IsHTML(r.Path) {
			content = page.Markdown(content)
		}
		p := markup.Parse(r.SourceName(), content)
		p = markup.Parse("x.md", []byte(p.Readable(p.Body, g.Manifest.Site.Templates, func(to string, _ bool) (string, bool) { return to, true })))
		named := false
		for _, s := range p.Sections(6) {
			if s.Level == 1 && !named {
				named = true // the title
			} else {
				out.words = append(out.words, wordsOf(s.Heading)...)
			}
			out.words = append(append(out.words, wordsOf(s.Body)...), wordsOf(s.Code)...)
		}
		shown := at.Path
		if base := "/" + g.Manifest.Site.Base; g.Manifest.SiteURL == "" && base != "/" {
			shown = strings.TrimPrefix(shown, base)
		}
		pages[addressKey(shown)] = out
	}
	return pages, g.Manifest
}

// A verdict counts what a reading from source has wrong.
type verdict struct {
	pages, addresses, titles, headings, anchors, words, lost, further int
	said                                                              []string
}

func (v *verdict) say(n *int, format string, args ...any) {
	*n++
	v.said = append(v.said, fmt.Sprintf(format, args...))
}

// compare holds what was read from source against what is published. The generator's own pages are let be: those
// that generated matches.
func compare(published, read map[string]*reading, generated func(at string) bool) (v verdict) {
	for _, at := range slices.Sorted(maps.Keys(read)) {
		p := published[at]
		if p == nil || p.redirect {
			v.say(&v.addresses, "%s: %s is no page of the site", at, read[at].file)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(published)) {
		p, r := published[at], read[at]
		switch {
		case p.redirect || p.bare || r == nil && generated(at):
			continue
		case r == nil:
			v.pages++
			v.say(&v.addresses, "%s: the page is not read", at)
			continue
		}
		v.pages++
		if t := normal(r.title); t != normal(p.title) && !strings.HasPrefix(normal(p.named), t) {
			v.say(&v.titles, "%s: the title is %q, not %q", at, r.title, p.title)
		}
		v.compareHeadings(at, p, r)
		v.compareWords(at, p, r)
	}
	return v
}

func normal(s string) string { return strings.Join(wordsOf(s), " ") }

const tableOfContents = "table of contents"

func (v *verdict) compareHeadings(at string, p, r *reading) {
	rest := slices.DeleteFunc(slices.Clone(r.headings), func(h heading) bool { return normal(h.text) == tableOfContents })
	for _, h := range p.headings {
		if len(h.anchors) == 0 || normal(h.text) == tableOfContents {
			continue // no link leads there, or to what answers nothing and is left out of what is read of a site
		}
		v.headings++
		i := slices.IndexFunc(rest, func(x heading) bool { return normal(x.text) == normal(h.text) })
		if i < 0 {
			v.say(&v.anchors, "%s: the heading %q is not read", at, h.text)
			continue
		}
		if !slices.Contains(h.anchors, rest[i].anchors[0]) {
			v.say(&v.anchors, "%s: %q has the anchor %q, not %q", at, h.text, rest[i].anchors[0], h.anchors[0])
		}
		rest = rest[i+1:]
	}
	for _, h := range r.headings {
		if a := h.anchors[0]; a != "" && !p.ids[a] && normal(h.text) != tableOfContents {
			found := false
			for _, x := range p.headings {
				found = found || normal(x.text) == normal(h.text) // it was named above
			}
			if !found {
				v.say(&v.anchors, "%s: %q has the anchor %q, which is not there", at, h.text, a)
			}
		}
	}
}

func (v *verdict) compareWords(at string, p, r *reading) {
	counts := map[string]int{}
	for _, w := range r.words {
		counts[w]++
	}
	var lost, further []string
	for _, w := range p.words {
		if counts[w]--; counts[w] < 0 {
			lost = append(lost, w)
		}
	}
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		for range max(0, counts[w]) {
			further = append(further, w)
		}
	}
	v.words += len(p.words)
	v.lost, v.further = v.lost+len(lost), v.further+len(further)
	if len(lost) > 0 {
		v.said = append(v.said, fmt.Sprintf("%s: words of the page are not read: %.400s", at, strings.Join(lost, " ")))
	}
	if len(further) > 0 {
		v.said = append(v.said, fmt.Sprintf("%s: words are read that the page has not: %.400s", at, strings.Join(further, " ")))
	}
}

func (v *verdict) row() string {
	return fmt.Sprintf("%d pages, %d wrong addresses, %d wrong titles, %d headings, %d wrong anchors, %d words, %d lost, %d further",
		v.pages, v.addresses, v.titles, v.headings, v.anchors, v.words, v.lost, v.further)
}
