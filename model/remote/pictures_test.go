package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"docent/model"
)

// A picture goes to a model in the form of its wire, behind the result that it belongs to; results of one answer stay together.
func TestPicturesGoWithTheirResults(t *testing.T) {
	c := &model.Chat{MaxTokens: 100, Turns: []model.Turn{{Role: "user", Text: "Describe it."},
		{Role: "assistant", Calls: []model.Call{{ID: "a", Name: "read_file", Arguments: "{}"}, {ID: "b", Name: "read_file", Arguments: "{}"}}},
		{Role: "tool", CallID: "a", Text: "a.png", Picture: &model.Picture{Media: "image/png", Data: []byte("PNG")}},
		{Role: "tool", CallID: "b", Text: "b.md"}}}
	r := &Model{}
	for w, want := range map[wire]string{
		chatWire{}: `{"content":"a.png","role":"tool","tool_call_id":"a"},{"content":"b.md","role":"tool","tool_call_id":"b"},` +
			`{"content":[{"image_url":{"url":"data:image/png;base64,UE5H"},"type":"image_url"}],"role":"user"}`,
		responsesWire{}: `"output":[{"text":"a.png","type":"input_text"},{"image_url":"data:image/png;base64,UE5H","type":"input_image"}]`,
		messagesWire{}: `"content":[{"type":"text","text":"a.png"},{"type":"image","source":{"data":"UE5H","media_type":"image/png","type":"base64"}}]},` +
			`{"type":"tool_result","tool_use_id":"b","content":"b.md"`,
	} {
		b, err := json.Marshal(w.body(r, &manners{}, c))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s sends %s (%v)\nwanted %s", w.name(), b, err, want)
		}
		b, err = json.Marshal(w.body(r, &manners{blind: true}, c))
		if err != nil || strings.Contains(string(b), "UE5H") || !strings.Contains(string(b), "left out") {
			t.Errorf("%s sends to one that takes none: %s (%v)", w.name(), b, err)
		}
	}
}

func TestAnEndpointThatRefusesPicturesGetsNone(t *testing.T) {
	said := readProblem(404, []byte(`{"error":{"message":"No endpoints found that support image input","code":404}}`))
	var l learned
	if l.learn(said, manners{}, map[string]any{"messages": 1}, &model.Chat{Turns: []model.Turn{{Role: "user", Text: "x"}}}) {
		t.Error("learned without a picture")
	}
	c := &model.Chat{Turns: []model.Turn{{Role: "tool", Picture: &model.Picture{Media: "image/png", Data: []byte("PNG")}}}}
	if !l.learn(said, manners{}, map[string]any{"messages": 1}, c) || !l.now().blind {
		t.Errorf("%+v", l.now())
	}
	for name, sees := range map[string]bool{"gpt-5.1": true, "deepseek-v4-pro": false, "unheard-of": false} {
		m := &Model{known: lookUp(name), manners: &learned{}}
		if m.Sees() != sees {
			t.Errorf("%s: %v", name, m.Sees())
		}
		m.manners.blind = true
		if m.Sees() {
			t.Errorf("%s sees what its endpoint refused", name)
		}
	}
}
