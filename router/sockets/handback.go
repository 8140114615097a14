package sockets

import (
	"net"
	"sync"
	"sync/atomic"
)

// A handback is the listener by which net/http gets connections again after their answers.
type handback struct {
	mu     sync.Mutex
	conns  []net.Conn
	some   chan struct{}
	ended  chan struct{}
	closed atomic.Bool
	sweep  func() // is called when it is closed
}

func newHandback(sweep func()) *handback {
	return &handback{some: make(chan struct{}, 1), ended: make(chan struct{}), sweep: sweep}
}

func (h *handback) add(c net.Conn) {
	h.mu.Lock()
	closed := h.closed.Load()
	if !closed {
		h.conns = append(h.conns, c)
	}
	h.mu.Unlock()
	if closed {
		c.Close()
		return
	}
	select {
	case h.some <- struct{}{}:
	default:
	}
}

func (h *handback) Accept() (net.Conn, error) {
	for {
		h.mu.Lock()
		if n := len(h.conns); n > 0 {
			c := h.conns[0]
			h.conns[0] = nil
			if h.conns = h.conns[1:]; n == 1 {
				h.conns = nil
			}
			h.mu.Unlock()
			return c, nil
		}
		h.mu.Unlock()
		select {
		case <-h.some:
		case <-h.ended:
			return nil, net.ErrClosed
		}
	}
}

func (h *handback) Close() error {
	h.mu.Lock()
	if h.closed.Swap(true) {
		h.mu.Unlock()
		return nil
	}
	conns := h.conns
	h.conns = nil
	h.mu.Unlock()
	close(h.ended)
	for _, c := range conns {
		c.Close()
	}
	h.sweep()
	return nil
}

func (h *handback) Addr() net.Addr { return handbackAddr{} }

type handbackAddr struct{}

func (handbackAddr) Network() string { return "tcp" }
func (handbackAddr) String() string  { return "connections whose streams have ended" }

// A handedBack is a connection that net/http has again. It begins with what was read before, and passes over empty
// lines before the first request, which some clients send behind the body of a POST (RFC 9112, 2.2); net/http passes
// over them if it has read the POST itself.
type handedBack struct {
	*net.TCPConn
	closed func() // as of a conn
	read   []byte // of the next request, before net/http got the connection
	lines  int    // how many bytes of empty lines may still come
}

// Close closes the connection.
func (c *handedBack) Close() error {
	if c.closed != nil {
		defer c.closed()
	}
	return c.TCPConn.Close()
}

// OnClose is called then.
func (c *handedBack) OnClose() func() { return c.closed }

// emptyLines are as many bytes of empty lines as net/http passes over: two line ends.
const emptyLines = 4

func (c *handedBack) Read(b []byte) (int, error) {
	for {
		n, err := c.next(b)
		if n == 0 || err != nil {
			return n, err
		}
		if n = c.skip(b, n); n > 0 {
			return n, nil
		}
	}
}

// skip takes empty lines out of the n bytes that were read, and says how many are left.
func (c *handedBack) skip(b []byte, n int) int {
	if c.lines == 0 {
		return n
	}
	skipped := 0
	for skipped < min(n, c.lines) && (b[skipped] == '\r' || b[skipped] == '\n') {
		skipped++
	}
	if c.lines -= skipped; skipped < n {
		c.lines = 0
	}
	return copy(b, b[skipped:n])
}

func (c *handedBack) next(b []byte) (int, error) {
	if len(c.read) == 0 {
		return c.TCPConn.Read(b)
	}
	n := copy(b, c.read)
	c.read = c.read[n:]
	return n, nil
}
