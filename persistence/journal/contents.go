package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"docent/internal/disk"
	"docent/persistence/quota"

	"go.etcd.io/bbolt"
)

// What a journal holds, whole and as it stands, so that another kind of journal can take it over. Everything keeps its
// position: who follows the journal goes on in the copy where it was.
type (
	// A Head says how far a journal has come.
	Head struct {
		Identity Identity // its ID, Catalog and Revision
		Position uint64
		Trimmed  uint64
	}
	// An Entry is a record of the log: an event, or the removal of a stream.
	Entry struct {
		Pos     uint64
		Stream  string
		Seq     uint64
		Removed bool // not an event: the stream ended here, with everything of it
		Event   Event
	}
	// A State is the snapshot of a stream.
	State struct {
		Stream string
		Seq    uint64 // of the last event that it covers
		Pos    uint64 // of the same event
		State  []byte
	}
	// A PendingStream calls for work.
	PendingStream string
	// A Count is how often something was used in a slot of a window that ends at End, in Unix seconds.
	Count struct {
		Window quota.Window
		Key    string
		End    int64
		Count  uint32
	}
	// A Mark is how far a follower has come.
	Mark struct {
		Follower string
		Pos      uint64
	}
)

// Contents yields everything that the journal holds, each as one of the types Head, PendingStream, Entry, State, Claim,
// Count and Mark, in that order: entries by position, pending streams and states by stream, claims by key, counts by
// end, window and key, marks by follower, names as bytes compare. It fails with an error that wraps ErrCorrupt if a
// record is damaged. What is yielded may be kept.
func (i *Inspection) Contents(yield func(any) error) error {
	return i.view("read", func(tx *bbolt.Tx) error { return contents(tx, yield) })
}

func contents(tx *bbolt.Tx, yield func(any) error) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, bucketMeta)
	}
	state, err := decodeState(metaState, meta.Get(metaState))
	if err != nil {
		return fmt.Errorf("%w: the journal's state: %w", ErrCorrupt, err)
	}
	is, err := decodeIdentity(meta.Get(metaIdentity))
	if err != nil {
		return fmt.Errorf("%w: the journal's identity: %w", ErrCorrupt, err)
	}
	if err := yield(Head{is, state.position, state.trimmed}); err != nil {
		return err
	}
	for _, n := range []int{nPending, nEvents, nSnapshots, nClaims, nUses} {
		if err := eachRecord(tx, countedBuckets[n], recordDecoders[n], yield); err != nil {
			return err
		}
	}
	return eachRecord(tx, bucketFollowers, func(k, v []byte) (any, error) {
		pos, err := decodeMark(k, v)
		return Mark{string(k), pos}, err
	}, yield)
}

func eachRecord(tx *bbolt.Tx, name []byte, decode func(k, v []byte) (any, error), yield func(any) error) error {
	b := tx.Bucket(name)
	if b == nil {
		return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, name)
	}
	for k, v := range all(b) {
		of, err := decode(k, v)
		if err != nil {
			return fmt.Errorf("%w: bucket %s: key %q: %w", ErrCorrupt, name, k, err)
		}
		if err := yield(of); err != nil {
			return err
		}
	}
	return nil
}

// recordDecoders read what stands in the counted buckets.
var recordDecoders = [nCounted]func(k, v []byte) (any, error){
	nEvents: func(k, v []byte) (any, error) {
		r, err := decodeEvent(k, v)
		return Entry{Pos: keyPosition(k), Stream: r.stream, Seq: r.seq,
			Removed: r.flags&flagRemoved != 0, Event: Event{r.event.Type, copied(r.event.Data)}}, err
	},
	nSnapshots: func(k, v []byte) (any, error) {
		s, err := decodeSnapshot(k, v)
		return State{string(k), s.seq, s.pos, copied(s.state)}, err
	},
	nPending: func(k, v []byte) (any, error) { return PendingStream(k), sealed(k, v) },
	nClaims:  func(k, v []byte) (any, error) { return decodeClaim(k, v) },
	nUses: func(k, v []byte) (any, error) {
		u, n, err := decodeUse(k, v)
		return Count{u.window, u.key, u.end, n}, err
	},
}

// Contained counts what a journal holds.
type Contained struct {
	Position  uint64 `json:"position"`
	Streams   int    `json:"streams"`
	Events    int    `json:"events"`
	Snapshots int    `json:"snapshots"`
	Pending   int    `json:"pending"`
	Claims    int    `json:"claims"`
	Counts    int    `json:"counts"`
	Followers int    `json:"followers"`
}

func (c *Contained) add(of any, streams map[string]bool) {
	switch of := of.(type) {
	case Head:
		c.Position = of.Position
	case Entry:
		if of.Removed {
			delete(streams, of.Stream)
			return
		}
		c.Events++
		streams[of.Stream] = true
	case State:
		c.Snapshots++
		streams[of.Stream] = true
	case PendingStream:
		c.Pending++
	case Claim:
		c.Claims++
	case Count:
		c.Counts++
	case Mark:
		c.Followers++
	}
}

// Compare reads two journals side by side, counts what they hold, and fails at the first thing in which they differ.
func Compare(a, b func(yield func(any) error) error) (c Contained, err error) {
	streams, ended := make(map[string]bool), errors.New("ended")
	var wrong error
	next, stop := iter.Pull(func(yield func(any) bool) {
		wrong = b(func(of any) error {
			if !yield(of) {
				return ended
			}
			return nil
		})
	})
	defer stop()
	err = a(func(of any) error {
		c.add(of, streams)
		other, more := next()
		switch {
		case wrong != nil:
			return wrong
		case !more:
			return fmt.Errorf("the copy ends before %s", named(of))
		case !reflect.DeepEqual(of, other):
			return fmt.Errorf("the copy has %s in place of %s, or they differ", named(other), named(of))
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	if other, more := next(); more {
		return c, fmt.Errorf("the copy goes on with %s", named(other))
	}
	c.Streams = len(streams)
	return c, wrong
}

// named says what something is that a journal holds.
func named(of any) string {
	switch of := of.(type) {
	case Head:
		return fmt.Sprintf("journal %s at position %d", of.Identity.ID, of.Position)
	case Entry:
		return fmt.Sprintf("event %d of %s at position %d", of.Seq, of.Stream, of.Pos)
	case State:
		return fmt.Sprintf("the snapshot of %s at event %d", of.Stream, of.Seq)
	case PendingStream:
		return "the pending stream " + string(of)
	case Claim:
		return "a claim of " + of.Owner
	case Count:
		return "a count of " + of.Key
	case Mark:
		return "the mark of the follower " + of.Follower
	}
	return fmt.Sprintf("a %T", of)
}

// copied is nil if there is nothing, so that what two kinds of journal hold can be compared.
func copied(data []byte) []byte { return append([]byte(nil), data...) }

// importSuffix names a journal that is being made until it is whole.
const importSuffix = ".copy"

// importBytes is about how much is written in one transaction.
const importBytes = 16 << 20

// Import makes a journal in the file path of what contents yields, in the order of Inspection.Contents. The file is
// there when everything is in it, on disk and verified, and before that not at all: an interrupted import is
// started over. It refuses a file that exists.
func Import(path string, contents func(yield func(any) error) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("import journal %s: %w", path, err)
		}
	}()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(errors.New("the file is there already"), err)
	}
	part := path + importSuffix
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that broke off
		return err
	}
	err = guard(func() error { return importInto(part, contents) })
	if err == nil {
		err = importedWhole(part)
	}
	if err != nil {
		if gone := os.Remove(part); gone != nil && !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	}
	if err := disk.Rename(part, path); err != nil {
		return err
	}
	return disk.SyncFolder(filepath.Dir(path))
}

// importedWhole checks the file like any journal's.
func importedWhole(path string) error {
	var problems []error
	err := Check(path, func(p Problem) bool {
		problems = append(problems, errors.New(p.String()))
		return true
	})
	return errors.Join(append(problems, err)...)
}

func importInto(path string, contents func(yield func(any) error) error) (err error) {
	// Not synced before the end, since nobody uses it before.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType, Timeout: defaultLockTimeout,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w := importer{db: db, pending: make(map[string]bool), lasts: make(map[string]uint64)}
	defer func() {
		if w.tx != nil {
			err = errors.Join(err, w.tx.Rollback())
		}
	}()
	if err := w.begin(); err != nil {
		return err
	}
	for _, name := range slices.Concat([][]byte{bucketMeta, bucketFollowers}, countedBuckets[:]) {
		if _, err := w.tx.CreateBucket(name); err != nil {
			return err
		}
	}
	if err := contents(w.add); err != nil {
		return err
	}
	if w.head == nil {
		return errors.New("what was read has no head")
	}
	w.state.position, w.state.trimmed = w.head.Position, w.head.Trimmed
	meta := w.tx.Bucket(bucketMeta)
	for _, of := range []struct{ key, value []byte }{
		{metaState, w.state.encode(metaState)}, {metaIdentity, w.head.Identity.encode()}, {metaFormat, encodeFormat()},
	} {
		if err := meta.Put(of.key, of.value); err != nil {
			return err
		}
	}
	if err := w.commit(); err != nil {
		return err
	}
	return db.Sync()
}

type importer struct {
	db    *bbolt.DB
	tx    *bbolt.Tx
	bytes int // written in tx
	state fileState
	head  *Head

	pending map[string]bool
	lasts   map[string]uint64 // sequence numbers of the last events
}

func (w *importer) begin() (err error) {
	w.tx, err = w.db.Begin(true)
	return err
}

func (w *importer) commit() error {
	tx := w.tx
	w.tx, w.bytes = nil, 0
	return tx.Commit()
}

func (w *importer) add(of any) error {
	switch of := of.(type) {
	case Head:
		w.head = &of
	case Entry:
		r := eventRecord{hash: streamHash(of.Stream), seq: of.Seq, stream: of.Stream, event: of.Event}
		if of.Removed {
			r.flags = flagRemoved
			delete(w.lasts, of.Stream)
		} else {
			w.lasts[of.Stream] = of.Seq
			if w.pending[of.Stream] { // of earlier events it says nothing that anybody reads
				r.flags = flagPending
			}
		}
		key := positionKey(of.Pos)
		body := appendEvent(nil, &r)
		seal(key, body)
		return w.put(nEvents, key, body)
	case State:
		r := snapshotRecord{seq: of.Seq, pos: of.Pos, state: of.State}
		if w.pending[of.Stream] && max(of.Seq, w.lasts[of.Stream]) == of.Seq {
			r.flags = flagPending
		}
		return w.put(nSnapshots, []byte(of.Stream), encodeSnapshot([]byte(of.Stream), &r))
	case PendingStream:
		w.pending[string(of)] = true
		return w.put(nPending, []byte(of), encodePending([]byte(of)))
	case Claim:
		return w.put(nClaims, []byte(of.Key), encodeClaim(&of))
	case Count:
		key := useSlot{of.Window, of.End, of.Key}.bytes()
		return w.put(nUses, key, encodeUse(key, of.Count))
	case Mark:
		buf := binary.BigEndian.AppendUint64(head(nil), of.Pos)
		seal([]byte(of.Follower), buf)
		return w.tx.Bucket(bucketFollowers).Put([]byte(of.Follower), buf)
	default:
		return fmt.Errorf("a %T is nothing that a journal holds", of)
	}
	return nil
}

func (w *importer) put(counted int, key, value []byte) error {
	b := w.tx.Bucket(countedBuckets[counted])
	b.FillPercent = 0.95 // keys only rise
	if err := b.Put(key, value); err != nil {
		return err
	}
	w.state.counts[counted]++
	if w.bytes += len(key) + len(value); w.bytes < importBytes {
		return nil
	}
	if err := w.commit(); err != nil {
		return err
	}
	return w.begin()
}
