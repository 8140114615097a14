package builtin

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/model"
)

// evidence is what is known about whether the documentation answers a question.
type evidence struct {
	search  float64 // how sure the search is of its first passage: 0 to 1, less for longer questions
	held    float64 // 0 to 1: how much of the question one passage is about, times how much of it one line there says
	missing float64 // 0 to 1: weight of the rarest name in the question that this passage does not have
}

// evidenceFor compares a question with the passages that were found for it.
func evidenceFor(req model.Request, question string, q *query, sections []*section) evidence {
	var f evidence
	if more := settledUnits - q.units; more > 0 {
		q.rate(sections, more)
		defer q.rate(sections, 0)
	}
	for i := range req.Passages {
		f.search = max(f.search, req.Passages[i].Score)
	}
	var roomForWeights [64]float64
	var roomForNames [64]bool
	weights := append(roomForWeights[:0], q.weights...)
	names := append(roomForNames[:0], make([]bool, len(weights))...)
	q.single(question, req.Project, sections, weights, names)
	numbered, whole := q.numbered(question)
	total := 0.0
	for _, w := range weights {
		total += w
	}
	if total == 0 {
		return f
	}
	for _, s := range sections {
		held := s.about(weights, names) / total * s.line(q) / q.total
		if held <= f.held {
			continue
		}
		f.held, f.missing = held, 0
		for t, w := range weights {
			if names[t] && s.terms[t] < 0 || t == numbered && !strings.Contains(s.of.Text, whole) {
				f.missing = max(f.missing, w/q.unknown)
			}
		}
	}
	return f
}

var withNumber = regexp.MustCompile(`\b[A-Z][A-Za-z]+/\d[\d.]*\b`)

// numbered is the term of a name with a number, which is another thing than the name alone, and how it is written:
// HTTP/3. It is -1 if there is none.
func (q *query) numbered(question string) (term int, whole string) {
	if !strings.Contains(question, "/") {
		return -1, ""
	}
	whole = withNumber.FindString(question)
	name, _, _ := strings.Cut(whole, "/")
	for _, t := range termsOf(name) {
		return q.find(t.hash), whole
	}
	return -1, ""
}

// single counts each word of the question once: the parts of a name that some passage has whole add nothing to it, and
// the project's own name stands everywhere. It also tells which words are written as names: HAProxy, argon2, .env.
func (q *query) single(question, project string, sections []*section, weights []float64, names []bool) {
	var buf [64]word
	begins := true // a sentence
	last := 0
	for _, w := range appendWords(buf[:0], question) {
		begins = begins && last == 0 || strings.ContainsAny(question[min(last, w.start):w.start], ".?!:\n")
		all := termsOf(w.text)
		name := len(all) > 0 && isName(w.text, begins)
		begins, last = false, w.end
		known := false
		for n, t := range all {
			at := q.find(t.hash)
			if at < 0 {
				continue
			}
			names[at] = names[at] || name
			if n == 0 && len(all) > 1 {
				for _, s := range sections {
					known = known || s.terms[at] >= 0
				}
				if !known && strings.ContainsAny(w.text, "._") { // a path of names, which its parts stand for
					weights[at] = 0
				}
			} else if known {
				weights[at] = 0
			}
		}
	}
	for _, w := range appendWords(buf[:0], project) {
		for _, t := range termsOf(w.text) {
			if at := q.find(t.hash); at >= 0 {
				weights[at] = 0
			}
		}
	}
}

// isName reports whether a word is written as a name is: with a capital that does not begin a sentence, or with digits
// or marks among its letters.
func isName(w string, begins bool) bool {
	first, n := utf8.DecodeRuneInString(w)
	if strings.IndexFunc(w[n:], unicode.IsUpper) >= 0 || !begins && unicode.IsUpper(first) {
		return true
	}
	return strings.IndexFunc(w, unicode.IsLetter) >= 0 && strings.ContainsAny(w, "0123456789_.")
}

// about is how much of the question a passage is about: a word that it says often, or in its heading, counts nearly
// whole, a name that it says counts whole.
func (s *section) about(weights []float64, names []bool) float64 {
	sum := 0.0
	half := 1.5 * min(1, 0.25+0.75*float64(s.words)/100) // times that count half; a short passage says its subject once
	for t, w := range weights {
		n := s.terms[t]
		if n < 0 || w == 0 {
			continue
		}
		if names[t] {
			sum += w
			continue
		}
		times := 0.0
		switch where := s.where[n]; {
		case where&(inHead|inTitle) != 0:
			times = 3
		case where&inContext != 0:
			times = 1
		}
		for _, m := range s.inUnits.of(int(n)) {
			times += float64(m.times)
		}
		sum += w * times / (times + half)
	}
	return sum
}

// line is how much of the question the best line of a passage says.
func (s *section) line(q *query) float64 {
	best := 0.0
	for _, got := range s.lines {
		best = max(best, got)
	}
	for n := range s.units {
		if u := &s.units[n]; u.lines == 0 && u.kind != heading {
			got := 0.0
			for t, times := range s.counts[n*len(q.terms) : (n+1)*len(q.terms)] {
				if times > 0 {
					got += q.weights[t]
				}
			}
			best = max(best, got)
		}
	}
	return best
}

// A verdict says whether the documentation answers a question.
type verdict uint8

const (
	denied   verdict = iota // it does not
	doubtful                // it is not clear: what is closest is shown, and called that
	answered
)

// shown is the verdict as others name it.
func (v verdict) shown() model.Verdict {
	switch v {
	case answered:
		return model.VerdictAnswered
	case doubtful:
		return model.VerdictDoubtful
	}
	return model.VerdictDenied
}

// Where the lines are drawn. At 0 eight of ten near misses are not taken for answered. Below unlikely one passage is
// shown, and others are pointed to; below doubt what is found has hardly anything to do with the question, and all of it is only
// pointed to. Alone is for what the search does not rate, pointed for a text that the reader has selected: it most likely
// stands in the documentation.
const (
	unlikely = -2.5
	doubt    = -5
	alone    = 0.3
	pointed  = 0.1
)

func (f evidence) verdict(points bool) verdict {
	switch sum := f.sum(); {
	case points && f.held >= pointed, f.search == 0 && f.held >= alone, f.search > 0 && sum >= 0:
		return answered
	case f.search > 0 && sum >= doubt:
		return doubtful
	}
	return denied
}

// sum weighs what is known. The weights are fitted to questions with and without an answer, many of which other people
// asked: go test ./model/builtin -run TestVerdicts -v -fit.
func (f evidence) sum() float64 { return 20*f.search + 8*f.held - 3*f.missing - 5.7 }
