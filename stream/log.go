package stream

import (
	"context"
	"errors"
	"sync"
)

// Why an append was refused. Nothing of it is in the log then.
var (
	ErrClosed = errors.New("the answer has ended")
	ErrFull   = errors.New("the answer is longer than allowed")
)

// A Log holds the parts of one answer. It has one writer and any number of readers; a part that was appended never
// changes. The zero Log is not usable: NewLog.
type Log struct {
	limit int // bytes of text, sources and results; none where zero
	done  chan struct{}

	mu      sync.Mutex
	parts   []Part
	bytes   int
	closed  bool
	waiting []*Reader // readers that took all there was and want to hear of more
}

// An Option changes a log that is being made.
type Option func(*Log)

// Limit bounds the bytes of a log's parts, so that a model that does not stop cannot fill the memory. An append that
// would go over it is refused with ErrFull. Start, Finish and Error are always taken: an answer that is cut off still
// has a proper end.
func Limit(bytes int) Option { return func(l *Log) { l.limit = bytes } }

// NewLog returns an empty log.
func NewLog(options ...Option) *Log {
	l := &Log{done: make(chan struct{})}
	for _, o := range options {
		o(l)
	}
	return l
}

// Append adds parts, all or none, and wakes the readers that wait. It never waits for a reader.
func (l *Log) Append(parts ...Part) error {
	if len(parts) == 0 {
		return nil
	}
	size, bounded := 0, false
	for i := range parts {
		switch parts[i].Kind {
		case Start, Finish, Error:
		default:
			bounded = true
		}
		size += parts[i].size()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if bounded && l.limit > 0 && l.bytes+size > l.limit {
		return ErrFull
	}
	l.bytes += size
	l.grow(len(parts))
	l.parts = append(l.parts, parts...)
	l.wake()
	return nil
}

// grow makes room by half again, not by doubling: a part is some 200 bytes, and tens of thousands of logs are open at
// once. Readers may still hold the older, shorter array; it stays as it was.
func (l *Log) grow(n int) {
	if len(l.parts)+n <= cap(l.parts) {
		return
	}
	bigger := make([]Part, len(l.parts), max(len(l.parts)+n, cap(l.parts)+cap(l.parts)/2, 8))
	copy(bigger, l.parts)
	l.parts = bigger
}

// wake tells every waiting reader once. The caller holds the lock.
func (l *Log) wake() {
	for i, r := range l.waiting {
		r.slot = -1
		l.waiting[i] = nil
		r.signal()
	}
	l.waiting = l.waiting[:0]
}

// Close ends the log: readers get what is left and then the end. Closing again changes nothing.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.done)
	l.wake()
	l.waiting = nil
}

// Len is the number of parts so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parts)
}

// Size is the number of bytes that count against the limit.
func (l *Log) Size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Done is closed when the log has ended.
func (l *Log) Done() <-chan struct{} { return l.done }

// Reader returns a reader whose first part is number from, counted from zero; it may lie ahead of what there is.
func (l *Log) Reader(from int) *Reader {
	r := &Reader{log: l, pos: max(from, 0), slot: -1, ready: make(chan struct{}, 1)}
	r.signal() // there may be something already: the first wait on Ready must not miss it
	return r
}

// A Reader follows a log from its own position. It belongs to one goroutine.
type Reader struct {
	log   *Log
	ready chan struct{}
	// The rest is guarded by the log's lock.
	pos    int
	slot   int // index in log.waiting; -1 when not there
	closed bool
}

// Take returns all parts after the reader's position, without waiting and without copying: the slice is a window on
// the log that never changes and must not be written to. It is empty when there is nothing new. more is false once the
// log has ended and everything was taken.
func (r *Reader) Take() (parts []Part, more bool) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.closed {
		return nil, false
	}
	if n := len(l.parts); r.pos < n {
		parts = l.parts[r.pos:n:n]
		r.pos = n
	}
	switch {
	case l.closed && len(parts) == 0:
		return nil, false
	case l.closed:
		r.signal() // nobody will wake this reader any more, and the end is still to be told
	case r.slot < 0:
		r.slot = len(l.waiting)
		l.waiting = append(l.waiting, r)
	}
	return parts, true
}

// Ready yields a value when Take may have something to say: new parts, or the end. One value stands for any number of
// appends, and a value may turn out to be for nothing.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

// Next waits until there is something after the reader's position and returns all of it, as Take does. ok is false
// once the log has ended and everything was read; the error is the context's.
func (r *Reader) Next(ctx context.Context) (parts []Part, ok bool, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		parts, more := r.Take()
		if len(parts) > 0 {
			return parts, true, nil
		}
		if !more {
			return nil, false, nil
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
		}
	}
}

// Pos is the number of the part that comes next.
func (r *Reader) Pos() int {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.pos
}

// Close takes the reader off the log. A reader that is not closed costs the log nothing but the memory of its own.
func (r *Reader) Close() {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	r.closed = true
	if r.slot < 0 {
		return
	}
	last := len(l.waiting) - 1
	l.waiting[r.slot] = l.waiting[last]
	l.waiting[r.slot].slot = r.slot
	l.waiting[last] = nil
	l.waiting = l.waiting[:last]
	r.slot = -1
}

func (r *Reader) signal() {
	select {
	case r.ready <- struct{}{}:
	default: // one value is enough
	}
}

// size is what a part holds in bytes, roughly what it costs to keep.
func (p *Part) size() int {
	n := len(p.ID) + len(p.Message) + len(p.Thread) + len(p.Key) + len(p.Text) + len(p.URL) + len(p.Title) + len(p.Query) + len(p.Reason)
	for i := range p.Results {
		r := &p.Results[i]
		n += len(r.Path) + len(r.URL) + len(r.Title) + len(r.Content)
	}
	return n
}
