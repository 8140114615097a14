package stores

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docent/forge/shared"
	"docent/internal/task"
)

// sharedHost is where the built-in code host keeps repositories for all nodes; nil if one node is alone.
func (s *Stores) sharedHost(ctx context.Context) (*shared.Store, error) {
	if !s.Config.Shared() {
		return nil, nil
	}
	host, err := shared.Open(ctx, s.Catalog.Postgres())
	if err != nil {
		return nil, fmt.Errorf("open the repositories in the database: %w", err)
	}
	return host, nil
}

// takeIn brings into the database what this node's data directory has of the time when it was alone.
func (s *Stores) takeIn(ctx context.Context) error {
	projects, err := s.Catalog.Projects(ctx)
	if err != nil {
		return err
	}
	for _, p := range projects {
		if err := s.Hub.TakeIn(ctx, p.Parts()); err != nil {
			return err
		}
	}
	return nil
}

// sweepShared removes each day what nobody needs any more of what nodes share in the database.
func (s *Stores) sweepShared() task.Task {
	return task.Task{Name: "sweep", Place: "task/sweep", Handle: func(ctx context.Context, _ int) (time.Duration, error) {
		return 24 * time.Hour, errors.Join(s.Shared.SweepVectors(ctx), s.Hub.SweepShared(ctx))
	}}
}
