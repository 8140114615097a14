package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Messages of Anthropic's API, as far as an answer needs them.
type (
	anthropicMessage struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	anthropicRequest struct {
		Model     string             `json:"model"`
		MaxTokens int                `json:"max_tokens"`
		System    string             `json:"system"`
		Messages  []anthropicMessage `json:"messages"`
		Stream    bool               `json:"stream"`
	}
	anthropicError struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	anthropicUsage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
	anthropicEvent struct {
		Type    string `json:"type"`
		Message struct {
			Usage anthropicUsage `json:"usage"`
		} `json:"message"`
		Delta struct {
			Type       string `json:"type"`
			Text       string `json:"text"`
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage anthropicUsage  `json:"usage"`
		Error *anthropicError `json:"error"`
	}
)

const anthropicVersion = "2023-06-01"

// callAnthropic asks Anthropic's messages API, or a gateway that speaks it.
func (r *remote) callAnthropic(ctx context.Context, l *line, p prompt, text func(string) error) (ending, error) {
	body := anthropicRequest{Model: r.Model, MaxTokens: r.MaxTokens, System: p.system, Stream: true}
	for _, m := range p.messages {
		if n := len(body.Messages); n > 0 && body.Messages[n-1].Role == m.Role {
			body.Messages[n-1].Content += "\n\n" + m.Text // roles have to alternate
			continue
		}
		body.Messages = append(body.Messages, anthropicMessage{m.Role, m.Text})
	}
	data, err := json.Marshal(body)
	if err != nil {
		return ending{}, fmt.Errorf("encode the question: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(r.BaseURL, "/v1")+"/v1/messages", bytes.NewReader(data))
	if err != nil {
		return ending{}, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Anthropic-Version", anthropicVersion)
	if r.Key != "" {
		req.Header.Set("X-Api-Key", r.Key)
	}
	resp, err := l.Do(req)
	if err != nil {
		return ending{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		var refusal struct {
			Error *anthropicError `json:"error"`
		}
		page, _ := io.ReadAll(resp.Body)
		if json.Unmarshal(page, &refusal) == nil && refusal.Error != nil {
			return ending{}, errors.New(refusal.Error.Message)
		}
		return ending{}, errors.New(resp.Status)
	}
	var end ending
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, longestLine+1)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // the event's name comes again in its data
		}
		var ev anthropicEvent
		if err := json.Unmarshal(data, &ev); err != nil {
			return end, fmt.Errorf("read an event: %w", err)
		}
		switch ev.Type {
		case "message_start":
			end.prompt, end.completion = ev.Message.Usage.Input, ev.Message.Usage.Output
		case "content_block_delta":
			if ev.Delta.Type != "text_delta" {
				continue
			}
			if err := text(ev.Delta.Text); err != nil {
				return end, err
			}
		case "message_delta":
			if ev.Delta.StopReason != "" {
				end.reason = ev.Delta.StopReason
			}
			if ev.Usage.Output > 0 {
				end.completion = ev.Usage.Output
			}
		case "message_stop":
			return end, end.check()
		case "error":
			e := &said{text: "an error without a text"}
			if ev.Error != nil {
				e.text = ev.Error.Message
				e.temporary = ev.Error.Type == "overloaded_error" || ev.Error.Type == "rate_limit_error" || ev.Error.Type == "api_error"
			}
			return end, e
		}
	}
	if err := lines.Err(); err != nil {
		return end, err
	}
	return end, io.ErrUnexpectedEOF
}
