package router

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// A watch knows what connections are ready for that no goroutine waits on. It is an epoll set of its own, which the
// runtime's poller waits for as it does for any file; each change is told once.
type watch struct {
	file *os.File
	raw  syscall.RawConn

	mu    sync.Mutex
	flows map[uint64]*flow
	last  uint64
}

const edges = syscall.EPOLLIN | syscall.EPOLLRDHUP | 1<<31 // EPOLLET; the package's constant is negative

func newWatch() (*watch, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	w := &watch{file: os.NewFile(uintptr(fd), "epoll"), flows: make(map[uint64]*flow)}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, err
	}
	return w, nil
}

// run marks flows whose connections have changed, until the watch is closed.
func (w *watch) run() {
	var (
		events [128]syscall.EpollEvent
		flows  [len(events)]*flow
	)
	for {
		n := 0
		err := w.raw.Read(func(fd uintptr) bool {
			var err error
			n, err = eventsNow(fd, events[:])
			return n > 0 || err != nil
		})
		if err != nil {
			return // closed
		}
		w.mu.Lock()
		for i := range n {
			flows[i] = w.flows[key(&events[i])]
		}
		w.mu.Unlock()
		for i, f := range flows[:n] {
			flows[i] = nil
			if f == nil {
				continue // no longer here
			}
			var ready uint32
			if events[i].Events&syscall.EPOLLIN != 0 {
				ready |= readable
			}
			if events[i].Events&syscall.EPOLLOUT != 0 {
				ready |= writable
			}
			if events[i].Events&syscall.EPOLLRDHUP != 0 {
				ready |= halfClosed
			}
			if events[i].Events&(syscall.EPOLLHUP|syscall.EPOLLERR) != 0 {
				ready |= hungUp
			}
			if ready == readable && f.ready.Load()&readable != 0 {
				continue // that is known
			}
			f.ready.Or(ready)
			f.mark()
		}
	}
}

func (w *watch) close() { w.file.Close() }

// control changes what is watched for.
func (w *watch) control(f *flow, operation int, events uint32) error {
	event := syscall.EpollEvent{Events: events, Fd: int32(f.watched), Pad: int32(f.watched >> 32)}
	var failed error
	err := w.raw.Control(func(set uintptr) { failed = syscall.EpollCtl(int(set), operation, int(f.socket), &event) })
	if err = errors.Join(err, failed); err != nil {
		return &fs.PathError{Op: "epoll_ctl", Path: "connection", Err: err}
	}
	return nil
}

func key(e *syscall.EpollEvent) uint64 { return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32 }

// add watches a flow's connection for requests and for its end.
func (w *watch) add(f *flow) error {
	w.mu.Lock()
	w.last++
	f.watched = w.last
	w.flows[f.watched] = f
	w.mu.Unlock()
	return w.control(f, syscall.EPOLL_CTL_ADD, edges)
}

// room watches it for room for writing, too.
func (w *watch) room(f *flow) error {
	return w.control(f, syscall.EPOLL_CTL_MOD, edges|syscall.EPOLLOUT)
}

// remove forgets the flow. Its connection is given back, or closed, by who has it.
func (w *watch) remove(f *flow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.flows, f.watched)
}

// leave ends the watching of a connection that stays open.
func (w *watch) leave(f *flow) error { return w.control(f, syscall.EPOLL_CTL_DEL, 0) }
