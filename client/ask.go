package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"docent/actors/thread"
	"docent/search"
	"docent/stream"
)

// An Answer is what came of one question.
type Answer struct {
	ThreadID  string   `json:"threadId"`
	ThreadKey string   `json:"threadKey,omitempty"`
	MessageID string   `json:"messageId"`
	Text      string   `json:"text"`
	Sources   []Source `json:"sources"`
	// Questions that the documentation answers too, where the project offers them.
	Suggestions []thread.Suggestion `json:"suggestions,omitempty"`
}

// A Source is a page that an answer was written from.
type Source struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url"`
}

// A Question is put to a project's assistant.
type Question struct {
	Domain, Text string
	Caller       string // anonymous, or a user's id
	Thread, Key  string // the thread that it continues, and its secret where the project asks for that
	Version      string // of the documentation that answers; any where empty
	Language     string // the same
	Page         string // that the reader is on
}

// Ask puts a question over version 2 of the API and writes the answer's text to w as it comes.
func (c *Client) Ask(ctx context.Context, q Question, w io.Writer) (Answer, error) {
	body := map[string]any{
		"fp": q.Caller,
		"messages": []map[string]any{{
			"role": "user", "parts": []map[string]any{{"type": "text", "text": q.Text}},
		}},
	}
	if q.Thread != "" {
		body["threadId"] = q.Thread
	}
	if q.Key != "" {
		body["threadKey"] = q.Key
	}
	if q.Version != "" || q.Language != "" {
		body["filter"] = search.Filter{Version: q.Version, Language: q.Language}
	}
	if q.Page != "" {
		body["currentPath"] = q.Page
	}
	resp, err := c.Do(ctx, http.MethodPost, "/discovery/v2/assistant/"+url.PathEscape(q.Domain)+"/message", body)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	a := Answer{Sources: []Source{}}
	var whole string // with the block of suggestions, which is for programs
	shown := 0
	show := func(upTo int) error {
		_, err := io.WriteString(w, whole[shown:upTo])
		shown = upTo
		return err
	}
	decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
	for {
		part, err := decoder.Next()
		if errors.Is(err, io.EOF) {
			return a, errors.New("the stream ended before the answer was complete; the thread has it: ask again with --thread " +
				a.ThreadID)
		}
		if err != nil {
			return a, fmt.Errorf("read the answer: %w", err)
		}
		switch part.Kind {
		case stream.Start:
			a.ThreadID, a.ThreadKey, a.MessageID = part.Thread, part.Key, part.Message
		case stream.Text:
			whole += part.Text
			if err := show(max(shown, thread.SuggestionsBegin(whole))); err != nil {
				return a, err
			}
		case stream.Source:
			a.Sources = append(a.Sources, Source{Title: part.Title, URL: part.URL})
		case stream.Error:
			return a, errors.New(part.Text)
		case stream.Finish:
			a.Text, a.Suggestions = thread.Suggested(whole)
			return a, show(max(shown, len(a.Text)))
		}
	}
}
