package web

// Feeds is how many shared live parts there are, and how many browsers look at live parts.
func (s *Server) Feeds() (shared, open int) {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	return len(s.feeds.shared), s.feeds.all
}
