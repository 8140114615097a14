package pdf

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A writer writes lines as Markdown.
type writer struct {
	title    string
	out      strings.Builder
	body     strings.Builder // what of it is text of the file
	text     float64         // size of the letters of running text
	headings []float64       // sizes of headings, the largest first
	running  map[string]bool
	spacing  float64 // between the lines of a paragraph
	width    int     // of the widest line of the page, in letters

	paragraph []line
	code      []line
}

// headingLevels is how many sizes of headings are told apart.
const headingLevels = 3

// measure finds the sizes of text and headings, and what stands on every page.
func (w *writer) measure(pages [][]line) {
	letters := map[float64]int{}
	gaps := map[float64]int{}
	edges := map[string]int{}
	for _, lines := range pages {
		on := map[string]bool{}
		for i, l := range lines {
			letters[l.size] += utf8.RuneCountInString(l.text)
			if i > 0 && lines[i-1].size == l.size && lines[i-1].y > l.y {
				gaps[math.Round(lines[i-1].y-l.y)]++
			}
			if edge(lines, l) {
				on[plain(l.text)] = true
			}
		}
		for text := range on {
			edges[text]++
		}
	}
	w.text, w.spacing = most(letters), most(gaps)
	w.running = map[string]bool{}
	for text, n := range edges {
		if len(pages) > 1 && n > max(1, len(pages)/2) || len(pages) > 1 && text == "" {
			w.running[text] = true
		}
	}
	for size, n := range letters {
		if size > 1.12*w.text && n > 1 {
			w.headings = append(w.headings, size)
		}
	}
	slices.SortFunc(w.headings, func(a, b float64) int { return cmp.Compare(b, a) })
}

// most is the value that is counted most often, the smallest of several.
func most(counts map[float64]int) (value float64) {
	best := 0
	for v, n := range counts {
		if n > best || n == best && v < value {
			value, best = v, n
		}
	}
	return value
}

// edge tells lines at the upper and lower end of a page.
func edge(lines []line, l line) bool {
	above, below := 0, 0
	for _, other := range lines {
		if other.y > l.y+1 {
			above++
		}
		if other.y < l.y-1 {
			below++
		}
	}
	return above < 3 || below < 3
}

func (w *writer) page(number int, lines []line) {
	w.end()
	w.out.WriteString(PageMark(number) + "\n\n")
	w.width = 0
	for _, l := range lines {
		w.width = max(w.width, utf8.RuneCountInString(l.text))
	}
	var before *line
	for i := range lines {
		l := &lines[i]
		if w.running[plain(l.text)] && edge(lines, *l) {
			continue
		}
		w.line(l, before)
		before = l
	}
}

var bullet = regexp.MustCompile(`^(?:[•◦▪‣●○■·*\x{f0b7}\x{f0a7}–-]|o )\s*`)
var numbered = regexp.MustCompile(`^(?:\d{1,3}|[a-z])[.)]\s+`)

// line takes one more line of a page.
func (w *writer) line(l, before *line) {
	level := slices.Index(w.headings, l.size) + 1
	switch {
	case level > 0 && len(l.text) < 200:
		w.heading(l, min(level, headingLevels), before)
	case l.mono && !(before != nil && len(w.paragraph) > 0 && !w.begins(l, before)):
		w.endParagraph()
		w.code = append(w.code, *l)
	default:
		w.endCode()
		if w.begins(l, before) {
			w.endParagraph()
		}
		w.paragraph = append(w.paragraph, *l)
	}
}

// begins reports whether a line begins a paragraph.
func (w *writer) begins(l, before *line) bool {
	if before == nil || len(w.paragraph) == 0 {
		return true
	}
	gap := before.y - l.y
	return gap < 0 || gap > 1.35*max(w.spacing, l.size) || bullet.MatchString(l.text) || numbered.MatchString(l.text) ||
		before.size != l.size || utf8.RuneCountInString(before.text) < w.width/2 && !beginsLower(l.text)
}

// heading writes one; a line of the same size right below is the rest of it.
func (w *writer) heading(l *line, level int, before *line) {
	w.end()
	text := escaped(strings.TrimSpace(l.text))
	if before != nil && before.size == l.size && before.y > l.y && before.y-l.y < 1.6*l.size && len(w.out.String()) > 0 {
		if soFar := strings.TrimRight(w.out.String(), "\n"); strings.HasPrefix(soFar[strings.LastIndexByte(soFar, '\n')+1:], "#") {
			w.out.Reset()
			w.out.WriteString(soFar + " " + text + "\n\n")
			return
		}
	}
	if w.title == "" && w.body.Len() == 0 {
		w.title = strings.TrimSpace(l.text)
	}
	w.out.WriteString(strings.Repeat("#", level+1) + " " + text + "\n\n")
	w.body.WriteString(text)
}

func (w *writer) end() {
	w.endParagraph()
	w.endCode()
}

func (w *writer) endParagraph() {
	if len(w.paragraph) == 0 {
		return
	}
	var b strings.Builder
	for i, l := range w.paragraph {
		text := strings.TrimSpace(l.text)
		if i == 0 {
			if mark := bullet.FindString(text); mark != "" && len(text) > len(mark) {
				b.WriteString("- ")
				text = text[len(mark):]
			} else if mark := numbered.FindString(text); mark != "" {
				b.WriteString(mark)
				text = text[len(mark):]
			}
		}
		soFar := b.String()
		if word, parted := strings.CutSuffix(soFar, "-"); parted && endsWithLetter(word) && beginsLower(text) {
			b.Reset()
			b.WriteString(word) // a word that was parted at the end of a line
		} else if i > 0 && !betweenIdeographs(soFar, text) {
			b.WriteByte(' ')
		}
		b.WriteString(escaped(text))
	}
	w.paragraph = nil
	w.out.WriteString(b.String() + "\n\n")
	w.body.WriteString(b.String())
}

func endsWithLetter(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r)
}

func beginsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}

// betweenIdeographs tells lines between which no space stands.
func betweenIdeographs(a, b string) bool {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return unicode.In(last, unicode.Han, unicode.Hiragana, unicode.Katakana) &&
		unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

func (w *writer) endCode() {
	if len(w.code) == 0 {
		return
	}
	left := w.code[0].x
	for _, l := range w.code {
		left = min(left, l.x)
	}
	var b strings.Builder
	for _, l := range w.code {
		indent := 0
		if l.size > 0 {
			indent = int(math.Round((l.x - left) / (0.6 * l.size)))
		}
		b.WriteString(strings.Repeat(" ", min(max(indent, 0), 40)) + l.text + "\n")
	}
	fence := "```"
	for strings.Contains(b.String(), fence) {
		fence += "`"
	}
	w.code = nil
	w.out.WriteString(fence + "\n" + b.String() + fence + "\n\n")
	w.body.WriteString(b.String())
}

var special = regexp.MustCompile("[\\\\`*_\\[\\]<>{}#|]")

// escaped is text that Markdown does not read as marks.
func escaped(s string) string { return special.ReplaceAllString(s, `\$0`) }

// finish is all that was written.
func (w *writer) finish() []byte {
	w.end()
	front := ""
	if w.title != "" {
		front = "---\ntitle: " + strconv.Quote(strings.Join(strings.Fields(w.title), " ")) + "\n---\n\n"
	}
	return []byte(front + w.out.String())
}
