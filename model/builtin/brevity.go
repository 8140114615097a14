package builtin

import (
	"cmp"
	"slices"
	"strings"

	"docent/internal/brief"
	"docent/model"
	"docent/model/builtin/blocks"
	"docent/site/markup"
)

// Answers are short: the best passage comes first, a second one only if it says nearly as much of the question, and what
// else was found follows as cards. Of what was taken of a passage, what holds least of the question is left out again,
// until the rest is no longer than a reader likes to read. Code does not count, and neither do steps.

const (
	maxSaid     = 2
	maxCards    = 3
	cardWords   = 35
	cardRunes   = 240
	codeWords   = 60 // of all code, if there is more than one block
	secondWords = 60
	stepsWorth  = 0.3 // of steps, more than that of other blocks
	shortList   = 40  // words of a list that stays with the sentence that announces it
	listWorth   = 0.9 // of an item, as a share of that of the sentence that announces its list
	secondWorth = 0.6 // of the best of a second passage, as a share of that of the first
)

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

// candidates appends the units of a quote that may be left out, and says how many words it has with them.
func (q *quote) candidates(to []candidate) (all []candidate, words int) {
	c := q.chosen
	if c == nil {
		return to, proseWords(q.text)
	}
	words = proseWords(q.lead)
	begins := true   // the section does
	announced := 0.0 // worth of the sentence that a list belongs to
	for i, taken := range c.taken {
		u := &c.units[i]
		first := begins && u.kind == prose
		begins = begins && !first
		if !taken || u.kind == heading || u.kind == code || c.q.howTo && (u.steps() || u.stepped) {
			continue
		}
		n := u.words
		if u.kind == prose {
			n = min(n, longPara)
		}
		words += n
		score := c.scores[i]
		if u.kind == prose && i+1 < len(c.units) && c.units[i+1].kind == code && c.taken[i+1] {
			score = max(score, c.scores[i+1])
		}
		if u.advises {
			score += 0.3
		}
		if first {
			score += 0.2 // a section says first what it is about
		}
		switch {
		case u.kind == list && announced > 0 && u.words <= shortList:
			continue // it says what the sentence does not
		case u.kind == list:
			score = max(score, listWorth*announced)
		case u.announces:
			announced = score
		default:
			announced = 0
		}
		to = append(to, candidate{c, i, n, c.weigh(score)})
	}
	return to, words
}

// weigh is the worth of a unit of that score, beside the units of other passages.
func (c *selection) weigh(score float64) float64 { return score * (0.6 + 0.4*c.worth) }

// best is the worth of the best unit of a quote, steps for who asks for them before all.
func (q *quote) best() float64 {
	var room [16]candidate
	all, _ := q.candidates(room[:0])
	best := 0.0
	for _, c := range all {
		best = max(best, c.worth)
	}
	if c := q.chosen; c != nil && c.q.howTo {
		for i, taken := range c.taken {
			if taken && c.units[i].steps() {
				best = max(best, c.weigh(c.scores[i]+stepsWorth))
			}
		}
	}
	return best
}

// written makes the texts of an answer out of quotes, the first of which it begins with, and cards of those that are more
// than so many.
func written(q *query, quotes []quote, sections []*section, quoted *[]uint64, most int) (said []quote, cards []model.Card) {
	if len(quotes) == 0 {
		return nil, nil
	}
	second, worth := 0, secondWorth*quotes[0].best()
	for n := 1; n < len(quotes) && quotes[0].chosen != nil && quotes[0].lead == "" && !q.whatIs; n++ { // else one place has said it
		if b := quotes[n].best(); b > worth {
			second, worth = n, b
		}
	}
	if len(quotes) > 1 && quotes[0].chosen == nil && quotes[1].chosen == nil { // both state a default
		second = 1
	}
	said = append(said, quotes[0])
	if most < maxSaid {
		second = 0
	}
	if second > 0 {
		said = append(said, quotes[second])
	}
	shorten(said, maxWords, 0)
	if len(said) > 1 {
		shorten(said, secondWords, 1)
	}
	oneCode(said)
	for n := range said {
		if s := &said[n]; s.chosen != nil {
			s.chosen.complete()
			s.text, s.chosen = strings.TrimSpace(s.lead+"\n\n"+s.chosen.write()+"\n\n"+s.tail), nil
		}
	}
	for n := range quotes {
		if n == 0 || n == second || len(cards) == maxCards {
			continue
		}
		if text := sections[quotes[n].passage].brief(q, *quoted); text != "" {
			cards = append(cards, model.Card{Passage: quotes[n].passage, Text: text})
		}
	}
	return slices.DeleteFunc(said, func(q quote) bool { return q.text == "" }), cards
}

// shorten leaves out what is more than so many words of the passages from one on, though never all of that one.
func shorten(said []quote, most, from int) {
	var room [32]candidate
	total, left := 0, room[:0]
	for n := range said[from:] {
		words := 0
		left, words = said[from+n].candidates(left)
		total += words
	}
	first := said[from].chosen
	kept := 0 // of the first passage
	for _, c := range left {
		if c.of == first {
			kept++
		}
	}
	if said[from].lead != "" {
		kept++
	}
	slices.SortStableFunc(left, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.worth, b.worth), b.unit-a.unit) })
	for n := 0; n < len(left)-1 && total > most; n++ {
		u := left[n]
		if u.of == first && kept == 1 || !u.of.leave(u.unit) {
			continue
		}
		total -= u.words
		if u.of == first {
			kept--
		}
	}
}

// oneCode leaves out code, but for the block of the first passage that fits best and what is short beside it.
func oneCode(said []quote) {
	var all []candidate
	for n := range said {
		if c := said[n].chosen; c != nil {
			for i, taken := range c.taken {
				if u := &c.units[i]; taken && u.kind == code {
					all = append(all, candidate{c, i, u.words, c.weigh(c.scores[i])})
				}
			}
		}
	}
	first := said[0].chosen
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(boolean(b.of == first), boolean(a.of == first)), cmp.Compare(b.worth, a.worth))
	})
	words := 0
	for n, c := range all {
		if words += c.words; n > 0 && words > codeWords {
			c.of.taken[c.unit] = false
			if after := c.unit + 1; after < len(c.of.units) && c.of.units[after].refers { // to the code
				c.of.taken[after] = false
			}
		}
	}
}

// leave leaves a unit out, unless what comes after it cannot stand without it.
func (c *selection) leave(i int) bool {
	u := &c.units[i]
	if u.kind == prose && c.follows(i) && u.announces {
		return false
	}
	withCode := u.kind == prose && i+1 < len(c.units) && c.units[i+1].kind == code
	if withCode && i+2 < len(c.units) && c.taken[i+2] && c.units[i+2].refers {
		return false
	}
	c.taken[i] = false
	if withCode { // it goes with it
		c.taken[i+1] = false
	}
	return true
}

// brief is what a card says of a section, as plain text: the sentences, the item or the row that fit best, unless they
// are quoted already.
func (s *section) brief(q *query, quoted []uint64) string {
	text := []byte("\n" + s.bestLines(q, quoted)) // so that a line of hyphens does not begin front matter
	plain := markup.Parse("card.md", text).Plain(markup.Span{Start: 0, End: len(text)})
	return brief.Runes(strings.Join(strings.Fields(plain), " "), cardRunes, "…")
}

// bestLines are these in Markdown.
func (s *section) bestLines(q *query, quoted []uint64) string {
	best, score := -1, 0.0
	q.chooseTabs(s)
	for i := range s.units {
		u := &s.units[i]
		if u.kind == heading || u.kind == code || s.hides(i) || slices.Contains(quoted, u.fingerprint) {
			continue
		}
		fit := s.scores[i]
		if u.advises && fit > 0 {
			fit += 0.2
		}
		if strings.HasSuffix(u.text, ":") {
			fit /= 2
		}
		if fit > score {
			best, score = i, fit
		}
	}
	if best < 0 {
		return ""
	}
	switch u := &s.units[best]; u.kind {
	case table:
		row := u.text
		if all, _ := blocks.Rows(row); u.of == 0 {
			row = all[0]
		}
		filled := slices.DeleteFunc(blocks.Cells(row), func(c string) bool { return strings.TrimSpace(c) == "" })
		for i, c := range filled {
			filled[i] = strings.TrimSpace(c)
		}
		return strings.Join(filled, " · ")
	case list:
		return firstSentences(strings.Join(strings.Fields(strings.TrimPrefix(u.text, blocks.Marker(u.text))), " "), cardWords)
	default:
		return q.shortenTo(s, u, cardWords)
	}
}
