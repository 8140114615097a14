package router

import (
	"context"
	"net/http"
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
	q := s.queue.Stats()
	return q.Working, q.Waiting
}
