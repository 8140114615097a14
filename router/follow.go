package router

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"docent/actors/thread"
	"docent/stream"
)

const (
	chunk    = 32 << 10 // what is written before the next part is encoded, when a reader has much to catch up on
	keptSize = 64 << 10 // larger buffers are not kept for the next stream
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
	if req.Method == http.MethodHead {
		return nil
	}
	m := s.metrics.stream(form)
	m.open.Inc()
	defer m.open.Dec()

	w := &writer{Server: s, x: x, rc: http.NewResponseController(x.ResponseWriter), enc: stream.NewEncoder(form), m: m}
	reader := turn.Log.Reader(0)
	defer reader.Close()
	beat := s.pulse.join()
	first := true
	for {
		parts, more := reader.Take()
		switch {
		case len(parts) > 0 || first:
			if !w.parts(parts) {
				return w.left()
			}
			if len(parts) > 0 && w.enc.Ended() {
				m.end("finished")
				return nil
			}
		case !more: // the log ended without saying how
			w.fail("the answer was interrupted; resume the stream or ask again")
			m.end("broken")
			return nil
		}
		first = false
		select {
		case <-reader.Ready():
		case <-beat.next():
			if !w.keepAlive() {
				return w.left()
			}
		case <-req.Context().Done():
			m.end("gone")
			return nil
		case <-s.cut:
			w.fail("the service is restarting; the answer goes on and can be resumed")
			m.end("cut")
			return nil
		}
	}
}

// A writer brings parts to one reader's socket.
type writer struct {
	*Server
	x    *exchange
	rc   *http.ResponseController
	enc  *stream.Encoder
	m    *streamMetrics
	last time.Time // of the last write
	err  error
}

// parts writes the parts; the response head goes with the first ones, or alone.
func (w *writer) parts(parts []stream.Part) bool {
	p := w.buffers.Get().(*[]byte)
	buf := (*p)[:0]
	defer func() {
		if cap(buf) <= keptSize {
			*p = buf
			w.buffers.Put(p)
		}
	}()
	for i := range parts {
		buf = w.enc.Append(buf, parts[i])
		if len(buf) >= chunk && i < len(parts)-1 {
			if !w.write(buf) {
				return false
			}
			buf = buf[:0]
		}
	}
	w.m.parts.Add(float64(len(parts)))
	if len(buf) > 0 && !w.write(buf) {
		return false
	}
	return w.flush()
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
func (w *writer) fail(reason string) {
	if w.enc.Ended() {
		return
	}
	if w.write(w.enc.Append(nil, stream.Part{Kind: stream.Error, Text: reason})) {
		w.flush()
	}
}

// begin gives a write its time: a reader that takes nothing in for so long loses its stream, and one that is slow does not.
func (w *writer) begin() {
	w.last = time.Now()
	if err := w.rc.SetWriteDeadline(w.last.Add(w.Bounds.WriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		w.err = err
	}
}

func (w *writer) write(b []byte) bool {
	w.begin()
	if _, err := w.x.Write(b); err != nil {
		w.err = err
		return false
	}
	w.m.bytes.Add(float64(len(b)))
	return true
}

func (w *writer) flush() bool {
	w.m.flushes.Inc()
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

// A pulse wakes all open streams once in a period, spread over it, with one timer for all.
type pulse struct {
	mu    sync.Mutex
	slots [16]chan struct{}
	at    int // the slot that beats next
	done  chan struct{}
	once  sync.Once
}

func newPulse(period time.Duration) *pulse {
	p := &pulse{done: make(chan struct{})}
	for i := range p.slots {
		p.slots[i] = make(chan struct{})
	}
	go func() {
		tick := time.NewTicker(max(period/time.Duration(len(p.slots)), time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.mu.Lock()
				close(p.slots[p.at])
				p.slots[p.at] = make(chan struct{})
				p.at = (p.at + 1) % len(p.slots)
				p.mu.Unlock()
			case <-p.done:
				return
			}
		}
	}()
	return p
}

func (p *pulse) stop() { p.once.Do(func() { close(p.done) }) }

// join gives a stream its beats, the first of them a whole period from now.
func (p *pulse) join() *beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := (p.at + len(p.slots) - 1) % len(p.slots)
	return &beat{p: p, slot: slot, c: p.slots[slot]}
}

// A beat is one stream's share in a pulse. It belongs to one goroutine.
type beat struct {
	p    *pulse
	slot int
	c    <-chan struct{}
}

// next yields when the stream's next beat comes.
func (b *beat) next() <-chan struct{} {
	select {
	case <-b.c: // it was, since: wait for the one after
		b.p.mu.Lock()
		b.c = b.p.slots[b.slot]
		b.p.mu.Unlock()
	default:
	}
	return b.c
}
