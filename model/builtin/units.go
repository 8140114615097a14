package builtin

import (
	"regexp"
	"slices"
	"strings"

	"docent/internal/brief"
	"docent/model/builtin/blocks"
)

// lines are a unit's sentences, or its lines if it is not running text.
func lines(u *unit) []string {
	if u.kind == prose {
		return brief.Sentences(u.text)
	}
	return strings.Split(u.text, "\n")
}

// steps reports whether a unit is a numbered list, whole.
func (u *unit) steps() bool {
	mark := blocks.Marker(u.text)
	return u.kind == list && u.of == 0 && mark != "" && !blocks.Bullet(mark) && strings.Contains(u.text, "\n")
}

// ownLines are a unit's lines as far as one of them says something by itself: an item is one, however it is wrapped.
func ownLines(u *unit) []string {
	if u.kind == list && u.of > 0 && u.words <= wholeStatement {
		return []string{brief.Line(u.text)}
	}
	return lines(u)
}

// isNumberedStep reports whether a paragraph is one of several steps: "Step 2: …".
func isNumberedStep(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, "*_"), "Step ")
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// instructs is how much a passage tells in steps what to do: in a list of them, or in many paragraphs.
func (p *passage) instructs() (much float64) {
	paragraphs := 0
	for i := range p.units {
		u := &p.units[i]
		if u.stepped {
			paragraphs++
		}
		switch {
		case paragraphs > 1:
			return 0.25
		case u.steps() && strings.Count(u.text, "\n") > 1:
			much = 0.15
		}
	}
	return much
}

// items cuts a list into its items, each with what is below it. The steps of a numbered list belong together unless
// there are too many to be read.
func items(text string) []string {
	lines := strings.Split(text, "\n")
	mark := blocks.Marker(lines[0])
	if mark == "" || !blocks.Bullet(mark) && proseWords(text) <= longSteps {
		return []string{text}
	}
	out := outerItems(lines)
	for i := 0; i < len(out); i++ {
		first, below, ok := strings.Cut(out[i], "\n")
		if !ok || len(strings.Fields(out[i])) <= longList || !itemBelow.MatchString(below) {
			continue
		}
		at := itemBelow.FindStringIndex(below)[0]
		head := strings.TrimRight(first+"\n"+below[:at], "\n")
		lines := strings.Split(below[at:], "\n")
		margin := strings.Repeat(" ", blocks.Indent(lines[0]))
		for n, l := range lines {
			lines[n] = l[min(len(margin), blocks.Indent(l)):]
		}
		nested := items(strings.Join(lines, "\n"))
		for n := range nested {
			nested[n] = margin + strings.ReplaceAll(nested[n], "\n", "\n"+margin)
		}
		out = slices.Replace(out, i, i+1, append([]string{head}, nested...)...)
		i += len(nested)
	}
	return out
}

// outerItems are the items of a list, each with what is below it.
func outerItems(lines []string) (out []string) {
	start, coding := 0, false
	for i, l := range lines {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			coding = !coding
		}
		if i > start && !coding && blocks.Indent(l) == 0 && blocks.Marker(l) != "" {
			out = append(out, strings.Join(lines[start:i], "\n"))
			start = i
		}
	}
	return append(out, strings.Join(lines[start:], "\n"))
}

var itemBelow = regexp.MustCompile(`(?m)^ +([-*+]|\d{1,9}[.)])\s+\S`)

// advises reports whether a block tells a reader what to do: it names a thing as it is typed, and speaks to him.
func advises(text string) bool {
	if !strings.Contains(text, "`") {
		return false
	}
	return slices.ContainsFunc(brief.Sentences(text), advisesIn)
}

func advisesIn(sentence string) bool {
	named := strings.Contains(sentence, "`")
	begun := len(firstWords(sentence))
	var buf [64]word
	before := ""
	for i, w := range appendWords(buf[:0], sentence) {
		if w.start > begun && !named {
			return false
		}
		lower := strings.ToLower(w.text)
		switch {
		case i == 0 && imperatives[lower], before == "you" && mayDo[lower], i > 0 && w.start < begun && lower == "use" && before != "of":
			return true
		}
		before = lower
	}
	return false
}

var (
	imperatives = verbs(`use set add create configure enable disable run specify pass install call put define import turn change
		replace wrap provide make ensure avoid consider include`)
	mayDo = set("can may should must need")
)

// announces reports whether a paragraph speaks of what comes after it.
func announces(text string) bool {
	if announcing(text) {
		return true
	}
	last := strings.ToLower(text[max(len(text)-120, 0):])
	return strings.Contains(last, "following") || strings.Contains(last, "below") || strings.Contains(last, "as follows")
}

// announcing reports whether a paragraph ends where something has to come.
func announcing(text string) bool { return strings.HasSuffix(strings.TrimRight(text, "*_"), ":") }

// pointsBack reports whether a paragraph cannot be understood without the one before it.
func pointsBack(text string) bool {
	first := split(firstWords(text))
	if len(first) == 0 {
		return false
	}
	w := strings.ToLower(first[0].text)
	return pronouns[w] || w == "however" || w == "therefore" || len(first) > 1 && w == "for" && strings.EqualFold(first[1].text, "example") ||
		len(first) > 2 && w == "to" && strings.EqualFold(first[1].text, "do") && pronouns[strings.ToLower(first[2].text)]
}

func firstWords(s string) string { return strings.ToValidUTF8(s[:min(len(s), 80)], "") }
