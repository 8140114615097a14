package web

// A Rule is one line of the table of routes, for tests that hold the pages to it.
type Rule struct{ Method, Pattern, Need string }

// Rules is the table of routes.
func (s *Server) Rules() (list []Rule) {
	names := map[need]string{anybody: "anybody", signedIn: "signedIn", viewer: "viewer", editor: "editor", owner: "owner",
		operator: "operator"}
	for _, r := range s.routes() {
		list = append(list, Rule{r.method, r.pattern, names[r.need]})
	}
	return list
}

// Feeds is how many shared live parts there are, and how many browsers look at live parts.
func (s *Server) Feeds() (shared, open int) {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	return len(s.feeds.shared), s.feeds.all
}

// Policy is what pages allow themselves.
const Policy = policy
