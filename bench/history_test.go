package bench

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"docent/api/stream"
)

func TestLongConversationsGoOnInTheirThreads(t *testing.T) {
	limit := Limit(stream.UIMessages, Script{Parts: 2})
	var mu sync.Mutex
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			mu.Lock()
			asked++
			mu.Unlock()
		}
		limit.ServeHTTP(w, r)
	}))
	defer server.Close()
	r, err := History{Target: Target{URL: server.URL, Domain: "docs"}, Threads: 3, Turns: 70, Form: stream.UIMessages,
		Questions: []string{"?"}, Scripted: true, Parts: 2}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if asked != 3*70+3 || r.Completed != 3*70 || r.Lost != 0 || len(r.Curves) != 2 {
		t.Errorf("%d asked, %+v", asked, r)
	}
	for _, c := range r.Curves {
		if !slices.Equal(c.X, []float64{25.5, 60.5}) || len(c.Y) != 2 {
			t.Errorf("%+v", c)
		}
	}
}
