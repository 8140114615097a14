package router_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/model"
)

const chat = "/v1/chat/completions"

// What a client of OpenAI's API sends is a question as any other, and what was said before comes along with it.
func TestACompletionIsAQuestion(t *testing.T) {
	h := build(t)
	got := h.json(200, "POST", chat, h.assistant, `{"model":"docs.acme.example","temperature":0.2,"user":"u1","stream":false,
		"messages":[{"role":"system","content":"You are a pirate."},{"role":"user","content":"One?"},
		{"role":"assistant","content":"Yes [1].\n\nSources:\n1. [Page](https://docs.acme.example/page)\n"},
		{"role":"user","content":[{"type":"text","text":"And two?"},{"type":"image_url","image_url":{"url":"data:x"}}]}]}`)
	asked := h.threads.last
	if asked.Text != "And two?" || asked.Caller != "u1" || asked.Setting != "You are a pirate." || !asked.New ||
		len(asked.Context) != 0 || len(asked.Before) != 2 ||
		asked.Before[0] != (model.Message{Role: "user", Text: "One?"}) || asked.Before[1] != (model.Message{Role: "assistant", Text: "Yes [1]."}) {
		t.Errorf("asked %+v", asked)
	}
	choice := got["choices"].([]any)[0].(map[string]any)
	message := choice["message"].(map[string]any)
	text := message["content"].(string)
	if want := "Hello \"world\"\n\n\nSources:\n1. [Page](https://docs.acme.example/page)\n"; text != want {
		t.Errorf("the text is %q, want %q", text, want)
	}
	cited := message["annotations"].([]any)[0].(map[string]any)["url_citation"].(map[string]any)
	at := []rune(text)[int(cited["start_index"].(float64)):int(cited["end_index"].(float64))]
	if string(at) != "[Page](https://docs.acme.example/page)" || cited["url"] != "https://docs.acme.example/page" || cited["title"] != "Page" {
		t.Errorf("cited %v at %q", cited, string(at))
	}
	meta := got["metadata"].(map[string]any)
	if got["model"] != "docs.acme.example" || choice["finish_reason"] != "stop" || meta["thread_key"] != "tk_secret" {
		t.Errorf("answered %v", got)
	}

	h.json(200, "POST", chat, h.assistant, `{"model":"docs.acme.example","user":"u1","metadata":{"thread_id":"`+meta["thread_id"].(string)+
		`"},"messages":[{"role":"user","content":"One?"},{"role":"assistant","content":"Yes."},{"role":"user","content":"Two?"}]}`)
	if asked := h.threads.last; asked.New || asked.Before != nil || asked.Text != "Two?" {
		t.Errorf("in the thread it is asked as %+v", asked)
	}
	h.json(404, "POST", chat, h.assistant, `{"model":"docs.acme.example","metadata":{"thread_id":"thr_x"},"messages":[{"role":"user","content":"q"}]}`)
}

func TestACompletionIsStreamed(t *testing.T) {
	eachForm := `{"model":"docs.acme.example","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi?"}]}`
	h := build(t)
	body, res := h.text(200, "POST", chat, h.assistant, eachForm)
	header(t, res, "Content-Type", "text/event-stream")
	header(t, res, "X-Thread-Key", "tk_secret")
	head := `data: {"id":"chatcmpl-` + string(h.threads.last.Turn) + `","object":"chat.completion.chunk","created":1795255200,"model":"docs.acme.example","choices":[`
	want := head + `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

` + head + `{"index":0,"delta":{"content":"Hello "},"finish_reason":null}]}

` + head + `{"index":0,"delta":{"content":"\"world\"\n"},"finish_reason":null}]}

` + head + `{"index":0,"delta":{"content":"\n\nSources:\n1. [Page](https://docs.acme.example/page)\n","annotations":[{"type":"url_citation","url_citation":{"start_index":28,"end_index":66,"url":"https://docs.acme.example/page","title":"Page"}}]},"finish_reason":null}]}

` + head + `{"index":0,"delta":{},"finish_reason":"stop"}]}

` + head + `],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}

data: [DONE]

`
	if body != want {
		t.Errorf("streamed\n%s\nwant\n%s", body, want)
	}
	h.threads.answer = func(_ thread.Ask, log *stream.Log) {
		log.Append(stream.Part{Kind: stream.Error, Text: "it broke"})
		log.Close()
	}
	if body, _ := h.text(200, "POST", chat, h.assistant, eachForm); !strings.Contains(body, `data: {"error":{"message":"it broke"`) {
		t.Errorf("a fault is streamed as %s", body)
	}
	refused := h.json(503, "POST", chat, h.assistant, strings.Replace(eachForm, `"stream":true`, `"stream":false`, 1))["error"].(map[string]any)
	if refused["message"] != "it broke" || refused["code"] != "no_answer" || refused["type"] != "server_error" {
		t.Errorf("a fault is %v", refused)
	}
}

// What a client of OpenAI's Responses sends is a question as any other; the next one goes on in its thread.
func TestAResponseIsAQuestion(t *testing.T) {
	h := build(t)
	const responses = "/v1/responses"
	got := h.json(200, "POST", responses, h.assistant, `{"model":"docs.acme.example","instructions":"You are a pirate.","user":"u1","tools":[{"type":"web_search"}],
		"input":[{"role":"developer","content":"Speak."},{"role":"user","content":"One?"},{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes [1].\n\nSources:\n1. [Page](https://docs.acme.example/page)\n","annotations":[]}]},
		{"role":"user","content":[{"type":"input_text","text":"And two?"},{"type":"input_image","image_url":"data:x"}]}]}`)
	asked := h.threads.last
	if asked.Text != "And two?" || asked.Caller != "u1" || asked.Setting != "You are a pirate.\n\nSpeak." || !asked.New || len(asked.Before) != 2 ||
		asked.Before[1] != (model.Message{Role: "assistant", Text: "Yes [1]."}) {
		t.Errorf("asked %+v", asked)
	}
	said := got["output"].([]any)[0].(map[string]any)["content"].([]any)[0].(map[string]any)
	text, cited := said["text"].(string), said["annotations"].([]any)[0].(map[string]any)
	at := []rune(text)[int(cited["start_index"].(float64)):int(cited["end_index"].(float64))]
	if text != "Hello \"world\"\n\n\nSources:\n1. [Page](https://docs.acme.example/page)\n" || string(at) != "[Page](https://docs.acme.example/page)" {
		t.Errorf("the text is %q, cited at %q", text, string(at))
	}
	if got["status"] != "completed" || got["previous_response_id"] != nil || got["metadata"].(map[string]any)["thread_key"] != "tk_secret" {
		t.Errorf("answered %v", got)
	}
	id, thread := got["id"].(string), got["metadata"].(map[string]any)["thread_id"]
	next := h.json(200, "POST", responses, h.assistant, `{"model":"docs.acme.example","user":"u1","input":"Three?","previous_response_id":"`+id+`"}`)
	if asked := h.threads.last; asked.New || asked.Text != "Three?" || next["previous_response_id"] != id || next["metadata"].(map[string]any)["thread_id"] != thread {
		t.Errorf("in the thread it is asked as %+v and answered %v", asked, next)
	}
	for body, want := range map[string]int{`{"model":"docs.acme.example"}`: 400, `{"model":"docs.acme.example","input":[]}`: 400, `{"model":"docs.acme.example","input":" "}`: 400,
		`{"model":"docs.acme.example","input":[{"type":"function_call_output","output":"x"}]}`: 400, `{"model":"gpt-5","input":"q"}`: 404,
		`{"model":"docs.acme.example","input":"q","previous_response_id":"resp_123"}`: 404} {
		if problem := h.json(want, "POST", responses, h.assistant, body)["error"].(map[string]any); problem["message"] == "" {
			t.Errorf("%s: %v", body, problem)
		}
	}
	h.text(204, "OPTIONS", responses, "", "")
}

func TestAResponseIsStreamed(t *testing.T) {
	h := build(t)
	ask := `{"model":"docs.acme.example","stream":true,"input":"Hi?"}`
	body, res := h.text(200, "POST", "/v1/responses", h.assistant, ask)
	header(t, res, "Content-Type", "text/event-stream")
	var kinds []string
	var last struct {
		Number   int `json:"sequence_number"`
		Response map[string]any
	}
	for event := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		kind, data, _ := strings.Cut(event, "\ndata: ")
		kinds = append(kinds, strings.TrimPrefix(kind, "event: "))
		if err := json.Unmarshal([]byte(data), &last); err != nil || last.Number != len(kinds)-1 {
			t.Errorf("%q is event %d: %v", data, last.Number, err)
		}
	}
	const item, part, words = "response.output_item.", "response.content_part.", "response.output_text."
	if want := []string{"response.created", "response.in_progress", item + "added", part + "added", words + "delta", words + "delta", words + "delta",
		words + "annotation.added", words + "done", part + "done", item + "done", "response.completed"}; !slices.Equal(kinds, want) {
		t.Errorf("streamed %q", kinds)
	}
	text := last.Response["output"].([]any)[0].(map[string]any)["content"].([]any)[0].(map[string]any)["text"]
	if text != "Hello \"world\"\n\n\nSources:\n1. [Page](https://docs.acme.example/page)\n" {
		t.Errorf("at the end the text is %q", text)
	}
	h.threads.answer = func(_ thread.Ask, log *stream.Log) {
		log.Append(stream.Part{Kind: stream.Error, Text: "it broke"})
		log.Close()
	}
	if body, _ := h.text(200, "POST", "/v1/responses", h.assistant, ask); !strings.Contains(body, "event: error\ndata: ") ||
		!strings.Contains(body, `"status":"failed","error":{"code":"server_error","message":"it broke"}`) {
		t.Errorf("a fault is streamed as %s", body)
	}
}

func TestErrorsOfCompletionsAreInTheirForm(t *testing.T) {
	h := build(t)
	server := h.key(api.Key{Kind: api.ServerKey, Org: "org-a", Project: "acme"})
	const user = `"messages":[{"role":"user","content":"q"}]`
	for _, c := range []struct {
		status            int
		method, path, key string
		body, code, param string
	}{
		{401, "POST", chat, "", `{"model":"docs.acme.example",` + user + `}`, "unauthorized", ""},
		{401, "GET", "/v1/models", "sk-nonsense", "", "unauthorized", ""},
		{403, "POST", chat, h.admin, `{"model":"docs.acme.example",` + user + `}`, "forbidden", ""},
		{404, "POST", chat, h.assistant, `{"model":"two.acme.example",` + user + `}`, "not_found", ""},
		{404, "POST", chat, h.assistant, `{"model":"gpt-4o",` + user + `}`, "not_found", ""},
		{404, "GET", "/v1/models/gpt-4o", h.assistant, "", "not_found", ""},
		{400, "POST", chat, h.assistant, `{` + user + `}`, "invalid_request", "model"},
		{400, "POST", chat, h.assistant, `{"model":"docs.acme.example"}`, "invalid_request", "messages"},
		{400, "POST", chat, h.assistant, `{"model":"docs.acme.example","messages":[{"role":"assistant","content":"q"}]}`, "invalid_request", "messages[0].role"},
		{400, "POST", chat, h.assistant, `{"model":"docs.acme.example","n":2,` + user + `}`, "invalid_request", "n"},
		{400, "POST", chat, h.assistant, `{`, "invalid_json", "body"},
		{405, "DELETE", chat, h.assistant, "", "method_not_allowed", ""},
	} {
		problem := h.json(c.status, c.method, c.path, c.key, c.body)["error"].(map[string]any)
		if problem["code"] != c.code || c.param != "" && problem["param"] != c.param || problem["message"] == "" {
			t.Errorf("%s %s %s: %v", c.method, c.path, c.body, problem)
		}
		if message, _ := problem["message"].(string); c.param == "n" && !strings.HasSuffix(message, "n must be 1") {
			t.Error(message)
		}
	}
	list := h.json(200, "GET", "/v1/models", server, "")["data"].([]any)
	if one := list[0].(map[string]any); len(list) != 1 || one["id"] != "docs.acme.example" || one["object"] != "model" {
		t.Errorf("the models are %v", list)
	}
	h.json(200, "GET", "/v1/models/docs.acme.example", h.assistant, "")
	for _, path := range []string{"/v1/models", "/v1/models/docs.acme.example"} {
		h.text(200, "HEAD", path, h.assistant, "")
		h.text(204, "OPTIONS", path, "", "")
	}
	h.text(204, "OPTIONS", chat, "", "")
}

// Who reads JSON and nothing else gets an answer in one piece.
func TestAnAnswerInOnePiece(t *testing.T) {
	h := build(t)
	for _, path := range []string{v1, v2} {
		got := h.json(200, "POST", path, h.assistant, ask, "Accept", "application/json")
		source := got["sources"].([]any)[0].(map[string]any)
		if got["text"] != "Hello \"world\"\n" || source["url"] != "https://docs.acme.example/page" || got["threadKey"] != "tk_secret" ||
			got["messageId"] != string(h.threads.last.Turn) || got["finishReason"] != "stop" {
			t.Errorf("%s: %v", path, got)
		}
		id := got["threadId"].(string)
		again := h.json(200, "GET", "/discovery/v2/assistant/docs.acme.example/message/"+id+"/stream", h.assistant, "", "Accept", "application/json")
		if again["text"] != got["text"] {
			t.Errorf("the same answer again: %v", again)
		}
		for _, accept := range []string{"*/*", "application/json, text/plain, */*", "text/event-stream", "application/json, text/event-stream"} {
			if body, _ := h.text(200, "POST", path, h.assistant, ask, "Accept", accept); strings.HasPrefix(body, `{"threadId`) {
				t.Errorf("%s with Accept %s: %s", path, accept, body)
			}
		}
	}
}
