package builtin

import (
	"regexp"
	"strings"
	"unicode"

	"docent/internal/brief"
	"docent/model"
)

type blockKind uint8

const (
	prose blockKind = iota + 1
	list
	code
	table
	heading
)

// A block is a paragraph, a whole list, a whole stretch of code, a table, or a heading within the section, in Markdown
// without components and with links that lead somewhere.
type block struct {
	kind blockKind
	text string
}

const tagPattern = `</?[A-Za-z][A-Za-z0-9.:-]*(?:\s+[A-Za-z_:@.#][^<>]*?)?\s*/?>|</?>`

var (
	comment   = regexp.MustCompile(`(?s)<!--.*?-->|\{/\*.*?\*/\}`)
	shortcode = regexp.MustCompile(`\{\{[<%].*?[%>]\}\}`)
	include   = regexp.MustCompile(`^\s*\{[*!].*[*!]\}\s*$`)
	module    = regexp.MustCompile(
		`^(import\s+(.+\sfrom\s+)?['"][^'"]*['"];?|export\s+(const|let|default|function)\b.*|@include:.*|<<<.*)\s*$`)
	fence       = regexp.MustCompile("^(\\s*)(`{3,}|~{3,})\\s*([^`\\s{]*)")
	admonition  = regexp.MustCompile(`^\s*(:::+|///+|!!!|\?\?\?\+?)\s*(\{?\.?[A-Za-z-]*\}?)\s*\|?\s*(.*?)\s*$`)
	alert       = regexp.MustCompile(`^\s*\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*$`)
	item        = regexp.MustCompile(`^(\s*)([-*+]|\d{1,9}[.)])\s+\S`)
	headline    = regexp.MustCompile(`^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$`)
	explicitID  = regexp.MustCompile(`\s*\{\s*#[^}]*\}\s*$`)
	definition  = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s+\S+`)
	rule        = regexp.MustCompile(`^\s{0,3}([-*_]\s*){3,}$`)
	tag         = regexp.MustCompile(tagPattern)
	leadingTag  = regexp.MustCompile(`^(?:` + tagPattern + `)`)
	titled      = regexp.MustCompile(`<[A-Z][A-Za-z0-9.]*\s[^<>]*?\b(?:title|label|header)="([^"]+)"`)
	field       = regexp.MustCompile(`<[A-Za-z]*Field\s[^<>]*?\b(?:name|path|query|body|header)="([^"]+)"`)
	definitions = regexp.MustCompile(`^\s{0,3}:\s+`)
)

// parseBlocks reads a section into blocks. The section's own heading at its top is left out.
func parseBlocks(p *model.Passage) []block {
	text := strings.ReplaceAll(p.Text, "\r\n", "\n")
	if strings.Contains(text, "<!--") || strings.Contains(text, "{/*") {
		text = comment.ReplaceAllString(text, "")
	}
	lines := strings.Split(text, "\n")
	c := scanner{page: p, mdx: strings.HasSuffix(p.Path, ".mdx")}
	for i := 0; i < len(lines); i++ {
		line := strings.ReplaceAll(lines[i], "\t", "    ")
		if f := match(fence, "`~", line); f != nil {
			i = c.fenced(lines, i, f)
			continue
		}
		c.line(line)
	}
	c.flush()
	own := p.Heading
	if own == "" {
		own = p.Title
	}
	if len(c.blocks) > 0 && c.blocks[0].kind == heading && fingerprint(c.blocks[0].text) == fingerprint(own) {
		return c.blocks[1:]
	}
	return c.blocks
}

// match is the pattern's match if the line's first sign is one that the pattern begins with, which most lines show
// at a glance not to be.
func match(pattern *regexp.Regexp, first, line string) []string {
	for i := range len(line) {
		if line[i] == ' ' {
			continue
		}
		if strings.IndexByte(first, line[i]) < 0 {
			return nil
		}
		return pattern.FindStringSubmatch(line)
	}
	return nil
}

type scanner struct {
	page   *model.Passage
	mdx    bool
	blocks []block
	kind   blockKind
	lines  []string // of the block that is being read
	lazy   []string // lines that go on with the last of them
	blank  bool     // the line before was empty
	margin int      // columns that a list's continuation has at least
	inside bool     // within an admonition by indentation
	open   string   // a tag that began on an earlier line
}

// add puts a line to the block that is being read.
func (c *scanner) add(line string) {
	c.settle()
	c.lines = append(c.lines, line)
}

// settle puts to the last line what goes on with it.
func (c *scanner) settle() {
	if len(c.lazy) > 0 {
		last := &c.lines[len(c.lines)-1]
		*last += " " + strings.Join(c.lazy, " ")
		c.lazy = nil
	}
}

func (c *scanner) flush() {
	c.settle()
	lines := c.lines
	kind := c.kind
	c.lines, c.kind = nil, 0
	if len(lines) == 0 {
		return
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	text := ""
	switch kind {
	case prose:
		text = c.inline(strings.Join(lines, " "))
		text = brief.Line(text)
	case list, table:
		var kept []string
		for _, l := range dedent(lines) {
			if strings.HasPrefix(strings.TrimSpace(l), "```") {
				kept = append(kept, l)
				continue
			}
			if l = strings.TrimRight(c.inline(l), " "); strings.TrimSpace(l) != "" {
				kept = append(kept, l)
			}
		}
		text = strings.Join(kept, "\n")
	case code:
		text = strings.Join(dedent(lines), "\n")
		if strings.TrimSpace(text) != "" {
			text = "```\n" + text + "\n```"
		}
	}
	if strings.TrimSpace(text) != "" && (kind == code || strings.IndexFunc(text, letter) >= 0) {
		c.blocks = append(c.blocks, block{kind, text})
	}
}

func dedent(lines []string) []string {
	least := -1
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			if n := indent(l); least < 0 || n < least {
				least = n
			}
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l[min(max(least, 0), indent(l)):]
	}
	return out
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// fenced takes a fenced block, kept as it is but for its indentation and for what generators add to its first line.
func (c *scanner) fenced(lines []string, i int, f []string) int {
	margin, mark, lang := len(f[1]), f[2], f[3]
	within := c.kind == list && margin >= c.margin && c.margin > 0
	if !within {
		c.flush()
	}
	body := []string{}
	for i++; i < len(lines); i++ {
		l := strings.ReplaceAll(lines[i], "\t", "    ")
		if t := strings.TrimSpace(l); strings.HasPrefix(t, mark) && strings.Trim(t, mark[:1]) == "" {
			break
		}
		body = append(body, l[min(indent(l), margin):])
	}
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
	marks := strings.Repeat("`", longest+1)
	for len(body) > 0 && strings.TrimSpace(body[0]) == "" {
		body = body[1:]
	}
	for len(body) > 0 && strings.TrimSpace(body[len(body)-1]) == "" {
		body = body[:len(body)-1]
	}
	if len(body) == 0 || lang == "mdx-code-block" { // that one is no code but a part of the page
		return i
	}
	if within {
		pad := strings.Repeat(" ", margin)
		c.add(pad + marks + lang)
		for _, l := range body {
			c.add(pad + l)
		}
		c.add(pad + marks)
		return i
	}
	c.blocks = append(c.blocks, block{code, marks + lang + "\n" + strings.Join(body, "\n") + "\n" + marks})
	return i
}

// A sourceLine is a line as far as it is read.
type sourceLine struct {
	text    string
	trimmed string
	blank   bool // the line before was empty
}

// line reads a line in the first of these forms that it has. Those before may have taken something off it.
func (c *scanner) line(text string) {
	l := &sourceLine{text: text, trimmed: strings.TrimSpace(text)}
	_ = c.restOfTag(l) || c.empty(l) || c.quotation(l) || c.markup(l) || c.admonition(l) || c.headline(l) || c.tags(l) ||
		c.listItem(l) || c.belowItem(l) || c.tableRow(l) || c.indentedCode(l) || c.paragraph(l)
}

// restOfTag reads on in a tag of several lines.
func (c *scanner) restOfTag(l *sourceLine) bool {
	if c.open == "" {
		return false
	}
	if at := strings.Index(l.trimmed, ">"); at >= 0 {
		whole := c.open + " " + l.trimmed[:at+1]
		c.open = ""
		c.labels(whole)
		c.line(l.trimmed[at+1:])
		return true
	}
	if len(c.open) < 4000 {
		c.open += " " + l.trimmed
		return true
	}
	c.open = ""
	return false
}

func (c *scanner) empty(l *sourceLine) bool {
	if l.trimmed == "" {
		if c.kind == prose || c.kind == table {
			c.flush()
		} else if c.kind != 0 {
			c.add("")
		}
		c.blank = true
		return true
	}
	l.blank, c.blank = c.blank, false
	return false
}

// quotation takes off the marks of a quotation, whose text is read like any other.
func (c *scanner) quotation(l *sourceLine) bool {
	if !strings.HasPrefix(l.trimmed, ">") || strings.HasPrefix(l.trimmed, ">}}") || c.kind == list && indent(l.text) >= 2 {
		return false
	}
	l.trimmed = strings.TrimSpace(strings.TrimLeft(l.trimmed, ">"))
	l.text = l.trimmed
	if l.trimmed == "" || alert.MatchString(l.trimmed) {
		c.flush()
		return true
	}
	return false
}

// markup leaves out what a reader of the page does not see.
func (c *scanner) markup(l *sourceLine) bool {
	if strings.HasPrefix(l.trimmed, "{{") && strings.TrimSpace(shortcode.ReplaceAllString(l.trimmed, "")) == "" {
		return true
	}
	if match(module, "ie@<", l.trimmed) == nil && match(include, "{", l.text) == nil &&
		match(definition, "[", l.text) == nil && match(rule, "-*_", l.text) == nil && match(alert, "[", l.text) == nil {
		return false
	}
	c.flush()
	return true
}

// admonition reads the line that an admonition begins or ends with, and takes the indentation off what is in one.
func (c *scanner) admonition(l *sourceLine) bool {
	if a := match(admonition, ":/!?", l.text); a != nil {
		c.flush()
		c.inside = strings.HasPrefix(a[1], "!!!") || strings.HasPrefix(a[1], "???")
		if title := strings.Trim(a[3], `"[]`); title != "" && a[1][0] != '/' {
			c.label(title)
		}
		return true
	}
	if c.inside = c.inside && indent(l.text) >= 4; c.inside {
		l.text = l.text[4:]
	}
	return false
}

func (c *scanner) headline(l *sourceLine) bool {
	h := match(headline, "#", l.text)
	if h == nil {
		return false
	}
	c.flush()
	if t := strings.TrimSpace(c.inline(explicitID.ReplaceAllString(h[2], ""))); t != "" {
		c.blocks = append(c.blocks, block{heading, t})
	}
	return true
}

// tags leaves out a line of tags alone, which is markup; what its title says is text.
func (c *scanner) tags(l *sourceLine) bool {
	if l.trimmed[0] != '<' {
		return false
	}
	if !strings.Contains(l.trimmed, ">") && len(l.trimmed) > 1 && unicode.IsLetter(rune(l.trimmed[1])) {
		c.flush()
		c.open = l.trimmed
		return true
	}
	c.labels(l.trimmed)
	if strings.TrimSpace(tag.ReplaceAllString(l.trimmed, "")) != "" {
		return false
	}
	if c.kind != list {
		c.flush()
	}
	return true
}

func (c *scanner) listItem(l *sourceLine) bool {
	m := match(item, "-*+0123456789", l.text)
	if m == nil {
		return false
	}
	if c.kind != list {
		c.flush()
		c.kind, c.margin = list, len(m[1])+2
	}
	c.add(l.text)
	return true
}

// belowItem reads what belongs to the item of a list above it.
func (c *scanner) belowItem(l *sourceLine) bool {
	switch {
	case c.kind != list:
		return false
	case indent(l.text) >= c.margin || !l.blank && indent(l.text) > 0:
		c.add(l.text)
	case !l.blank: // a lazy continuation
		c.lazy = append(c.lazy, l.trimmed)
	default:
		c.flush()
		return false
	}
	return true
}

func (c *scanner) tableRow(l *sourceLine) bool {
	row := strings.HasPrefix(l.trimmed, "|")
	if row != (c.kind == table) {
		c.flush()
	}
	if row {
		c.kind = table
		c.add(l.trimmed)
	}
	return row
}

func (c *scanner) indentedCode(l *sourceLine) bool {
	if indent(l.text) >= 4 && !c.mdx && !c.inside && c.kind != prose {
		if c.kind != code {
			c.flush()
			c.kind = code
		}
		c.add(l.text)
		return true
	}
	if c.kind == code {
		c.flush()
	}
	return false
}

func (c *scanner) paragraph(l *sourceLine) bool {
	text := l.trimmed
	if match(definitions, ":", l.text) != nil { // a term on the line before, what it means on this one
		text = definitions.ReplaceAllString(l.text, "")
		if n := len(c.lines); c.kind == prose && n > 0 {
			c.lines[n-1] += ":"
		}
	}
	c.kind = prose
	c.add(text)
	return true
}

// labels keeps what a tag's attributes show to a reader.
func (c *scanner) labels(tag string) {
	if t := titled.FindStringSubmatch(tag); t != nil {
		c.label(t[1])
	} else if t := field.FindStringSubmatch(tag); t != nil {
		c.label("`" + t[1] + "`")
	}
}

// label keeps the title of a component, a step or a tab, as a line of its own.
func (c *scanner) label(title string) {
	c.flush()
	c.blocks = append(c.blocks, block{heading, title})
}
