package stream

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A Response is an answer in the form of OpenAI's Responses, whole or as far as it has come.
type Response struct {
	ID         string              `json:"id"`
	Object     string              `json:"object"`
	Created    int64               `json:"created_at"`
	Status     string              `json:"status"`
	Error      *responseError      `json:"error"`
	Incomplete *responseIncomplete `json:"incomplete_details"`
	Rules      *string             `json:"instructions"` // of the client: none
	Model      string              `json:"model"`
	Output     []responseItem      `json:"output"`
	Parallel   bool                `json:"parallel_tool_calls"`
	Previous   *string             `json:"previous_response_id"`
	Choice     string              `json:"tool_choice"`
	Tools      []struct{}          `json:"tools"`
	Usage      *responseUsage      `json:"usage"`
	// Metadata leads to the thread, as a request names it.
	Metadata map[string]string `json:"metadata"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responseIncomplete struct {
	Reason string `json:"reason"`
}

type responseItem struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Status  string         `json:"status"`
	Role    string         `json:"role"`
	Content []responseText `json:"content"`
}

type responseText struct {
	Type  string             `json:"type"`
	Text  string             `json:"text"`
	Marks []responseCitation `json:"annotations"`
	Logs  []struct{}         `json:"logprobs"`
}

type responseCitation struct {
	Type string `json:"type"`
	urlCitation
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

const responsePrefix = "resp_"

// ThreadOf is the thread that a response's id leads to.
func ThreadOf(response string) string {
	thread, _, _ := strings.Cut(strings.TrimPrefix(response, responsePrefix), ".")
	return thread
}

// response is an answer that has just begun.
func (a Asked) response(thread, key, message string) Response {
	r := Response{ID: responsePrefix + thread + "." + message, Object: "response", Created: a.Created.Unix(), Status: "in_progress",
		Model: a.Model, Output: []responseItem{}, Choice: "none", Tools: []struct{}{}, Metadata: map[string]string{"thread_id": thread}}
	if a.Previous != "" {
		r.Previous = &a.Previous
	}
	if key != "" {
		r.Metadata["thread_key"] = key
	}
	return r
}

func newResponseItem(message string) responseItem {
	return responseItem{ID: message, Type: "message", Status: "in_progress", Role: "assistant", Content: []responseText{}}
}

func newResponseText(text string, marks []Annotation) responseText {
	t := responseText{Type: "output_text", Text: text, Marks: []responseCitation{}, Logs: []struct{}{}}
	for _, m := range marks {
		t.Marks = append(t.Marks, responseCitation{m.Type, m.URL})
	}
	return t
}

// end is a response that has come to its end.
func (r Response) end(message string, text responseText, last *Part) Response {
	item := newResponseItem(message)
	item.Status, item.Content = "completed", []responseText{text}
	r.Status, r.Usage = "completed", new(responseUsage)
	if last.Reason == "length" {
		item.Status, r.Status, r.Incomplete = "incomplete", "incomplete", &responseIncomplete{"max_output_tokens"}
	}
	r.Output = []responseItem{item}
	r.Usage.Input, r.Usage.Output, r.Usage.Total = last.Usage.Prompt, last.Usage.Completion, last.Usage.Prompt+last.Usage.Completion
	r.Usage.InputDetails.Cached = last.Usage.Cached
	return r
}

// Response is the answer in the form of OpenAI's Responses.
func (w *Whole) Response(asked Asked, thread, key string) Response {
	list, marks := w.list()
	return asked.response(thread, key, w.Message).end(w.Message, newResponseText(w.Text+list, marks), &w.End)
}

// A responseEvent is one event of a response that is streamed. Each kind has the members that are its own.
type responseEvent struct {
	Type     string     `json:"type"`
	Sequence int        `json:"sequence_number"`
	Response *Response  `json:"response,omitempty"`
	ItemID   string     `json:"item_id,omitempty"`
	Output   *int       `json:"output_index,omitempty"`
	Content  *int       `json:"content_index,omitempty"`
	Mark     *int       `json:"annotation_index,omitempty"`
	Item     any        `json:"item,omitempty"`
	Part     any        `json:"part,omitempty"`
	Citation any        `json:"annotation,omitempty"`
	Delta    string     `json:"delta,omitempty"`
	Text     *string    `json:"text,omitempty"`
	Logs     []struct{} `json:"logprobs,omitzero"`
	Code     string     `json:"code,omitempty"`
	Message  string     `json:"message,omitempty"`
}

// respond writes the events of a response.
func (e *Encoder) respond(dst []byte, p *Part) []byte {
	c, first := e.completion, 0
	switch p.Kind {
	case Start:
		e.remember(p)
		e.message = p.Message
		begun := c.response(e.thread, e.key, e.message)
		dst = c.tell(dst, responseEvent{Type: "response.created", Response: &begun})
		dst = c.tell(dst, responseEvent{Type: "response.in_progress", Response: &begun})
		dst = c.tell(dst, responseEvent{Type: "response.output_item.added", Output: &first, Item: newResponseItem(e.message)})
		dst = c.tell(dst, responseEvent{Type: "response.content_part.added", ItemID: e.message, Output: &first, Content: &first,
			Part: newResponseText("", nil)})
	case Source:
		c.listing.add(p)
	case Text:
		dst = e.respondText(dst, p.Text)
	case Finish:
		list, marks := c.listing.write(utf8.RuneCount(c.said))
		dst = e.respondText(dst, list)
		text := newResponseText(string(c.said), marks)
		for i := range text.Marks {
			dst = c.tell(dst, responseEvent{Type: "response.output_text.annotation.added", ItemID: e.message, Output: &first, Content: &first,
				Mark: &i, Citation: text.Marks[i]})
		}
		whole := c.response(e.thread, e.key, e.message).end(e.message, text, p)
		dst = c.tell(dst, responseEvent{Type: "response.output_text.done", ItemID: e.message, Output: &first, Content: &first,
			Text: &text.Text, Logs: text.Logs})
		dst = c.tell(dst, responseEvent{Type: "response.content_part.done", ItemID: e.message, Output: &first, Content: &first, Part: text})
		dst = c.tell(dst, responseEvent{Type: "response.output_item.done", Output: &first, Item: whole.Output[0]})
		dst = c.tell(dst, responseEvent{Type: "response." + whole.Status, Response: &whole})
		e.ended = true
	case Error:
		failed := c.response(e.thread, e.key, e.message)
		failed.Status, failed.Error = "failed", &responseError{"server_error", p.Text}
		dst = c.tell(dst, responseEvent{Type: "error", Code: "no_answer", Message: p.Text})
		dst = c.tell(dst, responseEvent{Type: "response.failed", Response: &failed})
		e.ended = true
	}
	return dst
}

// respondText writes a piece of the text, which the events at the end repeat whole.
func (e *Encoder) respondText(dst []byte, text string) []byte {
	if text == "" {
		return dst
	}
	c, first := e.completion, 0
	c.said = append(c.said, text...)
	return c.tell(dst, responseEvent{Type: "response.output_text.delta", ItemID: e.message, Output: &first, Content: &first, Delta: text,
		Logs: []struct{}{}})
}

// tell writes an event.
func (c *completion) tell(dst []byte, ev responseEvent) []byte {
	ev.Sequence = c.events
	c.events++
	text, _ := json.Marshal(ev) // strings and numbers: cannot fail
	dst = append(append(dst, "event: "...), ev.Type...)
	return append(append(append(dst, "\ndata: "...), text...), "\n\n"...)
}
