package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/backoff"
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
	j    *Journal
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
		_, err := j.reads.Exec(ctx, "INSERT INTO journal_followers VALUES ($1, 0) ON CONFLICT DO NOTHING", name)
		return err
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
	f.j.follows.mu.Lock()
	defer f.j.follows.mu.Unlock()
	f.j.follows.marks[f.name] = max(f.j.follows.marks[f.name], pos)
}

func (f *follower) Position() uint64 { return f.j.Position() }
func (f *follower) Trimmed() uint64  { return f.j.Trimmed() }

func (f *follower) Head() (uint64, error) {
	var position int64
	err := f.j.read("read where the journal ends", func(ctx context.Context) error {
		return f.j.reads.QueryRow(ctx, "SELECT position FROM journal_head").Scan(&position)
	})
	if err != nil {
		return 0, err
	}
	f.j.advance(uint64(position))
	return uint64(position), nil
}

func (f *follower) Since(pos uint64, yield func(pos uint64, stream string) bool) error {
	return f.j.Since(pos, yield)
}

func (f *follower) Log(pos uint64, wanted func(eventType string) bool, yield func(journal.Logged) bool) error {
	return f.j.Log(pos, wanted, yield)
}

func (f *follower) Close() {
	f.j.follows.mu.Lock()
	defer f.j.follows.mu.Unlock()
	f.j.follows.list = slices.DeleteFunc(f.j.follows.list, func(other *follower) bool { return other == f })
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
	go func() {
		select {
		case <-j.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
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
			if pos, err := strconv.ParseUint(told.Payload, 10, 63); err == nil {
				j.advance(pos)
			}
		}
		cancel()
	}
}

func (j *Journal) look(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var position, trimmed int64
	if err := c.QueryRow(ctx, "SELECT position, trimmed FROM journal_head, journal_state").Scan(&position, &trimmed); err != nil {
		return err
	}
	j.advance(uint64(position))
	j.heardTrimmed(uint64(trimmed))
	return nil
}

func (j *Journal) heardTrimmed(to uint64) {
	for old := j.trimmed.Load(); to > old && !j.trimmed.CompareAndSwap(old, to); {
		old = j.trimmed.Load()
	}
}

// storeMarks writes what followers have acknowledged.
func (j *Journal) storeMarks(ctx context.Context) error {
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
	_, err := j.reads.Exec(ctx, "UPDATE journal_followers f SET acked = m.acked FROM unnest($1::text[], $2::bigint[]) "+
		"m(name, acked) WHERE f.name = m.name AND f.acked < m.acked", names, acked)
	if err != nil {
		j.follows.mu.Lock()
		for name, pos := range marks {
			j.follows.marks[name] = max(j.follows.marks[name], pos)
		}
		j.follows.mu.Unlock()
	}
	return err
}
