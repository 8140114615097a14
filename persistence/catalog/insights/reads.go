package insights

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
)

// The ways by which agents read.
const (
	ByTools    = "tools"    // read_page of MCP, and the API's page operation
	ByMarkdown = "markdown" // llms.txt, llms-full.txt, and pages as Markdown
)

const maxReads = 4096 // pages whose reads wait in memory; what comes beyond them is not counted

type readRow struct {
	bun.BaseModel `bun:"table:agent_reads,alias:rd"`

	Project api.ProjectID `bun:"project_id,pk"`
	At      int64         `bun:"at,pk"`
	Page    string        `bun:"page,pk"`
	Way     string        `bun:"way,pk"`
	Reads   int           `bun:"reads"`
}

// A readLog holds counts until they are written. What it holds is lost with the process.
type readLog struct {
	mu     sync.Mutex
	counts map[readRow]int // rows without a count
	swept  time.Time
}

// A PageReads is how often agents have read a page, as a path, or a file such as llms.txt.
type PageReads struct {
	Page     string `bun:"page"`
	Tools    int    `bun:"tools"`
	Markdown int    `bun:"markdown"`
}

// RecordRead counts that an agent has read a page that there is, some time later.
func (s *Store) RecordRead(project api.ProjectID, way, page string) {
	row := readRow{Project: project, At: s.db.Now().UTC().Truncate(day).UnixMilli(), Page: page, Way: way}
	s.reads.mu.Lock()
	defer s.reads.mu.Unlock()
	s.reads.add(row, 1)
}

func (l *readLog) add(row readRow, reads int) {
	if l.counts == nil {
		l.counts = map[readRow]int{}
	}
	if _, counted := l.counts[row]; counted || len(l.counts) < maxReads {
		l.counts[row] += reads
	}
}

// take returns the counts so far, and whether old ones are to be removed, once in an hour.
func (l *readLog) take(now time.Time) (rows []readRow, sweep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for row, n := range l.counts {
		row.Reads = n
		rows = append(rows, row)
	}
	l.counts = nil
	if sweep = len(rows) > 0 && now.Sub(l.swept) >= time.Hour; sweep {
		l.swept = now
	}
	// In one order everywhere, so that several nodes do not wait for each other.
	slices.SortFunc(rows, func(a, b readRow) int { return slices.Compare(a.key(), b.key()) })
	return rows, sweep
}

func (r readRow) key() []string {
	return []string{string(r.Project), r.Page, r.Way, time.UnixMilli(r.At).UTC().Format(time.DateOnly)}
}

func (s *Store) writeReads(ctx context.Context, _ bool) error {
	rows, sweep := s.reads.take(s.db.Now())
	if len(rows) == 0 {
		return nil
	}
	err := writeRows(ctx, s, "count what agents read", rows, sweep, func(insert *bun.InsertQuery) *bun.InsertQuery {
		return insert.On("CONFLICT (project_id, at, page, way) DO UPDATE").Set("reads = rd.reads + EXCLUDED.reads")
	})
	if err == nil {
		return nil
	}
	s.reads.mu.Lock() // what could not be written is counted with what comes
	defer s.reads.mu.Unlock()
	for _, row := range rows {
		n := row.Reads
		row.Reads = 0
		s.reads.add(row, n)
	}
	return err
}

// AgentReads are the pages that agents read most.
func (s *Store) AgentReads(ctx context.Context, q AnalyticsQuery) (list []PageReads, err error) {
	if err := s.writeReads(ctx, false); err != nil {
		s.db.Log.Warn("what agents read is not counted yet", "error", err)
	}
	err = q.between(s.db.Read.NewSelect().Model((*readRow)(nil)), "at").Column("page").
		ColumnExpr("SUM(CASE WHEN way = ? THEN reads ELSE 0 END) AS tools", ByTools).
		ColumnExpr("SUM(CASE WHEN way = ? THEN reads ELSE 0 END) AS markdown", ByMarkdown).
		Group("page").OrderExpr("SUM(reads) DESC, page").Limit(int64(q.Limit)).Scan(ctx, &list)
	if err != nil {
		return nil, s.db.Fail("count what agents read", err)
	}
	return list, nil
}
