package router_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"docent/api"
	"docent/api/stream"
	"docent/router"
	"docent/router/proof"
)

// attacker and reader are the networks of two clients, as a trusted proxy names them.
const attacker, reader = "198.51.100.66", "203.0.113.5"

// overHTTP2 builds a server that speaks TLS, whatever the test's flag says.
func overHTTP2(t *testing.T, options ...func(*router.Deps)) *house {
	before := *over
	*over = "h2"
	defer func() { *over = before }()
	return build(t, options...)
}

// A floodConn is a connection over HTTP/2 that a program writes frames on.
type floodConn struct {
	t      *testing.T
	framer *http2.Framer
	head   bytes.Buffer
	enc    *hpack.Encoder
	next   uint32
	client string
}

func (h *house) flood(client string) *floodConn {
	h.t.Helper()
	config := identity().client.Clone()
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", strings.TrimPrefix(h.url, "https://"), config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	io.WriteString(c, http2.ClientPreface)
	f := &floodConn{t: h.t.(*testing.T), framer: http2.NewFramer(c, c), next: 1, client: client}
	f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.enc = hpack.NewEncoder(&f.head)
	if err := f.framer.WriteSettings(); err != nil {
		h.t.Fatal(err)
	}
	return f
}

// begin sends the head of a request whose body does not come.
func (f *floodConn) begin(path string, fields ...string) {
	f.t.Helper()
	f.head.Reset()
	all := append([]string{":method", "POST", ":scheme", "https", ":authority", "docs", ":path", path,
		"x-forwarded-for", f.client}, fields...)
	for i := 0; i < len(all); i += 2 {
		f.enc.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]})
	}
	block := f.head.Bytes()
	first := block[:min(len(block), 16<<10)]
	if err := f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.next, BlockFragment: first,
		EndHeaders: len(first) == len(block)}); err != nil {
		f.t.Fatal(err)
	}
	for rest := block[len(first):]; len(rest) > 0; {
		part := rest[:min(len(rest), 16<<10)]
		rest = rest[len(part):]
		if err := f.framer.WriteContinuation(f.next, len(rest) == 0, part); err != nil {
			f.t.Fatal(err)
		}
	}
	f.next += 2
}

// answers reads frames and counts statuses until so many streams are answered.
func (f *floodConn) answers(n int) map[string]int {
	got := map[string]int{}
	for n > 0 {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			f.t.Errorf("%d answers are missing: %v", n, err)
			return got
		}
		if h, ok := frame.(*http2.MetaHeadersFrame); ok {
			got[h.PseudoValue("status")]++
			n--
		}
	}
	return got
}

// Eight connections with eight hundred requests whose bodies do not come, if there are two hundred places.
func TestBodiesThatDoNotComeTurnNobodyElseAway(t *testing.T) {
	h := overHTTP2(t, func(d *router.Deps) { d.Bounds.Requests = 200 })
	const conns, streams, held = 8, 100, 16
	var refused sync.WaitGroup
	refusals := make(chan int, conns*streams)
	for range conns {
		f := h.flood(attacker)
		for range streams {
			f.begin(v2, "authorization", "Bearer "+h.assistant, "content-type", "application/json")
		}
		refused.Go(func() {
			for {
				frame, err := f.framer.ReadFrame()
				if err != nil {
					return
				}
				if head, ok := frame.(*http2.MetaHeadersFrame); ok && head.PseudoValue("status") == "429" {
					refusals <- 1
				}
			}
		})
	}
	for range conns*streams - held {
		<-refusals
	}
	began := time.Now()
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader)
	h.json(200, "GET", "/v2/agent/acme/jobs", h.admin, "", "X-Forwarded-For", reader)
	if took := time.Since(began); took > router.DefaultBounds().ReadTimeout/2 {
		t.Errorf("another client waits %v", took)
	}
	h.web.CloseClientConnections()
	refused.Wait()
}

// A body that does not come is cut, and what it held is free.
func TestABodyThatDoesNotComeIsCut(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.ReadTimeout, d.Bounds.Requests = 50*time.Millisecond, 16 })
	if *over == "h2" {
		t.Skip("raw connections speak HTTP/1.1")
	}
	for range 40 {
		c := h.dial()
		fmt.Fprint(c, h.raw("POST", v2, h.assistant, 100))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 400 {
			t.Fatalf("%v, %v", res, err)
		}
		c.Close()
	}
	h.text(200, "POST", v2, h.assistant, ask)
}

// Clients of MCP listen for what the server says by itself, for as long as they like.
func TestStandingStreamsTakeNoReadersPlace(t *testing.T) {
	s := tools{make(chan string, 64)}
	h := build(t, func(d *router.Deps) { d.Tools, d.Bounds.Streams = s, 40 })
	listen := func(client string) (status int, end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", h.url+"/mcp/docs.acme.example", nil)
		req.Header.Set("Authorization", "Bearer "+h.assistant)
		req.Header.Set("X-Forwarded-For", client)
		answer := make(chan int, 1)
		go func() {
			res, err := h.unchecked().Do(req)
			if err == nil {
				answer <- res.StatusCode
				res.Body.Close()
			}
		}()
		select {
		case <-s.begun:
			return 0, cancel
		case status := <-answer:
			return status, cancel
		}
	}
	for i := range 16 {
		status, end := listen(attacker)
		defer end()
		if status != 0 {
			t.Fatalf("standing stream %d: %d", i, status)
		}
	}
	if status, end := listen(attacker); status != 429 && status != 503 {
		t.Errorf("one more than a client may have: %d", status)
		end()
	}
	for range 3 { // readers have all of their places
		h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader)
	}
}

// waitingPages are pages of the console that wait until they are let go.
type waitingPages struct {
	pages
	begun, end chan struct{}
}

func (p waitingPages) ServePage(w http.ResponseWriter, req *http.Request, client netip.Addr, secure bool) error {
	p.begun <- struct{}{}
	<-p.end
	w.WriteHeader(http.StatusOK)
	return nil
}

// With all places of pages taken, readers are answered: the two do not share a pool.
func TestPagesOfTheConsoleTakeNoReadersPlace(t *testing.T) {
	p := waitingPages{begun: make(chan struct{}, 16), end: make(chan struct{})}
	h := build(t, func(d *router.Deps) { d.Pages, d.Bounds.Requests = p, 20 })
	var open sync.WaitGroup
	visit := func(client string) int {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", h.url+"/console/keys", nil)
		req.Header.Set("X-Forwarded-For", client)
		res, err := h.unchecked().Do(req) // not the one that holds answers to the description of the API
		if err != nil {
			t.Error(err)
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	const places = 16 // the least that a pool has
	for i := range places {
		open.Go(func() {
			if status := visit(fmt.Sprintf("198.51.100.%d", i)); status != 200 {
				t.Errorf("a page that has its place: %d", status)
			}
		})
		<-p.begun
	}
	if status := visit(reader); status != 503 {
		t.Errorf("one page more than there are places: %d", status)
	}
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader)
	h.json(200, "GET", "/v2/agent/acme/jobs", h.admin, "", "X-Forwarded-For", reader)
	close(p.end)
	open.Wait()
}

// What a client may open at once over one connection is said in the first frame, so that a fair one keeps to it.
func TestOneConnectionOpensAHundredRequests(t *testing.T) {
	f := overHTTP2(t).flood(reader)
	frame, err := f.framer.ReadFrame()
	settings, ok := frame.(*http2.SettingsFrame)
	if err != nil || !ok {
		t.Fatalf("the first frame is %T, %v", frame, err)
	}
	if n, _ := settings.Value(http2.SettingMaxConcurrentStreams); n != 100 {
		t.Errorf("%d requests at once", n)
	}
}

func TestOneClientDoesNotOpenAllStreams(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way, func(d *router.Deps) { d.Bounds.Streams = 40 })
		logs := h.slow()
		var open []*stream.Log
		for range 16 {
			if res := h.do("POST", v2, h.assistant, ask, "X-Forwarded-For", attacker); res.StatusCode != 200 {
				t.Fatalf("a stream of a client: %d", res.StatusCode)
			}
			open = append(open, <-logs)
		}
		got := h.json(429, "POST", v2, h.assistant, ask, "X-Forwarded-For", attacker)
		if got["limit"] != "client-streams" || !strings.Contains(got["error"].(string), "from your network") {
			t.Errorf("%v", got)
		}
		if res := h.do("POST", v2, h.assistant, ask, "X-Forwarded-For", reader); res.StatusCode != 200 {
			t.Errorf("another client's stream: %d", res.StatusCode)
		}
		// A server that asks for many readers has a key of its own.
		own := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme", AllowIP: []string{attacker}})
		if res := h.do("POST", v2, own, ask, "X-Forwarded-For", attacker); res.StatusCode != 200 {
			t.Errorf("with a server's key: %d", res.StatusCode)
		}
		for _, log := range append(open, <-logs, <-logs) {
			log.Close()
		}
		until(t, "its places are free", func() bool {
			res := h.do("POST", v2, h.assistant, ask, "X-Forwarded-For", attacker)
			if res.StatusCode == 200 {
				(<-logs).Close()
			}
			return res.StatusCode == 200
		})
	})
}

// The heads of requests are bounded in bytes and in fields, over both versions of HTTP.
func TestHeadsOfRequestsAreBounded(t *testing.T) {
	h := overHTTP2(t)
	f := h.flood(attacker)
	long := strings.Repeat("x", 20<<10)
	f.begin("/login", "a", long, "b", long)
	f.begin("/healthz", "c", "d")
	many := []string{"content-type", "application/json"}
	for i := range 300 {
		many = append(many, fmt.Sprint("h", i), "")
	}
	f.begin(v2, many...)
	if got := f.answers(3); got["431"] != 2 {
		t.Errorf("over HTTP/2: %v", got)
	}
	if *over != "" {
		return
	}
	h = build(t)
	for name, fields := range map[string]string{
		"bytes": "A: " + strings.Repeat("x", 40<<10) + "\r\n", "fields": strings.Repeat("A:\r\n", 300),
	} {
		c := h.dial()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: docs\r\nContent-Length: 100\r\n%s\r\n", v2, fields)
		from := bufio.NewReader(c)
		res, err := http.ReadResponse(from, nil)
		if err != nil || res.StatusCode != 431 || !res.Close {
			t.Errorf("%s: %v, %v", name, res, err)
			continue
		}
		io.Copy(io.Discard, res.Body)
		if _, err := from.ReadByte(); err == nil {
			t.Errorf("%s: the connection is kept", name)
		}
	}
}

// One address does not use up what all readers of a site may ask in a month.
func TestOneAddressTakesAShareOfAKeysMonth(t *testing.T) {
	h := build(t)
	p := h.catalog.projects["acme"]
	p.Limits.KeyMonth = 1000
	h.catalog.projects["acme"] = p
	solve := h.solver(t)
	asked := 0
	for ; asked < 1000; asked++ {
		res := h.do("POST", v2, h.assistant, ask, "X-Forwarded-For", attacker, "X-Altcha", solve())
		if res.StatusCode == 200 {
			io.Copy(io.Discard, res.Body)
			continue
		}
		if got := decodeJSON(t, res.Body); res.StatusCode != 429 || got["limit"] != "ip-share" {
			t.Fatalf("%d %v", res.StatusCode, got)
		}
		break
	}
	if asked < 40 || asked > 50 {
		t.Errorf("one address asked %d questions of 1000", asked)
	}
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader)
	// A server that asks for many readers, and an address that the operator names, have no share.
	own := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme", AllowIP: []string{attacker}})
	h.text(200, "POST", v2, own, ask, "X-Forwarded-For", attacker)
	for range 60 {
		h.text(200, "POST", v2, h.assistant, ask)
	}
}

// solver returns solutions of challenges.
func (h *house) solver(t *testing.T) func() string {
	return func() string {
		t.Helper()
		p := proof.New(bytes.Repeat([]byte{7}, 32), h.clock.Now())
		return proof.Solve(p.Make("acme", 10, h.clock.Now()))
	}
}

// Who asks much proves work, and nobody else does.
func TestAnAddressThatAsksMuchIsAskedForAProofOfWork(t *testing.T) {
	h := build(t)
	p := h.catalog.projects["acme"]
	p.Limits.KeyMonth = 2000
	h.catalog.projects["acme"] = p
	solve := h.solver(t)
	free := 0
	for ; free < 100; free++ {
		res := h.do("POST", v2, h.assistant, ask, "X-Forwarded-For", attacker)
		if res.StatusCode == 200 {
			io.Copy(io.Discard, res.Body)
			continue
		}
		if got := decodeJSON(t, res.Body); got["code"] != "proof_of_work" || got["challenge"] != challenges {
			t.Fatalf("%v", got)
		}
		break
	}
	if free < 20 || free > 25 { // a quarter of a twentieth
		t.Errorf("%d questions were free", free)
	}
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", attacker, "X-Altcha", solve())
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader)
	// The month is used up faster than its days pass: the others still ask a few without.
	h.quotas.mu.Lock()
	for name := range h.quotas.used {
		if strings.HasSuffix(name, "key-month") {
			h.quotas.used[name] = 1999 // the 21st day, as the clock of the test says
		}
	}
	h.quotas.mu.Unlock()
	p.Limits.KeyMonth = 2100
	h.catalog.projects["acme"] = p
	for range 3 {
		h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader)
	}
	h.json(403, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader)
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", reader, "X-Altcha", solve())
}

// A client over its share of connections is told so, others get in, and what it closes is free again.
func TestOneClientHoldsAShareOfTheConnections(t *testing.T) {
	if *over != "" {
		t.Skip("over TLS nothing can be said before the handshake")
	}
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way, func(d *router.Deps) {
			d.Bounds.Requests, d.Bounds.Streams, d.Unlimited, d.TrustedProxies = 100, 100, []netip.Prefix{}, nil
		})
		logs := h.slow()
		var conns []net.Conn
		for range 64 {
			conns = append(conns, h.dial())
		}
		// One of them is taken from net/http for a stream, and comes back.
		fmt.Fprint(conns[0], h.question())
		log := <-logs
		log.Close()
		from := bufio.NewReader(conns[0])
		if res, err := http.ReadResponse(from, nil); err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		} else {
			io.Copy(io.Discard, res.Body)
		}
		fmt.Fprint(conns[0], h.raw("GET", "/healthz", "", 0))
		if res, text := answered(t, from); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, text)
		}
		refusedOne := h.dial()
		res, err := http.ReadResponse(bufio.NewReader(refusedOne), nil)
		if err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
			t.Fatalf("one connection too many: %v, %v", res, err)
		}
		if got := decodeJSON(t, res.Body); got["limit"] != "client-connections" {
			t.Errorf("%v", got)
		}
		for _, c := range conns {
			c.Close()
		}
		until(t, "its places are free", func() bool {
			c := h.dial()
			defer c.Close()
			fmt.Fprint(c, h.raw("GET", "/healthz", "", 0))
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			return err == nil && res.StatusCode == 200
		})
	})
}

// A proxy that nobody trusts does not open the metrics to the world.
func TestWhoComesThroughAnUnknownProxyReadsNoMetrics(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.TrustedProxies = nil })
	h.text(200, "GET", "/metrics", "", "")
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		for _, value := range []string{"192.0.2.1", "127.0.0.1", "127.0.0.1, 192.0.2.1"} {
			h.json(401, "GET", "/metrics", "", "", name, value)
		}
	}
}
