package kill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/forge/forgetest"
	"docent/model/modeltest"
)

// weather says how well the outside works: while faults is set, some of what it is asked goes wrong.
type weather struct {
	faults atomic.Bool
	mu     sync.Mutex
	random *rand.Rand
}

func newWeather(seed uint64) *weather {
	return &weather{random: rand.New(rand.NewPCG(seed, 4))}
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

// A modelStandIn is a provider of language models that fails, stalls and breaks off, and remembers what it was asked
// under which key. It answers questions, and edits with tools what an instruction of the test's clients asks for.
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
			m.told.wrong("question %s: the history lacks the answer before it, which its reader had seen finished: %q", tag,
				before)
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
	return call("write_file",
		map[string]any{"path": found[1], "content": "---\ntitle: " + found[2] + "\n---\n\nmade by job\n"})
}

// A hostStandIn is a code host in Gitea's dialect that refuses, stalls, and breaks connections off, also after it has
// done what it was asked: with pull requests and with pushes.
type hostStandIn struct {
	*forgetest.StandIn
	faulty atomic.Int64
}

// newHostStandIn starts a host that takes one token; it is nil if git is not installed.
func newHostStandIn(t *testing.T, w *weather, token string) *hostStandIn {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		return nil
	}
	h := &hostStandIn{StandIn: forgetest.NewStandIn(t)}
	h.Do(func() { h.Tokens = []string{token} })
	h.Fault = func(*http.Request) (f forgetest.Fault) {
		switch n := w.roll(100); {
		case n < 3:
			f = forgetest.Fault{Status: http.StatusInternalServerError, Body: `{"message":"something broke"}`}
		case n < 5:
			f = forgetest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}},
				Body: `{"message":"slow down"}`}
		case n < 7:
			f = forgetest.Fault{Drop: true, Pause: 3 * time.Second}
		case n < 10:
			f = forgetest.Fault{Drop: true}
		case n < 15:
			f = forgetest.Fault{Act: true, Drop: true}
		case n < 17:
			f = forgetest.Fault{Act: true, Status: http.StatusBadGateway, Body: "bad gateway"}
		case n < 19:
			f = forgetest.Fault{Act: true, Drop: true, Pause: 2 * time.Second}
		default:
			return f
		}
		h.faulty.Add(1)
		return f
	}
	return h
}
