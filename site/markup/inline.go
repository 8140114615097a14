package markup

import (
	"bytes"
	"slices"
	"strings"
)

// leaf reads a paragraph-like block that begins at start: its end is found together with the tags, expressions and code
// in it, as each of these may run over the end of a line. It returns where the next block begins.
func (s *scanner) leaf(start int, oneLine, raw bool) int {
	_, next := s.inline(start, len(s.src), oneLine, raw)
	return next
}

// A leafScan is a leaf while it is read.
type leafScan struct {
	start, limit int
	oneLine, raw bool
	i            int // what is read next
	end, next    int // where the leaf ends and where the next block begins; -1 until that is known
	breaks       int // where a line ends that a backslash breaks
	setext       int // the level of the heading that an underline makes of the leaf; 0 if none does

	atoms   []Span // what is no running text, in order
	lines   []int  // where the content of each line begins
	tickAt  [64]int
	ticked  bool
	noTitle [2]bool
	heading bool
}

// atom takes what stands up to e for no running text.
func (ls *leafScan) atom(e int) {
	ls.atoms = append(ls.atoms, Span{ls.i, e})
	ls.i = e
}

// atomOr is atom if something was read up to e, which is 0 if nothing was: then the byte is text.
func (ls *leafScan) atomOr(e int) {
	if e > 0 {
		ls.atom(e)
	} else {
		ls.i++
	}
}

// inline reads the text from start to limit, or to the end of its block if that comes first.
func (s *scanner) inline(start, limit int, oneLine, raw bool) (end, next int) {
	n := len(s.p.Headings)
	ls := &s.reading
	*ls = leafScan{start: start, limit: limit, oneLine: oneLine, raw: raw, i: start, end: -1, next: -1,
		atoms: ls.atoms[:0], lines: append(ls.lines[:0], start), heading: n > 0 && s.p.Headings[n-1].Inner == Span{start,
			limit}}
	if oneLine {
		le, _ := s.lineEnd(start)
		ls.limit = min(limit, le)
	}
	for ls.i < ls.limit && ls.end < 0 {
		s.steps++
		switch s.src[ls.i] {
		case '\n':
			s.newline(ls)
		case '\\':
			s.escape(ls)
		case '`':
			s.codeSpan(ls)
		case '<':
			s.angled(ls)
		case '{':
			ls.atomOr(s.brace(ls.i, ls.limit))
		case '&':
			s.entity(ls)
		default:
			ls.i++
		}
	}
	if ls.end < 0 {
		s.leafEnd(ls)
	}
	s.leafText(ls)
	return ls.end, ls.next
}

// newline looks whether the leaf goes on behind the end of a line.
func (s *scanner) newline(ls *leafScan) {
	i, le := ls.i, ls.i
	if le > ls.start && s.src[le-1] == '\r' {
		le--
	}
	if ls.oneLine {
		ls.end, ls.next = le, i+1
		return
	}
	goOn, at, level, after := s.continues(i+1, ls.raw)
	if first := s.src[ls.start]; level > 0 && !ls.raw && !(s.mdx && (first == '<' || first == '{')) {
		ls.setext = level
		ls.end, ls.next = le, after
		return
	}
	if !goOn || level > 0 {
		ls.end, ls.next = le, i+1
		return
	}
	if ls.breaks > 0 && ls.breaks == le {
		s.mark(le-1, le, markBreak)
	}
	if bytes.IndexByte(s.src[i:at], '>') >= 0 {
		s.mark(i, at, markHidden)
		ls.atom(at)
	}
	ls.lines = append(ls.lines, at)
	ls.i = at
}

// escape reads a backslash: before punctuation it hides itself, at the end of a line it breaks it.
func (s *scanner) escape(ls *leafScan) {
	i := ls.i
	switch {
	case i+1 < ls.limit && isPunct(s.src[i+1]):
		s.mark(i, i+1, markHidden)
		ls.atom(i + 2)
	case newlineAt(s.src[:ls.limit], i+1):
		ls.breaks = i + 1 // if the leaf goes on, see newline
		ls.atom(i + 1)
	default:
		ls.i++
	}
}

func (s *scanner) codeSpan(ls *leafScan) {
	i, n := ls.i, 0
	for i+n < ls.limit && s.src[i+n] == '`' {
		n++
	}
	e := s.closeTicks(ls, i+n, n)
	if e == 0 {
		ls.i += n
		return
	}
	c := Code{Span: Span{i, e}, Inner: Span{i + n, e - n}, Inline: true}
	s.p.Code = append(s.p.Code, c)
	s.mark(i, c.Inner.Start, markHidden)
	s.mark(c.Inner.Start, c.Inner.End, markCode)
	s.mark(c.Inner.End, e, markHidden)
	ls.atom(e)
}

// angled reads what begins with <. Some blocks of raw HTML end with the line on which their first construct does.
func (s *scanner) angled(ls *leafScan) {
	i := ls.i
	e := s.angle(i, ls.limit)
	ls.atomOr(e)
	if e == 0 || !ls.raw || i != ls.start || !rawBlock(s.src[i:e]) {
		return
	}
	ls.oneLine = true
	if bytes.HasPrefix(s.src[i:], []byte("<!--")) {
		ls.limit, _ = s.lineEnd(e)
	} else if k := bytes.IndexByte(s.src[e:ls.limit], '>'); k >= 0 { // the closing tag
		ls.limit, _ = s.lineEnd(e + k)
	}
}

func (s *scanner) entity(ls *leafScan) {
	i, j := ls.i, ls.i+1
	for j < ls.limit && j-i < 32 && (s.src[j] == '#' && j == i+1 || isWord(s.src[j]) && s.src[j] != '_') {
		j++
	}
	if j == i+1 || j == ls.limit || s.src[j] != ';' {
		ls.i++
		return
	}
	s.mark(i, j+1, markEntity)
	ls.atom(j + 1)
}

// leafEnd ends a leaf at its limit, or behind an atom that runs beyond it.
func (s *scanner) leafEnd(ls *leafScan) {
	ls.end = max(ls.limit, ls.i)
	_, ls.next = s.lineEnd(min(ls.end, len(s.src)))
	if ls.end > ls.limit || !ls.oneLine {
		ls.next = ls.end
	}
	for ls.end > ls.start && (s.src[ls.end-1] == '\n' || s.src[ls.end-1] == '\r') {
		ls.end--
	}
}

// leafText reads the text of a leaf whose end is known, with its definitions, or as a heading that is underlined.
func (s *scanner) leafText(ls *leafScan) {
	text := ls.start
	if !ls.heading {
		text = s.definitions(ls, ls.start, ls.end)
	}
	if ls.setext > 0 && text < ls.end {
		h := Heading{Level: ls.setext, Span: Span{text, ls.next}}
		for h.Span.End > text && (s.src[h.Span.End-1] == '\n' || s.src[h.Span.End-1] == '\r') {
			h.Span.End--
		}
		b := ls.end
		for b > text && (s.src[b-1] == ' ' || s.src[b-1] == '\t') {
			b--
		}
		b = s.customAnchor(&h, text, b)
		h.Inner = Span{text, b}
		ls.heading = true
		s.mark(b, ls.end, markHidden)
		s.p.Headings = append(s.p.Headings, h)
	}
	if text < ls.end {
		s.leaves = append(s.leaves, Span{text, ls.end})
		s.walk(ls, text, ls.end)
	}
}

// continues reports whether the line at pos belongs to the paragraph before it, where its content begins, and whether it
// is the underline of a heading.
func (s *scanner) continues(pos int, raw bool) (ok bool, at, level, after int) {
	end, next := s.lineEnd(pos)
	j, col, quotes := s.quotes(pos, end, s.deep)
	if j == end {
		return false, j, 0, next
	}
	near := s.mdx || col < s.baseOf(col, quotes)+4
	if n, _ := s.fenceRun(j, end); n > 0 && (near || raw) {
		return false, j, 0, next
	}
	if raw {
		return true, j, 0, next
	}
	if c := s.src[j]; near && quotes == s.deep && col >= s.base() && (c == '=' || c == '-') && underline(s.src[j:end]) {
		return false, j, map[byte]int{'=': 1, '-': 2}[c], next
	}
	return !s.interrupts(j, end, col, near, quotes < s.deep), j, 0, next
}

// baseOf is the column at which the content of the container begins that a line is in, by its indentation and its
// quotes.
func (s *scanner) baseOf(col, quotes int) int {
	if quotes == s.deep {
		for _, base := range slices.Backward(s.list) {
			if base <= col {
				return base
			}
		}
	}
	return 0
}

// interrupts reports whether a paragraph ends before a line whose content begins at j; outside says that the line lacks
// marks of the block quotes that the paragraph is in.
func (s *scanner) interrupts(j, end, col int, near, outside bool) bool {
	line := s.src[j:end]
	switch {
	case bytes.HasPrefix(line, []byte(":::")), !s.mdx && (bytes.HasPrefix(line, []byte("///")) || scissors(line)):
		return true
	case !near:
		return false
	case line[0] == '>', s.atx(j, end) > 0, s.isRule(j, end):
		return true
	}
	n, _, ok := s.listMarker(j, end)
	if !ok || outside || col < s.base() {
		return ok
	}
	r, _ := s.indent(j+n, end, 0)
	return r < end && (n == 1 || n == 2 && line[0] == '1')
}

func underline(b []byte) bool {
	b = bytes.TrimRight(b, " \t")
	return !slices.ContainsFunc(b, func(c byte) bool { return c != b[0] })
}

// closeTicks finds the run of exactly n backticks that closes a code span, within its paragraph.
func (s *scanner) closeTicks(ls *leafScan, i, n int) int {
	if n >= len(ls.tickAt) || ls.ticked && ls.tickAt[n] < i {
		return 0
	}
	if !ls.ticked {
		ls.tickAt = [64]int{}
	}
	for i < ls.limit {
		s.steps++
		switch s.src[i] {
		case '`':
			k := i
			for i < ls.limit && s.src[i] == '`' {
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
			if ls.oneLine {
				i = ls.limit
				continue
			}
			if ok, _, level, _ := s.continues(i+1, ls.raw); !ok || level > 0 {
				i = ls.limit
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

// autolink reads an address between < and >.
func (s *scanner) autolink(i, limit int) int {
	src, j := s.src, i+1
	for j < limit && j-i < 34 && (isWord(src[j]) && src[j] != '_' || src[j] == '+' || src[j] == '.' || src[j] == '-') {
		j++
	}
	end := 0
	if j < limit && src[j] == ':' && j-i > 2 {
		end = s.uriEnd(i, j, limit)
	} else {
		end = s.emailEnd(i, j, limit)
	}
	if end == 0 {
		return 0
	}
	s.addAuto(i, i+1, end, end+1)
	return end + 1
}

// uriEnd is the position of the > that ends an address whose scheme ends at j; 0 if it is none.
func (s *scanner) uriEnd(i, j, limit int) int {
	src := s.src
	for j < limit && src[j] > ' ' && src[j] != '<' && src[j] != '>' {
		j++
	}
	known := bytes.Contains(src[i:j], []byte("://")) || bytes.HasPrefix(src[i+1:j], []byte("mailto:"))
	if j == limit || src[j] != '>' || !known {
		return 0
	}
	return j
}

// emailEnd is the position of the > that ends an email address whose local part goes on at j; 0 if it is none.
func (s *scanner) emailEnd(i, j, limit int) int {
	src := s.src
	for j < limit && (isWord(src[j]) || strings.IndexByte(".!#$%&'*+/=?^`{|}~-", src[j]) >= 0) {
		j++
	}
	if j == i+1 || j >= limit || src[j] != '@' {
		return 0
	}
	for j++; j < limit && (isWord(src[j]) || src[j] == '.' || src[j] == '-'); j++ {
	}
	if j == limit || src[j] != '>' || src[j-1] == '@' {
		return 0
	}
	return j
}

func (s *scanner) addAuto(a, b, c, d int) {
	dest := string(s.src[b:c])
	s.p.Links = append(s.p.Links, Link{Kind: AutoLink, Dest: dest, Span: Span{a, d}, At: Span{b, c}, Text: dest})
	s.mark(a, b, markHidden)
	s.mark(b, c, markOther)
	s.mark(c, d, markHidden)
}

// closers are what ends a template that begins with { and a byte.
var closers = map[byte]struct {
	with  string
	known int // in scanner.noClose
}{
	':': {"}", 0}, '#': {"}", 0}, '.': {"}", 0}, '{': {"}}", 1}, '%': {"%}", 2},
	'*': {"*}", 3}, '!': {"!}", 4}, // what takes in another file, of Python-Markdown's extensions
}

// brace reads what begins with { at i: an MDX expression, or a template of one of the Markdown dialects.
func (s *scanner) brace(i, limit int) int {
	if s.mdx {
		return s.expression(i, limit)
	}
	if i+1 >= limit {
		return 0
	}
	if bytes.HasPrefix(s.src[i:limit], []byte("{/*")) { // pages that end in .md are MDX to some generators
		if e := s.comment(i, limit); e > 0 {
			s.mark(i, e, markTag)
			s.p.Comments = append(s.p.Comments, Span{i, e})
			return e
		}
	}
	kind := s.src[i+1]
	closer, ok := closers[kind]
	if !ok {
		return 0
	}
	e := s.closeBrace(i, limit, closer.with, closer.known)
	if e == 0 {
		return 0
	}
	body := s.src[i:e]
	one := len(closer.with) == 1
	if bytes.Contains(body, []byte("\n\n")) || one && bytes.IndexByte(body, '\n') >= 0 {
		return 0
	}
	if one {
		s.mark(i, e, markTag)
		return e
	}
	if i < s.verbatim && !rawEnd.Match(body) || kind != '{' && kind != '%' && !fileTemplate.Match(body) {
		return 0
	}
	return s.template(i, e, limit)
}

// expression reads an MDX expression.
func (s *scanner) expression(i, limit int) int {
	src := s.src
	e := s.jsEnd(i, limit)
	if e < 0 {
		s.problem(i, "the expression is not closed")
		return 0
	}
	if lit, ok := literal(src, Span{i + 1, e - 1}); ok {
		s.mark(i, lit.Start, markHidden)
		s.mark(lit.Start, lit.End, markOther)
		s.mark(lit.End, e, markHidden)
		return e
	}
	s.mark(i, e, markTag)
	s.p.Scripts = append(s.p.Scripts, Span{i + 1, e - 1})
	in := bytes.TrimSpace(src[i+1 : e-1])
	if bytes.HasPrefix(in, []byte("/*")) && bytes.Index(in, []byte("*/")) == len(in)-2 {
		s.p.Comments = append(s.p.Comments, Span{i, e})
	}
	return e
}

// closeBrace is the end of a template that begins at i; 0 if nothing closes it within some thousand bytes.
func (s *scanner) closeBrace(i, limit int, closer string, known int) int {
	from, to := i+2, min(limit, i+4096)
	k := &s.noClose[known]
	if from >= k.from && from < k.to { // only what was not looked at before
		from = max(from, min(k.to, to)-1)
	}
	j := bytes.Index(s.src[from:to], []byte(closer))
	if j < 0 {
		s.steps += to - from
		k.from, k.to = i+2, to
		return 0
	}
	s.steps += j
	return from + j + len(closer)
}

// definitions reads the reference definitions that a paragraph begins with and returns where its text does.
func (s *scanner) definitions(ls *leafScan, start, end int) int {
	for n := 0; n < len(ls.lines); n++ {
		if ls.lines[n] < start {
			continue
		}
		def, last, ok := s.definition(ls, n, end)
		if !ok {
			return start
		}
		if s.defs == nil {
			s.defs = map[string]string{}
		}
		if _, ok := s.defs[def.Label]; !ok {
			s.defs[def.Label] = unescape(s.src[def.At.Start:def.At.End])
		}
		s.p.Links = append(s.p.Links, def)
		n, start = last, end
		if n+1 < len(ls.lines) {
			start = ls.lines[n+1]
		}
	}
	return start
}

// definition reads a reference definition that begins with line n of a leaf, and says with which line it ends.
func (s *scanner) definition(ls *leafScan, n, end int) (def Link, last int, ok bool) {
	at := ls.lines[n]
	if at >= end || s.src[at] != '[' || at+1 < end && s.src[at+1] == '^' {
		return def, n, false
	}
	le, _ := s.lineEnd(at)
	le = min(le, end)
	j := s.definedLabel(at+1, le)
	if j == 0 {
		return def, n, false
	}
	k, _ := s.indent(j+2, le, 0)
	if k == le { // the destination on the next line
		if n++; n == len(ls.lines) || ls.lines[n] >= end {
			return def, n, false
		}
		k = ls.lines[n]
		le, _ = s.lineEnd(k)
		le = min(le, end)
	}
	dest, after := s.definedTarget(k, le)
	rest := bytes.TrimSpace(s.src[after:le])
	if dest.Start >= dest.End || !isTitle(rest) {
		return def, n, false
	}
	if len(rest) == 0 && n+1 < len(ls.lines) && ls.lines[n+1] < end { // the title on the next line
		e, _ := s.lineEnd(ls.lines[n+1])
		if title := bytes.TrimSpace(s.src[ls.lines[n+1]:min(e, end)]); len(title) > 0 && isTitle(title) {
			n, le = n+1, min(e, end)
		}
	}
	label := string(s.src[at+1 : j])
	return Link{Kind: ReferenceDefinition, Dest: string(s.src[dest.Start:dest.End]), Span: Span{at, le}, At: dest,
		Text:  label,
		Label: labelKey(label)}, n, true
}

// definedLabel is the position of the ]: of a label whose text begins at j; 0 if it is none.
func (s *scanner) definedLabel(from, le int) int {
	j := from
	for j < le && s.src[j] != ']' && s.src[j] != '[' {
		if s.src[j] == '\\' {
			j++
		}
		j++
	}
	if j+1 >= le || s.src[j] != ']' || s.src[j+1] != ':' || len(bytes.TrimSpace(s.src[from:j])) == 0 {
		return 0
	}
	return j
}

// definedTarget is the destination of a definition, and where it ends.
func (s *scanner) definedTarget(k, le int) (dest Span, after int) {
	if k < le && s.src[k] == '<' {
		e := bytes.IndexByte(s.src[k:le], '>')
		if e < 0 {
			return Span{}, k
		}
		return Span{k + 1, k + e}, k + e + 1
	}
	m := k
	for m < le && !isSpace(s.src[m]) {
		m++
	}
	return Span{k, m}, m
}

// isTitle reports whether the rest of a definition's line is its title, or empty.
func isTitle(rest []byte) bool {
	if len(rest) == 0 {
		return true
	}
	closer := map[byte]byte{'(': ')', '"': '"', '\'': '\''}[rest[0]]
	return closer != 0 && len(rest) >= 2 && rest[len(rest)-1] == closer
}
