package sockets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// An epoll knows what connections are ready for that no goroutine waits on. It is a set of its own, for which the
// runtime's poller waits as it does for any file; each change is reported once.
type epoll struct {
	file *os.File
	raw  syscall.RawConn

	mu    sync.Mutex
	conns map[uint64]*conn
	last  uint64
}

const edges = syscall.EPOLLIN | syscall.EPOLLRDHUP | 1<<31 // EPOLLET; the package's constant is negative

func newEpoll() (*epoll, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	e := &epoll{file: os.NewFile(uintptr(fd), "epoll"), conns: make(map[uint64]*conn)}
	if e.raw, err = e.file.SyscallConn(); err != nil {
		e.file.Close()
		return nil, err
	}
	return e, nil
}

// run enqueues connections that have changed, until the set is closed.
func (e *epoll) run() {
	var (
		events [128]syscall.EpollEvent
		conns  [len(events)]*conn
	)
	for {
		n := 0
		err := e.raw.Read(func(fd uintptr) bool {
			var err error
			n, err = again(func() (int, error) { return syscall.EpollWait(int(fd), events[:], 0) })
			return n > 0 || err != nil
		})
		if err != nil {
			return // closed
		}
		e.mu.Lock()
		for i := range n {
			conns[i] = e.conns[key(&events[i])]
		}
		e.mu.Unlock()
		for i, c := range conns[:n] {
			conns[i] = nil
			if c == nil {
				continue // no longer here
			}
			ready := readiness(events[i].Events)
			if ready == readable && c.ready.Load()&readable != 0 {
				continue // that is known
			}
			c.ready.Or(ready)
			c.enqueue()
		}
	}
}

// readiness is what epoll tells, in the words of conn.found.
func readiness(events uint32) (ready uint32) {
	for _, r := range [...]struct{ told, means uint32 }{
		{syscall.EPOLLIN, readable}, {syscall.EPOLLOUT, writable}, {syscall.EPOLLRDHUP, halfClosed},
		{syscall.EPOLLHUP | syscall.EPOLLERR, hungUp},
	} {
		if events&r.told != 0 {
			ready |= r.means
		}
	}
	return ready
}

func (e *epoll) close() { e.file.Close() }

// control changes what a connection is watched for.
func (e *epoll) control(c *conn, operation int, events uint32) error {
	event := syscall.EpollEvent{Events: events, Fd: int32(c.watched), Pad: int32(c.watched >> 32)}
	var failed error
	err := e.raw.Control(func(set uintptr) { failed = syscall.EpollCtl(int(set), operation, int(c.socket), &event) })
	if err = errors.Join(err, failed); err != nil {
		return &fs.PathError{Op: "epoll_ctl", Path: "connection", Err: err}
	}
	return nil
}

func key(e *syscall.EpollEvent) uint64 { return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32 }

// add watches a connection for requests and for its end.
func (e *epoll) add(c *conn) error {
	e.mu.Lock()
	e.last++
	c.watched = e.last
	e.conns[c.watched] = c
	e.mu.Unlock()
	return e.control(c, syscall.EPOLL_CTL_ADD, edges)
}

// room watches it for room for writing, too.
func (e *epoll) room(c *conn) error {
	return e.control(c, syscall.EPOLL_CTL_MOD, edges|syscall.EPOLLOUT)
}

// forget stops events of a connection, which is closed or removed then.
func (e *epoll) forget(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c.watched)
}

// remove ends the watching of a connection that stays open.
func (e *epoll) remove(c *conn) error { return e.control(c, syscall.EPOLL_CTL_DEL, 0) }

// writeNow writes what a socket takes. The socket is the runtime's, and so O_NONBLOCK.
func writeNow(socket uintptr, b []byte) (int, error) {
	return again(func() (int, error) { return syscall.Write(int(socket), b) })
}

func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
