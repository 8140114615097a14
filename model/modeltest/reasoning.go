package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

func body1(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// responsesManners are OpenAI's Responses, with a model that reasons and with one that does not.
func responsesManners() []Manner {
	return []Manner{
		{Name: "OpenAI Responses, reasoning", Form: "responses", Source: "developers.openai.com/api/docs/guides/reasoning#encrypted-reasoning-items",
			Check: responsesItems(true), Events: responsesEvents(true)},
		{Name: "OpenAI Responses", Form: "responses", Source: "platform.openai.com/docs/api-reference/responses",
			Check: checks(func(body map[string]json.RawMessage) (int, string) {
				if body["include"] != nil {
					return http.StatusBadRequest, openAIError("Encrypted content is not supported with this model.", "include", "")
				}
				return 0, ""
			}, responsesItems(false)), Events: responsesEvents(false)},
	}
}

// responsesItems refuses calls without the reasoning that led to them, and results without their calls.
func responsesItems(reasons bool) func(map[string]json.RawMessage) (int, string) {
	return func(body map[string]json.RawMessage) (int, string) {
		if string(body["store"]) != "false" || body["max_tokens"] != nil || body["messages"] != nil {
			return http.StatusBadRequest, openAIError("Unknown parameter: 'messages'.", "messages", "unknown_parameter")
		}
		turn, calls, thought := 0, map[string]bool{}, false
		for at, item := range messagesOf(body, "input") {
			switch word(item["type"]) {
			case "reasoning":
				turn++
				thought = word(item["encrypted_content"]) == signatureOf(turn) && word(item["id"]) != "" && item["summary"] != nil
				if !thought {
					return http.StatusBadRequest, openAIError(fmt.Sprintf("The encrypted content of item %d could not be verified.", at), "input", "invalid_encrypted_content")
				}
			case "function_call":
				if reasons && !thought {
					return http.StatusBadRequest, openAIError(fmt.Sprintf("Item '%s' of type 'function_call' was provided without its required 'reasoning' item.",
						word(item["id"])), "input", "")
				}
				calls[word(item["call_id"])] = true
			case "function_call_output":
				if !calls[word(item["call_id"])] {
					return http.StatusBadRequest, openAIError("No tool call found for function call output with call_id "+word(item["call_id"])+".", "input", "")
				}
				thought = false
			case "message":
				if word(item["role"]) == "assistant" && (word(item["id"]) == "" || word(item["phase"]) != "commentary") {
					return http.StatusBadRequest, openAIError("The phase of an assistant's message is missing.", "input", "")
				}
			default:
				return http.StatusBadRequest, openAIError("Invalid value: '"+word(item["type"])+"'.", "input", "invalid_value")
			}
		}
		return 0, ""
	}
}

func responsesEvents(reasons bool) func(int, string, []Call) []string {
	return func(turn int, text string, calls []Call) (list []string) {
		var output []any
		put := func(kind string, more fields) {
			more["type"] = kind
			list = append(list, "event: "+kind+"\n"+event(more))
		}
		item := func(v fields) {
			put("response.output_item.done", fields{"output_index": len(output), "item": v})
			output = append(output, v)
		}
		put("response.created", fields{"response": fields{"status": "in_progress"}})
		if reasons {
			item(fields{"type": "reasoning", "id": fmt.Sprintf("rs_%d", turn), "summary": []any{}, "encrypted_content": signatureOf(turn)})
		}
		if text != "" {
			for _, part := range words(text) {
				put("response.output_text.delta", fields{"output_index": len(output), "content_index": 0, "delta": part})
			}
			item(fields{"type": "message", "id": fmt.Sprintf("msg_%d", turn), "role": "assistant", "status": "completed", "phase": "commentary",
				"content": []any{fields{"type": "output_text", "text": text, "annotations": []any{}}}})
		}
		for n, c := range calls {
			put("response.output_item.added", fields{"output_index": len(output), "item": fields{"type": "function_call", "name": c.Name}})
			for _, part := range chops(c.Arguments) {
				put("response.function_call_arguments.delta", fields{"output_index": len(output), "delta": part})
			}
			item(fields{"type": "function_call", "id": fmt.Sprintf("fc_%d_%d", turn, n), "call_id": callID(turn, n), "name": c.Name,
				"arguments": c.Arguments, "status": "completed"})
		}
		put("response.completed", fields{"response": fields{"status": "completed", "output": output, "error": nil, "incomplete_details": nil,
			"usage": fields{"input_tokens": 100, "output_tokens": 10, "input_tokens_details": fields{"cached_tokens": 40}}}})
		return list
	}
}

// messagesManners are Anthropic's messages, with thinking and without.
func messagesManners() []Manner {
	return []Manner{
		{Name: "Anthropic, thinking", Form: "messages", Source: "docs.anthropic.com/en/docs/build-with-claude/extended-thinking",
			Check: thoughtBlocks, Events: messagesEvents(true)},
		{Name: "Anthropic, with its cache", Form: "messages", Source: "docs.anthropic.com/en/docs/build-with-claude/prompt-caching",
			Check: cacheMarks, Events: messagesEvents(false)},
	}
}

func anthropicRefusal(message string) (int, string) {
	return http.StatusBadRequest, compact(fields{"type": "error", "error": fields{"type": "invalid_request_error", "message": message}})
}

// thoughtBlocks refuses turns with calls that do not begin with their thoughts, word for word and with their signature.
func thoughtBlocks(body map[string]json.RawMessage) (int, string) {
	turn := 0
	for at, m := range messagesOf(body, "messages") {
		if word(m["role"]) != "assistant" {
			continue
		}
		turn++
		blocks := messagesOf(m, "content")
		if len(blocks) < 2 || word(blocks[0]["type"]) != "thinking" || word(blocks[1]["type"]) != "redacted_thinking" {
			return anthropicRefusal(fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", at))
		}
		if word(blocks[0]["thinking"]) != thoughtOf(turn) || word(blocks[0]["signature"]) != signatureOf(turn) || word(blocks[1]["data"]) != "b3BhcXVl" {
			return anthropicRefusal(fmt.Sprintf("messages.%d.content.0: Invalid `signature` in `thinking` block", at))
		}
	}
	return cacheMarks(body)
}

// cacheMarks refuses more marks than are allowed, and a conversation without any.
func cacheMarks(body map[string]json.RawMessage) (int, string) {
	all, err := json.Marshal(body)
	n := strings.Count(string(all), `"cache_control"`)
	if err != nil || n == 0 || n > 4 {
		return anthropicRefusal(fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n))
	}
	return 0, ""
}

func messagesEvents(thinks bool) func(int, string, []Call) []string {
	return func(turn int, text string, calls []Call) (list []string) {
		index := 0
		put := func(kind string, more fields) {
			more["type"] = kind
			list = append(list, "event: "+kind+"\n"+event(more))
		}
		block := func(start fields, deltas ...fields) {
			put("content_block_start", fields{"index": index, "content_block": start})
			for _, d := range deltas {
				put("content_block_delta", fields{"index": index, "delta": d})
			}
			put("content_block_stop", fields{"index": index})
			index++
		}
		put("message_start", fields{"message": fields{"usage": fields{"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 1}}})
		if thinks {
			deltas := []fields{}
			for _, part := range words(thoughtOf(turn)) {
				deltas = append(deltas, fields{"type": "thinking_delta", "thinking": part})
			}
			block(fields{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, fields{"type": "signature_delta", "signature": signatureOf(turn)})...)
			block(fields{"type": "redacted_thinking", "data": "b3BhcXVl"})
		}
		if text != "" {
			block(fields{"type": "text", "text": ""}, fields{"type": "text_delta", "text": text})
		}
		for n, c := range calls {
			block(fields{"type": "tool_use", "id": callID(turn, n), "name": c.Name, "input": fields{}}, fields{"type": "input_json_delta", "partial_json": c.Arguments})
		}
		stop := "end_turn"
		if len(calls) > 0 {
			stop = "tool_use"
		}
		put("message_delta", fields{"delta": fields{"stop_reason": stop}, "usage": fields{"output_tokens": 10}})
		put("message_stop", fields{})
		return list
	}
}
