package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
)

// A CopiedTable is a table of the catalog whose rows were copied, and found the same afterwards.
type CopiedTable struct {
	Name string `json:"table"`
	Rows int    `json:"rows"`
}

// An OccupiedError refuses to copy into a catalog that holds something else.
type OccupiedError struct{ Table string }

func (e *OccupiedError) Error() string {
	return "the catalog to copy to is in use: its table " + e.Table + " holds other rows than the one to copy from"
}

// CopyToPostgres copies a SQLite catalog into one on PostgreSQL that was just made (Open), within a transaction, and
// compares every table afterwards. Identities, positions and checksums stay as they are: the copy takes the
// catalog's place beside the same journal. A catalog that holds the same rows already is left alone; one that
// holds others is refused with an *OccupiedError.
func CopyToPostgres(ctx context.Context, from *Catalog, tx pgx.Tx) ([]CopiedTable, error) {
	lite, err := from.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, from.Fail("copy", err)
	}
	defer lite.Rollback()
	return copyTables(ctx, &liteTables{tx: lite}, &pgTables{tx: tx}, from)
}

// CopyFromPostgres is CopyToPostgres the other way round: into a SQLite catalog that was just made.
func CopyFromPostgres(ctx context.Context, tx pgx.Tx, to *Catalog) (done []CopiedTable, err error) {
	err = to.InTx(ctx, "copy", func(ctx context.Context, lite bun.Tx) error {
		if _, err := lite.ExecContext(ctx, "PRAGMA defer_foreign_keys = 1"); err != nil {
			return err
		}
		done, err = copyTables(ctx, &pgTables{tx: tx}, &liteTables{tx: lite}, to)
		return err
	})
	return done, err
}

// tables are those of one of the two databases.
type tables interface {
	// columns are those of every table, by their names.
	columns(ctx context.Context) (map[string][]copiedColumn, error)
	// rows yields a table's rows, with values of these types: nil, string, int64, bool, []byte, time.Time.
	rows(ctx context.Context, table string, columns []copiedColumn, yield func([]any) error) error
	insert(ctx context.Context, table string, columns []copiedColumn, rows iter.Seq[[]any]) error
	exec(ctx context.Context, statement string) error
}

// A copiedColumn has the type that PostgreSQL calls it by; empty if that is not known.
type copiedColumn struct{ name, kind string }

// made are tables that hold rows in a new catalog.
var made = []string{"organizations", "settings", "stores", "projections"}

// copied reports whether a table's rows are copied. The texts of questions are another kind of table in each database,
// and made from the questions; large values and leases of nodes are PostgreSQL's alone.
func copied(table string) bool {
	return !strings.HasPrefix(table, "bun_") && !strings.HasPrefix(table, "question_texts") && table != "text_queue"
}

func copyTables(ctx context.Context, from, to tables, c *Catalog) ([]CopiedTable, error) {
	plan, err := planCopy(ctx, from, to)
	if err != nil {
		return nil, c.Fail("copy", err)
	}
	var done []CopiedTable
	occupied := ""
	for _, t := range plan {
		was, err := digest(ctx, from, t)
		if err != nil {
			return nil, c.Fail("read "+t.name, err)
		}
		is, err := digest(ctx, to, t)
		if err != nil {
			return nil, c.Fail("read "+t.name, err)
		}
		if is.rows > 0 && is != was && !slices.Contains(made, t.name) {
			return nil, &OccupiedError{t.name}
		}
		if is.rows > 0 && !slices.Contains(made, t.name) {
			occupied = t.name
		}
		done = append(done, CopiedTable{t.name, was.rows})
		t.want, t.has = was, is
	}
	if occupied != "" { // it has to be the same in every table then
		for _, t := range plan {
			if t.want != t.has {
				return nil, &OccupiedError{t.name}
			}
		}
		return done, nil
	}
	for _, t := range plan {
		if err := copyTable(ctx, from, to, t); err != nil {
			return nil, c.Fail("copy "+t.name, err)
		}
	}
	return done, c.Fail("copy", to.exec(ctx, "INSERT INTO text_queue (num) SELECT DISTINCT num FROM questions"))
}

// A planned table is to be copied.
type planned struct {
	name      string
	columns   []copiedColumn
	want, has rowsDigest
}

// planCopy finds the tables that both have, those first that others refer to.
func planCopy(ctx context.Context, from, to tables) ([]*planned, error) {
	a, err := from.columns(ctx)
	if err != nil {
		return nil, err
	}
	b, err := to.columns(ctx)
	if err != nil {
		return nil, err
	}
	var plan []*planned
	for name, columns := range a {
		others, ok := b[name]
		if !copied(name) || !ok {
			continue
		}
		t := &planned{name: name}
		for _, c := range columns {
			at := slices.IndexFunc(others, func(o copiedColumn) bool { return o.name == c.name })
			if at < 0 || len(columns) != len(others) {
				return nil, fmt.Errorf("the table %s has other columns in the two databases: were both made by this version?", name)
			}
			c.kind = cmp.Or(c.kind, others[at].kind)
			t.columns = append(t.columns, c)
		}
		plan = append(plan, t)
	}
	slices.SortFunc(plan, func(a, b *planned) int {
		return cmp.Or(cmp.Compare(copyOrder(a.name), copyOrder(b.name)), cmp.Compare(a.name, b.name))
	})
	return plan, nil
}

// copyOrder puts what other tables refer to first.
func copyOrder(table string) int {
	order := []string{"organizations", "projects", "people", "questions", "webhooks", "automations"}
	if at := slices.Index(order, table); at >= 0 {
		return at
	}
	return len(order)
}

func copyTable(ctx context.Context, from, to tables, t *planned) error {
	if slices.Contains(made, t.name) {
		if err := to.exec(ctx, "DELETE FROM "+pgx.Identifier{t.name}.Sanitize()); err != nil {
			return err
		}
	}
	stopped := errors.New("stopped")
	var reading error
	err := to.insert(ctx, t.name, t.columns, func(yield func([]any) bool) {
		reading = from.rows(ctx, t.name, t.columns, func(row []any) error {
			if !yield(row) {
				return stopped
			}
			return nil
		})
	})
	if reading != nil && !errors.Is(reading, stopped) {
		return reading
	}
	if err != nil {
		return err
	}
	if is, err := digest(ctx, to, t); err != nil || is != t.want {
		return errors.Join(err, fmt.Errorf("%d rows were written, and what is read of them is not what was copied", is.rows))
	}
	return nil
}

// A rowsDigest is the same for the same rows in any order: the sum of their hashes.
type rowsDigest struct {
	rows int
	sum  [4]uint64
}

func digest(ctx context.Context, of tables, t *planned) (d rowsDigest, err error) {
	err = of.rows(ctx, t.name, t.columns, func(row []any) error {
		var buf []byte
		for _, v := range row {
			switch v := v.(type) {
			case nil:
				buf = append(buf, 0)
			case string:
				buf = append(binary.AppendUvarint(append(buf, 1), uint64(len(v))), v...)
			case []byte:
				buf = append(binary.AppendUvarint(append(buf, 2), uint64(len(v))), v...)
			case int64:
				buf = binary.AppendVarint(append(buf, 3), v)
			case bool:
				buf = append(buf, 4, map[bool]byte{true: 1}[v])
			case time.Time:
				buf = binary.AppendVarint(append(buf, 5), v.UnixMicro())
			default:
				return fmt.Errorf("a value of type %T", v)
			}
		}
		hash := sha256.Sum256(buf)
		for i := range d.sum {
			d.sum[i] += binary.BigEndian.Uint64(hash[8*i:])
		}
		d.rows++
		return nil
	})
	return d, err
}

// liteTables are SQLite's.
type liteTables struct{ tx bun.Tx }

func (l *liteTables) exec(ctx context.Context, statement string) error {
	_, err := l.tx.ExecContext(ctx, statement)
	return err
}

func (l *liteTables) columns(ctx context.Context) (map[string][]copiedColumn, error) {
	var rows []struct {
		Table string `bun:"table_name"`
		Name  string `bun:"column_name"`
	}
	err := l.tx.NewRaw(`SELECT m.name AS table_name, c.name AS column_name
		FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' ORDER BY m.name, c.cid`).Scan(ctx, &rows)
	all := make(map[string][]copiedColumn)
	for _, r := range rows {
		all[r.Table] = append(all[r.Table], copiedColumn{name: r.Name})
	}
	return all, err
}

// liteTime is how bun writes a time into SQLite.
const liteTime = "2006-01-02 15:04:05.999999-07:00"

func (l *liteTables) rows(ctx context.Context, table string, columns []copiedColumn, yield func([]any) error) error {
	rows, err := l.tx.QueryContext(ctx, "SELECT "+names(columns)+" FROM "+pgx.Identifier{table}.Sanitize())
	if err != nil {
		return err
	}
	defer rows.Close()
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := slices.Clone(values)
		for i, c := range columns {
			if row[i], err = fromLite(row[i], c.kind); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// fromLite turns what SQLite holds into what PostgreSQL would.
func fromLite(v any, kind string) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch kind {
	case "timestamptz":
		switch v := v.(type) {
		case time.Time:
			return v.UTC(), nil
		case string:
			t, err := time.Parse(liteTime, v)
			return t.UTC(), err
		}
	case "bool":
		if n, ok := v.(int64); ok {
			return n != 0, nil
		}
	case "bytea":
		if b, ok := v.([]byte); ok {
			return b, nil
		}
	case "int8", "int4", "int2":
		if n, ok := v.(int64); ok {
			return n, nil
		}
	case "text", "json", "jsonb", "varchar":
		switch v := v.(type) {
		case string:
			return v, nil
		case []byte:
			return string(v), nil
		}
	}
	return nil, fmt.Errorf("a %T cannot become a %s", v, kind)
}

// toLite is the other way round.
func toLite(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format(liteTime)
	case bool:
		return map[bool]int64{true: 1}[v]
	}
	return v
}

func (l *liteTables) insert(ctx context.Context, table string, columns []copiedColumn, rows iter.Seq[[]any]) error {
	insert, err := l.tx.PrepareContext(ctx, "INSERT INTO "+pgx.Identifier{table}.Sanitize()+" ("+names(columns)+") VALUES (?"+
		strings.Repeat(", ?", len(columns)-1)+")")
	if err != nil {
		return err
	}
	defer insert.Close()
	for row := range rows {
		for i, v := range row {
			row[i] = toLite(v)
		}
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	return nil
}

// pgTables are those of PostgreSQL.
type pgTables struct{ tx pgx.Tx }

func (p *pgTables) exec(ctx context.Context, statement string) error {
	_, err := p.tx.Exec(ctx, statement)
	return err
}

func (p *pgTables) columns(ctx context.Context) (map[string][]copiedColumn, error) {
	rows, err := p.tx.Query(ctx, `SELECT table_name::text, column_name::text, udt_name::text FROM information_schema.columns
		WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]copiedColumn)
	var table string
	var c copiedColumn
	_, err = pgx.ForEachRow(rows, []any{&table, &c.name, &c.kind}, func() error {
		all[table] = append(all[table], c)
		return nil
	})
	return all, err
}

func (p *pgTables) rows(ctx context.Context, table string, columns []copiedColumn, yield func([]any) error) error {
	asText := make([]string, len(columns)) // JSON as it was written
	for i, c := range columns {
		if asText[i] = (pgx.Identifier{c.name}).Sanitize(); strings.HasPrefix(c.kind, "json") {
			asText[i] += "::text"
		}
	}
	rows, err := p.tx.Query(ctx, "SELECT "+strings.Join(asText, ", ")+" FROM "+pgx.Identifier{table}.Sanitize())
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return err
		}
		for i, v := range row {
			switch v := v.(type) {
			case int32:
				row[i] = int64(v)
			case int16:
				row[i] = int64(v)
			case time.Time:
				row[i] = v.UTC()
			}
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (p *pgTables) insert(ctx context.Context, table string, columns []copiedColumn, rows iter.Seq[[]any]) error {
	next, stop := iter.Pull(rows)
	defer stop()
	into := make([]string, len(columns))
	for i, c := range columns {
		into[i] = c.name
	}
	_, err := p.tx.CopyFrom(ctx, pgx.Identifier{table}, into, pgx.CopyFromFunc(func() ([]any, error) {
		row, ok := next()
		if !ok {
			return nil, nil
		}
		return row, nil
	}))
	if at, ok := errors.AsType[*pgconn.PgError](err); ok && at.Where != "" {
		err = fmt.Errorf("%w (%s)", err, at.Where)
	}
	return err
}

// names are those of columns, as a statement has them.
func names(columns []copiedColumn) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = pgx.Identifier{c.name}.Sanitize()
	}
	return strings.Join(list, ", ")
}
