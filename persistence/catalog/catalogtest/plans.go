package catalogtest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"docent/persistence/catalog"
)

// growing are the tables that have more rows the longer a server is used. One-time links and invitations go when they have
// expired, and what is queued when it is done.
var growing = []string{"jobs", "questions", "rated_pages", "cited_pages", "question_texts", "searches", "agent_reads", "pulls", "updates",
	"automation_runs", "sessions", "audit", "report_deliveries", "comments", "webhook_events", "webhook_deliveries",
	"review_pulls", "review_asks"}

// open are the indexes of what is not done yet: they hold a few rows however many there were, and may be read whole.
var open = []string{"updates_queued", "updates_open", "automation_runs_open", "report_deliveries_due", "pulls_open", "pulls_untold",
	"review_pulls_due", "review_asks_open", "comments_sent", "sessions_links"}

// once is what a process asks a single time.
var once = []string{"SELECT project_id, kind, MAX(position) AS position FROM webhook_events GROUP BY project_id, kind"}

// explained are the statements that were looked at in this process, each once for a database.
var explained sync.Map

// A plans collects the statements of a catalog.
type plans struct {
	mu    sync.Mutex
	asked map[string]string // a statement for each shape
}

var values = regexp.MustCompile(`(?s)'(?:[^']|'')*'|\b\d+\b`)
var lists = regexp.MustCompile(`\((?:\(?\?\)?(?:, )?)+\)`)

// watchPlans collects a catalog's statements. What it returns lets the test fail for those that read all rows of a table
// that grows. The test may have closed the catalog by then.
func watchPlans(p Place, c *catalog.Catalog) (look func()) {
	seen := &plans{asked: map[string]string{}}
	one := c.Read == c.Write
	c.Write = c.Write.WithQueryHook(seen)
	if one {
		c.Read = c.Write
	} else {
		c.Read = c.Read.WithQueryHook(seen)
	}
	kind := c.Read.Dialect().Name()
	return func() {
		p.T.Helper()
		driver, dsn := "pgx", p.DSN
		if kind == dialect.SQLite {
			driver, dsn = "sqlite", strings.TrimPrefix(dsn, "sqlite:")
		}
		db, err := sql.Open(driver, dsn)
		if err != nil {
			p.T.Fatal(err)
		}
		defer db.Close()
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for shape, statement := range seen.asked {
			key := kind.String() + shape
			if _, known := explained.Load(key); known {
				continue
			}
			scans, err := scansOf(context.WithoutCancel(p.T.Context()), db, kind, statement)
			if err != nil { // the test may have left another schema, or none
				p.T.Logf("explain %s: %v", shape, err)
				continue
			}
			explained.Store(key, true)
			for _, s := range scans {
				p.T.Errorf("reads all of %s, which grows with use: %s", s, shape)
			}
		}
	}
}

func (p *plans) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (p *plans) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	verb, _, _ := strings.Cut(e.Query, " ")
	// What has no query of bun's own is a test's.
	if e.Err != nil || slices.Contains(once, e.Query) || e.IQuery == nil || !slices.Contains([]string{"SELECT", "UPDATE", "DELETE", "INSERT", "WITH"}, verb) {
		return
	}
	shape := lists.ReplaceAllString(values.ReplaceAllString(e.Query, "?"), "(?)")
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.asked[shape]; !ok {
		p.asked[shape] = e.Query
	}
}

var named = regexp.MustCompile(`(?i)\b(?:FROM|JOIN|UPDATE)\s+"?(\w+)"?(?:\s+AS\s+"?(\w+)"?)?`)

// scansOf are the tables of which a statement reads all rows, though they grow with use.
func scansOf(ctx context.Context, db *sql.DB, of dialect.Name, statement string) (tables []string, err error) {
	tableOf := map[string]string{}
	for _, m := range named.FindAllStringSubmatch(statement, -1) {
		tableOf[m[1]] = m[1]
		if m[2] != "" {
			tableOf[m[2]] = m[1]
		}
	}
	// What takes the first rows of an index, or changes all that there are, does what it is for.
	conditions := strings.Contains(strings.ReplaceAll(statement, "WHERE (TRUE)", ""), "WHERE")
	if !conditions && (!strings.HasPrefix(statement, "SELECT") || strings.Contains(statement, " LIMIT ")) {
		return nil, nil
	}
	scans := scansOfSQLite
	if of == dialect.PG {
		scans = scansOfPostgres
	}
	names, err := scans(ctx, db, statement)
	for _, name := range names {
		if table := tableOf[name]; slices.Contains(growing, table) && !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	}
	return tables, err
}

var scan = regexp.MustCompile(`^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+)| VIRTUAL TABLE INDEX \d+:(.*))?`)

func scansOfSQLite(ctx context.Context, db *sql.DB, statement string) (names []string, err error) {
	rows, err := db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		// A virtual table says how it finds rows; one that reads all has nothing to say.
		if m := scan.FindStringSubmatch(detail); m != nil && m[3] == "" && !slices.Contains(open, m[2]) {
			names = append(names, m[1])
		}
	}
	return names, rows.Err()
}

// A planNode is a step of PostgreSQL's way to an answer.
type planNode struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Alias    string
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	Plans    []planNode
}

func scansOfPostgres(ctx context.Context, db *sql.DB, statement string) (names []string, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	// The tables of tests are so small that reading them whole is the cheapest.
	for _, setting := range []string{"enable_seqscan", "enable_bitmapscan"} {
		if _, err := tx.ExecContext(ctx, "SET LOCAL "+setting+" = off"); err != nil {
			return nil, err
		}
	}
	// What a table was found to hold makes other plans the cheapest: of one project, reading all of it is one.
	var analyzed bool
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid "+
		"WHERE c.relnamespace = current_schema()::regnamespace)").Scan(&analyzed); err != nil || analyzed {
		return nil, err
	}
	var text string
	if err := tx.QueryRowContext(ctx, "EXPLAIN (FORMAT JSON) "+statement).Scan(&text); err != nil {
		return nil, err
	}
	var list []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	var walk func(n planNode)
	walk = func(n planNode) {
		whole := n.Type == "Seq Scan" || strings.HasPrefix(n.Type, "Index") && n.Cond == "" && !slices.Contains(open, n.Index)
		if whole {
			names = append(names, n.Relation)
		}
		for _, inner := range n.Plans {
			walk(inner)
		}
	}
	for _, p := range list {
		walk(p.Plan)
	}
	return names, nil
}
