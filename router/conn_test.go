package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What net/http says by itself, to what it does not take for a request, has the form of every other error.
func TestWhatIsNoRequestIsAnsweredInTheAPIsForm(t *testing.T) {
	h := build(t)
	seen := map[string]bool{}
	for _, c := range []struct {
		status     int
		code, says string
		request    string
	}{
		{400, "invalid_request", "is not HTTP that can be read", "nonsense\r\n\r\n"},
		{400, "invalid_request", "missing required Host header", "GET /healthz HTTP/1.1\r\n\r\n"},
		{400, "invalid_request", "is not HTTP that can be read", "GET /healthz HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"},
		{417, "expectation_failed", "Expect", "GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: a miracle\r\n\r\n"},
		{431, "headers_too_large", "send fewer", "GET /healthz HTTP/1.1\r\nHost: a\r\nCookie: " +
			strings.Repeat("x", 2<<20) + "\r\n\r\n"},
		{501, "not_implemented", "chunked", "POST " + v2 + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"},
		{505, "version_not_supported", "1.0 or 1.1", "GET /healthz HTTP/3.0\r\nHost: a\r\n\r\n"},
	} {
		for _, before := range []bool{false, true} { // also behind a request that was answered
			conn := h.dial()
			r := bufio.NewReader(conn)
			if before {
				fmt.Fprint(conn, h.raw("GET", "/healthz", "", 0))
				body(t, head(t, r))
			}
			go fmt.Fprint(conn, c.request) // it may not be read to its end
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Errorf("%q: %v", c.request[:20], err)
				continue
			}
			got := decodeJSON(t, res.Body)
			id := res.Header.Get("X-Request-Id")
			if res.StatusCode != c.status || got["code"] != c.code || !strings.Contains(got["error"].(string), c.says) ||
				got["message"] != got["error"] ||
				res.Header.Get("Content-Type") != "application/json" || !res.Close ||
				res.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%.40q: %d %v %v", c.request, res.StatusCode, got, res.Header)
			}
			if id == "" || got["requestId"] != id || seen[id] || !strings.Contains(h.log.String(), id) {
				t.Errorf("%.40q: the request is called %q, in the body %v", c.request, id, got["requestId"])
			}
			if (got["details"] != nil) != (c.status == 400) {
				t.Errorf("%.40q: details %v", c.request, got["details"])
			}
			seen[id] = true
		}
	}
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	if want := `docent_http_requests_total{class="unknown",method="other",route="unknown",status="431"} 2`; !strings.Contains(figures,
		want) {
		t.Errorf("the figures lack %s", want)
	}
}

func TestTheServiceTellsItsMethods(t *testing.T) {
	h := build(t)
	c := h.dial()
	fmt.Fprint(c, "OPTIONS * HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n", h.raw("GET", "/healthz", "", 0))
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 204 || res.Header.Get("Allow") != "GET, HEAD, OPTIONS, POST" ||
		res.Header.Get("X-Request-Id") != "mine" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	body(t, head(t, r))
}

// Some clients send a line end behind the body of a POST (RFC 9112, 2.2), which is no part of the next request.
func TestAnEmptyLineBehindAQuestionIsNoRequest(t *testing.T) {
	for name, pieces := range map[string][]string{
		"at once":              {"\r\n"},
		"by itself":            {"", "\r\n"},
		"byte by byte":         {"", "\r", "\n", "\r", "\n"},
		"half with the body":   {"\r", "\n"},
		"without the return":   {"\n"},
		"only with the next":   {"", ""},
		"while it is answered": {"", "", "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := onSockets(t)
			logs := h.slow()
			c := h.dial()
			r := bufio.NewReader(c)
			fmt.Fprint(c, h.question(), pieces[0])
			res := head(t, r)
			log := <-logs
			write(t, log, say("words"))
			if len(pieces) == 3 {
				fmt.Fprint(c, pieces[2])
			}
			finish(t, log)
			body(t, res)
			for _, piece := range pieces[1:] {
				if len(pieces) != 3 {
					fmt.Fprint(c, piece)
				}
			}
			fmt.Fprint(c, h.question())
			res = head(t, r)
			finish(t, <-logs)
			body(t, res)
			fmt.Fprint(c, h.raw("GET", "/healthz", "", 0))
			body(t, head(t, r))
		})
	}
	// More than that is none: the connection ends, and is not read forever.
	h := onSockets(t)
	logs := h.slow()
	c := h.dial()
	fmt.Fprint(c, h.question())
	reader := bufio.NewReader(c)
	res := head(t, reader)
	finish(t, <-logs)
	body(t, res)
	fmt.Fprint(c, strings.Repeat("\r\n", 100))
	c.(interface{ CloseWrite() error }).CloseWrite()
	if got, _ := io.ReadAll(reader); !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Errorf("%q", got)
	}
}
