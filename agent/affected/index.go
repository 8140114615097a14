package affected

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/internal/brief"
	"docent/site"
	"docent/site/markup"
)

// Bounds on the documentation that is read.
const (
	maxPage  = 2 << 20
	maxPages = 20_000
	maxBytes = 256 << 20
	maxKeys  = 4000 // different names of a page
)

// Docs are the pages of a documentation, by their paths as results name them.
type Docs struct {
	Files []string
	Read  func(path string) ([]byte, error)
}

// A page of the index.
type page struct {
	path, title string
	generated   bool
	lines       []string
	about       map[string]bool // words of its path, title and headings
	names       map[string][]place
	heads       map[string][]place // beginnings of longer names
}

// A place is a line that holds a name. Strong ones are headings.
type place struct {
	line   int
	strong bool
}

// An Index is the names in a documentation, to be looked up by changes.
type Index struct {
	pages []page
	in    map[string]int // on how many pages a name stands
	heads map[string]int
	about map[string]int
}

// NewIndex reads the pages.
func NewIndex(ctx context.Context, docs Docs) (*Index, error) {
	x := &Index{in: map[string]int{}, heads: map[string]int{}, about: map[string]int{}}
	total := 0
	for _, file := range docs.Files {
		if !site.IsPage(file) || hidden(file) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(x.pages) >= maxPages || total > maxBytes {
			break
		}
		src, err := docs.Read(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(src) > maxPage || bytes.IndexByte(src, 0) >= 0 {
			continue
		}
		total += len(src)
		p := readPage(file, src)
		for k := range p.names {
			x.in[k]++
		}
		for k := range p.heads {
			x.heads[k]++
		}
		for k := range p.about {
			x.about[k]++
		}
		x.pages = append(x.pages, p)
	}
	return x, nil
}

// Pages is how many pages the index holds.
func (x *Index) Pages() int { return len(x.pages) }

func hidden(p string) bool {
	for _, part := range strings.Split(p, "/") {
		if strings.HasPrefix(part, ".") || part == "node_modules" || part == "vendor" {
			return true
		}
	}
	base := strings.ToLower(path.Base(p))
	return strings.HasPrefix(base, "changelog") || base == "license.md" || base == "code_of_conduct.md"
}

var (
	chunkForm = regexp.MustCompile(`[A-Za-z0-9_$/{<:.-][\w./{}$<>:@*-]*`)
	madeBy    = regexp.MustCompile(`(?i)auto-?generated|do not edit|generated (?:by|from|with|automatically)`)
	isFence   = regexp.MustCompile("^\\s*(?:[>*-]\\s+)*(?:```|~~~)")
	webPlace  = regexp.MustCompile(`^[a-z]+://[^/]*`)
)

// readPage reads a page's names, with the lines that they stand in.
func readPage(file string, src []byte) page {
	p := page{path: file, about: map[string]bool{}, names: map[string][]place{}, heads: map[string][]place{},
		generated: madeBy.Match(src[:min(len(src), 1500)])}
	parsed := markup.Parse(file, src)
	p.title = title(parsed)
	p.lines = strings.Split(string(src), "\n")
	titles := map[int]bool{}
	for _, h := range parsed.Headings {
		titles[bytes.Count(src[:min(h.Span.Start, len(src))], []byte("\n"))] = true
		p.topic(h.Text)
	}
	p.topic(p.title)
	p.topic(strings.TrimSuffix(file, path.Ext(file)))
	fenced := false
	for i, text := range p.lines {
		if isFence.MatchString(text) {
			fenced = !fenced
			continue
		}
		p.line(i+1, brief.Bytes(text, 4*maxLine, ""), fenced, titles[i])
	}
	return p
}

func (p *page) topic(text string) {
	for _, w := range words(text) {
		if len(w) > 2 && len(p.about) < maxKeys {
			p.about[stem(w)] = true
		}
	}
}

// stem is a word without the ending of its plural.
func stem(w string) string {
	if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		return w[:len(w)-1]
	}
	return w
}

func title(p *markup.Page) string {
	if t := markup.FrontText(p.Front.Values, "title"); t != "" {
		return t
	}
	for _, h := range p.Headings {
		if h.Text != "" {
			return h.Text
		}
	}
	return p.Path
}

// line reads the names in one line.
func (p *page) line(number int, text string, fenced, strong bool) {
	for _, at := range chunkForm.FindAllStringIndex(text, 400) {
		chunk := strings.TrimRight(text[at[0]:at[1]], ".:,-<>@*/")
		code := fenced || strings.Count(text[:at[0]], "`")%2 == 1
		if m := webPlace.FindString(chunk); m != "" {
			if chunk = chunk[len(m):]; !strings.Contains(m, "localhost") && !strings.Contains(m, "127.0.0.1") && !code {
				continue // a link to somewhere
			}
		}
		if i := strings.Index(chunk, "/"); i >= 0 && strings.Count(chunk[i:], "/") > 1 {
			put(p.names, routeKey(chunk[i:]), place{number, strong})
		}
		for _, part := range strings.FieldsFunc(chunk, func(r rune) bool { return strings.ContainsRune("/:{}<>@*$", r) }) {
			p.part(part, place{number, strong}, code)
		}
	}
}

// part adds a name; of one with dots the parts as well.
func (p *page) part(name string, at place, code bool) {
	w := words(name)
	switch {
	case len(w) > 12:
	case len(w) == 1 && (code || at.strong):
		put(p.names, "1:"+w[0], at)
	case len(w) > 1:
		put(p.names, strings.Join(w, ""), at)
		for n := 2; n < len(w); n++ {
			put(p.heads, strings.Join(w[:n], " "), at)
		}
		if dots := strings.Split(name, "."); len(dots) > 1 {
			for _, d := range dots {
				if w := words(d); len(w) > 1 {
					put(p.names, strings.Join(w, ""), at)
				} else if len(w) == 1 && code {
					put(p.names, "1:"+w[0], at)
				}
			}
		}
	}
}

// put adds a place of a name, within the bounds of a page.
func put(in map[string][]place, key string, at place) {
	list, known := in[key]
	if len(key) < 4 || !known && len(in) >= maxKeys || len(list) > 0 && list[len(list)-1].line == at.line || len(list) >= 200 {
		return
	}
	in[key] = append(list, at)
}

// byScore orders findings, the highest first; equal ones by their path.
func byScore(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Page, b.Page))
}

func sortPlaces(list []Place) {
	slices.SortStableFunc(list, func(a, b Place) int { return cmp.Compare(a.Line, b.Line) })
}
