package script

import (
	"slices"
	"strings"
)

// A Text is a quoted text of a program, where it stands alone: as the value of a property, or in a list. What a program
// computes is not seen, since programs are not run.
type Text struct {
	Value      string
	Start, End int    // with its quotes
	Key        string // the property that it is the value of; empty for an entry of a list
	List       string // the property whose list it is an entry of
	Base       string // the property "base" of the nearest object around it that has one
	Cut        [2]int // what takes its entry out: of the list, or the property; nothing if that is not possible
}

// Texts finds the texts of a program in JavaScript or TypeScript, or of a JSON document, in the order that they stand
// in.
func Texts(src string) []Text {
	r := programReader{src: src}
	root := &bracket{}
	r.read(root, 0, 0)
	if r.failed {
		return nil
	}
	var out []Text
	collect(src, root, "", &out)
	return out
}

// A bracket is what stands in parentheses, brackets or braces, in parts that commas separate.
type bracket struct {
	open       byte // '"' for a text
	start, end int
	value      string
	parts      []part
	within     *bracket // that it is the whole of a part of
	at         int      // which part
}

type part struct {
	start, end int    // without blanks; a property's begins with its name
	key        string // of a property
	values     []*bracket
	whole      *bracket // the one that is all of the value
}

type programReader struct {
	src    string
	at     int
	failed bool
}

const deepestProgram = 200

var closing = map[byte]byte{'(': ')', '[': ']', '{': '}'}

// read reads parts up to the closing bracket. It is one table: what each character does where it stands.
func (r *programReader) read(into *bracket, closer byte, depth int) {
	if depth > deepestProgram {
		r.failed = true
		return
	}
	// value is where the part's value begins, last the last character before
	p, begun, value, last := part{}, false, 0, byte(0)
	flush := func() {
		if begun {
			if len(p.values) == 1 && p.values[0].start == value && p.values[0].end == p.end {
				p.whole = p.values[0]
				p.whole.within, p.whole.at = into, len(into.parts)
			}
			into.parts = append(into.parts, p)
		}
		p, begun = part{}, false
	}
	begin := func(at int) {
		if !begun {
			begun, p.start, value = true, at, at
		} else if value < 0 {
			value = at
		}
	}
	for !r.failed {
		lit := reader{src: r.src, at: r.at}
		lit.space()
		if r.at = lit.at; r.at >= len(r.src) {
			r.failed = r.failed || closer != 0
			flush()
			return
		}
		c := r.src[r.at]
		switch {
		case closer != 0 && c == closer:
			flush()
			r.at++
			return
		case c == ',' || c == ';':
			flush()
			r.at++
			last = c
			continue
		case c == ')' || c == ']' || c == '}':
			r.failed = true
			return
		case c == '(' || c == '[' || c == '{':
			begin(r.at)
			b := &bracket{open: c, start: r.at}
			r.at++
			r.read(b, closing[c], depth+1)
			b.end = r.at
			p.values = append(p.values, b)
			p.end = r.at
		case c == '"' || c == '\'' || c == '`':
			begin(r.at)
			b := &bracket{open: '"', start: r.at}
			lit := reader{src: r.src, at: r.at}
			text, plain := lit.text()
			if r.at = lit.at; !plain {
				text = ""
			}
			b.end, b.value = r.at, text
			p.values = append(p.values, b)
			p.end = r.at
		case c == ':' && into.open == '{' && p.key == "" && len(p.values) <= 1:
			p.key = strings.Trim(strings.TrimSpace(r.src[p.start:r.at]), "\"'`")
			p.values, value = nil, -1
			r.at++
			p.end = r.at
		case c == '/' && (last == 0 || strings.IndexByte("(,=:[!&|?{};", last) >= 0):
			// A regular expression: a comment was passed over.
			begin(r.at)
			lit := reader{src: r.src, at: r.at}
			lit.pattern()
			r.at = lit.at
			p.end = r.at
		default:
			begin(r.at)
			r.at++
			p.end = r.at
		}
		last = r.src[r.at-1]
	}
}

func collect(src string, b *bracket, base string, out *[]Text) {
	if b.open == '{' {
		for _, p := range b.parts {
			if p.key == "base" && p.whole != nil && p.whole.open == '"' {
				base = p.whole.value
			}
		}
	}
	for i, p := range b.parts {
		for _, v := range p.values {
			if v.open != '"' {
				collect(src, v, base, out)
				continue
			}
			if v != p.whole || v.value == "" || b.open == '(' || b.open == 0 || b.open == '{' && p.key == "" {
				continue
			}
			t := Text{Value: v.value, Start: v.start, End: v.end, Key: p.key, Base: base}
			if b.open == '[' {
				t.Cut = cutOf(src, b, i)
				if b.within != nil {
					t.List = b.within.parts[b.at].key
				}
			} else {
				t.Cut = entryOf(src, b, i)
			}
			*out = append(*out, t)
		}
	}
}

// entryOf is what takes out the entry that a property names a page in: the whole object in a list, or the property
// "link" that has it for its value. If an object holds entries of its own, it is the property alone. Any other
// object may need it.
func entryOf(src string, b *bracket, i int) [2]int {
	more := slices.ContainsFunc(b.parts, func(p part) bool { return p.key == "items" || p.key == "children" })
	switch {
	case b.within == nil:
		return [2]int{}
	case more:
		return cutOf(src, b, i)
	case b.within.open == '[' || b.within.parts[b.at].key == "link":
		return cutOf(src, b.within, b.at)
	}
	return [2]int{}
}

// cutOf is what takes out one part, with its comma and, if it stands alone, its lines.
func cutOf(src string, b *bracket, i int) [2]int {
	if b.open != '[' && b.open != '{' {
		return [2]int{}
	}
	start, end := b.parts[i].start, b.parts[i].end
	lit := reader{src: src, at: end}
	lit.space()
	if lit.at >= len(src) || src[lit.at] != ',' {
		if i > 0 {
			return [2]int{b.parts[i-1].end, end}
		}
		return [2]int{start, end}
	}
	end = lit.at + 1
	after := end
	for after < len(src) && (src[after] == ' ' || src[after] == '\t' || src[after] == '\r') {
		after++
	}
	line := strings.LastIndexByte(src[:start], '\n') + 1
	if strings.TrimSpace(src[line:start]) == "" && after < len(src) && src[after] == '\n' {
		return [2]int{line, after + 1}
	}
	if after < len(src) && src[after] != '\n' {
		end = after
	}
	return [2]int{start, end}
}

// Quote writes a text in the quotes that another one has.
func Quote(text string, like byte) string {
	if like != '\'' && like != '`' {
		like = '"'
	}
	q := string(like)
	text = strings.NewReplacer(`\`, `\\`, q, `\`+q, "\n", `\n`, "\r", `\r`).Replace(text)
	if like == '`' {
		text = strings.ReplaceAll(text, "${", `\${`)
	}
	return q + text + q
}
