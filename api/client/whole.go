package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"docent/api"
	"docent/api/stream"
)

// A WholeAnswer is an answer in one piece, as it is sent to those who accept JSON and nothing else.
type WholeAnswer struct {
	Answer
	FinishReason string `json:"finishReason"` // stop or length
	Usage        struct {
		PromptTokens     int `json:"promptTokens"`
		CompletionTokens int `json:"completionTokens"`
	} `json:"usage"`
}

// Collect waits for the end of an answer and gives it in one piece. It fails with *AnswerError if there is none.
func Collect(ctx context.Context, log *stream.Log) (*stream.Whole, error) {
	reader := log.Reader(0)
	defer reader.Close()
	answer := new(stream.Whole)
	for {
		parts, more, err := reader.Next(ctx)
		for i := range parts {
			answer.Add(parts[i])
		}
		switch {
		case answer.End.Kind == stream.Error:
			return nil, &AnswerError{answer.End.Text}
		case answer.End.Kind == stream.Finish:
			return answer, nil
		case err != nil:
			return nil, err
		case !more:
			return nil, &AnswerError{"the answer was interrupted; ask again"}
		}
	}
}

// Whole is an answer as it is sent in one piece, with how it came about for those who may see that.
func Whole(w *stream.Whole, thread, key string, explains bool) (a WholeAnswer) {
	a.ThreadID, a.ThreadKey, a.MessageID = thread, key, w.Message
	a.Text, a.Suggestions = stream.Suggested(w.Text)
	a.Sources, a.Degraded, a.FinishReason = []Source{}, w.End.Degraded, cmp.Or(w.End.Reason, "stop")
	a.Usage.PromptTokens, a.Usage.CompletionTokens = w.End.Usage.Prompt, w.End.Usage.Completion
	for _, p := range w.Sources {
		if p.Excerpt == "" {
			a.Sources = append(a.Sources, Source{Title: p.Title, URL: p.URL})
		} else {
			a.Cards = append(a.Cards, Card{Title: p.Title, URL: p.URL, Excerpt: p.Excerpt})
		}
	}
	if explains && w.Explanation != "" {
		a.Explanation = new(Explanation)
		_ = json.Unmarshal([]byte(w.Explanation), a.Explanation) // it was made here
	}
	return a
}

// A Model is a project as OpenAI's API describes a model.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

// Models are the models of a key.
type Models struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// ModelOf is a project as a model.
func ModelOf(p api.Project) Model { return Model{p.Domain, "model", p.CreatedAt.Unix(), "docent"} }

// ModelsOf is a project as the only model there is.
func ModelsOf(p api.Project) Models { return Models{"list", []Model{ModelOf(p)}} }

// An OpenAIError is an error in OpenAI's form.
type OpenAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

// OpenAIErrorOf is an error of ours in that form.
func OpenAIErrorOf(status int, code, message string, details []api.Problem) (e OpenAIError) {
	e.Error.Message, e.Error.Code, e.Error.Type = message, code, "invalid_request_error"
	switch {
	case status == http.StatusTooManyRequests:
		e.Error.Type = "rate_limit_error"
	case status >= 500:
		e.Error.Type = "server_error"
	}
	if len(details) > 0 {
		e.Error.Param = &details[0].Field
	}
	return e
}
