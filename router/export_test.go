package router

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"docent/router/overload"
)

// Fill has everybody refused from now on who makes work. It is called before the server serves anything.
func (s *Server) Fill() {
	s.queue = overload.New(overload.Rule{Working: 1, Limit: time.Second, Lease: time.Hour})
	if _, err := s.queue.Enter(context.Background()); err != nil {
		panic(err)
	}
}

// Filled is a change to an HTTP server whose handler is a Server.
func Filled(web *http.Server) { web.Handler.(*Server).Fill() }

// Queue is how many are worked on and how many wait.
func (s *Server) Queue() (working, waiting int) {
	q := s.queue.Standing()
	return q.Working, q.Waiting
}

// A Taken is a stream that has left net/http and that its pump does not have yet.
type Taken struct{ flow *flow }

// OnTake has do called with each stream that leaves net/http, before a pump has it.
func (s *Server) OnTake(do func(Taken)) { s.pumps.adopting = func(f *flow) { do(Taken{f}) } }

// Wake wakes all streams as the pulse does, and returns when the pump has done all that there was to do.
func (t Taken) Wake() {
	p := t.flow.pump
	p.server.pulse.wake()
	for p.marked.Load() != nil || !p.asleep.Load() {
		runtime.Gosched()
	}
}

// Break has what looks after the stream panic: while it is written, and again at its end.
func (t Taken) Break() {
	t.flow.enc = nil
	t.flow.leave = func() { panic("the end of a stream") }
}
