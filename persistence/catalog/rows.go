package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"docent/api"

	"github.com/uptrace/bun"
)

// A rowOf is a table's row R that stands for a resource T.
type rowOf[T, R any] interface {
	*R
	checkedRow
	value() (T, error) // fails where the row is damaged; what has a column of its own comes from there
}

// one reads the row that q selects, or fails with api.ErrNotFound.
func one[T, R any, P rowOf[T, R]](ctx context.Context, c *Catalog, q *bun.SelectQuery, what string) (T, error) {
	var row R
	var none T
	err := q.Model(&row).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return none, fmt.Errorf("%s: %w", what, api.ErrNotFound)
	}
	if err != nil {
		return none, c.fail("find "+what, err)
	}
	v, err := P(&row).value()
	return v, c.fail("find "+what, err)
}

// list reads the rows that q selects. It leaves out those that are damaged, and logs them: the others can be served.
func list[T, R any, P rowOf[T, R]](ctx context.Context, c *Catalog, q *bun.SelectQuery, what string) ([]T, error) {
	var rows []R
	if err := q.Model(&rows).Scan(ctx); err != nil {
		return nil, c.fail("list "+what, err)
	}
	out := make([]T, 0, len(rows))
	for i := range rows {
		if err := checkRow(P(&rows[i])); err != nil {
			c.log.Error("a row of the catalogue is left out", "catalog", c.name, "error", err)
			continue
		}
		v, err := P(&rows[i]).value()
		if err != nil {
			return nil, c.fail("list "+what, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// changed fails with none where a statement has changed nothing.
func changed(res sql.Result, err, none error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, none)
	}
	return nil
}

// stamp is the time as it is stored and shown: UTC with milliseconds.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func stampPtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	s := stamp(*t)
	return &s
}

func conflict(format string, args ...any) error {
	return &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf(format, args...)}
}

func encodeBody(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b, nil
}

func decodeBody(body json.RawMessage, v any, what string) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	return nil
}

// askable reports whether a text from outside can be asked for at all: PostgreSQL refuses a statement with other bytes.
func askable(s string) bool {
	return len(s) <= 1024 && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}
