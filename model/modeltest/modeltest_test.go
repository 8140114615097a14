package modeltest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
)

const key = "sk-stand-in-0123456789"

// open starts a stand-in and a registry whose model speaks to it.
func open(t *testing.T, provider string, change func(*registry.Named), scripts ...modeltest.Script) (*modeltest.Server,
	*registry.Registry) {
	t.Helper()
	s := modeltest.New(scripts...)
	s.Key = key
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	n := registry.Named{Name: "m", Provider: provider,
		Remote: remote.Config{BaseURL: server.URL + "/v1", Model: "m-1", Key: modeltest.Key(key), Backoff: time.Millisecond}}
	if change != nil {
		change(&n)
	}
	r, err := registry.New(registry.Config{Models: []registry.Named{n}, Default: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func each(t *testing.T, test func(t *testing.T, provider string)) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		t.Run(provider, func(t *testing.T) { test(t, provider) })
	}
}

func user(text string) model.Chat {
	return model.Chat{System: "You edit.", Turns: []model.Turn{{Role: "user", Text: text}}, Key: "k1",
		Tools: []model.Tool{{Name: "read", Description: "Reads."}, {Name: "edit", Description: "Edits."}}}
}

// then is the conversation after a reply whose calls all gave text.
func then(c model.Chat, r model.Reply, text string) model.Chat {
	c.Turns = append(slices.Clone(c.Turns), model.Turn{Role: "assistant", Text: r.Text, Calls: r.Calls})
	for _, call := range r.Calls {
		c.Turns = append(c.Turns, model.Turn{Role: "tool", CallID: call.ID, Text: text})
	}
	c.Key += "+"
	return c
}

func TestAWholeConversation(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		calls := []modeltest.Call{{Name: "read", Arguments: `{"path":"päge \"one\".md"}`},
			{Name: "no_such_tool", Arguments: `{"path": `}, {Name: "edit", Arguments: ""}}
		s, r := open(t, provider, nil, modeltest.Script{Match: "other"},
			modeltest.Script{Match: "typo", Steps: []modeltest.Step{
				{Text: "I look at three things.", Calls: calls}, {Calls: calls[:1]}, {Text: "All is done."},
			}})
		c := user("Fix the typo.")
		first, err := r.Chat(t.Context(), "", c)
		if err != nil {
			t.Fatal(err)
		}
		if first.Text != "I look at three things." || first.Reason != "tools" || len(first.Calls) != 3 ||
			first.Usage.PromptTokens == 0 || first.Usage.CachedTokens == 0 || first.Usage.CompletionTokens == 0 {
			t.Fatalf("got %+v", first)
		}
		for n, call := range first.Calls {
			if call.Name != calls[n].Name || call.Arguments != calls[n].Arguments || call.ID == "" {
				t.Errorf("call %d is %+v", n, call)
			}
		}
		if again, err := r.Chat(t.Context(), "", c); err != nil || again.Text != first.Text {
			t.Errorf("the same key gave %+v, %v", again, err)
		}
		c = then(c, first, "")
		second, err := r.Chat(t.Context(), "", c)
		if err != nil || second.Text != "" || len(second.Calls) != 1 {
			t.Fatalf("%+v, %v", second, err)
		}
		c = then(c, second, "text")
		for range 2 {
			if last, err := r.Chat(t.Context(), "", c); err != nil || last.Text != "All is done." || last.Reason != "stop" {
				t.Fatalf("%+v, %v", last, err)
			}
			c.Key += "+"
		}
		for _, a := range s.Asked() {
			if a.Outcome != "answer" || a.Provider != provider || !slices.Equal(a.Tools, []string{"read", "edit"}) ||
				a.System != "You edit." {
				t.Errorf("asked %+v", a)
			}
		}
	})
}

// Each fault is followed by a good answer; a conversation is put again wherever that can help, and what cannot be
// helped has its own error.
func TestFaults(t *testing.T) {
	type outcome struct {
		asked int   // requests
		is    error // if the caller is told of the fault
		words string
	}
	again, told := outcome{asked: 2}, func(is error, words string) outcome { return outcome{1, is, words} }
	want := map[string]outcome{
		"429": again, "500": again, "502": again, "503": again, "529": again, modeltest.Drop: again,
		modeltest.Stall: again, modeltest.Cut: again, modeltest.Unfinished: again, modeltest.Error: again,
		modeltest.Garbage: again,
		modeltest.Page:    told(nil, "did not answer with a stream"),
		modeltest.Refusal: told(model.ErrRefused, "declined"),
		modeltest.TooLong: told(model.ErrTooLong, "no room"),
		modeltest.Empty:   told(nil, ""),
	}
	for _, fault := range modeltest.Faults() {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, provider string) {
				t.Parallel()
				for _, step := range []modeltest.Step{{Fault: fault},
					{Fault: fault, Text: "Half of an answer", Calls: []modeltest.Call{{Name: "edit", Arguments: `{"a":"b"}`}}}} {
					s, r := open(t, provider, func(n *registry.Named) {
						n.Remote.Attempts = 2
						if fault == modeltest.Stall { // longer than the good answer may take, on a machine that stands still
							n.Remote.Idle = 7 * time.Second
						}
					}, modeltest.Script{Steps: []modeltest.Step{step, {Text: "Good."}}})
					reply, err := r.Chat(t.Context(), "", user("Go."))
					w := want[fault]
					switch {
					case len(s.Asked()) != w.asked:
						t.Errorf("asked %d times: %+v, %v", len(s.Asked()), reply, err)
					case w.asked == 2:
						if err != nil || reply.Text != "Good." || len(reply.Calls) != 0 {
							t.Errorf("%+v, %v", reply, err)
						}
					case fault == modeltest.Empty:
						if err != nil || reply.Text != "" || len(reply.Calls) != 0 || reply.Reason != "stop" {
							t.Errorf("%+v, %v", reply, err)
						}
					case err == nil || !strings.Contains(err.Error(), w.words) || w.is != nil && !errors.Is(err, w.is):
						t.Errorf("%+v, %v", reply, err)
					}
					if err != nil && strings.Contains(err.Error(), key) {
						t.Errorf("the key shows: %v", err)
					}
				}
			})
		})
	}
}

func TestWhatLastsIsToldAsUnavailable(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for fault, after := range map[string]time.Duration{"429": 90 * time.Second, "503": 0, modeltest.Drop: 0} {
			step := modeltest.Step{Fault: fault, Times: 100}
			if after > 0 {
				step.RetryAfter = "90"
			}
			_, r := open(t, provider, nil, modeltest.Script{Steps: []modeltest.Step{step}})
			_, err := r.Chat(t.Context(), "", user("Go."))
			var u *model.Unavailable
			if !errors.As(err, &u) || u.Model != "m" || u.After < after {
				t.Errorf("%s: %v", fault, err)
			}
		}
	})
}

func TestTheWindowOfTheProviderIsKnownByItsAnswer(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s, r := open(t, provider, nil, modeltest.Script{Steps: []modeltest.Step{{Text: "Good."}}})
		s.Window = 3000
		for size, fits := range map[int]bool{1000: true, 9500: false, 50_000: false} { // the second only with the answer
			_, err := r.Chat(t.Context(), "", user(strings.Repeat("w", size)))
			if fits && err != nil || !fits && !errors.Is(err, model.ErrTooLong) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	})
}

func TestAWrongKeyDoesNotShow(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s, r := open(t, provider, nil, modeltest.Script{Steps: []modeltest.Step{{Text: "Good."}}})
		s.Key = "another"
		_, err := r.Chat(t.Context(), "", user("Go."))
		if err == nil || !strings.Contains(err.Error(), "refuses its key") || strings.Contains(err.Error(), key) {
			t.Errorf("got %v", err)
		}
	})
}

// The stand-in refuses what the providers would.
func TestConversationsThatProvidersRefuse(t *testing.T) {
	for name, body := range map[string]string{
		"/v1/chat/completions no model":    `{"messages":[{"role":"user","content":"a"}]}`,
		"/v1/chat/completions no messages": `{"model":"m","messages":[]}`,
		"/v1/chat/completions no result":   `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"b"}]}`,
		"/v1/chat/completions open end":    `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`,
		"/v1/chat/completions no call":     `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"1","content":"x"}]}`,
		"/v1/chat/completions twice":       `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"x"},{"role":"tool","tool_call_id":"1","content":"x"}]}`,
		"/v1/chat/completions name":        `{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"a b","parameters":{}}}]}`,
		"/v1/chat/completions empty":       `{"model":"m","messages":[{"role":"user","content":""}]}`,
		"/v1/messages no limit":            `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
		"/v1/messages assistant first":     `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"text","text":"a"}]}]}`,
		"/v1/messages twice the user":      `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
		"/v1/messages empty block":         `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":" "}]}]}`,
		"/v1/messages result after words":  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"1","content":"x"}]}]}`,
		"/v1/messages arguments":           `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":"x"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(modeltest.Script{Steps: []modeltest.Step{{Text: "taken"}}})
			path, _, _ := strings.Cut(name, " ")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			if asked := s.Asked(); w.Code != 400 || len(asked) != 1 || !strings.HasPrefix(asked[0].Outcome, "invalid: ") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestAStandInAsAProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- modeltest.Main(ctx, []string{"--window", "5000"}, in) }()
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(line[:n]))
	do := func(method, path string, body any) []byte {
		t.Helper()
		data, _ := json.Marshal(body)
		req, _ := http.NewRequestWithContext(ctx, method, url+path, bytes.NewReader(data))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		page, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, page)
		}
		return page
	}
	do(http.MethodPut, "/scripts", []modeltest.Script{{Steps: []modeltest.Step{{Hold: "here", Text: "Go on."}}}})
	r, err := registry.New(registry.Config{Models: []registry.Named{{Name: "m", Provider: model.OpenAI,
		Remote: remote.Config{BaseURL: url + "/v1", Model: "m-1", MaxTokens: 1000}}}, Default: "m"})
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		reply, _ := r.Chat(ctx, "", user("Go."))
		said <- reply.Text
	}()
	do(http.MethodGet, "/held/here", nil)
	select {
	case text := <-said:
		t.Fatalf("it did not wait: %q", text)
	default:
	}
	do(http.MethodPost, "/release/here", nil)
	if text := <-said; text != "Go on." {
		t.Errorf("got %q", text)
	}
	var asked []modeltest.Asked
	if err := json.Unmarshal(do(http.MethodGet, "/requests", nil), &asked); err != nil || len(asked) != 1 ||
		asked[0].Key != "k1" {
		t.Errorf("%+v, %v", asked, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Small servers that do not stream calls are asked for whole answers; their faults are told like the others'.
func TestAnswersInOnePiece(t *testing.T) {
	ask := func(steps ...modeltest.Step) (*modeltest.Server, model.Reply, error) {
		s, r := open(t, model.OpenAI, func(n *registry.Named) { n.Remote.Whole = true }, modeltest.Script{Steps: steps})
		reply, err := r.Chat(t.Context(), "", user("Go."))
		return s, reply, err
	}
	call := modeltest.Call{Name: "edit", Arguments: `{"path":`}
	s, reply, err := ask(modeltest.Step{Fault: "503"}, modeltest.Step{Fault: modeltest.Drop},
		modeltest.Step{Text: strings.Repeat("Long. ", 400_000), Calls: []modeltest.Call{call}})
	if err != nil || len(reply.Text) != 2_400_000 || len(reply.Calls) != 1 || reply.Calls[0].Arguments != call.Arguments ||
		reply.Reason != "tools" || reply.Usage.CachedTokens == 0 {
		t.Errorf("%d bytes, %+v, %v", len(reply.Text), reply.Calls, err)
	}
	if asked := s.Asked(); len(asked) != 3 || asked[2].Stream {
		t.Errorf("asked %d times", len(asked))
	}
	if _, _, err := ask(modeltest.Step{Fault: modeltest.Refusal}); !errors.Is(err, model.ErrRefused) {
		t.Errorf("got %v", err)
	}
	if _, _, err := ask(modeltest.Step{Fault: modeltest.TooLong}); !errors.Is(err, model.ErrTooLong) {
		t.Errorf("got %v", err)
	}
	if _, reply, err := ask(modeltest.Step{Fault: modeltest.Empty}); err != nil || reply.Text != "" ||
		reply.Reason != "stop" {
		t.Errorf("%+v, %v", reply, err)
	}
}
