package sources

import (
	"context"

	"docent/api"
)

// A turn lets one goroutine at a time work on a project. It is kept while somebody has it or waits for it.
type turn struct {
	taken  chan struct{} // holds one element while somebody has it
	wanted int           // by so many
}

// turn waits until nobody else works on the project, or until ctx ends. The caller calls end when it has finished.
func (s *Reader) turn(ctx context.Context, id api.ProjectID) (end func(), err error) {
	s.mu.Lock()
	t := s.turns[id]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		s.turns[id] = t
	}
	t.wanted++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.wanted--; t.wanted == 0 {
			delete(s.turns, id)
		}
	}
	select {
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	case t.taken <- struct{}{}:
		return func() {
			<-t.taken
			leave()
		}, nil
	}
}
