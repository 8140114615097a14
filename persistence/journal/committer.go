package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"docent/api"
	"docent/internal/backoff"
)

// What one commit takes, at most. The first two bound how long an append can wait for those before it, the others how
// much longer an append waits because of work that nobody waits for.
const (
	groupAppends    = 8192
	groupBytes      = 8 << 20
	groupSnapshots  = 64
	groupSnapBytes  = 512 << 10
	groupTrim       = 4096
	groupSweep      = 1024
	snapshotsUrgent = 16 << 20 // queued bytes that do not wait for the next checkpoint
	roundLong       = 4096     // snapshots of a checkpoint that make it hurry
)

const marksEvery = time.Second // between two writes of the followers' marks

type operation struct {
	run  func(*commit) error
	done chan struct{}
	err  error
}

// A commitGroup is what one commit takes from the queue.
type commitGroup struct {
	reqs  []*appendRequest
	ops   []*operation
	bytes int
	// awaited is how many appends there will be once every writer that the last commit woke has appended again; 0 if
	// there is nobody to wait for.
	awaited int
	waited  time.Duration // for them, so far
}

// commitLoop is the committer. It takes what waits, commits it, wakes the waiters and takes what came meanwhile: there
// is no waiting window, a group is as large as the time of one sync makes it. Only what can wait is delayed
// (delayedAppends).
func (j *Journal) commitLoop() {
	defer close(j.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	awaited := 0
	for {
		j.rounds.Add(1)
		g := &commitGroup{awaited: awaited}
		closed := j.take(g, true)
		if len(g.reqs)+len(g.ops) == 0 && !closed && j.gather(g) {
			closed = j.take(g, true)
		}
		work := len(g.reqs)+len(g.ops) > 0
		if !work && closed {
			break
		}
		wait := j.background(false)
		if work || wait == 0 {
			if !work {
				j.releaseDelayed()
				j.take(g, false)
			}
			awaited = j.commit(g)
			continue
		}
		awaited = 0
		timer.Reset(wait)
		j.idle.Store(true)
		select {
		case <-j.wake:
		case <-j.stop:
		case <-timer.C:
		}
		j.idle.Store(false)
	}
	j.finish()
}

// Moves returns once the committer has nothing to do or has taken the next step. If it does neither until ctx ends,
// it hangs, in itself or in a disk that does not answer, and nothing that is appended will be there. A disk that is
// full or broken does not make it hang.
func (j *Journal) Moves(ctx context.Context) error {
	began := j.rounds.Load()
	for {
		j.mu.Lock()
		waiting := len(j.queue) + len(j.ops)
		closed := j.closed
		j.mu.Unlock()
		if closed || j.rounds.Load() != began || waiting == 0 && j.idle.Load() {
			return nil
		}
		if backoff.Sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("the journal does not move: %d appends wait behind one that does not end", waiting)
		}
	}
}

// gather gives those that were woken a moment: a writer that appends again at once then shares one sync with those that
// came during the last one, in place of waiting for the sync after it. It says whether somebody came. It ends when
// nobody has for a while that is short beside a sync, and only if others were woken: a lone writer never waits.
func (j *Journal) gather(g *commitGroup) bool {
	const still, most = 20 * time.Microsecond, 200 * time.Microsecond
	if len(g.reqs) >= g.awaited || g.waited > most {
		return false
	}
	begun := time.Now()
	for {
		waited := time.Since(begun)
		if j.queued.Load() > 0 {
			g.waited += waited
			return true
		}
		if waited > still || g.waited+waited > most {
			g.waited = most + 1
			return false
		}
		runtime.Gosched()
	}
}

// take moves what waits into g, up to the size of a group; operations only the first time for g.
func (j *Journal) take(g *commitGroup, first bool) (closed bool) {
	j.mu.Lock()
	if len(j.queue)+len(j.ops) > 0 || j.closed {
		j.enqueueDelayed()
	}
	n, size := len(j.queue), j.queuedBytes
	if len(g.reqs)+n > groupAppends || g.bytes+size > groupBytes {
		n, size = 0, 0
		for n < len(j.queue) && len(g.reqs)+n < groupAppends && g.bytes+size < groupBytes {
			size += j.queue[n].bytes
			n++
		}
	}
	taken := j.queue[:n]
	j.queue = append(j.spare[:0], j.queue[n:]...)
	j.queuedBytes -= size
	j.queued.Store(int64(len(j.queue)))
	if first {
		g.ops, j.ops = j.ops, nil
	}
	closed = j.closed
	j.mu.Unlock()
	j.spare = taken
	if g.reqs == nil {
		g.reqs = make([]*appendRequest, 0, max(n, g.awaited))
	}
	for _, r := range taken {
		if r.taken.CompareAndSwap(false, true) {
			g.bytes += r.bytes
			g.reqs = append(g.reqs, r)
		}
	}
	clear(taken)
	return closed
}

// more takes into g what came while the earlier ones were written.
func (j *Journal) more(g *commitGroup) bool {
	if j.queued.Load() == 0 && !j.gather(g) {
		return false
	}
	n := len(g.reqs)
	j.take(g, false)
	return len(g.reqs) > n
}

// background says how long there is nothing to do beside appends; 0 means that a commit is due. It starts a checkpoint
// when one is due.
func (j *Journal) background(all bool) time.Duration {
	now := time.Now()
	if d := j.downUntil.Sub(now); d > 0 && !all {
		return d
	}
	if len(j.round) > 0 {
		return 0
	}
	wait := time.Hour
	j.snapMu.Lock()
	if n := len(j.snaps); n > 0 {
		wait = min(wait, j.opts.CheckpointEvery-now.Sub(j.snapSince))
		if wait <= 0 || all || j.snapBytes > snapshotsUrgent {
			j.round = slices.SortedFunc(maps.Values(j.snaps), func(a, b queuedSnapshot) int {
				return bytes.Compare([]byte(a.stream), []byte(b.stream))
			})
			clear(j.snaps)
			j.snapBytes, wait = 0, 0
		}
	}
	j.snapMu.Unlock()
	if trim := j.trimmable(groupTrim); trim > 0 || j.marksWait() {
		wait = min(wait, marksEvery-now.Sub(j.marksAt))
		if all || trim == groupTrim {
			wait = 0
		}
	}
	return max(wait, 0)
}

// commit writes one group. Every request and operation is answered. It says how many appends there will be when those
// that it woke have come again: see commitGroup.
func (j *Journal) commit(g *commitGroup) (awaited int) {
	began := time.Now()
	err := j.tryCommit(g)
	if err != nil {
		// Those that were refused as well: what stood in their way may have been in the same group.
		for _, r := range g.reqs {
			r.err = err
		}
		for _, op := range g.ops {
			op.err = err
		}
	}
	j.metrics.observe(g.reqs, time.Since(began), err)
	if woken := returning(g.reqs); woken > 1 {
		awaited = woken + int(j.queued.Load()) // before the first is woken, or it may count twice
	}
	group := len(g.reqs) // which is another's too, in the end
	for _, r := range g.reqs {
		r.group = group
		r.done <- struct{}{} // and from here on it is another's
	}
	for _, op := range g.ops {
		close(op.done)
	}
	return awaited
}

func (j *Journal) tryCommit(g *commitGroup) error {
	began := time.Now()
	if began.Before(j.downUntil) {
		return j.unavailable(j.downErr, j.downUntil.Sub(began))
	}
	j.commitMu.Lock()
	defer j.commitMu.Unlock()
	err := j.settle()
	if err == nil {
		err = j.writeGroup(g)
	}
	if err == nil {
		if j.downErr != nil {
			j.log.Info("the journal is writable again", "journal", j.path)
			j.downErr, j.downUntil = nil, time.Time{}
			j.metrics.down.Store(false)
		}
		return nil
	}
	// A failed commit costs bbolt a walk over the whole file; the pause keeps that a small part of the time.
	took := time.Since(began)
	pause := j.opts.retryAfter
	if pause <= 0 {
		pause = max(500*time.Millisecond, min(4*took, 10*time.Second))
	}
	if j.downErr == nil {
		j.log.Error("the journal is not writable", "journal", j.path, "error", err)
	}
	j.downErr, j.downUntil = err, time.Now().Add(pause)
	j.metrics.down.Store(true)
	return j.unavailable(err, pause)
}

func (j *Journal) unavailable(err error, after time.Duration) error {
	return fmt.Errorf("%w: %w", &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: max(after, time.Second)}, err)
}

// settle finds out, after a commit that failed, whether it is in the file. bbolt writes the new meta page last; when
// the sync after that fails, the page may be seen and not be on disk. Building on it then would let the next commit
// reuse pages that the meta page on disk still needs. So both meta pages are written once more, as they are seen now,
// and synced: what is seen afterwards is what the disk has.
func (j *Journal) settle() error {
	if j.unsettled == nil {
		return nil
	}
	visible := 0
	err := guard(func() error {
		size := j.db.Info().PageSize
		buf := make([]byte, 2*size)
		if _, err := j.file.ReadAt(buf, 0); err != nil {
			return err
		}
		if _, err := j.file.WriteAt(buf, 0); err != nil {
			return err
		}
		if err := j.file.Sync(); err != nil {
			return err
		}
		return j.db.View(func(tx *bbolt.Tx) error {
			visible = tx.ID()
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("write the last commit's end again: %w", err)
	}
	if visible == j.unsettled.id {
		j.apply(j.unsettled) // refused to its callers, but there
	}
	j.unsettled = nil
	return nil
}

var (
	// errPoisoned makes writeGroup start over without the request that failed halfway.
	errPoisoned = errors.New("a request failed half-way")
	// errFatal ends the whole group.
	errFatal = errors.New("write")
)

func (j *Journal) writeGroup(g *commitGroup) error {
	for {
		err := j.writeOnce(g)
		if !errors.Is(err, errPoisoned) {
			return err
		}
	}
}

// finish writes the snapshots that still wait, and the list of free pages, with which the next open need not walk
// through the whole file.
func (j *Journal) finish() {
	for j.background(true) == 0 {
		if err := j.tryCommit(&commitGroup{}); err != nil {
			return // they are lost, which loses nothing
		}
	}
	if j.unsettled != nil || j.downErr != nil {
		return
	}
	err := guard(func() error {
		j.db.NoFreelistSync = false
		return j.db.Update(func(*bbolt.Tx) error { return nil })
	})
	if err != nil {
		j.log.Warn("write the journal's free list", "journal", j.path, "error", err)
	}
}
