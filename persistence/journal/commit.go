package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"docent/api"
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

const (
	sweepEvery = 10 * time.Minute
	marksEvery = time.Second
)

// An appendRequest is one append on its way through the committer. A journal uses its requests again, with their buffers.
type appendRequest struct {
	a     Append
	hash  uint64
	recs  [][]byte // sealed but for the position
	buf   []byte   // that they stand in
	bytes int
	taken atomic.Bool   // by the committer, or withdrawn by the caller
	done  chan struct{} // receives once the committer is done with the request
	last  uint64
	err   error
}

// release gives back a request that the committer has answered.
func (j *Journal) release(r *appendRequest) {
	const most = 64 << 10 // of a buffer that is kept
	if cap(r.buf) > most {
		r.buf = nil
	}
	clear(r.recs)
	*r = appendRequest{recs: r.recs[:0], buf: r.buf[:0], done: r.done}
	j.requests.Put(r)
}

func (j *Journal) newAppendRequest(a *Append) (*appendRequest, error) {
	switch {
	case len(a.Stream) == 0 || len(a.Stream) > maxStreamLen:
		return nil, fmt.Errorf("a stream's name has 1 to %d bytes, not %d", maxStreamLen, len(a.Stream))
	case len(a.Events) == 0:
		return nil, errors.New("an append has at least one event")
	case a.Claim != nil && (len(a.Claim.Key) == 0 || len(a.Claim.Key) > maxClaimKey):
		return nil, fmt.Errorf("a claim's key has 1 to %d bytes, not %d", maxClaimKey, len(a.Claim.Key))
	case a.Claim != nil && len(a.Claim.Owner) > maxStreamLen:
		return nil, fmt.Errorf("a claim's owner has at most %d bytes", maxStreamLen)
	}
	size := 0
	for i := range a.Events {
		e := &a.Events[i]
		if len(e.Type) > maxEventType {
			return nil, fmt.Errorf("an event's type has at most %d bytes", maxEventType)
		}
		size += eventFixed + 16 + len(a.Stream) + len(e.Type) + len(e.Data)
	}
	if size > maxAppendBytes {
		return nil, fmt.Errorf("%d bytes are too many for one append", size)
	}
	for i := range a.Uses {
		if u := &a.Uses[i]; !u.Window.Known() || len(u.Key) == 0 || len(u.Key) > maxUseKey {
			return nil, fmt.Errorf("a use of %q in window %d cannot be stored", u.Key, u.Window)
		}
	}
	r, ok := j.requests.Get().(*appendRequest)
	if !ok {
		r = &appendRequest{done: make(chan struct{}, 1)}
	}
	r.a, r.hash, r.bytes = *a, streamHash(a.Stream), size
	buf := slices.Grow(r.buf, size)
	for i, e := range a.Events {
		rec := eventRecord{hash: r.hash, seq: a.After + uint64(i) + 1, stream: a.Stream, event: e}
		if a.Pending && i == len(a.Events)-1 {
			rec.flags = flagPending
		}
		from := len(buf)
		buf = appendEvent(buf, &rec)
		r.recs = append(r.recs, buf[from:len(buf):len(buf)])
	}
	r.buf = buf
	return r, nil
}

type operation struct {
	run  func(*commit) error
	done chan struct{}
	err  error
}

// A commit is one transaction, and what it will change in memory once it is on disk.
type commit struct {
	j   *Journal
	tx  *bbolt.Tx
	id  int
	now time.Time
	// serial is another for each attempt to write a group.
	serial uint64

	events, snapshots, pendings, claims, uses *bbolt.Bucket

	state     fileState
	lasts     map[string]uint64 // last sequence number of the streams without a tail that this commit changed
	pending   map[string]bool   // what this commit changed
	useCounts map[useSlot]uint32
	bytes     int
	wrote     bool
	key       [8]byte // of the event that is written now

	appended    []appendedEvents
	removed     []string
	snapshotted []queuedSnapshot // without their states
	trimmed     int              // entries from the head of Journal.trim
	round       int              // entries from the head of Journal.round
	marks       bool             // the followers' marks
}

// appendedEvents are n events of a stream, from the sequence number first and the position pos on.
type appendedEvents struct {
	stream string
	tail   *tail // as it was before; nil where the stream had none
	hash   uint64
	first  uint64
	pos    uint64
	n      uint64
}

// A queuedSnapshot waits for a checkpoint.
type queuedSnapshot struct {
	stream string
	seq    uint64
	state  []byte
}

// A commitGroup is what one commit takes from the queue.
type commitGroup struct {
	reqs  []*appendRequest
	ops   []*operation
	bytes int
	// Who was woken by the last commit may append again at once. So many appends have come when all of them have; there is
	// nobody to wait for where it is 0.
	awaited int
	waited  time.Duration // for them, so far
}

// commitLoop is the committer. It takes what waits, commits it, wakes the waiters and takes what came meanwhile: there is
// no waiting window, a group is as large as the time of one sync makes it. Only what can wait is held back (heldAppends).
func (j *Journal) commitLoop() {
	defer close(j.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	awaited := 0
	for {
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
				j.releaseHeld()
				j.take(g, false)
			}
			awaited = j.commit(g)
			continue
		}
		awaited = 0
		timer.Reset(wait)
		select {
		case <-j.wake:
		case <-j.stop:
		case <-timer.C:
		}
	}
	j.finish()
}

// gather gives those that were woken a moment: who appends again at once then shares one sync with those that came during
// the last one, in place of waiting for the sync after it. It says whether somebody came. It ends when nobody has for a
// while that is short beside a sync, and only where others were woken: a lone writer never waits.
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

// take moves what waits into g, up to the size of a group; operations only where it is the first time for g.
func (j *Journal) take(g *commitGroup, first bool) (closed bool) {
	j.mu.Lock()
	if len(j.queue)+len(j.ops) > 0 || j.closed {
		j.letGo()
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

// background says how long there is nothing to do beside appends; 0 means that a commit is due. It starts a checkpoint
// where one is due.
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

// trimmable counts the entries, up to most, that every follower has passed.
func (j *Journal) trimmable(most int) int {
	n := min(most, len(j.trim))
	if n == 0 {
		return 0
	}
	low := j.lowWater()
	if j.trim[n-1].pos <= low {
		return n
	}
	n, _ = slices.BinarySearchFunc(j.trim[:n], low+1, func(e trimEntry, pos uint64) int {
		switch {
		case e.pos < pos:
			return -1
		case e.pos > pos:
			return 1
		}
		return 0
	})
	return n
}

// mergeTrim brings what became covered into the order of positions, in which it is removed.
func (j *Journal) mergeTrim() {
	if len(j.covered) == 0 {
		return
	}
	byPos := func(a, b trimEntry) int {
		switch {
		case a.pos < b.pos:
			return -1
		case a.pos > b.pos:
			return 1
		}
		return 0
	}
	slices.SortFunc(j.covered, byPos)
	merged := make([]trimEntry, 0, len(j.trim)+len(j.covered))
	a, b := j.trim, j.covered
	for len(a) > 0 && len(b) > 0 {
		if a[0].pos < b[0].pos {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	j.trim = append(append(merged, a...), b...)
	j.covered = nil
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
	for _, r := range g.reqs {
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
			j.log.Info("the journal can be written to again", "journal", j.path)
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
		j.log.Error("the journal cannot be written to", "journal", j.path, "error", err)
	}
	j.downErr, j.downUntil = err, time.Now().Add(pause)
	j.metrics.down.Store(true)
	return j.unavailable(err, pause)
}

func (j *Journal) unavailable(err error, after time.Duration) error {
	return fmt.Errorf("%w: %w", &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: max(after, time.Second)}, err)
}

// settle finds out, after a commit that failed, whether it is in the file. bbolt writes the new meta page last; when the
// sync after that fails, the page may be seen and not be on disk. Building on it then would let the next commit reuse
// pages that the meta page on disk still needs. So both meta pages are written once more, as they are seen now, and
// synced: what is seen afterwards is what the disk has.
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

// more takes into g what came while the earlier ones were written.
func (j *Journal) more(g *commitGroup) bool {
	if j.queued.Load() == 0 && !j.gather(g) {
		return false
	}
	n := len(g.reqs)
	j.take(g, false)
	return len(g.reqs) > n
}

var (
	// errPoisoned makes writeGroup begin anew without the request that failed half-way.
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

func (j *Journal) writeOnce(g *commitGroup) error {
	j.attempts++
	c := &commit{
		j: j, now: j.now(), serial: j.attempts, state: j.state,
		lasts: make(map[string]uint64), pending: make(map[string]bool), useCounts: make(map[useSlot]uint32),
		appended: make([]appendedEvents, 0, max(len(g.reqs), g.awaited)),
	}
	var err error
	if err = guard(func() error { c.tx, err = j.db.Begin(true); return err }); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	c.id = c.tx.ID()
	defer func() { // after a commit there is nothing to roll back, and that is no error
		if err := guard(c.tx.Rollback); err != nil && !errors.Is(err, bolterrors.ErrTxClosed) {
			j.log.Error("roll back", "journal", j.path, "error", err)
		}
	}()
	c.events, c.snapshots, c.pendings = c.tx.Bucket(bucketEvents), c.tx.Bucket(bucketSnapshots), c.tx.Bucket(bucketPending)
	c.claims, c.uses = c.tx.Bucket(bucketClaims), c.tx.Bucket(bucketUses)
	c.events.FillPercent = 0.95 // keys only rise
	c.uses.FillPercent = 0.8
	for i := 0; i < len(g.reqs) || j.more(g); i++ {
		r := g.reqs[i]
		if r.err != nil { // it was the poisoned one
			continue
		}
		err := guard(func() error { return c.append(r) })
		switch {
		case err == nil:
		case errors.Is(err, errFatal):
			return err
		case errors.Is(err, errPanicked):
			r.err = err
			return errPoisoned
		default:
			r.err = err
		}
	}
	for _, op := range g.ops {
		if op.err == nil {
			if op.err = guard(func() error { return op.run(c) }); op.err != nil {
				return errPoisoned // it may have written a part: begin anew without it
			}
		}
	}
	err = guard(func() error {
		if err := c.checkpoint(); err != nil {
			return err
		}
		if err := c.trim(); err != nil {
			return err
		}
		if err := c.storeMarks(); err != nil {
			return err
		}
		return c.storeCounts()
	})
	if err != nil {
		return err
	}
	if !c.wrote {
		return nil
	}
	if err := guard(c.tx.Commit); err != nil {
		j.unsettled = c
		return fmt.Errorf("commit: %w", err)
	}
	j.apply(c)
	return nil
}

// append checks r against the file and what the group wrote before it, and writes it. Where it is refused nothing of it is
// written.
func (c *commit) append(r *appendRequest) error {
	if d, ok := c.j.damage[r.hash]; ok {
		return d.err
	}
	if r.a.Claim != nil && !r.a.Claim.Replaces {
		if held, err := c.claim(r.a.Claim.Key); err != nil {
			return err
		} else if held != nil {
			return &ClaimedError{*held}
		}
	}
	t := c.j.tails[r.a.Stream]
	last, err := c.lastOf(r.a.Stream, t)
	if err != nil {
		return err
	}
	if last != r.a.After {
		return fmt.Errorf("%w: its last event is %d, not %d", ErrSequence, last, r.a.After)
	}
	pos := c.state.position + 1
	for i, rec := range r.recs {
		if err := c.putEvent(pos+uint64(i), rec); err != nil {
			return err
		}
	}
	n := uint64(len(r.recs))
	r.last = last + n
	c.setLast(r.a.Stream, t, r.last)
	c.appended = append(c.appended, appendedEvents{r.a.Stream, t, r.hash, last + 1, pos, n})
	c.bytes += r.bytes
	if r.a.Claim != nil {
		if err := c.putClaim(r.a.Claim); err != nil {
			return err
		}
	}
	if r.a.Release != "" {
		if err := c.release(r.a.Release, r.a.Stream); err != nil {
			return err
		}
	}
	for _, u := range r.a.Uses {
		if u.Limit >= 0 {
			c.useCounts[useSlot{u.Window, u.Window.End(c.now), u.Key}]++
		}
	}
	return c.setPending(r.a.Stream, r.a.Pending)
}

func (c *commit) putEvent(pos uint64, rec []byte) error {
	key := binary.BigEndian.AppendUint64(c.key[:0], pos)
	seal(key, rec)
	if err := c.events.Put(key, rec); err != nil { // which copies the key
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	c.state.position = pos
	c.state.counts[nEvents]++
	c.wrote = true
	return nil
}

// last is the stream's last sequence number, 0 where there is no such stream.
func (c *commit) last(stream string) (uint64, error) {
	return c.lastOf(stream, c.j.tails[stream])
}

// lastOf is last of a stream whose tail is t, nil where it has none.
func (c *commit) lastOf(stream string, t *tail) (uint64, error) {
	if t != nil {
		if t.changedBy == c.serial {
			return t.changedTo, nil
		}
		return t.last(), nil
	}
	if seq, ok := c.lasts[stream]; ok {
		return seq, nil
	}
	key := []byte(stream)
	v := c.snapshots.Get(key)
	if v == nil {
		return 0, c.j.absent(bucketSnapshots, stream)
	}
	s, err := decodeSnapshot(key, v)
	if err != nil {
		return 0, c.j.damaged("snapshot", stream, s.seq, err)
	}
	return s.seq, nil
}

// setLast remembers, for the rest of this commit, what it made of a stream.
func (c *commit) setLast(stream string, t *tail, seq uint64) {
	if t != nil {
		t.changedBy, t.changedTo = c.serial, seq
	} else {
		c.lasts[stream] = seq
	}
}

// claim finds who holds a key now.
func (c *commit) claim(key string) (*Claim, error) {
	v := c.claims.Get([]byte(key))
	if v == nil {
		return nil, c.j.absent(bucketClaims, key)
	}
	held, err := decodeClaim([]byte(key), v)
	if err != nil {
		return nil, c.j.damaged("claim", held.Owner, 0, err)
	}
	if !held.Expires.After(c.now) {
		return nil, nil
	}
	return &held, nil
}

func (c *commit) putClaim(claim *Claim) error {
	key, body := []byte(claim.Key), encodeClaim(claim)
	held := c.claims.Get(key)
	if bytes.Equal(held, body) {
		return nil
	}
	if held == nil {
		c.state.counts[nClaims]++
	}
	if err := c.claims.Put(key, body); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	return nil
}

// release gives up a key that owner holds.
func (c *commit) release(key, owner string) error {
	v := c.claims.Get([]byte(key))
	if v == nil {
		return nil
	}
	if held, err := decodeClaim([]byte(key), v); err != nil || held.Owner != owner {
		return nil
	}
	if err := c.claims.Delete([]byte(key)); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	c.state.counts[nClaims]--
	c.wrote = true
	return nil
}

func (c *commit) isPending(stream string) bool {
	if p, ok := c.pending[stream]; ok {
		return p
	}
	_, ok := c.j.pending[stream]
	return ok
}

func (c *commit) setPending(stream string, pending bool) error {
	if c.isPending(stream) == pending {
		return nil
	}
	key := []byte(stream)
	had := c.pendings.Get(key) != nil // which may differ: see loadTails
	var err error
	switch {
	case pending && !had:
		c.state.counts[nPending]++
		err = c.pendings.Put(key, encodePending(key))
	case !pending && had:
		c.state.counts[nPending]--
		err = c.pendings.Delete(key)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	c.pending[stream], c.wrote = pending, true
	return nil
}

// remove deletes a stream and leaves a mark in the log, for followers.
func (c *commit) remove(stream string) error {
	hash, key := streamHash(stream), []byte(stream)
	var positions []uint64
	t, damage := c.j.tails[stream], c.j.damage[hash]
	if t != nil {
		positions = append(positions, t.pos...)
	}
	positions = append(positions, damage.pos...)
	for _, a := range c.appended {
		for i := uint64(0); a.stream == stream && i < a.n; i++ {
			positions = append(positions, a.pos+i)
		}
	}
	snapshot := c.snapshots.Get(key)
	if len(positions) == 0 && snapshot == nil && damage.err == nil && !c.isPending(stream) {
		return nil
	}
	for _, pos := range positions {
		if err := c.deleteEvent(pos); err != nil {
			return err
		}
	}
	if snapshot != nil {
		if err := c.snapshots.Delete(key); err != nil {
			return err
		}
		c.state.counts[nSnapshots]--
	}
	if err := c.setPending(stream, false); err != nil {
		return err
	}
	mark := eventRecord{flags: flagRemoved, hash: hash, stream: stream}
	pos := c.state.position + 1
	if err := c.putEvent(pos, appendEvent(nil, &mark)); err != nil {
		return err
	}
	c.setLast(stream, t, 0)
	c.appended = append(c.appended, appendedEvents{stream: stream, hash: hash, pos: pos})
	c.removed = append(c.removed, stream)
	return nil
}

func (c *commit) deleteEvent(pos uint64) error {
	key := positionKey(pos)
	if c.events.Get(key) == nil {
		return nil
	}
	if err := c.events.Delete(key); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	c.state.counts[nEvents]--
	c.wrote = true
	return nil
}

// checkpoint writes some of the snapshots of this round. Where they come faster than that works them off, it writes as many
// as the group has appends: who appends waits for them, but the queue does not run over.
func (c *commit) checkpoint() error {
	most, mostBytes, size := groupSnapshots, groupSnapBytes, 0
	c.j.snapMu.Lock()
	behind := len(c.j.round) > roundLong || c.j.snapBytes > snapshotsUrgent
	c.j.snapMu.Unlock()
	if behind {
		most, mostBytes = max(most, len(c.appended)), groupBytes
	}
	for _, q := range c.j.round {
		if c.round == most || size > mostBytes {
			break
		}
		c.round++
		if err := c.snapshot(q); err != nil {
			return err
		}
		size += len(q.state)
	}
	return nil
}

// snapshot writes one, unless it says nothing new or more than the events do.
func (c *commit) snapshot(q queuedSnapshot) error {
	if _, damaged := c.j.damage[streamHash(q.stream)]; damaged || slices.Contains(c.removed, q.stream) {
		return nil
	}
	pos, ok := c.positionOf(q.stream, q.seq)
	if !ok {
		return nil // at rest, removed, or from an append that came to nothing
	}
	key := []byte(q.stream)
	if v := c.snapshots.Get(key); v == nil {
		c.state.counts[nSnapshots]++
	} else if old, err := decodeSnapshot(key, v); err == nil && old.seq >= q.seq {
		return nil
	}
	rec := snapshotRecord{seq: q.seq, pos: pos, state: q.state}
	if last, err := c.last(q.stream); err == nil && last == q.seq && c.isPending(q.stream) {
		rec.flags = flagPending
	}
	if err := c.snapshots.Put(key, encodeSnapshot(key, &rec)); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	c.bytes += len(q.state)
	c.snapshotted = append(c.snapshotted, queuedSnapshot{stream: q.stream, seq: q.seq})
	c.wrote = true
	return nil
}

// positionOf finds an event in the log.
func (c *commit) positionOf(stream string, seq uint64) (uint64, bool) {
	if t := c.j.tails[stream]; t != nil && seq >= t.first && seq <= t.last() {
		return t.pos[seq-t.first], true
	}
	for _, a := range c.appended {
		if a.stream == stream && seq >= a.first && seq < a.first+a.n {
			return a.pos + seq - a.first, true
		}
	}
	return 0, false
}

// trim removes some of the events that a snapshot on disk covers and that every follower has passed.
func (c *commit) trim() error {
	n := c.j.trimmable(groupTrim)
	for _, e := range c.j.trim[:n] {
		if e.tail != nil && e.tail.gone {
			continue
		}
		if err := c.deleteEvent(e.pos); err != nil {
			return err
		}
		c.state.trimmed = max(c.state.trimmed, e.pos)
	}
	c.trimmed = n
	return nil
}

// storeCounts writes the quota counts and, last, the journal's state.
func (c *commit) storeCounts() error {
	slots := slices.SortedFunc(maps.Keys(c.useCounts), func(a, b useSlot) int { return bytes.Compare(a.bytes(), b.bytes()) })
	for _, u := range slots {
		key, n := u.bytes(), c.useCounts[u]
		if v := c.uses.Get(key); v == nil {
			c.state.counts[nUses]++
		} else if _, had, err := decodeUse(key, v); err == nil {
			n += had
		}
		if err := c.uses.Put(key, encodeUse(key, n)); err != nil {
			return fmt.Errorf("%w: %w", errFatal, err)
		}
	}
	if !c.wrote {
		return nil
	}
	if err := c.tx.Bucket(bucketMeta).Put(metaState, c.state.encode(metaState)); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	return nil
}

// apply brings memory to what c wrote.
func (j *Journal) apply(c *commit) {
	j.indexMu.Lock()
	for _, a := range c.appended {
		if a.n == 0 {
			j.drop(a.stream, a.hash)
			j.covered = append(j.covered, trimEntry{pos: a.pos})
			continue
		}
		t := a.tail
		if t == nil || t.gone {
			t = j.tails[a.stream]
		}
		if t == nil {
			t = &tail{stream: a.stream, hash: a.hash, first: a.first, snapSeq: a.first - 1}
			j.tails[a.stream] = t
		}
		for i := range a.n {
			t.pos = append(t.pos, a.pos+i)
		}
	}
	for stream, pending := range c.pending {
		if pending {
			j.pending[stream] = struct{}{}
		} else {
			delete(j.pending, stream)
		}
	}
	j.busy.Store(int64(len(j.pending)))
	for _, s := range c.snapshotted {
		if t := j.tails[s.stream]; t != nil {
			from := t.snapSeq + 1
			t.snapSeq = s.seq
			j.cover(t, from)
		}
	}
	for _, e := range j.trim[:c.trimmed] {
		if t := e.tail; t != nil && !t.gone {
			t.first++
			if t.pos = t.pos[1:]; len(t.pos) == 0 {
				t.gone = true
				delete(j.tails, t.stream) // at rest
			}
		}
	}
	j.indexMu.Unlock()
	j.trim = j.trim[c.trimmed:]
	if j.round = j.round[c.round:]; len(j.round) == 0 {
		j.round = nil
	}
	if len(j.round) == 0 || len(j.covered) >= groupTrim {
		j.mergeTrim()
	}
	moved := c.state.position != j.state.position
	j.state = c.state
	j.position.Store(c.state.position)
	j.trimmed.Store(c.state.trimmed)
	if c.marks {
		j.marksAt = time.Now()
	}
	j.metrics.committed(c)
	if moved {
		j.notify()
	}
}

// drop forgets a removed stream.
func (j *Journal) drop(stream string, hash uint64) {
	if t := j.tails[stream]; t != nil {
		t.gone = true
		delete(j.tails, stream)
	}
	delete(j.damage, hash)
	for i := range j.round {
		if j.round[i].stream == stream {
			j.round[i].seq = 0
		}
	}
	j.snapMu.Lock()
	if q, ok := j.snaps[stream]; ok {
		j.snapBytes -= len(q.state) + len(stream)
		delete(j.snaps, stream)
	}
	j.snapMu.Unlock()
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
