package markup

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// leaf reads a paragraph-like block that begins at start: its end is found together with the tags, expressions and code
// in it, as each of these may run over the end of a line. It returns where the next block begins.
func (s *scanner) leaf(start int, oneLine, raw bool) int {
	_, next := s.inline(start, len(s.src), oneLine, raw)
	return next
}

type leafScan struct {
	atoms   []Span // what is no running text, in order
	lines   []int  // where the content of each line begins
	tickAt  [64]int
	ticked  bool
	noTitle [2]bool
}

// inline reads the text from start to limit, or to the end of its block where that comes first.
func (s *scanner) inline(start, limit int, oneLine, raw bool) (end, next int) {
	ls := &leafScan{lines: []int{start}}
	src := s.src
	setext := 0
	if oneLine {
		if le, _ := s.lineEnd(start); le < limit {
			limit = le
		}
	}
	i := start
	end, next = -1, -1
	atom := func(e int) { ls.atoms = append(ls.atoms, Span{i, e}); i = e }
scan:
	for i < limit {
		s.steps++
		switch src[i] {
		case '\n':
			le := i
			if le > start && src[le-1] == '\r' {
				le--
			}
			if oneLine {
				end, next = le, i+1
				break scan
			}
			goOn, at, level, after := s.continues(i+1, raw)
			if level > 0 && !raw && src[start] != '<' && !(s.mdx && src[start] == '{') {
				setext = level
				end, next = le, after
				break scan
			}
			if !goOn || level > 0 {
				end, next = le, i+1
				break scan
			}
			if bytes.IndexByte(src[i:at], '>') >= 0 {
				s.mark(i, at, markHidden)
				atom(at)
			}
			ls.lines = append(ls.lines, at)
			i = at
		case '\\':
			if i+1 < limit && isPunct(src[i+1]) {
				s.mark(i, i+1, markHidden)
				atom(i + 2)
			} else if newlineAfter(src[:limit], i+1) && i+1 < limit {
				s.mark(i, i+1, markBreak)
				atom(i + 1)
			} else {
				i++
			}
		case '`':
			n := 0
			for i+n < limit && src[i+n] == '`' {
				n++
			}
			if e := s.closeTicks(ls, i+n, limit, n, oneLine, raw); e > 0 {
				c := Code{Span: Span{i, e}, Inner: Span{i + n, e - n}, Inline: true}
				s.p.Code = append(s.p.Code, c)
				s.mark(i, c.Inner.Start, markHidden)
				s.mark(c.Inner.Start, c.Inner.End, markCode)
				s.mark(c.Inner.End, e, markHidden)
				atom(e)
			} else {
				i += n
			}
		case '<':
			if e := s.angle(i, limit); e > 0 {
				ends := raw && i == start && rawBlock(src[i:e])
				atom(e)
				if ends {
					oneLine = true
					if bytes.HasPrefix(src[start:], []byte("<!--")) {
						limit, _ = s.lineEnd(e)
					} else if k := bytes.IndexByte(src[e:limit], '>'); k >= 0 { // the closing tag
						limit, _ = s.lineEnd(e + k)
					}
				}
			} else {
				i++
			}
		case '{':
			if e := s.brace(i, limit); e > 0 {
				atom(e)
			} else {
				i++
			}
		case '&':
			j := i + 1
			for j < limit && j-i < 32 && (src[j] == '#' && j == i+1 || isWord(src[j]) && src[j] != '_') {
				j++
			}
			if j > i+1 && j < limit && src[j] == ';' {
				s.mark(i, j+1, markEntity)
				atom(j + 1)
			} else {
				i++
			}
		default:
			i++
		}
	}
	if end < 0 { // the limit, or an atom that runs up to it
		end = max(limit, i)
		_, next = s.lineEnd(min(end, len(src)))
		if end > limit || !oneLine {
			next = end
		}
		for end > start && (src[end-1] == '\n' || src[end-1] == '\r') {
			end--
		}
	}
	text := s.definitions(ls, start, end)
	if setext > 0 && text == start {
		h := Heading{Level: setext, Span: Span{start, next}}
		for h.Span.End > start && (src[h.Span.End-1] == '\n' || src[h.Span.End-1] == '\r') {
			h.Span.End--
		}
		b := end
		for b > start && (src[b-1] == ' ' || src[b-1] == '\t') {
			b--
		}
		b = s.customAnchor(&h, start, b)
		h.Inner = Span{start, b}
		s.mark(b, end, markHidden)
		s.p.Headings = append(s.p.Headings, h)
	}
	if text < end {
		s.leaves = append(s.leaves, Span{text, end})
		s.walk(ls, text, end)
	}
	return end, next
}

// continues tells whether the line at pos belongs to the paragraph before it, where its content begins, and whether it
// is the underline of a heading.
func (s *scanner) continues(pos int, raw bool) (ok bool, at, level, after int) {
	end, next := s.lineEnd(pos)
	j, col := s.indent(pos, end, 0)
	q := 0
	for j < end && s.src[j] == '>' && q < s.deep {
		q++
		j++
		if j < end && s.src[j] == ' ' {
			j++
		}
		j, col = s.indent(j, end, 0)
	}
	if j == end {
		return false, j, 0, next
	}
	if n, _ := s.fenceRun(j, end); n > 0 {
		return false, j, 0, next
	}
	if raw {
		return true, j, 0, next
	}
	c := s.src[j]
	near := s.mdx || col < s.base()+4
	switch c {
	case '>':
		return !near, j, 0, next
	case '#':
		if near && s.atx(j, end) > 0 {
			return false, j, 0, next
		}
	case '=', '-':
		if near && q == s.deep && col >= s.base() && underline(s.src[j:end]) {
			return false, j, map[byte]int{'=': 1, '-': 2}[c], next
		}
	case ':':
		if bytes.HasPrefix(s.src[j:end], []byte(":::")) {
			return false, j, 0, next
		}
	}
	if !s.mdx && scissors(s.src[j:end]) {
		return false, j, 0, next
	}
	if near && s.isRule(j, end) {
		return false, j, 0, next
	}
	if n, _, ok := s.listMarker(j, end); ok && near {
		if col < s.base() {
			return false, j, 0, next
		}
		r, _ := s.indent(j+n, end, 0)
		if r < end && (n == 1 || n == 2 && c == '1') {
			return false, j, 0, next
		}
	}
	return true, j, 0, next
}

func underline(b []byte) bool {
	b = bytes.TrimRight(b, " \t")
	for _, c := range b {
		if c != b[0] {
			return false
		}
	}
	return true
}

// closeTicks finds the run of exactly n backticks that closes a code span, within its paragraph.
func (s *scanner) closeTicks(ls *leafScan, i, limit, n int, oneLine, raw bool) int {
	if n >= len(ls.tickAt) || ls.ticked && ls.tickAt[n] < i {
		return 0
	}
	if !ls.ticked {
		ls.tickAt = [64]int{}
	}
	for i < limit {
		s.steps++
		switch s.src[i] {
		case '`':
			k := i
			for i < limit && s.src[i] == '`' {
				i++
			}
			if i-k == n {
				return i
			}
			if i-k < len(ls.tickAt) {
				ls.tickAt[i-k] = k
			}
			continue
		case '\n':
			if oneLine {
				i = limit
				continue
			}
			if ok, _, level, _ := s.continues(i+1, raw); !ok || level > 0 {
				i = limit
				continue
			}
		}
		i++
	}
	ls.ticked = true
	return 0
}

// angle reads what begins with < at i: a comment, an autolink or a tag. It returns its end, or 0.
func (s *scanner) angle(i, limit int) int {
	src := s.src
	if bytes.HasPrefix(src[i:limit], []byte("<!--")) {
		if s.noComment {
			return 0
		}
		j := bytes.Index(src[i+4:], []byte("-->"))
		s.steps += max(0, j)
		if j < 0 {
			s.noComment = true
			s.problem(i, "the comment is not closed")
			return 0
		}
		e := i + 4 + j + 3
		s.mark(i, e, markTag)
		s.p.Comments = append(s.p.Comments, Span{i, e})
		return e
	}
	if e := s.autolink(i, limit); e > 0 {
		return e
	}
	t, e := s.tagAt(i, limit)
	s.steps += max(0, e-i)
	if e < 0 {
		return 0
	}
	s.addTag(t)
	if s.mdx || t.Close || t.Self {
		return e
	}
	switch name := strings.ToLower(t.Name); name {
	case "script", "style", "pre", "textarea":
		if s.noRaw[name] {
			return e
		}
		j := indexFold(src[e:], "</"+name)
		if j < 0 {
			if s.noRaw == nil {
				s.noRaw = map[string]bool{}
			}
			s.noRaw[name] = true
			return e
		}
		if name == "script" {
			s.imports(e, e+j)
		}
		if name == "script" || name == "style" {
			s.mark(e, e+j, markTag)
		}
		return e + j
	}
	return e
}

func indexFold(b []byte, lower string) int {
	for i := 0; ; {
		j := bytes.Index(b[i:], []byte("</"))
		if j < 0 {
			return -1
		}
		i += j
		if len(b)-i >= len(lower) && strings.EqualFold(string(b[i:i+len(lower)]), lower) {
			return i
		}
		i += 2
	}
}

func (s *scanner) autolink(i, limit int) int {
	src := s.src
	j := i + 1
	for j < limit && j-i < 34 && (isWord(src[j]) && src[j] != '_' || src[j] == '+' || src[j] == '.' || src[j] == '-') {
		j++
	}
	if j < limit && src[j] == ':' && j-i > 2 {
		for j < limit && src[j] > ' ' && src[j] != '<' && src[j] != '>' {
			j++
		}
		if j < limit && src[j] == '>' && (bytes.Contains(src[i:j], []byte("://")) || bytes.HasPrefix(src[i+1:j], []byte("mailto:"))) {
			s.addAuto(i, i+1, j, j+1)
			return j + 1
		}
		return 0
	}
	for j < limit && (isWord(src[j]) || strings.IndexByte(".!#$%&'*+/=?^`{|}~-", src[j]) >= 0) {
		j++
	}
	if j > i+1 && j < limit && src[j] == '@' {
		for j++; j < limit && (isWord(src[j]) || src[j] == '.' || src[j] == '-'); j++ {
		}
		if j < limit && src[j] == '>' && src[j-1] != '@' {
			s.addAuto(i, i+1, j, j+1)
			return j + 1
		}
	}
	return 0
}

func (s *scanner) addAuto(a, b, c, d int) {
	dest := string(s.src[b:c])
	s.p.Links = append(s.p.Links, Link{Kind: AutoLink, Dest: dest, Span: Span{a, d}, At: Span{b, c}, Text: dest})
	s.mark(a, b, markHidden)
	s.mark(b, c, markOther)
	s.mark(c, d, markHidden)
}

// brace reads what begins with { at i: an MDX expression, or a template of one of the Markdown dialects.
func (s *scanner) brace(i, limit int) int {
	src := s.src
	if s.mdx {
		e := s.jsEnd(i, limit)
		if e < 0 {
			s.problem(i, "the expression is not closed")
			return 0
		}
		if lit, ok := literal(src, Span{i + 1, e - 1}); ok {
			s.mark(i, lit.Start, markHidden)
			s.mark(lit.Start, lit.End, markOther)
			s.mark(lit.End, e, markHidden)
		} else {
			s.mark(i, e, markTag)
			s.p.Scripts = append(s.p.Scripts, Span{i + 1, e - 1})
			if in := bytes.TrimSpace(src[i+1 : e-1]); bytes.HasPrefix(in, []byte("/*")) && bytes.Index(in, []byte("*/")) == len(in)-2 {
				s.p.Comments = append(s.p.Comments, Span{i, e})
			}
		}
		return e
	}
	if i+1 >= limit {
		return 0
	}
	if bytes.HasPrefix(src[i:limit], []byte("{/*")) { // pages that end in .md are MDX to some generators
		if e := s.comment(i, limit); e > 0 {
			s.mark(i, e, markTag)
			s.p.Comments = append(s.p.Comments, Span{i, e})
			return e
		}
	}
	closer := "}"
	switch src[i+1] {
	case '{':
		closer = "}}"
	case '%':
		closer = "%}"
	case '*': // what takes in another file, of Python-Markdown's extensions
		closer = "*}"
	case '!':
		closer = "!}"
	case ':', '#', '.':
	default:
		return 0
	}
	to := min(limit, i+4096)
	from := i + 2
	known := &s.noClose[0]
	switch closer {
	case "}}":
		known = &s.noClose[1]
	case "%}":
		known = &s.noClose[2]
	case "*}":
		known = &s.noClose[3]
	case "!}":
		known = &s.noClose[4]
	}
	if from >= known.from && from < known.to { // only what was not looked at before
		from = max(from, min(known.to, to)-1)
	}
	j := bytes.Index(src[from:to], []byte(closer))
	if j < 0 {
		s.steps += to - from
		known.from, known.to = i+2, to
		return 0
	}
	s.steps += j
	e := from + j + len(closer)
	if bytes.Contains(src[i:e], []byte("\n\n")) || len(closer) == 1 && bytes.IndexByte(src[i:e], '\n') >= 0 {
		return 0
	}
	if len(closer) == 2 {
		if i < s.verbatim && !rawEnd.Match(src[i:e]) || src[i+1] != '{' && src[i+1] != '%' && !fileTemplate.Match(src[i:e]) {
			return 0
		}
		return s.template(i, e, limit)
	}
	s.mark(i, e, markTag)
	return e
}

// literal tells whether an expression is one string and nothing else, and where its text stands.
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

// tagAt reads a tag that begins at i. It returns -1 where there is none.
func (s *scanner) tagAt(i, limit int) (Tag, int) {
	src := s.src
	limit = min(limit, i+tagLimit)
	t := Tag{Partner: -1}
	j := i + 1
	if j < limit && src[j] == '/' {
		t.Close = true
		j++
	}
	k := j
	if k < limit && (isWord(src[k]) && (src[k] < '0' || src[k] > '9') || src[k] == '$') {
		for k < limit && (isWord(src[k]) || src[k] >= 0x80 || src[k] == '-' || src[k] == '.' || src[k] == ':' || src[k] == '$') {
			k++
		}
	} else if !s.mdx || k >= limit || src[k] != '>' {
		return t, -1
	}
	t.Name = string(src[j:k])
	j = k
	for {
		ws := j
		for j < limit && isSpace(src[j]) {
			j++
		}
		if j >= limit || !s.mdx && blankBetween(src[ws:j]) {
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
		case t.Close || ws == j && len(t.Attrs) == 0:
			return t, -1
		case c == '{' && s.mdx:
			e := s.jsEnd(j, limit)
			if e < 0 {
				return t, -1
			}
			t.spreads = append(t.spreads, Span{j + 1, e - 1})
			j = e
			continue
		case !isAttrName(c):
			return t, -1
		}
		a := Attr{Kind: "flag"}
		k := j
		for k < limit && isAttrName(src[k]) {
			k++
		}
		a.Name = string(src[j:k])
		a.Value = Span{k, k}
		j = k
		for k < limit && isSpace(src[k]) {
			k++
		}
		if k < limit && src[k] == '=' {
			k++
			for k < limit && isSpace(src[k]) {
				k++
			}
			if k >= limit {
				return t, -1
			}
			switch q := src[k]; q {
			case '"', '\'':
				which := 0
				if q == '\'' {
					which = 1
				}
				if s.noQuote[which] {
					return t, -1
				}
				e := bytes.IndexByte(src[k+1:limit], q)
				if e < 0 {
					if limit == len(src) {
						s.noQuote[which] = true
					}
					return t, -1
				}
				a.Kind, a.Value = "string", Span{k + 1, k + 1 + e}
				if !s.mdx && blankBetween(src[a.Value.Start:a.Value.End]) {
					return t, -1
				}
				j = a.Value.End + 1
			case '{':
				e := s.jsEnd(k, limit)
				if e < 0 {
					return t, -1
				}
				a.Kind, a.Value = "expression", Span{k + 1, e - 1}
				j = e
			default:
				if s.mdx {
					return t, -1
				}
				e := k
				for e < limit && !isSpace(src[e]) && strings.IndexByte("\"'=<>`", src[e]) < 0 {
					e++
				}
				if e == k {
					return t, -1
				}
				a.Kind, a.Value = "string", Span{k, e}
				j = e
			}
		}
		t.Attrs = append(t.Attrs, a)
	}
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

// AttrText tells whether the attribute carries text for the reader, and where that stands.
func (p *Page) AttrText(t Tag, a Attr) (Span, bool) {
	if !textAttrs[a.Name] || strings.HasSuffix(t.Name, "Field") && a.Name == "header" {
		return Span{}, false
	}
	return p.attrValue(a)
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
		if _, ok := p.AttrText(t, a); ok || field {
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

// definitions reads the reference definitions that a paragraph begins with and returns where its text does.
func (s *scanner) definitions(ls *leafScan, start, end int) int {
	for n := 0; n < len(ls.lines); n++ {
		at := ls.lines[n]
		if at < start {
			continue
		}
		if at >= end || s.src[at] != '[' || at+1 < end && s.src[at+1] == '^' {
			return start
		}
		le, _ := s.lineEnd(at)
		le = min(le, end)
		j := at + 1
		for j < le && s.src[j] != ']' && s.src[j] != '[' {
			if s.src[j] == '\\' {
				j++
			}
			j++
		}
		if j+1 >= le || s.src[j] != ']' || s.src[j+1] != ':' || len(bytes.TrimSpace(s.src[at+1:j])) == 0 {
			return start
		}
		k, _ := s.indent(j+2, le, 0)
		if k == le { // the destination on the next line
			if n+1 >= len(ls.lines) {
				return start
			}
			n++
			k = ls.lines[n]
			if k >= end {
				return start
			}
			le, _ = s.lineEnd(k)
			le = min(le, end)
		}
		var dest Span
		m := k
		if k < le && s.src[k] == '<' {
			e := bytes.IndexByte(s.src[k:le], '>')
			if e < 0 {
				return start
			}
			dest = Span{k + 1, k + e}
			m = k + e + 1
		} else {
			for m < le && !isSpace(s.src[m]) {
				m++
			}
			dest = Span{k, m}
		}
		if dest.Start >= dest.End {
			return start
		}
		rest := bytes.TrimSpace(s.src[m:le])
		if len(rest) > 0 {
			q := rest[0]
			if q == '(' {
				q = ')'
			} else if q != '"' && q != '\'' {
				return start
			}
			if len(rest) < 2 || rest[len(rest)-1] != q {
				return start
			}
		}
		label := string(s.src[at+1 : j])
		if s.defs == nil {
			s.defs = map[string]string{}
		}
		key := labelKey(label)
		if _, ok := s.defs[key]; !ok {
			s.defs[key] = unescape(s.src[dest.Start:dest.End])
		}
		s.p.Links = append(s.p.Links, Link{
			Kind: ReferenceDefinition, Dest: string(s.src[dest.Start:dest.End]), Span: Span{at, le}, At: dest, Text: label,
		})
		start = end
		if n+1 < len(ls.lines) {
			start = ls.lines[n+1]
		}
	}
	return start
}

const maxBrackets = 32 // open at once

type bracket struct {
	at, text int
	image    bool
	nested   bool // holds a pair of brackets
}

type delimiter struct {
	at, n       int
	ch          byte
	open, close bool
}

// walk reads the running text of a leaf, between its atoms: links, emphasis, cells and bare URLs.
func (s *scanner) walk(ls *leafScan, start, end int) {
	src := s.src
	table := s.tableFrom(ls, start, end)
	inactive := 0
	var stack []bracket
	open := func(b bracket) {
		if stack = append(stack, b); len(stack) > maxBrackets { // the text of each is read with all that it holds
			stack = stack[1:]
			inactive = max(0, inactive-1)
		}
	}
	var delims []delimiter
	ai := 0
	for i := start; i < end; {
		s.steps++
		for ai < len(ls.atoms) && ls.atoms[ai].End <= i {
			ai++
		}
		if ai < len(ls.atoms) && ls.atoms[ai].Start <= i {
			i = ls.atoms[ai].End
			ai++
			continue
		}
		stop := end
		if ai < len(ls.atoms) {
			stop = min(stop, ls.atoms[ai].Start)
		}
		c := src[i]
		switch c {
		case '!':
			if i+1 < stop && src[i+1] == '[' {
				open(bracket{at: i, text: i + 2, image: true})
				i++
			}
			i++
		case '[':
			open(bracket{at: i, text: i + 1})
			i++
		case ']':
			n := len(stack) - 1
			if n < 0 {
				i++
				continue
			}
			b := stack[n]
			stack = stack[:n]
			if n > 0 {
				stack[n-1].nested = true
			}
			inner := Span{b.text, i}
			alive := b.image || n >= inactive
			if i+1 < end && src[i+1] == '(' && alive {
				if at, e := s.destination(ls, i+1, end); e > 0 {
					kind := InlineLink
					if b.image {
						kind = ImageLink
					} else {
						inactive = n
					}
					s.p.Links = append(s.p.Links, Link{Kind: kind, Dest: string(src[at.Start:at.End]), Span: Span{b.at, e}, At: at, Inner: inner})
					s.mark(b.at, b.text, markHidden)
					s.mark(i, e, markHidden)
					i = e
					inactive = min(inactive, len(stack))
					continue
				}
			}
			if inner.End-inner.Start < 1000 && inner.Start < inner.End {
				in := src[inner.Start:inner.End]
				head := len(bytes.TrimSpace(src[ls.lines[0]:b.at])) == 0
				switch {
				case in[0] == '^' || head && in[0] == '!' || head && len(in) == 1 && (in[0] == ' ' || in[0] == 'x' || in[0] == 'X'):
					s.mark(b.at, i+1, markHidden)
					i++
					continue
				}
				if i+1 < end && src[i+1] == '[' {
					e := i + 2
					for e < end && e-i < 1000 && src[e] != ']' && src[e] != '[' {
						e++
					}
					if e < end && src[e] == ']' && !(e+1 < end && src[e+1] == '(') {
						label := string(src[i+2 : e])
						if strings.TrimSpace(label) == "" {
							label = string(in)
						}
						s.refs = append(s.refs, reference{Span{b.at, e + 1}, inner, label})
						i = e + 1
						continue
					}
				} else if !b.nested && alive {
					s.refs = append(s.refs, reference{Span{b.at, i + 1}, inner, string(in)})
				}
			}
			i++
		case '*', '_', '~':
			n := 0
			for i+n < stop && src[i+n] == c {
				n++
			}
			before, after := byte(' '), byte(' ')
			if i > start {
				before = src[i-1]
			}
			if i+n < end {
				after = src[i+n]
			}
			left := !isSpace(after) && (!isPunct(after) || isSpace(before) || isPunct(before))
			right := !isSpace(before) && (!isPunct(before) || isSpace(after) || isPunct(after))
			d := delimiter{at: i, n: n, ch: c, open: left, close: right}
			if c == '_' {
				d.open = left && (!right || isPunct(before))
				d.close = right && (!left || isPunct(after))
			}
			if (d.open || d.close) && (c != '~' || n <= 2) {
				delims = append(delims, d)
			}
			i += n
		case '|':
			if i >= table {
				s.mark(i, i+1, markSpace)
			}
			i++
		case '\n':
			if i >= table {
				s.mark(i, i+1, markBreak)
				stack, inactive = stack[:0], 0
			} else if i > start+1 && src[i-1] == ' ' && src[i-2] == ' ' {
				s.mark(i-2, i, markBreak)
			}
			i++
		case 'h', 'w', 'H':
			if e := bareURL(src, i, start, end); e > 0 {
				// An atom within the address (an escape, an entity) is part of it; a tag or code ends it.
				for k := ai; k < len(ls.atoms) && ls.atoms[k].Start < e; k++ {
					if a := src[ls.atoms[k].Start]; a != '&' && a != '\\' {
						e = ls.atoms[k].Start
					}
				}
				dest := string(src[i:e])
				s.p.Links = append(s.p.Links, Link{Kind: AutoLink, Dest: dest, Span: Span{i, e}, At: Span{i, e}, Text: dest})
				s.mark(i, e, markOther)
				i = e
				continue
			}
			i++
		default:
			i++
		}
	}
	s.emphasis(delims)
}

func bareURL(src []byte, i, start, end int) int {
	if i > start && (isWord(src[i-1]) || src[i-1] >= 0x80) {
		return 0
	}
	rest := src[i:min(end, i+8)]
	n := 0
	switch {
	case bytes.EqualFold(rest, []byte("https://")):
		n = 8
	case len(rest) >= 7 && bytes.EqualFold(rest[:7], []byte("http://")):
		n = 7
	case bytes.HasPrefix(rest, []byte("www.")):
		n = 4
	default:
		return 0
	}
	j := i + n
	depth := 0
loop:
	for j < end && src[j] > ' ' {
		switch src[j] {
		case '<', '>', '`', '"', '|', ']', '[', '{', '}':
			break loop
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				break loop
			}
		}
		j++
	}
	for j > i+n && strings.IndexByte("?!.,:;*_~'", src[j-1]) >= 0 {
		j--
	}
	if j == i+n {
		return 0
	}
	return j
}

// destination reads (dest "title") from the parenthesis at i.
func (s *scanner) destination(ls *leafScan, i, end int) (at Span, e int) {
	src := s.src
	skip := func(j int) int {
		for j < end && (isSpace(src[j])) {
			j++
		}
		return j
	}
	j := skip(i + 1)
	if j < end && src[j] == '<' {
		k := j + 1
		for k < end && src[k] != '>' && src[k] != '<' && src[k] != '\n' {
			k++
		}
		s.steps += k - j
		if k >= end || src[k] != '>' {
			return at, 0
		}
		at, j = Span{j + 1, k}, k+1
	} else {
		k, depth := j, 0
		for k < end && src[k] > ' ' && src[k] != 0x7f {
			c := src[k]
			if c == '\\' && k+1 < end && isPunct(src[k+1]) {
				k += 2
				continue
			}
			if c == '{' && !s.mdx {
				if at, ok := slices.BinarySearchFunc(ls.atoms, k, func(a Span, k int) int { return a.Start - k }); ok { // a template
					k = ls.atoms[at].End
					continue
				}
			}
			if c == '(' {
				if depth++; depth > 32 {
					return at, 0
				}
			} else if c == ')' {
				if depth == 0 {
					break
				}
				depth--
			}
			k++
		}
		s.steps += k - j
		if depth != 0 {
			return at, 0
		}
		at, j = Span{j, min(k, end)}, min(k, end)
	}
	t := skip(j)
	if t < end && t > j && (src[t] == '"' || src[t] == '\'' || src[t] == '(') {
		q, which := src[t], 0
		if q == '\'' {
			which = 1
		} else if q == '(' {
			q = ')'
		}
		if q != ')' && ls.noTitle[which] {
			return at, 0
		}
		k := t + 1
		for k < end && src[k] != q && !(q == ')' && src[k] == '(') {
			if src[k] == '\\' {
				k++
			}
			k++
		}
		s.steps += k - t
		if k < end && src[k] != q {
			return at, 0
		}
		if k >= end {
			if q != ')' {
				ls.noTitle[which] = true
			}
			return at, 0
		}
		t = skip(k + 1)
	}
	if t < end && src[t] == ')' {
		return at, t + 1
	}
	return at, 0
}

// tableFrom gives the position from which on the leaf is a table; the end where it has none.
func (s *scanner) tableFrom(ls *leafScan, start, end int) int {
	for k := 1; k < len(ls.lines); k++ {
		at := ls.lines[k]
		if at >= end || ls.lines[k-1] < start {
			continue
		}
		le, _ := s.lineEnd(at)
		le = min(le, end)
		dash, other := false, false
		ok := true
		for _, c := range s.src[at:le] {
			switch c {
			case '-':
				dash = true
			case '|', ':':
				other = true
			case ' ', '\t', '\r':
			default:
				ok = false
			}
			if !ok {
				break
			}
		}
		if !ok || !dash || !other {
			continue
		}
		head, _ := s.lineEnd(ls.lines[k-1])
		if bytes.IndexByte(s.src[ls.lines[k-1]:min(head, end)], '|') < 0 {
			continue
		}
		s.mark(at, le, markHidden)
		return ls.lines[k-1]
	}
	return end
}

// emphasis pairs the delimiters; what finds no partner is text.
func (s *scanner) emphasis(delims []delimiter) {
	stacks := map[byte][]delimiter{}
	for _, d := range delims {
		if d.close {
			st := stacks[d.ch]
			for d.n > 0 && len(st) > 0 {
				o := &st[len(st)-1]
				if d.ch == '~' && o.n != d.n {
					break
				}
				use := min(o.n, d.n)
				s.mark(o.at+o.n-use, o.at+o.n, markHidden)
				s.mark(d.at, d.at+use, markHidden)
				o.n -= use
				d.at += use
				d.n -= use
				if o.n == 0 {
					st = st[:len(st)-1]
				}
			}
			stacks[d.ch] = st
		}
		if d.open && d.n > 0 {
			stacks[d.ch] = append(stacks[d.ch], d)
		}
	}
}
