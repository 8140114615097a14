package builtin

import (
	"slices"
	"strings"

	"docent/model"
)

// A question that one sentence, item or row answers begins with that one: whether something is so, how much there may
// be of something. A sample is never taken for that line.

// A lineAsked is what a question wants a line to say.
type lineAsked struct {
	topic  []int                     // terms of the query that it is about, in the order of the question
	total  float64                   // weight of these
	says   func(line string) float64 // how much a line is of the kind that is asked for; 0 if it is none
	onPage bool                      // only of the first page, whose number it is
	answer func(line string) string  // what comes before a line that says it without doubt; nil if nothing does
}

const (
	leastStated = 0.7 // share of the topic that the line and its heading have
	leastInLine = 0.6 // that the line has by itself
	leastSure   = 0.6 // of the search, in the line's section
	longLine    = 70  // words from which a line is not quoted by itself
	maxBeside   = 4   // terms of a line without doubt that the question does not have, its verb among them
)

// lineFor is what a question wants a line to say; nil if it asks for something else.
func lineFor(q *query, question, project string) *lineAsked {
	question = gist(question)
	a, form := yesNo(question, project)
	if a == nil {
		a, form = amount(question)
	}
	if a == nil {
		return nil
	}
	own := hashesOf(project)
	for _, w := range split(question) {
		if form[strings.ToLower(w.text)] {
			continue
		}
		for _, t := range termsOf(w.text) {
			if n := q.find(t.hash); n >= 0 && !slices.Contains(a.topic, n) && !slices.Contains(own, t.hash) {
				a.topic = append(a.topic, n)
				a.total += q.weights[n]
			}
		}
	}
	if len(a.topic) == 0 {
		return nil
	}
	return a
}

// within is the share of the topic that a text has; alike that it has all of it, in the order of the question, and
// hardly anything else.
func (a *lineAsked) within(q *query, text string) (share float64, alike bool) {
	got, last := 0.0, -1
	more, ordered := 0, true
	var seen []int
	for _, t := range terms(text) {
		n := q.find(t.hash)
		if n < 0 || !slices.Contains(a.topic, n) {
			more++
			continue
		}
		if slices.Contains(seen, n) {
			continue
		}
		seen = append(seen, n)
		got += q.weights[n]
		ordered = ordered && n > last
		last = n
	}
	return got / a.total, ordered && len(seen) == len(a.topic) && more <= maxBeside
}

// A stated line is one that answers a question by itself.
type stated struct {
	passage, unit, line int
	fit                 float64
	plain               bool // it has all of what is asked, in the order of the question
}

// find is the line that says best what is asked, in the sections as they are ordered. If it is not sure that the
// documentation answers, only those of the first page are looked at.
func (a *lineAsked) find(req *model.Request, q *query, sections []*section, order []int, sure bool) (best stated) {
	for _, at := range order {
		s := sections[at]
		if (s.sure < leastSure || !sure || a.onPage) && req.Passages[at].Path != req.Passages[order[0]].Path {
			continue
		}
		head, _ := a.within(q, s.of.Title+"\n"+s.of.Heading)
		for i := range s.units {
			u := &s.units[i]
			if u.kind == heading || u.kind == code || s.scores[i] == 0 && i > 1 {
				continue
			}
			leans := true // this line and all before it do
			for n, line := range ownLines(u) {
				leans = leans && leansBack(line)
				if u.kind == table && n < 2 && u.head == "" { // the head
					continue
				}
				fit, plain := a.fit(q, u, line, leans && (n == 0 || head < leastStated), head)
				if n == 0 && i < 2 && head > 0.99 && begins(line) != "" { // "Can I …?", "Yes, …"
					fit = 2
				}
				if fit > 0 && fit+0.3*s.sure > best.fit {
					best = stated{at, i, n, fit + 0.3*s.sure, plain}
				}
			}
		}
	}
	return best
}

// fit is how well a line says what is asked, under a heading that has that share of it; 0 if it does not, or not by
// itself.
func (a *lineAsked) fit(q *query, u *unit, line string, leans bool, head float64) (fit float64, plain bool) {
	kind := a.says(line)
	if kind == 0 || strings.HasSuffix(line, ";") || u.kind == prose && strings.HasSuffix(line, ":") {
		return 0, false
	}
	in, plain := a.within(q, line)
	all, words := min(1, in+head/2), countWords(line)
	if all < leastStated || in < leastInLine || words > longLine || leans {
		return 0, false
	}
	fit = all + in/2 + 0.4*kind - 0.004*float64(words)
	if doubts.MatchString(line) {
		fit -= 0.25
	}
	return fit, plain
}

// leansBack reports whether a line cannot be understood without the one before it.
func leansBack(line string) bool {
	return pointsBack(line) && !canDo.MatchString(line) && !cannotDo.MatchString(line)
}

// beginWith is the section that answers by one line, quoted from that line on; none if no line does.
func beginWith(req *model.Request, q *query, question string, sections []*section, order []int, sure bool,
	quoted *[]uint64) []quote {
	a := lineFor(q, question, req.Project)
	if a == nil {
		return nil
	}
	at := a.find(req, q, sections, order, sure)
	if at.fit == 0 {
		return nil
	}
	s := sections[at.passage]
	return []quote{a.begin(s, at, pick(q, s, mainWords, quoted), sure)}
}

// begin makes a section's quote begin with the line that is stated in it.
func (a *lineAsked) begin(s *section, at stated, c *selection, sure bool) quote {
	u := &s.units[at.unit]
	all := ownLines(u)
	out := quote{passage: at.passage, chosen: c}
	switch {
	case u.kind == prose:
		from, to := at.line, at.line+1
		for from > 0 && leansBack(all[from]) {
			from--
		}
		for to < len(all) && pointsBack(all[to]) && to-from < 3 {
			to++
		}
		out.lead = strings.Join(all[from:to], " ")
		c.taken[at.unit] = true
		c.begun, c.rest = at.unit, strings.Join(slices.Concat(all[:from], all[to:]), " ")
	case u.words > wholeStatement && u.kind == list && u.of == 0:
		out.lead = strings.TrimSpace(all[at.line])
	default:
		out.lead = s.excerpt(statement{unit: at.unit, line: at.line})
		if u.of > 0 || u.words <= wholeStatement {
			*c.quoted = append(*c.quoted, u.fingerprint)
			c.taken[at.unit] = false
			before := at.unit - 1
			for before >= 0 && u.of > 0 && s.units[before].of == u.of {
				before--
			}
			if before >= 0 && s.units[before].announces && !c.follows(before) {
				c.taken[before] = false
			}
		}
	}
	if sure && at.plain && a.answer != nil {
		if word := a.answer(all[at.line]); word != "" {
			out.lead = word + " " + out.lead
		}
	}
	return out
}
