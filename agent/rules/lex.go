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

// is tells a mark.
func (t token) is(sign string) bool { return t.kind == mark && t.text == sign }

// ends reports whether a sentence, a line or an item of a list ends with a token.
func (t token) ends() bool {
	return t.kind == newline || t.kind == mark && strings.Contains(".;!?•", t.text)
}

var closers = map[rune]rune{'"': '"', '\'': '\'', '“': '”', '‘': '’', '„': '“', '«': '»', '`': '`',
	'”': '”'}

// lex cuts an instruction into words, quoted literals, fenced blocks and marks.
func lex(s string) []token {
	l := &lexer{s: s, atLine: true, prev: ' ', sentences: sentenceEnds{s: s}, open: map[string]bool{}}
	for i := 0; i < len(s); {
		i = l.token(i)
	}
	return l.toks
}

// A lexer reads one text.
type lexer struct {
	s         string
	toks      []token
	atLine    bool // at the beginning of a line
	prev      rune // before the token
	sentences sentenceEnds
	open      map[string]bool // quotes and fences that are known to have no end; looking for it again would take long
}

// add returns the end of the token, and keeps what the next one finds before it.
func (l *lexer) add(t token, prev rune) int {
	l.toks = append(l.toks, t)
	l.atLine, l.prev = false, prev
	return t.end
}

// token reads what begins at i, and gives its end.
func (l *lexer) token(i int) int {
	r, n := utf8.DecodeRuneInString(l.s[i:])
	switch {
	case r == '\n':
		l.toks = append(l.toks, token{kind: newline, start: i, end: i + 1})
		l.atLine, l.prev = true, ' '
		return i + 1
	case unicode.IsSpace(r):
		l.prev = ' '
		return i + n
	}
	if l.atLine {
		if e, text, info, ok := fenced(l.s, i, l.open); ok {
			return l.add(token{kind: block, text: text, start: i, end: e, info: info}, ' ')
		}
		if n := listMark(l.s[i:]); n > 0 {
			e := l.add(token{kind: mark, text: "•", start: i, end: i + n}, ' ')
			l.atLine = true
			return e
		}
	}
	if c, ok := closers[r]; ok && !unicode.IsLetter(l.prev) && !unicode.IsDigit(l.prev) {
		if e, text, ok := quoted(l.s, i+n, r, c, l.open); ok {
			return l.add(token{kind: literalText, text: text, start: i, end: e}, 'a')
		}
	}
	if r == '(' || r == ')' { // what is added in parentheses is said all the same
		l.prev = ' '
		return i + 1
	}
	if strings.ContainsRune(",;!?", r) || r == ':' && (i+1 == len(l.s) || unicode.IsSpace(rune(l.s[i+1]))) ||
		r == '.' && l.sentences.at(i+1) {
		return l.add(token{kind: mark, text: string(r), start: i, end: i + n}, ' ')
	}
	e := l.wordEnd(i)
	last, _ := utf8.DecodeLastRuneInString(l.s[i:e])
	return l.add(token{kind: word, text: l.s[i:e], low: strings.ToLower(l.s[i:e]), start: i, end: e}, last)
}

// wordEnd is behind the word that begins at i.
func (l *lexer) wordEnd(i int) int {
	j := i
	for j < len(l.s) {
		r, n := utf8.DecodeRuneInString(l.s[j:])
		if unicode.IsSpace(r) || j > i && (strings.ContainsRune(",;!?()\"“”", r) && !withinNumber(l.s, j) ||
			(r == '.' || r == ':') && l.sentences.at(j+n)) {
			break
		}
		j += n
	}
	return j
}

// withinNumber reports whether a comma stands between two digits: 2,5 and 1,000.
func withinNumber(s string, i int) bool {
	digit := func(k int) bool { return k >= 0 && k < len(s) && s[k] >= '0' && s[k] <= '9' }
	return s[i] == ',' && digit(i-1) && digit(i+1)
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
	e.is = j == len(e.s) || strings.IndexByte(" \t\n\r", e.s[j]) >= 0 || strings.HasPrefix(e.s[j:], "”") ||
		strings.HasPrefix(e.s[j:], "’")
	return e.is
}

// quoted reads up to the closing quote; a backslash escapes it. A literal may run over several lines, unless its quote
// is a single one, which is often an apostrophe.
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

// listMark returns the length of a list item's marker.
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
