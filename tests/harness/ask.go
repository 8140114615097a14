package harness

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"docent/api"
	"docent/api/client"
	"docent/api/stream"
)

// An AcceptedQuestion is a question whose response header was received.
type AcceptedQuestion struct {
	Thread   api.ThreadID
	Text     string
	Finished bool   // finish was seen
	Answer   string // then: the whole answer
}

// Ask puts one question. The question counts as accepted once the response header is there.
func Ask(ctx context.Context, cl *client.Client, p Project, id, text string) (AcceptedQuestion, error) {
	body := map[string]any{"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": text}}}
	if id != "" {
		body["threadId"] = id
	}
	resp, err := cl.Do(ctx, http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message", body)
	if err != nil {
		return AcceptedQuestion{}, err
	}
	q := AcceptedQuestion{Thread: api.ThreadID(resp.Header.Get("X-Thread-Id")), Text: text}
	q.Answer, err = ReadAnswer(resp)
	q.Finished = err == nil
	return q, err
}

// Answer is the answer to one question, with the addresses of its sources in their order.
func Answer(t testing.TB, server *Server, p Project, question string) (text string, sources []string) {
	t.Helper()
	resp, err := server.Client(p.Assistant).Do(t.Context(), http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message",
		map[string]any{"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": question}}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for d := stream.NewDecoder(stream.UIMessages, resp.Body); ; {
		part, err := d.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch part.Kind {
		case stream.Text:
			text += part.Text
		case stream.Source:
			sources = append(sources, part.URL)
		case stream.Error:
			t.Fatal(part.Text)
		case stream.Finish:
			return text, sources
		}
	}
}

// ReadAnswer reads a version 2 stream until finish and returns its text.
func ReadAnswer(resp *http.Response) (string, error) {
	defer resp.Body.Close()
	var text strings.Builder
	decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
	for {
		part, err := decoder.Next()
		if err != nil {
			return text.String(), err
		}
		switch part.Kind {
		case stream.Text:
			text.WriteString(part.Text)
		case stream.Error:
			return text.String(), errors.New(part.Text)
		case stream.Finish:
			return text.String(), nil
		}
	}
}
