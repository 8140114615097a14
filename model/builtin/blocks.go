package builtin

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	comment     = regexp.MustCompile(`(?s)<!--.*?-->|\{/\*.*?\*/\}`)
	shortcode   = regexp.MustCompile(`\{\{[<%].*?[%>]\}\}`)
	include     = regexp.MustCompile(`^\s*\{[*!].*[*!]\}\s*$`)
	module      = regexp.MustCompile(`^(import\s+(.+\sfrom\s+)?['"][^'"]*['"];?|export\s+(const|let|default|function)\b.*|@include:.*|<<<.*)\s*$`)
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

// cut reads a section into blocks. The section's own heading at its top is left out.
func cut(p *model.Passage) []block {
	text := strings.ReplaceAll(p.Text, "\r\n", "\n")
	if strings.Contains(text, "<!--") || strings.Contains(text, "{/*") {
		text = comment.ReplaceAllString(text, "")
	}
	lines := strings.Split(text, "\n")
	c := cutter{page: p, mdx: strings.HasSuffix(p.Path, ".mdx")}
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

// match is the pattern's match where the line's first sign is one that the pattern begins with, which most lines show
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

type cutter struct {
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
func (c *cutter) add(line string) {
	c.settle()
	c.lines = append(c.lines, line)
}

// settle puts to the last line what goes on with it.
func (c *cutter) settle() {
	if len(c.lazy) > 0 {
		last := &c.lines[len(c.lines)-1]
		*last += " " + strings.Join(c.lazy, " ")
		c.lazy = nil
	}
}

func (c *cutter) flush() {
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
		text = strings.Join(strings.Fields(text), " ")
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
func (c *cutter) fenced(lines []string, i int, f []string) int {
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

func (c *cutter) line(line string) {
	trimmed := strings.TrimSpace(line)
	if c.open != "" { // the rest of a tag of several lines
		if at := strings.Index(trimmed, ">"); at >= 0 {
			whole := c.open + " " + trimmed[:at+1]
			c.open = ""
			c.labels(whole)
			c.line(trimmed[at+1:])
			return
		}
		if len(c.open) < 4000 {
			c.open += " " + trimmed
			return
		}
		c.open = ""
	}
	if trimmed == "" {
		if c.kind == prose || c.kind == table {
			c.flush()
		} else if c.kind != 0 {
			c.add("")
		}
		c.blank = true
		return
	}
	blank := c.blank
	c.blank = false
	if strings.HasPrefix(trimmed, ">") && !strings.HasPrefix(trimmed, ">}}") && (c.kind != list || indent(line) < 2) {
		trimmed = strings.TrimSpace(strings.TrimLeft(trimmed, ">"))
		line = trimmed
		if trimmed == "" || alert.MatchString(trimmed) {
			c.flush()
			return
		}
	}
	switch {
	case strings.HasPrefix(trimmed, "{{") && strings.TrimSpace(shortcode.ReplaceAllString(trimmed, "")) == "":
		return
	case match(module, "ie@<", trimmed) != nil || match(include, "{", line) != nil || match(definition, "[", line) != nil ||
		match(rule, "-*_", line) != nil || match(alert, "[", line) != nil:
		c.flush()
		return
	}
	if a := match(admonition, ":/!?", line); a != nil {
		c.flush()
		c.inside = strings.HasPrefix(a[1], "!!!") || strings.HasPrefix(a[1], "???")
		if title := strings.Trim(a[3], `"[]`); title != "" && a[1][0] != '/' {
			c.label(title)
		}
		return
	}
	if c.inside {
		if indent(line) >= 4 {
			line = line[4:]
		} else {
			c.inside = false
		}
	}
	if h := match(headline, "#", line); h != nil {
		c.flush()
		if t := strings.TrimSpace(c.inline(explicitID.ReplaceAllString(h[2], ""))); t != "" {
			c.blocks = append(c.blocks, block{heading, t})
		}
		return
	}
	// A line of tags alone is markup; what its title says is text.
	if trimmed[0] == '<' {
		if !strings.Contains(trimmed, ">") && len(trimmed) > 1 && unicode.IsLetter(rune(trimmed[1])) {
			c.flush()
			c.open = trimmed
			return
		}
		c.labels(trimmed)
		if strings.TrimSpace(tag.ReplaceAllString(trimmed, "")) == "" {
			if c.kind != list {
				c.flush()
			}
			return
		}
	}
	if m := match(item, "-*+0123456789", line); m != nil {
		if c.kind != list {
			c.flush()
			c.kind, c.margin = list, len(m[1])+2
		}
		c.add(line)
		return
	}
	if c.kind == list {
		if indent(line) >= c.margin || !blank && indent(line) > 0 {
			c.add(line)
			return
		}
		if !blank { // a lazy continuation
			c.lazy = append(c.lazy, trimmed)
			return
		}
		c.flush()
	}
	if strings.HasPrefix(trimmed, "|") {
		if c.kind != table {
			c.flush()
			c.kind = table
		}
		c.add(trimmed)
		return
	}
	if c.kind == table {
		c.flush()
	}
	if indent(line) >= 4 && !c.mdx && !c.inside && c.kind != prose {
		if c.kind != code {
			c.flush()
			c.kind = code
		}
		c.add(line)
		return
	}
	if c.kind == code {
		c.flush()
	}
	if match(definitions, ":", line) != nil { // a term on the line before, what it means on this one
		trimmed = definitions.ReplaceAllString(line, "")
		if n := len(c.lines); c.kind == prose && n > 0 {
			c.lines[n-1] += ":"
		}
	}
	c.kind = prose
	c.add(trimmed)
}

// labels keeps what a tag's attributes show to a reader.
func (c *cutter) labels(tag string) {
	if t := titled.FindStringSubmatch(tag); t != nil {
		c.label(t[1])
	} else if t := field.FindStringSubmatch(tag); t != nil {
		c.label("`" + t[1] + "`")
	}
}

// label keeps the title of a component, a step or a tab, as a line of its own.
func (c *cutter) label(title string) {
	c.flush()
	c.blocks = append(c.blocks, block{heading, title})
}

// inline takes tags and images out of running text and makes its links lead somewhere or be plain text. Code spans stay
// as they are.
func (c *cutter) inline(s string) string { return c.within(s, 0) }

// deepestLink is how far the texts of links and images are read for further ones: an image in a link is as deep as a page goes.
const deepestLink = 4

// within is inline for the text of so many links within each other.
func (c *cutter) within(s string, depth int) string {
	var out strings.Builder
	out.Grow(len(s))
	var links brackets
	if depth < deepestLink {
		links = pairs(s)
	}
	tagEnd, braceEnd := ahead{s: s, end: ">"}, ahead{s: s, end: "}"}
	shortcodeEnd, otherEnd := ahead{s: s, end: ">}}"}, ahead{s: s, end: "%}}"}
	for i := 0; i < len(s); {
		switch s[i] {
		case '\\':
			n := min(2, len(s)-i)
			out.WriteString(s[i : i+n])
			i += n
			continue
		case '`':
			run := 1
			for i+run < len(s) && s[i+run] == '`' {
				run++
			}
			if end := strings.Index(s[i+run:], s[i:i+run]); end >= 0 {
				n := run + end + run
				out.WriteString(s[i : i+n])
				i += n
				continue
			}
			out.WriteString(s[i : i+run])
			i += run
			continue
		case '!':
			if i+1 < len(s) && s[i+1] == '[' {
				if _, _, end, ok := links.link(s, i+1); ok {
					i = end
					continue
				}
			}
		case '[':
			if text, dest, end, ok := links.link(s, i); ok {
				text = c.within(text, depth+1)
				if dest = resolve(c.page, dest); dest != "" && strings.TrimSpace(text) != "" {
					out.WriteString("[" + text + "](" + dest + ")")
				} else {
					out.WriteString(text)
				}
				i = end
				continue
			}
		case '<':
			if end := tagEnd.from(i); end >= 0 {
				if n := len(leadingTag.FindString(s[i : end+1])); n > 0 {
					if name := strings.ToLower(s[i:min(i+3, len(s))]); name == "<br" || strings.HasPrefix(name, "<p") || name == "</p" {
						out.WriteByte(' ')
					}
					i += n
					continue
				}
			}
		case '&':
			if strings.HasPrefix(s[i:], "&nbsp;") {
				out.WriteByte(' ')
				i += len("&nbsp;")
				continue
			}
		case '{':
			if strings.HasPrefix(s[i:], "{{<") || strings.HasPrefix(s[i:], "{{%") {
				end, other := shortcodeEnd.from(i+3), otherEnd.from(i+3)
				if end < 0 || other >= 0 && other < end {
					end = other
				}
				if end >= 0 {
					i = end + len(">}}")
					continue
				}
			}
			if strings.HasPrefix(s[i:], "{' '}") || strings.HasPrefix(s[i:], `{" "}`) {
				out.WriteByte(' ')
				i += 5
				continue
			}
			// An attribute list of an extended Markdown: {.class}, {:target="_blank"}, {.external-link target="_blank"}.
			if i+1 < len(s) && (s[i+1] == '.' || s[i+1] == ':' || s[i+1] == '#') {
				if end := braceEnd.from(i); end >= 0 {
					i = end + 1
					continue
				}
			}
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

// ahead finds the next place of a mark in a text that is read from its start. All questions together cost one reading.
type ahead struct {
	s, end string
	at     int // where it was found last; the text's length where it does not come any more
	begun  bool
}

// from is where the mark is at i or after it, or -1. It is asked of places in their order.
func (a *ahead) from(i int) int {
	if !a.begun || a.at < i {
		a.begun = true
		if i > len(a.s) {
			i = len(a.s)
		}
		if n := strings.Index(a.s[i:], a.end); n >= 0 {
			a.at = i + n
		} else {
			a.at = len(a.s)
		}
	}
	if a.at == len(a.s) {
		return -1
	}
	return a.at
}

// brackets tell where each bracket and parenthesis that is opened in a text is closed.
type brackets struct{ square, round []pair }

// A pair is what is opened and closed at two places; closed is -1 where it is not. Lists are in the order of opening.
type pair struct{ opened, closed int }

func pairs(s string) (b brackets) {
	if strings.IndexByte(s, ']') < 0 {
		return b
	}
	var square, round []int // those that are open, by their place in the list
	escaped := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			round, b.round = append(round, len(b.round)), append(b.round, pair{i, -1})
		case c == ')' && len(round) > 0:
			b.round[round[len(round)-1]].closed = i
			round = round[:len(round)-1]
		case escaped:
		case c == '[':
			square, b.square = append(square, len(b.square)), append(b.square, pair{i, -1})
		case c == ']' && len(square) > 0:
			b.square[square[len(square)-1]].closed = i
			square = square[:len(square)-1]
		}
		escaped = s[i] == '\\' && !escaped
	}
	return b
}

// closing is where that is closed which is opened at a place; -1 where nothing is.
func closing(list []pair, opened int) int {
	i, ok := slices.BinarySearchFunc(list, opened, func(p pair, at int) int { return cmp.Compare(p.opened, at) })
	if !ok {
		return -1
	}
	return list[i].closed
}

// link reads [text](dest "title"), [text][label] and [text][] where s has an opening bracket; end is behind it. A reference has no
// destination: its definition stands elsewhere.
func (b brackets) link(s string, at int) (text, dest string, end int, ok bool) {
	closed := closing(b.square, at)
	if closed < 0 || closed+1 >= len(s) {
		return "", "", 0, false
	}
	text = s[at+1 : closed]
	switch s[closed+1] {
	case '(':
		if end := closing(b.round, closed+1); end >= 0 {
			dest = strings.TrimSpace(s[closed+2 : end])
			if at := strings.IndexAny(dest, " \t"); at >= 0 && !strings.HasPrefix(dest, "<") {
				dest = dest[:at]
			}
			return text, strings.Trim(dest, "<>"), end + 1, true
		}
	case '[':
		if n := strings.IndexByte(s[closed+2:], ']'); n >= 0 {
			return text, "", closed + 2 + n + 1, true
		}
	}
	return "", "", 0, false
}

// resolve makes the destination of a link on a page absolute; empty where nothing sensible can be said.
func resolve(p *model.Passage, dest string) string {
	u, err := url.Parse(dest)
	if err != nil || dest == "" {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto":
		return dest
	case "":
	default:
		return ""
	}
	base, err := url.Parse(p.URL)
	if err != nil || p.URL == "" {
		return ""
	}
	base.Fragment = ""
	if u.Host == "" && u.Path == "" {
		if u.Fragment == "" {
			return ""
		}
		base.Fragment = u.Fragment
		return base.String()
	}
	target := u.Path
	ext := path.Ext(target)
	page := ext == "" && strings.HasPrefix(target, "/") || ext == "" && strings.HasPrefix(target, ".") || ext == ".md" || ext == ".mdx" || ext == ".markdown" || ext == ".html"
	if !page {
		return ""
	}
	target = strings.TrimSuffix(target, ext)
	if !strings.HasPrefix(target, "/") {
		// Relative links are relative to the file. They can be followed where the page's address ends in its path.
		own := strings.TrimSuffix(p.Path, path.Ext(p.Path))
		own = strings.TrimSuffix(strings.TrimSuffix(own, "/index"), "/README")
		at := strings.TrimSuffix(base.Path, "/")
		prefix, ok := strings.CutSuffix(at, own)
		if !ok {
			return ""
		}
		joined := path.Join(path.Dir(p.Path), target)
		if strings.HasPrefix(joined, "..") {
			return ""
		}
		target = strings.TrimSuffix(prefix, "/") + "/" + joined
	}
	target = strings.TrimSuffix(strings.TrimSuffix(target, "/index"), "/README")
	base.Path, base.RawPath, base.RawQuery, base.Fragment = target, "", u.RawQuery, u.Fragment
	return base.String()
}

// sentences cuts running text into sentences; code spans, links and brackets are never cut.
func sentences(s string) []string {
	var out []string
	start, depth := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '`':
			if end := strings.IndexByte(s[i+1:], '`'); end >= 0 {
				i += end + 1
			}
		case '[', '(':
			depth++
		case ']', ')':
			depth = max(depth-1, 0)
		case '.', '!', '?':
			end := i + 1
			for end < len(s) && strings.IndexByte(`"'*_)`, s[end]) >= 0 {
				end++
			}
			if depth > 0 && end == i+1 || end < len(s) && s[end] != ' ' || s[i] == '.' && abbreviation(s[start:i]) {
				continue
			}
			next := strings.TrimLeft(s[end:], " *_\"'`([")
			if r, _ := utf8.DecodeRuneInString(next); next != "" && unicode.IsLower(r) && !strings.HasPrefix(strings.TrimLeft(s[end:], " "), "`") {
				continue
			}
			if t := strings.TrimSpace(s[start:end]); t != "" {
				out = append(out, t)
			}
			start, i, depth = end, end-1, 0
		}
	}
	if t := strings.TrimSpace(s[start:]); t != "" {
		out = append(out, t)
	}
	return out
}

func abbreviation(before string) bool {
	at := strings.LastIndexAny(before, " (")
	switch strings.ToLower(before[at+1:]) {
	case "e.g", "i.e", "etc", "vs", "cf", "approx", "dr", "mr", "no", "fig", "resp":
		return true
	}
	return false
}
