package claims

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind says what a piece of an answer is.
type Kind uint8

// Kinds of pieces.
const (
	Sentence Kind = iota
	Heading
	Fence    // the line that opens a block of code
	Code     // a line of it
	FenceEnd // the line that closes it
	Row      // of a table, its head and the line below that too
)

// A Piece is what is checked at a time: a sentence, a list item or its first sentence, a heading, a line of code, a row
// of a table. An answer is its pieces' leads and texts, one after the other.
type Piece struct {
	Kind  Kind
	Lead  string // spaces and line breaks before it, and the signs of a list item or a quotation
	Text  string
	Cites []Cite
}

// A Cite is a marker that stood in a piece.
type Cite struct {
	At       int // bytes of the text before it
	Passages []int
}

// longestPiece bounds what is held back: a text that does not end its sentences is cut.
const longestPiece = 4096

// longestAbbreviation bounds how far back the end of a sentence is looked at.
const longestAbbreviation = 8

// A Splitter cuts an answer into pieces while it streams.
type Splitter struct {
	// Emit takes each piece as soon as it is complete.
	Emit func(Piece) error

	lead  []byte // of the piece under way
	text  []byte
	cites []Cite

	gap     []byte // after the text: a line break and what follows it, while it is open whether the text goes on
	probe   []byte // the first signs of a line, while it is open what line it is
	rest    []byte // the first bytes of a character
	state   splitState
	ended   bool // the text may be at the end of a sentence
	cjk     bool // and needs no space to be
	span    int  // backticks that opened the code span that the text is in
	run     int  // backticks just read
	bracket int  // open brackets of links
	closed  bool // a bracket was just closed
	target  bool // within the address of a link
	fence   byte
	fences  int  // signs of the fence
	spaces  int  // before the first sign of a line of code
	indent  bool // only spaces so far in this line of code
	failed  error
}

type splitState uint8

const (
	atLine  splitState = iota // at the start of a line
	probing                   // some signs into it
	inText
	inHeading
	inFence // the line that opens code
	inCode
	inRow
)

// Write takes a part of the answer.
func (s *Splitter) Write(text string) error {
	for i := 0; i < len(text) && s.failed == nil; {
		if len(s.rest) > 0 || !utf8.FullRuneInString(text[i:]) {
			s.rest = append(s.rest, text[i])
			i++
			if utf8.FullRune(s.rest) {
				r, _ := utf8.DecodeRune(s.rest)
				s.rest = s.rest[:0]
				s.take(r)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		s.take(r)
	}
	return s.failed
}

// Cite takes a marker at this place. It is late if it can only belong to a piece that has been emitted.
func (s *Splitter) Cite(passages []int) (late bool) {
	if len(s.text)+len(s.probe) == 0 {
		return true
	}
	s.cites = append(s.cites, Cite{At: len(s.text) + len(s.probe), Passages: passages})
	return false
}

// Flush emits what is under way: nothing more of this line comes.
func (s *Splitter) Flush() error {
	if len(s.rest) > 0 {
		s.rest = s.rest[:0]
		s.take(utf8.RuneError)
	}
	if s.state == probing {
		s.decide(true)
	}
	if s.finish() == FenceEnd || s.state != inCode {
		s.state = inText
	}
	s.lead = append(s.lead, s.gap...)
	s.gap = s.gap[:0]
	return s.failed
}

// Rest is what stands after the last piece: spaces and line breaks.
func (s *Splitter) Rest() string { return string(s.lead) }

func (s *Splitter) take(r rune) {
	switch s.state {
	case atLine, probing:
		s.probed(r)
	case inText:
		s.texted(r)
	case inCode:
		s.coded(r)
	default: // a line that is taken whole
		if r == '\n' {
			s.lineEnd()
			return
		}
		s.put(r)
	}
}

func (s *Splitter) put(r rune) {
	s.text = utf8.AppendRune(s.text, r)
	if len(s.text) >= longestPiece {
		s.finish()
	}
}

// lineEnd ends a heading, a row, the line of a fence or a line of code.
func (s *Splitter) lineEnd() {
	next := atLine
	switch s.state {
	case inFence, inCode:
		next = inCode
	}
	if s.finish() == FenceEnd {
		next = atLine
	}
	s.state, s.indent, s.spaces = next, true, 0
	s.lead = append(s.lead, '\n')
}

func (s *Splitter) coded(r rune) {
	switch {
	case r == '\n':
		s.lineEnd()
		return
	case s.indent && (r == ' ' || r == '\t'):
		s.spaces++
	default:
		s.indent = false
	}
	s.put(r)
}

// probed reads the start of a line.
func (s *Splitter) probed(r rune) {
	if len(s.probe) == 0 {
		switch r {
		case ' ', '\t', '\r':
			s.gap = utf8.AppendRune(s.gap, r)
			return
		case '\n':
			s.finish() // a blank line ends what stands before it
			s.gap = utf8.AppendRune(s.gap, r)
			s.state = atLine
			return
		}
	}
	s.probe = utf8.AppendRune(s.probe, r)
	s.state = probing
	s.decide(false)
}

// decide says what line it is that begins with what was read of it, once that is known.
func (s *Splitter) decide(end bool) {
	p := string(s.probe)
	switch first := p[0]; {
	case first == '|':
		s.open(inRow)
		return
	case first == '>':
		s.mark()
		return
	case first == '`' || first == '~':
		if s.fenced(p, end) {
			return
		}
	case first == '#':
		if s.headed(p, end) {
			return
		}
	case first == '-' || first == '*' || first == '+' || first >= '0' && first <= '9':
		if s.marked(p, end) {
			return
		}
	}
	// Running text: of the sentence before, where a line break stands within it.
	s.state = inText
	if len(s.text) > 0 {
		s.text = append(s.text, s.gap...)
	} else {
		s.lead = append(s.lead, s.gap...)
	}
	s.gap, s.probe = s.gap[:0], s.probe[:0]
	for _, r := range p {
		s.take(r)
	}
}

// fenced reports whether a line that begins so opens code, or may.
func (s *Splitter) fenced(p string, end bool) bool {
	if strings.Trim(p, p[:1]) != "" {
		return false
	}
	if len(p) >= 3 {
		s.open(inFence)
		s.fence, s.fences = p[0], 0
		return true
	}
	return !end
}

// headed reports whether it is a heading, or may be.
func (s *Splitter) headed(p string, end bool) bool {
	rest := strings.TrimLeft(p, "#")
	switch {
	case len(p)-len(rest) > 6:
		return false
	case rest == "":
		return !end
	case rest != " " && rest != "\n":
		return false
	}
	s.open(inHeading)
	if rest == "\n" {
		s.text = s.text[:len(s.text)-1]
		s.lineEnd()
	}
	return true
}

// marked reports whether it is the item of a list, or may be.
func (s *Splitter) marked(p string, end bool) bool {
	rest := p[1:]
	if p[0] >= '0' && p[0] <= '9' {
		if rest = strings.TrimLeft(p, "0123456789"); len(p)-len(rest) > 9 {
			return false
		}
		if rest == "" {
			return !end
		}
		if rest[0] != '.' && rest[0] != ')' {
			return false
		}
		rest = rest[1:]
	}
	if rest == "" {
		return !end
	}
	if rest != " " && rest != "\t" {
		return false
	}
	s.mark()
	return true
}

// open begins a line of its own.
func (s *Splitter) open(state splitState) {
	s.begin()
	s.text = append(s.text, s.probe...)
	s.probe, s.state = s.probe[:0], state
}

// mark takes the sign of an item or a quotation; what follows may be anything.
func (s *Splitter) mark() {
	s.begin()
	s.lead = append(s.lead, s.probe...)
	s.probe, s.state = s.probe[:0], atLine
}

func (s *Splitter) begin() {
	s.finish()
	s.lead = append(s.lead, s.gap...)
	s.gap = s.gap[:0]
}

// texted reads running text.
func (s *Splitter) texted(r rune) {
	if r != '`' && s.run > 0 {
		switch {
		case s.span == 0:
			s.span = s.run
		case s.span == s.run:
			s.span = 0
		}
		s.run = 0
	}
	space := r == ' ' || r == '\t' || r == '\r'
	if r == '\n' || space && s.ended || s.cjk && !closes(r) && !space {
		if r == '\n' || s.free() {
			if s.ended || s.cjk {
				if s.sentenceEnds() {
					s.finish()
				}
			}
		}
	}
	switch {
	case r == '\n':
		s.gap = append(s.gap, '\n')
		s.state, s.span, s.bracket, s.target, s.ended, s.cjk = atLine, 0, 0, false, false, false
		return
	case len(s.text) == 0 && space:
		s.lead = utf8.AppendRune(s.lead, r)
		return
	}
	s.follow(r)
	s.put(r)
}

// free reports whether the text is neither in code nor in a link.
func (s *Splitter) free() bool { return s.span == 0 && s.bracket <= 0 && !s.target }

// follow keeps where in a sentence the text is.
func (s *Splitter) follow(r rune) {
	if r == '`' {
		s.run++
		s.ended, s.cjk = false, false
		return
	}
	if s.span == 0 {
		switch r {
		case '[':
			s.bracket++
		case ']':
			s.bracket--
		case '(':
			s.target = s.target || s.closed
		case ')':
			s.target = false
		}
		s.closed = r == ']'
	}
	switch {
	case s.span > 0:
		s.ended, s.cjk = false, false
	case r == '.' || r == '!' || r == '?' || r == '…':
		s.ended = true
	case r == '。' || r == '！' || r == '？':
		s.ended, s.cjk = true, true
	case !closes(r):
		s.ended, s.cjk = false, false
	}
}

// closes reports whether a sign belongs to the sentence that has just ended.
func closes(r rune) bool { return strings.ContainsRune(`)"'*_]”’»」』）`, r) }

// sentenceEnds reports whether the point at the end is that of a sentence, not of an abbreviation.
func (s *Splitter) sentenceEnds() bool {
	tail := s.text[max(0, len(s.text)-longestAbbreviation-4):]
	word := strings.TrimRightFunc(string(tail), closes)
	if !strings.HasSuffix(word, ".") {
		return true
	}
	word = strings.TrimRight(word, ".")
	if at := strings.LastIndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || r == '(' }); at >= 0 {
		word = word[at+1:]
	}
	return !abbreviations[strings.ToLower(word)]
}

var abbreviations = set("e.g i.e eg ie etc vs cf fig approx mr mrs dr st inc ltd al resp incl max min " +
	"z.b d.h u.a bzw usw ca p.ex ej p.ej т.е т.д n.b")

// finish emits the piece under way, and tells its kind.
func (s *Splitter) finish() Kind {
	kind := Sentence
	switch s.state {
	case inHeading:
		kind = Heading
	case inFence:
		kind = Fence
		s.fences = len(s.text) - len(strings.TrimLeft(string(s.text), string(s.fence)))
	case inCode:
		kind = Code
		bare := strings.TrimSpace(string(s.text))
		if len(bare) >= s.fences && s.fences > 0 && strings.Trim(bare, string(s.fence)) == "" && s.spaces < 40 {
			kind = FenceEnd
		}
	case inRow:
		kind = Row
	}
	if len(s.text) > 0 {
		p := Piece{Kind: kind, Lead: string(s.lead), Text: string(s.text), Cites: s.cites}
		s.lead, s.text, s.cites = s.lead[:0], s.text[:0], nil
		if s.failed == nil {
			s.failed = s.Emit(p)
		}
	}
	s.ended, s.cjk, s.span, s.run, s.bracket, s.target, s.closed = false, false, 0, 0, 0, false, false
	return kind
}
