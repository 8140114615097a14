package search

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	index "github.com/blevesearch/bleve_index_api"
)

// Postings of one term, with all that can be computed before a query is known: how much the term weighs in each section
// and in each page, over all fields.
type postings struct {
	sections []weighed
	pages    []weighed
}

type weighed struct {
	doc    uint32
	weight float32
}

// measure computes the norms of all documents: the weight of a field over 1-b+b·length/average.
func (s *snapshot) measure() {
	t := s.tuning
	var sum [sectionFields]float64
	var with [sectionFields]int
	for _, sec := range s.sections {
		for f, n := range sec.Len {
			if n > 0 {
				sum[f] += float64(n)
				with[f]++
			}
		}
	}
	mean := func(sum float64, n int) float64 {
		if n == 0 {
			return 1
		}
		return sum / float64(n)
	}
	norm := func(w, b, length, mean float64) float32 { return float32(w / (1 - b + b*length/mean)) }
	s.meanBody = mean(sum[fieldBody], with[fieldBody])
	for f := range sectionFields {
		m := mean(sum[f], with[f])
		s.sectionNorm[f] = make([]float32, len(s.sections))
		for i, sec := range s.sections {
			s.sectionNorm[f][i] = norm(t.Section[f], t.B[f], float64(sec.Len[f]), m)
		}
	}
	var pageSum [pageFields]float64
	var pageWith [pageFields]int
	lengths := make([][3]float64, len(s.pages)) // headings, body, code
	var whole [3]float64
	var wholeWith [3]int
	for p, r := range s.pages {
		for f, n := range r.PageLen {
			if n > 0 {
				pageSum[f] += float64(n)
				pageWith[f]++
			}
		}
		for i := range r.Sections {
			l := &r.Sections[i].Len
			lengths[p][0] += float64(l[fieldHeading])
			lengths[p][1] += float64(l[fieldBody])
			lengths[p][2] += float64(l[fieldCode])
		}
		for k, n := range lengths[p] {
			if n > 0 {
				whole[k] += n
				wholeWith[k]++
			}
		}
	}
	s.headingNorm = make([]float32, len(s.pages))
	s.pageBody = make([]float32, len(s.pages))
	s.pageCode = make([]float32, len(s.pages))
	for f := range pageFields {
		s.pageNorm[f] = make([]float32, len(s.pages))
		s.inheritNorm[f] = make([]float32, len(s.pages))
	}
	for p, r := range s.pages {
		for f := range pageFields {
			s.pageNorm[f][p] = norm(t.Page[f], t.BShort, float64(r.PageLen[f]), mean(pageSum[f], pageWith[f]))
			s.inheritNorm[f][p] = norm(t.Inherit[f], t.BShort, float64(r.PageLen[f]), mean(pageSum[f], pageWith[f]))
		}
		s.headingNorm[p] = norm(t.PageHeading, t.B[fieldHeading], lengths[p][0], mean(whole[0], wholeWith[0]))
		s.pageBody[p] = norm(t.PageBody, t.B[fieldBody], lengths[p][1], mean(whole[1], wholeWith[1]))
		s.pageCode[p] = norm(t.PageCode, t.B[fieldCode], lengths[p][2], mean(whole[2], wholeWith[2]))
	}
}

// decode reads the postings of a term from Bleve, or from what was decoded before.
func (s *snapshot) decode(ctx context.Context, term string) (*postings, error) {
	if p := s.cache.get(term); p != nil {
		return p, nil
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.reset(len(s.sections), len(s.pages))
	raw := []byte(term)
	for f, name := range sectionFieldNames {
		err := s.walk(ctx, raw, name, func(section uint32, freq float32) {
			d.section(section, freq*s.sectionNorm[f][section])
			page := s.pageOf[section]
			switch f {
			case fieldHeading:
				d.page(page, freq*s.headingNorm[page])
			case fieldBody:
				d.page(page, freq*s.pageBody[page])
			case fieldCode:
				d.page(page, freq*s.pageCode[page])
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for f, name := range pageFieldNames {
		if f == fieldSurface {
			continue
		}
		err := s.walk(ctx, raw, name, func(section uint32, freq float32) {
			page := s.pageOf[section]
			d.page(page, freq*s.pageNorm[f][page])
			if w := s.inheritNorm[f][page]; w > 0 {
				for sec := s.firstOf[page]; sec < s.firstOf[page+1]; sec++ {
					d.section(sec, freq*w)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	p := &postings{sections: d.takeSections(), pages: d.takePages()}
	s.cache.put(term, p, s.cacheBytes)
	return p, nil
}

// A postingCache keeps what was decoded in two generations. When the younger one has taken half of the room it becomes the
// older one, and what was not asked for meanwhile is forgotten.
type postingCache struct {
	mu           sync.RWMutex
	young, old   map[string]*postings
	bytes, spare int64         // of the younger and the older one
	held         *atomic.Int64 // what all caches of a library hold; nil where nobody counts
}

func (c *postingCache) size() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.bytes + c.spare
}

func (c *postingCache) get(term string) *postings {
	c.mu.RLock()
	p := c.young[term]
	q := c.old[term]
	c.mu.RUnlock()
	if p == nil && q != nil {
		c.mu.Lock()
		if c.old[term] == q { // still there: it moves
			delete(c.old, term)
			c.young[term] = q
			c.bytes += q.size(term)
			c.spare -= q.size(term)
		}
		c.mu.Unlock()
		return q
	}
	return p
}

func (c *postingCache) put(term string, p *postings, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || c.bytes > most/2 {
		if c.held != nil {
			c.held.Add(-c.spare)
		}
		c.old, c.spare = c.young, c.bytes
		c.young, c.bytes = make(map[string]*postings), 0
	}
	if c.young[term] == nil {
		c.young[term] = p
		c.bytes += p.size(term)
		if c.held != nil {
			c.held.Add(p.size(term))
		}
	}
}

func (p *postings) size(term string) int64 {
	return int64(8*(len(p.sections)+len(p.pages)) + len(term) + 128)
}

// walk visits the live documents that hold a term in a field.
func (s *snapshot) walk(ctx context.Context, term []byte, field string, visit func(section uint32, freq float32)) error {
	reader, err := s.reader.TermFieldReader(ctx, term, field, true, false, false)
	if err != nil {
		return fmt.Errorf("read postings of %s: %w", field, err)
	}
	defer reader.Close()
	if reader.Count() == 0 {
		return nil
	}
	var next index.TermFieldDoc
	for {
		doc, err := reader.Next(next.Reset())
		if err != nil {
			return fmt.Errorf("read postings of %s: %w", field, err)
		}
		if doc == nil {
			return nil
		}
		if n := doc.ID.Value(); n < uint64(len(s.sectionOf)) && s.sectionOf[n] >= 0 {
			visit(uint32(s.sectionOf[n]), float32(doc.Freq))
		}
	}
}

// An accumulator sums weights by document number. It is cleared by what was touched, not by its length.
type accumulator struct {
	weight  []float32
	touched []uint32
}

func (a *accumulator) reset(n int) {
	for _, d := range a.touched {
		a.weight[d] = 0
	}
	a.touched = a.touched[:0]
	if cap(a.weight) < n {
		a.weight = make([]float32, n)
	}
	a.weight = a.weight[:cap(a.weight)]
}

func (a *accumulator) add(doc uint32, w float32) {
	if w == 0 {
		return
	}
	if a.weight[doc] == 0 {
		a.touched = append(a.touched, doc)
	}
	a.weight[doc] += w
}

func (a *accumulator) take() []weighed {
	slices.Sort(a.touched)
	out := make([]weighed, len(a.touched))
	for i, d := range a.touched {
		out[i] = weighed{d, a.weight[d]}
	}
	return out
}

type decoder struct{ sections, pages accumulator }

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) reset(sections, pages int) {
	d.sections.reset(sections)
	d.pages.reset(pages)
}
func (d *decoder) section(n uint32, w float32) { d.sections.add(n, w) }
func (d *decoder) page(n uint32, w float32)    { d.pages.add(n, w) }
func (d *decoder) takeSections() []weighed     { return d.sections.take() }
func (d *decoder) takePages() []weighed        { return d.pages.take() }

// rarities tells how rare the words of titles and headings are: in how many sections they occur. Counted from the word
// lists, so it is exact whatever the history of the index.
type rarities struct {
	idf     map[uint32]float32
	unknown float32
}

func countRarities(s *snapshot) rarities {
	counts := make(map[uint32]*[2]uint32)
	note := func(w wordList) {
		for i := range w.len() {
			if h := w.at(i); counts[h] == nil {
				counts[h] = new([2]uint32)
			}
		}
	}
	for _, r := range s.pages {
		note(r.TitleWords)
	}
	for _, sec := range s.sections {
		note(sec.Head)
	}
	table := newHashSet(len(counts))
	entries := make([][2]uint32, 0, len(counts)) // sections, last section seen
	for h := range counts {
		table.put(h, uint32(len(entries)))
		entries = append(entries, [2]uint32{0, math.MaxUint32})
	}
	see := func(w wordList, section uint32) {
		for i := range w.len() {
			if at, ok := table.get(w.at(i)); ok && entries[at][1] != section {
				entries[at][0]++
				entries[at][1] = section
			}
		}
	}
	for page, r := range s.pages {
		for sec := s.firstOf[page]; sec < s.firstOf[page+1]; sec++ {
			if sec == s.firstOf[page] {
				see(r.TitleWords, sec)
			}
			see(s.sections[sec].Body, sec)
		}
	}
	out := rarities{idf: make(map[uint32]float32, len(counts)), unknown: s.idf(0, len(s.sections))}
	for h := range counts {
		at, _ := table.get(h)
		out.idf[h] = s.idf(int(entries[at][0]), len(s.sections))
	}
	return out
}

func (s *snapshot) idf(df, n int) float32 {
	return float32(math.Pow(math.Log(1+(float64(n)-float64(df)+0.5)/(float64(df)+0.5)), s.tuning.IDFPower))
}

func (r rarities) of(hash uint32) float32 {
	if v, ok := r.idf[hash]; ok {
		return v
	}
	return r.unknown
}

// A hashSet maps hashes to small numbers, in open addressing: the closer look asks it for every word that it passes.
type hashSet struct {
	keys   []uint32
	values []uint32 // number + 1; 0 is empty
	mask   uint32
}

func newHashSet(n int) *hashSet {
	size := 16
	for size < 2*n+2 {
		size *= 2
	}
	return &hashSet{keys: make([]uint32, size), values: make([]uint32, size), mask: uint32(size - 1)}
}

func (h *hashSet) put(key, value uint32) {
	i := (key * 2654435769) >> 7 & h.mask
	for h.values[i] != 0 {
		if h.keys[i] == key {
			return
		}
		i = (i + 1) & h.mask
	}
	h.keys[i], h.values[i] = key, value+1
}

func (h *hashSet) get(key uint32) (uint32, bool) {
	i := (key * 2654435769) >> 7 & h.mask
	for h.values[i] != 0 {
		if h.keys[i] == key {
			return h.values[i] - 1, true
		}
		i = (i + 1) & h.mask
	}
	return 0, false
}
