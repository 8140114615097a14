package router

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"docent/internal/background"
)

// handshakeTime is how long a client may take to agree on a TLS connection.
const handshakeTime = 10 * time.Second

// TLSListener is Listener for connections over TLS. It hands out what has been agreed on: HTTP/2 as net/http wants to
// have it, HTTP/1.1 so that it is answered as over a plain connection. The config names the protocols.
func (s *Server) TLSListener(l net.Listener, config *tls.Config) net.Listener {
	t := &tlsListener{Listener: &countedListener{Listener: l, server: s}, server: s, config: config, agreed: make(chan net.Conn), failed: make(chan error),
		closed: make(chan struct{}), pending: map[net.Conn]bool{}}
	background.Essential("router.TLSListener", t.run)
	return t
}

// A tlsListener agrees with many clients at once, so that a slow one holds up nobody.
type tlsListener struct {
	net.Listener
	server *Server
	config *tls.Config

	agreed chan net.Conn
	failed chan error // of the listener below
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	pending map[net.Conn]bool // that nothing is agreed on yet; nil when the listener is closed
}

func (l *tlsListener) run() {
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			background.Go("router.run", func() { l.agree(c) })
			continue
		}
		select {
		case l.failed <- err: // net/http waits a moment if the failure is temporary
		case <-l.closed:
			return
		}
	}
}

func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.agreed:
		return c, nil
	case err := <-l.failed:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener below, and the connections that nothing is agreed on.
func (l *tlsListener) Close() error {
	err := l.Listener.Close()
	l.once.Do(func() {
		close(l.closed)
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.pending {
			c.Close()
		}
		l.pending = nil
	})
	return err
}

// begin notes a connection that nothing is agreed on yet, unless the listener is closed.
func (l *tlsListener) begin(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		return false
	}
	l.pending[c] = true
	return true
}

func (l *tlsListener) agree(c net.Conn) {
	if !l.begin(c) {
		c.Close()
		return
	}
	secure := tls.Server(c, l.config)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	err := secure.HandshakeContext(ctx)
	l.mu.Lock()
	delete(l.pending, c)
	l.mu.Unlock()
	if err != nil {
		l.refuse(c, err)
		c.Close()
		return
	}
	ready := net.Conn(secure)
	switch secure.ConnectionState().NegotiatedProtocol {
	case "", "http/1.1":
		ready = &secureConn{conn: conn{Conn: secure, server: l.server}, secure: secure}
	case "h2":
	default: // the certificate authority has seen what it wanted to see
		secure.Close()
		return
	}
	select {
	case l.agreed <- ready:
	case <-l.closed:
		secure.Close()
	}
}

// refuse counts a handshake that failed. A client that speaks plain HTTP gets an error that says so.
func (l *tlsListener) refuse(c net.Conn, err error) {
	l.server.metrics.handshakes.Inc()
	l.server.Log.Debug("no TLS connection came about", "client", c.RemoteAddr().String(), "error", err)
	var record tls.RecordHeaderError
	if !errors.As(err, &record) || record.Conn == nil || !isMethod(record.RecordHeader) {
		return
	}
	b := l.server.outsideAnswer(plainRefused, c.RemoteAddr())
	c.SetWriteDeadline(time.Now().Add(time.Second))
	c.Write(b)
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		// What the client still sends is read, or the connection ends with a reset that takes the answer with it.
		c.SetReadDeadline(time.Now().Add(time.Second))
		rest := make([]byte, 4096)
		for {
			if _, err := c.Read(rest); err != nil {
				return
			}
		}
	}
}

var plainRefused = refusal(http.StatusBadRequest, "invalid_request",
	"this address speaks HTTPS: begin the URL with https://")

// isMethod reports whether a connection begins like a request of plain HTTP.
func isMethod(begin [5]byte) bool {
	switch string(begin[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		return true
	}
	return false
}

// A secureConn is a conn over TLS. That it has a state of TLS is how net/http knows.
type secureConn struct {
	conn
	secure *tls.Conn
}

func (c *secureConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }
