package catalogtest

import (
	"context"
	"slices"
	"sync"

	"docent/api"
)

// A Feed stands in for a journal that listings follow: the names of the streams that have changed, one after the other.
type Feed struct {
	mu      sync.Mutex
	streams []string
	told    chan struct{}
}

// NewFeed makes a feed in which nothing has changed yet.
func NewFeed() *Feed { return &Feed{told: make(chan struct{}, 1)} }

// Tell says that a stream has changed.
func (f *Feed) Tell(stream string) {
	f.mu.Lock()
	f.streams = append(f.streams, stream)
	f.mu.Unlock()
	select {
	case f.told <- struct{}{}:
	default:
	}
}

// Position is how many changes there were.
func (f *Feed) Position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(len(f.streams))
}

// End is Position.
func (f *Feed) End() (uint64, error) { return f.Position(), nil }

// Trimmed says that all changes are kept.
func (f *Feed) Trimmed() uint64 { return 0 }

// Changed yields a value after a change.
func (f *Feed) Changed() <-chan struct{} { return f.told }

// Ack does nothing.
func (f *Feed) Ack(uint64) {}

// Since yields the changes after a position.
func (f *Feed) Since(pos uint64, yield func(uint64, string) bool) error {
	f.mu.Lock()
	streams := slices.Clone(f.streams)
	f.mu.Unlock()
	for ; pos < uint64(len(streams)); pos++ {
		if !yield(pos+1, streams[pos]) {
			break
		}
	}
	return nil
}

// Threads are conversations that a journal would hold, as rows, with the feed of their changes.
type Threads struct {
	*Feed
	mu   sync.Mutex
	rows map[string]api.ThreadRow // by stream
}

// NewThreads makes no conversations.
func NewThreads() *Threads { return &Threads{Feed: NewFeed(), rows: map[string]api.ThreadRow{}} }

// Put adds a conversation, in place of one of the same id.
func (t *Threads) Put(row api.ThreadRow) {
	stream := "thread/" + string(row.ID)
	t.mu.Lock()
	t.rows[stream] = row
	t.mu.Unlock()
	t.Tell(stream)
}

// Load is a catalog.ThreadLoader.
func (t *Threads) Load(_ context.Context, stream string, _ uint64) (api.ThreadRow, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row, ok := t.rows[stream]
	return row, ok, nil
}
