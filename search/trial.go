package search

import "docent/search/tuning"

// Tuning is the weights of the ranking, and DefaultTuning a library's default.
type Tuning = tuning.Tuning

var DefaultTuning = tuning.Default

// A TrialWeight is one of the few weights that are worth trying on one's own documentation.
type TrialWeight = tuning.Trial

// retuned is the same index ranked with other weights. It shares everything with the one that it is made from, and must
// not be used longer.
func retuned(s *snapshot, t Tuning) *snapshot {
	n := &snapshot{Generation: s.Generation, tables: s.tables, library: s.library, index: s.index, reader: s.reader,
		tuning: &t}
	n.relabeled.Store(s.relabeled.Load())
	n.embeddingIndex.Store(s.embeddingIndex.Load())
	n.written = s.written
	n.remember(s.library.options)
	if t.MeasuresLike(s.tuning) {
		n.norms = s.norms
		return n
	}
	n.measure()
	n.countRarities(nil)
	return n
}

// TrialWeights lists the weights that a query may name, with those that the library uses.
func (l *Library) TrialWeights() []TrialWeight { return l.tuning.Trials() }

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
