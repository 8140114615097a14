package search

import (
	"context"

	"docent/api"
)

// A Trial answers from a project's index as it stands, ranked with weights of its own. Nobody else sees them.
type Trial struct{ held, ranked *snapshot }

// Trial ranks a project's index with other weights until it is closed. The index stays open meanwhile.
func (l *Library) Trial(project api.ProjectID, t Tuning) (*Trial, error) {
	s, err := l.acquire(project)
	if err != nil {
		return nil, err
	}
	return &Trial{held: s, ranked: retuned(s, t)}, nil
}

// Search is the library's Search with the trial's weights.
func (t *Trial) Search(ctx context.Context, q Query) ([]Hit, error) { return t.ranked.search(ctx, q) }

// Close lets the index go.
func (t *Trial) Close() { t.held.release() }

// retuned is the same index ranked with other weights. It shares everything with the one that it is made from, and must
// not be used longer.
func retuned(s *snapshot, t Tuning) *snapshot {
	n := &snapshot{Generation: s.Generation, tables: s.tables, library: s.library, index: s.index, reader: s.reader,
		tuning: &t}
	n.remember(s.library.options)
	n.measure()
	n.countRarities()
	return n
}
