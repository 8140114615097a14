package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// callOpenAI asks an endpoint that speaks OpenAI's chat completions: OpenAI itself, Azure's v1 address, Ollama, vLLM,
// llama.cpp, LM Studio and others.
func (r *remote) callOpenAI(ctx context.Context, l *line, p prompt, text func(string) error) (ending, error) {
	config := openai.DefaultConfig(r.Key)
	config.BaseURL = r.BaseURL
	config.HTTPClient = l
	req := openai.ChatCompletionRequest{
		Model:         r.Model,
		Stream:        true,
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		Messages:      []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleSystem, Content: p.system}},
	}
	if r.counted() {
		req.MaxCompletionTokens = r.MaxTokens
	} else {
		//lint:ignore SA1019 endpoints other than OpenAI's know no other name for it
		req.MaxTokens = r.MaxTokens
	}
	for _, m := range p.messages {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: m.Role, Content: m.Text})
	}
	s, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(ctx, req)
	if err != nil {
		return ending{}, plainly(err)
	}
	var end ending
	for {
		chunk, err := s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return end, plainly(err)
		}
		if chunk.Usage != nil {
			end.prompt, end.completion = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
		for _, choice := range chunk.Choices {
			if choice.Index != 0 {
				continue
			}
			if err := text(choice.Delta.Content); err != nil {
				return end, err
			}
			if choice.FinishReason != "" && choice.FinishReason != openai.FinishReasonNull {
				end.reason = string(choice.FinishReason)
			}
		}
	}
	return end, end.check()
}

// counted reports whether the endpoint takes the newer name of the limit, as OpenAI's own models demand; other servers
// know the older one.
func (r *remote) counted() bool {
	for _, host := range []string{"//api.openai.com", ".openai.azure.com"} {
		if strings.Contains(r.BaseURL, host) {
			return true
		}
	}
	for _, family := range []string{"o1", "o3", "o4", "gpt-5"} {
		if strings.HasPrefix(r.Model, family) {
			return true
		}
	}
	return false
}

// plainly keeps of a client library's error what the provider said and leaves out its headers and bodies.
func plainly(err error) error {
	var answer *openai.APIError
	if errors.As(err, &answer) {
		kind := strings.ToLower(answer.Type + " " + fmt.Sprint(answer.Code))
		return &said{text: answer.Message, temporary: strings.Contains(kind, "overloaded") || strings.Contains(kind, "rate_limit") || strings.Contains(kind, "server_error")}
	}
	var other *openai.RequestError
	if errors.As(err, &other) {
		return errors.New(other.HTTPStatus)
	}
	return err
}

// check says whether a stream ended as an answer does.
func (e *ending) check() error {
	switch e.reason {
	case "stop", "end_turn", "stop_sequence":
		e.reason = "stop"
	case "length", "max_tokens":
		e.reason = "length"
	case "":
		return errors.New("the stream ended without a reason")
	case "content_filter", "refusal":
		return &said{text: "the provider declined to answer"}
	default:
		return &said{text: "the answer ended with " + fmt.Sprintf("%q", e.reason)}
	}
	return nil
}
