package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"docent/model"

	openai "github.com/sashabaranov/go-openai"
)

// callOpenAI asks an endpoint that speaks OpenAI's chat completions: OpenAI itself, Azure's v1 address, Ollama, vLLM,
// llama.cpp, LM Studio and others.
func (r *Model) callOpenAI(ctx context.Context, x *exchange, c model.Chat, text func(string) error) (ending, error) {
	config := openai.DefaultConfig(r.key())
	config.BaseURL = r.BaseURL
	config.HTTPClient = x
	req := r.openaiRequest(c)
	if r.Whole {
		return whole(ctx, config, req, text)
	}
	s, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(ctx, req)
	if err != nil {
		return ending{}, plainly(err)
	}
	var end ending
	var calls gathered
	var declined strings.Builder
	for {
		chunk, err := s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return end, plainly(err)
		}
		if chunk.Usage != nil {
			end.usage = openaiUsage(*chunk.Usage)
		}
		for _, choice := range chunk.Choices {
			if choice.Index != 0 {
				continue
			}
			if err := text(choice.Delta.Content); err != nil {
				return end, err
			}
			declined.WriteString(choice.Delta.Refusal)
			for i := range choice.Delta.ToolCalls {
				calls.add(&choice.Delta.ToolCalls[i])
			}
			if choice.FinishReason != "" && choice.FinishReason != openai.FinishReasonNull {
				end.reason = string(choice.FinishReason)
			}
		}
	}
	end.calls = calls.list
	if declined.Len() > 0 && end.reason != "" {
		return end, &reported{text: declined.String(), means: model.ErrRefused}
	}
	return end, end.check()
}

// openaiRequest writes a conversation in OpenAI's form.
func (r *Model) openaiRequest(c model.Chat) openai.ChatCompletionRequest {
	req := openai.ChatCompletionRequest{
		Model:         r.Model,
		Stream:        true,
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		Messages:      openaiMessages(c),
		Tools:         openaiTools(c.Tools),
	}
	if r.counted() {
		req.MaxCompletionTokens = c.MaxTokens
	} else {
		//lint:ignore SA1019 endpoints other than OpenAI's know no other name for it
		req.MaxTokens = c.MaxTokens
	}
	if r.Whole {
		req.Stream, req.StreamOptions = false, nil
	}
	return req
}

// whole asks for an answer in one piece.
func whole(
	ctx context.Context, config openai.ClientConfig, req openai.ChatCompletionRequest, text func(string) error,
) (ending, error) {
	answer, err := openai.NewClientWithConfig(config).CreateChatCompletion(ctx, req)
	if err != nil {
		return ending{}, plainly(err)
	}
	end := ending{usage: openaiUsage(answer.Usage)}
	if len(answer.Choices) == 0 {
		return end, end.check()
	}
	choice := answer.Choices[0]
	end.reason = string(choice.FinishReason)
	for _, call := range choice.Message.ToolCalls {
		end.calls = append(end.calls, model.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	if choice.Message.Refusal != "" {
		return end, &reported{text: choice.Message.Refusal, means: model.ErrRefused}
	}
	if err := end.check(); err != nil {
		return end, err
	}
	return end, text(choice.Message.Content)
}

func openaiUsage(u openai.Usage) model.Usage {
	out := model.Usage{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens}
	if u.PromptTokensDetails != nil {
		out.CachedTokens = u.PromptTokensDetails.CachedTokens
	}
	return out
}

func openaiMessages(c model.Chat) []openai.ChatCompletionMessage {
	var list []openai.ChatCompletionMessage
	if c.System != "" {
		list = append(list, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: c.System})
	}
	for _, t := range c.Turns {
		m := openai.ChatCompletionMessage{Role: t.Role, Content: t.Text}
		switch {
		case t.Role == openai.ChatMessageRoleTool:
			m.ToolCallID = t.CallID
			m.Content = cmp.Or(m.Content, nothing) // which a provider would miss
		case t.Text == "" && len(t.Calls) == 0:
			continue
		}
		for _, call := range t.Calls {
			m.ToolCalls = append(m.ToolCalls, openai.ToolCall{ID: call.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: call.Name, Arguments: string(object(call.Arguments))}})
		}
		list = append(list, m)
	}
	return list
}

func openaiTools(tools []model.Tool) []openai.Tool {
	var list []openai.Tool
	for _, t := range tools {
		list = append(list, openai.Tool{Type: openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: schema(t)}})
	}
	return list
}

// gathered puts the pieces of calls together. Pieces belong together by their index; servers that give none, or the
// same to all, are told apart by the ids that begin their calls.
type gathered struct {
	list  []model.Call
	index []int // of each call, -1 if it came without
}

func (g *gathered) add(piece *openai.ToolCall) {
	at := len(g.list) - 1
	index := -1
	if piece.Index != nil {
		index = *piece.Index
		for at >= 0 && g.index[at] != index {
			at--
		}
	}
	fresh := at < 0 || piece.ID != "" && g.list[at].ID != "" && piece.ID != g.list[at].ID
	if piece.Index == nil && piece.ID == "" && piece.Function.Name != "" && at >= 0 && g.list[at].Name != "" {
		fresh = true // a whole call in one piece
	}
	if fresh {
		g.list, g.index = append(g.list, model.Call{}), append(g.index, index)
		at = len(g.list) - 1
	}
	call := &g.list[at]
	call.ID = cmp.Or(call.ID, piece.ID)
	if call.Name != piece.Function.Name { // some servers repeat the whole name with each piece
		call.Name += piece.Function.Name
	}
	call.Arguments += piece.Function.Arguments
}

// counted reports whether the endpoint takes the newer name of the limit, as OpenAI's own models demand; other servers
// know the older one.
func (r *Model) counted() bool {
	return holds(r.BaseURL, "//api.openai.com", ".openai.azure.com") ||
		slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5"},
			func(family string) bool { return strings.HasPrefix(r.Model, family) })
}

// plainly keeps of a client library's error what the provider said and leaves out its headers and bodies.
func plainly(err error) error {
	var answer *openai.APIError
	if errors.As(err, &answer) {
		kind := strings.ToLower(answer.Type + " " + fmt.Sprint(answer.Code))
		return &reported{
			text:      answer.Message,
			temporary: holds(kind, "overloaded", "rate_limit", "server_error"),
			spent:     holds(kind, "insufficient_quota", "billing"),
			means:     meaning(kind, answer.Message),
		}
	}
	var other *openai.RequestError
	if errors.As(err, &other) {
		return &reported{text: other.HTTPStatus, means: meaning("", string(other.Body))}
	}
	return err
}
