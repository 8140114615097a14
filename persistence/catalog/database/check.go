package database

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
)

// A checkedRow is a row that stands nowhere else and so carries a checksum.
type checkedRow interface {
	// Contents are the row's table, its primary key, and what the checksum is of. What may be lost without harm is left
	// out, such as the last use of a key.
	Contents() (table, key string, fields []any)
	checksum() *int64
}

// Checked is part of every such row.
type Checked struct {
	Checksum int64 `bun:"checksum"`
}

func (c *Checked) checksum() *int64 { return &c.Checksum }

// SetChecksum is called for a row that is to be written.
func SetChecksum(r checkedRow) {
	_, _, fields := r.Contents()
	*r.checksum() = sumOf(fields...)
}

// CheckRow refuses a row that is not as it was written.
func CheckRow(r checkedRow) error {
	table, key, fields := r.Contents()
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

// Contents implements checkedRow.
func (r *OrganizationRow) Contents() (table, key string, fields []any) {
	return "organizations", string(r.ID), []any{string(r.ID), r.Name, r.CreatedAt}
}

// Contents implements checkedRow.
func (r *SettingRow) Contents() (table, key string, fields []any) {
	return "settings", r.Name, []any{r.Name, r.Value}
}

// A Table is a table whose rows carry checksums.
type Table struct {
	Name, key string
	// page reads rows in the order of their keys, from the one after the key given.
	page func(ctx context.Context, db bun.IDB, after string, n int) ([]checkedRow, error)
}

// TableOf is the table of rows R, with the name of its primary key.
func TableOf[R any, P interface {
	*R
	checkedRow
}](key string) Table {
	name, _, _ := P(new(R)).Contents()
	return Table{name, key, func(ctx context.Context, db bun.IDB, after string, n int) ([]checkedRow, error) {
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

// Tables are the tables whose rows carry checksums.
func (db *DB) Tables() []Table { return db.tables }

// each reads all rows of the table.
func (t Table) each(ctx context.Context, db bun.IDB, do func(checkedRow) error) error {
	const page = 512
	for after, more := "", true; more; {
		rows, err := t.page(ctx, db, after, page)
		if err != nil {
			return err
		}
		for _, r := range rows {
			_, after, _ = r.Contents()
			if err := do(r); err != nil {
				return err
			}
		}
		more = len(rows) == page
	}
	return nil
}

// sealRow stores the checksum of a row as it stands.
func (t Table) sealRow(ctx context.Context, db bun.IDB, r checkedRow) error {
	_, key, fields := r.Contents()
	_, err := db.NewRaw("UPDATE ? SET checksum = ? WHERE ? = ?",
		bun.Ident(t.Name), sumOf(fields...), bun.Ident(t.key), key).Exec(ctx)
	return err
}

// sealAll gives all rows their checksums, at the migration that brings these.
func sealAll(ctx context.Context, db bun.IDB, tables []Table) error {
	for _, t := range tables {
		if err := t.each(ctx, db, func(r checkedRow) error { return t.sealRow(ctx, db, r) }); err != nil {
			return fmt.Errorf("compute the checksums of %s: %w", t.Name, err)
		}
	}
	return nil
}

// A Problem is something that is wrong in the catalog.
type Problem struct {
	Table string
	Row   string // empty if it is not one row
	Err   error
}

// Check reads every row that stands nowhere else, and yields those that are not as they were written; of a SQLite file
// it also looks whether tables and indexes agree. It returns how many rows it has read.
func (db *DB) Check(ctx context.Context, yield func(Problem) bool) (rows int, err error) {
	if db.Path != "" {
		var verdicts []string
		if err := db.Read.NewRaw("PRAGMA integrity_check(100)").Scan(ctx, &verdicts); err != nil {
			return 0, db.Fail("check", err)
		}
		for _, v := range verdicts {
			if v != "ok" && !yield(Problem{Err: fmt.Errorf("%w: %s", ErrCorrupt, v)}) {
				return 0, nil
			}
		}
	}
	for _, t := range db.tables {
		stopped := false
		err := t.each(ctx, db.Read, func(r checkedRow) error {
			rows++
			if err := CheckRow(r); err != nil && !stopped {
				_, name, _ := r.Contents()
				stopped = !yield(Problem{t.Name, name, err})
			}
			return nil
		})
		if err != nil || stopped {
			return rows, db.Fail("check "+t.Name, err)
		}
	}
	return rows, nil
}

// Accept takes a damaged row as it stands, once somebody has looked at what it holds.
func (db *DB) Accept(ctx context.Context, table, name string) error {
	for _, t := range db.tables {
		if t.Name != table {
			continue
		}
		err := db.Change(ctx, "accept a damaged row", func(ctx context.Context, tx bun.Tx) error {
			found := false
			err := t.each(ctx, tx, func(r checkedRow) error {
				if _, n, _ := r.Contents(); n != name {
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
		var all []string
		for _, l := range db.lookups {
			all = append(all, l.group)
		}
		db.Forget(slices.Compact(all)...)
		return err
	}
	return fmt.Errorf("row %q of table %q: %w", name, table, api.ErrNotFound)
}
