package expand

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// reStructuredText as Markdown: sections, lists, tables, code, what directives and roles show. Nothing is run: what autodoc
// would write is left out and counted.

// A rstReader reads one page, with the files that it includes.
type rstReader struct {
	*expander
	styles []string          // of titles, in their order
	subs   map[string]string // substitutions
	urls   map[string]string // of named targets
	titles map[string]string // of sections that have labels
	depth  int
}

// rst makes Markdown of reStructuredText.
func (x *expander) rst(file string, content []byte) text {
	r := &rstReader{expander: x, subs: map[string]string{}, urls: map[string]string{}, titles: map[string]string{}}
	for key, v := range x.Values {
		if s, ok := v.(string); ok {
			r.subs[key] = s
		}
	}
	whole := x.Prolog + "\n" + string(content) + "\n" + x.Epilog
	r.define(whole)
	var out text
	out.take(r.blocks(file, split(x.Prolog)))
	out.take(r.blocks(file, split(string(content))))
	out.bytes = bytes.TrimLeft(out.bytes, "\n") // parts begin a little later then, at most
	return out
}

func split(s string) []string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "        ")
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

var (
	rstSub    = regexp.MustCompile(`(?m)^\s*\.\. \|([^|\n]+)\|\s+(replace|unicode|image)::[ \t]*(.*(?:\n[ \t]+\S.*)*)`)
	rstURL    = regexp.MustCompile("(?m)^\\s*\\.\\. _(?:`([^`\n]+)`|([^:\n]+)):[ \t]+(\\S+)[ \t]*$")
	rstLabel  = regexp.MustCompile(`(?m)^\.\. _([^:\n]+):[ \t]*\n(?:[ \t]*\n|\.\. _[^\n]*\n)*(?:([=\-~^"'+#*:.<>_])[=\-~^"'+#*:.<>_]{2,}\n)?([^\n]+)\n[=\-~^"'+#*:.<>_]{3,}`)
	rstDirect = regexp.MustCompile(`^\.\. +([\w:.+-]+)::(?:\s+(.*))?$`)
	rstOption = regexp.MustCompile(`^:([\w-]+):(?:\s+(.*))?$`)
	rstField  = regexp.MustCompile(`^:([^:\s][^:]*):(?:\s+(.*))?$`)
	rstBullet = regexp.MustCompile(`^([-*+•])( +)(\S.*)$`)
	rstNumber = regexp.MustCompile(`^(?:(?:\d+|#|[a-zA-Z])[.)]|\((?:\d+|#|[a-zA-Z])\))( +)(\S.*)$`)
	rstGrid   = regexp.MustCompile(`^\+(?:[-=]+\+)+$`)
	rstSimple = regexp.MustCompile(`^=+(?: +=+)+$`)
)

// define notes what the page's text refers to by name.
func (r *rstReader) define(whole string) {
	for _, m := range rstSub.FindAllStringSubmatch(whole, -1) {
		if m[2] != "image" {
			r.subs[m[1]] = strings.Join(strings.Fields(m[3]), " ")
		}
	}
	for _, m := range rstURL.FindAllStringSubmatch(whole, -1) {
		r.urls[strings.ToLower(m[1]+m[2])] = m[3]
	}
	for _, m := range rstLabel.FindAllStringSubmatch(whole, -1) {
		r.titles[strings.ToLower(strings.Trim(m[1], "`"))] = strings.TrimSpace(m[3])
	}
}

// adorns is the character of a line that is under or over a title; 0 if it is none.
func adorns(line string) byte {
	if len(line) < 2 || strings.IndexByte("=-`:.'\"~^_*+#<>!$%&,/;?@\\|()[]{}", line[0]) < 0 || strings.Trim(line, line[:1]) != "" {
		return 0
	}
	return line[0]
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// below is the block that is indented from a line on: its end, and its lines without their indentation.
func below(lines []string, from int) (block []string, end int) {
	least := -1
	for end = from; end < len(lines) && (lines[end] == "" || indent(lines[end]) > 0); end++ {
		if n := indent(lines[end]); lines[end] != "" && (least < 0 || n < least) {
			least = n
		}
	}
	for _, l := range lines[from:end] {
		block = append(block, l[min(max(least, 0), len(l)):])
	}
	for len(block) > 0 && block[len(block)-1] == "" {
		block = block[:len(block)-1]
	}
	for len(block) > 0 && block[0] == "" {
		block = block[1:]
	}
	return block, end
}

// deepestBlocks is how deep blocks may lie in each other.
const deepestBlocks = 40

// blocks makes Markdown of the blocks of a page, or of what lies within one.
func (r *rstReader) blocks(file string, lines []string) (out text) {
	if r.depth++; r.depth > deepestBlocks {
		r.depth--
		return text{}
	}
	defer func() { r.depth-- }()
	for i := 0; i < len(lines); {
		line := lines[i]
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		switch {
		case line == "":
			i++
		case strings.HasPrefix(line, ".. ") || line == "..":
			i = r.explicit(file, lines, i, &out)
		case indent(line) > 0:
			block, end := below(lines, i)
			out.take(r.blocks(file, block))
			i = end
		case rstGrid.MatchString(line) || rstSimple.MatchString(line):
			i = r.table(lines, i, &out)
		case adorns(line) != 0 && next != "" && i+2 < len(lines) && adorns(lines[i+2]) == adorns(line):
			r.title(strings.TrimSpace(next), "o"+line[:1], &out)
			i += 3
		case next != "" && adorns(next) != 0 && len(next) >= min(4, utf8.RuneCountInString(line)) && adorns(line) == 0:
			r.title(line, next[:1], &out)
			i += 2
		case adorns(line) != 0 && len(line) >= 4:
			i++ // a transition
		default:
			i = r.body(file, lines, i, &out)
		}
	}
	return out
}

func (r *rstReader) title(title, style string, out *text) {
	level := slices.Index(r.styles, style)
	if level < 0 {
		level = len(r.styles)
		r.styles = append(r.styles, style)
	}
	out.write("\n" + strings.Repeat("#", min(level+1, 6)) + " " + r.inline(title) + "\n\n")
}

// body reads a list, a line block, a field, a definition or a paragraph.
func (r *rstReader) body(file string, lines []string, i int, out *text) int {
	line := lines[i]
	if m := rstBullet.FindStringSubmatch(line); m != nil {
		return r.item(file, lines, i, len(m[1])+len(m[2]), "- ", out)
	}
	if m := rstNumber.FindStringSubmatch(line); m != nil {
		return r.item(file, lines, i, len(line)-len(m[2]), "1. ", out)
	}
	if m := rstField.FindStringSubmatch(line); m != nil {
		block, end := below(lines, i+1)
		if len(out.bytes) > 0 || r.depth > 1 { // before all text it is of the document
			name := m[1]
			if kind, of, ok := strings.Cut(name, " "); ok && strings.HasPrefix(kind, "param") {
				name = "`" + of[strings.LastIndexByte(of, ' ')+1:] + "`"
			}
			out.write("- " + name + ": " + r.inline(strings.TrimSpace(m[2]+" "+strings.Join(block, " "))) + "\n")
		}
		return end
	}
	if end, ok := r.verse(file, lines, i, out); ok {
		return end
	}
	return r.paragraph(lines, i, out)
}

// verse reads lines that stay lines, a session of Python, or a term with its definition.
func (r *rstReader) verse(file string, lines []string, i int, out *text) (end int, ok bool) {
	line := lines[i]
	if strings.HasPrefix(line, "| ") {
		for ; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
			out.write(r.inline(strings.TrimSpace(lines[i][1:])) + "  \n")
		}
		out.write("\n")
		return i, true
	}
	if strings.HasPrefix(line, ">>> ") {
		for end = i; end < len(lines) && lines[end] != ""; {
			end++
		}
		fenced(out, "python", strings.Join(lines[i:end], "\n"))
		return end, true
	}
	if i+1 < len(lines) && lines[i+1] != "" && indent(lines[i+1]) > 0 { // a term with its definition
		block, end := below(lines, i+1)
		if strings.HasSuffix(line, "::") {
			out.write(r.inline(strings.TrimSuffix(line, ":")) + "\n\n")
			fenced(out, "", strings.Join(block, "\n"))
			return end, true
		}
		out.write("**" + strings.Trim(r.inline(line), "*") + "**\n\n")
		out.take(r.blocks(file, block))
		return end, true
	}
	return 0, false
}

// paragraph reads running text, and the block of code that its end may announce.
func (r *rstReader) paragraph(lines []string, i int, out *text) int {
	end := i
	for end < len(lines) && lines[end] != "" && !(end > i && (strings.HasPrefix(lines[end], ".. ") || adorns(lines[end]) != 0 && len(lines[end]) > 3)) {
		end++
	}
	paragraph := strings.Join(lines[i:end], "\n")
	literal, isLiteral := strings.CutSuffix(paragraph, "::")
	if !isLiteral {
		out.write(r.inline(paragraph) + "\n\n")
		return end
	}
	if literal = strings.TrimRight(literal, " \n"); literal != "" {
		if literal != paragraph[:len(paragraph)-2] {
			out.write(r.inline(literal) + "\n\n")
		} else {
			out.write(r.inline(literal) + ":\n\n")
		}
	}
	block, after := below(lines, end)
	if len(block) > 0 {
		fenced(out, "", strings.Join(block, "\n"))
		return after
	}
	return end
}

func fenced(out *text, lang, code string) {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	out.write(fence + lang + "\n" + strings.Trim(code, "\n") + "\n" + fence + "\n\n")
}

// item reads an item of a list.
func (r *rstReader) item(file string, lines []string, i, width int, mark string, out *text) int {
	block := []string{lines[i][width:]}
	end := i + 1
	for ; end < len(lines) && (lines[end] == "" || indent(lines[end]) >= width); end++ {
		block = append(block, lines[end][min(width, len(lines[end])):])
	}
	for block[len(block)-1] == "" {
		block = block[:len(block)-1]
	}
	of := r.blocks(file, block)
	of.bytes = bytes.TrimRight(of.bytes, "\n")
	out.write(mark)
	out.take(of.indented(strings.Repeat(" ", len(mark))))
	out.write("\n")
	if end >= len(lines) || lines[end-1] == "" && rstBullet.FindString(lines[end]) == "" && rstNumber.FindString(lines[end]) == "" {
		out.write("\n")
	}
	return end
}

// explicit reads a directive, a target, a footnote or a comment.
func (r *rstReader) explicit(file string, lines []string, i int, out *text) int {
	block, end := below(lines, i+1)
	line := lines[i]
	switch m := rstDirect.FindStringSubmatch(line); {
	case m != nil:
		r.directive(file, m[1], m[2], block, out)
	case strings.HasPrefix(line, ".. ["):
		if label, note, ok := strings.Cut(line[4:], "]"); ok {
			out.write("[" + strings.Trim(label, "#*") + "] " + r.inline(strings.TrimSpace(note+" "+strings.Join(block, " "))) + "\n\n")
		}
	}
	return end
}

var (
	rstCode  = " code-block code sourcecode parsed-literal prompt doctest testcode testoutput ipython ipython3 console highlight-block code-tab graphviz mermaid productionlist "
	rstGone  = " toctree contents index meta sectionauthor moduleauthor codeauthor raw currentmodule module highlight tabularcolumns role default-role default-domain default-intersphinx sectnum header footer title class rst-class replace unicode cssclass acks centered plot jupyter-execute "
	rstNotes = map[string]string{"note": "Note", "warning": "Warning", "tip": "Tip", "hint": "Hint", "important": "Important", "caution": "Caution",
		"danger": "Danger", "error": "Error", "attention": "Attention", "seealso": "See also", "todo": ""}
	rstVersions = map[string]string{"versionadded": "New in version ", "versionchanged": "Changed in version ", "deprecated": "Deprecated since version ",
		"versionremoved": "Removed in version "}
	rstTitled = " admonition topic sidebar rubric tab tab-item group-tab dropdown card grid-item-card details collapse "
	rstObject = regexp.MustCompile(`^(?:\w+:)?(?:function|class|method|classmethod|staticmethod|attribute|property|data|exception|decorator|decoratormethod|module|option|cmdoption|envvar|confval|describe|object|macro|type|member|var|struct|enum|enumerator|directive|setting|program|console_command|http.*|get|post|put|delete|patch)$`)
)

// directive shows what a directive does of its argument and its content.
func (r *rstReader) directive(file, name, argument string, block []string, out *text) {
	opts := map[string]string{}
	for len(block) > 0 {
		m := rstOption.FindStringSubmatch(block[0])
		if m == nil || strings.HasPrefix(m[1], "param") {
			break
		}
		opts[m[1]], block = m[2], block[1:]
	}
	is := func(list string) bool { return strings.Contains(list, " "+name+" ") }
	content := strings.Trim(strings.Join(block, "\n"), "\n")
	title, isNote := rstNotes[name]
	switch {
	case name == "program", is(rstGone):
	case isNote && title != "":
		out.write("**" + title + ":** ")
		if argument != "" {
			block = append([]string{argument}, block...)
		}
		out.take(r.blocks(file, block))
	case rstVersions[name] != "":
		version, rest, _ := strings.Cut(argument, " ")
		out.write("*" + rstVersions[name] + version + ".* " + r.inline(rest) + "\n\n")
		out.take(r.blocks(file, block))
	case is(rstCode):
		lang := argument
		if name == "code-tab" {
			lang, title, _ = strings.Cut(argument, " ")
			out.write("**" + strings.TrimSpace(title+"") + "**\n\n")
		}
		fenced(out, lang, content)
	case name == "include", name == "literalinclude", name == "mdinclude":
		r.included(file, name, argument, opts, out)
	case name == "image", name == "figure":
		out.write("![" + opts["alt"] + "](" + argument + ")\n\n")
		out.take(r.blocks(file, block))
	case name == "math":
		fenced(out, "math", strings.TrimSpace(argument+"\n"+content))
	case name == "list-table", name == "csv-table":
		r.listed(file, name, argument, opts, block, out)
	case name == "only" && !strings.Contains(argument, "html"):
	case strings.HasPrefix(name, "auto") || strings.HasPrefix(name, "doxygen"):
		r.lose(".. " + name + ":: " + argument)
	case is(rstTitled):
		if argument != "" {
			out.write("**" + r.inline(argument) + "**\n\n")
		}
		out.take(r.blocks(file, block))
	case rstObject.MatchString(name):
		for _, signature := range strings.Split(argument, "\n") {
			out.write("**`" + strings.ReplaceAll(signature, "`", "") + "`**\n\n")
		}
		out.take(r.blocks(file, block))
	default:
		out.take(r.blocks(file, block))
	}
}

// included takes in another file.
func (r *rstReader) included(file, name, argument string, opts map[string]string, out *text) {
	names := []string{path.Join(path.Dir(file), argument)}
	if strings.HasPrefix(argument, "/") {
		names = []string{path.Join(r.Root, argument)}
	}
	found, raw := r.find(names...)
	if found == "" {
		r.lose(".. " + name + ":: " + argument)
		return
	}
	if start := opts["start-after"]; start != "" {
		_, raw, _ = bytes.Cut(raw, []byte(start))
	}
	if end := opts["end-before"]; end != "" {
		raw, _, _ = bytes.Cut(raw, []byte(end))
	}
	from, to := number(opts["start-line"])+1, number(opts["end-line"])
	if ranges := opts["lines"]; ranges != "" {
		first, last, ranged := strings.Cut(strings.SplitN(ranges, ",", 2)[0], "-")
		if from, to = number(first), number(last); !ranged {
			to = from
		}
	}
	raw = lines(raw, from, to)
	_, isCode := opts["code"]
	_, isLiteral := opts["literal"]
	if name == "literalinclude" || isCode || isLiteral {
		made, _ := r.code(found, raw, true)
		out.take(made)
		out.write("\n\n")
		return
	}
	if path.Ext(found) == ".md" {
		made, ok := r.include(found, raw, nil, "")
		if !ok {
			r.lose(argument)
		}
		out.take(made)
		return
	}
	if !r.admits(raw) {
		r.lose(".. " + name + ":: " + argument)
		return
	}
	r.stack = append(r.stack, found)
	r.define(string(raw))
	made := r.blocks(found, split(string(raw)))
	r.stack = r.stack[:len(r.stack)-1]
	out.take(text{made.bytes, append([]Part{{End: int64(len(made.bytes)), File: found}}, made.parts...)})
}

// listed makes a table of a list of lists, or of comma-separated values.
func (r *rstReader) listed(file, name, title string, opts map[string]string, block []string, out *text) {
	var rows [][]string
	if name == "csv-table" {
		if of := opts["header"]; of != "" {
			block = append([]string{of}, block...)
			opts["header-rows"] = "1"
		}
		for _, line := range block {
			var row []string
			for _, cell := range csvCell.FindAllStringSubmatch(line, -1) {
				row = append(row, strings.ReplaceAll(cell[1], `""`, `"`)+strings.TrimSpace(cell[2]))
			}
			if line != "" {
				rows = append(rows, row)
			}
		}
	} else {
		var row, cell []string
		flush := func() {
			if cell != nil {
				row = append(row, strings.Join(cell, " "))
			}
			cell = nil
		}
		for _, line := range append(block, "* - ") {
			rest := line
			if of, ok := strings.CutPrefix(line, "*"); ok {
				flush()
				if row != nil {
					rows = append(rows, row)
				}
				row, rest = nil, strings.TrimPrefix(of, " ")
				if rest = strings.TrimLeft(rest, " "); rest == "-" {
					rest = "- "
				}
			}
			trimmed := strings.TrimLeft(rest, " ")
			if of, ok := strings.CutPrefix(trimmed, "-"); ok && len(rest)-len(trimmed) <= 3 && (of == "" || of[0] == ' ') {
				flush()
				cell = []string{strings.TrimSpace(of)}
			} else if trimmed != "" {
				cell = append(cell, trimmed)
			}
		}
	}
	if title != "" {
		out.write("**" + r.inline(title) + "**\n\n")
	}
	r.tabled(rows, number(opts["header-rows"]) > 0, out)
}

var csvCell = regexp.MustCompile(`(?:^|,)\s*(?:"((?:[^"]|"")*)"|([^,"]*))`)

// tabled writes a table of Markdown.
func (r *rstReader) tabled(rows [][]string, headed bool, out *text) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row))
	}
	if width == 0 || width > 200 {
		return
	}
	if !headed {
		rows = append([][]string{make([]string, width)}, rows...)
	}
	for n, row := range rows {
		out.write("|")
		for i := range width {
			cell := ""
			if i < len(row) {
				cell = strings.ReplaceAll(r.inline(strings.Join(strings.Fields(row[i]), " ")), "|", `\|`)
			}
			out.write(" " + cell + " |")
		}
		out.write("\n")
		if n == 0 {
			out.write("|" + strings.Repeat(" --- |", width) + "\n")
		}
	}
	out.write("\n")
}

// columnsOf are the places at which the columns of a drawn table begin.
func columnsOf(border string) (at []int) {
	grid := border[0] == '+'
	for n := range border {
		if grid && border[n] == '+' || !grid && border[n] == '=' && (n == 0 || border[n-1] == ' ') {
			at = append(at, n)
		}
	}
	return at
}

// cellsOf are the parts of a line of a drawn table.
func cellsOf(line string, at []int, grid bool) (cells []string) {
	runes := []rune(line)
	for n, from := range at {
		to := len(runes)
		if n+1 < len(at) {
			to = min(at[n+1], len(runes))
		} else if grid {
			break
		}
		cell := ""
		if from < to {
			cell = strings.TrimSpace(strings.Trim(string(runes[from:to]), "|"))
		}
		cells = append(cells, cell)
	}
	return cells
}

// addLine adds a line of a table: a row, or more of the cells of the last one.
func addLine(rows [][]string, cells []string, fresh bool) [][]string {
	if fresh || len(rows) == 0 {
		return append(rows, cells)
	}
	row := rows[len(rows)-1]
	for n := range min(len(row), len(cells)) {
		row[n] = strings.TrimSpace(row[n] + " " + cells[n])
	}
	return rows
}

// table reads a table that is drawn.
func (r *rstReader) table(lines []string, i int, out *text) int {
	border := lines[i]
	grid := border[0] == '+'
	at := columnsOf(border)
	var rows [][]string
	headed, borders := false, 0
	fresh := true // the next line begins a row
	end := i
	for ; end < len(lines); end++ {
		line := lines[end]
		if line == "" && (grid || borders >= 2 && !slices.ContainsFunc(lines[end:], rstSimple.MatchString)) {
			break
		}
		if strings.HasPrefix(line, "+") && grid || !grid && rstSimple.MatchString(line) {
			borders++
			headed = headed || len(rows) > 0 && (grid && strings.Contains(line, "=") || !grid && borders == 2)
			fresh = true
			if !grid && borders == 3 {
				end++
				break
			}
			continue
		}
		if line == "" || !grid && adorns(strings.ReplaceAll(line, " ", "")) == '-' {
			continue
		}
		cells := cellsOf(line, at, grid)
		rows = addLine(rows, cells, fresh || !grid && (len(cells) == 0 || cells[0] != ""))
		fresh = false
	}
	if !grid && borders == 2 {
		headed = false
	}
	r.tabled(rows, headed, out)
	return max(end, i+1)
}

var rstInline = regexp.MustCompile("``((?s:.+?))``|(?::([\\w:.+-]+):)?`([^`]+)`(?::([\\w:.+-]+):)?(__?)?|\\|([^|\\s](?:[^|\n]*[^|\\s])?)\\|_{0,2}|\\[(?:#[\\w-]*|\\*|\\d+|[A-Z][\\w-]*)\\]_|\\b([A-Za-z][\\w.-]*[A-Za-z0-9])_(?:\\b|$)|\\\\(.)|<")

// inline makes Markdown of running text.
func (r *rstReader) inline(s string) string {
	depth := 0
	var read func(s string) string
	read = func(s string) string {
		return rstInline.ReplaceAllStringFunc(s, func(all string) string {
			m := rstInline.FindStringSubmatch(all)
			switch {
			case m[1] != "":
				return code(m[1])
			case m[3] != "":
				return r.interpreted(strings.Trim(m[2]+m[4], ":"), strings.Join(strings.Fields(m[3]), " "), m[5] != "")
			case m[6] != "":
				if of, ok := r.subs[m[6]]; ok && depth < 5 && r.gives(len(of)) {
					depth++
					defer func() { depth-- }()
					return read(of)
				}
				r.lose("|" + m[6] + "|")
				return ""
			case m[7] != "":
				if to := r.named(r.urls, m[7]); to != "" {
					return "[" + m[7] + "](" + to + ")"
				}
				return all
			case m[8] != "":
				if m[8] == " " {
					return ""
				}
				return `\` + m[8]
			case all == "<":
				return `\<`
			}
			return "" // a reference to a note
		})
	}
	return read(s)
}

// named is what a name stands for; empty if that is not known, or makes too much of the page.
func (r *rstReader) named(of map[string]string, name string) string {
	s := of[strings.ToLower(name)]
	if !r.gives(len(s)) {
		r.lose(name)
		return ""
	}
	return s
}

func code(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

var rstTarget = regexp.MustCompile(`^(.*?)\s*<([^<>]+)>$`)

// interpreted shows text with a role, or a reference.
func (r *rstReader) interpreted(role, s string, reference bool) string {
	shown, target := s, s
	titled := rstTarget.FindStringSubmatch(s)
	if titled != nil {
		shown, target = titled[1], titled[2]
	}
	short := role[strings.LastIndexByte(role, ':')+1:]
	switch {
	case role == "" && reference:
		if titled == nil {
			target = r.named(r.urls, s)
		} else if to := r.named(r.urls, strings.TrimSuffix(target, "_")); to != "" {
			target = to
		}
		if target == "" {
			return shown
		}
		if shown == "" {
			shown = target
		}
		return "[" + shown + "](" + target + ")"
	case role == "":
		return code(s) // as the default role is as a rule
	case short == "doc":
		if titled == nil {
			shown = words(path.Base(target))
		}
		return "[" + shown + "](" + target + ".rst)"
	case short == "ref" || short == "numref" || short == "any":
		if titled == nil {
			if shown = r.named(r.titles, target); shown == "" {
				shown = words(target)
			}
		}
		return shown
	case short == "math", short == "sub", short == "sup", short == "emphasis", short == "strong", short == "term", short == "guilabel",
		short == "menuselection", short == "dfn", short == "title", short == "download", short == "superscript", short == "subscript",
		short == "index", short == "pep", short == "rfc", short == "abbr":
		if short == "pep" || short == "rfc" {
			return strings.ToUpper(short) + " " + shown
		}
		return strings.ReplaceAll(shown, "<", `\<`)
	}
	if rest, ok := strings.CutPrefix(shown, "~"); ok {
		shown = rest[strings.LastIndexByte(rest, '.')+1:]
	}
	return code(strings.TrimPrefix(shown, "!"))
}

func words(label string) string { return strings.NewReplacer("-", " ", "_", " ").Replace(label) }

var (
	mystLabel  = regexp.MustCompile(`(?m)^\([^()\s]+\)=[ \t]*\n`)
	mystFence  = regexp.MustCompile("(?m)^([ \t]*)(`{3,}|:{3,})\\{([\\w:-]+)\\}[ \t]*(.*)\n((?s:.*?))^[ \t]*(`{3,}|:{3,})[ \t]*$")
	mystRole   = regexp.MustCompile("\\{([\\w:.-]+)\\}`([^`\n]+)`")
	mystOption = regexp.MustCompile(`(?m)\A(?:---\n(?s:.*?)\n---\n|(?::[\w-]+:.*\n)+)`)
)

// myst replaces the directives and roles of MyST in Markdown.
func (x *expander) myst(file string, of text) text {
	r := &rstReader{expander: x, subs: map[string]string{}, urls: map[string]string{}, titles: map[string]string{}}
	var edits []edit
	for _, at := range mystFence.FindAllSubmatchIndex(of.bytes, -1) {
		get := func(n int) string { return string(of.bytes[at[2*n]:at[2*n+1]]) }
		name, argument, content := get(3), get(4), mystOption.ReplaceAllString(get(5), "")
		var made text
		title, isNote := rstNotes[name]
		switch {
		case strings.Contains(rstGone, " "+name+" ") || strings.HasPrefix(name, "eval-rst"):
			if name == "eval-rst" {
				made = r.blocks(file, split(content))
			}
		case strings.Contains(rstCode, " "+name+" ") || name == "code-cell":
			fenced(&made, strings.TrimSpace(argument), content)
		case name == "include", name == "literalinclude", name == "math", name == "image", name == "figure", name == "list-table", name == "csv-table":
			r.directive(file, name, argument, split(get(5)), &made)
		case isNote && title != "":
			made = plain("**" + title + ":** " + argument + "\n\n" + content + "\n")
		case argument != "":
			made = plain("**" + argument + "**\n\n" + content + "\n")
		default:
			made = plain(content)
		}
		edits = append(edits, edit{at[0], at[1], made})
	}
	for _, at := range mystLabel.FindAllIndex(of.bytes, -1) {
		edits = append(edits, edit{at[0], at[1], text{}})
	}
	for _, at := range mystRole.FindAllSubmatchIndex(of.bytes, -1) {
		made := r.interpreted(string(of.bytes[at[2]:at[3]]), string(of.bytes[at[4]:at[5]]), false)
		edits = append(edits, edit{at[0], at[1], plain(made)})
	}
	if len(edits) == 0 {
		return of
	}
	return of.replace(edits)
}
