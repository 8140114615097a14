package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"docent/internal/backoff"
	"docent/persistence/quota"
)

const (
	groupSnapshots  = 64
	groupSnapBytes  = 1 << 20
	snapshotsUrgent = 16 << 20  // queued bytes that do not wait for the next checkpoint
	snapshotsFull   = 256 << 20 // and those that are the most
	snapshotMost    = 64 << 20  // bytes of one

	sweepEvery = 10 * time.Minute
	sweepChunk = 4096
	// claimKeep is how long an expired claim stays, for a clock that jumps forward and comes back.
	claimKeep = 25 * time.Hour
)

type snapshot struct {
	seq   uint64
	state []byte
}

// snapshots wait to be written. Losing them loses nothing.
type snapshots struct {
	mu    sync.Mutex
	queue map[string]snapshot
	bytes int
	wake  chan struct{}

	writing sync.Mutex // held while they are written
	// Streams whose covered events wait for a follower, with the followers' positions when last read; guarded by
	// writing.
	held map[string]int64
}

func (s *snapshots) init() {
	s.queue, s.held = make(map[string]snapshot), make(map[string]int64)
	s.wake = make(chan struct{}, 1)
}

// Snapshot is journal.Journal.Snapshot.
func (j *Journal) Snapshot(stream string, seq uint64, state []byte) {
	if len(stream) == 0 || !storable(stream) || len(state) > snapshotMost || seq == 0 || j.fenced.Load() {
		return
	}
	s := &j.snaps
	size := len(state) + len(stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.queue[stream]
	if ok && old.seq >= seq || s.bytes+size > snapshotsFull {
		return
	}
	if ok {
		s.bytes -= len(old.state) + len(stream)
	}
	s.bytes += size
	s.queue[stream] = snapshot{seq, state}
	if s.bytes > snapshotsUrgent {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

func (s *snapshots) drop(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.queue[stream]; ok {
		s.bytes -= len(old.state) + len(stream)
		delete(s.queue, stream)
	}
}

// forget drops all that waits.
func (s *snapshots) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.queue)
	s.bytes = 0
}

// take takes what one statement writes.
func (s *snapshots) take() (streams []string, seqs []int64, states [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 0
	for stream, one := range s.queue {
		streams = append(streams, stream)
		size += len(one.state)
		if len(streams) == groupSnapshots || size > groupSnapBytes {
			break
		}
	}
	slices.Sort(streams)
	for _, stream := range streams {
		one := s.queue[stream]
		seqs, states = append(seqs, int64(one.seq)), append(states, one.state)
		s.bytes -= len(one.state) + len(stream)
		delete(s.queue, stream)
	}
	return streams, seqs, states
}

// checkpointLoop writes snapshots and what followers have acknowledged, and removes what both make superfluous.
func (j *Journal) checkpointLoop() {
	tick := time.NewTicker(min(j.opts.CheckpointEvery, marksEvery))
	defer tick.Stop()
	due := time.Now().Add(j.opts.CheckpointEvery)
	for {
		stopping := false
		select {
		case <-j.stop:
			stopping = true
		case <-j.snaps.wake:
			due = time.Time{}
		case <-tick.C:
		}
		if j.fenced.Load() {
			if stopping {
				return
			}
			continue
		}
		now := time.Now()
		write := stopping || !now.Before(due)
		if write {
			due = now.Add(j.opts.CheckpointEvery)
		}
		if err := j.checkpoint(write); err != nil && !stopping && !j.fenced.Load() {
			j.log.Warn("snapshots and follower positions are waiting for the database", "journal", j.name, "error", err)
		}
		if stopping {
			return
		}
	}
}

func (j *Journal) checkpoint(write bool) error {
	j.snaps.writing.Lock()
	defer j.snaps.writing.Unlock()
	ctx, cancel := context.WithTimeout(j.context, answerTimeout)
	defer cancel()
	conn, err := j.reads.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := j.look(ctx, conn); err != nil { // nothing is written of events that the server has lost
		return err
	}
	if err := j.storeMarks(ctx, conn); err != nil {
		return err
	}
	for write {
		streams, seqs, states := j.snaps.take()
		if len(streams) == 0 {
			break
		}
		var n int
		err := conn.QueryRow(ctx, "SELECT journal_snapshots_1($1, $2, $3, $4)", j.opts.Node, streams, seqs, states).Scan(&n)
		if err != nil {
			if passing(err) {
				for i, stream := range streams {
					j.Snapshot(stream, uint64(seqs[i]), states[i])
				}
			}
			return err
		}
		j.metrics.snapshots.Add(uint64(n))
		for i, stream := range streams {
			j.metrics.bytes.Add(uint64(len(states[i])))
			j.snaps.held[stream] = -1
		}
	}
	return j.trim(ctx, conn)
}

// trim removes the events that snapshots of this node cover, as far as followers have come. Those of streams where some
// stay are looked at again once followers have come further.
func (j *Journal) trim(ctx context.Context, conn querier) error {
	if len(j.snaps.held) == 0 {
		return nil
	}
	var low int64
	if err := conn.QueryRow(ctx, "SELECT coalesce(min(acked), 9223372036854775807) FROM journal_followers").Scan(&low); err != nil {
		return err
	}
	var held []string
	for stream, seen := range j.snaps.held {
		if seen < low {
			held = append(held, stream)
		}
	}
	slices.Sort(held)
	for part := range slices.Chunk(held, groupSnapshots) {
		var removed int
		if err := conn.QueryRow(ctx, "SELECT removed FROM journal_trim_1($1)", part).Scan(&removed); err != nil {
			return err
		}
		j.metrics.trimmed.Add(uint64(removed))
		var waits []string
		if err := conn.QueryRow(ctx, "SELECT coalesce(array_agg(DISTINCT s.stream), '{}') FROM journal_snapshots s "+
			"JOIN journal_events e ON e.stream = s.stream AND e.seq > 0 AND e.seq <= s.seq WHERE s.stream = ANY ($1)",
			part).Scan(&waits); err != nil {
			return err
		}
		for _, stream := range part {
			if j.snaps.held[stream] = low; !slices.Contains(waits, stream) {
				delete(j.snaps.held, stream)
			}
		}
	}
	if len(held) > 0 {
		return j.readTrimmed(ctx)
	}
	return nil
}

func (j *Journal) readTrimmed(ctx context.Context) error {
	var trimmed int64
	err := j.reads.QueryRow(ctx, "SELECT trimmed FROM journal_state").Scan(&trimmed)
	j.heardTrimmed(uint64(trimmed))
	return err
}

// sweepLock is the first key of the advisory lock of the node that sweeps; the second is the journal's table.
const sweepLock = 723415084

// sweepLoop removes, now and then, what has ended and what nodes that are gone have left. One node at a time does it.
func (j *Journal) sweepLoop() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	ctx, cancel := j.whileOpen()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := j.sweep(ctx); err != nil && ctx.Err() == nil {
				j.log.Warn("what has expired stays in the journal for now", "journal", j.name, "error", err)
			}
		}
	}
}

func (j *Journal) sweep(ctx context.Context) error {
	if err := j.count(ctx); err != nil {
		return err
	}
	if _, err := j.reads.Exec(ctx, "UPDATE journal_writers SET seen = now() WHERE writer = $1", j.writer); err != nil {
		return err
	}
	c, err := j.reads.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	var mine bool
	if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, 'journal_head'::regclass::oid::bigint::bit(32)::int)",
		sweepLock).Scan(&mine); err != nil || !mine {
		return err
	}
	defer func() { // a connection that is lost has lost its locks
		_, _ = c.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1, 'journal_head'::regclass::oid::bigint::bit(32)::int)",
			sweepLock)
	}()
	now := j.now()
	if err := j.sweepAll(ctx, "DELETE FROM journal_claims WHERE key IN (SELECT key FROM journal_claims "+
		"WHERE expires < $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED) AND expires < $1",
		j.opts.wall().Add(-claimKeep).UnixNano()); err != nil {
		return err
	}
	if err := j.sweepAll(ctx, "DELETE FROM journal_uses WHERE (kind, key, ends) IN (SELECT kind, key, ends FROM journal_uses "+
		"WHERE ends < $1 ORDER BY ends LIMIT $2 FOR UPDATE SKIP LOCKED)", now.Add(-quota.Keep).Unix()); err != nil {
		return err
	}
	return j.sweepLog(ctx)
}

// sweepAll does a deletion of so many rows at a time until there are no more.
func (j *Journal) sweepAll(ctx context.Context, deletion string, before int64) error {
	for {
		done, err := j.reads.Exec(ctx, deletion, before, sweepChunk)
		if err != nil || done.RowsAffected() < sweepChunk {
			return err
		}
	}
}

// sweepLog removes events that snapshots cover and nobody waits for, wherever they were left.
func (j *Journal) sweepLog(ctx context.Context) error {
	var from int64
	for {
		var removed int
		var reached *int64
		if err := j.reads.QueryRow(ctx, "SELECT * FROM journal_sweep_1($1, $2)", from, sweepChunk).Scan(&removed,
			&reached); err != nil {
			return err
		}
		if reached == nil {
			return j.readTrimmed(ctx)
		}
		j.metrics.trimmed.Add(uint64(removed))
		from = *reached
		if err := backoff.Sleep(ctx, 10*time.Millisecond); err != nil { // others wait for the disk too
			return err
		}
	}
}
