package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"docent/model"
)

// Messages of Anthropic's API, as far as a conversation with tools needs them.
type (
	anthropicMark struct {
		Type string `json:"type"`
	}
	anthropicBlock struct {
		Type    string          `json:"type"`
		Text    string          `json:"text,omitempty"`
		ID      string          `json:"id,omitempty"`
		Name    string          `json:"name,omitempty"`
		Input   json.RawMessage `json:"input,omitempty"`
		CallID  string          `json:"tool_use_id,omitempty"`
		Content string          `json:"content,omitempty"`
		Failed  bool            `json:"is_error,omitempty"`
		Cache   *anthropicMark  `json:"cache_control,omitempty"`
	}
	anthropicMessage struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	}
	anthropicTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"input_schema"`
	}
	anthropicRequest struct {
		Model     string             `json:"model"`
		MaxTokens int                `json:"max_tokens"`
		System    []anthropicBlock   `json:"system,omitempty"`
		Messages  []anthropicMessage `json:"messages"`
		Tools     []anthropicTool    `json:"tools,omitempty"`
		Stream    bool               `json:"stream"`
	}
	anthropicError struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	anthropicUsage struct {
		Input   *int `json:"input_tokens"` // without what the cache gave and took
		Read    *int `json:"cache_read_input_tokens"`
		Written *int `json:"cache_creation_input_tokens"`
		Output  *int `json:"output_tokens"`
	}
	anthropicEvent struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Usage anthropicUsage `json:"usage"`
		} `json:"message"`
		Block anthropicBlock `json:"content_block"`
		Delta struct {
			Type       string `json:"type"`
			Text       string `json:"text"`
			JSON       string `json:"partial_json"`
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage anthropicUsage  `json:"usage"`
		Error *anthropicError `json:"error"`
	}
)

const anthropicVersion = "2023-06-01"

// callAnthropic asks Anthropic's messages API, or a gateway that speaks it.
func (r *Model) callAnthropic(ctx context.Context, x *exchange, c model.Chat, text func(string) error) (ending, error) {
	data, err := json.Marshal(r.anthropicBody(c))
	if err != nil {
		return ending{}, fmt.Errorf("encode the question: %w", err)
	}
	address := strings.TrimSuffix(r.BaseURL, "/v1") + "/v1/messages"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return ending{}, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Anthropic-Version", anthropicVersion)
	if key := r.key(); key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	resp, err := x.Do(req)
	if err != nil {
		return ending{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		var answer struct {
			Error *anthropicError `json:"error"`
		}
		page, _ := io.ReadAll(resp.Body)
		if json.Unmarshal(page, &answer) == nil && answer.Error != nil {
			return ending{}, answer.Error.reported()
		}
		return ending{}, &reported{text: resp.Status, means: meaning("", string(page))}
	}
	a := anthropicAnswer{text: text, calls: map[int]int{}}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, longestLine+1)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // the event's name comes again in its data
		}
		var ev anthropicEvent
		if err := json.Unmarshal(data, &ev); err != nil {
			return a.end, fmt.Errorf("read an event: %w", err)
		}
		if ev.Type == "message_stop" {
			return a.end, a.end.check()
		}
		if err := a.take(&ev); err != nil {
			return a.end, err
		}
	}
	return a.end, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

// An anthropicAnswer is put together from its events.
type anthropicAnswer struct {
	text                 func(string) error
	end                  ending
	input, written, read int         // tokens of the prompt
	calls                map[int]int // by block of the answer
}

func (a *anthropicAnswer) take(ev *anthropicEvent) error {
	switch ev.Type {
	case "message_start":
		a.count(ev.Message.Usage)
	case "content_block_start":
		return a.begin(ev.Index, &ev.Block)
	case "content_block_delta":
		switch ev.Delta.Type {
		case "text_delta":
			return a.text(ev.Delta.Text)
		case "input_json_delta":
			if n, ok := a.calls[ev.Index]; ok {
				a.end.calls[n].Arguments += ev.Delta.JSON
			}
		}
	case "message_delta":
		a.end.reason = cmp.Or(ev.Delta.StopReason, a.end.reason)
		a.count(ev.Usage)
	case "error":
		if ev.Error == nil {
			return &reported{text: "an error without a text"}
		}
		return ev.Error.reported()
	}
	return nil
}

// begin reads the beginning of a block.
func (a *anthropicAnswer) begin(index int, b *anthropicBlock) error {
	switch b.Type {
	case "text":
		return a.text(b.Text)
	case "tool_use":
		call := model.Call{ID: b.ID, Name: b.Name}
		if given := string(b.Input); given != "{}" && given != "null" {
			call.Arguments = given // gateways give them whole
		}
		a.calls[index] = len(a.end.calls)
		a.end.calls = append(a.end.calls, call)
	}
	return nil
}

// count reads what the answer has taken so far. A later figure is the sum of all before.
func (a *anthropicAnswer) count(u anthropicUsage) {
	used := &a.end.usage
	for _, figure := range []struct{ from, to *int }{
		{u.Input, &a.input}, {u.Written, &a.written}, {u.Read, &a.read}, {u.Output, &used.CompletionTokens},
	} {
		if figure.from != nil {
			*figure.to = *figure.from
		}
	}
	used.PromptTokens, used.CachedTokens, a.end.written = a.input+a.written+a.read, a.read, a.written
}

func (e *anthropicError) reported() *reported {
	return &reported{
		text:      e.Message,
		temporary: e.Type == "overloaded_error" || e.Type == "rate_limit_error" || e.Type == "api_error",
		spent:     e.Type == "billing_error" || strings.Contains(e.Message, "credit balance is too low"),
		means:     meaning(e.Type, e.Message),
	}
}

// anthropicBody writes a conversation in Anthropic's form. Roles have to alternate, and the results of all calls of one
// answer have to come together, before anything else that the user says.
func (r *Model) anthropicBody(c model.Chat) anthropicRequest {
	body := anthropicRequest{Model: r.Model, MaxTokens: c.MaxTokens, Stream: true}
	if c.System != "" {
		body.System = []anthropicBlock{{Type: "text", Text: c.System}}
	}
	for _, t := range c.Tools {
		body.Tools = append(body.Tools, anthropicTool{t.Name, t.Description, schema(t)})
	}
	put := func(role string, b anthropicBlock) {
		if n := len(body.Messages); n == 0 || body.Messages[n-1].Role != role {
			body.Messages = append(body.Messages, anthropicMessage{Role: role})
		}
		m := &body.Messages[len(body.Messages)-1]
		if n := len(m.Content); n > 0 && b.Type == "text" && m.Content[n-1].Type == "text" {
			m.Content[n-1].Text += "\n\n" + b.Text
			return
		}
		m.Content = append(m.Content, b)
	}
	for _, t := range c.Turns {
		if t.Role == "tool" {
			put("user", anthropicBlock{
				Type: "tool_result", CallID: plainID(t.CallID), Content: cmp.Or(t.Text, nothing), Failed: t.Failed,
			})
			continue
		}
		if strings.TrimSpace(t.Text) != "" { // an empty block is refused
			put(t.Role, anthropicBlock{Type: "text", Text: t.Text})
		}
		for _, call := range t.Calls {
			put(t.Role, anthropicBlock{Type: "tool_use", ID: plainID(call.ID), Name: call.Name, Input: object(call.Arguments)})
		}
	}
	if len(c.Tools) > 0 {
		body.mark()
	}
	return body
}

// mark says where the provider should keep what it has read. A conversation with tools is sent again and again, each
// time a little longer: the tools and the system's text are the same each time, and so is all up to the last message
// but one of the user. One question with its passages never comes again and is not worth the price of a mark.
func (b *anthropicRequest) mark() {
	if len(b.System) > 0 {
		b.System[len(b.System)-1].Cache = &anthropicMark{"ephemeral"}
	}
	marks := 2
	for i := len(b.Messages) - 1; i >= 0 && marks > 0; i-- {
		if m := &b.Messages[i]; m.Role == "user" {
			m.Content[len(m.Content)-1].Cache = &anthropicMark{"ephemeral"}
			marks--
		}
	}
}

// plainID is a call's name in the letters that Anthropic allows: another provider may have given it.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}
