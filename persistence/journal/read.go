package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

func keyPosition(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

// view reads the file as it stood after the last commit.
func (j *Journal) view(doing string, f func(*bbolt.Tx) error) error {
	err := guard(func() error { return j.db.View(f) })
	if errors.Is(err, errPanicked) {
		err = fmt.Errorf("%s: %s: %w", doing, j.path, err)
	}
	return err
}

// all yields the entries of a bucket in the order of their keys.
func all(b *bbolt.Bucket) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// readChunk is how many entries are read at a time, so that no transaction is held while somebody takes his time with
// them.
const readChunk = 1024

// Load reads what there is of a stream. Of a stream that nobody wrote, that is nothing: the zero Recovered.
//
// It fails with an error that wraps ErrCorrupt, and names file, stream and sequence number, if a record is damaged,
// of an unknown form, or missing between others.
func (j *Journal) Load(stream string) (Recovered, error) {
	var err error
	// The index is read before the file, so every event that it names is in the file, unless it was removed in between:
	// because a snapshot covers it, which then is in the file too, or with the whole stream, which a second look shows.
	for range 3 {
		var rec Recovered
		if rec, err = j.load1(stream); !errors.Is(err, errMissing) {
			return rec, err
		}
	}
	return Recovered{}, err
}

func (j *Journal) load1(stream string) (Recovered, error) {
	j.indexMu.RLock()
	d := j.damage[streamHash(stream)]
	var first uint64
	var positions []uint64
	if t := j.tails[stream]; t != nil {
		first, positions = t.first, slices.Clone(t.pos)
	}
	j.indexMu.RUnlock()
	if d.err != nil {
		return Recovered{}, d.err
	}
	var rec Recovered
	err := j.view("load "+stream, func(tx *bbolt.Tx) error {
		key := []byte(stream)
		if v := tx.Bucket(bucketSnapshots).Get(key); v != nil {
			s, err := decodeSnapshot(key, v)
			if err != nil {
				return j.damaged("snapshot", stream, s.seq, err)
			}
			rec.Seq, rec.SnapSeq, rec.Snapshot = s.seq, s.seq, append([]byte{}, s.state...)
		} else if len(positions) == 0 {
			if err := j.absent(bucketSnapshots, stream); err != nil {
				return err
			}
		}
		var events *bbolt.Bucket
		if len(positions) > 0 {
			events = tx.Bucket(bucketEvents)
		}
		for i, pos := range positions {
			seq := first + uint64(i)
			if seq <= rec.SnapSeq {
				continue
			}
			event, err := j.event(events, pos, stream, seq)
			if errors.Is(err, errMissing) {
				return fmt.Errorf("%w: %w", err, j.damaged("event", stream, seq, err))
			}
			if err != nil {
				return err
			}
			rec.Events = append(rec.Events, event)
			rec.Seq = seq
		}
		return nil
	})
	if err != nil {
		return Recovered{}, err
	}
	return rec, nil
}

// event reads one event of a stream, which the index says is at pos. It fails with errMissing if nothing is.
func (j *Journal) event(events *bbolt.Bucket, pos uint64, stream string, seq uint64) (Event, error) {
	key := positionKey(pos)
	v := events.Get(key)
	if v == nil {
		return Event{}, errMissing
	}
	r, err := decodeEvent(key, v)
	if err == nil && (r.stream != stream || r.seq != seq) {
		err = fmt.Errorf("it is sequence %d of %q", r.seq, r.stream)
	}
	if err != nil {
		return Event{}, j.damaged("event", stream, seq, err)
	}
	r.event.Data = bytes.Clone(r.event.Data)
	return r.event, nil
}

// LoadSince returns a stream's events after a position of the log, and the sequence of the first of them. There are none
// if the stream has none there, or they were removed: what Load gives is true in any case.
func (j *Journal) LoadSince(stream string, pos uint64) (first uint64, events []Event, err error) {
	j.indexMu.RLock()
	damage := j.damage[streamHash(stream)]
	var positions []uint64
	if t := j.tails[stream]; t != nil {
		at, _ := slices.BinarySearch(t.pos, pos+1)
		first, positions = t.first+uint64(at), slices.Clone(t.pos[at:])
	}
	j.indexMu.RUnlock()
	if damage.err != nil {
		return 0, nil, damage.err
	}
	err = j.view("load "+stream, func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketEvents)
		for i, pos := range positions {
			event, err := j.event(bucket, pos, stream, first+uint64(i))
			if errors.Is(err, errMissing) {
				events = nil // the stream was removed, or a snapshot has taken their place
				return nil
			}
			if err != nil {
				return err
			}
			events = append(events, event)
		}
		return nil
	})
	return first, events, err
}

// Claim finds who holds an idempotency key at now. A claim that expired is not found.
func (j *Journal) Claim(key string, now time.Time) (Claim, bool, error) {
	var c Claim
	var found bool
	err := j.view("look up a claim", func(tx *bbolt.Tx) error {
		v := tx.Bucket(bucketClaims).Get([]byte(key))
		if v == nil {
			return j.absent(bucketClaims, key)
		}
		var err error
		if c, err = decodeClaim([]byte(key), v); err != nil {
			return j.damaged("claim", c.Owner, 0, err)
		}
		found = c.Expires.After(now)
		return nil
	})
	if err != nil || !found {
		return Claim{}, false, err
	}
	return c, true, nil
}

// Pending yields the streams whose last append said that they call for work, in order of their names.
func (j *Journal) Pending(yield func(stream string) bool) error {
	j.indexMu.RLock()
	names := slices.Sorted(maps.Keys(j.pending))
	j.indexMu.RUnlock()
	for _, name := range names {
		if !yield(name) {
			break
		}
	}
	return nil
}

// eachSnapshot yields, from copies, so that yield may take its time, each stream that has a snapshot, with so much of
// its record as says how far it reaches.
func (j *Journal) eachSnapshot(yield func(stream string, head []byte)) error {
	type entry struct {
		stream string
		head   []byte
	}
	var from []byte
	for more := true; more; {
		var got []entry
		err := j.view("read snapshots", func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucketSnapshots).Cursor()
			k, v := c.Seek(from)
			for ; k != nil && len(got) < readChunk; k, v = c.Next() {
				got = append(got, entry{string(k), bytes.Clone(v[:min(len(v), recordHead+32)])})
			}
			more, from = k != nil, bytes.Clone(k)
			return nil
		})
		if err != nil {
			return err
		}
		for _, e := range got {
			yield(e.stream, e.head)
		}
	}
	return nil
}

// Position is the position of the last event on disk. Positions rise from 1, over all streams.
func (j *Journal) Position() uint64 { return j.position.Load() }

// Trimmed is the highest position of a record that was removed from the log because a snapshot covers it. Who comes
// with a position below it, and did not hold it with a Follower, does not hear of streams that were removed before.
func (j *Journal) Trimmed() uint64 { return j.trimmed.Load() }

// pin keeps what is after pos from being removed until unpin is called.
func (j *Journal) pin(pos uint64) (unpin func()) {
	j.followMu.Lock()
	defer j.followMu.Unlock()
	j.pins[&pos] = struct{}{}
	return func() {
		j.followMu.Lock()
		defer j.followMu.Unlock()
		delete(j.pins, &pos)
	}
}

// Since yields, in the order of positions, what changed after pos: for each event on disk its position and its stream.
// For events that were removed because a snapshot covers them it yields the stream once, at the position of the last
// event that the snapshot covers. A removed stream is yielded at the position of its removal; Load then finds nothing.
//
// So who has handled everything that was yielded up to position p knows every stream as it was at p or later, and may
// go on from p another time. A stream is yielded more than once if it changed more than once.
func (j *Journal) Since(pos uint64, yield func(pos uint64, stream string) bool) error {
	// Nothing after pos is removed while this reads. A commit that has chosen already what it removes ends first.
	defer j.pin(pos)()
	j.commitMu.Lock()
	trimmed := j.trimmed.Load()
	j.commitMu.Unlock()

	type change struct {
		pos    uint64
		stream string
	}
	var rested []change
	if pos < trimmed {
		err := j.eachSnapshot(func(stream string, head []byte) {
			if s, err := parseSnapshot(head); err == nil && s.pos > pos && s.pos <= trimmed {
				rested = append(rested, change{s.pos, stream})
			}
		})
		if err != nil {
			return err
		}
		slices.SortFunc(rested, func(a, b change) int { return cmp.Compare(a.pos, b.pos) })
	}
	next := pos + 1
	for more := true; more; {
		var got []change
		err := j.view("read the log", func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucketEvents).Cursor()
			k, v := c.Seek(positionKey(next))
			for ; k != nil && len(got) < readChunk; k, v = c.Next() {
				next = keyPosition(k) + 1
				if r, err := decodeEvent(k, v); err == nil { // a damaged one shows in its stream's Load
					got = append(got, change{next - 1, r.stream})
				}
			}
			more = k != nil
			return nil
		})
		if err != nil {
			return err
		}
		for _, e := range got {
			for len(rested) > 0 && rested[0].pos < e.pos {
				if !yield(rested[0].pos, rested[0].stream) {
					return nil
				}
				rested = rested[1:]
			}
			if !yield(e.pos, e.stream) {
				return nil
			}
		}
	}
	for _, e := range rested {
		if !yield(e.pos, e.stream) {
			return nil
		}
	}
	return nil
}

// Backup writes a consistent copy of the file, as it stands after the last commit, to w. Appends go on meanwhile; the
// file grows by what they change until the copy is done.
func (j *Journal) Backup(w io.Writer) error {
	return j.view("back up", func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(w)
		if err != nil {
			return fmt.Errorf("back up journal %s: %w", j.path, err)
		}
		return nil
	})
}

// A Logged is an event with its place in the log. If a stream was removed, there is no event.
type Logged struct {
	Pos     uint64
	Stream  string // empty if its record is damaged
	Seq     uint64
	Removed bool
	Event   Event
}

// logChunk is how many bytes of events are read at a time, or a little more.
const logChunk = 1 << 20

// Log yields, in the order of positions, the events after pos whose types are wanted, and the removals of streams. What a
// Follower has not acknowledged is there, but for the events of streams that were removed.
func (j *Journal) Log(pos uint64, wanted func(eventType string) bool, yield func(Logged) bool) error {
	defer j.pin(pos)()
	next := pos + 1
	for more := true; more; {
		var got []Logged
		err := j.view("read the log", func(tx *bbolt.Tx) error {
			c := tx.Bucket(bucketEvents).Cursor()
			k, v := c.Seek(positionKey(next))
			for n, size := 0, 0; k != nil && n < readChunk && size < logChunk; k, v = c.Next() {
				n++
				next = keyPosition(k) + 1
				r, err := decodeEvent(k, v)
				if err != nil {
					got = append(got, Logged{Pos: next - 1})
					continue
				}
				removed := r.flags&flagRemoved != 0
				if !removed && !wanted(r.event.Type) {
					continue
				}
				r.event.Data = bytes.Clone(r.event.Data)
				size += len(r.event.Data)
				got = append(got, Logged{Pos: next - 1, Stream: r.stream, Seq: r.seq, Removed: removed, Event: r.event})
			}
			more = k != nil
			return nil
		})
		if err != nil {
			return err
		}
		for _, e := range got {
			if !yield(e) {
				return nil
			}
		}
	}
	return nil
}
