package insights

import (
	"context"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/listing"
)

const (
	MaxSearchesDay    = maxSearchesDay
	SearchesHeld      = searchesHeld
	SearchKeep        = searchKeep
	OutcomeAnswered   = outcomeAnswered
	OutcomeUnanswered = outcomeUnanswered
	OutcomeFailed     = outcomeFailed
	OutcomeInDoubt    = outcomeInDoubt
	OpenWhere         = open
)

type (
	Cursor      = cursor
	QuestionRow = questionRow
)

var (
	NumberOf = numberOf
	PagePath = pagePath
	Phrases  = phrases
	Spaced   = spaced
)

func (p phrase) Words() []string { return p.words }
func (p phrase) Begun() bool     { return p.begun }

func (q ConversationQuery) Filtered() bool { return q.filtered() }

func (q AnalyticsQuery) Between(sel *bun.SelectQuery, column string) *bun.SelectQuery {
	return q.between(sel, column)
}

func (s *Store) WriteSearches(ctx context.Context) error { return s.writeSearches(ctx, true) }

// Held is how many searches wait in memory.
func (s *Store) Held() int {
	s.searched.mu.Lock()
	defer s.searched.mu.Unlock()
	return len(s.searched.typing) + len(s.searched.ended)
}

// ForgetCounts discards every count, so that everything is counted again.
func (s *Store) ForgetCounts() { s.reset() }

// Recount counts what has changed again at once, even if counting took long: for what a machine that stood still
// took five seconds to count, a catalog waits for a hundred (quarterShare).
func (s *Store) Recount() {
	s.days.mu.Lock()
	defer s.days.mu.Unlock()
	for _, k := range s.days.known {
		k.took = 0
	}
}

// List lists questions, each of a thread of its own.
func (s *Store) List(ctx context.Context, questions []api.QuestionRow) error {
	loaded := make([]any, len(questions))
	for i, q := range questions {
		row, err := newQuestionRow(q)
		if err != nil {
			return err
		}
		loaded[i] = loadedThread{id: row.Thread, rows: []*questionRow{row}}
	}
	return s.db.InTx(ctx, "list questions", func(ctx context.Context, tx bun.Tx) error {
		return writeQuestions(ctx, tx, loaded, nil, new(listing.Changes))
	})
}
