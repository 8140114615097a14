package router_test

import (
	"context"
	"io"
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

// Who mistypes an address of the console in a browser gets a page, and a program gets what programs read.
func TestAPageThatIsNotThereIsAPage(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Pages = pages{} })
	req, err := http.NewRequest("GET", h.url+"/console/default/docs.example.com/nothing", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := h.unchecked().Do(req) // not the one that holds answers to the description of the API
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 404 || res.Header.Get("Content-Type") != "text/html" ||
		!strings.Contains(string(text), "there is no such page") {
		t.Errorf("%s %v: %s, %v", res.Status, res.Header, text, err)
	}
	h.json(404, "GET", "/console/default/docs.example.com/nothing", "", "", "Accept", "application/json")
	h.json(404, "GET", "/v9/nothing", "", "", "Accept", "text/html")
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
