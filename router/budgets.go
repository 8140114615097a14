package router

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/budget"
	"docent/router/peer"
	"docent/router/reqbody"
)

// keyShare is what the readers of one key may hold of the streams that are left, in percent: four fifths of all where
// nobody else has one.
const keyShare = 400

// pageShare is the part of the requests that pages of the console have for themselves, and that of the streams that
// standing ones have, so that neither takes a reader's place.
const pageShare, standingShare = 10, 10

// minBodies are requests whose bodies may be awaited at once, however few may be worked on.
const minBodies = 256

// newBudgets is how much there is of everything.
func newBudgets(percent int, b Bounds) *budget.Table {
	return budget.New(percent, map[budget.Kind]budget.Pool{
		budget.Connections: {Max: b.Requests + b.Streams, Soft: true, Least: 4 * budget.Least},
		budget.Bodies:      {Max: max(b.Requests, minBodies)},
		budget.BodyMemory:  {Max: int(b.BodyMemory), Least: int(2*b.BodyBytes) + 2},
		budget.Requests:    {Max: b.Requests},
		budget.Pages:       {Max: max(b.Requests/pageShare, budget.Least)},
		budget.Streams:     {Max: b.Streams},
		budget.Standing:    {Max: max(b.Streams/standingShare, budget.Least)},
	})
}

// unlimited is whether the budgets of clients do not hold an address: many people may stand behind it.
func (s *Server) unlimited(addr netip.Addr) bool {
	return !addr.IsValid() || peer.In(s.Unlimited, addr) || peer.In(s.TrustedProxies, addr)
}

// account is what an address holds; nil if nothing bounds that. The caller calls its Done.
func (s *Server) account(addr netip.Addr) *budget.Account {
	if s.unlimited(addr) {
		return nil
	}
	return s.budgets.Client(addr)
}

// A budgetError refuses a request for what is taken already.
type budgetError struct {
	kind budget.Kind
	who  string // "client" or "key" where it is theirs that is used up; empty if nothing is left for anybody
}

// name is the budget's name in metrics.
func (e *budgetError) name() string {
	if e.who == "" {
		return e.kind.String()
	}
	return e.who + "_" + e.kind.String()
}

// limit is the same as the field limit of an error has it.
func (e *budgetError) limit() string { return strings.ReplaceAll(e.name(), "_", "-") }

func (e *budgetError) Error() string {
	if e.who == "" {
		return "the service is busy: it has as many " + budgetWords[e.kind] + " as it takes; try again shortly"
	}
	owner := "from your network"
	if e.who == "key" {
		owner = "with this site's key"
	}
	return "there are too many " + budgetWords[e.kind] + " " + owner + " at once; " +
		"wait until some have ended, then try again"
}

var budgetWords = map[budget.Kind]string{
	budget.Connections: "connections", budget.Bodies: "requests whose body has not arrived",
	budget.BodyMemory: "bytes of request bodies", budget.Requests: "requests", budget.Pages: "requests for pages",
	budget.Streams: "open streams", budget.Standing: "standing streams", budget.Sessions: "MCP sessions",
}

func (e *budgetError) Unwrap() error {
	if e.who == "" {
		return api.ErrOverloaded
	}
	return api.ErrLimited
}

// answer is the error as the caller reads it.
func (e *budgetError) answer(h http.Header) answer {
	h.Set("Retry-After", seconds(budgetRetry))
	a := answer{status: http.StatusServiceUnavailable, code: "overloaded", message: e.Error(), limit: e.limit()}
	if e.who != "" {
		a.status, a.code = http.StatusTooManyRequests, "rate_limited"
	}
	return a
}

// budgetRetry is after which time somebody may come back who was refused for a budget.
const budgetRetry = time.Second

// judge is the error of a verdict.
func (s *Server) judge(k budget.Kind, v budget.Verdict, who string) error {
	if v == budget.Taken {
		return nil
	}
	if v == budget.Full {
		who = ""
	}
	err := &budgetError{k, who}
	s.metrics.refuse(err.name())
	return err
}

// take takes n of a kind for the client.
func (x *exchange) take(k budget.Kind, n int64) error {
	return x.server.judge(k, x.server.budgets.Take(k, n, x.holds), "client")
}

// Hold takes memory for a body that is being read, Free gives it back.
func (x *exchange) Hold(n int64) error { return x.take(budget.BodyMemory, n) }

// Free gives back memory of a body.
func (x *exchange) Free(n int64) { x.server.budgets.Give(budget.BodyMemory, n, x.holds) }

// admit takes a place among the requests that are worked on at once. One with a body gets it when that has arrived:
// until then it counts among those that are awaited.
func (s *Server) admit(x *exchange, req *http.Request) error {
	if req.URL.RawQuery != "" {
		if _, err := url.ParseQuery(req.URL.RawQuery); err != nil { // what cannot be read would be passed over
			return &api.InvalidError{Problems: []api.Problem{{Field: "query", Message: "is not well formed: " + err.Error()}}}
		}
	}
	x.holds = s.account(x.client)
	x.work = budget.Requests
	if x.page {
		x.work = budget.Pages
	}
	x.place = x.work
	if req.ContentLength != 0 {
		x.place = budget.Bodies
	}
	err := x.take(x.place, 1)
	x.placed = err == nil
	return err
}

// arrived gives a request its place whose body is there.
func (x *exchange) arrived() error {
	if !x.placed || x.place != budget.Bodies {
		return nil
	}
	if err := x.take(x.work, 1); err != nil {
		return err
	}
	x.server.budgets.Give(budget.Bodies, 1, x.holds)
	x.place = x.work
	return nil
}

// release gives the place back: at the end, or when a stream begins, which is counted for itself.
func (s *Server) release(x *exchange) {
	if x.placed {
		x.placed = false
		s.budgets.Give(x.place, 1, x.holds)
	}
}

// finish gives back all that a request holds.
func (s *Server) finish(x *exchange) {
	s.release(x)
	if x.free != nil {
		x.free()
		x.free = nil
	}
	x.holds.Done()
	x.holds = nil
}

// whole reads a body before its request gets its place: a client that is slow to send one keeps nobody out.
func (s *Server) whole(x *exchange, req *http.Request, limit int64) error {
	if req.ContentLength == 0 || x.place != budget.Bodies {
		return nil
	}
	raw, free, err := reqbody.Bytes(x.ResponseWriter, req, limit, x)
	if err != nil {
		return err
	}
	x.free = free
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return x.arrived()
}

// open counts one more open stream for the client and its key, or refuses it. Streams of a kind of their own take no
// place of readers'.
func (s *Server) open(x *exchange, k budget.Kind) (done func(), err error) {
	client, key := x.holds, (*budget.Account)(nil)
	if client != nil && x.key.ID != "" {
		key = s.budgets.Key(string(x.key.ID), keyShare)
	}
	if ofServer(x.key) {
		client = nil // many readers stand behind one address
	}
	v, who := s.budgets.Take(k, 1, client, key), "client"
	if v == budget.Used && s.budgets.Take(k, 1, client) == budget.Taken {
		s.budgets.Give(k, 1, client)
		who = "key"
	}
	if err := s.judge(k, v, who); err != nil {
		key.Done()
		return nil, err
	}
	client.Keep()
	return func() {
		s.budgets.Give(k, 1, client, key)
		client.Done()
		key.Done()
		select {
		case s.ended <- struct{}{}:
		default: // Settle looks at the count, one hint is enough
		}
	}, nil
}

// openStreams is how many streams are open.
func (s *Server) openStreams() int64 {
	return s.budgets.Open(budget.Streams) + s.budgets.Open(budget.Standing)
}

// ofServer is whether a key is a server's own, which asks for many readers: a server key, or one that is limited to
// addresses, which is of no use to those who find it in a page.
func ofServer(k api.Key) bool { return k.Kind == api.ServerKey || len(k.AllowIP) > 0 }

// A countedListener counts the connections of each client, and closes those that are too many.
type countedListener struct {
	net.Listener
	server *Server
	plain  bool // a refusal can be said in words
}

func (l *countedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s := l.server
		account := s.account(peer.Address(c.RemoteAddr().String()))
		if err := s.judge(budget.Connections, s.budgets.Take(budget.Connections, 1, account), "client"); err != nil {
			account.Done()
			if l.plain {
				l.refuse(c, err)
			}
			c.Close()
			continue
		}
		closed := sync.OnceFunc(func() {
			s.budgets.Give(budget.Connections, 1, account)
			account.Done()
		})
		if tcp, ok := c.(*net.TCPConn); ok {
			return &countedTCP{tcp, closed}, nil
		}
		return &countedConn{c, closed}, nil
	}
}

// refuse says why a connection is closed. It does not wait for the client: what a new connection takes fits into its
// buffer.
func (l *countedListener) refuse(c net.Conn, err error) {
	h := http.Header{}
	a := read(err, h)
	a.retry = h.Get("Retry-After")
	c.SetWriteDeadline(time.Now().Add(time.Second))
	c.Write(l.server.outsideAnswer(a, c.RemoteAddr()))
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// A countedTCP is a connection that package sockets may take, which then calls what OnClose gives.
type countedTCP struct {
	*net.TCPConn
	closed func()
}

func (c *countedTCP) Close() error {
	defer c.closed()
	return c.TCPConn.Close()
}

// NetConn is the connection below.
func (c *countedTCP) NetConn() net.Conn { return c.TCPConn }

// OnClose is to be called once the connection below is closed.
func (c *countedTCP) OnClose() func() { return c.closed }

// isForm is whether a body is a page's form, which is small.
func isForm(req *http.Request) bool {
	kind, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded")
}
