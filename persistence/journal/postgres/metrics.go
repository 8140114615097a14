package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
	"docent/internal/backoff"
	"docent/persistence/journal"
)

type metrics struct {
	appends, refused, failed, commits, events, bytes, snapshots, trimmed atomic.Uint64

	down          atomic.Bool
	committedAt   atomic.Int64 // in nanoseconds since 1970; 0 before the first commit
	pending, size atomic.Int64 // as last counted in the database
	times         journal.Times
}

// observe counts one batch.
func (m *metrics) observe(appends, done, events, bytes int, took time.Duration, err error) {
	if err != nil {
		m.failed.Add(uint64(appends))
		return
	}
	m.appends.Add(uint64(done))
	m.refused.Add(uint64(appends - done))
	m.commits.Add(1)
	m.committedAt.Store(time.Now().UnixNano())
	m.events.Add(uint64(events))
	m.bytes.Add(uint64(bytes))
	m.times.Commit.Observe(took.Seconds())
	m.times.Group.Observe(float64(appends))
}

// count asks the database what only it knows.
func (j *Journal) count(ctx context.Context) error {
	var pending, size int64
	err := j.reads.QueryRow(ctx, "SELECT (SELECT count(*) FROM journal_streams WHERE pending), "+
		"pg_total_relation_size('journal_events') + pg_total_relation_size('journal_snapshots') + "+
		"pg_total_relation_size('journal_streams') + pg_total_relation_size('journal_claims') + "+
		"pg_total_relation_size('journal_uses')").Scan(&pending, &size)
	if err == nil {
		j.metrics.pending.Store(pending)
		j.metrics.size.Store(size)
	}
	return err
}

// Stats tells how the journal stands. What this process did, it has counted; the calls for work and the size are those
// of the whole database, as they were some time ago if it does not answer.
func (j *Journal) Stats() journal.Stats {
	if !j.metrics.down.Load() && !j.stopping() {
		ctx, cancel := context.WithTimeout(j.context, time.Second)
		defer cancel()
		_ = j.count(ctx) // the figures are the last ones then
	}
	m := &j.metrics
	s := journal.Stats{
		Appends: m.appends.Load(), Refused: m.refused.Load(), Failed: m.failed.Load(), Commits: m.commits.Load(),
		Events: m.events.Load(), Bytes: m.bytes.Load(), Snapshots: m.snapshots.Load(), Trimmed: m.trimmed.Load(),
		Position: j.Position(), Down: m.down.Load(), Pending: int(m.pending.Load()), FileBytes: m.size.Load(),
	}
	if at := m.committedAt.Load(); at != 0 {
		s.Committed = time.Unix(0, at).UTC()
	}
	return s
}

func (j *Journal) stopping() bool {
	select {
	case <-j.stop:
		return true
	default:
		return false
	}
}

// Describe implements prometheus.Collector.
func (j *Journal) Describe(c chan<- *prometheus.Desc) { j.metrics.times.Describe(c) }

// Collect implements prometheus.Collector.
func (j *Journal) Collect(c chan<- prometheus.Metric) { j.metrics.times.Collect(c, j.Stats()) }

// Moves is journal.Journal.Moves. A database that does not answer does not make the journal hang: that is noticed, and
// appends are refused.
func (j *Journal) Moves(ctx context.Context) error {
	c := &j.commits
	began := c.rounds.Load()
	for {
		c.mu.Lock()
		waiting := len(c.queue) + len(c.ops)
		closed := c.closed
		c.mu.Unlock()
		if closed || c.rounds.Load() != began || j.metrics.down.Load() || waiting == 0 && c.idle.Load() {
			return nil
		}
		if backoff.Sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("the journal does not move: %d appends wait behind one that does not end", waiting)
		}
	}
}

// Identity is what the journal says of itself now. If the database does not answer, it is what was known last.
// What the catalog had seen is left out: it is in the same database and goes back with the journal, while a follower's
// mark may be written after a failover by a node that has yet to notice it. If events of a listing are gone, the
// listing is rebuilt.
func (j *Journal) Identity() journal.Identity {
	is := journal.Identity{ID: j.id, Position: j.Position()}
	var position, revision int64
	err := j.read("read the journal's identity", func(ctx context.Context) error {
		return j.reads.QueryRow(ctx, "SELECT h.position, s.catalog, s.revision FROM journal_head h, journal_state s").
			Scan(&position, &is.Catalog, &revision)
	})
	if err != nil {
		j.log.Warn("what the journal knows of the catalog cannot be read", "journal", j.name, "error", err)
		return is
	}
	j.advance(uint64(position))
	is.Position, is.Revision = uint64(position), uint64(revision)
	return is
}

// Remember is journal.Journal.Remember. The nodes hear of the catalog's changes at different times: the last counts.
func (j *Journal) Remember(is journal.Identity) error {
	err := j.read("remember the catalog in the journal", func(ctx context.Context) error {
		conn, err := j.reads.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		if err := j.look(ctx, conn); err != nil { // the catalog has lost what the journal has
			return err
		}
		_, err = conn.Exec(ctx, "UPDATE journal_state SET catalog = $1, revision = CASE WHEN catalog = $1 "+
			"THEN greatest(revision, $2) ELSE $2 END WHERE catalog <> $1 OR revision < $2", is.Catalog, number(is.Revision))
		return err
	})
	if err != nil && (j.context.Err() != nil || errors.Is(err, journal.ErrFenced)) {
		return api.ErrShuttingDown
	}
	return err
}

// Delete is journal.Journal.Delete.
func (j *Journal) Delete(stream string, claims ...string) error {
	if !storable(stream) {
		return nil // nobody wrote it
	}
	keys := make([][]byte, len(claims))
	for i, key := range claims {
		keys[i] = []byte(key)
	}
	j.snaps.drop(stream)
	err := j.do(func(ctx context.Context, conn *pgx.Conn) error {
		var head int64
		err := conn.QueryRow(ctx, "SELECT journal_remove_1($1, $2, $3)", j.opts.Node, stream, keys).Scan(&head)
		if err == nil {
			j.advance(uint64(head))
		}
		return err
	})
	if err != nil && !errors.Is(err, journal.ErrFenced) && !errors.Is(err, api.ErrShuttingDown) && passing(err) {
		err = j.unavailable(err)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", stream, err)
	}
	return nil
}
