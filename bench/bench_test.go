package bench

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func load(url string) Streams {
	return Streams{Target: Target{Name: "test", URL: url, Domain: "docs", Key: "key"}, Questions: []string{"?"},
		Number: 20, Scripted: true, Parts: 7}
}

func TestWholeStreamsAreCounted(t *testing.T) {
	server := httptest.NewServer(Limit(Script{Interval: time.Millisecond, Parts: 7}))
	defer server.Close()
	s := load(server.URL)
	s.Interval = time.Millisecond
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Asked != 20 || r.Completed != 20 || r.Lost != 0 || r.Refused != 0 || r.Parts != 140 || r.Bytes == 0 ||
		len(r.Failures) != 0 {
		t.Errorf("%+v", r)
	}
	first, text, whole, late := r.Latencies["firstEvent"], r.Latencies["firstText"], r.Latencies["whole"],
		r.Latencies["late"]
	if first.P50 <= 0 || text.P50 < first.P50 || whole.P50 < text.P50 || whole.Max < whole.P99 {
		t.Errorf("latencies out of order: %+v", r.Latencies)
	}
	if first.Count != 20 || text.Count != 20 || whole.Count != 20 || late.Count != 120 {
		t.Errorf("latencies are missing: %+v", r.Latencies)
	}
	if !r.Metered || r.Server.Resident == 0 || r.Server.Allocations == 0 || r.Server.Flushes != 20*9 {
		t.Errorf("not everything is known of the server: %+v", r.Server)
	}
	if r.MemoryPerStream() == 0 || r.Stretch() < 1 || r.Planned != 0.006 {
		t.Errorf("planned %v s, took %v s", r.Planned, r.Elapsed)
	}
}

// misbehaving serves the limit, but for every fourth stream.
func misbehaving(t *testing.T, spoil http.HandlerFunc) *httptest.Server {
	limit := Limit(Script{Parts: 7})
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && n.Add(1)%4 == 0 {
			spoil(w, r)
			return
		}
		limit.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestRefusedStreamsAreNotLostOnes(t *testing.T) {
	server := misbehaving(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "busy", http.StatusServiceUnavailable)
	})
	r, err := load(server.URL).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 15 || r.Refused != 5 || r.Lost != 0 || !strings.Contains(r.Failures[0], "busy") ||
		r.Latencies["refusal"].Count != 5 {
		t.Errorf("%+v", r)
	}
}

func TestStreamsThatAreNotWholeAndInOrderAreLost(t *testing.T) {
	head, texts, tail := limitAnswer(7)
	pieces := func(w http.ResponseWriter, order ...int) {
		w.Write(head)
		for _, n := range order {
			w.Write(texts[n])
		}
	}
	for name, spoil := range map[string]http.HandlerFunc{
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			pieces(w, 0)
			panic(http.ErrAbortHandler)
		},
		"ended early":   func(w http.ResponseWriter, _ *http.Request) { pieces(w, 0) },
		"too few parts": Limit(Script{Parts: 6}).ServeHTTP,
		"out of order": func(w http.ResponseWriter, _ *http.Request) {
			pieces(w, 0, 2, 1, 3, 4, 5, 6)
			w.Write(tail)
		},
		"one twice": func(w http.ResponseWriter, _ *http.Request) {
			pieces(w, 0, 1, 2, 2, 3, 4, 5, 6)
			w.Write(tail)
		},
		"without a start": func(w http.ResponseWriter, _ *http.Request) { w.Write(texts[0]) },
		"text after the finish": func(w http.ResponseWriter, _ *http.Request) {
			pieces(w, 0, 1, 2, 3, 4, 5, 6)
			w.Write(tail)
			w.Write(texts[1])
		},
		"with an error": func(w http.ResponseWriter, _ *http.Request) {
			pieces(w, 0)
			w.Write([]byte("data: {\"type\":\"error\",\"errorText\":\"it broke\"}\n\ndata: [DONE]\n\n"))
		},
	} {
		server := misbehaving(t, spoil)
		r, err := load(server.URL).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Completed != 15 || r.Lost != 5 || len(r.Failures) != 5 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A server that stalls is seen by all whose answers were due meanwhile, not by those alone that it had accepted.
func TestLatenciesCountFromTheSchedule(t *testing.T) {
	const all = 30
	var come atomic.Int64
	stalled := make(chan struct{}) // until every request of the schedule is there
	limit := Limit(Script{Parts: 1})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if come.Add(1) == all {
				close(stalled)
			}
			<-stalled
		}
		limit.ServeHTTP(w, r)
	}))
	defer server.Close()
	s := load(server.URL)
	s.Parts, s.Number, s.Rate, s.For = 1, 0, 100, 295*time.Millisecond
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The last was due 290 ms after the first, and the one in the middle 145 ms before the last.
	if l := r.Latencies["firstEvent"]; r.Completed != all || l.P50 < 140 || l.Max < 289 {
		t.Errorf("of %d requests the first event came after %v ms at the median and %v at most", r.Completed, l.P50, l.Max)
	}
}

func TestCallersInAClosedLoopAskAnew(t *testing.T) {
	for _, turns := range []int{1, 3} {
		server := httptest.NewServer(Limit(Script{Parts: 3}))
		defer server.Close()
		s := load(server.URL)
		s.Parts, s.Number, s.Closed, s.For, s.Turns = 3, 4, true, 50*time.Millisecond, turns
		var r Result
		for r.Completed <= 4*turns { // longer and longer, on a machine that has other things to do
			var err error
			if s.For *= 2; s.For > time.Minute {
				t.Fatalf("%d turns: nobody asks again: %+v", turns, r)
			}
			if r, err = s.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r.Lost != 0 || r.Asked != r.Completed || r.MostOpen > 4 || turns > 1 && len(r.Turns) != turns {
			t.Errorf("%d turns: %+v", turns, r)
		}
	}
}

func TestAConversationGoesOnInItsThread(t *testing.T) {
	limit := Limit(Script{Parts: 2})
	var first, later atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body := make([]byte, r.ContentLength)
			r.Body.Read(body)
			switch text := string(body); {
			case !strings.Contains(text, "threadId"):
				first.Add(1)
			case strings.Contains(text, `"threadId":"thr_0Vbb`) && strings.Contains(text, `"threadKey":"KKKK`):
				later.Add(1)
			}
		}
		limit.ServeHTTP(w, r)
	}))
	defer server.Close()
	s := load(server.URL)
	s.Parts, s.Number, s.Turns = 2, 5, 4
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 20 || first.Load() != 5 || later.Load() != 15 || len(r.Turns) != 4 {
		t.Errorf("%d first and %d later turns: %+v", first.Load(), later.Load(), r)
	}
}

func TestATurnAndAFurtherPartAreToldApart(t *testing.T) {
	long := Result{Completed: 100, Parts: 20_000, Server: Usage{CPU: 100 * (0.001 + 200*0.00001)}}
	long.Divide(Result{Completed: 50, Parts: 1000, Server: Usage{CPU: 50 * (0.001 + 20*0.00001)}})
	for name, want := range map[string]float64{"cpu.marginal": 0.01, "cpu.turn": 1} {
		if got := long.Figures[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v ms, not %v", name, got, want)
		}
	}
	same := Result{Completed: 100, Parts: 20_000, Server: Usage{CPU: 1}}
	if same.Divide(same); same.Figures != nil {
		t.Errorf("answers of one length tell them apart: %v", same.Figures)
	}
}
