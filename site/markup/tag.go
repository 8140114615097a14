package markup

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// literal reports whether an expression is one string and nothing else, and where its text is.
func literal(src []byte, sp Span) (Span, bool) {
	for sp.Start < sp.End && isSpace(src[sp.Start]) {
		sp.Start++
	}
	for sp.End > sp.Start && isSpace(src[sp.End-1]) {
		sp.End--
	}
	if sp.End-sp.Start < 2 {
		return sp, false
	}
	q := src[sp.Start]
	if q != '"' && q != '\'' && q != '`' || src[sp.End-1] != q {
		return sp, false
	}
	sp.Start++
	sp.End--
	in := src[sp.Start:sp.End]
	if bytes.IndexByte(in, q) >= 0 || bytes.IndexByte(in, '\\') >= 0 || q == '`' && bytes.Contains(in, []byte("${")) {
		return sp, false
	}
	return sp, true
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isAttrName(c byte) bool {
	return isWord(c) || c >= 0x80 || strings.IndexByte("-:@#.$", c) >= 0
}

const tagLimit = 1 << 18 // no tag is longer

// tagAt reads a tag that begins at i. It returns -1 if there is none.
func (s *scanner) tagAt(i, limit int) (Tag, int) {
	src := s.src
	limit = min(limit, i+tagLimit)
	t := Tag{Partner: -1}
	j := i + 1
	if j < limit && src[j] == '/' {
		t.Close = true
		j++
	}
	k := tagName(src, j, limit)
	if k == j && (!s.mdx || k >= limit || src[k] != '>') { // MDX has tags without a name
		return t, -1
	}
	t.Name = string(src[j:k])
	for j = k; j >= 0; {
		blank := j
		for j < limit && isSpace(src[j]) {
			j++
		}
		if j >= limit || !s.mdx && blankBetween(src[blank:j]) {
			return t, -1
		}
		c := src[j]
		switch {
		case c == '>':
			t.Span = Span{i, j + 1}
			return t, j + 1
		case c == '/' && j+1 < limit && src[j+1] == '>':
			t.Span = Span{i, j + 2}
			t.Self = true
			return t, j + 2
		case t.Close || blank == j && len(t.Attrs) == 0:
			return t, -1
		case c == '{' && s.mdx:
			e := s.jsEnd(j, limit)
			if e >= 0 {
				t.spreads = append(t.spreads, Span{j + 1, e - 1})
			}
			j = e
		default:
			var a Attr
			if a, j = s.attribute(j, limit); j >= 0 {
				t.Attrs = append(t.Attrs, a)
			}
		}
	}
	return t, -1
}

// tagName is where the name of a tag that begins at k ends; k if there is none.
func tagName(src []byte, k, limit int) int {
	if k >= limit || src[k] != '$' && (!isWord(src[k]) || src[k] >= '0' && src[k] <= '9') {
		return k
	}
	for k < limit && (isWord(src[k]) || src[k] >= 0x80 || strings.IndexByte("-.:$", src[k]) >= 0) {
		k++
	}
	return k
}

// attribute reads one attribute of a tag, and says where it ends; -1 if it is none.
func (s *scanner) attribute(j, limit int) (Attr, int) {
	src, k := s.src, j
	for k < limit && isAttrName(src[k]) {
		k++
	}
	if k == j {
		return Attr{}, -1
	}
	a := Attr{Kind: "flag", Name: string(src[j:k]), Value: Span{k, k}}
	end := k
	for k < limit && isSpace(src[k]) {
		k++
	}
	if k >= limit || src[k] != '=' {
		return a, end
	}
	k++
	for k < limit && isSpace(src[k]) {
		k++
	}
	if k >= limit {
		return a, -1
	}
	switch q := src[k]; q {
	case '"', '\'':
		a.Kind = "string"
		a.Value, end = s.quotedValue(k+1, limit, q)
	case '{':
		a.Kind, end = "expression", s.jsEnd(k, limit)
		a.Value = Span{k + 1, end - 1}
	default:
		a.Kind, end = "string", s.bareValue(k, limit)
		a.Value = Span{k, end}
	}
	return a, end
}

// quotedValue reads the value of an attribute behind its quote, and says where the tag goes on; -1 if it is not
// closed.
func (s *scanner) quotedValue(k, limit int, quote byte) (Span, int) {
	which := 0
	if quote == '\'' {
		which = 1
	}
	if s.noQuote[which] {
		return Span{}, -1
	}
	n := bytes.IndexByte(s.src[k:limit], quote)
	if n < 0 {
		s.noQuote[which] = s.noQuote[which] || limit == len(s.src)
		return Span{}, -1
	}
	if !s.mdx && blankBetween(s.src[k:k+n]) {
		return Span{}, -1
	}
	return Span{k, k + n}, k + n + 1
}

// bareValue is the end of a value without quotes, which HTML has; -1 if there is none.
func (s *scanner) bareValue(k, limit int) int {
	e := k
	for e < limit && !isSpace(s.src[e]) && strings.IndexByte("\"'=<>`", s.src[e]) < 0 {
		e++
	}
	if s.mdx || e == k {
		return -1
	}
	return e
}

// Attributes that a reader sees as text. Others are code, styling or switches.
var textAttrs = map[string]bool{
	"title": true, "description": true, "label": true, "alt": true, "caption": true, "header": true, "heading": true,
	"headline": true, "subtitle": true, "summary": true, "tip": true, "tooltip": true, "hint": true, "cta": true,
}

// Attributes that name a documented field, on the components that do so: shown, but code.
var fieldAttrs = map[string]bool{"name": true, "path": true, "query": true, "body": true, "header": true}

var linkAttrs = map[string]bool{"href": true, "src": true, "to": true, "img": true, "poster": true}

var voidTags = map[string]bool{
	"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true,
	"link": true, "meta": true, "param": true, "source": true, "track": true, "wbr": true,
}

// AttrText reports whether the attribute carries text for the reader, and where that is.
func (p *Page) AttrText(t Tag, a Attr) (Span, bool) {
	badge := t.Name == "Badge" && a.Name == "text"
	if !textAttrs[a.Name] && !badge || strings.HasSuffix(t.Name, "Field") && a.Name == "header" {
		return Span{}, false
	}
	return p.attrValue(a)
}

// notesKind reports whether an attribute is the kind of an admonition that has no title: shown, but no text.
func (t *Tag) notesKind(a Attr) bool {
	return (t.Name == "Aside" || t.Name == "Admonition") && a.Name == "type" &&
		!slices.ContainsFunc(t.Attrs, func(a Attr) bool { return a.Name == "title" })
}

func (p *Page) attrValue(a Attr) (Span, bool) {
	switch a.Kind {
	case "string":
		return a.Value, a.Value.Start < a.Value.End
	case "expression":
		return literal(p.Src, a.Value)
	}
	return Span{}, false
}

var attrLink = regexp.MustCompile(`\[([^\[\]]*)\]\(([^()\s]*)\)`)

func (s *scanner) addTag(t Tag) {
	p := s.p
	cur := t.Span.Start
	if strings.EqualFold(t.Name, "br") {
		s.mark(t.Span.Start, t.Span.End, markBreak)
		cur = t.Span.End
	}
	p.Scripts = append(p.Scripts, t.spreads...)
	for _, a := range t.Attrs {
		v, ok := p.attrValue(a)
		if a.Kind == "expression" && !ok {
			p.Scripts = append(p.Scripts, a.Value)
		}
		if !ok {
			continue
		}
		if linkAttrs[a.Name] {
			dest := string(p.Src[v.Start:v.End])
			p.Links = append(p.Links, Link{Kind: AttributeLink, Dest: dest, Span: t.Span, At: v})
		}
		field := strings.HasSuffix(t.Name, "Field") && fieldAttrs[a.Name]
		if _, ok := p.AttrText(t, a); ok || field || t.notesKind(a) {
			s.mark(cur, v.Start, markTag)
			s.mark(v.Start, v.End, markAttr)
			cur = v.End
			for _, m := range attrLink.FindAllSubmatchIndex(p.Src[v.Start:v.End], -1) { // captions hold Markdown
				at := Span{v.Start + m[4], v.Start + m[5]}
				p.Links = append(p.Links, Link{
					Kind: InlineLink, Dest: string(p.Src[at.Start:at.End]), Span: Span{v.Start + m[0], v.Start + m[1]}, At: at,
					Inner: Span{v.Start + m[2], v.Start + m[3]}, Text: string(p.Src[v.Start+m[2] : v.Start+m[3]]),
				})
			}
		}
	}
	s.mark(cur, t.Span.End, markTag)
	i := len(p.Tags)
	p.Tags = append(p.Tags, t)
	switch {
	case t.Self || !s.mdx && voidTags[strings.ToLower(t.Name)]:
	case !t.Close:
		s.open = append(s.open, i)
		s.partners[t.Name]++
	case s.partners[t.Name] == 0:
		if s.mdx {
			s.problem(t.Span.Start, "</"+t.Name+"> closes no tag")
		}
	default:
		for {
			n := len(s.open) - 1
			o := s.open[n]
			s.open = s.open[:n]
			s.partners[p.Tags[o].Name]--
			if p.Tags[o].Name == t.Name {
				p.Tags[o].Partner, p.Tags[i].Partner = i, o
				break
			}
			s.unclosed(o)
		}
	}
}

func (s *scanner) unclosed(i int) {
	if s.mdx { // plain Markdown takes HTML as it comes
		t := s.p.Tags[i]
		s.problem(t.Span.Start, "<"+t.Name+"> is not closed")
	}
}
