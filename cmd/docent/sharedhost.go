package main

import (
	"context"
	"fmt"

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
