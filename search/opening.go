package search

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"docent/search/analysis"
	"docent/search/page"
)

// What everybody asks first ("How do I get started?", "What is it?") is found by where pages stand and what they are
// called, since their texts hardly have its words.

const (
	leastOpening  = 0.35 // below it a page is none that a question like that is about
	shareOpening  = 0.6  // of the best one's fit
	mostOpenings  = 3    // pages
	perLevel      = 0.08 // less for each folder above a page
	ofHeading     = 0.85 // a section counts less than a page of that title
	atFront       = 0.45 // the page at the root
	inOrderOfPage = 0.35 // the first page of the navigation, half of it the second
)

// An opener is a section that an opening is about.
type opener struct {
	page, section uint32
	fit           float64
	version       []int
}

// openers are the sections that a question's opening is about, the best first.
func (s *snapshot) openers(ctx context.Context, q *Query) ([]scored, error) {
	sc, err := s.scopeOf(ctx, q)
	if err != nil || sc.nothing {
		return nil, err
	}
	public := s.filter(q, &sc)
	kind := q.Opening
	versions := kind == analysis.Latest || kind == analysis.Changelog
	var found []opener
	for p, r := range s.pages {
		if r.File != "" || len(r.Sections) == 0 || !public(uint32(p)) {
			continue
		}
		if versions {
			for _, release := range r.Releases() {
				found = append(found, opener{uint32(p), s.firstOf[p] + uint32(release.Section), 1, release.Version})
			}
		} else if o := s.opener(kind, uint32(p)); o.fit >= leastOpening {
			found = append(found, o)
		}
	}
	if versions && len(found) == 0 {
		for p := range s.pages {
			if o := s.opener(analysis.Changelog, uint32(p)); o.fit >= leastOpening && public(uint32(p)) {
				found = append(found, o)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b opener) int {
		return cmp.Or(slices.Compare(b.version, a.version), cmp.Compare(b.fit, a.fit), cmp.Compare(a.page, b.page))
	})
	var out []scored
	for i, o := range found {
		if i == mostOpenings || o.fit < shareOpening*found[0].fit {
			break
		}
		out = append(out, scored{section: o.section, score: 1 - 0.02*float64(i), opens: true})
	}
	return out, nil
}

// fewPages is how many pages a set has at most of which each is at the front.
const fewPages = 12

// front reports whether what a page's headings say is said of the whole project.
func (s *snapshot) front(r *page.Record) bool {
	return len(s.pages) <= fewPages || r.Order > 0 || r.Begins() || strings.EqualFold(r.FileName(), "faq")
}

// opener says how well a page, or a section of it, is what an opening is about.
func (s *snapshot) opener(kind analysis.Opening, p uint32) opener {
	r := s.pages[p]
	fit := r.Fit(kind)
	o := opener{page: p, section: s.firstOf[p], fit: fit}
	for n := s.firstOf[p]; n < s.firstOf[p+1] && (fit >= leastOpening || s.front(r)); n++ {
		if sec := s.sections[n]; sec.Heading != "" && sec.Level < 4 {
			if f := ofHeading * r.FitOf(kind, sec.Heading); f > o.fit {
				o.section, o.fit = n, f
			}
		}
	}
	if kind == analysis.Start || kind == analysis.About || kind == analysis.Install {
		front := 0.0
		if r.AtRoot() {
			front = atFront
		}
		if r.Order > 0 {
			front = max(front, inOrderOfPage/float64(r.Order)) + 0.05
		}
		switch kind {
		case analysis.Install:
			front /= 3
		case analysis.About:
			front *= 1.8
		}
		o.fit += front
	}
	if kind == analysis.Install && r.AtRoot() { // which says it, if no page is about it
		o.fit = max(o.fit, atFront)
	}
	o.fit -= perLevel * float64(strings.Count(strings.Trim(r.Shown, "/"), "/"))
	return o
}
