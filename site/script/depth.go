package script

import (
	"bytes"
	"strings"
)

// A Depth follows the brackets of JavaScript with JSX in it, well enough to find where an expression ends: strings end
// with their line, an apostrophe after a letter is text, templates nest, comments and regular expressions are skipped.
type Depth struct {
	stack   []byte // '{', '(', '[', and '`' for a template
	comment bool   // within /* */
	prev    byte   // the last significant byte
	Braces  bool   // follow only braces
	Plain   bool   // take no slash for a regular expression
}

// Closed reports whether all brackets and comments that were read are closed.
func (d *Depth) Closed() bool { return len(d.stack) == 0 && !d.comment }

// Line reads a line without its end.
func (d *Depth) Line(b []byte) {
	d.Feed(b, false)
	d.Feed([]byte{'\n'}, false)
}

// Feed reads b and, if stop is set, returns the position after the bracket that closes the first one; -1 otherwise.
func (d *Depth) Feed(b []byte, stop bool) int {
	for i := 0; i >= 0 && i < len(b); {
		c, top := b[i], d.top()
		switch {
		case d.comment:
			i = d.endComment(b, i)
		case c == '\\':
			i += 2
		case top == '`':
			i = d.inTemplate(b, i)
		case c == '/':
			i = d.slash(b, i)
		case c == '"', c == '\'':
			i = d.quote(b, i)
		case c == '`', c == '{', !d.Braces && (c == '(' || c == '['):
			d.stack = append(d.stack, c)
			i = d.pass(b, i)
		case top == '{' && c == '}', top == '(' && c == ')', top == '[' && c == ']':
			d.stack = d.stack[:len(d.stack)-1]
			if stop && len(d.stack) == 0 {
				return i + 1
			}
			i = d.pass(b, i)
		default:
			i = d.pass(b, i)
		}
	}
	return -1
}

// top is the innermost bracket that is open; 0 if none is.
func (d *Depth) top() byte {
	if len(d.stack) == 0 {
		return 0
	}
	return d.stack[len(d.stack)-1]
}

// pass goes on behind a byte. As what follows does, it returns where; -1 if nothing follows.
func (d *Depth) pass(b []byte, i int) int {
	if !isSpace(b[i]) {
		d.prev = b[i]
	}
	return i + 1
}

func (d *Depth) endComment(b []byte, i int) int {
	j := bytes.Index(b[i:], []byte("*/"))
	if j < 0 {
		return -1
	}
	d.comment = false
	return i + j + 2
}

func (d *Depth) inTemplate(b []byte, i int) int {
	switch {
	case b[i] == '`':
		d.stack = d.stack[:len(d.stack)-1]
		d.prev = '"'
	case b[i] == '$' && i+1 < len(b) && b[i+1] == '{':
		d.stack = append(d.stack, '{')
		i++
	}
	return i + 1
}

// slash begins a comment or a regular expression, or divides.
func (d *Depth) slash(b []byte, i int) int {
	next := byte(0)
	if i+1 < len(b) {
		next = b[i+1]
	}
	if next == '*' {
		d.comment = true
		return i + 2
	}
	if next == '/' && d.prev != ':' && d.prev != '<' {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return -1
		}
		return i + j
	}
	if !d.Plain && (d.prev == 0 || strings.IndexByte("(,=:[!&|?{;+", d.prev) >= 0) {
		if e := regexpEnd(b, i); e > 0 {
			d.prev = '"'
			return e
		}
	}
	return d.pass(b, i)
}

// quote begins a string, unless it is an apostrophe.
func (d *Depth) quote(b []byte, i int) int {
	if b[i] != '\'' || i == 0 || !partOfWord(b[i-1]) {
		if e := stringEnd(b, i); e > 0 {
			d.prev = '"'
			return e
		}
	}
	return d.pass(b, i)
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

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func partOfWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
