package sockets

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// An answer is a source that a test writes to. A method whose name it breaks in panics.
type answer struct {
	mu      sync.Mutex
	text    string
	ended   bool
	breaks  string
	changed func()
}

func (a *answer) say(text string, end bool) {
	a.mu.Lock()
	a.text, a.ended = a.text+text, end
	changed := a.changed
	a.mu.Unlock()
	if changed != nil {
		changed()
	}
}

func (a *answer) breakIn(method string) {
	if a.breaks == method {
		panic("in " + method)
	}
}

func (a *answer) Append(dst []byte) ([]byte, bool) {
	a.breakIn("Append")
	a.mu.Lock()
	defer a.mu.Unlock()
	dst, a.text = append(dst, a.text...), ""
	return dst, false
}

func (a *answer) KeepAlive(dst []byte) []byte {
	a.breakIn("KeepAlive")
	return append(dst, '.')
}

func (a *answer) End(dst []byte) ([]byte, string) {
	a.breakIn("End")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return append(dst, '!'), "finished"
	}
	return dst, ""
}

func (a *answer) Watch(changed func()) func() {
	changed() // which means nothing, and may come at any time
	a.breakIn("Watch")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = changed
	return func() { a.breakIn("stop") }
}

// A server hands each request's answer to a pool.
type server struct {
	*testing.T
	pool     *Pool
	address  string
	answers  chan *answer // for the next requests
	accounts chan Account
}

func serve(t *testing.T, options Options) *server {
	if runtime.GOOS != "linux" {
		t.Skip("no connection is taken on this system")
	}
	options.Log = slog.New(slog.DiscardHandler)
	if options.WriteTimeout == 0 {
		options.WriteTimeout = time.Minute
	}
	if options.KeepAlive == 0 {
		options.KeepAlive = time.Hour
	}
	s := &server{T: t, pool: New(options), answers: make(chan *answer, 10), accounts: make(chan Account, 10)}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := <-s.answers
		if !s.pool.Take(w, r, a, func(account Account) {
			s.accounts <- account
			a.breakIn("done")
		}) {
			t.Error("the connection was not taken")
		}
	}))
	s.pool.Attach(web.Config)
	web.Start()
	s.address = web.Listener.Addr().String()
	t.Cleanup(func() {
		s.pool.Close()
		web.Close()
	})
	return s
}

func (s *server) dial() (net.Conn, *bufio.Reader) {
	s.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c, bufio.NewReader(c)
}

const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// read reads an answer to its end.
func (s *server) read(r *bufio.Reader) string {
	s.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		s.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

func TestAnAnswerIsWrittenAsItGrowsAndTheConnectionServesOn(t *testing.T) {
	s := serve(t, Options{})
	c, r := s.dial()
	for n := range 3 {
		a := new(answer)
		s.answers <- a
		fmt.Fprint(c, request)
		text := strings.Repeat("0123456789abcdef", n*n*n*1000)
		a.say("one ", false)
		a.say(text, false)
		a.say(" two", true)
		if got := s.read(r); got != "one "+text+" two!" {
			t.Errorf("answer %d is %d bytes: %.20q", n, len(got), got)
		}
		if got := <-s.accounts; got != (Account{How: "finished", Bytes: int64(len(text) + 9)}) {
			t.Errorf("answer %d is accounted for as %+v", n, got)
		}
	}
}

func TestAConnectionIsToldSomethingInSilence(t *testing.T) {
	s := serve(t, Options{KeepAlive: 32 * time.Millisecond})
	c, r := s.dial()
	a := new(answer)
	s.answers <- a
	fmt.Fprint(c, request)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	a.say("", true)
	if rest, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(rest), "!") {
		t.Errorf("%q, %v", rest, err)
	}
}

// A panic in one source ends its answer alone, which is accounted for.
func TestAPanicEndsOneAnswerAlone(t *testing.T) {
	s := serve(t, Options{KeepAlive: 32 * time.Millisecond})
	steady, reader := s.dial()
	other := new(answer)
	s.answers <- other
	fmt.Fprint(steady, request)
	other.untilWatched()
	for _, method := range []string{"Append", "End", "KeepAlive", "Watch", "stop", "done"} {
		c, _ := s.dial()
		broken := &answer{breaks: method}
		s.answers <- broken
		fmt.Fprint(c, request)
		if method == "stop" || method == "done" {
			broken.say("", true)
		}
		want := EndedBroken
		if method == "stop" || method == "done" { // the answer had ended
			want = "finished"
		}
		if got := <-s.accounts; got.How != want || (got.Err != nil) != (want == EndedBroken) {
			t.Errorf("%s: it is accounted for as %+v", method, got)
		}
		io.Copy(io.Discard, c) // the connection ends
	}
	other.say("words", true)
	if got := s.read(reader); strings.Trim(got, ".") != "words!" {
		t.Errorf("the other answer is %q", got)
	}
	if got := <-s.accounts; got.How != "finished" {
		t.Errorf("the other answer is accounted for as %+v", got)
	}
	if n := len(s.accounts); n != 0 {
		t.Errorf("%d answers have ended twice", n)
	}
}

func TestCutAsksTheSourceAndCloseDoesNot(t *testing.T) {
	s := serve(t, Options{})
	cut, closed := new(answer), new(answer)
	c, r := s.dial()
	s.answers <- cut
	fmt.Fprint(c, request)
	cut.untilWatched()
	cut.mu.Lock()
	cut.ended = true // as a source knows by itself that the service stops
	cut.mu.Unlock()
	s.pool.Cut()
	if got := s.read(r); got != "!" {
		t.Errorf("the answer is %q", got)
	}
	<-s.accounts
	s.answers <- closed
	fmt.Fprint(c, request)
	closed.untilWatched()
	s.pool.Close()
	if got := <-s.accounts; got.How != EndedCut {
		t.Errorf("it is accounted for as %+v", got)
	}
	io.Copy(io.Discard, c)
}

// untilWatched returns when the pool has the answer.
func (a *answer) untilWatched() {
	for watched := false; !watched; runtime.Gosched() {
		a.mu.Lock()
		watched = a.changed != nil
		a.mu.Unlock()
	}
}

func TestALoopIsFilledBeforeTheNextIsGivenAnswers(t *testing.T) {
	p := &Pool{loops: []*loop{{}, {}, {}}}
	give := func(n int) {
		for range n {
			p.pick().streams.Add(1)
		}
	}
	want := func(when string, counts ...int64) {
		t.Helper()
		for i, l := range p.loops {
			if n := l.streams.Load(); n != counts[i] {
				t.Errorf("%s loop %d has %d streams, not %d", when, i, n, counts[i])
			}
		}
	}
	give(streamsPerLoop + 1)
	want("beyond one that is full", streamsPerLoop, 1, 0)
	p.loops[0].streams.Add(-3)
	give(5)
	want("after some have ended", streamsPerLoop, 3, 0)
	give(2*streamsPerLoop - 3 + 300)
	want("where all are full", streamsPerLoop+100, streamsPerLoop+100, streamsPerLoop+100)
}
