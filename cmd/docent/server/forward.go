package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"docent/internal/background"
	"docent/internal/backoff"
	"docent/persistence/cluster"
	forwarding "docent/router/forward"
)

// Handlers that requests are forwarded to, by their names between nodes.
const (
	entryEdge  = "edge"
	entryTools = "keyless"
)

// openForward has requests answered by the node that runs their actor, where there are several nodes.
func (a *Server) openForward() {
	a.entrance = a.Edge
	tools := a.Edge.ForTools()
	if a.endpoint != nil {
		a.forward = forwarding.New(forwarding.Config{Members: a.members, Endpoint: a.endpoint, Log: a.Log, Refuse: a.Edge.Refuse})
		a.closers = append(a.closers, func() error { a.forward.Close(); return nil })
		a.entrance, tools = a.forward.Handler(entryEdge, a.Edge), a.forward.Handler(entryTools, tools)
		a.forgets = a.forward.Handler(entryForget, http.HandlerFunc(a.serveForget))
		a.upkeep.metrics.MustRegister(a.forward)
	}
	a.tools.Over(tools)
	a.chatsOver(a.entrance)
}

// listenToNodes lets other nodes find out that they reach this one, which is not a node before they do. It takes their requests
// later.
func (a *Server) listenToNodes() (err error) {
	a.endpoint, err = forwarding.NewEndpoint(a.config.NodeID, a.config.NodeSecrets(), a.Log)
	if err != nil {
		return fmt.Errorf("speak to other nodes: %w", err)
	}
	a.closers = append(a.closers, func() error { a.endpoint.Close(); return nil })
	listener, err := net.Listen("tcp", a.config.NodeListen)
	if err != nil {
		return fmt.Errorf("listen for other nodes on %s: %w", a.config.NodeListen, err)
	}
	background.Go("cmd/docent/server.listenToNodes", func() {
		if err := a.endpoint.Serve(listener); err != nil {
			a.Log.Error("stopped serving other nodes", "error", err)
		}
	})
	return nil
}

// sessionAt notes that a request belongs to the session that another node keeps.
func (a *Server) sessionAt(ctx context.Context, node string) bool {
	if a.forward == nil {
		return false
	}
	n, ok := a.forward.Reach(node)
	if ok {
		cluster.Note(ctx, &cluster.ElsewhereError{Node: n})
	}
	return ok
}

// drainNode ends the edge of one of several nodes, so that no client sees it go. It says that it is not ready, so that
// the load balancer sends nothing new; it lets answers that it writes end, for half of the time; it hands what it runs to
// the others, by which the rest of its streams are broken off and resumed there; and until here, and after, it forwards
// what comes. Then it closes its listener, and last the connections that are open: a question that is on its way to one
// that is closed is an error at its client, as no balancer may send it a second time.
func (a *Server) drainNode(ctx context.Context, server *http.Server, listener net.Listener) {
	a.Edge.Retire()
	settling, cancel := context.WithTimeout(ctx, a.config.DrainTimeout.Duration/2)
	_ = a.Edge.Settle(settling)
	cancel()
	handing, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	if err := a.members.HandOver(handing); err != nil {
		a.Log.Warn("not everything was handed over", "error", err)
	}
	cancel()
	a.Pages.Leave()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), max(2*lastRequests+lastForwards, time.Until(deadline(ctx))))
	defer cancel()
	_ = backoff.Sleep(ctx, lastRequests) // readers whose streams were broken off come again, some to this node
	_ = listener.Close()
	_ = backoff.Sleep(ctx, lastRequests) // a balancer that is refused forgets the connections that it has kept
	if server.Shutdown(ctx) != nil {
		server.Close() // what is forwarded goes on at the next node
	}
	if a.forward != nil {
		a.forward.Leave() // the edge would say from here on that the service stops
	}
	if err := a.Edge.Drain(ctx); err != nil {
		a.Log.Warn("streams were cut off", "error", err)
	}
	if a.forward != nil {
		_ = a.endpoint.Shutdown(ctx) // what is left is broken off when it is closed
	}
	leaving, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := a.members.Leave(leaving); err != nil {
		a.Log.Warn("could not tell the other nodes that this node is gone; they will notice", "error", err)
	}
}

// lastForwards is how long requests in hand may take at least after a node has handed over what it ran.
const lastForwards = 2 * time.Second

func deadline(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}
