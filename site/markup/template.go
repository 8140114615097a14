package markup

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// A Template is what a site's generator replaces when it makes a page: a shortcode of Hugo, a tag or a value of
// Liquid, Jinja or Vue. What it becomes is not known, but for the text that it carries.
type Template struct {
	Span Span
	Text Span // of Span, what a reader sees in its place; empty if nothing is known
	kind Templates
	term bool // Text is the name of a term, with hyphens for blanks
}

// Templates are the kinds of templates that a generator knows. Any other one is text to it.
type Templates uint8

const (
	Shortcodes Templates = 1 << iota // {{< x >}} and {{% x %}}, within code too: Hugo
	Values                           // {{ x }}: Liquid, Jinja, Vue
	Tags                             // {% x %}: Liquid, Jinja
	fileTags                         // what takes in files: of several, and text to none
	Attributes                       // { .class #id } at the end of a line: MkDocs, kramdown
)

// Parameters by which shortcodes carry text, the first that is there counts.
var templateText = []string{"text", "title", "label", "caption", "header", "heading", "summary", "content", "name",
	"alt", "description"}

// switches are values that are no text: {{< tabpane text=true >}}.
var switches = map[string]bool{"true": true, "false": true}

// Shortcodes of wide use whose first parameter is text, though it has no name.
var positionalText = map[string]bool{"tab": true, "expand": true, "details": true, "kbd": true, "key": true,
	"badge": true, "abbr": true, "tooltip": true,
	"term": true, "glossary-term": true, "button": true, "heading": true, "card": true, "step": true, "accordion": true}

// Parameters that name a term, which is shown if there is no text.
var templateTerm = map[string]bool{"term_id": true, "term": true}

// template reads a template that ends before e, and marks what a reader sees of it. It returns where the text goes
// on: of what hides all up to its own end, behind that.
func (s *scanner) template(i, e, limit int) int {
	body := s.src[i:e]
	if bytes.HasPrefix(body, []byte("{{/*")) {
		return s.hide(i, e)
	}
	t := Template{Span: Span{i, e}, kind: templateKind(body)}
	a, b := i+2, max(i+2, e-2)
	if t.kind == Shortcodes {
		a++
		b = max(a, b-1)
		if bytes.HasPrefix(s.src[a:b], []byte("/*")) { // a shortcode that is shown, not called
			t.Text = trimmed(s.src, Span{a + 2, max(a+2, b-2)})
		}
	}
	p := parameters{src: s.src, at: a, end: b}
	p.trim()
	name := string(s.src[p.word().Start:p.at])
	short, liquid := t.kind == Shortcodes, t.kind == Tags
	switch {
	case t.Text.Start < t.Text.End:
	case name == "comment" && (short || liquid):
		if to := s.commentEnd(e, limit, short); to > 0 {
			return s.hide(i, to)
		}
	case liquid && name == "raw":
		if j := s.closing(e, limit, "endraw"); j > 0 {
			s.verbatim = max(s.verbatim, j)
		}
	case strings.HasPrefix(name, "/") || strings.HasPrefix(name, "end"):
	case short || liquid && strings.HasPrefix(name, "include"):
		t.Text, t.term = p.text(name)
	case t.kind == Values: // {{ "text" }}
		if text, ok := literal(s.src, Span{a, b}); ok {
			t.Text = text
		}
	}
	if t.Text.Start >= t.Text.End {
		t.Text = Span{}
	}
	s.p.Templates = append(s.p.Templates, t)
	if t.Text == (Span{}) {
		s.mark(i, e, markTag)
		return e
	}
	s.mark(i, t.Text.Start, markHidden)
	s.mark(t.Text.Start, t.Text.End, markOther)
	s.mark(t.Text.End, e, markHidden)
	return e
}

// hide takes a stretch out of what readers see.
func (s *scanner) hide(i, to int) int {
	s.mark(i, to, markTag)
	s.p.Comments = append(s.p.Comments, Span{i, to})
	return to
}

// templateKind tells the generators' templates apart by their first bytes.
func templateKind(body []byte) Templates {
	switch {
	case body[1] == '{' && (body[2] == '<' || body[2] == '%'):
		return Shortcodes
	case body[1] == '%':
		return Tags
	case body[1] == '{':
		return Values
	}
	return fileTags
}

var (
	rawEnd = regexp.MustCompile(`^\{%-?\s*endraw\s*-?%\}$`)
	// fileTemplate takes in a file: {! a.md !}, {* a.py *}.
	fileTemplate = regexp.MustCompile(`^\{[*!]>?\s*[^\s{}]+\.\w+[^{}]*[*!]\}$`)
)

// scissors tells a line by which an extension of Python-Markdown takes in other files: --8<-- "a.md".
func scissors(line []byte) bool {
	rest := bytes.TrimLeft(line, "-")
	if len(rest) == len(line) || !bytes.HasPrefix(rest, []byte("8<")) {
		return false
	}
	end := bytes.TrimLeft(rest[2:], "-")
	return len(end) < len(rest)-2 && (len(end) == 0 || isSpace(end[0]))
}

func trimmed(src []byte, sp Span) Span {
	for sp.Start < sp.End && isSpace(src[sp.Start]) {
		sp.Start++
	}
	for sp.End > sp.Start && isSpace(src[sp.End-1]) {
		sp.End--
	}
	return sp
}

// commentEnd is where a comment that a template begins ends; 0 if it does not.
func (s *scanner) commentEnd(from, limit int, short bool) int {
	if short {
		return s.closing(from, limit, "/comment")
	}
	return s.closing(from, limit, "endcomment")
}

// comment is where a comment of MDX ends; 0 if it does not.
func (s *scanner) comment(i, limit int) int {
	const end = "*/}"
	if lost, ok := s.notClosed[end]; ok && i >= lost.Start && limit <= lost.End {
		return 0
	}
	j := bytes.Index(s.src[i:limit], []byte(end))
	if j < 0 {
		s.steps += limit - i
		s.lose(end, i, limit)
		return 0
	}
	s.steps += j
	return i + j + len(end)
}

// lose notes that nothing of a name closes a template between two places.
func (s *scanner) lose(name string, from, to int) {
	if s.notClosed == nil {
		s.notClosed = map[string]Span{}
	}
	s.notClosed[name] = Span{from, to}
}

// closing finds the template of a name that stands alone, and gives its end; 0 if there is none.
func (s *scanner) closing(from, limit int, name string) int {
	if lost, ok := s.notClosed[name]; ok && from >= lost.Start && limit <= lost.End {
		return 0
	}
	for at := from; at < limit; {
		j := bytes.Index(s.src[at:limit], []byte(name))
		if j < 0 {
			s.steps += limit - at
			break
		}
		s.steps += j
		a, b := at+j, at+j+len(name)
		at = b
		for a > from && (s.src[a-1] == ' ' || s.src[a-1] == '-' || s.src[a-1] == '\t') {
			a--
		}
		if a < from+2 || s.src[a-1] != '%' && s.src[a-1] != '<' || s.src[a-2] != '{' {
			continue
		}
		for b < limit && (s.src[b] == ' ' || s.src[b] == '-' || s.src[b] == '\t') {
			b++
		}
		for b < limit && (s.src[b] == '%' || s.src[b] == '>') {
			b++
		}
		k := b
		for b < limit && s.src[b] == '}' && b < k+2 {
			b++
		}
		if b > k {
			return b
		}
	}
	s.lose(name, from, limit)
	return 0
}

// parameters reads what stands in a template, word by word.
type parameters struct {
	src     []byte
	at, end int
}

// trim takes off the marks by which Liquid and Jinja take the blanks around a template away, and Hugo's that closes
// one.
func (p *parameters) trim() {
	if p.at < p.end && p.src[p.at] == '-' {
		p.at++
	}
	if p.end > p.at && (p.src[p.end-1] == '-' || p.src[p.end-1] == '/') {
		p.end--
	}
}

// word is the next word, without the quotes around it; empty at the end.
func (p *parameters) word() Span {
	for p.at < p.end && isSpace(p.src[p.at]) {
		p.at++
	}
	from := p.at
	if p.at < p.end && (p.src[p.at] == '"' || p.src[p.at] == '\'' || p.src[p.at] == '`') {
		if j := bytes.IndexByte(p.src[p.at+1:p.end], p.src[p.at]); j >= 0 {
			p.at += j + 2
			return Span{from + 1, p.at - 1}
		}
	}
	for p.at < p.end && !isSpace(p.src[p.at]) && p.src[p.at] != '=' {
		p.at++
	}
	return Span{from, p.at}
}

// next is the next parameter; name is empty if it has none.
func (p *parameters) next() (name string, value Span, ok bool) {
	value = p.word()
	if value.Start >= p.end || p.at == value.Start {
		return "", value, false
	}
	if p.at < p.end && p.src[p.at] == '=' {
		name = string(p.src[value.Start:value.End])
		p.at++
		value = p.word()
	}
	return name, value, true
}

// text is what a shortcode of this name shows of its parameters, which come next.
func (p *parameters) text(name string) (text Span, term bool) {
	named, first, termed := map[string]Span{}, Span{}, Span{}
	for {
		key, value, ok := p.next()
		switch {
		case !ok:
			for _, key := range templateText {
				if v, ok := named[key]; ok && !switches[string(p.src[v.Start:v.End])] {
					return v, false
				}
			}
			if positionalText[name] && first.End > 0 {
				return first, false
			}
			return termed, true
		case key == "" && first.End == 0:
			first = value
		case templateTerm[key]:
			termed = value
		default:
			named[key] = value
		}
	}
}

// TemplateTarget is the page or the address that a link's destination names when templates are in it: by Hugo's
// ref and relref, Jekyll's link and post_url, and values that stand for the site's own address. It is empty if
// nothing tells. A destination without templates is its own target.
func TemplateTarget(dest string) string {
	if !hasTemplate(dest) {
		return dest
	}
	if to := templateTarget(dest); !hasTemplate(to) {
		return to
	}
	return ""
}

func hasTemplate(dest string) bool {
	return strings.Contains(dest, "{{") || strings.Contains(dest, "{%")
}

func templateTarget(dest string) string {
	if m := refTemplate.FindStringSubmatch(dest); m != nil {
		p := parameters{src: []byte(m[1]), end: len(m[1])}
		p.trim()
		first, named := "", ""
		for {
			key, value, ok := p.next()
			if !ok {
				break
			}
			if text := string(p.src[value.Start:value.End]); key == "path" {
				named = text
			} else if key == "" && first == "" {
				first = text
			}
		}
		if named != "" {
			first = named
		}
		if first == "" {
			return ""
		}
		return first + m[2]
	}
	if m := liquidLink.FindStringSubmatch(dest); m != nil {
		return "/" + strings.TrimPrefix(m[1], "/") + m[2]
	}
	if m := liquidURL.FindStringSubmatch(dest); m != nil {
		return m[1] + m[2]
	}
	if rest := siteAddress.ReplaceAllString(dest, ""); rest != dest && strings.HasPrefix(rest, "/") {
		return rest
	}
	return ""
}

var (
	refTemplate = regexp.MustCompile(`^\{\{[<%]-?\s*(?:rel)?ref\s+(.*?)[>%]\}\}([^{}]*)$`)
	liquidLink  = regexp.MustCompile(`^(?:\{\{[^{}]*\}\})?\{%-?\s*(?:link|post_url)\s+([^\s%]+)\s*-?%\}([^{}]*)$`)
	liquidURL   = regexp.MustCompile(
		`^\{\{-?\s*["']([^"']*)["']\s*\|\s*(?:relative_url|absolute_url|url|prepend:\s*site\.baseurl)\s*-?\}\}([^{}]*)$`)
	siteAddress = regexp.MustCompile(
		`^(?:\{\{-?\s*(?:site\.baseurl|site\.url|site\.github\.url|base_url|config\.site_url)\s*-?\}\})+`)
)

// shownTemplate is a shortcode that Hugo shows as it is called.
var shownTemplate = regexp.MustCompile(`\{\{([<%])/\*(.*?)\*/([>%])\}\}`)

// calledTemplate is a shortcode that Hugo calls, within code too.
var calledTemplate = regexp.MustCompile(`\{\{(?:<[^*]*?>|%[^*]*?%)\}\}`)

// Readable is a stretch of the page as readers have it, still in Markdown: templates are gone but for the text that
// they carry, comments are gone, and links lead to where the site's own do. known are the templates that the site's
// generator knows. link is asked for each link's destination, without templates; if it says no, the text of the
// link stays alone. below says that the destination is one below the site's root, as templates give it.
func (p *Page) Readable(span Span, known Templates, link func(dest string, below bool) (string, bool)) string {
	within := func(s Span) bool { return s.Start >= span.Start && s.End <= span.End }
	edits := p.withoutComments(span)
	for _, h := range p.Headings {
		line := bytes.IndexByte(append(p.Src[h.Inner.End:h.Span.End:h.Span.End], '\n'), '\n')
		if h.Custom && within(h.Span) {
			edits = append(edits, Edit{Span: Span{h.Inner.End, h.Inner.End + line}})
		}
	}
	for _, l := range p.Links {
		if within(l.Span) && l.Kind != ReferenceLink && l.Kind != AutoLink && l.Kind != ImportLink {
			edits = append(edits, l.led(link)...)
		}
	}
	for _, t := range p.Templates {
		if within(t.Span) && (known|fileTags)&t.kind != 0 {
			edits = append(edits, Edit{t.Span, []byte(p.templateText(t))})
		}
	}
	if known&Attributes != 0 {
		for _, at := range attributeList.FindAllIndex(p.Src[span.Start:span.End], -1) {
			list := Span{at[0] + span.Start, at[1] + span.Start}
			if !slices.ContainsFunc(p.Code, func(c Code) bool { return c.Span.Start < list.End && list.Start < c.Span.End }) {
				edits = append(edits, Edit{Span: list})
			}
		}
	}
	for _, c := range p.Code {
		if !within(c.Span) {
			continue
		}
		was := p.Src[c.Inner.Start:c.Inner.End]
		if now := readableCode(was, known); !bytes.Equal(now, was) {
			edits = append(edits, Edit{c.Inner, now})
		}
	}
	slices.SortStableFunc(edits, func(a, b Edit) int {
		return cmp.Or(a.Span.Start-b.Span.Start, b.Span.End-a.Span.End)
	})
	var out bytes.Buffer
	at := span.Start
	for _, e := range edits {
		if e.Span.Start < at { // within what is already gone
			continue
		}
		out.Write(p.Src[at:e.Span.Start])
		out.Write(e.New)
		at = e.Span.End
	}
	out.Write(p.Src[at:span.End])
	return out.String()
}

// attributeList is what gives an element its id and its classes, and an empty link that is only an anchor.
var attributeList = regexp.MustCompile(`\[\]\(\)\{[^{}\n]*\}|(?m)[ \t]*\{:?[ \t]*[.#][^{}\n]*\}[ \t]*$`)

// withoutComments are the edits that take comments out of a stretch, and the lines that hold nothing else.
func (p *Page) withoutComments(span Span) []Edit {
	var edits []Edit
	for _, c := range p.Comments {
		if c.Start >= span.End || c.End <= span.Start {
			continue
		}
		at := Span{max(c.Start, span.Start), min(c.End, span.End)}
		if newlineBefore(p.Src, at.Start) && newlineAfter(p.Src, at.End) {
			for at.End < span.End && p.Src[at.End-1] != '\n' {
				at.End++
			}
		}
		edits = append(edits, Edit{Span: at})
	}
	return edits
}

// led are the edits that let a link lead to where the site's own does, or leave its text alone.
func (l Link) led(link func(dest string, below bool) (string, bool)) []Edit {
	dest := TemplateTarget(l.Dest)
	to, ok := dest, dest != ""
	if ok {
		to, ok = link(dest, dest != l.Dest)
	}
	switch {
	case ok && to != l.Dest:
		if l.Kind != AttributeLink {
			to = addressed.Replace(to)
		}
		return []Edit{{l.At, []byte(to)}}
	case ok:
	case l.Kind == InlineLink || l.Kind == ImageLink:
		return []Edit{{Span: Span{l.Span.Start, l.Inner.Start}}, {Span: Span{l.Inner.End, l.Span.End}}}
	case l.Kind == ReferenceDefinition:
		return []Edit{{Span: l.Span}}
	}
	return nil
}

// addressed escapes what would end a link's destination.
var addressed = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E")

// templateText is what readers see of a template.
func (p *Page) templateText(t Template) string {
	text := string(p.Src[t.Text.Start:t.Text.End])
	if raw := string(p.Src[t.Span.Start:t.Span.End]); shownTemplate.MatchString(raw) {
		return shownTemplate.ReplaceAllString(raw, "{{$1$2$3}}")
	}
	if t.term {
		return strings.ReplaceAll(text, "-", " ")
	}
	return text
}

// readableCode is code without the templates that the generator replaces in it.
func readableCode(code []byte, known Templates) []byte {
	if !bytes.Contains(code, []byte("{{")) {
		return code
	}
	if known&Shortcodes != 0 {
		code = calledTemplate.ReplaceAll(code, nil)
	}
	return shownTemplate.ReplaceAll(code, []byte("{{$1$2$3}}"))
}
