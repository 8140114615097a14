package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// A commit is one transaction, and what it will change in memory once it is on disk.
type commit struct {
	j   *Journal
	tx  *bbolt.Tx
	id  int
	now time.Time
	// serial is another for each attempt to write a group.
	serial uint64

	buckets [nCounted]*bbolt.Bucket

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
	tail   *tail // as it was before; nil if the stream had none
	hash   uint64
	first  uint64
	pos    uint64
	n      uint64
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
	for i, name := range countedBuckets {
		c.buckets[i] = c.tx.Bucket(name)
	}
	c.buckets[nEvents].FillPercent = 0.95 // keys only rise
	c.buckets[nUses].FillPercent = 0.8
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
				return errPoisoned // it may have written a part: start over without it
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

// append checks r against the file and what the group wrote before it, and writes it. If it is refused nothing of it
// is written.
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
	c.state.position = pos
	return c.add(nEvents, key, rec) // which copies the key
}

// put writes an entry.
func (c *commit) put(b *bbolt.Bucket, key, value []byte) error {
	if err := b.Put(key, value); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	c.wrote = true
	return nil
}

// add writes an entry of a counted bucket that it does not hold yet.
func (c *commit) add(counted int, key, value []byte) error {
	c.state.counts[counted]++
	return c.put(c.buckets[counted], key, value)
}

// delete removes an entry that a counted bucket holds.
func (c *commit) delete(counted int, key []byte) error {
	if err := c.buckets[counted].Delete(key); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	c.state.counts[counted]--
	c.wrote = true
	return nil
}

// last is the stream's last sequence number, 0 if there is no such stream.
func (c *commit) last(stream string) (uint64, error) {
	return c.lastOf(stream, c.j.tails[stream])
}

// lastOf is last of a stream whose tail is t, nil if it has none.
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
	v := c.buckets[nSnapshots].Get(key)
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
	v := c.buckets[nClaims].Get([]byte(key))
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
	held := c.buckets[nClaims].Get(key)
	if bytes.Equal(held, body) {
		return nil
	}
	if held == nil {
		return c.add(nClaims, key, body)
	}
	return c.put(c.buckets[nClaims], key, body)
}

// release gives up a key that owner holds.
func (c *commit) release(key, owner string) error {
	v := c.buckets[nClaims].Get([]byte(key))
	if v == nil {
		return nil
	}
	if held, err := decodeClaim([]byte(key), v); err != nil || held.Owner != owner {
		return nil
	}
	return c.delete(nClaims, []byte(key))
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
	had := c.buckets[nPending].Get(key) != nil // which may differ: see loadTails
	var err error
	switch {
	case pending && !had:
		err = c.add(nPending, key, encodePending(key))
	case !pending && had:
		err = c.delete(nPending, key)
	}
	c.pending[stream], c.wrote = pending, true
	return err
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
	snapshot := c.buckets[nSnapshots].Get(key)
	if len(positions) == 0 && snapshot == nil && damage.err == nil && !c.isPending(stream) {
		return nil
	}
	for _, pos := range positions {
		if err := c.deleteEvent(pos); err != nil {
			return err
		}
	}
	if snapshot != nil {
		if err := c.delete(nSnapshots, key); err != nil {
			return err
		}
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
	if c.buckets[nEvents].Get(key) == nil {
		return nil
	}
	return c.delete(nEvents, key)
}

// storeCounts writes the quota counts and, last, the journal's state.
func (c *commit) storeCounts() error {
	byKey := func(a, b useSlot) int { return bytes.Compare(a.bytes(), b.bytes()) }
	for _, u := range slices.SortedFunc(maps.Keys(c.useCounts), byKey) {
		key, n := u.bytes(), c.useCounts[u]
		if v := c.buckets[nUses].Get(key); v == nil {
			c.state.counts[nUses]++
		} else if _, had, err := decodeUse(key, v); err == nil {
			n += had
		}
		if err := c.put(c.buckets[nUses], key, encodeUse(key, n)); err != nil {
			return err
		}
	}
	if !c.wrote {
		return nil
	}
	return c.put(c.tx.Bucket(bucketMeta), metaState, c.state.encode(metaState))
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
