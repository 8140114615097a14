package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"

	"docent/model"
)

// A wire is a form in which conversations go to endpoints.
type wire interface {
	name() string
	address(base string) string
	header(h http.Header, key string)
	// body writes a conversation as the endpoint wants it.
	body(r *Model, m *manners, c *model.Chat) map[string]any
	// read takes in one event of the stream; it is done when the answer is.
	read(a *answer, data []byte) (done bool, err error)
	// whole takes in an answer that came in one piece.
	whole(a *answer, data []byte) error
	// kept is what has to go back with the turn and is not known here; nil if there is nothing.
	kept(a *answer) any
}

// An answer is put together from the events of its stream.
type answer struct {
	text     func(string) error
	thoughts thoughts
	end      ending
	said     int // bytes of text

	calls    gathered            // of chat completions
	message  fieldSet            // of chat completions: what is not known
	parts    *grown              // of chat completions: content that came as a list of parts
	declined bytes.Buffer        // why the provider refuses
	items    map[int]*outputItem // of Responses and Anthropic's messages, by their place

	input, written, readBack int // of Anthropic's: tokens of the prompt
}

func (a *answer) say(s string) error {
	if s = a.thoughts.leave(s); s == "" {
		return nil
	}
	a.said += len(s)
	return a.text(s)
}

// wire is the form that is spoken with the endpoint.
func (r *Model) wire(m *manners) wire {
	switch {
	case r.provider == model.Anthropic:
		return messagesWire{}
	case r.API == Responses || r.API == "" && m.responses:
		return responsesWire{}
	}
	return chatWire{}
}

// converse sends a conversation and reads the answer. What the endpoint refuses of it is swapped or left out, and the
// conversation is sent again.
func (r *Model) converse(ctx context.Context, x *exchange, c model.Chat, text func(string) error) (ending, error) {
	for n := 1; ; n++ {
		m := r.manners.now()
		w := r.wire(&m)
		if m.most > 0 {
			c.MaxTokens = min(c.MaxTokens, m.most)
		}
		body := r.request(w, &m, &c)
		if x.whole = r.Whole || m.whole; x.whole {
			x.idle, x.first = r.Total, r.Total // nothing comes until all is written
		}
		resp, err := r.post(ctx, x, w, body)
		var refused *reported
		if errors.As(err, &refused) && n < negotiations && r.manners.learn(refused, m, body, &c) {
			continue
		}
		if err != nil {
			return ending{}, err
		}
		defer resp.Body.Close()
		a := &answer{text: text}
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/json" {
			err = a.whole(w, resp.Body)
		} else {
			err = a.follow(w, newEvents(resp.Body))
		}
		if errors.As(err, &refused) && refused.status == 0 && a.said == 0 { // a gateway that refuses with a 200
			refused.status = http.StatusBadRequest
			if n < negotiations && r.manners.learn(refused, m, body, &c) {
				continue
			}
		}
		return r.ended(w, a, err)
	}
}

// whole reads an answer that came in one piece, or the error in its place.
func (a *answer) whole(w wire, body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if err := w.whole(a, data); err != nil || a.end.reason != "" {
		return err
	}
	if e := readProblem(0, data); e.given {
		return e
	}
	return errStream
}

func (r *Model) ended(w wire, a *answer, err error) (ending, error) {
	if rest := a.thoughts.rest(); err == nil && rest != "" {
		a.said += len(rest)
		err = a.text(rest)
	}
	if err == nil && a.declined.Len() > 0 && a.end.reason != "" {
		err = &reported{text: a.declined.String(), means: model.ErrRefused}
	}
	if err == nil {
		err = a.end.check()
	}
	if err == nil {
		a.end.kept = r.keep(w, w.kept(a))
	}
	return a.end, err
}

// follow reads a stream to its end.
func (a *answer) follow(w wire, events *eventReader) error {
	for {
		data, err := events.next()
		switch {
		case err == io.EOF && a.end.reason != "" && w.name() == ChatCompletions:
			return nil // servers that leave out the last event
		case err != nil:
			return events.end(err)
		case string(bytes.TrimSpace(data)) == "[DONE]":
			return nil
		}
		if done, err := w.read(a, data); err != nil || done {
			return err
		}
	}
}

// request is the body that goes to the endpoint: the conversation, and what the configuration adds.
func (r *Model) request(w wire, m *manners, c *model.Chat) map[string]any {
	body := w.body(r, m, c)
	maps.Copy(body, r.ExtraBody)
	maps.DeleteFunc(body, func(name string, _ any) bool { return m.leavesOut(name) })
	return body
}

// post sends a request. What is no success is the provider's error.
func (r *Model) post(ctx context.Context, x *exchange, w wire, body any) (*http.Response, error) {
	return r.postTo(ctx, x, w.address(r.BaseURL), w.header, body)
}

func (r *Model) postTo(ctx context.Context, x *exchange, address string, header func(http.Header, string), body any) (
	*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the question: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if x.whole {
		req.Header.Set("Accept", "application/json")
	}
	header(req.Header, r.key())
	for _, name := range slices.Sorted(maps.Keys(r.ExtraHeaders)) {
		req.Header.Set(name, r.ExtraHeaders[name])
	}
	resp, err := x.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body) // what came of it may still say why
	e := readProblem(resp.StatusCode, page)
	e.text = cmp.Or(e.text, resp.Status)
	return nil, e
}

func bearer(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// raw is a text as it stands in JSON; nothing if it is none.
func raw(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}
