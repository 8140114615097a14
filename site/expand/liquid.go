package expand

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"docent/site/markup"
)

// Bounds of what a page's Liquid may do.
const (
	mostSteps    = 20_000 // tags that are evaluated, each time, and turns of loops
	perStep      = 32     // elements of a list, or bytes of a text, that a filter or a comparison looks at
	deepestBlock = 32
)

// ErrUnknown stands for a value of a site that only a build of it knows.
var ErrUnknown = errors.New("it is not known")

// A liquidReader evaluates what of Jekyll's Liquid decides which text stands on a page: branches, loops over data, and the values that
// they name. What it does not know stays as it is, for those who know it; a block that depends on such a thing is left out and
// counted. There is a library that evaluates Liquid, but nothing bounds the time that its loops take.
type liquidReader struct {
	*expander
	scopes []map[string]any // the innermost last
	page   map[string]any   // once it is asked for
	steps  int
}

var (
	liquidToken   = regexp.MustCompile(`(?s)\{%-?.*?-?%\}|\{\{-?.*?-?\}\}`)
	liquidWord    = regexp.MustCompile(`^\{%-?\s*(\w+)\s*(.*?)\s*-?%\}$`)
	liquidFor     = regexp.MustCompile(`^([\w-]+)\s+in\s+(\(.*?\)|\S+)\s*(.*)$`)
	liquidAssign  = regexp.MustCompile(`(?s)^([\w-]+)\s*=\s*(.*)$`)
	liquidOption  = regexp.MustCompile(`\b(limit|offset)\s*:\s*(\S+)`)
	liquidRange   = regexp.MustCompile(`^\((\S+?)\.\.(\S+?)\)$`)
	liquidCompare = regexp.MustCompile(`(?s)^(.*?)\s*(==|!=|<>|>=|<=|>|<|\bcontains\b)\s*(.*)$`)
	liquidParam   = regexp.MustCompile(`([\w-]+)\s*=\s*([A-Za-z_][\w.\[\]-]*)`)
	liquidEnds    = map[string]*regexp.Regexp{
		"raw": regexp.MustCompile(`\{%-?\s*endraw\s*-?%\}`), "comment": regexp.MustCompile(`\{%-?\s*endcomment\s*-?%\}`),
	}
	liquidBlocks = words("if unless case for capture tablerow comment highlight raw")
	liquidURL    = regexp.MustCompile(`^(.*?)\s*\|\s*(relative_url|absolute_url)$`)
	siteValue    = regexp.MustCompile(`^site\.(?:baseurl|url)$`)
)

// A liquidPart is text, a tag or a value; of a block also what it holds.
type liquidPart struct {
	text       string  // as it is written
	word, args string  // of a tag
	value      string  // of {{ value }}
	trims      [2]bool // blanks before and behind it are taken away
	open       bool
	parts      []liquidPart // of a block: with its branches among them
	end        string       // the tag that closes it
}

// liquid evaluates the Liquid of a page.
func (x *expander) liquid(content []byte, props map[string]any) text {
	if !strings.Contains(string(content), "{%") {
		return content
	}
	r := &liquidReader{expander: x, scopes: []map[string]any{{"include": props}}}
	tokens := liquidTokens(string(content))
	parts, rest := nested(tokens, "", 0)
	if len(rest) > 0 {
		return content // blocks that do not close
	}
	var out text
	r.write(&out, parts)
	return out
}

// liquidTokens cuts a text at its tags and values.
func liquidTokens(s string) (out []liquidPart) {
	at := 0
	endless := map[string]bool{}
	for _, m := range liquidToken.FindAllStringIndex(s, -1) {
		if m[0] < at {
			continue
		}
		out = append(out, liquidPart{text: s[at:m[0]]})
		t := s[m[0]:m[1]]
		p := liquidPart{text: t, trims: [2]bool{strings.HasPrefix(t[2:], "-"), strings.HasSuffix(t[:len(t)-2], "-")}}
		if w := liquidWord.FindStringSubmatch(t); w != nil {
			p.word, p.args = w[1], w[2]
		} else if t[1] == '{' {
			p.value = strings.TrimSpace(strings.Trim(t[2:len(t)-2], "-"))
		}
		at = m[1]
		if ends := liquidEnds[p.word]; ends != nil && !endless[p.word] { // nothing in it is a tag
			end := ends.FindStringIndex(s[at:])
			endless[p.word] = end == nil
			if end != nil {
				p.text, p.word = s[m[0]:at+end[1]], ""
				at += end[1]
			}
		}
		out = append(out, p)
	}
	out = append(out, liquidPart{text: s[at:]})
	for i, p := range out {
		if p.trims[0] {
			out[i-1].text = strings.TrimRight(out[i-1].text, " \t\r\n")
		}
		if p.trims[1] {
			out[i+1].text = strings.TrimLeft(out[i+1].text, " \t\r\n")
		}
	}
	return out
}

// nested are the parts up to the tag that closes a block, with blocks within each other; rest begins with that tag.
func nested(tokens []liquidPart, block string, depth int) (parts, rest []liquidPart) {
	for i := 0; i < len(tokens); {
		t := tokens[i]
		switch {
		case block != "" && t.word == "end"+block:
			return parts, tokens[i:]
		case liquidBlocks[t.word] && depth < deepestBlock:
			inner, after := nested(tokens[i+1:], t.word, depth+1)
			if len(after) == 0 {
				return parts, tokens[i:]
			}
			t.parts, t.end, t.open = inner, after[0].text, true
			parts = append(parts, t)
			tokens, i = after[1:], 0
		default:
			parts = append(parts, t)
			i++
		}
	}
	if block != "" {
		return parts, nil
	}
	return parts, tokens[len(tokens):]
}

// write writes parts as they are evaluated.
func (r *liquidReader) write(out *text, parts []liquidPart) {
	for i := range parts {
		p := &parts[i]
		if r.steps++; r.steps > mostSteps || len(*out) > mostMade {
			r.lose("Liquid")
			return
		}
		switch {
		case p.value != "":
			r.show(out, p)
		case p.word == "":
			out.write(p.text)
		default:
			r.tag(out, p)
		}
	}
}

// show writes a value, or leaves it to others.
func (r *liquidReader) show(out *text, p *liquidPart) {
	of, site := p.value, ""
	if m := liquidURL.FindStringSubmatch(of); m != nil { // as links have it
		of, site = m[1], m[2]
	}
	v, err := r.eval(of)
	s, isText := shownValue(v)
	switch {
	case site != "" && err == nil && isText && !strings.Contains(s, `"`) && r.gives(len(s)):
		out.write(`{{ "` + s + `" | ` + site + " }}")
	case err == nil && site == "" && (isText || v == nil && len(r.scopes) > 1) && !siteValue.MatchString(of) && r.gives(len(s)):
		out.write(s)
	case len(r.scopes) > 1: // a loop's own value, which nobody else knows
		r.lose(p.text)
	default:
		out.write(p.text)
	}
}

// shownValue is a value as it is shown.
func shownValue(v any) (string, bool) {
	switch v := v.(type) {
	case string, bool, int, int64, uint64, float64:
		return fmt.Sprint(v), true
	case []any:
		var b strings.Builder
		for _, e := range v {
			s, ok := shownValue(e)
			if !ok {
				return "", false
			}
			b.WriteString(s)
		}
		return b.String(), true
	}
	return "", false
}

func (r *liquidReader) tag(out *text, p *liquidPart) {
	var err error
	switch p.word {
	case "if", "unless", "case":
		err = r.branch(out, p)
	case "for":
		err = r.loop(out, p)
	case "assign":
		err = r.assign(p.args)
	case "capture":
		var of text
		r.write(&of, p.parts)
		r.scopes[0][strings.Trim(p.args, `"'`)] = string(of)
	case "include", "include_cached", "include_relative":
		out.write(liquidParam.ReplaceAllStringFunc(p.text, func(s string) string {
			m := liquidParam.FindStringSubmatch(s)
			if v, err := r.eval(m[2]); err == nil {
				if s, ok := shownValue(v); ok && !strings.ContainsAny(s, "\"%") {
					return m[1] + `="` + s + `"`
				}
			}
			return s
		}))
	default:
		out.write(p.text)
		if p.open {
			r.write(out, p.parts)
			out.write(p.end)
		}
	}
	if err != nil {
		r.lose(p.text)
	}
}

// branch writes the first branch whose condition holds.
func (r *liquidReader) branch(out *text, p *liquidPart) error {
	condition, subject := p.args, p.args
	holds := func(word, condition string) (bool, error) {
		switch word {
		case "else":
			return true, nil
		case "unless":
			is, err := r.holds(condition)
			return !is, err
		case "when":
			for _, of := range outside(condition, 100, ",", " or ") {
				if is, err := r.holds(subject + " == " + of); is || err != nil {
					return is, err
				}
			}
			return false, nil
		}
		return r.holds(condition)
	}
	is, err := false, error(nil)
	if p.word != "case" {
		is, err = holds(p.word, condition)
	}
	from := 0
	for i := 0; err == nil && i <= len(p.parts); i++ {
		if i < len(p.parts) {
			if w := p.parts[i].word; w != "else" && w != "elsif" && w != "when" {
				continue
			}
		}
		if is {
			r.write(out, p.parts[from:i])
			return nil
		}
		if i < len(p.parts) {
			is, err = holds(p.parts[i].word, p.parts[i].args)
		}
		from = i + 1
	}
	return err
}

// outside cuts a text, into at most so many parts, at separators that do not stand within quotes.
func outside(s string, most int, separators ...string) (out []string) {
	s = strings.TrimSpace(s)
	quote, from := byte(0), 0
	for i := 0; i < len(s) && len(out) < most-1; i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		default:
			for _, of := range separators {
				if strings.HasPrefix(s[i:], of) {
					out = append(out, strings.TrimSpace(s[from:i]))
					from = i + len(of)
					i = from - 1
					break
				}
			}
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}

// holds evaluates a condition; as in Liquid, what stands last binds first.
func (r *liquidReader) holds(s string) (bool, error) {
	if r.steps++; s == "" || r.steps > mostSteps {
		return false, ErrUnknown
	}
	if all := outside(s, 2, " and ", " or "); len(all) == 2 {
		op := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, all[0]), all[1]))
		is, err := r.holds(all[0])
		if err != nil || is == (op == "or") {
			return is, err
		}
		return r.holds(all[1])
	}
	m := liquidCompare.FindStringSubmatch(s)
	if m == nil {
		v, err := r.eval(s)
		return v != nil && v != false, err
	}
	a, err := r.eval(m[1])
	if err != nil {
		return false, err
	}
	b, err := r.eval(m[3])
	if err != nil {
		return false, err
	}
	if m[3] == "empty" || m[3] == "blank" {
		s, isText := a.(string)
		list, isList := a.([]any)
		none := isText && s == "" || isList && len(list) == 0 || a == nil && m[3] == "blank"
		return none == (m[2] == "=="), nil
	}
	if !r.looksAt(a) || !r.looksAt(b) {
		return false, ErrUnknown
	}
	return compared(a, m[2], b)
}

// looksAt counts what it takes to go through a value, and reports whether that may go on: a loop over a long list would take
// minutes of it.
func (r *liquidReader) looksAt(v any) bool {
	switch v := v.(type) {
	case string:
		r.steps += len(v) / perStep
	case []any:
		r.steps += len(v) / perStep
	}
	return r.steps <= mostSteps
}

// spelled is a value as others are compared with it; of a list or a map nothing, since nothing bounds what is in it.
func spelled(v any) string {
	if isCollection(v) {
		return ""
	}
	return fmt.Sprint(v)
}

func isCollection(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

func compared(a any, op string, b any) (bool, error) {
	x, isNumber := toNumber(a)
	y, both := toNumber(b)
	switch s, of := spelled(a), spelled(b); {
	case op == "contains":
		if list, ok := a.([]any); ok {
			return slices.ContainsFunc(list, func(e any) bool { return !isCollection(e) && spelled(e) == of }), nil
		}
		return a != nil && strings.Contains(s, of), nil
	case isCollection(a) && isCollection(b):
		return false, ErrUnknown
	case isCollection(a) || isCollection(b):
		return op == "!=" || op == "<>", nil
	case op == "==":
		return (a == nil) == (b == nil) && s == of, nil
	case op == "!=" || op == "<>":
		return (a == nil) != (b == nil) || s != of, nil
	case !isNumber || !both:
		return false, nil
	case op == ">":
		return x > y, nil
	case op == "<":
		return x < y, nil
	case op == ">=":
		return x >= y, nil
	}
	return x <= y, nil
}

func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// loop writes what a block holds for each element of a list.
func (r *liquidReader) loop(out *text, p *liquidPart) error {
	m := liquidFor.FindStringSubmatch(p.args)
	if m == nil {
		return ErrUnknown
	}
	list, err := r.list(m[2])
	if err != nil {
		return err
	}
	for _, of := range liquidOption.FindAllStringSubmatch(m[3], -1) {
		v, err := r.eval(of[2])
		n, isNumber := toNumber(v)
		if err != nil || !isNumber || n < 0 {
			return ErrUnknown
		}
		if at := min(int(min(n, 1e6)), len(list)); of[1] == "limit" {
			list = list[:at]
		} else {
			list = list[at:]
		}
	}
	if strings.Contains(" "+m[3]+" ", " reversed ") {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	body, otherwise := p.parts, []liquidPart(nil)
	if i := slices.IndexFunc(body, func(p liquidPart) bool { return p.word == "else" }); i >= 0 {
		body, otherwise = body[:i], body[i+1:]
	}
	if len(list) == 0 {
		r.write(out, otherwise)
	}
	for i, v := range list {
		if r.steps > mostSteps || len(*out) > mostMade {
			return ErrUnknown
		}
		r.steps++
		r.scopes = append(r.scopes, map[string]any{m[1]: v, "forloop": map[string]any{"index": i + 1, "index0": i, "first": i == 0,
			"last": i == len(list)-1, "length": len(list), "rindex": len(list) - i}})
		r.write(out, body)
		r.scopes = r.scopes[:len(r.scopes)-1]
	}
	return nil
}

// list is what a loop goes over.
func (r *liquidReader) list(of string) ([]any, error) {
	if m := liquidRange.FindStringSubmatch(of); m != nil {
		a, err := r.eval(m[1])
		b, err2 := r.eval(m[2])
		from, ok := toNumber(a)
		to, ok2 := toNumber(b)
		if err != nil || err2 != nil || !ok || !ok2 || to-from > 1000 {
			return nil, ErrUnknown
		}
		var out []any
		for n := int(from); n <= int(to); n++ {
			out = append(out, n)
		}
		return out, nil
	}
	v, err := r.eval(of)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []any:
		return v, nil
	case map[string]any: // in the order of their names, as the file's is not kept
		var out []any
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, []any{key, v[key]})
		}
		return out, nil
	case nil:
		return nil, nil
	}
	return nil, ErrUnknown
}

func (r *liquidReader) assign(s string) error {
	m := liquidAssign.FindStringSubmatch(s)
	if m == nil {
		return ErrUnknown
	}
	v, err := r.eval(m[2])
	if err != nil {
		r.scopes[0][m[1]] = err
		return nil // what uses it is left out
	}
	r.scopes[0][m[1]] = v
	return nil
}

// eval is what an expression with its filters stands for.
func (r *liquidReader) eval(s string) (any, error) {
	parts := outside(s, 20, "|")
	v, err := r.operand(parts[0])
	for _, filter := range parts[1:] {
		name, args, _ := strings.Cut(filter, ":")
		if name = strings.TrimSpace(name); name == "default" && (err != nil || v == nil || v == "" || v == false) {
			v, err = r.operand(strings.TrimSpace(args))
			continue
		}
		if err != nil {
			return nil, err
		}
		var given []any
		if strings.TrimSpace(args) != "" {
			for _, of := range outside(args, 10, ",") {
				a, err := r.operand(of)
				if err != nil {
					return nil, err
				}
				given = append(given, a)
			}
		}
		if !r.looksAt(v) || slices.ContainsFunc(given, func(a any) bool { return !r.looksAt(a) }) {
			return nil, ErrUnknown
		}
		if v, err = filtered(v, name, given); err != nil {
			return nil, err
		}
		if s, ok := v.(string); ok && len(s) > 1<<16 {
			return nil, ErrUnknown
		}
	}
	return v, err
}

// unknownOf are what only a build knows of a site and a page.
var unknownOf = map[string]map[string]bool{
	"site": words("pages posts html_pages html_files static_files related_posts documents time github tags categories collections drafts"),
	"page": words("url path content excerpt next previous id relative_path dir name collection date output"),
}

// operand is a literal or a variable.
func (r *liquidReader) operand(s string) (any, error) {
	switch s = strings.TrimSpace(s); {
	case s == "nil" || s == "null" || s == "":
		return nil, nil
	case s == "empty" || s == "blank":
		return "", nil
	case s == "true" || s == "false":
		return s == "true", nil
	case s[0] == '"' || s[0] == '\'':
		if len(s) > 1 && s[len(s)-1] == s[0] {
			return s[1 : len(s)-1], nil
		}
		return nil, ErrUnknown
	}
	if n, err := strconv.Atoi(s); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n, nil
	}
	names := variable.FindAllStringSubmatch(s, -1)
	if variable.ReplaceAllString(s, "") != "" || len(names) == 0 {
		return nil, ErrUnknown
	}
	v, err := r.root(names[0][1])
	for i, m := range names[1:] {
		if err != nil {
			return nil, err
		}
		key := any(m[1])
		if m[2] != "" {
			if key, err = r.operand(m[2]); err != nil {
				return nil, err
			}
		}
		root := names[0][1]
		if held, _ := v.(map[string]any); i == 0 && held[fmt.Sprint(key)] == nil && unknownOf[root][fmt.Sprint(key)] {
			return nil, ErrUnknown
		}
		v = member(v, key)
	}
	if failed, is := v.(error); is {
		return nil, failed
	}
	return v, err
}

var variable = regexp.MustCompile(`(?:^|\.)([A-Za-z_][\w-]*)|\[([^\[\]]+)\]`)

// root is what the first name of a variable stands for.
func (r *liquidReader) root(name string) (any, error) {
	for _, scope := range slices.Backward(r.scopes) {
		if v, ok := scope[name]; ok {
			return v, nil
		}
	}
	switch name {
	case "page":
		if r.page == nil {
			r.page = map[string]any{}
			defaults, _ := r.Values["page"].(map[string]any)
			maps.Copy(r.page, defaults)
			maps.Copy(r.page, r.front)
		}
		return r.page, nil
	case "jekyll":
		return map[string]any{"environment": "production"}, nil
	case "layout", "paginator", "content", "theme":
		return nil, ErrUnknown
	}
	return r.Values[name], nil
}

// member is a part of a value.
func member(v, key any) any {
	switch v := v.(type) {
	case map[string]any:
		if e, ok := v[fmt.Sprint(key)]; ok || key != "size" {
			return e
		}
		return len(v)
	case []any:
		switch n, isNumber := toNumber(key); {
		case key == "first" && len(v) > 0:
			return v[0]
		case key == "last" && len(v) > 0:
			return v[len(v)-1]
		case key == "size":
			return len(v)
		case isNumber && n < 0 && int(n)+len(v) >= 0:
			return v[int(n)+len(v)]
		case isNumber && n >= 0 && int(n) < len(v):
			return v[int(n)]
		}
	case string:
		if key == "size" {
			return utf8.RuneCountInString(v)
		}
	}
	return nil
}

// filtered is a value that a filter changes.
func filtered(v any, name string, args []any) (any, error) {
	arg := func(n int) string {
		if n < len(args) {
			return spelled(args[n])
		}
		return ""
	}
	if list, ok := v.([]any); ok {
		return filteredList(list, name, arg)
	}
	s, isText := shownValue(v)
	if !isText && v != nil {
		return nil, ErrUnknown
	}
	switch name {
	case "upcase":
		return strings.ToUpper(s), nil
	case "downcase":
		return strings.ToLower(s), nil
	case "capitalize":
		return strings.ToUpper(s[:min(1, len(s))]) + strings.ToLower(s[min(1, len(s)):]), nil
	case "strip", "escape", "escape_once", "markdownify", "xml_escape", "smartify", "lstrip", "rstrip":
		return strings.TrimSpace(s), nil
	case "append":
		return s + arg(0), nil
	case "prepend":
		return arg(0) + s, nil
	case "replace":
		if from := arg(0); from != "" && strings.Count(s, from)*len(arg(1)) < 1<<16 {
			return strings.ReplaceAll(s, from, arg(1)), nil
		}
	case "replace_first":
		return strings.Replace(s, arg(0), arg(1), 1), nil
	case "remove":
		return strings.ReplaceAll(s, arg(0), ""), nil
	case "slugify":
		return markup.Slug(s), nil
	case "size":
		return utf8.RuneCountInString(s), nil
	case "split":
		var out []any
		for _, of := range strings.Split(s, arg(0)) {
			out = append(out, of)
		}
		return out, nil
	}
	return calculated(v, name, arg(0))
}

// calculated is a number that a filter makes of another one.
func calculated(v any, name, with string) (any, error) {
	a, isNumber := toNumber(v)
	if b, err := strconv.ParseFloat(with, 64); isNumber && err == nil {
		switch name {
		case "plus":
			return a + b, nil
		case "minus":
			return a - b, nil
		case "times":
			return a * b, nil
		}
	}
	return nil, ErrUnknown
}

func filteredList(list []any, name string, arg func(int) string) (any, error) {
	field := func(v any) string { return spelled(member(v, arg(0))) }
	switch name {
	case "size":
		return len(list), nil
	case "first", "last":
		return member(list, name), nil
	case "reverse":
		list = slices.Clone(list)
		slices.Reverse(list)
		return list, nil
	case "sort", "sort_natural":
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b any) int {
			if arg(0) != "" {
				a, b = member(a, arg(0)), member(b, arg(0))
			}
			x, isNumber := toNumber(a)
			if y, both := toNumber(b); isNumber && both {
				return int(min(max(x-y, -1), 1))
			}
			return strings.Compare(spelled(a), spelled(b))
		})
		return list, nil
	case "where":
		return slices.DeleteFunc(slices.Clone(list), func(v any) bool { return field(v) != arg(1) }), nil
	case "map":
		out := make([]any, len(list))
		for i, v := range list {
			out[i] = member(v, arg(0))
		}
		return out, nil
	case "join":
		var all []string
		for _, v := range list {
			all = append(all, spelled(v))
		}
		return strings.Join(all, arg(0)), nil
	}
	return nil, ErrUnknown
}
