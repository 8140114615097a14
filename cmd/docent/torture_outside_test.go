package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// weather says how the outside fares: while faults is set, some of what it is asked goes wrong.
type weather struct {
	faults atomic.Bool
	mu     sync.Mutex
	random *rand.Rand
	calm   chan struct{} // closed when the faults stop: what stalls lets go
}

func newWeather(seed uint64) *weather {
	return &weather{random: rand.New(rand.NewPCG(seed, 4)), calm: make(chan struct{})}
}

// roll gives a number below n, or n itself in fair weather: no fault has that number.
func (w *weather) roll(n int) int {
	if !w.faults.Load() {
		return n
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *weather) clearUp() {
	w.faults.Store(false)
	close(w.calm)
}

// stall answers nothing until the caller has had enough, the weather clears up, or the time is over.
func (w *weather) stall(r *http.Request, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
	case <-w.calm:
	case <-timer.C:
	}
}

// cutOff ends the connection in the middle of whatever was being said on it.
func cutOff() { panic(http.ErrAbortHandler) }

// A modelStandIn speaks the streamed chat completions of OpenAI. It fails, stalls and breaks off, and remembers what it
// was asked under which key.
type modelStandIn struct {
	*weather
	url    string
	told   *witness
	mu2    sync.Mutex
	asked  map[string]*modelTurn      // by idempotency key
	keys   map[string]map[string]bool // by question: the keys under which it was asked
	faulty int
}

type modelTurn struct {
	times, faults int
}

// questionTag finds what a client of the test marks its questions with.
var questionTag = regexp.MustCompile(`\(q ([0-9.]+)\)`)

func newModelStandIn(t *testing.T, w *weather, told *witness) *modelStandIn {
	m := &modelStandIn{weather: w, told: told, asked: map[string]*modelTurn{}, keys: map[string]map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(m.complete))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// turn is what is known of a key.
func (m *modelStandIn) turn(key string) modelTurn {
	m.mu2.Lock()
	defer m.mu2.Unlock()
	if t := m.asked[key]; t != nil {
		return *t
	}
	return modelTurn{}
}

// keysOf counts the turns that a question was put to the model for.
func (m *modelStandIn) keysOf(tag string) int {
	m.mu2.Lock()
	defer m.mu2.Unlock()
	return len(m.keys[tag])
}

func (m *modelStandIn) complete(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, `{"error":{"message":"no messages"}}`, http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	last := body.Messages[len(body.Messages)-1].Content
	tag := ""
	if found := questionTag.FindAllStringSubmatch(last, -1); len(found) > 0 {
		tag = found[len(found)-1][1]
	}
	if key == "" || tag == "" {
		m.told.wrong("the model was asked under the key %q for question %q", key, tag)
	}
	fault := m.roll(100)
	m.mu2.Lock()
	t := m.asked[key]
	if t == nil {
		t = new(modelTurn)
		m.asked[key] = t
	}
	t.times++
	try := t.times
	if fault < 26 {
		t.faults++
		m.faulty++
	}
	if m.keys[tag] == nil {
		m.keys[tag] = map[string]bool{}
	}
	m.keys[tag][key] = true
	m.mu2.Unlock()

	// What the reader saw finished in this thread has to be in the history.
	if before, ok := m.told.finishedBefore(tag); ok {
		found := false
		for _, earlier := range body.Messages[:len(body.Messages)-1] {
			found = found || strings.Contains(earlier.Content, before)
		}
		if !found {
			m.told.wrong("question %s: the history lacks the answer before it, which its reader had seen finished: %q", tag, before)
		}
	}

	switch {
	case fault < 7:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"error":{"message":"something broke","type":"server_error"}}`)
		return
	case fault < 10:
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"error":{"message":"slow down","type":"rate_limit_error"}}`, http.StatusTooManyRequests)
		return
	case fault < 12:
		m.stall(r, 10*time.Second)
		cutOff()
	case fault < 14:
		cutOff()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text, reason string) {
		end := "null"
		if reason != "" {
			end = `"` + reason + `"`
		}
		piece, _ := json.Marshal(text)
		fmt.Fprintf(w, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":%s}]}\n\n", piece, end)
		http.NewResponseController(w).Flush()
	}
	text := fmt.Sprintf("Tickets cost four coins [1]. This is answer %s of %s, try %d.", tag, key, try)
	pieces := strings.SplitAfter(text, " ")
	for i, piece := range pieces {
		if i == len(pieces)/2 {
			switch {
			case fault < 17:
				m.stall(r, 10*time.Second)
				cutOff()
			case fault < 20:
				cutOff()
			case fault < 22:
				fmt.Fprint(w, "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\"}}\n\n")
				return
			}
		}
		if i == len(pieces)-1 && fault < 26 { // all has been said but that it is all
			say(piece, "")
			cutOff()
		}
		say(piece, "")
		select {
		case <-time.After(time.Duration(5+len(piece)) * time.Millisecond): // a model's pace
		case <-r.Context().Done():
			return
		}
	}
	say("", "stop")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// A gitStandIn is a repository on a host that speaks git over HTTP and nothing else. It refuses, stalls, and breaks
// connections off, also after it has done what it was asked.
type gitStandIn struct {
	*weather
	url    string
	bare   string
	faulty atomic.Int64
}

// newGitStandIn serves a bare repository with these files; it is nil where git is not installed.
func newGitStandIn(t *testing.T, w *weather, files map[string]string) *gitStandIn {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command(path, append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if _, err := os.Stat(filepath.Join(run(t.TempDir(), "--exec-path"), "git-http-backend")); err != nil {
		return nil
	}
	work, root := writeFiles(t, files), t.TempDir()
	g := &gitStandIn{weather: w, bare: filepath.Join(root, "docs.git")}
	run(work, "init", "-q")
	run(work, "add", "-A")
	run(work, "commit", "-q", "-m", "import")
	run(work, "clone", "-q", "--bare", ".", g.bare)
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=docent",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=http.receivepack", "GIT_CONFIG_VALUE_1=true",
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, backend) }))
	t.Cleanup(server.Close)
	g.url = server.URL + "/docs.git"
	return g
}

func (g *gitStandIn) serve(w http.ResponseWriter, r *http.Request, backend http.Handler) {
	fault := g.roll(100)
	if fault < 20 {
		g.faulty.Add(1)
	}
	switch {
	case fault < 5:
		http.Error(w, "the host is being mended", cmp.Or(map[int]int{0: http.StatusBadGateway, 1: http.StatusServiceUnavailable}[fault], http.StatusInternalServerError))
		return
	case fault < 7:
		g.stall(r, 3*time.Second)
		cutOff()
	case fault < 10:
		cutOff()
	case fault < 16: // acts, and does not say so
		backend.ServeHTTP(httptest.NewRecorder(), r)
		cutOff()
	case fault < 18: // acts, and says half of it
		answer := httptest.NewRecorder()
		backend.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		text := answer.Body.Bytes()
		_, _ = w.Write(text[:len(text)/2])
		http.NewResponseController(w).Flush()
		cutOff()
	case fault < 20: // acts, and says so late
		answer := httptest.NewRecorder()
		backend.ServeHTTP(answer, r)
		g.stall(r, 2*time.Second)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return
	}
	backend.ServeHTTP(w, r)
}
