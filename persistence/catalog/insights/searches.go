package insights

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"

	"docent/api"
	"docent/internal/budget"
	"docent/persistence/catalog/database"
)

var descSearchesDropped = prometheus.NewDesc("docent_searches_dropped_total",
	"Searches that analytics did not count: over what one client may add in an hour, over what a project keeps of a day, or too many at once.",
	nil, nil)

const (
	// searchPause ends a search: more typing within it belongs to the same search.
	searchPause = 3 * time.Second
	// searchWait is how often what has ended is written.
	searchWait = 5 * time.Second
	// searchesHeld is how many searches wait in memory at most. What comes beyond them is not counted.
	searchesHeld = 4096
	// maxSearchesDay is how many searches of a project are kept of one day (UTC): a public key may search as often as it
	// likes, and each row is kept for more than a year.
	maxSearchesDay = 10_000
	// searchShare is how many percent of what is left of them one client may use in an hour.
	searchShare = 5
	// searchKeep is how long a search is remembered.
	searchKeep = 400 * 24 * time.Hour
	// resultsMost is more than a search can have.
	resultsMost = 64
)

type searchRow struct {
	bun.BaseModel `bun:"table:searches,alias:search"`

	ID      string        `bun:"id,pk"`
	Project api.ProjectID `bun:"project_id"`
	Query   string        `bun:"query"`
	Results int           `bun:"results"`
	At      int64         `bun:"at"`
}

// A searchLog holds searches until they are written. It is a count for people, not a record: it costs a search no wait,
// and what it holds is lost with the process.
type searchLog struct {
	mu      sync.Mutex
	typing  map[searcher]*searchRow // what each client searched for last
	ended   []searchRow
	dropped int
	swept   time.Time
	kept    *budget.Table // rows of clients and of projects; nil before the first
	refused atomic.Int64  // searches that were not counted
}

type searcher struct {
	project api.ProjectID
	client  string
}

// RecordSearch counts a search, some time later. Client tells searchers apart and is not stored: a search box asks at
// every key that is pressed, and of those searches only what the reader came to is counted.
func (s *Store) RecordSearch(project api.ProjectID, client, query string, results int) {
	query = database.Fold(query)
	if query == "" {
		return
	}
	now := s.db.Now()
	row := searchRow{Project: project, Query: query, Results: min(results, resultsMost-1), At: now.UnixMilli()}
	log := &s.searched
	log.mu.Lock()
	defer log.mu.Unlock()
	who := searcher{project, client}
	if last := log.typing[who]; last != nil {
		soon := row.At-last.At <= searchPause.Milliseconds()
		switch {
		case soon && strings.HasPrefix(query, last.Query): // goes on typing, or asks for the same again
			row.ID = last.ID
			*last = row
			return
		case soon && strings.HasPrefix(last.Query, query): // takes letters back
			last.At = row.At
			return
		}
	}
	if len(log.typing)+len(log.ended) >= searchesHeld || !log.room(who, now) {
		log.dropped++
		log.refused.Add(1)
		return
	}
	if last := log.typing[who]; last != nil {
		log.ended = append(log.ended, *last)
	}
	row.ID = api.NewID("srch_", now)
	if log.typing == nil {
		log.typing = make(map[searcher]*searchRow)
	}
	log.typing[who] = &row
}

// room counts one more row, unless the client or the project has as many as it may.
func (s *searchLog) room(who searcher, now time.Time) bool {
	if s.kept == nil {
		s.kept = budget.New(searchShare, nil)
	}
	project := "project " + string(who.project)
	left := s.kept.Left(project, now, day, maxSearchesDay)
	return left > 0 && s.kept.Use(project+" client "+who.client, now, time.Hour, budget.Share(searchShare, left)) &&
		s.kept.Use(project, now, day, maxSearchesDay)
}

// day is a day of UTC.
const day = 24 * time.Hour

// take returns what has ended by now, or all there is.
func (s *searchLog) take(now time.Time, all bool) (rows []searchRow, dropped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for who, row := range s.typing {
		if all || now.UnixMilli()-row.At > searchPause.Milliseconds() {
			s.ended = append(s.ended, *row)
			delete(s.typing, who)
		}
	}
	rows, dropped = s.ended, s.dropped
	s.ended, s.dropped = nil, 0
	return rows, dropped
}

// back puts searches back that could not be written, as far as there is room.
func (s *searchLog) back(rows []searchRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := max(0, min(len(rows), searchesHeld-len(s.typing)-len(s.ended)))
	s.ended = append(s.ended, rows[:n]...)
	s.dropped += len(rows) - n
}

// due says, once in an hour, that old searches are to be removed.
func (s *searchLog) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) < time.Hour {
		return false
	}
	s.swept = now
	return true
}

func (s *Store) writeSearches(ctx context.Context, all bool) error {
	now := s.db.Now()
	rows, dropped := s.searched.take(now, all)
	if dropped > 0 {
		s.db.Log.Warn("searches not counted", "searches", dropped)
	}
	if len(rows) == 0 {
		return nil
	}
	sweep := s.searched.due(now)
	err := writeRows(ctx, s, "count searches", rows, sweep, func(insert *bun.InsertQuery) *bun.InsertQuery {
		return insert.On("CONFLICT DO NOTHING")
	})
	if err != nil {
		s.searched.back(rows)
	}
	return err
}

// writeRows inserts rows that waited in memory, as insert says, and removes those of their table that are too old if sweep is
// set.
func writeRows[T any](ctx context.Context, s *Store, what string, rows []T, sweep bool,
	insert func(*bun.InsertQuery) *bun.InsertQuery) error {
	return s.db.InTx(ctx, what, func(ctx context.Context, tx bun.Tx) error {
		for chunk := range slices.Chunk(rows, 512) {
			if _, err := insert(tx.NewInsert().Model(&chunk)).Exec(ctx); err != nil {
				return err
			}
		}
		if !sweep {
			return nil
		}
		_, err := tx.NewDelete().Model((*T)(nil)).Where("at < ?", s.db.Now().Add(-searchKeep).UnixMilli()).Exec(ctx)
		return err
	})
}

// SearchesWithoutResult lists what was searched for in a project and, the last time, not found: the most frequent first.
func (s *Store) SearchesWithoutResult(ctx context.Context, q AnalyticsQuery) ([]SearchCount, string, error) {
	after, err := parseCursor(q.After)
	if err != nil {
		return nil, "", err
	}
	if err := s.writeSearches(ctx, false); err != nil {
		s.db.Log.Warn("could not count searches yet", "error", err)
	}
	return s.searchCounts(ctx, q, after, func(sel *bun.SelectQuery) *bun.SelectQuery {
		return sel.Having("MAX(at * ? + results) % ? = 0", resultsMost, resultsMost)
	})
}

// searchCounts counts searches by their text.
func (s *Store) searchCounts(ctx context.Context, q AnalyticsQuery, after *cursor,
	only func(*bun.SelectQuery) *bun.SelectQuery) ([]SearchCount, string, error) {
	type row struct {
		Query string `bun:"query"`
		Count int    `bun:"hits"`
		Last  int64  `bun:"last"`
	}
	// The newest search and what it found, as one number.
	sel := q.between(s.db.Read.NewSelect().Model((*searchRow)(nil)), "at").Column("query").ColumnExpr("COUNT(*) AS hits").
		ColumnExpr("MAX(at * ? + results) AS last", resultsMost)
	return counted(ctx, s, q, only(sel), "query", after, "count searches",
		func(r row) SearchCount {
			at := time.UnixMilli(r.Last / resultsMost).UTC()
			return SearchCount{Query: r.Query, Count: r.Count, Results: int(r.Last % resultsMost), Last: at}
		},
		func(n SearchCount) cursor { return cursor{int64(n.Count), n.Query} })
}

// Searches lists what was searched for in a project, the most frequent first, and how many searches there were.
func (s *Store) Searches(ctx context.Context, q AnalyticsQuery) (
	list []SearchCount, next string, total int, err error) {
	after, err := parseCursor(q.After)
	if err != nil {
		return nil, "", 0, err
	}
	if err := s.writeSearches(ctx, false); err != nil {
		s.db.Log.Warn("could not count searches yet", "error", err)
	}
	err = q.between(s.db.Read.NewSelect().Model((*searchRow)(nil)), "at").ColumnExpr("COUNT(*)").Scan(ctx, &total)
	if err != nil {
		return nil, "", 0, s.db.Fail("count searches", err)
	}
	list, next, err = s.searchCounts(ctx, q, after, func(sel *bun.SelectQuery) *bun.SelectQuery { return sel })
	return list, next, total, err
}
