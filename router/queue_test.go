package router_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/router"
)

// posed is a question with further lines of its head, ended if there are any.
func (h *house) posed(path, lines string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: docs.acme.example\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s", path, h.assistant, lines, len(ask), ask)
}

// answered reads an answer to its end.
func answered(t testing.TB, r *bufio.Reader) (*http.Response, string) {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res, body(t, res)
}

// A refusal is an answer like any other: clients find what it is, when to come back, and what to name when they ask
// about it, and pages on other origins may read it.
func TestARefusalSaysWhatItIsAndWhenToComeBack(t *testing.T) {
	h := buildWith(t, router.Filled)
	for _, path := range []string{v1, v2, "/v1/assistant/docs.acme.example/message", "/v2/assistant/d/message",
		"/v1/search/d", "/discovery/v1/page/d", "/v1/feedback/.d"} {
		h.log.buf.Reset()
		c := h.dial()
		fmt.Fprint(c, h.posed(path,
			"X-Request-Id: a/b+c\r\nX-Forwarded-For: 192.0.2.7\r\nOrigin: https://docs.acme.example\r\n"))
		res, text := answered(t, bufio.NewReader(c))
		var said struct{ Code, RequestID, Error string }
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			t.Fatal(err, text)
		}
		if res.StatusCode != 503 || said.Code != "overloaded" || said.RequestID != "a/b+c" || said.Error == "" {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
		if v := res.Header.Get("Retry-After"); len(v) != 1 || v < "2" || v > "4" { // two would be answered after two seconds
			t.Errorf("%s: Retry-After is %q", path, v)
		}
		if res.Header.Get("X-Request-Id") != "a/b+c" || res.Header.Get("Access-Control-Allow-Origin") == "" ||
			!strings.Contains(res.Header.Get("Access-Control-Expose-Headers"), "Retry-After") {
			t.Errorf("%s: %v", path, res.Header)
		}
		lines := strings.Split(strings.TrimSpace(h.log.String()), "\n") // one before it says that the operation is deprecated
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
			t.Fatal(err)
		}
		if line["status"] != 503.0 || line["client"] != "192.0.2.7" || line["code"] != "overloaded" {
			t.Errorf("%s: it logs %v", path, line)
		}
		c.Close()
	}
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	if want := `docent_refused_total{reason="queue"} 7`; !strings.Contains(figures, want) {
		t.Errorf("the figures lack %s", want)
	}
	// Jobs and follow-ups make work as well, and are refused before they cost a use of a quota.
	if got := h.json(503, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`); got["code"] != "overloaded" {
		t.Error(got)
	}
	if n := len(h.quotas.used); n != 0 {
		t.Errorf("refusals have cost %d quotas a use", n)
	}
	// What makes no work is answered.
	h.json(404, "GET", "/v2/agent/acme/job/job_x", h.admin, "")
}

func TestAConnectionOutlivesItsRefusals(t *testing.T) {
	h := buildWith(t, router.Filled)
	c := h.dial()
	r := bufio.NewReader(c)
	large := strings.Replace(h.posed(v2, ""), fmt.Sprintf("%d\r\n\r\n%s", len(ask), ask),
		fmt.Sprintf("%d\r\n\r\n%s", 9000, strings.Repeat(" ", 9000)), 1)
	for _, sent := range []string{h.posed(v2, ""), h.posed(v2, "") + h.posed(v2, ""), large} {
		fmt.Fprint(c, sent)
		for range strings.Count(sent, "HTTP/1.1") {
			if res, text := answered(t, r); res.StatusCode != 503 || res.Close {
				t.Errorf("%d, close %v: %s", res.StatusCode, res.Close, text)
			}
		}
	}
	fmt.Fprint(c, h.raw("GET", "/healthz", "", 0))
	if res, text := answered(t, r); res.StatusCode != 200 {
		t.Errorf("then %d: %s", res.StatusCode, text)
	}
}

// held makes each question wait within its thread until go on; inside tells of each that has come there.
func (h *house) held() (inside chan thread.Ask, goOn chan struct{}) {
	inside, goOn = make(chan thread.Ask, 8), make(chan struct{})
	h.threads.hold = func(cmd thread.Ask) {
		inside <- cmd
		<-goOn
	}
	return inside, goOn
}

// until returns when something has come about.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for !so() {
		if t.Context().Err() != nil {
			t.Fatalf("not before the end of the test: %s", what)
		}
		runtime.Gosched()
	}
}

// waits returns when so many wait in the queue.
func (h *house) waits(n int) {
	h.t.Helper()
	until(h.t, fmt.Sprintf("%d wait", n), func() bool { _, waiting := h.server.Queue(); return waiting == n })
}

// Beyond those who are worked on others wait, and beyond these they are refused.
func TestAQuestionWaitsForItsTurnAndIsRefusedWhereTheQueueIsFull(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.Working, d.Bounds.Waiting, d.Bounds.Lease = 1, 1, time.Hour })
	inside, goOn := h.held()
	first, second, third := h.dial(), h.dial(), h.dial()
	fmt.Fprint(first, h.posed(v2, ""))
	<-inside
	fmt.Fprint(second, h.posed(v2, ""))
	h.waits(1)
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	for _, want := range []string{"docent_queue_working 1\n", "docent_queue_waiting 1\n", "docent_queue_seconds ",
		"docent_queue_rate "} {
		if !strings.Contains(figures, "\n"+want) {
			t.Errorf("the figures lack %s", want)
		}
	}
	fmt.Fprint(third, h.posed(v2, ""))
	if res, _ := answered(t, bufio.NewReader(third)); res.StatusCode != 503 {
		t.Errorf("the third is answered with %d", res.StatusCode)
	}
	close(goOn)
	for _, c := range []io.Reader{first, second} {
		if res, text := answered(t, bufio.NewReader(c)); res.StatusCode != 200 {
			t.Errorf("one of the others is answered with %d: %s", res.StatusCode, text)
		}
	}
	// no work
	for path, want := range map[string]int{"/v1/page/docs.acme.example": 400, "/v1/search/docs.acme.example": 400,
		"/v1/page/nowhere": 404} {
		fmt.Fprint(third, h.posed(path, ""))
		if res, text := answered(t, bufio.NewReader(third)); res.StatusCode != want {
			t.Errorf("%s: %s", path, text)
		}
	}
	until(t, "nobody is inside", func() bool { working, waiting := h.server.Queue(); return working+waiting == 0 })
}

func TestAReaderThatLeavesGivesUpItsTurn(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.Working, d.Bounds.Lease = 1, time.Hour })
	inside, goOn := h.held()
	first := h.dial()
	fmt.Fprint(first, h.posed(v2, ""))
	<-inside
	ctx, leave := context.WithCancel(t.Context())
	var gone sync.WaitGroup
	gone.Go(func() {
		req, _ := http.NewRequestWithContext(ctx, "POST", h.url+v2, strings.NewReader(ask))
		req.Header.Set("Authorization", "Bearer "+h.assistant)
		req.Header.Set("Content-Type", "application/json")
		if res, err := h.client.Do(req); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", res, err)
		}
	})
	h.waits(1)
	used := len(h.quotas.used)
	leave()
	gone.Wait()
	h.waits(0)
	if n := len(h.quotas.used); n != used {
		t.Errorf("it has cost %d uses", n-used)
	}
	close(goOn)
	if res, _ := answered(t, bufio.NewReader(first)); res.StatusCode != 200 {
		t.Errorf("the other is answered with %d", res.StatusCode)
	}
}

// A slow body, or a key that is none, holds up nobody.
func TestAPlaceIsTakenWhenTheQuestionIsThere(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.Working = 1 })
	slow := h.dial()
	q := h.posed(v2, "")
	fmt.Fprint(slow, q[:len(q)-1])
	until(t, "the slow one is there", func() bool { return h.active.Load() > 0 })
	quick := h.dial()
	fmt.Fprint(quick, q)
	if res, _ := answered(t, bufio.NewReader(quick)); res.StatusCode != 200 {
		t.Errorf("the quick one is answered with %d", res.StatusCode)
	}
	fmt.Fprint(slow, q[len(q)-1:])
	if res, _ := answered(t, bufio.NewReader(slow)); res.StatusCode != 200 {
		t.Errorf("the slow one is answered with %d", res.StatusCode)
	}
}

func TestWhoWaitsWhenTheServiceStopsIsToldSo(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.Working, d.Bounds.Lease = 1, time.Hour })
	inside, goOn := h.held()
	first, second := h.dial(), h.dial()
	fmt.Fprint(first, h.posed(v2, ""))
	<-inside
	fmt.Fprint(second, h.posed(v2, ""))
	h.waits(1)
	drained := make(chan error, 1)
	go func() { drained <- h.server.Drain(t.Context()) }()
	res, text := answered(t, bufio.NewReader(second))
	if res.StatusCode != 503 || !strings.Contains(text, `"shutting_down"`) || res.Header.Get("Retry-After") != "5" {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	close(goOn)
	if res, _ := answered(t, bufio.NewReader(first)); res.StatusCode != 200 { // it was accepted
		t.Errorf("the first is answered with %d", res.StatusCode)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// An actor that takes its time, as one that is started again after a failure does, has its place for a moment only.
func TestAnActorThatDoesNotAnswerHoldsUpNoOtherReader(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.Working, d.Bounds.Lease = 1, time.Millisecond })
	inside, goOn := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	h.threads.hold = func(thread.Ask) {
		if asked.Add(1) == 1 {
			close(inside)
			<-goOn
		}
	}
	stuck, other := h.dial(), h.dial()
	fmt.Fprint(stuck, h.posed(v2, ""))
	<-inside
	fmt.Fprint(other, h.posed(v2, ""))
	if res, _ := answered(t, bufio.NewReader(other)); res.StatusCode != 200 {
		t.Errorf("the other is answered with %d", res.StatusCode)
	}
	close(goOn)
	answered(t, bufio.NewReader(stuck))
}
