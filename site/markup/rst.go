package markup

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/width"

	"docent/internal/wordset"
)

// A plainLine is a line of a page in reStructuredText or AsciiDoc.
type plainLine struct {
	Span        // without the newline
	at   int    // where its text begins
	col  int    // the column of that
	text string // from there, without blanks at its end
}

// plainLines cuts what follows pos into lines.
func (s *scanner) plainLines(pos int) (out []plainLine) {
	for pos < len(s.src) {
		end, next := s.lineEnd(pos)
		at, col := s.indent(pos, end, 0)
		out = append(out, plainLine{Span{pos, end}, at, col, string(bytes.TrimRight(s.src[at:end], " \t\r"))})
		pos = next
	}
	return out
}

// An rst reads reStructuredText as docutils and Sphinx do, as far as it takes to tell running text, titles, code and
// references from what a directive or a role makes of its own.
type rst struct {
	*scanner
	lines  []plainLine
	styles []string // adornments of titles, by level
	top    bool     // nothing but comments and fields was read yet
	label  int      // the first line of the targets above; -1 if there are none
	named  string   // the last of these
	loose  bool     // an underline may be too short to be one
	mute   int      // what begins before it is no running text to edit
}

var (
	rstDirective = regexp.MustCompile(`^\.\. +(\|[^|]+\| +)?([A-Za-z][\w.:+-]*?)::(?: +(\S.*))?$`)
	rstTarget    = regexp.MustCompile("^\\.\\. +_(`[^`]+`|(?:[^:\\\\]|\\\\.|:\\S)+):(?: +(\\S.*))?$")
	rstNote      = regexp.MustCompile(`^\.\. +\[[^\]\s]+\] +`)
	rstField     = regexp.MustCompile("^:(?:[^:\\s\\\\]|\\\\.)(?:[^:\\\\]|\\\\.|:[^\\s:`])*:(?: +|$)")
	rstMarker    = regexp.MustCompile(`^(?:(?:[-*+•‣⁃]|\(?(?:[0-9]+|[A-Za-z]|[ivxlcdm]+|[IVXLCDM]+|#)[.)]|\|)(?: +|$))+`)
	rstOption    = regexp.MustCompile(`^(?:--?[A-Za-z]|/[A-Z])\S*(?:[ =]<?[\w.-]+>?)?(?:, --?\S+(?:[ =]<?[\w.-]+>?)?)*(?:  +|$)`)
	rstGrid      = regexp.MustCompile(`^\+[-=+]+\+$`)
	rstSimple    = regexp.MustCompile(`^=+(?: +=+)+$`)
	rstBorder    = regexp.MustCompile(`^[=-]+(?: +[=-]+)*$`)
)

// Directives by what their content is: code, or text as anywhere else. That of others is not read.
var (
	rstCode = wordSet(`code code-block sourcecode parsed-literal math raw graphviz digraph graph uml plantuml mermaid
		doctest testcode testsetup testcleanup testoutput prompt productionlist highlight ipython
		ipython3 console highlight-block code-tab`)
	rstText = wordSet(`note warning tip important caution danger attention error hint seealso todo admonition topic sidebar
		versionadded versionchanged versionremoved deprecated rubric container only compound figure epigraph highlights
		pull-quote tab tabs tab-set tab-item group-tab dropdown card grid grid-item grid-item-card details table list-table
		glossary centered hlist function class method attribute data exception module describe object option confval
		cmdoption envvar program decorator staticmethod classmethod property directive role collapse`)
	// Those whose argument is text, and those whose argument begins with a version.
	rstTitled = wordSet(`note warning tip important caution danger attention error hint seealso todo admonition topic
		sidebar rubric centered tab-item tab dropdown card grid-item-card table list-table csv-table details collapse`)
	rstVersion = wordSet(`versionadded versionchanged versionremoved deprecated`)
	// Roles that lead somewhere.
	rstLinks = wordSet(`doc ref term numref download any keyword std:doc std:ref std:term`)
)

// IsCodeDirective tells a directive that holds code by its name.
func IsCodeDirective(name string) bool { return rstCode[name] }

var wordSet = wordset.Of

func (r *rst) read() {
	r.lines, r.top, r.label = r.plainLines(r.p.Body.Start), true, -1
	for i := 0; i < len(r.lines); {
		i = r.block(i)
	}
}

// block reads what begins at a line; it returns the line after it.
func (r *rst) block(i int) int {
	l := r.lines[i]
	if l.text == "" {
		return i + 1
	}
	if n := r.title(i); n > 0 {
		r.top, r.label = false, -1
		return i + n
	}
	if strings.HasPrefix(l.text, ".. ") || l.text == ".." {
		return r.explicit(i)
	}
	r.label = -1
	if m := rstField.FindString(l.text); m != "" {
		if r.top && l.col == 0 {
			return r.below(i+1, l.col)
		}
		return r.paragraph(i, len(m), true)
	}
	r.top = false
	switch {
	case strings.HasPrefix(l.text, ">>> "):
		j := i
		for j < len(r.lines) && r.lines[j].text != "" {
			j++
		}
		r.code(i, j, "pycon")
		return j
	case strings.HasPrefix(l.text, "__ "), len(l.text) >= 4 && adornment(l.text):
		return i + 1
	case rstGrid.MatchString(l.text), rstSimple.MatchString(l.text):
		return r.table(i)
	}
	return r.paragraph(i, len(rstMarker.FindString(l.text)), false)
}

// below is the line behind those that are indented deeper than a column, blank ones between them included.
func (r *rst) below(i, col int) int {
	end := i
	for ; i < len(r.lines) && (r.lines[i].text == "" || r.lines[i].col > col); i++ {
		if r.lines[i].text != "" {
			end = i + 1
		}
	}
	return end
}

// adornment reports whether a line is one mark again and again.
func adornment(text string) bool {
	return text != "" && isPunct(text[0]) && strings.Count(text, text[:1]) == len(text)
}

// columns is how wide a text is: letters of East Asia count twice.
func columns(text string) (n int) {
	for _, c := range text {
		n++
		if k := width.LookupRune(c).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}

// title reads a section's title with its underline, and the line above it if it has one; it returns the number of lines.
func (r *rst) title(i int) int {
	text, under, over := i, i+1, false
	if r.lines[i].col == 0 && adornment(r.lines[i].text) && i+2 < len(r.lines) && r.lines[i+2].text == r.lines[i].text &&
		r.lines[i+1].text != "" && !adornment(r.lines[i+1].text) {
		text, under, over = i+1, i+2, true
	}
	if under >= len(r.lines) || r.lines[i].col > 0 || r.lines[under].col > 0 || !adornment(r.lines[under].text) ||
		strings.HasPrefix(r.lines[text].text, ".. ") || !over && adornment(r.lines[text].text) && len(r.lines[text].text) > 3 {
		return 0
	}
	t, rule := r.lines[text], r.lines[under]
	short := len(rule.text) < columns(t.text)+t.col
	if short && len(rule.text) < 4 && !(r.loose && len(rule.text) > 1) {
		return 0
	}
	style := rule.text[:1]
	if over {
		style += style
	}
	level := slices.Index(r.styles, style)
	if level < 0 {
		level = len(r.styles)
		r.styles = append(r.styles, style)
	}
	h := Heading{Level: min(level+1, 6), Span: Span{r.lines[i].Start, rule.at + len(rule.text)}, Inner: Span{t.at, t.at + len(t.text)}}
	h.rules[0] = Span{rule.at, rule.at + len(rule.text)}
	if over {
		h.rules[1] = Span{r.lines[i].at, r.lines[i].at + len(r.lines[i].text)}
	}
	if r.label >= 0 {
		h.Span.Start = r.lines[r.label].Start
		if h.Anchor = DocutilsID(r.named); h.Anchor != "" {
			h.Custom = true
		}
	}
	if short {
		r.problem(t.at, "the underline of “"+t.text+"” is shorter than the title")
	}
	r.p.Headings = append(r.p.Headings, h)
	r.node(Node{Kind: NodeHeading, First: i, End: under + 1, Text: h.Inner})
	r.leaf(h.Inner)
	return under - i + 1
}

// leaf adds running text.
func (r *rst) leaf(at Span) {
	if at.Start < at.End && at.Start >= r.mute {
		r.leaves = append(r.leaves, at)
		for _, f := range Inlines(RST, r.src[at.Start:at.End]) {
			r.inline(f.moved(at.Start))
		}
	}
}

// text adds a paragraph.
func (r *rst) text(at Span) {
	if r.leaf(at); at.Start >= r.mute {
		r.p.Blocks = append(r.p.Blocks, at)
	}
}

// code adds lines of code.
func (r *rst) code(from, to int, lang string) {
	if from >= to {
		return
	}
	at := Span{r.lines[from].Start, r.lines[to-1].End}
	r.node(Node{Kind: NodeCode, First: from, End: to, Col: r.lines[from].col, Mark: lang, Text: at})
	if at.Start < r.mute {
		return
	}
	r.p.Code = append(r.p.Code, Code{Span: at, Inner: at, Lang: lang})
	r.leaves = append(r.leaves, at)
	r.mark(at.Start, at.End, markFence)
}

// table adds a table, whose text is not edited: its columns would not fit any more.
func (r *rst) table(i int) int {
	j := i + 1
	if rstGrid.MatchString(r.lines[i].text) {
		for j < len(r.lines) && r.lines[j].text != "" {
			j++
		}
	} else {
		for borders := 1; j < len(r.lines) && r.lines[j].col >= r.lines[i].col || j < len(r.lines) && r.lines[j].text == ""; j++ {
			if rstBorder.MatchString(r.lines[j].text) && r.lines[j].text[0] == '=' {
				if borders++; borders >= 2 && (j+1 == len(r.lines) || r.lines[j+1].text == "") {
					j++
					break
				}
			}
		}
	}
	at := Span{r.lines[i].at, r.lines[j-1].End}
	r.node(Node{Kind: NodeTable, First: i, End: j, Col: r.lines[i].col, Text: at})
	if at.Start < r.mute {
		return j
	}
	r.p.Tables = append(r.p.Tables, at)
	r.leaves = append(r.leaves, at)
	r.mark(at.Start, at.End, markOther)
	return j
}

// paragraph reads a paragraph that begins behind a marker of so many bytes; a hanging one goes on at any deeper column.
func (r *rst) paragraph(i, marker int, hanging bool) int {
	l := r.lines[i]
	if marker == 0 && (l.text[0] == '-' || l.text[0] == '/') {
		marker = len(rstOption.FindString(l.text))
		hanging = marker > 0
	}
	start, col := l.at+marker, l.col+utf8.RuneCountInString(l.text[:min(marker, len(l.text))])
	j := i + 1
	if hanging && j < len(r.lines) && r.lines[j].col > l.col && r.lines[j].text != "" {
		if col = r.lines[j].col; marker == len(l.text) { // all of it stands below
			r.node(Node{Kind: NodeText, First: i, End: j, Col: l.col, Content: col, Mark: l.text, Text: Span{start, start}})
			return j
		}
	}
	for j < len(r.lines) && r.goesOn(j, l.col, col) && !(marker == 0 && l.col == 0 && adornment(r.lines[j].text) && len(r.lines[j].text) >= 4) {
		j++
	}
	last := r.lines[j-1]
	end := last.at + len(last.text)
	literal := strings.HasSuffix(last.text, "::")
	if literal {
		if end--; end == start+1 {
			end = start // the mark alone
		}
	}
	r.node(Node{Kind: NodeText, First: i, End: j, Col: l.col, Content: col, Mark: l.text[:marker], Text: Span{start, max(start, end)},
		Term: j == i+1 && j < len(r.lines) && r.lines[j].text != "" && r.lines[j].col > col})
	if !literal && start < end || start < end-1 {
		r.text(Span{start, end})
	}
	if !literal {
		return j
	}
	outer := min(col, l.col)
	if marker > 0 {
		outer = col
	}
	return r.literalBelow(j, col, outer)
}

// goesOn reports whether a line belongs to a paragraph whose first line is at one column and whose others are at another.
func (r *rst) goesOn(j, first, others int) bool {
	l := r.lines[j]
	return l.text != "" && l.col == others && (first == others || l.col > first)
}

// literalBelow reads the literal block behind a paragraph that ends in two colons: what is indented deeper than outer,
// or lines at the paragraph's column that begin with one mark.
func (r *rst) literalBelow(j, col, outer int) int {
	next := j
	for next < len(r.lines) && r.lines[next].text == "" {
		next++
	}
	if next == len(r.lines) || next == j {
		return j
	}
	stop := next
	if c := r.lines[next].text[0]; r.lines[next].col > outer {
		stop = r.below(next, outer)
	} else if r.lines[next].col == col && isPunct(c) {
		for stop < len(r.lines) && r.lines[stop].text != "" && r.lines[stop].text[0] == c {
			stop++
		}
	}
	if stop == next {
		return j
	}
	r.code(next, stop, "")
	return stop
}

// explicit reads a directive, a target, a footnote or a comment.
func (r *rst) explicit(i int) int {
	l := r.lines[i]
	body := r.below(i+1, l.col)
	if m := rstDirective.FindStringSubmatchIndex(l.text); m != nil {
		r.label = -1
		if m[2] >= 0 { // a substitution
			r.define(i, strings.TrimSpace(l.text[m[2]:m[3]]))
		}
		arg := Span{l.End, l.End}
		if m[6] >= 0 {
			arg = Span{l.at + m[6], l.at + len(l.text)}
		}
		if m[2] >= 0 && l.text[m[4]:m[5]] != "image" {
			arg.End = max(arg.End, r.lines[max(i, body-1)].End)
			r.node(Node{Kind: NodeSubstitution, First: i, End: body, Mark: strings.Trim(l.text[m[2]:m[3]], "| "), Text: arg})
			return body
		}
		return r.directive(i, l.text[m[4]:m[5]], arg, body)
	}
	if m := rstTarget.FindStringSubmatchIndex(l.text); m != nil {
		name := strings.Trim(l.text[m[2]:m[3]], "`")
		at := Span{}
		if m[4] >= 0 {
			at = Span{l.at + m[4], l.at + len(l.text)}
		} else if below := i + 1; below < body && r.lines[below].text != "" {
			at = Span{r.lines[below].at, r.lines[below].at + len(r.lines[below].text)}
		}
		if at.End > 0 {
			r.p.Refs = append(r.p.Refs, Link{Kind: ReferenceDefinition, Dest: string(r.src[at.Start:at.End]), Span: Span{l.at, at.End}, At: at, Label: name})
			r.label = -1
			return body
		}
		if r.label < 0 {
			r.label = i
		}
		r.named = name
		r.define(i, name)
		return i + 1
	}
	r.label = -1
	if m := rstNote.FindString(l.text); m != "" {
		r.define(i, strings.TrimSpace(m[2:]))
		return r.paragraph(i, len(m), true)
	}
	if l.text == ".." && (i+1 == len(r.lines) || r.lines[i+1].text == "") {
		return i + 1
	}
	r.p.Comments = append(r.p.Comments, Span{l.Start, r.lines[max(i, body-1)].End})
	return max(body, i+1)
}

// define notes a name that references may have.
func (r *rst) define(i int, name string) {
	l := r.lines[i]
	r.p.Refs = append(r.p.Refs, Link{Kind: ReferenceDefinition, Span: Span{l.at, l.End}, Label: name})
}

// options is the line behind the options of a directive.
func (r *rst) options(j, body int) int {
	for j < body && rstField.FindString(r.lines[j].text) != "" {
		for at := r.lines[j].col; j < body && (rstField.FindString(r.lines[j].text) != "" || r.lines[j].col > at && r.lines[j].text != ""); {
			j++
		}
	}
	return j
}

// included notes the file that a directive names.
func (r *rst) included(i int, name string, arg Span) {
	if arg.Start < arg.End && (name == "include" || name == "literalinclude" || name == "image" || name == "figure") {
		r.p.Refs = append(r.p.Refs, Link{Kind: ImportLink, Dest: string(r.src[arg.Start:arg.End]), Span: Span{r.lines[i].at, arg.End}, At: arg, Label: name})
	}
}

// directive reads a directive whose content ends before the line body.
func (r *rst) directive(i int, name string, arg Span, body int) int {
	short := name[strings.LastIndexByte(name, ':')+1:]
	j := i + 1
	r.top = false
	r.included(i, name, arg)
	for arg.Start < arg.End && !rstCode[short] && j < body && r.lines[j].text != "" && rstField.FindString(r.lines[j].text) == "" {
		arg.End = r.lines[j].at + len(r.lines[j].text) // of several lines
		j++
	}
	literal := rstTitled[short] && j > i+1 && bytes.HasSuffix(r.src[arg.Start:arg.End], []byte("::"))
	if literal {
		arg.End--
	}
	options := j
	j = r.options(j, body)
	r.node(Node{Kind: NodeDirective, First: i, End: max(body, i+1), Col: r.lines[i].col, Mark: name, Text: arg, Options: [2]int{options, j}})
	if k := bytes.IndexByte(r.src[arg.Start:arg.End], ' '); rstVersion[short] {
		if arg.Start += k; k < 0 {
			arg.Start = arg.End
		}
	}
	if (rstTitled[short] || rstVersion[short]) && arg.Start < arg.End {
		r.text(arg)
	}
	if literal {
		j = r.literalBelow(j, r.lines[i+1].col, r.lines[i+1].col)
	}
	switch {
	case rstCode[short]:
		for j < body && r.lines[j].text == "" {
			j++
		}
		r.code(j, body, string(r.src[arg.Start:arg.End]))
	case rstText[short] || strings.Contains(name, ":") && short != name || strings.HasPrefix(name, "auto"):
		return j
	case j < body:
		r.mute = max(r.mute, r.lines[body-1].End)
		return j
	}
	return max(body, i+1)
}

var rstInline = regexp.MustCompile("(?s)" +
	"(``(?:\\S|\\S.*?\\S)``)" + // 1 a literal
	"|(:[A-Za-z][\\w.+:-]*:)`([^`]+)`" + // 2, 3 a role
	"|(_`[^`]+`)" + // 4 a target within the line
	"|`([^`]+)`(__?|:[A-Za-z][\\w.+:-]*:)?" + // 5, 6
	"|(\\|[^|\\s](?:[^|\\n]*[^|\\s])?\\|_{0,2})" + // 7 a substitution
	"|(\\[(?:#[\\w-]*|\\*|[0-9]+|[A-Za-z][\\w.-]*)\\]_)" + // 8 a footnote
	"|((?:https?|ftp)://[^\\s<>\"`]+|[\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)+)" + // 9 an address
	"|\\b([A-Za-z0-9]+(?:[-._+:][A-Za-z0-9]+)*)(__?)" + // 10, 11 a reference
	"|(\\\\.)") // 12

var embedded = regexp.MustCompile(`(?s)^(.*?)(\s*<([^<>]+)>)$`)

// rstForm is what a match of rstInline stands for; false if it is text.
func rstForm(src []byte, m []int) (Inline, bool) {
	f := Inline{Span: Span{m[0], m[1]}}
	group := func(n int) Span { return Span{m[2*n], m[2*n+1]} }
	role := func(n int) string { return strings.Trim(string(src[m[2*n]:m[2*n+1]]), ":") }
	switch {
	case m[2] >= 0:
		f.Kind, f.Inner = InlineCode, Span{m[0] + 2, m[1] - 2}
	case m[4] >= 0:
		f.Kind, f.Inner, f.Name = InlineRole, group(3), role(2)
	case m[8] >= 0:
		f.Kind, f.Inner = InlineTarget, Span{m[0] + 2, m[1] - 1}
	case m[10] >= 0:
		f.Kind, f.Inner, f.Name = InlineRole, group(5), "default"
		if m[12] >= 0 && src[m[12]] == '_' {
			f.Name = "_"
		} else if m[12] >= 0 {
			f.Name = role(6)
		}
	case m[14] >= 0:
		f.Kind, f.Inner = InlineValue, Span{m[0] + 1, m[0] + 1 + bytes.IndexByte(src[m[0]+1:m[1]], '|')}
	case m[16] >= 0:
		f.Kind = InlineNote
	case m[18] >= 0:
		for f.Kind = InlineAddress; f.Span.End > f.Span.Start && strings.IndexByte(".,;:!?'\")*", src[f.Span.End-1]) >= 0; {
			f.Span.End--
		}
		f.Inner = f.Span
	case m[20] >= 0:
		f.Kind, f.Inner, f.Name = InlineRole, group(10), "_"
		return f, m[1] == len(src) || !isWord(src[m[1]])
	default:
		f.Kind = InlineEscape
	}
	return f, true
}

// inline marks a form within running text.
func (r *rst) inline(f Inline) {
	switch f.Kind {
	case InlineCode:
		r.literal(f.Span, f.Inner)
	case InlineRole:
		r.role(f.Span, f.Inner, f.Name)
	case InlineAddress:
		r.address(f.Span)
	case InlineEscape:
		r.mark(f.Span.Start, f.Span.Start+1, markHidden)
	case InlineEmphasis:
		r.mark(f.Span.Start, f.Span.End, markHidden)
	default: // a substitution or a footnote
		r.mark(f.Span.Start, f.Span.End, markOther)
		r.p.Refs = append(r.p.Refs, Link{Kind: ReferenceLink, Dest: strings.TrimRight(string(r.src[f.Span.Start:f.Span.End]), "_"), Span: f.Span, At: f.Span, Label: "_"})
	}
}

func (s *scanner) literal(whole, inner Span) {
	s.p.Code = append(s.p.Code, Code{Span: whole, Inner: inner, Inline: true})
	s.mark(whole.Start, inner.Start, markHidden)
	s.mark(inner.Start, inner.End, markCode)
	s.mark(inner.End, whole.End, markHidden)
}

// other takes what a form holds for text that readers see and nobody edits.
func (s *scanner) other(whole, inner Span) {
	s.mark(whole.Start, inner.Start, markHidden)
	s.mark(inner.Start, inner.End, markOther)
	s.mark(inner.End, whole.End, markHidden)
}

func (s *scanner) address(at Span) {
	s.p.Links = append(s.p.Links, Link{Kind: AutoLink, Dest: string(s.src[at.Start:at.End]), Span: at, At: at, Text: string(s.src[at.Start:at.End])})
	s.mark(at.Start, at.End, markOther)
}

// role reads interpreted text: a reference, or what its role makes of it. Text before an embedded target is running
// text, unless other references have it for their name.
func (r *rst) role(whole, inner Span, name string) {
	m := embedded.FindSubmatchIndex(r.src[inner.Start:inner.End])
	links := name == "_" || rstLinks[name]
	if !links {
		r.literal(whole, inner)
		return
	}
	l := Link{Kind: ReferenceLink, Span: whole, At: inner, Label: name}
	if m != nil && m[3] > 0 {
		l.Kind, l.Inner, l.At = InlineLink, Span{inner.Start, inner.Start + m[3]}, Span{inner.Start + m[6], inner.Start + m[7]}
		r.mark(whole.Start, l.Inner.Start, markHidden)
		r.mark(l.Inner.End, whole.End, markHidden)
	} else {
		r.other(whole, inner)
	}
	l.Dest = string(r.src[l.At.Start:l.At.End])
	r.p.Refs = append(r.p.Refs, l)
}

// RefName is a name of reStructuredText as references are compared: in lower case, with single blanks.
func RefName(s string) string {
	return strings.ToLower(strings.Join(strings.Fields(strings.NewReplacer(`\`, "", "`", "").Replace(s)), " "))
}

// NewHeading is a heading as the page writes those of a level; the first one of a level in reStructuredText gets marks
// that the page does not have yet.
func (p *Page) NewHeading(level int, title string) string {
	switch p.Format {
	case AsciiDoc:
		return strings.Repeat("=", level) + " " + title
	case RST:
		free := "=-~^\"'+#"
		for _, h := range p.Headings {
			mark := string(p.Src[h.rules[0].Start])
			if line := strings.Repeat(mark, columns(title)); h.Level == level && h.rules[1].End > 0 {
				return line + "\n" + title + "\n" + line
			} else if h.Level == level {
				return title + "\n" + line
			}
			free = strings.Replace(free, mark, "", 1)
		}
		return title + "\n" + strings.Repeat((free + "=")[:1], columns(title))
	}
	return strings.Repeat("#", level) + " " + title
}

// Readorned gives a page of reStructuredText or AsciiDoc its titles' underlines as long as the titles that were changed.
func Readorned(before *Page, out []byte) []byte {
	if !before.Format.Plain() {
		return out
	}
	was, now := parseLoose(before.Path, before.Src), parseLoose(before.Path, out)
	if len(was.Headings) != len(now.Headings) {
		return out
	}
	title := func(p *Page, h Heading) int {
		lead := h.Inner.Start - (bytes.LastIndexByte(p.Src[:h.Inner.Start], '\n') + 1)
		return lead + columns(string(p.Src[h.Inner.Start:h.Inner.End]))
	}
	var edits []Edit
	for i, h := range now.Headings {
		old := was.Headings[i]
		if h.rules[0].End == 0 || bytes.Equal(out[h.Inner.Start:h.Inner.End], before.Src[old.Inner.Start:old.Inner.End]) {
			continue
		}
		more := old.rules[0].End - old.rules[0].Start - title(was, old) // than the title
		n := title(now, h) + min(2, max(0, more))
		if more > 2 {
			n = max(title(now, h), old.rules[0].End-old.rules[0].Start)
		}
		for _, rule := range h.rules {
			if rule.End == 0 {
				continue
			}
			edits = append(edits, Edit{rule, bytes.Repeat(out[rule.Start:rule.Start+1], n)})
		}
	}
	fixed, err := Apply(out, edits)
	if err != nil {
		return out
	}
	return fixed
}
