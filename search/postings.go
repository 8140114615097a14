package search

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	bleveindex "github.com/blevesearch/bleve_index_api"

	"docent/search/analysis"
	"docent/search/index"
	"docent/search/page"
)

// Postings of one term, with all that can be computed before a query is known: how much the term weighs in each section
// and in each page, over all fields.
type postings struct {
	sections []weighed
	pages    []weighed

	// Of a word of a question, whose weights are what it adds to scores:
	variants []variant
	idf      float32
	known    bool // some document has it
}

// A termKey names what the postings of a snapshot are kept under.
type termKey struct {
	kind     termKind
	term     string
	language string // of the stems that count as the word; empty for all of the site's
}

type termKind uint8

const (
	indexed   termKind = iota // a term of the index
	plainWord                 // a word as it is asked for, with all that counts as it
	wholeName                 // a name of several parts
)

type weighed struct {
	doc    uint32
	weight float32
}

// An average is that of the lengths that are not 0.
type average struct {
	sum float64
	n   int
}

func (a *average) add(length float64) {
	if length > 0 {
		a.sum += length
		a.n++
	}
}

// norm is the weight of a field over 1-b+b·length/average.
func (a average) norm(weight, b, length float64) float32 {
	return float32(weight / (1 - b + b*length/a.mean()))
}

func (a average) mean() float64 {
	if a.n == 0 {
		return 1
	}
	return a.sum / float64(a.n)
}

// What sections and pages of documentation have, in words: the mean of seven public sets. Few sections say as little of
// how long one usually is as of how rare a word is.
var (
	usualSection = [page.SectionFields]float64{3, 3, 84, 58}
	usualPage    = [3]float64{34, 800, 270} // headings, body, and code
)

// settle fills up what the sections of a small set say of a length.
func (s *snapshot) settle(a average, usual float64) average {
	if n := float64(len(s.sections)); n < settled && a.n > 0 {
		return average{a.mean()*n/settled + usual*(1-n/settled), 1}
	}
	return a
}

// measure computes the norms of all documents.
func (s *snapshot) measure() {
	t := s.tuning
	var of [page.SectionFields]average
	for _, sec := range s.sections {
		for f, n := range sec.Len {
			of[f].add(float64(n))
		}
	}
	for f := range of {
		of[f] = s.settle(of[f], usualSection[f])
	}
	s.meanBody = of[page.FieldBody].mean()
	for f := range page.SectionFields {
		s.sectionNorm[f] = make([]float32, len(s.sections))
		for i, sec := range s.sections {
			s.sectionNorm[f][i] = of[f].norm(t.Section[f], t.B[f], float64(sec.Len[f]))
		}
	}
	var ofPage [page.Fields]average
	var headings, body, code average // of whole pages
	lengths := make([][3]float64, len(s.pages))
	for p, r := range s.pages {
		for f, n := range r.PageLen {
			ofPage[f].add(float64(n))
		}
		l := &lengths[p]
		for i := range r.Sections {
			n := &r.Sections[i].Len
			l[0] += float64(n[page.FieldHeading])
			l[1] += float64(n[page.FieldBody])
			l[2] += float64(n[page.FieldCode])
		}
		headings.add(l[0])
		body.add(l[1])
		code.add(l[2])
	}
	headings, body, code = s.settle(headings, usualPage[0]), s.settle(body, usualPage[1]), s.settle(code, usualPage[2])
	for _, norms := range []*[]float32{&s.headingNorm, &s.pageBody, &s.pageCode} {
		*norms = make([]float32, len(s.pages))
	}
	for f := range page.Fields {
		s.pageNorm[f], s.inheritNorm[f] = make([]float32, len(s.pages)), make([]float32, len(s.pages))
	}
	for p, r := range s.pages {
		for f := range page.Fields {
			length := float64(r.PageLen[f])
			s.pageNorm[f][p] = ofPage[f].norm(t.Page[f], t.BShort, length)
			s.inheritNorm[f][p] = ofPage[f].norm(t.Inherit[f], t.BShort, length)
		}
		s.headingNorm[p] = headings.norm(t.PageHeading, t.B[page.FieldHeading], lengths[p][0])
		s.pageBody[p] = body.norm(t.PageBody, t.B[page.FieldBody], lengths[p][1])
		s.pageCode[p] = code.norm(t.PageCode, t.B[page.FieldCode], lengths[p][2])
	}
}

// decode reads the postings of a term from Bleve, or from what was decoded before.
func (s *snapshot) decode(ctx context.Context, term string) (*postings, error) {
	key := termKey{kind: indexed, term: term}
	if p, ok := s.terms.Get(key); ok {
		return p, nil
	}
	p, err := s.read(ctx, term)
	if err == nil {
		s.terms.Put(key, p)
	}
	return p, err
}

// read reads the postings of a term from Bleve.
func (s *snapshot) read(ctx context.Context, term string) (*postings, error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.sections.reset(len(s.sections))
	d.pages.reset(len(s.pages))
	raw := []byte(term)
	for f, name := range page.SectionFieldNames {
		err := s.walk(ctx, raw, name, func(section uint32, freq float32) {
			d.sections.add(section, freq*s.sectionNorm[f][section])
			at := s.pageOf[section]
			switch f {
			case page.FieldHeading:
				d.pages.add(at, freq*s.headingNorm[at])
			case page.FieldBody:
				d.pages.add(at, freq*s.pageBody[at])
			case page.FieldCode:
				d.pages.add(at, freq*s.pageCode[at])
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for f, name := range page.FieldNames {
		if f == page.FieldSurface {
			continue
		}
		err := s.walk(ctx, raw, name, func(section uint32, freq float32) {
			page := s.pageOf[section]
			d.pages.add(page, freq*s.pageNorm[f][page])
			if w := s.inheritNorm[f][page]; w > 0 {
				for sec := s.firstOf[page]; sec < s.firstOf[page+1]; sec++ {
					d.sections.add(sec, freq*w)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	s.addWritten(term, d)
	return &postings{sections: d.sections.take(), pages: d.pages.take()}, nil
}

func (p *postings) size(key termKey) int64 {
	return int64(8*(len(p.sections)+len(p.pages)) + 2*len(key.term) + 32*len(p.variants) + 192)
}

// walk visits the live documents that hold a term in a field.
func (s *snapshot) walk(ctx context.Context, term []byte, field string,
	visit func(section uint32, freq float32)) error {
	reader, err := s.reader.TermFieldReader(ctx, term, field, true, false, false)
	if err != nil {
		return fmt.Errorf("read postings of %s: %w", field, err)
	}
	defer reader.Close()
	if reader.Count() == 0 {
		return nil
	}
	var next bleveindex.TermFieldDoc
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

// A raggedArray holds the numbers of many lists one after the other.
type raggedArray struct {
	all  []float32
	from []uint32 // where a list begins; one more at the end
}

func (s *raggedArray) of(i uint32) []float32 { return s.all[s.from[i]:s.from[i+1]] }

// countRarities tells how rare the words of titles and headings are: in how many sections they occur.
func (s *snapshot) countRarities(before *snapshot) {
	if before != nil {
		s.census = before.census.After(before.pages, s.pages)
	} else {
		s.census = index.NewCensus(s.pages)
	}
	rarity := make([]float32, len(s.census.Words))
	for i, n := range s.census.In {
		rarity[i] = s.idf(int(n), s.census.Words[i])
	}
	fill := func(out *raggedArray, lists int, list func(int) page.WordList) {
		words := 0
		for n := range lists {
			words += list(n).Len()
		}
		out.all, out.from = make([]float32, 0, words), make([]uint32, 1, lists+1)
		for n := range lists {
			w := list(n)
			for i := range w.Len() {
				out.all = append(out.all, rarity[s.census.Number(w.At(i))])
			}
			out.from = append(out.from, uint32(len(out.all)))
		}
	}
	fill(&s.titleIDF, len(s.pages), func(n int) page.WordList { return s.pages[n].TitleWords })
	fill(&s.headIDF, len(s.sections), func(n int) page.WordList { return s.sections[n].Head })
}

// settled is how many sections a set has whose own frequencies tell how rare a word is. A smaller one is filled up with
// what sections of technical English have: in a set of four pages each word of its subject would be common.
const settled = 600

// idf is how rare a word is that stands in so many sections, by the hash of its stem.
func (s *snapshot) idf(in int, hash uint32) float32 {
	df, n := float64(in), float64(len(s.sections))
	if n < settled {
		df, n = df+(settled-n)*analysis.Common(hash), settled
	}
	return float32(math.Pow(math.Log(1+(n-df+0.5)/(df+0.5)), s.tuning.IDFPower))
}
