package database_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

// A cable carries connections to a server until it is cut. What goes through it stays on the way while it is stalled.
type cable struct {
	net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	stall chan struct{} // closed when it goes on; nil if it is not stalled
	conns []net.Conn
}

// stalling reads what comes out of a cable.
type stalling struct {
	net.Conn
	c *cable
}

func (s stalling) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.c.mu.Lock()
	stall := s.c.stall
	s.c.mu.Unlock()
	if stall != nil {
		<-stall
	}
	return n, err
}

func (c *cable) serve() {
	for {
		near, err := c.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		c.mu.Lock()
		if err != nil || c.cut {
			near.Close()
			if err == nil {
				far.Close()
			}
		} else {
			c.conns = append(c.conns, near, far)
			go func() { io.Copy(near, stalling{far, c}); near.Close() }()
			go func() { io.Copy(far, stalling{near, c}); far.Close() }()
		}
		c.mu.Unlock()
	}
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for _, conn := range c.conns {
			conn.Close()
		}
		c.conns = nil
	}
}

// throughACable makes an empty catalog's DSN whose connections go through a cable.
func throughACable(t *testing.T) (*cable, string) {
	t.Helper()
	u, err := url.Parse(catalogtest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Query().Get("host"), "/") {
		t.Skip("the server is not reached over TCP")
	}
	port := u.Port()
	if port == "" {
		port = "5432"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	line := &cable{Listener: listener, to: net.JoinHostPort(u.Hostname(), port)}
	go line.serve()
	u.Host = listener.Addr().String()
	return line, u.String()
}

func TestCatalogOutlivesItsServersAbsence(t *testing.T) {
	t.Parallel()
	line, dsn := throughACable(t)
	c := catalogtest.Place{T: t, DSN: dsn}.Open(catalog.Options{})
	catalogtest.AddProject(t, c, "docs")
	line.set(true)
	for what, err := range map[string]error{
		"adding":  catalogtest.Second(c.AddProject(t.Context(), catalogtest.Project("blog"))),
		"finding": catalogtest.Second(c.Project(t.Context(), "blog")),
		"listing": catalogtest.Second(c.Projects(t.Context())),
		"asking":  c.Ping(t.Context()),
	} {
		if !errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s without the server: error %v, want one that says to try again later", what, err)
		}
	}
	line.set(false)
	catalogtest.AddProject(t, c, "blog")
	catalogtest.Must(c.Project(t.Context(), "docs"))(t)
}

// TestAServerThatHangsDoesNotHangTheStop has the server say nothing any more, with last uses of keys still to be
// written.
func TestAServerThatHangsDoesNotHangTheStop(t *testing.T) {
	t.Parallel()
	line, dsn := throughACable(t)
	c, err := catalog.Open(t.Context(), dsn, catalog.Options{Log: slog.New(slog.DiscardHandler), CloseWait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.AddProject(t, c, "docs")
	key := catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AssistantKey, Project: "docs"}, [32]byte{1}))(t)
	var several sync.WaitGroup
	for range 8 { // connections that are idle afterwards
		several.Go(func() { c.Read.ExecContext(t.Context(), "SELECT pg_sleep(0.1)") })
	}
	several.Wait()
	c.TouchKey(key.ID, time.Now())
	c.RecordSearch("docs", "reader", "how", 1)
	line.mu.Lock()
	line.stall = make(chan struct{})
	defer close(line.stall)
	line.mu.Unlock()
	began := time.Now()
	_ = c.Close()
	if took := time.Since(began); took > 20*time.Second { // each of the eight would be waited for five seconds
		t.Errorf("closing took %v", took)
	}
}
