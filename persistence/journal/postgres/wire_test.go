package postgres

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/persistence/cluster"
)

// A wire stands between a journal and the database, and loses answers of commits: the database has given them, and so
// has carried out what they answer, when the connection ends.
type wire struct {
	listener net.Listener
	to       string
	lose     atomic.Int64  // answers still to be lost
	lost     chan struct{} // told of each
	refuses  atomic.Bool   // new connections
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	gate     chan struct{} // closed while new connections are let in
	ended    bool
}

func newWire(t *testing.T, dsn string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener, to: u.Host, conns: map[net.Conn]struct{}{}, gate: make(chan struct{}),
		lost: make(chan struct{}, 1024)}
	close(w.gate)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.serve(in) })
		}
	})
	t.Cleanup(func() {
		w.open()
		listener.Close()
		w.mu.Lock()
		w.ended = true
		for c := range w.conns {
			c.Close()
		}
		w.mu.Unlock()
		running.Wait()
	})
	q := u.Query()
	q.Set("default_query_exec_mode", "cache_describe") // each statement is on the wire as text
	u.Host, u.RawQuery = listener.Addr().String(), q.Encode()
	return w, u.String()
}

func (w *wire) serve(in net.Conn) {
	defer in.Close()
	w.mu.Lock()
	gate := w.gate
	w.mu.Unlock()
	<-gate
	if w.refuses.Load() {
		return
	}
	out, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer out.Close()
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return
	}
	w.conns[in], w.conns[out] = struct{}{}, struct{}{}
	w.mu.Unlock()
	var commits atomic.Bool // the connection is the committer's
	var both sync.WaitGroup
	both.Go(func() {
		pass(out, in, func(b []byte) bool {
			if bytes.Contains(b, []byte("journal_commit_1(")) {
				commits.Store(true)
			}
			return true
		})
	})
	both.Go(func() {
		pass(in, out, func(b []byte) bool {
			if !commits.Load() || !bytes.Contains(b, []byte("SELECT 1\x00")) || w.lose.Add(-1) < 0 {
				return true
			}
			w.lost <- struct{}{}
			return false
		})
	})
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, in)
	delete(w.conns, out)
}

// pass passes bytes on for as long as the look at them allows.
func pass(to, from net.Conn, look func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !look(buffer[:n]) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// shut keeps new connections waiting, and open lets them in.
func (w *wire) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = make(chan struct{})
}

func (w *wire) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.gate:
	default:
		close(w.gate)
	}
}

// A base is the database behind journals, as somebody else sees it.
type base struct {
	t    *testing.T
	dsn  string
	conn *pgx.Conn
}

func newBase(t *testing.T, dsn string) *base {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	b := &base{t, dsn, conn}
	t.Cleanup(func() { b.conn.Close(context.Background()) })
	return b
}

func (b *base) number(query string, args ...any) (n int64) {
	b.t.Helper()
	if b.conn.Ping(b.t.Context()) != nil { // the server has crashed meanwhile
		var err error
		if b.conn, err = pgx.Connect(b.t.Context(), b.dsn); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.conn.QueryRow(b.t.Context(), query, args...).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// cluster makes the tables of a cluster.
func (b *base) cluster() {
	b.t.Helper()
	// A beat is how long it waits for the lock of the tables, for which other tests wait as well.
	m, err := cluster.Join(b.t.Context(), cluster.Config{DSN: func() string { return b.dsn }, Name: "first", Address: "first:1",
		Log: quiet, Beat: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := m.Leave(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	m.Close()
}

// node adds a node, which does not beat.
func (b *base) node() (id string) {
	b.t.Helper()
	id = cluster.NewID()
	if _, err := b.conn.Exec(b.t.Context(), "SELECT cluster_join_1($1, $1, $1, 'test', '{test}')", id); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// giveUp evicts a node as other nodes do, and returns where the journal ends then.
func (b *base) giveUp(node string) (head int64) {
	b.t.Helper()
	var done bool
	if err := b.conn.QueryRow(b.t.Context(), "SELECT cluster_dead_1($1, 0, 'a test')", node).Scan(&done); err != nil || !done {
		b.t.Fatal(done, err)
	}
	return b.number("SELECT position FROM journal_head")
}
