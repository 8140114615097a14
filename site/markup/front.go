package markup

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"docent/internal/formats"
)

// ReadFront reads the front matter of a page and nothing else.
func ReadFront(name string, src []byte) Front {
	p := &Page{Path: name, Src: src, Format: FormatOf(name)}
	if p.Format == Markdown || p.Format == MDX {
		p.readFront(p.bom())
	}
	return p.Front
}

// readFront finds the front matter that begins at start and sets Front and Body.
func (p *Page) readFront(start int) {
	src := p.Src
	var delim, kind string
	switch {
	case bytes.HasPrefix(src[start:], []byte("---")):
		delim, kind = "---", "yaml"
	case bytes.HasPrefix(src[start:], []byte("+++")):
		delim, kind = "+++", "toml"
	default:
		return
	}
	line := func(pos int) (text string, next int) {
		i := bytes.IndexByte(src[pos:], '\n')
		if i < 0 {
			return string(bytes.TrimRight(src[pos:], " \t\r")), len(src)
		}
		return string(bytes.TrimRight(src[pos:pos+i], " \t\r")), pos + i + 1
	}
	first, bodyStart := line(start)
	if first != delim || bodyStart == start+len(first) {
		return
	}
	for pos := bodyStart; pos < len(src); {
		text, next := line(pos)
		if text == delim || kind == "yaml" && text == "..." {
			p.Front = Front{Span: Span{start, next}, Body: Span{bodyStart, pos}, Kind: kind}
			p.Body.Start = next
			v, err := readValues(kind, src[bodyStart:pos])
			p.Front.Values = v
			if err != nil {
				p.Problems = append(p.Problems, Problem{Line: 1, Message: "the front matter does not parse: " +
					firstLine(err.Error())})
			}
			return
		}
		pos = next
	}
	if kind == "toml" {
		return // a line of plus signs
	}
	if second, _ := line(bodyStart); keyLine.MatchString(second) {
		p.Problems = append(p.Problems, Problem{Line: 1, Message: "the front matter is not closed"})
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

var keyLine = regexp.MustCompile(`^[A-Za-z_][\w-]*[ \t]*:(?:[ \t]|$)`)

func readValues(kind string, src []byte) (values map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil { // a library's slip on odd bytes is no reason to lose the page
			values, err = nil, fmt.Errorf("%v", r)
		}
	}()
	if kind == "toml" {
		err = formats.TOML(src, &values)
	} else {
		err = formats.YAML(src, &values)
	}
	if err != nil {
		return nil, err
	}
	if values == nil {
		values = map[string]any{}
	}
	return values, nil
}

var frontKey = regexp.MustCompile(`^[A-Za-z_][\w.-]*$`)

// Keys whose value is text whatever it looks like.
var textKeys = map[string]bool{"title": true, "description": true, "sidebarTitle": true, "sidebar_label": true,
	"summary": true, "subtitle": true, "slug": true}

// SetFront returns the edits that set a key of the front matter to value, leaving every other byte as it is; a page
// without front matter gets one. A value that reads as a number, a boolean or a [list] is written as such, unless the
// key holds text now or always does.
func (p *Page) SetFront(key, value string) ([]Edit, error) {
	if err := p.frontEditable(key); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == 0xFFFD }) {
		return nil, fmt.Errorf("the value of %s is not one line of text", key)
	}
	eol := p.eol()
	old, had := p.Front.Values[key]
	_, oldText := old.(string)
	asText := textKeys[key] || had && oldText
	if p.Front.Kind == "" {
		at := p.Body.Start
		block := "---" + eol + key + ": " + yamlScalar(value, asText, '"') + eol + "---" + eol
		if at < len(p.Src) && p.Src[at] != '\n' && p.Src[at] != '\r' {
			block += eol
		}
		return p.checked([]Edit{{Span{at, at}, []byte(block)}}, key, value, true)
	}
	_, end, keyEnd, ok := p.frontEntry(key)
	quote := byte(0)
	if ok {
		for _, c := range p.Src[keyEnd:end] {
			if c == '"' || c == '\'' {
				quote = c
				break
			} else if !isSpace(c) {
				break
			}
		}
	} else {
		quote = p.frontQuote()
	}
	var written string
	if p.Front.Kind == "toml" {
		written = tomlScalar(value, asText)
	} else {
		written = yamlScalar(value, asText, quote)
	}
	if !ok {
		at := p.Front.Body.End
		assign := ": "
		if p.Front.Kind == "toml" {
			assign = " = "
			if m := tomlTable.FindIndex(p.Src[p.Front.Body.Start:p.Front.Body.End]); m != nil {
				at = p.Front.Body.Start + m[0]
			}
		}
		return p.checked([]Edit{{Span{at, at}, []byte(key + assign + written + eol)}}, key, value, true)
	}
	// Only the value: a comment behind it stays.
	val := p.Src[keyEnd:end]
	if !bytes.Contains(bytes.TrimRight(val, "\r\n"), []byte("\n")) {
		if c := trailingComment(val); c >= 0 {
			val = val[:c]
		}
	}
	val = bytes.TrimRight(val, " \t\r\n")
	return p.checked([]Edit{{Span{keyEnd, keyEnd + len(val)}, []byte(" " + written)}}, key, value, true)
}

// AddToFront returns the edits that add an item to a list of the front matter, which may be a single value or not be
// there yet, leaving every other byte as it is.
func (p *Page) AddToFront(key, item string) ([]Edit, error) {
	quoted := yamlScalar(item, true, 0)
	if p.Front.Kind == "toml" {
		quoted = yamlQuote(item)
	}
	if p.Front.Kind == "" {
		eol := p.eol()
		at := Span{p.Body.Start, p.Body.Start}
		return []Edit{{at, []byte("---" + eol + key + ": [" + quoted + "]" + eol + "---" + eol + eol)}}, nil
	}
	old, there := p.Front.Values[key]
	start, end, keyEnd, ok := p.frontEntry(key)
	switch {
	case !there:
		return p.SetFront(key, "["+quoted+"]")
	case !ok:
		return nil, fmt.Errorf("%s of %s stands in a form that cannot be edited", key, p.Path)
	}
	entry := p.Src[start:end]
	var edit Edit
	text, single := old.(string)
	open, closing := bytes.IndexByte(p.Src[keyEnd:end], '['), bytes.LastIndexByte(entry, ']')
	switch {
	case single:
		was := yamlScalar(text, true, 0)
		if p.Front.Kind == "toml" {
			was = yamlQuote(text)
		}
		at := bytes.TrimRight(p.Src[keyEnd:end], " \t\r\n")
		if c := trailingComment(at); c >= 0 {
			at = bytes.TrimRight(at[:c], " \t")
		}
		edit = Edit{Span{keyEnd, keyEnd + len(at)}, []byte(" [" + was + ", " + quoted + "]")}
	case open >= 0 && closing >= 0:
		lead := ", "
		if len(bytes.Trim(p.Src[keyEnd+open+1:start+closing], " \t\r\n")) == 0 {
			lead = ""
		}
		edit = Edit{Span{start + closing, start + closing}, []byte(lead + quoted)}
	default: // an item a line
		dash := bytes.LastIndex(entry, []byte("- "))
		if dash < 0 || p.Front.Kind != "yaml" {
			return nil, fmt.Errorf("%s of %s stands in a form that cannot be edited", key, p.Path)
		}
		begin := bytes.LastIndexByte(entry[:dash], '\n') + 1
		at := start + nextLine(entry, dash, len(entry))
		edit = Edit{Span{at, at}, []byte(string(entry[begin:dash]) + "- " + quoted + p.eol())}
	}
	out, err := Apply(p.Src, []Edit{edit})
	if err != nil {
		return nil, err
	}
	q := &Page{Path: p.Path, Src: out, Body: Span{p.bom(), len(out)}}
	q.readFront(p.bom())
	if list, ok := q.Front.Values[key].([]any); !ok || !slices.Contains(list, any(item)) || len(q.Front.Values) != len(p.Front.Values) {
		return nil, fmt.Errorf("%s of %s cannot be edited by itself", key, p.Path)
	}
	return []Edit{edit}, nil
}

// FrontValue finds the value of a top-level key, with its quotes and all its lines but without a comment.
func (p *Page) FrontValue(key string) (Span, bool) {
	if p.Front.Values == nil {
		return Span{}, false
	}
	_, end, keyEnd, ok := p.frontEntry(key)
	if !ok {
		return Span{}, false
	}
	val := p.Src[keyEnd:end]
	if !bytes.Contains(bytes.TrimRight(val, "\r\n"), []byte("\n")) {
		if c := trailingComment(val); c >= 0 {
			val = val[:c]
		}
	}
	val = bytes.TrimRight(val, " \t\r\n")
	blank := len(val) - len(bytes.TrimLeft(val, " \t"))
	return Span{keyEnd + blank, keyEnd + len(val)}, true
}

// RemoveFront returns the edits that remove a key of the front matter with its value.
func (p *Page) RemoveFront(key string) ([]Edit, error) {
	if err := p.frontEditable(key); err != nil {
		return nil, err
	}
	start, end, _, ok := p.frontEntry(key)
	if !ok {
		return nil, fmt.Errorf("the front matter has no %s", key)
	}
	return p.checked([]Edit{{Span{start, end}, nil}}, key, "", false)
}

func (p *Page) frontEditable(key string) error {
	if !frontKey.MatchString(key) {
		return fmt.Errorf("%q is no key of a front matter", key)
	}
	if p.Format != Markdown && p.Format != MDX {
		return fmt.Errorf("%s is no Markdown page", p.Path)
	}
	if p.Front.Kind != "" && p.Front.Values == nil {
		return fmt.Errorf("the front matter of %s does not parse", p.Path)
	}
	return nil
}

// checked makes sure that an edit of one key changes that key alone.
func (p *Page) checked(edits []Edit, key, value string, present bool) ([]Edit, error) {
	out, err := Apply(p.Src, edits)
	if err != nil {
		return nil, err
	}
	q := &Page{Path: p.Path, Src: out, Body: Span{p.bom(), len(out)}}
	q.readFront(p.bom())
	now, has := q.Front.Values[key]
	n := len(p.Front.Values)
	if _, had := p.Front.Values[key]; had != present {
		if present {
			n++
		} else {
			n--
		}
	}
	if q.Front.Values == nil || has != present || len(q.Front.Values) != n {
		return nil, fmt.Errorf("%s cannot be edited by itself in the front matter of %s", key, p.Path)
	}
	if s, ok := now.(string); ok && present && s != value {
		return nil, fmt.Errorf("%s cannot hold %q in the front matter of %s", key, value, p.Path)
	}
	for k, v := range p.Front.Values {
		if k != key && !reflect.DeepEqual(v, q.Front.Values[k]) {
			return nil, fmt.Errorf("%s cannot be edited by itself in the front matter of %s", key, p.Path)
		}
	}
	return edits, nil
}

func (p *Page) bom() int {
	if bytes.HasPrefix(p.Src, []byte("\xef\xbb\xbf")) {
		return 3
	}
	return 0
}

func (p *Page) eol() string {
	if i := bytes.IndexByte(p.Src, '\n'); i > 0 && p.Src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

var tomlTable = regexp.MustCompile(`(?m)^[ \t]*\[`)

// frontEntry finds the lines of a top-level key: with all its value's lines, and where the key and its colon end.
func (p *Page) frontEntry(key string) (start, end, keyEnd int, ok bool) {
	body := p.Front.Body
	var re *regexp.Regexp
	if p.Front.Kind == "toml" {
		re = regexp.MustCompile(`^(?:` + regexp.QuoteMeta(key) + `|"` + regexp.QuoteMeta(key) + `")[ \t]*=`)
	} else {
		re = regexp.MustCompile(`^(?:` + regexp.QuoteMeta(key) + `|"` + regexp.QuoteMeta(key) + `"|'` +
			regexp.QuoteMeta(key) + `')[ \t]*:(?:[ \t\r\n]|$)`)
	}
	pos := body.Start
	for pos < body.End {
		next := nextLine(p.Src, pos, body.End)
		if p.Front.Kind == "toml" && tomlTable.Match(p.Src[pos:next]) {
			return 0, 0, 0, false
		}
		if m := re.FindIndex(p.Src[pos:next]); m != nil {
			keyEnd = pos + m[1]
			if c := p.Src[keyEnd-1]; c == '\n' || c == '\r' || c == ' ' || c == '\t' {
				keyEnd--
			}
			end = next
			for at := next; at < body.End; {
				n := nextLine(p.Src, at, body.End)
				l := p.Src[at:n]
				text := bytes.TrimSpace(l)
				if p.Front.Kind == "yaml" {
					if len(text) > 0 && l[0] != ' ' && l[0] != '\t' && !bytes.HasPrefix(text, []byte("- ")) && string(text) != "-" {
						break
					}
				} else if _, err := readValues("toml", p.Src[pos:end]); err == nil {
					break
				}
				at = n
				if len(text) > 0 {
					end = n
				}
			}
			return pos, end, keyEnd, true
		}
		pos = next
	}
	return 0, 0, 0, false
}

func nextLine(src []byte, pos, end int) int {
	if i := bytes.IndexByte(src[pos:end], '\n'); i >= 0 {
		return pos + i + 1
	}
	return end
}

// trailingComment finds " # …" behind a scalar on one line, or -1.
func trailingComment(v []byte) int {
	quote := byte(0)
	for i, c := range v {
		switch {
		case quote != 0:
			if c == quote && !(quote == '"' && v[i-1] == '\\') {
				quote = 0
			}
		case (c == '"' || c == '\'') && len(bytes.TrimSpace(v[:i])) == 0:
			quote = c
		case c == '#' && i > 0 && (v[i-1] == ' ' || v[i-1] == '\t'):
			return i
		}
	}
	return -1
}

// frontQuote is the quote that the front matter writes its text with, 0 for none.
func (p *Page) frontQuote() byte {
	counts := map[byte]int{}
	for _, l := range bytes.Split(p.Src[p.Front.Body.Start:p.Front.Body.End], []byte("\n")) {
		if _, v, ok := bytes.Cut(l, []byte(":")); ok && keyLine.Match(l) {
			if v = bytes.TrimSpace(v); len(v) > 0 && (v[0] == '"' || v[0] == '\'') {
				counts[v[0]]++
			} else if len(v) > 0 {
				counts[0]++
			}
		}
	}
	if counts['"'] >= counts[0] && counts['"'] >= counts['\''] && counts['"'] > 0 {
		return '"'
	}
	if counts['\''] > counts[0] {
		return '\''
	}
	return 0
}

func yamlScalar(value string, text bool, quote byte) string {
	var read any
	err := formats.YAML([]byte(value), &read)
	if !text && err == nil && value != "" {
		switch read.(type) {
		case bool, int, float64:
			return value
		case []any:
			if strings.HasPrefix(value, "[") {
				return value
			}
		}
	}
	s, plain := read.(string)
	plain = plain && err == nil && s == value && !strings.Contains(value, ": ") && !strings.Contains(value, " #") &&
		value != ""
	switch {
	case quote == '\'':
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	case quote == '"' || !plain:
		return yamlQuote(value)
	}
	return value
}

func yamlQuote(value string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`)
	return `"` + r.Replace(value) + `"`
}

func tomlScalar(value string, text bool) string {
	if !text {
		if _, err := strconv.ParseFloat(value, 64); err == nil && !strings.ContainsAny(value, "xXpPnN_") {
			return value
		}
		if value == "true" || value == "false" {
			return value
		}
		if strings.HasPrefix(value, "[") {
			if _, err := readValues("toml", []byte("v = "+value)); err == nil {
				return value
			}
		}
	}
	return yamlQuote(value)
}

// FrontPaths names the values of the front matter that stand below others and that a key may mean, with dots between:
// seo.title for title, and for seo.title. A key that stands at the top means nothing else.
func (p *Page) FrontPaths(key string) []string {
	if _, ok := p.Front.Values[key]; ok {
		return nil
	}
	var out []string
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, below := range v {
				name := prefix + k
				if prefix != "" && (k == key || name == key) {
					out = append(out, name)
				}
				walk(name+".", below)
			}
		case []any:
			for i, below := range v {
				walk(fmt.Sprintf("%s%d.", prefix, i+1), below)
			}
		}
	}
	walk("", p.Front.Values)
	slices.Sort(out)
	return out
}

// SetNested returns the edit that sets a value below others, named as by FrontPaths, leaving every other byte as it is.
// If was is not empty, it must be the value now.
func (p *Page) SetNested(path, value, was string) ([]Edit, error) {
	if p.Front.Kind != "yaml" {
		return nil, fmt.Errorf("%s stands in a table of the front matter of %s, which is not edited", path, p.Path)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == 0xFFFD }) {
		return nil, fmt.Errorf("the value of %s is not one line of text", path)
	}
	var doc yaml.Node
	if err := formats.YAML(p.Src[p.Front.Body.Start:p.Front.Body.End], &doc); err != nil {
		return nil, fmt.Errorf("the front matter of %s does not parse", p.Path)
	}
	node := nestedNode(&doc, path)
	if node == nil || node.Kind != yaml.ScalarNode || node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return nil, fmt.Errorf("%s of %s is no value on one line", path, p.Path)
	}
	if was != "" && node.Value != was {
		return nil, fmt.Errorf("%s of %s is %q, not %q", path, p.Path, node.Value, was)
	}
	at := p.Front.Body.Start
	for range node.Line - 1 {
		at = nextLine(p.Src, at, p.Front.Body.End)
	}
	end := nextLine(p.Src, at, p.Front.Body.End)
	for i := 1; i < node.Column && at < end; i++ {
		_, n := utf8.DecodeRune(p.Src[at:end])
		at += n
	}
	val := bytes.TrimRight(p.Src[at:end], "\r\n")
	if c := trailingComment(val); c >= 0 {
		val = val[:c]
	}
	val = bytes.TrimRight(val, " \t")
	quote := byte(0)
	if len(val) > 0 && (val[0] == '"' || val[0] == '\'') {
		quote = val[0]
	}
	edits := []Edit{{Span{at, at + len(val)}, []byte(yamlScalar(value, node.Tag == "!!str", quote))}}
	out, err := Apply(p.Src, edits)
	if err != nil {
		return nil, err
	}
	q := &Page{Path: p.Path, Src: out, Body: Span{p.bom(), len(out)}}
	q.readFront(p.bom())
	var now yaml.Node
	if q.Front.Values == nil || formats.YAML(out[q.Front.Body.Start:q.Front.Body.End], &now) != nil {
		return nil, fmt.Errorf("%s cannot be edited by itself in the front matter of %s", path, p.Path)
	}
	if set := nestedNode(&now, path); set == nil || set.Value != value {
		return nil, fmt.Errorf("%s cannot hold %q in the front matter of %s", path, value, p.Path)
	} else { // but for this value, nothing is other than before
		set.Value, set.Tag, node.Value, node.Tag = "", "", "", ""
	}
	if !sameNodes(&doc, &now) {
		return nil, fmt.Errorf("%s cannot be edited by itself in the front matter of %s", path, p.Path)
	}
	return edits, nil
}

// nestedNode finds the value that a path names; nil if there is none.
func nestedNode(n *yaml.Node, path string) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		return nestedNode(n.Content[0], path)
	}
	if path == "" {
		return n
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if rest, ok := strings.CutPrefix(path, n.Content[i].Value); ok && (rest == "" || rest[0] == '.') {
				if found := nestedNode(n.Content[i+1], strings.TrimPrefix(rest, ".")); found != nil {
					return found
				}
			}
		}
	case yaml.SequenceNode:
		number, rest, _ := strings.Cut(path, ".")
		if i, err := strconv.Atoi(number); err == nil && i > 0 && i <= len(n.Content) {
			return nestedNode(n.Content[i-1], rest)
		}
	}
	return nil
}

// sameNodes reports whether two trees of nodes hold the same values.
func sameNodes(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Value == b.Value && a.Tag == b.Tag && slices.EqualFunc(a.Content, b.Content, sameNodes)
}

// FrontLines are the values of front matter that does not parse, as far as they stand on one line.
func FrontLines(text string) map[string]any {
	values := make(map[string]any)
	for line := range strings.Lines(text) {
		i := strings.IndexAny(line, ":=")
		if i <= 0 {
			continue
		}
		value, _, _ := strings.Cut(line[i+1:], " #")
		if key := strings.TrimSpace(line[:i]); values[key] == nil {
			values[key] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	for _, key := range []string{"_build", "build"} {
		if values["render"] != nil && values[key] != nil {
			values[key] = map[string]any{"render": values["render"]}
		}
	}
	return values
}

// groupsKey is, in front matter that does not parse, a key that says for whom the page is.
var groupsKey = regexp.MustCompile(`(?im)(?:^|[{,])[ \t"']*groups["']?[ \t]*[:=]`)

// Groups are those whose readers alone may read a page of that source, as its front matter says under "groups", in whatever
// spelling; none if everybody may. What it says there and cannot be read is a group that nobody is in: no page is open by a
// slip.
func (f Front) Groups(src []byte) (groups []string) {
	values := f.Values
	if values == nil && f.Kind != "" {
		text := string(src[f.Body.Start:f.Body.End])
		if !groupsKey.MatchString(text) {
			return nil
		}
		values = FrontLines(text)
		defer func() {
			if len(groups) == 0 {
				groups = []string{""}
			}
		}()
	}
	for key, value := range values {
		if !strings.EqualFold(key, "groups") {
			continue
		}
		named := FrontList(values, key)
		text, isText := value.(string)
		list, isList := value.([]any)
		if len(named) == 0 && value != nil && !(isText && strings.TrimSpace(text) == "") && !(isList && len(list) == 0) {
			named = []string{""}
		}
		groups = append(groups, named...)
	}
	return groups
}

// FrontText is the first of these keys that holds a text or a number.
func FrontText(values map[string]any, keys ...string) string {
	for _, k := range keys {
		switch v := values[k].(type) {
		case string:
			if v = strings.TrimSpace(v); v != "" {
				return v
			}
		case int, int64, uint64, float64:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// FrontList is the texts of lists, or those that commas separate, under these keys.
func FrontList(values map[string]any, keys ...string) (out []string) {
	for _, k := range keys {
		var list []string
		switch v := values[k].(type) {
		case string:
			list = strings.Split(v, ",")
		case int, int64, uint64, float64:
			list = []string{fmt.Sprint(v)}
		case []any:
			for _, x := range v {
				if m, ok := x.(map[string]any); ok { // a tag of Docusaurus: {label, permalink}
					x = m["label"]
				}
				if x != nil {
					list = append(list, fmt.Sprint(x))
				}
			}
		}
		for _, text := range list {
			if text = strings.TrimSpace(text); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}
