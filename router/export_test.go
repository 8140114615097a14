package router

import (
	"runtime"
	"time"
)

// Fill makes the processors full until Drop, but for so many.
func (s *Server) Fill(but int) {
	a := s.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = func() time.Duration { return time.Second }
	a.fewest, a.state, a.bound, a.denied = but, full, but, time.Now().Add(time.Hour)
	a.shut.Store(true)
}

// Drop gives the processors room again.
func (s *Server) Drop() {
	a := s.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = func() time.Duration { return 0 }
	a.state = roomy
	a.shut.Store(false)
}

// Inside is how many are, of whose models nothing is known.
func (s *Server) Inside() int {
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	return s.admission.inside / wholePlace
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
