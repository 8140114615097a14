package expand

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/site/markup"
)

// AsciiDoc as Markdown: what the preprocessor does (attributes, conditions, files that are taken in), sections with their
// ids, lists, tables, blocks and the macros of running text.

// adoc makes Markdown of AsciiDoc.
func (x *expander) adoc(file string, content []byte) text {
	r := &plainReader{expander: x, file: file, attributes: map[string]string{"env-site": "", "site-gen": "antora", "site-gen-antora": "",
		"backend": "html5", "backend-html5": "", "asciidoctor": "", "nbsp": " ", "empty": "", "sp": " ", "zwsp": "", "plus": "+", "lt": "<", "gt": ">",
		"amp": "&", "vbar": "|", "startsb": "[", "endsb": "]", "cpp": "C++", "blank": "", "apos": "'", "quot": `"`, "asterisk": "*", "backtick": "`"}}
	component, _, _, _ := moduleOf(file)
	values, _ := x.Values[component].(map[string]any)
	for key, v := range values {
		switch v.(type) {
		case string, bool, int, int64, uint64, float64:
			if v != false {
				value, soft := strings.CutSuffix(fmt.Sprint(v), "@")
				r.attributes[strings.ToLower(key)] = value
				if !soft {
					r.locked = append(r.locked, strings.ToLower(key))
				}
			}
		}
	}
	var lines []string
	for _, name := range []string{"idprefix", "idseparator"} {
		if v, ok := r.attributes[name]; ok {
			lines = append(lines, ":"+name+": "+v)
		}
	}
	p := &preprocessor{plainReader: r}
	r.read("x.adoc", append(lines, p.process(file, split(string(content)))...))
	return r.out
}

// moduleOf is a file's place in a component of Antora.
func moduleOf(file string) (component, module, family, rel string) {
	at := strings.Index("/"+file, "/modules/")
	if at < 0 {
		return "", "", "", file
	}
	component = strings.TrimSuffix(file[:at], "/")
	parts := strings.SplitN(file[at+len("modules/"):], "/", 3)
	if len(parts) < 3 {
		return component, "", "", file
	}
	return component, parts[0], parts[1], parts[2]
}

var (
	adocEntry   = regexp.MustCompile(`^:(!?)([\w-]+)(!?):(?:\s+(.*))?$`)
	adocIf      = regexp.MustCompile(`^(ifdef|ifndef|ifeval)::([^\[]*)\[(.*)\]$`)
	adocEnd     = regexp.MustCompile(`^endif::[^\[]*\[.*\]$`)
	adocInclude = regexp.MustCompile(`^(\\?)include::([^\[]+)\[(.*)\]$`)
	adocAttr    = regexp.MustCompile(`\\?\{([\w-]+)(?::[^{}]*)?\}`)
	adocSection = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*)$`)
	adocFence   = regexp.MustCompile("^(?:-{4,}|\\.{4,}|\\+{4,}|```.*)$")
)

// substitute puts attributes in their places. What is not known is left out and counted.
func (r *plainReader) substitute(s string) string {
	return adocAttr.ReplaceAllStringFunc(s, func(all string) string {
		if all[0] == '\\' {
			return all[1:]
		}
		key := strings.ToLower(adocAttr.FindStringSubmatch(all)[1])
		if v, ok := r.attributes[key]; ok {
			if !r.gives(len(v)) {
				r.lose(all)
				return ""
			}
			if strings.Contains(v, "{"+key) {
				return v
			}
			if r.depth < 5 && strings.Contains(v, "{") {
				r.depth++
				v = r.substitute(v)
				r.depth--
			}
			return v
		}
		return all
	})
}

// A preprocessor does what comes before blocks: conditions, attributes, files.
type preprocessor struct {
	*plainReader
	skip   []bool // what the conditions say that hold each other
	fence  string // that ends what is shown as it is, or a comment
	above  string // the attributes of what follows
	offset int    // of the levels of sections
}

func (r *preprocessor) process(file string, lines []string) (out []string) {
	off := func() bool { return len(r.skip) > 0 && r.skip[len(r.skip)-1] }
	for _, line := range lines {
		if m := adocIf.FindStringSubmatch(line); m != nil {
			holds := r.holds(m[1], m[2], m[3])
			if m[1] == "ifeval" || m[3] == "" {
				r.skip = append(r.skip, off() || !holds)
			} else if holds && !off() { // on one line
				out = append(out, m[3])
			}
			continue
		}
		if adocEnd.MatchString(line) {
			r.skip = r.skip[:max(0, len(r.skip)-1)]
			continue
		}
		if off() {
			continue
		}
		if m := adocInclude.FindStringSubmatch(line); m != nil && m[1] == "" {
			if !strings.HasPrefix(r.fence, "/") {
				out = append(out, r.included(file, r.substitute(m[2]), m[3])...)
			}
			continue
		}
		if made, ok := r.line(line); ok {
			out = append(out, made)
		}
	}
	return out
}

// line is a line with its values; false if nobody sees it.
func (r *preprocessor) line(line string) (string, bool) {
	comments := strings.HasPrefix(r.fence, "/")
	switch {
	case r.fence != "" && (line == r.fence || r.fence == "```" && strings.HasPrefix(line, "```")):
		r.fence, r.above = "", ""
		return line, !comments
	case comments:
		return "", false
	case r.fence != "":
		if strings.Contains(r.above, "attributes") || strings.Contains(r.above, "subs=normal") {
			line = r.substitute(line)
		}
		return line, true
	case len(line) > 3 && strings.Trim(line, "/") == "":
		r.fence = line
		return "", false
	case strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "///"):
		return "", false
	case adocFence.MatchString(line):
		if r.fence = line; line[0] == '`' {
			r.fence = "```"
		}
		return line, true
	case strings.HasPrefix(line, "["):
		r.above += line
	case !strings.HasPrefix(line, "."):
		r.above = ""
	}
	if m := adocEntry.FindStringSubmatch(line); m != nil {
		if r.entry(m); m[2] == "leveloffset" {
			r.offset = number(strings.TrimPrefix(strings.TrimSpace(m[4]), "+"))
		}
		return line, (m[2] == "idprefix" || m[2] == "idseparator") && !slices.Contains(r.locked, m[2])
	}
	if r.offset > 0 && adocSection.MatchString(line) {
		line = strings.Repeat(line[:1], r.offset) + line
	}
	return r.substitute(line), true
}

// entry sets an attribute.
func (r *plainReader) entry(m []string) {
	name := strings.ToLower(m[2])
	if slices.Contains(r.locked, name) {
		return
	}
	if m[1] != "" || m[3] != "" {
		delete(r.attributes, name)
		return
	}
	r.attributes[name] = r.substitute(strings.TrimSuffix(strings.TrimSpace(m[4]), " \\"))
}

// holds reports whether a condition does.
func (r *plainReader) holds(kind, names, expression string) bool {
	if kind == "ifeval" {
		left, right, equal := "", "", true
		parts := regexp.MustCompile(`\s*(==|!=|<=?|>=?)\s*`).FindStringSubmatchIndex(expression)
		if parts == nil {
			return false
		}
		left, right = r.substitute(expression[:parts[0]]), r.substitute(expression[parts[1]:])
		equal = strings.Trim(left, `"' `) == strings.Trim(right, `"' `)
		return equal == (expression[parts[2]:parts[3]] == "==")
	}
	any, all := false, true
	for name := range strings.FieldsFuncSeq(names, func(c rune) bool { return c == ',' || c == '+' }) {
		_, ok := r.attributes[strings.ToLower(strings.TrimSpace(name))]
		any, all = any || ok, all && ok
	}
	set := any
	if strings.Contains(names, "+") {
		set = all
	}
	return set == (kind == "ifdef")
}

// resource are the paths that a name of Antora's, or of a file, may mean.
func (r *plainReader) resource(file, name, family string) []string {
	component, module, own, _ := moduleOf(file)
	if component == "" && own == "" {
		return []string{path.Join(path.Dir(file), name)}
	}
	if before, rest, ok := strings.Cut(name, "$"); ok {
		at := strings.LastIndexByte(before, ':')
		if family = before[at+1:]; at >= 0 {
			module = before[:at]
			module = module[strings.LastIndexByte(module, ':')+1:]
		}
		return []string{path.Join(component, "modules", module, family+"s", rest)}
	}
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		module, name = name[:at], name[at+1:]
		module = module[strings.LastIndexByte(module, ':')+1:]
		return []string{path.Join(component, "modules", module, family, name)}
	}
	return []string{path.Join(path.Dir(file), name), path.Join(component, "modules", module, family, name)}
}

// included are the lines of a file that is taken in.
func (r *preprocessor) included(file, name, options string) (out []string) {
	found, raw := r.find(r.resource(file, name, "pages")...)
	o := adocOptions(options)
	if found == "" || !r.admits(raw) {
		if !strings.Contains(options, "opts=optional") {
			r.lose("include::" + name + "[]")
		}
		return nil
	}
	if tags := o["tag"] + o["tags"]; tags != "" && tags != "*" && tags != "**" {
		var picked []byte
		for tag := range strings.FieldsFuncSeq(tags, func(c rune) bool { return c == ';' || c == ',' }) {
			if of, ok := region(raw, tag); ok && (len(picked) == 0 || r.gives(len(of))) {
				picked = append(append(picked, of...), '\n')
			} else if !strings.ContainsAny(tag, "!*") {
				r.lose("include::" + name + "[tag=" + tag + "]")
			}
		}
		raw = picked
	}
	if at := o["lines"]; at != "" {
		first, last, ranged := strings.Cut(strings.SplitN(at, ";", 2)[0], "..")
		to := number(last)
		if !ranged {
			to = number(first)
		}
		raw = lines(raw, number(first), to)
	}
	raw = marker.ReplaceAll(raw, nil)
	if !strings.HasSuffix(found, ".adoc") && !strings.HasSuffix(found, ".asciidoc") {
		return split(strings.TrimRight(string(raw), "\n"))
	}
	r.stack = append(r.stack, found)
	before := r.offset
	r.offset += number(strings.TrimPrefix(o["leveloffset"], "+"))
	out = r.process(found, split(strings.TrimRight(string(raw), "\n")))
	r.stack, r.offset = r.stack[:len(r.stack)-1], before
	return out
}

var adocOption = regexp.MustCompile(`(\w+)=(?:"([^"]*)"|([^,]*))`)

func adocOptions(s string) map[string]string {
	out := map[string]string{}
	for _, m := range adocOption.FindAllStringSubmatch(s, -1) {
		out[m[1]] = strings.TrimSpace(m[2] + m[3])
	}
	return out
}

var adocNotes = map[string]string{"NOTE": "Note", "TIP": "Tip", "IMPORTANT": "Important", "WARNING": "Warning", "CAUTION": "Caution"}

// admonished puts the kind of an admonition before what follows.
func (r *plainReader) admonished(n *markup.Node) {
	style, _, _ := strings.Cut(strings.TrimLeft(n.Attrs, ","), ",")
	if style = style[:strings.IndexAny(style+"#", "#.%")]; adocNotes[style] != "" {
		r.note(n, adocNotes[style])
		r.leads = len(r.lines)
	}
}

// adocText writes a paragraph, or what a marker makes of one.
func (r *plainReader) adocText(n *markup.Node) {
	s, mark := r.inline(r.source(n.Text)), strings.TrimSpace(n.Mark)
	r.admonished(n)
	switch {
	case n.Term:
		r.write(n, "**"+strings.Trim(s, "*")+"**")
	case mark == "":
		r.write(n, s)
	case adocNotes[strings.TrimSuffix(mark, ":")] != "":
		r.write(n, "**"+adocNotes[strings.TrimSuffix(mark, ":")]+":** "+s)
	default:
		mark, box, _ := strings.Cut(mark, " ")
		if box = strings.TrimSpace(box); box != "" {
			s = box + " " + s
		}
		depth, as := 0, "- "
		if mark[0] == '*' || mark[0] == '.' {
			depth = len(mark) - 1
		}
		if mark[0] != '*' && mark[0] != '-' {
			as = "1. "
		}
		r.put(n, strings.Repeat("   ", depth), as, strings.ReplaceAll(s, "\n", " "), '-')
	}
}

var adocCallout = regexp.MustCompile(`[ \t]*(?:(?://|#|--|;;)[ \t]*)?<(?:\d+|\.)>[ \t]*$`)

var adocCell = regexp.MustCompile(`(?:^|[ \t])(?:\d+(?:\.\d+)?[*+])?(?:\.\d+\+)?[<^>]?(?:\.[<^>])?[aehlmdsv]?\|`)

// tableColumns is how many columns a table has by its attributes; 0 if they do not say it.
func tableColumns(attrs string) (columns int) {
	if cols := adocOptions(attrs)["cols"]; cols != "" {
		for spec := range strings.SplitSeq(cols, ",") {
			n := 1
			if times, _, ok := strings.Cut(spec, "*"); ok {
				n = max(1, number(strings.TrimSpace(times)))
			}
			columns += n
		}
	}
	return columns
}

// table writes a table.
func (r *plainReader) table(node *markup.Node) {
	separator, lines := r.lines[node.First][0], r.lines[node.First+1:max(node.First+1, node.End-1)]
	columns := tableColumns(node.Attrs)
	headed := strings.Contains(node.Attrs, "header")
	var cells []string
	seen := false
	for n, l := range lines {
		if l == "" {
			if seen && len(cells) > 0 && !headed && columns == 0 {
				columns = len(cells)
			}
			headed = headed || seen && n > 0 && len(cells) == columns && !strings.Contains(node.Attrs, "noheader") && columns > 0
			continue
		}
		row := l
		if separator != '|' {
			row = "|" + strings.ReplaceAll(row, string(separator), "|")
		}
		at := adocCell.FindAllStringIndex(row, -1)
		if len(at) == 0 {
			if len(cells) > 0 {
				cells[len(cells)-1] += " " + strings.TrimSpace(row)
			}
			continue
		}
		cells = splitRow(cells, row, at)
		if !seen && columns == 0 && (n+1 >= len(lines) || lines[n+1] != "") && len(at) > 1 {
			columns = len(at)
		}
		seen = true
	}
	var rows [][]string
	for row := range slices.Chunk(cells, max(1, columns)) {
		rows = append(rows, row)
	}
	r.tabled(node, rows, headed)
}

// splitRow adds the cells of a line.
func splitRow(cells []string, row string, at [][]int) []string {
	if before := strings.TrimSpace(row[:at[0][0]]); before != "" && len(cells) > 0 {
		cells[len(cells)-1] += " " + before
	}
	for k, span := range at {
		to := len(row)
		if k+1 < len(at) {
			to = at[k+1][0]
		}
		cells = append(cells, strings.TrimSpace(row[span[1]:to]))
	}
	return cells
}

// adocInline is what a form within running text shows.
func (r *plainReader) adocInline(f markup.Inline, all, inner, shown string) string {
	switch f.Kind {
	case markup.InlineCode:
		if len(inner) > 1 && inner[0] == '+' && inner[len(inner)-1] == '+' {
			inner = inner[1 : len(inner)-1]
		}
		return code(inner)
	case markup.InlineMacro:
		if all[0] != '<' {
			if made, ok := r.macro(f.Name, inner, shown); ok {
				return made
			}
			break
		}
		if shown = strings.TrimSpace(shown); shown == "" {
			shown = worded(strings.Trim(inner, "_#"))
		}
		return "[" + shown + "](#" + strings.TrimPrefix(inner, "#") + ")"
	case markup.InlineAddress:
		if shown, _, _ = strings.Cut(shown, ","); strings.TrimSuffix(shown, "^") == "" {
			return "<" + inner + ">"
		}
		return "[" + strings.Trim(strings.TrimSuffix(shown, "^"), `"`) + "](" + inner + ")"
	case markup.InlineTarget:
		return ""
	case markup.InlineTerm:
		if strings.HasPrefix(all, "(((") {
			return ""
		}
		return strings.Trim(all, "()")
	case markup.InlinePass:
		if at := strings.IndexByte(all, '['); strings.HasPrefix(all, "pass:") && at > 0 {
			return all[at+1 : len(all)-1]
		}
		return strings.Trim(all, "+")
	case markup.InlineBreak:
		return "  \n"
	case markup.InlineEmphasis:
		switch all {
		case "*":
			return "**"
		case "__":
			return "*"
		case "**", "_":
			return all
		}
		return ""
	}
	return all
}

// macro is what a macro shows; false if it is none that is known.
func (r *plainReader) macro(name, target, shown string) (string, bool) {
	shown = strings.ReplaceAll(shown, `\]`, "]")
	switch name {
	case "xref":
		file, fragment, anchored := strings.Cut(target, "#")
		if text, _, ok := strings.Cut(shown, ",window="); ok {
			shown = text
		}
		if shown == "" && file != "" {
			shown = r.titleOfXref(file, fragment)
		}
		if shown == "" {
			shown = worded(strings.TrimSuffix(path.Base(file[strings.LastIndexByte(file, ':')+1:]), ".adoc"))
			if file == "" || shown == "." {
				shown = worded(strings.TrimLeft(fragment, "_"))
			}
		}
		if anchored {
			fragment = "#" + fragment
		}
		if file == "" {
			return "[" + shown + "](" + fragment + ")", true
		}
		return "[" + shown + "](" + r.linkTo(file) + fragment + ")", true
	case "link":
		shown, _, _ = strings.Cut(strings.TrimSuffix(shown, "^"), ",")
		shown = cmp.Or(shown, target)
		return "[" + strings.TrimSuffix(strings.Trim(shown, `"`), "^") + "](" + target + ")", true
	case "image":
		alt, _, _ := strings.Cut(shown, ",")
		return "![" + alt + "](" + target + ")", true
	case "menu":
		return target + " > " + shown, true
	case "footnote":
		return " (" + r.inline(shown) + ")", true
	case "icon", "indexterm", "anchor":
		return "", true
	case "kbd", "stem", "latexmath", "asciimath":
		return "`" + shown + "`", true
	case "btn", "pass":
		return shown, true
	}
	return "", false
}

// titleOfXref is the title of the page that a reference names, or of the section; empty if that is not known.
func (r *plainReader) titleOfXref(name, fragment string) string {
	file, raw := r.find(path.Join(path.Dir(r.file), r.linkTo(name)))
	if file == "" || r.depth > 0 {
		return ""
	}
	r.depth++
	defer func() { r.depth-- }()
	for _, h := range markup.Parse(file, raw).Headings {
		if (fragment == "" || h.Anchor == fragment) && r.gives(len(h.Text)) {
			return r.inline(h.Text)
		}
	}
	return ""
}

// linkTo is the path from the page to what a reference names.
func (r *plainReader) linkTo(name string) string {
	if !strings.Contains(path.Base(name[strings.LastIndexByte(name, ':')+1:]), ".") {
		name += ".adoc"
	}
	component, module, own, _ := moduleOf(r.file)
	if component == "" && own == "" {
		return name
	}
	full := path.Join(component, "modules", module, "pages", name)
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		of := name[:at]
		full = path.Join(component, "modules", of[strings.LastIndexByte(of, ':')+1:], "pages", name[at+1:])
	}
	return relativeTo(path.Dir(r.file), full)
}

// relativeTo is the path of a file from a folder.
func relativeTo(folder, file string) string {
	from, to := strings.Split(folder, "/"), strings.Split(file, "/")
	n := 0
	for n < len(from) && n < len(to)-1 && from[n] == to[n] {
		n++
	}
	return strings.Repeat("../", len(from)-n) + strings.Join(to[n:], "/")
}
