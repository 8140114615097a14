package catalog

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"docent/api"

	"github.com/uptrace/bun"
)

const (
	// searchPause ends a search: more typing within it belongs to the same search.
	searchPause = 3 * time.Second
	// searchWait is how often what has ended is written.
	searchWait = 5 * time.Second
	// searchesHeld is how many searches wait in memory at most. What comes beyond them is not counted.
	searchesHeld = 4096
	// searchKeep is how long a search is remembered.
	searchKeep = 400 * 24 * time.Hour
	// searchLength is how many characters of a query are kept.
	searchLength = 200
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
}

type searcher struct {
	project api.ProjectID
	client  string
}

// RecordSearch counts a search, some time later. Client tells searchers apart and is not stored: a search box asks at
// every key that is pressed, and of those searches only what the reader came to is counted.
func (c *Catalog) RecordSearch(project api.ProjectID, client, query string, results int) {
	query = foldQuery(query)
	if query == "" {
		return
	}
	now := c.now()
	row := searchRow{Project: project, Query: query, Results: min(results, resultsMost-1), At: now.UnixMilli()}
	s := &c.searched
	s.mu.Lock()
	defer s.mu.Unlock()
	who := searcher{project, client}
	if last := s.typing[who]; last != nil {
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
	if len(s.typing)+len(s.ended) >= searchesHeld {
		s.dropped++
		return
	}
	if last := s.typing[who]; last != nil {
		s.ended = append(s.ended, *last)
	}
	row.ID = api.NewID("srch_", now)
	if s.typing == nil {
		s.typing = make(map[searcher]*searchRow)
	}
	s.typing[who] = &row
}

// foldQuery makes queries that differ in case and space alone the same.
func foldQuery(q string) string {
	q = column(strings.ToLower(strings.Join(strings.Fields(q), " ")))
	if utf8.RuneCountInString(q) > searchLength {
		q = string([]rune(q)[:searchLength])
	}
	return q
}

// take gives what has ended by now, or all there is.
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

func (c *Catalog) writeSearches(ctx context.Context, all bool) error {
	now := c.now()
	rows, dropped := c.searched.take(now, all)
	if dropped > 0 {
		c.log.Warn("searches were not counted: too many at once", "searches", dropped)
	}
	if len(rows) == 0 {
		return nil
	}
	sweep := c.searched.due(now)
	err := c.update(ctx, "count searches", func(ctx context.Context, tx bun.Tx) error {
		for chunk := range slices.Chunk(rows, 512) {
			if _, err := tx.NewInsert().Model(&chunk).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
				return err
			}
		}
		if !sweep {
			return nil
		}
		_, err := tx.NewDelete().Model((*searchRow)(nil)).Where("at < ?", now.Add(-searchKeep).UnixMilli()).Exec(ctx)
		return err
	})
	if err != nil {
		c.searched.back(rows)
		return err
	}
	return nil
}

// SearchesWithoutResult lists what was searched for in a project and, the last time, not found: the most frequent first.
func (c *Catalog) SearchesWithoutResult(ctx context.Context, q AnalyticsQuery) ([]SearchCount, string, error) {
	after, err := parseCursor(q.After)
	if err != nil {
		return nil, "", err
	}
	if err := c.writeSearches(ctx, false); err != nil {
		c.log.Warn("searches are not counted yet", "error", err)
	}
	return c.searchCounts(ctx, q, after, func(sel *bun.SelectQuery) *bun.SelectQuery {
		return sel.Having("MAX(at * ? + results) % ? = 0", resultsMost, resultsMost)
	})
}

// searchCounts counts searches by their text.
func (c *Catalog) searchCounts(ctx context.Context, q AnalyticsQuery, after *cursor,
	only func(*bun.SelectQuery) *bun.SelectQuery) ([]SearchCount, string, error) {
	type row struct {
		Query string `bun:"query"`
		Count int    `bun:"hits"`
		Last  int64  `bun:"last"`
	}
	// The newest search and what it found, as one number.
	sel := q.between(c.read.NewSelect().Model((*searchRow)(nil)), "at").Column("query").ColumnExpr("COUNT(*) AS hits").
		ColumnExpr("MAX(at * ? + results) AS last", resultsMost)
	return counted(ctx, c, q, only(sel), "query", after, "count searches",
		func(r row) SearchCount {
			at := time.UnixMilli(r.Last / resultsMost).UTC()
			return SearchCount{Query: r.Query, Count: r.Count, Results: int(r.Last % resultsMost), Last: at}
		},
		func(n SearchCount) cursor { return cursor{int64(n.Count), n.Query} })
}

// Searches lists what was searched for in a project, the most frequent first, and how many searches there were.
func (c *Catalog) Searches(ctx context.Context, q AnalyticsQuery) (
	list []SearchCount, next string, total int, err error) {
	after, err := parseCursor(q.After)
	if err != nil {
		return nil, "", 0, err
	}
	if err := c.writeSearches(ctx, false); err != nil {
		c.log.Warn("searches are not counted yet", "error", err)
	}
	err = q.between(c.read.NewSelect().Model((*searchRow)(nil)), "at").ColumnExpr("COUNT(*)").Scan(ctx, &total)
	if err != nil {
		return nil, "", 0, c.fail("count searches", err)
	}
	list, next, err = c.searchCounts(ctx, q, after, func(sel *bun.SelectQuery) *bun.SelectQuery { return sel })
	return list, next, total, err
}
