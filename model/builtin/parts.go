package builtin

import (
	"regexp"
	"slices"
	"strings"

	"docent/internal/brief"
	"docent/model"
)

// A long list or table is taken in parts. A reader of some of it has to see that there is more, and where.

// end is where the list or table ends that unit i is the first part of; the next unit if i stands for itself.
func (s *section) end(i int) int {
	n := i + 1
	for s.units[i].of > 0 && n < len(s.units) && s.units[n].of == s.units[i].of {
		n++
	}
	return n
}

// complete takes the rest of a list or table of which little is left, and tables that compare what is asked about.
func (c *selection) complete() {
	for i, end := 0, 0; i < len(c.units); i = end {
		end = c.end(i)
		if end == i+1 {
			continue
		}
		left, all, rest := 0, 0, 0 // parts that are not taken; words of all, and of these
		for n := i; n < end; n++ {
			all += c.units[n].words
			if !c.taken[n] && !slices.Contains(*c.quoted, c.units[n].fingerprint) {
				left++
				rest += c.units[n].words
			}
		}
		room := 0
		switch {
		case left == 0:
		case left < end-i && rest <= shortRest:
			room = all
		case all <= longCompare && c.q.compares(c.units[i].columns):
			c.takeContext(i)
			room = all
		case left < end-i && c.q.lists:
			room = listed - (all - rest)
		}
		for n := i; n < end && room > 0; n++ {
			if !c.taken[n] {
				c.take(n)
				room -= c.units[n].words
			}
		}
	}
}

// write puts together what is taken of a section, in the order of the page.
func (c *selection) write() string {
	out := make([]string, 0, 16)
	label := "" // what a step, a tab or a small heading says belongs to the first block under it
	for i, end := 0, 0; i < len(c.units); i = end {
		end = c.end(i)
		u := &c.units[i]
		if u.kind == heading {
			label = u.text
			continue
		}
		text, left := u.head, 0
		some := false
		for n := i; n < end; n++ {
			switch p := &c.units[n]; {
			case p.words > 3 && slices.Contains(*c.quoted, p.fingerprint): // it stands further up
			case !c.taken[n]:
				left++
			default:
				*c.quoted = append(*c.quoted, p.fingerprint)
				shown := p.text
				if p.kind == list {
					shown = c.elide(shown)
				}
				if text == "" {
					text = shown
				} else {
					text += "\n" + shown
				}
				some = true
			}
		}
		if some && u.kind == prose {
			if text = c.lead(i); text == "" {
				continue // what it led to keeps the label
			}
		}
		if some && i > 0 && c.units[i-1].kind == heading && c.tabLabel(i-1) != "" {
			out = append(out, c.tabLabel(i-1))
		} else if some && label != "" {
			out = append(out, "**"+strings.Trim(label, "*")+"**")
		} else if named := c.tabLabel(i); some && named != "" {
			out = append(out, named)
		}
		label = ""
		if some {
			out = append(out, text)
		}
		if some && left > 0 {
			out = append(out, c.more(c.q.language, left))
		}
	}
	return strings.Join(out, "\n\n")
}

// more says in a language that so many parts of a list or table are left out.
func (s *section) more(language string, left int) string {
	text := model.More(language, left)
	if s.of.URL != "" {
		return "[" + text + "](" + s.of.URL + ")"
	}
	return text
}

// longest is how many lines of code within a list are shown.
const longestInList = 12

// elide leaves long code out of a list, with a link in its place.
func (c *selection) elide(text string) string {
	if strings.Count(text, "\n") <= longestInList || !strings.Contains(text, "```") {
		return text
	}
	lines := strings.Split(text, "\n")
	kept := lines[:0:0]
	for i := 0; i < len(lines); i++ {
		fence := strings.TrimLeft(lines[i], " ")
		end := i + 1
		if strings.HasPrefix(fence, "```") {
			marks := fence[:len(fence)-len(strings.TrimLeft(fence, "`"))]
			for end < len(lines) && strings.TrimSpace(lines[end]) != marks {
				end++
			}
			if end-i-1 > longestInList {
				kept = append(kept, lines[i][:len(lines[i])-len(fence)]+c.more(c.q.language, end-i-1))
				i = end
				continue
			}
			end = min(end+1, len(lines))
		}
		kept = append(kept, lines[i:end]...)
		i = end - 1
	}
	return strings.Join(kept, "\n")
}

// lead is a paragraph as it is quoted. If what it announces is not quoted, or not all of it, it does not go on about
// it.
func (c *selection) lead(i int) string {
	u := c.units[i]
	if i == c.begun {
		if u.text = c.rest; u.text == "" {
			return ""
		}
		u.words = countWords(u.text)
	}
	text := c.q.shorten(c.section, &u, c.budget)
	missing := !c.follows(i)
	if missing && i+1 < len(c.units) && c.units[i+1].kind != prose && c.units[i+1].kind != heading &&
		(!ended.MatchString(text) || announces(text) && !strings.HasSuffix(text, ":")) { // "Fill in the following fields."
		all := brief.Sentences(text)
		return strings.Join(all[:len(all)-1], " ")
	}
	announced := strings.HasSuffix(text, ":")
	if !(missing && announced) && !c.partly(i+1) {
		return text
	}
	all := brief.Sentences(text)
	last := all[len(all)-1]
	switch {
	case totals.MatchString(last) || missing && len(all) > 1:
		return strings.Join(all[:len(all)-1], " ")
	case missing && (unfinished.MatchString(text) || announced && countWords(text) < 3):
		return ""
	case missing:
		return strings.TrimSuffix(text, ":") + "."
	}
	return text
}

// ended matches a text whose last sentence has its end.
var ended = regexp.MustCompile(`[.!?:;。！？：)"'*_` + "`" + `\]]$`)

// unfinished matches a sentence that says nothing without what it announces.
var unfinished = regexp.MustCompile(`(?i)\b(?:be|is|are|include|includes|following|these|this|by|with|of|to|for|in|below|has|have):$`)

// totals are words that say that nothing is missing in what follows.
var totals = regexp.MustCompile(
	`(?i)\b(all|every|everything|each|entire|complete|completely|full|fully|whole|only|exactly|nothing (else|more))\b`)

// partly reports whether some but not all of the list or table that begins with unit i is quoted.
func (c *selection) partly(i int) bool {
	if i >= len(c.units) || c.units[i].of == 0 {
		return false
	}
	some, left := false, false
	for n := i; n < c.end(i); n++ {
		if c.taken[n] || slices.Contains(*c.quoted, c.units[n].fingerprint) {
			some = true
		} else {
			left = true
		}
	}
	return some && left
}
