package remote

import (
	"strings"
	"unicode"

	"docent/model"
)

// A citer reads the citations out of a model's text as it streams: "[2]" and "[1, 3]" become citations of the passages
// that were given under these numbers and are taken out of the text, since readers see sources by name and the numbers
// would point at nothing. A number that was not given is taken out too and cites nothing. Code is left alone, and so
// are links and other brackets.
type citer struct {
	given []int // the passage behind each number, counted from one
	emit  func(model.Delta) error
	held  string // the end of what came so far, where a marker may be under way
	cited []int

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
	var cite []int
	if !c.begun {
		c.begun, c.lineStart = true, true
	}
	for i := 0; i < len(s); {
		if s[i] == '`' {
			c.run++
			out.WriteByte('`')
			i++
			continue
		}
		c.endRun()
		if c.ticks == 0 && (s[i] == '[' || s[i] == ' ') {
			from := i
			for from < len(s) && s[from] == ' ' {
				from++
			}
			if from == len(s) { // a marker may follow the space
				if len(s)-i < longestMarker {
					c.held = s[i:]
					break
				}
			} else if s[from] == '[' {
				numbers, end, verdict := marker(s[from:])
				if verdict == undecided {
					c.held = s[i:]
					break
				}
				// "list[7]" is no citation where only three passages were given.
				attached := from == i && i > 0 && isLetter(s[i-1]) || from == i && i == 0 && isLetter(c.last)
				if verdict == isMarker && !(attached && !c.known(numbers)) {
					for _, n := range numbers {
						if n >= 1 && n <= len(c.given) {
							cite = append(cite, c.given[n-1])
						}
					}
					i = from + end
					// "word [1] next" keeps one space; "word [1]." keeps none.
					continue
				}
			}
			if s[i] == ' ' {
				out.WriteString(s[i:from])
				i = from
				c.lineStart = false
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
	return c.put(out.String(), cite)
}

// known reports whether one of the numbers stands for a passage.
func (c *citer) known(numbers []int) bool {
	for _, n := range numbers {
		if n >= 1 && n <= len(c.given) {
			return true
		}
	}
	return false
}

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
	if numbers, end, verdict := marker(strings.TrimLeft(held, " ") + "\n"); verdict == isMarker && end == len(strings.TrimLeft(held, " ")) {
		var cite []int
		for _, n := range numbers {
			if n >= 1 && n <= len(c.given) {
				cite = append(cite, c.given[n-1])
			}
		}
		return c.put("", cite)
	}
	return c.put(strings.TrimRight(held, " "), nil)
}

func (c *citer) put(text string, cite []int) error {
	d := model.Delta{Text: text}
	for _, n := range cite {
		fresh := true
		for _, m := range c.cited {
			fresh = fresh && m != n
		}
		if fresh {
			c.cited = append(c.cited, n)
			d.Cite = append(d.Cite, n)
		}
	}
	if d.Text == "" && len(d.Cite) == 0 {
		return nil
	}
	return c.emit(d)
}

func isLetter(c byte) bool { return unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)) }

type verdict uint8

const (
	noMarker verdict = iota
	isMarker
	undecided
)

// marker reads "[1]" or "[1, 2]" at the start of s, not followed by what would make it a link or a definition.
func marker(s string) (numbers []int, end int, v verdict) {
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
			if s[i+1] == '(' || s[i+1] == ':' {
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
