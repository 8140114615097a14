package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An exchange is one HTTP exchange within limits: silence ends it, its size is bounded, and a good answer is an event
// stream.
type exchange struct {
	client *http.Client
	key    string
	idle   time.Duration
	first  time.Duration // of silence before the answer's first byte
	cancel context.CancelCauseFunc
	clock  silence
	status int
	after  string // the Retry-After header
	body   io.ReadCloser
	over   bool // more came than an answer may have
	whole  bool // the answer comes in one piece
}

// Do sends a request; it has the form that the client library asks for.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if x.key != "" {
		req.Header.Set("Idempotency-Key", x.key)
	}
	x.clock.end = func() { x.cancel(errIdle) }
	x.clock.start(x.first)
	resp, err := x.client.Do(req)
	x.clock.stop()
	if err != nil {
		return nil, err
	}
	x.status, x.after, x.body = resp.StatusCode, resp.Header.Get("Retry-After"), resp.Body
	if resp.StatusCode/100 != 2 {
		resp.Body = &guardedBody{of: x, left: longestError, lenient: true}
		return resp, nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/json" { // also of a server that does not stream, or refuses with a 200
		resp.Body = &guardedBody{of: x, left: longestStream, whole: true}
		return resp, nil
	}
	if kind != "text/event-stream" {
		page, _ := io.ReadAll(&guardedBody{of: x, left: longestError, lenient: true, whole: true})
		if text := plainText(string(bytes.TrimSpace(page))); text != "" {
			return nil, fmt.Errorf("%w: %s", errStream, text)
		}
		return nil, errStream
	}
	resp.Body = &guardedBody{of: x, left: longestStream}
	return resp, nil
}

func (x *exchange) close() {
	x.clock.stop()
	if x.body != nil {
		_ = x.body.Close()
	}
}

// retryAfter reads the header's two forms: seconds, or a date.
func (x *exchange) retryAfter(now time.Time) time.Duration {
	if s, err := strconv.ParseFloat(strings.TrimSpace(x.after), 64); err == nil && s >= 0 {
		return time.Duration(min(s, 86_400) * float64(time.Second))
	}
	if at, err := http.ParseTime(x.after); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// silence ends what waits for a provider that says nothing. It waits in steps: a process that was stopped, or a machine that
// slept or is overloaded, notices a step too late, has not read what came meanwhile either, and gets all of its time for that.
type silence struct {
	end func()

	mu    sync.Mutex
	timer *time.Timer
	due   time.Time // of the step that is waited for; zero if nothing is
	step  time.Duration
	left  int // steps
}

const silenceSteps = 8

func (s *silence) start(longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step, s.left = longest/silenceSteps, silenceSteps
	s.wait()
}

func (s *silence) wait() {
	s.due = time.Now().Add(s.step)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.step, s.fired)
	} else {
		s.timer.Reset(s.step)
	}
}

func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = time.Time{}
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *silence) fired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := time.Since(s.due)
	if s.due.IsZero() || late < 0 { // stopped, or started again, while this was on its way
		return
	}
	if s.left--; late > s.step/2 {
		s.left = silenceSteps
	}
	if s.left > 0 {
		s.wait()
		return
	}
	s.end()
}

// A guardedBody is a body within the limits of its exchange. The clock of silence runs only while the body is read.
type guardedBody struct {
	of      *exchange
	left    int // bytes that may still come
	inLine  int // bytes since the last end of a line
	lenient bool
	whole   bool // one long line
	begun   bool // something was read
}

func (g *guardedBody) Read(p []byte) (int, error) {
	if g.left <= 0 {
		if g.lenient {
			return 0, io.EOF // an error's page need not be read to its end
		}
		g.of.over = true
		return 0, errSize
	}
	if len(p) > g.left {
		p = p[:g.left]
	}
	longest := g.of.idle
	if !g.begun {
		longest = g.of.first
	}
	g.of.clock.start(longest)
	n, err := g.of.body.Read(p)
	g.of.clock.stop()
	g.begun = g.begun || n > 0
	g.left -= n
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		g.inLine = n - at - 1
	} else {
		g.inLine += n
	}
	if g.inLine > longestLine && !g.whole {
		g.of.over = true
		return n, errSize
	}
	return n, err
}

func (g *guardedBody) Close() error { return g.of.body.Close() }

// shared is the transport if the configuration names none. It keeps connections for many answers at once.
var shared = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 64
	t.DialContext = (&net.Dialer{Timeout: connectLimit, KeepAlive: 30 * time.Second}).DialContext
	return t
}()
