// Package claims holds what a model says against the passages that it was given. It cuts an answer into pieces while
// the answer streams, tells which of them claim something, and how far a passage supports a claim: by the words that
// both have, and by what has to be the same whatever the words are: numbers with their units, names, flags,
// identifiers, and what is denied. It also finds the links that lead to where nobody sent the reader.
//
// It knows languages by their words and has no model: what it says of a claim is about words, and when the words do
// not decide, it says that.
package claims

import (
	"fmt"
	"slices"
	"strings"
)

// A Verdict says how far texts support a claim.
type Verdict uint8

// Verdicts.
const (
	Unsupported Verdict = iota // they say nothing like it, or something else
	Doubtful                   // the words do not decide
	Supported
)

// A Finding is a verdict with its reasons.
type Finding struct {
	Verdict Verdict
	Score   float64 // 0 to 1: how much of the claim's words one place of the texts has
	Why     string  // what speaks against it; empty if nothing does
	Facts   int     // of the claim that the texts have
	Denied  bool    // the texts say the opposite
}

// A Claim is a piece of an answer, read.
type Claim struct {
	text     string
	language string
	words    []string // what it is about, as they are compared; each once
	terms    []uint64 // of the words
	parts    []int    // of the sentence that each word stands in
	facts    []fact   // what has to be the same
	negated  []string // what it denies
	denials  int      // negations
	all      map[string]bool
	order    []string // all, as it came
	denies   bool     // of a script without spaces: it has a negation
	wide     bool
}

// A fact is a word of a claim that no other word can stand for.
type fact struct {
	kind tokenKind
	text string // as it is shown
	term uint64
	unit uint64 // of a number with a unit: both together
	bare uint64 // of a number: where a passage has it without a unit
	dots []uint64
	part int // of the sentence
}

const (
	maxWords = 64
	// From certain on, the share of its words that one place has supports a claim; below doubtful it does not.
	certain  = 0.55
	doubtful = 0.40
	likely   = 0.45 // if facts of it are there too
	// A sentence with so many of a claim's words is about the same thing: they can contradict each other.
	alike = 0.5
	// Two sentences that have so much of each other say the same thing, or the opposite.
	twin = 0.75
)

// Parse reads a piece of an answer.
func Parse(text string, coded bool) *Claim {
	c := &Claim{text: text, all: map[string]bool{}, language: Language(text)}
	var d denial
	seen := map[string]bool{}
	part := 0
	scan(text, c.language, coded, func(t token) {
		if t.kind == pause {
			d.next(t)
			part++
			return
		}
		if !c.all[t.text] {
			c.all[t.text] = true
			c.order = append(c.order, t.text)
		}
		if head := d.next(t); head != "" {
			c.negated = append(c.negated, head)
		}
		if negations[t.text] {
			c.denials++
		}
		if len(c.words)+len(c.facts) >= maxWords {
			return
		}
		key := t.text
		switch t.kind {
		case number:
			key += string(t.unit.kind)
		case plain:
			if functional[t.text] || negations[t.text] || len(t.text) < 2 {
				return
			}
			key = stem(t.text)
		case ideas:
			c.wide = true
		}
		if seen[key] {
			return
		}
		seen[key] = true
		switch t.kind {
		case number, code, name:
			f := newFact(t)
			f.part = part
			c.facts = append(c.facts, f)
		default:
			c.words = append(c.words, key)
			c.terms = append(c.terms, termOf("", key))
			c.parts = append(c.parts, part)
		}
	})
	c.denies = c.wide && wideDenies(text)
	return c
}

func newFact(t token) fact {
	f := fact{kind: t.kind, text: t.text, term: termOf("", t.text)}
	switch {
	case t.kind == number && t.unit.kind != 0:
		f.unit, f.bare = termOf(amounts, t.amount()), termOf(bare, t.text)
	case t.kind == code && strings.Contains(t.text, ".") && t.text[0] != '-':
		for part := range strings.SplitSeq(t.text, ".") {
			if len(part) < 2 {
				f.dots = nil
				break
			}
			f.dots = append(f.dots, termOf("", part))
		}
	}
	return f
}

// Empty reports whether the piece has nothing that could be claimed.
func (c *Claim) Empty() bool { return len(c.words)+len(c.facts) == 0 }

// Facts reports whether the piece has numbers, names or identifiers.
func (c *Claim) Facts() bool { return len(c.facts) > 0 }

// Negative reports whether the piece denies something.
func (c *Claim) Negative() bool { return len(c.negated) > 0 || c.denies || c.all["no"] || c.all["not"] }

// in says where a text has a fact.
func (f *fact) in(t *Text) []posting {
	if f.unit != 0 {
		if at := t.find(f.unit); len(at) > 0 {
			return at
		}
		return t.find(f.bare)
	}
	at := t.find(f.term)
	if len(at) == 0 && f.kind == name {
		at = t.find(termOf("", stem(f.text)))
	}
	if len(at) == 0 && len(f.dots) > 0 {
		for _, part := range f.dots { // server.port is "port" below "server" in YAML
			if at = t.find(part); len(at) == 0 {
				return nil
			}
		}
	}
	return at
}

// A place is where a text has most of a claim's words.
type place struct {
	text     *Text
	sentence int
	share    float64 // of the claim's words and facts that the sentence has with its neighbors
	own      float64 // that the sentence has by itself
}

// Against holds the claim against texts, which count as one. Known are texts whose names and identifiers may be spoken
// of without being supported by them: the question.
func (c *Claim) Against(known *Text, texts ...*Text) Finding {
	if c.Empty() || len(texts) == 0 {
		return Finding{Verdict: Unsupported, Why: "there is nothing to hold it against"}
	}
	best, top, whole := c.places(texts)
	found := 0
	for i := range c.facts {
		f := &c.facts[i]
		switch at, ok := c.fact(f, texts); {
		case ok:
			found++
		case at:
			return Finding{Why: fmt.Sprintf("%q stands there with something else", f.text), Score: best.share}
		case c.excused(f, known):
		default:
			return Finding{Why: fmt.Sprintf("%q does not stand there", f.text), Score: best.share}
		}
	}
	score := best.share*0.7 + whole*0.3
	f := Finding{Score: score, Facts: found}
	if why := c.contradicted(top); why != "" {
		f.Why, f.Denied = why, true
		return f
	}
	foreign := c.language != "" && best.text != nil && best.text.language != "" && best.text.language != c.language
	switch {
	case foreign && found > 0 && found*3 >= len(c.facts)*2:
		f.Verdict = Supported
	case foreign:
		f.Verdict, f.Why = Doubtful, "it is in another language"
	case score >= certain, found > 0 && score >= likely:
		f.Verdict = Supported
	case score >= doubtful:
		f.Verdict, f.Why = Doubtful, "it is said in other words, or not said"
	default:
		f.Why = "nothing like it stands there"
	}
	return f
}

// weight of a fact, where a word has 1.
const factWeight = 1.5

// places finds where the texts have most of the claim, and what share of it they have altogether.
//
// Best is the place with its neighbors, top the sentence by itself.
func (c *Claim) places(texts []*Text) (best, top place, whole float64) {
	total := float64(len(c.terms)) + factWeight*float64(len(c.facts))
	have := make([]bool, len(c.terms)+len(c.facts))
	for _, t := range texts {
		counts := map[int32]float64{}
		note := func(i int, at []posting, weight float64) {
			have[i] = have[i] || len(at) > 0
			for _, p := range at {
				counts[p.sentence] += weight
			}
		}
		for i, term := range c.terms {
			note(i, t.find(term), 1)
		}
		for i := range c.facts {
			note(len(c.terms)+i, c.facts[i].in(t), factWeight)
		}
		// The few sentences that have most are looked at with their neighbors.
		for range 3 {
			at, most := int32(-1), 0.0
			for s, n := range counts {
				if n > most || n == most && at >= 0 && s < at {
					at, most = s, n
				}
			}
			if at < 0 {
				break
			}
			p := place{text: t, sentence: int(at), own: most / total, share: c.near(t, int(at)) / total}
			if p.share > best.share || best.text == nil {
				best = p
			}
			if p.own > top.own || top.text == nil {
				top = p
			}
			delete(counts, at)
		}
	}
	n := 0.0
	for i, is := range have {
		if is && i < len(c.terms) {
			n++
		} else if is {
			n += factWeight
		}
	}
	return best, top, n / total
}

// near is how much of the claim a sentence has with its neighbors and with what the text is called.
func (c *Claim) near(t *Text, sentence int) float64 {
	first, last := max(1, sentence-1), sentence+1
	n := 0.0
	for _, term := range c.terms {
		if t.has(term, first, last) || t.has(term, 0, 0) {
			n++
		}
	}
	for i := range c.facts {
		f := &c.facts[i]
		if f.within(t, first, last) || f.within(t, 0, 0) {
			n += factWeight
		}
	}
	return n
}

func (f *fact) within(t *Text, first, last int) bool {
	if f.unit != 0 {
		return t.has(f.unit, first, last) || t.has(f.bare, first, last)
	}
	if t.has(f.term, first, last) || f.kind == name && t.has(termOf("", stem(f.text)), first, last) {
		return true
	}
	return slices.ContainsFunc(f.dots, func(part uint64) bool { return t.has(part, first, last) })
}

// fact reports whether the texts have a fact, and have it with what the claim says of it: a number belongs to what
// stands beside it.
func (c *Claim) fact(f *fact, texts []*Text) (there, ok bool) {
	for _, t := range texts {
		at := f.in(t)
		if len(at) == 0 {
			continue
		}
		there = true
		if f.kind != number {
			return true, true
		}
		foreign := c.language != "" && t.language != "" && c.language != t.language
		for _, p := range at {
			if c.beside(f, t, int(p.sentence), foreign) {
				return true, true
			}
		}
	}
	return there, false
}

// beside reports whether enough of what the claim says beside a number, in the same part of the sentence, stands near
// it in the text.
func (c *Claim) beside(f *fact, t *Text, sentence int, foreign bool) bool {
	first, last := t.around(sentence)
	near, others := 0, 0
	named, found := false, false // identifiers: one of them is what the number is of
	for i, term := range c.terms {
		if c.parts[i] == f.part {
			others++
			if t.has(term, first, last) || t.has(term, 0, 0) {
				near++
			}
		}
	}
	for i := range c.facts {
		if g := &c.facts[i]; g != f && g.part == f.part {
			others++
			named = named || g.kind == code
			if g.within(t, first, last) || g.within(t, 0, 0) {
				near++
				found = found || g.kind == code
			}
		}
	}
	if named && !found {
		return false
	}
	return others == 0 || float64(near) >= besideShare*float64(others) || foreign && (near > 0 || len(c.facts) == 1)
}

// besideShare is the share of what a claim says beside a number that has to stand near it.
const besideShare = 0.3

// excused reports whether a claim may have a fact that the passages do not have: the question named it, and the claim
// says that it is not so, or only names it.
func (c *Claim) excused(f *fact, known *Text) bool {
	if known == nil || len(f.in(known)) == 0 {
		return false
	}
	return f.kind == name || c.Negative()
}

// contradicted says what in the place that is most like the claim is the opposite of it.
func (c *Claim) contradicted(best place) string {
	t := best.text
	if t == nil || best.share < alike {
		return ""
	}
	first, last := best.sentence, best.sentence
	if t.sentences <= 1 {
		return ""
	}
	if z := t.sizes[first]; z.words > 0 && first > 0 && best.own >= twin && z.negations != c.denials &&
		best.own*float64(c.Words()) >= twin*float64(z.words) && !c.wide {
		return "one of them denies what the other says"
	}
	for _, head := range c.negated {
		if t.has(termOf("", head), first, last) && !t.has(termOf(negated, head), first, last) {
			return fmt.Sprintf("it denies %q, which is said there", head)
		}
	}
	for i := range c.words {
		if t.has(termOf(negated, c.words[i]), first, last) && !slices.Contains(c.negated, c.words[i]) && c.share(t, first) >= alike {
			return fmt.Sprintf("it says %q, which is denied there", c.words[i])
		}
	}
	if why := c.opposed(t, first); why != "" {
		return why
	}
	if c.wide && best.own >= 0.7 && c.denies != t.has(termOf(denies, ""), first, last) {
		return "one of them denies what the other says"
	}
	return ""
}

// opposed says which word of the claim is the opposite of one in a sentence.
func (c *Claim) opposed(t *Text, at int) string {
	if len(c.negated) > 0 || c.share(t, at) < alike {
		return ""
	}
	has := func(prefix, w string) bool { return t.has(termOf(prefix, w), at, at) }
	for _, w := range c.order {
		for _, o := range opposites[w] {
			if !c.all[o] && has("", o) && !has("", w) && !has("", stem(w)) && !has(negated, stem(o)) {
				return fmt.Sprintf("it says %q, and %q is said there", w, o)
			}
		}
	}
	return ""
}

// share is how much of the claim one sentence has.
func (c *Claim) share(t *Text, sentence int) float64 {
	n := 0.0
	for _, term := range c.terms {
		if t.has(term, sentence, sentence) {
			n++
		}
	}
	for i := range c.facts {
		if c.facts[i].within(t, sentence, sentence) {
			n += factWeight
		}
	}
	return n / (float64(len(c.terms)) + factWeight*float64(len(c.facts)))
}

// Words is how many words and facts the piece has.
func (c *Claim) Words() int { return len(c.words) + len(c.facts) }

// Known says how many of the claim's facts stand in one of the texts, and which stand in none.
func (c *Claim) Known(texts ...*Text) (known int, missing []string) {
	for i := range c.facts {
		f, found := &c.facts[i], false
		for _, t := range texts {
			if t != nil && len(f.in(t)) > 0 {
				found = true
				break
			}
		}
		if found {
			known++
		} else {
			missing = append(missing, f.text)
		}
	}
	return known, missing
}

// Hard reports whether a word of code is one that nobody makes up by the way: a flag, an address, a number of more
// than one digit.
func Hard(w string) bool {
	if strings.HasPrefix(w, "--") || strings.Contains(w, "://") || strings.HasPrefix(w, "-") && len(w) == 2 {
		return true
	}
	digits := strings.Trim(w, "0123456789.,") == ""
	return digits && len(w) > 1
}
