package sockets

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A loop writes to many connections from one goroutine.
type loop struct {
	*Pool
	woken   atomic.Pointer[conn] // a stack of connections that there may be something to do for
	asleep  atomic.Bool
	wakeup  chan struct{}
	sweep   atomic.Bool  // all connections are to be looked at
	streams atomic.Int64 // that it was given and that have not ended

	mu     sync.Mutex
	closed bool // nothing more is adopted

	// The goroutine's own.
	conns   *conn         // all, the newest first
	paced   list          // wait until what comes goes together
	stalled list          // their sockets are full
	idle    list          // wait for their next request
	grain   time.Duration // to which ends of pauses are rounded, so that many end together
	epoch   time.Time
	clock   time.Duration // since epoch
	beat    time.Duration // when keep-alives are next looked for
	buffer  []byte
}

const (
	frameHead = 10 // room for the size of a chunk, in hexadecimal digits and a line end
	lastChunk = "0\r\n\r\n"
	keptSize  = 64 << 10 // a larger buffer is not kept
)

func newLoop(p *Pool) *loop {
	return &loop{Pool: p, epoch: time.Now(), wakeup: make(chan struct{}, 1),
		grain: max(1, min(p.options.Pace/5, 10*time.Millisecond))}
}

// wake wakes the loop if it sleeps.
func (l *loop) wake() {
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		select {
		case l.wakeup <- struct{}{}:
		default:
		}
	}
}

// adopt makes the connection the loop's.
func (l *loop) adopt(c *conn) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		c.enqueue()
	}
	l.mu.Unlock()
	if closed {
		defer c.close()
		c.end(EndedCut, nil)
	}
}

func (l *loop) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.asleep.Store(true) // so that it is woken for certain
	l.wake()
}

func (l *loop) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *loop) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.clock = time.Since(l.epoch)
		l.work()
		if l.isClosed() {
			l.work() // what was woken until then
			for l.conns != nil {
				l.abandon(l.conns, EndedCut, nil)
			}
			return
		}
		next := time.Hour
		if l.conns != nil {
			next = l.beat - time.Since(l.epoch)
		}
		for _, q := range [...]*list{&l.paced, &l.stalled, &l.idle} {
			if q.first != nil {
				next = min(next, q.first.due-time.Since(l.epoch))
			}
		}
		l.asleep.Store(true)
		if l.woken.Load() != nil || l.sweep.Load() || next <= 0 {
			l.asleep.Store(false)
			continue
		}
		timer.Reset(next)
		select {
		case <-l.wakeup:
			// Appends arrive in bursts: after one yield a single pass takes all of them.
			runtime.Gosched()
		case <-timer.C:
		}
		l.asleep.Store(false)
	}
}

// work looks at what was woken and at what is due.
func (l *loop) work() {
	var first *conn
	for c := l.woken.Swap(nil); c != nil; { // first come, first served
		c, c.next, first = c.next, first, c
	}
	for c := first; c != nil; {
		next := c.next
		c.next = nil
		c.queued.Store(false) // before looking: who wakes it from now on is seen the next time
		l.look(c, false)
		c = next
	}
	for _, q := range [...]*list{&l.paced, &l.stalled, &l.idle} {
		for c := q.first; c != nil && c.due <= l.clock; c = q.first {
			c.unlist()
			l.look(c, true)
		}
	}
	all, quiet := l.sweep.Swap(false), l.options.KeepAlive
	if !all && l.clock < l.beat {
		return
	}
	l.beat = l.clock + max(quiet/16, time.Millisecond)
	for c := l.conns; c != nil; {
		older := c.older
		switch {
		case c.phase == streaming && (all || l.clock-c.lastWrite >= quiet):
			l.look(c, false)
		case c.phase == idle && l.back.closed.Load():
			l.abandon(c, EndedCut, nil)
		}
		c = older
	}
}

// look does what there is to do for a connection. due is that its time in a list is over. A panic ends this
// connection, and not the process with all the others.
func (l *loop) look(c *conn, due bool) {
	defer func() {
		if v := recover(); v != nil {
			l.panicked(v)
			l.abandon(c, EndedBroken, fmt.Errorf("panic: %v", v))
		}
	}()
	switch c.phase {
	case streaming:
		if c.watched == 0 && !l.begin(c) {
			return
		}
		c.found |= c.ready.Swap(0)
		l.stream(c, due)
	case idle:
		c.found |= c.ready.Swap(0)
		switch {
		case c.found&readable != 0:
			l.handBack(c)
		case due, c.found&hungUp != 0:
			l.drop(c)
		}
	}
}

func (l *loop) panicked(v any) {
	l.options.Log.Error("a stream panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
}

// abandon ends an answer and closes its connection, whatever state they are in. It does not panic.
func (l *loop) abandon(c *conn, how string, err error) {
	defer func() {
		if v := recover(); v != nil {
			l.panicked(v)
		}
	}()
	defer l.drop(c)
	if c.phase == streaming {
		c.end(how, err)
	}
}

// begin takes up a connection.
func (l *loop) begin(c *conn) bool {
	if c.older = l.conns; c.older != nil {
		c.older.newer = c
	}
	l.conns = c
	if c.err == nil {
		c.err = l.epoll.add(c)
	}
	if c.err != nil {
		c.end(EndedCut, c.err)
		l.drop(c)
		return false
	}
	c.stop = c.source.Watch(c.enqueue)
	return true
}

// stream writes what there is of an answer.
func (l *loop) stream(c *conn, due bool) {
	if c.found&hungUp != 0 {
		l.lose(c, EndedGone, nil)
		return
	}
	if len(c.out) > 0 && !l.resume(c, due) {
		return
	}
	c.unlist()
	buf, wait := c.source.Append(append(l.buffer[:0], "0000000000"[:frameHead]...))
	got := len(buf) > frameHead
	buf, how := c.source.End(buf)
	// If the client is gone, its system answers what is written with the end of the connection.
	probe := c.found&halfClosed != 0 && !c.probed
	if !got && how == "" && (probe || l.clock-c.lastWrite >= l.options.KeepAlive/2) {
		buf = c.source.KeepAlive(buf)
	}
	c.probed = c.probed || probe
	c.ending = how
	if size := len(buf) - frameHead; size > 0 || how != "" || c.head != nil {
		c.account.Bytes += int64(size)
		b := frame(&buf, how != "" && how != EndedMoved)
		if c.head != nil {
			c.head, b = nil, append(c.head, b...)
		}
		if !l.write(c, b) {
			return
		}
	}
	if l.buffer = buf; cap(buf) > keptSize {
		l.buffer = nil
	}
	switch {
	case len(c.out) > 0:
	case how != "":
		l.finish(c)
	case wait:
		l.paced.push(c, (l.clock + l.options.Pace + l.grain - 1).Truncate(l.grain))
	}
}

// resume goes on with what a full socket did not take. It is true when all of that is written and the answer goes on.
func (l *loop) resume(c *conn, due bool) bool {
	switch {
	case c.found&writable != 0:
		c.found &^= writable
		switch {
		case !l.write(c, c.out):
		case len(c.out) > 0:
			if c.list == nil { // its time is over, and the socket took nothing
				l.lose(c, EndedStalled, nil)
			}
		case c.ending != "":
			l.finish(c)
		default:
			return true
		}
	case due:
		l.lose(c, EndedStalled, nil)
	case l.cut.Load(): // in the middle of a chunk there is nothing to be said
		l.lose(c, EndedCut, nil)
	}
	return false
}

// frame makes a chunk of HTTP of what follows the room for its head, and ends the answer if it is the last.
func frame(buf *[]byte, last bool) []byte {
	b := *buf
	from := frameHead
	if size := len(b) - frameHead; size > 0 {
		b = append(b, "\r\n"...)
		from -= 2
		b[from], b[from+1] = '\r', '\n'
		for ; size > 0; size >>= 4 {
			from--
			b[from] = "0123456789abcdef"[size&15]
		}
	}
	if last {
		b = append(b, lastChunk...)
	}
	*buf = b
	return b[from:]
}

// write writes what the socket takes and keeps the rest. It is false when the answer has ended by that.
func (l *loop) write(c *conn, b []byte) bool {
	c.lastWrite = l.clock
	total := len(b)
	var err error
	for len(b) > 0 && err == nil {
		var n int
		n, err = writeNow(c.socket, b)
		b = b[n:]
	}
	switch {
	case len(b) == 0:
		if c.out != nil {
			c.out = nil
			c.unlist()
		}
		return true
	case !errors.Is(err, syscall.EAGAIN):
		l.lose(c, EndedGone, nil)
		return false
	}
	if c.out == nil {
		b = append(make([]byte, 0, len(b)), b...)
	}
	if c.out == nil || len(b) < total {
		l.stalled.push(c, l.clock+l.options.WriteTimeout) // it is slow, and has not stopped
	}
	c.out = b
	if !c.wantRoom {
		c.wantRoom = true
		if err := l.epoll.room(c); err != nil {
			l.lose(c, EndedCut, err)
			return false
		}
	}
	return true
}

// finish ends an answer that was written whole. The connection stays for the next request.
func (l *loop) finish(c *conn) {
	c.end(c.ending, nil)
	switch {
	case c.ending == EndedMoved:
		l.drop(c)
	case c.closes || l.back.closed.Load():
		l.drop(c)
	case c.found&readable != 0 || len(c.read) > 0:
		l.handBack(c)
	default:
		c.phase = idle
		c.source, c.done, c.stop, c.out = nil, nil, nil, nil
		l.idle.push(c, l.clock+l.idleTime)
	}
}

// handBack lets net/http read the next request.
func (l *loop) handBack(c *conn) {
	l.forget(c)
	if err := l.epoll.remove(c); err != nil {
		c.close()
		return
	}
	l.back.add(&handedBack{TCPConn: c.tcp, closed: c.closed, read: c.read, lines: emptyLines})
}

// lose ends an answer together with its connection.
func (l *loop) lose(c *conn, how string, err error) {
	c.end(how, err)
	l.drop(c)
}

// drop closes the connection. If the client has sent more than was read, an immediate end would take from it what
// it has not read yet; that of one which is closed after its answer need not have been told by now.
func (l *loop) drop(c *conn) {
	if c.phase == gone {
		return
	}
	l.forget(c)
	if c.found&hungUp == 0 && (c.found&readable != 0 || c.closes) && c.tcp.CloseWrite() == nil {
		time.AfterFunc(500*time.Millisecond, func() { c.close() })
		return
	}
	c.close()
}

// forget takes the connection off the loop.
func (l *loop) forget(c *conn) {
	c.phase = gone
	c.unlist()
	l.epoll.forget(c)
	if c.newer == nil {
		if l.conns == c {
			l.conns = c.older
		}
	} else {
		c.newer.older = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	}
	c.newer, c.older = nil, nil
}
