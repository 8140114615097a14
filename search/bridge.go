package search

import (
	"slices"
	"strings"

	"docent/search/analysis"
	"docent/search/page"
)

// A question in other words than the page's finds little, or what only looks alike. Such a question is ranked once
// more, with words of the field that stand for its own (analysis.Synonyms), each for less than the word itself. If
// the question's own words fit, nothing is added: the page that has the word as it was asked is the better one.

// bridge adds to a query's groups the words that stand for those which neither the title nor the heading of the first
// page found has. added tells whether there are any.
func (s *snapshot) bridge(w *scratch, groups []group, languages []string) (bridged []group, added bool) {
	if s.tuning.Synonym == 0 || !slices.Contains(languages, "en") {
		return groups, false
	}
	a := analysis.Get()
	defer a.Put()
	asked := func(word string) bool { // what is asked for itself stands for no other word
		hash := analysis.Hash(a.Stem(word, "en"))
		return slices.ContainsFunc(groups, func(g group) bool {
			return slices.ContainsFunc(g.variants, func(v variant) bool { return v.hash == hash && v.weight >= wordItself })
		})
	}
	add := func(g *group, others []string) {
		if !g.bridged {
			g.variants, g.ready, g.bridged = slices.Clone(g.variants), nil, true
		}
		for _, other := range others {
			if !asked(other) {
				g.addWord(a, languages, other, s.tuning.Synonym, ReadSynonym)
			}
		}
		added = true
	}
	bridged = slices.Clone(groups)
	words := make([]string, 0, len(w.tokens))
	for _, t := range w.tokens {
		if t.Covers == 0 {
			words = append(words, t.Surface)
		}
	}
	inPhrase := make(map[string]bool)
	for at := 0; at < len(words); at++ {
		others, n := analysis.SynonymsOfPhrase(words[at:])
		if n == 0 {
			continue
		}
		of := words[at : at+n]
		to := slices.IndexFunc(bridged, func(g group) bool { return slices.Contains(of, g.word) })
		if to < 0 { // all of its words are words of grammar
			bridged = append(bridged, group{word: strings.Clone(strings.Join(of, " ")), weight: 1})
			to = len(bridged) - 1
		}
		add(&bridged[to], others)
		for _, word := range of {
			inPhrase[word] = true
		}
		at += n - 1
	}
	for i := range groups {
		if g := &bridged[i]; !inPhrase[g.word] && !s.headed(w, g) {
			if others := a.Synonyms(g.word); len(others) > 0 {
				add(g, others)
			}
		}
	}
	return bridged, added
}

// headed reports whether the title or the heading of the first page found has a group's word.
func (s *snapshot) headed(w *scratch, g *group) bool {
	if len(w.top) == 0 {
		return false
	}
	first := w.top[0]
	for _, list := range []page.WordList{s.pages[first.page].TitleWords, s.sections[first.section].Head} {
		for i := range list.Len() {
			hash := list.At(i)
			if slices.ContainsFunc(g.variants, func(v variant) bool { return v.hash == hash && v.weight >= wordItself }) {
				return true
			}
		}
	}
	return false
}

// wordItself is the least weight of a variant that is as good as the word: its stem, its other form, one slip.
const wordItself = 0.5
