package search

import (
	"cmp"
	"math"
	"slices"

	"docent/search/meaning"
)

// fusedSections is how many sections of a page are taken into a fusion: the one that fits best by its words need not be
// the one that means most.
const fusedSections = 4

// A blend says how rankings by words and by meaning make one. docs/decisions/0028-meaning.md says where it comes from.
type blend struct {
	Share float64 // of meaning in a page's score; the rest is that of words
	From  float64 // how near a page lies for meaning to count at all, as a share of how near the nearest does
	Least float64 // by how many deviations the nearest must lie nearer than any, for meaning to count in full
}

var defaultBlend = blend{Share: 0.2, From: 0.7, Least: 3}

// fuse makes one ranking of what was found by words, best first, and of what lies near. A page means as much as its
// section that lies nearest, which need not be the one that has the words.
func (s *snapshot) fuse(q Query, words []scored, near []meaning.Near, p *meaning.Probe, f *meaning.Field) []scored {
	b := s.library.blend
	mean, spread := f.Background(p)
	if spread == 0 || len(near) == 0 {
		return s.within(words, q)
	}
	first := max(float64(near[0].Similarity)-mean, b.Least*spread)
	meant := func(near float32) float64 { return min(1, max(0, (float64(near)-mean)/first-b.From)/(1-b.From)) }
	top := 0.0
	if len(words) > 0 {
		top = words[0].score
	}
	share := func(score float64) float64 { return score / max(top, math.SmallestNonzeroFloat32) } // in the best one
	pages := make(map[uint32]float64, len(near))                                                  // what they mean
	for _, n := range near {
		pages[s.pageOf[n.Section]] = max(pages[s.pageOf[n.Section]], meant(n.Similarity))
	}
	least := map[uint32]float64{} // score by words of a page's sections that were found by them
	for _, w := range words {
		page := s.pageOf[w.section]
		if l, ok := least[page]; !ok || w.score < l {
			least[page] = w.score
		}
		if similarity, ok := f.Similarity(p, w.section); ok {
			pages[page] = max(pages[page], meant(similarity))
		}
		if names(q.Text, s.sections[w.section].Heading) || names(q.Text, s.pages[page].Title) {
			pages[page] = 1 // nothing can mean it more than what it names
		}
	}
	all := make(map[uint32]float64, len(words)+len(near)) // by section
	for _, w := range words {
		all[w.section] = (1-b.Share)*share(w.score) + b.Share*pages[s.pageOf[w.section]]
	}
	for _, n := range near {
		if _, ok := all[n.Section]; ok {
			continue
		}
		// The page's own words count for each of its sections.
		all[n.Section] = (1-b.Share)*share(least[s.pageOf[n.Section]])*restOfPage + b.Share*meant(n.Similarity)
	}
	return s.within(s.inOrder(all, top), q)
}

// restOfPage is what a page's least fitting section that was found by words lends to one that was not.
const restOfPage = 0.5

// inOrder lists sections with their scores, best first. The best has the score that the best had by its words, so that
// scores stay comparable between questions.
func (s *snapshot) inOrder(all map[uint32]float64, top float64) []scored {
	out := make([]scored, 0, len(all))
	var most float64
	for section, score := range all {
		out = append(out, scored{section: section, score: score})
		most = max(most, score)
	}
	slices.SortFunc(out, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.section, b.section))
	})
	for i := range out {
		if most > 0 {
			out[i].score *= max(top, leastTop) / most
		}
	}
	return out
}

// leastTop is the score of the best section if nothing was found by words.
const leastTop = 0.1

// within keeps of sections in their order what a query asks for: pages up to its limit, sections of a page up to its
// number, none of which shows what another of its page does, and none below the threshold.
func (s *snapshot) within(sections []scored, q Query) []scored {
	var out []scored
	of := make(map[uint32]int)
	for _, f := range sections {
		page := s.pageOf[f.section]
		if f.score < q.Threshold {
			break
		}
		switch n := of[page]; {
		case n == 0 && len(of) == q.pages(), n >= max(1, q.Sections):
			continue
		case n > 0 && slices.ContainsFunc(out, func(o scored) bool { return s.shows(o.section, f.section) || s.shows(f.section, o.section) }):
			continue
		}
		of[page]++
		out = append(out, f)
	}
	return out
}

// shows reports whether what one section shows holds another.
func (s *snapshot) shows(section, other uint32) bool {
	_, after := s.stretch(section)
	return other >= section && other < after
}
