package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"docent/model"
)

// chatWire is OpenAI's chat completions: OpenAI itself, Azure's v1 address, Gemini's compatible one, DeepSeek, Kimi,
// Mistral, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio and others.
type chatWire struct{}

func (chatWire) name() string { return "chat" }

func (chatWire) address(base string) string { return base + "/chat/completions" }

func (chatWire) header(h http.Header, key string) { bearer(h, key) }

func (w chatWire) body(r *Model, m *manners, c *model.Chat) map[string]any {
	body := map[string]any{"model": r.Model, "messages": w.messages(r, m, c)}
	if len(c.Tools) > 0 {
		body["tools"] = chatTools(c.Tools)
	}
	first := maxTokens
	if r.counted() {
		first = maxCompletionTokens
	}
	if name := m.limitName(first); name != "" {
		body[name] = c.MaxTokens
	}
	if r.Effort != "" {
		body["reasoning_effort"] = r.Effort
	}
	if !r.Whole && !m.whole {
		body["stream"], body["stream_options"] = true, map[string]bool{"include_usage": true}
	}
	return body
}

// counted reports whether the endpoint takes the newer name of the limit, as OpenAI's own models demand; other servers
// know the older one. Those that are guessed wrong say so.
func (r *Model) counted() bool {
	return holds(r.BaseURL, "//api.openai.com", ".openai.azure.com") || r.known.counted
}

func (w chatWire) messages(r *Model, m *manners, c *model.Chat) []map[string]any {
	var list []map[string]any
	system := c.System
	if system != "" && !m.user {
		list, system = append(list, map[string]any{"role": "system", "content": system}), ""
	}
	var pictures []map[string]any // results of tools have none here: they follow as the user's, behind all of one answer
	flush := func() {
		if pictures != nil {
			list, pictures = append(list, map[string]any{"role": "user", "content": pictures}), nil
		}
	}
	for i := range c.Turns {
		t := &c.Turns[i]
		if t.Role != "tool" {
			flush()
		}
		if t.Role == "user" && system != "" {
			list = append(list, map[string]any{"role": "user", "content": system + "\n\n" + t.Text})
			system = ""
			continue
		}
		switch {
		case t.Role == "tool":
			text, picture := m.result(t)
			list = append(list, map[string]any{"role": "tool", "tool_call_id": t.CallID, "content": text})
			if picture != nil {
				pictures = append(pictures, map[string]any{"type": "image_url", "image_url": map[string]string{"url": dataURL(picture)}})
			}
		case t.Role == "assistant":
			if message := w.assistant(r, m, t); message != nil {
				list = append(list, message)
			}
		case t.Text != "":
			list = append(list, map[string]any{"role": t.Role, "content": t.Text})
		}
	}
	flush()
	return list
}

// keptMessage is a message of chat completions as it is kept.
type keptMessage struct {
	Message map[string]json.RawMessage `json:"message"`
	Parts   []json.RawMessage          `json:"parts"` // the content, if it came as a list
	Calls   []struct {
		Call     map[string]json.RawMessage `json:"call"`
		Function map[string]json.RawMessage `json:"function"`
	} `json:"calls"` // by their places
}

// unsigned stands for the signature of a thought that nobody has, in Google's own words: a call of another model's, or
// one of a journal that did not keep it.
const unsigned = "skip_thought_signature_validator"

func (w chatWire) assistant(r *Model, m *manners, t *model.Turn) map[string]any {
	var kept keptMessage
	if !r.unkeep(w, t.Kept, &kept) {
		kept = keptMessage{}
	}
	if t.Text == "" && len(t.Calls) == 0 {
		return nil
	}
	message := map[string]any{}
	for name, v := range kept.Message {
		if !slices.Contains(m.unkept, name) {
			message[name] = v
		}
	}
	message["role"] = t.Role
	if t.Text != "" {
		message["content"] = t.Text
	}
	if kept.Parts != nil && !slices.Contains(m.unkept, "thinking") {
		message["content"] = fillParts(kept.Parts, t.Text)
	}
	var calls []map[string]any
	for i, call := range t.Calls {
		out, function := map[string]any{}, map[string]any{}
		if i < len(kept.Calls) {
			for name, v := range kept.Calls[i].Call {
				if !slices.Contains(m.unkept, name) {
					out[name] = v
				}
			}
			for name, v := range kept.Calls[i].Function {
				function[name] = v
			}
		}
		function["name"], function["arguments"] = call.Name, string(object(call.Arguments))
		out["id"], out["type"], out["function"] = call.ID, "function", function
		if m.signature && out["extra_content"] == nil && i == 0 {
			out["extra_content"] = map[string]any{"google": map[string]string{"thought_signature": unsigned}}
		}
		calls = append(calls, out)
	}
	if calls != nil {
		message["tool_calls"] = calls
		if m.reasoning && message["reasoning_content"] == nil {
			message["reasoning_content"] = ""
		}
	}
	return message
}

// fillParts puts a turn's text in among the parts of its content that were kept.
func fillParts(parts []json.RawMessage, text string) []any {
	var out []any
	filled := text == ""
	for _, part := range parts {
		if string(part) != textPart {
			out = append(out, part)
		} else if !filled {
			out, filled = append(out, map[string]any{"type": "text", "text": text}), true
		}
	}
	if !filled {
		out = append(out, map[string]any{"type": "text", "text": text})
	}
	return out
}

// textPart is the place of a text among the parts of a content: the turn has the text itself.
const textPart = `{"type":"text"}`

func chatTools(tools []model.Tool) []map[string]any {
	var list []map[string]any
	for _, t := range tools {
		list = append(list, map[string]any{"type": "function",
			"function": map[string]any{"name": t.Name, "description": t.Description, "parameters": schema(t)}})
	}
	return list
}

type (
	chatChunk struct {
		Choices []chatChoice    `json:"choices"`
		Usage   *chatUsage      `json:"usage"`
		Error   json.RawMessage `json:"error"`
	}
	chatChoice struct {
		Index   int                        `json:"index"`
		Delta   map[string]json.RawMessage `json:"delta"`
		Message map[string]json.RawMessage `json:"message"` // of an answer in one piece
		Finish  string                     `json:"finish_reason"`
		Usage   *chatUsage                 `json:"usage"` // as Kimi says it
		Error   json.RawMessage            `json:"error"` // as OpenRouter says it
	}
	chatUsage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Cached int `json:"cached_tokens"`           // Kimi
		Hit    int `json:"prompt_cache_hit_tokens"` // DeepSeek
	}
)

func (u *chatUsage) usage() model.Usage {
	out := model.Usage{PromptTokens: u.Prompt, CompletionTokens: u.Completion, CachedTokens: max(u.Cached, u.Hit)}
	if u.Details != nil {
		out.CachedTokens = max(out.CachedTokens, u.Details.Cached)
	}
	return out
}

func (chatWire) read(a *answer, data []byte) (bool, error) {
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, fmt.Errorf("read an event: %w", err)
	}
	return false, a.chunk(&chunk, data)
}

func (a *answer) chunk(chunk *chatChunk, data []byte) error {
	if chunk.Error != nil && string(chunk.Error) != "null" {
		return readProblem(0, data)
	}
	if chunk.Choices == nil {
		if e := readProblem(0, data); e.given && chunk.Usage == nil {
			return e
		}
	}
	if chunk.Usage != nil {
		a.end.usage = chunk.Usage.usage()
	}
	for i := range chunk.Choices {
		choice := &chunk.Choices[i]
		if choice.Index != 0 {
			continue
		}
		if choice.Error != nil && string(choice.Error) != "null" {
			return readProblem(0, choice.Error)
		}
		if choice.Usage != nil {
			a.end.usage = choice.Usage.usage()
		}
		if err := a.delta(choice.Delta); err != nil {
			return err
		}
		if err := a.delta(choice.Message); err != nil {
			return err
		}
		if choice.Finish != "" && choice.Finish != "null" {
			a.end.reason = choice.Finish
		}
	}
	return nil
}

// delta takes in a piece of a message.
func (a *answer) delta(d map[string]json.RawMessage) error {
	if len(d) == 0 {
		return nil
	}
	if err := a.content(d["content"]); err != nil {
		return err
	}
	a.declined.WriteString(raw(d["refusal"]))
	var calls []map[string]json.RawMessage
	if json.Unmarshal(d["tool_calls"], &calls) == nil {
		for _, piece := range calls {
			a.calls.take(piece)
		}
		a.end.calls = a.calls.list
	}
	if a.message == nil {
		a.message = fieldSet{}
	}
	a.message.take(d, "role", "content", "tool_calls", "refusal", "function_call", "audio", "name")
	return nil
}

// content takes in a piece of a message's content: a text, or a list of parts of which some are text.
func (a *answer) content(b json.RawMessage) error {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '[' {
		s := raw(b)
		if s != "" && a.parts != nil {
			a.parts.add(json.RawMessage(textPart), 0)
		}
		return a.say(s)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("read the content: %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("read the content: %w", err)
	}
	if a.parts == nil {
		a.parts = &grown{isList: true}
	}
	for i, part := range parts {
		if part.Type != "text" && part.Type != "output_text" {
			a.parts.add(list[i], 0)
			continue
		}
		a.parts.add(json.RawMessage(textPart), 0) // a turn has its text itself
		if err := a.say(part.Text); err != nil {
			return err
		}
	}
	return nil
}

func (w chatWire) whole(a *answer, data []byte) error {
	var all chatChunk
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return a.chunk(&all, data)
}

func (chatWire) kept(a *answer) any {
	out := map[string]any{}
	if message := a.message.trim(); message != nil {
		out["message"] = message
	}
	if a.parts != nil && slices.ContainsFunc(a.parts.list, func(p *grown) bool { return !p.is("text") }) {
		out["parts"] = a.parts
	}
	if calls := a.calls.kept(); calls != nil {
		out["calls"] = calls
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// is reports whether a value is an object of this type.
func (g *grown) is(kind string) bool {
	return g.object["type"] != nil && g.object["type"].text.String() == kind
}

// gathered puts the pieces of calls together. Pieces belong together by their index; servers that give none, or the
// same to all, are told apart by the ids that begin their calls.
type gathered struct {
	list  []model.Call
	own   []ownFields
	index []int // of each call, -1 if it came without
}

// ownFields are what is not known of a call.
type ownFields struct {
	Call     fieldSet `json:"call,omitempty"`
	Function fieldSet `json:"function,omitempty"`
}

// A callPiece is what is known of a piece of a call.
type callPiece struct {
	Index     *int
	ID        string
	Name      string
	Arguments string
}

func (g *gathered) take(piece map[string]json.RawMessage) {
	var p callPiece
	if json.Unmarshal(piece["index"], &p.Index) != nil {
		p.Index = nil
	}
	p.ID = raw(piece["id"])
	var function map[string]json.RawMessage
	if json.Unmarshal(piece["function"], &function) == nil {
		p.Name, p.Arguments = raw(function["name"]), raw(function["arguments"])
		if b := bytes.TrimSpace(function["arguments"]); len(b) > 0 && b[0] == '{' {
			p.Arguments = string(b) // a server that gives them as an object
		}
	}
	at := g.add(&p)
	own := &g.own[at]
	own.Call.take(piece, "index", "id", "type", "function")
	own.Function.take(function, "name", "arguments")
}

// add takes in a piece, and returns the place of its call.
func (g *gathered) add(piece *callPiece) int {
	at := len(g.list) - 1
	index := -1
	if piece.Index != nil {
		index = *piece.Index
		for at >= 0 && g.index[at] != index {
			at--
		}
	}
	fresh := at < 0 || piece.ID != "" && g.list[at].ID != "" && piece.ID != g.list[at].ID
	if piece.Index == nil && piece.ID == "" && piece.Name != "" && at >= 0 && g.list[at].Name != "" {
		fresh = true // a whole call in one piece
	}
	if fresh {
		g.list, g.index = append(g.list, model.Call{}), append(g.index, index)
		g.own = append(g.own, ownFields{fieldSet{}, fieldSet{}})
		at = len(g.list) - 1
	}
	call := &g.list[at]
	call.ID = cmp.Or(call.ID, piece.ID)
	if call.Name != piece.Name { // some servers repeat the whole name with each piece
		call.Name += piece.Name
	}
	call.Arguments += piece.Arguments
	return at
}

// kept is what is not known of the calls, by their places; nil if that is nothing.
func (g *gathered) kept() []ownFields {
	for i := range g.own {
		g.own[i].Call, g.own[i].Function = g.own[i].Call.trim(), g.own[i].Function.trim()
	}
	if !slices.ContainsFunc(g.own, func(o ownFields) bool { return o.Call != nil || o.Function != nil }) {
		return nil
	}
	return g.own
}
