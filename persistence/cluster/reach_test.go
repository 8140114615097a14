package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/persistence/cluster"
)

// A mesh is the network between nodes: what answers at an address, and which ways are cut.
type mesh struct {
	mu      sync.Mutex
	answers map[string]string // ids, by address; "silent" never answers
	cuts    map[string]bool   // from the name of a node to an address
}

func newMesh() *mesh { return &mesh{answers: map[string]string{}, cuts: map[string]bool{}} }

// listen makes the node answer at an address.
func (n *mesh) listen(address, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[address] = id
}

func (n *mesh) cut(is bool, from string, to ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, address := range to {
		n.cuts[from+">"+address] = is
	}
}

// probe is how the named node probes others.
func (n *mesh) probe(from string) func(context.Context, cluster.Node) (string, error) {
	return func(ctx context.Context, to cluster.Node) (string, error) {
		n.mu.Lock()
		id, there := n.answers[to.Address]
		cut := n.cuts[from+">"+to.Address]
		n.mu.Unlock()
		switch {
		case cut || id == "silent":
			<-ctx.Done()
			return "", ctx.Err()
		case !there:
			return "", errors.New("connection refused")
		}
		return id, nil
	}
}

// meet makes a node join whose address is reached unless it was cut before.
func (g *group) meet(n *mesh, name string) *peer {
	g.t.Helper()
	return g.joinAs(name, func(c *cluster.Config) {
		c.ID = cluster.NewID()
		c.Probe = n.probe(name)
		n.listen(c.Address, c.ID)
	})
}

func isolatedNames(p *peer) (names []string) {
	for _, n := range p.Status().Nodes {
		if n.Reason != "" {
			names = append(names, n.Name)
		}
	}
	return names
}

func TestANodeThatTheOthersDoNotReachDoesNotJoin(t *testing.T) {
	t.Parallel()
	g, n := newGroup(t), newMesh()
	a := g.meet(n, "a")
	for _, c := range []struct {
		what, address string
		answers       string
		want          []string
	}{
		{"nobody behind its address", "nobody:1", "", []string{"node_address of NAME is nobody:1", "a does not reach it", "connection refused"}},
		{"a silent address", "silent:1", "silent", []string{"node_address of NAME is silent:1", "a does not reach it", "nothing answers there within"}},
		{"another node's listener behind its address", "other:1", a.Self().ID, []string{"node_address of NAME is other:1", "node a answers there"}},
		{"another node's address", "a:1", "", []string{"node_address: a:1 is the address of node a as well"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			config := g.config("late", g.dsn.String())
			config.Name = "late at " + c.address // names are unique
			config.Address, config.Probe = c.address, n.probe("late")
			if c.answers != "" {
				n.listen(c.address, c.answers)
			}
			m, err := g.tryJoin(config)
			if err == nil {
				m.Close()
				t.Fatal("it joined")
			}
			for _, want := range append(c.want, "node_address") {
				if want = strings.ReplaceAll(want, "of NAME", "of "+config.Name); !strings.Contains(err.Error(), want) {
					t.Errorf("the refusal lacks %q: %v", want, err)
				}
			}
		})
	}
}

func TestTheFirstNodeReachesItselfAndADeadOneHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	g, n := newGroup(t), newMesh()
	config := g.config("a", g.dsn.String())
	config.Probe = n.probe("a")
	if m, err := g.tryJoin(config); err == nil {
		m.Close()
		t.Error("the first node joins though it does not reach itself")
	} else if !strings.Contains(err.Error(), "node_address of a is a:1, and the node does not reach itself there: connection refused") {
		t.Errorf("the first node that does not reach itself: %v", err)
	}
	a := g.meet(n, "a")
	b := g.meet(n, "b")
	a.stall() // it looks at nobody any more, and may hold its name for a while
	c := g.meet(n, "c")
	balanced(t, b, c)
}

func TestANameIsOneNodes(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.join("a")
	config := g.config("a", g.dsn.String())
	config.Address = "elsewhere:1"
	if m, err := g.tryJoin(config); err == nil {
		m.Close()
		t.Error("two nodes have the same name")
	} else if !strings.Contains(err.Error(), "node_name: another node that runs on this database has the name a") {
		t.Error(err)
	}
}

func TestANodeThatIsCutOffFromItsPeersHandsItsShardsOver(t *testing.T) {
	t.Parallel()
	for what, cut := range map[string]func(n *mesh, is bool){
		"nobody reaches it": func(n *mesh, is bool) { n.cut(is, "a", "c:1"); n.cut(is, "b", "c:1") },
		"it reaches nobody": func(n *mesh, is bool) { n.cut(is, "c", "a:1", "b:1") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g, n := newGroup(t), newMesh()
			a, b, c := g.meet(n, "a"), g.meet(n, "b"), g.meet(n, "c")
			balanced(t, a, b, c)
			cut(n, true)
			balanced(t, a, b)
			until(t, "c is not ready", func() bool { err := c.Serving(); return err != nil && strings.Contains(err.Error(), "isolated") })
			if c.count() != 0 {
				t.Errorf("it runs %d shards still", c.count())
			}
			for _, p := range []*peer{a, b, c} {
				until(t, "all say that c is isolated, and nobody else", func() bool { return strings.Join(isolatedNames(p), " ") == "c" })
			}
			until(t, "the others serve", func() bool { return a.Serving() == nil && b.Serving() == nil })
			if closed(c.Evicted()) {
				t.Error("it was given up")
			}
			cut(n, false)
			balanced(t, a, b, c)
			until(t, "c serves again", func() bool { return c.Serving() == nil })
		})
	}
}

func TestOfTwoNodesThatDoNotReachEachOtherOneServes(t *testing.T) {
	t.Parallel()
	g, n := newGroup(t), newMesh()
	a, b := g.meet(n, "a"), g.meet(n, "b")
	balanced(t, a, b)
	n.cut(true, "a", "b:1")
	n.cut(true, "b", "a:1")
	var one, other *peer
	until(t, "one is isolated", func() bool {
		names := isolatedNames(a)
		if len(names) == 1 {
			if one, other = a, b; names[0] == "a" {
				one, other = b, a
			}
		}
		return one != nil
	})
	balanced(t, one)
	until(t, "one serves", func() bool { return one.Serving() == nil && other.Serving() != nil })
	if err := one.Leave(t.Context()); err != nil { // and then the other one has to
		t.Fatal(err)
	}
	balanced(t, other)
	until(t, "the other one serves", func() bool { return other.Serving() == nil })
}

func TestANodeWhoseBeatsTheDatabaseRefusesDoesNotServe(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a, b := g.join("a"), g.join("b")
	balanced(t, a, b)
	until(t, "both serve", func() bool { return a.Serving() == nil && b.Serving() == nil })
	name := strings.TrimPrefix(g.dsn.Path, "/")
	g.exec(`ALTER DATABASE "`+name+`" SET default_transaction_read_only = on`,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	for _, p := range []*peer{a, b} {
		until(t, "a node whose beats are refused does not serve", func() bool { return p.Serving() != nil })
	}
	g.exec(`ALTER DATABASE "` + name + `" RESET default_transaction_read_only`)
	for _, p := range []*peer{a, b} {
		until(t, "it serves again", func() bool { return p.Serving() == nil })
		if closed(p.Evicted()) {
			t.Errorf("%s was given up: %s", p.Self().Name, p.Reason())
		}
	}
}

// A shard whose streams are open moves after them if its node goes on, and at once if it does not.
func TestAShardMovesAfterItsStreams(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a := g.joinAs("a", func(c *cluster.Config) { c.Drain = time.Hour })
	var ended atomic.Bool
	open := func(shard int) int {
		if ended.Load() {
			return 0
		}
		return shard % 2
	}
	cut := func(_ context.Context, shards []int) {
		for _, shard := range shards {
			if open(shard) > 0 {
				t.Errorf("shard %d moves under an open stream", shard)
			}
		}
	}
	a.Handle(cluster.Handler{Open: open, Lost: cut})
	balanced(t, a)
	b := g.join("b")
	until(t, "what has no streams moves", func() bool { return b.count() > 0 })
	c := g.join("c")
	until(t, "what has no streams moves to the next as well", func() bool { return c.count() > 0 })
	ended.Store(true)
	balanced(t, a, b, c)
	b.Handle(cluster.Handler{Open: func(int) int { return 1 }})
	if err := b.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	balanced(t, a, c)
}
