package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestSearchesThatFindNothingAreLost(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		switch n.Add(1) {
		case 3:
			io.WriteString(w, `[]`)
		case 5:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case 7:
			http.Error(w, "broken", http.StatusInternalServerError)
		default:
			io.WriteString(w, `[{"content":"x","path":"p","metadata":{}}]`)
		}
	}))
	defer server.Close()
	r, err := Searches{Target: Target{URL: server.URL, Domain: "docs"}, Rate: 500, For: 39 * time.Millisecond,
		Queries: []string{"a", "b"}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Asked != 20 || r.Completed != 17 || r.Lost != 2 || r.Refused != 1 || r.Latencies["search"].Count != 17 ||
		r.Metered {
		t.Errorf("%+v", r)
	}
}

func TestJobsAreFollowedToTheirOwnPullRequest(t *testing.T) {
	var n atomic.Int64
	polls := make(map[string]int)
	var mu sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/agent/acme/job", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"job-%d","status":"active"}`, n.Add(1))
	})
	mux.HandleFunc("GET /v2/agent/acme/job/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		mu.Lock()
		defer mu.Unlock()
		polls[id]++
		link := id
		switch {
		case polls[id] == 1:
			fmt.Fprintf(w, `{"id":%q,"status":"active"}`, id)
			return
		case id == "job-2":
			fmt.Fprintf(w, `{"id":%q,"status":"failed","message":"it broke"}`, id)
			return
		case id == "job-4" || id == "job-5":
			link = "same"
		}
		fmt.Fprintf(w, `{"id":%q,"status":"completed","prLink":"https://docs.example.com/pulls/%s"}`, id, link)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	r, err := Jobs{Target: Target{URL: server.URL, Project: "acme", Admin: "key"}, Rate: 500, For: 15 * time.Millisecond,
		Prompts: []string{"do"}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Asked != 8 || r.Completed != 6 || r.Lost != 2 || r.Latencies["accepted"].Count != 8 ||
		r.Latencies["ended"].Count != 8 {
		t.Errorf("%+v", r)
	}
}

// A server that is killed has no streams any more; when it is back, its threads go on, but for one.
func TestRecoveryCountsAnswersThatDoNotComeBack(t *testing.T) {
	limit := Limit(Script{Parts: 5})
	head, texts, _ := limitAnswer(5)
	var asked atomic.Int64
	dead, accepted := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			n := asked.Add(1)
			w.Header().Set("X-Thread-Id", fmt.Sprintf("thread-%d", n))
			w.Write(head)
			w.Write(texts[0])
			w.(http.Flusher).Flush()
			if n == 4 {
				close(accepted)
			}
			<-dead
			panic(http.ErrAbortHandler)
		case strings.Contains(r.URL.Path, "thread-3"):
			w.Write(head)
			w.Write(texts[1])
		case strings.HasSuffix(r.URL.Path, "/stream"):
			r.Method = http.MethodPost
			limit.ServeHTTP(w, r)
		default:
			limit.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	r, err := Recover{Target: Target{URL: server.URL, Domain: "docs"}, Number: 4, Questions: []string{"?"}, Parts: 5,
		Restart: func(context.Context) error {
			<-accepted
			close(dead)
			return nil
		}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 3 || r.Lost != 1 || r.Latencies["resumed"].Count != 3 || r.Latencies["ready"].Count != 1 {
		t.Errorf("%+v", r)
	}
}

// Where no answer has begun a killed server loses nothing, which says nothing.
func TestAServerIsKilledOnceAStreamWasAccepted(t *testing.T) {
	head, _, _ := limitAnswer(5)
	var begun atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		begun.Add(1)
		w.Write(head)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	broken := errors.New("as far as it goes")
	killed := int64(-1)
	run := Recover{Target: Target{URL: server.URL, Domain: "docs", Key: "key"}, Number: 2, Questions: []string{"?"},
		Parts: 5,
		Restart: func(context.Context) error {
			killed = begun.Load()
			return broken // and the streams go on
		}}
	if _, err := run.Run(t.Context()); !errors.Is(err, broken) || killed < 1 {
		t.Errorf("killed with %d streams under way: %v", killed, err)
	}
	run.Key, killed = "", -1
	if _, err := run.Run(t.Context()); err == nil || killed != -1 {
		t.Errorf("killed with %d streams under way, where all are refused: %v", killed, err)
	}
}
