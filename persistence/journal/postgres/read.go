package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/api"
	"docent/internal/backoff"
	"docent/persistence/journal"
)

// readChunk is how many entries are read at a time, so that no connection is held while somebody takes his time with
// them.
const readChunk = 1024

// read calls f to read. If the database does not answer, it calls f again, from its start, for as long as patience
// lasts.
func (j *Journal) read(doing string, f func(ctx context.Context) error) error {
	pause := backoff.Exponential(50*time.Millisecond, reconnectMost)
	began := time.Now()
	for n := 1; ; n++ {
		ctx, cancel := context.WithTimeout(j.context, answerTimeout)
		err := f(ctx)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, journal.ErrCorrupt) || errors.Is(err, journal.ErrFenced) || !passing(err):
			return fmt.Errorf("%s: %w", doing, err)
		case j.context.Err() != nil:
			return fmt.Errorf("%s: %w", doing, api.ErrShuttingDown)
		case time.Since(began) > j.opts.Patience:
			return fmt.Errorf("%s: %w", doing, j.unavailable(err))
		}
		_ = backoff.Sleep(j.context, pause(n))
	}
}

// each reads the rows of a query.
func (j *Journal) each(ctx context.Context, row func(pgx.Rows) error, query string, args ...any) error {
	rows, err := j.reads.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// number is a position as PostgreSQL has it.
func number(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func (j *Journal) damaged(stream string, seq uint64, what string) error {
	return fmt.Errorf("%w: event of stream %q, sequence %d, in %s: %s", journal.ErrCorrupt, stream, seq, j.name, what)
}

// loadStreams reads what there is of streams in one statement, and so as of one moment: of each its snapshot, the
// events after it, and last its row.
const loadStreams = `SELECT stream, 0 AS part, seq, NULL AS type, state FROM journal_snapshots WHERE stream = ANY ($1)
UNION ALL SELECT e.stream, 1, e.seq, e.type, e.data FROM journal_events e
	WHERE e.stream = ANY ($1) AND e.seq > coalesce((SELECT seq FROM journal_snapshots s WHERE s.stream = e.stream), 0)
UNION ALL SELECT stream, 2, last, NULL, NULL FROM journal_streams WHERE stream = ANY ($1)
ORDER BY 1, 2, 3`

// streamsOf yields what there is of streams. One that is damaged has an error.
func (j *Journal) streamsOf(ctx context.Context, names []string,
	yield func(stream string, rec journal.Recovered, err error)) error {
	var rec journal.Recovered
	var damage error
	current := ""
	return j.each(ctx, func(rows pgx.Rows) error {
		var stream string
		var part int
		var seq int64
		var kind *string
		var data []byte
		if err := rows.Scan(&stream, &part, &seq, &kind, &data); err != nil {
			return err
		}
		if stream != current {
			current, rec, damage = stream, journal.Recovered{}, nil
		}
		at := uint64(seq)
		switch part {
		case 0:
			rec.Seq, rec.SnapSeq, rec.Snapshot = at, at, notNil(data)
		case 1:
			if at != rec.Seq+1 && damage == nil {
				damage = j.damaged(stream, rec.Seq+1, "it is missing")
			}
			event := journal.Event{Data: notNil(data)}
			if kind != nil {
				event.Type = *kind
			}
			rec.Seq, rec.Events = at, append(rec.Events, event)
		case 2:
			if at != rec.Seq && damage == nil {
				damage = j.damaged(stream, at, "it is missing")
			}
			yield(stream, rec, damage)
		}
		return nil
	}, loadStreams, names)
}

// Load is journal.Journal.Load. While the database does not answer it waits, and then fails with an error that wraps
// api.ErrUnavailable.
func (j *Journal) Load(stream string) (rec journal.Recovered, err error) {
	if !storable(stream) {
		return rec, nil // nobody wrote it
	}
	err = j.read("load "+stream, func(ctx context.Context) (err error) {
		rec = journal.Recovered{}
		return errors.Join(j.streamsOf(ctx, []string{stream}, func(_ string, found journal.Recovered, damage error) {
			rec, err = found, damage
		}), err)
	})
	if err != nil {
		return journal.Recovered{}, err
	}
	return rec, nil
}

// LoadSince is journal.Journal.LoadSince.
func (j *Journal) LoadSince(stream string, pos uint64) (first uint64, events []journal.Event, err error) {
	if !storable(stream) {
		return 0, nil, nil
	}
	err = j.read("load "+stream, func(ctx context.Context) error {
		first, events = 0, nil
		return j.each(ctx, func(rows pgx.Rows) error {
			var seq int64
			var e journal.Event
			if err := rows.Scan(&seq, &e.Type, &e.Data); err != nil {
				return err
			}
			if len(events) == 0 {
				first = uint64(seq)
			}
			if uint64(seq) != first+uint64(len(events)) {
				return j.damaged(stream, first+uint64(len(events)), "it is missing")
			}
			e.Data = notNil(e.Data)
			events = append(events, e)
			return nil
		}, "SELECT seq, type, data FROM journal_events WHERE stream = $1 AND seq > 0 AND position > $2 ORDER BY seq",
			stream, number(pos))
	})
	return first, events, err
}

// Claim is journal.Journal.Claim.
func (j *Journal) Claim(key string, now time.Time) (journal.Claim, bool, error) {
	c := journal.Claim{Key: key}
	found := false
	err := j.read("look up a claim", func(ctx context.Context) error {
		var digest []byte
		var expires int64
		err := j.reads.QueryRow(ctx, "SELECT digest, owner, ref, expires FROM journal_claims WHERE key = $1 AND expires > $2",
			[]byte(key), now.UnixNano()).Scan(&digest, &c.Owner, &c.Ref, &expires)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && copy(c.Digest[:], digest) != len(c.Digest) {
			return fmt.Errorf("%w: the claim of %s in %s", journal.ErrCorrupt, c.Owner, j.name)
		}
		c.Expires, found = time.Unix(0, expires), err == nil
		return err
	})
	if err != nil || !found {
		return journal.Claim{}, false, err
	}
	return c, true, nil
}

// Pending is journal.Journal.Pending: of all shards.
func (j *Journal) Pending(yield func(stream string) bool) error {
	return j.PendingIn(nil, yield)
}

// PendingIn is Pending of some shards; of all of them if the list is nil.
func (j *Journal) PendingIn(shards []int, yield func(stream string) bool) error {
	var names []string
	err := j.read("find the streams that call for work", func(ctx context.Context) error {
		names = nil
		return j.each(ctx, func(rows pgx.Rows) error {
			var stream string
			err := rows.Scan(&stream)
			names = append(names, stream)
			return err
		}, "SELECT stream FROM journal_streams WHERE pending AND ($1::int[] IS NULL OR shard = ANY ($1)) ORDER BY stream",
			shards)
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if !yield(name) {
			break
		}
	}
	return nil
}

// Streams yields every stream with what Load would find of it. Damaged ones are left out.
func (j *Journal) Streams(yield func(stream string, rec journal.Recovered) bool) error {
	const chunk = 64
	after := ""
	for {
		var names []string
		type found struct {
			stream string
			rec    journal.Recovered
		}
		var list []found
		err := j.read("read the streams", func(ctx context.Context) error {
			names, list = nil, nil
			if err := j.each(ctx, func(rows pgx.Rows) error {
				var stream string
				err := rows.Scan(&stream)
				names = append(names, stream)
				return err
			}, "SELECT stream FROM journal_streams WHERE stream > $1 ORDER BY stream LIMIT $2", after, chunk); err != nil {
				return err
			}
			return j.streamsOf(ctx, names, func(stream string, rec journal.Recovered, err error) {
				if err == nil {
					list = append(list, found{stream, rec})
				}
			})
		})
		if err != nil {
			return err
		}
		for _, f := range list {
			if !yield(f.stream, f.rec) {
				return nil
			}
		}
		if len(names) < chunk {
			return nil
		}
		after = names[len(names)-1]
	}
}

// changes reads what changed after a position, in one statement: a stream whose event was removed meanwhile is named
// at its snapshot's position, which is later.
const changes = `(SELECT position, stream FROM journal_events WHERE position > $1 ORDER BY position LIMIT $2)
UNION (SELECT position, stream FROM journal_snapshots WHERE position > $1 ORDER BY position LIMIT $2)
ORDER BY 1 LIMIT $2`

// Since is journal.Journal.Since.
func (j *Journal) Since(pos uint64, yield func(pos uint64, stream string) bool) error {
	type change struct {
		pos    int64
		stream string
	}
	for at := number(pos); ; {
		var list []change
		err := j.read("read the log", func(ctx context.Context) error {
			list = nil
			return j.each(ctx, func(rows pgx.Rows) error {
				var c change
				err := rows.Scan(&c.pos, &c.stream)
				list = append(list, c)
				return err
			}, changes, at, readChunk)
		})
		if err != nil {
			return err
		}
		for _, c := range list {
			if !yield(uint64(c.pos), c.stream) {
				return nil
			}
			at = c.pos
		}
		if len(list) < readChunk {
			return nil
		}
	}
}

// logBytes is how many bytes of events are read at a time, or a little more.
const logBytes = 1 << 20

// Log is journal.Journal.Log. What is not wanted is not read.
func (j *Journal) Log(pos uint64, wanted func(eventType string) bool, yield func(journal.Logged) bool) error {
	for at := number(pos); ; {
		var list []journal.Logged
		var sizes []int
		err := j.read("read the log", func(ctx context.Context) error {
			list, sizes = nil, nil
			return j.each(ctx, func(rows pgx.Rows) error {
				var position, seq int64
				var kind *string
				var e journal.Logged
				var size int
				if err := rows.Scan(&position, &e.Stream, &seq, &kind, &size); err != nil {
					return err
				}
				e.Pos, e.Removed = uint64(position), kind == nil
				if !e.Removed {
					e.Seq, e.Event.Type = uint64(seq), *kind
				}
				list, sizes = append(list, e), append(sizes, size)
				return nil
			}, "SELECT position, stream, seq, type, coalesce(octet_length(data), 0) FROM journal_events "+
				"WHERE position > $1 ORDER BY position LIMIT $2", at, readChunk)
		})
		if err != nil {
			return err
		}
		n := len(list)
		if n > 0 {
			at = int64(list[n-1].Pos)
		}
		for len(list) > 0 {
			part, size := 0, 0
			for part < len(list) && size < logBytes {
				size += sizes[part]
				part++
			}
			if goOn, err := j.logPart(list[:part], wanted, yield); err != nil || !goOn {
				return err
			}
			list, sizes = list[part:], sizes[part:]
		}
		if n < readChunk {
			return nil
		}
	}
}

// logPart reads the data of those events of a part of the log that are wanted.
func (j *Journal) logPart(part []journal.Logged, wanted func(string) bool, yield func(journal.Logged) bool) (bool, error) {
	var positions []int64
	for i := range part {
		if e := &part[i]; !e.Removed && wanted(e.Event.Type) {
			positions = append(positions, int64(e.Pos))
		}
	}
	data := make(map[uint64][]byte, len(positions))
	if len(positions) > 0 {
		err := j.read("read the log", func(ctx context.Context) error {
			clear(data)
			return j.each(ctx, func(rows pgx.Rows) error {
				var pos int64
				var b []byte
				err := rows.Scan(&pos, &b)
				data[uint64(pos)] = notNil(b)
				return err
			}, "SELECT position, data FROM journal_events WHERE position = ANY ($1)", positions)
		})
		if err != nil {
			return false, err
		}
	}
	for _, e := range part {
		if !e.Removed {
			var there bool
			if e.Event.Data, there = data[e.Pos]; !there {
				continue // not wanted, or removed meanwhile
			}
		}
		if !yield(e) {
			return false, nil
		}
	}
	return true, nil
}
