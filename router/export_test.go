package router

import "time"

// Fill makes the processors full, for good.
func (s *Server) Fill() {
	a := s.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = func() time.Duration { return time.Second }
	a.fewest, a.full, a.bound, a.refused = 0, true, 0, time.Now().Add(time.Hour)
}
