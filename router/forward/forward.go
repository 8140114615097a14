package forward

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
	"docent/internal/background"
	"docent/internal/outage"
	"docent/persistence/cluster"
)

// Headers between nodes. What clients send under these names is taken off.
const (
	clientHeader   = "Docent-Node-Client"    // the other end of the client's connection
	schemeHeader   = "Docent-Node-Scheme"    // that the client came over
	entryHeader    = "Docent-Node-Entry"     // which handler the request was for
	fromHeader     = "Docent-Node-From"      // the id of the node that sends the request
	onceHeader     = "Docent-Node-Once"      // a name of the request, the same at each node that it is sent to
	notOwnerHeader = "Docent-Node-Not-Owner" // in an answer: nothing was done, another node runs it
)

var internalHeaders = []string{clientHeader, schemeHeader, entryHeader, fromHeader, onceHeader, notOwnerHeader}

// Config is what a Forwarder works with. What has a value in its comment gets that if it is zero.
type Config struct {
	Members  Members
	Endpoint *Endpoint
	Log      *slog.Logger
	Refuse   Refuse

	Wait     time.Duration // for a node that can answer; 20 s
	Patience time.Duration // in which a client has to take in something, or send the rest of a body; 30 s
}

// A Forwarder sends requests to other nodes and takes theirs.
type Forwarder struct {
	Config
	proxy   *httputil.ReverseProxy
	entries map[string]*entry
	metrics metrics
	held    atomic.Int64   // bytes of bodies
	left    atomic.Bool    // nothing runs here any more
	silent  outage.Outages // nodes that do not answer, by their ids

	end   context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	open map[*attempt]struct{}
	lost map[string]lostNode // nodes that could not be reached
}

// New makes a Forwarder. Its handlers are made before Open is called.
func New(c Config) *Forwarder {
	c.Wait, c.Patience = cmp.Or(c.Wait, 20*time.Second), cmp.Or(c.Patience, 30*time.Second)
	f := &Forwarder{Config: c, entries: map[string]*entry{}, ended: make(chan struct{}),
		open: map[*attempt]struct{}{}, lost: map[string]lostNode{}}
	f.metrics.init(f)
	quiet := slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug)
	f.proxy = &httputil.ReverseProxy{Rewrite: f.rewrite, Transport: c.Endpoint.client, FlushInterval: -1, ErrorLog: quiet,
		BufferPool: buffers, ModifyResponse: begun, ErrorHandler: failed}
	ctx, cancel := context.WithCancel(context.Background())
	f.end = cancel
	background.Go("router/forward.New", func() { f.watch(ctx) })
	return f
}

// Open takes other nodes' requests.
func (f *Forwarder) Open() {
	var h http.Handler = http.HandlerFunc(f.take)
	f.Endpoint.handler.Store(&h)
}

// Leave says that this node has handed over what it ran: other nodes that do not know it yet are told so, and look again.
func (f *Forwarder) Leave() { f.left.Store(true) }

// Close ends what it does beside requests.
func (f *Forwarder) Close() {
	f.end()
	<-f.ended
}

// Handler puts the forwarding around a handler. Name tells several of them apart, and is the same on all nodes.
func (f *Forwarder) Handler(name string, next http.Handler) http.Handler {
	e := &entry{f, name, next}
	f.entries[name] = e
	return e
}

// take serves a request that another node sends.
func (f *Forwarder) take(w http.ResponseWriter, req *http.Request) {
	e := f.entries[req.Header.Get(entryHeader)]
	if e == nil {
		http.Error(w, "no such handler: the nodes run versions that do not fit together", http.StatusNotImplemented)
		return
	}
	if f.left.Load() {
		notOwner(w)
		return
	}
	if from := req.Header.Get(fromHeader); from != "" && !f.member(from) {
		// What a node sent before it was given up may arrive long after, when its client has sent it again elsewhere.
		notOwner(w)
		return
	}
	req = req.WithContext(cluster.WithOnce(req.Context(), req.Header.Get(onceHeader)))
	req.RemoteAddr, req.TLS = req.Header.Get(clientHeader), nil
	if req.Header.Get(schemeHeader) == "https" {
		req.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	strip(req.Header)
	e.taken(w, req)
}

func strip(h http.Header) {
	for _, name := range internalHeaders {
		delete(h, name)
	}
}

// An entry is one handler with the forwarding around it.
type entry struct {
	f    *Forwarder
	name string
	next http.Handler
}

func (e *entry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	came := time.Now()
	strip(req.Header)
	before := maps.Clone(w.Header())
	body := keep(w, req, &e.f.held)
	defer body.end()
	once := ""
	for range localTries {
		slot, err := e.here(w, req, body)
		if slot == nil && err == nil {
			return
		}
		id := w.Header().Get("X-Request-Id")
		restore(w, before)
		if left, _ := body.left(); left { // it is read on, for another node, and its client may never send it
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(e.f.Patience)) // if it can
		}
		if err == nil {
			if once == "" {
				once = api.NewID("", came) // names sort by when requests came
			}
			if e.there(w, req, body, slot, id, once) {
				return
			}
			// It has come here meanwhile, and another node may have done it before it died.
			req = req.WithContext(cluster.WithOnce(req.Context(), once))
			continue
		}
		e.f.refuse(w, req, err)
		return
	}
	e.f.refuse(w, req, busy())
}

// localTries is how often a request begins here whose actor comes and goes.
const localTries = 8

func busy() error { return &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: 2 * time.Second} }

// restore takes off what a dropped answer left behind.
func restore(w http.ResponseWriter, before http.Header) {
	h := w.Header()
	clear(h)
	maps.Copy(h, before)
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // if it can
	_ = rc.SetWriteDeadline(time.Time{})
}

// here handles the request on this node. It returns a slot if the request belongs elsewhere; then nothing was written.
func (e *entry) here(w http.ResponseWriter, req *http.Request, body *kept) (*cluster.Slot, error) {
	ctx, slot := cluster.WithSlot(req.Context())
	in := req.WithContext(ctx)
	if body != nil {
		r, err := body.reader()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, busy())
		}
		in.Body = r
	}
	a := &answer{ResponseWriter: w, slot: slot, body: body}
	e.next.ServeHTTP(a, in)
	if a.state == written || slot.Elsewhere() == nil {
		return nil, nil
	}
	return slot, nil
}

// taken handles a request that another node sent: it is not sent on.
func (e *entry) taken(w http.ResponseWriter, req *http.Request) {
	before := maps.Clone(w.Header())
	ctx, slot := cluster.WithSlot(req.Context())
	a := &answer{ResponseWriter: w, slot: slot}
	e.next.ServeHTTP(a, req.WithContext(ctx))
	if a.state == written || slot.Elsewhere() == nil {
		return
	}
	restore(w, before)
	notOwner(w)
}

// notOwner makes the node that sent the request look again.
func notOwner(w http.ResponseWriter) {
	w.Header().Set(notOwnerHeader, "1")
	w.WriteHeader(http.StatusMisdirectedRequest)
}

// there forwards the request to another node. It is false if this node has come to run the actor.
func (e *entry) there(w http.ResponseWriter, req *http.Request, body *kept, slot *cluster.Slot, id, once string) bool {
	f, note := e.f, slot.Elsewhere()
	until := time.Now().Add(f.Wait)
	for n := 0; ; n++ {
		a := &attempt{node: note.Node, entry: e.name, id: id, once: once, body: body}
		err := f.send(w, req, a)
		if err == nil {
			f.metrics.count(outcomeAnswered)
			f.answered(note.Node, "another node answers again")
			return true
		}
		if req.Context().Err() != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		if errors.Is(err, errNotKept) {
			f.refuse(w, req, fmt.Errorf("%w: %w", err, busy()))
			return true
		}
		if _, cut := body.left(); cut != nil {
			f.metrics.count(outcomeBroken)
			panic(http.ErrAbortHandler) // the client has not sent all of it
		}
		if !errors.Is(err, errNotOwner) {
			if f.silent.Failed(note.Node.ID) {
				f.Log.Warn("another node does not respond", "request", id, "node", note.Node.Name, "address", note.Node.Address,
					"error", err)
			}
			there := errors.As(err, new(streamError))
			if a.sent.Load() && !slot.Repeats() && !mayRepeat(req) || there && note.Name == "" {
				f.metrics.count(outcomeBroken)
				panic(http.ErrAbortHandler) // whether it took place is not known
			}
			if !there {
				f.unreachable(note.Node)
			}
		}
		if note.Name == "" {
			return false // it is about that node alone; who handles it here finds that it is gone
		}
		f.metrics.count(outcomeAgain)
		note, err = f.again(req.Context(), note, n, until)
		switch {
		case err != nil:
			f.refuse(w, req, err)
			return true
		case note == nil:
			return false
		}
	}
}

// answered logs the end of an outage of a node.
func (f *Forwarder) answered(n cluster.Node, what string) {
	if failures, lasted := f.silent.Worked(n.ID); failures > 0 {
		f.Log.Info(what, "node", n.Name, "count", failures, "seconds", lasted.Seconds())
	}
}

// A streamError ends one request over a connection that goes on: the node is there. Package net/http tells of it by a
// struct with these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string {
	return fmt.Sprintf("the node broke the request off, code %d", e.Code)
}

// again looks for who runs the actor now that a node did not answer, or was not the one. Nil is this node.
func (f *Forwarder) again(ctx context.Context, last *cluster.ElsewhereError, n int, until time.Time) (*cluster.ElsewhereError,
	error) {
	pause := time.NewTimer(min(20*time.Millisecond<<min(n, 6), time.Second))
	defer pause.Stop()
	for waited := false; ; {
		changed := f.Members.Changed()
		err := f.Members.Check(ctx, last.Name)
		var next *cluster.ElsewhereError
		switch {
		case err == nil:
			return nil, nil
		case !errors.As(err, &next):
			return nil, err
		case next.Node.ID != last.Node.ID || waited:
			return next, nil
		case time.Now().After(until):
			return nil, busy()
		}
		select {
		case <-changed:
		case <-pause.C:
			waited = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *Forwarder) refuse(w http.ResponseWriter, req *http.Request, err error) {
	f.metrics.count(outcomeRefused)
	f.Refuse(w, req, err)
}

// mayRepeat reports whether a request that may have taken place may be sent again.
func mayRepeat(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != ""
}

// An attempt is a request on its way to a node.
type attempt struct {
	node   cluster.Node
	entry  string
	id     string // of the request, which its client may have chosen
	once   string // the request's own name
	body   *kept
	ctx    context.Context // ends with the node, too
	cancel context.CancelCauseFunc
	sent   atomic.Bool // the node may have got something
	err    error       // why there is no answer
	cut    error       // why the answer is not whole
}

type attemptKey struct{}

var (
	errNotOwner = errors.New("the node does not run it any more")
	errDead     = errors.New("the node was given up")
)

// send lets a node answer, and copies the answer. An error means that nothing was written; if the answer broke off, so
// does the client's connection.
func (f *Forwarder) send(w http.ResponseWriter, req *http.Request, a *attempt) error {
	body, err := a.body.reader()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	a.ctx, a.cancel = ctx, cancel
	if !f.begin(a) {
		return errDead
	}
	defer f.finish(a)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { a.sent.Store(true) }})
	out := req.WithContext(context.WithValue(ctx, attemptKey{}, a))
	out.Body = body
	if out.Header["Upgrade"] != nil { // which the proxy would pass on, and HTTP/2 refuses
		out.Header = req.Header.Clone()
		out.Header.Del("Upgrade")
	}
	f.proxy.ServeHTTP(&relay{ResponseWriter: w, rc: http.NewResponseController(w), patience: f.Patience}, out)
	if a.cut != nil {
		f.metrics.count(outcomeBroken)
		panic(http.ErrAbortHandler)
	}
	return a.err
}

// rewrite makes the request that another node gets.
func (f *Forwarder) rewrite(p *httputil.ProxyRequest) {
	a := p.In.Context().Value(attemptKey{}).(*attempt)
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.URL.RawQuery = "https", a.node.Address, p.In.URL.RawQuery
	p.Out.Host = p.In.Host
	h := p.Out.Header
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := p.In.Header[name]; values != nil {
			h[name] = values
		}
	}
	h.Del("Expect") // the body is here
	h.Set(clientHeader, p.In.RemoteAddr)
	scheme := "http"
	if p.In.TLS != nil {
		scheme = "https"
	}
	h.Set(schemeHeader, scheme)
	h.Set(entryHeader, a.entry)
	h.Set(fromHeader, f.Members.Self().ID)
	h.Set(onceHeader, a.once)
	if a.id != "" {
		h.Set("X-Request-Id", a.id)
	}
}

// begun looks at the head of an answer.
func begun(res *http.Response) error {
	a := res.Request.Context().Value(attemptKey{}).(*attempt)
	if res.StatusCode == http.StatusMisdirectedRequest && res.Header.Get(notOwnerHeader) != "" {
		return errNotOwner
	}
	if gone := context.Cause(a.ctx); gone != nil {
		return gone
	}
	a.body.free()
	if _, both := res.Body.(io.Writer); !both { // a connection that has become another protocol's stays as it is
		res.Body = &answerBody{res.Body, a}
	}
	return nil
}

func failed(_ http.ResponseWriter, req *http.Request, err error) {
	req.Context().Value(attemptKey{}).(*attempt).err = err
}

// An answerBody notes that an answer broke off.
type answerBody struct {
	io.ReadCloser
	a *attempt
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if gone := context.Cause(b.a.ctx); gone != nil {
		n, err = 0, gone // even if the node still says an end to a connection that is being closed
	}
	if err != nil && err != io.EOF {
		b.a.cut = err
	}
	return n, err
}

// begin counts an attempt; it is false if its node is gone.
func (f *Forwarder) begin(a *attempt) bool {
	f.mu.Lock()
	f.open[a] = struct{}{}
	f.mu.Unlock()
	if !f.member(a.node.ID) {
		f.finish(a)
		return false
	}
	return true
}

func (f *Forwarder) finish(a *attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, a)
}

// member reports whether a node is there.
func (f *Forwarder) member(id string) bool {
	return slices.ContainsFunc(f.Members.Nodes(), func(n cluster.Node) bool { return n.ID == id })
}

func (f *Forwarder) alive() map[string]bool {
	ids := map[string]bool{}
	for _, n := range f.Members.Nodes() {
		ids[n.ID] = true
	}
	return ids
}

// watch breaks off what waits for nodes that are gone: a process that was stopped keeps its connections open.
func (f *Forwarder) watch(ctx context.Context) {
	defer close(f.ended)
	for {
		changed := f.Members.Changed()
		alive := f.alive()
		f.mu.Lock()
		for a := range f.open {
			if !alive[a.node.ID] {
				a.cancel(errDead)
			}
		}
		maps.DeleteFunc(f.lost, func(id string, l lostNode) bool {
			if !alive[id] {
				f.answered(l.Node, "a node that did not answer is gone")
			}
			return !alive[id]
		})
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// lostFor is for how long a node that could not be reached counts as gone, if a request is about that node alone.
const lostFor = 5 * time.Second

// A lostNode is one that could not be reached, last at that time.
type lostNode struct {
	cluster.Node
	at time.Time
}

func (f *Forwarder) unreachable(n cluster.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost[n.ID] = lostNode{n, time.Now()}
}

// Reach finds a node by its id, if it is another one and can be reached.
func (f *Forwarder) Reach(id string) (cluster.Node, bool) {
	nodes := f.Members.Nodes()
	i := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.ID == id })
	if i < 0 || id == f.Members.Self().ID {
		return cluster.Node{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last, lost := f.lost[id]
	return nodes[i], !lost || time.Since(last.at) > lostFor
}

// Describe and Collect show what was forwarded.
func (f *Forwarder) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(f, ch) }

// Collect is the other half of a prometheus.Collector.
func (f *Forwarder) Collect(ch chan<- prometheus.Metric) {
	f.metrics.requests.Collect(ch)
	f.metrics.open.Collect(ch)
}
