package rewrite

import (
	"context"
	"time"

	"docent/model"
)

// Models are what rewrites.
type Models interface {
	// Rewriter is the model that rewrites questions for the named one, and how long it may take; empty if none does.
	Rewriter(name string) (by string, limit time.Duration)
	Chat(ctx context.Context, name string, c model.Chat) (model.Reply, error)
}
