package database

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/uptrace/bun"

	"docent/api"
)

// CeilMilli is the first stored time that is not before t.
func CeilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// Upsert makes an insert replace columns of existing rows.
func Upsert(insert *bun.InsertQuery, columns ...string) *bun.InsertQuery {
	insert = insert.On("CONFLICT (id) DO UPDATE")
	for _, name := range columns {
		insert = insert.Set("? = EXCLUDED.?", bun.Ident(name), bun.Ident(name))
	}
	return insert
}

// NoProject is api.ErrNotFound of a project.
func NoProject(id api.ProjectID) error { return fmt.Errorf("project %q: %w", id, api.ErrNotFound) }

// A rowOf is a table's row R that stands for a resource T.
type rowOf[T, R any] interface {
	*R
	checkedRow
	Decode() (T, error) // fails if the row is damaged; what has a column of its own comes from there
}

// One reads the row that q selects, or fails with api.ErrNotFound.
func One[T, R any, P rowOf[T, R]](ctx context.Context, db *DB, q *bun.SelectQuery, what string) (T, error) {
	var row R
	var none T
	err := q.Model(&row).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return none, fmt.Errorf("%s: %w", what, api.ErrNotFound)
	}
	if err != nil {
		return none, db.Fail("find "+what, err)
	}
	v, err := P(&row).Decode()
	return v, db.Fail("find "+what, err)
}

// List reads the rows that q selects. It leaves out those that are damaged, and logs them: the others can be served.
func List[T, R any, P rowOf[T, R]](ctx context.Context, db *DB, q *bun.SelectQuery, what string) ([]T, error) {
	var rows []R
	if err := q.Model(&rows).Scan(ctx); err != nil {
		return nil, db.Fail("list "+what, err)
	}
	out := make([]T, 0, len(rows))
	for i := range rows {
		if err := CheckRow(P(&rows[i])); err != nil {
			db.Log.Error("skipped a damaged catalog row", "catalog", db.Name, "error", err)
			continue
		}
		v, err := P(&rows[i]).Decode()
		if err != nil {
			return nil, db.Fail("list "+what, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// Refused is the error for a statement that broke a rule of the schema: taken if there is such a row already,
// missing if what the row belongs to is not there.
func Refused(err, taken, missing error) error {
	switch {
	case taken != nil && violates(err, unique):
		return taken
	case missing != nil && violates(err, reference):
		return missing
	}
	return err
}

// Insert stores a new row, and fails as Refused does.
func Insert(ctx context.Context, tx bun.IDB, row any, taken, missing error) error {
	_, err := tx.NewInsert().Model(row).Exec(ctx)
	return Refused(err, taken, missing)
}

// Lock reads the row that q selects, which others cannot change before the transaction ends. It fails with none if there
// is no such row.
func Lock(ctx context.Context, q *bun.SelectQuery, none error) error {
	err := ForUpdate(q).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return none
	}
	return err
}

// Changed fails with none if a statement has changed nothing.
func Changed(res sql.Result, err, none error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, none)
	}
	return nil
}

// Stamp is the time as it is stored and shown: UTC with milliseconds.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// StampPtr is Stamp of a time that may be missing.
func StampPtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	s := Stamp(*t)
	return &s
}

// Conflict is api.ErrConflict with its reason.
func Conflict(format string, args ...any) error {
	return &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf(format, args...)}
}

// EncodeBody is what of a resource has no column of its own, as JSON.
func EncodeBody(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b, nil
}

// DecodeBody reads what EncodeBody wrote. What cannot be read is damaged.
func DecodeBody(body json.RawMessage, v any, what string) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	return nil
}

// Askable reports whether a text from outside can be asked for at all: PostgreSQL refuses a statement with other bytes.
func Askable(s string) bool {
	return len(s) <= 1024 && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}
