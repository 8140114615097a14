package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/api"
	"docent/persistence/cluster"
)

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestShardsOfAKilledNodeAreTakenOver(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a, b, c := g.join("a"), g.join("b"), g.join("c")
	balanced(t, a, b, c)
	name := owned(t, c)
	answer := make(chan error, 1)
	c.kill()
	killed := time.Now()
	until(t, "a sees that c has died", func() bool { n, ok := a.Owner(name); return !ok || n.Name != "c" })
	go func() { answer <- a.Check(t.Context(), name) }()
	balanced(t, a, b)
	t.Logf("taken over after %v, beats of %v", time.Since(killed), beat)
	if err := <-answer; err != nil {
		var elsewhere *cluster.ElsewhereError
		if !errors.As(err, &elsewhere) || elsewhere.Node.Name != "b" {
			t.Errorf("a waited for an owner and answers %v", err)
		}
	}
	c.heal() // what has survived finds out that it was given up
	until(t, "c learns of it", func() bool { return closed(c.Evicted()) })
	if err := c.Check(t.Context(), name); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a node that was given up answers %v", err)
	}
	if c.Reason() == "" {
		t.Error("nobody says why")
	}
	if err := c.Leave(t.Context()); !errors.Is(err, cluster.ErrGiven) {
		t.Errorf("a node that was given up leaves with %v", err)
	}
	again := g.join("c")
	balanced(t, a, b, again)
}

func TestANodeThatIsCutOffActsOnNothingBeforeOthersDo(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a, b, c := g.join("a"), g.join("b"), g.join("c")
	balanced(t, a, b, c)
	name, others := owned(t, c), owned(t, a)
	var both atomic.Bool
	watch := func(p *peer) {
		p.Handle(cluster.Handler{Gained: func(shards []int) {
			if slices.Contains(shards, cluster.Shard(name)) && c.Owns(name) {
				both.Store(true)
			}
		}})
	}
	watch(a)
	watch(b)
	c.stall()
	stopped := time.Now()
	balanced(t, a, b)
	t.Logf("taken over after %v, beats of %v", time.Since(stopped), beat)
	if both.Load() {
		t.Error("two nodes acted on the same shards")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*beat)
	defer cancel()
	if err := c.Check(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a node that is cut off answers %v about what it ran", err)
	}
	if c.Serving() == nil {
		t.Error("a node that is cut off from the database says that it serves")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 2*beat)
	defer cancel()
	if err := c.Check(ctx, others); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a node that is cut off answers %v about what others ran before", err)
	}
	request, leave := context.WithCancel(t.Context())
	request, _ = cluster.WithSlot(request)
	leave()
	if err := c.Check(context.WithoutCancel(request), others); !errors.Is(err, cluster.ErrLeft) {
		t.Errorf("a node that is cut off answers %v to somebody who has left", err)
	}
	c.heal()
	until(t, "c learns of it", func() bool { return closed(c.Evicted()) })
	conn, err := pgx.Connect(t.Context(), c.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := cluster.Admit(t.Context(), conn, c.Self().ID); !errors.Is(err, cluster.ErrGiven) {
		t.Errorf("a connection of a node that was given up: %v", err)
	}
	if err := cluster.Admit(t.Context(), conn, a.Self().ID); err != nil {
		t.Errorf("a connection of a node that is there: %v", err)
	}
}

func TestNobodyIsGivenUpForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	for _, away := range []string{"restarted", "stalled"} {
		t.Run(away, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			peers := []*peer{g.join("a"), g.join("b"), g.join("c")}
			balanced(t, peers...)
			names := make([]string, len(peers))
			for i, p := range peers {
				names[i] = owned(t, p)
				if away == "restarted" {
					p.kill()
				} else {
					p.stall()
				}
			}
			for i, p := range peers {
				until(t, "the nodes act on nothing", func() bool { return !p.Owns(names[i]) })
			}
			time.Sleep(10 * beat) // longer than a node is waited for
			for i, p := range peers {
				p.heal()
				if i == 0 {
					time.Sleep(3 * beat) // the others need longer to find it again
				}
			}
			for i, p := range peers {
				if err := p.Check(t.Context(), names[i]); err != nil {
					t.Errorf("%s answers %v once the database is back", p.Self().Name, err)
				}
				if closed(p.Evicted()) {
					t.Errorf("%s was given up: %s", p.Self().Name, p.Reason())
				}
				until(t, "the node learns again what it runs", func() bool { return p.again.Load() > 0 })
				if n := p.lost.Load(); n > 2*cluster.Shards {
					t.Errorf("%s lost %d shards", p.Self().Name, n)
				}
			}
			balanced(t, peers...)
		})
	}
}

func TestAnswersWithoutAnOwnerAreUnavailable(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	config := g.config("a", g.dsn.String())
	config.Wait = beat
	m, err := g.tryJoin(config) // it takes no shards yet
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var busy *api.BusyError
	if err := m.Check(t.Context(), "job/a"); !errors.As(err, &busy) || busy.RetryAfter < time.Second {
		t.Errorf("without an owner: %v", err)
	}
	if m.Owns("job/a") {
		t.Error("it runs what it was not given")
	}
	m.Handle(cluster.Handler{})
	until(t, "it runs everything", func() bool { return m.Owns("job/a") })
}

// A node holds a lock that the others need, in a transaction of any of its connections, and is stopped.
func TestLocksOfAStoppedNodeAreFreed(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.exec("CREATE TABLE journal_head (position bigint)", "INSERT INTO journal_head VALUES (0)")
	a, b := g.join("a"), g.join("b")
	balanced(t, a, b)
	tx, err := b.writer(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM journal_head FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	b.stall()
	balanced(t, a)
	b.heal()
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the transaction of a node that was given up was committed")
	}
}

func (g *group) exec(statements ...string) {
	g.t.Helper()
	for _, s := range statements {
		if _, err := g.db.Exec(g.t.Context(), s); err != nil {
			g.t.Fatal(err)
		}
	}
}

// writer is a connection as the node's packages have them.
func (p *peer) writer(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := p.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), beat)
		defer cancel()
		conn.Close(ctx)
	})
	return conn
}

func (p *peer) dial(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = cluster.Application(p.Self().ID)
	return pgx.ConnectConfig(ctx, config)
}

func TestANodeWithoutAnAddressIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	between := newProxy(t, g.dsn.Host)
	u := *g.dsn
	u.Host = between.listener.Addr().String()
	join := func(name, address, dsn string) (*cluster.Members, error) {
		config := g.config(name, dsn)
		config.Address = address
		return g.tryJoin(config)
	}
	only, err := join("only", "", u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer only.Close()
	for _, address := range []string{"", "b:1"} {
		if m, err := join("b", address, g.dsn.String()); err == nil {
			m.Close()
			t.Error("a node without an address is joined by another one")
		} else if !strings.Contains(err.Error(), "node only runs on this database and has no node_listen") {
			t.Errorf("joining one without an address: %v", err)
		}
	}
	between.kill()
	g.ended(only)
	next, err := join("only", "only:1", g.dsn.String()) // the next process of the same node
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if m, err := join("b", "", g.dsn.String()); err == nil {
		m.Close()
		t.Error("a node without an address joins others")
	} else if !strings.Contains(err.Error(), "other nodes run on this database (only): set node_listen and node_address on b") {
		t.Errorf("joining without an address: %v", err)
	}
}

// A node whose secret is not the others' would refuse their connections and be refused: it does not join.
func TestANodeWithAnotherSecretIsRefused(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	join := func(name string, keys ...string) (*cluster.Members, error) {
		config := g.config(name, g.dsn.String())
		config.Keys = keys
		return g.tryJoin(config)
	}
	must := func(name string, keys ...string) *cluster.Members {
		t.Helper()
		m, err := join(name, keys...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		return m
	}
	leave := func(m *cluster.Members) {
		t.Helper()
		if err := m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a := must("a", "old")
	for _, keys := range [][]string{nil, {"new"}, {"new", "old"}} { // a does not know the last one's own key
		if m, err := join("b", keys...); err == nil {
			m.Close()
			t.Errorf("a node with the keys %q joins one with old", keys)
		} else if !strings.Contains(err.Error(), "the node secret of b is not the one of the nodes on this database (a)") {
			t.Errorf("joining with the keys %q: %v", keys, err)
		}
	}
	// The secret is replaced, one node at a time.
	b := must("b", "old", "new")
	leave(a)
	a = must("a", "old", "new")
	leave(b)
	b = must("b", "new", "old")
	leave(a)
	must("a", "new", "old")
	leave(b)
	b = must("b", "new")
	g.exec("UPDATE cluster_nodes SET keys = '{lost}' WHERE name = 'b'")
	if m, err := join("c", "new"); err == nil {
		m.Close()
		t.Error("one of two was enough")
	}
	b.Close() // it dies, and then does not stand in the way, while a lives
	g.ended(b)
	must("c", "new")
}

func TestTablesOfAnotherFormAreRefused(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a := g.join("a")
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"shards = 512", "shards = 256, format = 2"} {
		g.exec("UPDATE cluster_state SET "+change, "INSERT INTO cluster_version VALUES (99) ON CONFLICT DO NOTHING")
		if m, err := g.tryJoin(g.config("b", g.dsn.String())); err == nil {
			m.Close()
			t.Error("tables with " + change + " were taken")
		} else if !strings.Contains(err.Error(), "use the version that made them") {
			t.Error(err)
		}
	}
	g.exec("UPDATE cluster_state SET shards = 256, format = 1")
	balanced(t, g.join("c")) // a newer version has added to the tables meanwhile
}

// Exclusive work runs once at a time, no matter which node leaves or dies, and runs again.
func TestWhatRunsAloneRunsOnce(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	peers := []*peer{g.join("a"), g.join("b"), g.join("c")}
	var running, starts atomic.Int64
	var at atomic.Pointer[peer]
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	alone := func(p *peer) {
		all.Go(func() {
			cluster.RunExclusive(ctx, p, "task/one", func(ctx context.Context) {
				if running.Add(1) > 1 {
					t.Error("two at once")
				}
				starts.Add(1)
				at.Store(p)
				<-ctx.Done()
				at.CompareAndSwap(p, nil)
				running.Add(-1)
			})
		})
	}
	for _, p := range peers {
		alone(p)
	}
	balanced(t, peers...)
	for _, fault := range []func(*peer){
		func(p *peer) { p.kill() },
		func(p *peer) {
			if err := p.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		},
		func(p *peer) { p.stall() },
	} {
		var p *peer
		until(t, "it runs", func() bool { p = at.Load(); return p != nil }) // and it may just be moving
		before := starts.Load()
		for i := range peers {
			if peers[i] == p {
				peers[i] = g.join(fmt.Sprintf("%s+", p.Self().Name))
				alone(peers[i])
			}
		}
		fault(p)
		until(t, "it runs elsewhere", func() bool { q := at.Load(); return starts.Load() > before && q != nil && q != p })
	}
}

// A term is the time during which a node runs a shard.
type term struct {
	shard  int
	number int64
}

// A scribe writes what its node runs, as the journal does: under the lock of the head, past the fence.
type scribe struct {
	*peer
	mu      sync.Mutex
	terms   map[int]int64
	drawn   *atomic.Int64
	written *atomic.Int64
}

func (s *scribe) follow() {
	s.Handle(cluster.Handler{
		Gained: func(shards []int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, shard := range shards {
				if _, again := s.terms[shard]; !again { // it goes on after beats were missing: the term is the same
					s.terms[shard] = s.drawn.Add(1)
				}
			}
		},
		Lost: func(_ context.Context, shards []int) {
			s.mu.Lock() // no write is under way then
			defer s.mu.Unlock()
			for _, shard := range shards {
				delete(s.terms, shard)
			}
		},
	})
}

// write writes until ctx ends, whatever it is told: the fence alone holds it back.
func (s *scribe) write(ctx context.Context) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			conn.Close(context.Background())
		}
	}()
	for ctx.Err() == nil {
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = s.dial(ctx); err != nil {
				time.Sleep(beat / 20)
				continue
			}
		}
		s.mu.Lock()
		for shard, number := range s.terms {
			if _, err := conn.Exec(ctx, "SELECT test_write($1, $2, $3)", s.Self().ID, shard, number); err == nil {
				s.written.Add(1)
			}
			break // any
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// Faults come one after the other, drawn from a seed. The shard's new owner is the only one whose writes are taken.
func TestNeverTwoNodesWriteTheSame(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.exec("CREATE TABLE journal_head (position bigint)", "INSERT INTO journal_head VALUES (0)",
		"CREATE TABLE writes (position bigint PRIMARY KEY, shard int, term bigint)",
		`CREATE FUNCTION test_write(me text, at int, number bigint) RETURNS void LANGUAGE plpgsql AS $$
		DECLARE head bigint;
		BEGIN
			SELECT position INTO head FROM journal_head FOR UPDATE;
			IF NOT EXISTS (SELECT FROM cluster_nodes WHERE id = me AND alive) THEN RAISE EXCEPTION 'given up'; END IF;
			UPDATE journal_head SET position = head + 1;
			INSERT INTO writes VALUES (head + 1, at, number);
		END $$`)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	var drawn, written atomic.Int64
	start := func(name string) *scribe {
		s := &scribe{peer: g.join(name), terms: map[int]int64{}, drawn: &drawn, written: &written}
		s.follow()
		writing.Go(func() { s.write(ctx) })
		return s
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	nodes := []*scribe{start("0"), start("1"), start("2")}
	balanced(t, nodes[0].peer, nodes[1].peer, nodes[2].peer)
	for fault := range 4 {
		i := random.IntN(len(nodes))
		switch p := nodes[i]; random.IntN(3) {
		case 0:
			p.kill()
			time.AfterFunc(time.Duration(random.IntN(int(10*beat))), p.heal)
		case 1:
			p.stall()
			time.AfterFunc(time.Duration(random.IntN(int(20*beat))), p.heal)
		case 2:
			if err := p.Leave(ctx); err != nil {
				t.Error(err)
			}
			p.left = true
		}
		left := nodes[i]
		nodes[i] = start(fmt.Sprintf("%d.%d", i, fault))
		until(t, "the nodes that are there run everything", func() bool {
			sum := nodes[0].count() + nodes[1].count() + nodes[2].count()
			if !left.gone() { // it came back before anybody gave it up
				sum += left.count()
			}
			return sum == cluster.Shards
		})
		if !left.gone() {
			left.heal()
			if err := left.Leave(ctx); err != nil && !errors.Is(err, cluster.ErrGiven) {
				t.Error(err)
			}
		}
	}
	for _, n := range nodes {
		before := written.Load()
		until(t, "it is written on", func() bool { return written.Load() > before && !closed(n.Evicted()) })
	}
	cancel()
	for _, n := range nodes {
		n.heal()
	}
	writing.Wait()
	rows, _ := g.db.Query(t.Context(), "SELECT shard, term FROM writes ORDER BY position")
	terms, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (at term, err error) {
		return at, row.Scan(&at.shard, &at.number)
	})
	if err != nil {
		t.Fatal(err)
	}
	last, over := map[int]int64{}, map[term]bool{}
	for _, at := range terms {
		if before := last[at.shard]; before != 0 && before != at.number {
			over[term{at.shard, before}] = true
		}
		if over[at] {
			t.Fatalf("shard %d was written in term %d after another node ran it", at.shard, at.number)
		}
		last[at.shard] = at.number
	}
	if len(terms) < 100 {
		t.Errorf("only %d writes", len(terms))
	}
}

// gone reports whether the node has left or was given up.
func (p *peer) gone() bool {
	return p.left || closed(p.Evicted())
}
