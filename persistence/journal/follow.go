package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A followMark is how far a follower has come. Nothing after it is removed from the log.
type followMark struct {
	acked   uint64
	watches []chan struct{}
}

// A follower is the Follower of a journal in a file.
type follower struct {
	*Journal
	name string
	c    chan struct{}
}

// Follow begins, or goes on, to follow the log under a name. The name's mark is on disk when Follow returns, and holds
// back the removal of events, also over restarts, until Ack moves it; a new name's mark stands at the start. The
// follower itself remembers what it has handled and reads on with Since.
func (j *Journal) Follow(name string) (Follower, error) {
	if len(name) == 0 || len(name) > maxEventType {
		return nil, fmt.Errorf("a follower's name has 1 to %d bytes", maxEventType)
	}
	f := &follower{j, name, make(chan struct{}, 1)}
	f.c <- struct{}{}
	j.followMu.Lock()
	m := j.followers[name]
	fresh := m == nil
	if fresh {
		m = &followMark{}
		j.followers[name] = m
	}
	m.watches = append(m.watches, f.c)
	j.marksDirty = j.marksDirty || fresh
	j.followMu.Unlock()
	if fresh {
		err := j.do(func(c *commit) error { return c.putMark(name, 0) })
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("follow the journal as %s: %w", name, err)
		}
	}
	return f, nil
}

// Changed receives after commits, at once for the first time; several may be reported as one. It is never closed.
func (f *follower) Changed() <-chan struct{} { return f.c }

// Ack says that everything up to pos is handled and remembered. The mark reaches the disk some time later.
func (f *follower) Ack(pos uint64) {
	f.followMu.Lock()
	first := false
	if m := f.followers[f.name]; m != nil && pos > m.acked {
		m.acked = pos
		first = !f.marksDirty
		f.marksDirty = true
	}
	f.followMu.Unlock()
	if first {
		f.poke()
	}
}

// End is Position: nobody else writes to the file.
func (f *follower) End() (uint64, error) { return f.Position(), nil }

// Close ends the notifications. The mark stays.
func (f *follower) Close() {
	f.followMu.Lock()
	defer f.followMu.Unlock()
	if m := f.followers[f.name]; m != nil {
		m.watches = slices.DeleteFunc(m.watches, func(c chan struct{}) bool { return c == f.c })
	}
}

func (j *Journal) notify() {
	j.followMu.Lock()
	defer j.followMu.Unlock()
	for _, m := range j.followers {
		for _, c := range m.watches {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

func (j *Journal) marksWait() bool {
	j.followMu.Lock()
	defer j.followMu.Unlock()
	return j.marksDirty
}

// storeMarks writes the followers' marks, now and then.
func (c *commit) storeMarks() error {
	j := c.j
	if !j.marksWait() || (time.Since(j.marksAt) < marksEvery && !j.closing()) {
		return nil
	}
	j.followMu.Lock()
	acked := make(map[string]uint64, len(j.followers))
	for name, m := range j.followers {
		acked[name] = m.acked
	}
	j.marksDirty = false
	j.followMu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(acked)) {
		if err := c.putMark(name, acked[name]); err != nil {
			return err
		}
	}
	c.marks, c.wrote = true, true
	return nil
}

func (c *commit) putMark(name string, pos uint64) error {
	key := []byte(name)
	buf := binary.BigEndian.AppendUint64(head(nil), pos)
	seal(key, buf)
	return c.put(c.tx.Bucket(bucketFollowers), key, buf)
}

func decodeMark(key, body []byte) (uint64, error) {
	if err := sealed(key, body); err != nil {
		return 0, err
	}
	if len(body) != recordHead+8 {
		return 0, errors.New("the record is cut off")
	}
	return binary.BigEndian.Uint64(body[recordHead:]), nil
}
