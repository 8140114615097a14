package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
		Content any             `json:"content,omitempty"` // a text, or blocks
		Source  map[string]any  `json:"source,omitempty"`  // of a picture
		Failed  bool            `json:"is_error,omitempty"`
		Cache   *anthropicMark  `json:"cache_control,omitempty"`

		own map[string]json.RawMessage // of a turn that came from there: what is not known
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
		Block map[string]json.RawMessage `json:"content_block"`
		Delta map[string]json.RawMessage `json:"delta"`
		Usage anthropicUsage             `json:"usage"`
	}
)

// MarshalJSON writes the block with what is not known of it.
func (b anthropicBlock) MarshalJSON() ([]byte, error) {
	type plain anthropicBlock
	if b.own == nil {
		return json.Marshal(plain(b))
	}
	if b.Type == "" {
		return json.Marshal(b.own)
	}
	known, err := json.Marshal(plain(b))
	if err != nil {
		return nil, err
	}
	all := maps.Clone(b.own)
	if err := json.Unmarshal(known, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

const anthropicVersion = "2023-06-01"

// messagesWire is Anthropic's messages, or a gateway that speaks them.
type messagesWire struct{}

func (messagesWire) name() string { return "messages" }

func (messagesWire) address(base string) string {
	return strings.TrimSuffix(base, "/v1") + "/v1/messages"
}

func (messagesWire) header(h http.Header, key string) {
	h.Set("Anthropic-Version", anthropicVersion)
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

func (w messagesWire) read(a *answer, data []byte) (bool, error) {
	var ev anthropicEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		return false, fmt.Errorf("read an event: %w", err)
	}
	switch ev.Type {
	case "message_start":
		a.count(ev.Message.Usage)
	case "content_block_start":
		return false, a.block(ev.Index, ev.Block)
	case "content_block_delta":
		return false, a.blockPiece(ev.Index, ev.Delta)
	case "message_delta":
		a.end.reason = cmp.Or(raw(ev.Delta["stop_reason"]), a.end.reason)
		a.count(ev.Usage)
	case "message_stop":
		a.blockCalls()
		return true, nil
	case "error":
		return false, readProblem(0, data)
	}
	return false, nil
}

// block reads the beginning of a block.
func (a *answer) block(index int, b map[string]json.RawMessage) error {
	it := a.item(index)
	it.grown = fieldSet{}
	it.grown.take(b)
	switch raw(b["type"]) {
	case "text":
		it.isText = true
		s := raw(b["text"])
		it.text += len(s)
		return a.say(s)
	case "tool_use":
		it.call = &model.Call{ID: raw(b["id"]), Name: raw(b["name"])}
		if given := string(bytes.TrimSpace(b["input"])); given != "{}" && given != "null" {
			it.call.Arguments = given // gateways give them whole
		}
	}
	return nil
}

// blockPiece takes in a piece of a block.
func (a *answer) blockPiece(index int, d map[string]json.RawMessage) error {
	it := a.item(index)
	switch raw(d["type"]) {
	case "text_delta":
		s := raw(d["text"])
		it.text += len(s)
		return a.say(s)
	case "input_json_delta":
		if it.call != nil {
			it.call.Arguments += raw(d["partial_json"])
		}
	case "citations_delta":
	default:
		if it.grown == nil {
			it.grown = fieldSet{}
		}
		it.grown.take(d, "type")
	}
	return nil
}

func (a *answer) blockCalls() {
	for _, place := range a.places() {
		if call := a.items[place].call; call != nil {
			a.end.calls = append(a.end.calls, *call)
		}
	}
}

func (w messagesWire) whole(a *answer, data []byte) error {
	var all struct {
		Content []map[string]json.RawMessage `json:"content"`
		Reason  string                       `json:"stop_reason"`
		Usage   anthropicUsage               `json:"usage"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	a.end.reason = all.Reason
	a.count(all.Usage)
	for i, b := range all.Content {
		if err := a.block(i, b); err != nil {
			return err
		}
	}
	a.blockCalls()
	return nil
}

func (messagesWire) kept(a *answer) any {
	var list []keptItem
	own := false // there is something that nobody here knows
	for _, place := range a.places() {
		it := a.items[place]
		fields := map[string]json.RawMessage{}
		for k, v := range it.grown {
			if b, err := v.MarshalJSON(); err == nil {
				fields[k] = b
			}
		}
		k := keptItem{Item: fields, Call: it.call != nil}
		switch {
		case it.call != nil:
			k.Item = without(fields, "id", "name", "input", "type")
			own = own || len(k.Item) > 0
		case it.isText:
			k.Item, k.Text = without(fields, "text", "type", "citations"), &it.text
			own = own || len(k.Item) > 0
		default:
			own = true
		}
		list = append(list, k)
	}
	if !own {
		return nil
	}
	return list
}

// count reads what the answer has taken so far. A later figure is the sum of all before.
func (a *answer) count(u anthropicUsage) {
	used := &a.end.usage
	for _, figure := range []struct{ from, to *int }{
		{u.Input, &a.input}, {u.Written, &a.written}, {u.Read, &a.readBack}, {u.Output, &used.CompletionTokens},
	} {
		if figure.from != nil {
			*figure.to = *figure.from
		}
	}
	used.PromptTokens, used.CachedTokens, a.end.written = a.input+a.written+a.readBack, a.readBack, a.written
}

// body writes a conversation in Anthropic's form. Roles have to alternate, and the results of all calls of one answer
// have to come together, before anything else that the user says.
func (w messagesWire) body(r *Model, m *manners, c *model.Chat) map[string]any {
	b := new(anthropicBody)
	for i := range c.Turns {
		t := &c.Turns[i]
		switch {
		case t.Role == "tool":
			text, picture := m.result(t)
			var content any = text
			if picture != nil {
				content = []anthropicBlock{{Type: "text", Text: text}, {Type: "image",
					Source: map[string]any{"type": "base64", "media_type": picture.Media, "data": picture.Data}}}
			}
			b.put("user", anthropicBlock{Type: "tool_result", CallID: plainID(t.CallID), Content: content, Failed: t.Failed})
		case t.Role == "assistant":
			for _, block := range w.assistant(r, t) {
				b.put(t.Role, block)
			}
		case strings.TrimSpace(t.Text) != "": // an empty block is refused
			b.put(t.Role, anthropicBlock{Type: "text", Text: t.Text})
		}
	}
	if c.System != "" {
		b.system = []anthropicBlock{{Type: "text", Text: c.System}}
	}
	if len(c.Tools) > 0 {
		b.mark()
	}
	body := map[string]any{"model": r.Model, maxTokens: c.MaxTokens, "messages": b.messages}
	if b.system != nil {
		body["system"] = b.system
	}
	var tools []anthropicTool
	for _, t := range c.Tools {
		tools = append(tools, anthropicTool{t.Name, t.Description, schema(t)})
	}
	if tools != nil {
		body["tools"] = tools
	}
	if r.Effort != "" {
		body["thinking"], body["output_config"] = map[string]string{"type": "adaptive"}, map[string]string{"effort": r.Effort}
	}
	if !m.whole {
		body["stream"] = true
	}
	return body
}

// assistant writes a turn of the assistant's, with the blocks of its thoughts where they stood.
func (w messagesWire) assistant(r *Model, t *model.Turn) (out []anthropicBlock) {
	text := func(item map[string]json.RawMessage, s string) any {
		if strings.TrimSpace(s) == "" {
			return anthropicBlock{}
		}
		return anthropicBlock{Type: "text", Text: s, own: item}
	}
	call := func(item map[string]json.RawMessage, c model.Call) any {
		return anthropicBlock{Type: "tool_use", ID: plainID(c.ID), Name: c.Name, Input: object(c.Arguments), own: item}
	}
	var kept []keptItem
	if !r.unkeep(w, t.Kept, &kept) {
		kept = nil
	}
	if len(kept) == 0 && t.Text != "" {
		kept = []keptItem{{Text: new(len(t.Text))}}
	}
	for _, block := range refill(kept, t, text, call) {
		switch block := block.(type) {
		case anthropicBlock:
			if block.Type != "" {
				out = append(out, block)
			}
		case map[string]json.RawMessage:
			out = append(out, anthropicBlock{own: block})
		}
	}
	return out
}

// An anthropicBody is a conversation while it is written.
type anthropicBody struct {
	system   []anthropicBlock
	messages []anthropicMessage
}

func (b *anthropicBody) put(role string, block anthropicBlock) {
	if n := len(b.messages); n == 0 || b.messages[n-1].Role != role {
		b.messages = append(b.messages, anthropicMessage{Role: role})
	}
	m := &b.messages[len(b.messages)-1]
	if n := len(m.Content); n > 0 && block.Type == "text" && m.Content[n-1].Type == "text" && block.own == nil {
		m.Content[n-1].Text += "\n\n" + block.Text
		return
	}
	m.Content = append(m.Content, block)
}

// mark says where the provider should keep what it has read. A conversation with tools is sent again and again, each
// time a little longer: the tools and the system's text are the same each time, and so is all up to the last message
// but one of the user. One question with its passages never comes again and is not worth the price of a mark.
func (b *anthropicBody) mark() {
	if len(b.system) > 0 {
		b.system[len(b.system)-1].Cache = &anthropicMark{"ephemeral"}
	}
	marks := 2
	for i := len(b.messages) - 1; i >= 0 && marks > 0; i-- {
		if m := &b.messages[i]; m.Role == "user" {
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
