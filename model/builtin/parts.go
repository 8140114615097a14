package builtin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A long list or table is taken in parts. Who reads some of it has to see that there is more, and where.

// end is where the list or table ends that unit i is the first part of; the next unit where i stands for itself.
func (s *section) end(i int) int {
	n := i + 1
	for s.units[i].of > 0 && n < len(s.units) && s.units[n].of == s.units[i].of {
		n++
	}
	return n
}

// complete takes the rest of a list or table of which little is left, and tables that compare what is asked about.
func (s *section) complete(q *query, taken []bool, said []uint64, take func(int)) {
	for i, end := 0, 0; i < len(s.units); i = end {
		end = s.end(i)
		if end == i+1 {
			continue
		}
		left, all, rest := 0, 0, 0 // parts that are not taken; words of all, and of these
		for n := i; n < end; n++ {
			all += s.units[n].words
			if !taken[n] && !slices.Contains(said, s.units[n].print) {
				left++
				rest += s.units[n].words
			}
		}
		room := 0
		switch {
		case left == 0:
		case left < end-i && rest <= shortRest:
			room = all
		case all <= longCompare && q.compares(s.units[i].columns):
			s.lean(q, i, take)
			room = all
		case left < end-i && q.lists:
			room = listed - (all - rest)
		}
		for n := i; n < end && room > 0; n++ {
			if !taken[n] {
				take(n)
				room -= s.units[n].words
			}
		}
	}
}

// write puts together what is taken of a section, in the order of the page.
func (s *section) write(q *query, taken []bool, budget int, said *[]uint64) string {
	out := make([]string, 0, 16)
	label := "" // what a step, a tab or a small heading says belongs to the first block under it
	for i, end := 0, 0; i < len(s.units); i = end {
		end = s.end(i)
		u := &s.units[i]
		if u.kind == heading {
			label = u.text
			continue
		}
		text, left := u.head, 0
		some := false
		for n := i; n < end; n++ {
			switch p := &s.units[n]; {
			case p.words > 3 && slices.Contains(*said, p.print): // it stands further up
			case !taken[n]:
				left++
			default:
				*said = append(*said, p.print)
				if text == "" {
					text = p.text
				} else {
					text += "\n" + p.text
				}
				some = true
			}
		}
		if some && u.kind == prose {
			if text = s.lead(q, i, taken, *said, budget); text == "" {
				continue // what it led to keeps the label
			}
		}
		if some && label != "" {
			out = append(out, "**"+strings.Trim(label, "*")+"**")
		}
		label = ""
		if some {
			out = append(out, text)
		}
		if some && left > 0 {
			out = append(out, s.more(u, left))
		}
	}
	return strings.Join(out, "\n\n")
}

// more says that so many parts of a list or table are left out.
func (s *section) more(u *unit, left int) string {
	what := "item"
	switch m := item.FindStringSubmatch(u.text); {
	case u.kind == table:
		what = "row"
	case m != nil && !strings.ContainsAny(m[2], "-*+"):
		what = "step"
	}
	if left > 1 {
		what += "s"
	}
	text := fmt.Sprintf("… and %d more %s", left, what)
	if s.of.URL != "" {
		return "[" + text + "](" + s.of.URL + ")"
	}
	return text
}

// lead is a paragraph as it is quoted. Where what it announces is not quoted, or not all of it, it does not go on about it.
func (s *section) lead(q *query, i int, taken []bool, said []uint64, budget int) string {
	text := q.shorten(s, &s.units[i], budget)
	missing := !s.follows(i, taken)
	announced := strings.HasSuffix(text, ":")
	if !(missing && announced) && !s.partly(i+1, taken, said) {
		return text
	}
	all := sentences(text)
	last := all[len(all)-1]
	switch {
	case totals.MatchString(last) || missing && len(all) > 1:
		return strings.Join(all[:len(all)-1], " ")
	case missing:
		return strings.TrimSuffix(text, ":") + "."
	}
	return text
}

// totals are words that say that nothing is missing in what follows.
var totals = regexp.MustCompile(`(?i)\b(all|every|everything|each|entire|complete|completely|full|fully|whole|only|exactly|nothing (else|more))\b`)

// partly reports whether some but not all of the list or table that begins with unit i is quoted.
func (s *section) partly(i int, taken []bool, said []uint64) bool {
	if i >= len(s.units) || s.units[i].of == 0 {
		return false
	}
	some, left := false, false
	for n := i; n < s.end(i); n++ {
		if taken[n] || slices.Contains(said, s.units[n].print) {
			some = true
		} else {
			left = true
		}
	}
	return some && left
}
