package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

type anthropic struct{}

func (anthropic) name() string { return "anthropic" }

func (anthropic) key(r *http.Request) string { return r.Header.Get("X-Api-Key") }

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	CallID  string          `json:"tool_use_id"`
	Content string          `json:"content"`
	Cache   json.RawMessage `json:"cache_control"`
}

func (anthropic) parse(body []byte) (Asked, error) {
	var in struct {
		Model     string  `json:"model"`
		MaxTokens int     `json:"max_tokens"`
		System    []block `json:"system"`
		Messages  []struct {
			Role    string  `json:"role"`
			Content []block `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Stream bool `json:"stream"`
	}
	var a Asked
	if err := json.Unmarshal(body, &in); err != nil {
		return a, fmt.Errorf("the request body is not valid: %w", err)
	}
	a = Asked{Model: in.Model, MaxTokens: in.MaxTokens, Stream: in.Stream}
	switch {
	case in.Model == "":
		return a, errors.New("model: Field required")
	case in.MaxTokens <= 0:
		return a, errors.New("max_tokens: Input should be greater than or equal to 1")
	case len(in.Messages) == 0 || in.Messages[0].Role != "user":
		return a, errors.New("messages: first message must use the \"user\" role")
	}
	marks := 0
	mark := func(b block) {
		if len(b.Cache) > 0 {
			marks++
		}
	}
	for _, b := range in.System {
		if strings.TrimSpace(b.Text) == "" {
			return a, errors.New("system: text content blocks must be non-empty")
		}
		a.System += b.Text
		mark(b)
	}
	for n, m := range in.Messages {
		if m.Role != "user" && m.Role != "assistant" || n > 0 && in.Messages[n-1].Role == m.Role {
			return a, fmt.Errorf("messages.%d: roles must alternate between \"user\" and \"assistant\"", n)
		}
		for _, b := range m.Content {
			mark(b)
		}
		if err := a.read(n, m.Role, m.Content); err != nil {
			return a, err
		}
	}
	if marks > 4 {
		return a, fmt.Errorf("a maximum of 4 blocks with cache_control may be provided. Found %d", marks)
	}
	for n, t := range in.Tools {
		if !toolName(t.Name) || !object(t.Schema) {
			return a, fmt.Errorf("tools.%d: Field required", n)
		}
		a.Tools = append(a.Tools, t.Name)
	}
	return a, nil
}

// read puts the blocks of message n into the form that both providers have in common.
func (a *Asked) read(n int, role string, content []block) error {
	message := Message{Role: role}
	for i, b := range content {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			return fmt.Errorf("messages.%d.content.%d: text content blocks must be non-empty", n, i)
		case b.Type == "text":
			message.Text += b.Text
		case b.Type == "tool_use" && role == "assistant":
			if !toolName(b.Name) || !toolName(b.ID) || !object(b.Input) {
				return fmt.Errorf("messages.%d.content.%d.tool_use: Input should be a valid dictionary", n, i)
			}
			message.Calls = append(message.Calls, Call{b.Name, string(b.Input)})
			message.ids = append(message.ids, b.ID)
		case b.Type == "tool_result" && role == "user":
			if message.Text != "" {
				return fmt.Errorf("messages.%d: tool_result blocks must come first", n)
			}
			a.Messages = append(a.Messages, Message{Role: "tool", Text: b.Content, CallID: b.CallID})
		default:
			return fmt.Errorf("messages.%d.content.%d: a %q block is not allowed", n, i, b.Type)
		}
	}
	if len(content) == 0 {
		return fmt.Errorf("messages.%d: all messages must have non-empty content", n)
	}
	if message.Text != "" || len(message.Calls) > 0 {
		a.Messages = append(a.Messages, message)
	}
	return nil
}

func (anthropic) fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fields{
		"type": "error", "error": fields{"type": kind, "message": message}, "request_id": "req_1",
	})
}

func (anthropic) tooLong(a Asked, window int) (kind, message string) {
	if a.Tokens <= window {
		return "invalid_request_error", fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, "+
			"decrease input length or `max_tokens` and try again", a.Tokens, a.MaxTokens, window)
	}
	return "invalid_request_error", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", a.Tokens, window)
}

func (anthropic) refused(Asked) Step { return Step{Reason: "refusal"} }

func (anthropic) broken() string {
	return "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
}

// stopReason is a step's reason in Anthropic's words.
func stopReason(st Step) string {
	r := reason(st)
	if own, ok := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[r]; ok {
		return own
	}
	return r
}

func anthropicUsage(a Asked, st Step) fields {
	read := a.Tokens / 2
	return fields{
		"input_tokens": a.Tokens - read, "cache_read_input_tokens": read, "cache_creation_input_tokens": 0,
		"output_tokens": count(st),
	}
}

func anthropicMessage(a Asked, id int, content, stop any, usage fields) fields {
	return fields{
		"id": fmt.Sprintf("msg_%d", id), "type": "message", "role": "assistant", "model": a.Model,
		"content": content, "stop_reason": stop, "usage": usage,
	}
}

func (anthropic) pieces(a Asked, st Step, id int) (list []string, begun int) {
	event := func(kind string, more fields) {
		more["type"] = kind
		list = append(list, "event: "+kind+"\ndata: "+compact(more)+"\n\n")
	}
	event("message_start", fields{"message": anthropicMessage(a, id, []any{}, nil, anthropicUsage(a, Step{}))})
	index := 0
	if st.Text != "" {
		event("content_block_start", fields{"index": index, "content_block": fields{"type": "text", "text": ""}})
		event("ping", fields{})
		for _, word := range words(st.Text) {
			event("content_block_delta", fields{"index": index, "delta": fields{"type": "text_delta", "text": word}})
		}
		event("content_block_stop", fields{"index": index})
		index++
	}
	for n, c := range st.Calls {
		use := fields{"type": "tool_use", "id": callID(id, n), "name": c.Name, "input": fields{}}
		event("content_block_start", fields{"index": index, "content_block": use})
		event("content_block_delta", fields{"index": index, "delta": fields{"type": "input_json_delta", "partial_json": ""}})
		for _, part := range chops(c.Arguments) {
			delta := fields{"type": "input_json_delta", "partial_json": part}
			event("content_block_delta", fields{"index": index, "delta": delta})
		}
		event("content_block_stop", fields{"index": index})
		index++
	}
	begun = max(len(list)/2, min(len(list), 4)) // what opens the answer, and a word or a call
	event("message_delta", fields{
		"delta": fields{"stop_reason": stopReason(st), "stop_sequence": nil}, "usage": fields{"output_tokens": count(st)},
	})
	event("message_stop", fields{})
	return list, begun
}

func (anthropic) whole(a Asked, st Step, id int) any {
	content := []any{}
	if st.Text != "" {
		content = append(content, fields{"type": "text", "text": st.Text})
	}
	for n, c := range st.Calls {
		input := json.RawMessage(c.Arguments)
		if !object(input) {
			input = json.RawMessage("{}")
		}
		content = append(content, fields{"type": "tool_use", "id": callID(id, n), "name": c.Name, "input": input})
	}
	return anthropicMessage(a, id, content, stopReason(st), anthropicUsage(a, st))
}
