package site

import (
	"strconv"
	"strings"
)

// Literal reads the value that stands at the beginning of a JavaScript text, as far as it is written out: objects, arrays,
// texts and numbers. Anything that would have to be run is nil, and what stands around it is read all the same. rest is
// the text behind the value.
func Literal(src string) (value any, rest string) {
	p := literalReader{src: src}
	return p.value(0), p.src[p.at:]
}

type literalReader struct {
	src string
	at  int
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
		return nil
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
		if ok {
			v = text
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
		return nil
	}
	switch p.peek() {
	case ',', ']', '}', ')', ';', 0:
	default: // `[…].map(…)`, `'a' + b`: it has to be run
		if after := p.src[p.at:]; !strings.HasPrefix(after, "as ") && !strings.HasPrefix(after, "satisfies ") && depth > 0 {
			v = nil
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
			for p.at < len(p.src) && (p.src[p.at] == '_' || p.src[p.at] == '$' || p.src[p.at] == '-' || alphanumeric(p.src[p.at])) {
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
			p.skip() // a spread, a shorthand or a method
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
