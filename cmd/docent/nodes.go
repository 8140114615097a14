package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/cluster"
	forwarding "docent/cluster/forward"
)

// Where the journal is kept.
const (
	journalBolt     = "bbolt"
	journalPostgres = "postgres"
)

// nodeSecretEnv names the secret that nodes know each other by.
const nodeSecretEnv = envPrefix + "NODE_SECRET"

// leastNodeSecret is how many bytes it has at least, each of two, so that it cannot be guessed: not from the public keys in
// the database either.
const leastNodeSecret = 32

// shared reports whether the journal is in a database that several nodes can share.
func (c *Config) shared() bool { return c.Journal == journalPostgres }

// checkNodes finds settings of a cluster that cannot be used.
func (c *Config) checkNodes(list *problemList) {
	if c.NodeAddress != "" && c.NodeListen == "" {
		list.add("node_address", "it is the address of node_listen, which is not set: set node_listen to HOST:PORT as well, or leave node_address out")
	}
	switch c.Journal {
	case journalBolt:
		if c.NodeListen != "" {
			list.add("node_listen", "nodes share a journal in PostgreSQL: set journal = \"postgres\" as well, or leave node_listen out")
		}
		return
	case journalPostgres:
	default:
		list.add("journal", "%q is neither bbolt nor postgres", c.Journal)
		return
	}
	if !strings.HasPrefix(c.CatalogDSN, "postgres") {
		list.add("journal", "postgres keeps the journal in the catalogue's database: set catalog_dsn to postgres://…")
	}
	if slices.ContainsFunc(c.nodeSecrets(), func(s string) bool { return len(s) < leastNodeSecret }) {
		list.add("journal", "%s is shorter than %d bytes: make one with openssl rand -base64 32", nodeSecretEnv, leastNodeSecret)
	}
	if c.NodeListen == "" {
		return
	}
	list.hostPort("node_listen", c.NodeListen)
	if c.NodeAddress != "" {
		list.hostPort("node_address", c.NodeAddress)
	} else if host, _, err := net.SplitHostPort(c.NodeListen); err == nil && unspecified(host) {
		list.add("node_address", "node_listen names no address that other nodes can reach: set node_address to HOST:PORT")
	}
	if c.nodeSecret == nil {
		list.add("node_listen", "%w: nodes know each other by a secret of at least %d bytes, the same on all of them (openssl rand -base64 32)",
			c.nodeSecretProblem, leastNodeSecret)
	}
}

// nodeSecrets are what nodes know each other by, none where none is given. There are two, with a space between them, while
// the secret is replaced: the first is used, and what comes from nodes that have another order is understood.
func (c *Config) nodeSecrets() []string {
	if c.nodeSecret == nil {
		return nil
	}
	return strings.Fields(c.nodeSecret.Value())
}

// unspecified reports whether a host of a listener stands for all addresses of the machine.
func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// join makes this server a node of the cluster that its database is of. It runs nothing before run.
func (a *app) join(ctx context.Context) (err error) {
	c := &a.config
	if !c.shared() {
		return nil
	}
	name := c.NodeName
	if name == "" {
		name, _ = os.Hostname()
	}
	keys, err := forwarding.Keys(c.nodeSecrets())
	if err != nil {
		return err
	}
	address := "" // which others take for a node that they can speak to
	if c.NodeListen != "" {
		address = cmp.Or(c.NodeAddress, c.NodeListen)
	}
	a.nodes, err = cluster.Join(ctx, cluster.Config{
		DSN: c.databaseDSN, ID: c.nodeID, Name: cmp.Or(name, c.nodeID), Address: address,
		Version: buildVersion().Version, Keys: keys, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { a.nodes.Close(); return nil })
	return nil
}

// databaseDSN is the address of the catalogue's database, as it is given now.
func (c *Config) databaseDSN() string {
	if c.catalog != nil {
		return c.catalog.Value()
	}
	return c.CatalogDSN
}

// newIDs makes the ids of new jobs and threads: those that this node runs.
func (a *app) newIDs() *api.IDs {
	if a.nodes == nil {
		return new(api.IDs)
	}
	return &api.IDs{Mine: func(prefix, id string) bool {
		switch prefix {
		case api.JobPrefix:
			return a.nodes.Here(job.Stream(api.JobID(id)))
		case api.ThreadPrefix:
			return a.nodes.Here(thread.Stream(api.ThreadID(id)))
		default:
			return true
		}
	}}
}

// run lets the node take its share of what there is to run. Requests are served by then.
func (a *app) run() {
	a.nodes.Handle(cluster.Handler{
		Gained: a.system.Wake,
		Lost: func(ctx context.Context, shards []int) {
			if err := a.system.Release(ctx, shards); err != nil {
				a.log.Error("actors that another node is to run have not ended", "error", err)
			}
		},
	})
}

// leaveTimeout is how long a node that stops tries to hand over what it runs.
const leaveTimeout = 20 * time.Second

// leave hands what this node runs to the others.
func (a *app) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := a.nodes.Leave(ctx); err != nil {
		a.log.Warn("the other nodes find out by themselves that this one is gone", "error", err)
	}
}

// givenUp is the end of a node that the others have given up, as after it was stopped for a while: they run what it
// ran, and the database refuses what it writes. Its clients come back to the others. So it ends at once; whoever
// supervises the process starts it again, as another node.
func (a *app) givenUp() error {
	a.cancelWork()
	return fmt.Errorf("%w: %s; start it again", cluster.ErrGiven, a.nodes.Reason())
}
