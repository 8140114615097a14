package builtin

import (
	"docent/model/builtin/blocks"
	"math"
	"slices"
	"strings"
)

// A query is the question as it is matched.
type query struct {
	language string // that it is put in; empty if it does not tell
	aspects  []aspect
	room     [2]aspect // for the first of them
	terms    []term    // of all aspects, each once
	weights  []float64 // of the terms: how few blocks have each
	df       []int     // of the terms: the units that have each
	units    int       // of all sections
	unknown  float64   // weight of a term that no block has
	byName   []int     // the terms in alphabetical order
	total    float64
	howTo    bool
	steps    bool // it asks how something is done
	makes    bool // it is asked by somebody who makes something
	whatIs   bool
	lists    bool     // it asks which there are
	asks     []string // the alternatives that it names, see tabs
	readers  []string // those that the reader has named anywhere, what counts most first
}

// An aspect is one of the things that are asked, by its terms.
type aspect struct {
	terms []int
	total float64
}

// maxAspects bounds the things that are asked at once.
const maxAspects = 8

// newQuery reads the question: its aspects and their terms, each weighed by how few blocks have it.
func newQuery(question string, sections []*section) *query {
	q := &query{}
	q.aspects = q.room[:0]
	lower := strings.ToLower(strings.TrimSpace(question))
	q.howTo = strings.Contains(lower, "how ") || strings.HasPrefix(lower, "can ") || strings.Contains(lower, "example")
	for _, begin := range []string{"what is", "what are", "what's", "whats", "what does", "explain", "define"} {
		q.whatIs = q.whatIs || strings.HasPrefix(lower, begin)
	}
	for _, begin := range []string{"which ", "what are", "list ", "show all", "show me all"} {
		q.lists = q.lists || strings.HasPrefix(lower, begin)
	}
	q.steps = asksForSteps(question)
	var room [64]word
	q.makes = slices.ContainsFunc(appendWords(room[:0], question), func(w word) bool { return making[strings.ToLower(w.text)] })
	var topic []term
	parts := clauses(question)
	if len(parts) > maxAspects { // the rest is one
		n := 0
		for _, p := range parts[:maxAspects-1] {
			n += len(p)
		}
		parts = append(parts[:maxAspects-1], question[n:])
	}
	for _, clause := range parts {
		var a aspect
		found := terms(clause)
		if refers(clause) { // "how does it differ": it is what was asked about before
			found = append(found, topic...)
		}
		if q.terms == nil {
			q.terms = make([]term, 0, max(16, len(found)))
		}
		a.terms = make([]int, 0, len(found))
		for _, t := range found {
			n := q.find(t.hash)
			if n < 0 {
				n = len(q.terms)
				q.terms = append(q.terms, t)
			}
			if !slices.Contains(a.terms, n) {
				a.terms = append(a.terms, n)
			}
		}
		if len(topic) == 0 {
			topic = found
		}
		if len(a.terms) > 0 {
			q.aspects = append(q.aspects, a)
		}
	}
	n := len(q.terms)
	both := make([]int, 2*n)
	q.byName, q.df = both[:n:n], both[n:]
	for i := range q.byName {
		q.byName[i] = i
	}
	slices.SortFunc(q.byName, func(a, b int) int { return strings.Compare(q.terms[a].text, q.terms[b].text) })
	q.weigh(sections)
	return q
}

// find is the number of a term of the question, or -1.
func (q *query) find(hash uint64) int {
	for i := range q.terms {
		if q.terms[i].hash == hash {
			return i
		}
	}
	return -1
}

// A small set has few units, and all of them are found: each word of its subject would be common. For the verdict it is
// filled up to as many as a search in a large set finds, with units as technical English has them. A unit is a part of a
// section.
const (
	settledUnits = 200
	unitShare    = 0.4
)

// weigh finds the question's terms in the sections, and weighs them: rare ones among the units tell more, and a term
// that no unit has tells most.
func (q *query) weigh(sections []*section) {
	n := len(q.terms)
	units, cells, lines := 0, 0, 0
	for _, s := range sections {
		units += len(s.units)
		cells += len(s.units) * n
		lines += s.lineCount
	}
	at, counts := make([]int32, len(sections)*n), make([]uint8, cells)
	weights := make([]float64, n+lines+units)
	q.weights, weights = weights[:n:n], weights[n:]
	for _, s := range sections {
		s.terms, at = at[:n:n], at[n:]
		s.counts, counts = counts[:len(s.units)*n:len(s.units)*n], counts[len(s.units)*n:]
		s.lines, weights = weights[:s.lineCount:s.lineCount], weights[s.lineCount:]
		s.scores, weights = weights[:len(s.units):len(s.units)], weights[len(s.units):]
		for t := range n {
			v := s.passage.find(q.terms[t].hash)
			s.terms[t] = int32(v)
			if v < 0 {
				continue
			}
			found := s.inUnits.of(v)
			q.df[t] += len(found)
			for _, m := range found {
				s.counts[int(m.at)*n+t] = m.times
			}
		}
	}
	q.units = units
	q.rate(sections, 0)
}

// rate weighs the terms by the units that have them, and by further ones as technical English has them.
func (q *query) rate(sections []*section, more int) {
	n := float64(q.units + more)
	weight := func(df float64) float64 { return math.Log(1 + (n-df+0.5)/(df+0.5)) }
	q.unknown, q.total = weight(0), 0
	for t := range q.weights {
		q.weights[t] = weight(float64(q.df[t]) + float64(more)*unitShare*float64(q.terms[t].common))
		q.total += q.weights[t]
	}
	for i := range q.aspects {
		q.aspects[i].total = 0
		for _, t := range q.aspects[i].terms {
			q.aspects[i].total += q.weights[t]
		}
	}
	for _, s := range sections {
		clear(s.lines)
		for _, t := range q.byName { // a line's sum is made in one order, so that equal lines weigh the same
			if v := s.terms[t]; v >= 0 {
				for _, m := range s.inLines.of(int(v)) {
					s.lines[m.at] += q.weights[t]
				}
			}
		}
	}
}

// match is how well a unit fits a question: for each aspect the share of its weight in the block, less for what only
// the headings above say; the best aspect counts most. Counts are how often the unit has each term, lines how much of
// the question each of its lines holds, if it has several.
func (q *query) match(s *section, counts []uint8, lines []float64, words int, kind blocks.Kind) float64 {
	best, sum := 0.0, 0.0
	for i := range q.aspects {
		a := &q.aspects[i]
		if a.total == 0 {
			continue
		}
		got := 0.0
		for _, t := range a.terms {
			w := q.weights[t]
			switch n := counts[t]; {
			case n > 1:
				got += 1.15 * w
			case n == 1:
				got += w
			case s.terms[t] < 0:
			case s.where[s.terms[t]]&inHead != 0:
				got += 0.5 * w
			case s.where[s.terms[t]]&inContext != 0:
				got += 0.25 * w
			}
		}
		got /= a.total
		best = max(best, got)
		sum += got
	}
	score := 0.7*best + 0.3*sum/float64(max(len(q.aspects), 1))
	// What answers stands in one sentence, one line or one item rather than here and there in a long block.
	near, whole := 0.0, 0.0
	for t, w := range q.weights {
		if counts[t] > 0 {
			whole += w
		}
	}
	if len(lines) == 0 {
		near = whole
	}
	for _, got := range lines {
		if near == whole { // no line holds more than all of them
			break
		}
		near = max(near, got)
	}
	if q.total > 0 {
		score = (score + near/q.total) / 2
	}
	switch {
	case words < 4:
		score *= 0.6
	case kind == code && !q.howTo:
		score *= 0.8
	case words > 150:
		score *= 0.85
	}
	return score
}

// compares reports whether a table's columns are what is asked about, so that each of its rows answers.
func (q *query) compares(columns []uint64) bool {
	n, got := 0, 0.0
	for _, hash := range columns {
		if t := q.find(hash); t >= 0 {
			n++
			got += q.weights[t]
		}
	}
	return n > 1 && got >= q.total/2
}

// row is how well a row's first cell is what is asked about: whole is the share of the cell that the question has,
// share that of the question that the cell has.
func (q *query) row(cell []uint64) (whole, share float64) {
	all, got := 0.0, 0.0
	for _, hash := range cell {
		if t := q.find(hash); t >= 0 {
			all += q.weights[t]
			got += q.weights[t]
		} else {
			all += q.unknown
		}
	}
	if got == 0 {
		return 0, 0
	}
	return got / all, got / q.total
}
