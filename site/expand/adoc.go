package expand

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// AsciiDoc as Markdown: what the preprocessor does (attributes, conditions, files that are taken in), sections with their
// ids, lists, tables, blocks and the macros of running text.

// A docLine is a line with the file that it is from.
type docLine struct{ s, file string }

// An adocReader reads one page.
type adocReader struct {
	*expander
	file       string
	attributes map[string]string
	out        text
	depth      int
}

// adoc makes Markdown of AsciiDoc.
func (x *expander) adoc(file string, content []byte) text {
	r := &adocReader{expander: x, file: file, attributes: map[string]string{"env-site": "", "site-gen": "antora", "site-gen-antora": "",
		"backend": "html5", "backend-html5": "", "asciidoctor": "", "nbsp": " ", "empty": "", "sp": " ", "zwsp": "", "plus": "+", "lt": "<", "gt": ">",
		"amp": "&", "vbar": "|", "startsb": "[", "endsb": "]", "cpp": "C++", "blank": "", "apos": "'", "quot": `"`, "asterisk": "*", "backtick": "`"}}
	component, _, _, _ := moduleOf(file)
	values, _ := x.Values[component].(map[string]any)
	for key, v := range values {
		switch v.(type) {
		case string, bool, int, int64, uint64, float64:
			if v != false {
				r.attributes[strings.ToLower(key)] = strings.TrimSuffix(fmt.Sprint(v), "@")
			}
		}
	}
	r.blocks(r.process(file, split(string(content))))
	r.out.bytes = bytes.TrimLeft(r.out.bytes, "\n")
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
	adocID      = regexp.MustCompile(`^\[(?:\[([\w:.-]+)(?:,[^\]]*)?\]|(?:[\w-]+)?#([\w:.-]+)[^\]]*)\]$`)
	adocList    = regexp.MustCompile(`^(\s*)(\*{1,5}|\.{1,5}|-|\d+\.|<\.>|<\d+>)[ \t]+(\S.*)$`)
	adocTerm    = regexp.MustCompile(`^(\S.*?)(:{2,4}|;;)(?:[ \t]+(\S.*))?$`)
	adocNote    = regexp.MustCompile(`^(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+(.*)$`)
	adocStyle   = regexp.MustCompile(`^\[(.*)\]$`)
	adocImage   = regexp.MustCompile(`^(image|video|audio)::([^\[]+)\[([^\],]*).*\]$`)
)

// substitute puts attributes in their places. What is not known is left out and counted.
func (r *adocReader) substitute(s string) string {
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

// process does what comes before blocks: conditions, attributes, files.
func (r *adocReader) process(file string, lines []string) (out []docLine) {
	var skip []bool
	off := func() bool { return len(skip) > 0 && skip[len(skip)-1] }
	comment := ""
	for _, line := range lines {
		if comment != "" {
			if line == comment {
				comment = ""
			}
			continue
		}
		if m := adocIf.FindStringSubmatch(line); m != nil {
			holds := r.holds(m[1], m[2], m[3])
			if m[1] != "ifeval" && m[3] != "" { // on one line
				if holds && !off() {
					out = append(out, docLine{m[3], file})
				}
				continue
			}
			skip = append(skip, off() || !holds)
			continue
		}
		if adocEnd.MatchString(line) {
			if len(skip) > 0 {
				skip = skip[:len(skip)-1]
			}
			continue
		}
		switch {
		case off():
		case len(line) > 3 && strings.Trim(line, "/") == "":
			comment = line
		case strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "///"):
		default:
			if m := adocEntry.FindStringSubmatch(line); m != nil {
				if r.entry(m); m[2] == "leveloffset" {
					out = append(out, docLine{line, file})
				}
				continue
			}
			if m := adocInclude.FindStringSubmatch(line); m != nil && m[1] == "" {
				out = append(out, r.included(file, r.substitute(m[2]), m[3])...)
				continue
			}
			out = append(out, docLine{r.substitute(line), file})
		}
	}
	return out
}

// entry sets an attribute.
func (r *adocReader) entry(m []string) {
	name := strings.ToLower(m[2])
	if m[1] != "" || m[3] != "" {
		delete(r.attributes, name)
		return
	}
	r.attributes[name] = r.substitute(strings.TrimSuffix(strings.TrimSpace(m[4]), " \\"))
}

// holds reports whether a condition does.
func (r *adocReader) holds(kind, names, expression string) bool {
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
func (r *adocReader) resource(file, name, family string) []string {
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
func (r *adocReader) included(file, name, options string) (out []docLine) {
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
		for _, line := range split(strings.TrimRight(string(raw), "\n")) {
			out = append(out, docLine{line, found})
		}
		return out
	}
	r.stack = append(r.stack, found)
	of := r.process(found, split(strings.TrimRight(string(raw), "\n")))
	r.stack = r.stack[:len(r.stack)-1]
	if n := number(strings.TrimPrefix(o["leveloffset"], "+")); n > 0 {
		for i := range of {
			if adocSection.MatchString(of[i].s) {
				of[i].s = strings.Repeat("=", n) + of[i].s
			}
		}
	}
	return of
}

var adocOption = regexp.MustCompile(`(\w+)=(?:"([^"]*)"|([^,]*))`)

func adocOptions(s string) map[string]string {
	out := map[string]string{}
	for _, m := range adocOption.FindAllStringSubmatch(s, -1) {
		out[m[1]] = strings.TrimSpace(m[2] + m[3])
	}
	return out
}

// A style is what stands above a block.
type adocStyles struct{ id, list, title string }

// blocks writes the blocks of lines.
func (r *adocReader) blocks(lines []docLine) {
	var style adocStyles
	first := true
	for i := 0; i < len(lines); {
		from := len(r.out.bytes)
		line := lines[i]
		kept := false
		switch {
		case line.s == "" || line.s == "+" || line.s == "'''" || line.s == "<<<":
			i++
			kept = line.s == ""
		case first && strings.HasPrefix(line.s, "= "):
			r.out.write("# " + r.inline(line.s[2:]) + "\n\n")
			for i++; i < len(lines) && lines[i].s != ""; i++ { // authors and revision
				if adocSection.MatchString(lines[i].s) || strings.HasPrefix(lines[i].s, "[") {
					break
				}
			}
		case adocID.MatchString(line.s):
			m := adocID.FindStringSubmatch(line.s)
			style.id = m[1] + m[2]
			style.list += "," + strings.Trim(line.s, "[]")
			i, kept = i+1, true
		case adocStyle.MatchString(line.s) && !strings.HasPrefix(line.s, "[["):
			style.list += "," + strings.Trim(line.s, "[]")
			i, kept = i+1, true
		case len(line.s) > 1 && line.s[0] == '.' && line.s[1] != '.' && line.s[1] != ' ':
			style.title = line.s[1:]
			i, kept = i+1, true
		default:
			i = r.block(lines, i, style)
		}
		first = first && line.s == ""
		if !kept {
			style = adocStyles{}
		}
		if line.file != r.file && len(r.out.bytes) > from {
			r.out.parts = append(r.out.parts, Part{Start: int64(from), End: int64(len(r.out.bytes)), File: line.file})
		}
	}
}

var adocNotes = map[string]string{"NOTE": "Note", "TIP": "Tip", "IMPORTANT": "Important", "WARNING": "Warning", "CAUTION": "Caution"}

func delimits(s string) bool {
	if s == "--" || s == "```" || strings.HasPrefix(s, "```") {
		return true
	}
	return len(s) >= 4 && strings.IndexByte("-.=*_+", s[0]) >= 0 && strings.Trim(s, s[:1]) == "" ||
		len(s) >= 4 && strings.IndexByte("|,:!", s[0]) >= 0 && strings.Trim(s[1:], "=") == ""
}

// block writes one block, and returns where the next one begins.
func (r *adocReader) block(lines []docLine, i int, style adocStyles) int {
	line := lines[i].s
	if m := adocSection.FindStringSubmatch(line); m != nil {
		id := ""
		if style.id != "" {
			id = " {#" + style.id + "}"
		}
		r.out.write("\n" + strings.Repeat("#", min(len(m[1]), 6)) + " " + r.inline(m[2]) + id + "\n\n")
		return i + 1
	}
	if style.title != "" {
		r.out.write("**" + r.inline(style.title) + "**\n\n")
	}
	if delimits(line) {
		return r.delimited(lines, i, style)
	}
	if m := adocImage.FindStringSubmatch(line); m != nil {
		if m[1] == "image" {
			r.out.write("![" + m[3] + "](" + m[2] + ")\n\n")
		}
		return i + 1
	}
	if strings.Contains(style.list, "source") || strings.Contains(style.list, "listing") || indent(line) > 0 && !adocList.MatchString(line) {
		end := i
		var code []string
		for ; end < len(lines) && lines[end].s != ""; end++ {
			code = append(code, lines[end].s)
		}
		fenced(&r.out, r.language(style), strings.Join(code, "\n"))
		return end
	}
	if m := adocNote.FindStringSubmatch(line); m != nil {
		r.out.write("**" + adocNotes[m[1]] + ":** ")
		return r.paragraph(lines, i, m[2])
	}
	for key, name := range adocNotes {
		if strings.Contains(style.list, key) {
			r.out.write("**" + name + ":** ")
		}
	}
	if m := adocList.FindStringSubmatch(line); m != nil {
		return r.item(lines, i, m)
	}
	if m := adocTerm.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "://") {
		r.out.write("**" + strings.Trim(r.inline(m[1]), "*") + "**\n\n")
		if m[3] != "" {
			return r.paragraph(lines, i, m[3])
		}
		return i + 1
	}
	return r.paragraph(lines, i, line)
}

// item writes an item of a list.
func (r *adocReader) item(lines []docLine, i int, m []string) int {
	depth := len(m[2]) - 1
	mark := "- "
	if m[2][0] == '.' || m[2][0] == '<' || m[2][0] >= '0' && m[2][0] <= '9' {
		if mark = "1. "; m[2][0] != '.' {
			depth = 0
		}
	}
	r.out.write(strings.Repeat("   ", depth) + mark)
	end := i + 1
	item := m[3]
	for ; end < len(lines); end++ {
		of := lines[end].s
		if of == "" || of == "+" || adocList.MatchString(of) || adocTerm.MatchString(of) || delimits(of) || adocStyle.MatchString(of) || strings.HasPrefix(of, ".") {
			break
		}
		item += " " + strings.TrimSpace(of)
	}
	r.out.write(r.inline(item) + "\n")
	if end >= len(lines) || lines[end].s == "" && (end+1 >= len(lines) || !adocList.MatchString(lines[end+1].s)) || lines[end].s == "+" {
		r.out.write("\n")
	}
	return end
}

// paragraph writes running text up to a blank line or a block.
func (r *adocReader) paragraph(lines []docLine, i int, first string) int {
	of := []string{first}
	for i++; i < len(lines); i++ {
		s := lines[i].s
		if s == "" || s == "+" || delimits(s) || adocStyle.MatchString(s) && !strings.Contains(s, "](") {
			break
		}
		of = append(of, strings.TrimSpace(s))
	}
	for n, s := range of {
		if rest, ok := strings.CutSuffix(s, " +"); ok {
			of[n] = rest + "  "
		}
	}
	if s := r.inline(strings.Join(of, "\n")); strings.TrimSpace(s) != "" {
		r.out.write(s + "\n\n")
	}
	return i
}

func (r *adocReader) language(style adocStyles) string {
	parts := strings.Split(style.list, ",")
	for n, p := range parts {
		if strings.HasPrefix(p, "source") && n+1 < len(parts) && !strings.Contains(parts[n+1], "=") {
			return strings.TrimSpace(parts[n+1])
		}
	}
	return ""
}

// delimited writes what stands between two lines that are alike.
func (r *adocReader) delimited(lines []docLine, i int, style adocStyles) int {
	mark := lines[i].s
	closing := mark
	if strings.HasPrefix(mark, "```") {
		closing = "```"
	}
	end := i + 1
	for end < len(lines) && lines[end].s != closing {
		end++
	}
	inner := lines[i+1 : min(end, len(lines))]
	note := ""
	for key, name := range adocNotes {
		if strings.Contains(style.list, key) {
			note = name
		}
	}
	switch {
	case strings.HasSuffix(mark, "==="), strings.HasPrefix(mark, "|="):
		if mark[0] == '=' { // an example, or an admonition
			if note != "" {
				r.out.write("**" + note + ":** ")
			}
			r.nested(inner)
			break
		}
		r.table(inner, style, mark[0])
	case mark[0] == '-' && len(mark) > 2, mark[0] == '.', mark[0] == '`':
		var code []string
		for _, l := range inner {
			code = append(code, adocCallout.ReplaceAllString(l.s, ""))
		}
		lang := r.language(style)
		if mark[0] == '`' {
			lang = strings.TrimPrefix(mark, "```")
		}
		fenced(&r.out, lang, strings.Join(code, "\n"))
	case mark[0] == '+': // passed through as it is
		if !strings.Contains(style.list, "pass") {
			r.nested(inner)
		}
	default:
		if note != "" {
			r.out.write("**" + note + ":** ")
		}
		r.nested(inner)
	}
	return end + 1
}

var adocCallout = regexp.MustCompile(`[ \t]*(?:(?://|#|--|;;)[ \t]*)?<(?:\d+|\.)>[ \t]*$`)

func (r *adocReader) nested(lines []docLine) {
	if r.depth++; r.depth < deepestBlocks {
		r.blocks(append([]docLine{{"", r.file}}, lines...))
	}
	r.depth--
}

var adocCell = regexp.MustCompile(`(?:^|[ \t])(?:\d+(?:\.\d+)?[*+])?(?:\.\d+\+)?[<^>]?(?:\.[<^>])?[aehlmdsv]?\|`)

// columns is how many columns a table has by its attributes; 0 if they do not say it.
func (style adocStyles) columns() (columns int) {
	if cols := adocOptions(style.list)["cols"]; cols != "" {
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

// table makes a table of Markdown.
func (r *adocReader) table(lines []docLine, style adocStyles, separator byte) {
	columns := style.columns()
	headed := strings.Contains(style.list, "header")
	var cells []string
	seen := false
	for n, l := range lines {
		if l.s == "" {
			if seen && len(cells) > 0 && !headed && columns == 0 {
				columns = len(cells)
			}
			headed = headed || seen && n > 0 && len(cells) == columns && !strings.Contains(style.list, "noheader") && columns > 0
			continue
		}
		row := l.s
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
		if !seen && columns == 0 && (n+1 >= len(lines) || lines[n+1].s != "") && len(at) > 1 {
			columns = len(at)
		}
		seen = true
	}
	r.tabled(cells, max(1, columns), headed)
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

// tabled writes a table of Markdown.
func (r *adocReader) tabled(cells []string, columns int, headed bool) {
	if !headed {
		cells = append(make([]string, columns), cells...)
	}
	for n := 0; n < len(cells); n += columns {
		r.out.write("|")
		for _, cell := range cells[n:min(n+columns, len(cells))] {
			r.out.write(" " + strings.ReplaceAll(r.inline(cell), "|", `\|`) + " |")
		}
		r.out.write("\n")
		if n == 0 {
			r.out.write("|" + strings.Repeat(" --- |", columns) + "\n")
		}
	}
	r.out.write("\n")
}

var adocInline = regexp.MustCompile("(xref|link|image|kbd|btn|menu|footnote|pass|stem|latexmath|asciimath|icon|indexterm2?|anchor):([^\\s\\[\\]]*)\\[((?:[^\\]\\\\]|\\\\.)*)\\]|" +
	"<<([^,>]+?)(?:,\\s*([^>]*))?>>|(https?://[^\\s\\[\\]<>]*[^\\s\\[\\]<>.,;:)])(?:\\[([^\\]]*)\\])?|" +
	"``?\\+?([^`\\n]+?)\\+?``?|(^|[^\\w*])\\*([^\\s*](?:[^*\\n]*[^\\s*])?)\\*|\\+\\+\\+?([^+\\n]+)\\+\\+\\+?|\\[\\[[^\\]\\n]*\\]\\]|\\(\\(\\(?[^()\\n]*\\)\\)\\)?|\\[[.#][\\w. -]+\\]#([^#\\n]+)#|<")

// inline makes Markdown of running text.
func (r *adocReader) inline(s string) string {
	return adocInline.ReplaceAllStringFunc(s, func(all string) string {
		m := adocInline.FindStringSubmatch(all)
		switch {
		case m[1] != "":
			return r.macro(m[1], m[2], m[3])
		case m[4] != "":
			shown := m[5]
			if shown == "" {
				shown = words(strings.Trim(m[4], "_#"))
			}
			return "[" + shown + "](#" + strings.TrimPrefix(m[4], "#") + ")"
		case m[6] != "":
			shown, _, _ := strings.Cut(m[7], ",")
			if shown = strings.TrimSuffix(shown, "^"); shown == "" {
				return "<" + m[6] + ">"
			}
			return "[" + strings.Trim(shown, `"`) + "](" + m[6] + ")"
		case m[8] != "":
			return "`" + m[8] + "`"
		case m[10] != "":
			return m[9] + "**" + r.inline(m[10]) + "**"
		case m[11] != "":
			return m[11]
		case m[12] != "":
			return m[12]
		case strings.HasPrefix(all, "(("):
			if strings.HasPrefix(all, "(((") {
				return ""
			}
			return strings.Trim(all, "()")
		case all == "<":
			return `\<`
		}
		return ""
	})
}

// macro is what a macro shows.
func (r *adocReader) macro(name, target, shown string) string {
	shown = strings.ReplaceAll(shown, `\]`, "]")
	switch name {
	case "xref":
		file, fragment, anchored := strings.Cut(target, "#")
		if text, _, ok := strings.Cut(shown, ",window="); ok {
			shown = text
		}
		if shown == "" {
			shown = words(strings.TrimSuffix(path.Base(file[strings.LastIndexByte(file, ':')+1:]), ".adoc"))
			if file == "" || shown == "." {
				shown = words(strings.TrimLeft(fragment, "_"))
			}
		}
		if anchored {
			fragment = "#" + fragment
		}
		if file == "" {
			return "[" + shown + "](" + fragment + ")"
		}
		return "[" + shown + "](" + r.linkTo(file) + fragment + ")"
	case "link":
		shown, _, _ = strings.Cut(strings.TrimSuffix(shown, "^"), ",")
		if shown == "" {
			shown = target
		}
		return "[" + strings.TrimSuffix(strings.Trim(shown, `"`), "^") + "](" + target + ")"
	case "image":
		alt, _, _ := strings.Cut(shown, ",")
		return "![" + alt + "](" + target + ")"
	case "menu":
		return target + " > " + shown
	case "footnote":
		return " (" + r.inline(shown) + ")"
	case "icon", "indexterm", "anchor":
		return ""
	case "kbd", "stem", "latexmath", "asciimath":
		return "`" + shown + "`"
	}
	return shown
}

// linkTo is the path from the page to what a reference names.
func (r *adocReader) linkTo(name string) string {
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
