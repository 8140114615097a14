package remote

import (
	"encoding/json"
	"errors"
	"fmt"
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

// meaning recognises the providers' answers that a caller can do something about: there is no common code for them,
// and some servers give only a sentence.
func meaning(kind, text string) error {
	kind, text = strings.ToLower(kind), strings.ToLower(text)
	for _, k := range []string{"context_length_exceeded", "exceed_context_size_error", "request_too_large"} {
		if strings.Contains(kind, k) {
			return model.ErrTooLong
		}
	}
	for _, k := range []string{"content_filter", "content_policy_violation", "responsibleaipolicyviolation"} {
		if strings.Contains(kind, k) {
			return model.ErrRefused
		}
	}
	for _, all := range tooLong {
		found := true
		for _, part := range all {
			found = found && strings.Contains(text, part)
		}
		if found {
			return model.ErrTooLong
		}
	}
	return nil
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
