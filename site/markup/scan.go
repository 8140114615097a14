package markup

import (
	"bytes"
	"html"
	"path"
	"regexp"
	"strings"

	"docent/internal/brief"
	"docent/internal/wordset"
	"docent/site/script"
)

// Parse reads a page. It is total: any bytes give a page, and every span of it lies within them. The time is linear in
// the length, but for the front matter, which the YAML and TOML parsers read.
func Parse(name string, src []byte) *Page {
	p, _ := parse(name, src)
	return p
}

// parse is Parse; it also counts its steps.
func parse(name string, src []byte) (*Page, int) { return parseAs(name, src, false) }

// parseLoose is Parse that takes a line of marks for an underline although it is too short to be one.
func parseLoose(name string, src []byte) *Page {
	p, _ := parseAs(name, src, true)
	return p
}

func parseAs(name string, src []byte, loose bool) (*Page, int) {
	p := &Page{Path: name, Src: src, Format: FormatOf(name)}
	start := 0
	if bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		start = 3
	}
	p.Body = Span{start, len(src)}
	if p.Format == Text {
		if start < len(src) {
			p.runs = []run{{Span: p.Body, kind: runProse}}
			p.Prose = []Span{p.Body}
		}
		return p, 0
	}
	s := &scanner{p: p, src: src, mdx: p.Format == MDX, partners: map[string]int{}, vain: 8*len(src) + 4096}
	switch p.Format {
	case RST:
		(&rst{scanner: s, loose: loose}).read()
		s.finish()
		return p, s.steps
	case AsciiDoc:
		(&adoc{scanner: s, loose: loose}).read()
		s.finish()
		return p, s.steps
	}
	p.readFront(start)
	pos := p.Body.Start
	for pos < len(src) {
		pos = s.block(pos)
	}
	s.list = nil
	s.closeItems(len(src))
	s.finish()
	return p, s.steps
}

// FormatOf tells the language of a page by its name.
func FormatOf(name string) Format {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return Markdown
	case ".mdx":
		return MDX
	case ".rst":
		return RST
	case ".adoc", ".asciidoc":
		return AsciiDoc
	}
	return Text
}

// A run is a visible stretch of the source.
type run struct {
	Span
	kind runKind
	sep  separator // what stands between it and the run before
}

type runKind uint8

const (
	runProse  runKind = iota // running text
	runEntity                // one character reference
	runOther                 // visible text that is no prose: the text of a shortcut reference, a bare URL
	runCode                  // code within a line
	runAttr                  // a tag's attribute that carries text
	runFence                 // a block of code
	runPre                   // the same in HTML
)

type separator uint8

const (
	sepNone separator = iota
	sepSpace
	sepLine
	sepBlank
)

// A mark says that a stretch of a leaf is no running text.
type mark struct {
	Span
	kind markKind
}

type markKind uint8

const (
	markHidden markKind = iota // markup; not seen
	markTag                    // as markHidden; a line end beside it divides
	markSpace                  // as markHidden; divides words
	markBreak                  // as markHidden; divides lines
	markEntity
	markOther
	markCode
	markAttr
	markFence
)

type reference struct {
	whole, inner Span
	label        string
}

// An openItem is a list item while it is read.
type openItem struct{ index, depth int } // in Page.Items; how many entries of scanner.list it needs

type scanner struct {
	p    *Page
	src  []byte
	mdx  bool
	list []int // columns at which the content of the open list items begins
	deep int   // block quotes around the current line

	items []openItem // that have no end yet

	reading  leafScan // the leaf that is read, or was read last
	leaves   []Span
	marks    []mark
	refs     []reference
	defs     map[string]string
	open     []int          // tags that wait for their partner
	partners map[string]int // how many of a name do
	lost     []lostProblem

	vain      int     // bytes that may still be read for a closing brace that is not there
	noQuote   [2]bool // no further " or ' in the source
	noComment bool
	noRaw     map[string]bool
	esmFailed bool
	notRule   int // the byte for which a line was no thematic break of ruleMark
	ruleMark  byte
	noMath    int             // before here no line closes a block of formulas
	verbatim  int             // templates before here are text: they stand in Liquid's raw
	notClosed map[string]Span // by the name of a template: between these none closes it
	noClose   [5]struct {     // between these no }, no }}, no %}, no *} and no !}
		from, to int
	}
	grouped bool // in a group of code of VitePress
	steps   int  // bytes looked at, of which some are more than once; what tests hold to be linear
}

const maxProblems = 1000 // nobody reads more

type lostProblem struct {
	at  int
	msg string
}

func (s *scanner) problem(at int, msg string) { s.lost = append(s.lost, lostProblem{at, msg}) }
func (s *scanner) mark(a, b int, k markKind) {
	if a < b {
		s.marks = append(s.marks, mark{Span{a, b}, k})
	}
}

// lineEnd is the position of the newline (or of the CR before it) that ends the line at pos, and where the next begins.
func (s *scanner) lineEnd(pos int) (end, next int) {
	i := bytes.IndexByte(s.src[pos:], '\n')
	if i < 0 {
		s.steps += len(s.src) - pos
		return len(s.src), len(s.src)
	}
	s.steps += i
	end = pos + i
	next = end + 1
	if end > pos && s.src[end-1] == '\r' {
		end--
	}
	return end, next
}

// indent skips blanks and gives the column reached.
func (s *scanner) indent(pos, end, col int) (int, int) {
	for pos < end {
		switch s.src[pos] {
		case ' ':
			col++
		case '\t':
			col += 4 - col%4
		default:
			return pos, col
		}
		pos++
		s.steps++
	}
	return pos, col
}

// quotes skips blanks and at most so many marks of block quotes, and gives the column reached, counted from the last
// mark.
func (s *scanner) quotes(pos, end, most int) (at, col, n int) {
	at, col = s.indent(pos, end, 0)
	for origin := 0; n < most && at < end && s.src[at] == '>'; n++ {
		at, col, origin = s.behindQuote(at+1, end, origin+col+1)
	}
	return at, col, n
}

// behindQuote skips the blanks behind the mark of a block quote, of which one column belongs to the mark. i is where
// the mark ends, and column its column in the line; origin is the one from which those of the content are counted.
func (s *scanner) behindQuote(i, end, column int) (at, col, origin int) {
	origin = column
	if i < end && (s.src[i] == ' ' || s.src[i] == '\t') {
		origin++
	}
	at, reached := s.indent(i, end, column)
	return at, reached - origin, origin
}

// A line is the one that a block begins with.
type line struct {
	pos, end, next int
	whole          bool // it is a whole line, not what is left of one
	i, col         int  // where its content begins, behind the containers that were read so far
	origin         int  // the column of the line from which col is counted: that behind the last mark of a block quote
	deep           int  // block quotes that it is in
	contained      bool // a container has begun or goes on here
}

// indent skips blanks of the line.
func (l *line) indent(s *scanner, from, end, col int) (at, reached int) {
	at, reached = s.indent(from, end, l.origin+col)
	return at, reached - l.origin
}

// block reads one block that begins at pos and returns where the next one does. pos is the start of a line, or stands
// behind a tag or expression that ended a leaf early.
func (s *scanner) block(pos int) int {
	l := &line{pos: pos, whole: pos == 0 || s.src[pos-1] == '\n' || pos == s.p.Body.Start}
	l.end, l.next = s.lineEnd(pos)
	l.i, l.col = s.indent(pos, l.end, 0)
	if l.i == l.end || !s.containers(l) {
		return l.next
	}
	s.closeItems(pos)
	if l.contained {
		i, col := l.indent(s, l.i, l.end, l.col)
		if !s.mdx && col >= s.base()+4 {
			return s.indentedCode(l)
		}
		if l.i, l.col = i, col; i == l.end {
			return l.next
		}
	}
	if l.whole && !s.mdx && l.col >= s.base()+4 {
		return s.indentedCode(l)
	}
	if n, ch := s.fenceRun(l.i, l.end); n > 0 {
		return s.fence(l.i, l.end, l.next, n, ch, s.base(), l.deep)
	}
	if next := s.lineBlock(l); next > 0 {
		return next
	}
	if s.isRule(l.i, l.end) {
		return l.next
	}
	return s.leaf(l.i, false, !s.mdx && s.src[l.i] == '<' && s.htmlBlock(l.i, l.end))
}

// containers reads the block quotes and list items that a line begins with, and tells whether it has anything else.
func (s *scanner) containers(l *line) bool {
	for l.whole {
		s.steps++
		if s.src[l.i] == '>' && (s.mdx || l.col < s.base()+4) {
			s.quote(l)
		} else if !s.item(l) {
			break
		}
		if l.i == l.end {
			return false
		}
	}
	return true
}

// quote reads the mark of a block quote.
func (s *scanner) quote(l *line) {
	l.deep++
	l.i, l.col, l.origin = s.behindQuote(l.i+1, l.end, l.origin+l.col+1)
	if l.deep != s.deep || l.contained {
		s.list = nil
		s.deep = l.deep
	}
	l.contained = true
}

// item reads the marker of a list item, if there is one.
func (s *scanner) item(l *line) bool {
	if l.deep == 0 && s.deep != 0 && !l.contained {
		s.list, s.deep = nil, 0
	}
	for len(s.list) > 0 && l.col < s.base() {
		s.list = s.list[:len(s.list)-1]
	}
	if !s.mdx && l.col >= s.base()+4 || s.isRule(l.i, l.end) {
		return false
	}
	n, width, ok := s.listMarker(l.i, l.end)
	if !ok {
		return false
	}
	s.closeItems(l.pos)
	s.items = append(s.items, openItem{len(s.p.Items), len(s.list) + 1})
	s.p.Items = append(s.p.Items, Span{l.i, l.i})
	after := l.col + width
	j, col := l.indent(s, l.i+n, l.end, after)
	content := col
	if col-after > 4 || j == l.end { // one column belongs to the marker, the rest to the content
		content = after + 1
		if j < l.end {
			j, col = l.indent(s, l.i+n, l.i+n+1, after)
		}
	}
	if s.list = append(s.list, content); len(s.list) > 64 { // nobody nests so deep; keeps the work per line bounded
		s.list = s.list[1:]
	}
	l.i, l.col, l.contained = j, col, true
	return true
}

// lineBlock reads a block that the beginning of its first line makes what it is, and returns where the next one
// begins; 0 if it is none.
func (s *scanner) lineBlock(l *line) int {
	i, end, text := l.i, l.end, s.src[l.i:l.end]
	switch {
	case s.atx(i, end) > 0:
		s.heading(i, s.atx(i, end), end)
		return l.next
	case bytes.HasPrefix(text, []byte(":::")), !s.mdx && bytes.HasPrefix(text, []byte("///")):
		return s.container(i, end, l.next)
	case !s.mdx && admonition(text) > 0:
		s.list = append(s.list, l.col+4)
		title := i + admonition(text)
		if quote := bytes.IndexByte(s.src[title:end], '"'); quote >= 0 {
			s.leaf(title+quote, true, false)
		} else if kind := bytes.TrimLeft(s.src[i:title], "!?+= \t"); s.src[i] != '=' {
			s.note(Span{title - len(kind), title})
		}
		return l.next
	case bytes.HasPrefix(text, []byte("<<<")), !s.mdx && scissors(text):
		s.p.Templates = append(s.p.Templates, Template{Span: Span{i, end}, kind: fileTags})
		return l.next
	case text[0] == '$' && string(bytes.TrimSpace(text)) == "$$":
		return s.math(i, end, l.next)
	case s.mdx && l.whole && !l.contained && i == l.pos && isESM(text):
		return s.esm(i)
	case !s.mdx && bytes.HasPrefix(text, []byte("[^")):
		if j := bytes.Index(text, []byte("]:")); j > 2 {
			s.list = append(s.list, l.col+4)
			return s.leaf(i+j+2, false, false)
		}
	}
	return 0
}

// closeItems ends the list items that the block at pos is no part of.
func (s *scanner) closeItems(pos int) {
	for n := len(s.items) - 1; n >= 0 && s.items[n].depth > len(s.list); n-- {
		s.p.Items[s.items[n].index].End = pos
		s.items = s.items[:n]
	}
}

// rawBlock reports whether a block of raw HTML ends with the line on which the construct at i does, not with a blank
// line.
func rawBlock(b []byte) bool {
	if bytes.HasPrefix(b, []byte("<!--")) {
		return true
	}
	for _, n := range []string{"<script", "<style", "<pre", "<textarea"} {
		if len(b) > len(n) && strings.EqualFold(string(b[:len(n)]), n) && !isWord(b[len(n)]) {
			return true
		}
	}
	return false
}

func (s *scanner) base() int {
	if len(s.list) == 0 {
		return 0
	}
	return s.list[len(s.list)-1]
}

// listMarker reports whether a list item begins at i: the marker's length in bytes and its width.
func (s *scanner) listMarker(i, end int) (n, width int, ok bool) {
	c := s.src[i]
	if c == '-' || c == '*' || c == '+' {
		if i+1 == end || s.src[i+1] == ' ' || s.src[i+1] == '\t' {
			return 1, 1, true
		}
		return 0, 0, false
	}
	j := i
	for j < end && j-i < 9 && s.src[j] >= '0' && s.src[j] <= '9' {
		j++
	}
	if j == i || j == end || (s.src[j] != '.' && s.src[j] != ')') {
		return 0, 0, false
	}
	j++
	if j == end || s.src[j] == ' ' || s.src[j] == '\t' {
		return j - i, j - i, true
	}
	return 0, 0, false
}

// isRule tells a thematic break. A line may have as many list markers as bytes, and this is asked at each: the byte
// that speaks against one speaks against all that are alike before it.
func (s *scanner) isRule(i, end int) bool {
	c := s.src[i]
	if c != '-' && c != '*' && c != '_' || i < s.notRule && s.notRule < end && s.ruleMark == c {
		return false
	}
	n := 0
	for j := i; j < end; j++ {
		switch s.src[j] {
		case c:
			n++
		case ' ', '\t':
		default:
			s.steps += j - i
			s.notRule, s.ruleMark = j, c
			return false
		}
	}
	s.steps += end - i
	return n >= 3
}

// fenceRun returns the length of a fence that opens at i, or 0.
func (s *scanner) fenceRun(i, end int) (int, byte) {
	c := s.src[i]
	if c != '`' && c != '~' {
		return 0, 0
	}
	n := 0
	for i+n < end && s.src[i+n] == c {
		n++
	}
	if n < 3 || c == '`' && bytes.IndexByte(s.src[i+n:end], '`') >= 0 {
		return 0, 0
	}
	return n, c
}

func (s *scanner) fence(i, end, next, n int, ch byte, base, deep int) int {
	info := strings.TrimSpace(string(s.src[i+n : end]))
	code := Code{Info: info}
	if j := strings.IndexAny(info, " \t{[:,"); j >= 0 {
		code.Lang, code.Info = info[:j], strings.TrimSpace(info[j:])
	} else {
		code.Lang, code.Info = info, ""
	}
	pos := next
	code.Inner.Start = pos
	done := func(innerEnd, spanEnd, to int) int {
		code.Span = Span{i, spanEnd}
		code.Inner.Start = min(code.Inner.Start, spanEnd)
		code.Inner.End = max(innerEnd, code.Inner.Start)
		title := codeTitle.FindSubmatchIndex(s.src[i:min(end, i+1000)])
		for n := 2; n < len(title); n += 2 {
			if title[n] >= 0 {
				code.label = Span{i + title[n], i + title[n+1]}
			}
		}
		s.p.Code = append(s.p.Code, code)
		s.leaves = append(s.leaves, code.Span)
		shown := code.label
		if shown.End > 0 && s.src[shown.End] == ']' && !s.grouped { // the name of a tab, where there are none
			shown = Span{}
		}
		s.mark(i, max(i, shown.Start), markTag)
		s.mark(shown.Start, shown.End, markAttr)
		s.mark(max(i, shown.End), code.Inner.Start, markTag)
		s.mark(code.Inner.Start, code.Inner.End, markFence)
		s.mark(code.Inner.End, code.Span.End, markTag)
		return to
	}
	last := end // end of the last line seen, without its newline
	for pos < len(s.src) {
		le, nx := s.lineEnd(pos)
		j, col, quotes := s.quotes(pos, le, deep)
		if quotes < deep || j < le && col < base {
			return done(last, last, pos) // the container ended, and the block with it
		}
		if j < le && s.src[j] == ch && (s.mdx || col < base+4) {
			k := j
			for k < le && s.src[k] == ch {
				k++
			}
			if e, _ := s.indent(k, le, 0); k-j >= n && e == le {
				return done(pos, le, nx)
			}
		}
		last = le
		pos = nx
	}
	s.problem(i, "the code block is not closed")
	return done(len(s.src), len(s.src), len(s.src))
}

// codeTitle is what a site shows above code, in its first line: title="a.sh", filename="a.sh", [npm].
var codeTitle = regexp.MustCompile(`[\s{](?:title|filename)=(?:"([^"]+)"|'([^']+)')|` +
	"^[`~]+[ \t]*\\w[\\w+#.-]*(?::\\S+)?(?:[ \t]*\\{[^}]*\\})*[ \t]+\\[([^\\]]+)\\]")

func (s *scanner) indentedCode(l *line) int {
	base := s.base() + 4
	last, pos := l.end, l.next
	for pos < len(s.src) {
		le, nx := s.lineEnd(pos)
		j, col, quotes := s.quotes(pos, le, l.deep)
		if quotes < l.deep {
			break
		}
		if j < le {
			if col < base {
				break
			}
			last = le
		}
		pos = nx
	}
	sp := Span{l.i, last}
	s.p.Code = append(s.p.Code, Code{Span: sp, Inner: sp})
	s.leaves = append(s.leaves, sp)
	s.mark(l.i, last, markFence)
	return pos
}

func (s *scanner) math(i, end, next int) int {
	if i < s.noMath {
		return 0
	}
	pos := next
	for pos < len(s.src) {
		le, nx := s.lineEnd(pos)
		line := bytes.TrimSpace(s.src[pos:le])
		if len(line) == 0 {
			break
		}
		if string(line) == "$$" {
			sp := Span{i, le}
			s.p.Code = append(s.p.Code, Code{Span: sp, Inner: Span{next, pos}, Lang: "math"})
			s.leaves = append(s.leaves, sp)
			s.mark(i, next, markTag)
			s.mark(next, pos, markFence)
			s.mark(pos, le, markTag)
			return nx
		}
		pos = nx
	}
	s.noMath = pos
	return 0
}

// container reads the opening or closing line of a block of ::: or, in an extension of Python-Markdown, of ///.
func (s *scanner) container(i, end, next int) int {
	sign := s.src[i]
	for i < end && s.src[i] == sign {
		i++
	}
	i, _ = s.indent(i, end, 0)
	kind := Span{i, i}
	for i < end && (isWord(s.src[i]) || s.src[i] == '-') {
		i++
	}
	kind.End = i
	s.grouped = string(s.src[kind.Start:kind.End]) == "code-group"
	i, _ = s.indent(i, end, 0)
	if sign == '/' && i < end && s.src[i] == '|' {
		i++
	}
	switch {
	case notes[string(s.src[kind.Start:kind.End])] && (i == end || s.src[i] == '{'):
		s.note(kind)
	case i < end && string(s.src[kind.Start:kind.End]) != "html":
		s.leaf(i, true, false)
	}
	return next
}

// notes are the kinds of admonitions that sites name by themselves where nothing else does.
var notes = wordset.Of("note tip info warning danger caution important success secondary details")

// note is the kind of an admonition, which readers see and which is no running text.
func (s *scanner) note(at Span) {
	if at.Start < at.End {
		s.p.Notes = append(s.p.Notes, at)
		s.leaves = append(s.leaves, at)
		s.mark(at.Start, at.End, markOther)
	}
}

// admonition returns the length of a Python-Markdown block's opening before its title.
func admonition(line []byte) int {
	for _, m := range []string{"!!!", "???+", "???", "===!", "===+", "==="} {
		if bytes.HasPrefix(line, []byte(m)) {
			rest := line[len(m):]
			t := bytes.TrimLeft(rest, " \t")
			if len(t) == len(rest) || len(t) == 0 {
				return 0
			}
			if m[0] == '=' {
				if t[0] != '"' {
					return 0
				}
				return len(line) - len(t)
			}
			n := len(line) - len(t)
			for n < len(line) && (isWord(line[n]) || line[n] == '-') {
				n++
			}
			return n
		}
	}
	return 0
}

func (s *scanner) atx(i, end int) int {
	n := 0
	for i+n < end && s.src[i+n] == '#' {
		n++
	}
	if n > 6 || i+n < end && s.src[i+n] != ' ' && s.src[i+n] != '\t' {
		return 0
	}
	return n
}

// customID finds an explicit id. %{#id}% is how translated sites of VitePress write it, as others take braces for
// values, or write them behind backslashes; [#id] is how Nextra and Fumadocs do. A number there is that of an issue.
var customID = regexp.MustCompile(
	`[ \t]*(?:%\{#([^\s{}]+)\}%|\\?\{:?[ \t]*#([^\s{}\\]+)(?:[ \t]+[^{}]*)?\\?\}|\{/\*[ \t]*#([^\s{}]+)[ \t]*\*/\}|` +
		`[ \t]\[#([^\s\[\]\d][^\s\[\]]*)\])[ \t]*$`)

func (s *scanner) heading(i, n, end int) {
	a, _ := s.indent(i+n, end, 0)
	b := end
	for b > a && (s.src[b-1] == ' ' || s.src[b-1] == '\t') {
		b--
	}
	k := b
	for k > a && s.src[k-1] == '#' {
		k--
	}
	if k < b && (k == a || s.src[k-1] == ' ' || s.src[k-1] == '\t') {
		b = k
		for b > a && (s.src[b-1] == ' ' || s.src[b-1] == '\t') {
			b--
		}
	}
	h := Heading{Level: n, Span: Span{i, end}}
	b = s.customAnchor(&h, a, b)
	h.Inner = Span{a, b}
	s.p.Headings = append(s.p.Headings, h)
	s.inline(a, b, true, false)
}

// customAnchor takes an explicit id off the end of a heading.
func (s *scanner) customAnchor(h *Heading, a, b int) int {
	from := max(a, b-256)
	if b > a && (s.src[b-1] == '}' || s.src[b-1] == '%' || s.src[b-1] == ']') {
		if m := customID.FindSubmatchIndex(s.src[from:b]); m != nil {
			h.Custom = true
			for k := 2; k < len(m); k += 2 {
				if m[k] >= 0 {
					h.Anchor = string(s.src[from+m[k] : from+m[k+1]])
				}
			}
			return from + m[0]
		}
	}
	return b
}

func isESM(line []byte) bool {
	for _, w := range []string{"import", "export"} {
		if bytes.HasPrefix(line, []byte(w)) && len(line) > len(w) {
			switch line[len(w)] {
			case ' ', '\t', '{', '*', '"', '\'':
				// "import the file" is prose: what follows must look like code.
				return esmStart.Match(line)
			}
		}
	}
	return false
}

var esmStart = regexp.MustCompile(
	`^(?:import\s*(?:["'{*]|[\w$]+\s*(?:,|\bfrom\b)|type\s)|export\s*(?:[{*]|(?:const|let|var|function|async|class|default|type|interface|enum)\b))`)

// esm reads a block of MDX imports and exports: up to a blank line at which all brackets are closed.
func (s *scanner) esm(start int) int {
	end, blank := s.esmEnd(start, false)
	if end < 0 {
		end, _ = s.esmEnd(start, true)
	}
	if end < 0 {
		s.esmFailed = true
		end = blank
		s.problem(start, "the import or export does not end")
	}
	s.imports(start, end)
	s.p.Scripts = append(s.p.Scripts, Span{start, end})
	return end
}

// esmEnd returns the end of the block, or -1, and its first blank line.
func (s *scanner) esmEnd(start int, plain bool) (end, blank int) {
	depth := script.Depth{Plain: plain}
	blank = -1
	for pos := start; pos < len(s.src); {
		le, nx := s.lineEnd(pos)
		if len(bytes.TrimSpace(s.src[pos:le])) == 0 {
			if blank < 0 {
				blank = pos
			}
			if s.esmFailed || depth.Closed() {
				return pos, blank
			}
		} else {
			depth.Line(s.src[pos:le])
			if depth.Closed() && nx < len(s.src) && (s.src[nx] == '#' || s.src[nx] == '<') {
				return nx, blank // often there is no blank line before the page's own text
			}
		}
		pos = nx
	}
	if depth.Closed() {
		return len(s.src), blank
	}
	if blank < 0 {
		blank = len(s.src)
	}
	return -1, blank
}

// jsEnd returns the position after the brace that closes the one at i, or -1. What is read in vain is taken from a
// budget, a small multiple of the source, which keeps the whole linear.
func (s *scanner) jsEnd(i, limit int) int {
	for _, plain := range []bool{false, true} { // the text of an element may look like a regular expression: [x](/y)
		if s.vain <= 0 {
			return -1
		}
		to := min(limit, i+s.vain)
		d := script.Depth{Braces: true, Plain: plain}
		if e := d.Feed(s.src[i:to], true); e >= 0 {
			s.steps += e
			return i + e
		}
		s.vain -= to - i
		s.steps += to - i
	}
	return -1
}

var importFrom = regexp.MustCompile(`(?m)^[ \t]*(?:import|export)\b(?:[^;'"=()]*?\bfrom)?[ \t]*["']([^"'\n]+)["']`)

func (s *scanner) imports(a, b int) {
	for _, m := range importFrom.FindAllSubmatchIndex(s.src[a:b], -1) {
		at := Span{a + m[2], a + m[3]}
		from := a + m[0]
		for from < at.Start && (s.src[from] == ' ' || s.src[from] == '\t') {
			from++
		}
		s.p.Links = append(s.p.Links, Link{Kind: ImportLink, Dest: string(s.src[at.Start:at.End]), Span: Span{from, a + m[1]},
			At: at})
	}
}

var blockTags = map[string]bool{}

func init() {
	for _, n := range strings.Fields(
		"address article aside base basefont blockquote body caption center col colgroup dd details dialog " +
			"dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr " +
			"html iframe legend li link main menu menuitem nav noframes ol optgroup option p param search section " +
			"summary table tbody td tfoot th thead title tr track ul script style pre textarea") {
		blockTags[n] = true
	}
}

// htmlBlock reports whether a block of raw HTML begins at i, in Markdown.
func (s *scanner) htmlBlock(i, end int) bool {
	j := i + 1
	if j < end && (s.src[j] == '!' || s.src[j] == '?') {
		return true
	}
	if j < end && s.src[j] == '/' {
		j++
	}
	k := j
	for k < end && (isWord(s.src[k]) || s.src[k] == '-' || s.src[k] == '.') {
		k++
	}
	if k == j {
		return false
	}
	if blockTags[strings.ToLower(string(s.src[j:k]))] {
		return true
	}
	_, e := s.tagAt(i, end)
	if e < 0 {
		return k == end // <Name alone, its attributes on the lines that follow
	}
	r, _ := s.indent(e, end, 0)
	return r == end
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isPunct(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

func unescape(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, '&') < 0 {
		return string(b)
	}
	var out []byte
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) && isPunct(b[i+1]) {
			i++
		}
		out = append(out, b[i])
	}
	return html.UnescapeString(string(out))
}

func labelKey(l string) string {
	return strings.ToLower(brief.Line(l))
}
