package search

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"slices"
	"sort"
	"strings"
	"sync"

	"docent/search/analysis"
	"docent/search/lookup"
	"docent/search/page"
)

// Scratch of one query.
type scratch struct {
	sections, pages accumulator // of one group
	sectionScore    accumulator
	pageScore       accumulator
	best            []bestSection
	candidates      []candidate
	top             []candidate
	others          []other
	asked           lookup.Groups
	tokens, keep    []analysis.Token
	groups          []group
	lead            float64 // score of the first page found, whatever the threshold
	trace           *trace  // of a search that is explained
}

// done lets go of what belongs to the query, and keeps the room.
func (w *scratch) done() {
	clear(w.tokens)
	clear(w.keep)
	clear(w.groups)
	w.asked.Clear()
	w.trace = nil
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

// An other is a further section of a page, with what its page loses if it stands for it.
type other struct {
	section uint32
	less    float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// scored is a section that a search has found, with its score.
type scored struct {
	section uint32
	score   float64
	opens   bool // see Query.Opening
}

// rank finds the sections that answer a query best, in their order.
func (s *snapshot) rank(ctx context.Context, q Query) ([]scored, error) {
	w := scratches.Get().(*scratch)
	defer w.done()
	sc, err := s.scopeOf(ctx, &q)
	if err != nil {
		return nil, err
	}
	return s.rankIn(ctx, w, q, sc)
}

// rankGroups ranks the pages of a scope by the groups of a query. No score is above a limit, if one is given.
func (s *snapshot) rankGroups(ctx context.Context, w *scratch, q Query, groups []group, sc *scope,
	limit float64) ([]scored, error) {
	w.lead, w.top = 0, w.top[:0]
	total, err := s.score(ctx, w, groups)
	if err != nil || total == 0 {
		return nil, err
	}
	filter := s.filter(&q, sc)
	s.collect(w, filter)
	started := s.startedTitles(q, filter)
	w.top = topCandidates(w.top, w.candidates, max(s.tuning.Closer, q.pages()))
	s.addStarted(w, started)
	s.lookCloser(w, groups, total, w.top, started, q)
	slices.SortFunc(w.top, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.page, b.page))
	})
	most := s.most(total)
	if len(w.top) > 0 {
		if limit > 0 {
			most = max(most, w.top[0].score/float32(limit))
		}
		w.lead = max(0, float64(w.top[0].score/most))
	}
	if w.trace != nil {
		w.trace.total, w.trace.most = total, most
	}
	return s.take(w.top, most, q), nil
}

// score sums up what the groups add to the scores of sections and of pages. total is what all of them are worth.
func (s *snapshot) score(ctx context.Context, w *scratch, groups []group) (total float32, err error) {
	w.sectionScore.reset(len(s.sections))
	w.pageScore.reset(len(s.pages))
	k, pageK := float32(s.tuning.K), float32(s.tuning.PageK)
	for i := range groups {
		g := &groups[i]
		if err := ctx.Err(); err != nil {
			return 0, err
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
			if w.trace != nil {
				w.trace.word(w, g, len(g.ready.sections))
			}
			continue
		}
		if err := s.gather(ctx, w, g, s.decode); err != nil {
			return 0, err
		}
		if !g.bridged || g.idf == 0 {
			g.idf = s.idf(len(w.sections.touched), g.stem()) * g.weight
		}
		total += g.idf
		for _, d := range w.sections.touched {
			w.sectionScore.add(d, saturated(g.idf, w.sections.weight[d], k))
		}
		for _, d := range w.pages.touched {
			w.pageScore.add(d, saturated(g.idf, w.pages.weight[d], pageK))
		}
		if w.trace != nil {
			w.trace.word(w, g, len(w.sections.touched))
		}
	}
	return total, nil
}

// collect makes a candidate of each page with a score, with its best section.
func (s *snapshot) collect(w *scratch, filter func(page uint32) bool) {
	if cap(w.best) < len(s.pages) {
		w.best = make([]bestSection, len(s.pages))
	}
	w.best = w.best[:cap(w.best)]
	for _, sec := range w.sectionScore.touched {
		page := s.pageOf[sec]
		best, score := &w.best[page], w.sectionScore.weight[sec]
		if score > best.score || score == best.score && sec < best.section {
			*best = bestSection{score, sec}
		}
		if w.pageScore.weight[page] == 0 {
			w.pageScore.touched = append(w.pageScore.touched, page)
			w.pageScore.weight[page] = math.SmallestNonzeroFloat32
		}
	}
	share := float32(s.tuning.PageShare)
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
}

// addStarted adds the pages whose titles begin with what is typed to the top candidates.
func (s *snapshot) addStarted(w *scratch, started map[uint32]float32) {
	for page := range started {
		same := func(c candidate) bool { return c.page == page }
		if slices.ContainsFunc(w.top, same) || len(s.pages[page].Sections) == 0 {
			continue
		}
		c := candidate{page: page, section: s.firstOf[page]}
		if i := slices.IndexFunc(w.candidates, same); i >= 0 {
			c = w.candidates[i]
		}
		w.top = append(w.top, c)
	}
}

// most is the most that a page can have.
func (s *snapshot) most(total float32) float32 {
	t := s.tuning
	share, k, pageK := float32(t.PageShare), float32(t.K), float32(t.PageK)
	return total*((1-share)*(k+1)+share*(pageK+1)) + total*float32(t.TitleCover+t.HeadingCover+t.HeadingExact+t.Vote) +
		total*float32(t.Proximity)
}

// take makes the result of the candidates, which are in their order: pages up to the limit and over the threshold, each
// with as many sections as are asked for.
func (s *snapshot) take(candidates []candidate, most float32, q Query) []scored {
	rate := func(score float32) float64 { return min(1, max(0, float64(score/most))) }
	limit := q.pages()
	found := make([]scored, 0, min(limit, len(candidates))*max(1, min(q.Sections, 4)))
	for n, c := range candidates {
		if n == limit || rate(c.score) < q.Threshold {
			break
		}
		found = append(found, scored{section: c.section, score: rate(c.score)})
		if q.Sections > 1 {
			found = s.further(found, c, q, rate)
		}
	}
	if q.Sections > 1 {
		slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	}
	return found
}

// further adds the next best sections of a page of which one is there already.
func (s *snapshot) further(found []scored, c candidate, q Query, rate func(float32) float64) []scored {
	slices.SortFunc(c.others, func(a, b other) int {
		return cmp.Or(cmp.Compare(a.less, b.less), cmp.Compare(a.section, b.section))
	})
	first := len(found) - 1 // from here on they are of this page
	for _, o := range c.others {
		if len(found)-first == q.Sections || rate(c.score-o.less) < q.Threshold {
			break
		}
		if slices.ContainsFunc(found[first:], func(p scored) bool {
			_, after := s.stretch(p.section)
			return o.section >= p.section && o.section < after
		}) {
			continue
		}
		found = append(found, scored{section: o.section, score: rate(c.score - o.less)})
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

// here is the page that the reader is on, if it is known.
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

// neighbourhood tells how near pages are to the one that the reader is on: 1 for the same folder, less for those
// further up.
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
	// a site of one version and language
	one := len(s.locales) == 1 && len(s.hasVersion) == 0 && sc.only == "" && !sc.nothing
	return func(page uint32) bool {
		r := s.pages[page]
		if r.Hidden || s.covered[page] || !r.Allowed(f.Groups) || !one && !s.inScope(sc, page) {
			return false
		}
		return f.Tag == "" || slices.ContainsFunc(r.Tags, func(t string) bool { return strings.EqualFold(t, f.Tag) })
	}
}
