package modeltest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"docent/internal/race"
	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
)

// A library is what a model's own searches find: passages by a word of theirs.
type library struct {
	passages []model.Passage // by index; the first are the question's
	queries  []string
	err      error
}

func (l *library) search(_ context.Context, query string) ([]model.Found, error) {
	l.queries = append(l.queries, query)
	var found []model.Found
	for i, p := range l.passages {
		if strings.Contains(p.Text, query) {
			found = append(found, model.Found{Passage: p, Index: i})
		}
	}
	return found, l.err
}

// ask lets a model answer a question with the first two passages of a library.
func (l *library) ask(t *testing.T, r *registry.Registry, change func(*model.Request)) (text string, cited []int,
	result model.Result, err error) {
	t.Helper()
	req := model.Request{Question: "What does the ferry cost?", Passages: l.passages[:2], Search: l.search, Key: "turn_1"}
	if change != nil {
		change(&req)
	}
	result, err = r.Answer(t.Context(), "", req, func(d model.Delta) error {
		text += d.Text
		cited = append(cited, d.Cite...)
		return nil
	})
	return text, cited, result, err
}

func ferries() *library {
	return &library{passages: []model.Passage{
		{Path: "a.md", Title: "Ferries", Text: "The ferry leaves every hour."},
		{Path: "b.md", Title: "Piers", Text: "There are three piers."},
		{Path: "c.md", Title: "Tariffs", URL: "https://docs.example/tariffs", Text: "A ticket costs four coins."},
		{Path: "d.md", Title: "Children", Text: "A ticket for children costs two coins."},
	}}
}

func search(query string) modeltest.Call {
	return modeltest.Call{Name: "search_docs", Arguments: fmt.Sprintf(`{"query":%q}`, query)}
}

func TestAModelSearchesByItselfAndCitesWhatItFound(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s, r := open(t, provider, func(n *registry.Named) { n.Remote.Price = remote.Price{Prompt: 1, Completion: 1} },
			modeltest.Script{Shared: true, Steps: []modeltest.Step{
				{Calls: []modeltest.Call{search("costs"), search("piers")}},
				{Fault: "503"},
				{Text: "Let me see.",
					Calls: []modeltest.Call{{Name: "search_docs", Arguments: `{"query":`}, {Name: "browse", Arguments: "{}"},
						search("costs"), search("")}},
				{Text: "It costs four coins [3], two for children [4], from three piers [2]. Not [5]."},
			}})
		l := ferries()
		text, cited, result, err := l.ask(t, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := "Let me see.\n\nIt costs four coins, two for children, from three piers. Not."; text != want {
			t.Errorf("%q, want %q", text, want)
		}
		if !slices.Equal(cited, []int{2, 3, 1}) || !result.Answered || result.Reason != "stop" {
			t.Errorf("cited %v, %+v", cited, result)
		}
		if !slices.Equal(l.queries, []string{"costs", "piers"}) {
			t.Errorf("searched %q", l.queries)
		}
		asked := s.Asked()
		if len(asked) != 4 {
			t.Fatalf("asked %d times: %+v", len(asked), asked)
		}
		var keys []string
		tokens := 0
		for _, a := range asked {
			keys = append(keys, a.Key)
			if a.Outcome == "answer" {
				tokens += a.Tokens
			}
			if !slices.Equal(a.Tools, []string{"search_docs"}) {
				t.Errorf("offered %q", a.Tools)
			}
		}
		if !slices.Equal(keys, []string{"turn_1", "turn_1.1", "turn_1.1", "turn_1.2"}) {
			t.Errorf("keys %q", keys)
		}
		if result.PromptTokens != tokens || result.Cost == 0 {
			t.Errorf("%d tokens of %d are counted: %+v", result.PromptTokens, tokens, result)
		}
		last := asked[3].Messages
		for n, part := range map[int]string{
			2: "[3] Tariffs (https://docs.example/tariffs)\nA ticket costs four coins.\n\n[4] Children", 3: "[2] is given above",
			5: "no JSON", 6: "no such tool", 7: "searched before", 8: "empty",
		} {
			if m := last[n]; m.Role != "tool" || !strings.Contains(m.Text, part) {
				t.Errorf("message %d lacks %q: %+v", n, part, m)
			}
		}
		if strings.Contains(last[2].Text, "every hour") {
			t.Error("a passage that does not fit the query is shown")
		}
	})
}

func TestAModelThatOnlySearchesIsStopped(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for words, fails := range map[string]bool{"": true, "I look. ": false} {
			s := modeltest.New()
			n := 0
			s.Answer = func(a modeltest.Asked) modeltest.Step {
				n++
				return modeltest.Step{Text: words, Calls: []modeltest.Call{search(fmt.Sprint("query ", n))}}
			}
			l := ferries()
			_, _, result, err := l.ask(t, serve(t, provider, s, nil), nil)
			var f *remote.Failure
			if fails != (errors.As(err, &f) && strings.Contains(f.Reason, "empty")) || !fails && result.Reason != "stop" {
				t.Errorf("%q: %+v, %v", words, result, err)
			}
			if len(l.queries) != 3 || n != 5 {
				t.Errorf("%d searches, asked %d times", len(l.queries), n)
			}
			if last := s.Asked()[4].Messages; !strings.Contains(last[len(last)-1].Text, "No more searches") {
				t.Errorf("told %+v", last[len(last)-1])
			}
		}
	})
}

// serve is a registry whose model speaks to a stand-in.
func serve(t testing.TB, provider string, h http.Handler, change func(*registry.Named)) *registry.Registry {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	n := registry.Named{Name: "m", Provider: provider,
		Remote: remote.Config{BaseURL: server.URL + "/v1", Model: "m-1", Key: modeltest.Key(key), Backoff: 1}}
	if change != nil {
		change(&n)
	}
	r, err := registry.New(registry.Config{Models: []registry.Named{n}, Default: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever a question comes with and searches find: prompt and answer fit the window together.
func TestAnswersWithSearchesFitTheWindow(t *testing.T) {
	windows := []int{1600, 2500, 4000, 6000, 8000, 16_000, 64_000}
	if race.Enabled { // they differ by how much is computed
		windows = windows[:1]
	}
	each(t, func(t *testing.T, provider string) {
		for _, window := range windows {
			long := strings.Repeat("The ferry to the island takes an hour and costs four coins. ", 4000)
			l := &library{passages: make([]model.Passage, 40)}
			for i := range l.passages {
				l.passages[i] = model.Passage{Title: fmt.Sprint("Page ", i), Text: fmt.Sprint(i, " ", long)}
			}
			s := modeltest.New(modeltest.Script{Shared: true, Steps: []modeltest.Step{
				{Text: "First.", Calls: []modeltest.Call{search("ferry"), search("island"), search("hour")}},
				{Calls: []modeltest.Call{search("coins")}}, {Text: "Four [1]."},
			}})
			s.Window = window * 5 / 4 // envelopes of JSON count there, and this package's estimate is in text
			r := serve(t, provider, s, func(n *registry.Named) { n.Remote.Window, n.Remote.MaxTokens = window, 500 })
			_, cited, _, err := l.ask(t, r, func(req *model.Request) {
				req.History = []model.Message{{Role: "user", Text: long}, {Role: "assistant", Text: long}}
				req.Context = []model.Snippet{{Kind: "code", Text: long}}
				req.Question = "What? " + long
			})
			mayNot := window < 4600
			if err != nil || len(cited) == 0 && !mayNot {
				t.Errorf("window %d: cited %v, %v", window, cited, err)
			}
			for _, a := range s.Asked() {
				text := len(a.System)
				for _, m := range a.Messages {
					text += len(m.Text)
					for _, c := range m.Calls {
						text += len(c.Arguments)
					}
				}
				if text/3+500 > window {
					t.Errorf("window %d: a prompt of %d bytes", window, text)
				}
				if mayNot != (len(a.Tools) == 0) {
					t.Errorf("window %d: tools %q", window, a.Tools)
				}
			}
		}
	})
}

// Some servers refuse tools. The answer is then written from what is given, and tools are not offered again.
func TestAServerThatTakesNoToolsAnswersWithoutThem(t *testing.T) {
	for name, refusal := range map[string]struct {
		status int
		text   string
	}{
		"ollama":    {400, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}`},
		"vllm":      {400, `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}}`},
		"llama.cpp": {500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(modeltest.Script{Shared: true, Steps: []modeltest.Step{{Text: "Every hour [1]."}}})
			refused := 0
			r := serve(t, model.OpenAI, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body := new(strings.Builder)
				req.Body = teeBody(req.Body, body)
				seen := httptest.NewRecorder()
				s.ServeHTTP(seen, req)
				if strings.Contains(body.String(), `"tools"`) {
					refused++
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(refusal.status)
					fmt.Fprint(w, refusal.text)
					return
				}
				w.Header().Set("Content-Type", seen.Header().Get("Content-Type"))
				_, _ = w.Write(seen.Body.Bytes())
			}), func(n *registry.Named) { n.Remote.Attempts = 1 })
			for range 2 {
				text, cited, _, err := ferries().ask(t, r, nil)
				if err != nil || text != "Every hour." || !slices.Equal(cited, []int{0}) {
					t.Errorf("%q, %v, %v", text, cited, err)
				}
			}
			if refused != 1 {
				t.Errorf("tools were offered %d times", refused)
			}
		})
	}
}

func TestASearchThatFailsEndsTheAnswer(t *testing.T) {
	_, r := open(t, model.OpenAI, nil, modeltest.Script{Steps: []modeltest.Step{{Calls: []modeltest.Call{search("x")}}}})
	l := ferries()
	l.err = errors.New("the index is closed")
	if _, _, _, err := l.ask(t, r, nil); !errors.Is(err, l.err) {
		t.Errorf("got %v", err)
	}
}

func TestSearchesCanBeTurnedOff(t *testing.T) {
	s, r := open(t, model.OpenAI, func(n *registry.Named) { n.Remote.Searches = -1 },
		modeltest.Script{Steps: []modeltest.Step{{Text: "Yes [1]."}}})
	if _, _, _, err := ferries().ask(t, r, nil); err != nil || len(s.Asked()[0].Tools) != 0 ||
		strings.Contains(s.Asked()[0].System, "search_docs") {
		t.Errorf("%+v, %v", s.Asked(), err)
	}
}

// teeBody copies what is read.
func teeBody(body io.ReadCloser, to io.Writer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, to), body}
}
