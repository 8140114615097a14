package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// A Record is one entry of a journal's file as it stands there, damaged or not.
type Record struct {
	Bucket   string // "events", "snapshots", "pending", "claims", "uses" or "meta"
	Key      []byte
	Value    []byte // as stored, with its checksums
	Stream   string // as far as it could be read
	Seq      uint64 // of an event, or the last one that a snapshot covers
	Position uint64 // of an event
	Event    Event  // of an event
	State    []byte // of a snapshot
	Err      error  // what is wrong with it
}

// An Inspection reads a journal's file without changing it, whatever is damaged in it.
type Inspection struct {
	view  func(doing string, f func(*bbolt.Tx) error) error
	close func() error
}

// Inspect looks at the journal while it is in use.
func (j *Journal) Inspect() *Inspection {
	return &Inspection{j.view, func() error { return nil }}
}

// Streams is Inspection.Streams of the journal while it is in use.
func (j *Journal) Streams(yield func(stream string, rec Recovered) bool) error {
	return j.Inspect().Streams(yield)
}

// Inspect looks at a file that no process has open. Damage of its pages, after which the rest cannot be read
// safely, is an error that wraps ErrCorrupt.
func Inspect(path string) (*Inspection, error) {
	in, err := inspect(path)
	if err != nil {
		return nil, fmt.Errorf("inspect journal %s: %w", path, err)
	}
	return in, nil
}

func inspect(path string) (*Inspection, error) {
	o := Options{LockTimeout: defaultLockTimeout}
	if _, err := verifyFile(path, &o); err != nil {
		return nil, err
	}
	var db *bbolt.DB
	err := guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: o.LockTimeout})
		return err
	})
	if err != nil {
		return nil, lockError(err)
	}
	view := func(doing string, f func(*bbolt.Tx) error) error {
		if err := guard(func() error { return db.View(f) }); err != nil {
			return fmt.Errorf("%s: %s: %w", doing, path, err)
		}
		return nil
	}
	return &Inspection{view, func() error { return guard(db.Close) }}, nil
}

// Close lets the file go.
func (i *Inspection) Close() error { return i.close() }

// Records yields what there is of a stream: its snapshot, and then every event that bears its name or the hash of its
// name, in the order of positions. It looks through the whole log.
func (i *Inspection) Records(stream string, yield func(Record) bool) error {
	return i.view("read "+stream, func(tx *bbolt.Tx) error {
		if b := tx.Bucket(bucketSnapshots); b != nil {
			if v := b.Get([]byte(stream)); v != nil && !yield(snapshotOf([]byte(stream), v)) {
				return nil
			}
		}
		b := tx.Bucket(bucketEvents)
		if b == nil {
			return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, bucketEvents)
		}
		hash := streamHash(stream)
		for k, v := range all(b) {
			r, _ := parseEvent(v)
			if r.stream != stream && r.hash != hash || r.flags&flagRemoved != 0 && sealed(k, v) == nil {
				continue
			}
			if !yield(eventOf(k, v)) {
				return nil
			}
		}
		return nil
	})
}

func snapshotOf(k, v []byte) Record {
	s, err := decodeSnapshot(k, v)
	return Record{Bucket: string(bucketSnapshots), Key: bytes.Clone(k), Value: bytes.Clone(v), Stream: string(k),
		Seq: s.seq, State: bytes.Clone(s.state), Err: err}
}

func eventOf(k, v []byte) Record {
	v = bytes.Clone(v)
	r, err := decodeEvent(k, v)
	return Record{Bucket: string(bucketEvents), Key: bytes.Clone(k), Value: v, Stream: r.stream, Seq: r.seq,
		Position: keyPosition(k), Event: r.event, Err: err}
}

// Streams yields every stream with what Load would find of it, so that the caller can try whether it understands that.
// Streams with damaged or missing records are left out: Check names those.
func (i *Inspection) Streams(yield func(stream string, rec Recovered) bool) error {
	return i.view("read the streams", func(tx *bbolt.Tx) error {
		events, snapshots := tx.Bucket(bucketEvents), tx.Bucket(bucketSnapshots)
		if events == nil || snapshots == nil {
			return fmt.Errorf("%w: a bucket is missing", ErrCorrupt)
		}
		logged := make(map[string][]uint64)
		damaged := make(map[uint64]bool)
		for k, v := range all(events) {
			r, err := decodeEvent(k, v)
			if err != nil {
				damaged[r.hash], damaged[streamHash(r.stream)] = true, true
				continue
			}
			if r.flags&flagRemoved == 0 {
				logged[r.stream] = append(logged[r.stream], keyPosition(k))
			}
		}
		whole := func(stream string, snapshot []byte) (rec Recovered, ok bool) {
			if damaged[streamHash(stream)] {
				return rec, false
			}
			if snapshot != nil {
				s, err := decodeSnapshot([]byte(stream), snapshot)
				if err != nil {
					return rec, false
				}
				rec = Recovered{Seq: s.seq, SnapSeq: s.seq, Snapshot: append([]byte{}, s.state...)}
			}
			for _, pos := range logged[stream] {
				r, err := decodeEvent(positionKey(pos), events.Get(positionKey(pos)))
				if err != nil || r.seq > rec.Seq+1 {
					return rec, false
				}
				if r.seq == rec.Seq+1 {
					r.event.Data = bytes.Clone(r.event.Data)
					rec.Events, rec.Seq = append(rec.Events, r.event), r.seq
				}
			}
			return rec, true
		}
		for k, v := range all(snapshots) {
			stream := string(k)
			rec, ok := whole(stream, v)
			delete(logged, stream)
			if ok && !yield(stream, rec) {
				return nil
			}
		}
		for _, stream := range slices.Sorted(maps.Keys(logged)) {
			if rec, ok := whole(stream, nil); ok && !yield(stream, rec) {
				return nil
			}
		}
		return nil
	})
}

// Stats counts what stands in the file.
func (i *Inspection) Stats() (s Stats, err error) {
	err = i.view("count", func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, bucketMeta)
		}
		state, err := decodeState(metaState, meta.Get(metaState))
		if err != nil {
			return errors.Join(ErrCorrupt, err)
		}
		s = Stats{Position: state.position, Events: state.counts[nEvents], Snapshots: state.counts[nSnapshots],
			Pending: int(state.counts[nPending]), FileBytes: tx.Size()}
		return nil
	})
	return s, err
}
