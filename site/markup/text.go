package markup

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Slug is GitHub's rule for the anchor of a heading, as the library github-slugger has it: lower case; letters,
// digits, hyphens and underscores only; a hyphen for each space.
func Slug(text string) string { return SlugInCase(Lower(text)) }

// SlugInCase is Slug with upper and lower case as they are.
func SlugInCase(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(text) {
		switch {
		case r == ' ' || r == '\n' || r == '\t':
			b.WriteByte('-')
		case r == '-' || unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic,
			unicode.Join_Control):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lower is a text in lower case by the rules of Unicode, as JavaScript and Python have them: a letter may become two.
func Lower(text string) string {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return cases.Lower(language.Und).String(text)
		}
	}
	return strings.ToLower(text)
}

// slugger makes slugs unique within a page as GitHub does, by a number that counts up.
type slugger map[string]int

func (s slugger) take(slug string) {
	if _, ok := s[slug]; !ok {
		s[slug] = 0
	}
}

// anchor is the anchor of a heading by the rule of its page's format.
func (s slugger) anchor(p *Page, text string) string {
	base, join := "id", ""
	switch id := DocutilsID(text); p.Format {
	case RST:
		if _, taken := s[id]; id != "" && !taken {
			s.take(id)
			return id
		}
	case AsciiDoc:
		base, join = asciidoctorID(text, p.idPrefix, p.idSeparator), p.idSeparator
		_, taken := s[base]
		if s[base] = max(s[base], 1); !taken { // the next one is the second
			return base
		}
	default:
		return s.unique(Slug(text))
	}
	for {
		s[base]++
		id := base + join + strconv.Itoa(s[base])
		if _, taken := s[id]; !taken {
			s.take(id)
			return id
		}
	}
}

// rstNotes are references to footnotes and citations, and footnotes without a name.
var rstNotes = regexp.MustCompile(`(?m)\[(?:[0-9]+|#[\w.-]*|\*|[A-Za-z][\w.-]*)\]_(?:[^\w_]|$)|^\.\. \[(?:[0-9]+|[#*])\](?:\s|$)`)

// numbered are the places of what docutils gives a number as it does to headings without an identifier of their own.
func (p *Page) numbered() (out []int) {
	if p.Format != RST || !bytes.Contains(p.Src, []byte("]")) {
		return nil
	}
	code := make([]Span, len(p.Code))
	for i, c := range p.Code {
		code[i] = c.Span
	}
	slices.SortFunc(code, func(a, b Span) int { return a.Start - b.Start })
	for _, m := range rstNotes.FindAllIndex(p.Src, -1) {
		for len(code) > 0 && code[0].End <= m[0] {
			code = code[1:]
		}
		if len(code) == 0 || m[0] < code[0].Start {
			out = append(out, m[0])
		}
	}
	return out
}

var (
	docutilsLetters = strings.NewReplacer("ß", "sz", "æ", "ae", "œ", "oe", "ø", "o", "đ", "d", "ħ", "h", "ı", "i", "ł", "l", "ŧ", "t")
	docutilsGone    = regexp.MustCompile(`[^a-z0-9]+`)
	docutilsEnds    = regexp.MustCompile(`^[-0-9]+|-+$`)
)

// DocutilsID is the identifier that docutils makes of a name; empty if nothing of it can be one.
func DocutilsID(name string) string {
	ascii := strings.Map(func(c rune) rune {
		if c >= 0x80 && !unicode.IsSpace(c) {
			return -1
		}
		return c
	}, norm.NFKD.String(docutilsLetters.Replace(Lower(name))))
	return docutilsEnds.ReplaceAllString(docutilsGone.ReplaceAllString(ascii, "-"), "")
}

func (s slugger) unique(slug string) string {
	out := slug
	for {
		if _, taken := s[out]; !taken {
			break
		}
		s[slug]++
		out = slug + "-" + strconv.Itoa(s[slug])
	}
	s[out] = 0
	return out
}

// Plain is the span as a reader sees it, code blocks included.
func (p *Page) Plain(span Span) string { return p.render(span, rendering{fences: true}) }

// rendering says how a span is shown.
type rendering struct {
	fences bool // with code blocks
	bare   bool // without the text of attributes
	dashes bool // two and three hyphens of prose are dashes
}

var dashes = strings.NewReplacer("---", "—", "--", "–")

func (p *Page) render(span Span, as rendering) string {
	i := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].End > span.Start })
	var b strings.Builder
	sep := sepNone
	for ; i < len(p.runs) && p.runs[i].Start < span.End; i++ {
		r := p.runs[i]
		sep = max(sep, r.sep)
		if r.kind == runFence && !as.fences || r.kind == runAttr && as.bare {
			sep = max(sep, sepLine)
			continue
		}
		r.Start, r.End = max(r.Start, span.Start), min(r.End, span.End)
		if b.Len() > 0 {
			switch sep {
			case sepSpace:
				if s := b.String(); s[len(s)-1] != ' ' && s[len(s)-1] != '\n' {
					b.WriteByte(' ')
				}
			case sepLine:
				b.WriteByte('\n')
			case sepBlank:
				b.WriteString("\n\n")
			}
		}
		sep = sepNone
		raw := p.Src[r.Start:r.End]
		if as.dashes && r.kind == runProse {
			raw = []byte(dashes.Replace(string(raw)))
		}
		switch r.kind {
		case runProse, runCode:
			squeeze(&b, raw)
		case runEntity:
			b.WriteString(html.UnescapeString(string(raw)))
		case runOther:
			squeeze(&b, bytes.Trim(raw, "`*_"))
		case runAttr:
			squeeze(&b, attrLink.ReplaceAll([]byte(html.UnescapeString(string(raw))), []byte("$1")))
		case runPre:
			if text := HTMLCode(string(raw)); as.fences {
				b.WriteString(strings.Trim(text, "\r\n"))
			} else {
				squeeze(&b, []byte(text))
			}
		case runFence:
			b.Write(bytes.Trim(raw, "\r\n"))
		}
	}
	out := b.String()
	if !as.fences {
		out = tidy(out)
	}
	return strings.ToValidUTF8(strings.TrimSpace(out), "\uFFFD")
}

// HTMLCode is code of HTML as it is shown: without tags and character references.
func HTMLCode(s string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		out.WriteString(s[:i])
		s = s[i:]
		if n := strings.IndexByte(s, '>'); n > 1 && (s[1] == '/' || unicode.IsLetter(rune(s[1]))) {
			s = s[n+1:]
		} else {
			out.WriteByte('<')
			s = s[1:]
		}
	}
	return html.UnescapeString(out.String() + s)
}

// Dedent takes off the indentation that all lines share.
func Dedent(s string) string {
	lines := strings.Split(strings.Trim(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
	shared := ""
	first := true
	for _, l := range lines {
		t := strings.TrimLeft(l, " \t")
		if t == "" {
			continue
		}
		if in := l[:len(l)-len(t)]; first {
			shared, first = in, false
		} else {
			for !strings.HasPrefix(in, shared) {
				shared = shared[:len(shared)-1]
			}
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, shared)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \t\n")
}

// tidy takes the blanks off the ends of lines.
func tidy(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.Trim(l, " ")
	}
	return strings.Join(lines, "\n")
}

func squeeze(b *strings.Builder, raw []byte) {
	space := false
	if b.Len() > 0 {
		s := b.String()
		space = s[len(s)-1] == ' ' || s[len(s)-1] == '\n'
	} else {
		space = true
	}
	for _, c := range raw {
		if isSpace(c) {
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		b.WriteByte(c)
		space = false
	}
}

// Title is the front matter's title, otherwise the first heading, otherwise the name of the file.
func (p *Page) Title() string {
	if t, ok := p.Front.Values["title"]; ok && t != nil {
		if s := strings.TrimSpace(fmt.Sprint(t)); s != "" {
			return s
		}
	}
	for _, h := range p.Headings {
		if h.Text != "" {
			return h.Text
		}
	}
	base := path.Base(p.Path)
	return strings.TrimSuffix(base, path.Ext(base))
}

// Sections cuts the page at its headings of up to maxLevel; zero means all. Text before the first heading makes a
// section of its own, and a page without any text has none.
func (p *Page) Sections(maxLevel int) []Section {
	if maxLevel <= 0 {
		maxLevel = 6
	}
	var out []Section
	type above struct {
		level int
		text  string
	}
	var trail []above
	add := func(sec Section, body Span) {
		sec.Body = p.render(body, rendering{})
		var code []string
		i := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].End > body.Start })
		for ; i < len(p.runs) && p.runs[i].Start < body.End; i++ {
			if r := p.runs[i]; r.kind == runFence {
				code = append(code, strings.ToValidUTF8(Dedent(string(p.Src[r.Start:min(r.End, body.End)])), "\uFFFD"))
			}
		}
		sec.Code = strings.Join(code, "\n\n")
		if sec.Heading == "" && sec.Body == "" && sec.Code == "" {
			return
		}
		out = append(out, sec)
	}
	var heads []Heading
	for _, h := range p.Headings {
		if h.Level <= maxLevel {
			heads = append(heads, h)
		}
	}
	end := p.Body.End
	if len(heads) > 0 {
		end = heads[0].Span.Start
	}
	if p.Body.Start < end {
		add(Section{Span: Span{p.Body.Start, end}}, Span{p.Body.Start, end})
	}
	for i, h := range heads {
		end := p.Body.End
		if i+1 < len(heads) {
			end = heads[i+1].Span.Start
		}
		for len(trail) > 0 && trail[len(trail)-1].level >= h.Level {
			trail = trail[:len(trail)-1]
		}
		sec := Section{Heading: h.Text, Anchor: h.Anchor, Level: h.Level, Span: Span{h.Span.Start, end}}
		for _, t := range trail {
			sec.Trail = append(sec.Trail, t.text)
		}
		trail = append(trail, above{h.Level, h.Text})
		add(sec, Span{h.Span.End, end})
	}
	return out
}

// Apply makes the edits, which may come in any order; none may overlap another or lie outside. Insertions at one place
// follow each other in the order given.
func Apply(src []byte, edits []Edit) ([]byte, error) {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b Edit) int {
		if a.Span.Start != b.Span.Start {
			return a.Span.Start - b.Span.Start
		}
		return a.Span.End - b.Span.End
	})
	size, at := len(src), 0
	for _, e := range sorted {
		if e.Span.Start < 0 || e.Span.End < e.Span.Start || e.Span.End > len(src) {
			return nil, fmt.Errorf("edit of bytes %d to %d in a file of %d", e.Span.Start, e.Span.End, len(src))
		}
		if e.Span.Start < at {
			return nil, errors.New("two edits overlap")
		}
		at = e.Span.End
		size += len(e.New) - (e.Span.End - e.Span.Start)
	}
	out := make([]byte, 0, size)
	at = 0
	for _, e := range sorted {
		out = append(out, src[at:e.Span.Start]...)
		out = append(out, e.New...)
		at = e.Span.End
	}
	return append(out, src[at:]...), nil
}
