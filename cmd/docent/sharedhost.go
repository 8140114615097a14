package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"docent/backoff"
	"docent/forge/shared"
)

// sharedHost is where the built-in code host keeps repositories for all nodes; nil where one node is alone.
func (s *stores) sharedHost(ctx context.Context) (*shared.Store, error) {
	if !s.config.shared() {
		return nil, nil
	}
	host, err := shared.Open(ctx, s.catalog.Postgres())
	if err != nil {
		return nil, fmt.Errorf("open the repositories in the database: %w", err)
	}
	return host, nil
}

// takeIn brings into the database what this node's data directory has of the time when it was alone.
func (s *stores) takeIn(ctx context.Context) error {
	projects, err := s.catalog.Projects(ctx)
	if err != nil {
		return err
	}
	for _, p := range projects {
		if err := s.hub.TakeIn(ctx, p.Parts()); err != nil {
			return err
		}
	}
	return nil
}

// sweepShared removes each day what nobody needs any more of what nodes share in the database.
func (s *stores) sweepShared(ctx context.Context, log *slog.Logger) {
	for {
		if err := errors.Join(s.shared.SweepVectors(ctx), s.hub.SweepShared(ctx)); err != nil && ctx.Err() == nil {
			log.Warn("what is not used any more could not be removed from the database", "error", err)
		}
		if backoff.Sleep(ctx, 24*time.Hour) != nil {
			return
		}
	}
}
