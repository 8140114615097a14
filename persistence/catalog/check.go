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

// A checkedRow is a row that stands nowhere else and so carries a checksum. What may be lost without harm is left out of it,
// such as the last use of a key.
type checkedRow interface {
	row() (table, name string) // the name is the primary key
	sum() int64                // what the checksum should be
	checksum() *int64          // what it is
}

// setChecksum is called for a row that is to be written.
func setChecksum(r checkedRow) { *r.checksum() = r.sum() }

// checkRow refuses a row that is not as it was written.
func checkRow(r checkedRow) error {
	if *r.checksum() == r.sum() {
		return nil
	}
	table, name := r.row()
	return damagedRow(table, name)
}

func damagedRow(table, name string) error {
	return fmt.Errorf("%w: row %q of table %s: the checksum does not match", ErrCorrupt, name, table)
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

func (r *organizationRow) row() (string, string) { return "organizations", string(r.ID) }
func (r *organizationRow) checksum() *int64      { return &r.Checksum }
func (r *organizationRow) sum() int64            { return sumOf(string(r.ID), r.Name, r.CreatedAt) }

func (r *projectRow) row() (string, string) { return "projects", string(r.ID) }
func (r *projectRow) checksum() *int64      { return &r.Checksum }
func (r *projectRow) sum() int64 {
	return sumOf(string(r.ID), string(r.Org), r.Domain, []byte(r.Body), r.CreatedAt)
}

func (r *keyRow) row() (string, string) { return "keys", string(r.ID) }
func (r *keyRow) checksum() *int64      { return &r.Checksum }
func (r *keyRow) sum() int64 {
	return sumOf(string(r.ID), r.Hash, string(r.Org), string(r.Project), []byte(r.Body), r.CreatedAt, r.RevokedAt)
}

func (r *pullRow) row() (string, string) { return "pulls", r.ID }
func (r *pullRow) checksum() *int64      { return &r.Checksum }
func (r *pullRow) sum() int64 {
	return sumOf(r.ID, string(r.Project), int64(r.Number), r.Head, string(r.State), []byte(r.Body), r.CreatedAt)
}

func (r *counterRow) row() (string, string) { return "counters", r.Name }
func (r *counterRow) checksum() *int64      { return &r.Checksum }
func (r *counterRow) sum() int64            { return sumOf(r.Name, r.Value) }

func (r *settingRow) row() (string, string) { return "settings", r.Name }
func (r *settingRow) checksum() *int64      { return &r.Checksum }
func (r *settingRow) sum() int64            { return sumOf(r.Name, r.Value) }

func (r *updateRow) row() (string, string) { return "updates", string(r.ID) }
func (r *updateRow) checksum() *int64      { return &r.Checksum }
func (r *updateRow) sum() int64 {
	return sumOf(string(r.ID), string(r.Project), string(r.Status), []byte(r.Body))
}

func (r *automationRow) row() (string, string) { return "automations", string(r.ID) }
func (r *automationRow) checksum() *int64      { return &r.Checksum }
func (r *automationRow) sum() int64 {
	return sumOf(string(r.ID), string(r.Project), r.Name, []byte(r.Body))
}

func (r *runRow) row() (string, string) { return "automation_runs", r.Key }
func (r *runRow) checksum() *int64      { return &r.Checksum }
func (r *runRow) sum() int64 {
	return sumOf(r.Key, string(r.Automation), r.At, string(r.Status), []byte(r.Body))
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
}

func checkedTableOf[R any, P interface {
	*R
	checkedRow
}](key string) checkedTable {
	name, _ := P(new(R)).row()
	return checkedTable{name, key, func(ctx context.Context, db bun.IDB, after string, n int) ([]checkedRow, error) {
		var rows []R
		err := db.NewSelect().Model(&rows).Where("? > ?", bun.Ident(key), after).OrderBy(key, bun.OrderAsc).Limit(int64(n)).Scan(ctx)
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
			_, after = r.row()
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
	_, name := r.row()
	_, err := db.NewRaw("UPDATE ? SET checksum = ? WHERE ? = ?", bun.Ident(t.name), r.sum(), bun.Ident(t.key), name).Exec(ctx)
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

// Check reads every row that stands nowhere else, and yields those that are not as they were written; of a SQLite file it also
// looks whether tables and indexes agree. It returns how many rows it has read.
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
				_, name := r.row()
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
				if _, n := r.row(); n != name {
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
		c.keys.forget()
		return err
	}
	return fmt.Errorf("row %q of table %q: %w", name, table, api.ErrNotFound)
}
