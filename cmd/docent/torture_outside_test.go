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

	"docent/model/modeltest"
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

// A modelStandIn is a provider of language models that fails, stalls and breaks off, and remembers what it was asked under
// which key. It answers questions, and edits with tools what an instruction of the test's clients asks for.
type modelStandIn struct {
	*weather
	url  string
	told *witness

	mu2    sync.Mutex
	asked  map[string]*modelTurn      // by idempotency key
	keys   map[string]map[string]bool // by question: the keys under which it was asked
	faulty int
	tools  int
}

type modelTurn struct{ times, faults int }

// instructionMark stands before what the agent is told, in the first words that it says to a model.
const instructionMark = "The instruction:\n\n"

// questionTag finds what a client of the test marks its questions with, the others what it tells the agent.
var (
	questionTag = regexp.MustCompile(`\(q ([0-9.]+)\)`)
	wantsPage   = regexp.MustCompile(`create page (\S+) titled "([^"]+)"`)
	wantsLine   = regexp.MustCompile(`append "(line \d+ of follow-ups)" to (\S+)`)
	lastLine    = regexp.MustCompile(`line \d+ of follow-ups`)
)

func newModelStandIn(t *testing.T, w *weather, told *witness) *modelStandIn {
	m := &modelStandIn{weather: w, told: told, asked: map[string]*modelTurn{}, keys: map[string]map[string]bool{}}
	provider := modeltest.New()
	provider.Answer = m.answer
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1)%500 == 0 {
			provider.Load() // it would remember all that it was asked, for hours
		}
		provider.ServeHTTP(w, r)
	}))
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

// fault is what goes wrong with a request: nothing, mostly.
func (m *modelStandIn) fault() string {
	switch n := m.roll(100); {
	case n < 4:
		return "500"
	case n < 7:
		return "503"
	case n < 9:
		return "429"
	case n < 11:
		return "529"
	case n < 14:
		return modeltest.Drop
	case n < 16:
		return modeltest.Stall
	case n < 19:
		return modeltest.Cut
	case n < 21:
		return modeltest.Error
	case n < 22:
		return modeltest.Unfinished
	}
	return ""
}

func (m *modelStandIn) answer(a modeltest.Asked) modeltest.Step {
	step := modeltest.Step{Pace: 8 * time.Millisecond, Fault: m.fault()}
	if step.Fault == "429" {
		step.RetryAfter = "1"
	}
	tag, edits := "", strings.Contains(a.Messages[0].Text, instructionMark)
	for _, message := range a.Messages {
		if found := questionTag.FindAllStringSubmatch(message.Text, -1); message.Role == "user" && len(found) > 0 {
			tag = found[len(found)-1][1]
		}
	}
	if a.Key == "" || !edits && tag == "" {
		m.told.wrong("the model was asked under the key %q for question %q", a.Key, tag)
	}
	m.mu2.Lock()
	t := m.asked[a.Key]
	if t == nil {
		t = new(modelTurn)
		m.asked[a.Key] = t
	}
	t.times++
	try := t.times
	if step.Fault != "" {
		t.faults++
		m.faulty++
	}
	if edits {
		m.tools++
	} else if m.keys[tag] == nil {
		m.keys[tag] = map[string]bool{a.Key: true}
	} else {
		m.keys[tag][a.Key] = true
	}
	m.mu2.Unlock()
	if edits {
		step.Pace = 0
		step.Calls = m.edit(a)
		return step
	}

	// What the reader saw finished in this thread has to be in the history.
	if before, ok := m.told.finishedBefore(tag); ok {
		found := false
		for _, earlier := range a.Messages[:len(a.Messages)-1] {
			found = found || strings.Contains(earlier.Text, before)
		}
		if !found {
			m.told.wrong("question %s: the history lacks the answer before it, which its reader had seen finished: %q", tag, before)
		}
	}
	step.Text = fmt.Sprintf("Tickets cost four coins [1]. This is answer %s of %s, try %d.", tag, a.Key, try)
	return step
}

// edit makes the next call of an edit, from nothing but the conversation.
func (m *modelStandIn) edit(a modeltest.Asked) []modeltest.Call {
	call := func(name string, args map[string]any) []modeltest.Call {
		text, err := json.Marshal(args)
		if err != nil {
			m.told.wrong("%v", err)
		}
		return []modeltest.Call{{Name: name, Arguments: string(text)}}
	}
	_, instruction, _ := cutLast(a.Messages[0].Text, instructionMark)
	done := map[string]string{} // results by the tool that gave them
	var waiting []modeltest.Call
	for _, message := range a.Messages {
		switch {
		case len(message.Calls) > 0:
			waiting = message.Calls
		case message.Role == "tool" && len(waiting) > 0:
			done[waiting[0].Name] = message.Text
			waiting = waiting[1:]
		}
	}
	finish := call("finish", map[string]any{"summary": "Done as asked.", "title": "What was asked"})
	if found := wantsLine.FindStringSubmatch(instruction); found != nil {
		text, read := done["read_file"]
		if !read {
			return call("read_file", map[string]any{"path": found[2]})
		}
		if _, edited := done["edit_file"]; edited {
			return finish
		}
		after := "made by job"
		if lines := lastLine.FindAllString(text, -1); len(lines) > 0 {
			after = lines[len(lines)-1]
		}
		return call("edit_file", map[string]any{"path": found[2], "old_text": after, "new_text": after + "\n\n" + found[1]})
	}
	found := wantsPage.FindStringSubmatch(instruction)
	if found == nil {
		m.told.wrong("the agent asks the model for %q", instruction)
		return finish
	}
	if _, written := done["write_file"]; written {
		return finish
	}
	return call("write_file", map[string]any{"path": found[1], "content": "---\ntitle: " + found[2] + "\n---\n\nmade by job\n"})
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
