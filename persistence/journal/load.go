package journal

import (
	"crypto/rand"
	"fmt"
	"path/filepath"

	"docent/internal/disk"

	"go.etcd.io/bbolt"
)

// load makes what is missing in the file and reads what is kept in memory.
func (j *Journal) load(entries map[string]uint64) error {
	fresh := false
	err := j.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if b == nil {
			if k, _ := tx.Cursor().First(); k != nil {
				return fmt.Errorf("%w: bucket %s is missing: it is no journal, or damaged", ErrCorrupt, bucketMeta)
			}
			fresh = true
			return nil
		}
		return decodeFormat(b.Get(metaFormat))
	})
	if err != nil {
		return err
	}
	if fresh {
		return j.create()
	}
	return j.db.View(func(tx *bbolt.Tx) error { return j.loadIndex(tx, entries) })
}

func (j *Journal) create() error {
	j.known.Store(&Identity{ID: rand.Text()})
	err := j.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range append([][]byte{bucketFollowers}, countedBuckets[:]...) {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		b, err := tx.CreateBucket(bucketMeta)
		if err != nil {
			return err
		}
		if err := b.Put(metaState, j.state.encode(metaState)); err != nil {
			return err
		}
		if err := b.Put(metaIdentity, j.known.Load().encode()); err != nil {
			return err
		}
		return b.Put(metaFormat, encodeFormat())
	})
	if err != nil {
		return err
	}
	if err := disk.SyncFolder(filepath.Dir(j.path)); err != nil { // so that the file's name is on disk as well
		j.log.Warn("sync the journal's folder", "error", err)
	}
	return nil
}

func (j *Journal) loadIndex(tx *bbolt.Tx, entries map[string]uint64) error {
	if err := j.loadMeta(tx, entries); err != nil {
		return err
	}
	j.loadPending(tx)
	if err := j.loadTails(tx); err != nil {
		return err
	}
	j.loadUses(tx)
	return j.loadMarks(tx)
}

// loadMeta reads the journal's state and identity, and compares the state with how many entries there are.
func (j *Journal) loadMeta(tx *bbolt.Tx, entries map[string]uint64) (err error) {
	meta := tx.Bucket(bucketMeta)
	if j.state, err = decodeState(metaState, meta.Get(metaState)); err != nil {
		return fmt.Errorf("%w: the journal's state: %w", ErrCorrupt, err)
	}
	known, err := decodeIdentity(meta.Get(metaIdentity))
	if err != nil {
		return fmt.Errorf("%w: the journal's identity: %w", ErrCorrupt, err)
	}
	j.known.Store(&known)
	for i, name := range countedBuckets {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, name)
		}
		if n := entries[string(name)]; n != j.state.counts[i] {
			return fmt.Errorf("%w: bucket %s holds %d entries, not %d", ErrCorrupt, name, n, j.state.counts[i])
		}
	}
	j.position.Store(j.state.position)
	j.trimmed.Store(j.state.trimmed)
	return nil
}

// loadPending reads which streams call for work. Waking a stream for nothing does no harm.
func (j *Journal) loadPending(tx *bbolt.Tx) {
	damaged := false
	for k, v := range all(tx.Bucket(bucketPending)) {
		if err := sealed(k, v); err != nil {
			j.log.Error("a pending stream's name is damaged", "stream", string(k), "error", err)
			damaged = true
		}
		j.pending[string(k)] = struct{}{}
	}
	if !damaged {
		return
	}
	for k, v := range all(tx.Bucket(bucketSnapshots)) { // which say it as well, but there may be many
		if s, err := parseSnapshot(v); err == nil && s.flags&flagPending != 0 {
			j.pending[string(k)] = struct{}{}
		}
	}
}

func (j *Journal) loadUses(tx *bbolt.Tx) {
	for k, v := range all(tx.Bucket(bucketUses)) {
		u, n, err := decodeUse(k, v)
		if err != nil {
			j.log.Error("a quota count is damaged", "quota", string(k), "error", err)
			continue
		}
		j.quotas.Load(u.window, u.key, u.end, int(n))
	}
}

// loadMarks reads how far the followers have come. A damaged mark is one at the start, which holds back trimming and
// loses nothing.
func (j *Journal) loadMarks(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketFollowers)
	if b == nil {
		return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, bucketFollowers)
	}
	for k, v := range all(b) {
		pos, err := decodeMark(k, v)
		if err != nil {
			j.log.Error("a follower's position is damaged", "follower", string(k), "error", err)
		}
		j.followers[string(k)] = &followMark{acked: pos}
	}
	return nil
}

// loadTails reads the log. A damaged event, or a gap, is kept for the Load of its stream.
func (j *Journal) loadTails(tx *bbolt.Tx) error {
	calls := make(map[*tail]bool) // whether the tail's last event calls for work
	snapshots := tx.Bucket(bucketSnapshots)
	for k, v := range all(tx.Bucket(bucketEvents)) {
		if len(k) != 8 {
			return fmt.Errorf("%w: a position has %d bytes", ErrCorrupt, len(k))
		}
		r, err := decodeEvent(k, v)
		if err != nil && len(v) < eventFixed {
			return fmt.Errorf("%w: the event at position %d is cut off, and whose it was is lost", ErrCorrupt, keyPosition(k))
		}
		if err != nil {
			err = j.damaged("event", r.stream, r.seq, err)
			for _, h := range []uint64{r.hash, streamHash(r.stream)} { // the same, unless the damage is in one of them
				j.damage[h] = streamDamage{err, append(j.damage[h].pos, keyPosition(k))}
			}
			continue
		}
		pos := keyPosition(k)
		if pos > j.state.position {
			return fmt.Errorf("%w: an event stands at position %d, after the last, %d", ErrCorrupt, pos, j.state.position)
		}
		t := j.tails[r.stream]
		if r.flags&flagRemoved != 0 { // whose events went in the same commit
			if t != nil {
				return fmt.Errorf("%w: stream %q was removed, but has events before position %d", ErrCorrupt, r.stream, pos)
			}
			j.covered = append(j.covered, trimEntry{pos: pos})
			continue
		}
		if t == nil {
			t = &tail{stream: r.stream, hash: r.hash, first: r.seq}
			if s := snapshots.Get([]byte(r.stream)); s != nil {
				snap, err := decodeSnapshot([]byte(r.stream), s)
				if err != nil {
					j.setDamage(t.hash, j.damaged("snapshot", r.stream, snap.seq, err))
				}
				t.snapSeq = snap.seq
			}
			j.tails[r.stream] = t
		} else if r.seq != t.last()+1 {
			j.setDamage(t.hash, j.damaged("event", r.stream, t.last()+1, errMissing))
		}
		t.pos = append(t.pos, pos)
		calls[t] = r.flags&flagPending != 0
	}
	for stream, t := range j.tails {
		switch {
		case t.first > t.snapSeq+1:
			j.setDamage(t.hash, j.damaged("event", stream, t.first-1, errMissing))
		case t.last() < t.snapSeq: // they are removed from the oldest on: as long as any is there, so is the last
			j.setDamage(t.hash, j.damaged("event", stream, t.snapSeq, errMissing))
		}
		if _, bad := j.damage[t.hash]; bad {
			t.snapSeq = 0 // so that nothing of it is removed
			continue
		}
		if calls[t] {
			j.pending[stream] = struct{}{}
		}
		j.cover(t, t.first)
	}
	for _, d := range j.damage {
		j.log.Error("a journal stream cannot be used", "error", d.err)
	}
	j.mergeTrim()
	return nil
}

// setDamage remembers the first thing that is wrong with a stream.
func (j *Journal) setDamage(hash uint64, err error) {
	if _, ok := j.damage[hash]; !ok {
		j.damage[hash] = streamDamage{err: err}
	}
}
