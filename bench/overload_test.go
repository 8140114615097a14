package bench

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A server that lets in four at once and refuses the others is past saturation at twice what four callers get from it.
func TestPastSaturationCountsWhatIsAcceptedAndRefused(t *testing.T) {
	limit := Limit(Script{Parts: 3, Delay: 5 * time.Millisecond})
	var inside atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer inside.Add(-1)
		if inside.Add(1) > 4 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		limit.ServeHTTP(w, r)
	}))
	defer server.Close()
	var r Result
	counted := func() bool {
		n := r.Latencies["steady"].Count
		return r.Refused > 0 && n > 0 && n < r.Latencies["whole"].Count
	}
	// Longer and longer, on a machine that has other things to do: where it stands still, what four callers get is little.
	for find := 200 * time.Millisecond; !counted(); find *= 2 {
		if find > time.Minute {
			t.Fatalf("nobody is refused, or all answers are of one part: %+v", r)
		}
		var err error
		// more would be the client's own saturation, and answers too late to count
		if r, err = (Overload{Target: Target{URL: server.URL, Domain: "docs"}, Callers: 4, Find: find,
			Factor: 4,
			Calm:   100 * time.Millisecond, For: 5 * find, After: 100 * time.Millisecond,
			Questions: []string{"?"}, Scripted: true, Parts: 3}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r.Refused == 0 || r.Completed == 0 || r.Lost != 0 || r.Asked != r.Refused+r.Completed {
		t.Errorf("%d asked, %d completed, %d refused, %d lost", r.Asked, r.Completed, r.Refused, r.Lost)
	}
	if n, all := r.Latencies["steady"].Count, r.Latencies["whole"].Count; n == 0 || n >= all {
		t.Errorf("%d of %d answers are of the later part", n, all)
	}
	if r.Latencies["refusal"].Count != int64(r.Refused) || r.Latencies["unloaded"].Count == 0 ||
		r.Latencies["sent"].Count != int64(r.Asked) {
		t.Errorf("%+v", r.Latencies)
	}
	for _, name := range []string{"overload.carried", "overload.throughput", "overload.p50", "overload.p99",
		"overload.steady", "overload.steady.p50", "overload.steady.p99", "overload.recovery"} {
		if r.Figures[name] <= 0 {
			t.Errorf("%s is %v", name, r.Figures[name])
		}
	}
}

func TestRecoveryIsTheEndOfTheLastBadQuarterOfASecond(t *testing.T) {
	const ms = time.Millisecond
	calm := Latency{P50: 10}
	for name, c := range map[string]struct {
		outcomes []outcome
		want     time.Duration
	}{
		"at once":   {[]outcome{{due: 900 * ms, refused: true}, {due: 1010 * ms, took: 15 * ms, good: true}}, 0},
		"a refusal": {[]outcome{{due: 1010 * ms, refused: true}, {due: 1260 * ms, took: 10 * ms, good: true}}, 250 * ms},
		"slow": {[]outcome{{due: 1010 * ms, took: 10 * ms, good: true}, {due: 1300 * ms, took: 30 * ms, good: true},
			{due: 1310 * ms, took: 30 * ms, good: true}, {due: 1600 * ms, took: 10 * ms, good: true}}, 500 * ms},
		"one that is slow by itself": {[]outcome{{due: 1010 * ms, took: 10 * ms, good: true},
			{due: 1020 * ms, took: 10 * ms, good: true},
			{due: 1030 * ms, took: 90 * ms, good: true}}, 0},
	} {
		if got := recovery(c.outcomes, time.Second, calm); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
