package markup

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
)

// An adoc reads AsciiDoc as Asciidoctor does, as far as it takes to tell running text, titles, code and references from
// what attributes, macros and blocks make of their own.
type adoc struct {
	*scanner
	lines []plainLine
	loose bool // an underline may be too short to be one

	above int    // the first line of the attributes above a block; -1 if there are none
	id    string // the identifier that they give
	style string // the block's style that they give
	attrs string // all of them, as they are written
}

var (
	adocTitle     = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*)$`)
	adocEntry     = regexp.MustCompile(`^:!?[A-Za-z0-9_][\w-]*!?:(?: |$)`)
	adocAttrs     = regexp.MustCompile(`^\[(?:|[A-Za-z#.%"',$*{].*)\]$`)
	adocAnchor    = regexp.MustCompile(`^\[\[([^\[\],]+)(?:,[^\]]*)?\]\]$`)
	adocID        = regexp.MustCompile(`^[^,=]*?#([\w:.-]+)|(?:^|,)\s*id="?([\w:.-]+)`)
	adocDirective = regexp.MustCompile(`^(?:include|ifdef|ifndef|ifeval|endif)::\S*\[.*\]$`)
	adocMacro     = regexp.MustCompile(`^[a-z][\w-]*::\S*\[.*\]$`)
	adocInclude   = regexp.MustCompile(`^(include|image|video|audio)::(\S+?)\[`)
	adocMarker    = regexp.MustCompile(`^(?:\*{1,6}|-|\.{1,5}|[0-9]+\.|[a-zA-Z]\.|[ivx]+\)|[IVX]+\)|<(?:[0-9]+|\.)>)[ \t]+(?:\[[ xX*]\][ \t]+)?`)
	adocTerm      = regexp.MustCompile(`^(.*?\S)(:{2,4}|;;)(?:[ \t]+|$)`)
	adocLabel     = regexp.MustCompile(`^(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION): `)
	adocCell      = regexp.MustCompile(`(?:^|\s)(?:[0-9]+[+*]|(?:[0-9]+)?\.[0-9]+\+)?[<^>]?(?:\.[<^>])?[a-z]?[|!]|[|!]`)
	adocFence     = regexp.MustCompile("^(?:-{4,}|\\.{4,}|\\+{4,}|/{4,}|```.*)$")
	adocContainer = regexp.MustCompile(`^(?:={4,}|\*{4,}|_{4,}|--|~{4,})$`)
	adocTable     = regexp.MustCompile(`^[|,:!]={3,}$`)
	adocBreak     = regexp.MustCompile(`^(?:'{3,}|<{3,}|- ?- ?-|\* ?\* ?\*)$`)

	// Styles of blocks that are no running text.
	adocCode = wordSet(`source listing literal stem latexmath asciimath pass comment plantuml mermaid graphviz ditaa ditaamini
		blockdiag seqdiag actdiag nwdiag vega vegalite wavedrom svgbob nomnoml a2s erd bpmn d2 dbml kroki structurizr`)
	// Macros whose brackets hold running text.
	adocText = wordSet(`link xref mailto footnote footnoteref`)
)

func (r *adoc) read() {
	r.lines, r.above = r.plainLines(r.p.Body.Start), -1
	r.p.idPrefix, r.p.idSeparator = "_", "_"
	i := 0
	for i < len(r.lines) { // the header
		l := r.lines[i]
		if m := adocTitle.FindStringSubmatch(l.text); l.col == 0 && m != nil && len(m[1]) == 1 {
			for i += r.title(i); i < len(r.lines) && r.lines[i].text != ""; i++ { // author, revision, attributes
				r.identifiers(r.lines[i].text)
			}
			break
		}
		if l.text != "" && !(strings.HasPrefix(l.text, "//") && !adocFence.MatchString(l.text)) && !adocEntry.MatchString(l.text) {
			break
		}
		r.identifiers(l.text)
		i++
	}
	for i < len(r.lines) {
		i = r.block(i)
	}
}

// identifiers takes in an attribute that says how anchors are made.
func (r *adoc) identifiers(entry string) {
	if v, ok := strings.CutPrefix(entry, ":idprefix:"); ok {
		r.p.idPrefix = strings.TrimSpace(v)
	} else if v, ok := strings.CutPrefix(entry, ":idseparator:"); ok {
		r.p.idSeparator = strings.TrimSpace(v)
	}
}

// block reads what begins at a line; it returns the line after it.
func (r *adoc) block(i int) int {
	l := r.lines[i]
	if r.between(i) {
		return i + 1
	}
	whole := r.style
	style, lang, _ := strings.Cut(whole, ",")
	style, _, _ = strings.Cut(style, "%")
	if n := r.title(i); n > 0 {
		return i + n
	}
	above, attrs := r.above, r.attrs
	r.above, r.id, r.style, r.attrs = -1, "", "", ""
	node := Node{First: i, End: i + 1, Attrs: attrs, Text: Span{l.at, l.at + len(l.text)}}
	switch {
	case adocCode[style] && !adocFence.MatchString(l.text) && !adocContainer.MatchString(l.text) && !adocTable.MatchString(l.text),
		l.col > 0 && adocMarker.FindString(l.text) == "" && !adocTerm.MatchString(l.text):
		return r.unfenced(i, lang, attrs)
	case strings.HasPrefix(l.text, "//") && !strings.HasPrefix(l.text, "///"):
		r.p.Comments = append(r.p.Comments, l.Span)
	case adocFence.MatchString(l.text):
		return r.verbatim(i, l.text, lang, attrs)
	case adocEntry.MatchString(l.text):
		for strings.HasSuffix(r.lines[i].text, " \\") && i+1 < len(r.lines) {
			i++
		}
	case adocDirective.MatchString(l.text), adocMacro.MatchString(l.text):
		r.include(i, node)
		r.above, r.attrs = above, attrs
	case adocTable.MatchString(l.text):
		return r.table(i, attrs)
	case adocContainer.MatchString(l.text):
		node.Kind = NodeContainer
		r.node(node)
	case adocBreak.MatchString(l.text), l.text == "+":
	case len(l.text) > 1 && l.text[0] == '.' && l.text[1] != '.' && l.text[1] != ' ':
		node.Kind, node.Text.Start = NodeTitle, l.at+1
		r.node(node)
		r.leaf(node.Text, true)
		r.style, r.above, r.attrs = whole, above, attrs // of the block below
	default:
		return r.paragraph(i, attrs)
	}
	return i + 1
}

// unfenced reads code that ends with its paragraph.
func (r *adoc) unfenced(i int, lang, attrs string) int {
	j := i
	for j < len(r.lines) && r.lines[j].text != "" && r.lines[j].text != "+" {
		j++
	}
	if r.code(i, j, lang); j > i {
		r.p.Nodes[len(r.p.Nodes)-1].Attrs = attrs
	}
	return max(j, i+1)
}

// include notes the file that a line includes, if it includes one.
func (r *adoc) include(i int, node Node) {
	l := r.lines[i]
	m := adocInclude.FindStringSubmatchIndex(l.text)
	if m == nil {
		return
	}
	at := Span{l.at + m[4], l.at + m[5]}
	node.Kind, node.Mark, node.Text, node.Attrs = NodeDirective, l.text[m[2]:m[3]], at, strings.TrimSuffix(l.text[m[1]:], "]")
	r.p.Refs = append(r.p.Refs, Link{Kind: ImportLink, Dest: l.text[m[4]:m[5]], Span: Span{l.at, l.at + len(l.text)}, At: at, Label: node.Mark})
	r.node(node)
}

// between reads a line without text, and what stands above a block.
func (r *adoc) between(i int) bool {
	l := r.lines[i]
	if l.text == "" {
		if r.style == "" && r.id == "" {
			r.above = -1
		}
		return true
	}
	m := adocAnchor.FindStringSubmatch(l.text)
	if l.col > 0 || m == nil && !adocAttrs.MatchString(l.text) {
		return false
	}
	r.attributes(i, m)
	return true
}

// attributes reads a line of attributes or an anchor above a block.
func (r *adoc) attributes(i int, anchor []string) {
	if r.above < 0 {
		r.above = i
	}
	define := func(id string) {
		r.id = id
		r.p.Refs = append(r.p.Refs, Link{Kind: ReferenceDefinition, Span: r.lines[i].Span, Label: id})
	}
	if anchor != nil {
		define(anchor[1])
		return
	}
	text := strings.Trim(r.lines[i].text, "[]")
	r.attrs += "," + text
	if m := adocID.FindStringSubmatch(text); m != nil {
		define(m[1] + m[2])
	}
	if first := strings.TrimLeft(text, ", "); first != "" && !strings.Contains(strings.Split(first, ",")[0], "=") {
		if r.style = strings.ReplaceAll(first, ", ", ","); text[0] == ',' { // [,ruby]
			r.style = "source," + r.style
		}
		for k := range r.style {
			if strings.IndexByte("#.%", r.style[k]) >= 0 {
				_, rest, _ := strings.Cut(r.style, ",")
				r.style = r.style[:k] + "," + rest
				break
			}
		}
	}
}

// title reads a section's title, of one line or underlined; it returns the number of lines.
func (r *adoc) title(i int) int {
	l := r.lines[i]
	if l.col > 0 {
		return 0
	}
	h := Heading{Span: Span{l.at, l.at + len(l.text)}, Inner: Span{l.at, l.at + len(l.text)}}
	n := 1
	if m := adocTitle.FindStringSubmatchIndex(l.text); m != nil {
		h.Level, h.Inner.Start = m[3], l.at+m[4]
		if s := strings.TrimRight(l.text, l.text[:1]); strings.HasSuffix(s, " ") && l.text[len(s):] == l.text[:m[3]] && len(s) > m[4] {
			h.Inner.End = l.at + len(strings.TrimRight(s, " ")) // == Title ==
		}
	} else if n = 2; !r.underlined(i) {
		return 0
	} else {
		rule := r.lines[i+1]
		h.Level = strings.IndexByte("=-~^+", rule.text[0]) + 1
		h.Span.End = rule.at + len(rule.text)
		h.rules[0] = Span{rule.at, h.Span.End}
	}
	if text := r.src[h.Inner.Start:h.Inner.End]; bytes.HasSuffix(text, []byte("]]")) {
		if k := bytes.LastIndex(text, []byte("[[")); k > 0 {
			r.id = string(text[k+2 : len(text)-2])
			h.Inner.End = h.Inner.Start + len(bytes.TrimRight(text[:k], " "))
		}
	}
	if r.above >= 0 {
		h.Span.Start = r.lines[r.above].Start
	}
	if r.id != "" {
		h.Anchor, h.Custom = r.id, true
	}
	r.above, r.id, r.style, r.attrs = -1, "", "", ""
	r.p.Headings = append(r.p.Headings, h)
	r.node(Node{Kind: NodeHeading, First: i, End: i + n, Text: h.Inner})
	r.leaf(h.Inner, false)
	return n
}

// underlined reports whether a line is a title of two lines.
func (r *adoc) underlined(i int) bool {
	if i+1 >= len(r.lines) || strings.HasPrefix(r.lines[i].text, ".") || adocMarker.MatchString(r.lines[i].text) {
		return false
	}
	under := r.lines[i+1]
	if under.col > 0 || len(under.text) < 2 || strings.IndexByte("=-~^+", under.text[0]) < 0 || !adornment(under.text) ||
		!strings.ContainsFunc(r.lines[i].text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
		return false
	}
	d := columns(r.lines[i].text) - len(under.text)
	return d >= -1 && d <= 1 || r.loose && under.text != "--"
}

// verbatim reads a block of code, a passthrough or a comment up to the line that closes it.
func (r *adoc) verbatim(i int, fence, lang, attrs string) int {
	j := i + 1
	if strings.HasPrefix(fence, "```") {
		lang, fence = strings.TrimPrefix(fence, "```"), "```"
	}
	for j < len(r.lines) && r.lines[j].text != fence {
		j++
	}
	end := min(j+1, len(r.lines))
	if fence[0] == '/' {
		r.p.Comments = append(r.p.Comments, Span{r.lines[i].Start, r.lines[end-1].End})
		return end
	}
	if r.code(i+1, j, lang); i+1 < j {
		n := &r.p.Nodes[len(r.p.Nodes)-1]
		if n.Attrs = attrs; fence[0] == '+' {
			n.Kind = NodePass
		}
	}
	return end
}

// code adds lines of code.
func (r *adoc) code(from, to int, lang string) {
	(&rst{scanner: r.scanner, lines: r.lines}).code(from, to, lang)
}

// table reads the cells of a table.
func (r *adoc) table(i int, attrs string) int {
	j := i + 1
	for ; j < len(r.lines) && r.lines[j].text != r.lines[i].text; j++ {
		l := r.lines[j]
		if l.text == "" || strings.HasPrefix(l.text, "//") || adocDirective.MatchString(l.text) {
			continue
		}
		at := Span{l.at, l.at + len(l.text)}
		if r.lines[i].text[0] == '|' || r.lines[i].text[0] == '!' {
			for _, m := range adocCell.FindAllStringIndex(l.text, -1) {
				r.mark(at.Start+m[0], at.Start+m[1], markSpace)
			}
		}
		r.leaf(at, false)
	}
	end := min(j+1, len(r.lines))
	r.p.Tables = append(r.p.Tables, Span{r.lines[i].at, r.lines[end-1].End})
	r.node(Node{Kind: NodeTable, First: i, End: end, Attrs: attrs, Text: Span{r.lines[i].at, r.lines[end-1].End}})
	return end
}

// paragraph reads running text, of a list item too.
func (r *adoc) paragraph(i int, attrs string) int {
	l := r.lines[i]
	start := l.at + len(adocMarker.FindString(l.text))
	term := adocTerm.FindStringSubmatchIndex(l.text)
	if term != nil {
		r.node(Node{Kind: NodeText, First: i, End: i + 1, Text: Span{l.at, l.at + term[3]}, Term: true})
		r.leaf(Span{l.at, l.at + term[3]}, true)
		start = l.at + term[1]
	} else if m := adocLabel.FindString(l.text); m != "" {
		start = l.at + len(m)
	}
	j := i + 1
	for j < len(r.lines) && !r.interrupts(r.lines[j]) {
		j++
	}
	last := r.lines[j-1]
	at := Span{start, last.at + len(last.text)}
	node := Node{Kind: NodeText, First: i, End: j, Attrs: attrs, Text: at}
	if term == nil {
		node.Mark = l.text[:start-l.at]
	}
	if at.Start < at.End {
		r.node(node)
	}
	r.leaf(at, true)
	return j
}

// interrupts reports whether a paragraph ends before a line.
func (r *adoc) interrupts(l plainLine) bool {
	return l.text == "" || l.text == "+" || strings.HasPrefix(l.text, "//") || adocMarker.MatchString(l.text) || adocTerm.MatchString(l.text) ||
		l.col == 0 && (adocFence.MatchString(l.text) || adocContainer.MatchString(l.text) || adocTable.MatchString(l.text) ||
			adocAttrs.MatchString(l.text) || adocAnchor.MatchString(l.text)) || adocDirective.MatchString(l.text)
}

// No form runs on over another beginning of its own, so that the time is linear.
var adocInline = regexp.MustCompile("(?s)" +
	"(\\\\[*_`+{<:#^~\\[])" + // 1 what is no markup
	"|(\\+\\+\\+.*?\\+\\+\\+|\\+\\+.*?\\+\\+|pass:[a-z,]*\\[[^\\[\\]]*\\])" + // 2 passed through
	"|(``[^`]+``|`[^`]+`)" + // 3 code
	"|<<([^<>,]+)(?:,([^<>]*))?>>" + // 4, 5 a reference
	"|(\\[\\[[^\\[\\]]+\\]\\])" + // 6 an anchor
	"|(\\(\\(\\(?[^()]*\\)?\\)\\))" + // 7 a term of the index
	"|(?:link:)?((?:https?|ftp|irc)://[^\\s\\[\\]<>\"]+)(?:\\[((?:[^\\[\\]\\\\]|\\\\.|\\[[^\\[\\]]*\\])*)\\])?" + // 8, 9 an address
	"|\\b([a-z][a-z0-9-]*):([^\\s\\[\\]`:]*(?::[^\\s\\[\\]`]*)*)\\[((?:[^\\[\\]\\\\]|\\\\.|\\[[^\\[\\]]*\\])*)\\]" + // 10, 11, 12 a macro
	"|(\\{[\\w-]+(?::[^{}\\n]*)?\\}(?:[^\\s\\[\\]{}]*\\[)?)" + // 13 an attribute, or an address that begins with one
	"|(&#?\\w+;)" + // 14
	"|(\\[[^\\[\\]\\n]*\\])#" + // 15 the role of what follows
	"|([\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)+)" + // 16
	"|( \\+\\r?\\n)") // 17 a break

// leaf adds running text.
func (r *adoc) leaf(at Span, block bool) {
	if at.Start >= at.End {
		return
	}
	r.leaves = append(r.leaves, at)
	if block {
		r.p.Blocks = append(r.p.Blocks, at)
	}
	for _, f := range Inlines(AsciiDoc, r.src[at.Start:at.End]) {
		r.inline(f.moved(at.Start))
	}
}

// adocForm is what a match of adocInline stands for.
func adocForm(src []byte, m []int) Inline {
	f := Inline{Span: Span{m[0], m[1]}, Text: Span{m[1], m[1]}}
	group := func(n int) Span {
		if m[2*n] < 0 {
			return Span{m[1], m[1]}
		}
		return Span{m[2*n], m[2*n+1]}
	}
	f.Inner = f.Span
	switch {
	case m[2] >= 0:
		f.Kind = InlineEscape
	case m[6] >= 0:
		n := 1
		if src[m[0]+1] == '`' {
			n = 2
		}
		f.Kind, f.Inner = InlineCode, Span{m[0] + n, m[1] - n}
	case m[8] >= 0:
		f.Kind, f.Name, f.Inner, f.Text = InlineMacro, "xref", group(4), group(5)
	case m[12] >= 0:
		f.Kind, f.Inner = InlineTarget, Span{m[0] + 2, m[1] - 2}
	case m[14] >= 0:
		f.Kind = InlineTerm
	case m[16] >= 0:
		f.Kind, f.Inner, f.Text = InlineAddress, group(8), group(9)
		for m[18] < 0 && f.Inner.End > f.Inner.Start && strings.IndexByte(".,;:!?')", src[f.Inner.End-1]) >= 0 {
			f.Inner.End--
			f.Span.End, f.Text = f.Inner.End, Span{f.Inner.End, f.Inner.End}
		}
	case m[20] >= 0:
		f.Kind, f.Name, f.Inner, f.Text = InlineMacro, string(src[m[20]:m[21]]), group(11), group(12)
	case m[26] >= 0:
		f.Kind = InlineValue
	case m[28] >= 0:
		f.Kind = InlineEntity
	case m[30] >= 0:
		f.Kind = InlineEmphasis // the role of what stands between the marks behind it
		f.Span.End--
	case m[34] >= 0:
		f.Kind = InlineBreak
	default:
		f.Kind = InlinePass
	}
	return f
}

// inline marks a form within running text.
func (r *adoc) inline(f Inline) {
	switch f.Kind {
	case InlineEscape:
		r.mark(f.Span.Start, f.Span.Start+1, markHidden)
	case InlineCode:
		r.literal(f.Span, f.Inner)
	case InlineTarget:
		id, _, _ := strings.Cut(string(r.src[f.Inner.Start:f.Inner.End]), ",")
		r.p.Refs = append(r.p.Refs, Link{Kind: ReferenceDefinition, Span: f.Span, Label: id})
		r.mark(f.Span.Start, f.Span.End, markHidden)
	case InlineAddress:
		if f.Text.Start == f.Text.End {
			r.address(f.Span)
			return
		}
		r.p.Links = append(r.p.Links, Link{Kind: AutoLink, Dest: string(r.src[f.Inner.Start:f.Inner.End]), Span: f.Inner, At: f.Inner})
		r.text(f.Span, f.Text)
	case InlineMacro:
		if adocText[f.Name] {
			r.macro(f.Span, f.Name, f.Inner, f.Text)
			return
		}
		if r.mark(f.Span.Start, f.Span.End, markOther); f.Name == "image" {
			r.p.Refs = append(r.p.Refs, Link{Kind: ImportLink, Dest: string(r.src[f.Inner.Start:f.Inner.End]), Span: f.Span, At: f.Inner, Label: f.Name})
		}
	case InlineEntity:
		r.mark(f.Span.Start, f.Span.End, markEntity)
	case InlineEmphasis:
		r.mark(f.Span.Start, f.Span.End, markHidden)
	case InlineBreak:
		r.mark(f.Span.Start, f.Span.End, markBreak)
	default:
		r.mark(f.Span.Start, f.Span.End, markOther)
	}
}

// macro reads a macro that leads somewhere, with its text.
func (r *adoc) macro(whole Span, name string, to, text Span) {
	l := Link{Kind: ReferenceLink, Dest: string(r.src[to.Start:to.End]), Span: whole, At: to, Label: name}
	if text.Start == text.End && to.Start < to.End {
		r.other(whole, to)
	} else if r.text(whole, text) {
		l.Kind, l.Inner = InlineLink, text
	}
	if name == "xref" || name == "link" {
		r.p.Refs = append(r.p.Refs, l)
	}
}

// text takes what the brackets of a macro hold for running text, unless there are attributes in it.
func (r *adoc) text(whole, text Span) bool {
	if inner := r.src[text.Start:text.End]; len(inner) == 0 || bytes.ContainsAny(inner, "=\"") {
		r.mark(whole.Start, whole.End, markOther)
		return false
	}
	r.mark(whole.Start, text.Start, markHidden)
	r.mark(text.End, whole.End, markHidden)
	return true
}

// asciidoctorSigns are what Asciidoctor writes as signs, of which an identifier has nothing: not the blanks of a dash either.
var asciidoctorSigns = regexp.MustCompile(`(?:^| )--(?: |$)|\b--\b|\.\.\.|\((?:C|R|TM)\)`)

// asciidoctorID is the identifier that Asciidoctor makes of a section's title, with a prefix and a separator.
func asciidoctorID(title, prefix, separator string) string {
	var b strings.Builder
	gap := false
	for _, c := range strings.ToLower(asciidoctorSigns.ReplaceAllString(title, "")) {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) || c == '_' && separator != "_":
			if gap && b.Len() > 0 {
				b.WriteString(separator)
			}
			gap = false
			b.WriteRune(c)
		case strings.ContainsRune(" _-.", c):
			gap = true
		}
	}
	return prefix + b.String()
}
