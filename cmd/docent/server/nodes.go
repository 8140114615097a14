package server

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/cmd/docent/build"
	"docent/internal/health"
	"docent/persistence/cluster"
	forwarding "docent/router/forward"
)

// membership is this server's part among the nodes that share its journal.
type membership interface {
	cluster.Ownership
	Handle(h cluster.Handler)
	Evicted() <-chan struct{}
	Serving() error
	Status() *health.Cluster
}

// join makes this server a node of the cluster that its database is of. It runs nothing before run.
//
// The order at the start of a node: catalog, indexes, repositories; the listener for other nodes, which says who it is;
// its row among the members, refused where the others have another secret or do not reach it; the journal, whose
// appends bear the row's id; actors; the edge, and before it router/forward; the commits that the others follow, for 20
// s at most; other nodes' requests. Only then is it ready, takes shards, and wakes what is pending in them. Its stop:
// not ready any more; streams end, or are cut at half of the drain; shards are handed over, 16 at a time, each after
// its actors have ended; what still comes is forwarded for a second; the listener closes; the row says that it left;
// the rest as on one server.
func (a *Server) join(ctx context.Context) (err error) {
	c := &a.config
	a.nodes, a.drained = cluster.Single{}, a.drain
	if !c.Shared() {
		return nil
	}
	name := c.NodeName
	if name == "" {
		name, _ = os.Hostname()
	}
	keys, err := forwarding.Keys(c.NodeSecrets())
	if err != nil {
		return err
	}
	config := cluster.Config{DSN: c.DatabaseDSN, ID: c.NodeID, Name: cmp.Or(name, c.NodeID), Version: build.Get().Version,
		Keys: keys, Log: a.Log, Drain: c.DrainTimeout.Duration}
	if c.NodeListen != "" {
		config.Address = cmp.Or(c.NodeAddress, c.NodeListen)
		if err := a.listenToNodes(); err != nil {
			return err
		}
		config.Probe = a.endpoint.Probe
	}
	a.members, err = cluster.Join(ctx, config)
	if err != nil {
		return err
	}
	a.nodes, a.drained = a.members, a.drainNode
	a.closers = append(a.closers, func() error { a.members.Close(); return nil })
	a.upkeep.metrics.MustRegister(a.members)
	counts := a.Stores.Catalog.Counts()
	a.counts, a.usedProof = counts, takeProof(counts)
	return a.Stores.Nodes.Among(ctx, a.members)
}

// ready is nil while what readers write is stored. Of several nodes each knows from its beats that the database takes
// writes.
func (a *Server) ready(ctx context.Context) error {
	if err := a.nodes.Serving(); err != nil {
		return err
	}
	return a.Stores.Catalog.Ping(ctx)
}

// newIDs makes the ids of new jobs and threads: those that this node runs.
func (a *Server) newIDs() *api.IDs {
	return &api.IDs{Mine: func(prefix, id string) bool {
		switch prefix {
		case api.JobPrefix:
			return a.nodes.Owns(job.Stream(api.JobID(id)))
		case api.ThreadPrefix:
			return a.nodes.Owns(thread.Stream(api.ThreadID(id)))
		default:
			return true
		}
	}}
}

// run lets the node take its share of what there is to run. Requests are served by then.
func (a *Server) run() {
	a.nodes.Handle(cluster.Handler{
		Gained: a.System.Wake, Open: a.System.Open,
		Lost: func(ctx context.Context, shards []int) {
			if err := a.System.Release(ctx, shards); err != nil {
				a.Log.Error("actors that should move to another node have not stopped", "error", err)
			}
		},
	})
}

// leaveTimeout is how long a node that stops tries to hand over what it runs.
const leaveTimeout = 20 * time.Second

// givenUp is the end of a node that the others have given up, as after it was stopped for a while: they run what it
// ran, and the database refuses what it writes. Its clients come back to the others. So it ends at once; the one that
// supervises the process starts it again, as another node.
func (a *Server) givenUp() error {
	a.CancelWork()
	return fmt.Errorf("%w: %s; start it again", cluster.ErrGiven, a.members.Reason())
}
