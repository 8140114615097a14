// Package script reads what a program in JavaScript or TypeScript writes out: its literals, its settings and its texts.
// It never runs the program; what would have to be run is left out or marked.
package script

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Literal reads the value that stands at the beginning of a JavaScript text, as far as it is written out: objects,
// arrays, texts and numbers. Whatever would have to be run is nil; what stands around it is still read.
// rest is the text behind the value.
func Literal(src string) (value any, rest string) {
	p := reader{src: src, of: &module{program: &program{}}}
	v := p.primary(0)
	return written(v), p.src[p.at:]
}

// Keys are the names of the properties of the object that stands at the beginning of a JavaScript text, in their order.
func Keys(src string) (keys []string) {
	p := reader{src: src, of: &module{program: &program{}}, keys: &keys}
	p.primary(0)
	return keys
}

// written is what of a value is written out.
func written(v any) any {
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, x := range v {
			if x = written(x); x != nil {
				out = append(out, x)
			}
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if x = written(x); x != nil {
				out[k] = x
			}
		}
		return out
	case string, float64, bool:
		return v
	}
	return nil
}

// A reader reads the expressions of a program.
type reader struct {
	src string
	at  int
	of  *module // what names stand for; nil if nobody asks
	// how many texts that values are put into stand around it
	within int
	keys   *[]string // if somebody asks: those of the outermost object, in their order
}

// space passes over blanks and comments.
func (p *reader) space() {
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.at++
		case strings.HasPrefix(p.src[p.at:], "//"):
			if i := strings.IndexByte(p.src[p.at:], '\n'); i >= 0 {
				p.at += i
			} else {
				p.at = len(p.src)
			}
		case strings.HasPrefix(p.src[p.at:], "/*"):
			if i := strings.Index(p.src[p.at+2:], "*/"); i >= 0 {
				p.at += i + 4
			} else {
				p.at = len(p.src)
			}
		default:
			return
		}
	}
}

func (p *reader) peek() byte {
	p.space()
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// deepest bounds how deeply values stand within each other.
const deepest = 60

// value reads an expression: up to the comma, semicolon or bracket that ends it.
func (p *reader) value(depth int) any {
	if depth > deepest || !p.of.step(1) {
		p.skip()
		return Computed{}
	}
	v := p.either(depth)
	switch {
	case p.at < len(p.src) && p.peek() == '?':
		p.at++
		a := p.value(depth + 1)
		if p.peek() != ':' {
			p.skip()
			return Computed{}
		}
		p.at++
		b := p.value(depth + 1)
		if is, known := truth(v); known {
			if is {
				return a
			}
			return b
		}
		return p.of.one(a, b)
	case p.peek() == '=' && !strings.HasPrefix(p.src[p.at:], "=>"): // a = b
		p.at++
		return p.value(depth + 1)
	}
	return v
}

// either reads what || and ?? join.
func (p *reader) either(depth int) any {
	start := p.at
	v := p.both(depth)
	for p.takes("||", "??") {
		before := p.src[start:p.at]
		w := p.both(depth)
		if _, text := w.(string); text && (strings.Contains(before, "process.env") || strings.Contains(before, "import.meta.env")) {
			v = w // what is taken from the environment is a text's default
		} else if is, known := truth(v); !known {
			v = p.of.one(v, w)
		} else if !is {
			v = w
		}
	}
	return v
}

// both reads what && joins.
func (p *reader) both(depth int) any {
	v := p.sum(depth)
	for p.takes("&&") {
		w := p.sum(depth)
		is, known := truth(v)
		switch {
		case !known:
			v = p.of.one(false, w)
		case is:
			v = w
		}
	}
	return v
}

// operators are those that make of two values what is known of texts and lists alone.
var operators = []string{"===", "!==", "==", "!=", "<=", ">=", "**", "<", ">", "+", "-", "*", "/", "%", "|", "&", "^"}

// sum reads what other operators join.
func (p *reader) sum(depth int) any {
	v := p.operand(depth)
	for {
		p.peek()
		after := p.src[p.at:]
		if strings.HasPrefix(after, "||") || strings.HasPrefix(after, "&&") || strings.HasPrefix(after, "=>") {
			return v
		}
		if word := wordAt(after); word == "in" || word == "instanceof" {
			p.at += len(word)
			p.operand(depth)
			v = Computed{}
			continue
		}
		i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(after, op) })
		if i < 0 {
			return v
		}
		p.at += len(operators[i])
		w := p.operand(depth)
		a, one := v.(string)
		b, two := w.(string)
		if v = (Computed{}); operators[i] == "+" && one && two && p.of.step(len(a)+len(b)) {
			v = a + b
		}
	}
}

// takes passes over one of these operators, if one follows.
func (p *reader) takes(operators ...string) bool {
	p.peek()
	for _, op := range operators {
		if strings.HasPrefix(p.src[p.at:], op) {
			p.at += len(op)
			return true
		}
	}
	return false
}

// truth is a value as a condition.
func truth(v any) (is, known bool) {
	switch v := v.(type) {
	case nil:
		return false, true
	case bool:
		return v, true
	case string:
		return v != "", true
	case float64:
		return v != 0, true
	case []any, map[string]any, *function:
		return true, true
	}
	return false, false
}

// wordAt is the word that a text begins with.
func wordAt(s string) string {
	n := 0
	for n < len(s) && (alphanumeric(s[n]) || s[n] == '_' || s[n] == '$' || s[n] >= 0x80) {
		n++
	}
	return s[:n]
}

// operand reads a value with what is taken of it and what it is called with.
func (p *reader) operand(depth int) any {
	if depth > deepest || !p.of.step(1) {
		p.skip()
		return Computed{}
	}
	c := p.peek()
	switch word := p.word(); {
	case c == '!' || c == '~' || c == '+' || c == '-':
		for p.at < len(p.src) && p.src[p.at] == c {
			p.at++
		}
		v := p.operand(depth + 1)
		if is, known := truth(v); c == '!' && known {
			return !is
		}
		if n, ok := v.(float64); ok && c == '-' {
			return -n
		}
		return Computed{}
	case word == "typeof" || word == "void" || word == "delete":
		p.at += len(word)
		p.operand(depth + 1)
		return Computed{}
	case word == "new":
		p.at += len(word)
		p.operand(depth + 1) // with the call
		return Computed{}
	case word == "await":
		p.at += len(word)
		return p.operand(depth + 1)
	}
	name := p.word()
	v := p.primary(depth)
	return p.postfix(v, name, depth)
}

// word is the word that stands here, which may be a name.
func (p *reader) word() string {
	if c := p.peek(); c >= '0' && c <= '9' {
		return ""
	}
	return wordAt(p.src[p.at:])
}

// postfix reads what follows a value: what is taken of it, what it is called with, and types. path is how the program
// names it.
func (p *reader) postfix(v any, path string, depth int) any {
	for p.of.step(1) {
		before := p.at
		c := p.peek()
		after := p.src[p.at:]
		line := strings.Contains(p.src[before:p.at], "\n")
		word := wordAt(after)
		switch {
		case strings.HasPrefix(after, "?.") && !strings.HasPrefix(after, "?.("):
			p.at++
			fallthrough
		case c == '.' && !strings.HasPrefix(after, "..."):
			p.at++
			if p.peek() == '[' {
				continue
			}
			name := p.word()
			if name == "" {
				p.at = min(p.at+1, len(p.src))
				return Computed{}
			}
			p.at += len(name)
			if p.peek() == '(' {
				v = p.method(v, path, name, depth)
				path = ""
				continue
			}
			v, path = property(v, name), path+"."+name
		case c == '[' && !line:
			p.at++
			key := p.value(depth + 1)
			p.close(']')
			if name, ok := key.(string); ok {
				v = property(v, name)
			} else {
				v = Computed{}
			}
			path = ""
		case c == '(' || strings.HasPrefix(after, "?.("):
			v, path = p.call(v, path, p.arguments(depth), depth), ""
		case c == '`' && !line:
			p.text()
			v, path = Computed{}, ""
		case c == '<' && p.generic():
		case c == '!' && !line && !strings.HasPrefix(after, "!="):
			p.at++
		case word == "as" || word == "satisfies":
			p.at += len(word)
			p.skipType()
		case strings.HasPrefix(after, "++") || strings.HasPrefix(after, "--"):
			p.at += 2
			v = Computed{}
		default:
			return v
		}
	}
	return Computed{}
}

// property is what a value has under a name.
func property(v any, name string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return Computed{}
	}
	if x, ok := m[name]; ok {
		return x
	}
	if !Known(m, name) {
		return Computed{}
	}
	return nil
}

// close passes over what is left before a bracket, and over it.
func (p *reader) close(bracket byte) {
	for p.at < len(p.src) && p.peek() != bracket {
		before := p.at
		if p.skip(); p.at == before {
			p.at++
		}
	}
	p.at = min(p.at+1, len(p.src))
}

// generic passes over types in angle brackets that a call follows, as in defineConfig<T>(…).
func (p *reader) generic() bool {
	const most = 300
	end := min(len(p.src), p.at+most)
	open := 0
	for i := p.at; i < end; i++ {
		switch p.src[i] {
		case '<':
			open++
		case '>':
			if open--; open > 0 {
				continue
			}
			if i+1 < len(p.src) && p.src[i+1] == '(' {
				p.at = i + 1
				return true
			}
			return false
		case ';', '`':
			return false
		}
	}
	return false
}

// skipType passes over a type: to what ends the expression that it stands behind.
func (p *reader) skipType() {
	angle := 0
	for p.at < len(p.src) {
		before := p.at
		c := p.peek()
		if angle == 0 && before != p.at && strings.Contains(p.src[before:p.at], "\n") && c != '|' && c != '&' && c != '{' {
			return // a type ends with its line
		}
		switch {
		case c == '<':
			angle++
		case c == '>' && angle > 0:
			angle--
		case c == '(' || c == '[' || c == '{':
			p.at++
			p.close(closing[c])
			continue
		case c == 0, c == ')', c == ']', c == '}', c == ';', c == ',' && angle == 0, c == '=' && angle == 0, c == ':', c == '?':
			return
		case c == '"' || c == '\'' || c == '`':
			p.text()
			continue
		case word(p.src[p.at:], "as"), word(p.src[p.at:], "satisfies"):
			return
		}
		p.at++
	}
}

func word(s, name string) bool { return wordAt(s) == name }

// arguments reads what a call hands over.
func (p *reader) arguments(depth int) []any {
	p.at += strings.IndexByte(p.src[p.at:], '(') + 1
	return p.list(')', depth)
}

// list reads values up to a bracket.
func (p *reader) list(bracket byte, depth int) []any {
	out := []any{}
	for p.peek() != bracket && p.at < len(p.src) {
		before := p.at
		if strings.HasPrefix(p.src[p.at:], "...") {
			p.at += 3
			out = p.of.join(out, p.value(depth+1))
		} else if p.src[p.at] != ',' {
			out = append(out, p.value(depth+1))
		}
		if p.peek() == ',' || p.at == before {
			p.at = min(p.at+1, len(p.src))
		} else if p.peek() != bracket { // it has to be run
			p.skip()
			out = append(out, Computed{})
		}
	}
	p.at = min(p.at+1, len(p.src))
	return out
}

// primary reads a value by itself.
func (p *reader) primary(depth int) any {
	switch c := p.peek(); {
	case c == 0:
		return nil
	case c == '{':
		return p.object(depth)
	case c == '[':
		p.at++
		return p.list(']', depth)
	case c == '(':
		if f := p.arrow(); f != nil {
			return f
		}
		p.at++
		v := p.value(depth + 1)
		for p.peek() == ',' {
			p.at++
			v = p.value(depth + 1)
		}
		if p.peek() != ')' {
			v = Computed{}
		}
		p.close(')')
		return v
	case c == '"' || c == '\'' || c == '`':
		if text, plain := p.text(); plain {
			return text
		}
		return Computed{}
	case c == '/':
		p.pattern()
		return Computed{}
	case c >= '0' && c <= '9' || c == '.':
		return p.number()
	}
	return p.name(depth)
}

// number reads a number.
func (p *reader) number() any {
	start := p.at
	for p.at < len(p.src) && (alphanumeric(p.src[p.at]) || p.src[p.at] == '.' || p.src[p.at] == '_') {
		p.at++
	}
	if n, err := strconv.ParseFloat(strings.ReplaceAll(p.src[start:p.at], "_", ""), 64); err == nil {
		return n
	}
	return Computed{}
}

// name reads what begins with a word: a function, a constant of the language, or what a name stands for.
func (p *reader) name(depth int) any {
	name := p.word()
	if name == "" {
		p.skip()
		return Computed{}
	}
	if name == "async" || name == "function" {
		if f := p.arrow(); f != nil {
			return f
		}
	}
	p.at += len(name)
	if p.peek() == '=' && strings.HasPrefix(p.src[p.at:], "=>") { // x => …
		return p.body()
	}
	switch name {
	case "true", "false":
		return name == "true"
	case "null", "undefined":
		return nil
	}
	return p.of.named(name, depth)
}

// arrow reads a function that stands here; nil, and nothing is passed over, if none does.
func (p *reader) arrow() *function {
	start := p.at
	if p.word() == "async" {
		p.at += len("async")
	}
	keyword := p.word() == "function"
	if keyword {
		p.at += len("function")
		if p.peek() == '*' {
			p.at++
		}
		p.at += len(p.word())
	} else if name := p.word(); name != "" { // async x => …
		p.at += len(name)
	}
	if p.peek() == '(' {
		p.at++
		p.close(')')
	}
	if p.peek() == ':' {
		p.at++
		if keyword {
			for p.at < len(p.src) && p.peek() != '{' {
				p.at++
			}
		} else {
			p.skipType()
		}
	}
	if keyword && p.peek() == '{' {
		f := &function{of: p.of, at: p.at, block: true}
		p.at++
		p.close('}')
		return f
	}
	if !keyword && strings.HasPrefix(p.src[p.at:], "=>") {
		return p.body()
	}
	p.at = start
	return nil
}

// body reads the body of a function behind its arrow.
func (p *reader) body() *function {
	p.at += len("=>")
	f := &function{of: p.of, block: p.peek() == '{'}
	if f.at = p.at; f.block {
		p.at++
		p.close('}')
	} else {
		p.skip()
	}
	return f
}

func (p *reader) object(depth int) any {
	out := map[string]any{}
	p.at++
	for p.peek() != '}' && p.at < len(p.src) {
		before := p.at
		if strings.HasPrefix(p.src[p.at:], "...") {
			p.at += 3
			p.of.spread(out, p.value(depth+1))
		} else {
			p.entry(out, depth)
		}
		if p.peek() == ',' || p.at == before {
			p.at = min(p.at+1, len(p.src))
		} else if p.peek() != '}' { // it has to be run
			p.skip()
			p.of.spread(out, Computed{})
		}
	}
	p.at = min(p.at+1, len(p.src))
	return out
}

// entry reads one property of an object: with its value, in short, or a method.
func (p *reader) entry(out map[string]any, depth int) {
	key, quoted := "", false
	switch c := p.src[p.at]; {
	case c == '"' || c == '\'' || c == '`':
		key, quoted = p.text()
	case c == '[': // a key that is computed may be any
		p.at++
		name, ok := p.value(depth + 1).(string)
		p.close(']')
		if key, quoted = name, ok; !ok {
			p.of.spread(out, Computed{})
		}
	default:
		start := p.at
		for p.at < len(p.src) && (p.src[p.at] == '_' || p.src[p.at] == '$' || p.src[p.at] == '-' || p.src[p.at] >= 0x80 ||
			alphanumeric(p.src[p.at])) {
			p.at++
		}
		key = p.src[start:p.at]
	}
	if p.keys != nil && depth == 0 && key != "" {
		*p.keys = append(*p.keys, key)
	}
	switch c := p.peek(); {
	case c == ':':
		p.at++
		if v := p.value(depth + 1); key != "" {
			set(out, key, v)
		}
	case (c == ',' || c == '}') && !quoted && key != "":
		set(out, key, p.of.named(key, depth))
	default: // a method
		if name := p.word(); name != "" { // of get, set and async
			key = name
		}
		p.skip()
		if key != "" {
			set(out, key, Computed{})
		}
	}
}

// set gives an object a property, which goes before what was spread into it before.
func set(m map[string]any, key string, v any) {
	if s, ok := m["..."].(Spread); ok && key != "..." {
		s = maps.Clone(s)
		s[key] = true
		m["..."] = s
	}
	m[key] = v
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// text reads a quoted text; it is not a literal if values are put into it.
func (p *reader) text() (string, bool) {
	quote := p.src[p.at]
	p.at++
	var b strings.Builder
	plain := true
	for p.at < len(p.src) && p.src[p.at] != quote {
		if p.src[p.at] == '\\' && p.at+1 < len(p.src) {
			p.at++
			switch c := p.src[p.at]; c {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '\n':
			default:
				b.WriteByte(c)
			}
			p.at++
			continue
		}
		if quote == '`' && strings.HasPrefix(p.src[p.at:], "${") {
			text, known := p.inserted()
			plain = plain && known
			b.WriteString(text)
			continue
		}
		b.WriteByte(p.src[p.at])
		p.at++
	}
	p.at = min(p.at+1, len(p.src))
	return b.String(), plain
}

// inserted reads a value that is put into a text.
func (p *reader) inserted() (text string, known bool) {
	p.at += len("${")
	if p.within++; p.within > deepest {
		p.at = len(p.src)
		return "", false
	}
	if p.of != nil {
		switch v := p.value(p.within).(type) {
		case string:
			text, known = v, p.of.step(len(v))
		case float64:
			text, known = strconv.FormatFloat(v, 'f', -1, 64), true
		}
		known = known && p.peek() == '}'
	}
	p.close('}')
	p.within--
	return text, known
}

// skip passes over an expression: to the comma, semicolon or bracket that ends it.
func (p *reader) skip() {
	open := 0
	last := byte('(') // the last character before
	for p.at < len(p.src) {
		p.space()
		if p.at >= len(p.src) {
			return
		}
		c := p.src[p.at]
		switch c {
		case '(', '[', '{':
			open++
		case ')', ']', '}':
			if open == 0 {
				return
			}
			open--
		case ',', ';':
			if open == 0 {
				return
			}
		case '"', '\'', '`':
			p.text()
			last = c
			continue
		case '/':
			if strings.IndexByte("(,=:[!&|?{};", last) >= 0 {
				p.pattern()
				last = c
				continue
			}
		}
		last = c
		p.at++
	}
}

// pattern passes over a regular expression.
func (p *reader) pattern() {
	class := false
	for p.at++; p.at < len(p.src); p.at++ {
		switch c := p.src[p.at]; {
		case c == '\\':
			p.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			p.at++
			return
		case c == '\n':
			return
		}
	}
	p.at = min(p.at, len(p.src))
}
