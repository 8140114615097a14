package remote_test

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/model"
	"docent/model/modeltest"
	"docent/model/remote"
)

// Each provider's conversation is played by its published rules: what has to come back and does not is a 400, and so is
// a parameter that it does not know. Turns go through the form in which a journal keeps them.
func TestConversationsHoldToTheProvidersRules(t *testing.T) {
	for _, manner := range modeltest.Manners() {
		t.Run(manner.Name, func(t *testing.T) {
			c := &modeltest.Conversation{Manner: manner, Steps: []modeltest.Step{
				{Text: "I read. ", Calls: []modeltest.Call{{Name: "read", Arguments: `{"path":"a.md"}`}, {Name: "read", Arguments: `{"path":"b.md"}`}}},
				{Calls: []modeltest.Call{{Name: "read", Arguments: `{"path":"c.md"}`}}},
				{Text: "All is done."},
			}}
			m := reach(t, c, nil)
			chat := model.Chat{System: "You edit documentation.", Turns: []model.Turn{{Role: "user", Text: "Fix the typo."}},
				Tools: []model.Tool{{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}}
			for i, st := range c.Steps {
				reply, err := m.Chat(t.Context(), chat)
				if err != nil {
					t.Fatalf("turn %d: %v", i+1, err)
				}
				if reply.Text != st.Text || len(reply.Calls) != len(st.Calls) {
					t.Fatalf("turn %d is %+v", i+1, reply)
				}
				if reply.Usage.PromptTokens == 0 || reply.Usage.CompletionTokens == 0 {
					if !strings.Contains(strings.Join(c.Refused, ""), "stream_options") {
						t.Errorf("turn %d: nothing is counted", i+1)
					}
				}
				turn := model.Turn{Role: "assistant", Text: reply.Text, Calls: reply.Calls, Kept: slices.Clone(reply.Kept)}
				chat.Turns = append(chat.Turns, turn)
				for n, call := range reply.Calls {
					if call.Name != st.Calls[n].Name || call.Arguments != st.Calls[n].Arguments {
						t.Errorf("turn %d: call %d is %+v", i+1, n, call)
					}
					chat.Turns = append(chat.Turns, model.Turn{Role: "tool", CallID: call.ID, Text: "The text."})
				}
			}
			if len(c.Refused) > 3 {
				t.Errorf("refused %d times: %q", len(c.Refused), c.Refused)
			}
			// What was learned holds: another conversation is refused nothing.
			before := len(c.Refused)
			c.Taken = nil
			if _, err := m.Chat(t.Context(), model.Chat{Tools: chat.Tools, System: "x", Turns: chat.Turns[:1]}); err != nil || len(c.Refused) != before {
				t.Errorf("again: %v, refused %q", err, c.Refused[before:])
			}
		})
	}
}

// What a journal of an earlier program did not keep, or another model's turns, is no end: it is filled in as the
// provider allows, once it asks for it.
func TestTurnsWithoutWhatTheProviderSentGoOn(t *testing.T) {
	for _, manner := range modeltest.Manners() {
		switch manner.Name {
		case "Gemini, OpenAI-compatible", "Ollama", "OpenAI chat completions":
		default:
			continue
		}
		c := &modeltest.Conversation{Manner: manner, Steps: []modeltest.Step{{Text: "Done."}}}
		other := json.RawMessage(`{"by":"chat elsewhere m-2","as":{"message":{"reasoning_content":"secret"}}}`)
		reply, err := reach(t, c, nil).Chat(t.Context(), model.Chat{Turns: []model.Turn{{Role: "user", Text: "Go."},
			{Role: "assistant", Calls: []model.Call{{ID: "c1", Name: "read", Arguments: "{}"}}, Kept: other},
			{Role: "tool", CallID: "c1", Text: "x"}}})
		if err != nil || reply.Text != "Done." {
			t.Errorf("%s: %v", manner.Name, err)
		}
		if sent, _ := json.Marshal(c.Taken); strings.Contains(string(sent), "secret") {
			t.Errorf("%s was sent what another provider's turn kept: %s", manner.Name, sent)
		}
	}
}

// A turn that was shortened since goes back with its own words and arguments, among what was kept of it.
func TestShortenedTurnsKeepWhatBelongsToThem(t *testing.T) {
	for _, manner := range modeltest.Manners() {
		c := &modeltest.Conversation{Manner: manner, Steps: []modeltest.Step{
			{Text: "A long text.", Calls: []modeltest.Call{{Name: "read", Arguments: `{"path":"a.md"}`}}}, {Text: "Done."}}}
		m := reach(t, c, nil)
		chat := model.Chat{Turns: []model.Turn{{Role: "user", Text: "Go."}}, Tools: []model.Tool{{Name: "read"}}}
		reply, err := m.Chat(t.Context(), chat)
		if err != nil {
			t.Fatalf("%s: %v", manner.Name, err)
		}
		reply.Calls[0].Arguments = `{"path":"[left out]"}`
		chat.Turns = append(chat.Turns, model.Turn{Role: "assistant", Text: "Short.", Calls: reply.Calls, Kept: reply.Kept},
			model.Turn{Role: "tool", CallID: reply.Calls[0].ID, Text: "x"})
		if _, err := m.Chat(t.Context(), chat); err != nil {
			t.Errorf("%s: %v", manner.Name, err)
		}
		sent, err := json.Marshal(c.Taken[len(c.Taken)-1])
		if err != nil {
			t.Fatal(err)
		}
		if s := string(sent); !strings.Contains(s, "Short.") || strings.Contains(s, "A long text.") || !strings.Contains(s, "[left out]") || strings.Contains(s, "a.md") {
			t.Errorf("%s was sent %s", manner.Name, s)
		}
	}
}

func TestExtraFieldsAndHeadersAreSent(t *testing.T) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		form := map[string]string{model.OpenAI: "chat", model.Anthropic: "messages"}[provider]
		manner := modeltest.Manners()[slices.IndexFunc(modeltest.Manners(), func(m modeltest.Manner) bool { return m.Form == form })]
		manner.Check = nil
		c := &modeltest.Conversation{Manner: manner, Steps: []modeltest.Step{{Text: "x"}}}
		m := reach(t, c, func(n *remote.Config) {
			n.Effort, n.ExtraBody, n.ExtraHeaders = "low", map[string]any{"top_k": 4}, map[string]string{"X-Team": "docs"}
		})
		if _, err := m.Chat(t.Context(), model.Chat{Turns: []model.Turn{{Role: "user", Text: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if sent := c.Taken[0]; string(sent["top_k"]) != "4" || string(sent["reasoning_effort"])+string(sent["output_config"]) == "" {
			t.Errorf("sent %v", sent)
		}
	}
}

// A reply that was cut off before anything of it was seen is asked for again with twice the room, twice at the most.
func TestAReplyThatIsCutOffUnseenGetsMoreRoom(t *testing.T) {
	var limits []int
	cut := func(int, string, []modeltest.Call) []string {
		return []string{`data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}` + "\n\ndata: [DONE]\n\n"}
	}
	c := &modeltest.Conversation{Manner: modeltest.Manner{Name: "cut", Form: "chat", Events: cut}, Steps: make([]modeltest.Step, 20)}
	m := reach(t, c, func(n *remote.Config) { n.Window = 100_000 })
	reply, err := m.Chat(t.Context(), model.Chat{Turns: []model.Turn{{Role: "user", Text: "x"}}})
	if err != nil || reply.Reason != "length" || reply.Usage.CompletionTokens != 21 {
		t.Errorf("%+v, %v", reply, err)
	}
	for _, sent := range c.Taken {
		var n int
		if err := json.Unmarshal(sent["max_tokens"], &n); err != nil {
			t.Fatal(err)
		}
		limits = append(limits, n)
	}
	if !reflect.DeepEqual(limits, []int{8000, 16000, 32000}) {
		t.Errorf("asked with %v", limits)
	}
}

// A server that does not stream, or refuses with a 200, is heard too.
func TestAnAnswerInOnePieceIsReadWhateverWasAskedFor(t *testing.T) {
	for page, want := range map[string]string{
		`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"All is well."}}],"usage":{"prompt_tokens":3,"completion_tokens":3}}`: "All is well.",
		`{"error":{"message":"Your account may not use this model.","code":403}}`:                                                                                    "reported an error (status 200): Your account may not use this model.",
		`{"detail":"Model is loading"}`:       "Model is loading",
		`{"choices":[]}`:                      "did not answer with a stream",
		`<html><title>Sign in</title></html>`: "did not answer with a stream (status 200): the provider did not send an event stream: Sign in",
		`{"error":{"message":"Unsupported parameter: 'stream_options' is not supported with this model.","code":400}}`: "Learned.",
	} {
		m := reach(t, &modeltest.Conversation{}, func(n *remote.Config) {
			n.Attempts = 1
			n.Transport = trip(func(r *http.Request) (*http.Response, error) {
				body, _ := io.ReadAll(r.Body)
				kind, out := "application/json", page
				switch {
				case strings.HasPrefix(page, "<"):
					kind = "text/html"
				case want == "Learned." && !strings.Contains(string(body), "stream_options"):
					out = strings.Replace(`{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"X"}}]}`, "X", want, 1)
				}
				return modeltest.Response(200, map[string]string{"Content-Type": kind}, io.NopCloser(strings.NewReader(out))), nil
			})
		})
		reply, err := m.Chat(t.Context(), model.Chat{Turns: []model.Turn{{Role: "user", Text: "x"}}, Once: true})
		said := reply.Text
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s: %s", page, said)
		}
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reach is a model at a provider that is played.
func reach(t *testing.T, c *modeltest.Conversation, change func(*remote.Config)) *remote.Model {
	t.Helper()
	provider := model.OpenAI
	if c.Form == "messages" {
		provider = model.Anthropic
	}
	n := remote.Config{BaseURL: "http://models.example/v1", Model: "m-1", Transport: c, Backoff: time.Millisecond}
	if change != nil {
		change(&n)
	}
	m, err := new(remote.Set).Add("remote", provider, n)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
