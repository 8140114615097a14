package forward

import (
	"context"
	"net/http"

	"docent/persistence/cluster"
)

// Members say which nodes there are and which of them runs what, as *cluster.Members does.
type Members interface {
	Self() cluster.Node
	Nodes() []cluster.Node
	Check(ctx context.Context, name string) error
	Changed() <-chan struct{} // closed at the next change of what the others say
}

// Refuse answers a request that cannot be forwarded, in the form that the edge's other errors have.
type Refuse func(w http.ResponseWriter, req *http.Request, err error)
