package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
)

// An inMemory server answers without a network.
type inMemory func(http.ResponseWriter, *http.Request)

func (h inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, req)
	return w.Result(), nil
}

// TestAJobIsFollowedOnFromWhereTheStreamBrokeOff breaks the stream twice: once between two events and once in the
// middle of one.
func TestAJobIsFollowedOnFromWhereTheStreamBrokeOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		id := api.NewID(api.JobPrefix, time.Now())
		var asked []string
		event := func(n int, kind, status string) string {
			return fmt.Sprintf(
				"id: %d\nevent: %s\ndata: {\"id\":%d,\"type\":%q,\"at\":\"2026-11-21T10:00:00.000Z\",\"status\":%q,\"text\":\"x\"}\n\n",
				n,
				kind,
				n,
				kind,
				status,
			)
		}
		server := func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/v2/agent/p/job/"+id+"/events" || req.Header.Get("Authorization") != "Bearer k" {
				t.Errorf("%s %v", req.URL, req.Header)
			}
			asked = append(asked, req.Header.Get("Last-Event-ID"))
			w.Header().Set("Content-Type", "text/event-stream")
			switch len(asked) {
			case 1:
				fmt.Fprint(
					w,
					"retry: 1000\n\n: ping\n\n"+event(1, "created", "active")+event(2, "progress", "active"),
				)
			case 2:
				text := event(3, "progress", "active")
				fmt.Fprint(w, text[:len(text)-20])
			default:
				fmt.Fprint(w, event(3, "progress", "active")+event(4, "finished", "completed")+
					"event: end\ndata: {\"id\":\""+id+"\",\"status\":\"completed\",\"title\":\"t\"}\n\n")
			}
		}
		var seen []uint64
		broken := 0
		c := Client{Base: "http://docent.test", Key: "k", HTTP: &http.Client{Transport: inMemory(server)},
			Reconnecting: func(error) { broken++ }}
		var j *Job
		for e, err := range c.JobEvents(t.Context(), "p", id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if j = e.Job; e.Type != EventEnd {
				seen = append(seen, e.ID)
			}
		}
		if j == nil || string(j.ID) != id || j.Status != api.JobCompleted {
			t.Errorf("%+v", j)
		}
		if got := strings.Join(asked, " "); got != "0 2 2" || broken != 2 {
			t.Errorf("asked from %s, %d times broken off", got, broken)
		}
		if !slices.Equal(seen, []uint64{1, 2, 3, 4}) {
			t.Errorf("events %v were seen", seen)
		}
	})
}

// TestARefusalEndsFollowing follows a job of a server that is busy for a while, and of one that always refuses.
func TestARefusalEndsFollowing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for status, want := range map[int]int{http.StatusServiceUnavailable: 1 + reconnects, http.StatusForbidden: 2} {
			asked := 0
			c := Client{Base: "http://docent.test",
				HTTP: &http.Client{Transport: inMemory(func(w http.ResponseWriter, _ *http.Request) {
					if asked++; asked == 1 {
						fmt.Fprint(w, "event: created\ndata: {\"id\":1,\"type\":\"created\"}\n\n")
						return
					}
					w.WriteHeader(status)
				})}}
			var err error
			for _, err = range c.JobEvents(t.Context(), "p", "x", 0) {
			}
			if err == nil || asked != want {
				t.Errorf("%d: asked %d times, want %d: %v", status, asked, want, err)
			}
		}
	})
}
