package search

import (
	"fmt"
	"maps"
	"slices"

	"docent/api"
	"docent/search/page"
)

// retuned is the same index ranked with other weights. It shares everything with the one that it is made from, and must
// not be used longer.
func retuned(s *snapshot, t Tuning) *snapshot {
	n := &snapshot{Generation: s.Generation, tables: s.tables, library: s.library, index: s.index, reader: s.reader,
		tuning: &t}
	n.relabelled.Store(s.relabelled.Load())
	n.embeddingIndex.Store(s.embeddingIndex.Load())
	n.remember(s.library.options)
	if t.measuresLike(s.tuning) {
		n.norms = s.norms
		return n
	}
	n.measure()
	n.countRarities(nil)
	return n
}

// measuresLike reports whether the norms of all documents are the same under two tunings.
func (t *Tuning) measuresLike(o *Tuning) bool {
	return t.Section == o.Section && t.Inherit == o.Inherit && t.B == o.B && t.BShort == o.BShort && t.Page == o.Page &&
		t.PageHeading == o.PageHeading && t.PageBody == o.PageBody && t.PageCode == o.PageCode && t.IDFPower == o.IDFPower
}

// A TrialWeight is one of the few weights that are worth trying on one's own documentation.
type TrialWeight struct {
	Name    string // as Query.Weights has it
	Default float64
	Most    float64 // the least is 0
}

type trialWeight struct {
	name string
	most float64
	of   func(*Tuning) []*float64 // the first as it is given, others in proportion
}

// trialWeights are named as in a tuning's file if they stand there alone.
var trialWeights = []trialWeight{
	{"title", 20, func(t *Tuning) []*float64 { return []*float64{&t.Page[page.FieldTitle], &t.Inherit[page.FieldTitle]} }},
	{"heading", 20, func(t *Tuning) []*float64 { return []*float64{&t.Section[page.FieldHeading], &t.PageHeading} }},
	{"body", 20, func(t *Tuning) []*float64 { return []*float64{&t.Section[page.FieldBody], &t.PageBody} }},
	{"code", 20, func(t *Tuning) []*float64 { return []*float64{&t.Section[page.FieldCode], &t.PageCode} }},
	{"page_share", 1, func(t *Tuning) []*float64 { return []*float64{&t.PageShare} }},
	{"title_cover", 5, func(t *Tuning) []*float64 { return []*float64{&t.TitleCover} }},
	{"heading_cover", 5, func(t *Tuning) []*float64 { return []*float64{&t.HeadingCover} }},
	{"heading_exact", 5, func(t *Tuning) []*float64 { return []*float64{&t.HeadingExact, &t.HeadingNamed} }},
	{"proximity", 5, func(t *Tuning) []*float64 { return []*float64{&t.Proximity} }},
	{"vote", 5, func(t *Tuning) []*float64 { return []*float64{&t.Vote} }},
	{"neighbourhood", 5, func(t *Tuning) []*float64 { return []*float64{&t.Neighbourhood} }},
	{"boost", 1, func(t *Tuning) []*float64 { return []*float64{&t.Boost} }},
	{"demotion", 1, func(t *Tuning) []*float64 { return []*float64{&t.Demotion} }},
}

// TrialWeights lists the weights that a query may name, with those that the library uses.
func (l *Library) TrialWeights() []TrialWeight {
	out := make([]TrialWeight, len(trialWeights))
	for i, w := range trialWeights {
		out[i] = TrialWeight{w.name, *w.of(&l.tuning)[0], w.most}
	}
	return out
}

// With is the tuning with other weights. A name that does not exist, or a weight out of its bounds, is an
// api.InvalidError.
func (t Tuning) With(weights map[string]float64) (Tuning, error) {
	var problems []api.Problem
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		value := weights[name]
		at := slices.IndexFunc(trialWeights, func(w trialWeight) bool { return w.name == name })
		switch {
		case at < 0:
			problems = append(problems, api.Problem{Field: "weights." + name, Message: "is no weight that can be tried"})
			continue
		case !(value >= 0 && value <= trialWeights[at].most): // NaN is neither
			problems = append(problems, api.Problem{Field: "weights." + name,
				Message: fmt.Sprintf("must be from 0 to %g", trialWeights[at].most)})
			continue
		}
		first := *trialWeights[at].of(&t)[0]
		for i, w := range trialWeights[at].of(&t) {
			if i > 0 && first > 0 {
				*w *= value / first
			}
		}
		*trialWeights[at].of(&t)[0] = value
	}
	if len(problems) > 0 {
		return t, &api.InvalidError{Problems: problems}
	}
	return t, nil
}

// weighted is the index ranked with the weights that a query names, to be used no longer than this one.
func (s *snapshot) weighted(weights map[string]float64) (*snapshot, error) {
	if len(weights) == 0 {
		return s, nil
	}
	t, err := s.tuning.With(weights)
	if err != nil || t == *s.tuning {
		return s, err
	}
	return retuned(s, t), nil
}
