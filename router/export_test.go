package router

import (
	"context"
	"net/http"
	"time"

	"docent/internal/budget"
	"docent/router/overload"
)

// Fill refuses all requests for work from now on. It is called before the server serves anything.
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

// JSONOperations are the method and pattern of each operation that takes a body of JSON with a project known: those in
// which somebody might name groups.
func (s *Server) JSONOperations() (list [][2]string) {
	for _, r := range s.routes {
		if r.method == http.MethodPost && (r.readers() || r.access == agent) {
			list = append(list, [2]string{r.method, r.pattern})
		}
	}
	return list
}

// Operations are the method and pattern of each operation.
func (s *Server) Operations() (list [][2]string) {
	for _, r := range s.routes {
		list = append(list, [2]string{r.method, r.pattern})
	}
	return list
}

// ReaderOperations are the method and pattern of each operation of readers, those of tools included.
func (s *Server) ReaderOperations() (list [][2]string) {
	for _, r := range s.routes {
		if r.crossOrigin() {
			list = append(list, [2]string{r.method, r.pattern})
		}
	}
	return list
}

// Streams is how many streams are open.
func (s *Server) Streams() int64 { return s.openStreams() }

// TakeStreams opens all streams that may be open, and FreeStreams ends them.
func (s *Server) TakeStreams() {
	for s.budgets.Take(budget.Streams, 1) == budget.Taken {
	}
}

// FreeStreams ends what TakeStreams has opened; nothing else may be open.
func (s *Server) FreeStreams() { s.budgets.Give(budget.Streams, s.openStreams()) }
