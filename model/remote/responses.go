package remote

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"docent/model"
)

// The forms of OpenAI's API.
const (
	ChatCompletions = "chat"
	Responses       = "responses"
)

// responsesWire is OpenAI's Responses. Nothing is stored there: the conversation goes with each request, with the
// provider's encrypted reasoning in it.
type responsesWire struct{}

func (responsesWire) name() string { return Responses }

func (responsesWire) address(base string) string { return base + "/responses" }

func (responsesWire) header(h http.Header, key string) { bearer(h, key) }

func (w responsesWire) body(r *Model, m *manners, c *model.Chat) map[string]any {
	body := map[string]any{"model": r.Model, "store": false}
	input, system := []any{}, c.System
	if system != "" && !m.user {
		body["instructions"], system = system, ""
	}
	for i := range c.Turns {
		t := &c.Turns[i]
		switch {
		case t.Role == "tool":
			text, picture := m.result(t)
			var output any = text
			if picture != nil {
				output = []any{map[string]string{"type": "input_text", "text": text}, map[string]string{"type": "input_image", "image_url": dataURL(picture)}}
			}
			input = append(input, map[string]any{"type": "function_call_output", "call_id": t.CallID, "output": output})
		case t.Role == "assistant":
			input = append(input, w.assistant(r, t)...)
		case t.Text != "":
			text := t.Text
			if system != "" {
				text, system = system+"\n\n"+text, ""
			}
			input = append(input, said("user", "input_text", text))
		}
	}
	body["input"] = input
	var tools []map[string]any
	for _, t := range c.Tools {
		tools = append(tools, map[string]any{"type": "function", "name": t.Name, "description": t.Description,
			"parameters": schema(t), "strict": false})
	}
	if tools != nil {
		body["tools"] = tools
	}
	body[maxOutputTokens] = c.MaxTokens
	if r.Effort != "" {
		body["reasoning"] = map[string]string{"effort": r.Effort}
	}
	if r.reasons() || r.known.name == "" {
		body["include"] = []string{"reasoning.encrypted_content"}
	}
	if !r.Whole && !m.whole {
		body["stream"] = true
	}
	return body
}

func said(role, kind, text string) map[string]any {
	return map[string]any{"type": "message", "role": role, "content": []any{map[string]string{"type": kind, "text": text}}}
}

// keptItem is an item of an output or a block of a message as it is kept. What the turn has itself is taken out of it:
// the text, of which it has so many bytes, or the name and the arguments of a call.
type keptItem struct {
	Item map[string]json.RawMessage `json:"item"`
	Text *int                       `json:"text,omitempty"`
	Call bool                       `json:"call,omitempty"`
}

func (w responsesWire) assistant(r *Model, t *model.Turn) (out []any) {
	var kept []keptItem
	if !r.unkeep(w, t.Kept, &kept) {
		if t.Text != "" {
			out = append(out, said("assistant", "output_text", t.Text))
		}
		for _, call := range t.Calls {
			out = append(out, functionCall(nil, call))
		}
		return out
	}
	return refill(kept, t, func(item map[string]json.RawMessage, text string) any {
		all := widened(item)
		all["type"], all["role"], all["content"] = "message", "assistant", []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}}
		return all
	}, functionCall)
}

func functionCall(item map[string]json.RawMessage, call model.Call) any {
	all := widened(item)
	all["type"], all["call_id"], all["name"], all["arguments"] = "function_call", call.ID, call.Name, string(object(call.Arguments))
	return all
}

func widened(item map[string]json.RawMessage) map[string]any {
	all := map[string]any{}
	for k, v := range item {
		all[k] = v
	}
	return all
}

// refill writes a turn in the order in which it came, with its own text and calls in their places. What is left of them
// comes at the end.
func refill(kept []keptItem, t *model.Turn, text func(map[string]json.RawMessage, string) any,
	call func(map[string]json.RawMessage, model.Call) any) (out []any) {
	var lengths []int
	for _, k := range kept {
		if k.Text != nil {
			lengths = append(lengths, *k.Text)
		}
	}
	texts, calls := split(t.Text, lengths), t.Calls
	for _, k := range kept {
		switch {
		case k.Text != nil:
			if texts[0] != "" {
				out = append(out, text(k.Item, texts[0]))
			}
			texts = texts[1:]
		case k.Call && len(calls) > 0:
			out, calls = append(out, call(k.Item, calls[0])), calls[1:]
		case k.Call: // it was not carried out
		default:
			out = append(out, k.Item)
		}
	}
	if len(lengths) == 0 && t.Text != "" {
		out = append(out, text(nil, t.Text))
	}
	for _, c := range calls {
		out = append(out, call(nil, c))
	}
	return out
}

type (
	responsesEvent struct {
		Type     string                     `json:"type"`
		Place    int                        `json:"output_index"`
		Delta    json.RawMessage            `json:"delta"`
		Item     map[string]json.RawMessage `json:"item"`
		Response *responsesAnswer           `json:"response"`
		Message  string                     `json:"message"`
		Code     json.RawMessage            `json:"code"`
	}
	responsesAnswer struct {
		Status     string                       `json:"status"`
		Output     []map[string]json.RawMessage `json:"output"`
		Error      json.RawMessage              `json:"error"`
		Incomplete *struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	}
	// An outputItem is an item of an answer in the order of its places.
	outputItem struct {
		fields map[string]json.RawMessage
		grown  fieldSet // of a block that comes in pieces
		text   int      // bytes that were said of it
		isText bool
		call   *model.Call
	}
)

func (w responsesWire) read(a *answer, data []byte) (bool, error) {
	var ev responsesEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		return false, fmt.Errorf("read an event: %w", err)
	}
	switch ev.Type {
	case "response.output_text.delta":
		s := raw(ev.Delta)
		a.item(ev.Place).text += len(s)
		return false, a.say(s)
	case "response.refusal.delta":
		a.declined.WriteString(raw(ev.Delta))
	case "response.output_item.done":
		return false, a.output(ev.Place, ev.Item)
	case "response.completed", "response.incomplete", "response.failed":
		if ev.Response == nil {
			return false, &reported{text: "an end without an answer"}
		}
		return true, a.response(ev.Response)
	case "error", "":
		return false, readProblem(0, data)
	}
	return false, nil
}

func (a *answer) item(place int) *outputItem {
	if a.items == nil {
		a.items = map[int]*outputItem{}
	}
	if a.items[place] == nil {
		a.items[place] = &outputItem{}
	}
	return a.items[place]
}

// output takes in an item of the output that is complete.
func (a *answer) output(place int, fields map[string]json.RawMessage) error {
	it := a.item(place)
	if it.fields != nil {
		return nil // the end repeats them all
	}
	it.fields = fields
	switch raw(fields["type"]) {
	case "function_call":
		it.call = &model.Call{ID: cmp.Or(raw(fields["call_id"]), raw(fields["id"])), Name: raw(fields["name"]),
			Arguments: raw(fields["arguments"])}
	case "message":
		it.isText = true
		var content []struct {
			Type, Text, Refusal string
		}
		if json.Unmarshal(fields["content"], &content) != nil {
			return nil
		}
		var text strings.Builder
		for _, part := range content {
			text.WriteString(part.Text)
			if part.Refusal != "" && a.declined.Len() == 0 {
				a.declined.WriteString(part.Refusal)
			}
		}
		if it.text == 0 { // it did not come in pieces
			it.text = text.Len()
			return a.say(text.String())
		}
	}
	return nil
}

func (a *answer) response(in *responsesAnswer) error {
	if in.Usage != nil {
		a.end.usage = model.Usage{PromptTokens: in.Usage.Input, CompletionTokens: in.Usage.Output, CachedTokens: in.Usage.Details.Cached}
	}
	for place, item := range in.Output {
		if err := a.output(place, item); err != nil {
			return err
		}
	}
	for _, place := range a.places() {
		if call := a.items[place].call; call != nil {
			a.end.calls = append(a.end.calls, *call)
		}
	}
	switch {
	case in.Status == "failed" || len(in.Error) > 0 && string(in.Error) != "null":
		return readProblem(0, in.Error)
	case in.Incomplete != nil && in.Incomplete.Reason != "":
		a.end.reason = in.Incomplete.Reason
	case in.Status == "incomplete":
		a.end.reason = "length"
	default:
		a.end.reason = "stop"
	}
	return nil
}

func (a *answer) places() []int {
	var list []int
	for place := range a.items {
		list = append(list, place)
	}
	slices.Sort(list)
	return list
}

func (w responsesWire) whole(a *answer, data []byte) error {
	var all responsesAnswer
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return a.response(&all)
}

func (responsesWire) kept(a *answer) any {
	var list []keptItem
	for _, place := range a.places() {
		it := a.items[place]
		k := keptItem{Item: it.fields, Call: it.call != nil}
		switch {
		case it.fields == nil:
			continue
		case it.call != nil:
			k.Item = without(k.Item, "arguments", "name", "call_id", "type")
		case it.isText:
			k.Item, k.Text = without(k.Item, "content"), &it.text
		}
		list = append(list, k)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func without(item map[string]json.RawMessage, names ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, v := range item {
		if !slices.Contains(names, k) {
			out[k] = v
		}
	}
	return out
}
