package router

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"docent/actors/thread"
	"docent/api/stream"
	"docent/router/sockets"
)

// follow writes an answer to one reader as it grows: all that there is in one write for each time that it has grown.
// The reader's own slowness, or its end, is nobody else's: the turn goes on. done is called at the stream's end,
// which may be long after follow has returned: sockets write what waits for a model elsewhere.
func (s *Server) follow(x *exchange, req *http.Request, turn thread.Turn, form stream.Form, done func()) error {
	s.head(x, &turn, form)
	if s.hand(x, req, &turn, form, done) {
		return nil
	}
	defer done()
	x.deadline()
	x.WriteHeader(http.StatusOK)
	if req.Method == http.MethodHead {
		return nil
	}
	r := s.newReading(x, &turn, form)
	r.measured(req, x, &turn)
	w := s.newWriter(x, req, r)
	defer w.end()
	w.follow()
	return nil
}

// hand hands a stream to the sockets. Answers that this machine makes itself are there at once, and stay with their
// handlers: to take a connection and to give it back costs more than it saves.
//
//go:noinline
func (s *Server) hand(x *exchange, req *http.Request, turn *thread.Turn, form stream.Form, done func()) bool {
	if s.sockets == nil || s.Models.Local(x.project.Model) {
		return false
	}
	if req.Method != http.MethodPost && (req.Method != http.MethodGet || req.ContentLength != 0) {
		return false // a body that nobody has read
	}
	// What the log's line says is kept, and nothing else of the request: strings of its head would hold all of it.
	method := http.MethodGet
	if req.Method == http.MethodPost {
		method = http.MethodPost
	}
	account := x.account(method)
	account.id, account.status = strings.Clone(account.id), http.StatusOK
	r := s.newReading(x, turn, form)
	r.measured(req, x, turn)
	r.m.open.Inc()
	x.moved = s.sockets.Take(x.ResponseWriter, req, r, func(a sockets.Account) {
		defer done()
		account.bytes, account.how, account.err = a.Bytes, a.How, a.Err
		if a.Err != nil {
			s.Log.Error("a stream was cut off", "request", account.id, "thread", account.thread, "error", a.Err)
		}
		r.m.end(a.How)
		r.count()
		r.m.open.Dec()
		s.metrics.inFlight.Dec()
		s.note(context.Background(), account)
	})
	if !x.moved {
		r.m.open.Dec()
	}
	return x.moved
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

// A writer writes a stream from its request's handler.
type writer struct {
	*reading
	x        *exchange
	rc       *http.ResponseController
	ctx      context.Context // ends when the reader sends nothing more
	wake     func()          // has follow look whether there is something to do; nil if nothing follows
	probes   int             // how often the reader was written to since, to find out whether it has gone
	probed   time.Time       // when it was first
	last     time.Time       // of the last write
	deadline time.Time       // that writes have now
	err      error
}

func (s *Server) newWriter(x *exchange, req *http.Request, r *reading) *writer {
	r.m.open.Inc()
	return &writer{reading: r, x: x, rc: http.NewResponseController(x.ResponseWriter), ctx: req.Context()}
}

// ended says how the stream has ended, to the metrics and the log.
func (w *writer) ended(how string) {
	w.x.how = how
	w.m.end(how)
}

func (w *writer) end() {
	w.count()
	w.m.open.Dec()
}

// follow writes until the answer or the reader has ended. One channel is waited on, beside the clock: whatever there
// is to look at wakes it. It may wait here for minutes, in tens of thousands of goroutines: what stands on the stack
// counts.
func (w *writer) follow() {
	ready := make(chan struct{}, 1)
	w.wake = func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	}
	defer w.Watch(w.wake)()
	defer context.AfterFunc(w.ctx, w.wake)()
	defer context.AfterFunc(w.server.cutting, w.wake)()
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for first := true; ; first = false {
		how, wait := w.step(first)
		if how != "" {
			w.ended(how)
			w.x.aborted = w.x.aborted || how == sockets.EndedMoved
			return
		}
		// What comes soon after text goes together: a gap of this length is not seen. The end of the answer does not
		// wait.
		if wait {
			pause.Reset(w.server.Bounds.Pace)
		} else {
			pause.Reset(w.server.Bounds.KeepAlive)
		}
		select {
		case <-pause.C:
		case <-ready:
		}
	}
}

// step writes what there is, and says how the stream has ended; the response head goes with the first parts, or alone.
//
//go:noinline
func (w *writer) step(head bool) (how string, wait bool) {
	space := w.server.buffers.Get().(*[]byte)
	b, wait := w.Append((*space)[:0])
	got := len(b) > 0
	if b, how = w.End(b); !got && how == "" && !head && w.mustProbe() {
		b = w.KeepAlive(b)
	}
	if len(b) > 0 && !w.write(b) || (len(b) > 0 || head) && !w.flush() {
		how = w.left()
	}
	if cap(b) <= keptSize {
		*space = b
		w.server.buffers.Put(space)
	}
	return how, wait
}

// mustProbe reports whether the reader is to be told something that says nothing: it has heard nothing for some time, so
// that somebody between may take the connection for dead, or it may have gone.
func (w *writer) mustProbe() bool {
	return w.mayHaveGone() || time.Since(w.last) >= w.server.Bounds.KeepAlive/2
}

// probeAgain is after which time a reader is written to a second time that may have gone.
const probeAgain = time.Second

// mayHaveGone reports whether the reader is to be written to, to find out. The end of what it sends ends the request's
// context, be it that the reader has gone or that it has half closed the connection and reads on. If it has gone,
// its system answers what is written with the end of the connection, and what is written after that fails.
func (w *writer) mayHaveGone() bool {
	switch {
	case w.ctx.Err() == nil || w.probes == 2:
		return false
	case w.probes == 1 && time.Since(w.probed) < probeAgain:
		return false
	}
	if w.probes++; w.probes == 1 {
		w.probed = time.Now()
		if w.wake != nil {
			time.AfterFunc(probeAgain, w.wake)
		}
	}
	return true
}

// send writes what comes from no log, and counts it.
func (w *writer) send(parts int, b []byte) bool {
	w.add(parts, len(b))
	return (len(b) == 0 || w.write(b)) && w.flush()
}

// encode encodes parts that come from no log.
func (w *writer) encode(parts ...stream.Part) (b []byte) {
	for i := range parts {
		b = w.enc.Append(b, parts[i])
	}
	return b
}

// write gives the bytes their time: a reader that takes nothing in for so long loses its stream, and one that is slow
// does not. The deadline is not moved for each write, it has a quarter of its time to spare.
func (w *writer) write(b []byte) bool {
	w.last = time.Now()
	patience := w.server.Bounds.WriteTimeout
	if w.deadline.Sub(w.last) < patience {
		w.deadline = w.last.Add(patience + patience/4)
		if err := w.rc.SetWriteDeadline(w.deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			w.err = err
		}
	}
	if _, err := w.x.Write(b); err != nil {
		w.err = err
		return false
	}
	return true
}

func (w *writer) flush() bool {
	if err := w.rc.Flush(); err != nil {
		w.err = err
		return false
	}
	return true
}

// left says how a stream ended whose reader has gone, or takes nothing in. That is the end of the reader only.
func (w *writer) left() string {
	if errors.Is(w.err, os.ErrDeadlineExceeded) {
		return sockets.EndedStalled
	}
	return sockets.EndedGone
}
