package catalog

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"docent/api"

	"github.com/uptrace/bun"
)

// A checkedRow is a row that stands nowhere else and so carries a checksum.
type checkedRow interface {
	// contents are the row's table, its primary key, and what the checksum is of. What may be lost without harm is left
	// out, such as the last use of a key.
	contents() (table, key string, fields []any)
	checksum() *int64
}

// checked is part of every such row.
type checked struct {
	Checksum int64 `bun:"checksum"`
}

func (c *checked) checksum() *int64 { return &c.Checksum }

// setChecksum is called for a row that is to be written.
func setChecksum(r checkedRow) {
	_, _, fields := r.contents()
	*r.checksum() = sumOf(fields...)
}

// checkRow refuses a row that is not as it was written.
func checkRow(r checkedRow) error {
	table, key, fields := r.contents()
	if *r.checksum() == sumOf(fields...) {
		return nil
	}
	return fmt.Errorf("%w: row %q of table %s: the checksum does not match", ErrCorrupt, key, table)
}

var sumTable = crc32.MakeTable(crc32.Castagnoli)

// sumOf is the CRC-32C of fields, in which no two lists of fields look alike.
func sumOf(fields ...any) int64 {
	var buf []byte
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			buf = append(binary.AppendUvarint(buf, uint64(len(f))), f...)
		case []byte:
			buf = append(binary.AppendUvarint(buf, uint64(len(f))), f...)
		case int64:
			buf = binary.AppendVarint(buf, f)
		case time.Time:
			buf = binary.AppendVarint(buf, f.UnixMilli())
		case *time.Time:
			if f == nil {
				buf = append(buf, 0)
			} else {
				buf = binary.AppendVarint(append(buf, 1), f.UnixMilli())
			}
		default:
			panic(fmt.Sprintf("a checksum of %T", f))
		}
	}
	return int64(crc32.Checksum(buf, sumTable))
}

func (r *organizationRow) contents() (table, key string, fields []any) {
	return "organizations", string(r.ID), []any{string(r.ID), r.Name, r.CreatedAt}
}

func (r *projectRow) contents() (table, key string, fields []any) {
	return "projects", string(r.ID), []any{string(r.ID), string(r.Org), r.Domain, []byte(r.Body), r.CreatedAt}
}

func (r *keyRow) contents() (table, key string, fields []any) {
	return "keys", string(r.ID), []any{
		string(r.ID), r.Hash, string(r.Org), string(r.Project), []byte(r.Body), r.CreatedAt, r.RevokedAt,
	}
}

func (r *pullRow) contents() (table, key string, fields []any) {
	return "pulls", r.ID, []any{
		r.ID, string(r.Project), int64(r.Number), r.Head, string(r.State), []byte(r.Body), r.CreatedAt,
	}
}

func (r *counterRow) contents() (table, key string, fields []any) {
	return "counters", r.Name, []any{r.Name, r.Value}
}

func (r *settingRow) contents() (table, key string, fields []any) {
	return "settings", r.Name, []any{r.Name, r.Value}
}

func (r *updateRow) contents() (table, key string, fields []any) {
	return "updates", string(r.ID), []any{string(r.ID), string(r.Project), string(r.Status), []byte(r.Body)}
}

func (r *automationRow) contents() (table, key string, fields []any) {
	return "automations", string(r.ID), []any{string(r.ID), string(r.Project), r.Name, []byte(r.Body)}
}

func (r *runRow) contents() (table, key string, fields []any) {
	return "automation_runs", r.Key, []any{r.Key, string(r.Automation), r.At, string(r.Status), []byte(r.Body)}
}

func (r *commentRow) contents() (table, key string, fields []any) {
	return "comments", r.ID, []any{r.ID, r.Pull, r.Author, string(r.State), r.Message, []byte(r.Body), r.CreatedAt}
}

// A checkedTable is a table whose rows carry checksums.
type checkedTable struct {
	name, key string
	// page reads rows in the order of their keys, from the one after the key given.
	page func(ctx context.Context, db bun.IDB, after string, n int) ([]checkedRow, error)
}

var checkedTables = []checkedTable{
	checkedTableOf[organizationRow]("id"),
	checkedTableOf[projectRow]("id"),
	checkedTableOf[keyRow]("id"),
	checkedTableOf[pullRow]("id"),
	checkedTableOf[counterRow]("name"),
	checkedTableOf[settingRow]("name"),
	checkedTableOf[updateRow]("id"),
	checkedTableOf[automationRow]("id"),
	checkedTableOf[runRow]("key"),
	checkedTableOf[commentRow]("id"),
	checkedTableOf[personRow]("id"),
	checkedTableOf[memberRow]("id"),
	checkedTableOf[sessionRow]("id"),
	checkedTableOf[invitationRow]("id"),
	checkedTableOf[linkRow]("id"),
	checkedTableOf[auditRow]("id"),
	checkedTableOf[gapRow]("id"),
	checkedTableOf[hookRow]("project_id"),
	checkedTableOf[reportRow]("id"),
	checkedTableOf[reviewRow]("id"),
	checkedTableOf[askRow]("id"),
	checkedTableOf[webhookRow]("id"),
	checkedTableOf[webhookStateRow]("webhook_id"),
	checkedTableOf[webhookEventRow]("id"),
	checkedTableOf[webhookDeliveryRow]("id"),
}

func checkedTableOf[R any, P interface {
	*R
	checkedRow
}](key string) checkedTable {
	name, _, _ := P(new(R)).contents()
	return checkedTable{name, key, func(ctx context.Context, db bun.IDB, after string, n int) ([]checkedRow, error) {
		var rows []R
		err := db.NewSelect().Model(&rows).Where("? > ?", bun.Ident(key), after).
			OrderBy(key, bun.OrderAsc).Limit(int64(n)).Scan(ctx)
		out := make([]checkedRow, len(rows))
		for i := range rows {
			out[i] = P(&rows[i])
		}
		return out, err
	}}
}

// each reads all rows of the table.
func (t checkedTable) each(ctx context.Context, db bun.IDB, do func(checkedRow) error) error {
	const page = 512
	for after, more := "", true; more; {
		rows, err := t.page(ctx, db, after, page)
		if err != nil {
			return err
		}
		for _, r := range rows {
			_, after, _ = r.contents()
			if err := do(r); err != nil {
				return err
			}
		}
		more = len(rows) == page
	}
	return nil
}

// sealRow stores the checksum of a row as it stands.
func (t checkedTable) sealRow(ctx context.Context, db bun.IDB, r checkedRow) error {
	_, key, fields := r.contents()
	_, err := db.NewRaw("UPDATE ? SET checksum = ? WHERE ? = ?",
		bun.Ident(t.name), sumOf(fields...), bun.Ident(t.key), key).Exec(ctx)
	return err
}

// sealAll gives all rows their checksums, at the migration that brings these.
func sealAll(ctx context.Context, db bun.IDB) error {
	for _, t := range checkedTables {
		if err := t.each(ctx, db, func(r checkedRow) error { return t.sealRow(ctx, db, r) }); err != nil {
			return fmt.Errorf("compute the checksums of %s: %w", t.name, err)
		}
	}
	return nil
}

// A Problem is something that is wrong in the catalogue.
type Problem struct {
	Table string
	Row   string // empty where it is not one row
	Err   error
}

// Check reads every row that stands nowhere else, and yields those that are not as they were written; of a SQLite file
// it also looks whether tables and indexes agree. It returns how many rows it has read.
func (c *Catalog) Check(ctx context.Context, yield func(Problem) bool) (rows int, err error) {
	if c.path != "" {
		var verdicts []string
		if err := c.read.NewRaw("PRAGMA integrity_check(100)").Scan(ctx, &verdicts); err != nil {
			return 0, c.fail("check", err)
		}
		for _, v := range verdicts {
			if v != "ok" && !yield(Problem{Err: fmt.Errorf("%w: %s", ErrCorrupt, v)}) {
				return 0, nil
			}
		}
	}
	for _, t := range checkedTables {
		stopped := false
		err := t.each(ctx, c.read, func(r checkedRow) error {
			rows++
			if err := checkRow(r); err != nil && !stopped {
				_, name, _ := r.contents()
				stopped = !yield(Problem{t.name, name, err})
			}
			return nil
		})
		if err != nil || stopped {
			return rows, c.fail("check "+t.name, err)
		}
	}
	return rows, nil
}

// Accept takes a damaged row as it stands, once somebody has looked at what it holds.
func (c *Catalog) Accept(ctx context.Context, table, name string) error {
	for _, t := range checkedTables {
		if t.name != table {
			continue
		}
		err := c.change(ctx, "accept a damaged row", func(ctx context.Context, tx bun.Tx) error {
			found := false
			err := t.each(ctx, tx, func(r checkedRow) error {
				if _, n, _ := r.contents(); n != name {
					return nil
				}
				found = true
				return t.sealRow(ctx, tx, r)
			})
			if err == nil && !found {
				err = fmt.Errorf("row %q of table %q: %w", name, table, api.ErrNotFound)
			}
			return err
		})
		c.forgetProjects()
		c.forget(lookKeys)
		c.forgetPeople()
		return err
	}
	return fmt.Errorf("row %q of table %q: %w", name, table, api.ErrNotFound)
}
