package router_test

import (
	"strings"
	"testing"

	"docent/actors/thread"
	"docent/api/stream"
	"docent/model"
)

const run = "/v1/ag-ui/docs.acme.example"

// A run of AG-UI is a question as any other, with the conversation that its client keeps.
func TestARunIsAQuestion(t *testing.T) {
	h := build(t)
	input := `{"threadId":"t1","runId":"r1","state":{},"tools":[],"context":[{"description":"The page","value":"Prices"}],"forwardedProps":{"fp":"u1"},"messages":[
		{"id":"1","role":"system","content":"Be brief."},{"id":"2","role":"user","content":"One?"},{"id":"3","role":"activity","content":{"x":1}},
		{"id":"4","role":"assistant","content":"Yes.\n\nSources:\n1. [Page](https://docs.acme.example/page)\n"},
		{"id":"5","role":"user","content":[{"type":"text","text":"Two?"}]}]}`
	body, res := h.text(200, "POST", run, h.assistant, input)
	header(t, res, "Content-Type", "text/event-stream")
	asked := h.threads.last
	if asked.Text != "Two?" || asked.Caller != "u1" || asked.Setting != "Be brief.\n\nThe page: Prices" || !asked.New || len(asked.Before) != 2 ||
		asked.Before[1] != (model.Message{Role: "assistant", Text: "Yes."}) {
		t.Errorf("asked %+v", asked)
	}
	of := `"messageId":"` + string(asked.Turn) + `"`
	want := `data: {"type":"RUN_STARTED","threadId":"t1","runId":"r1"}

data: {"type":"TEXT_MESSAGE_START",` + of + `,"role":"assistant"}

data: {"type":"TEXT_MESSAGE_CONTENT",` + of + `,"delta":"Hello "}

data: {"type":"TEXT_MESSAGE_CONTENT",` + of + `,"delta":"\"world\"\n"}

data: {"type":"TEXT_MESSAGE_CONTENT",` + of + `,"delta":"\n\nSources:\n1. [Page](https://docs.acme.example/page)\n"}

data: {"type":"TEXT_MESSAGE_END",` + of + `}

data: {"type":"CUSTOM","name":"sources","value":[{"url":"https://docs.acme.example/page","title":"Page"}]}

data: {"type":"RUN_FINISHED","threadId":"t1","runId":"r1","result":{` + of + `,"threadId":"` + res.Header.Get("X-Thread-Id") + `","threadKey":"tk_secret"}}

`
	if body != want {
		t.Errorf("streamed\n%s\nwant\n%s", body, want)
	}

	h.text(204, "OPTIONS", run, "", "")
	h.text(200, "POST", run, h.assistant, strings.Replace(input, `"t1"`, `"`+res.Header.Get("X-Thread-Id")+`"`, 1))
	if asked := h.threads.last; asked.New || asked.Before != nil {
		t.Errorf("in the thread it is asked as %+v", asked)
	}
	h.threads.answer = func(_ thread.Ask, log *stream.Log) {
		log.Append(stream.Part{Kind: stream.Error, Text: "it broke"})
		log.Close()
	}
	if body, _ := h.text(200, "POST", run, h.assistant, input); !strings.Contains(body, `data: {"type":"RUN_ERROR","code":"no_answer","message":"it broke"}`) {
		t.Errorf("a fault is streamed as %s", body)
	}
	for _, wrong := range []string{`{}`, `{"threadId":"t","runId":"r","messages":[]}`, `{"threadId":"t","runId":"r","messages":[{"role":"activity","content":{}}]}`,
		`{"threadId":"t","runId":"r","context":[1],"messages":[{"role":"user","content":"q"}]}`} {
		h.json(400, "POST", run, h.assistant, wrong)
	}
}
