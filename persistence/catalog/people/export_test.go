package people

import "context"

const RenewGrace = renewGrace

func (s *Store) WriteSeen(ctx context.Context) error    { return s.writeSeen(ctx) }
func (s *Store) WriteTouches(ctx context.Context) error { return s.writeTouches(ctx) }
