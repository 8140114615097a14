package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/cluster"
)

const (
	// beat is long: nobody may be given up while its process, or the database's for it, stands still for five seconds, as
	// on a machine that is busy. A node is given up after three or five beats.
	beat = 2 * time.Second
	// patience is how long a test waits for what the protocol does within a few beats.
	patience = 2 * time.Minute
)

// A proxy stands between one node and the database, and does what networks do.
type proxy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	gate     chan struct{} // closed while bytes pass
	refuses  bool
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, to: to, conns: map[net.Conn]struct{}{}, gate: make(chan struct{})}
	close(p.gate)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(in) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.heal()
		p.kill()
		running.Wait()
	})
	return p
}

func (p *proxy) serve(in net.Conn) {
	defer in.Close()
	p.pass()
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	if p.refuses {
		p.mu.Unlock()
		return
	}
	p.conns[in], p.conns[out] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(out, in) })
	both.Go(func() { p.copy(in, out) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, in)
	delete(p.conns, out)
}

// pass returns when bytes may pass.
func (p *proxy) pass() {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	<-gate
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.pass()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// stall keeps all bytes back, and the news of ends as well.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

// heal lets bytes pass, those that were kept back first.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = false
	select {
	case <-p.gate:
	default:
		close(p.gate)
	}
}

// kill ends all connections and lets no new one in.
func (p *proxy) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = true
	for c := range p.conns {
		c.Close()
	}
}

// A group is several nodes on one database.
type group struct {
	t   *testing.T
	dsn *url.URL
	db  *pgx.Conn
}

func newGroup(t *testing.T) *group {
	t.Helper()
	u, err := url.Parse(catalogtest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	return &group{t: t, dsn: u, db: db}
}

// A peer is one of the nodes, with what it was told.
type peer struct {
	*cluster.Members
	*proxy
	mu     sync.Mutex
	runs   map[int]bool
	gained atomic.Int64
	again  atomic.Int64 // shards that it was told of though it ran them
	lost   atomic.Int64
	left   bool
	dsn    string
}

func (g *group) config(name, dsn string) cluster.Config {
	return cluster.Config{
		DSN: func() string { return dsn }, Name: name, Address: name + ":1", Version: "test", Keys: []string{"one"}, Beat: beat, Wait: patience,
		Log: slog.New(slog.NewTextHandler(g.t.Output(), nil)).With("on", name),
	}
}

// tryJoin tries again when a loaded machine is too slow for a beat.
func (g *group) tryJoin(config cluster.Config) (*cluster.Members, error) {
	for {
		m, err := cluster.Join(g.t.Context(), config)
		if !errors.Is(err, context.DeadlineExceeded) {
			return m, err
		}
	}
}

// ended waits until the database has ended a node's connections: a beat that was on its way when the node died may come
// until then, and a node whose counter moves counts as one that lives.
func (g *group) ended(m *cluster.Members) {
	g.t.Helper()
	until(g.t, "the node's connections have ended", func() bool {
		var left int
		if err := g.db.QueryRow(g.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1",
			cluster.Application(m.Self().ID)).Scan(&left); err != nil {
			g.t.Fatal(err)
		}
		return left == 0
	})
}

func (g *group) join(name string) *peer {
	g.t.Helper()
	return g.joinAs(name, func(*cluster.Config) {})
}

func (g *group) joinAs(name string, as func(*cluster.Config)) *peer {
	g.t.Helper()
	p := &peer{proxy: newProxy(g.t, g.dsn.Host), runs: map[int]bool{}}
	u := *g.dsn
	u.Host = p.listener.Addr().String()
	p.dsn = u.String()
	config := g.config(name, p.dsn)
	as(&config)
	m, err := g.tryJoin(config)
	if err != nil {
		g.t.Fatal(err)
	}
	p.Members = m
	g.t.Cleanup(m.Close)
	m.Handle(cluster.Handler{
		Gained: func(shards []int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, s := range shards {
				if p.runs[s] {
					p.again.Add(1)
					continue
				}
				p.runs[s] = true
				p.gained.Add(1)
			}
		},
		Lost: func(_ context.Context, shards []int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, s := range shards {
				if !p.runs[s] {
					g.t.Errorf("%s lost shard %d, which it was never given", name, s)
				}
				delete(p.runs, s)
			}
			p.lost.Add(int64(len(shards)))
		},
	})
	return p
}

func (p *peer) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs)
}

// until waits for something that the protocol brings about.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !f() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(beat / 20)
	}
}

// balanced waits until these nodes, and no others, run all shards.
func balanced(t *testing.T, peers ...*peer) {
	t.Helper()
	least := cluster.Shards / len(peers)
	until(t, "the shards are balanced", func() bool {
		sum := 0
		for _, p := range peers {
			n := p.count()
			if n < least || n > least+1 {
				return false
			}
			sum += n
		}
		return sum == cluster.Shards
	})
}

// owned is a name that the node runs. A node that has not beaten for a while says that it runs nothing, until its next
// beat.
func owned(t *testing.T, p *peer) (name string) {
	t.Helper()
	until(t, "the node runs something", func() bool {
		for i := range 10_000 {
			if name = "thread/" + string(rune('a'+i%26)) + time.Duration(i).String(); p.Owns(name) {
				return true
			}
		}
		return false
	})
	return name
}

// warned tells of the first warning.
type warned struct {
	slog.Handler
	first chan struct{}
	once  *sync.Once
}

func (w warned) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.once.Do(func() { close(w.first) })
	}
	return w.Handler.Handle(ctx, r)
}

// A node that starts while another makes the tables, or while a VACUUM holds them, waits for that.
func TestANodeJoinsWhoseTablesSomebodyLocks(t *testing.T) {
	for what, lock := range map[string]string{"tables that are made": "SELECT pg_advisory_xact_lock(7234150849)",
		"state that is locked": "LOCK TABLE cluster_state"} {
		t.Run(what, func(t *testing.T) {
			g := newGroup(t)
			if what == "state that is locked" {
				g.join("first").Close() // the tables are there
			}
			tx, err := g.db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), lock); err != nil {
				t.Fatal(err)
			}
			config := g.config("late", g.dsn.String())
			log := warned{config.Log.Handler(), make(chan struct{}), new(sync.Once)}
			config.Log = slog.New(log)
			joined := make(chan error, 1)
			go func() {
				m, err := g.tryJoin(config)
				if err == nil {
					m.Close()
				}
				joined <- err
			}()
			select {
			case <-log.first:
			case err := <-joined:
				t.Fatalf("it joined, or gave up, while the tables were locked: %v", err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-joined; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAServerThatIsAloneRunsEverything(t *testing.T) {
	var alone cluster.Single
	if !alone.Owns("job/a") || alone.Check(t.Context(), "job/a") != nil || alone.Several() || alone.Evicted() != nil {
		t.Error("a server that is alone does not run everything")
	}
	ran := 0
	cluster.RunExclusive(t.Context(), alone, "task/a", func(context.Context) { ran++ })
	ctx, cancel := context.WithCancel(t.Context())
	cluster.RunExclusive(ctx, alone, "task/a", func(run context.Context) {
		ran++
		cancel()
		<-run.Done()
	})
	if ran != 2 {
		t.Errorf("two ran %d times alone", ran)
	}
}

func TestNodesShareTheShardsAndHandThemOver(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a := g.join("a")
	balanced(t, a)
	b, c := g.join("b"), g.join("c")
	balanced(t, a, b, c)
	name := owned(t, b)
	ctx, slot := cluster.WithSlot(t.Context())
	until(t, "a knows that b runs it", func() bool { n, _ := a.Owner(name); return n.Name == "b" })
	var elsewhere *cluster.ElsewhereError
	if err := a.Check(ctx, name); !errors.As(err, &elsewhere) || elsewhere.Node.Address != "b:1" || slot.Elsewhere() != elsewhere {
		t.Fatalf("a answers %v with the note %v", err, slot.Elsewhere())
	}
	if err := b.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.count() != 0 {
		t.Errorf("%d shards were not lost by the node that left", b.count())
	}
	balanced(t, a, c)
	if moved := a.lost.Load() + c.lost.Load(); moved > cluster.Shards {
		t.Errorf("%d shards moved", moved)
	}
	if err := b.Check(t.Context(), name); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a node that left answers %v", err)
	}
}
