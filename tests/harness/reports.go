package harness

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// A ReportReceiver takes the second attempt of each report.
type ReportReceiver struct {
	*httptest.Server
	mu       sync.Mutex
	attempts map[string]int
	got      map[string][]string // ids of reports, by their paths
}

// NewReportReceiver starts one that ends with the test.
func NewReportReceiver(t *testing.T) *ReportReceiver {
	r := &ReportReceiver{attempts: map[string]int{}, got: map[string][]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *ReportReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := req.Header.Get("webhook-id")
	if r.attempts[id]++; r.attempts[id] == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var p struct{ Type string }
	if err := json.NewDecoder(req.Body).Decode(&p); err != nil || p.Type != "report.weekly" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !slices.Contains(r.got[req.URL.Path], id) {
		r.got[req.URL.Path] = append(r.got[req.URL.Path], id)
	}
	w.WriteHeader(http.StatusNoContent)
}

// Taken are the reports that were taken, by the path that they came to.
func (r *ReportReceiver) Taken() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string][]string{}
	for path, ids := range r.got {
		out[path] = slices.Clone(ids)
	}
	return out
}
