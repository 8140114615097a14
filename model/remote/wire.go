package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"docent/model"
)

// nothing stands for a tool's empty result, which providers do not take.
const nothing = "(no output)"

// check says whether a stream ended as an answer does.
func (e *ending) check() error {
	switch e.reason {
	case "stop", "end_turn", "stop_sequence", "tool_calls", "tool_use", "function_call":
		e.reason = "stop"
		if len(e.calls) > 0 { // some servers say "stop" even so
			e.reason = "tools"
		}
	case "length", "max_tokens", "model_context_window_exceeded":
		e.reason = "length"
	case "":
		return errors.New("the stream ended without a reason")
	case "content_filter", "refusal":
		return &reported{text: "the provider declined to answer", means: model.ErrRefused}
	default:
		return &reported{text: "the answer ended with " + fmt.Sprintf("%q", e.reason)}
	}
	return nil
}

// object is a call's arguments as they can be sent back: a JSON object. Providers refuse a conversation in which they
// are anything else, so what was none is quoted in one.
func object(arguments string) json.RawMessage {
	var any map[string]json.RawMessage
	switch {
	case strings.TrimSpace(arguments) == "":
		return json.RawMessage("{}")
	case json.Unmarshal([]byte(arguments), &any) == nil && any != nil:
		return json.RawMessage(arguments)
	}
	quoted, err := json.Marshal(map[string]string{"malformed": arguments})
	if err != nil { // strings always have a form
		return json.RawMessage("{}")
	}
	return quoted
}

// schema is what a tool's arguments look like; both providers demand an object.
func schema(t model.Tool) json.RawMessage {
	if len(t.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Schema
}

// meaning recognizes the providers' answers that a caller can do something about: there is no common code for them,
// and some servers give only a sentence.
func meaning(kind, text string) error {
	kind, text = strings.ToLower(kind), strings.ToLower(text)
	switch {
	case holds(kind, "context_length_exceeded", "exceed_context_size_error", "request_too_large"):
		return model.ErrTooLong
	case holds(kind, "content_filter", "content_policy_violation", "responsibleaipolicyviolation"):
		return model.ErrRefused
	}
	for _, parts := range tooLong {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
			return model.ErrTooLong
		}
	}
	return nil
}

// holds reports whether a text holds one of the parts.
func holds(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// tooLong lists by their parts the sentences with which servers refuse a conversation that is too long for the model.
var tooLong = [][]string{
	{"maximum context length"},                   // OpenAI, Azure, vLLM, OpenRouter, Ollama
	{"exceeds the context window"},               // OpenAI
	{"exceeds the context length"},               // Ollama
	{"exceeds the available context size"},       // llama.cpp
	{"longer than the maximum model length"},     // vLLM
	{"prompt is too long"},                       // Anthropic
	{"exceed context limit"},                     // Anthropic, with the length of the answer
	{"context length", "tokens to keep"},         // LM Studio
	{"context length of only"},                   // LM Studio
	{"input token count", "exceeds the maximum"}, // Gemini
	{"prompt contains", "too large for model"},   // Mistral
	{"request exceeds the maximum size"},         // Anthropic, by bytes
	{"reduce the length of the messages"},        // Groq and others
}
