package builtin

import (
	"cmp"
	"slices"
	"strings"
)

// choose takes the units of a section that fit, with what they lean on, in the order of the page.
func choose(q *query, s *section, budget int, said *[]uint64) string {
	taken := make([]bool, len(s.units))
	used := 0
	take := func(i int) {
		if i < 0 || i >= len(s.units) || taken[i] {
			return
		}
		u := &s.units[i]
		if u.kind == code && u.words > budget+budget/3 || u.kind != prose && u.words > longBlock {
			return
		}
		taken[i] = true
		used += min(u.words, budget)
	}
	if s.words <= budget {
		for i := range s.units {
			take(i)
		}
	} else {
		byScore := make([]int, 0, len(s.units))
		named := 0
		lead := slices.IndexFunc(s.units, func(u unit) bool { return u.kind == prose })
		for i := range s.units {
			u := &s.units[i]
			if u.kind == heading {
				continue
			}
			score := s.scores[i]
			if i == lead {
				score += 0.08 // a section says first what it is about
			}
			if q.howTo && (u.kind == code || u.kind == list) && score > 0 {
				score += 0.06
			}
			if u.advises && score > 0 {
				score += 0.1
			}
			whole, share := q.row(u.named)
			score += 0.5 * whole * share
			if whole == 1 && named < mostNamed {
				named++
				take(i)
				s.lean(q, i, take)
			}
			s.scores[i] = score
			byScore = append(byScore, i)
		}
		slices.SortStableFunc(byScore, func(a, b int) int {
			return cmp.Compare(s.scores[b], s.scores[a])
		})
		best := 0.0
		if len(byScore) > 0 {
			best = s.scores[byScore[0]]
		}
		for n, i := range byScore {
			u := &s.units[i]
			if n > 0 && (used >= budget || s.scores[i] < 0.55*best || used+u.words > budget+budget/3) {
				continue
			}
			take(i)
			s.lean(q, i, take)
		}
		// A section is understood by its first sentences; and an answer says what to do, where the section does.
		if lead >= 0 && s.units[lead].words <= shortLead && s.scores[lead] > 0 {
			take(lead)
		}
		if i := s.remedy(taken); i >= 0 && !q.whatIs {
			take(i)
			s.lean(q, i, take)
		}
	}
	s.complete(q, taken, *said, take)
	return s.write(q, taken, budget, said)
}

// remedy is the paragraph that tells a reader best what to do, or -1 where none does or one is taken already.
func (s *section) remedy(taken []bool) int {
	best := -1
	for i := range s.units {
		switch u := &s.units[i]; {
		case !u.advises:
		case taken[i]:
			return -1
		case u.kind == prose && s.scores[i] > 0 && (best < 0 || s.scores[i] > s.scores[best]):
			best = i
		}
	}
	return best
}

// follows reports whether something of what comes after a unit is taken: the next one, or another part of the same list.
func (s *section) follows(i int, taken []bool) bool {
	for n := i + 1; n < len(s.units); n++ {
		if taken[n] {
			return true
		}
		if s.units[n].of == 0 || s.units[n].of != s.units[i+1].of {
			return false
		}
	}
	return false
}

// lean takes what a unit cannot stand without: the sentence that introduces a list or code, the list or code that a
// paragraph announces, the paragraph that a "this" refers to.
func (s *section) lean(q *query, i int, take func(int)) {
	u := &s.units[i]
	if u.kind != prose {
		at := i - 1
		for at >= 0 && u.of > 0 && s.units[at].of == u.of {
			at--
		}
		if at >= 0 && s.units[at].kind == prose {
			take(at)
		}
		for n, margin := i-1, indent(u.text); u.kind == list && margin > 0 && n > at; n-- { // the items that it is below
			if m := indent(s.units[n].text); m < margin {
				take(n)
				margin = m
			}
		}
	}
	if u.kind == prose {
		if i+1 < len(s.units) {
			next := s.units[i+1].kind
			if u.announces && next != heading || next == code && q.howTo {
				take(s.bestOf(i + 1))
			}
		}
		if u.refers && i > 0 && s.units[i-1].kind != heading {
			take(i - 1)
		}
	}
}

// bestOf is the unit itself, or where it begins a list that is in parts the one of them that fits best.
func (s *section) bestOf(i int) int {
	best := i
	for n := i + 1; n < len(s.units) && s.units[i].of > 0 && s.units[n].of == s.units[i].of; n++ {
		if s.scores[n] > s.scores[best] {
			best = n
		}
	}
	return best
}

// shorten leaves the best sentences of a paragraph that is too long, in their order.
func (q *query) shorten(s *section, u *unit, budget int) string {
	const long = 110
	if u.words <= min(long, budget) {
		return u.text
	}
	all := sentences(u.text)
	type scored struct {
		at    int
		score float64
	}
	var by []scored
	counts := make([]uint8, len(q.terms))
	for i, text := range all {
		clear(counts)
		for _, t := range terms(text) {
			if n := q.find(t.hash); n >= 0 && counts[n] < 2 {
				counts[n]++
			}
		}
		score := q.match(s, counts, nil, countWords(text), 0)
		if i == 0 {
			score += 0.3 // a paragraph says first what it is about
		}
		by = append(by, scored{i, score})
	}
	slices.SortStableFunc(by, func(a, b scored) int {
		return cmp.Compare(b.score, a.score)
	})
	keep := make([]bool, len(all))
	words := 0
	for n, b := range by {
		w := countWords(all[b.at])
		if n > 0 && words+w > min(long, budget) {
			continue
		}
		keep[b.at] = true
		words += w
	}
	var out []string
	for i, text := range all {
		if keep[i] {
			out = append(out, text)
		}
	}
	return strings.Join(out, " ")
}
