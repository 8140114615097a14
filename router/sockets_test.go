package router_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api/stream"
	"docent/router"
)

// onSockets is a server whose streams package sockets writes.
func onSockets(t testing.TB, options ...func(*router.Deps)) *house {
	t.Helper()
	return onSocketsWith(t, func(*http.Server) {}, options...)
}

func onSocketsWith(t testing.TB, change func(*http.Server), options ...func(*router.Deps)) *house {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("streams stay with their handlers on this system")
	}
	if *over != "" {
		t.Skip("over TLS streams stay with their handlers")
	}
	return buildWith(t, change, append([]func(*router.Deps){func(d *router.Deps) { d.Models = fakeModels{} }},
		options...)...)
}

// question is a question as it goes over a connection.
func (h *house) question() string { return h.raw("POST", v2, h.assistant, len(ask)) + ask }

// head reads the head of an answer.
func head(t testing.TB, r *bufio.Reader) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 {
		t.Fatalf("status %d", res.StatusCode)
	}
	return res
}

// body reads the rest of it.
func body(t testing.TB, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(b), err)
	}
	return string(b)
}

func write(t testing.TB, log *stream.Log, parts ...stream.Part) {
	t.Helper()
	if err := log.Append(parts...); err != nil {
		t.Fatal(err)
	}
}

func say(text string) stream.Part { return stream.Part{Kind: stream.Text, Text: text} }

// finish ends an answer.
func finish(t testing.TB, log *stream.Log) {
	t.Helper()
	write(t, log, stream.Part{Kind: stream.Finish})
	log.Close()
}

func TestAConnectionServesOneStreamAfterAnother(t *testing.T) {
	h := onSockets(t)
	logs := h.slow()
	c := h.dial()
	r := bufio.NewReader(c)
	for n := range 3 {
		fmt.Fprint(c, h.question())
		res := head(t, r)
		log := <-logs
		write(t, log, say(fmt.Sprintf("answer %d", n)))
		finish(t, log)
		if got := body(t, res); strings.Count(got, fmt.Sprintf("answer %d", n)) != 1 ||
			!strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("answer %d: %q", n, got)
		}
		fmt.Fprint(c, h.raw("GET", "/healthz", "", 0))
		body(t, head(t, r))
	}
	if got := h.taken.Load(); got != 3 {
		t.Errorf("%d of 3 streams went to the sockets", got)
	}
}

// However a question and what comes before and after it arrive, each is answered as itself, in order.
func TestAConnectionIsInOrderAfterEachAnswer(t *testing.T) {
	asking := func(text string) string {
		return strings.Replace(strings.Replace(ask, `"text":"Hi?"`, `"text":"`+text+`"`, 1), `"content":"Hi?"`,
			`"content":""`, 1)
	}
	h := onSockets(t)
	asked := make(chan string, 1)
	h.threads.answer = func(cmd thread.Ask, log *stream.Log) {
		asked <- cmd.Text
		log.AppendText("about " + cmd.Text[:3])
		log.Append(stream.Part{Kind: stream.Finish})
		log.Close()
	}
	question := func(body string) string { return h.raw("POST", v2, h.assistant, len(body)) + body }
	c := h.dial()
	r := bufio.NewReader(c)
	stream := func(text string) {
		t.Helper()
		got := body(t, head(t, r))
		if want := <-asked; want != text || !strings.Contains(got, `"about `+text[:3]+`"`) {
			t.Errorf("asked %.20q, which came as %.20q, the answer is %q", text, want, got)
		}
	}
	other := func(status int) {
		t.Helper()
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, res); res.StatusCode != status {
			t.Errorf("status %d, want %d: %s", res.StatusCode, status, got)
		}
	}
	fmt.Fprint(c, question(asking("one")))
	stream("one")
	fmt.Fprint(c, question(asking("")+" ")) // refused, whole in one piece
	other(400)
	fmt.Fprint(c, question(asking("two")))
	stream("two")
	long := "long " + strings.Repeat("question ", 1000) + "end" // more than is read at once
	fmt.Fprint(c, question(asking(long)))
	stream(long)
	search := `{"query":"install"}`
	fmt.Fprint(c, h.raw("POST", "/v1/search/docs.acme.example", h.assistant, len(search))+search)
	other(200)
	three := question(asking("three"))
	fmt.Fprint(c, h.raw("POST", "/v1/search/docs.acme.example", h.assistant, len(search))+search, three[:len(three)-20])
	other(200)
	fmt.Fprint(c, three[len(three)-20:])
	stream("three")
	fmt.Fprint(c, question(asking("four")), question(asking("five")))
	stream("four")
	stream("five")
	fmt.Fprint(c, h.raw("GET", "/healthz", "", 0))
	other(200)
	if got := h.taken.Load(); got != 6 {
		t.Errorf("%d of 6 streams went to the sockets", got)
	}
}

// Requests that came while a stream was written are answered after it, in order, wherever their bytes were meanwhile.
func TestRequestsBehindAStreamWaitTheirTurn(t *testing.T) {
	h := onSockets(t)
	logs := h.slow()
	c := h.dial()
	r := bufio.NewReader(c)
	third := h.question()
	fmt.Fprint(c, h.question(), h.question(), third[:40]) // the first bytes of the others are read with the first request
	one := head(t, r)
	finish(t, <-logs)
	first := body(t, one)
	two := head(t, r)
	log := <-logs
	fmt.Fprint(c, third[40:], h.raw("GET", "/healthz", "", 0)) // while the stream is written
	write(t, log, say("second"))
	finish(t, log)
	second := body(t, two)
	three := head(t, r)
	finish(t, <-logs)
	if third := body(t, three); strings.Contains(first, "second") || !strings.Contains(second, "second") ||
		strings.Contains(third, "second") {
		t.Errorf("the answers are\n%s\n%s\n%s", first, second, third)
	}
	body(t, head(t, r))
}

// A part that no socket takes at once is written piece by piece, and its slow reader keeps its stream.
func TestAPartIsLargerThanASocketTakes(t *testing.T) {
	h := onSockets(t, func(d *router.Deps) { d.Bounds.Pace = time.Millisecond })
	logs := h.slow()
	c, other := h.dial(), h.dial()
	fmt.Fprint(c, h.question())
	r := bufio.NewReader(c)
	res := head(t, r)
	log := <-logs
	text := strings.Repeat("0123456789abcdef", 1<<20)
	write(t, log, say(text), say("behind it"))
	fmt.Fprint(other, h.question()) // while the first one is full, others go on
	fast := head(t, bufio.NewReader(other))
	finish(t, <-logs)
	body(t, fast)
	finish(t, log)
	got := body(t, res)
	if n := strings.Count(got, text); n != 1 || !strings.Contains(got, "behind it") ||
		!strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("of %d bytes, %d arrived, the text %d times", len(text), len(got), n)
	}
	fmt.Fprint(c, h.raw("GET", "/healthz", "", 0))
	body(t, head(t, r))
}

// The end of a connection is noticed while there is nothing to write.
func TestAClientThatGoesIsNoticedInSilence(t *testing.T) {
	for name, leave := range map[string]func(c net.Conn) error{
		"closes": func(c net.Conn) error { return c.Close() },
		"resets": func(c net.Conn) error {
			tcp := below(c)
			tcp.SetLinger(0)
			return tcp.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := onSockets(t)
			logs := h.slow()
			c := h.dial()
			fmt.Fprint(c, h.question())
			head(t, bufio.NewReader(c))
			log := <-logs
			if err := leave(c); err != nil {
				t.Fatal(err)
			}
			if err := h.server.Drain(t.Context()); err != nil { // returns when no stream is open
				t.Fatal(err)
			}
			write(t, log, say("the turn goes on"))
			figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
			for _, want := range []string{`docent_streams_ended_total{form="v2",how="gone"} 1`,
				`docent_streams_open{form="v2"} 0`} {
				if !strings.Contains(figures, want) {
					t.Errorf("the figures lack %s", want)
				}
			}
		})
	}
}

func TestAStreamOnASocketIsAccountedFor(t *testing.T) {
	h := onSockets(t)
	logs := h.slow()
	req, _ := http.NewRequest("POST", h.url+v2, strings.NewReader(ask))
	req.Header.Set("Authorization", "Bearer "+h.assistant)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "my-request")
	res, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	log := <-logs
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	for _, want := range []string{`docent_streams_open{form="v2"} 1`, "docent_http_requests_in_flight 2"} {
		if !strings.Contains(figures, want) {
			t.Errorf("the figures lack %s", want)
		}
	}
	write(t, log, say("words"))
	finish(t, log)
	got := body(t, res)
	if err := h.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var entry map[string]any
	for line := range strings.Lines(h.log.String()) {
		if strings.Contains(line, "my-request") {
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]any{"method": "POST", "status": 200.0, "bytes": float64(len(got)),
		"how": "finished", "project": "acme", "thread": res.Header.Get("X-Thread-Id"),
		"client": "127.0.0.1", "route": "/discovery/v2/assistant/:domain/message"} {
		if entry[name] != want {
			t.Errorf("%s is %v in the log, want %v", name, entry[name], want)
		}
	}
	figures, _ = h.text(200, "GET", "/metrics", h.admin, "")
	for _, want := range []string{`docent_streams_open{form="v2"} 0`, "docent_http_requests_in_flight 1",
		`docent_streams_ended_total{form="v2",how="finished"} 1`,
		fmt.Sprintf(`docent_stream_bytes_total{form="v2"} %d`, len(got)), `docent_stream_parts_total{form="v2"} 3`} {
		if !strings.Contains(figures, want) {
			t.Errorf("the figures lack %s", want)
		}
	}
}

// What the sockets cannot have stays with its handler, and is answered the same.
func TestStreamsThatStayWithTheirHandlers(t *testing.T) {
	h := onSockets(t)
	want, _ := h.text(200, "POST", v1, h.assistant, ask)
	same := func(name, got string) {
		t.Helper()
		if cut := func(s string) string {
			return s[strings.Index(s, "\nh:"):strings.Index(s,
				"\n8:")]
		}; cut(got) != cut(want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, start := range map[string]func(*httptest.Server){
		"TLS":          (*httptest.Server).StartTLS,
		"HTTP/2":       func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
		"not attached": (*httptest.Server).Start,
	} {
		web := httptest.NewUnstartedServer(h.server)
		start(web)
		defer web.Close()
		req, _ := http.NewRequest("POST", web.URL+v1, strings.NewReader(ask))
		req.Header.Set("Authorization", "Bearer "+h.assistant)
		req.Header.Set("Content-Type", "application/json")
		res, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if (name == "HTTP/2") != (res.ProtoMajor == 2) {
			t.Errorf("%s: the protocol is %s", name, res.Proto)
		}
		same(name, body(t, res))
		res.Body.Close()
	}
	recorder := httptest.NewRecorder()
	req := httptest.NewRequest("POST", v1, strings.NewReader(ask))
	req.Header.Set("Authorization", "Bearer "+h.assistant)
	req.Header.Set("Content-Type", "application/json")
	h.server.ServeHTTP(recorder, req)
	same("no connection", recorder.Body.String())
	c := h.dial()
	fmt.Fprint(c, strings.Replace(h.raw("POST", v1, h.assistant, len(ask)), "HTTP/1.1", "HTTP/1.0", 1), ask)
	same("HTTP/1.0", body(t, head(t, bufio.NewReader(c))))
	if got := h.taken.Load(); got != 1 { // the one that they are compared with
		t.Errorf("%d went to the sockets", got)
	}
}

// A client that asks for the end of the connection gets it after the whole answer.
func TestAConnectionIsClosedAfterTheAnswerWhereTheClientWantsThat(t *testing.T) {
	h := onSockets(t)
	logs := h.slow()
	c := h.dial()
	fmt.Fprint(c, strings.Replace(h.question(), "Host:", "Connection: close\r\nHost:", 1))
	r := bufio.NewReader(c)
	res := head(t, r)
	if !res.Close {
		t.Error("the head does not say that the connection ends")
	}
	log := <-logs
	fmt.Fprint(c, "nobody reads this")
	write(t, log, say(strings.Repeat("x", 1<<20)))
	finish(t, log)
	if got := body(t, res); !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("%d bytes", len(got))
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection: %v", err)
	}
}

// idle ends a stream on a connection, which then waits for a request.
func (h *house) idle(logs <-chan *stream.Log) *bufio.Reader {
	h.t.Helper()
	c := h.dial()
	fmt.Fprint(c, h.question())
	r := bufio.NewReader(c)
	res := head(h.t, r)
	finish(h.t, <-logs)
	body(h.t, res)
	return r
}

func TestAnIdleConnectionEndsWithItsTimeAndWithTheServer(t *testing.T) {
	end := func(r *bufio.Reader) {
		t.Helper()
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("the connection: %v", err)
		}
	}
	t.Run("time", func(t *testing.T) {
		h := onSocketsWith(t, func(server *http.Server) { server.IdleTimeout = 20 * time.Millisecond })
		end(h.idle(h.slow()))
	})
	t.Run("shutdown", func(t *testing.T) {
		h := onSockets(t)
		r := h.idle(h.slow())
		if err := h.web.Config.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		end(r)
	})
	t.Run("close", func(t *testing.T) {
		h := onSockets(t)
		r := h.idle(h.slow())
		h.server.Close()
		end(r)
	})
}

// A stop that cannot wait tells the readers, whole streams and half written ones, and leaves no connection.
func TestStreamsOnSocketsEndWithTheServer(t *testing.T) {
	h := onSockets(t)
	logs := h.slow()
	open, full := h.dial(), h.dial()
	fmt.Fprint(open, h.question())
	res := head(t, bufio.NewReader(open))
	<-logs
	fmt.Fprint(full, h.question())
	head(t, bufio.NewReader(full))
	write(t, <-logs, say(strings.Repeat("x", 32<<20))) // more than the socket takes
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.server.Drain(ctx); err == nil {
		t.Error("the drain says that all streams have ended")
	}
	if got := body(t, res); !strings.Contains(got, "the service is restarting") ||
		!strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("the reader was told %q", got)
	}
	h.server.Close()
	if err := h.server.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range []net.Conn{open, full} {
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("the connection: %v", err)
		}
	}
}

// An open stream that waits for its model has no goroutine.
func TestAnOpenStreamHoldsNoGoroutine(t *testing.T) {
	h := onSockets(t)
	logs := h.slow()
	before := runtime.NumGoroutine()
	const streams = 200
	var open [streams]*http.Response
	var all [streams]*stream.Log
	for i := range streams {
		c := h.dial()
		fmt.Fprint(c, h.question())
		open[i], all[i] = head(t, bufio.NewReader(c)), <-logs
	}
	for h.taken.Load() < streams || runtime.NumGoroutine() > before+streams/10 { // handlers return a moment later
		runtime.Gosched()
	}
	for i := range streams {
		write(t, all[i], say(fmt.Sprintf("for %d", i)))
		finish(t, all[i])
	}
	for i := range streams {
		if got := body(t, open[i]); !strings.Contains(got, fmt.Sprintf("for %d\"", i)) {
			t.Errorf("stream %d: %q", i, got)
		}
	}
}

// Text that comes in quick succession goes together; the end does not wait for the pace.
func TestTextIsPaced(t *testing.T) {
	h := onSockets(t, func(d *router.Deps) { d.Bounds.Pace = time.Hour })
	logs := h.slow()
	c := h.dial()
	fmt.Fprint(c, h.question())
	res := head(t, bufio.NewReader(c))
	log := <-logs
	lines := bufio.NewReader(res.Body)
	if _, err := lines.ReadString('\n'); err != nil { // the start has been written, alone
		t.Fatal(err)
	}
	write(t, log, say("first"))
	var got bytes.Buffer
	for !strings.Contains(got.String(), "first") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(line)
	}
	write(t, log, say("second"))
	write(t, log, say("third"))
	finish(t, log)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "third") {
		t.Errorf("%q, %v", rest, err)
	}
	if err := h.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	figures, _ := h.text(200, "GET", "/metrics", h.admin, "")
	// the start, the first text, and all the rest
	if want := `docent_stream_flushes_total{form="v2"} 3`; !strings.Contains(figures, want) {
		t.Errorf("the figures lack %s", want)
	}
}

// Both ways of writing streams give the same bytes, to the last one of their heads.
func TestBothWaysGiveTheSameBytes(t *testing.T) {
	answers := map[string][]string{}
	changing := regexp.MustCompile(`(?:thr|msg|req)_[0-9A-Za-z]+|Date: [^\r]*`)
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		h.threads.answer = func(_ thread.Ask, log *stream.Log) {
			write(t, log, stream.Part{Kind: stream.Source, ID: "s1", URL: "https://docs.acme.example/page", Title: "Page"})
			for n := range 100 {
				write(t, log, say(strings.Repeat("words ", n)))
			}
			finish(t, log)
		}
		for _, path := range []string{v1, v2} {
			c := h.dial()
			fmt.Fprint(c, strings.Replace(h.posed(path, ""), "Host:", "Connection: close\r\nHost:", 1))
			whole, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			top, chunks, _ := bytes.Cut(whole, []byte("\r\n\r\n"))
			text, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(chunks)))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(changing.ReplaceAllString(string(top), "…"), "\r\n")
			slices.Sort(lines)
			answers[path] = append(answers[path], strings.Join(lines, "\n")+"\n\n"+changing.ReplaceAllString(string(text), "…"))
		}
	})
	for path, ways := range answers {
		if len(ways) != 2 || ways[0] != ways[1] || !strings.Contains(ways[0], "words words") {
			t.Errorf("%s is answered in %d ways, which differ:\n%.2000q", path, len(ways), ways)
		}
	}
}
