package router

import "time"

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
