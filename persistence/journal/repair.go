package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// A Repaired is one thing that Repair did.
type Repaired struct {
	Bucket  string
	Stream  string // or key; as far as it could be read
	What    string // was done
	Lost    bool   // something that was acknowledged is no longer in the journal
	Records int    // that were taken out
}

// Repair takes out of the journal what Check finds damaged, so that the rest works, and keeps the rest as it is. Each
// record is handed to keep before it goes, and kept is called after the last one. It also takes out the streams that
// aside names, damaged or not. It is done as one commit: if it fails, or keep or kept does, nothing has changed.
//
// A stream whose snapshot covers all that is damaged, or whose events are all there when its snapshot is damaged, is
// mended and loses nothing. Of another nothing is guessed: it goes as a whole, and followers hear that it was removed.
// Nothing else may use the journal meanwhile. Open it with AcceptDamage.
func (j *Journal) Repair(aside []string, keep func(Record) error, kept func() error) ([]Repaired, error) {
	var done []Repaired
	err := j.do(func(c *commit) error {
		r := &repair{c: c, keep: keep}
		if err := r.run(aside); err != nil {
			return err
		}
		if err := kept(); err != nil {
			return err
		}
		done = r.done
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("repair journal %s: %w", j.path, err)
	}
	return done, nil
}

type repair struct {
	c    *commit
	keep func(Record) error
	done []Repaired
}

func (r *repair) run(aside []string) error {
	if len(check(r.c.tx)) == 0 && len(aside) == 0 {
		return nil
	}
	r.c.wrote = true // the counts that AcceptDamage took over
	for _, step := range []func() error{
		func() error { return r.streams(aside) }, r.strays, r.pending,
		func() error {
			what := "an idempotency key is forgotten: a request with it would be taken as new"
			return r.drop(nClaims, what, func(k, v []byte) error {
				_, err := decodeClaim(k, v)
				return err
			})
		},
		func() error {
			return r.drop(nUses, "a quota's count of one interval is forgotten", func(k, v []byte) error {
				_, _, err := decodeUse(k, v)
				return err
			})
		},
		r.identity, r.marks,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// identity takes out a damaged record of which journal this is and which catalog it works with.
func (r *repair) identity() error {
	meta := r.c.tx.Bucket(bucketMeta)
	value := bytes.Clone(meta.Get(metaIdentity))
	_, damage := decodeIdentity(value)
	if damage == nil {
		return nil
	}
	if err := r.keep(Record{Bucket: string(bucketMeta), Key: metaIdentity, Value: value, Err: damage}); err != nil {
		return err
	}
	if err := meta.Delete(metaIdentity); err != nil {
		return fmt.Errorf("%w: %w", errFatal, err)
	}
	r.did(bucketMeta, string(metaIdentity), "which journal this is was taken out; "+
		"`docent journal adopt` has the catalogue take it as it stands", false, 1)
	return nil
}

// streams mends or takes out the streams that are damaged, and takes out those that aside names.
func (r *repair) streams(aside []string) error {
	names, known := r.suspects()
	for _, name := range aside {
		if r.unknown(name) {
			return fmt.Errorf("there is no stream %q", name)
		}
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := r.mend(name, names[name], known); err != nil {
			return err
		}
	}
	return nil
}

// suspects are the streams that may be damaged, none of which is to be taken out whatever its state, and the hashes of
// the names of all streams. The undamaged ones, of which there may be very many, are not among the suspects if they
// have no events.
func (r *repair) suspects() (names map[string]bool, known map[uint64]bool) {
	j := r.c.j
	names, known = make(map[string]bool), make(map[uint64]bool)
	for name := range j.tails {
		names[name] = false
		known[streamHash(name)] = true
	}
	for name := range j.pending {
		names[name] = false
	}
	for k, v := range all(r.c.buckets[nSnapshots]) {
		hash := streamHash(string(k))
		known[hash] = true
		if _, err := decodeSnapshot(k, v); err != nil || j.damage[hash].err != nil {
			names[string(k)] = false
		}
	}
	return names, known
}

// unknown reports whether the journal has nothing of a stream.
func (r *repair) unknown(name string) bool {
	_, err := r.c.last(name)
	return err == nil && r.c.j.tails[name] == nil && r.c.buckets[nSnapshots].Get([]byte(name)) == nil &&
		r.c.j.damage[streamHash(name)].err == nil
}

// mend lets a stream go on from what is whole of it, if that is all that was acknowledged, and takes it out
// otherwise. Of an undamaged stream it does nothing, unless the stream is to be taken out.
func (r *repair) mend(name string, out bool, known map[uint64]bool) error {
	key := []byte(name)
	value := bytes.Clone(r.c.buckets[nSnapshots].Get(key))
	var snapshot snapshotRecord
	var snapErr error
	if value != nil {
		snapshot, snapErr = decodeSnapshot(key, value)
	}
	t := r.c.j.tails[name]
	damage := r.own(name, known)
	if len(damage.pos) == 0 && snapErr == nil && (t == nil || r.follows(t, snapshot.pos, snapshot.seq)) {
		damage.err = nil // its only fault was another's damaged name
	}
	switch {
	case out:
	case damage.err == nil && snapErr == nil:
		return nil
	case snapErr != nil && len(damage.pos) == 0 && t != nil && keySealed(key, value) && r.follows(t, 0, 0):
		if err := r.keep(snapshotOf(key, value)); err != nil {
			return err
		}
		r.did(bucketSnapshots, name, "its damaged snapshot was taken out; "+
			"all its events are there, and it goes on from them", false, 1)
		return r.c.delete(nSnapshots, key)
	case snapErr == nil && value != nil && r.covered(t, damage, snapshot):
		n, err := r.shorten(t, damage, snapshot)
		r.did(bucketEvents, name, "damaged events were taken out that its snapshot covers; it goes on from that", false, n)
		return err
	}
	return r.takeOut(name, value, t, damage)
}

// own is what is damaged of a stream. The journal holds a damaged event against the stream that it names and against
// the one whose hash it bears; if there is a stream of that hash, the name is what is damaged.
func (r *repair) own(name string, known map[uint64]bool) streamDamage {
	d := r.c.j.damage[streamHash(name)]
	d.pos = slices.DeleteFunc(slices.Clone(d.pos), func(pos uint64) bool {
		v := r.c.buckets[nEvents].Get(positionKey(pos))
		rec, _ := parseEvent(v)
		return v == nil /* taken out with the other */ || rec.hash != streamHash(name) && known[rec.hash]
	})
	return d
}

// follows reports whether the events of t after position after are all there and follow upon sequence number seq.
func (r *repair) follows(t *tail, after, seq uint64) bool {
	for _, pos := range t.pos {
		if pos <= after {
			continue
		}
		rec, err := decodeEvent(positionKey(pos), r.c.buckets[nEvents].Get(positionKey(pos)))
		if seq++; err != nil || rec.seq != seq {
			return false
		}
	}
	return true
}

// covered reports whether the snapshot covers whatever is damaged or missing, and what is left follows upon it.
func (r *repair) covered(t *tail, d streamDamage, s snapshotRecord) bool {
	for _, pos := range d.pos {
		if v := r.c.buckets[nEvents].Get(positionKey(pos)); pos > s.pos || !keySealed(positionKey(pos), v) {
			return false
		}
	}
	return t == nil && len(d.pos) > 0 || t != nil && r.follows(t, s.pos, s.seq)
}

// shorten takes out the events that the snapshot covers.
func (r *repair) shorten(t *tail, d streamDamage, s snapshotRecord) (int, error) {
	positions := slices.Clone(d.pos)
	if t != nil {
		for _, pos := range t.pos {
			if pos <= s.pos {
				positions = append(positions, pos)
			}
		}
	}
	return r.events(positions)
}

// events takes out the events at positions.
func (r *repair) events(positions []uint64) (n int, err error) {
	slices.Sort(positions)
	for _, pos := range slices.Compact(positions) {
		key := positionKey(pos)
		v := r.c.buckets[nEvents].Get(key)
		if v == nil {
			continue
		}
		if err := r.keep(eventOf(key, v)); err != nil {
			return n, err
		}
		if err := r.c.deleteEvent(pos); err != nil {
			return n, err
		}
		r.c.state.trimmed = max(r.c.state.trimmed, pos)
		n++
	}
	return n, nil
}

// takeOut removes a stream, with the mark that tells followers.
func (r *repair) takeOut(name string, snapshot []byte, t *tail, d streamDamage) error {
	n := 0
	if snapshot != nil {
		if err := r.keep(snapshotOf([]byte(name), snapshot)); err != nil {
			return err
		}
		n++
	}
	positions := slices.Clone(d.pos)
	if t != nil {
		positions = append(positions, t.pos...)
	}
	events, err := r.events(positions)
	if err != nil {
		return err
	}
	if err := r.c.remove(name); err != nil {
		return err
	}
	what := "the stream was taken out"
	if d.err != nil {
		what += ": " + d.err.Error()
	}
	r.did(bucketEvents, name, what, true, n+events)
	return nil
}

func (r *repair) did(bucket []byte, stream, what string, lost bool, records int) {
	r.done = append(r.done, Repaired{Bucket: string(bucket), Stream: stream, What: what, Lost: lost, Records: records})
}

// strays takes out events whose stream cannot be told, and events behind the end.
func (r *repair) strays() error {
	var positions []uint64
	for k, v := range all(r.c.buckets[nEvents]) {
		if _, err := decodeEvent(k, v); err != nil {
			if len(k) != 8 {
				return fmt.Errorf("%w: a position has %d bytes", ErrCorrupt, len(k))
			}
			positions = append(positions, keyPosition(k))
		}
	}
	for _, pos := range positions {
		rec := eventOf(positionKey(pos), r.c.buckets[nEvents].Get(positionKey(pos)))
		if _, err := r.events([]uint64{pos}); err != nil {
			return err
		}
		r.did(bucketEvents, rec.Stream, fmt.Sprintf("the event at position %d was taken out, whose stream cannot be told: "+
			"the last event of some stream may be missing", pos), true, 1)
	}
	return nil
}

// pending sets right which streams call for work: those whose last event says so.
func (r *repair) pending() error {
	c := r.c
	var wrong [][]byte
	for k, v := range all(c.buckets[nPending]) {
		if sealed(k, v) != nil {
			wrong = append(wrong, bytes.Clone(k))
		}
	}
	for _, k := range wrong {
		if err := c.delete(nPending, k); err != nil {
			return err
		}
		if _, had := c.lasts[string(k)]; had { // it was taken out
			continue
		}
		if c.buckets[nSnapshots].Get(k) != nil || c.j.tails[string(k)] != nil { // waking a stream for nothing does no harm
			if err := c.add(nPending, k, encodePending(k)); err != nil {
				return err
			}
		}
		r.did(bucketPending, string(k), "its entry among the streams that call for work was rewritten", false, 0)
	}
	for _, stream := range slices.Sorted(maps.Keys(c.j.pending)) {
		key := []byte(stream)
		if _, removed := c.lasts[stream]; removed || c.buckets[nPending].Get(key) != nil {
			continue
		}
		if c.buckets[nSnapshots].Get(key) == nil && c.j.tails[stream] == nil {
			continue
		}
		if err := c.add(nPending, key, encodePending(key)); err != nil {
			return err
		}
		r.did(bucketPending, stream, "it calls for work and is listed again", false, 0)
	}
	return nil
}

// drop takes out the entries of a bucket that do not decode.
func (r *repair) drop(counted int, what string, decode func(k, v []byte) error) error {
	b, name := r.c.buckets[counted], countedBuckets[counted]
	var bad [][]byte
	for k, v := range all(b) {
		if decode(k, v) != nil {
			bad = append(bad, bytes.Clone(k))
		}
	}
	for _, k := range bad {
		v := bytes.Clone(b.Get(k))
		if err := r.keep(Record{Bucket: string(name), Key: k, Value: v, Err: decode(k, v)}); err != nil {
			return err
		}
		if err := r.c.delete(counted, k); err != nil {
			return err
		}
		r.did(name, fmt.Sprintf("%q", k), what, true, 1)
	}
	return nil
}

// marks resets damaged marks of followers to the start: that holds events for longer and loses nothing.
func (r *repair) marks() error {
	var bad []string
	for k, v := range all(r.c.tx.Bucket(bucketFollowers)) {
		if _, err := decodeMark(k, v); err != nil {
			bad = append(bad, string(k))
		}
	}
	for _, name := range bad {
		if err := r.c.putMark(name, 0); err != nil {
			return err
		}
		r.did(bucketFollowers, name, "the follower starts over", false, 0)
	}
	return nil
}

// guessState makes the journal's state from what is in the file, if the stored one is damaged.
func guessState(tx *bbolt.Tx, entries map[string]uint64) (fileState, error) {
	var s fileState
	events, snapshots := tx.Bucket(bucketEvents), tx.Bucket(bucketSnapshots)
	if events == nil || snapshots == nil {
		return s, errors.New("a bucket is missing")
	}
	if k, _ := events.Cursor().Last(); k != nil {
		s.position = keyPosition(k)
	}
	for k, v := range all(snapshots) {
		if snap, err := decodeSnapshot(k, v); err == nil {
			s.position, s.trimmed = max(s.position, snap.pos), max(s.trimmed, snap.pos)
		}
	}
	for i, name := range countedBuckets {
		s.counts[i] = entries[string(name)]
	}
	return s, nil
}
