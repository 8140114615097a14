package mcp

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
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
