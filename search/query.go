package search

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"docent/internal/brief"
	"docent/search/analysis"
)

// A group is one word of a query with everything that counts as that word.
type group struct {
	word     string // as typed, lower case
	variants []variant
	weight   float32 // of the group in the query: more than 1 if the word is repeated
	idf      float32
	ready    *postings // what the word adds to scores at weight 1, if that is known
	bridged  bool      // words that stand for it were added: idf is that of the word alone, as if it were asked for alone
}

type variant struct {
	term   string
	hash   uint32
	weight float32
	as     Reading
	stem   bool // of the word that counts so, which is another variant
}

func (g *group) add(term string, weight float64, as Reading, stem bool) {
	for i := range g.variants {
		if g.variants[i].term == term {
			g.variants[i].weight = max(g.variants[i].weight, float32(weight))
			return
		}
	}
	g.variants = append(g.variants, variant{term, analysis.Hash(term), float32(weight), as, stem})
}

// stem is the hash of the word's own stem in the first language; of the word if it has none.
func (g *group) stem() uint32 {
	for i := range g.variants {
		if g.variants[i].stem {
			return g.variants[i].hash
		}
	}
	return analysis.Hash(g.word)
}

// addWord adds a word and its stems in the languages.
func (g *group) addWord(a *analysis.Tokenizer, languages []string, word string, weight float64, as Reading) {
	g.add(word, weight, as, false)
	for _, l := range languages {
		g.add(a.Stem(word, l), weight, as, true)
	}
}

// longestQuery is how many bytes of a query are looked at.
const longestQuery = 2000

// A queryParser cuts a query into groups.
type queryParser struct {
	*snapshot
	ctx       context.Context
	a         *analysis.Tokenizer
	w         *scratch
	languages []string
	box       bool
	groups    []group
	lastPart  int // number of the part that may be unfinished; -1 if there is none
	covered   int // parts up to here belong to a whole that is known
}

// parse cuts a query into groups, by the words' stems in the languages of the pages that are looked at.
func (s *snapshot) parse(ctx context.Context, w *scratch, q Query, languages []string) ([]group, error) {
	a := analysis.Get()
	defer a.Put()
	text := brief.Bytes(analysis.Message(brief.Bytes(q.Text, 8*longestQuery, "")), longestQuery, "")
	tokens := w.tokens[:0]
	a.Tokens(text, languages[0], func(t analysis.Token) { tokens = append(tokens, t) })
	slices.SortStableFunc(tokens, func(a, b analysis.Token) int { // a compound before the parts that it stands for
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Covers, a.Covers))
	})
	w.tokens = tokens
	keep := w.keep[:0]
	for _, t := range tokens {
		if t.Covers > 0 || !analysis.Dropped(t.Surface) {
			keep = append(keep, t)
		}
	}
	w.keep = keep
	if len(keep) == 0 {
		keep = tokens
	}
	p := queryParser{snapshot: s, ctx: ctx, a: a, w: w, languages: languages, box: q.Box, groups: w.groups[:0],
		lastPart: -1, covered: -1}
	defer func() { w.groups = p.groups }()
	end := len(strings.TrimRight(text, " \t\n"))
	if q.Box && end == len(text) && len(tokens) > 0 && tokens[len(tokens)-1].End == end {
		p.lastPart = tokens[len(tokens)-1].At
	}
	for _, t := range keep {
		if err := p.token(t); err != nil {
			return nil, err
		}
	}
	return p.groups, nil
}

func (p *queryParser) token(t analysis.Token) error {
	switch {
	case t.Covers > 0 && p.box:
		return p.typedName(t)
	case t.Covers > 0:
		return p.name(t)
	}
	weight := float32(1)
	if t.At < p.covered {
		weight = float32(p.tuning.PartShare)
	}
	if first, _ := utf8.DecodeRuneInString(t.Surface); first >= 0x2E80 {
		weight *= float32(p.tuning.Pair)
	}
	repeated := false
	for i := range p.groups {
		if p.groups[i].word == t.Surface {
			p.groups[i].weight += weight
			repeated = true
		}
	}
	switch {
	case repeated:
		return nil
	case p.box:
		return p.typedWord(t, weight)
	}
	ready, err := p.word(p.ctx, p.a, p.w, p.languages, plainWord, t.Surface)
	if err == nil {
		p.groups = append(p.groups, group{word: t.Surface, variants: ready.variants, weight: weight, ready: ready})
	}
	return err
}

// name adds a name of several parts, if some page has it.
func (p *queryParser) name(t analysis.Token) error {
	ready, err := p.word(p.ctx, p.a, p.w, p.languages, wholeName, t.Term)
	if err == nil && ready.known {
		p.groups = append(p.groups, group{word: t.Surface, variants: ready.variants, weight: 1, ready: ready})
		p.covered = max(p.covered, t.At+t.Covers)
	}
	return err
}

// typedName is name in a search box, where the last part may be unfinished.
func (p *queryParser) typedName(t analysis.Token) error {
	known, err := p.known(t.Term)
	if err != nil {
		return err
	}
	g := group{word: t.Surface, weight: 1}
	g.add(t.Term, 1, ReadTyped, false)
	if p.lastPart >= 0 && t.At+t.Covers > p.lastPart {
		p.begun(p.a, &g, p.languages, p.prefixShare(known))
		known = known || len(g.variants) > 1
	}
	if known {
		p.groups = append(p.groups, g)
		p.covered = max(p.covered, t.At+t.Covers)
	}
	return nil
}

// typedWord adds a word of a search box, with what it may be the beginning of and what it may have been meant to be.
func (p *queryParser) typedWord(t analysis.Token, weight float32) error {
	g := group{word: t.Surface, weight: weight}
	g.addWord(p.a, p.languages, t.Surface, 1, ReadTyped)
	isWord := false
	for _, v := range g.variants {
		known, err := p.known(v.term)
		if err != nil {
			return err
		}
		isWord = isWord || known
	}
	last := t.At == p.lastPart
	if last && !(isWord && len(p.groups) >= p.tuning.PrefixUntil) {
		p.begun(p.a, &g, p.languages, p.prefixShare(isWord))
	}
	if !isWord && (!last || len(g.variants) <= 1+len(p.languages)) {
		p.slips(p.a, &g, p.languages)
	}
	p.groups = append(p.groups, g)
	return nil
}

// known reports whether some document has a term.
func (p *queryParser) known(term string) (bool, error) {
	found, err := p.decode(p.ctx, term)
	return err == nil && (len(found.sections) > 0 || len(found.pages) > 0), err
}

// prefixShare is what the words count that the last word of a query begins.
func (p *queryParser) prefixShare(isWord bool) float64 {
	if isWord {
		return p.tuning.PrefixOfWord
	}
	return p.tuning.Prefix
}

// word is a word of a question, as it counts wherever it is asked for: what counts as it, and what it adds to the
// scores of sections and pages. In a search box a word's place matters, so it is not for those.
func (s *snapshot) word(ctx context.Context, a *analysis.Tokenizer, w *scratch, languages []string, kind termKind,
	surface string) (*postings, error) {
	key := termKey{kind, surface, languages[0]}
	if len(languages) > 1 {
		key.language = "" // all of the site's
	}
	if p, ok := s.terms.Get(key); ok {
		return p, nil
	}
	g := group{word: strings.Clone(surface)}
	key.term = g.word
	if kind == wholeName {
		g.add(g.word, 1, ReadTyped, false)
	} else {
		g.addWord(a, languages, g.word, 1, ReadTyped)
		if share := s.tuning.Abbreviation; share > 0 {
			single := g.word
			if analysis.Abbreviations(single) == nil {
				single = strings.TrimSuffix(single, "s")
			}
			for _, other := range analysis.Abbreviations(single) {
				g.addWord(a, languages, other, share, ReadOtherForm)
			}
		}
	}
	if err := s.gather(ctx, w, &g, s.read); err != nil {
		return nil, err
	}
	k, pageK := float32(s.tuning.K), float32(s.tuning.PageK)
	p := &postings{variants: g.variants, idf: s.idf(len(w.sections.touched), g.stem()),
		sections: make([]weighed, len(w.sections.touched)), pages: make([]weighed, len(w.pages.touched))}
	// In the order in which they are found, which is that of a query that gathers them by itself.
	for i, d := range w.sections.touched {
		p.sections[i] = weighed{d, saturated(p.idf, w.sections.weight[d], k)}
	}
	for i, d := range w.pages.touched {
		p.pages[i] = weighed{d, saturated(p.idf, w.pages.weight[d], pageK)}
	}
	p.known = len(p.sections) > 0 || len(p.pages) > 0
	s.terms.Put(key, p)
	return p, nil
}

// gather sums what the variants of a group weigh in each document, into the scratch's accumulators of one group.
func (s *snapshot) gather(ctx context.Context, w *scratch, g *group,
	read func(context.Context, string) (*postings, error)) error {
	w.sections.reset(len(s.sections))
	w.pages.reset(len(s.pages))
	for _, v := range g.variants {
		p, err := read(ctx, v.term)
		if err != nil {
			return err
		}
		for _, d := range p.sections {
			w.sections.add(d.doc, d.weight*v.weight)
		}
		for _, d := range p.pages {
			w.pages.add(d.doc, d.weight*v.weight)
		}
	}
	return nil
}

func saturated(idf, x, k float32) float32 { return idf * x * (k + 1) / (k + x) }

// begun adds the words that a group's word is the beginning of: of all these, the ones that most pages have.
func (s *snapshot) begun(a *analysis.Tokenizer, g *group, languages []string, share float64) {
	for _, w := range s.completions(g.word, s.tuning.PrefixWords) {
		g.addWord(a, languages, w, share, ReadBegun)
	}
}

// completions are the words that begin with another one, the most used first. A single letter begins a good part of all
// words, and this is asked at each key that is pressed: so they are looked through once, and not sorted.
func (s *snapshot) completions(begin string, most int) []string {
	if most <= 0 {
		return nil
	}
	type counted struct {
		word  string
		pages uint32
	}
	var best []counted
	for i := sort.SearchStrings(s.words.Texts, begin); i < len(s.words.Texts) && strings.HasPrefix(s.words.Texts[i], begin); i++ {
		if s.words.Texts[i] == begin || len(best) == most && s.words.In[i] <= best[most-1].pages {
			continue
		}
		w := counted{s.words.Texts[i], s.used(i)}
		if w.pages == 0 || len(best) == most && w.pages <= best[most-1].pages {
			continue
		}
		if len(best) == most {
			best = best[:most-1]
		}
		// of equals the first in the alphabet
		at := sort.Search(len(best), func(k int) bool { return best[k].pages < w.pages })
		best = slices.Insert(best, at, w)
	}
	out := make([]string, len(best))
	for i, w := range best {
		out[i] = w.word
	}
	return out
}

// slips adds the words that a group's word may have been meant to be: up to three, at one slip, or from eight letters
// on at two.
func (s *snapshot) slips(a *analysis.Tokenizer, g *group, languages []string) {
	word := []rune(g.word)
	if len(word) < 3 {
		return
	}
	allowed := 1
	if len(word) >= 8 {
		allowed = 2
	}
	type candidate struct {
		at   int // in the dictionary
		word string
		slip int
		same int // letters in common at the start
	}
	var found []candidate
	visit := func(from, to int) {
		for i, w := range s.words.Texts[from:to] {
			if d := len(w) - len(g.word); d > 2*allowed || d < -2*allowed {
				continue
			}
			if n := analysis.Slips(word, w, allowed); n <= allowed {
				found = append(found, candidate{from + i, w, n, analysis.CommonPrefix(g.word, w)})
			}
		}
	}
	// The first letter is as typed, or was swapped with the second.
	for i, first := range []rune{word[0], word[1]} {
		if i == 1 && first == word[0] {
			break
		}
		from := sort.SearchStrings(s.words.Texts, string(first))
		to := sort.SearchStrings(s.words.Texts, string(first+1))
		visit(from, to)
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.slip, b.slip), cmp.Compare(b.same, a.same), strings.Compare(a.word, b.word))
	})
	n := 0
	for _, c := range found {
		if n == 3 {
			break
		}
		if s.used(c.at) == 0 {
			continue
		}
		n++
		share := s.tuning.Slip1
		if c.slip > 1 {
			share = s.tuning.Slip2
		}
		g.addWord(a, languages, c.word, share, ReadCorrected)
	}
}
