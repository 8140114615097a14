package builtin

import (
	"cmp"
	"slices"
	"strings"

	"docent/internal/brief"
	"docent/model/builtin/blocks"
)

// A selection is what is quoted of one section.
type selection struct {
	*section
	q      *query
	budget int
	taken  []bool // by unit
	used   int    // words of these, without code
	code   int    // words of code
	quoted *[]uint64
	worth  float64 // of the section, as a share of the first one's
	begun  int     // the paragraph of which a line stands before the rest of the section, and what else it says; or -1
	rest   string
}

// choose quotes the units of a section that fit, with their context, in the order of the page. Quoted are the
// fingerprints of what is quoted already; what is quoted here is added.
func choose(q *query, s *section, budget int, quoted *[]uint64) string {
	c := pick(q, s, budget, quoted)
	c.complete()
	return c.write()
}

func newSelection(q *query, s *section, budget int, quoted *[]uint64) *selection {
	q.chooseTabs(s)
	return &selection{section: s, q: q, budget: budget, taken: make([]bool, len(s.units)), quoted: quoted, worth: 1, begun: -1}
}

// pick takes the units of a section that fit, with their context.
func pick(q *query, s *section, budget int, quoted *[]uint64) *selection {
	c := newSelection(q, s, budget, quoted)
	if s.words <= budget {
		for i := range s.units {
			c.take(i)
		}
		return c
	}
	lead := slices.IndexFunc(s.units, func(u unit) bool { return u.kind == prose })
	if q.steps && s.best > 0 {
		for i := range s.units {
			if s.units[i].stepped {
				c.takeWhole(i)
			}
		}
	}
	c.takeBest(c.order(lead))
	// A section is understood by its first sentences; and an answer says what to do, if the section does.
	if lead >= 0 && s.units[lead].words <= shortLead && s.scores[lead] > 0 {
		c.take(lead)
	}
	if i := c.advice(); i >= 0 && !q.whatIs {
		c.takeWhole(i)
	}
	c.goOn(lead)
	return c
}

// goOn takes what comes after a section's first sentence if nothing but that is taken: "There are a number of things to
// check." says nothing by itself.
func (c *selection) goOn(lead int) {
	if c.q.whatIs || lead < 0 || c.units[lead].words > shortLead/2 {
		return
	}
	for i, taken := range c.taken {
		if taken != (i == lead) && c.units[i].kind != heading {
			return
		}
	}
	for i := lead + 1; i < len(c.units) && c.units[i].kind == prose && c.used < c.budget/2; i++ {
		if !strings.HasSuffix(c.units[i].text, ":") {
			c.take(i)
		}
	}
}

// leaveCode leaves code out that no sentence leads to: it says nothing to a reader who asks for no way to do something.
func (c *selection) leaveCode() {
	for i := range c.units {
		if led := i > 0 && c.taken[i-1] && c.units[i-1].kind == prose; c.units[i].kind == code && !led {
			c.taken[i] = false
		}
	}
}

// any reports whether something is taken.
func (c *selection) any() bool {
	for i, taken := range c.taken {
		if taken && c.units[i].kind != heading {
			return true
		}
	}
	return false
}

func (c *selection) take(i int) {
	if i < 0 || i >= len(c.units) || c.taken[i] || c.hides(i) {
		return
	}
	u := &c.units[i]
	if u.kind == code && (u.words > longCode || strings.HasPrefix(u.text, "```mermaid")) || u.kind != prose && u.words > longBlock && !(c.q.howTo && u.steps()) {
		return
	}
	c.taken[i] = true
	if u.kind == code {
		c.code += u.words
	} else {
		c.used += min(u.words, c.budget)
	}
}

// takeWhole takes a unit with its context.
func (c *selection) takeWhole(i int) {
	c.take(i)
	c.takeContext(i)
}

// order lists the units that may be quoted, best first, and takes the rows that the question names. Lead is the
// section's first paragraph.
func (c *selection) order(lead int) []int {
	byScore := make([]int, 0, len(c.units))
	named := 0
	for i := range c.units {
		u := &c.units[i]
		if u.kind == heading {
			continue
		}
		score := c.scores[i]
		if i == lead {
			score += 0.08 // a section says first what it is about
		}
		if c.q.howTo && (u.kind == code || u.kind == list) && score > 0 {
			score += 0.06
		}
		if u.advises && score > 0 {
			score += 0.1
		}
		whole, share := c.q.row(u.named)
		score += 0.5 * whole * share
		if whole == 1 && named < maxNamed {
			named++
			c.takeWhole(i)
		}
		c.scores[i] = score
		byScore = append(byScore, i)
	}
	slices.SortStableFunc(byScore, func(a, b int) int { return cmp.Compare(c.scores[b], c.scores[a]) })
	return byScore
}

// takeBest takes the best unit, and others that fit nearly as well for as long as there is room.
func (c *selection) takeBest(byScore []int) {
	for n, i := range byScore {
		full := c.used >= c.budget || c.used+c.units[i].words > c.budget+c.budget/3
		switch u := &c.units[i]; {
		case u.steps() && c.q.howTo: // in whole and in order
			full = c.used >= 2*longSteps
		case u.kind == code:
			full = c.code+c.units[i].words > maxCode
		}
		if n > 0 && (full || c.scores[i] < 0.55*c.scores[byScore[0]]) {
			continue
		}
		c.takeWhole(i)
	}
}

// advice is the paragraph that tells a reader best what to do, or -1 if none does or one is taken already.
func (c *selection) advice() int {
	best := -1
	for i := range c.units {
		switch u := &c.units[i]; {
		case !u.advises:
		case c.taken[i]:
			return -1
		case u.kind == prose && c.scores[i] > 0 && (best < 0 || c.scores[i] > c.scores[best]):
			best = i
		}
	}
	return best
}

// follows reports whether something of what comes after a unit is taken: the next one, or another part of the same
// list.
func (c *selection) follows(i int) bool {
	for n := i + 1; n < len(c.units); n++ {
		if c.taken[n] {
			return true
		}
		if c.units[n].of == 0 || c.units[n].of != c.units[i+1].of {
			return false
		}
	}
	return false
}

// takeContext takes what a unit cannot stand without: the sentence that introduces a list or code, the list or code
// that a paragraph announces, the paragraph that a "this" refers to.
func (c *selection) takeContext(i int) {
	u := &c.units[i]
	if u.kind != prose {
		at := i - 1
		for at >= 0 && u.of > 0 && c.units[at].of == u.of {
			at--
		}
		if at >= 0 && c.units[at].kind == prose {
			c.take(at)
		}
		for n, margin := i-1, blocks.Indent(u.text); u.kind == list && margin > 0 && n > at; n-- { // the items that it is below
			if m := blocks.Indent(c.units[n].text); m < margin {
				c.take(n)
				margin = m
			}
		}
		return
	}
	if i+1 < len(c.units) {
		next := c.units[i+1].kind
		if u.announces && next != heading || next == code && c.q.howTo {
			c.take(c.bestOf(i + 1))
		}
	}
	if u.refers && i > 0 && c.units[i-1].kind != heading {
		c.take(i - 1)
	}
}

// bestOf is the unit itself, or if it begins a list that is in parts the one of them that fits best.
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
	return q.shortenTo(s, u, min(longPara, budget))
}

// shortenTo leaves the best sentences, in their order, that are no longer together than so many words.
func (q *query) shortenTo(s *section, u *unit, most int) string {
	if u.words <= most {
		return u.text
	}
	all := brief.Sentences(u.text)
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
		if n > 0 && words+w > most {
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
