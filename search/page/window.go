package page

import (
	"math"
	"strings"

	"docent/search/analysis"
)

// A section may be longer than what is shown of it: a table of settings, a changelog. What is shown then is the part that
// has what was asked for.

const (
	mostAsked   = 64 // words of a question
	beforeMatch = 5  // the match stands in this part of what is shown: a fifth of it comes before
)

// Window is the part of a long text that says most of what is asked: its beginning, if no line after it says more, or if the whole
// of it is what is asked for. A table keeps its head, and code its fences.
func Window(text, question string, whole bool, language string, most int) string {
	if whole {
		return cut(text[:min(most, len(text))])
	}
	a := analysis.Get()
	defer a.Put()
	var asked [mostAsked]uint32
	n := 0
	a.Tokens(question, language, func(t analysis.Token) {
		if n < mostAsked && (t.Covers > 0 || !analysis.Dropped(t.Surface)) {
			asked[n] = analysis.Hash(t.Term)
			n++
		}
	})
	line, at := bestLine(a, text, asked[:n], language), 0
	if line < most*(beforeMatch-1)/beforeMatch {
		return cut(text[:min(most, len(text))])
	}
	at = max(0, min(line-most/beforeMatch, len(text)-most))
	if next := strings.IndexByte(text[at:], '\n'); next >= 0 && at+next < line {
		at += next + 1
	}
	head, tail := openedBefore(text, at)
	part := text[at:min(len(text), at+most-len(head)-len(tail))]
	if end := strings.LastIndexByte(part, '\n'); end > line-at && at+len(part) < len(text) {
		part = part[:end]
	}
	if strings.Count("\n"+head+part, "\n```")%2 == 0 {
		tail = ""
	}
	return cut(head + part + tail)
}

func cut(text string) string { return strings.TrimSpace(strings.ToValidUTF8(text, "")) }

// bestLine is where the line begins that has most of what is asked, by how few lines have each word of it; the first one
// of several.
func bestLine(a *analysis.Tokenizer, text string, asked []uint32, language string) int {
	type found struct {
		at   int
		mask uint64
	}
	var lines []found
	var counts [mostAsked]int
	at := 0
	for line := range strings.Lines(text) {
		mask := uint64(0)
		a.Tokens(line, language, func(t analysis.Token) {
			hash := analysis.Hash(t.Term)
			for i, h := range asked {
				if h == hash {
					mask |= 1 << i
				}
			}
		})
		if mask != 0 {
			for i := range asked {
				counts[i] += int(mask >> i & 1)
			}
			lines = append(lines, found{at, mask})
		}
		at += len(line)
	}
	best, most := 0, 0.0
	for _, l := range lines {
		sum := 0.0
		for i := range asked {
			if l.mask>>i&1 == 1 {
				sum += math.Log(1 + float64(len(lines)+1)/float64(counts[i]))
			}
		}
		if sum > most+1e-9 {
			best, most = l.at, sum
		}
	}
	return best
}

// longestHead is how much of a table's head, or of the line that opens a stretch of code, is shown above a part of it.
const longestHead = 1000

// openedBefore is what has to stand before and after a part of a text that begins there: the head of the table that it is in,
// the fence of the code.
func openedBefore(text string, at int) (head, tail string) {
	fence := ""
	table := -1 // where the table begins that is open
	begin := 0
	for line := range strings.Lines(text[:at]) {
		trimmed := strings.TrimLeft(line, " ")
		if mark := strings.HasPrefix(trimmed, "```"); mark && fence == "" {
			fence = line
		} else if mark {
			fence = ""
		}
		switch {
		case !strings.HasPrefix(trimmed, "|"):
			table = -1
		case table < 0:
			table = begin
		}
		begin += len(line)
	}
	if fence != "" {
		return fence, "\n```"
	}
	if table >= 0 && strings.HasPrefix(strings.TrimLeft(text[at:], " "), "|") {
		rows := strings.SplitAfterN(text[table:at], "\n", 3)
		if head = strings.Join(rows[:min(2, len(rows))], ""); len(head) <= longestHead {
			return head, "\n```"
		}
	}
	return "", "\n```"
}
