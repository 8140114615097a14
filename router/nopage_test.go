package router_test

import (
	"io"
	"iter"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"docent/api"
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
