package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docent/stream"
)

func scenario(url string, form stream.Form) Scenario {
	return Scenario{URL: url, Domain: "docs", Key: "key", Question: "?", Streams: 20, Form: form, Parts: 7}
}

func TestWholeStreamsAreCounted(t *testing.T) {
	for _, form := range []stream.Form{stream.DataStream, stream.UIMessages} {
		server := httptest.NewServer(Limit(form, 7, time.Millisecond))
		defer server.Close()
		r, err := Streams(t.Context(), scenario(server.URL, form))
		if err != nil {
			t.Fatal(err)
		}
		if r.Streams != 20 || r.Completed != 20 || r.Lost != 0 || r.Refused != 0 || r.Parts != 140 || r.Bytes == 0 || len(r.Failures) != 0 {
			t.Errorf("%v: %+v", form, r)
		}
		if r.FirstEvent.P50 <= 0 || r.FirstText.P50 < r.FirstEvent.P50 || r.Whole.P50 < r.FirstText.P50 || r.Whole.Max < r.Whole.P99 {
			t.Errorf("%v: latencies out of order: %+v", form, r)
		}
		if r.Server.Resident == 0 || r.Server.Allocations == 0 {
			t.Errorf("%v: nothing is known of the server: %+v", form, r.Server)
		}
	}
}

// misbehaving serves the limit, but for every fourth stream.
func misbehaving(t *testing.T, spoil http.HandlerFunc) *httptest.Server {
	limit := Limit(stream.UIMessages, 7, 0)
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
	r, err := Streams(t.Context(), scenario(server.URL, stream.UIMessages))
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 15 || r.Refused != 5 || r.Lost != 0 || !strings.Contains(r.Failures[0], "busy") {
		t.Errorf("%+v", r)
	}
}

func TestBrokenAndShortStreamsAreLost(t *testing.T) {
	for name, spoil := range map[string]http.HandlerFunc{
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			head, texts, _ := limitAnswer(stream.UIMessages, 7)
			w.Write(head)
			w.Write(texts[0])
			panic(http.ErrAbortHandler)
		},
		"ended early": func(w http.ResponseWriter, _ *http.Request) {
			head, texts, _ := limitAnswer(stream.UIMessages, 7)
			w.Write(head)
			w.Write(texts[0])
		},
		"too few parts": Limit(stream.UIMessages, 6, 0).ServeHTTP,
	} {
		server := misbehaving(t, spoil)
		r, err := Streams(t.Context(), scenario(server.URL, stream.UIMessages))
		if err != nil {
			t.Fatal(err)
		}
		if r.Completed != 15 || r.Lost != 5 || len(r.Failures) != 5 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
