package sockets

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"docent/internal/background"
)

// A Source is one reader's view of an answer that grows. One goroutine at a time calls its methods; they do not wait.
type Source interface {
	// Append appends to dst what there is of the answer that was not appended before, or about 32 KB of it; if more
	// is left, changed is called. If wait is true, what comes soon is better sent together with what follows it:
	// until the next Append, which comes after the pace, changed is called for the end of the answer alone.
	Append(dst []byte) (out []byte, wait bool)
	// KeepAlive appends something that the reader passes over.
	KeepAlive(dst []byte) []byte
	// End says after an Append how the answer has ended; nothing if it goes on. What the reader has still to be told is
	// appended.
	End(dst []byte) (out []byte, how string)
	// Watch calls changed whenever Append or End may have something to say. changed may be called from anywhere,
	// with any lock held. The first Append comes without it. stop ends that.
	Watch(changed func()) (stop func())
}

// An Account is what there is to tell of an answer at its end.
type Account struct {
	How   string // what Source.End said, or one of the Ended constants
	Bytes int64  // of the answer, as far as it was given to the connection
	Err   error  // what went wrong here
}

// How an answer ended that did not come to its own end.
const (
	EndedGone    = "gone"    // the client has left
	EndedStalled = "stalled" // the client took nothing in for the write timeout
	EndedCut     = "cut"     // the pool was closed or cut
	EndedBroken  = "broken"  // something went wrong here
	// EndedMoved is said by sources: the answer goes on elsewhere. The connection is broken off, so that the client does
	// not take what it has for the whole.
	EndedMoved = "moved"
)

// Options are what a Pool goes by.
type Options struct {
	Pace         time.Duration // between two writes to a connection whose source says that it may wait
	KeepAlive    time.Duration // a connection that was woken, and was not written to for half of this, is written to
	WriteTimeout time.Duration // in which a connection must take in something
	// Listener wraps the listener that hands connections back; it is wrapped as the server's own one is.
	Listener func(net.Listener) net.Listener
	Log      *slog.Logger
}

// A Pool writes answers on connections that were taken from one http.Server.
type Pool struct {
	options  Options
	loops    []*loop
	next     atomic.Uint32
	epoll    *epoll // nil if this system has none, or nothing was attached
	back     *handback
	idleTime time.Duration // for which a connection may wait for its next request
	cut      atomic.Bool
	ended    background.Work
	once     sync.Once
	adopting func(*conn) // a test's: before a connection is handed to its loop
}

// New makes a pool; nothing can be taken until it is attached.
func New(options Options) *Pool {
	p := &Pool{options: options}
	p.back = newHandback(p.sweep)
	return p
}

// takeable is the key of a request's context that says that its connection may be taken.
type takeable struct{ *Pool }

// Attach lets the pool take connections of the http.Server. It is called once, before the server serves anything.
// Shutdown of the http.Server closes connections that wait for their next request, and does not wait for answers.
func (p *Pool) Attach(server *http.Server) {
	p.idleTime = 1 << 61 // forever, almost
	if server.IdleTimeout != 0 {
		p.idleTime = server.IdleTimeout
	} else if server.ReadTimeout != 0 {
		p.idleTime = server.ReadTimeout
	}
	before := server.ConnContext
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, c)
		}
		if tcp, _ := underlying(c); tcp != nil {
			ctx = context.WithValue(ctx, takeable{p}, true)
		}
		return ctx
	}
	if err := p.start(); err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			p.options.Log.Warn("streams are written by their handlers", "error", err)
		}
		return
	}
	var listener net.Listener = p.back
	if p.options.Listener != nil {
		listener = p.options.Listener(listener)
	}
	background.Essential("router/sockets.Attach", func() {
		err := server.Serve(listener)
		if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			p.options.Log.Error("connections whose streams have ended are no longer served", "error", err)
		}
	})
}

func (p *Pool) start() error {
	e, err := newEpoll()
	if err != nil {
		return fmt.Errorf("watch connections: %w", err)
	}
	p.epoll = e
	// One for two processors: they write to more sockets in a second than a machine reads from, and each that is woken
	// finds more to do.
	for range (runtime.GOMAXPROCS(0) + 1) / 2 {
		l := newLoop(p)
		p.loops = append(p.loops, l)
		p.ended.Essential("socket loop", l.run)
	}
	p.ended.Essential("socket poller", e.run)
	return nil
}

// Cut ends all answers: each source is asked for its end.
func (p *Pool) Cut() {
	p.cut.Store(true)
	p.sweep()
}

// Close ends all answers, and closes all connections that the pool has.
func (p *Pool) Close() {
	p.once.Do(func() {
		p.back.Close()
		for _, l := range p.loops {
			l.close()
		}
		if p.epoll != nil {
			p.epoll.close()
		}
	})
	p.ended.Wait()
}

// sweep makes all loops look at all that they have.
func (p *Pool) sweep() {
	for _, l := range p.loops {
		l.sweep.Store(true)
		l.wake()
	}
}

// Take takes the connection of a request from net/http and writes the answer there: status 200, the header that w
// has, and what the source appends, in chunks. The request's body, if there is one, has been read to its end, and
// nothing was answered yet.
//
// If Take is true neither w nor the request is to be touched any more, and done is called once, from anywhere, at
// the end of the answer, which may be before Take has returned. If it is false nothing has happened.
func (p *Pool) Take(w http.ResponseWriter, r *http.Request, source Source, done func(Account)) bool {
	if p.epoll == nil || r.TLS != nil || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Context().Value(takeable{p}) == nil {
		return false
	}
	taken, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	c := newConn(taken, buffered.Reader)
	c.source, c.done, c.closes, c.head = source, done, r.Close, headOf(w.Header(), r.Close)
	c.loop = p.pick()
	c.loop.streams.Add(1)
	if p.adopting != nil {
		p.adopting(c)
	}
	c.loop.adopt(c)
	return true
}

// streamsPerLoop is how many answers a loop is given before the next one is given any: a pass over all of them takes
// some 8 ms.
const streamsPerLoop = 1000

// pick is the loop for another answer: the first that is not full, since each loop that is woken costs as much as
// several writes; if all are full, each in turn.
func (p *Pool) pick() *loop {
	for _, l := range p.loops {
		if l.streams.Load() < streamsPerLoop {
			return l
		}
	}
	return p.loops[p.next.Add(1)%uint32(len(p.loops))]
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

// underlying is the TCP connection that c is, and what was read from it and not yet given to net/http; nil if it
// is another.
func underlying(c net.Conn) (tcp *net.TCPConn, read []byte) {
	for {
		switch have := c.(type) {
		case *net.TCPConn:
			return have, read
		case *handedBack:
			return have.TCPConn, have.read
		case *tls.Conn:
			return nil, nil
		case interface{ NetConn() net.Conn }:
			c = have.NetConn()
		default:
			return nil, nil
		}
	}
}
