package catalog

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
)

// A cable carries connections to a server until it is cut.
type cable struct {
	net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
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
			go func() { io.Copy(near, far); near.Close() }()
			go func() { io.Copy(far, near); far.Close() }()
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

func TestCatalogOutlivesItsServersAbsence(t *testing.T) {
	t.Parallel()
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
	defer listener.Close()
	line := &cable{Listener: listener, to: net.JoinHostPort(u.Hostname(), port)}
	go line.serve()
	u.Host = listener.Addr().String()

	c := place{t, u.String()}.open(Options{})
	addProject(t, c, "docs")
	line.set(true)
	for what, err := range map[string]error{
		"adding":  second(c.AddProject(t.Context(), testProject("blog"))),
		"finding": second(c.Project(t.Context(), "blog")),
		"listing": second(c.Projects(t.Context())),
		"asking":  c.Ping(t.Context()),
	} {
		if !errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s without the server: error %v, want one that says to try again later", what, err)
		}
	}
	line.set(false)
	addProject(t, c, "blog")
	must(c.Project(t.Context(), "docs"))(t)
}
