package router_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/actors/thread"
	"docent/router"
)

// posed is a question with further lines of its head, ended where there are any.
func (h *house) posed(path, lines string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: docs.acme.example\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s", path, h.assistant, lines, len(ask), ask)
}

// answered reads an answer to its end, and gives its bytes without what is different each time.
func answered(t testing.TB, r *bufio.Reader) (status int, text string) {
	t.Helper()
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		b.WriteString(line)
		if line == "\r\n" {
			break
		}
	}
	text = b.String()
	if _, err := fmt.Sscanf(text, "HTTP/1."+text[len("HTTP/1."):][:1]+" %d", &status); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	length := 0
	if m := regexp.MustCompile(`(?m)^Content-Length: (\d+)`).FindStringSubmatch(text); m != nil {
		fmt.Sscan(m[1], &length)
	} else {
		res, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(text), r)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return status, body(t, res)
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^Date: .* GMT\r$`).ReplaceAllString(text+string(rest), "Date: then\r")
	return status, regexp.MustCompile(`(?m)^Retry-After: [23]\r$`).ReplaceAllString(text, "Retry-After: soon\r")
}

// through counts how many of the requests that do makes net/http reads.
func (h *house) through(do func()) int64 {
	before := h.active.Load()
	do()
	return h.active.Load() - before
}

// rested forgets that connections waited for their next request before.
func (h *house) rested() {
	select {
	case <-h.idled:
	default:
	}
}

// What the door says is what the router says, to each of the operations that it may turn away.
func TestTheDoorAnswersAsTheRouterDoes(t *testing.T) {
	metrics := prometheus.NewRegistry()
	h := build(t, func(d *router.Deps) { d.Metrics = metrics })
	h.server.Fill(0)
	counted := func() (text string) {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if name := f.GetName(); name == "docent_http_requests_total" || name == "docent_refused_total" {
				for _, m := range f.GetMetric() {
					text += fmt.Sprintf("%s %v\n", name, m)
				}
			}
		}
		return strings.ReplaceAll(text, "value:2", "value:1")
	}
	for _, path := range []string{v1, v2, "/v1/assistant/docs.acme.example/message", "/v2/assistant/d/message", "/v1/search/d", "/discovery/v1/page/d", "/v1/feedback/.d"} {
		var texts, logs, counts [2]string
		for i, odd := range []string{"", "X-Odd: \xff\r\n"} { // bytes that only net/http reads
			h.log.buf.Reset()
			c := h.dial()
			n := h.through(func() {
				fmt.Fprint(c, h.posed(path, "x-request-id:  a/b+c \r\nX-Forwarded-For: 192.0.2.7\r\nConnection: Keep-Alive\r\n"+odd))
				_, texts[i] = answered(t, bufio.NewReader(c))
			})
			if n != int64(i) {
				t.Errorf("%s: net/http has read %d requests", path, n)
			}
			counts[i] = counted()
			var line map[string]any
			if err := json.Unmarshal([]byte(h.log.String()), &line); err != nil {
				t.Fatal(err)
			}
			delete(line, "time")
			delete(line, "took")
			logs[i] = fmt.Sprint(line)
			c.Close()
		}
		if texts[0] != texts[1] || !strings.HasPrefix(texts[0], "HTTP/1.1 503 ") || !strings.Contains(texts[0], "soon") || strings.Count(texts[0], "a/b+c") != 2 {
			t.Errorf("%s: the door says\n%s\nthe router\n%s", path, texts[0], texts[1])
		}
		if logs[0] != logs[1] || !strings.Contains(logs[0], "192.0.2.7") {
			t.Errorf("%s: the door logs\n%s\nthe router\n%s", path, logs[0], logs[1])
		}
		if !strings.Contains(counts[0], path[strings.LastIndex(path, "/v"):][:4]) || strings.Count(counts[0], "\n") != strings.Count(counts[1], "\n") {
			t.Errorf("%s: the door counts\n%s\nthe router\n%s", path, counts[0], counts[1])
		}
	}
}

func TestTheDoorTurnsAwayOnConnectionsThatStay(t *testing.T) {
	h := build(t)
	c := h.dial()
	r := bufio.NewReader(c)
	asks := func(want int, read int64) {
		t.Helper()
		n := h.through(func() {
			fmt.Fprint(c, h.posed(v2, ""))
			if status, text := answered(t, r); status != want {
				t.Errorf("answered with %d: %s", status, text)
			}
			if read > 0 {
				<-h.idled
			}
		})
		if n != read {
			t.Errorf("net/http has read %d requests", n)
		}
	}
	h.server.Fill(0)
	asks(503, 0)
	asks(503, 0)
	h.server.Drop()
	asks(200, 1)
	asks(200, 1)
	h.server.Fill(0)
	asks(503, 0)
	h.server.Fill(1)
	asks(200, 1) // nobody is inside: it is let in
	asks(200, 1)
	h.server.Fill(0)
	asks(503, 0)
	if n := h.server.Inside(); n != 0 {
		t.Errorf("%d are inside", n)
	}
}

// Whoever was let in at the door is inside until the work is done, and nobody else is let in meanwhile.
func TestAPlaceAtTheDoorIsThatOfTheQuestion(t *testing.T) {
	h := build(t)
	h.server.Fill(1)
	inside, goOn := make(chan thread.Ask, 4), make(chan struct{})
	h.threads.hold = func(cmd thread.Ask) {
		inside <- cmd
		<-goOn
	}
	c, other := h.dial(), h.dial()
	fmt.Fprint(c, h.posed(v2, ""))
	<-inside
	if n := h.server.Inside(); n != 1 {
		t.Errorf("%d are inside", n)
	}
	fmt.Fprint(other, h.posed(v2, ""))
	if status, _ := answered(t, bufio.NewReader(other)); status != 503 {
		t.Errorf("the other is answered with %d", status)
	}
	close(goOn)
	answered(t, bufio.NewReader(c))
	fmt.Fprint(other, h.posed(v2, ""))
	if status, _ := answered(t, bufio.NewReader(other)); status != 200 {
		t.Errorf("then the other is answered with %d", status)
	}
	for path, want := range map[string]int{"/v1/page/docs.acme.example": 400, "/v1/search/docs.acme.example": 400, "/v1/page/nowhere": 404} { // no work for an actor
		fmt.Fprint(c, h.posed(path, ""))
		if status, text := answered(t, bufio.NewReader(c)); status != want {
			t.Errorf("%s: %s", path, text)
		}
	}
	if n := h.server.Inside(); n != 0 {
		t.Errorf("%d are inside at the end", n)
	}
}

// What is not exactly one request at its time is net/http's.
func TestTheDoorLetsThroughWhatItIsNotCertainOf(t *testing.T) {
	h := build(t)
	q := h.posed(v2, "")
	large := strings.Replace(q, fmt.Sprintf("%d\r\n\r\n%s", len(ask), ask), fmt.Sprintf("%d\r\n\r\n%s", 9000, strings.Repeat(" ", 9000)), 1)
	for name, c := range map[string]struct {
		sent string
		want []int
		read int64
	}{
		"two at once":           {q + q, []int{503, 503}, 2},
		"two and the begin":     {q + q + q[:9] + q[9:], []int{503, 503, 503}, 3},
		"larger than a buffer":  {large, []int{503}, 1},
		"in chunks":             {strings.Replace(q, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(ask), ask), "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1), []int{503}, 1},
		"expects to go on":      {h.posed(v2, "Expect: 100-continue\r\n"), []int{503}, 1},
		"the last":              {h.posed(v2, "Connection: close\r\n"), []int{503}, 1},
		"another version":       {strings.Replace(q, "HTTP/1.1", "HTTP/1.0", 1), []int{503}, 1},
		"no host":               {strings.Replace(q, "Host: docs.acme.example\r\n", "", 1), []int{400}, 1},
		"another operation":     {h.raw("GET", v2+"?x=y", h.assistant, 0), []int{405}, 1},
		"an operation unknown":  {h.posed("/v3/assistant/d/message", ""), []int{404}, 1},
		"an empty part":         {h.posed("/v1/search//", ""), []int{404}, 1},
		"a part that goes up":   {h.posed("/v1/search/..", ""), []int{404}, 1},
		"a line that goes on":   {h.posed(v2, "X-A: b\r\n c\r\n"), []int{503}, 1},
		"line ends of one byte": {strings.ReplaceAll(q, "\r\n", "\n"), []int{503}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h.server.Fill(0)
			conn := h.dial()
			defer conn.Close()
			r := bufio.NewReader(conn)
			n := h.through(func() {
				fmt.Fprint(conn, c.sent)
				for _, want := range c.want {
					if status, text := answered(t, r); status != want {
						t.Errorf("answered with %s", text)
					}
				}
			})
			if n != c.read {
				t.Errorf("net/http has read %d requests", n)
			}
		})
	}
}

// Bytes of the next request that net/http has read already leave no boundary that the door could take for one, even where
// what follows looks like a request.
func TestARequestWithinAnotherIsNoRequest(t *testing.T) {
	h := build(t)
	logs := h.slow()
	q := h.posed(v2, "")
	for name, c := range map[string]struct {
		ahead string
		want  int
	}{
		"a line":          {"POST " + v2 + " HTTP/1.1\r\n", 400},
		"a head":          {fmt.Sprintf("POST %s HTTP/1.1\r\nHost: d\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", v2, h.assistant, len(q)), 503},
		"the first bytes": {"POST", 501},
		"one byte":        {"P", 501},
	} {
		t.Run(name, func(t *testing.T) {
			h.server.Drop()
			conn := h.dial()
			defer conn.Close()
			r := bufio.NewReader(conn)
			fmt.Fprint(conn, q, c.ahead)
			log := <-logs
			h.server.Fill(0)
			finish(t, log)
			if status, _ := answered(t, r); status != 200 {
				t.Errorf("the first is answered with %d", status)
			}
			fmt.Fprint(conn, q)
			status, text := rejected(t, r)
			if status == 503 && c.want != 503 {
				t.Errorf("answered with %s", text)
			}
			if c.want == 503 { // the second request was the first one's body: nothing else is answered
				fmt.Fprint(conn, h.raw("GET", "/healthz", "", 0))
				if status, text := answered(t, r); status != 200 {
					t.Errorf("the request behind it is answered with %s", text)
				}
			}
		})
	}
}

// rejected is answered, for answers that net/http itself gives.
func rejected(t testing.TB, r *bufio.Reader) (int, string) {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body(t, res)
}

// A question that comes while another is answered waits for that one's end, wherever its bytes are.
func TestTheDoorAnswersInTurn(t *testing.T) {
	for name, make := range map[string]func(testing.TB, ...func(*router.Deps)) *house{"handler": build, "pump": pumped} {
		t.Run(name, func(t *testing.T) {
			h := make(t)
			logs := h.slow()
			conn := h.dial()
			r := bufio.NewReader(conn)
			fmt.Fprint(conn, h.posed(v2, ""))
			res := head(t, r)
			log := <-logs
			write(t, log, say("first"))
			h.server.Fill(0)
			fmt.Fprint(conn, h.posed(v2, ""))
			write(t, log, say("still"))
			finish(t, log)
			if got := body(t, res); !strings.Contains(got, "still") {
				t.Errorf("the first answer is %q", got)
			}
			if status, text := answered(t, r); status != 503 {
				t.Errorf("the second answer is %s", text)
			}
			h.server.Drop()
			fmt.Fprint(conn, h.posed(v2, ""))
			res = head(t, r)
			if name == "handler" {
				h.rested()
			}
			finish(t, <-logs)
			body(t, res)
			if name == "handler" {
				<-h.idled
			}
			h.server.Fill(0)
			for range 2 {
				n := h.through(func() {
					fmt.Fprint(conn, h.posed(v2, ""))
					if status, text := answered(t, r); status != 503 {
						t.Errorf("a later answer is %s", text)
					}
				})
				if n != 0 {
					t.Errorf("net/http has read %d", n)
				}
			}
		})
	}
}

func TestAClientThatSendsNoMoreHearsTheDoor(t *testing.T) {
	h := build(t)
	h.server.Fill(0)
	conn := h.dial()
	fmt.Fprint(conn, h.posed(v2, ""))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if status, text := answered(t, r); status != 503 {
		t.Errorf("answered with %s", text)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("and then: %v", err)
	}
}

func TestTheDoorIsOpenWhileTheServerStops(t *testing.T) {
	h := build(t)
	h.server.Fill(0)
	conn := h.dial()
	if err := h.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := h.through(func() {
		fmt.Fprint(conn, h.posed(v2, ""))
		answered(t, bufio.NewReader(conn))
	})
	if n != 1 {
		t.Errorf("net/http has read %d", n)
	}
}

// net/http goes by what an error of a read is called, and by whether it is a timeout.
func TestAConnectionBehindTheDoorReadsAsAnyOther(t *testing.T) {
	t.Parallel()
	h := build(t)
	told := func(wrap func(net.Listener) net.Listener) (got []string) {
		plain, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l := wrap(plain)
		defer l.Close()
		pair := func() (client *net.TCPConn, server net.Conn) {
			c, err := net.Dial("tcp", plain.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close(); s.Close() })
			return c.(*net.TCPConn), s
		}
		read := func(c net.Conn, size int) {
			b := make([]byte, size)
			n, err := c.Read(b)
			var ne net.Error
			text := fmt.Sprintf("%q %v", b[:n], err)
			got = append(got, fmt.Sprintf("%T %s; timeout %t; closed %t; reset %t", err, regexp.MustCompile(`:\d+`).ReplaceAllString(text, ""),
				errors.As(err, &ne) && ne.Timeout(), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET)))
		}
		client, server := pair()
		io.WriteString(client, "question")
		read(server, 5)
		read(server, 0)
		read(server, 5)
		server.SetReadDeadline(time.Now().Add(-time.Second))
		read(server, 5)
		server.SetReadDeadline(time.Now().Add(time.Millisecond))
		read(server, 5)
		server.SetReadDeadline(time.Time{})
		client.CloseWrite()
		read(server, 5)
		server.Close()
		read(server, 5)
		client, server = pair()
		client.SetLinger(0)
		client.Close()
		read(server, 5)
		_, server = pair()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			read(server, 5)
		}()
		server.Close() // before the read or within it: it is told alike
		<-ended
		return got
	}
	want := told(func(l net.Listener) net.Listener { return l })
	if got := told(h.server.Listener); !slices.Equal(got, want) {
		t.Errorf("it reads\n%s\nand one that is not behind the door\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(want) != 9 || !strings.Contains(want[3], "timeout true") || !strings.Contains(want[6], "closed true") || !strings.Contains(want[7], "reset true") {
		t.Errorf("not what was to be seen:\n%s", strings.Join(want, "\n"))
	}
}
