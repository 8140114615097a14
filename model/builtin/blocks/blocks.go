// Package blocks reads a section of a page as blocks, as an answer can quote them: paragraphs, lists, code, tables and headings in
// plain Markdown, whatever dialect the page is written in.
package blocks

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"docent/internal/brief"
	"docent/internal/wordset"
	"docent/model"
	"docent/site/markup"
)

// A Kind is what a block is.
type Kind uint8

// The kinds of blocks.
const (
	Prose Kind = iota + 1
	List
	Code
	Table
	Heading
)

// A Block is a paragraph, a whole list, a whole stretch of code, a table, or a heading within the section, in Markdown
// without components and with links that lead somewhere.
type Block struct {
	Kind  Kind
	Text  string
	Label string // of code: the title that its first line has, or a tab's
	Tab   bool   // of a heading: it is the title of a tab
}

// Parse reads a section into blocks. The section's own heading at its top is left out.
func Parse(p *model.Passage) []Block {
	name := "section.md"
	if strings.HasSuffix(p.Path, ".mdx") {
		name = "section.mdx"
	}
	text := "\n" + p.Text // so that a line of hyphens does not begin front matter
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	r := reader{passage: p, page: markup.Parse(name, []byte(text)), src: text}
	r.collect()
	r.read()
	own := cmp.Or(p.Heading, p.Title)
	if len(r.blocks) > 0 && r.blocks[0].Kind == Heading && sameWords(r.blocks[0].Text, own) {
		return r.blocks[1:]
	}
	return r.blocks
}

// A reader writes what a section's page says as blocks.
type reader struct {
	passage *model.Passage
	page    *markup.Page
	src     string
	changes []change // in order, those around others first
	blocks  []Block
	buf     []byte // of the paragraph that is written
	line    int    // where its last line begins
	term    bool   // it is a term, and what it means follows
	lists   []int  // of the lists in HTML that are open: the number of the last item, or -1 without numbers
	items   []string
	marker  string // of the item that the next text begins
	links   []int  // where in buf the links begin that are not at their end
}

// A change is what becomes of a stretch of the source that is not text as it stands.
type change struct {
	markup.Span
	as   as
	text string // that stands in its place
	at   int    // of a tag or of code: its number on the page
}

type as uint8

const (
	replacedBy as = iota
	linkOpened
	linkClosed
	tagged
	coded // a block of code within HTML
)

func (r *reader) change(from, to int, text string) {
	r.changes = append(r.changes, change{Span: markup.Span{Start: from, End: to}, text: text})
}

// collect lists the changes: tags, images, comments, expressions, and what calls the generator go; links lead
// somewhere or are plain text; code stays as it is.
func (r *reader) collect() {
	p := r.page
	r.changes = make([]change, 0,
		len(p.Tags)+len(p.Code)+len(p.Comments)+len(p.Scripts)+len(p.Templates)+2*(len(p.Links)+len(p.Undefined)))
	for i := range p.Tags {
		r.changes = append(r.changes, change{Span: p.Tags[i].Span, as: tagged, at: i})
	}
	for i, c := range p.Code {
		switch {
		case c.Inline && r.src[c.Span.Start] == '`':
			r.change(c.Span.Start, c.Span.End, r.src[c.Span.Start:c.Span.End])
		case r.isHTML(&c):
			r.changes = append(r.changes, change{Span: c.Span, as: coded, at: i})
		case c.Inline:
			if text := r.page.Plain(c.Inner); text != "" && !strings.ContainsAny(text, "`\n") {
				r.change(c.Span.Start, c.Span.End, "`"+text+"`")
			}
		}
	}
	for _, c := range p.Comments {
		r.change(c.Start, c.End, "")
	}
	for _, s := range p.Scripts {
		if s.Start > 1 && r.src[s.Start-1] == '{' && s.End < len(r.src) &&
			strings.IndexByte("_^", r.src[s.Start-2]) < 0 { // which a formula has before it
			r.change(s.Start-1, s.End+1, "")
		}
	}
	for _, t := range p.Templates {
		if call := r.src[t.Span.Start:min(t.Span.Start+3, t.Span.End)]; call == "{{<" || call == "{{%" || call[1] == '!' ||
			call[1] == '*' {
			r.change(t.Span.Start, t.Span.End, "")
		}
	}
	for _, l := range p.Links {
		r.link(&l)
	}
	for _, l := range p.Undefined {
		r.link(&l)
	}
	for i := strings.IndexByte(r.src, '{'); i >= 0; i = after(r.src, i, "{") {
		r.braces(i)
	}
	for i := strings.Index(r.src, "&nbsp;"); i >= 0; i = after(r.src, i, "&nbsp;") {
		r.change(i, i+len("&nbsp;"), " ")
	}
	slices.SortStableFunc(r.changes, func(a, b change) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
}

// after is where a mark that stands at i occurs next; -1 if it does not.
func after(s string, i int, mark string) int {
	if n := strings.Index(s[i+1:], mark); n >= 0 {
		return i + 1 + n
	}
	return -1
}

func (r *reader) link(l *markup.Link) {
	switch l.Kind {
	case markup.ImageLink, markup.ReferenceDefinition:
		r.change(l.Span.Start, l.Span.End, "")
	case markup.InlineLink, markup.ReferenceLink:
		if l.Kind == markup.ReferenceLink && r.src[l.Span.Start] == '!' {
			r.change(l.Span.Start, l.Span.End, "")
			return
		}
		opened, closed := "", ""
		if dest := resolve(r.passage, l.Dest); dest != "" {
			opened, closed = "[", "]("+dest+")"
		}
		r.changes = append(r.changes,
			change{Span: markup.Span{Start: l.Span.Start, End: l.Inner.Start}, as: linkOpened, text: opened},
			change{Span: markup.Span{Start: l.Inner.End, End: l.Span.End}, as: linkClosed, text: closed})
	}
}

// braces takes out attribute lists of an extended Markdown ({.class}, {:target="_blank"}), and what is around a text
// that is written as an expression.
func (r *reader) braces(i int) {
	rest := r.src[i+1:]
	if rest == "" || i > 0 && r.src[i-1] == '\\' {
		return
	}
	switch c := rest[0]; c {
	case '.', ':', '#':
		if n := strings.IndexAny(rest, "}\n"); n >= 0 && rest[n] == '}' {
			r.change(i, i+1+n+1, "")
		}
	case '"', '\'', '`':
		if n := strings.IndexByte(rest[1:], c); n >= 0 && strings.HasPrefix(rest[n+2:], "}") {
			r.change(i, i+n+4, rest[1:n+1])
		}
	}
}

// A part is one of a page's blocks; at is its place among those of its kind. Of a table in HTML it has the text.
type part struct {
	markup.Span
	kind Kind
	at   int
	text string
}

// parts lists the page's blocks in their order, the outer one first.
func (r *reader) parts() []part {
	p := r.page
	parts := make([]part, 0, len(p.Blocks)+len(p.Tables)+len(p.Headings)+len(p.Code))
	for i := range p.Tags {
		if t := &p.Tags[i]; !t.Close && t.Partner > i && strings.EqualFold(t.Name, "table") {
			if rows := r.tableRows(i); rows != nil { // else it is written as what is in it
				parts = append(parts, part{Span: markup.Span{Start: t.Span.Start, End: p.Tags[t.Partner].Span.End}, kind: Table,
					text: strings.Join(rows, "\n")})
			}
		}
	}
	for _, b := range p.Blocks {
		parts = append(parts, part{Span: b, kind: Prose})
	}
	for _, t := range p.Tables {
		parts = append(parts, part{Span: t, kind: Table})
	}
	for i, h := range p.Headings {
		parts = append(parts, part{h.Span, Heading, i, ""})
	}
	for i, c := range p.Code {
		if !c.Inline {
			parts = append(parts, part{c.Span, Code, i, ""})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	return parts
}

// read writes the blocks, in the order of the page.
func (r *reader) read() {
	p := r.page
	parts := r.parts()
	items, done := listItems(p.Items), 0
	for n := 0; n < len(parts); n++ {
		b := parts[n]
		if b.End <= done { // code within a paragraph of HTML, or what is below an item
			continue
		}
		if b.Start < done {
			b = part{Span: markup.Span{Start: done, End: b.End}, kind: Prose}
		}
		if items = items.from(b.Start, done); items.begunAt(b.Start) {
			b.kind, b.Span = List, items[0]
			b.End = r.itemsEnd(items, parts[n:], done)
		}
		if b.kind == List || b.kind == Table && b.text == "" {
			if end := r.divided(b.Span); end > b.Start && end < b.End {
				b.End = end
				n-- // the rest is a paragraph
			}
		}
		done = b.End
		note := r.note(b.End)
		switch b.kind {
		case Prose:
			r.paragraph(b.Span, note)
		case Table:
			r.table(&b)
		case Heading:
			r.heading(r.text(p.Headings[b.at].Inner))
		case Code:
			r.code(&p.Code[b.at])
		case List:
			r.list(b.Span)
		}
	}
	r.flush()
	r.endList()
}

// note is the kind of the admonition that a paragraph which ends there begins, as it is shown; empty if it begins none.
func (r *reader) note(end int) (kind string) {
	for ; len(r.page.Notes) > 0 && r.page.Notes[0].Start < end; r.page.Notes = r.page.Notes[1:] {
		kind = brief.Capital(strings.ToLower(r.src[r.page.Notes[0].Start:r.page.Notes[0].End]))
	}
	return kind
}

// listItems are the items of lists, in the order of the page.
type listItems []markup.Span

// from are the items that end after a place; those that begin before what is done are left out.
func (i listItems) from(at, done int) listItems {
	for len(i) > 0 && (i[0].End <= at || i[0].Start < done) {
		i = i[1:]
	}
	return i
}

func (i listItems) begunAt(at int) bool { return len(i) > 0 && i[0].Start <= at }

// itemsEnd is where the first of the items ends, with those that follow it directly.
func (r *reader) itemsEnd(list listItems, parts []part, done int) int {
	margin, end := len(r.before(list[0].Start)), list[0].End
	for _, next := range parts {
		if next.Start < end {
			continue
		}
		list = list.from(next.Start, done)
		switch {
		case list.begunAt(next.Start):
			end = list[0].End
		case next.kind == Code && len(r.before(next.Start)) > margin+1: // it is meant to be in the item
			end = next.End
		default:
			return end
		}
	}
	return end
}

// divided is where a list or table ends before a tag on a line of its own: one that closes what it stands in, or that
// has a title.
func (r *reader) divided(span markup.Span) int {
	tags := r.page.Tags
	n, _ := slices.BinarySearchFunc(tags, span.Start, func(t markup.Tag, at int) int { return t.Span.Start - at })
	for ; n < len(tags) && tags[n].Span.Start < span.End; n++ {
		t := &tags[n]
		if strings.TrimSpace(r.before(t.Span.Start)) == "" &&
			(t.Close && t.Partner >= 0 && tags[t.Partner].Span.Start < span.Start || r.label(t) != "") {
			return t.Span.Start
		}
	}
	return span.End
}

// put writes a block, unless it says nothing.
func (r *reader) put(kind Kind, text string) {
	r.flush()
	r.endList()
	if kind == Code || strings.IndexFunc(text, says) >= 0 {
		r.blocks = append(r.blocks, Block{Kind: kind, Text: text})
	}
}

// heading writes a heading, or the title of a component, a step, a tab or an admonition.
func (r *reader) heading(text string) {
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		r.flush()
		r.endList()
		r.blocks = append(r.blocks, Block{Kind: Heading, Text: text})
	}
}

// isTab says of the heading that was written last that it is the title of a tab.
func (r *reader) isTab(yes bool) {
	if n := len(r.blocks) - 1; yes && n >= 0 {
		r.blocks[n].Tab = true
	}
}

// flush ends the paragraph that is written.
func (r *reader) flush() {
	kept := r.buf[:0]
	for _, c := range r.buf {
		if c == '\n' || c == '\t' || c == '\r' {
			c = ' '
		}
		if c != ' ' || len(kept) > 0 && kept[len(kept)-1] != ' ' {
			kept = append(kept, c)
		}
	}
	text := string(bytes.TrimRight(kept, " "))
	r.buf, r.line, r.links, r.term = r.buf[:0], 0, r.links[:0], false
	switch {
	case strings.IndexFunc(text, says) < 0:
	case r.marker != "":
		r.items, r.marker = append(r.items, r.marker+text), ""
	case len(r.items) > 0 && len(r.lists) > 0: // the item's next paragraph
		r.items = append(r.items, strings.Repeat("  ", len(r.lists))+text)
	default:
		r.endList()
		r.blocks = append(r.blocks, Block{Kind: Prose, Text: text})
	}
}

// endList writes the items of a list in HTML.
func (r *reader) endList() {
	if len(r.items) > 0 {
		r.blocks = append(r.blocks, Block{Kind: List, Text: strings.Join(r.items, "\n")})
	}
	r.items, r.marker = nil, ""
}

// htmlList reads the tag of a list, or of an item, in HTML.
func (r *reader) htmlList(name string, t *markup.Tag) {
	r.flush()
	n := len(r.lists) - 1
	switch {
	case name == "li" && !t.Close && n >= 0:
		r.marker = strings.Repeat("  ", n) + "- "
		if r.lists[n] >= 0 {
			r.lists[n]++
			r.marker = strings.Repeat("  ", n) + strconv.Itoa(r.lists[n]) + ". "
		}
	case name == "li":
		r.marker = ""
	case t.Close && n >= 0:
		if r.lists = r.lists[:n]; n == 0 {
			r.endList()
		}
	case !t.Close && t.Partner >= 0 && len(r.lists) < maxNested:
		numbered := -1
		if name == "ol" {
			numbered = 0
		}
		r.lists = append(r.lists, numbered)
	}
}

// maxNested is how deep lists in HTML are read as such.
const maxNested = 8

// before is what stands before a place in its line, as far as it matters.
func (r *reader) before(at int) string {
	s := r.src[max(0, at-200):at]
	return strings.ReplaceAll(s[strings.LastIndexByte(s, '\n')+1:], "\t", "    ")
}

// within calls text for each stretch of the source that stands as it is, and changed for what is between them.
func (r *reader) within(span markup.Span, text func(string), changed func(*change)) {
	at := span.Start
	n, _ := slices.BinarySearchFunc(r.changes, at, func(c change, at int) int { return c.Start - at })
	for ; n < len(r.changes) && r.changes[n].Start < span.End; n++ {
		c := &r.changes[n]
		if c.Start < at {
			continue
		}
		text(r.src[at:c.Start])
		changed(c)
		at = c.End
	}
	if at < span.End {
		text(r.src[at:span.End])
	}
}

// replace writes what becomes of something in running text.
func (r *reader) replace(c *change) {
	switch c.as {
	case linkOpened:
		r.links = append(r.links, len(r.buf))
	case linkClosed:
		if n := len(r.links) - 1; n >= 0 {
			from := r.links[n]
			r.links = r.links[:n]
			if c.text != "" && len(bytes.TrimSpace(r.buf[from:])) <= 1 { // nothing but an image
				r.buf = r.buf[:from]
				return
			}
		}
	}
	r.buf = append(r.buf, c.text...)
}

// text is running text that is no paragraph of its own: its lines stay.
func (r *reader) text(span markup.Span) string {
	r.flush()
	r.within(span, func(s string) { r.buf = append(r.buf, s...) }, func(c *change) {
		if c.as != tagged {
			r.replace(c)
			return
		}
		t := &r.page.Tags[c.at]
		if label := r.label(t); label != "" {
			r.buf = append(r.buf, label...)
		} else if apart[strings.ToLower(t.Name)] {
			r.buf = append(r.buf, ' ')
		}
	})
	text := string(r.buf)
	r.buf, r.links = r.buf[:0], r.links[:0]
	return text
}

// apart are the tags whose text stands apart from that before them.
var apart = wordset.Of(`br p div section article details summary blockquote figure figcaption ul ol li dl dt dd table tr td th
	h1 h2 h3 h4 h5 h6`)

// paragraph writes a paragraph, or what the tags in it divide it into; note is the kind of the admonition that it begins.
func (r *reader) paragraph(span markup.Span, note string) {
	lead := strings.TrimLeft(r.before(span.Start), " >")
	switch {
	case strings.HasPrefix(lead, "[^"): // a footnote
		return
	case lead != "" && strings.IndexByte(":!?=/", lead[0]) >= 0 && len(lead) > 2: // the first line of an admonition
		title := strings.TrimSpace(r.text(span))
		if strings.HasPrefix(title, "{") {
			_, title, _ = strings.Cut(title, "}")
		}
		r.heading(strings.Trim(title, ` "[]`))
		r.isTab(lead[0] == '=')
		return
	case r.module(span):
		return
	}
	if !r.term {
		r.flush()
	}
	switch s := r.src[span.Start:span.End]; {
	case strings.HasPrefix(s, "[!") && !strings.HasPrefix(s, "[!["): // > [!NOTE], no image that is a link
		if n := strings.IndexAny(s, "]\n"); n >= 0 && s[n] == ']' {
			rest := strings.TrimLeft(s[n+1:], " \t\n>")
			span.Start = span.End - len(rest)
		}
	case strings.HasPrefix(s, "==="): // a tab of Material: === "npm"
		if line := FirstLine(s); strings.HasSuffix(line, `"`) {
			_, label, _ := strings.Cut(strings.TrimSuffix(line, `"`), `"`)
			r.heading(label)
			r.isTab(true)
			span.Start += len(line)
		}
	}
	if note != "" {
		r.buf = append(r.buf, "**"+note+":** "...)
		r.line = len(r.buf)
	}
	if strings.HasPrefix(r.src[span.Start:], ": ") { // what a term means, apart from it
		span.Start = min(span.Start+2, span.End)
	}
	r.within(span, r.lines, func(c *change) {
		switch c.as {
		case tagged:
			r.tag(&r.page.Tags[c.at])
		case coded:
			r.code(&r.page.Code[c.at])
		default:
			r.replace(c)
		}
	})
	r.endLine()
	if !r.term {
		r.flush()
	}
}

// module tells a line that loads other code, which a page may have whose name does not say so.
func (r *reader) module(span markup.Span) bool {
	first, _, _ := strings.Cut(r.src[span.Start:span.End], "\n")
	first = strings.TrimRight(first, "; ")
	word, rest, _ := strings.Cut(first, " ")
	switch word {
	case "import":
		return strings.HasSuffix(first, `"`) || strings.HasSuffix(first, "'")
	case "export":
		word, _, _ = strings.Cut(rest, " ")
		return word == "const" || word == "let" || word == "default" || word == "function"
	}
	return word == "@include:"
}

// lines writes text of a paragraph. A line that says nothing divides it: the tags in it do.
func (r *reader) lines(s string) {
	for {
		line, rest, more := strings.Cut(s, "\n")
		r.buf = append(r.buf, line...)
		if !more {
			return
		}
		r.endLine()
		s = strings.TrimLeft(rest, " \t>")
		if means, ok := strings.CutPrefix(s, ": "); ok && len(r.buf) > 0 { // a term on the line before
			r.means()
			s, r.line = means, 0
		}
	}
}

// means ends a term: what it means follows.
func (r *reader) means() {
	if r.buf = bytes.TrimRight(r.buf, " "); !bytes.HasSuffix(r.buf, []byte(":")) {
		r.buf = append(r.buf, ':')
	}
	r.buf = append(r.buf, ' ')
}

func (r *reader) endLine() {
	if len(bytes.TrimSpace(r.buf[min(r.line, len(r.buf)):])) == 0 && !r.term {
		r.flush()
	}
	r.buf = append(r.buf, ' ')
	r.line = len(r.buf)
}

// tag writes what a tag in a paragraph shows, or divides the paragraph.
func (r *reader) tag(t *markup.Tag) {
	if label := r.label(t); label != "" && len(bytes.TrimSpace(r.buf[r.line:])) == 0 {
		r.heading(label)
		r.isTab(tabTags[t.Name])
		return
	}
	name := strings.ToLower(t.Name)
	switch {
	case t.Close && tabTags[t.Name] && t.Partner >= 0: // an empty heading ends what it holds
		r.flush()
		r.endList()
		r.blocks = append(r.blocks, Block{Kind: Heading})
	case name == "br":
		r.buf = append(r.buf, ' ')
	case name == "dt" && !t.Close:
		r.flush()
		r.term = true
	case name == "dt":
	case name == "dd" && !t.Close && len(bytes.TrimSpace(r.buf)) > 0:
		r.means()
		r.term = true
	case name == "li" || name == "ul" || name == "ol":
		r.htmlList(name, t)
	case apart[name]:
		r.flush()
	}
}

// tabTags are the components that show one of several texts.
var tabTags = wordset.Of("Tab TabItem TabPanel")

// label is what a component's attributes show to a reader as its title, or the name of the field that it documents.
func (r *reader) label(t *markup.Tag) string {
	if t.Close || t.Name == "" || t.Name[0] < 'A' || t.Name[0] > 'Z' {
		return ""
	}
	field := strings.HasSuffix(t.Name, "Field")
	for _, a := range t.Attrs {
		text := r.src[a.Value.Start:a.Value.End]
		switch {
		case a.Kind != "string" || text == "":
		case a.Name == "title", a.Name == "label", a.Name == "header" && !field:
			return text
		case field && (a.Name == "name" || a.Name == "path" || a.Name == "query" || a.Name == "body" || a.Name == "header"):
			return "`" + text + "`"
		}
	}
	return ""
}

// table writes a table, each row between bars.
func (r *reader) table(b *part) {
	if b.text != "" {
		r.put(Table, b.text)
		return
	}
	var rows []string
	for row := range strings.SplitSeq(r.text(b.Span), "\n") {
		row = strings.Trim(row, " \t>")
		if row == "" {
			continue
		}
		if row[0] != '|' {
			row = "| " + row
		}
		if !strings.HasSuffix(row, "|") || strings.HasSuffix(row, `\|`) {
			row += " |"
		}
		rows = append(rows, row)
	}
	r.put(Table, strings.Join(rows, "\n"))
}

// tableRows are the rows of a table in HTML, as Markdown has them; nil if a cell holds more than a line does, or not all
// of it is closed.
func (r *reader) tableRows(tag int) (rows []string) {
	p := r.page
	end := p.Tags[p.Tags[tag].Partner].Span.Start
	for _, c := range p.Code {
		if !c.Inline && c.Span.Start >= p.Tags[tag].Span.End && c.Span.End <= end {
			return nil
		}
	}
	var row []string
	head := false
	for i := tag + 1; i < p.Tags[tag].Partner; i++ {
		t := &p.Tags[i]
		switch name := strings.ToLower(t.Name); {
		case t.Close && name == "tr" && len(row) > 0:
			line, below := "| "+strings.Join(row, " | ")+" |", strings.Repeat("| --- ", len(row))+"|"
			switch {
			case len(rows) > 0:
				rows = append(rows, line)
			case head:
				rows = []string{line, below}
			default: // Markdown wants one
				rows = []string{strings.Repeat("| ", len(row)) + "|", below, line}
			}
			row = nil
		case t.Close:
		case name == "table", name == "ul", name == "ol", t.Partner < 0 && (name == "tr" || name == "td" || name == "th"):
			return nil
		case name == "td" || name == "th":
			head = head || name == "th"
			inner := markup.Span{Start: t.Span.End, End: p.Tags[t.Partner].Span.Start}
			row = append(row, cell(strings.Join(strings.Fields(r.text(inner)), " ")))
		}
	}
	return rows
}

// cell is a text as it stands in a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\|`, "|"), "|", `\|`)
}

// list writes items that follow each other, with all that is in them.
func (r *reader) list(span markup.Span) {
	before := r.before(span.Start)
	quoted := strings.Contains(before, ">")
	lines := []string{strings.Repeat(" ", len(before))} // the last one may go on
	add := func(text string) {
		for n, l := range strings.Split(text, "\n") {
			if quoted && n > 0 {
				t := strings.TrimLeft(l, " >")
				l = strings.Repeat(" ", len(l)-len(t)) + t
			}
			l = strings.TrimRight(strings.ReplaceAll(l, "\t", "    "), " ")
			switch last := &lines[len(lines)-1]; {
			case n == 0:
				*last += l
			case l != "" && Indent(l) <= len(before) && Marker(l) == "" && *last != "" && l[Indent(l)] != '<':
				*last += " " + strings.TrimLeft(l, " ") // it goes on with the line before
			default:
				lines = append(lines, l)
			}
		}
	}
	prune := func(from int) { // lines that say nothing, but for the last one
		last := len(lines) - 1
		kept := slices.DeleteFunc(lines[from:last], func(l string) bool {
			l = strings.TrimSpace(l)
			return l == "" || strings.HasPrefix(l, ":::") || strings.HasPrefix(l, "///")
		})
		lines = append(lines[:from+len(kept)], lines[last])
	}
	at, pruned := span.Start, 0
	for _, c := range r.page.Code {
		if c.Inline || c.Span.Start < at || c.Span.End > span.End || c.Span == c.Inner || c.Lang == "math" {
			continue
		}
		add(r.text(markup.Span{Start: at, End: c.Span.Start}))
		prune(pruned)
		at = c.Span.End
		body := r.codeLines(&c)
		if len(body) == 0 {
			continue
		}
		margin := strings.Repeat(" ", len(r.before(c.Span.Start)))
		marks, last := fenceFor(body), &lines[len(lines)-1]
		if strings.TrimSpace(*last) == "" {
			*last = ""
		}
		*last += margin[min(len(*last), len(margin)):] + marks + c.Lang // behind the marker, if the item begins with it
		for _, l := range body {
			lines = append(lines, margin+l)
		}
		lines = append(lines, margin+marks, "")
		pruned = len(lines) - 1
	}
	add(r.text(markup.Span{Start: at, End: span.End}))
	lines = append(lines, "")
	prune(pruned)
	r.put(List, markup.Dedent(strings.Join(lines[:len(lines)-1], "\n")))
}

// code writes a stretch of code, kept as it is but for its indentation and for what generators add to its first line.
func (r *reader) code(c *markup.Code) {
	if c.Lang == "math" && strings.HasPrefix(r.src[c.Span.Start:], "$$") {
		r.put(Prose, strings.Join(strings.Fields(r.src[c.Span.Start:c.Span.End]), " "))
		return
	}
	if body := r.codeLines(c); len(body) > 0 {
		marks := fenceFor(body)
		r.put(Code, marks+c.Lang+"\n"+strings.Join(body, "\n")+"\n"+marks)
		r.blocks[len(r.blocks)-1].Label = r.page.Label(c)
	}
}

// isHTML tells code within <pre>.
func (r *reader) isHTML(c *markup.Code) bool {
	return !c.Inline && c.Span != c.Inner && r.src[c.Span.Start] == '<'
}

// codeLines are the lines of code, as they are but for the indentation of what it stands in.
func (r *reader) codeLines(c *markup.Code) []string {
	if c.Lang == "mdx-code-block" { // that one is no code but a part of the page
		return nil
	}
	text, before := r.src[c.Inner.Start:c.Inner.End], r.before(c.Span.Start)
	html, indented := r.isHTML(c), c.Inner == c.Span
	switch {
	case html:
		text = markup.HTMLCode(text)
	case indented:
		text = r.src[strings.LastIndexByte(r.src[:c.Span.Start], '\n')+1 : c.Inner.End]
	}
	lines := strings.Split(text, "\n")
	if quotes := strings.Count(before, ">"); quotes > 0 && !html {
		for i, l := range lines {
			for range quotes {
				if t, ok := strings.CutPrefix(strings.TrimLeft(l, " "), ">"); ok {
					l = strings.Repeat(" ", len(l)-len(t)) + t
				}
			}
			lines[i] = l
		}
	}
	if !html && !indented {
		for i, l := range lines {
			lines[i] = outdent(l, len(before))
		}
	}
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) > 0 && (html || indented) {
		lines = strings.Split(markup.Dedent(strings.Join(lines, "\n")), "\n")
	}
	return lines
}

// outdent is a line without so many columns of its indentation; a tab counts four.
func outdent(line string, columns int) string {
	for i := 0; i < len(line) && columns > 0; i++ {
		switch line[i] {
		case ' ':
			columns--
		case '\t':
			if columns -= 4; columns < 0 {
				return strings.Repeat(" ", -columns) + line[i+1:]
			}
		default:
			return line[i:]
		}
		if columns == 0 {
			return line[i+1:]
		}
	}
	if columns > 0 {
		return ""
	}
	return line
}

// fenceFor is a fence that no line of the code closes.
func fenceFor(body []string) string {
	longest := 2
	for _, l := range body {
		run := 0
		for i := range len(l) {
			if l[i] != '`' {
				run = 0
				continue
			}
			run++
			longest = max(longest, run)
		}
	}
	return strings.Repeat("`", longest+1)
}

// Indent is how many spaces a line begins with.
func Indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// says reports whether a character is one that says something.
func says(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// sameWords reports whether two titles have the same words.
func sameWords(a, b string) bool {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !says(r) })
	}
	return slices.Equal(words(a), words(b))
}

// FirstLine is the first line of a text.
func FirstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}
