package modeltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A Manner is how one provider, or one kind of server, speaks its form: what it sends beside text and calls, what has to
// come back, and which parameters it refuses in which words. Each is written from what the provider publishes, or its
// users report; Source says where.
type Manner struct {
	Name   string
	Form   string // "chat", "responses" or "messages"
	Source string
	// Check refuses a request: the words of a 400, in the body as the provider writes it.
	Check func(body map[string]json.RawMessage) (status int, page string)
	// Events are the stream of an answer: its text, and its calls.
	Events func(turn int, text string, calls []Call) []string
}

// Conversation plays one conversation as a provider does. Each request that it takes gets the next step.
type Conversation struct {
	Manner
	Steps []Step

	Taken   []map[string]json.RawMessage // requests that were answered
	Refused []string                     // the words of refusals
}

// RoundTrip implements http.RoundTripper.
func (c *Conversation) RoundTrip(r *http.Request) (*http.Response, error) {
	var body map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	page := func(status int, text string) (*http.Response, error) {
		kind := "application/json"
		if strings.HasPrefix(text, "<") {
			kind = "text/html"
		}
		return Response(status, map[string]string{"Content-Type": kind}, body1(text)), nil
	}
	if want := map[string]string{"chat": "/chat/completions", "responses": "/responses", "messages": "/v1/messages"}[c.Form]; !strings.HasSuffix(r.URL.Path, want) {
		text := `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","type":"invalid_request_error","param":"model","code":null}}`
		c.Refused = append(c.Refused, text)
		return page(http.StatusNotFound, text)
	}
	if c.Check != nil {
		if status, text := c.Check(body); text != "" {
			c.Refused = append(c.Refused, text)
			return page(status, text)
		}
	}
	if len(c.Taken) >= len(c.Steps) {
		return nil, fmt.Errorf("the conversation of %s has only %d steps", c.Name, len(c.Steps))
	}
	st := c.Steps[len(c.Taken)]
	c.Taken = append(c.Taken, body)
	return Response(http.StatusOK, nil, body1(strings.Join(c.Events(len(c.Taken), st.Text, st.Calls), ""))), nil
}

// Message is one message of chat completions, or an item or a message of another form.
func messagesOf(body map[string]json.RawMessage, name string) (list []map[string]json.RawMessage) {
	_ = json.Unmarshal(body[name], &list)
	return list
}

func word(b json.RawMessage) string {
	var s string
	_ = json.Unmarshal(b, &s)
	return s
}

func event(v any) string { return "data: " + compact(v) + "\n\n" }

const done = "data: [DONE]\n\n"

// chatEvents streams an answer in OpenAI's form. Delta and call add what the provider sends beside.
func chatEvents(delta func(turn int) []fields, call func(turn, n int) fields) func(int, string, []Call) []string {
	return func(turn int, text string, calls []Call) (list []string) {
		chunk := func(d fields, reason any) {
			list = append(list, event(fields{"id": "x", "object": "chat.completion.chunk", "choices": []any{
				fields{"index": 0, "delta": d, "finish_reason": reason}}}))
		}
		chunk(fields{"role": "assistant", "content": nil}, nil)
		if delta != nil {
			for _, d := range delta(turn) {
				chunk(d, nil)
			}
		}
		if text != "" {
			chunk(fields{"content": text}, nil)
		}
		for n, c := range calls {
			piece := fields{"index": n, "id": callID(turn, n), "type": "function", "function": fields{"name": c.Name, "arguments": ""}}
			if call != nil {
				maps.Copy(piece, call(turn, n))
			}
			chunk(fields{"tool_calls": []any{piece}}, nil)
			for _, part := range chops(c.Arguments) {
				chunk(fields{"tool_calls": []any{fields{"index": n, "function": fields{"arguments": part}}}}, nil)
			}
		}
		reason := "stop"
		if len(calls) > 0 {
			reason = "tool_calls"
		}
		chunk(fields{}, reason)
		list = append(list, event(fields{"choices": []any{}, "usage": fields{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}))
		return append(list, done)
	}
}

// openAIError is an error in OpenAI's form.
func openAIError(message, param, code string) string {
	return compact(fields{"error": fields{"message": message, "type": "invalid_request_error", "param": param, "code": code}})
}

// thoughtOf is what a model thought in a turn.
func thoughtOf(turn int) string { return fmt.Sprintf("I think about turn %d, <b>and</b> more.", turn) }

func signatureOf(turn int) string { return fmt.Sprintf("c2lnbmF0dXJl%d==", turn) }

// withReasoning refuses turns with calls whose reasoning did not come back word for word.
func withReasoning(say func(at int) string) func(map[string]json.RawMessage) (int, string) {
	return func(body map[string]json.RawMessage) (int, string) {
		turn := 0
		for at, m := range messagesOf(body, "messages") {
			if word(m["role"]) != "assistant" {
				continue
			}
			turn++
			if m["tool_calls"] != nil && (m["reasoning_content"] == nil || word(m["reasoning_content"]) != thoughtOf(turn)) {
				return http.StatusBadRequest, say(at)
			}
		}
		return 0, ""
	}
}

// unsupported refuses a parameter in OpenAI's words.
func unsupported(name, instead string) func(map[string]json.RawMessage) (int, string) {
	return func(body map[string]json.RawMessage) (int, string) {
		if body[name] == nil {
			return 0, ""
		}
		text := "Unsupported parameter: '" + name + "' is not supported with this model."
		if instead != "" {
			text += " Use '" + instead + "' instead."
		}
		return http.StatusBadRequest, openAIError(text, name, "unsupported_parameter")
	}
}

func checks(all ...func(map[string]json.RawMessage) (int, string)) func(map[string]json.RawMessage) (int, string) {
	return func(body map[string]json.RawMessage) (int, string) {
		for _, check := range all {
			if status, text := check(body); text != "" {
				return status, text
			}
		}
		return 0, ""
	}
}

func reasoningDeltas(turn int) (list []fields) {
	list = append(list, fields{"role": "assistant", "content": nil, "reasoning_content": ""})
	for _, part := range words(thoughtOf(turn)) {
		list = append(list, fields{"content": nil, "reasoning_content": part})
	}
	return list
}

// Manners lists the providers whose manners are played, as they were published by the date in the documentation.
func Manners() []Manner {
	plain := chatEvents(nil, nil)
	return slices.Concat([]Manner{
		{Name: "OpenAI chat completions", Form: "chat", Source: "platform.openai.com/docs/api-reference/chat",
			Check: unsupported("max_tokens", "max_completion_tokens"), Events: plain},
		{Name: "Azure OpenAI and AI Foundry", Form: "chat", Source: "learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning",
			Check: checks(unsupported("max_tokens", "max_completion_tokens"), unsupported("parallel_tool_calls", ""),
				unsupported("temperature", "")), Events: plain},
		{Name: "Gemini, OpenAI-compatible", Form: "chat", Source: "ai.google.dev/gemini-api/docs/thought-signatures",
			Check: geminiSigned, Events: chatEvents(nil, func(turn, n int) fields {
				if n > 0 {
					return nil // of calls side by side the first has it
				}
				return fields{"extra_content": fields{"google": fields{"thought_signature": signatureOf(turn)}}}
			})},
		{Name: "DeepSeek, thinking", Form: "chat", Source: "api-docs.deepseek.com/guides/thinking_mode",
			Check: withReasoning(func(int) string {
				return openAIError("The `reasoning_content` in the thinking mode must be passed back to the API.", "", "invalid_request_error")
			}), Events: chatEvents(reasoningDeltas, nil)},
		{Name: "Kimi, thinking", Form: "chat", Source: "platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model",
			Check: withReasoning(func(at int) string {
				return compact(fields{"error": fields{"type": "invalid_request_error", "message": fmt.Sprintf(
					"thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", at)}})
			}), Events: chatEvents(reasoningDeltas, nil)},
		{Name: "Mistral, reasoning", Form: "chat", Source: "docs.mistral.ai/capabilities/reasoning",
			Check: mistralChunks, Events: chatEvents(func(turn int) (list []fields) {
				for _, part := range words(thoughtOf(turn)) {
					list = append(list, fields{"content": []any{fields{"type": "thinking",
						"thinking": []any{fields{"type": "text", "text": part}}}}})
				}
				return list
			}, nil)},
		{Name: "OpenRouter, with comments", Form: "chat", Source: "openrouter.ai/docs/use-cases/reasoning-tokens, /api-reference/streaming",
			Check: openRouterDetails, Events: func(turn int, text string, calls []Call) []string {
				comments := strings.Repeat(": OPENROUTER PROCESSING\n\n", 1000)
				list := chatEvents(func(turn int) (list []fields) {
					for _, part := range words(thoughtOf(turn)) {
						list = append(list, fields{"content": "", "reasoning": part, "reasoning_details": []any{fields{
							"type": "reasoning.text", "text": part, "format": "anthropic-claude-v1", "index": 0}}})
					}
					return append(list, fields{"content": "", "reasoning_details": []any{fields{"type": "reasoning.text",
						"signature": signatureOf(turn), "format": "anthropic-claude-v1", "index": 0}}})
				}, nil)(turn, text, calls)
				return append([]string{comments}, strings.ReplaceAll(strings.Join(list, comments), "\n", "\r\n"))
			}},
		{Name: "Ollama", Form: "chat", Source: "github.com/ollama/ollama docs/api/openai-compatibility", Events: plain},
		{Name: "vLLM, with a tool parser", Form: "chat", Source: "docs.vllm.ai/en/latest/features/tool_calling",
			Check: checks(vllmExtra("stream_options"), vllmExtra("reasoning_effort")), Events: chatEvents(reasoningDeltas, nil)},
		{Name: "llama.cpp, with --jinja", Form: "chat", Source: "github.com/ggml-org/llama.cpp tools/server", Events: plain},
	}, responsesManners(), messagesManners())
}

func geminiSigned(body map[string]json.RawMessage) (int, string) {
	turn := 0
	for _, m := range messagesOf(body, "messages") {
		if word(m["role"]) != "assistant" {
			continue
		}
		turn++
		var calls []struct {
			Extra struct {
				Google struct {
					Signature string `json:"thought_signature"`
				} `json:"google"`
			} `json:"extra_content"`
			Function struct{ Name string } `json:"function"`
		}
		_ = json.Unmarshal(m["tool_calls"], &calls)
		if len(calls) > 0 && calls[0].Extra.Google.Signature != signatureOf(turn) && calls[0].Extra.Google.Signature != "skip_thought_signature_validator" {
			return http.StatusBadRequest, compact([]any{fields{"error": fields{"code": 400, "status": "INVALID_ARGUMENT", "message": "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call `" + calls[0].Function.Name + "` , position 2."}}})
		}
	}
	return 0, ""
}

// mistralChunks refuses fields that it does not know, in FastAPI's form, and turns whose thoughts are gone.
func mistralChunks(body map[string]json.RawMessage) (int, string) {
	for _, name := range []string{"stream_options", "max_completion_tokens"} {
		if body[name] != nil {
			return http.StatusUnprocessableEntity, compact(fields{"object": "error", "type": "invalid_request_error", "message": fields{
				"detail": []any{fields{"type": "extra_forbidden", "loc": []any{"body", name}, "msg": "Extra inputs are not permitted", "input": true}}}})
		}
	}
	turn := 0
	for at, m := range messagesOf(body, "messages") {
		if word(m["role"]) != "assistant" {
			continue
		}
		turn++
		var parts []struct {
			Type     string `json:"type"`
			Thinking []struct{ Text string }
		}
		if json.Unmarshal(m["content"], &parts) != nil || len(parts) == 0 || parts[0].Type != "thinking" ||
			len(parts[0].Thinking) != 1 || parts[0].Thinking[0].Text != thoughtOf(turn) {
			return http.StatusBadRequest, compact(fields{"object": "error", "message": fmt.Sprintf("the thinking of message %d is gone", at)})
		}
	}
	return 0, ""
}

func openRouterDetails(body map[string]json.RawMessage) (int, string) {
	turn := 0
	for _, m := range messagesOf(body, "messages") {
		if word(m["role"]) != "assistant" {
			continue
		}
		turn++
		var details []struct {
			Type, Text, Signature, Format string
		}
		_ = json.Unmarshal(m["reasoning_details"], &details)
		if len(details) != 1 || details[0].Text != thoughtOf(turn) || details[0].Signature != signatureOf(turn) || details[0].Format == "" {
			return http.StatusBadRequest, compact(fields{"error": fields{"code": 400, "message": "Provider returned error", "metadata": fields{
				"provider_name": "Anthropic", "raw": `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.type: Expected thinking"}}`}}})
		}
	}
	return 0, ""
}

func vllmExtra(name string) func(map[string]json.RawMessage) (int, string) {
	return func(body map[string]json.RawMessage) (int, string) {
		if body[name] == nil {
			return 0, ""
		}
		return http.StatusBadRequest, compact(fields{"object": "error", "type": "BadRequestError", "param": nil, "code": 400,
			"message": "[{'type': 'extra_forbidden', 'loc': ('body', '" + name + "'), 'msg': 'Extra inputs are not permitted', 'input': True}]"})
	}
}
