package remote_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
)

// conversation is one with all that a turn may have.
var conversation = model.Chat{
	System: "You edit documentation.",
	Turns: []model.Turn{
		{Role: "user", Text: "Fix the typo."},
		{Role: "assistant", Text: "I look.",
			Calls: []model.Call{{ID: "call/1", Name: "read", Arguments: `{"path":"a.md"}`},
				{ID: "call_2", Name: "read", Arguments: `{"path":`}}},
		{Role: "tool", CallID: "call/1", Text: "Teh text."},
		{Role: "tool", CallID: "call_2", Text: "the arguments are no JSON", Failed: true},
	},
	Tools: []model.Tool{{Name: "read", Description: "Reads a file.",
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
	Key: "job_1/3",
}

// withCalls is an answer of some words and two calls, their arguments in pieces and mixed, the second's broken.
var withCalls = map[string]string{
	model.OpenAI: `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Two "}}]}

data: {"choices":[{"index":0,"delta":{"content":"edits.","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"edit","arguments":""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"read","arguments":"{\"pa"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"a.md\","}},{"index":1,"function":{"arguments":"th\":"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"new\":\"The\"}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":600}}}

data: [DONE]

`,
	model.Anthropic: `event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":300,"cache_read_input_tokens":600,"cache_creation_input_tokens":100,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"ping"}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Two edits."}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"edit","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a.md\","}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"new\":\"The\"}"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c2","name":"read","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":50}}

data: {"type":"message_stop"}

`,
}

// chatWith holds one exchange with a model whose provider is the handler.
func chatWith(t *testing.T, provider string, c model.Chat, change func(*registry.Named),
	handler http.HandlerFunc) (model.Reply, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	n := registry.Named{Name: "remote", Provider: provider,
		Remote: remote.Config{BaseURL: server.URL + "/v1", Model: "m-1", Key: modeltest.Key(secret), Backoff: time.Millisecond}}
	if change != nil {
		change(&n)
	}
	reply, err := open(t, n).Chat(t.Context(), "", c)
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the key shows: %v", err)
	}
	return reply, err
}

func TestAConversationWithTools(t *testing.T) {
	sent := map[string]string{
		model.OpenAI: `{"model":"m-1","messages":[
			{"role":"system","content":"You edit documentation."},
			{"role":"user","content":"Fix the typo."},
			{"role":"assistant","content":"I look.","tool_calls":[
				{"id":"call/1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.md\"}"}},
				{"id":"call_2","type":"function","function":{"name":"read","arguments":"{\"malformed\":\"{\\\"path\\\":\"}"}}]},
			{"role":"tool","content":"Teh text.","tool_call_id":"call/1"},
			{"role":"tool","content":"the arguments are no JSON","tool_call_id":"call_2"}],
			"max_tokens":8000,"stream":true,"stream_options":{"include_usage":true},
			"tools":[{"type":"function","function":{"name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}]}`,
		model.Anthropic: `{"model":"m-1","max_tokens":8000,"stream":true,
			"system":[{"type":"text","text":"You edit documentation.","cache_control":{"type":"ephemeral"}}],
			"messages":[
			{"role":"user","content":[{"type":"text","text":"Fix the typo.","cache_control":{"type":"ephemeral"}}]},
			{"role":"assistant","content":[{"type":"text","text":"I look."},
				{"type":"tool_use","id":"call_1","name":"read","input":{"path":"a.md"}},
				{"type":"tool_use","id":"call_2","name":"read","input":{"malformed":"{\"path\":"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"Teh text."},
				{"type":"tool_result","tool_use_id":"call_2","content":"the arguments are no JSON","is_error":true,"cache_control":{"type":"ephemeral"}}]}],
			"tools":[{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}]}`,
	}
	cost := map[string]int64{
		model.OpenAI:    400*3 + 600*3/10 + 50*15,
		model.Anthropic: 300*3 + 100*3*5/4 + 600*3/10 + 50*15,
	}
	eachProvider(t, func(t *testing.T, provider string) {
		var body []byte
		var key string
		price := func(n *registry.Named) { n.Remote.Price = remote.Price{Prompt: 3, Cached: 0.3, Completion: 15} }
		reply, err := chatWith(t, provider, conversation, price, func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			key = r.Header.Get("Idempotency-Key")
			stream(w, withCalls[provider])
		})
		if err != nil {
			t.Fatal(err)
		}
		want := model.Reply{Model: "remote", Text: "Two edits.", Reason: "tools",
			Calls: []model.Call{{ID: "c1", Name: "edit", Arguments: `{"path":"a.md","new":"The"}`},
				{ID: "c2", Name: "read", Arguments: `{"path":`}},
			Usage: model.Usage{PromptTokens: 1000, CachedTokens: 600, CompletionTokens: 50, Cost: cost[provider]}}
		if !reflect.DeepEqual(reply, want) {
			t.Errorf("got  %+v\nwant %+v", reply, want)
		}
		var got, expected any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(sent[provider]), &expected); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("sent %s", body)
		}
		if key != conversation.Key {
			t.Errorf("the call bears the key %q", key)
		}
	})
}
