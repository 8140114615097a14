package builtin

import (
	"cmp"
	"slices"
	"strings"
)

// Answers are short: of what was taken from all sections, what holds least of the question is left out again, until
// the rest is no longer than a reader likes to read. Code does not count, and neither do steps.

// proseWords counts the words of a text without its code.
func proseWords(text string) int {
	n := 0
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			n += countWords(part)
		}
	}
	return n
}

// A candidate is a taken unit that may be left out.
type candidate struct {
	of    *selection
	unit  int
	words int
	worth float64
}

// written makes the texts of quotes, after what is too much for an answer is left out of them.
func written(quotes []quote) []quote {
	total, left := 0, []candidate{}
	for n := range quotes {
		c := quotes[n].chosen
		if c == nil {
			total += proseWords(quotes[n].text)
			continue
		}
		total += proseWords(quotes[n].lead)
		for i, taken := range c.taken {
			if u := &c.units[i]; taken && u.kind != heading && u.kind != code && !(c.q.howTo && u.steps()) {
				words := min(u.words, longPara)
				if u.kind != prose {
					words = u.words
				}
				total += words
				score := c.scores[i]
				if u.kind == prose && i+1 < len(c.units) && c.units[i+1].kind == code && c.taken[i+1] {
					score = max(score, c.scores[i+1])
				}
				if u.advises {
					score += 0.15
				}
				left = append(left, candidate{c, i, words, score * (0.6 + 0.4*c.worth)})
			}
		}
	}
	slices.SortStableFunc(left, func(a, b candidate) int { return cmp.Compare(a.worth, b.worth) })
	for n := 0; n < len(left)-1 && total > maxWords; n++ {
		if u := left[n]; u.of.leave(u.unit) {
			total -= u.words
		}
	}
	out := quotes[:0]
	for _, q := range quotes {
		if q.chosen != nil {
			q.chosen.complete()
			q.text, q.chosen = strings.TrimSpace(q.lead+"\n\n"+q.chosen.write()), nil
		}
		if q.text != "" {
			out = append(out, q)
		}
	}
	return out
}

// leave leaves a unit out, unless what comes after it cannot stand without it.
func (c *selection) leave(i int) bool {
	u := &c.units[i]
	if u.kind == prose && c.follows(i) && u.announces {
		return false
	}
	c.taken[i] = false
	if n := i + 1; u.kind == prose && n < len(c.units) && c.units[n].kind == code { // its code goes with it
		c.taken[n] = false
	}
	return true
}
