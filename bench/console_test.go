package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// How long the sign-ins take is no part of what is measured: on a slow machine they take longer than a short run.
func TestAShortRunOfTheConsoleEndsInGoodOrder(t *testing.T) {
	var signIns int
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<form><input name="token" value="t"></form>`)
	})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, _ *http.Request) {
		signIns++
		fmt.Fprint(w, `<a href="/console/a/jobs" data-go="j">Jobs</a>`)
	})
	mux.HandleFunc("GET /console/a/jobs", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<div sse-connect="/live"></div>`)
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	server := httptest.NewServer(mux)
	defer server.Close()
	figures, err := Console{URL: server.URL, AdminKey: "k", Every: time.Second, Live: liveOfSession + 1, For: time.Nanosecond}.Run(t.Context())
	if err != nil || len(figures.Pages) != 1 {
		t.Errorf("%v with %d pages", err, len(figures.Pages))
	}
	if signIns != 3 { // one that finds the pages, and two that follow
		t.Errorf("%d sign-ins", signIns)
	}
}
