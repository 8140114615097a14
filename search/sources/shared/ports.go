package shared

import (
	"context"
	"io"

	"docent/api"
	"docent/persistence/catalog/nodes"
	"docent/persistence/cluster"
)

// A Database keeps what nodes share.
type Database interface {
	Put(ctx context.Context, name string, from io.Reader, held *nodes.Lease) (nodes.Blob, error)
	Get(ctx context.Context, name string, to io.Writer) (nodes.Blob, error)
	Blob(ctx context.Context, name string) (nodes.Blob, error)
	Blobs(ctx context.Context, prefix string) ([]nodes.Blob, error)
	Remove(ctx context.Context, name string) error
	Alone(ctx context.Context, name string, wait bool, f func(context.Context, *nodes.Lease) error) (ran bool, err error)

	Heads(ctx context.Context) (map[api.ProjectID]nodes.Head, error)
	HeadsNow(ctx context.Context) ([2]int64, error)
	Turned() <-chan struct{}
	Turn(ctx context.Context, source api.ProjectID, commit string) (number int64, err error)
	Serves(ctx context.Context, node string, source api.ProjectID, number int64) error
	Serving(ctx context.Context, source api.ProjectID, number int64) (nodes []string, err error)
	ForgetSource(ctx context.Context, source api.ProjectID) error
	ForgetNodes(ctx context.Context, there []string) error
}

// Members are the nodes that are there now, as *cluster.Members knows them.
type Members interface {
	Self() cluster.Node
	Nodes() []cluster.Node
}
