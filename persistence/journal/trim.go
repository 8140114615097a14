package journal

import (
	"cmp"
	"slices"
	"time"
)

// A queuedSnapshot waits for a checkpoint.
type queuedSnapshot struct {
	stream string
	seq    uint64
	state  []byte
}

// Snapshot stores a state of stream that covers its events up to seq, some time later; a later one for the same stream
// replaces it before that. Losing it loses nothing: it is dropped when it says nothing new, when the journal is
// closed, and when the disk has taken nothing for so long that the queue is full. The journal keeps state; do not
// change it.
func (j *Journal) Snapshot(stream string, seq uint64, state []byte) {
	if len(stream) == 0 || len(stream) > maxStreamLen || len(state) > maxSnapshotBytes || seq == 0 || j.closing() {
		return
	}
	const full = 256 << 20
	j.snapMu.Lock()
	old, ok := j.snaps[stream]
	size := len(state) + len(stream)
	if (ok && old.seq >= seq) || j.snapBytes+size > full {
		j.snapMu.Unlock()
		return
	}
	first := len(j.snaps) == 0
	if ok {
		j.snapBytes -= len(old.state) + len(stream)
	}
	j.snapBytes += size
	j.snaps[stream] = queuedSnapshot{stream, seq, state}
	if first {
		j.snapSince = time.Now()
	}
	urgent := j.snapBytes > snapshotsUrgent
	j.snapMu.Unlock()
	if first || urgent {
		j.poke()
	}
}

// checkpoint writes some of the snapshots of this round. If they come faster than that works them off, it writes as
// many as the group has appends: writers wait for them, but the queue does not run over.
func (c *commit) checkpoint() error {
	most, maxBytes, size := groupSnapshots, groupSnapBytes, 0
	c.j.snapMu.Lock()
	behind := len(c.j.round) > roundLong || c.j.snapBytes > snapshotsUrgent
	c.j.snapMu.Unlock()
	if behind {
		most, maxBytes = max(most, len(c.appended)), groupBytes
	}
	for _, q := range c.j.round {
		if c.round == most || size > maxBytes {
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
	if v := c.buckets[nSnapshots].Get(key); v == nil {
		c.state.counts[nSnapshots]++
	} else if old, err := decodeSnapshot(key, v); err == nil && old.seq >= q.seq {
		return nil
	}
	rec := snapshotRecord{seq: q.seq, pos: pos, state: q.state}
	if last, err := c.last(q.stream); err == nil && last == q.seq && c.isPending(q.stream) {
		rec.flags = flagPending
	}
	if err := c.put(c.buckets[nSnapshots], key, encodeSnapshot(key, &rec)); err != nil {
		return err
	}
	c.bytes += len(q.state)
	c.snapshotted = append(c.snapshotted, queuedSnapshot{stream: q.stream, seq: q.seq})
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

// A trimEntry is a record that may be removed from the log; tail is nil for a removed stream's mark.
type trimEntry struct {
	pos  uint64
	tail *tail
}

// cover queues for removal what a snapshot covers, from sequence number from on.
func (j *Journal) cover(t *tail, from uint64) {
	for seq := max(from, t.first); seq <= t.snapSeq && seq <= t.last(); seq++ {
		j.covered = append(j.covered, trimEntry{t.pos[seq-t.first], t})
	}
}

// mergeTrim brings what became covered into the order of positions, in which it is removed.
func (j *Journal) mergeTrim() {
	if len(j.covered) == 0 {
		return
	}
	slices.SortFunc(j.covered, func(a, b trimEntry) int { return cmp.Compare(a.pos, b.pos) })
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

// trimmable counts the entries, up to most, that every follower has passed.
func (j *Journal) trimmable(most int) int {
	n := min(most, len(j.trim))
	if n == 0 {
		return 0
	}
	n, _ = slices.BinarySearchFunc(j.trim[:n], j.lowWater()+1, func(e trimEntry, pos uint64) int {
		return cmp.Compare(e.pos, pos)
	})
	return n
}

// lowWater is the position up to which records may be removed.
func (j *Journal) lowWater() uint64 {
	j.followMu.Lock()
	defer j.followMu.Unlock()
	low := ^uint64(0) - 1
	for _, m := range j.followers {
		low = min(low, m.acked)
	}
	for at := range j.pins {
		low = min(low, *at)
	}
	return low
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
