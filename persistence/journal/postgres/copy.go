package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/persistence/quota"

	"github.com/jackc/pgx/v5"
)

// Contents yields everything that the journal in the transaction's database holds, as journal.Inspection.Contents does of
// a file. The transaction is to see one state of the database: repeatable read.
func Contents(ctx context.Context, tx pgx.Tx, yield func(any) error) error {
	var h journal.Head
	err := tx.QueryRow(ctx, `SELECT h.id, h.position, s.trimmed, s.catalog, s.revision FROM journal_head h, journal_state s`).
		Scan(&h.Identity.ID, &h.Position, &h.Trimmed, &h.Identity.Catalog, &h.Identity.Revision)
	if err == nil {
		err = yield(h)
	}
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	for _, part := range parts {
		rows, err := tx.Query(ctx, part.query)
		if err != nil {
			return fmt.Errorf("read %s: %w", part.table, err)
		}
		for rows.Next() {
			of, err := part.scan(rows)
			if err == nil {
				err = yield(of)
			}
			if err != nil {
				rows.Close()
				return fmt.Errorf("read %s: %w", part.table, err)
			}
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("read %s: %w", part.table, err)
		}
	}
	return nil
}

// A part of what a journal holds, in the order of journal.Inspection.Contents.
type part struct {
	table   string
	columns []string
	query   string
	scan    func(pgx.Rows) (any, error)
	is      func(of any) bool
	values  func(of any) ([]any, error)
}

var parts = []part{{
	table: "journal_streams",
	query: `SELECT stream FROM journal_streams WHERE pending ORDER BY stream`,
	scan: func(rows pgx.Rows) (any, error) {
		var stream string
		err := rows.Scan(&stream)
		return journal.PendingStream(stream), err
	},
	is: is[journal.PendingStream], // they are written with all other streams, at the end
}, {
	table:   "journal_events",
	columns: []string{"stream", "seq", "position", "type", "data"},
	query:   `SELECT stream, greatest(seq, 0), position, seq < 0, coalesce(type, ''), data FROM journal_events ORDER BY position`,
	scan: func(rows pgx.Rows) (any, error) {
		var e journal.Entry
		err := rows.Scan(&e.Stream, &e.Seq, &e.Pos, &e.Removed, &e.Event.Type, &e.Event.Data)
		e.Event.Data = orNil(e.Event.Data)
		return e, err
	},
	is: is[journal.Entry],
	values: func(of any) ([]any, error) {
		e := of.(journal.Entry)
		if e.Removed {
			return []any{e.Stream, -int64(e.Pos), int64(e.Pos), nil, nil}, nil
		}
		return []any{e.Stream, int64(e.Seq), int64(e.Pos), e.Event.Type, orEmpty(e.Event.Data)}, nil
	},
}, {
	table:   "journal_snapshots",
	columns: []string{"stream", "seq", "position", "state"},
	query:   `SELECT stream, seq, position, state FROM journal_snapshots ORDER BY stream`,
	scan: func(rows pgx.Rows) (any, error) {
		var s journal.State
		err := rows.Scan(&s.Stream, &s.Seq, &s.Pos, &s.State)
		s.State = orNil(s.State)
		return s, err
	},
	is: is[journal.State],
	values: func(of any) ([]any, error) {
		s := of.(journal.State)
		return []any{s.Stream, int64(s.Seq), int64(s.Pos), orEmpty(s.State)}, nil
	},
}, {
	table:   "journal_claims",
	columns: []string{"key", "digest", "owner", "ref", "expires"},
	query:   `SELECT key, digest, owner, ref, expires FROM journal_claims ORDER BY key`,
	scan: func(rows pgx.Rows) (any, error) {
		var c journal.Claim
		var key, digest []byte
		var expires int64
		if err := rows.Scan(&key, &digest, &c.Owner, &c.Ref, &expires); err != nil {
			return nil, err
		}
		if c.Key = string(key); copy(c.Digest[:], digest) != len(c.Digest) || len(digest) != len(c.Digest) {
			return nil, fmt.Errorf("%w: the claim of key %q has a digest of %d bytes", journal.ErrCorrupt, key, len(digest))
		}
		c.Expires = time.Unix(0, expires).UTC()
		return c, nil
	},
	is: is[journal.Claim],
	values: func(of any) ([]any, error) {
		c := of.(journal.Claim)
		return []any{[]byte(c.Key), c.Digest[:], c.Owner, c.Ref, c.Expires.UnixNano()}, nil
	},
}, {
	table:   "journal_uses",
	columns: []string{"kind", "key", "ends", "count"},
	query:   `SELECT kind, key, ends, count FROM journal_uses ORDER BY ends, kind, key`,
	scan: func(rows pgx.Rows) (any, error) {
		var c journal.Count
		var kind int16
		var key []byte
		err := rows.Scan(&kind, &key, &c.End, &c.Count)
		c.Window, c.Key = quota.Window(kind), string(key)
		return c, err
	},
	is: is[journal.Count],
	values: func(of any) ([]any, error) {
		c := of.(journal.Count)
		return []any{int16(c.Window), []byte(c.Key), c.End, int32(c.Count)}, nil
	},
}, {
	table:   "journal_followers",
	columns: []string{"name", "acked"},
	query:   `SELECT name, acked FROM journal_followers ORDER BY name COLLATE "C"`,
	scan: func(rows pgx.Rows) (any, error) {
		var m journal.Mark
		err := rows.Scan(&m.Follower, &m.Pos)
		return m, err
	},
	is: is[journal.Mark],
	values: func(of any) ([]any, error) {
		m := of.(journal.Mark)
		return []any{m.Follower, int64(m.Pos)}, nil
	},
}}

func is[T any](of any) bool {
	_, ok := of.(T)
	return ok
}

// orNil and orEmpty: a column of bytes is never null, and nothing is nil in the contents of a journal.
func orNil(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}

func orEmpty(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// Empty reports whether nobody has written anything to the journal in the transaction's database yet.
func Empty(ctx context.Context, tx pgx.Tx) (empty bool, err error) {
	err = tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM journal_head WHERE position > 0)
		AND NOT EXISTS (SELECT FROM journal_streams) AND NOT EXISTS (SELECT FROM journal_events)`).Scan(&empty)
	return empty, err
}

// Import writes what contents yields, in the order of journal.Inspection.Contents, into the empty journal of the
// transaction's database, whose identity it replaces. Nobody else may write meanwhile: the head is locked until the
// transaction ends.
func Import(ctx context.Context, tx pgx.Tx, contents func(yield func(any) error) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("import the journal into PostgreSQL: %w", err)
		}
	}()
	if _, err := tx.Exec(ctx, `SELECT FROM journal_head FOR UPDATE`); err != nil {
		return err
	}
	if empty, err := Empty(ctx, tx); err != nil || !empty {
		return errors.Join(err, errors.New("the database holds a journal already"))
	}
	for _, table := range []string{"journal_uses", "journal_claims", "journal_snapshots", "journal_followers", "journal_writers"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	r := newReader(contents)
	defer r.stop()
	h, ok := r.of.(journal.Head)
	if !ok {
		return errors.Join(errors.New("what was read has no head"), r.err)
	}
	r.next()
	for _, part := range parts {
		if part.values == nil {
			for r.more && part.is(r.of) {
				r.next()
			}
			continue
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{part.table}, part.columns, &section{part: part, reader: r}); err != nil {
			return fmt.Errorf("write %s: %w", part.table, err)
		}
	}
	switch {
	case r.err != nil:
		return r.err
	case r.more:
		return fmt.Errorf("a %T is out of order, or nothing that a journal holds", r.of)
	}
	if err := r.streams(ctx, tx); err != nil {
		return fmt.Errorf("write journal_streams: %w", err)
	}
	if _, err := tx.Exec(ctx, `UPDATE journal_head SET id = $1, position = $2`, h.Identity.ID, int64(h.Position)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE journal_state SET trimmed = $1, catalog = $2, revision = $3`, int64(h.Trimmed),
		h.Identity.Catalog, int64(h.Identity.Revision))
	return err
}

// A reader takes the contents one by one, and notes which streams there are.
type reader struct {
	pull    func() (any, bool)
	stop    func()
	of      any
	more    bool
	err     error // of the contents
	lasts   map[string]uint64
	pending map[string]bool
}

func newReader(contents func(yield func(any) error) error) *reader {
	r := &reader{lasts: make(map[string]uint64), pending: make(map[string]bool)}
	stopped := errors.New("stopped")
	r.pull, r.stop = iter.Pull(func(yield func(any) bool) {
		r.err = contents(func(of any) error {
			if !yield(of) {
				return stopped
			}
			return nil
		})
	})
	r.next()
	return r
}

func (r *reader) next() {
	switch of := r.of.(type) {
	case journal.PendingStream:
		r.pending[string(of)] = true
	case journal.Entry:
		if of.Removed {
			delete(r.lasts, of.Stream)
		} else {
			r.lasts[of.Stream] = of.Seq
		}
	case journal.State:
		r.lasts[of.Stream] = max(r.lasts[of.Stream], of.Seq)
	}
	r.of, r.more = r.pull()
}

// streams writes the rows of all streams.
func (r *reader) streams(ctx context.Context, tx pgx.Tx) error {
	for stream := range r.pending {
		if _, ok := r.lasts[stream]; !ok {
			return fmt.Errorf("%w: stream %q calls for work and holds nothing", journal.ErrCorrupt, stream)
		}
	}
	next, stop := iter.Pull2(func(yield func(string, uint64) bool) {
		for stream, last := range r.lasts {
			if !yield(stream, last) {
				return
			}
		}
	})
	defer stop()
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"journal_streams"}, []string{"stream", "last", "pending", "shard"},
		pgx.CopyFromFunc(func() ([]any, error) {
			stream, last, ok := next()
			if !ok {
				return nil, nil
			}
			return []any{stream, int64(last), r.pending[stream], int16(cluster.Shard(stream))}, nil
		}))
	return err
}

// A section is the contents of one table.
type section struct {
	part
	*reader
	row any
}

func (s *section) Next() bool {
	if !s.more || !s.is(s.of) {
		return false
	}
	s.row = s.of
	s.next()
	return true
}

func (s *section) Values() ([]any, error) { return s.values(s.row) }
func (s *section) Err() error             { return s.err }
