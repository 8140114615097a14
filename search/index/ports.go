package index

import (
	"context"

	"docent/api"
)

// A Tree is one state of a documentation repository. Paths are slash-separated and relative to the repository's root.
type Tree interface {
	Commit() string
	Files(ctx context.Context) ([]api.File, error)
	Read(ctx context.Context, path string) ([]byte, error)
}
