package router

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"docent/actors/thread"
	"docent/stream"
)

// The pumps write the streams that last, which are those that wait for a model elsewhere. Once a question is accepted its
// connection is taken from net/http, with its buffers and goroutines, and a pump writes the answer from its head on. An open
// stream that waits for its model is then a connection and a small struct; what there is to write on many streams is written
// by few goroutines, each of which finds work for many streams whenever it is woken.
//
// A pump waits for nobody: it writes what a socket takes at once. A stream whose socket is full keeps what was encoded for it,
// and is looked at again when the socket has room. After its end the connection waits, still without a goroutine, for
// its next request, with which it is given back to the http.Server.
//
// Streams over TLS and HTTP/2, and those of a server that was not attached, stay with their handlers.
type pumps struct {
	server   *Server
	all      []*pump
	next     atomic.Uint32
	watch    *watch        // what their connections are ready for; nil where this system has none
	back     *returns      // connections that are given back
	patience time.Duration // how long a connection may wait for its next request
	ended    sync.WaitGroup
	once     sync.Once
	adopting func(*flow) // a test's, before a stream is handed to its pump
}

func newPumps(s *Server) *pumps {
	ps := &pumps{server: s}
	ps.back = newReturns(ps.wake)
	return ps
}

// attachedTo is the key of a request's context that says that a pump may take its connection over.
type attachedTo struct{ *pumps }

// Attach lets streams of the http.Server whose handler is s leave net/http while they last. It is called once, before the
// server serves anything. Shutdown of the http.Server closes connections that wait for their next request, and does not wait
// for streams: Drain does.
func (s *Server) Attach(server *http.Server) {
	attachConns(server)
	ps := s.pumps
	ps.patience = or(or(server.IdleTimeout, server.ReadTimeout), time.Duration(1)<<61) // for ever, almost
	key := attachedTo{ps}
	before := server.ConnContext
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, c)
		}
		switch c.(type) {
		case *net.TCPConn, *conn:
			return context.WithValue(ctx, key, true)
		}
		return ctx
	}
	if err := ps.start(); err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			s.Log.Warn("streams stay with their handlers", "error", err)
		}
		return
	}
	go func() {
		if err := server.Serve(ps.back); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.Log.Error("connections whose streams have ended are no longer served", "error", err)
		}
	}()
}

func (ps *pumps) start() error {
	w, err := newWatch()
	if err != nil {
		return fmt.Errorf("watch connections: %w", err)
	}
	ps.watch = w
	// One for two processors: they write to more sockets in a second than a machine reads from, and each that is woken finds
	// more to do.
	for range (runtime.GOMAXPROCS(0) + 1) / 2 {
		p := newPump(ps)
		ps.all = append(ps.all, p)
		ps.ended.Go(p.run)
	}
	ps.ended.Go(w.run)
	return nil
}

// close ends all streams and connections that the pumps have.
func (ps *pumps) close() {
	ps.once.Do(func() {
		ps.back.Close()
		for _, p := range ps.all {
			p.close()
		}
		if ps.watch != nil {
			ps.watch.close()
		}
	})
	ps.ended.Wait()
}

// wake has all pumps look at all that they have.
func (ps *pumps) wake() {
	for _, p := range ps.all {
		p.swept.Store(false)
		p.ring()
	}
}

// mayTake is whether a request's stream can be taken: its connection is known and plain, it may be answered in chunks, and
// nothing of the request will be left to read.
func (ps *pumps) mayTake(req *http.Request) bool {
	if ps.watch == nil || req.TLS != nil || req.ProtoMajor != 1 || req.ProtoMinor != 1 {
		return false
	}
	if req.Method != http.MethodPost && req.ContentLength != 0 { // the body of a question is read to its end
		return false
	}
	return req.Context().Value(attachedTo{ps}) != nil
}

// take takes the connection of a request that nothing was answered to yet from net/http, and has a pump write the stream. From then on the
// request and its response writer are not to be touched.
func (ps *pumps) take(x *exchange, req *http.Request, turn *thread.Turn, form stream.Form, done func()) bool {
	conn, buffered, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil {
		return false
	}
	s := ps.server
	x.moved, x.status = true, http.StatusOK
	// What the log's line says is kept, and nothing else of the request: strings of its head would hold all of it.
	account := x.account(constant(req.Method))
	account.id = strings.Clone(account.id)
	f := &flow{reading: reading{Server: s, enc: stream.NewEncoder(form).WithKey(turn.Key), m: s.metrics.stream(form), log: turn.Log}, account: account,
		connection: newConnection(conn, buffered.Reader), head: headOf(x.Header(), req.Close), done: done, closes: req.Close}
	f.pump = ps.pick()
	f.pump.streams.Add(1)
	f.m.open.Inc()
	// The pulse and the log may wake the stream from here on, while it is not whole: that counts once the pump has it.
	f.marked.Store(true)
	f.reader = turn.Log.Watch(0, f.mark)
	f.leave = s.pulse.join(f.reader)
	if ps.adopting != nil {
		ps.adopting(f)
	}
	f.pump.adopt(f)
	return true
}

// roundful is how many streams a pump is given before the next one is given any: a round over all of them takes it some 8 ms.
const roundful = 1000

// pick is the pump for another stream: the first that is not full, since each pump that is woken costs as much as several writes;
// where all are, each in turn.
func (ps *pumps) pick() *pump {
	for _, p := range ps.all {
		if p.streams.Load() < roundful {
			return p
		}
	}
	return ps.all[ps.next.Add(1)%uint32(len(ps.all))]
}

// headOf is the head of a response in chunks, as net/http writes it.
func headOf(h http.Header, closes bool) []byte {
	var b bytes.Buffer
	b.Grow(512)
	b.WriteString("HTTP/1.1 200 OK\r\n")
	h.Write(&b) // into memory, which does not fail
	b.WriteString("Date: ")
	b.Write(time.Now().UTC().AppendFormat(b.AvailableBuffer(), http.TimeFormat))
	if closes {
		b.WriteString("\r\nConnection: close")
	}
	b.WriteString("\r\nTransfer-Encoding: chunked\r\n\r\n")
	return b.Bytes()
}

// constant is a method that streams have, as a string of its own.
func constant(m string) string {
	if m == http.MethodPost {
		return http.MethodPost
	}
	return http.MethodGet
}

// A connection is one that was taken from net/http.
type connection struct {
	conn   *net.TCPConn
	socket uintptr // conn's; it is open as long as conn is, which nobody else closes
	read   []byte  // what net/http had read of the next request
	err    error
}

// newConnection takes over a connection, with what net/http has read of it after the request.
func newConnection(c net.Conn, buffered *bufio.Reader) connection {
	read, _ := buffered.Peek(buffered.Buffered())
	taken := connection{read: append([]byte(nil), read...)}
	switch c := c.(type) {
	case *net.TCPConn:
		taken.conn = c
	case *conn:
		taken.conn = c.TCPConn
		taken.read = append(taken.read, c.read...)
	}
	raw, err := taken.conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { taken.socket = fd })
	}
	taken.err = err
	return taken
}

// A phase is what a pump has a connection for.
type phase uint8

const (
	streaming phase = iota
	waiting         // for the next request
	gone            // it is somebody else's, or closed
)

// What a connection is ready for.
const (
	readable = 1 << iota
	writable
	halfClosed // the client sends nothing more: it has gone, or it reads on
	hungUp
)

// A flow is a stream that a pump writes, and later its connection while it waits for the next request. Everything but the
// atomic fields and reader is the pump's goroutine's alone.
type flow struct {
	reading
	connection
	account
	pump   *pump
	done   func()
	closes bool // the client wants the connection closed after the answer

	phase   phase
	found   uint32 // of what the connection was ready for
	watched uint64 // its number in the watch
	room    bool   // the watch tells of room for writing, too
	probed  bool   // something was written since the client sends nothing more
	head    []byte // of the response, until it is written
	out     []byte // what the socket has not taken yet
	ending  string // how the stream ends when out is written
	over    bool   // the stream's end is accounted for

	ready  atomic.Uint32 // what the watch has found
	marked atomic.Bool   // in pump.marked
	under  *flow         // there

	queue          *queue
	prev, next     *flow         // there
	due            time.Duration // by the pump's clock
	later, earlier *flow         // in pump.flows
}

// mark has the pump look at the flow. It may be called from anywhere and waits for nothing. Before the pump has the flow it
// does nothing.
func (f *flow) mark() {
	if !f.marked.Swap(true) {
		f.present()
	}
}

// present puts a marked flow before its pump.
func (f *flow) present() {
	p := f.pump
	for {
		top := p.marked.Load()
		f.under = top
		if p.marked.CompareAndSwap(top, f) {
			break
		}
	}
	p.ring()
}

// A queue holds flows in the order in which something is due; all of a queue have been given the same time.
type queue struct{ first, last *flow }

func (q *queue) push(f *flow, due time.Duration) {
	f.unqueue()
	f.queue, f.due, f.prev = q, due, q.last
	if q.last == nil {
		q.first = f
	} else {
		q.last.next = f
	}
	q.last = f
}

func (f *flow) unqueue() {
	q := f.queue
	if q == nil {
		return
	}
	if f.prev == nil {
		q.first = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		q.last = f.prev
	} else {
		f.next.prev = f.prev
	}
	f.queue, f.prev, f.next = nil, nil, nil
}

// A pump writes to many connections from one goroutine.
type pump struct {
	*pumps
	marked atomic.Pointer[flow] // a stack of flows that there may be something to do for
	asleep atomic.Bool
	bell   chan struct{}
	swept  atomic.Bool // what waits for its next request was told that there will be none

	streams atomic.Int64 // that it was given and that have not ended

	mu     sync.Mutex
	closed bool // nothing more is adopted

	// The goroutine's own.
	flows   *flow         // all
	resting queue         // streams that wait out their pace
	stalled queue         // streams whose sockets are full
	idle    queue         // connections that wait for their next request
	grain   time.Duration // of the rests
	epoch   time.Time
	now     time.Time
	clock   time.Duration // since epoch, like now
	space   *workspace
}

func newPump(ps *pumps) *pump {
	p := &pump{pumps: ps, epoch: time.Now(), bell: make(chan struct{}, 1), space: newWorkspace(), grain: min(ps.server.Bounds.Pace/5, 10*time.Millisecond)}
	p.swept.Store(true)
	return p
}

// ring wakes the pump where it sleeps.
func (p *pump) ring() {
	if p.asleep.Load() && p.asleep.CompareAndSwap(true, false) {
		select {
		case p.bell <- struct{}{}:
		default:
		}
	}
}

// adopt makes the flow the pump's.
func (p *pump) adopt(f *flow) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		f.present()
	}
	p.mu.Unlock()
	if closed {
		defer f.conn.Close()
		f.end("cut")
	}
}

func (p *pump) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.asleep.Store(true) // so that it is rung for certain
	p.ring()
}

func (p *pump) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *pump) tick() {
	p.now = time.Now()
	p.clock = p.now.Sub(p.epoch)
}

func (p *pump) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.tick()
		p.work()
		if p.isClosed() {
			p.work() // what was marked until then
			p.clear()
			return
		}
		next := time.Hour
		for _, q := range [...]*queue{&p.resting, &p.stalled, &p.idle} {
			if q.first != nil {
				next = min(next, q.first.due-time.Since(p.epoch))
			}
		}
		p.asleep.Store(true)
		if p.marked.Load() != nil || !p.swept.Load() || next <= 0 {
			p.asleep.Store(false)
			continue
		}
		timer.Reset(next)
		select {
		case <-p.bell:
			// Those who append come in crowds. Who is about to run goes first, and the pump finds what all of them wrote.
			runtime.Gosched()
		case <-timer.C:
		}
		p.asleep.Store(false)
	}
}

// work looks at what was marked and at what is due.
func (p *pump) work() {
	var list *flow
	for f := p.marked.Swap(nil); f != nil; { // first come, first served
		under := f.under
		f.under, list = list, f
		f = under
	}
	for f := list; f != nil; {
		under := f.under
		f.under = nil
		f.marked.Store(false) // before looking: who marks it from now on is seen the next time
		p.look(f, false)
		f = under
	}
	for _, q := range [...]*queue{&p.resting, &p.stalled, &p.idle} {
		for f := q.first; f != nil && f.due <= p.clock; f = q.first {
			f.unqueue()
			p.look(f, true)
		}
	}
	if !p.swept.Swap(true) || p.back.isClosed() {
		for f := p.idle.first; f != nil; {
			next := f.next
			p.abandon(f, "cut")
			f = next
		}
	}
}

// clear closes what is left.
func (p *pump) clear() {
	for f := p.flows; f != nil; {
		later := f.later
		p.abandon(f, "cut")
		f = later
	}
}

// abandon ends a stream and closes its connection, whatever state they are in. It does not panic.
func (p *pump) abandon(f *flow, how string) {
	defer p.contain(f)
	defer p.drop(f)
	if f.phase == streaming {
		f.end(how)
	}
}

// contain keeps a panic in one stream from ending the process, and all other streams with it. It is deferred.
func (p *pump) contain(f *flow) {
	if v := recover(); v != nil {
		p.server.Log.Error("a stream panicked", "request", f.account.id, "thread", f.thread, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
}

// look does what there is to do for a flow. due is that its time in a queue is over.
func (p *pump) look(f *flow, due bool) {
	whole := false
	defer func() {
		if !whole {
			p.abandon(f, "broken")
		}
	}()
	defer p.contain(f)
	p.serve(f, due)
	whole = true
}

func (p *pump) serve(f *flow, due bool) {
	switch f.phase {
	case gone:
		return
	case streaming:
		if f.watched == 0 && !p.begin(f) {
			return
		}
		f.found |= f.ready.Swap(0)
		p.stream(f, due)
	case waiting:
		f.found |= f.ready.Swap(0)
		switch {
		case f.found&readable != 0:
			p.giveBack(f)
		case due, f.found&hungUp != 0:
			p.drop(f)
		}
	}
}

// begin takes up a flow.
func (p *pump) begin(f *flow) bool {
	if f.later = p.flows; f.later != nil {
		f.later.earlier = f
	}
	p.flows = f
	if f.connection.err == nil {
		f.connection.err = p.watch.add(f)
	}
	if f.connection.err != nil {
		p.server.Log.Error("a stream is cut off", "request", f.account.id, "error", f.connection.err)
		f.end("cut")
		p.drop(f)
		return false
	}
	return true
}

const (
	frameHead = 10 // room for the size of a chunk, in hexadecimal digits and a line end
	lastChunk = "0\r\n\r\n"
)

// stream writes what there is of an answer.
func (p *pump) stream(f *flow, due bool) {
	if f.found&hungUp != 0 {
		f.end("gone")
		p.drop(f)
		return
	}
	if len(f.out) > 0 {
		switch {
		case f.found&writable != 0:
			f.found &^= writable
			if !p.push(f, f.out) {
				return
			}
			if len(f.out) > 0 {
				if f.queue == nil { // its time is over, and it took nothing
					f.end("stalled")
					p.drop(f)
				}
				return
			}
			if f.ending != "" {
				p.finish(f)
				return
			}
		case due:
			f.end("stalled")
			p.drop(f)
			return
		case f.isCut(): // in the middle of a chunk there is nothing to be said
			f.end("cut")
			p.drop(f)
			return
		default:
			return
		}
	}
	f.unqueue()
	space := p.space
	space.bytes = append(space.bytes[:0], "0000000000"[:frameHead]...)
	took, more, _ := f.fill(space)
	how, reason := f.verdict(more)
	switch {
	case reason != "":
		space.bytes = f.enc.Append(space.bytes, stream.Part{Kind: stream.Error, Text: reason})
	case how == "" && took == 0 && (f.quiet() || f.found&halfClosed != 0 && !f.probed):
		// Where the client is no more, its system answers what is written with the end of the connection.
		space.bytes = f.enc.KeepAlive(space.bytes)
	}
	f.probed = f.probed || f.found&halfClosed != 0
	f.ending = how
	if size := len(space.bytes) - frameHead; size > 0 || how != "" || f.head != nil {
		f.reading.bytes += size
		f.account.bytes += int64(size)
		f.flushes++
		b := frame(space, how != "")
		if f.head != nil {
			f.head, b = nil, append(f.head, b...)
		}
		if !p.push(f, b) {
			return
		}
	}
	if cap(space.bytes) > keptSize {
		space.bytes = nil
	}
	switch {
	case len(f.out) > 0:
	case how != "":
		p.finish(f)
	default:
		// What comes soon after goes together: a gap of this length is not seen. The end of the answer does not wait.
		pace := p.server.Bounds.Pace
		paced := f.texts && pace > 0 && (took > 0 || p.now.Sub(f.last) < pace)
		f.reader.Rest(paced)
		if paced {
			p.resting.push(f, (p.clock + pace + p.grain - 1).Truncate(p.grain)) // many end together
		}
	}
}

// frame makes a chunk of HTTP of what follows the room for its head, and ends the answer where it is the last.
func frame(space *workspace, last bool) []byte {
	b := space.bytes
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
	space.bytes = b
	return b[from:]
}

// push writes what the socket takes and keeps the rest. It is false when the reader has gone.
func (p *pump) push(f *flow, b []byte) bool {
	f.last = p.now
	total := len(b)
	var err error
	for len(b) > 0 && err == nil {
		var n int
		n, err = writeNow(f.socket, b)
		b = b[n:]
	}
	if f.last.Sub(f.counted) > time.Second {
		f.count()
	}
	switch {
	case len(b) == 0:
		if f.out != nil {
			f.out = nil
			f.unqueue()
		}
		return true
	case errors.Is(err, syscall.EAGAIN):
		if f.out == nil {
			b = append(make([]byte, 0, len(b)), b...)
		}
		if f.out == nil || len(b) < total {
			p.stalled.push(f, p.clock+p.server.Bounds.WriteTimeout) // it is slow, and has not stopped
		}
		f.out = b
		if !f.room {
			f.room = true
			if err := p.watch.room(f); err != nil {
				p.server.Log.Error("a stream is cut off", "request", f.account.id, "error", err)
				break
			}
		}
		return true
	}
	f.end("gone")
	p.drop(f)
	return false
}

// finish ends a stream whose answer was written whole. The connection stays for the next request.
func (p *pump) finish(f *flow) {
	f.end(f.ending)
	if f.closes || p.back.isClosed() {
		p.drop(f)
		return
	}
	if f.found&readable != 0 || len(f.read) > 0 {
		p.giveBack(f)
		return
	}
	f.phase = waiting
	f.reading, f.done, f.out = reading{}, nil, nil
	p.idle.push(f, p.clock+p.patience)
}

// end accounts for the end of the stream, once: nobody follows the answer any more. Where one of its steps panics, the others are
// done all the same, so that no place stays taken.
func (f *flow) end(how string) {
	if f.over {
		return
	}
	f.over = true
	s := f.Server
	defer f.done()
	defer s.note(context.Background(), f.account)
	f.pump.streams.Add(-1)
	f.m.end(how)
	f.count()
	f.m.open.Dec()
	s.metrics.inFlight.Dec()
	defer f.reader.Close()
	f.leave()
}

// forget takes the flow off the pump.
func (p *pump) forget(f *flow) {
	f.phase = gone
	f.unqueue()
	p.watch.remove(f)
	if f.earlier == nil {
		if p.flows == f {
			p.flows = f.later
		}
	} else {
		f.earlier.later = f.later
	}
	if f.later != nil {
		f.later.earlier = f.earlier
	}
	f.earlier, f.later = nil, nil
}

// giveBack lets net/http read the next request.
func (p *pump) giveBack(f *flow) {
	p.forget(f)
	if err := p.watch.leave(f); err != nil {
		f.conn.Close()
		return
	}
	p.back.give(&conn{TCPConn: f.conn, server: p.server, read: f.read, lines: emptyLines})
}

// drop closes the connection. Where the client has sent more than was read, an immediate end would take from it what it
// has not read yet; of one that is closed after its answer that need not have been told by now.
func (p *pump) drop(f *flow) {
	if f.phase == gone {
		return
	}
	p.forget(f)
	if f.found&hungUp == 0 && (f.found&readable != 0 || f.closes) && f.conn.CloseWrite() == nil {
		time.AfterFunc(500*time.Millisecond, func() { f.conn.Close() })
		return
	}
	f.conn.Close()
}

// returns is the listener that hands out connections whose streams have ended.
type returns struct {
	mu     sync.Mutex
	conns  []net.Conn
	some   chan struct{}
	ended  chan struct{}
	closed atomic.Bool
	wake   func() // when it is closed
}

func newReturns(wake func()) *returns {
	return &returns{some: make(chan struct{}, 1), ended: make(chan struct{}), wake: wake}
}

func (r *returns) give(c net.Conn) {
	r.mu.Lock()
	closed := r.closed.Load()
	if !closed {
		r.conns = append(r.conns, c)
	}
	r.mu.Unlock()
	if closed {
		c.Close()
		return
	}
	select {
	case r.some <- struct{}{}:
	default:
	}
}

func (r *returns) Accept() (net.Conn, error) {
	for {
		r.mu.Lock()
		if n := len(r.conns); n > 0 {
			c := r.conns[0]
			r.conns[0] = nil
			if r.conns = r.conns[1:]; n == 1 {
				r.conns = nil
			}
			r.mu.Unlock()
			return c, nil
		}
		r.mu.Unlock()
		select {
		case <-r.some:
		case <-r.ended:
			return nil, net.ErrClosed
		}
	}
}

func (r *returns) Close() error {
	r.mu.Lock()
	if r.closed.Swap(true) {
		r.mu.Unlock()
		return nil
	}
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	close(r.ended)
	for _, c := range conns {
		c.Close()
	}
	r.wake()
	return nil
}

func (r *returns) isClosed() bool { return r.closed.Load() }

func (r *returns) Addr() net.Addr { return returnsAddr{} }

type returnsAddr struct{}

func (returnsAddr) Network() string { return "tcp" }
func (returnsAddr) String() string  { return "connections whose streams have ended" }
