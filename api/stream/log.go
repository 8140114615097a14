package stream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"unsafe"
)

// Why an append was refused. Nothing of it is in the log then.
var (
	ErrClosed = errors.New("the answer has ended")
	ErrFull   = errors.New("the answer is longer than allowed")
)

// A Log holds the parts of one answer. It has one writer and any number of readers; a part that was appended never
// changes. The zero Log is not usable: NewLog.
//
// Tens of thousands of logs are open at once, and nearly all of their parts are a word or two of text: such a part
// takes its bytes, in a chunk that they share and that stays where it is, and four more. Readers get strings that lie
// in the chunk.
type Log struct {
	limit int // bytes of text, sources and results; none if zero

	mu      sync.Mutex
	marks   []uint32 // one for each part: the length of a text, or where in others the part is
	text    [][]byte // the texts, one after another; one that does not fit into a chunk begins the next
	texts   int      // bytes of them
	others  []Part   // parts that are no short text
	bytes   int
	closed  bool
	broken  bool
	done    chan struct{} // made when somebody asks for it
	waiting []*Reader     // readers that took all there was and want to hear of more
}

const (
	otherPart  = 1 << 31 // in a mark: the rest is an index in Log.others
	shortText  = 1 << 10 // bytes of a text that goes into a chunk
	firstChunk = 512
	largest    = 8 << 10 // bytes of a chunk
)

// An Option changes a log that is being made.
type Option func(*Log)

// Limit bounds the bytes of a log's parts, so that a model that does not stop cannot fill the memory. An append that
// would go over it is refused with ErrFull. Start, Finish and Error are always taken: an answer that is cut off still
// has a proper end.
func Limit(bytes int) Option { return func(l *Log) { l.limit = bytes } }

// NewLog returns an empty log.
func NewLog(options ...Option) *Log {
	l := new(Log)
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
		case Start, Finish, Error, Explained:
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
	for i := range parts {
		l.add(&parts[i])
	}
	l.wake()
	return nil
}

// AppendText is Append of a part that is text, as nearly all are.
func (l *Log) AppendText(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if l.limit > 0 && l.bytes+len(text) > l.limit {
		return ErrFull
	}
	l.bytes += len(text)
	l.addText(text)
	l.wake()
	return nil
}

// add stores a part. The caller holds the lock.
func (l *Log) add(p *Part) {
	if p.Kind == Text {
		l.addText(p.Text)
		return
	}
	l.marks = append(l.marks, otherPart|uint32(len(l.others)))
	l.others = append(l.others, *p)
}

func (l *Log) addText(text string) {
	if len(text) > shortText {
		l.marks = append(l.marks, otherPart|uint32(len(l.others)))
		l.others = append(l.others, Part{Kind: Text, Text: text})
		return
	}
	n := len(l.text)
	if n == 0 || cap(l.text[n-1])-len(l.text[n-1]) < len(text) {
		// Half as much as there is: what is not used of the last one is little beside all of them.
		size := min(max(l.texts/2, firstChunk), largest)
		l.text = append(l.text, make([]byte, 0, max(size, len(text))))
		n++
	}
	l.text[n-1] = append(l.text[n-1], text...)
	l.texts += len(text)
	l.marks = append(l.marks, uint32(len(text)))
}

// wake tells every waiting reader once, but for those that rest, unless the log has ended. The caller holds the lock.
func (l *Log) wake() {
	keep := 0
	for _, r := range l.waiting {
		if r.resting && !l.closed {
			r.slot = keep
			l.waiting[keep] = r
			keep++
			continue
		}
		r.slot = -1
		r.signal()
	}
	clear(l.waiting[keep:])
	l.waiting = l.waiting[:keep]
}

// Close ends the log: readers get what is left and then the end. Closing again changes nothing.
func (l *Log) Close() { l.end(false) }

// Break ends the log while the answer has not ended: another process goes on with it. Readers are to be broken off, so
// that they come again.
func (l *Log) Break() { l.end(true) }

// Broken reports whether the log was ended by Break.
func (l *Log) Broken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

func (l *Log) end(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed, l.broken = true, broken
	if l.done != nil {
		close(l.done)
	}
	l.wake()
	l.waiting = nil
}

// Len is the number of parts so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.marks)
}

// Text is the text of the parts from number from on, as one.
func (l *Log) Text(from int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Reader{log: l}
	r.skip(min(from, len(l.marks)))
	var all strings.Builder
	all.Grow(l.texts) // what it is, but for parts before from and long ones
	for r.at < len(l.marks) {
		var p Part
		if r.next(&p); p.Kind == Text {
			all.WriteString(p.Text)
		}
	}
	return all.String()
}

// Done is closed when the log has ended.
func (l *Log) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.closed {
			close(l.done)
		}
	}
	return l.done
}

// Reader returns a reader whose first part is number from, counted from zero; it may lie ahead of what there is.
func (l *Log) Reader(from int) *Reader {
	r := &Reader{log: l, pos: max(from, 0), slot: -1, ready: make(chan struct{}, 1)}
	r.signal() // there may be something already: the first wait on Ready must not miss it
	return r
}

// Watch is Reader for one who looks after many logs and waits on none of them: when a Reader's Ready would yield,
// changed is called instead, from whatever goroutine changed the log and with the log locked. So it must not wait,
// nor use the log.
func (l *Log) Watch(from int, changed func()) *Reader {
	return &Reader{log: l, pos: max(from, 0), slot: -1, changed: changed}
}

// A Reader follows a log from its own position. It belongs to one goroutine.
type Reader struct {
	log     *Log
	ready   chan struct{}
	changed func() // in place of ready
	// The rest is guarded by the log's lock.
	pos     int
	slot    int // index in log.waiting; -1 when not there
	resting bool
	closed  bool
	// Where the next short text is: the chunk, and how much of it was read. They are those of part at, which is behind
	// pos until the log has grown so far.
	at, chunk, offset int
}

// Take returns all parts after the reader's position, without waiting; they are the caller's. They are none when there
// is nothing new. more is false once the log has ended and everything was taken.
func (r *Reader) Take() (parts []Part, more bool) { return r.TakeInto(nil, 0) }

// TakeInto is Take into a slice of the caller's, from its beginning; if that has room, no more than fits into it is
// taken. If bytes is not 0, nothing is taken after the part with which the parts hold so many. If more was left,
// Ready yields at once.
func (r *Reader) TakeInto(into []Part, bytes int) (parts []Part, more bool) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.closed {
		return nil, false
	}
	n := len(l.marks)
	if r.pos < n {
		r.skip(r.pos)
		end := n
		if cap(into) == 0 {
			into = make([]Part, 0, n-r.pos)
		} else {
			end = min(n, r.pos+cap(into))
		}
		parts = into[:0]
		for held := 0; r.at < end; {
			parts = append(parts, Part{})
			p := &parts[len(parts)-1]
			r.next(p)
			if bytes == 0 {
				continue
			}
			if held += p.size(); held >= bytes {
				break
			}
		}
		r.pos = r.at
	}
	switch {
	case l.closed && len(parts) == 0:
		return nil, false
	case l.closed, r.pos < n:
		r.signal() // nobody will wake this reader any more, and the rest is still to be told
	case r.slot < 0:
		r.slot = len(l.waiting)
		l.waiting = append(l.waiting, r)
	}
	return parts, true
}

// skip passes over the parts before number to. The caller holds the lock.
func (r *Reader) skip(to int) {
	var p Part
	for r.at < to {
		r.next(&p)
	}
}

// next reads part at into p, which is empty. The caller holds the lock.
func (r *Reader) next(p *Part) {
	l := r.log
	mark := l.marks[r.at]
	r.at++
	if mark&otherPart != 0 {
		*p = l.others[mark&^otherPart]
		return
	}
	p.Kind = Text
	if mark == 0 {
		return
	}
	if r.offset == len(l.text[r.chunk]) {
		r.chunk, r.offset = r.chunk+1, 0
	}
	text := l.text[r.chunk][r.offset : r.offset+int(mark)]
	p.Text = unsafe.String(&text[0], len(text)) // bytes in a chunk never change
	r.offset += int(mark)
}

// Rest reports whether the reader wants to hear of the log's end alone for now, and not of every part: it will come by
// itself.
func (r *Reader) Rest(resting bool) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.resting == resting {
		return
	}
	r.resting = resting
	if !resting && r.pos < len(l.marks) {
		r.signal() // it has not heard of these
	}
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
	if r.changed != nil {
		r.changed()
		return
	}
	select {
	case r.ready <- struct{}{}:
	default: // one value is enough
	}
}

// size is what a part holds in bytes, roughly what it costs to keep.
func (p *Part) size() int {
	n := len(p.ID) + len(p.Message) + len(p.Thread) + len(p.Key) + len(p.Text) + len(p.URL) + len(p.Title) +
		len(p.Query) + len(p.Reason)
	for i := range p.Results {
		r := &p.Results[i]
		n += len(r.Path) + len(r.URL) + len(r.Title) + len(r.Content)
	}
	return n
}
