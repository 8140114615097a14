package router

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"docent/actors/thread"
	"docent/stream"
)

const (
	chunk    = 32 << 10 // what is written before the next part is encoded, when a reader has much to catch up on
	keptSize = 64 << 10 // larger buffers are not kept for the next stream
	together = 32       // parts that are taken from the log at once
)

// open takes a place among the open streams.
func (s *Server) open() (done func(), err error) {
	if s.streams.Add(1) > int64(s.Bounds.Streams) {
		s.streams.Add(-1)
		return nil, s.overloaded("streams")
	}
	return func() {
		s.streams.Add(-1)
		select {
		case s.ended <- struct{}{}:
		default: // whoever drains looks at the count, one hint is enough
		}
	}, nil
}

// follow writes an answer to one reader as it grows: all that there is in one write and one flush for each time that it
// has grown. The reader's own slowness, or its end, is nobody else's: the turn goes on.
func (s *Server) follow(x *exchange, req *http.Request, turn thread.Turn, form stream.Form) error {
	s.begin(x, &turn, form)
	if req.Method == http.MethodHead {
		return nil
	}
	w := s.newWriter(x, req, &turn, form)
	defer w.end()
	return w.follow()
}

// begin writes the head of the response.
func (s *Server) begin(x *exchange, turn *thread.Turn, form stream.Form) {
	s.release(x) // a stream is counted for itself
	x.thread = turn.Thread
	h := x.Header()
	for _, f := range stream.Headers(form) {
		h.Set(f.Name, f.Value)
	}
	h.Set("X-Thread-Id", string(turn.Thread))
	if turn.Key != "" {
		h.Set("X-Thread-Key", turn.Key)
	}
	x.deadline()
	x.WriteHeader(http.StatusOK)
}

// newWriter brings a log to a reader's socket. One channel is waited on: whatever there is to look at wakes the reader.
func (s *Server) newWriter(x *exchange, req *http.Request, turn *thread.Turn, form stream.Form) *writer {
	w := &writer{Server: s, x: x, rc: http.NewResponseController(x.ResponseWriter), enc: stream.NewEncoder(form), m: s.metrics.stream(form)}
	w.reader, w.ctx = turn.Log.Reader(0), req.Context()
	w.leave, w.forget = s.pulse.join(w.reader), context.AfterFunc(w.ctx, w.reader.Wake)
	w.m.open.Inc()
	return w
}

// end takes the writer off what wakes it.
func (w *writer) end() {
	w.forget()
	w.leave()
	w.reader.Close()
	if w.rest != nil {
		w.rest.Stop()
	}
	w.count()
	w.m.open.Dec()
}

// follow writes until the answer or the reader has ended. It waits here for minutes, in tens of thousands of goroutines:
// what stands on the stack counts.
func (w *writer) follow() error {
	for first := true; ; first = false {
		took, more := w.take(first)
		switch {
		case w.err != nil:
			return w.left()
		case w.enc.Ended():
			w.m.end("finished")
			return nil
		case !more: // the log ended without saying how
			w.fail("the answer was interrupted; resume the stream or ask again")
			w.m.end("broken")
			return nil
		case w.ctx.Err() != nil:
			w.m.end("gone")
			return nil
		case w.isCut():
			w.fail("the service is restarting; the answer goes on and can be resumed")
			w.m.end("cut")
			return nil
		case took == 0 && !first && !w.keepAlive():
			return w.left()
		}
		// What comes soon after goes together: a gap of this length is not seen. The end of the answer does not wait.
		paced := w.texts && took > 0 && w.Bounds.Pace > 0
		w.reader.Rest(paced)
		if !paced {
			<-w.reader.Ready()
			continue
		}
		if w.rest == nil {
			w.rest = time.NewTimer(w.Bounds.Pace)
		} else {
			w.rest.Reset(w.Bounds.Pace)
		}
		select {
		case <-w.rest.C:
		case <-w.reader.Ready():
		}
	}
}

func (s *Server) isCut() bool {
	select {
	case <-s.cut:
		return true
	default:
		return false
	}
}

// A writer brings parts to one reader's socket.
type writer struct {
	*Server
	x        *exchange
	rc       *http.ResponseController
	enc      *stream.Encoder
	m        *streamMetrics
	reader   *stream.Reader  // nil where it is no answer that is followed
	ctx      context.Context // ends when the reader has gone
	leave    func()          // the pulse
	forget   func() bool     // the end of ctx
	rest     *time.Timer     // between two writes of text
	texts    bool            // text was written
	last     time.Time       // of the last write
	deadline time.Time       // that writes have now
	counted  time.Time       // when the figures below went to the metrics
	err      error

	written, flushes, bytes int
}

// A workspace is what encoding takes for a moment: streams that wait hold none.
type workspace struct {
	parts []stream.Part
	bytes []byte
}

// take writes what the log has more than the reader took; the response head goes with the first parts, or alone.
func (w *writer) take(head bool) (took int, more bool) {
	space := w.spaces.Get().(*workspace)
	most := 0
	defer func() {
		if cap(space.bytes) <= keptSize {
			clear(space.parts[:most]) // what they hold is the log's, and goes with it
			w.spaces.Put(space)
		}
	}()
	for {
		parts, more := w.reader.TakeInto(space.parts[:0])
		took, most = took+len(parts), max(most, len(parts))
		if len(parts) > 0 && !w.parts(space, parts) {
			return took, more
		}
		if len(parts) == cap(space.parts) {
			continue // there is more to go with it
		}
		if took > 0 || head {
			w.flush()
		}
		return took, more
	}
}

// parts writes the parts.
func (w *writer) parts(space *workspace, parts []stream.Part) bool {
	buf := space.bytes[:0]
	for i := range parts {
		w.texts = w.texts || parts[i].Kind == stream.Text
		buf = w.enc.Append(buf, parts[i])
		if len(buf) >= chunk && i < len(parts)-1 {
			if !w.write(buf) {
				return false
			}
			buf = buf[:0]
		}
	}
	space.bytes = buf
	w.written += len(parts)
	return len(buf) == 0 || w.write(buf)
}

// keepAlive says something to a reader that has heard nothing for some time, so that nobody between takes the connection
// for dead.
func (w *writer) keepAlive() bool {
	if time.Since(w.last) < w.Bounds.KeepAlive/2 {
		return true
	}
	return w.write(w.enc.KeepAlive(make([]byte, 0, 16))) && w.flush()
}

// fail ends the stream in its own form, after what was sent: a fault cannot be a status any more.
//
//go:noinline
func (w *writer) fail(reason string) {
	if w.enc.Ended() {
		return
	}
	if w.write(w.enc.Append(nil, stream.Part{Kind: stream.Error, Text: reason})) {
		w.flush()
	}
}

// begin gives a write its time: a reader that takes nothing in for so long loses its stream, and one that is slow does
// not. The deadline is not moved for each write, it has a quarter of its time to spare.
func (w *writer) begin() {
	w.last = time.Now()
	if spare := w.Bounds.WriteTimeout / 4; w.deadline.Sub(w.last) < w.Bounds.WriteTimeout {
		w.deadline = w.last.Add(w.Bounds.WriteTimeout + spare)
		if err := w.rc.SetWriteDeadline(w.deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			w.err = err
		}
	}
	if w.last.Sub(w.counted) > time.Second {
		w.count()
	}
}

// count brings the stream's figures to the metrics, which all streams share.
func (w *writer) count() {
	w.m.parts.Add(float64(w.written))
	w.m.flushes.Add(float64(w.flushes))
	w.m.bytes.Add(float64(w.bytes))
	w.written, w.flushes, w.bytes, w.counted = 0, 0, 0, w.last
}

func (w *writer) write(b []byte) bool {
	w.begin()
	if _, err := w.x.Write(b); err != nil {
		w.err = err
		return false
	}
	w.bytes += len(b)
	return true
}

func (w *writer) flush() bool {
	w.flushes++
	if err := w.rc.Flush(); err != nil {
		w.err = err
		return false
	}
	return true
}

// left notes that the reader has gone, or takes nothing in. That is the end of the reader only.
func (w *writer) left() error {
	if errors.Is(w.err, os.ErrDeadlineExceeded) {
		w.m.end("stalled")
	} else {
		w.m.end("gone")
	}
	return nil
}

// A pulse wakes all open streams once in a period, spread over it, with one timer for all; and all of them at once when
// they must end.
type pulse struct {
	slots [16]pulseSlot
	next  atomic.Uint32 // spreads the streams
	done  chan struct{}
	once  sync.Once
}

type pulseSlot struct {
	mu      sync.Mutex
	readers map[*stream.Reader]struct{}
}

func newPulse(period time.Duration) *pulse {
	p := &pulse{done: make(chan struct{})}
	for i := range p.slots {
		p.slots[i].readers = make(map[*stream.Reader]struct{})
	}
	go func() {
		tick := time.NewTicker(max(period/time.Duration(len(p.slots)), time.Millisecond))
		defer tick.Stop()
		for at := 0; ; at = (at + 1) % len(p.slots) {
			select {
			case <-tick.C:
				p.slots[at].wake()
			case <-p.done:
				return
			}
		}
	}()
	return p
}

func (p *pulse) stop() { p.once.Do(func() { close(p.done) }) }

// wake wakes all streams now.
func (p *pulse) wake() {
	for i := range p.slots {
		p.slots[i].wake()
	}
}

func (s *pulseSlot) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers {
		r.Wake()
	}
}

// join has a stream woken until it leaves.
func (p *pulse) join(r *stream.Reader) (leave func()) {
	s := &p.slots[p.next.Add(1)%uint32(len(p.slots))]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[r] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.readers, r)
	}
}
