package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docent/internal/background"
	"docent/internal/backoff"
	"docent/persistence/journal"
)

const marksEvery = time.Second // between two writes of the followers' marks

// follows are the followers in this process.
type follows struct {
	mu    sync.Mutex
	list  []*follower
	marks map[string]uint64 // acknowledged and not written yet
}

func (f *follows) init() { f.marks = make(map[string]uint64) }

type follower struct {
	*Journal
	name string
	c    chan struct{}
}

// Follow is journal.Journal.Follow. Followers of several nodes may have the same name: what one acknowledges is
// acknowledged for all.
func (j *Journal) Follow(name string) (journal.Follower, error) {
	if len(name) == 0 || len(name) > 255 || !storable(name) {
		return nil, fmt.Errorf("a follower's name has 1 to 255 bytes")
	}
	err := j.read("follow the journal as "+name, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, j.reads, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = on"); err != nil { // from now on it holds events
				return err
			}
			_, err := tx.Exec(ctx, "INSERT INTO journal_followers VALUES ($1, 0) ON CONFLICT DO NOTHING", name)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	f := &follower{j, name, make(chan struct{}, 1)}
	f.c <- struct{}{}
	j.follows.mu.Lock()
	j.follows.list = append(j.follows.list, f)
	j.follows.mu.Unlock()
	return f, nil
}

func (f *follower) Changed() <-chan struct{} { return f.c }

func (f *follower) Ack(pos uint64) {
	f.follows.mu.Lock()
	defer f.follows.mu.Unlock()
	f.follows.marks[f.name] = max(f.follows.marks[f.name], pos)
}

func (f *follower) End() (uint64, error) {
	var position uint64
	err := f.read("read where the journal ends", func(ctx context.Context) (err error) {
		position, err = f.standing(ctx, f.reads)
		return err
	})
	return position, err
}

func (f *follower) Close() {
	f.follows.mu.Lock()
	defer f.follows.mu.Unlock()
	f.follows.list = slices.DeleteFunc(f.follows.list, func(other *follower) bool { return other == f })
}

// Position is the position of the last event that this node has heard of; of its own ones, all.
func (j *Journal) Position() uint64 { return j.position.Load() }

// Trimmed is journal.Journal.Trimmed, as far as this node has heard.
func (j *Journal) Trimmed() uint64 { return j.trimmed.Load() }

// advance tells the followers of a new position.
func (j *Journal) advance(pos uint64) {
	for {
		old := j.position.Load()
		if pos <= old {
			return
		}
		if j.position.CompareAndSwap(old, pos) {
			break
		}
	}
	j.follows.mu.Lock()
	defer j.follows.mu.Unlock()
	for _, f := range j.follows.list {
		select {
		case f.c <- struct{}{}:
		default:
		}
	}
}

// whileOpen is a context that ends when the journal begins to close.
func (j *Journal) whileOpen() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(j.context)
	background.Go("persistence/journal/postgres.whileOpen", func() {
		select {
		case <-j.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// listenLoop hears of what other nodes write.
func (j *Journal) listenLoop() {
	ctx, cancel := j.whileOpen()
	defer cancel()
	pause := backoff.Exponential(50*time.Millisecond, reconnectMost)
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		err := j.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		j.log.Debug("the journal's notifications ended", "journal", j.name, "error", err)
		if time.Since(began) > time.Minute {
			n = 1
		}
		_ = backoff.Sleep(ctx, pause(n))
	}
}

func (j *Journal) listen(ctx context.Context) error {
	c, err := j.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{j.topic}.Sanitize()); err != nil {
		return err
	}
	for {
		if err := j.look(ctx, c); err != nil { // what came before, and what no notification told
			return err
		}
		poll, cancel := context.WithTimeout(ctx, j.opts.Poll)
		for poll.Err() == nil {
			told, err := c.WaitForNotification(poll)
			if err != nil {
				if poll.Err() == nil || c.IsClosed() {
					cancel()
					return err
				}
				break
			}
			pos, err := strconv.ParseUint(told.Payload, 10, 63)
			if err != nil { // a node has seen that commits are lost
				break
			}
			j.advance(pos)
		}
		cancel()
	}
}

func (j *Journal) look(ctx context.Context, c querier) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := j.standing(ctx, c)
	return err
}

// A querier is a connection, or a pool of them.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// standing reads where the journal ends, and tells the followers. A server that knows less than was acknowledged before,
// or of whose losses another node has told, has lost commits: it was a replica that had not got them all.
func (j *Journal) standing(ctx context.Context, c querier) (uint64, error) {
	for again := false; ; again = true {
		if j.lost.Load() {
			return 0, journal.ErrFenced
		}
		known, batch := j.position.Load(), j.commits.batch.Load() // before the server is asked
		var position, trimmed, losses, written int64
		var replica bool
		var clock time.Time
		asked, began := j.opts.wall(), time.Now()
		if err := c.QueryRow(ctx, "SELECT h.position, s.trimmed, s.losses, pg_is_in_recovery(), clock_timestamp(), "+
			"coalesce((SELECT batch FROM journal_writers WHERE writer = $1), -1) FROM journal_head h, journal_state s", j.writer).
			Scan(&position, &trimmed, &losses, &replica, &clock, &written); err != nil {
			return 0, err
		}
		fewer := uint64(position) < known || written < batch
		switch {
		case replica: // it may lag, and become the server, or not
			return 0, errors.New("the server is a replica for now")
		case losses != j.losses:
			j.lose(false)
		case fewer && again:
			j.lose(true)
		case fewer: // a replica that becomes the server may have been asked in between
		default:
			j.tells(clock, asked, time.Since(began))
			j.advance(uint64(position))
			j.heardTrimmed(uint64(trimmed))
			return uint64(position), nil
		}
	}
}

// lostReason is why a node ends whose database has lost commits.
const lostReason = "the database has lost what it had acknowledged: use synchronous replication"

// lose stops all writes of this process. If it is the first to see the loss, the others hear of it: by then
// the server may have got as many events as it had, others, and they could not tell.
func (j *Journal) lose(first bool) {
	j.fenced.Store(true)
	if j.lost.Swap(true) {
		return
	}
	j.snaps.forget()
	j.log.Error(lostReason, "journal", j.name)
	if first {
		ctx, cancel := context.WithTimeout(j.context, time.Second)
		defer cancel()
		if _, err := j.reads.Exec(ctx, "WITH told AS (UPDATE journal_state SET losses = losses + 1 WHERE losses = $1 RETURNING 1) "+
			"SELECT pg_notify($2, 'loss') FROM told", j.losses, j.topic); err != nil {
			j.log.Warn("other nodes must notice on their own what the database has lost", "journal", j.name, "error", err)
		}
	}
	if j.opts.Lost != nil {
		j.opts.Lost(lostReason)
	}
}

func (j *Journal) heardTrimmed(to uint64) {
	for old := j.trimmed.Load(); to > old && !j.trimmed.CompareAndSwap(old, to); {
		old = j.trimmed.Load()
	}
}

// storeMarks writes what followers have acknowledged.
func (j *Journal) storeMarks(ctx context.Context, conn querier) error {
	j.follows.mu.Lock()
	marks := j.follows.marks
	j.follows.marks = make(map[string]uint64)
	j.follows.mu.Unlock()
	if len(marks) == 0 {
		return nil
	}
	var names []string
	var acked []int64
	for name, pos := range marks {
		names, acked = append(names, name), append(acked, number(pos))
	}
	_, err := conn.Exec(ctx, "INSERT INTO journal_followers AS f SELECT * FROM unnest($1::text[], $2::bigint[]) m(name, acked) "+
		"ORDER BY name ON CONFLICT (name) DO UPDATE SET acked = excluded.acked WHERE f.acked < excluded.acked", names, acked)
	if err != nil {
		j.follows.mu.Lock()
		for name, pos := range marks {
			j.follows.marks[name] = max(j.follows.marks[name], pos)
		}
		j.follows.mu.Unlock()
	}
	return err
}
