package expand

import (
	"bytes"
	"strings"

	"docent/internal/wordset"
	"docent/site/markup"
)

// A plainReader makes Markdown of a page in reStructuredText or AsciiDoc, of the blocks that site/markup finds in it.
type plainReader struct {
	*expander
	file  string
	lines []string
	page  *markup.Page
	out   text

	subs       map[string]string // substitutions
	urls       map[string]string // of named targets
	titles     map[string]string // of sections that have labels
	attributes map[string]string // of AsciiDoc
	locked     []string          // of these, what no page changes
	depth      int               // of values that hold each other

	headings int             // that were written
	slugs    map[string]bool // of these
	skip     int             // the line that is written next
	items    []openItem      // of lists, in reStructuredText
	lead     string          // what the next paragraph begins with
	leads    int             // the line after those that it may be of
	last     byte            // what was written last: '-' an item, '|' a line of a verse
	bare     bool            // an item without text was
}

// An openItem is an item of a list that blocks may lie in.
type openItem struct {
	column int
	in     string // indentation of what lies in it
}

// read writes the blocks of lines.
func (r *plainReader) read(name string, lines []string) {
	var src bytes.Buffer
	for _, l := range lines {
		src.WriteString(l + "\n")
	}
	r.lines, r.page, r.slugs = lines, markup.Parse(name, src.Bytes()), map[string]bool{}
	isRST := r.page.Format == markup.RST
	if isRST {
		r.define()
	}
	for i := range r.page.Nodes {
		switch n := &r.page.Nodes[i]; {
		case n.Kind == markup.NodeHeading:
			r.title(n)
		case n.First < r.skip:
		case n.Kind == markup.NodeCode:
			r.verbatim(n)
		case n.Kind == markup.NodeText && isRST:
			r.rstText(n)
		case n.Kind == markup.NodeText:
			r.adocText(n)
		case n.Kind == markup.NodeTable && isRST:
			r.drawn(n)
		case n.Kind == markup.NodeTable:
			r.table(n)
		case n.Kind == markup.NodeDirective && isRST:
			r.directive(n)
		case n.Kind == markup.NodeDirective && n.Mark == "image":
			alt, _, _ := strings.Cut(n.Attrs, ",")
			r.write(n, "!["+alt+"]("+r.source(n.Text)+")")
		case n.Kind == markup.NodeTitle:
			r.write(n, "**"+r.inline(r.source(n.Text))+"**")
		case n.Kind == markup.NodeContainer:
			r.admonished(n)
		case n.Kind == markup.NodePass:
			r.write(n, strings.Trim(string(r.page.Src[n.Text.Start:n.Text.End]), "\n"))
		}
	}
	if len(r.out) > 0 {
		r.out.write("\n")
	}
}

// source is running text, its lines without what they are indented by.
func (r *plainReader) source(at markup.Span) string {
	s := string(r.page.Src[at.Start:at.End])
	if !strings.Contains(s, "\n") {
		return strings.TrimSpace(s)
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// title writes the next heading, with its anchor if Markdown would make another one of it.
func (r *plainReader) title(n *markup.Node) {
	h := &r.page.Headings[r.headings]
	r.headings++
	r.items = nil
	s, slug := strings.Repeat("#", min(h.Level, 6))+" "+strings.ReplaceAll(r.inline(r.source(n.Text)), "\n", " "), markup.Slug(h.Text)
	if h.Anchor != "" && (h.Anchor != slug || r.slugs[slug]) && (r.headings > 1 || h.Level > 1) {
		s += " {#" + h.Anchor + "}"
	}
	r.slugs[slug] = true
	r.write(n, s)
}

// close ends the items that a block does not lie in.
func (r *plainReader) close(n *markup.Node) {
	for len(r.items) > 0 && n.Col < r.items[len(r.items)-1].column {
		r.items = r.items[:len(r.items)-1]
	}
}

func (r *plainReader) indentation() string {
	if len(r.items) == 0 {
		return ""
	}
	return r.items[len(r.items)-1].in
}

// write writes a block.
func (r *plainReader) write(n *markup.Node, s string) {
	if strings.TrimSpace(s) != "" {
		r.close(n)
		r.put(n, r.indentation(), "", s, 0)
	}
}

// put writes a block behind a mark; what is alike stands on the next line.
func (r *plainReader) put(n *markup.Node, in, mark, s string, kind byte) {
	if lead := r.lead; lead != "" {
		if r.lead = ""; n.First < r.leads && n.Kind != markup.NodeCode && n.Kind != markup.NodeTable && mark == "" {
			s = lead + s
		} else {
			r.put(n, in, "", strings.TrimSpace(lead), 0)
		}
	}
	if len(in) > 200 || !r.gives(len(in)*strings.Count(s, "\n")) {
		in = ""
	}
	if len(r.out) > 0 {
		if r.out.write("\n"); !(r.bare || kind != 0 && r.last == kind) {
			r.out.write("\n")
		}
	}
	r.out.write(in + mark)
	below := "\n" + in + strings.Repeat(" ", len(mark))
	for i, line := range strings.Split(s, "\n") {
		if i > 0 && line != "" {
			r.out.write(below)
		} else if i > 0 {
			r.out.write("\n")
		}
		r.out.write(line)
	}
	r.last, r.bare = kind, mark != "" && s == ""
}

// note puts the kind of an admonition before its first paragraph.
func (r *plainReader) note(n *markup.Node, kind string) { r.lead, r.leads = "**"+kind+":** ", n.End }

// verbatim writes code.
func (r *plainReader) verbatim(n *markup.Node) {
	lang, _, _ := strings.Cut(strings.TrimSpace(n.Mark), ",")
	if lang, _, _ = strings.Cut(lang, " "); strings.Contains(lang, "=") {
		lang = ""
	}
	s := markup.Dedent(string(r.page.Src[n.Text.Start:n.Text.End]))
	if r.page.Format == markup.AsciiDoc {
		s = adocCallout.ReplaceAllString(s, "")
	}
	r.write(n, fence(lang, s))
}

// fence is code between fences.
func fence(lang, code string) string {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + lang + "\n" + strings.Trim(code, "\n") + "\n" + fence
}

// tabled writes a table.
func (r *plainReader) tabled(n *markup.Node, rows [][]string, headed bool) {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	if columns == 0 || columns > 200 {
		return
	}
	if !headed {
		rows = append([][]string{make([]string, columns)}, rows...)
	}
	var out strings.Builder
	for i, row := range rows {
		out.WriteString("|")
		for k := range columns {
			cell := ""
			if k < len(row) {
				cell = strings.ReplaceAll(r.inline(strings.Join(strings.Fields(row[k]), " ")), "|", `\|`)
			}
			out.WriteString(" " + cell + " |")
		}
		out.WriteString("\n")
		if i == 0 {
			out.WriteString("|" + strings.Repeat(" --- |", columns) + "\n")
		}
	}
	r.write(n, strings.TrimSuffix(out.String(), "\n"))
}

// inline makes Markdown of running text.
func (r *plainReader) inline(s string) string {
	var out strings.Builder
	at := 0
	text := func(to int) { out.WriteString(strings.ReplaceAll(s[at:to], "<", `\<`)) }
	for _, f := range markup.Inlines(r.page.Format, []byte(s)) {
		if f.Span.Start < at {
			continue
		}
		text(f.Span.Start)
		at = f.Span.End
		all, inner := s[f.Span.Start:f.Span.End], s[f.Inner.Start:f.Inner.End]
		switch {
		case f.Kind == markup.InlineEscape && len(all) > 1 && (all[1] >= '0' && all[1] <= '9' || all[1] >= 'A' && all[1] <= 'Z' || all[1] >= 'a' && all[1] <= 'z'):
			out.WriteString(all[1:])
		case r.page.Format == markup.RST:
			out.WriteString(r.rstInline(f, all, inner))
		default:
			out.WriteString(r.adocInline(f, all, inner, s[f.Text.Start:f.Text.End]))
		}
	}
	text(len(s))
	return out.String()
}

func code(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

// worded is a label as words.
func worded(label string) string { return strings.NewReplacer("-", " ", "_", " ").Replace(label) }

var words = wordset.Of
