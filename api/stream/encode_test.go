package stream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"docent/api/stream"
)

var forms = []stream.Form{stream.DataStream, stream.UIMessages}

func encode(form stream.Form, parts ...stream.Part) string {
	e := stream.NewEncoder(form)
	var out []byte
	for _, p := range parts {
		out = e.Append(out, p)
	}
	return string(out)
}

func decode(form stream.Form, r io.Reader) ([]stream.Part, error) {
	d := stream.NewDecoder(form, r)
	var parts []stream.Part
	for {
		p, err := d.Next()
		if err == io.EOF {
			return parts, nil
		}
		if err != nil {
			return parts, err
		}
		parts = append(parts, p)
	}
}

var answer = []stream.Part{
	{Kind: stream.Start, Message: "msg_1", Thread: "thr_1", Key: "secret"},
	{Kind: stream.Source, ID: "s1", URL: "https://docs.example/page", Title: "Page"},
	{Kind: stream.Text, Text: "A \"quoted\"\nline "},
	{Kind: stream.Text, Text: "and <tags> & ünïcode 𝕏 \u2028."},
	{Kind: stream.Finish, Thread: "thr_1", Reason: "stop", Usage: stream.Usage{Prompt: 12, Completion: 7}},
}

func TestTheDataStreamIsWrittenAsItsClientsReadIt(t *testing.T) {
	want := `f:{"messageId":"msg_1"}
h:{"sourceType":"url","id":"s1","url":"https://docs.example/page","title":"Page"}
0:"A \"quoted\"\nline "
0:"and <tags> & ünïcode 𝕏 \u2028."
e:{"finishReason":"stop","usage":{"promptTokens":12,"completionTokens":7},"isContinued":false}
8:[{"type":"finish","threadId":"thr_1","threadKey":"secret"}]
2:[{"type":"finish","threadId":"thr_1","threadKey":"secret"}]
d:{"finishReason":"stop","usage":{"promptTokens":12,"completionTokens":7},"threadId":"thr_1","threadKey":"secret"}
`
	if got := encode(stream.DataStream, answer...); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestTheUIMessageStreamIsWrittenAsItsClientsReadIt(t *testing.T) {
	want := `data: {"type":"start","messageId":"msg_1","messageMetadata":{"threadId":"thr_1","threadKey":"secret"}}

data: {"type":"start-step"}

data: {"type":"source-url","sourceId":"s1","url":"https://docs.example/page","title":"Page"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"A \"quoted\"\nline "}

data: {"type":"text-delta","id":"t1","delta":"and <tags> & ünïcode 𝕏 \u2028."}

data: {"type":"text-end","id":"t1"}

data: {"type":"finish-step"}

data: {"type":"finish","messageMetadata":{"threadId":"thr_1","threadKey":"secret"}}

data: [DONE]

`
	if got := encode(stream.UIMessages, answer...); got != want {
		t.Errorf("got\n%s", got)
	}
}

// Both forms tell which model has answered in place of another, where clients look for the thread's id.
func TestAnAnswerOfAnotherModelIsMarked(t *testing.T) {
	for form, mark := range map[stream.Form]string{
		stream.DataStream: `8:[{"type":"finish","threadId":"thr_1","model":"builtin","fallback":true,"degraded":["model: unavailable"]}]`,
		stream.UIMessages: `data: {"type":"finish","messageMetadata":{"threadId":"thr_1","model":"builtin","fallback":true,"degraded":["model: unavailable"]}}`,
	} {
		text := encode(form, stream.Part{Kind: stream.Start, Message: "msg_1", Thread: "thr_1"},
			stream.Part{Kind: stream.Text, Text: "So."},
			stream.Part{Kind: stream.Finish, Thread: "thr_1", Reason: "stop", Model: "builtin", Fallback: true,
				Degraded: []string{"model: unavailable"}})
		if strings.Count(text, mark) != 1 {
			t.Errorf("%v: %s", form, text)
		}
		parts, err := decode(form, strings.NewReader(text))
		if end := parts[len(parts)-1]; err != nil || end.Model != "builtin" || !end.Fallback || len(end.Degraded) != 1 {
			t.Errorf("%v: read as %+v, %v", form, end, err)
		}
		if text := encode(form, answer...); strings.Contains(text, "fallback") || strings.Contains(text, "degraded") {
			t.Errorf("%v: an answer of the model itself is marked: %s", form, text)
		}
	}
}

// How an answer came about is for the reader who may know it, and for no other one of the same log.
func TestAnExplanationIsWrittenForThoseWhoMaySeeIt(t *testing.T) {
	parts := []stream.Part{{Kind: stream.Start, Message: "msg_1", Thread: "thr_1"}, {Kind: stream.Text, Text: "So."},
		{Kind: stream.Explained, Text: `{"read":"why"}`}, {Kind: stream.Finish, Thread: "thr_1", Reason: "stop"}}
	for form, line := range map[stream.Form]string{
		stream.DataStream: "2:[{\"type\":\"explanation\",\"explanation\":{\"read\":\"why\"}}]\n",
		stream.UIMessages: "data: {\"type\":\"data-explanation\",\"data\":{\"read\":\"why\"}}\n\n",
	} {
		var text []byte
		e := stream.NewEncoder(form).WithExplanation()
		for _, p := range parts {
			text = e.Append(text, p)
		}
		if strings.Count(string(text), line) != 1 {
			t.Errorf("%v: %s", form, text)
		}
		got, err := decode(form, strings.NewReader(string(text)))
		if err != nil || len(got) != 4 || got[2].Kind != stream.Explained || got[2].Text != `{"read":"why"}` {
			t.Errorf("%v: read as %+v, %v", form, got, err)
		}
		if other := encode(form, parts...); strings.Contains(other, "why") || strings.Contains(other, "explanation") {
			t.Errorf("%v: another reader is told %s", form, other)
		}
	}
}

func TestTheSearchIsAStepOfItsOwn(t *testing.T) {
	parts := []stream.Part{
		{Kind: stream.Start, Message: "m", Thread: "t"},
		{Kind: stream.Search, ID: "c1", Query: "q", Results: []stream.Result{
			{Path: "a.md", URL: "/a", Title: "A", Content: "text"}, {Path: "b.md"}}},
		{Kind: stream.Text, Text: "x"},
		{Kind: stream.Finish, Thread: "t"},
	}
	results := `[{"path":"a.md","url":"/a","content":"text","metadata":{"title":"A"}},{"path":"b.md","content":"","metadata":{}}]`
	want := `f:{"messageId":"m"}
9:{"toolCallId":"c1","toolName":"search","args":{"query":"q"}}
a:{"toolCallId":"c1","result":` + results + `}
e:{"finishReason":"tool-calls","usage":{"promptTokens":0,"completionTokens":0},"isContinued":false}
f:{"messageId":"m"}
0:"x"
e:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0},"isContinued":false}
8:[{"type":"finish","threadId":"t"}]
2:[{"type":"finish","threadId":"t"}]
d:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0},"threadId":"t"}
`
	if got := encode(stream.DataStream, parts...); got != want {
		t.Errorf("data stream: got\n%s", got)
	}
	want = `data: {"type":"start","messageId":"m","messageMetadata":{"threadId":"t"}}

data: {"type":"start-step"}

data: {"type":"tool-input-available","toolCallId":"c1","toolName":"search","input":{"query":"q"},"providerExecuted":true}

data: {"type":"tool-output-available","toolCallId":"c1","output":` + results + `,"providerExecuted":true}

data: {"type":"finish-step"}

data: {"type":"start-step"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"x"}

data: {"type":"text-end","id":"t1"}

data: {"type":"finish-step"}

data: {"type":"finish","messageMetadata":{"threadId":"t"}}

data: [DONE]

`
	if got := encode(stream.UIMessages, parts...); got != want {
		t.Errorf("UI message stream: got\n%s", got)
	}
}

func TestAFailedAnswerHasAProperEnd(t *testing.T) {
	parts := []stream.Part{
		{Kind: stream.Start, Message: "m", Thread: "t"},
		{Kind: stream.Text, Text: "half an "},
		{Kind: stream.Error, Text: "the model stopped"},
		{Kind: stream.Text, Text: "never sent"},
	}
	want := `f:{"messageId":"m"}
0:"half an "
3:"the model stopped"
e:{"finishReason":"error","usage":{"promptTokens":0,"completionTokens":0},"isContinued":false}
d:{"finishReason":"error","usage":{"promptTokens":0,"completionTokens":0},"threadId":"t"}
`
	if got := encode(stream.DataStream, parts...); got != want {
		t.Errorf("data stream: got\n%s", got)
	}
	want = `data: {"type":"start","messageId":"m","messageMetadata":{"threadId":"t"}}

data: {"type":"start-step"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"half an "}

data: {"type":"text-end","id":"t1"}

data: {"type":"error","errorText":"the model stopped"}

data: [DONE]

`
	if got := encode(stream.UIMessages, parts...); got != want {
		t.Errorf("UI message stream: got\n%s", got)
	}
	for _, form := range forms {
		got, err := decode(form, strings.NewReader(encode(form, parts...)))
		if err != nil || len(got) != 3 || got[2].Kind != stream.Error || got[2].Text != "the model stopped" {
			t.Errorf("%v: read back %v, %v", form, got, err)
		}
	}
}

func TestEmptyFieldsAreLeftOut(t *testing.T) {
	for _, form := range forms {
		got := encode(form, stream.Part{Kind: stream.Start, Message: "m"}, stream.Part{Kind: stream.Source, URL: "/a"},
			stream.Part{Kind: stream.Text}, stream.Part{Kind: stream.Finish})
		for _, never := range []string{"null", "title", "threadId", "threadKey", "messageMetadata", `0:""`, "text-start"} {
			if strings.Contains(got, never) {
				t.Errorf("%v has %s:\n%s", form, never, got)
			}
		}
		if !strings.Contains(got, `"s1"`) {
			t.Errorf("%v: a source without an id:\n%s", form, got)
		}
	}
}

func TestStringsAreTheirJSON(t *testing.T) {
	for r := range rune(0x3000) {
		checkString(t, "a"+string(r)+"b")
	}
	for _, s := range []string{"", "\xff", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x80", "\xe2\x80\xa8",
		"\U0010ffff", "\ufffd", "𝕏\x00\x7f"} {
		checkString(t, s)
	}
}

// checkString compares the text of a line with what encoding/json writes.
func checkString(t *testing.T, s string) {
	t.Helper()
	if s == "" {
		return
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	got := encode(stream.DataStream, text(s))
	if got != "0:"+want.String() {
		t.Fatalf("%q: got %s, want 0:%s", s, got, want.String())
	}
}

func TestKeepAlivesAreReadAsNothing(t *testing.T) {
	for _, form := range forms {
		e := stream.NewEncoder(form)
		var out []byte
		for _, p := range answer {
			out = e.KeepAlive(e.Append(e.KeepAlive(out), p))
		}
		got, err := decode(form, bytes.NewReader(out))
		if err != nil || len(got) != len(answer) {
			t.Errorf("%v: %v, %v", form, got, err)
		}
	}
}

// carried is what a form carries of the parts.
func carried(form stream.Form, parts []stream.Part) []stream.Part {
	var out []stream.Part
	for _, p := range parts {
		switch {
		case p.Kind == stream.Start && form == stream.DataStream:
			p.Thread, p.Key = "", ""
		case p.Kind == stream.Finish:
			p.Thread, p.Key = parts[0].Thread, parts[0].Key
			if form == stream.UIMessages {
				p.Reason, p.Usage = "", stream.Usage{}
			}
		}
		out = append(out, p)
	}
	return out
}

func TestTheDecoderReadsWhatTheEncoderWrites(t *testing.T) {
	for _, form := range forms {
		wire := encode(form, answer...)
		want := carried(form, answer)
		for name, r := range map[string]io.Reader{
			"whole":    strings.NewReader(wire),
			"bytewise": iotest.OneByteReader(strings.NewReader(wire)),
			"halves":   iotest.HalfReader(strings.NewReader(wire)),
			"CRLF":     strings.NewReader(strings.ReplaceAll(wire, "\n", "\r\n")),
			"data+EOF": iotest.DataErrReader(strings.NewReader(wire)),
		} {
			got, err := decode(form, r)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v, %s: %v\n got %+v\nwant %+v", form, name, err, got, want)
			}
		}
	}
}

func TestACutStreamIsNotAnEnd(t *testing.T) {
	for _, form := range forms {
		wire := encode(form, answer...)
		end := strings.Index(wire, "d:{")
		if form == stream.UIMessages {
			end = strings.Index(wire, `data: {"type":"finish","`)
		}
		for cut := range end + 2 {
			if _, err := decode(form, strings.NewReader(wire[:cut])); err == nil {
				t.Fatalf("%v cut at %d read as a whole answer", form, cut)
			}
		}
		broken := errors.New("connection reset")
		_, err := decode(form, io.MultiReader(strings.NewReader(wire[:end]), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("%v: got %v", form, err)
		}
	}
}

func TestTheDecoderRefusesWhatClientsRefuse(t *testing.T) {
	refused := map[stream.Form][]string{
		stream.DataStream: {
			"x:1\n", "no code\n", ": ping\n", "data: {}\n", "0:5\n", "0:null\n", "0:\"a\n", "2:{}\n",
			"8:{\"type\":\"finish\"}\n", "3:{}\n",
			"f:{}\n", "9:{}\n", "a:{\"toolCallId\":\"unknown\",\"result\":[]}\n", "d:{}\n", "e:{\"usage\":{}}\n", "g:{\n",
		},
		stream.UIMessages: {
			`{"type":"thread"}`, `{}`, `[]`, `{"type":"text-delta","id":"t1","delta":"x"}`, `{"type":"text-start"}`,
			`{"type":"text-end","id":"t1"}`,
			`{"type":"source-url","url":"/a"}`, `{"type":"error"}`, `{"type":"text-start","id":5}`, `{`,
			`{"type":"tool-output-available","toolCallId":"u","output":1}`,
		},
	}
	for form, lines := range refused {
		for _, line := range lines {
			if form == stream.UIMessages {
				line = "data: " + line + "\n\n"
			}
			got, err := decode(form, strings.NewReader(line))
			if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v takes %q: %v, %v", form, line, got, err)
			}
		}
	}
}

func TestTheDecoderTakesPartsThatThisServiceNeverSends(t *testing.T) {
	v1 := "g:\"thinking\"\ni:{\"data\":\"x\"}\nb:{\"toolCallId\":\"1\",\"toolName\":\"n\"}\n9:{\"toolCallId\":\"1\",\"toolName\":\"n\",\"args\":{}}\na:{\"toolCallId\":\"1\",\"result\":3}\n0:\"x\"\nd:{\"finishReason\":\"stop\"}"
	v2 := "event: message\nid: 7\ndata:{\"type\":\"start\"}\n\n: ping\n\ndata: {\"type\":\"reasoning-start\",\"id\":\"r\"}\n\ndata: {\"type\":\"data-note\",\"data\":1}\n\n" +
		"data: {\"type\":\"text-start\",\ndata: \"id\":\"t\"}\n\ndata: {\"delta\":\"x\",\"type\":\"text-delta\",\"id\":\"t\"}\n\ndata: {\"type\":\"finish\",\"finishReason\":\"stop\"}\n\n"
	for form, wire := range map[stream.Form]string{stream.DataStream: v1, stream.UIMessages: v2} {
		got, err := decode(form, strings.NewReader(wire))
		var s string
		for _, p := range got {
			s += p.Text
		}
		if err != nil || s != "x" || got[len(got)-1].Kind != stream.Finish {
			t.Errorf("%v: %+v, %v", form, got, err)
		}
	}
}

func TestTheDecoderBoundsALine(t *testing.T) {
	for _, form := range forms {
		for _, wire := range []string{
			strings.Repeat("x", 10_000),
			`0:"` + strings.Repeat("x", 10_000) + "\"\n",
			strings.Repeat("data: \n", 2) + strings.Repeat("data: "+strings.Repeat("y", 900)+"\n", 20),
		} {
			d := stream.NewDecoder(form, strings.NewReader(wire))
			d.MaxLine = 5000
			for {
				if _, err := d.Next(); err != nil {
					if form == stream.UIMessages && !errors.Is(err, stream.ErrLine) {
						t.Errorf("%v: %v", form, err)
					}
					if err == io.EOF {
						t.Errorf("%v: read as a whole answer", form)
					}
					break
				}
			}
		}
	}
}

func TestTheHeadTellsTheForm(t *testing.T) {
	for form, want := range map[stream.Form]string{stream.DataStream: "X-Vercel-AI-Data-Stream",
		stream.UIMessages: "X-Vercel-AI-UI-Message-Stream"} {
		found := false
		for _, f := range stream.Headers(form) {
			found = found || f.Name == want && f.Value == "v1"
		}
		if !found {
			t.Errorf("%v: no %s", form, want)
		}
	}
}

func TestTextCostsNoAllocation(t *testing.T) {
	for _, form := range forms {
		e := stream.NewEncoder(form)
		buf := make([]byte, 0, 4096)
		buf = e.Append(buf, answer[0])
		p := text("some \"words\" with\nünïcode \u2028 and \xff")
		e.Append(buf, p)
		if n := testing.AllocsPerRun(100, func() { e.Append(buf[:0], p) }); n != 0 {
			t.Errorf("%v: %v allocations", form, n)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("msg_1", "thr_1", "https://docs.example/a", "Title", "some text", "more \u2028 \x00 \xff", true)
	f.Add("", "", "", "", "", "", false)
	f.Fuzz(func(t *testing.T, message, thread, url, title, one, two string, search bool) {
		parts := []stream.Part{
			{Kind: stream.Start, Message: message, Thread: thread},
			{Kind: stream.Source, ID: "s1", URL: url, Title: title},
			{Kind: stream.Text, Text: one},
		}
		if search {
			parts = append(parts, stream.Part{Kind: stream.Search, ID: "c", Query: title,
				Results: []stream.Result{{Path: url, Title: title, Content: one}}})
		}
		parts = append(parts, stream.Part{Kind: stream.Text, Text: two},
			stream.Part{Kind: stream.Finish, Thread: thread, Reason: "length"})
		for _, form := range forms {
			got, err := decode(form, iotest.HalfReader(strings.NewReader(encode(form, parts...))))
			if err != nil {
				t.Fatalf("%v: %v", form, err)
			}
			var want []stream.Part
			for _, p := range carried(form, parts) {
				for _, s := range []*string{&p.Message, &p.Thread, &p.URL, &p.Title, &p.Text, &p.Query} {
					*s = valid(*s)
				}
				if len(p.Results) > 0 {
					p.Results = []stream.Result{{Path: valid(url), Title: valid(title), Content: valid(one)}}
				}
				if p.Kind == stream.Start && p.Message == "" && form == stream.DataStream || p.Kind == stream.Text && p.Text == "" {
					continue // nothing goes over the wire
				}
				want = append(want, p)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%v\n got %+v\nwant %+v", form, got, want)
			}
		}
	})
}

// valid is s as JSON can carry it: each byte that is no UTF-8 becomes the replacement character.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func FuzzDecode(f *testing.F) {
	for _, form := range forms {
		f.Add([]byte(encode(form, answer...)))
	}
	f.Add([]byte("0:\"\\ud800\"\nd:{\"finishReason\":\"stop\"}"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		for _, form := range forms {
			d := stream.NewDecoder(form, bytes.NewReader(wire))
			d.MaxLine = 1 << 10
			text := 0
			for {
				p, err := d.Next()
				if err != nil {
					if _, again := d.Next(); again != err {
						t.Fatalf("%v, then %v", err, again)
					}
					break
				}
				if p.Kind == 0 {
					t.Fatalf("a part of no kind: %+v", p)
				}
				text += len(p.Text)
			}
			if text > 3*len(wire) { // a lone byte may become a replacement character of three
				t.Fatalf("%d bytes of text from %d on the wire", text, len(wire))
			}
		}
	})
}

// What one piece of text costs, beside the general encoder of the standard library doing the same.
func BenchmarkText(b *testing.B) {
	p := text("a few words of the answer, some 40 bytes ")
	for _, form := range forms {
		b.Run(strings.ReplaceAll(form.String(), " ", "-"), func(b *testing.B) {
			e := stream.NewEncoder(form)
			buf := e.Append(make([]byte, 0, 4096), p)
			b.ReportAllocs()
			b.SetBytes(int64(len(p.Text)))
			for b.Loop() {
				buf = e.Append(buf[:0], p)
			}
		})
	}
	b.Run("encoding-json", func(b *testing.B) {
		type delta struct {
			Type  string `json:"type"`
			ID    string `json:"id"`
			Delta string `json:"delta"`
		}
		buf := make([]byte, 0, 4096)
		b.ReportAllocs()
		b.SetBytes(int64(len(p.Text)))
		for b.Loop() {
			v, _ := json.Marshal(delta{"text-delta", "t1", p.Text})
			buf = append(append(append(buf[:0], "data: "...), v...), "\n\n"...)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, form := range forms {
		b.Run(strings.ReplaceAll(form.String(), " ", "-"), func(b *testing.B) {
			parts := []stream.Part{answer[0]}
			for range 200 {
				parts = append(parts, text("a few words of the answer, some 40 bytes "))
			}
			wire := encode(form, append(parts, answer[len(answer)-1])...)
			b.ReportAllocs()
			b.SetBytes(int64(len(wire)))
			for b.Loop() {
				if got, err := decode(form, strings.NewReader(wire)); err != nil || len(got) != 202 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}
