package router_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api/stream"
	"docent/router"
)

// dial speaks to the server without the patience of an HTTP client.
func (h *house) dial() net.Conn {
	h.t.Helper()
	var c net.Conn
	var err error
	if host, secure := strings.CutPrefix(h.url, "https://"); secure {
		c, err = tls.Dial("tcp", host, identity().client)
	} else {
		c, err = net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

func (h *house) raw(method, path, key string, length int) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: docent\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", method, path, key, length)
}

func TestAReaderThatTakesNothingInLosesItsStreamAndNoOther(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		t.Parallel()
		// Longer than the other reader, which takes all in, may stand still on a machine that is busy.
		h := build(t, way, func(d *router.Deps) { d.Bounds.WriteTimeout = 8 * time.Second })
		logs := h.slow()
		stalled := h.dial()
		fmt.Fprint(stalled, h.raw("POST", v2, h.assistant, len(ask)), ask)
		log := <-logs
		other := h.do("GET", v2+"/"+string(h.threadOf(log))+"/stream", h.assistant, "")
		read := make(chan int64)
		go func() {
			n, err := io.Copy(io.Discard, other.Body)
			if err != nil {
				t.Error(err)
			}
			read <- n
		}()
		const parts, size = 400, 64 << 10 // more than the sockets take in
		piece := strings.Repeat("x", size)
		for range parts {
			if err := log.Append(stream.Part{Kind: stream.Text, Text: piece}); err != nil {
				t.Fatal(err)
			}
		}
		log.Append(stream.Part{Kind: stream.Finish})
		log.Close()
		if n := <-read; n < parts*size {
			t.Errorf("the other reader got %d bytes", n)
		}
		if err := h.server.Drain(t.Context()); err != nil { // returns when the stalled one is given up
			t.Fatal(err)
		}
		figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
		for _, want := range []string{`docent_streams_ended_total{form="v2",how="stalled"} 1`,
			`docent_streams_ended_total{form="v2",how="finished"} 1`} {
			if !strings.Contains(figures, want) {
				t.Errorf("the figures lack %s", want)
			}
		}
		until(t, "the log says how both ended", func() bool {
			lines := h.log.String()
			return strings.Contains(lines, `"how":"stalled"`) && strings.Contains(lines, `"how":"finished"`)
		})
	})
}

func (h *house) threadOf(log *stream.Log) string {
	h.threads.mu.Lock()
	defer h.threads.mu.Unlock()
	for id, s := range h.threads.all {
		if s.turn.Log == log {
			return string(id)
		}
	}
	return ""
}

func TestABodyThatDoesNotArriveIsNotWaitedFor(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.ReadTimeout = 50 * time.Millisecond })
	c := h.dial()
	fmt.Fprint(c, h.raw("POST", "/v2/agent/acme/job", h.admin, 1000), `{"prompt":`)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body := decodeJSON(t, res.Body); res.StatusCode != 400 || body["code"] != "invalid_json" || !res.Close {
		t.Errorf("%d %v, close %v", res.StatusCode, body, res.Close)
	}
	// One that is refused before it is read does not hold the connection either.
	c = h.dial()
	fmt.Fprint(c, h.raw("POST", "/v2/agent/acme/job", "dct_adm_none", 1000), `{"prompt":`)
	r := bufio.NewReader(c)
	if res, err = http.ReadResponse(r, nil); err != nil || res.StatusCode != 401 {
		t.Fatalf("%v, %v", res, err)
	}
	io.Copy(io.Discard, res.Body)
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection stays open: %v", err)
	}
	// One that is cut off is said to be.
	c = h.dial()
	fmt.Fprint(c, h.raw("POST", "/v2/agent/acme/job", h.admin, 1000), `{"prompt":`)
	c.(interface{ CloseWrite() error }).CloseWrite()
	if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && res.StatusCode >= 500 {
		t.Errorf("a body cut off: %d", res.StatusCode)
	}
	if h.jobs.count() != 0 {
		t.Error("half a body made a job")
	}
}

// A stream's last write has its deadline; what the same connection is used for later has its own.
func TestAConnectionOutlivesItsStreamsDeadline(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		t.Parallel()
		h := build(t, way, func(d *router.Deps) {
			d.Bounds.WriteTimeout, d.Bounds.ReadTimeout = 200*time.Millisecond, 200*time.Millisecond
		})
		h.threads.answer = func(cmd thread.Ask, log *stream.Log) { log.Append(stream.Part{Kind: stream.Finish}); log.Close() }
		id := h.create()
		c := h.dial()
		r := bufio.NewReader(c)
		for range 2 {
			fmt.Fprint(c, h.raw("POST", v2, h.assistant, len(ask)), ask)
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), "[DONE]") {
				t.Fatalf("%q, %v", b, err)
			}
			fmt.Fprint(c, h.raw("GET", "/v2/agent/acme/job/"+id+"?wait=1", h.admin, 0)) // longer than the deadlines
			if res, err = http.ReadResponse(r, nil); err != nil || res.StatusCode != 200 {
				t.Fatalf("%v, %v", res, err)
			}
			decodeJSON(t, res.Body)
		}
	})
}
