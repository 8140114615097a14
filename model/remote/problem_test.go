package remote

import (
	"slices"
	"strings"
	"testing"

	"docent/model"
)

// Errors as providers and the proxies before them write them.
func TestProblemsAreReadInEveryForm(t *testing.T) {
	for page, want := range map[string]string{
		`{"error":{"message":"Unsupported parameter: 'max_tokens'","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`: "Unsupported parameter: 'max_tokens'",
		`[{"error":{"code":400,"message":"Function call is missing a thought_signature.","status":"INVALID_ARGUMENT"}}]`:                                 "Function call is missing a thought_signature.",
		`{"error":"model 'x' not found"}`: "model 'x' not found",
		`{"object":"error","message":"The model does not exist.","type":"NotFoundError","code":404}`:                                                  "The model does not exist.",
		`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}`: "stream_options: Extra inputs are not permitted",
		`{"detail":[{"loc":["body","messages",0,"role"],"msg":"field required"},{"loc":["body","model"],"msg":"field required"}]}`:                    "messages.role: field required; model: field required",
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`:                                                "Overloaded",
		`{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"bad tool\"}}","provider_name":"X"}}}`:  "bad tool",
		`{"message":"no Route matched with those values"}`:                                                                                            "no Route matched with those values",
		`{"errors":[{"message":"first"},{"message":"second"}]}`:                                                                                       "first; second",
		"upstream connect error or disconnect":                                                                                                        "upstream connect error or disconnect",
		"<html>\n<head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body></html>":  "502 Bad Gateway: nginx",
		"<html><head><title>400 Bad Request</title></head><body><h1>Bad Request</h1><p>stream_options is not supported.</p></body></html>":            "400 Bad Request: Bad Request stream_options is not supported.",
		"<!doctype html><style>p{}</style><p>Access &amp; more</p>":                                                                                   "Access & more",
		"": "", `{"choices":[]}`: "", `{"error":null}`: "",
	} {
		e := readProblem(400, []byte(page))
		if e.text != want || e.given != (want != "") {
			t.Errorf("%s says %q", page, e.text)
		}
	}
	if e := readProblem(429, []byte(`{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`)); !e.spent {
		t.Errorf("%+v", e)
	}
	if e := readProblem(400, []byte(`{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}`)); e.means != model.ErrTooLong {
		t.Errorf("%+v", e)
	}
	deep := strings.Repeat(`{"error":`, 10_000) + `"x"` + strings.Repeat("}", 10_000)
	if e := readProblem(400, []byte(deep)); e.text != "" {
		t.Errorf("from the depth: %q", e.text)
	}
}

func TestRefusalsAreLearnedFrom(t *testing.T) {
	body := func() map[string]any {
		return map[string]any{"model": "m", "messages": 1, "max_tokens": 8000, "stream": true, "stream_options": 1, "temperature": 1,
			"reasoning_effort": "low", "parallel_tool_calls": true, "tool_choice": "auto"}
	}
	for _, c := range []struct {
		status int
		page   string
		want   func(m manners) bool // nil: nothing is learned
	}{
		{400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","param":"temperature","code":"unsupported_value"}}`,
			func(m manners) bool { return m.leavesOut("temperature") }},
		{400, `{"error":{"message":"Unrecognized request argument supplied: parallel_tool_calls"}}`,
			func(m manners) bool { return m.leavesOut("parallel_tool_calls") }},
		{400, `{"object":"error","message":"max_tokens is too large: 8000. This model supports at most 4096 completion tokens, whereas you provided 8000."}`,
			func(m manners) bool { return m.most == 4096 && !m.leavesOut("max_tokens") }},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens"}}`,
			func(m manners) bool { return m.most == 4096 }},
		{400, `{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 4096]"}}`,
			func(m manners) bool { return m.most == 4096 }},
		{400, `{"error":{"message":"Your organization must be verified to stream this model.","param":"stream","code":"unsupported_value"}}`,
			func(m manners) bool { return m.whole }},
		{422, `{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}`,
			func(m manners) bool { return m.leavesOut("stream_options") }},
		{400, `{"error":{"message":"tool_choice 'auto' is not supported with thinking"}}`, func(m manners) bool { return m.leavesOut("tool_choice") }},
		{400, `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"}}`,
			func(m manners) bool { return m.reasoning }},
		{422, `{"detail":[{"loc":["body","messages",2,"reasoning_content"],"msg":"Extra inputs are not permitted"}]}`,
			func(m manners) bool { return slices.Contains(m.unkept, "reasoning_content") }},
		{404, `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions."}}`,
			func(m manners) bool { return m.responses }},
		{400, `<html><head><title>400 Bad Request</title></head><body><p>Parameter stream_options is not supported by this gateway.</p></body></html>`,
			func(m manners) bool { return m.leavesOut("stream_options") }},
		{400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"parallel_tool_calls\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`,
			func(m manners) bool { return m.leavesOut("parallel_tool_calls") }},
		{400, `unknown field: tool_choice`, func(m manners) bool { return m.leavesOut("tool_choice") }},
		{404, `{"error":{"message":"The model m does not support this."}}`, nil},
		{401, `{"error":{"message":"temperature is not supported"}}`, nil},
		{400, `{"error":{"message":"This request was rejected."}}`, nil},
		{400, `{"error":{"message":"Invalid value for the model"}}`, nil},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","code":"context_length_exceeded"}}`, nil},
	} {
		l := new(learned)
		chat := &model.Chat{MaxTokens: 8000}
		e := readProblem(c.status, []byte(c.page))
		if ok := l.learn(e, l.now(), body(), chat); ok != (c.want != nil) || ok && !c.want(l.now()) {
			t.Errorf("%s: %v, %+v", c.page, ok, l.now())
		}
	}
	l, chat := new(learned), &model.Chat{MaxTokens: 8000}
	e := readProblem(400, []byte(`{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 4096 tokens and your request has 1096 input tokens (8000 > 4096 - 1096)."}`))
	if !l.learn(e, l.now(), body(), chat) || chat.MaxTokens != 2700 {
		t.Errorf("room for %d tokens", chat.MaxTokens)
	}
	// The same refusal again is no further way: the first was all that could be done.
	for range 2 {
		e := readProblem(400, []byte(`{"error":{"message":"max_tokens is not supported"}}`))
		l.learn(e, l.now(), body(), chat)
	}
	if now := l.now(); now.limitName(maxTokens) != maxCompletionTokens || l.learn(e, now, map[string]any{"messages": 1}, &model.Chat{}) {
		t.Errorf("%+v", now)
	}
}

func TestKnownModelsAreFoundByTheirNames(t *testing.T) {
	for name, want := range map[string]string{
		"gpt-5.1": "gpt-5.1", "gpt-5.1-2025-11-13": "gpt-5.1", "openai/gpt-5.1": "gpt-5.1", "gpt-5.1-codex": "gpt-5.1-codex",
		"claude-sonnet-4-5-20250929": "claude-sonnet-4-5", "anthropic/claude-sonnet-4.5": "claude-sonnet-4-5", "us/anthropic.claude-opus-4-1": "claude-opus-4-1",
		"claude-sonnet-4-20250514": "claude-sonnet-4", "gemini-3-pro-preview": "gemini-3-pro", "models/gemini-2.5-flash": "gemini-2.5-flash",
		"mistral-large-latest": "mistral-large", "gpt-5.9": "", "o3-deep-research": "", "llama3.1": "", "": "",
	} {
		if got := lookUp(name); got.name != want {
			t.Errorf("%s is %q", name, got.name)
		}
	}
	set := new(Set)
	add := func(provider string, c Config) *Model {
		t.Helper()
		c.Key = func() string { return "k" }
		m, err := set.Add("m", provider, c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := add(model.OpenAI, Config{Model: "gpt-5.1"}); m.API != Responses || m.Window() != 200_000 || m.turn != 16_000 || m.Price.Completion != 10 {
		t.Errorf("%+v", m.Config)
	}
	if m := add(model.OpenAI, Config{Model: "gpt-5.1", API: ChatCompletions, Window: 50_000, MaxTokens: 500, Price: Price{Prompt: 9}}); m.API != ChatCompletions ||
		m.Window() != 50_000 || m.turn != 500 || m.MaxTokens != 500 || m.Price != (Price{Prompt: 9}) {
		t.Errorf("what the configuration says does not go before: %+v", m.Config)
	}
	if m := add(model.OpenAI, Config{BaseURL: "http://127.0.0.1:8000/v1", Model: "deepseek-v4-pro"}); m.Priced() || m.Window() != 200_000 {
		t.Errorf("open weights on one's own machine have a price: %+v", m.Price)
	}
	if m := add(model.OpenAI, Config{BaseURL: "http://127.0.0.1:8000/v1", Model: "llama3.1"}); m.Priced() || m.Window() != defaultWindow || m.turn != defaultTurn {
		t.Errorf("%+v", m.Config)
	}
}
