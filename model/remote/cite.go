package remote

import (
	"slices"
	"strings"
	"unicode"

	"docent/model"
)

// A citer reads the citations out of a model's text as it streams: "[2]" and "[1, 3]" become citations of the passages
// that were given under these numbers and are taken out of the text, since readers see sources by name and the numbers
// would point at nothing. A number that was not given is taken out too and cites nothing. Code is left alone, and so
// are links and other brackets.
type citer struct {
	given []int                   // the passage behind each number, counted from one
	emit  func(model.Delta) error // takes text, or what is cited after it
	held  string                  // the end of what came so far, if a marker may be under way

	ticks     int // backticks that opened the code that the text is in; 0 in running text
	run       int // backticks just read
	fenced    bool
	lineStart bool
	begun     bool
	last      byte // written
}

// longestMarker bounds what is held back; more numbers in one bracket are no citation.
const longestMarker = 64

func (c *citer) write(text string) error {
	s := c.held + text
	c.held = ""
	var out strings.Builder
	if !c.begun {
		c.begun, c.lineStart = true, true
	}
	for i := 0; i < len(s) && c.held == ""; {
		if s[i] == '`' {
			c.run++
			out.WriteByte('`')
			i++
			continue
		}
		c.endRun()
		if c.ticks == 0 && (s[i] == '[' || s[i] == ' ') {
			numbers, end := c.citation(s, i)
			switch {
			case end < 0:
				c.held = s[i:]
				continue
			case end > i:
				if err := c.put(out.String(), numbers); err != nil {
					return err
				}
				if n := out.Len(); n > 0 {
					c.last = out.String()[n-1]
				}
				out.Reset()
				i = end // "word [1] next" keeps one space; "word [1]." keeps none
				continue
			case s[i] == ' ':
				end = i + len(s[i:]) - len(strings.TrimLeft(s[i:], " "))
				out.WriteString(s[i:end])
				i, c.lineStart = end, false
				continue
			}
		}
		c.lineStart = s[i] == '\n' || c.lineStart && s[i] == ' '
		if s[i] == '\n' && c.ticks > 0 && !c.fenced {
			c.ticks = 0 // a code span that nobody closed ends with its line
		}
		out.WriteByte(s[i])
		i++
	}
	if n := out.Len(); n > 0 {
		c.last = out.String()[n-1]
	}
	return c.put(out.String(), nil)
}

// citation reads a marker, with the spaces before it, and says where it ends: at -1 if that is not known yet, and at
// i if there is none.
func (c *citer) citation(s string, i int) (numbers []int, end int) {
	rest := strings.TrimLeft(s[i:], " ")
	from := len(s) - len(rest)
	if rest == "" { // a marker may follow the spaces
		if from-i < longestMarker {
			return nil, -1
		}
		return nil, i
	}
	if rest[0] != '[' {
		return nil, i
	}
	numbers, length, v := marker(rest, c.lineStart)
	if v == undecided {
		return nil, -1
	}
	// "list[7]" is no citation if only three passages were given.
	before := c.last
	if i > 0 {
		before = s[i-1]
	}
	attached := from == i && isLetter(before)
	if v == noMarker || attached && !slices.ContainsFunc(numbers, c.known) {
		return nil, i
	}
	return numbers, from + length
}

// known reports whether a number stands for a passage.
func (c *citer) known(n int) bool { return n >= 1 && n <= len(c.given) }

// endRun decides what a run of backticks was, once something else follows it.
func (c *citer) endRun() {
	if c.run == 0 {
		return
	}
	switch {
	case c.ticks == 0:
		c.ticks, c.fenced = c.run, c.lineStart && c.run >= 3
	case c.fenced && c.lineStart && c.run >= c.ticks, !c.fenced && c.run == c.ticks:
		c.ticks, c.fenced = 0, false
	}
	c.run, c.lineStart = 0, false
}

// flush writes what was held back.
func (c *citer) flush() error {
	held := c.held
	c.held = ""
	bare := strings.TrimLeft(held, " ")
	if numbers, end, v := marker(bare+"\n", false); v == isMarker && end == len(bare) {
		return c.put("", numbers)
	}
	return c.put(strings.TrimRight(held, " "), nil)
}

// put hands on a piece of the text, and what is cited after it.
func (c *citer) put(text string, numbers []int) error {
	if text != "" {
		if err := c.emit(model.Delta{Text: text}); err != nil {
			return err
		}
	}
	var passages []int
	for _, n := range numbers {
		if c.known(n) && !slices.Contains(passages, c.given[n-1]) {
			passages = append(passages, c.given[n-1])
		}
	}
	if len(passages) == 0 {
		return nil
	}
	return c.emit(model.Delta{Cite: passages})
}

func isLetter(c byte) bool { return unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)) }

type markerState uint8

const (
	noMarker markerState = iota
	isMarker
	undecided
)

// marker reads "[1]" or "[1, 2]" at the start of s, not followed by what would make it a link or, at the start of a
// line, a definition.
func marker(s string, lineStart bool) (numbers []int, end int, v markerState) {
	n, digits := 0, 0
	for i := 1; i < min(len(s), longestMarker); i++ {
		switch ch := s[i]; {
		case ch >= '0' && ch <= '9':
			if digits++; digits > 2 {
				return nil, 0, noMarker
			}
			n = n*10 + int(ch-'0')
		case ch == ' ' && digits == 0:
		case ch == ',' && digits > 0:
			numbers = append(numbers, n)
			n, digits = 0, 0
		case ch == ']' && digits > 0:
			numbers = append(numbers, n)
			if i+1 == len(s) {
				return nil, 0, undecided // "[1](" would be a link
			}
			if s[i+1] == '(' || s[i+1] == ':' && lineStart {
				return nil, 0, noMarker
			}
			return numbers, i + 1, isMarker
		default:
			return nil, 0, noMarker
		}
	}
	if len(s) >= longestMarker {
		return nil, 0, noMarker
	}
	return nil, 0, undecided
}
