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
// has grown. The reader's own slowness, or its end, is nobody else's: the turn goes on. done is called at the stream's
// end, which may be long after follow has returned: a stream that lasts is a pump's.
func (s *Server) follow(x *exchange, req *http.Request, turn thread.Turn, form stream.Form, done func()) error {
	s.head(x, &turn, form)
	if req.Method != http.MethodHead && x.leaves && s.pumps.take(x, req, &turn, form, done) {
		return nil
	}
	defer done()
	x.deadline()
	x.WriteHeader(http.StatusOK)
	if req.Method == http.MethodHead {
		return nil
	}
	w := s.newWriter(x, req, &turn, form)
	defer w.end()
	w.follow()
	return nil
}

// head says what stands in the head of the response.
func (s *Server) head(x *exchange, turn *thread.Turn, form stream.Form) {
	s.release(x) // a stream is counted for itself
	x.thread = turn.Thread
	h := x.Header()
	for _, f := range stream.Headers(form) {
		h.Set(f.Name, f.Value)
	}
	h.Set("X-Thread-Id", string(turn.Thread))
	if turn.Key != "" {
		h.Set(threadKeyHeader, turn.Key)
	}
}

// newWriter brings a log to a reader's socket. One channel is waited on: whatever there is to look at wakes the reader.
func (s *Server) newWriter(x *exchange, req *http.Request, turn *thread.Turn, form stream.Form) *writer {
	w := &writer{reading: reading{Server: s, enc: stream.NewEncoder(form).WithKey(turn.Key), m: s.metrics.stream(form), log: turn.Log}, x: x,
		rc: http.NewResponseController(x.ResponseWriter), ctx: req.Context()}
	w.reader = turn.Log.Reader(0)
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

// follow writes until the answer or the reader has ended. Where no pump can have the stream, it waits here for minutes, in
// tens of thousands of goroutines: what stands on the stack counts.
func (w *writer) follow() {
	for first := true; ; first = false {
		took, more := w.take(first)
		if w.err != nil {
			w.left()
			return
		}
		how, reason := w.verdict(more)
		if how != "" {
			if reason != "" {
				w.fail(reason)
			}
			w.m.end(how)
			return
		}
		if took == 0 && !first && !w.keepAlive() {
			w.left()
			return
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

// A reading is how far one reader was brought along an answer, whoever writes to its socket.
type reading struct {
	*Server
	enc     *stream.Encoder
	m       *streamMetrics
	log     *stream.Log
	reader  *stream.Reader // nil where it is no answer that is followed
	leave   func()         // the pulse
	texts   bool           // text was written
	last    time.Time      // of the last write
	counted time.Time      // when the figures below went to the metrics

	written, flushes, bytes int
}

// A workspace is what encoding takes for a moment: streams that wait hold none.
type workspace struct {
	parts []stream.Part
	bytes []byte
}

func newWorkspace() *workspace {
	return &workspace{parts: make([]stream.Part, 0, together), bytes: make([]byte, 0, 4096)}
}

// fill encodes what the log has more than the reader was given, until a chunk is full; then there may be more.
func (r *reading) fill(space *workspace) (took int, more, full bool) {
	for {
		parts, more := r.reader.TakeInto(space.parts[:0], chunk-len(space.bytes))
		for i := range parts {
			r.texts = r.texts || parts[i].Kind == stream.Text
			space.bytes = r.enc.Append(space.bytes, parts[i])
		}
		took += len(parts)
		last := len(parts) < cap(space.parts)
		clear(parts) // what they hold is the log's, and goes with it
		if full = len(space.bytes) >= chunk; full || last {
			r.written += took
			return took, more, full
		}
	}
}

// verdict is how the stream ends, if it does, and what its reader is told where the answer itself does not say so.
func (r *reading) verdict(more bool) (how, reason string) {
	switch {
	case r.enc.Ended():
		return "finished", ""
	case !more: // the log ended without saying how
		return "broken", "the answer was interrupted; resume the stream or ask again"
	case r.isCut():
		return "cut", "the service is restarting; the answer goes on and can be resumed"
	}
	return "", ""
}

// quiet is whether the reader has heard nothing for some time, so that it must be told something lest somebody between
// takes the connection for dead.
func (r *reading) quiet() bool { return time.Since(r.last) >= r.Bounds.KeepAlive/2 }

// count brings the stream's figures to the metrics, which all streams share.
func (r *reading) count() {
	r.m.parts.Add(float64(r.written))
	r.m.flushes.Add(float64(r.flushes))
	r.m.bytes.Add(float64(r.bytes))
	r.written, r.flushes, r.bytes, r.counted = 0, 0, 0, r.last
}

// A writer brings parts to one reader's socket from the request's handler.
type writer struct {
	reading
	x        *exchange
	rc       *http.ResponseController
	ctx      context.Context // ends when the reader sends nothing more
	probes   int             // how often the reader was written to since, to find out whether it has gone
	probed   time.Time       // when it was first
	forget   func() bool     // the end of ctx
	rest     *time.Timer     // between two writes of text
	deadline time.Time       // that writes have now
	err      error
}

// take writes what the log has more than the reader took; the response head goes with the first parts, or alone.
func (w *writer) take(head bool) (took int, more bool) {
	space := w.spaces.Get().(*workspace)
	defer func() {
		if cap(space.bytes) <= keptSize {
			w.spaces.Put(space)
		}
	}()
	for {
		space.bytes = space.bytes[:0]
		n, more, full := w.fill(space)
		took += n
		if len(space.bytes) > 0 && !w.write(space.bytes) {
			return took, more
		}
		if full {
			continue // there is more to go with it
		}
		if took > 0 || head {
			w.flush()
		}
		return took, more
	}
}

// parts writes parts that come from no log.
func (w *writer) parts(parts []stream.Part) bool {
	var buf []byte
	for i := range parts {
		buf = w.enc.Append(buf, parts[i])
	}
	w.written += len(parts)
	return len(buf) == 0 || w.write(buf)
}

// keepAlive says something to a reader that has heard nothing for some time, or that may have gone.
func (w *writer) keepAlive() bool {
	if !w.mayHaveGone() && !w.quiet() {
		return true
	}
	return w.write(w.enc.KeepAlive(make([]byte, 0, 16))) && w.flush()
}

// probeAgain is after which time a reader is written to a second time that may have gone.
const probeAgain = time.Second

// mayHaveGone is whether the reader is to be written to, to find out. The end of what it sends ends the request's context, be it
// that the reader has gone or that it has half closed the connection and reads on. Where it has gone, its system answers what is
// written with the end of the connection, and what is written after that fails.
func (w *writer) mayHaveGone() bool {
	switch {
	case w.ctx.Err() == nil || w.probes == 2:
		return false
	case w.probes == 1 && time.Since(w.probed) < probeAgain:
		return false
	}
	if w.probes++; w.probes == 1 {
		w.probed = time.Now()
		if w.reader != nil {
			time.AfterFunc(probeAgain, w.reader.Wake)
		}
	}
	return true
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
func (w *writer) left() {
	if errors.Is(w.err, os.ErrDeadlineExceeded) {
		w.m.end("stalled")
	} else {
		w.m.end("gone")
	}
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
