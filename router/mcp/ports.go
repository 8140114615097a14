package mcp

import (
	"context"

	"docent/api"
	"docent/search"
)

// Pages lists what of a project's documentation is published to everybody.
type Pages interface {
	// Published are the pages that every reader may see, in the order of their paths. It is search.ErrNotIndexed if
	// there is no index that can be used.
	Published(ctx context.Context, project api.ProjectID) ([]search.PageInfo, error)
}
