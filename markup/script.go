package markup

import (
	"bytes"
	"strings"
)

// jsDepth follows the brackets of JavaScript with JSX in it, well enough to find where an expression ends: strings end
// with their line, an apostrophe after a letter is text, templates nest, comments and regular expressions are skipped.
type jsDepth struct {
	stack   []byte // '{', '(', '[', and '`' for a template
	comment bool   // within /* */
	prev    byte   // the last significant byte
	braces  bool   // follow only braces
	plain   bool   // take no slash for a regular expression
}

func (d *jsDepth) closed() bool { return len(d.stack) == 0 && !d.comment }

func (d *jsDepth) line(b []byte) {
	d.feed(b, false)
	d.feed([]byte{'\n'}, false)
}

// feed reads b and, where stop is set, returns the position after the bracket that closes the first one; -1 otherwise.
func (d *jsDepth) feed(b []byte, stop bool) int {
	for i := 0; i < len(b); {
		c := b[i]
		if d.comment {
			j := bytes.Index(b[i:], []byte("*/"))
			if j < 0 {
				return -1
			}
			d.comment = false
			i += j + 2
			continue
		}
		top := byte(0)
		if n := len(d.stack); n > 0 {
			top = d.stack[n-1]
		}
		if c == '\\' {
			i += 2
			continue
		}
		if top == '`' {
			switch {
			case c == '`':
				d.stack = d.stack[:len(d.stack)-1]
				d.prev = '"'
			case c == '$' && i+1 < len(b) && b[i+1] == '{':
				d.stack = append(d.stack, '{')
				i++
			}
			i++
			continue
		}
		switch c {
		case '/':
			if i+1 < len(b) && b[i+1] == '*' {
				d.comment = true
				i += 2
				continue
			}
			if i+1 < len(b) && b[i+1] == '/' && d.prev != ':' && d.prev != '<' {
				j := bytes.IndexByte(b[i:], '\n')
				if j < 0 {
					return -1
				}
				i += j
				continue
			}
			if !d.plain && (d.prev == 0 || strings.IndexByte("(,=:[!&|?{;+", d.prev) >= 0) {
				if e := regexpEnd(b, i); e > 0 {
					d.prev = '"'
					i = e
					continue
				}
			}
		case '"', '\'':
			if c == '\'' && i > 0 && (isWord(b[i-1]) || b[i-1] >= 0x80) {
				break
			}
			if e := stringEnd(b, i); e > 0 {
				d.prev = '"'
				i = e
				continue
			}
		case '`':
			d.stack = append(d.stack, '`')
		case '{', '(', '[':
			if c == '{' || !d.braces {
				d.stack = append(d.stack, c)
			}
		case '}', ')', ']':
			open := map[byte]byte{'}': '{', ')': '(', ']': '['}[c]
			if top == open {
				d.stack = d.stack[:len(d.stack)-1]
				if stop && len(d.stack) == 0 {
					return i + 1
				}
			}
		}
		if !isSpace(c) {
			d.prev = c
		}
		i++
	}
	return -1
}

func stringEnd(b []byte, i int) int {
	q := b[i]
	for j := i + 1; j < len(b) && b[j] != '\n'; j++ {
		if b[j] == '\\' {
			j++
		} else if b[j] == q {
			return j + 1
		}
	}
	return 0
}

func regexpEnd(b []byte, i int) int {
	class := false
	for j := i + 1; j < len(b) && b[j] != '\n'; j++ {
		switch b[j] {
		case '\\':
			j++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return j + 1
			}
		}
	}
	return 0
}

// jsEnd gives the position after the brace that closes the one at i, or -1. What is read in vain is taken from a budget,
// a small multiple of the source, which keeps the whole linear.
func (s *scanner) jsEnd(i, limit int) int {
	for _, plain := range []bool{false, true} { // the text of an element may look like a regular expression: [x](/y)
		if s.vain <= 0 {
			return -1
		}
		to := min(limit, i+s.vain)
		d := jsDepth{braces: true, plain: plain}
		if e := d.feed(s.src[i:to], true); e >= 0 {
			s.steps += e
			return i + e
		}
		s.vain -= to - i
		s.steps += to - i
	}
	return -1
}
