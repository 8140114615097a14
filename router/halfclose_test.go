package router_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"docent/api"
	"docent/router"
)

// A client may say that it sends nothing more and read on (RFC 9112, 9.6): its stream is whole, and the connection
// ends after it.
func TestAHalfClosedConnectionKeepsItsStream(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		for name, form := range map[string]string{"POST": "HTTP/1.1", "POST of HTTP/1.0": "HTTP/1.0"} {
			h := build(t, way)
			logs := h.slow()
			c := h.dial()
			fmt.Fprint(c, strings.Replace(h.question(), "HTTP/1.1", form, 1))
			if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(c)
			res := head(t, r)
			log := <-logs
			lines := bufio.NewReader(res.Body)
			for { // the server knows of it: it has written to find out whether anybody is there
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if strings.HasPrefix(line, ":") {
					break
				}
			}
			write(t, log, say("after the half close"))
			finish(t, log)
			rest, err := io.ReadAll(lines)
			if err != nil || !strings.Contains(string(rest), "after the half close") ||
				!strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
				t.Errorf("%s: %v after %q", name, err, rest)
			}
			if _, err := r.ReadByte(); err != io.EOF {
				t.Errorf("%s: the connection: %v", name, err)
			}
			if err := h.server.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
			if want := `docent_streams_ended_total{form="v2",how="finished"} 1`; !strings.Contains(figures, want) {
				t.Errorf("%s: the figures lack %s", name, want)
			}
		}
	})
}

// A stream is found and resumed also for a client that sends nothing more, which ends the request's context.
func TestAStreamIsResumedForAClientThatSendsNothingMore(t *testing.T) {
	h := build(t)
	_, asked := h.text(200, "POST", v2, h.assistant, ask)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, "GET", v2+"/"+asked.Header.Get("X-Thread-Id")+"/stream", nil)
	req.Header.Set("Authorization", "Bearer "+h.assistant)
	res := httptest.NewRecorder()
	h.server.ServeHTTP(res, req)
	if got := res.Body.String(); res.Code != 200 || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("%d %q", res.Code, got)
	}
}

// The same for a job that is followed; and one who has gone is noticed.
func TestAHalfClosedConnectionKeepsFollowingItsJob(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.create()
	path := "/v2/agent/acme/job/" + id + "/events"
	c, gone := h.dial(), h.dial()
	for _, c := range []net.Conn{c, gone} {
		fmt.Fprint(c, h.raw("GET", path, h.admin, 0))
	}
	reader := bufio.NewReader(c)
	res := head(t, reader)
	head(t, bufio.NewReader(gone))
	c.(interface{ CloseWrite() error }).CloseWrite()
	gone.Close()
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ":") {
			break
		}
	}
	for figures := ""; !strings.Contains(figures, `docent_streams_ended_total{form="job",how="gone"} 1`); {
		figures, _ = h.text(200, "GET", "/metrics", h.admin, "")
	}
	until(t, "the log says so", func() bool { return strings.Contains(h.log.String(), `"how":"gone"`) })
	h.jobs.change(api.JobID(id), func(r *api.JobRow) { r.Job.Status = api.JobCompleted })
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "event: end") {
		t.Errorf("%v after %q", err, rest)
	}
}

// Nothing is answered with an empty 200 because the caller sends nothing more.
func TestNoAnswerIsEmptyWhereTheClientEndsEarly(t *testing.T) {
	h := build(t)
	id := h.create()
	// answer sends a request, half closes the connection and reads what comes.
	answer := func(request string) string {
		t.Helper()
		c := h.dial()
		fmt.Fprint(c, request)
		if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c)
		return string(got)
	}
	for name, request := range map[string]string{
		"a job's body is cut short":      h.raw("POST", "/v2/agent/acme/job", h.admin, 100) + `{"prompt":`,
		"a question's body is cut short": h.raw("POST", v2, h.assistant, len(ask)+1) + ask,
		"the first chunk is cut short": strings.Replace(h.raw("POST", "/v2/agent/acme/job", h.admin, 0),
			"Content-Length: 0", "Transfer-Encoding: chunked", 1) +
			"20\r\n{\"prompt\":",
	} {
		if got := answer(request); !strings.HasPrefix(got, "HTTP/1.1 400 ") ||
			!strings.Contains(got, "the body ends before its announced length") {
			t.Errorf("%s: %q", name, got)
		}
	}
	held := answer(h.raw("GET", "/v2/agent/acme/job/"+id+"?wait=60", h.admin, 0))
	if held != "" {
		t.Errorf("a poll that was held is answered %q", held)
	}
	for range 20 {
		got := answer(h.raw("GET", "/v2/agent/acme/jobs", h.admin, 0))
		if got == "" {
			continue // it was broken off
		}
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body := body(t, res); !strings.HasPrefix(body, `{"jobs":`) {
			t.Errorf("the list is %q", body)
		}
	}
}
