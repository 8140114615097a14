package shared

import (
	"context"
	"io"

	"docent/persistence/catalog/nodes"
)

// A Database keeps what nodes share.
type Database interface {
	Put(ctx context.Context, name string, from io.Reader, held *nodes.Lease) (nodes.Blob, error)
	Get(ctx context.Context, name string, to io.Writer) (nodes.Blob, error)
	Blob(ctx context.Context, name string) (nodes.Blob, error)
	Blobs(ctx context.Context, prefix string) ([]nodes.Blob, error)
	Remove(ctx context.Context, name string) error
	Alone(ctx context.Context, name string, wait bool, f func(context.Context, *nodes.Lease) error) (ran bool, err error)

	Heads(ctx context.Context) (map[string]nodes.Head, error)
	HeadsNow(ctx context.Context) ([2]int64, error)
	Turned() <-chan struct{}
	Turn(ctx context.Context, source, commit string) (number int64, err error)
	Serves(ctx context.Context, node, source string, number int64) error
	Serving(ctx context.Context, source string, number int64) (nodes []string, err error)
	ForgetSource(ctx context.Context, source string) error
	ForgetNodes(ctx context.Context, there []string) error
}

// Members are the nodes that are there now.
type Members interface {
	Self() string              // the id of this one
	Others() map[string]string // names by id of those that take requests
}
