package expand

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"strings"

	"docent/site/markup"
)

// reStructuredText as Markdown: what directives, roles and tables show. Nothing is run: what autodoc would write is left out
// and counted.

// rst makes Markdown of reStructuredText.
func (x *expander) rst(file string, content []byte) text {
	return x.ofRST(file, x.Prolog+"\n\n"+string(content)+"\n\n"+x.Epilog)
}

func (x *expander) ofRST(file, src string) text {
	r := &plainReader{expander: x, file: file, subs: map[string]string{}, urls: map[string]string{}, titles: map[string]string{}}
	for key, v := range x.Values {
		if s, ok := v.(string); ok {
			r.subs[key] = s
		}
	}
	r.read("x.rst", r.gather(file, split(src)))
	return r.out
}

func split(s string) []string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "        ")
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// define notes what the page's text refers to by name.
func (r *plainReader) define() {
	for i := range r.page.Nodes {
		switch n := &r.page.Nodes[i]; n.Kind {
		case markup.NodeSubstitution:
			r.subs[n.Mark] = strings.Join(strings.Fields(r.source(n.Text)), " ")
		case markup.NodeDirective:
			if name, ok := strings.CutPrefix(strings.TrimSpace(r.lines[n.First]), ".. |"); ok { // an image
				name, _, _ = strings.Cut(name, "|")
				r.subs[name] = directiveOptions(r.lines, n)["alt"]
			}
		}
	}
	titled(r.page, r.titles)
	for _, l := range r.page.Refs {
		if l.Kind == markup.ReferenceDefinition && l.Dest != "" {
			r.urls[markup.RefName(l.Label)] = l.Dest
		}
	}
}

// titled gives the labels of a page of reStructuredText the titles that they stand at.
func titled(p *markup.Page, titles map[string]string) {
	h := 0
	for _, l := range p.Refs {
		for h < len(p.Headings) && p.Headings[h].Inner.Start <= l.Span.Start {
			h++
		}
		if l.Kind == markup.ReferenceDefinition && l.Dest == "" && h < len(p.Headings) && p.Headings[h].Span.Start <= l.Span.Start {
			titles[markup.RefName(l.Label)] = p.Headings[h].Text
		}
	}
}

var (
	label     = regexp.MustCompile("(?m)^[ \t]*\\.\\. _(?:`([^`\n]+)`|([^:`\n]+)):[ \t]*$|^\\(([^()\\s]+)\\)=[ \t]*$")
	mystTitle = regexp.MustCompile(`(?m)^\(([^()\s]+)\)=[ \t]*\n+#{1,6}[ \t]+(.*?)[ \t]*$`)
)

// Labels are the names by which other pages of Sphinx refer to places of this one.
func Labels(content []byte) (out []string) {
	for _, m := range label.FindAllSubmatch(content, -1) {
		out = append(out, markup.RefName(string(bytes.Join(m[1:], nil))))
	}
	return out
}

// titleAt is the title of another page, or of a place of it that has a label; empty if it has none.
func (r *plainReader) titleAt(name string, files ...string) string {
	file, raw := r.find(files...)
	if file == "" {
		return ""
	}
	p := markup.Parse(file, raw)
	if name == "" && len(p.Headings) > 0 {
		return r.plain(p.Headings[0].Text)
	}
	titles := map[string]string{}
	titled(p, titles)
	mystTitles(raw, titles)
	return r.plain(titles[name])
}

// mystTitles gives the labels of a page of MyST the titles that they stand at.
func mystTitles(content []byte, titles map[string]string) {
	for _, m := range mystTitle.FindAllSubmatch(content, -1) {
		titles[markup.RefName(string(m[1]))] = string(m[2])
	}
}

// plain is a text of another file, if not too much was made of the page.
func (r *plainReader) plain(s string) string {
	if !r.gives(len(s)) {
		return ""
	}
	return s
}

// titleOf is the title of the document that a reference names, which has no suffix.
func (r *plainReader) titleOf(target string) string {
	at := path.Join(path.Dir(r.file), target)
	if strings.HasPrefix(target, "/") {
		at = path.Join(r.Root, target[1:])
	}
	return r.titleAt("", at+".rst", at+".md", at)
}

// titleOfLabel is the title of a place by its label, on this page or on another one.
func (r *plainReader) titleOfLabel(name string) string {
	if s := r.named(r.titles, name); s != "" || r.labeled == nil {
		return s
	}
	if file := r.labeled(markup.RefName(name)); file != "" {
		return r.titleAt(markup.RefName(name), file)
	}
	return ""
}

// gather are the lines of a file, with those of the files that it takes in where it names them.
func (r *plainReader) gather(file string, lines []string) (out []string) {
	src, at := strings.Join(lines, "\n"), 0
	if !strings.Contains(src, "include::") {
		return lines
	}
	p := markup.Parse("x.rst", []byte(src))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind != markup.NodeDirective || n.First < at || n.Mark != "include" && n.Mark != "literalinclude" && n.Mark != "mdinclude" {
			continue
		}
		out = append(out, lines[at:n.First]...)
		in := strings.Repeat(" ", n.Col)
		for _, l := range r.included(file, n.Mark, src[n.Text.Start:n.Text.End], directiveOptions(lines, n)) {
			if l != "" && r.gives(len(in)) {
				l = in + l
			}
			out = append(out, l)
		}
		out = append(out, "")
		at = n.End
	}
	return append(out, lines[at:]...)
}

var rstOption = regexp.MustCompile(`^\s*:([\w-]+):(?:\s+(.*))?$`)

// directiveOptions are those of a directive.
func directiveOptions(lines []string, n *markup.Node) map[string]string {
	out := map[string]string{}
	for _, line := range lines[n.Options[0]:n.Options[1]] {
		if m := rstOption.FindStringSubmatch(line); m != nil {
			out[m[1]] = m[2]
		}
	}
	return out
}

// included are the lines of a file that is taken in.
func (r *plainReader) included(file, name, argument string, opts map[string]string) (out []string) {
	names := []string{path.Join(path.Dir(file), argument)}
	if strings.HasPrefix(argument, "/") {
		names = []string{path.Join(r.Root, argument)}
	}
	found, raw := r.find(names...)
	if start := opts["start-after"]; start != "" {
		_, raw, _ = bytes.Cut(raw, []byte(start))
	}
	if end := opts["end-before"]; end != "" {
		raw, _, _ = bytes.Cut(raw, []byte(end))
	}
	if name := opts["pyobject"]; name != "" {
		raw = pythonObject(raw, name)
	}
	from, to := number(opts["start-line"])+1, number(opts["end-line"])
	if ranges := opts["lines"]; ranges != "" {
		first, last, ranged := strings.Cut(strings.SplitN(ranges, ",", 2)[0], "-")
		if from, to = number(first), number(last); !ranged {
			to = from
		}
	}
	raw = lines(raw, from, to)
	if found == "" || !r.admits(raw) {
		r.lose(".. " + name + ":: " + argument)
		return nil
	}
	_, isCode := opts["code"]
	_, isLiteral := opts["literal"]
	as := ""
	switch {
	case name == "literalinclude", isCode, isLiteral:
		as, raw = "code-block:: "+strings.TrimPrefix(path.Ext(found), "."), []byte(markup.Dedent(string(raw)))
		if of := opts["caption"]; of != "" {
			as += "\n   :caption: " + of
		}
	case path.Ext(found) == ".md":
		made, ok := r.include(found, raw, nil, "")
		if as, raw = "raw:: markdown", made; !ok {
			r.lose(argument)
		}
	default:
		r.stack = append(r.stack, found)
		defer func() { r.stack = r.stack[:len(r.stack)-1] }()
		return r.gather(found, split(string(raw)))
	}
	out = append(append(out, strings.Split(".. "+as, "\n")...), "")
	for _, line := range split(strings.Trim(string(raw), "\n")) {
		if line != "" {
			line = "   " + line
		}
		out = append(out, line)
	}
	return out
}

// pythonObject is the part of a program in Python that defines an object; all of it if there is none of this name.
func pythonObject(src []byte, name string) []byte {
	of := src
	for part := range strings.SplitSeq(name, ".") {
		at := regexp.MustCompile(`(?m)^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+` + regexp.QuoteMeta(part) + `\b`).FindSubmatchIndex(of)
		if at == nil {
			return src
		}
		of = of[at[0]:]
		indented := at[3] - at[2]
		end := nextLine(of, 0)
		for end < len(of) {
			line := of[end:nextLine(of, end)]
			if text := bytes.TrimLeft(line, " \t"); len(bytes.TrimSpace(line)) > 0 && len(line)-len(text) <= indented {
				break
			}
			end = nextLine(of, end)
		}
		of = bytes.TrimRight(of[:end], "\n")
	}
	return of
}

// nextLine is where the line behind a place begins.
func nextLine(src []byte, at int) int {
	if n := bytes.IndexByte(src[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(src)
}

// rstText writes a paragraph, or what a marker makes of one.
func (r *plainReader) rstText(n *markup.Node) {
	s, mark := r.inline(r.source(n.Text)), strings.TrimSpace(n.Mark)
	if n.Term && s != "" {
		s = "**" + strings.Trim(s, "*") + "**"
	}
	switch {
	case strings.HasPrefix(mark, ".. ["):
		label, _, _ := strings.Cut(mark[4:], "]")
		r.write(n, "["+strings.Trim(label, "#*")+"] "+s)
	case mark == "":
		r.write(n, strings.TrimSuffix(s, " :"))
	case mark[0] == '|':
		r.close(n)
		r.put(n, r.indentation(), "", s+"  ", '|')
	case mark[0] == ':':
		name := mark[1 : len(mark)-1]
		if kind, of, ok := strings.Cut(name, " "); ok && strings.HasPrefix(kind, "param") {
			name = "`" + of[strings.LastIndexByte(of, ' ')+1:] + "`"
		}
		r.item(n, "- ", name+": "+s)
	case len(mark) > 1 && (mark[0] == '-' && mark[1] != ' ' || mark[0] == '/'):
		r.write(n, code(mark)+" "+s)
	case strings.IndexByte("-*+", mark[0]) >= 0 || mark[0] >= 0x80:
		r.item(n, "- ", s)
	default:
		r.item(n, "1. ", s)
	}
}

// item writes an item of a list; what lies within it follows.
func (r *plainReader) item(n *markup.Node, mark, s string) {
	r.close(n)
	in := r.indentation()
	r.put(n, in, mark, s, '-')
	r.items = append(r.items, openItem{n.Content, in + strings.Repeat(" ", len(mark))})
}

var (
	rstGone = words(`toctree contents index meta sectionauthor moduleauthor codeauthor currentmodule module highlight tabularcolumns role default-role
		default-domain default-intersphinx sectnum header footer title class rst-class cssclass acks plot jupyter-execute program testsetup testcleanup`)
	rstNotes = map[string]string{"note": "Note", "warning": "Warning", "tip": "Tip", "hint": "Hint", "important": "Important", "caution": "Caution",
		"danger": "Danger", "error": "Error", "attention": "Attention", "seealso": "See also"}
	rstVersions = map[string]string{"versionadded": "New in version ", "versionchanged": "Changed in version ", "deprecated": "Deprecated since version ",
		"versionremoved": "Removed in version "}
	rstTitled = words("admonition topic sidebar rubric centered tab tab-item group-tab dropdown card grid-item-card details collapse table")
	rstObject = regexp.MustCompile(`^(?:\w+:)?(?:function|class|method|classmethod|staticmethod|attribute|property|data|exception|decorator|decoratormethod|module|option|cmdoption|envvar|confval|describe|object|macro|type|member|var|struct|enum|enumerator|directive|setting|console_command|http.*|get|post|put|delete|patch)$`)
)

// directive shows what a directive does of its argument; what it holds follows.
func (r *plainReader) directive(n *markup.Node) {
	name, argument := n.Mark, r.source(n.Text)
	opts := directiveOptions(r.lines, n)
	content := func() []string {
		lines := r.lines[max(n.Options[1], n.First+1):n.End]
		r.skip = n.End
		return strings.Split(strings.Trim(markup.Dedent(strings.Join(lines, "\n")), "\n"), "\n")
	}
	switch {
	case strings.HasPrefix(strings.TrimSpace(r.lines[n.First]), ".. |"):
		r.skip = n.End
	case name == "raw" && argument == "markdown":
		r.write(n, strings.Join(content(), "\n"))
	case name == "raw", rstGone[name], name == "only" && !strings.Contains(argument, "html"):
		r.skip = n.End
	case rstNotes[name] != "":
		r.note(n, rstNotes[name])
		if argument != "" {
			r.write(n, r.inline(argument))
		}
	case rstVersions[name] != "":
		version, rest, _ := strings.Cut(argument, " ")
		r.write(n, strings.TrimSpace("*"+rstVersions[name]+version+".* "+r.inline(rest)))
	case name == "code-tab":
		_, title, _ := strings.Cut(argument, " ")
		r.write(n, "**"+strings.TrimSpace(title)+"**")
	case name == "image", name == "figure":
		r.write(n, "!["+opts["alt"]+"]("+argument+")")
	case name == "math":
		r.write(n, fence("math", strings.TrimSpace(argument+"\n"+strings.Join(content(), "\n"))))
	case name == "list-table", name == "csv-table":
		r.listed(n, name, r.inline(argument), opts, content())
	case strings.HasPrefix(name, "auto") || strings.HasPrefix(name, "doxygen"):
		r.lose(".. " + name + ":: " + argument)
	case opts["caption"] != "" && markup.IsCodeDirective(name):
		r.write(n, "**"+r.inline(opts["caption"])+"**")
	case rstTitled[name] && argument != "":
		r.write(n, "**"+r.inline(argument)+"**")
	case rstObject.MatchString(name):
		for _, signature := range strings.Split(argument, "\n") {
			r.write(n, "**`"+strings.ReplaceAll(signature, "`", "")+"`**")
		}
	}
}

// listed makes a table of a list of lists, or of comma-separated values.
func (r *plainReader) listed(n *markup.Node, name, title string, opts map[string]string, block []string) {
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
		r.write(n, "**"+title+"**")
	}
	r.tabled(n, rows, number(opts["header-rows"]) > 0)
}

var csvCell = regexp.MustCompile(`(?:^|,)\s*(?:"((?:[^"]|"")*)"|([^,"]*))`)

// drawn reads a table that is drawn.
func (r *plainReader) drawn(n *markup.Node) {
	var lines []string
	for _, l := range r.lines[n.First:n.End] {
		lines = append(lines, l[min(n.Col, len(l)):])
	}
	border := lines[0]
	grid := border[0] == '+'
	at := columnsOf(border)
	var rows [][]string
	headed, borders := false, 0
	fresh := true // the next line begins a row
	for _, line := range lines {
		if strings.HasPrefix(line, "+") && grid || !grid && rstSimple.MatchString(line) {
			borders++
			headed = headed || len(rows) > 0 && (grid && strings.Contains(line, "=") || !grid && borders == 2)
			fresh = true
			continue
		}
		if line == "" || !grid && strings.Trim(line, "- ") == "" {
			continue
		}
		cells := cellsOf(line, at, grid)
		rows = addLine(rows, cells, fresh || !grid && (len(cells) == 0 || cells[0] != ""))
		fresh = false
	}
	if !grid && borders == 2 {
		headed = false
	}
	r.tabled(n, rows, headed)
}

var rstSimple = regexp.MustCompile(`^=+(?: +=+)*$`)

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

// rstInline is what a form within running text shows.
func (r *plainReader) rstInline(f markup.Inline, all, inner string) string {
	switch f.Kind {
	case markup.InlineCode:
		return code(inner)
	case markup.InlineRole:
		role := f.Name
		if role == "_" || role == "default" {
			role = ""
		}
		return r.interpreted(role, strings.Join(strings.Fields(inner), " "), f.Name == "_")
	case markup.InlineValue:
		if of, ok := r.subs[inner]; ok && r.depth < 5 && r.gives(len(of)) {
			r.depth++
			defer func() { r.depth-- }()
			return r.inline(of)
		}
		r.lose("|" + inner + "|")
		return ""
	case markup.InlineNote:
		return ""
	case markup.InlineTarget:
		return inner
	case markup.InlineEscape:
		if c := all[1:]; strings.TrimSpace(c) == "" {
			return ""
		}
	}
	return all
}

// named is what a name stands for; empty if that is not known, or makes too much of the page.
func (r *plainReader) named(of map[string]string, name string) string {
	s := of[markup.RefName(name)]
	if !r.gives(len(s)) {
		r.lose(name)
		return ""
	}
	return s
}

var rstTarget = regexp.MustCompile(`^(.*?)\s*<([^<>]+)>$`)

// interpreted shows text with a role, or a reference.
func (r *plainReader) interpreted(role, s string, reference bool) string {
	shown, target := s, s
	titled := rstTarget.FindStringSubmatch(s)
	if titled != nil {
		shown, target = titled[1], titled[2]
	}
	short := role[strings.LastIndexByte(role, ':')+1:]
	of, isLink := r.Roles[role]
	switch {
	case isLink:
		to := strings.ReplaceAll(of[0], "%s", target)
		if titled == nil {
			shown = cmp.Or(strings.ReplaceAll(of[1], "%s", target), to)
		}
		if !r.gives(len(to) + len(shown)) {
			return ""
		}
		return "[" + shown + "](" + to + ")"
	case role == "" && reference:
		if titled == nil {
			target = r.named(r.urls, s)
		} else if to := r.named(r.urls, strings.TrimSuffix(target, "_")); to != "" {
			target = to
		}
		if target == "" {
			return shown
		}
		shown = cmp.Or(shown, target)
		return "[" + shown + "](" + target + ")"
	case role == "":
		return code(s) // as the default role is as a rule
	case short == "doc":
		if titled == nil {
			shown = cmp.Or(r.titleOf(target), worded(path.Base(target)))
		}
		return "[" + shown + "](" + target + ".rst)"
	case short == "ref" || short == "numref" || short == "any":
		if titled == nil {
			shown = cmp.Or(r.titleOfLabel(target), worded(target))
		}
		return shown
	case short == "abbr":
		shown, _, _ = strings.Cut(shown, " (")
		return shown
	case short == "math", short == "sub", short == "sup", short == "emphasis", short == "strong", short == "term", short == "guilabel",
		short == "menuselection", short == "dfn", short == "title", short == "download", short == "superscript", short == "subscript",
		short == "index", short == "pep", short == "rfc":
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

var (
	mystComment = regexp.MustCompile(`(?m)^(?:%|\+\+\+).*\n?`)
	mystLabel   = regexp.MustCompile(`(?m)^\([^()\s]+\)=[ \t]*\n`)
	mystFence   = regexp.MustCompile("(?m)^([ \t]*)(`{3,}|:{3,})\\{([\\w:-]+)\\}[ \t]*(.*)\n((?s:.*?))^[ \t]*(`{3,}|:{3,})[ \t]*$")
	mystRole    = regexp.MustCompile("\\{([\\w:.-]+)\\}`([^`\n]+)`")
	mystCaption = regexp.MustCompile(`(?m)^:caption:[ \t]*(.*?)[ \t]*$`)
	mystLink    = regexp.MustCompile(`\[\]\(([^()\s]+)\)`)
	mystOption  = regexp.MustCompile(`(?m)\A(?:---\n(?s:.*?)\n---\n|(?::[\w-]+:.*\n)+)`)
)

// untitled gives links of MyST without a text the titles of what they lead to.
func (r *plainReader) untitled(of text) (edits []edit) {
	for _, at := range mystLink.FindAllSubmatchIndex(of, -1) {
		to, title := string(of[at[2]:at[3]]), ""
		if name, isLabel := strings.CutPrefix(to, "#"); isLabel {
			title = r.titleOfLabel(name)
		} else if !strings.Contains(to, ":") {
			name, _, _ = strings.Cut(to, "#")
			title = r.titleOf(name)
		}
		edits = append(edits, edit{at[0] + 1, at[0] + 1, text(title)})
	}
	return edits
}

// myst replaces the directives and roles of MyST in Markdown.
func (x *expander) myst(file string, of text) text {
	r := &plainReader{expander: x, file: file, titles: map[string]string{}}
	mystTitles(of, r.titles)
	var edits []edit
	for _, at := range mystFence.FindAllSubmatchIndex(of, -1) {
		get := func(n int) string { return string(of[at[2*n]:at[2*n+1]]) }
		name, argument, content := get(3), get(4), mystOption.ReplaceAllString(get(5), "")
		var made text
		title, isNote := rstNotes[name]
		switch {
		case rstGone[name]:
		case name == "eval-rst":
			made = x.ofRST(file, content)
		case name == "include" && strings.EqualFold(path.Ext(argument), ".md") && content == get(5) && !strings.HasPrefix(argument, "/"):
			ok := false
			if found, raw := x.find(path.Join(path.Dir(file), strings.TrimSpace(argument))); found != "" {
				made, ok = x.include(found, raw, nil, "")
			}
			if !ok {
				made = nil
				x.lose(argument)
			}
		case name == "include", name == "literalinclude", name == "math", name == "image", name == "figure", name == "list-table", name == "csv-table":
			made = x.ofRST(file, ".. "+name+":: "+argument+"\n"+string(text("   "+get(5)).indented("   ")))
		case markup.IsCodeDirective(name) || name == "code-cell":
			if m := mystCaption.FindStringSubmatch(get(5)); m != nil {
				made = text("**" + m[1] + "**\n\n")
			}
			made.write(fence(strings.TrimSpace(argument), content) + "\n\n")
		case isNote && title != "":
			made = text("**" + title + ":** " + argument + "\n\n" + content + "\n")
		case argument != "":
			made = text("**" + argument + "**\n\n" + content + "\n")
		default:
			made = text(content)
		}
		edits = append(edits, edit{at[0], at[1], made})
	}
	if at := mystComment.FindAllIndex(of, -1); at != nil {
		inCode := codeOf(of)
		for _, at := range at {
			if !inCode[at[0]] {
				edits = append(edits, edit{at[0], at[1], nil})
			}
		}
	}
	for _, at := range mystLabel.FindAllIndex(of, -1) {
		edits = append(edits, edit{at[0], at[1], nil})
	}
	edits = append(edits, r.untitled(of)...)
	for _, at := range mystRole.FindAllSubmatchIndex(of, -1) {
		made := r.interpreted(string(of[at[2]:at[3]]), string(of[at[4]:at[5]]), false)
		edits = append(edits, edit{at[0], at[1], text(made)})
	}
	if len(edits) == 0 {
		return of
	}
	return of.replace(edits)
}
