package journal

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// A Problem is one thing that is wrong in a journal's file.
type Problem struct {
	Bucket   string // which part of the file; empty for the file as a whole
	Stream   string // or key; as far as it could be read
	Seq      uint64 // sequence number in the stream; 0 if there is none
	Position uint64 // in the log; 0 if it is not in the log
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

// Check reads everything, as it stands after the last commit, verifies checksums, sequences and counts, and yields what
// is wrong. Its error says that it could not read.
func (j *Journal) Check(yield func(Problem) bool) error { return yieldProblems(j.view, yield) }

// Check checks a file that no process has open, without changing it: its pages, and what Journal.Check verifies.
func Check(path string, yield func(Problem) bool) error {
	in, err := inspect(path)
	if errors.Is(err, ErrCorrupt) {
		yield(Problem{Err: err})
		return nil // the rest cannot be read safely
	}
	if err != nil {
		return fmt.Errorf("check journal %s: %w", path, err)
	}
	return errors.Join(yieldProblems(in.view, yield), in.Close())
}

func yieldProblems(view func(string, func(*bbolt.Tx) error) error, yield func(Problem) bool) error {
	var found []Problem
	err := view("check", func(tx *bbolt.Tx) error {
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

// check reads every record and says what is wrong.
func check(tx *bbolt.Tx) []Problem {
	c := checker{tx: tx, streams: make(map[string]*loggedStream)}
	if c.meta() {
		c.events()
		c.snapshots()
		c.pending()
		c.claimsAndUses()
		c.marks()
	}
	return c.found
}

type checker struct {
	tx      *bbolt.Tx
	found   []Problem
	state   *fileState // nil if it is damaged
	streams map[string]*loggedStream
}

// A loggedStream is what the log holds of a stream: the events from first to last.
type loggedStream struct {
	first, last uint64
	pending     bool // its last event calls for work
	covered     bool // it has a snapshot
}

func (c *checker) report(bucket []byte, stream string, seq, pos uint64, err error) {
	c.found = append(c.found, Problem{string(bucket), stream, seq, pos, err})
}

// meta returns false if the rest cannot be read.
func (c *checker) meta() bool {
	meta := c.tx.Bucket(bucketMeta)
	if meta == nil {
		c.report(bucketMeta, "", 0, 0, errMissing)
		return false
	}
	if err := decodeFormat(meta.Get(metaFormat)); err != nil {
		c.report(bucketMeta, "", 0, 0, err)
		return false
	}
	if state, err := decodeState(metaState, meta.Get(metaState)); err != nil {
		c.report(bucketMeta, "", 0, 0, err)
	} else {
		c.state = &state
	}
	if _, err := decodeIdentity(meta.Get(metaIdentity)); err != nil {
		c.report(bucketMeta, "", 0, 0, fmt.Errorf("the journal's identity: %w", err))
	}
	return true
}

// each calls f for every entry of a counted bucket, and compares their number with the stored one.
func (c *checker) each(counted int, f func(k, v []byte)) {
	name := countedBuckets[counted]
	b := c.tx.Bucket(name)
	if b == nil {
		c.report(name, "", 0, 0, errMissing)
		return
	}
	n := uint64(0)
	for k, v := range all(b) {
		n++
		f(k, v)
	}
	if c.state != nil && n != c.state.counts[counted] {
		c.report(name, "", 0, 0, fmt.Errorf("it holds %d entries, not %d", n, c.state.counts[counted]))
	}
}

func (c *checker) events() {
	c.each(nEvents, func(k, v []byte) {
		pos := keyPosition(k)
		r, err := decodeEvent(k, v)
		if err != nil {
			c.report(bucketEvents, r.stream, r.seq, pos, err)
			return
		}
		if c.state != nil && pos > c.state.position {
			c.report(bucketEvents, r.stream, r.seq, pos, fmt.Errorf("it stands after the last position, %d", c.state.position))
		}
		s := c.streams[r.stream]
		switch {
		case r.flags&flagRemoved != 0:
			if s != nil {
				c.report(bucketEvents, r.stream, s.last, pos, errors.New("the stream was removed, but has events before that"))
			}
			delete(c.streams, r.stream)
			return
		case s == nil:
			s = &loggedStream{first: r.seq}
			c.streams[r.stream] = s
		case r.seq != s.last+1:
			c.report(bucketEvents, r.stream, s.last+1, 0, errMissing)
		}
		s.last, s.pending = r.seq, r.flags&flagPending != 0
	})
}

func (c *checker) snapshots() {
	c.each(nSnapshots, func(k, v []byte) {
		stream := string(k)
		s, err := decodeSnapshot(k, v)
		if err != nil {
			c.report(bucketSnapshots, stream, s.seq, 0, err)
			return
		}
		if c.state != nil && s.pos > c.state.position {
			c.report(bucketSnapshots, stream, s.seq, s.pos, fmt.Errorf("it covers more than there is, %d", c.state.position))
		}
		logged := c.streams[stream]
		if logged == nil {
			return
		}
		logged.covered = true
		if logged.first > s.seq+1 {
			c.report(bucketEvents, stream, s.seq+1, 0, errMissing)
		}
		if logged.last < s.seq {
			c.report(bucketEvents, stream, s.seq, 0, errMissing)
		}
	})
	for stream, logged := range c.streams {
		if !logged.covered && logged.first != 1 {
			c.report(bucketEvents, stream, logged.first-1, 0, errMissing)
		}
	}
}

func (c *checker) pending() {
	listed := make(map[string]bool)
	c.each(nPending, func(k, v []byte) {
		if err := sealed(k, v); err != nil {
			c.report(bucketPending, string(k), 0, 0, err)
			return
		}
		listed[string(k)] = true
	})
	for stream, logged := range c.streams {
		if logged.pending && !listed[stream] {
			c.report(bucketPending, stream, logged.last, 0, errMissing)
		}
	}
}

func (c *checker) claimsAndUses() {
	c.each(nClaims, func(k, v []byte) {
		if claim, err := decodeClaim(k, v); err != nil {
			c.report(bucketClaims, claim.Key, 0, 0, err)
		}
	})
	c.each(nUses, func(k, v []byte) {
		if _, _, err := decodeUse(k, v); err != nil {
			c.report(bucketUses, fmt.Sprintf("%q", k), 0, 0, err)
		}
	})
}

func (c *checker) marks() {
	b := c.tx.Bucket(bucketFollowers)
	if b == nil {
		c.report(bucketFollowers, "", 0, 0, errMissing)
		return
	}
	for k, v := range all(b) {
		if _, err := decodeMark(k, v); err != nil {
			c.report(bucketFollowers, string(k), 0, 0, err)
		}
	}
}
