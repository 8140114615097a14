package router_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"docent/api"
	"docent/router"
)

// tools stand in for those of agents: a client listens, and nothing is ever said.
type tools struct{ begun chan string }

func (s tools) ServeReaders(_ http.ResponseWriter, req *http.Request, _ api.Project, _ netip.Addr) {
	s.begun <- req.Method
	<-req.Context().Done()
}

func (s tools) ServeAgent(w http.ResponseWriter, req *http.Request, p api.Project, from netip.Addr) {
	s.ServeReaders(w, req, p, from)
}

// A client that only listens does not keep a node that is to stop; what a client has asked for goes on.
func TestWhoOnlyListensIsLetGoAsTheNodeRetires(t *testing.T) {
	s := tools{make(chan string)}
	h := build(t, func(d *router.Deps) { d.Tools = s })
	serve := func(method string) <-chan struct{} {
		done := make(chan struct{})
		req := httptest.NewRequest(method, "/mcp/docs.acme.example", nil).WithContext(t.Context())
		req.Header.Set("Authorization", "Bearer "+h.assistant)
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			h.server.ServeHTTP(httptest.NewRecorder(), req)
		}()
		if got := <-s.begun; got != method {
			t.Errorf("%s is served as %s", method, got)
		}
		return done
	}
	asked, listens := serve(http.MethodPost), serve(http.MethodGet)
	h.server.Retire()
	<-listens
	<-serve(http.MethodGet) // one that comes again
	select {
	case <-asked:
		t.Error("what was asked was broken off")
	default:
	}
	h.text(http.StatusServiceUnavailable, "GET", "/readyz", "", "")
	h.server.Close()
	<-asked
}
