package router_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"docent/router"
)

// unknownPaths are paths that stopped a request in the midst of the router's table.
var unknownPaths = []string{"/llms/%00/llms.txt", "/widget/settings/%00", "/v1/agent/%00/jobs", "/v1/assistant/%00/message",
	"/v2/agent/prom/job/%00", "/%00", "/llms/docs.acme.example/%0a.md", "/v2/agent/%7f/jobs", "/healthz%1f", "/%c2%85"}

func TestAPathWithControlCharactersIsNone(t *testing.T) {
	h := build(t)
	for _, path := range unknownPaths {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			res := httptest.NewRecorder()
			h.server.ServeHTTP(res, httptest.NewRequest(method, path, http.NoBody))
			if res.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", method, path, res.Code, res.Body)
			}
		}
	}
	if strings.Contains(h.log.String(), "panic") {
		t.Error(h.log.String())
	}
}

// Whatever a path holds, the answer is no fault of ours.
func FuzzPaths(f *testing.F) {
	for _, path := range append(unknownPaths, "/openapi.json", "/llms/docs.acme.example/guide/start.md", "/a//b", "/..", "/%2e%2e/",
		"/v2/agent/acme/job/job_1", "/widget/v1.js", "/console/%f0%9f%98%80") {
		f.Add(path)
	}
	h := build(f, func(d *router.Deps) { d.Log = nil })
	f.Fuzz(func(t *testing.T, path string) {
		at, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			t.Skip()
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := httptest.NewRequest(method, "/", http.NoBody)
			req.URL = at
			res := httptest.NewRecorder()
			h.server.ServeHTTP(res, req)
			if res.Code == http.StatusInternalServerError {
				t.Errorf("%s %q: %s", method, path, res.Body)
			}
		}
	})
}
