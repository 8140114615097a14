package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"docent/api"
	"docent/persistence/cluster"
)

const secret = "a secret of nodes that is long enough for them"

// town is who runs what, for all nodes of a test.
type town struct {
	mu      sync.Mutex
	nodes   []cluster.Node
	owner   map[string]string
	changed chan struct{}
}

func (c *town) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// own says who runs a name.
func (c *town) own(name, node string) { c.change(func() { c.owner[name] = node }) }

// die takes a node off the list.
func (c *town) die(id string) {
	c.change(func() {
		var left []cluster.Node
		for _, n := range c.nodes {
			if n.ID != id {
				left = append(left, n)
			}
		}
		c.nodes = left
	})
}

type member struct {
	*town
	self cluster.Node
}

func (m *member) Self() cluster.Node { return m.self }

func (m *member) Nodes() []cluster.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]cluster.Node(nil), m.nodes...)
}

func (m *member) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

func (m *member) Check(ctx context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	owner := m.owner[name]
	if owner == m.self.ID {
		return nil
	}
	for _, n := range m.nodes {
		if n.ID == owner {
			err := &cluster.ElsewhereError{Name: name, Node: n}
			cluster.Note(ctx, err)
			return err
		}
	}
	return &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second}
}

// A fixture is one node of a test: its edge and what is behind.
type fixture struct {
	*member
	f     *Forwarder
	edge  *httptest.Server
	inner net.Listener
	serve func(w http.ResponseWriter, req *http.Request) // if the actor is here
}

// build makes nodes; what they serve is by the first part of the path, which is the name of an actor.
func build(t testing.TB, ids ...string) (*town, map[string]*fixture) {
	c := &town{owner: map[string]string{}, changed: make(chan struct{})}
	all := map[string]*fixture{}
	for _, id := range ids {
		all[id] = c.fixture(t, id, secret)
	}
	return c, all
}

func (c *town) fixture(t testing.TB, id string, secrets ...string) *fixture {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{inner: l, member: &member{c, cluster.Node{ID: id, Name: id, Address: l.Addr().String()}}}
	c.change(func() { c.nodes = append(c.nodes, h.self) })
	endpoint, err := NewEndpoint(id, secrets, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h.f = New(Config{Members: h, Endpoint: endpoint, Log: slog.New(slog.DiscardHandler), Wait: time.Minute,
		Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}})
	h.edge = httptest.NewServer(h.f.Handler("edge", http.HandlerFunc(h.handle)))
	h.f.Open()
	served := make(chan error, 1)
	go func() { served <- endpoint.Serve(l) }()
	t.Cleanup(func() {
		h.f.Close()
		endpoint.Close()
		h.edge.CloseClientConnections()
		h.edge.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return h
}

// handle is an edge that asks the actor which the path names, and fails as any edge does.
func (h *fixture) handle(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Request-Id", req.Header.Get("X-Request-Id")+"+"+h.self.ID)
	w.Header().Set("X-Tried", h.self.ID)
	name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if err := h.Check(req.Context(), name); err != nil {
		http.Error(w, "this must not be seen: "+err.Error(), http.StatusInternalServerError)
		return
	}
	if h.serve != nil {
		req.Body = io.NopCloser(bytes.NewReader(body))
		h.serve(w, req)
		return
	}
	fmt.Fprintf(w, "%s %s %s %s by %s", req.Method, req.URL, req.Host, body, h.self.ID)
}

func get(t testing.TB, h *fixture, path string) (*http.Response, string) {
	t.Helper()
	res, err := http.Get(h.edge.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestARequestIsAnsweredByTheNodeThatRunsItsActor(t *testing.T) {
	c, nodes := build(t, "a", "b", "c")
	c.own("x", "b")
	for _, from := range []string{"a", "b", "c"} {
		req, err := http.NewRequest("POST", nodes[from].edge.URL+"/x/%2F?a=1;b", strings.NewReader("the question"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "docs.example.com"
		req.Header.Set("X-Request-Id", "id")
		req.Header.Set(clientHeader, "10.0.0.1:1") // a client cannot say who it is
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(b); got != "POST /x/%2F?a=1;b docs.example.com the question by b" || res.StatusCode != 200 {
			t.Errorf("from %s: %d %s", from, res.StatusCode, got)
		}
		if tried := res.Header.Values("X-Tried"); len(tried) != 1 || tried[0] != "b" {
			t.Errorf("from %s: headers of %v are left", from, tried)
		}
		if id := res.Header.Get("X-Request-Id"); from != "b" && id != "id+"+from+"+b" {
			t.Errorf("from %s: the request's id is %s", from, id)
		}
	}
}

func TestAForwardedRequestBearsWhoSentIt(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	var seen *http.Request
	nodes["b"].serve = func(_ http.ResponseWriter, req *http.Request) { seen = req }
	req, err := http.NewRequest("GET", nodes["a"].edge.URL+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https",
		"Traceparent": "00-1-2-03", "Cookie": "a=b", schemeHeader: "https", entryHeader: "another"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if !strings.HasPrefix(seen.RemoteAddr, "127.0.0.1:") || seen.RemoteAddr == nodes["b"].self.Address || seen.TLS != nil ||
		cluster.Once(seen.Context()) == "" {
		t.Errorf("from %s, TLS %v", seen.RemoteAddr, seen.TLS)
	}
	for name, want := range map[string]string{"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https",
		"Traceparent": "00-1-2-03", "Cookie": "a=b", schemeHeader: "", entryHeader: "", clientHeader: ""} {
		if got := strings.Join(seen.Header.Values(name), "|"); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAStreamIsPassedOnAsItIsWritten(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	next := make(chan string)
	nodes["b"].serve = func(w http.ResponseWriter, req *http.Request) {
		for text := range next {
			io.WriteString(w, text)
			http.NewResponseController(w).Flush()
		}
	}
	res, err := http.Get(func() string { go func() { next <- "first" }(); return nodes["a"].edge.URL + "/x" }())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 100)
	for _, text := range []string{"", "second", "third"} {
		if text != "" {
			next <- text
		} else {
			text = "first"
		}
		if n, err := res.Body.Read(buf); string(buf[:n]) != text || err != nil {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	close(next)
	if n, err := res.Body.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("the end is %d bytes, %v", n, err)
	}
}

func TestAnAnswerThatBreaksOffDoesNotLookWhole(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	nodes["b"].serve = func(w http.ResponseWriter, req *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		<-req.Context().Done() // a process that was stopped
	}
	res, err := http.Get(nodes["a"].edge.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	half := make([]byte, len("half"))
	if _, err := io.ReadFull(res.Body, half); err != nil {
		t.Fatal(err)
	}
	c.die("b")
	if b, err := io.ReadAll(res.Body); err == nil || len(b) > 0 {
		t.Errorf("after half of it: %q, %v", b, err)
	}
}

func TestARequestThatMayBeRepeatedGoesToTheNextOwner(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"GET":            func(req *http.Request) { req.Method = "GET" },
		"key":            func(req *http.Request) { req.Header.Set("Idempotency-Key", "k") },
		"handler's word": func(req *http.Request) { req.URL.Path = "/x/repeatable" },
		"none of it":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			c, nodes := build(t, "a", "b", "c")
			c.own("x", "b")
			a := nodes["a"]
			handle := a.edge.Config.Handler.(*entry).next
			a.edge.Config.Handler.(*entry).next = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if strings.HasSuffix(req.URL.Path, "repeatable") {
					cluster.Repeatable(req.Context())
				}
				handle.ServeHTTP(w, req)
			})
			var first string // the name of the request, by which c knows it again
			nodes["b"].serve = func(w http.ResponseWriter, req *http.Request) {
				first = cluster.Once(req.Context())
				c.own("x", "c")
				c.die("b")
				<-req.Context().Done()
			}
			nodes["c"].serve = func(w http.ResponseWriter, req *http.Request) {
				if again := cluster.Once(req.Context()); again == "" || again != first {
					t.Errorf("b knew the request as %q, c as %q", first, again)
				}
				nodes["c"].serve = nil
				nodes["c"].handle(w, req)
			}
			req, err := http.NewRequest("POST", a.edge.URL+"/x", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			if change != nil {
				change(req)
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			if change == nil {
				if err == nil {
					res.Body.Close()
					t.Errorf("%d, and whether it took place is not known", res.StatusCode)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil || !strings.HasSuffix(string(b), "body by c") {
				t.Errorf("%d %s %v", res.StatusCode, b, err)
			}
		})
	}
}

// TestWhatANodeSentBeforeItWasGivenUpIsNotDone has a request arrive of a node that the others have given up meanwhile.
func TestWhatANodeSentBeforeItWasGivenUpIsNotDone(t *testing.T) {
	c, nodes := build(t, "a", "b", "c")
	c.own("x", "b")
	c.die("a")
	done := false
	nodes["b"].serve = func(http.ResponseWriter, *http.Request) { done = true }
	f := nodes["a"].f
	res := httptest.NewRecorder()
	req := httptest.NewRequest("POST", "/x", strings.NewReader("body"))
	err := f.send(res, req, &attempt{node: nodes["b"].self, entry: "edge", body: keep(res, req, new(atomic.Int64))})
	if !errors.Is(err, errNotOwner) || done {
		t.Errorf("%v, done: %t", err, done)
	}
	if res, body := get(t, nodes["c"], "/x"); res.StatusCode != http.StatusOK || !done {
		t.Errorf("a node that is there: %d %s", res.StatusCode, body)
	}
}

func TestANodeThatIsNoOwnerAnyMoreHasTheFirstOneLookAgain(t *testing.T) {
	c, nodes := build(t, "a", "b", "c")
	c.own("x", "b")
	b := nodes["b"]
	handle := b.edge.Config.Handler.(*entry).next
	b.edge.Config.Handler.(*entry).next = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c.own("x", "c") // on its way
		handle.ServeHTTP(w, req)
	})
	if res, body := get(t, nodes["a"], "/x"); res.StatusCode != 200 || !strings.HasSuffix(body, "by c") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	c.own("x", "b")
	b.edge.Config.Handler.(*entry).next = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c.own("x", "a")
		handle.ServeHTTP(w, req)
	})
	if res, body := get(t, nodes["a"], "/x"); res.StatusCode != 200 || !strings.HasSuffix(body, "by a") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestWhatNobodyCanAnswerIsRefused(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	nodes["b"].f.Endpoint.server.Close()
	nodes["a"].f.Wait = 100 * time.Millisecond
	asked := time.Now()
	res, _ := get(t, nodes["a"], "/x")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if _, ok := nodes["a"].f.Reach("b"); ok && time.Since(asked) < lostFor { // afterwards it may be back
		t.Error("a node that cannot be reached counts as one that can")
	}
}

func TestOnlyNodesSpeakToTheInternalListener(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	stranger := c.fixture(t, "s", "another secret, which no node of theirs has")
	stranger.f.Wait = 50 * time.Millisecond
	if res, body := get(t, stranger, "/x"); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a stranger is answered: %d %s", res.StatusCode, body)
	}
	_, port, _ := net.SplitHostPort(nodes["b"].self.Address)
	for name, config := range map[string]*tls.Config{
		"without a key": {InsecureSkipVerify: true}, "older TLS": {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
	} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, config)
		if err == nil { // a server of TLS 1.3 looks at the client's key after the client has finished
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASecretIsReplacedWhileNodesHaveTheOldOne(t *testing.T) {
	c, _ := build(t)
	next := "the next secret, which is long enough as well"
	old, both, turned := c.fixture(t, "old", secret), c.fixture(t, "both", secret, next), c.fixture(t, "turned", next, secret)
	for _, pair := range [][2]*fixture{{old, both}, {both, old}, {both, turned}, {turned, both}} {
		c.own("x", pair[1].self.ID)
		if res, body := get(t, pair[0], "/x"); res.StatusCode != 200 {
			t.Errorf("%s to %s: %d %s", pair[0].self.ID, pair[1].self.ID, res.StatusCode, body)
		}
	}
}

func TestABodyThatIsTooLargeToKeepIsServedHere(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "a")
	large := strings.Repeat("x", bodyBytes+1)
	res, err := http.Post(nodes["a"].edge.URL+"/x", "text/plain", strings.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || !strings.Contains(string(b), large) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	c.own("x", "b")
	if res, err = http.Post(nodes["a"].edge.URL+"/x", "text/plain", strings.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d", res.StatusCode)
	}
	if n := nodes["a"].f.held.Load(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
}

// A client announces a body and does not send it: it is answered if nobody reads the body, and holds nothing forever.
func TestABodyThatDoesNotComeHoldsNobodyUp(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	for _, h := range nodes {
		h.f.Patience = 7 * time.Second // longer than the nodes may take to answer when a machine stands still for five
		h.edge.Config.Handler.(*entry).next = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if err := h.Check(req.Context(), "x"); err != nil {
				return
			}
			if req.URL.Path == "/read" {
				io.Copy(io.Discard, req.Body)
			}
			fmt.Fprint(w, "by ", h.self.ID)
		})
	}
	var both sync.WaitGroup
	for _, path := range []string{"/unread", "/read"} {
		conn, err := net.Dial("tcp", nodes["a"].edge.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		both.Go(func() {
			conn.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome", path)
			answer, err := io.ReadAll(conn)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if path == "/unread" && !bytes.Contains(answer, []byte("by b")) {
				t.Errorf("%s: %q", path, answer)
			}
		})
	}
	both.Wait()
	if n := nodes["a"].f.held.Load(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
}

// A reader that was given up still waits for the client: what it gets is the next one's.
func TestWhatAGivenUpReaderGetsIsNotLost(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	req := httptest.NewRequest("POST", "/", server)
	held := new(atomic.Int64)
	k := keep(httptest.NewRecorder(), req, held)
	first, err := k.reader()
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(first)
		given <- err
	}()
	client.Write([]byte("one "))
	second, err := k.reader()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		client.Write([]byte("two "))
		client.Write([]byte("three"))
		client.Close()
	}()
	if b, err := io.ReadAll(second); string(b) != "one two three" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := <-given; !errors.Is(err, errClosed) {
		t.Errorf("the first: %v", err)
	}
	if k.end(); held.Load() != 0 {
		t.Errorf("%d bytes are held", held.Load())
	}
}

// Clients and proxies offer other protocols, which a server may leave unanswered (RFC 9110, 7.8).
func TestAnOfferOfAnotherProtocolIsNotPassedOn(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	nodes["a"].f.Wait = 100 * time.Millisecond
	nodes["b"].serve = func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, req.Header["Connection"], req.Header["Upgrade"], req.Header["Http2-Settings"])
	}
	for _, upgrade := range []string{"h2c", "websocket", "\xff"} {
		req, err := http.NewRequest("GET", nodes["a"].edge.URL+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Connection", "Upgrade, HTTP2-Settings")
		req.Header.Set("Upgrade", upgrade)
		req.Header.Set("HTTP2-Settings", "AAMAAABkAAQAAP__")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || string(b) != "[] [] []" {
			t.Errorf("%q: %d %q %v", upgrade, res.StatusCode, b, err)
		}
	}
}

// A node dies that may have done a request, and the first node becomes the owner: it knows the request by the same name.
func TestARequestThatComesHomeIsTheSame(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	var there, home string
	nodes["b"].serve = func(_ http.ResponseWriter, req *http.Request) {
		there = cluster.Once(req.Context())
		c.own("x", "a")
		c.die("b")
		<-req.Context().Done()
	}
	nodes["a"].serve = func(_ http.ResponseWriter, req *http.Request) { home = cluster.Once(req.Context()) }
	if res, body := get(t, nodes["a"], "/x"); res.StatusCode != http.StatusOK || there == "" || home != there {
		t.Errorf("%d %s: b knew it as %q, a as %q", res.StatusCode, body, there, home)
	}
	if get(t, nodes["a"], "/x"); home != "" {
		t.Errorf("a request that was nowhere else is called %q", home)
	}
}

// A node that breaks a request off is there: what is about that node alone still goes to it.
func TestANodeThatBreaksARequestOffCanBeReached(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	nodes["b"].serve = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	res, err := http.Post(nodes["a"].edge.URL+"/x", "text/plain", strings.NewReader("body"))
	if err == nil {
		res.Body.Close()
		t.Errorf("%d, and whether it took place is not known", res.StatusCode)
	}
	nodes["a"].f.Wait = 50 * time.Millisecond
	res, err = http.Get(nodes["a"].edge.URL + "/x") // again and again
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d", res.StatusCode)
	}
	if _, ok := nodes["a"].f.Reach("b"); !ok {
		t.Error("it counts as one that cannot be reached")
	}
}

// A body that breaks off is its client's: no node is asked for it again.
func TestABodyThatBreaksOffIsNotSentAgain(t *testing.T) {
	c, nodes := build(t, "a", "b")
	c.own("x", "b")
	var asked atomic.Int64
	for _, h := range nodes {
		h.edge.Config.Handler.(*entry).next = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if h.Check(req.Context(), "x") == nil {
				asked.Add(1)
				io.Copy(io.Discard, req.Body)
				panic(http.ErrAbortHandler)
			}
		})
	}
	conn, err := net.Dial("tcp", nodes["a"].edge.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(conn, "PUT /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\nno chunk\r\n")
	if answer, err := io.ReadAll(conn); len(answer) > 0 || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	if _, ok := nodes["a"].f.Reach("b"); !ok || asked.Load() > 1 {
		t.Errorf("asked %d times, can be reached: %t", asked.Load(), ok)
	}
}

// A node that has handed over what it ran may be asked for it until the others know: they look again.
func TestANodeThatHasLeftSendsWhatStillComesBack(t *testing.T) {
	c, nodes := build(t, "a", "b", "c")
	c.own("x", "b")
	b := nodes["b"]
	b.f.Leave()
	b.serve = func(http.ResponseWriter, *http.Request) { t.Error("it is still handled where nothing runs any more") }
	came := make(chan struct{})
	take := b.f.Endpoint.server.Handler
	b.f.Endpoint.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		take.ServeHTTP(w, req)
		select {
		case came <- struct{}{}:
		default:
		}
	})
	go func() {
		<-came
		c.own("x", "c")
	}()
	if res, body := get(t, nodes["a"], "/x"); res.StatusCode != http.StatusOK || !strings.HasSuffix(body, "by c") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestANodeSaysWhoItIsBeforeItTakesRequests(t *testing.T) {
	c, nodes := build(t, "a")
	early, err := NewEndpoint("early", []string{secret}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go early.Serve(l)
	t.Cleanup(early.Close)
	node := cluster.Node{ID: "early", Name: "early", Address: l.Addr().String()}
	for _, to := range []cluster.Node{node, nodes["a"].self} {
		if id, err := nodes["a"].f.Endpoint.Probe(t.Context(), to); id != to.ID || err != nil {
			t.Errorf("%s says that it is %q, %v", to.Name, id, err)
		}
	}
	stranger, err := NewEndpoint("stranger", []string{"another " + secret}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stranger.Close)
	if id, err := stranger.Probe(t.Context(), node); err == nil {
		t.Errorf("one with another secret learns %q", id)
	}
	// What is sent before it takes requests is another node's.
	c.change(func() { c.nodes = append(c.nodes, node) })
	c.own("early", "early")
	done := make(chan *http.Response, 1)
	go func() {
		res, err := http.Get(nodes["a"].edge.URL + "/early/x")
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	c.own("early", "a")
	if res := <-done; res != nil {
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("the request is answered with %d", res.StatusCode)
		}
	}
}

func TestANodeThatDoesNotAnswerIsToldOfOnceAndWhenItIsGone(t *testing.T) {
	c, nodes := build(t, "a", "b")
	a, b := nodes["a"], nodes["b"]
	var log lines
	a.f.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.own("x", "b")
	b.f.Endpoint.server.Close()
	b.inner.Close()
	again := func() float64 { return testutil.ToFloat64(a.f.metrics.requests.WithLabelValues(outcomeAgain)) }
	ended := make(chan error, 1)
	go func() {
		res, err := http.Get(a.edge.URL + "/x/1")
		if err == nil {
			res.Body.Close()
		}
		ended <- err
	}()
	for again() < 3 { // it is tried again and again
		time.Sleep(time.Millisecond)
	}
	c.own("x", "a")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	c.die("b")
	for !strings.Contains(log.text(), "a node that did not answer is gone") {
		time.Sleep(time.Millisecond)
	}
	if text := log.text(); strings.Count(text, "another node does not respond") != 1 || !strings.Contains(text, "node=b count=") {
		t.Errorf("the log tells of it more than once, or not how often:\n%s", text)
	}
}

// lines are a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
