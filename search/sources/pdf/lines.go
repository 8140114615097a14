package pdf

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// A line is what stands at one height.
type line struct {
	text string
	x, y float64
	size float64
	mono bool // all of it is in a font for code
}

// A builder puts letters together to lines, in the order in which the file shows them: that of reading, even if
// there are columns.
type builder struct {
	lines []line
	text  strings.Builder
	first pdf.Text // of the line
	last  pdf.Text
	// Of many fonts the library does not know how wide their letters are, and says of all that are shown at once that
	// they stand where the first does. How wide such a stretch is follows from the number of its letters.
	from    float64
	letters int
	spaced  bool // the page has letters for spaces
	mono    bool
	largest float64
}

func (b *builder) add(t pdf.Text) {
	if t.S == "\n" || t.S == "" || !utf8.ValidString(t.S) || t.FontSize == 0 {
		return // the library's own mark, or turned by a right angle
	}
	size := math.Abs(t.FontSize)
	if b.text.Len() > 0 && math.Abs(t.Y-b.last.Y) > 0.5*max(size, b.largest) {
		b.end()
	}
	if b.text.Len() == 0 {
		b.first, b.from, b.letters, b.mono, b.largest = t, t.X, 0, true, size
	} else {
		if b.apart(t, size) {
			b.text.WriteByte(' ')
		}
		if t.X != b.last.X {
			b.from, b.letters = t.X, 0
		}
	}
	b.text.WriteString(unligated.Replace(t.S))
	b.letters++
	b.largest = max(b.largest, size)
	if strings.TrimSpace(t.S) != "" {
		b.mono = b.mono && isMono(t.Font)
	}
	b.last = t
}

// apart tells a space that is no letter of its own.
func (b *builder) apart(t pdf.Text, size float64) bool {
	if strings.HasSuffix(b.text.String(), " ") || t.S == " " {
		return false
	}
	step := t.X - b.last.X
	switch {
	case step < -size:
		return true // to the left: another stretch at the same height
	case b.last.W > 0:
		return step-b.last.W > 0.2*size
	case !b.spaced && step > 0.2*size && step < 0.45*size:
		return true
	}
	wide := 0.5 * size * float64(b.letters)
	beyond := t.X - b.from - wide
	return beyond > 1.5*size+0.3*wide || !b.spaced && beyond > 0.5*size
}

func (b *builder) end() {
	text := strings.TrimRight(strings.ReplaceAll(b.text.String(), "\ufffd", ""), " ")
	if !b.mono {
		text = strings.TrimLeft(text, " ")
	}
	if strings.TrimSpace(text) != "" {
		b.lines = append(b.lines, line{text, b.first.X, b.first.Y, math.Round(b.largest*2) / 2, b.mono})
	}
	b.text.Reset()
}

// unligated writes letters out that are drawn together, and leaves out marks of where a word may be parted.
var unligated = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st",
	"\u00ad", "", "\u00a0", " ", "\t", " ", "\x00", "", "\r", "")

func isMono(font string) bool {
	font = strings.ToLower(font)
	for _, name := range []string{"mono", "courier", "consol", "menlo", "typewriter", "cmtt", "code", "fixed"} {
		if strings.Contains(font, name) {
			return true
		}
	}
	return false
}

// plain is a line without its numbers, to tell page numbers and running titles by.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}
