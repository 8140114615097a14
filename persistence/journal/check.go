package journal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"go.etcd.io/bbolt"
)

// A Problem is one thing that is wrong in a journal's file.
type Problem struct {
	Bucket   string // which part of the file; empty for the file as a whole
	Stream   string // or key; as far as it could be read
	Seq      uint64 // sequence number in the stream; 0 where there is none
	Position uint64 // in the log; 0 where it is not in the log
	Err      error
}

func (p Problem) String() string {
	s := p.Bucket
	if p.Bucket == "" {
		s = "file"
	}
	if p.Stream != "" {
		s += fmt.Sprintf(" %q", p.Stream)
	}
	if p.Seq != 0 {
		s += fmt.Sprintf(" sequence %d", p.Seq)
	}
	if p.Position != 0 {
		s += fmt.Sprintf(" position %d", p.Position)
	}
	return s + ": " + p.Err.Error()
}

// Check reads everything, as it stands after the last commit, verifies checksums, sequences and counts, and yields what is
// wrong. Its error says that it could not read.
func (j *Journal) Check(yield func(Problem) bool) error {
	var found []Problem
	err := j.view("check", func(tx *bbolt.Tx) error {
		found = check(tx)
		return nil
	})
	if errors.Is(err, ErrCorrupt) {
		found, err = append(found, Problem{Err: err}), nil
	}
	for _, p := range found {
		if !yield(p) {
			break
		}
	}
	return err
}

// Check checks a file that no process has open, without changing it: its pages, and what Check verifies.
func Check(path string, yield func(Problem) bool) error {
	o := Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), LockTimeout: defaultLockTimeout}
	if _, err := verifyFile(path, &o); errors.Is(err, ErrCorrupt) {
		yield(Problem{Err: err})
		return nil // the rest cannot be read safely
	} else if err != nil {
		return fmt.Errorf("check journal %s: %w", path, err)
	}
	var found []Problem
	err := guard(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: o.LockTimeout})
		if err != nil {
			return lockError(err)
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			found = check(tx)
			return nil
		})
	})
	if errors.Is(err, ErrCorrupt) {
		found, err = append(found, Problem{Err: err}), nil
	}
	for _, p := range found {
		if !yield(p) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("check journal %s: %w", path, err)
	}
	return nil
}

func check(tx *bbolt.Tx) (found []Problem) {
	report := func(bucket []byte, stream string, seq, pos uint64, err error) {
		found = append(found, Problem{string(bucket), stream, seq, pos, err})
	}
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		report(bucketMeta, "", 0, 0, errMissing)
		return found
	}
	if err := decodeFormat(meta.Get(metaFormat)); err != nil {
		report(bucketMeta, "", 0, 0, err)
		return found
	}
	state, err := decodeState(metaState, meta.Get(metaState))
	if err != nil {
		report(bucketMeta, "", 0, 0, err)
	}
	known := err == nil
	if _, err := decodeIdentity(meta.Get(metaIdentity)); err != nil {
		report(bucketMeta, "", 0, 0, fmt.Errorf("the journal's identity: %w", err))
	}
	each := func(i int, f func(k, v []byte)) {
		b := tx.Bucket(countedBuckets[i])
		if b == nil {
			report(countedBuckets[i], "", 0, 0, errMissing)
			return
		}
		n := uint64(0)
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			n++
			f(k, v)
		}
		if known && n != state.counts[i] {
			report(countedBuckets[i], "", 0, 0, fmt.Errorf("it holds %d entries, not %d", n, state.counts[i]))
		}
	}

	type extent struct {
		first, last uint64
		pending     bool
	}
	streams := make(map[string]*extent)
	each(nEvents, func(k, v []byte) {
		pos := keyPosition(k)
		r, err := decodeEvent(k, v)
		if err != nil {
			report(bucketEvents, r.stream, r.seq, pos, err)
			return
		}
		if known && pos > state.position {
			report(bucketEvents, r.stream, r.seq, pos, fmt.Errorf("it stands after the last position, %d", state.position))
		}
		e := streams[r.stream]
		switch {
		case r.flags&flagRemoved != 0:
			if e != nil {
				report(bucketEvents, r.stream, e.last, pos, errors.New("the stream was removed, but has events before that"))
			}
			delete(streams, r.stream)
			return
		case e == nil:
			e = &extent{first: r.seq}
			streams[r.stream] = e
		case r.seq != e.last+1:
			report(bucketEvents, r.stream, e.last+1, 0, errMissing)
		}
		e.last, e.pending = r.seq, r.flags&flagPending != 0
	})
	each(nSnapshots, func(k, v []byte) {
		s, err := decodeSnapshot(k, v)
		if err != nil {
			report(bucketSnapshots, string(k), s.seq, 0, err)
			return
		}
		if known && s.pos > state.position {
			report(bucketSnapshots, string(k), s.seq, s.pos, fmt.Errorf("it covers more than there is, %d", state.position))
		}
		if e := streams[string(k)]; e != nil {
			if e.first > s.seq+1 {
				report(bucketEvents, string(k), s.seq+1, 0, errMissing)
			}
			if e.last < s.seq {
				report(bucketEvents, string(k), s.seq, 0, errMissing)
			}
			e.first = 1 // it has been looked at
		}
	})
	for stream, e := range streams {
		if e.first != 1 {
			report(bucketEvents, stream, e.first-1, 0, errMissing)
		}
	}
	pending := make(map[string]bool)
	each(nPending, func(k, v []byte) {
		if err := sealed(k, v); err != nil {
			report(bucketPending, string(k), 0, 0, err)
			return
		}
		pending[string(k)] = true
	})
	for stream, e := range streams {
		if e.pending && !pending[stream] {
			report(bucketPending, stream, e.last, 0, errMissing)
		}
	}
	each(nClaims, func(k, v []byte) {
		if c, err := decodeClaim(k, v); err != nil {
			report(bucketClaims, c.Key, 0, 0, err)
		}
	})
	each(nUses, func(k, v []byte) {
		if _, _, err := decodeUse(k, v); err != nil {
			report(bucketUses, fmt.Sprintf("%q", k), 0, 0, err)
		}
	})
	if b := tx.Bucket(bucketFollowers); b == nil {
		report(bucketFollowers, "", 0, 0, errMissing)
	} else {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if _, err := decodeMark(k, v); err != nil {
				report(bucketFollowers, string(k), 0, 0, err)
			}
		}
	}
	return found
}
