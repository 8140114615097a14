package sockets

import (
	"bufio"
	"net"
	"sync/atomic"
	"time"
)

// A phase is what a loop has a connection for.
type phase uint8

const (
	streaming phase = iota // also while it is paced or stalled, which is the queue that it stands in
	idle                   // it waits for the next request
	gone                   // it is somebody else's, or closed
)

// What epoll has told of a connection.
const (
	readable = 1 << iota
	writable
	halfClosed // the client sends nothing more: it has gone, or it reads on
	hungUp
)

// A conn is a connection that was taken from net/http. All of it but the atomic fields and next belongs to its loop.
type conn struct {
	tcp    *net.TCPConn
	closed func()  // called when tcp is closed; may be nil
	socket uintptr // tcp's; it is open as long as tcp is, which nobody else closes
	read   []byte  // what net/http had read of the next request
	err    error   // why it cannot be used
	loop   *loop
	closes bool // the client wants the connection closed after the answer

	source    Source
	done      func(Account)
	stop      func() // the source's Watch
	account   Account
	over      bool // the end of the answer is accounted for
	head      []byte
	out       []byte        // what the socket has not taken yet
	ending    string        // how the answer ends when out is written
	lastWrite time.Duration // by the loop's clock
	probed    bool          // something was written since the client sends nothing more

	phase    phase
	found    uint32 // what epoll has told, as far as the loop has seen it
	watched  uint64 // its number in the epoll set; 0 before it is there
	wantRoom bool   // epoll tells of room for writing, too

	ready  atomic.Uint32 // what epoll has told and the loop has not seen
	queued atomic.Bool   // it is in loop.woken
	next   *conn         // there

	list          *list
	before, after *conn         // there
	due           time.Duration // by the loop's clock
	older, newer  *conn         // in loop.conns
}

// newConn is a connection that net/http gave away, with what was read of it behind the request.
func newConn(taken net.Conn, buffered *bufio.Reader) *conn {
	c := new(conn)
	ahead, _ := buffered.Peek(buffered.Buffered())
	tcp, read := underlying(taken)
	c.closed = onClose(taken)
	c.tcp, c.read = tcp, append(append([]byte(nil), ahead...), read...)
	raw, err := tcp.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { c.socket = fd })
	}
	c.err = err
	return c
}

// close closes the connection.
func (c *conn) close() {
	c.tcp.Close()
	if c.closed != nil {
		c.closed()
	}
}

// onClose is called at the connection's end; it may be nil.
func onClose(c net.Conn) func() {
	for {
		switch have := c.(type) {
		case interface{ OnClose() func() }:
			return have.OnClose()
		case interface{ NetConn() net.Conn }:
			c = have.NetConn()
		default:
			return nil
		}
	}
}

// enqueue makes the loop look at the connection. It may be called from anywhere, also with locks held, and does not wait.
func (c *conn) enqueue() {
	if c.queued.Swap(true) {
		return
	}
	l := c.loop
	for {
		top := l.woken.Load()
		c.next = top
		if l.woken.CompareAndSwap(top, c) {
			break
		}
	}
	l.wake()
}

// end accounts for the end of the answer, once. If the source panics, done is called all the same.
func (c *conn) end(how string, err error) {
	if c.over {
		return
	}
	c.over = true
	c.loop.streams.Add(-1)
	c.account.How, c.account.Err = how, err
	defer c.done(c.account)
	if c.stop != nil {
		c.stop()
	}
}

// A list holds connections in the order in which something is due; all of a list have been given the same time.
type list struct{ first, last *conn }

func (l *list) push(c *conn, due time.Duration) {
	c.unlist()
	c.list, c.due, c.before = l, due, l.last
	if l.last == nil {
		l.first = c
	} else {
		l.last.after = c
	}
	l.last = c
}

func (c *conn) unlist() {
	l := c.list
	if l == nil {
		return
	}
	if c.before == nil {
		l.first = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		l.last = c.before
	} else {
		c.after.before = c.before
	}
	c.list, c.before, c.after = nil, nil, nil
}
