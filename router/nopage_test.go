package router_test

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/journal"
	"docent/router"
)

// pages stand in for those of people: there is one.
type pages struct{}

func (pages) Routes() iter.Seq2[string, string] {
	return func(yield func(method, pattern string) bool) { yield("GET", "/console/:org") }
}

func (pages) ServePage(w http.ResponseWriter, _ *http.Request, _ netip.Addr, _ bool) error {
	return nil
}

func (pages) FailPage(w http.ResponseWriter, _ *http.Request, status int, message string, _ []api.Problem, _ string) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	w.Write([]byte("<p>" + message))
}

// browse asks as a browser does, and follows no redirect.
func (h *house) browse(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	req := httptest.NewRequest("GET", path, nil)
	req.Header.Set("Accept", "text/html,*/*;q=0.8")
	w := httptest.NewRecorder()
	h.server.ServeHTTP(w, req)
	return w.Result(), w.Body.String()
}

// Who mistypes an address in a browser gets a page, and a program gets what programs read.
func TestAPageThatIsNotThereIsAPage(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Pages = pages{} })
	for _, path := range []string{"/console/default/docs.example.com/nothing", "/nothing", "/v9/nothing", "/llms/docs.acme.example"} {
		res, text := h.browse(t, path)
		if res.StatusCode != 404 || res.Header.Get("Content-Type") != "text/html" || !strings.Contains(text, "there is no such page") {
			t.Errorf("%s: %s %v: %s", path, res.Status, res.Header, text)
		}
		h.json(404, "GET", path, "", "", "Accept", "application/json")
	}
}

// Who types a slash at the end of an address in a browser sees the page; a program is told.
func TestASlashAtTheEndLeadsToThePage(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Pages = pages{} })
	for path, to := range map[string]string{"/console/there/": "/console/there", "/console/a%2Fb/?q=1&r=%20": "/console/a%2Fb?q=1&r=%20"} {
		if res, text := h.browse(t, path); res.StatusCode != 301 || res.Header.Get("Location") != to {
			t.Errorf("%s: %s %v: %s", path, res.Status, res.Header, text)
		}
		h.json(404, "GET", path, "", "", "Accept", "application/json")
	}
	for _, path := range []string{"//evil.example/", "/console//there/", "/console/../x/"} {
		if res, text := h.browse(t, path); res.StatusCode != 404 {
			t.Errorf("%s: %s %v: %s", path, res.Status, res.Header, text)
		}
	}
}

// What no node can answer is refused in the form that the operation's other errors have.
func TestARefusalHasTheFormOfItsOperation(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Pages = pages{} })
	busy := &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: 2 * time.Second}
	for _, of := range []struct {
		method, path, origin, body string
	}{
		{"POST", v2, "*", `"code":"overloaded"`},
		{"GET", "/v2/agent/acme/job/job_1", "", `"code":"overloaded"`},
		{"GET", "/console/there", "", "<p>"},
	} {
		req := httptest.NewRequest(of.method, of.path, nil)
		req.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		h.server.Refuse(w, req, busy)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "2" ||
			w.Header().Get("Access-Control-Allow-Origin") != of.origin || !strings.Contains(w.Body.String(), of.body) {
			t.Errorf("%s %s: %d %v %s", of.method, of.path, w.Code, w.Header(), w.Body)
		}
	}
}

// A client that has half closed its connection reads on: what is no answer must not look like one.
func TestARefusalThatIsNoAnswerBreaksTheConnectionOff(t *testing.T) {
	h := build(t)
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, err := range map[string]error{"left": left.Err(), "unknown": journal.ErrUnknown} {
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if r := recover(); r != http.ErrAbortHandler || w.Body.Len() > 0 {
					t.Errorf("%s: %v, %d %s", name, r, w.Code, w.Body)
				}
			}()
			h.server.Refuse(w, httptest.NewRequest("POST", v2, nil).WithContext(left), err)
		}()
	}
}
