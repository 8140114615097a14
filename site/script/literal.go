// Package script reads what a program in JavaScript or TypeScript writes out: its literals, its settings and its texts.
// It never runs the program; what would have to be run is left out or marked.
package script

import (
	"regexp"
	"strconv"
	"strings"
)

// Literal reads the value that stands at the beginning of a JavaScript text, as far as it is written out: objects,
// arrays, texts and numbers. Whatever would have to be run is nil; what stands around it is still read.
// rest is the text behind the value.
func Literal(src string) (value any, rest string) {
	p := literalReader{src: src}
	return p.value(0), p.src[p.at:]
}

// Computed stands, in what Settings reads, for a value that would have to be run.
type Computed struct{}

var (
	objectBegins = regexp.MustCompile(`(?:=|\bexport\s+default|\breturn|\()\s*\{`)
	identifier   = regexp.MustCompile(`^[A-Za-z_$][\w$]*$`)
)

// Settings reads the object that a configuration in JavaScript or TypeScript makes, as far as it is written out: the
// one with the most of these keys. A name stands for the value that the same file gives it. What would have to be run
// is Computed; so is the key "..." of an object that another one is spread into.
func Settings(src string, keys ...string) map[string]any {
	const mostObjects = 100 // in a configuration the one that is looked for stands among the first
	var best map[string]any
	most := 0
	for _, at := range objectBegins.FindAllStringIndex(src, mostObjects) {
		p := literalReader{src: src, at: at[1] - 1, marks: true}
		m, _ := p.object(0).(map[string]any)
		n := 0
		for _, k := range keys {
			if _, ok := m[k]; ok {
				n++
			}
		}
		if n > most {
			best, most = m, n
		}
	}
	return best
}

type literalReader struct {
	src   string
	at    int
	marks bool // what has to be run is Computed
	names int  // that were looked up
}

// run is the value of what has to be run; a name may be given a value elsewhere in the file.
func (p *literalReader) run(word string, depth int) any {
	const mostNames = 50
	if !p.marks || word == "null" || word == "undefined" {
		return nil
	}
	if p.names++; depth < deepestLiteral && p.names < mostNames && identifier.MatchString(word) {
		declared := regexp.MustCompile(`\b(?:const|let|var)\s+` + regexp.QuoteMeta(word) + `\s*(?::[^=;]*)?=\s*`)
		if at := declared.FindStringIndex(p.src); at != nil {
			there := literalReader{src: p.src, at: at[1], marks: true, names: p.names}
			v := there.value(depth + 1)
			p.names = there.names
			if v != nil {
				return v
			}
		}
	}
	return Computed{}
}

// space passes over blanks and comments.
func (p *literalReader) space() {
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

func (p *literalReader) peek() byte {
	p.space()
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

const deepestLiteral = 60

func (p *literalReader) value(depth int) any {
	var v any
	switch c := p.peek(); {
	case depth > deepestLiteral:
		p.skip()
		return p.run("", depth)
	case c == '{':
		v = p.object(depth)
	case c == '[':
		p.at++
		list := []any{}
		for p.peek() != ']' && p.at < len(p.src) {
			before := p.at
			if x := p.value(depth + 1); x != nil {
				list = append(list, x)
			}
			if p.peek() == ',' || p.at == before {
				p.at = min(p.at+1, len(p.src))
			}
		}
		p.at = min(p.at+1, len(p.src))
		v = list
	case c == '"' || c == '\'' || c == '`':
		text, ok := p.text()
		if v = text; !ok {
			v = p.run("", depth)
		}
	default:
		start := p.at
		p.skip()
		word := strings.TrimSpace(p.src[start:p.at])
		if word == "true" || word == "false" {
			return word == "true"
		}
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			return n
		}
		return p.run(word, depth)
	}
	switch p.peek() {
	case ',', ']', '}', ')', ';', 0:
	default: // `[…].map(…)`, `'a' + b`: it has to be run
		if after := p.src[p.at:]; !strings.HasPrefix(after, "as ") && !strings.HasPrefix(after, "satisfies ") && depth > 0 {
			v = p.run("", depth)
		}
		if depth > 0 {
			p.skip()
		}
	}
	return v
}

func (p *literalReader) object(depth int) any {
	out := map[string]any{}
	p.at++
	for p.peek() != '}' && p.at < len(p.src) {
		before := p.at
		key := ""
		if c := p.src[p.at]; c == '"' || c == '\'' || c == '`' {
			key, _ = p.text()
		} else {
			for p.at < len(p.src) && (p.src[p.at] == '_' || p.src[p.at] == '$' || p.src[p.at] == '-' ||
				alphanumeric(p.src[p.at])) {
				p.at++
			}
			key = p.src[before:p.at]
		}
		if p.peek() == ':' {
			p.at++
			if v := p.value(depth + 1); v != nil && key != "" {
				out[key] = v
			}
		} else {
			spread := strings.HasPrefix(p.src[before:], "...")
			method := p.peek() == '('
			p.skip() // a spread, a shorthand or a method
			if name := key; p.marks && (spread || key != "") {
				if spread {
					key = "..."
				}
				if spread || method {
					name = ""
				}
				if v := p.run(name, depth); v != nil {
					out[key] = v
				}
			}
		}
		if p.peek() == ',' || p.at == before {
			p.at = min(p.at+1, len(p.src))
		}
	}
	p.at = min(p.at+1, len(p.src))
	return out
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// text reads a quoted text; it is not a literal where values are put into it.
func (p *literalReader) text() (string, bool) {
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
			plain = false
		}
		b.WriteByte(p.src[p.at])
		p.at++
	}
	p.at = min(p.at+1, len(p.src))
	return b.String(), plain
}

// skip passes over an expression: to the comma or bracket that ends it.
func (p *literalReader) skip() {
	open := 0
	for p.at < len(p.src) {
		p.space()
		if p.at >= len(p.src) {
			return
		}
		switch c := p.src[p.at]; c {
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
			continue
		}
		p.at++
	}
}
