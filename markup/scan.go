package markup

import (
	"bytes"
	"html"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Parse reads a page. It is total: any bytes give a page, and every span of it lies within them. The time is linear in
// the length, but for the front matter, which the YAML and TOML parsers read.
func Parse(name string, src []byte) *Page {
	p, _ := parse(name, src)
	return p
}

// parse is Parse; it also counts its steps.
func parse(name string, src []byte) (*Page, int) {
	p := &Page{Path: name, Src: src, Format: formatOf(name)}
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
	p.readFront(start)
	s := &scanner{p: p, src: src, mdx: p.Format == MDX, partners: map[string]int{}, vain: 8*len(src) + 4096}
	pos := p.Body.Start
	for pos < len(src) {
		pos = s.block(pos)
	}
	s.finish()
	return p, s.steps
}

func formatOf(name string) Format {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return Markdown
	case ".mdx":
		return MDX
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

type scanner struct {
	p    *Page
	src  []byte
	mdx  bool
	list []int // columns at which the content of the open list items begins
	deep int   // block quotes around the current line

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
	steps int // bytes looked at, of which some are more than once; what tests hold to be linear
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

// block reads one block that begins at pos and returns where the next one does. pos is the start of a line, or stands
// behind a tag or expression that ended a leaf early.
func (s *scanner) block(pos int) int {
	end, next := s.lineEnd(pos)
	whole := pos == 0 || s.src[pos-1] == '\n' || pos == s.p.Body.Start
	i, col := s.indent(pos, end, 0)
	deep, contained := 0, false
	if i == end {
		return next
	}
	// Containers.
	fresh := false // a container has begun on this line
	for whole || fresh {
		s.steps++
		if s.src[i] == '>' {
			deep++
			i++
			col = 0
			if i < end && (s.src[i] == ' ' || s.src[i] == '\t') {
				i++
			}
			j, c := s.indent(i, end, 0)
			if deep != s.deep || contained {
				s.list = nil
				s.deep = deep
			}
			i, col = j, c
			fresh, contained = true, true
		} else {
			if deep == 0 && s.deep != 0 && !contained {
				s.list, s.deep = nil, 0
			}
			if i < end {
				for len(s.list) > 0 && col < s.list[len(s.list)-1] {
					s.list = s.list[:len(s.list)-1]
				}
			}
			if !s.mdx && col >= s.base()+4 {
				break
			}
			if i < end && s.isRule(i, end) {
				break
			}
			m, width, ok := s.listMarker(i, end)
			if !ok {
				break
			}
			j, c := s.indent(i+m, end, col+width)
			if c-(col+width) > 4 || j == end {
				c = col + width + 1
				j = min(i+m+1, end)
				s.list = append(s.list, c)
				if j2, _ := s.indent(j, end, c); j2 == end {
					j = j2
				}
			} else {
				s.list = append(s.list, c)
			}
			if len(s.list) > 64 { // nobody nests so deep; keeps the work per line bounded
				s.list = s.list[1:]
			}
			i, col = j, c
			fresh, contained = true, true
		}
		if i == end {
			return next
		}
	}
	if i == end {
		return next
	}
	if contained {
		i0, c0 := s.indent(i, end, col)
		if !s.mdx && c0 >= s.base()+4 {
			return s.indentedCode(i, end, next)
		}
		i, col = i0, c0
		if i == end {
			return next
		}
	}
	base := s.base()
	if n, ch := s.fenceRun(i, end); n > 0 {
		return s.fence(i, end, next, n, ch, base, deep)
	}
	if whole && !s.mdx && col >= base+4 {
		return s.indentedCode(i, end, next)
	}
	c := s.src[i]
	switch {
	case c == '#':
		if n := s.atx(i, end); n > 0 {
			s.heading(i, n, end)
			return next
		}
	case c == ':' && bytes.HasPrefix(s.src[i:end], []byte(":::")):
		return s.container(i, end, next)
	case (c == '!' || c == '?' || c == '=') && !s.mdx && admonition(s.src[i:end]) > 0:
		n := admonition(s.src[i:end])
		s.list = append(s.list, col+4)
		s.leaf(i+n, true, false)
		return next
	case c == '<' && bytes.HasPrefix(s.src[i:end], []byte("<<<")), c == '-' && !s.mdx && scissors(s.src[i:end]):
		s.p.Templates = append(s.p.Templates, Template{Span: Span{i, end}, kind: fileTags})
		return next
	case c == '$' && strings.TrimSpace(string(s.src[i:end])) == "$$":
		if n := s.math(i, end, next); n > 0 {
			return n
		}
	case s.mdx && whole && !contained && i == pos && (c == 'i' || c == 'e') && isESM(s.src[i:end]):
		return s.esm(i)
	case c == '[' && !s.mdx && bytes.HasPrefix(s.src[i:end], []byte("[^")):
		if j := bytes.Index(s.src[i:end], []byte("]:")); j > 2 {
			s.list = append(s.list, col+4)
			return s.leaf(i+j+2, false, false)
		}
	}
	if s.isRule(i, end) {
		return next
	}
	return s.leaf(i, false, !s.mdx && c == '<' && s.htmlBlock(i, end))
}

// rawBlock tells whether a block of raw HTML ends with the line on which the construct at i does, not with a blank line.
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

// listMarker tells whether a list item begins at i: the marker's length in bytes and its width.
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

// isRule tells a thematic break. A line may have as many list markers as bytes, and this is asked at each: the byte that
// speaks against one speaks against all that are alike before it.
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

// fenceRun gives the length of a fence that opens at i, or 0.
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
		s.p.Code = append(s.p.Code, code)
		s.leaves = append(s.leaves, code.Span)
		s.mark(i, code.Inner.Start, markTag)
		s.mark(code.Inner.Start, code.Inner.End, markFence)
		s.mark(code.Inner.End, code.Span.End, markTag)
		return to
	}
	last := end // end of the last line seen, without its newline
	for pos < len(s.src) {
		le, nx := s.lineEnd(pos)
		j, col := s.indent(pos, le, 0)
		q := 0
		for q < deep && j < le && s.src[j] == '>' {
			q++
			j++
			if j < le && s.src[j] == ' ' {
				j++
			}
			j, col = s.indent(j, le, 0)
		}
		if q < deep || j < le && col < base {
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

func (s *scanner) indentedCode(i, end, next int) int {
	base := s.base() + 4
	last, pos := end, next
	for pos < len(s.src) {
		le, nx := s.lineEnd(pos)
		j, col := s.indent(pos, le, 0)
		if j < le {
			if col < base {
				break
			}
			last = le
		}
		pos = nx
	}
	sp := Span{i, last}
	s.p.Code = append(s.p.Code, Code{Span: sp, Inner: sp})
	s.leaves = append(s.leaves, sp)
	s.mark(i, last, markFence)
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

// container reads the opening or closing line of a ::: block.
func (s *scanner) container(i, end, next int) int {
	for i < end && s.src[i] == ':' {
		i++
	}
	i, _ = s.indent(i, end, 0)
	for i < end && (isWord(s.src[i]) || s.src[i] == '-') {
		i++
	}
	if i < end {
		s.leaf(i, true, false)
	}
	return next
}

// admonition gives the length of a Python-Markdown block's opening before its title.
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

// customID finds an explicit id; %{#id}% is how translated sites of VitePress write it, as others take braces for values.
var customID = regexp.MustCompile(`[ \t]*(?:%\{#([^\s{}]+)\}%|\{:?[ \t]*#([^\s{}]+)(?:[ \t]+[^{}]*)?\}|\{/\*[ \t]*#([^\s{}]+)[ \t]*\*/\})[ \t]*$`)

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
	if b > a && (s.src[b-1] == '}' || s.src[b-1] == '%') {
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

var esmStart = regexp.MustCompile(`^(?:import\s*(?:["'{*]|[\w$]+\s*(?:,|\bfrom\b)|type\s)|export\s*(?:[{*]|(?:const|let|var|function|async|class|default|type|interface|enum)\b))`)

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

// esmEnd gives the end of the block, or -1, and its first blank line.
func (s *scanner) esmEnd(start int, plain bool) (end, blank int) {
	depth := jsDepth{plain: plain}
	blank = -1
	for pos := start; pos < len(s.src); {
		le, nx := s.lineEnd(pos)
		if len(bytes.TrimSpace(s.src[pos:le])) == 0 {
			if blank < 0 {
				blank = pos
			}
			if s.esmFailed || depth.closed() {
				return pos, blank
			}
		} else {
			depth.line(s.src[pos:le])
			if depth.closed() && nx < len(s.src) && (s.src[nx] == '#' || s.src[nx] == '<') {
				return nx, blank // often there is no blank line before the page's own text
			}
		}
		pos = nx
	}
	if depth.closed() {
		return len(s.src), blank
	}
	if blank < 0 {
		blank = len(s.src)
	}
	return -1, blank
}

var importFrom = regexp.MustCompile(`(?m)^[ \t]*(?:import|export)\b(?:[^;'"=()]*?\bfrom)?[ \t]*["']([^"'\n]+)["']`)

func (s *scanner) imports(a, b int) {
	for _, m := range importFrom.FindAllSubmatchIndex(s.src[a:b], -1) {
		at := Span{a + m[2], a + m[3]}
		from := a + m[0]
		for from < at.Start && (s.src[from] == ' ' || s.src[from] == '\t') {
			from++
		}
		s.p.Links = append(s.p.Links, Link{Kind: ImportLink, Dest: string(s.src[at.Start:at.End]), Span: Span{from, a + m[1]}, At: at})
	}
}

var blockTags = map[string]bool{}

func init() {
	for _, n := range strings.Fields("address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead title tr track ul script style pre textarea") {
		blockTags[n] = true
	}
}

// htmlBlock tells whether a block of raw HTML begins at i, in Markdown.
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

// finish pairs tags, resolves references and builds the runs.
func (s *scanner) finish() {
	p := s.p
	for _, i := range s.open {
		if i >= 0 {
			s.unclosed(i)
		}
	}
	// Text within <code> and <pre> is code.
	var zones []Span
	for i := range p.Tags {
		t := &p.Tags[i]
		if t.Close || t.Partner < 0 {
			continue
		}
		if t.Name == "code" || t.Name == "pre" {
			inner := Span{t.Span.End, p.Tags[t.Partner].Span.Start}
			if n := len(zones); n > 0 && inner.Start < zones[n-1].End {
				continue
			}
			zones = append(zones, inner)
			p.Code = append(p.Code, Code{Span: Span{t.Span.Start, p.Tags[t.Partner].Span.End}, Inner: inner, Inline: t.Name == "code"})
		}
	}
	slices.SortStableFunc(p.Scripts, func(a, b Span) int { return a.Start - b.Start })
	slices.SortStableFunc(p.Code, func(a, b Code) int { return a.Span.Start - b.Span.Start })
	for _, r := range s.refs {
		dest, ok := s.defs[labelKey(r.label)]
		if !ok {
			continue
		}
		p.Links = append(p.Links, Link{Kind: ReferenceLink, Dest: dest, Span: r.whole, At: Span{r.whole.End, r.whole.End}, Inner: r.inner})
		s.mark(r.whole.Start, r.inner.Start, markHidden)
		s.mark(r.inner.End, r.whole.End, markHidden)
		if r.whole.End <= r.inner.End+3 { // [label] and [label][]: a change of the text would lose the definition
			s.mark(r.inner.Start, r.inner.End, markOther)
		}
	}
	slices.SortStableFunc(p.Links, func(a, b Link) int {
		if a.Span.Start != b.Span.Start {
			return a.Span.Start - b.Span.Start
		}
		return b.Span.End - a.Span.End
	})
	linkEnd := 0
	p.Links = slices.DeleteFunc(p.Links, func(l Link) bool { // an address within a link's text is text
		if l.Kind == InlineLink {
			linkEnd = max(linkEnd, l.Span.End)
		}
		return l.Kind == AutoLink && l.Span.Start < linkEnd
	})
	s.buildRuns(zones)
	for i := range p.Links {
		if l := &p.Links[i]; l.Text == "" && l.Inner.Start < l.Inner.End {
			l.Text = p.Plain(l.Inner)
			s.steps += l.Inner.End - l.Inner.Start
		}
	}
	slugs := slugger{}
	for i := range p.Headings {
		h := &p.Headings[i]
		h.Text = p.Plain(h.Inner)
		if h.Custom {
			slugs.take(h.Anchor)
		} else {
			h.Anchor = slugs.unique(Slug(h.Text))
		}
	}
	sort.SliceStable(s.lost, func(i, j int) bool { return s.lost[i].at < s.lost[j].at })
	line, at := 1, 0
	for _, l := range s.lost[:min(len(s.lost), maxProblems)] {
		line += bytes.Count(p.Src[at:l.at], []byte{'\n'})
		at = l.at
		p.Problems = append(p.Problems, Problem{Line: line, Message: l.msg})
	}
}

func (s *scanner) buildRuns(zones []Span) {
	p := s.p
	slices.SortStableFunc(s.marks, func(a, b mark) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	slices.SortStableFunc(s.leaves, func(a, b Span) int { return a.Start - b.Start })
	m, z, prev := 0, 0, p.Body.Start
	pending := sepNone
	raise := func(x separator) { pending = max(pending, x) }
	add := func(a, b int, k runKind) {
		if a >= b {
			return
		}
		p.runs = append(p.runs, run{Span{a, b}, k, pending})
		if k == runProse {
			p.Prose = append(p.Prose, Span{a, b})
		}
		pending = sepNone
		prev = b
	}
	text := func(a, b int) {
		for a < b {
			for z < len(zones) && zones[z].End <= a {
				z++
			}
			kind, e := runProse, b
			if z < len(zones) {
				if zones[z].Start <= a {
					kind, e = runCode, min(b, zones[z].End)
				} else {
					e = min(b, zones[z].Start)
				}
			}
			if len(bytes.TrimSpace(p.Src[a:e])) == 0 {
				if bytes.IndexByte(p.Src[a:e], '\n') >= 0 {
					raise(sepSpace)
				} else if len(p.runs) > 0 {
					raise(sepSpace)
				}
			} else {
				add(a, e, kind)
			}
			a = e
		}
	}
	for _, leaf := range s.leaves {
		if leaf.Start < prev { // never, unless two leaves overlap
			continue
		}
		raise(sepLine)
		if blankBetween(p.Src[prev:leaf.Start]) {
			raise(sepBlank)
		}
		cur := leaf.Start
		for m < len(s.marks) && s.marks[m].Start < leaf.End {
			k := s.marks[m]
			m++
			if k.End <= cur {
				continue
			}
			k.Start = max(k.Start, cur)
			k.End = min(k.End, leaf.End)
			text(cur, k.Start)
			cur = k.End
			switch k.kind {
			case markHidden:
				if bytes.IndexByte(p.Src[k.Start:k.End], '\n') >= 0 {
					raise(sepSpace)
				}
			case markTag:
				if k.Start == leaf.Start || newlineBefore(p.Src, k.Start) || newlineAfter(p.Src, k.End) {
					raise(sepLine)
				}
			case markSpace:
				raise(sepSpace)
			case markBreak:
				raise(sepLine)
			case markEntity:
				add(k.Start, k.End, runEntity)
			case markOther:
				add(k.Start, k.End, runOther)
			case markCode:
				add(k.Start, k.End, runCode)
			case markAttr:
				raise(sepLine)
				add(k.Start, k.End, runAttr)
				raise(sepLine)
			case markFence:
				raise(sepLine)
				add(k.Start, k.End, runFence)
				raise(sepLine)
			}
		}
		text(cur, leaf.End)
		prev = max(prev, leaf.End)
	}
}

func newlineBefore(src []byte, i int) bool {
	for i > 0 && (src[i-1] == ' ' || src[i-1] == '\t') {
		i--
	}
	return i == 0 || src[i-1] == '\n'
}

func newlineAfter(src []byte, i int) bool {
	for i < len(src) && (src[i] == ' ' || src[i] == '\t' || src[i] == '\r') {
		i++
	}
	return i == len(src) || src[i] == '\n'
}

func blankBetween(b []byte) bool {
	n := 0
	for _, c := range b {
		switch c {
		case '\n':
			if n++; n == 2 {
				return true
			}
		case ' ', '\t', '\r', '>':
		default:
			n = 0
		}
	}
	return false
}

func labelKey(l string) string {
	return strings.ToLower(strings.Join(strings.Fields(l), " "))
}
