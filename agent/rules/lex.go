package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token of an instruction.
type token struct {
	kind       tokenKind
	text       string // a word as written, the text of a literal, a mark
	low        string // a word in lower case
	start, end int    // in the prompt
	first      bool   // the first of its line
	info       string // of a block: what stands behind its fence
}

type tokenKind uint8

const (
	word tokenKind = iota + 1
	literalText
	block // fenced
	mark  // one of , . ; : ! ?
	newline
)

var closers = map[rune]rune{'"': '"', '\'': '\'', '“': '”', '‘': '’', '„': '“', '«': '»', '`': '`', '”': '”'}

// lex cuts an instruction into words, quoted literals, fenced blocks and marks.
func lex(s string) []token {
	var out []token
	i := 0
	atLine := true
	add := func(k tokenKind, text string, start, end int) {
		t := token{kind: k, text: text, start: start, end: end, first: atLine}
		if k == word {
			t.low = strings.ToLower(text)
		}
		out = append(out, t)
		atLine = false
	}
	prev := ' '
	ends := sentenceEnds{s: s}
	open := map[string]bool{} // quotes and fences that are known to have no end; looking for it again would take long
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n':
			out = append(out, token{kind: newline, start: i, end: i + 1})
			atLine = true
			i++
			prev = ' '
			continue
		case unicode.IsSpace(r):
			i += n
			prev = ' '
			continue
		}
		if atLine {
			if e, text, info, ok := fenced(s, i, open); ok {
				add(block, text, i, e)
				out[len(out)-1].info = info
				i, prev = e, ' '
				continue
			}
			if n := listMark(s[i:]); n > 0 {
				out = append(out, token{kind: mark, text: "•", start: i, end: i + n, first: true})
				i += n
				prev = ' '
				continue
			}
		}
		if c, ok := closers[r]; ok && !(unicode.IsLetter(prev) || unicode.IsDigit(prev)) {
			if e, text, ok := quoted(s, i+n, r, c, open); ok {
				add(literalText, text, i, e)
				i, prev = e, 'a'
				continue
			}
		}
		if r == '(' || r == ')' { // what is added in parentheses is said all the same
			i++
			prev = ' '
			continue
		}
		if strings.ContainsRune(",;!?", r) || r == ':' && (i+1 == len(s) || unicode.IsSpace(rune(s[i+1]))) || r == '.' && ends.at(i+1) {
			add(mark, string(r), i, i+n)
			i += n
			prev = ' '
			continue
		}
		j := i
		for j < len(s) {
			r, n := utf8.DecodeRuneInString(s[j:])
			if unicode.IsSpace(r) || strings.ContainsRune(",;!?()\"“”", r) && j > i {
				break
			}
			if (r == '.' || r == ':') && ends.at(j+n) && j > i {
				break
			}
			j += n
		}
		add(word, s[i:j], i, j)
		prev, _ = utf8.DecodeLastRuneInString(s[i:j])
		i = j
	}
	return out
}

// sentenceEnds tells where a sentence may end: before a blank, or with marks between. A long run of marks is read once.
type sentenceEnds struct {
	s     string
	known int  // the end of the run of marks that was read last
	from  int  // and its beginning
	is    bool // a sentence ends with it
	steps int
}

func (e *sentenceEnds) at(i int) bool {
	if e.from <= i && i < e.known {
		return e.is
	}
	j := i
	for j < len(e.s) && strings.IndexByte("\"'),.!?;", e.s[j]) >= 0 {
		j++
	}
	e.steps += 1 + j - i
	e.from, e.known = i, j
	e.is = j == len(e.s) || strings.IndexByte(" \t\n\r", e.s[j]) >= 0 || strings.HasPrefix(e.s[j:], "”") || strings.HasPrefix(e.s[j:], "’")
	return e.is
}

// quoted reads up to the closing quote; a backslash escapes it. A literal may run over several lines, unless its quote is
// a single one, which is often an apostrophe.
func quoted(s string, i int, opener, closer rune, open map[string]bool) (end int, text string, ok bool) {
	if opener == '`' {
		n := 1
		for i < len(s) && s[i] == '`' {
			n++
			i++
		}
		run := strings.Repeat("`", n)
		if n > 64 || open[run] {
			return 0, "", false
		}
		j := strings.Index(s[i:], run)
		if j < 0 {
			open[run] = true
			return 0, "", false
		}
		text = s[i : i+j]
		if n > 1 {
			text = strings.TrimSpace(text)
		}
		return i + j + n, text, text != ""
	}
	single := closer == '\'' || closer == '’'
	if open[string(closer)] {
		return 0, "", false
	}
	var b strings.Builder
	for j := i; j < len(s); {
		if single && j-i > 1000 {
			return 0, "", false
		}
		r, n := utf8.DecodeRuneInString(s[j:])
		switch {
		case r == '\\' && j+1 < len(s) && (rune(s[j+1]) == closer || s[j+1] == '\\'):
			b.WriteByte(s[j+1])
			j += 2
			continue
		case r == closer:
			next, _ := utf8.DecodeRuneInString(s[j+n:])
			if single {
				if unicode.IsLetter(next) || unicode.IsDigit(next) {
					break // an apostrophe
				}
			}
			return j + n, b.String(), true
		case r == '\n' && single:
			return 0, "", false
		}
		b.WriteString(s[j : j+n])
		j += n
	}
	if !single {
		open[string(closer)] = true
	}
	return 0, "", false
}

// fenced reads a fenced block that begins at i, at the start of a line.
func fenced(s string, i int, open map[string]bool) (end int, text, info string, ok bool) {
	c := s[i]
	if c != '`' && c != '~' {
		return 0, "", "", false
	}
	n := 0
	for i+n < len(s) && s[i+n] == c {
		n++
	}
	run := s[i : i+n]
	if n < 3 || n > 64 || open[run+"\n"] {
		return 0, "", "", false
	}
	nl := strings.IndexByte(s[i:], '\n')
	if nl < 0 || strings.IndexByte(s[i+n:i+nl], c) >= 0 {
		return 0, "", "", false
	}
	info = strings.TrimSpace(s[i+n : i+nl])
	start := i + nl + 1
	for pos := start; pos < len(s); {
		next := len(s)
		if k := strings.IndexByte(s[pos:], '\n'); k >= 0 {
			next = pos + k + 1
		}
		line := strings.TrimSpace(s[pos:next])
		if len(line) >= n && strings.Trim(line, string(c)) == "" {
			return pos + strings.Index(s[pos:next], line) + len(line), s[start:pos], info, true
		}
		pos = next
	}
	open[run+"\n"] = true
	return 0, "", "", false
}

// listMark gives the length of a list item's marker.
func listMark(s string) int {
	if len(s) > 1 && (s[0] == '-' || s[0] == '*' || s[0] == '+') && s[1] == ' ' {
		return 1
	}
	if strings.HasPrefix(s, "• ") {
		return len("•")
	}
	j := 0
	for j < len(s) && j < 3 && s[j] >= '0' && s[j] <= '9' {
		j++
	}
	if j > 0 && j+1 < len(s) && (s[j] == '.' || s[j] == ')') && s[j+1] == ' ' {
		return j + 1
	}
	return 0
}
