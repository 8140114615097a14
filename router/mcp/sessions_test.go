package mcp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"docent/api"
	"docent/internal/budget"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"t","version":"1"}}}`

// An agentClient asks a server as the edge does.
type agentClient struct {
	t    *testing.T
	s    *Servers
	from string
}

func (c agentClient) post(session, message string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/mcp/docs.example", strings.NewReader(message))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set(sessionHeader, session)
	}
	res := httptest.NewRecorder()
	c.s.ServeReaders(res, req, api.Project{ID: "docs", Domain: "docs.example"}, netip.MustParseAddr(c.from))
	return res
}

func (c agentClient) begin() string {
	c.t.Helper()
	res := c.post("", initialize)
	name := res.Header().Get(sessionHeader)
	if res.Code != http.StatusOK || name == "" {
		c.t.Fatalf("%d %s", res.Code, res.Body)
	}
	return name
}

func (c agentClient) alive(session string) bool {
	return c.post(session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`).Code == http.StatusOK
}

func served(t *testing.T, limit int) *Servers {
	s := New(Deps{MaxSessions: limit, ClientShare: 5, Version: "test"})
	t.Cleanup(s.Close)
	return s
}

// begun is how many sessions the servers have.
func (s *Servers) begun() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		for range server.Sessions() {
			n++
		}
	}
	return n
}

// Who begins one session after the other has as many as one client may, and the others keep theirs.
func TestALoopOfInitializeHoldsABoundedNumberOfSessions(t *testing.T) {
	s := served(t, 400)
	reader, attacker := agentClient{t, s, "203.0.113.5"}, agentClient{t, s, "198.51.100.66"}
	kept := reader.begin()
	var last string
	for range 500 {
		last = attacker.begin()
	}
	if n := s.begun(); n > 1+400/20 {
		t.Errorf("%d sessions are open", n)
	}
	if n := s.sessions.budgets.Open(budget.Sessions); n != int64(s.begun()) {
		t.Errorf("%d sessions are counted, and %d are open", n, s.begun())
	}
	if !reader.alive(kept) || !attacker.alive(last) {
		t.Error("a session is gone that was not the oldest of a client with too many")
	}
	goroutines := runtime.NumGoroutine()
	if goroutines > 400 {
		t.Errorf("%d goroutines", goroutines)
	}
}

// From many addresses there are no more than there may be, and the ones that were not used for longest go.
func TestAllClientsTogetherHoldABoundedNumberOfSessions(t *testing.T) {
	s := served(t, 40)
	first := agentClient{t, s, "203.0.113.5"}
	kept := first.begin()
	for i := range 30 {
		c := agentClient{t, s, netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String()}
		for range 10 {
			c.begin()
			if !first.alive(kept) {
				t.Fatal("a session that is used is gone")
			}
		}
	}
	if n := s.begun(); n > 40 {
		t.Errorf("%d sessions are open", n)
	}
}

// A restart, and a long rest, end no session: its name is all it takes to go on.
func TestASessionIsTakenUpAgainAfterARestart(t *testing.T) {
	secret := []byte("that is kept over a restart, 32 B")
	start := func(secret []byte) *Servers {
		s := New(Deps{MaxSessions: 400, ClientShare: 5, Version: "test", Secret: secret})
		t.Cleanup(s.Close)
		return s
	}
	name := agentClient{t, start(secret), "203.0.113.5"}.begin()
	s := start(secret)
	c := agentClient{t, s, "203.0.113.5"}
	var all sync.WaitGroup
	for i := range 8 { // a client may send several requests at once
		all.Go(func() {
			if res := c.post(name, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i+2)); res.Code != http.StatusOK || !strings.Contains(res.Body.String(), "read_page") {
				t.Errorf("%d %s", res.Code, res.Body)
			}
		})
	}
	all.Wait()
	if n := s.begun(); n != 1 || s.sessions.budgets.Open(budget.Sessions) != 1 {
		t.Errorf("%d sessions are open, %d are counted", n, s.sessions.budgets.Open(budget.Sessions))
	}
	for session := range s.server(kind{project: "docs", domain: "docs.example"}).Sessions() { // as when nobody has used it for long
		session.Close()
	}
	if !c.alive(name) || s.begun() != 1 || s.sessions.budgets.Open(budget.Sessions) != 1 {
		t.Error("a session that has rested for long is gone")
	}
	if c := (agentClient{t, start([]byte("another secret, of 32 bytes or so")), "203.0.113.5"}); c.alive(name) {
		t.Error("a session of another server is taken up")
	}
}

// Clients of the protocol read what is refused as JSON-RPC.
func TestRefusalsAreJSONRPC(t *testing.T) {
	c := agentClient{t, served(t, 40), "203.0.113.5"}
	name := c.begin()
	for _, one := range []struct {
		message string
		status  int
		body    string
	}{
		{`{"jsonrpc":"2.0","id":"a","method":"no/such"}`, 200, `"code":-32601`},
		{`{"jsonrpc":"2.0","method":"notifications/unheard_of"}`, 202, ""},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call"}`, 400, `"code":-32600`},
		{`{"jsonrpc":`, 400, `"code":-32700`},
	} {
		res := c.post(name, one.message)
		body := res.Body.String()
		if res.Code != one.status || !strings.Contains(body, one.body) || one.body == "" && body != "" {
			t.Errorf("%s: %d %s", one.message, res.Code, body)
		}
		if one.status == 200 && !strings.Contains(body, `"id":"a"`) {
			t.Errorf("%s is answered without its id: %s", one.message, body)
		}
	}
}

// The newest revision of the protocol has no sessions.
func TestTheNewestRevisionNeedsNoSession(t *testing.T) {
	s := served(t, 40)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for method, want := range map[string]string{"server/discover": "2026-07-28", "tools/list": "read_page"} {
		req := httptest.NewRequest(http.MethodPost, "/mcp/docs.example", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+meta+`}}`))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			versionHeader: "2026-07-28", "Mcp-Method": method} {
			req.Header.Set(name, value)
		}
		res := httptest.NewRecorder()
		s.ServeReaders(res, req, api.Project{ID: "docs", Domain: "docs.example"}, netip.MustParseAddr("203.0.113.5"))
		if res.Code != http.StatusOK || !strings.Contains(res.Body.String(), want) || res.Header().Get(sessionHeader) != "" {
			t.Errorf("%s: %d %s", method, res.Code, res.Body)
		}
	}
	if n := s.begun(); n != 0 {
		t.Errorf("%d sessions are open", n)
	}
}

func TestASessionThatItsClientEndsGivesItsPlaceBack(t *testing.T) {
	s := served(t, 40)
	c := agentClient{t, s, "203.0.113.5"}
	for range 100 {
		name := c.begin()
		req := httptest.NewRequest(http.MethodDelete, "/mcp/docs.example", nil)
		req.Header.Set(sessionHeader, name)
		res := httptest.NewRecorder()
		s.ServeReaders(res, req, api.Project{ID: "docs", Domain: "docs.example"}, netip.MustParseAddr(c.from))
		if res.Code != http.StatusNoContent {
			t.Fatalf("%d %s", res.Code, res.Body)
		}
	}
	for range 10 { // no session begins
		c.post("", `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	}
	if n := s.sessions.budgets.Open(budget.Sessions); n > 10 || s.begun() != 0 {
		t.Errorf("%d sessions are counted, and %d are open", n, s.begun())
	}
}
