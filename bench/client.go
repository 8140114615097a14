package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A client makes requests over HTTP/1.1 connections of its own, one goroutine each and nothing beside it: the client of
// a load test shares the machine with the server more often than not, and what it takes the server does not get.
type client struct {
	address string
	host    string
	tls     *tls.Config // nil for plain connections
	local   bool        // the server is on this machine, which may be reached from all of 127.0.0.0/8
	// block of its addresses: others', and those of the run before, may have ports that are still taken
	first  int64
	opened atomic.Int64

	mu   sync.Mutex
	idle []*connection
}

// A connection serves one request after another.
type connection struct {
	net.Conn
	in *bufio.Reader
	at time.Time // since when it is idle
}

// idleLife is how long an idle connection is used again: shorter than servers keep theirs, since a question that was
// sent into a closed one cannot be sent again; it may have been taken.
const idleLife = 4 * time.Second

func newClient(target string) (*client, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the http or https address of a server", target)
	}
	c := &client{address: u.Host, host: u.Host, first: rand.Int64N(250 * 250)}
	if u.Scheme == "https" {
		c.tls = &tls.Config{ServerName: u.Hostname()}
	}
	if u.Port() == "" {
		c.address = net.JoinHostPort(u.Hostname(), u.Scheme) // the scheme is also the name of its port
	}
	c.local = runtime.GOOS == "linux" && u.Hostname() == "127.0.0.1"
	return c, nil
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		conn.Close()
	}
	c.idle = nil
}

func (c *client) dial(ctx context.Context) (*connection, error) {
	if conn := c.kept(); conn != nil {
		return conn, nil
	}
	dialer := net.Dialer{Timeout: time.Minute, LocalAddr: c.from()}
	conn, err := dialer.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, err
	}
	if c.tls != nil {
		secure := tls.Client(conn, c.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = secure
	}
	return &connection{Conn: conn, in: bufio.NewReaderSize(conn, 2048)}, nil
}

// portsEach is how many connections to a server on the same machine are opened from one address. Linux looks for a free
// port among those of one parity first, and where some 14,000 of them are taken, be it by connections that were closed
// less than a minute ago, it looks at all of them for each connection: a millisecond or two of a processor that the
// server needs.
const portsEach = 1000

// from is the address that the next connection comes from; nil leaves it to the system.
func (c *client) from() net.Addr {
	if !c.local {
		return nil
	}
	block := c.first + (c.opened.Add(1)-1)/portsEach
	return &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+block/250%250), byte(1+block%250))}
}

// kept is the idle connection that was used last, or nil.
func (c *client) kept() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle)
	if n == 0 {
		return nil
	}
	conn := c.idle[n-1]
	c.idle = c.idle[:n-1]
	if time.Since(conn.at) < idleLife {
		return conn
	}
	conn.Close()
	for _, older := range c.idle {
		older.Close()
	}
	c.idle = nil
	return nil
}

// keep takes back a connection whose answer was read to its end.
func (c *client) keep(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.at = time.Now()
	c.idle = append(c.idle, conn)
}

// request is a whole request as it goes over the wire.
func (c *client) request(method, path, key string, body []byte) []byte {
	b := make([]byte, 0, 256+len(body))
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.host...)
	if key != "" {
		b = append(b, "\r\nAuthorization: Bearer "...)
		b = append(b, key...)
	}
	if body != nil {
		b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	b = append(b, "\r\nUser-Agent: docent-bench\r\n\r\n"...)
	return append(b, body...)
}

// do sends a request and returns the head of its response. The connection is the caller's to close or to keep; it
// breaks when ctx ends, until stop is called.
func (c *client) do(ctx context.Context, request []byte) (conn *connection, resp *http.Response, stop func() bool,
	err error) {
	if conn, err = c.dial(ctx); err != nil {
		return nil, nil, nil, err
	}
	opened := conn
	stop = context.AfterFunc(ctx, func() { opened.Close() })
	if _, err = conn.Write(request); err == nil {
		resp, err = http.ReadResponse(conn.in, nil)
	}
	if err != nil {
		stop()
		conn.Close()
		return nil, nil, nil, err
	}
	return conn, resp, stop, nil
}
