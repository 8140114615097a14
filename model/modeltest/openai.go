package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

type openai struct{}

func (openai) name() string { return "openai" }

func (openai) key(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (openai) parse(body []byte) (Asked, error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
			Calls   []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function Call   `json:"function"`
			} `json:"tool_calls"`
			CallID string `json:"tool_call_id"`
		} `json:"messages"`
		Tools []struct {
			Type     string `json:"type"`
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
		MaxTokens     int  `json:"max_tokens"`
		MaxCompletion int  `json:"max_completion_tokens"`
		Stream        bool `json:"stream"`
	}
	var a Asked
	if err := json.Unmarshal(body, &in); err != nil {
		return a, fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	a = Asked{Model: in.Model, MaxTokens: max(in.MaxTokens, in.MaxCompletion), Stream: in.Stream}
	if in.Model == "" {
		return a, errors.New("you must provide a model parameter")
	}
	for n, m := range in.Messages {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		switch m.Role {
		case "system", "developer":
			a.System += text
			continue
		case "tool":
			if m.Content == nil {
				return a, fmt.Errorf("missing required parameter: 'messages[%d].content'", n)
			}
		case "user", "assistant":
		default:
			return a, fmt.Errorf("invalid value: %q for 'messages[%d].role'", m.Role, n)
		}
		message := Message{Role: m.Role, Text: text, CallID: m.CallID}
		for _, c := range m.Calls {
			if c.Type != "function" || !toolName(c.Function.Name) {
				return a, fmt.Errorf("invalid 'messages[%d].tool_calls': %q", n, c.Function.Name)
			}
			if !object(json.RawMessage(c.Function.Arguments)) { // as servers with templates of their own demand
				return a, fmt.Errorf("'messages[%d].tool_calls': the arguments are no JSON object", n)
			}
			message.Calls = append(message.Calls, c.Function)
			message.ids = append(message.ids, c.ID)
		}
		a.Messages = append(a.Messages, message)
	}
	for n, t := range in.Tools {
		if t.Type != "function" || !toolName(t.Function.Name) || !object(t.Function.Parameters) {
			return a, fmt.Errorf("invalid 'tools[%d]'", n)
		}
		a.Tools = append(a.Tools, t.Function.Name)
	}
	return a, nil
}

func (openai) fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fields{
		"error": fields{"message": message, "type": "invalid_request_error", "param": nil, "code": kind},
	})
}

func (openai) tooLong(a Asked, window int) (kind, message string) {
	return "context_length_exceeded",
		fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages "+
			"resulted in %d tokens. Please reduce the length of the messages.", window, a.Tokens)
}

func (openai) refused(Asked) Step { return Step{Reason: "content_filter"} }

func (openai) broken() string {
	return `data: {"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}` + "\n\n"
}

func reason(st Step) string {
	switch {
	case st.Reason != "":
		return st.Reason
	case len(st.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

type fields = map[string]any

func (openai) pieces(a Asked, st Step, id int) (list []string, begun int) {
	event := func(choices []any, usage fields) {
		e := fields{
			"id": fmt.Sprintf("chatcmpl-%d", id), "object": "chat.completion.chunk", "created": 1, "model": a.Model,
			"choices": choices,
		}
		if usage != nil {
			e["usage"] = usage
		}
		list = append(list, "data: "+compact(e)+"\n\n")
	}
	chunk := func(delta fields, reason any) {
		event([]any{fields{"index": 0, "delta": delta, "finish_reason": reason}}, nil)
	}
	chunk(fields{"role": "assistant", "content": ""}, nil)
	for _, word := range words(st.Text) {
		chunk(fields{"content": word}, nil)
	}
	rest := make([][]string, len(st.Calls))
	for n, c := range st.Calls {
		rest[n] = chops(c.Arguments)
		function := fields{"name": c.Name, "arguments": ""}
		call := fields{"index": n, "id": callID(id, n), "type": "function", "function": function}
		chunk(fields{"tool_calls": []any{call}}, nil)
	}
	for more := true; more; { // of all calls in turn
		more = false
		for n := range rest {
			if len(rest[n]) > 0 {
				chunk(fields{"tool_calls": []any{fields{"index": n, "function": fields{"arguments": rest[n][0]}}}}, nil)
				rest[n], more = rest[n][1:], true
			}
		}
	}
	begun = max(len(list)/2, 2) // what opens the answer, and a word or a call
	chunk(fields{}, reason(st))
	event([]any{}, openaiUsage(a, st))
	return append(list, "data: [DONE]\n\n"), begun
}

func openaiUsage(a Asked, st Step) fields {
	return fields{
		"prompt_tokens": a.Tokens, "completion_tokens": count(st), "total_tokens": a.Tokens + count(st),
		"prompt_tokens_details": fields{"cached_tokens": a.Tokens / 2},
	}
}

func (openai) whole(a Asked, st Step, id int) any {
	message := fields{"role": "assistant", "content": st.Text}
	var calls []any
	for n, c := range st.Calls {
		calls = append(calls, fields{"id": callID(id, n), "type": "function", "function": c})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return fields{"id": fmt.Sprintf("chatcmpl-%d", id), "object": "chat.completion", "created": 1, "model": a.Model,
		"choices": []any{fields{"index": 0, "message": message, "finish_reason": reason(st)}}, "usage": openaiUsage(a, st)}
}

func callID(id, n int) string { return fmt.Sprintf("call_%d_%d", id, n) }
