package doctor

import (
	"context"
	"fmt"
	"net"
	"time"

	"docent/internal/health"
)

// connectionsOfANode is how many connections to the database a node may have.
const connectionsOfANode = 30

// nodeFindings look at what several nodes need: of the database, and of each other.
func (o Inside) nodeFindings(ctx context.Context) (found []Finding) {
	if !o.Stores.Config.Shared() {
		return []Finding{Left("the journal is in the data directory")}
	}
	found = o.databaseFindings(ctx)
	return append(found, judgeNodes(ctx, o.Nodes)...)
}

func (o Inside) databaseFindings(ctx context.Context) []Finding {
	db := o.Stores.Catalog.Postgres()
	var commit string
	var most, pids [2]int
	for i := range pids { // both are open at the same time
		conn, err := db.Conn(ctx)
		if err != nil {
			return []Finding{Wrong("start the database, and look at catalog_dsn", "it does not answer: %v", err)}
		}
		defer conn.Close()
		err = conn.QueryRowContext(ctx, `SELECT pg_backend_pid(), current_setting('synchronous_commit'),
			current_setting('max_connections')::int, (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`).
			Scan(&pids[i], &commit, &most[0], &most[1])
		if err != nil {
			return []Finding{Wrong("look at the database's log", "it does not answer: %v", err)}
		}
	}
	return judgeDatabase(commit, most[0], most[1], pids[0] == pids[1])
}

// judgeDatabase says what is wrong with a database for several nodes. Two connections that are open at the same time share
// a session only where a pooler gives each transaction another one.
func judgeDatabase(commit string, most, used int, pooled bool) (found []Finding) {
	if pooled {
		found = append(found, Wrong("set pool_mode = session in PgBouncer, or let nodes connect to PostgreSQL itself",
			"a pooler gives each transaction another session: locks of nodes and notifications do not work over it"))
	}
	if commit == "off" || commit == "local" {
		found = append(found, Doubt("set synchronous_commit = on for this role and database",
			"synchronous_commit is %s: what was acknowledged may be lost when the database ends or fails over", commit))
	}
	if free := most - used; free < connectionsOfANode {
		found = append(found, Doubt(fmt.Sprintf("raise max_connections of the database: a node may have %d", connectionsOfANode),
			"%d of %d connections are free: not enough for another node", max(0, free), most))
	}
	if len(found) == 0 {
		found = append(found, Fine("the database keeps what it acknowledges, and has connections for another node"))
	}
	return found
}

// judgeNodes says what is wrong among nodes, and tries whether this one reaches the others.
func judgeNodes(ctx context.Context, nodes []health.Node) []Finding {
	versions := map[string]bool{}
	for _, n := range nodes {
		versions[n.Version] = true
	}
	found := together(nodes, func(n health.Node) Finding {
		if n.State == "isolated" {
			return Wrong("let nodes reach each other at node_address", "it runs nothing: %s", n.Reason).Of(n.Name)
		}
		if n.Self || n.Address == "" {
			return Fine("it runs %d shards", n.Shards).Of(n.Name)
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Address)
		if err != nil {
			return Wrong("let nodes reach each other at node_address", "it cannot be reached from here: %v", err).Of(n.Name)
		}
		conn.Close()
		if n.State == "silent" {
			return Doubt("look at its log", "its signs of life do not arrive in the database").Of(n.Name)
		}
		return Fine("it can be reached, and runs %d shards", n.Shards).Of(n.Name)
	})
	if len(versions) > 1 {
		found = append(found, Doubt("end the upgrade: the same version on all nodes", "the nodes have %d versions", len(versions)))
	}
	return found
}
