package search

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"net/url"
	"slices"
	"sort"
	"strings"
	"sync"

	"docent/search/analysis"
	"docent/search/page"
)

// Tuning is the weights of the ranking: one setting for every site. docs/decisions/0003-ranking.md tells where they come from.
type Tuning struct {
	Section [page.SectionFields]float64 `toml:"section"` // heading, trail, body, code
	Inherit [page.Fields]float64        `toml:"inherit"` // what a page's fields are worth to each of its sections
	B       [page.SectionFields]float64 `toml:"b"`
	BShort  float64                     `toml:"b_short"`
	K       float64                     `toml:"k"`

	Page        [page.Fields]float64 `toml:"page"` // title, path, keywords, links, description
	PageHeading float64              `toml:"page_heading"`
	PageBody    float64              `toml:"page_body"`
	PageCode    float64              `toml:"page_code"`
	PageK       float64              `toml:"page_k"`

	PageShare float64 `toml:"page_share"` // of the page's own score; the rest is its best section's
	IDFPower  float64 `toml:"idf_power"`

	Closer         int     `toml:"closer"`       // pages looked at closely
	CloserShare    float64 `toml:"closer_share"` // their sections that score at least so much of the best
	TitleCover     float64 `toml:"title_cover"`
	HeadingCover   float64 `toml:"heading_cover"`
	HeadingExact   float64 `toml:"heading_exact"` // where the query is the heading
	HeadingNamed   float64 `toml:"heading_named"` // on top of it, where the query ends with the heading word for word
	UnknownCount   float64 `toml:"unknown_count"` // a title word that was not asked for counts so often
	Proximity      float64 `toml:"proximity"`
	ProximityK     float64 `toml:"proximity_k"`
	TitleStart     float64 `toml:"title_start"`
	TitleStartBase float64 `toml:"title_start_base"` // for any title that begins with the query; TitleStart for one that is the query
	Slip1          float64 `toml:"slip1"`
	Slip2          float64 `toml:"slip2"`
	Prefix         float64 `toml:"prefix"`
	PrefixOfWord   float64 `toml:"prefix_of_word"` // where the last word is a word itself
	PrefixWords    int     `toml:"prefix_words"`
	PrefixUntil    int     `toml:"prefix_until"`  // words of a query from which on a last word that is a word is not taken for the beginning of others
	NameRest       float64 `toml:"name_rest"`     // as UnknownCount, for the other parts of a name that was asked for
	PartShare      float64 `toml:"part_share"`    // a part of a compound name, where the whole is known
	Neighbourhood  float64 `toml:"neighbourhood"` // currentPath
	Vote           float64 `toml:"vote"`          // of other candidates, by linking to a page: at most, and how many make half of it
	VoteK          float64 `toml:"vote_k"`
	Abbreviation   float64 `toml:"abbreviation"` // of the other form of a word that is written short or in full
	Boost          float64 `toml:"boost"`        // power to which a page's own boost is raised where it is above 1; Demotion where it is below
	Demotion       float64 `toml:"demotion"`
}

// DefaultTuning is what a library uses unless it is told otherwise.
var DefaultTuning = Tuning{
	Section: [page.SectionFields]float64{4, 1.5, 1, 0.7}, Inherit: [page.Fields]float64{6, 2, 1, 0.5, 2, 0},
	B: [page.SectionFields]float64{0.3, 0.3, 0.5, 0.75}, BShort: 0.3, K: 2,
	Page: [page.Fields]float64{4, 4, 2, 2, 4, 0}, PageHeading: 2, PageBody: 0.7, PageCode: 0.6, PageK: 1.5,
	PageShare: 0.3, IDFPower: 0.8,
	Closer: 20, CloserShare: 0.6, TitleCover: 1.2, HeadingCover: 0.5, HeadingExact: 0.5, HeadingNamed: 0.75, UnknownCount: 4, NameRest: 2, Proximity: 0.3, ProximityK: 2,
	TitleStart: 0.6, TitleStartBase: 0.3, Slip1: 0.8, Slip2: 0.4, Prefix: 0.7, PrefixOfWord: 0.35, PrefixWords: 40, PrefixUntil: 3,
	PartShare: 1, Neighbourhood: 0.1, Vote: 0.4, VoteK: 5, Abbreviation: 0.5, Boost: 0.03, Demotion: 0.25,
}

// A group is one word of a query with everything that counts as that word.
type group struct {
	word     string // as typed, lower case
	variants []variant
	weight   float32 // of the group in the query: more than 1 where the word is repeated
	idf      float32
	ready    *postings // what the word adds to scores at weight 1, where that is known
}

type variant struct {
	term   string
	hash   uint32
	weight float32
}

func (g *group) add(term string, weight float64) {
	for i := range g.variants {
		if g.variants[i].term == term {
			g.variants[i].weight = max(g.variants[i].weight, float32(weight))
			return
		}
	}
	g.variants = append(g.variants, variant{term, analysis.Hash(term), float32(weight)})
}

// parse cuts a query into groups, by the words' stems in the languages of the pages that are looked at.
func (s *snapshot) parse(ctx context.Context, w *scratch, q Query, languages []string) ([]group, error) {
	a := analysis.Get()
	defer a.Put()
	text := q.Text
	if len(text) > longestQuery {
		text = strings.ToValidUTF8(text[:longestQuery], "")
	}
	tokens := w.tokens[:0]
	a.Tokens(text, languages[0], func(t analysis.Token) { tokens = append(tokens, t) })
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
	end := len(strings.TrimRight(text, " \t\n"))
	unfinished := q.Box && end == len(text)
	groups := w.groups[:0]
	defer func() { w.groups = groups }()
	known := func(term string) (bool, error) {
		p, err := s.decode(ctx, term)
		return err == nil && (len(p.sections) > 0 || len(p.pages) > 0), err
	}
	lastPart := -1 // number of the part that may be unfinished
	if unfinished && len(tokens) > 0 && tokens[len(tokens)-1].End == end {
		lastPart = tokens[len(tokens)-1].At
	}
	coveredUntil := -1 // parts up to here belong to a whole that is known
	for _, t := range keep {
		if t.Covers > 0 {
			if !q.Box {
				p, err := s.word(ctx, a, w, languages, wholeName, t.Term)
				if err != nil {
					return nil, err
				}
				if p.known {
					groups = append(groups, group{word: t.Surface, variants: p.variants, weight: 1, ready: p})
					coveredUntil = max(coveredUntil, t.At+t.Covers)
				}
				continue
			}
			ok, err := known(t.Term)
			if err != nil {
				return nil, err
			}
			g := group{word: t.Surface, weight: 1}
			g.add(t.Term, 1)
			if lastPart >= 0 && t.At+t.Covers > lastPart { // a name that is not finished
				share := s.tuning.Prefix
				if ok {
					share = s.tuning.PrefixOfWord
				}
				s.begun(a, &g, languages, share)
				ok = ok || len(g.variants) > 1
			}
			if ok {
				groups = append(groups, g)
				coveredUntil = max(coveredUntil, t.At+t.Covers)
			}
			continue
		}
		weight := float32(1)
		if t.At < coveredUntil {
			weight = float32(s.tuning.PartShare)
		}
		repeated := false
		for i := range groups {
			if groups[i].word == t.Surface {
				groups[i].weight += weight
				repeated = true
			}
		}
		last := t.At == lastPart
		if repeated && !last {
			continue
		}
		if !q.Box {
			p, err := s.word(ctx, a, w, languages, plainWord, t.Surface)
			if err != nil {
				return nil, err
			}
			groups = append(groups, group{word: t.Surface, variants: p.variants, weight: weight, ready: p})
			continue
		}
		g := group{word: t.Surface, weight: weight}
		g.add(t.Surface, 1)
		for _, l := range languages {
			g.add(a.Stem(t.Surface, l), 1)
		}
		isWord := false
		for _, v := range g.variants {
			ok, err := known(v.term)
			if err != nil {
				return nil, err
			}
			isWord = isWord || ok
		}
		if last && !(isWord && len(groups) >= s.tuning.PrefixUntil) {
			share := s.tuning.Prefix
			if isWord {
				share = s.tuning.PrefixOfWord
			}
			s.begun(a, &g, languages, share)
		}
		if !isWord && (!last || len(g.variants) <= 1+len(languages)) {
			s.slips(a, &g, languages, last)
		}
		if !repeated {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// longestQuery is how many bytes of a query are looked at.
const longestQuery = 2000

// word is a word of a question, as it counts wherever it is asked for: what counts as it, and what it adds to the scores
// of sections and pages. In a search box a word's place matters, so it is not for those.
func (s *snapshot) word(ctx context.Context, a *analysis.Analyser, w *scratch, languages []string, kind termKind, surface string) (*postings, error) {
	key := termKey{kind, surface, languages[0]}
	if len(languages) > 1 {
		key.language = "" // all of the site's
	}
	if p, ok := s.terms.get(key); ok {
		return p, nil
	}
	g := group{word: strings.Clone(surface)}
	key.term = g.word
	g.add(g.word, 1)
	if kind == plainWord {
		for _, l := range languages {
			g.add(a.Stem(g.word, l), 1)
		}
		if share := s.tuning.Abbreviation; share > 0 {
			single := g.word
			if analysis.Abbreviations(single) == nil {
				single = strings.TrimSuffix(single, "s")
			}
			for _, other := range analysis.Abbreviations(single) {
				g.add(other, share)
				for _, l := range languages {
					g.add(a.Stem(other, l), share)
				}
			}
		}
	}
	if err := s.gather(ctx, w, &g, s.read); err != nil {
		return nil, err
	}
	k, pageK := float32(s.tuning.K), float32(s.tuning.PageK)
	p := &postings{variants: g.variants, idf: s.idf(len(w.sections.touched), len(s.sections)),
		sections: make([]weighed, len(w.sections.touched)), pages: make([]weighed, len(w.pages.touched))}
	// In the order in which they are found, which is that of a query that gathers them by itself.
	for i, d := range w.sections.touched {
		p.sections[i] = weighed{d, saturated(p.idf, w.sections.weight[d], k)}
	}
	for i, d := range w.pages.touched {
		p.pages[i] = weighed{d, saturated(p.idf, w.pages.weight[d], pageK)}
	}
	p.known = len(p.sections) > 0 || len(p.pages) > 0
	s.terms.put(key, p)
	return p, nil
}

// gather sums what the variants of a group weigh in each document, into the scratch's accumulators of one group.
func (s *snapshot) gather(ctx context.Context, w *scratch, g *group, read func(context.Context, string) (*postings, error)) error {
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
func (s *snapshot) begun(a *analysis.Analyser, g *group, languages []string, share float64) {
	for _, w := range s.completions(g.word, s.tuning.PrefixWords) {
		g.add(w, share)
		for _, l := range languages {
			g.add(a.Stem(w, l), share)
		}
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
	for i := sort.SearchStrings(s.words, begin); i < len(s.words) && strings.HasPrefix(s.words[i], begin); i++ {
		if s.words[i] == begin || len(best) == most && s.wordPages[i] <= best[most-1].pages {
			continue
		}
		w := counted{s.words[i], s.used(i)}
		if w.pages == 0 || len(best) == most && w.pages <= best[most-1].pages {
			continue
		}
		if len(best) == most {
			best = best[:most-1]
		}
		at := sort.Search(len(best), func(k int) bool { return best[k].pages < w.pages }) // of equals the first in the alphabet
		best = slices.Insert(best, at, w)
	}
	out := make([]string, len(best))
	for i, w := range best {
		out[i] = w.word
	}
	return out
}

// slips adds the words that a group's word may have been meant to be: up to three, at one slip, or from eight letters on
// at two.
func (s *snapshot) slips(a *analysis.Analyser, g *group, languages []string, unfinished bool) {
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
		for i, w := range s.words[from:to] {
			if d := len(w) - len(g.word); d > 2*allowed || d < -2*allowed {
				continue
			}
			if n := slipsBetween(word, w, allowed); n <= allowed {
				found = append(found, candidate{from + i, w, n, commonPrefix(g.word, w)})
			}
		}
	}
	// The first letter is as typed, or was swapped with the second.
	for i, first := range []rune{word[0], word[1]} {
		if i == 1 && first == word[0] {
			break
		}
		from := sort.SearchStrings(s.words, string(first))
		to := sort.SearchStrings(s.words, string(first+1))
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
		g.add(c.word, share)
		for _, l := range languages {
			g.add(a.Stem(c.word, l), share)
		}
	}
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// slipsBetween is the number of letters left out, added, replaced or swapped with their neighbour between two words, or
// more than most where there are more.
func slipsBetween(a []rune, word string, most int) int {
	var buf [48]rune
	b := buf[:0]
	for _, r := range word {
		b = append(b, r)
	}
	if d := len(a) - len(b); d > most || -d > most || len(a) > 46 {
		return most + 1
	}
	var rows [3][48]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			n := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, before[j-2]+1)
			}
			row[j] = n
			least = min(least, n)
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Scratch of one query.
type scratch struct {
	sections, pages accumulator // of one group
	sectionScore    accumulator
	pageScore       accumulator
	best            []bestSection
	candidates      []candidate
	top             []candidate
	others          []other
	asked           asked
	tokens, keep    []analysis.Token
	groups          []group
}

// done lets go of what belongs to the query, and keeps the room.
func (w *scratch) done() {
	clear(w.tokens)
	clear(w.keep)
	clear(w.groups)
	w.asked.clear()
	scratches.Put(w)
}

type bestSection struct {
	score   float32
	section uint32
}

type candidate struct {
	page    uint32
	score   float32
	section uint32 // the best one
	base    float32
	others  []other // what else of the page was looked at
}

// An other is a further section of a page, with what its page loses where it stands for it.
type other struct {
	section uint32
	less    float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// A standing is a section that a search has found, with its score.
type standing struct {
	section uint32
	score   float64
}

// rank finds the sections that answer a query best, in their order.
func (s *snapshot) rank(ctx context.Context, q Query) ([]standing, error) {
	w := scratches.Get().(*scratch)
	defer w.done()
	sc, err := s.scopeOf(ctx, &q)
	if err != nil {
		return nil, err
	}
	return s.rankIn(ctx, w, q, sc)
}

func (s *snapshot) rankGroups(ctx context.Context, w *scratch, q Query, groups []group, sc *scope) ([]standing, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	limit := q.pages()
	filter := s.filter(&q, sc)
	t := s.tuning
	w.sectionScore.reset(len(s.sections))
	w.pageScore.reset(len(s.pages))
	var total float32
	k, pageK := float32(t.K), float32(t.PageK)
	for i := range groups {
		g := &groups[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if g.ready != nil && g.weight == 1 {
			g.idf = g.ready.idf
			total += g.idf
			for _, d := range g.ready.sections {
				w.sectionScore.add(d.doc, d.weight)
			}
			for _, d := range g.ready.pages {
				w.pageScore.add(d.doc, d.weight)
			}
			continue
		}
		if err := s.gather(ctx, w, g, s.decode); err != nil {
			return nil, err
		}
		g.idf = s.idf(len(w.sections.touched), len(s.sections)) * g.weight
		total += g.idf
		for _, d := range w.sections.touched {
			w.sectionScore.add(d, saturated(g.idf, w.sections.weight[d], k))
		}
		for _, d := range w.pages.touched {
			w.pageScore.add(d, saturated(g.idf, w.pages.weight[d], pageK))
		}
	}
	if total == 0 {
		return nil, nil
	}
	// Pages with their best sections.
	if cap(w.best) < len(s.pages) {
		w.best = make([]bestSection, len(s.pages))
	}
	w.best = w.best[:cap(w.best)]
	for _, sec := range w.sectionScore.touched {
		page := s.pageOf[sec]
		if score := w.sectionScore.weight[sec]; score > w.best[page].score || score == w.best[page].score && sec < w.best[page].section {
			w.best[page] = bestSection{score, sec}
		}
		if w.pageScore.weight[page] == 0 {
			w.pageScore.touched = append(w.pageScore.touched, page)
			w.pageScore.weight[page] = math.SmallestNonzeroFloat32
		}
	}
	share := float32(t.PageShare)
	w.candidates = w.candidates[:0]
	for _, page := range w.pageScore.touched {
		b := w.best[page]
		w.best[page] = bestSection{}
		if !filter(page) {
			continue
		}
		if b.score == 0 {
			b.section = s.firstOf[page]
		}
		score := share*w.pageScore.weight[page] + (1-share)*b.score
		w.candidates = append(w.candidates, candidate{page: page, score: score, base: score, section: b.section})
	}
	closer := max(t.Closer, limit)
	candidates := topCandidates(w.top[:0], w.candidates, closer)
	started := s.startedTitles(q, filter)
	for page := range started {
		if !slices.ContainsFunc(candidates, func(c candidate) bool { return c.page == page }) {
			if len(s.pages[page].Sections) == 0 {
				continue
			}
			c := candidate{page: page, section: s.firstOf[page]}
			for _, known := range w.candidates {
				if known.page == page {
					c = known
				}
			}
			candidates = append(candidates, c)
		}
	}
	w.top = candidates
	s.lookCloser(w, groups, total, candidates, started, q)
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.page, b.page))
	})
	// The most that a page can have.
	most := total*((1-share)*(k+1)+share*(pageK+1)) + total*float32(t.TitleCover+t.HeadingCover+t.HeadingExact+t.Vote) + total*float32(t.Proximity)
	rate := func(score float32) float64 { return min(1, max(0, float64(score/most))) }
	found := make([]standing, 0, min(limit, len(candidates))*max(1, min(q.Sections, 4)))
	for n, c := range candidates {
		if n == limit || rate(c.score) < q.Threshold {
			break
		}
		found = append(found, standing{c.section, rate(c.score)})
		if q.Sections > 1 {
			found = s.further(found, c, q, rate)
		}
	}
	if q.Sections > 1 {
		slices.SortStableFunc(found, func(a, b standing) int { return cmp.Compare(b.score, a.score) })
	}
	return found, nil
}

// further adds the next best sections of a page of which one is there already.
func (s *snapshot) further(found []standing, c candidate, q Query, rate func(float32) float64) []standing {
	slices.SortFunc(c.others, func(a, b other) int {
		return cmp.Or(cmp.Compare(a.less, b.less), cmp.Compare(a.section, b.section))
	})
	first := len(found) - 1 // from here on they are of this page
	for _, o := range c.others {
		if len(found)-first == q.Sections || rate(c.score-o.less) < q.Threshold {
			break
		}
		if slices.ContainsFunc(found[first:], func(p standing) bool {
			_, after := s.stretch(p.section)
			return o.section >= p.section && o.section < after
		}) {
			continue
		}
		found = append(found, standing{o.section, rate(c.score - o.less)})
	}
	return found
}

// topCandidates appends the n best to heap, which is empty, in no order.
func topCandidates(heap, c []candidate, n int) []candidate {
	less := func(a, b *candidate) bool { return a.score < b.score || a.score == b.score && a.page > b.page }
	heap = append(heap, c[:min(n, len(c))]...)
	if len(c) <= n {
		return heap
	}
	down := func(i int) {
		for {
			least := i
			if l := 2*i + 1; l < n && less(&heap[l], &heap[least]) {
				least = l
			}
			if r := 2*i + 2; r < n && less(&heap[r], &heap[least]) {
				least = r
			}
			if least == i {
				return
			}
			heap[i], heap[least] = heap[least], heap[i]
			i = least
		}
	}
	for i := n/2 - 1; i >= 0; i-- {
		down(i)
	}
	for i := n; i < len(c); i++ {
		if less(&heap[0], &c[i]) {
			heap[0] = c[i]
			down(0)
		}
	}
	return heap
}

// startedTitles finds pages whose title begins with what is typed, and how much of the title that is.
func (s *snapshot) startedTitles(q Query, filter func(uint32) bool) map[uint32]float32 {
	if !q.Box || s.tuning.TitleStart == 0 {
		return nil
	}
	typed := plainTitle(q.Text)
	if typed == "" {
		return nil
	}
	at := sort.Search(len(s.titles), func(i int) bool { return s.titles[i].title >= typed })
	var out map[uint32]float32
	for n := 0; at < len(s.titles) && n < 50 && strings.HasPrefix(s.titles[at].title, typed); at++ {
		if !filter(s.titles[at].page) {
			continue
		}
		n++
		if out == nil {
			out = make(map[uint32]float32)
		}
		coverage := float32(len(typed)) / float32(len(s.titles[at].title))
		out[s.titles[at].page] = max(out[s.titles[at].page], coverage)
	}
	return out
}

// lookCloser adds to the scores of candidates what titles, headings and the order of words tell.
func (s *snapshot) lookCloser(w *scratch, groups []group, total float32, candidates []candidate, started map[uint32]float32, q Query) {
	t := s.tuning
	asked := &w.asked
	for i := range groups {
		for _, v := range groups[i].variants {
			if v.weight >= 0.3 {
				asked.put(v.hash, i)
			}
		}
	}
	w.others = w.others[:0]
	near := s.neighbourhood(&q)
	s.vote(candidates, total)
	for i := range candidates {
		c := &candidates[i]
		r := s.pages[c.page]
		extra := float32(t.TitleCover) * total * s.coverage(groups, asked, total, r.TitleWords, s.titleIDF.of(c.page))
		// The best section, looked at closely.
		bestSection, bestScore, bestExtra := c.section, float32(-1), float32(0)
		floor := w.sectionScore.weight[c.section] * float32(t.CloserShare)
		from := len(w.others)
		for sec := s.firstOf[c.page]; sec < s.firstOf[c.page+1]; sec++ {
			score := w.sectionScore.weight[sec]
			if score == 0 || score < floor && (q.Sections < 2 || score < floor*floorOfOthers) {
				continue
			}
			rec := s.sections[sec]
			cover := s.coverage(groups, asked, total, rec.Head, s.headIDF.of(sec))
			more := float32(t.HeadingCover) * total * cover
			if cover > 0.99 { // the query is the heading
				heading := r.Sections[sec-s.firstOf[c.page]].Heading
				named := names(q.Text, heading)
				if len(groups) > 1 || named && strings.Contains(heading, " ") {
					more += float32(t.HeadingExact) * total
				}
				if named {
					more += float32(t.HeadingNamed) * total
				}
			}
			more += float32(t.Proximity) * s.proximity(groups, asked, rec)
			sum := score*(1-float32(t.PageShare)) + more
			if q.Sections > 1 {
				w.others = append(w.others, other{sec, -sum})
			}
			if sum > bestScore && score >= floor {
				bestSection, bestScore, bestExtra = sec, sum, more-(1-float32(t.PageShare))*(w.sectionScore.weight[c.section]-score)
			}
		}
		c.section = bestSection
		c.others = w.others[from:]
		for k := range c.others {
			c.others[k].less = max(0, c.others[k].less+bestScore)
		}
		extra += bestExtra
		if share, ok := started[c.page]; ok {
			extra += total * float32(t.TitleStartBase+t.TitleStart*float64(share))
		}
		extra += float32(t.Neighbourhood) * total * near(r)
		c.score += extra
		if r.Boost > 0 {
			// A wish of the author, not more: a page boosted ten times must not stand before every page that fits better.
			power := t.Boost
			if r.Boost < 1 {
				power = t.Demotion
			}
			c.score *= float32(math.Pow(float64(r.Boost), power))
		}
	}
}

// vote raises the candidates that others link to: what several pages on the subject refer to is the page that explains it.
// Votes count as much as their page fits.
func (s *snapshot) vote(candidates []candidate, total float32) {
	if s.tuning.Vote == 0 {
		return
	}
	var top float32
	for _, c := range candidates {
		top = max(top, c.base)
	}
	if top == 0 {
		return
	}
	for i := range candidates {
		c := &candidates[i]
		var votes float32
		for j := range candidates {
			if _, ok := slices.BinarySearch(s.linksTo[candidates[j].page], c.page); ok {
				votes += candidates[j].base / top
			}
		}
		c.score += float32(s.tuning.Vote) * total * votes / (votes + float32(s.tuning.VoteK))
	}
}

// names reports whether a query ends with a heading, word for word: "how do I install the app" names "Install the app" and
// not "Installing apps".
func names(query, heading string) bool {
	query, heading = plainTitle(query), plainTitle(page.WithoutCount(heading))
	rest, ok := strings.CutSuffix(query, heading)
	return ok && heading != "" && (rest == "" || strings.HasSuffix(rest, " "))
}

// coverage tells how well a title fits the query: the share of the title that was asked for, times the share of the query
// that is in the title, both by rarity.
func (s *snapshot) coverage(groups []group, asked *asked, total float32, title page.WordList, rarity []float32) float32 {
	any := false
	for k := range title.Len() {
		if asked.has(title.At(k)) {
			any = true
			break
		}
	}
	for k := 0; k < len(title.Names) && !any; k++ {
		any = asked.has(title.Names[k].Hash)
	}
	if !any {
		return 0
	}
	var seen uint64 // groups found; beyond 64 the share is underestimated
	var covered, rest uint64
	mark := func(g int) {
		if g < 64 {
			seen |= 1 << g
		}
	}
	for _, name := range title.Names {
		if g, ok := asked.get(name.Hash); ok {
			mark(g)
			for k := name.At; k < name.At+name.N && k < 64; k++ {
				covered |= 1 << k
			}
		}
	}
	for _, name := range title.Names {
		for k := name.At; k < name.At+name.N && k < 64; k++ {
			if asked.has(title.At(int(k))) {
				for j := name.At; j < name.At+name.N && j < 64; j++ {
					rest |= 1 << j
				}
			}
		}
	}
	var inQuery, all float32
	for k, idf := range rarity {
		g, ok := asked.get(title.At(k))
		if ok {
			mark(g)
		}
		switch {
		case ok || k < 64 && covered&(1<<k) != 0:
			inQuery += idf
			all += idf
		case k < 64 && rest&(1<<k) != 0:
			all += idf * float32(s.tuning.NameRest)
		default:
			all += idf * float32(s.tuning.UnknownCount)
		}
	}
	if inQuery == 0 {
		return 0
	}
	var found float32
	for g := range groups {
		if g < 64 && seen&(1<<g) != 0 {
			found += groups[g].idf
		}
	}
	return inQuery / all * found / total
}

// floorOfOthers is how much less than what can be a page's best section its others may score.
const floorOfOthers = 0.5

const nearBy = 8 // words

// proximity rewards words of the query that stand close to each other (BM25TP).
func (s *snapshot) proximity(groups []group, asked *asked, rec *page.Section) float32 {
	if len(groups) < 2 {
		return 0
	}
	var acc [64]float32
	lastAt, lastGroup, any := -1, 0, false
	words := rec.Body.Words
	for from := 0; from < len(words); from += 16 {
		to := len(words)
		if from+16 <= len(words) { // four words at a time: mostly none of them was asked for
			four := (*[16]byte)(words[from:])
			if asked.first[askedPlace(binary.LittleEndian.Uint32(four[0:]))]|asked.first[askedPlace(binary.LittleEndian.Uint32(four[4:]))]|
				asked.first[askedPlace(binary.LittleEndian.Uint32(four[8:]))]|asked.first[askedPlace(binary.LittleEndian.Uint32(four[12:]))] == 0 {
				continue
			}
			to = from + 16
		}
		for at := from; at+4 <= to; at += 4 {
			g, ok := asked.get(binary.LittleEndian.Uint32(words[at:]))
			if !ok || g >= 64 {
				continue
			}
			i := at / 4
			if lastAt >= 0 && lastGroup != g {
				if d := i - lastAt; d <= nearBy {
					x := 1 / float32(d*d)
					acc[g] += groups[lastGroup].idf * x
					acc[lastGroup] += groups[g].idf * x
					any = true
				}
			}
			lastAt, lastGroup = i, g
		}
	}
	if !any {
		return 0
	}
	k := float32(s.tuning.ProximityK) * float32(1-s.tuning.B[page.FieldBody]+s.tuning.B[page.FieldBody]*float64(rec.Len[page.FieldBody])/s.meanBody)
	var sum float32
	for g := range groups {
		if g == 64 {
			break
		}
		if a := acc[g]; a > 0 {
			sum += min(1, groups[g].idf) * a * (k + 1) / (k + a)
		}
	}
	return sum
}

// here is the page that the reader is on, where it is known.
func (s *snapshot) here(q *Query) (uint32, bool) {
	if q.CurrentPath == "" {
		return 0, false
	}
	address := s.addressPath(q.CurrentPath)
	if page, ok := s.find("/" + address); ok {
		return page, true
	}
	// What a browser calls the path begins with that of the site's own address.
	if site, err := url.Parse(s.labels().SiteURL); err == nil {
		if rest, ok := strings.CutPrefix(address, strings.Trim(site.Path, "/")+"/"); ok && rest != "" {
			return s.find("/" + rest)
		}
	}
	return 0, false
}

// neighbourhood tells how near pages are to the one that the reader is on: 1 for the same folder, less for those further up.
func (s *snapshot) neighbourhood(q *Query) func(*page.Record) float32 {
	nowhere := func(*page.Record) float32 { return 0 }
	at, ok := s.here(q)
	if !ok {
		return nowhere
	}
	here := strings.Split(s.pages[at].Path, "/")
	here = here[:len(here)-1]
	if len(here) == 0 {
		return nowhere
	}
	return func(r *page.Record) float32 {
		p := r.Path
		same := 0
		for _, dir := range here {
			rest, ok := strings.CutPrefix(p, dir+"/")
			if !ok {
				break
			}
			p = rest
			same++
		}
		return float32(same) / float32(len(here))
	}
}

// filter returns what a page has to be.
func (s *snapshot) filter(q *Query, sc *scope) func(page uint32) bool {
	f := &q.Filter
	one := len(s.locales) == 1 && len(s.hasVersion) == 0 && sc.only == "" && !sc.nothing // a site of one version and language
	return func(page uint32) bool {
		r := s.pages[page]
		if r.Hidden || s.covered[page] || !r.Allowed(f.Groups) || !one && !s.inScope(sc, page) {
			return false
		}
		return f.Tag == "" || slices.ContainsFunc(r.Tags, func(t string) bool { return strings.EqualFold(t, f.Tag) })
	}
}
