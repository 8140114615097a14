package remote

import (
	"errors"
	"testing"

	"docent/model"
)

// What servers say when a conversation is too long or when they decline, in the words of their documentation and
// sources, and what they say of other things.
func TestWhatServersMean(t *testing.T) {
	for _, c := range []struct {
		kind, text string
		want       error
	}{
		{"invalid_request_error context_length_exceeded",
			"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.", model.ErrTooLong},
		{"invalid_request_error context_length_exceeded",
			"Your input exceeds the context window of this model. Please adjust your input and try again.", model.ErrTooLong},
		{"badrequesterror 400",
			"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).", model.ErrTooLong},
		{"badrequesterror 400", "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
			model.ErrTooLong},
		{"exceed_context_size_error 400",
			"the request exceeds the available context size. try increasing the context size or enable context shift",
			model.ErrTooLong},
		{"api_error", "the input length exceeds the context length", model.ErrTooLong},
		{"", "The number of tokens to keep from the initial prompt is greater than the context length.", model.ErrTooLong},
		{"", "Trying to keep the first 5402 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", model.ErrTooLong},
		{"invalid_argument", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
			model.ErrTooLong},
		{"invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", model.ErrTooLong},
		{"invalid_request_error",
			"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again", model.ErrTooLong},
		{"request_too_large", "Request exceeds the maximum size", model.ErrTooLong},
		{"content_filter", "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
			model.ErrRefused},
		{"invalid_request_error content_policy_violation", "Your request was rejected.", model.ErrRefused},
		{"invalid_request_error", "Unrecognized request argument supplied: stream_options", nil},
		{"invalid_request_error", "max_tokens is too large: 99999. This model supports at most 16384 completion tokens.",
			nil},
		{"rate_limit_error", "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
			nil},
		{"rate_limit_exceeded", "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.", nil},
		{"server_error", "The server had an error while processing your request.", nil},
	} {
		if got := meaning(c.kind, c.text); got != c.want {
			t.Errorf("%s %q means %v", c.kind, c.text, got)
		}
	}
}

func TestWhyStreamsEnd(t *testing.T) {
	call := []model.Call{{ID: "1", Name: "f"}}
	for _, c := range []struct {
		reason string
		calls  []model.Call
		want   string
		err    error
	}{
		{"stop", nil, "stop", nil}, {"end_turn", nil, "stop", nil}, {"stop_sequence", nil, "stop", nil},
		{"stop", call, "tools", nil}, {"tool_calls", call, "tools", nil}, {"tool_use", call, "tools", nil},
		{"function_call", call, "tools", nil},
		{"tool_calls", nil, "stop", nil}, // said by servers whose parser found no call in the text
		{"length", nil, "length", nil}, {"max_tokens", call, "length", nil},
		{"model_context_window_exceeded", nil, "length", nil},
		{"content_filter", nil, "", model.ErrRefused}, {"refusal", nil, "", model.ErrRefused},
	} {
		e := ending{reason: c.reason, calls: c.calls}
		err := e.check()
		var report *reported
		switch {
		case c.err == nil && (err != nil || e.reason != c.want):
			t.Errorf("%s: %s, %v", c.reason, e.reason, err)
		case c.err != nil && (!errors.As(err, &report) || report.means != c.err):
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	for _, reason := range []string{"", "pause_turn"} {
		if e := (ending{reason: reason}); e.check() == nil {
			t.Errorf("%q is taken for an end", reason)
		}
	}
}

// Servers differ in how they number the pieces of calls.
func TestCallsArePutTogether(t *testing.T) {
	zero, one := 0, 1
	piece := func(index *int, id, name, arguments string) callPiece {
		return callPiece{Index: index, ID: id, Name: name, Arguments: arguments}
	}
	want := []model.Call{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: `{"y":2}`}}
	for name, pieces := range map[string][]callPiece{
		"by index": {piece(&zero, "a", "f", ""), piece(&zero, "", "", `{"x":`), piece(&one, "b", "g", `{"y"`),
			piece(&zero, "", "", `1}`), piece(&one, "", "", `:2}`)},
		"whole, all index 0": {piece(&zero, "a", "f", `{"x":1}`), piece(&zero, "b", "g", `{"y":2}`)},
		"whole, no index":    {piece(nil, "a", "f", `{"x":1}`), piece(nil, "b", "g", `{"y":2}`)},
		"pieces, no index": {piece(nil, "a", "f", `{"x"`), piece(nil, "", "", `:1}`), piece(nil, "b", "g", `{"y":`),
			piece(nil, "", "", `2}`)},
		"id with each piece": {piece(&zero, "a", "f", `{"x"`), piece(&zero, "a", "", `:1}`), piece(&one, "b", "g", `{"y":`),
			piece(&one, "b", "", `2}`)},
		"name with each": {piece(&zero, "a", "f", `{"x"`), piece(&zero, "", "f", `:1}`), piece(&one, "b", "g", `{"y":`),
			piece(&one, "", "g", `2}`)},
		"indexes from two on": {piece(new(int(2)), "a", "f", `{"x":1}`), piece(new(int(5)), "b", "g", `{"y":2}`)},
	} {
		var g gathered
		for i := range pieces {
			g.add(&pieces[i])
		}
		if len(g.list) != 2 || g.list[0] != want[0] || g.list[1] != want[1] {
			t.Errorf("%s: %+v", name, g.list)
		}
	}
	var g gathered // no ids at all
	for _, p := range []callPiece{piece(nil, "", "f", `{}`), piece(nil, "", "g", `{}`)} {
		g.add(&p)
	}
	if len(g.list) != 2 || g.list[0].Name != "f" || g.list[1].Name != "g" {
		t.Errorf("%+v", g.list)
	}
}

func TestPrices(t *testing.T) {
	p := Price{Prompt: 3, Cached: 0.3, Completion: 15}
	for _, c := range []struct {
		p    Price
		u    model.Usage
		kept int
		want int64
	}{
		{p, model.Usage{}, 0, 0},
		{p, model.Usage{PromptTokens: 1_000_000}, 0, 3_000_000},
		{p, model.Usage{PromptTokens: 1_000_000, CachedTokens: 1_000_000}, 0, 300_000},
		{p, model.Usage{PromptTokens: 1000, CachedTokens: 400, CompletionTokens: 10}, 100, 500*3 + 375 + 120 + 150},
		{p, model.Usage{PromptTokens: 10, CachedTokens: 400}, 0, 120}, // a provider that counts cached ones apart
		{Price{Prompt: 2}, model.Usage{PromptTokens: 10, CachedTokens: 10, CompletionTokens: 10}, 0, 20},
		{Price{Prompt: 0.15}, model.Usage{PromptTokens: 1}, 0, 1}, // rounded up
		{Price{Completion: 0.1}, model.Usage{CompletionTokens: 30}, 0, 3},
		{Price{}, model.Usage{PromptTokens: 1000, CompletionTokens: 1000}, 1000, 0},
	} {
		if got := c.p.of(c.u, c.kept); got != c.want {
			t.Errorf("%+v of %+v is %d, want %d", c.p, c.u, got, c.want)
		}
	}
}
