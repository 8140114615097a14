// Package journal keeps what each actor knows of itself: a stream of events and a snapshot for each actor, with the
// quota counts and idempotency keys that belong to the events. An append that returned without an error is on disk.
//
// Here they are kept in one bbolt file, for one process. Package postgres keeps them in a database, for several. What
// both promise is Store.
//
// The package has some 4,400 lines: loading, committing, checking and dropping know the same records and the same
// index, so packages of their own would export all of it to each other.
package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docent/api"
	"docent/persistence/quota"
)

// Errors of the journal.
var (
	// ErrSequence refuses an append after a sequence number that is not the stream's last: another writer was there,
	// or the writer's own state is stale. Nothing was written.
	ErrSequence = errors.New("the stream has moved on")
	// ErrCorrupt says that a stored record is damaged or of an unknown form. The stream cannot be used; others can.
	ErrCorrupt = errors.New("a stored record is damaged")
	// ErrUnknown says that an append may have been stored or not: the database was asked, and its answer did not come.
	// Its uses are not to be given back: they count as the database has them.
	ErrUnknown = errors.New("whether it was stored is not known")
	// ErrFenced refuses everything from a process whose work others have taken over. It will never write again.
	ErrFenced = fmt.Errorf("%w: other nodes have given this one up", api.ErrUnavailable)
)

// An Event is one fact of a stream, as it is stored: the name of its type, which also names its version
// ("job.created.1"), and its encoding.
type Event struct {
	Type string
	Data []byte
}

// An Append is one atomic addition to the journal: all of it is on disk afterwards, or nothing.
type Append struct {
	Stream string // "job/<id>" or "thread/<id>"
	After  uint64 // sequence number of the last event that the writer has applied; 0 for a new stream
	Events []Event
	// Pending says whether the stream calls for work once these events are applied. Streams that do are found by
	// Journal.Pending at the next start.
	Pending bool
	Uses    []quota.Use // quota uses that these events consume; reserved with Quotas.Reserve before
	Claim   *Claim      // idempotency key that these events answer
	Release string      // key of a claim that the stream gives up, if it holds it
	Urgency Urgency
}

// An Urgency says how soon an append has to be on disk. A commit costs much beside what it writes, so appends that can
// wait for a few milliseconds share one.
type Urgency uint8

const (
	// AtOnce is with the next commit.
	AtOnce Urgency = iota
	// Soon is for what begins work that takes far longer than a commit. When many streams have work under way and others
	// come fast, it waits for a few of them, for up to 16 ms.
	Soon
	// Later is for what nobody waits for at less than a human's pace. It goes with the commit of those who come next,
	// within 20 ms.
	Later
)

// A Claim binds an idempotency key to what it created. A second append with the same Key, within the Claim's life,
// writes nothing and fails with a *ClaimedError.
type Claim struct {
	Key     string    // the caller's key, qualified with who called and which operation
	Digest  [32]byte  // of the request body: the same key with another body is a conflict
	Owner   string    // the stream that answers for the key
	Ref     string    // what within the stream, for instance the id of a follow-up
	Expires time.Time // after which the key may be reused
	// Replaces takes the key over from its holder: for a key that names the newest of something. It is not stored.
	Replaces bool
}

// A ClaimedError tells who holds an idempotency key already.
type ClaimedError struct{ Claim Claim }

func (e *ClaimedError) Error() string { return "the idempotency key is taken by " + e.Claim.Owner }

// Recovered is what the journal knows of one stream.
type Recovered struct {
	Seq      uint64 // of the last event
	Snapshot []byte // state that covers all events up to SnapshotSeq; nil if there is none
	SnapSeq  uint64
	Events   []Event // those after SnapSeq, in order
}

// Unsure reports whether what failed with an error may have been stored all the same: nobody knows, or nobody waited to
// hear. A use of a quota counts then, for else it might not be counted.
func Unsure(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
