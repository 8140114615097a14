package journal

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/persistence/quota"
)

// A Store keeps streams of events. A *Journal keeps them in a file, for one process; package postgres keeps them in a
// database, for several. What the methods promise is said at those of Journal, and the tests of package journaltest
// hold both to it.
type Store interface {
	prometheus.Collector

	Append(ctx context.Context, a Append) (last uint64, err error)
	Load(stream string) (Recovered, error)
	LoadSince(stream string, pos uint64) (first uint64, events []Event, err error)
	Snapshot(stream string, seq uint64, state []byte)
	Delete(stream string, claims ...string) error
	Claim(key string, now time.Time) (Claim, bool, error)
	Pending(yield func(stream string) bool) error
	// Streams yields every stream that can be used with what Load would find of it.
	Streams(yield func(stream string, rec Recovered) bool) error

	Reader
	Follow(name string) (Follower, error)

	Quotas() Quotas
	Identity() Identity
	Remember(is Identity) error

	Stats() Stats
	Moves(ctx context.Context) error
	Close() error
}

// A Reader reads the log of all streams.
type Reader interface {
	// Position is the position of the last event that this process has heard of.
	Position() uint64
	Trimmed() uint64
	Since(pos uint64, yield func(pos uint64, stream string) bool) error
	Log(pos uint64, wanted func(eventType string) bool, yield func(Logged) bool) error
}

// A Follower hears of new positions and holds what it has not acknowledged in the log.
type Follower interface {
	// Changed receives after commits, at once for the first time; several may be reported as one. It is never closed.
	Changed() <-chan struct{}
	// Ack says that everything up to pos is handled and remembered. The mark is stored some time later.
	Ack(pos uint64)
	Reader
	// End is the position of the last event that the journal holds, of this process or another one.
	End() (uint64, error)
	// Close ends the notifications. The mark stays.
	Close()
}

// Quotas counts uses. Reserve takes all of the uses or none, and fails with *api.LimitError; the uses count from then
// on. Release gives them back when the work was not accepted. Remaining tells what is left, for headers.
type Quotas interface {
	Reserve(now time.Time, uses []quota.Use) error
	Release(now time.Time, uses []quota.Use)
	Remaining(now time.Time, use quota.Use) (left int, reset time.Duration)
}

var _ Store = (*Journal)(nil)
