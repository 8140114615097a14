package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"docent/cluster"
	"docent/doctor"
	"docent/health"
)

// clusterStatus is what operators see of the nodes; nil on a server that is alone.
func clusterStatus(s *cluster.Status) *health.Cluster {
	if s == nil {
		return nil
	}
	c := &health.Cluster{Without: s.Without, LastBeat: s.LastBeat.Seconds(), Acts: s.Acts}
	for _, n := range s.Nodes {
		state := "ready"
		switch {
		case n.Silence > 1:
			state = "silent"
		case n.Leaving:
			state = "leaving"
		case !n.Ready:
			state = "starting"
		}
		c.Nodes = append(c.Nodes, health.Node{Name: n.Name, Address: n.Address, Version: n.Version, Started: n.Started.UTC(),
			Self: n.Self, State: state, Shards: n.Shards})
	}
	slices.SortFunc(c.Nodes, func(a, b health.Node) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func printCluster(line func(name, format string, args ...any), c *health.Cluster) {
	if c == nil {
		return
	}
	for _, n := range c.Nodes {
		at, self := "", ""
		if n.Address != "" { // one that others cannot reach has none
			at = ", at " + n.Address
		}
		if n.Self {
			self = ", this one"
		}
		line("node "+n.Name, "%s, %d of %d shards, version %s%s%s", n.State, n.Shards, cluster.Shards, n.Version, at, self)
	}
	if c.Without > 0 {
		line("shards", "%d are run by no node", c.Without)
	}
	if !c.Acts {
		line("database", "out of reach since %.1f s: this node acts on nothing that it runs", c.LastBeat)
	}
}

// connectionsOfANode is how many connections to the database a node may have.
const connectionsOfANode = 30

// nodeFindings look at what several nodes need: of the database, and of each other.
func (o *operations) nodeFindings(ctx context.Context) (found []doctor.Finding) {
	if !o.stores.config.shared() {
		return []doctor.Finding{doctor.Left("the journal is in the data directory")}
	}
	found = o.databaseFindings(ctx)
	var nodes []health.Node
	if o.app != nil {
		if c := clusterStatus(o.app.nodes.Status()); c != nil {
			nodes = c.Nodes
		}
	}
	return append(found, judgeNodes(ctx, nodes)...)
}

func (o *operations) databaseFindings(ctx context.Context) []doctor.Finding {
	db := o.stores.catalog.Postgres()
	var commit string
	var most, pids [2]int
	for i := range pids { // both are open at the same time
		conn, err := db.Conn(ctx)
		if err != nil {
			return []doctor.Finding{doctor.Wrong("start the database, and look at catalog_dsn", "it does not answer: %v", err)}
		}
		defer conn.Close()
		err = conn.QueryRowContext(ctx, `SELECT pg_backend_pid(), current_setting('synchronous_commit'),
			current_setting('max_connections')::int, (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`).
			Scan(&pids[i], &commit, &most[0], &most[1])
		if err != nil {
			return []doctor.Finding{doctor.Wrong("look at the database's log", "it does not answer: %v", err)}
		}
	}
	return judgeDatabase(commit, most[0], most[1], pids[0] == pids[1])
}

// judgeDatabase says what is wrong with a database for several nodes. Two connections that are open at the same time share
// a session only where a pooler gives each transaction another one.
func judgeDatabase(commit string, most, used int, pooled bool) (found []doctor.Finding) {
	if pooled {
		found = append(found, doctor.Wrong("set pool_mode = session in PgBouncer, or let nodes connect to PostgreSQL itself",
			"a pooler gives each transaction another session: locks of nodes and notifications do not work over it"))
	}
	if commit == "off" || commit == "local" {
		found = append(found, doctor.Doubt("set synchronous_commit = on for this role and database",
			"synchronous_commit is %s: what was acknowledged may be lost when the database ends or fails over", commit))
	}
	if free := most - used; free < connectionsOfANode {
		found = append(found, doctor.Doubt(fmt.Sprintf("raise max_connections of the database: a node may have %d", connectionsOfANode),
			"%d of %d connections are free: not enough for another node", max(0, free), most))
	}
	if len(found) == 0 {
		found = append(found, doctor.Fine("the database keeps what it acknowledges, and has connections for another node"))
	}
	return found
}

// judgeNodes says what is wrong among nodes, and tries whether this one reaches the others.
func judgeNodes(ctx context.Context, nodes []health.Node) []doctor.Finding {
	versions := map[string]bool{}
	for _, n := range nodes {
		versions[n.Version] = true
	}
	found := together(nodes, func(n health.Node) doctor.Finding {
		if n.Self || n.Address == "" {
			return doctor.Fine("it runs %d shards", n.Shards).Of(n.Name)
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Address)
		if err != nil {
			return doctor.Wrong("let nodes reach each other at node_address", "it cannot be reached from here: %v", err).Of(n.Name)
		}
		conn.Close()
		if n.State == "silent" {
			return doctor.Doubt("look at its log", "its signs of life do not arrive in the database").Of(n.Name)
		}
		return doctor.Fine("it can be reached, and runs %d shards", n.Shards).Of(n.Name)
	})
	if len(versions) > 1 {
		found = append(found, doctor.Doubt("end the upgrade: the same version on all nodes", "the nodes have %d versions", len(versions)))
	}
	return found
}
