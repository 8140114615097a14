package router_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/model"
	"docent/router"
	"docent/search"
)

const (
	v1 = "/discovery/v1/assistant/docs.acme.example/message"
	v2 = "/discovery/v2/assistant/docs.acme.example/message"
)

const ask = `{"fp":"anonymous","messages":[{"role":"user","content":"Hi?","parts":[{"type":"text","text":"Hi?"}]}]}`

func TestBothFormsOfAnAnswerOnTheWire(t *testing.T) {
	h := build(t)
	for _, prefix := range []string{"", "/discovery"} {
		body, res := h.text(200, "POST", prefix+"/v1/assistant/docs.acme.example/message", h.assistant, ask)
		id, turn := res.Header.Get("X-Thread-Id"), string(h.threads.last.Turn)
		want := `f:{"messageId":"` + turn + `"}
h:{"sourceType":"url","id":"s1","url":"https://docs.acme.example/page","title":"Page"}
0:"Hello "
0:"\"world\"\n"
e:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0},"isContinued":false}
8:[{"type":"finish","threadId":"` + id + `","threadKey":"tk_secret"}]
2:[{"type":"finish","threadId":"` + id + `","threadKey":"tk_secret"}]
d:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0},"threadId":"` + id + `","threadKey":"tk_secret"}
`
		if body != want {
			t.Errorf("v1:\n%s\nwant\n%s", body, want)
		}
		header(t, res, "Content-Type", "text/plain; charset=utf-8")
		header(t, res, "X-Thread-Key", "tk_secret")
		header(t, res, "Cache-Control", "no-cache")
		header(t, res, "X-Accel-Buffering", "no")
		header(t, res, "X-Vercel-Ai-Data-Stream", "v1")

		body, res = h.text(200, "POST", prefix+"/v2/assistant/docs.acme.example/message", h.assistant, ask)
		id, turn = res.Header.Get("X-Thread-Id"), string(h.threads.last.Turn)
		meta := `{"threadId":"` + id + `","threadKey":"tk_secret"}`
		want = `data: {"type":"start","messageId":"` + turn + `","messageMetadata":` + meta + `}

data: {"type":"start-step"}

data: {"type":"source-url","sourceId":"s1","url":"https://docs.acme.example/page","title":"Page"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"Hello "}

data: {"type":"text-delta","id":"t1","delta":"\"world\"\n"}

data: {"type":"text-end","id":"t1"}

data: {"type":"finish-step"}

data: {"type":"finish","messageMetadata":` + meta + `}

data: [DONE]

`
		if body != want {
			t.Errorf("v2:\n%s\nwant\n%s", body, want)
		}
		header(t, res, "Content-Type", "text/event-stream")
		header(t, res, "X-Vercel-Ai-Ui-Message-Stream", "v1")
	}
}

func header(t *testing.T, res *http.Response, name, want string) {
	t.Helper()
	if got := res.Header.Get(name); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestAQuestionIsUnderstood(t *testing.T) {
	h := build(t)
	h.text(200, "POST", v2, h.key(api.Key{Kind: api.ServerKey, Org: "org-a", Project: "acme"}),
		`{"fp":"user-1","id":"chat-0123456789abcdef","trigger":"regenerate-message","messageId":"m1","threadId":null,
		"retrievalPageSize":7.0,"filter":{"version":"v2","language":null,"tag":"t","groups":["a","b"],"unknown":1},"currentPath":"guide/start",
		"context":[{"type":"code","value":"x := 1","path":"a.mdx","elementId":"e"},{"type":"textSelection","value":"y"}],
		"messages":[{"role":"system","parts":[]},{"role":"assistant","parts":[{"type":"tool-search","state":"output-available","output":{"deep":[[[1]]]}},{"type":"step-start"}],"metadata":{}},
		{"id":"m9","role":"user","parts":[{"type":"text","text":"What is"},{"type":"file","url":"data:x"},{"type":"text","text":"a \u00e9?\n"}],"content":"not this"}]}`)
	got := h.threads.last
	want := thread.Ask{Project: h.catalog.projects["acme"], New: true, Turn: got.Turn, Message: "m9", Chat: got.Chat,
		Caller: "user-1", Reader: "user-1", Channel: api.ChannelAPI,
		Text: "What is\na é?", Regenerate: true, Instead: "m1", Key: got.Key, Uses: got.Uses,
		Context: []model.Snippet{{Kind: "code", Text: "x := 1", Path: "a.mdx"}, {Kind: "textSelection", Text: "y"}},
		Query: search.Query{Limit: 7, CurrentPath: "guide/start",
			Filter: search.Filter{Version: "v2", Tag: "t", Groups: []string{"a", "b"}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("asked\n%+v\nwant\n%+v", got, want)
	}
	if !api.ValidID(api.TurnPrefix, string(got.Turn)) || len(got.Uses) != 3 {
		t.Errorf("turn %q, uses %v", got.Turn, got.Uses)
	}
	// The older forms: content alone, content in parts, and a message of role data on the way.
	for content, want := range map[string]string{`"plain"`: "plain",
		`[{"type":"text","text":"in parts"},{"type":"image"}]`: "in parts"} {
		h.text(200, "POST", v1, h.assistant,
			`{"fp":"anonymous","messages":[{"role":"data","content":"","data":{}},{"role":"user","content":`+content+`}]}`)
		if h.threads.last.Text != want {
			t.Errorf("content %s was read as %q", content, h.threads.last.Text)
		}
	}
}

func TestAThreadGoesOnForItsCallerOnly(t *testing.T) {
	h := build(t)
	_, res := h.text(200, "POST", v2, h.assistant, ask)
	id := res.Header.Get("X-Thread-Id")
	with := func(fp, id, key string) string {
		return fmt.Sprintf(`{"fp":%q,"threadId":%q,"threadKey":%s,"messages":[{"role":"user","content":"more"}]}`, fp, id,
			key)
	}
	_, res = h.text(200, "POST", v2, h.assistant, with("anonymous", id, "null"))
	if res.Header.Get("X-Thread-Id") != id || res.Header.Get("X-Thread-Key") != "" || h.threads.last.New {
		t.Errorf("continued: %v", res.Header)
	}
	h.text(200, "POST", v2, h.assistant, with("anonymous", id, `"tk_secret"`))
	used := h.quotas.total()
	other := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme-two"})
	var first map[string]any
	for name, res := range map[string]*http.Response{
		"another caller": h.do("POST", v2, h.assistant, with("user-2", id, "null")),
		"a wrong key":    h.do("POST", v2, h.assistant, with("anonymous", id, `"tk_wrong"`)),
		"nobody's thread": h.do("POST", v2, h.assistant,
			with("anonymous", api.NewID(api.ThreadPrefix, time.Now()), "null")),
		"no thread's id":       h.do("POST", v2, h.assistant, with("anonymous", "../../x", "null")),
		"another domain's key": h.do("POST", "/v2/assistant/two.acme.example/message", other, with("anonymous", id, "null")),
		"an id of another kind": h.do("POST", v2, h.assistant,
			with("anonymous", api.NewID(api.JobPrefix, time.Now()), "null")),
	} {
		body := decodeJSON(t, res.Body)
		delete(body, "requestId")
		if first == nil {
			first = body
		}
		if res.StatusCode != 404 || !reflect.DeepEqual(body, first) {
			t.Errorf("%s: %d %v, want 404 %v", name, res.StatusCode, body, first)
		}
	}
	if got := h.quotas.total(); got != used {
		t.Errorf("refused questions cost %d uses", got-used)
	}
	h.threads.repeat = true
	h.text(200, "POST", v2, h.assistant, with("anonymous", id, "null"))
	if got := h.quotas.total(); got != used {
		t.Errorf("a repeated question cost %d uses", got-used)
	}
}

// slow gives a test the log of the next answer, to write as it likes.
func (h *house) slow() <-chan *stream.Log {
	logs := make(chan *stream.Log, 16)
	h.threads.answer = func(cmd thread.Ask, log *stream.Log) { logs <- log }
	return logs
}

func TestPartsArriveAsTheyAreWritten(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		logs := h.slow()
		res := h.do("POST", v2, h.assistant, ask)
		log, lines := <-logs, bufio.NewReader(res.Body)
		until := func(want string) {
			t.Helper()
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("the stream ended (%v) before %q", err, want)
				}
				if strings.Contains(line, want) {
					return
				}
			}
		}
		until(`"type":"start"`) // the head and the start are there before there is any text
		for i := range 3 {
			log.Append(stream.Part{Kind: stream.Text, Text: fmt.Sprintf("piece %d", i)})
			until(fmt.Sprintf("piece %d", i))
		}
		log.Append(stream.Part{Kind: stream.Finish})
		log.Close()
		until("[DONE]")
		if _, err := io.ReadAll(lines); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAnswerThatBreaksOffIsEndedInItsOwnForm(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		for path, want := range map[string]string{v1: "\n3:\"", v2: `data: {"type":"error","errorText":"`} {
			h.threads.answer = func(cmd thread.Ask, log *stream.Log) {
				log.Append(stream.Part{Kind: stream.Text, Text: "so far"})
				log.Close()
			}
			body, _ := h.text(200, "POST", path, h.assistant, ask)
			if !strings.Contains(body, "so far") || !strings.Contains(body, want) || !strings.HasSuffix(body, "\n") {
				t.Errorf("%s: %q", path, body)
			}
		}
	})
}

func TestAReaderThatLeavesEndsNothingButItself(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		logs := h.slow()
		ctx, leave := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "POST", h.url+v2, strings.NewReader(ask))
		req.Header.Set("Authorization", "Bearer "+h.assistant)
		req.Header.Set("Content-Type", "application/json")
		res, err := h.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		log := <-logs
		id := res.Header.Get("X-Thread-Id")
		leave()
		res.Body.Close()
		if err := h.server.Drain(t.Context()); err != nil { // returns when no stream is open
			t.Fatal(err)
		}
		if err := log.Append(stream.Part{Kind: stream.Text, Text: "still here"}); err != nil {
			t.Errorf("the turn was ended with its reader: %v", err)
		}
		if id == "" {
			t.Error("no thread id in the head")
		}
	})
}

func TestAnAnswerIsResumedFromItsStart(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		logs := h.slow()
		chat := "abcdefghijklmnop"
		body := strings.Replace(ask, `{"fp"`, `{"id":"`+chat+`","fp"`, 1)
		first := h.do("POST", v2, h.assistant, body)
		log, id := <-logs, first.Header.Get("X-Thread-Id")
		log.Append(stream.Part{Kind: stream.Text, Text: "one"})
		second := h.do("GET", v2+"/"+id+"/stream", h.assistant, "")
		third := h.do("GET", v2+"/"+chat+"/stream", h.assistant, "")
		old := h.do("GET", v1+"?chatId="+chat, h.assistant, "")
		alias := h.do("GET", "/v2/assistant/docs.acme.example/message/"+id+"/stream", h.assistant, "")
		oldAlias := h.do("GET", "/v1/assistant/docs.acme.example/message?chatId="+id, h.assistant, "")
		log.Append(stream.Part{Kind: stream.Text, Text: "two"}, stream.Part{Kind: stream.Finish})
		log.Close()
		read := func(res *http.Response) string {
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Error(err)
			}
			if got := res.Header.Get("X-Thread-Id"); got != id {
				t.Errorf("X-Thread-Id %q, want %q", got, id)
			}
			return string(b)
		}
		whole := read(first)
		for _, res := range []*http.Response{second, third, alias} {
			if got, want := read(res), strings.ReplaceAll(whole, `,"threadKey":"tk_secret"`, ""); got != want ||
				len(want) == len(whole) {
				t.Errorf("resumed:\n%s\nwant\n%s", got, want)
			}
			if res.Header.Get("X-Thread-Key") != "" {
				t.Error("resuming tells the thread's key in the head")
			}
		}
		for _, res := range []*http.Response{old, oldAlias} {
			if got := read(res); !strings.Contains(got, "0:\"one\"\n") || !strings.Contains(got, "0:\"two\"\n") ||
				!strings.Contains(got, "\nd:{") {
				t.Errorf("resumed in the older form: %s", got)
			}
		}
		h.text(200, "HEAD", v2+"/"+id+"/stream", h.assistant, "")
		h.text(200, "HEAD", v1+"?chatId="+chat, h.assistant, "")
		h.text(200, "HEAD", "/v2/assistant/docs.acme.example/message/"+id+"/stream", h.assistant, "")
		h.text(200, "HEAD", "/v1/assistant/docs.acme.example/message?chatId="+chat, h.assistant, "")

		second2 := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme"})
		h.text(204, "GET", v2+"/"+chat+"/stream", second2, "")               // another key's chat
		h.text(204, "GET", v2+"/"+chat+"/stream?fp=user-2", h.assistant, "") // another caller's
		h.text(204, "GET", v2+"/"+id+"/stream?fp=user-2", h.assistant, "")   //
		h.text(204, "GET", v2+"/never-seen-before/stream", h.assistant, "")  //
		h.text(204, "GET", v1+"?chatId=never-seen-before", h.assistant, "")  //
		h.text(204, "GET", v2+"/thr_0123456789/stream", h.assistant, "")     //
		h.text(204, "GET", v2+"/a%2Fb%20c%3F%25/stream", h.assistant, "")    // any string can be a chat's id
		h.text(400, "GET", v1, h.assistant, "")                              // no id at all
		h.text(400, "GET", v1+"?chatId=a&chatId=b", h.assistant, "")         //
		short := strings.Replace(ask, `{"fp"`, `{"id":"main","fp"`, 1)
		res := h.do("POST", v2, h.assistant, short, "X-Forwarded-For", "192.0.2.7")
		log = <-logs
		log.Append(stream.Part{Kind: stream.Finish})
		log.Close()
		io.ReadAll(res.Body)
		h.text(200, "GET", v2+"/main/stream", h.assistant, "", "X-Forwarded-For", "192.0.2.7")
	})
}

func TestAQuietStreamIsKeptAlive(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way, func(d *router.Deps) { d.Bounds.KeepAlive = 16 * time.Millisecond })
		logs := h.slow()
		for path, want := range map[string]string{v1: "\n", v2: ": ping\n"} {
			res := h.do("POST", path, h.assistant, ask)
			log, lines := <-logs, bufio.NewReader(res.Body)
			for seen := 0; seen < 3; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == want {
					seen++
				}
			}
			log.Append(stream.Part{Kind: stream.Text, Text: "after"}, stream.Part{Kind: stream.Finish})
			log.Close()
			rest, err := io.ReadAll(lines)
			if err != nil || !strings.Contains(string(rest), "after") {
				t.Errorf("%s: %q, %v", path, rest, err)
			}
		}
	})
}

func TestStreamsAreDrained(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		logs := h.slow()
		res := h.do("POST", v2, h.assistant, ask)
		log := <-logs
		drained := make(chan error)
		go func() { drained <- h.server.Drain(context.Background()) }()
		for h.do("GET", "/readyz", "", "").StatusCode != 503 { // until the drain has begun
		}
		refused := h.json(503, "POST", v2, h.assistant, ask)
		if refused["code"] != "shutting_down" {
			t.Errorf("a new question while draining: %v", refused)
		}
		if got := h.json(503, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`); got["code"] != "shutting_down" {
			t.Errorf("a new job while draining: %v", got)
		}
		h.json(200, "GET", "/v2/agent/acme/jobs", h.admin, "") // reads go on
		h.json(200, "GET", "/healthz", "", "")
		log.Append(stream.Part{Kind: stream.Text, Text: "to its end"}, stream.Part{Kind: stream.Finish})
		log.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
			t.Errorf("%q, %v", b, err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}

func TestStreamsThatOutlastTheDrainAreToldSo(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		logs := h.slow()
		res := h.do("POST", v2, h.assistant, ask)
		<-logs
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.server.Drain(ctx); err == nil {
			t.Error("the drain says that all streams have ended")
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(b), `data: {"type":"error","errorText":"the service is restarting`) {
			t.Errorf("%q, %v", b, err)
		}
	})
}

func TestTooManyStreamsAreRefusedBeforeTheQuestionIsAsked(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way, func(d *router.Deps) { d.Bounds.Streams = 2 })
		logs := h.slow()
		var open []*http.Response
		for range 2 {
			open = append(open, h.do("POST", v2, h.assistant, ask))
		}
		asked, used := h.threads.asked, h.quotas.total()
		res := h.do("POST", v2, h.assistant, ask)
		if body := decodeJSON(t, res.Body); res.StatusCode != 503 || body["code"] != "overloaded" ||
			res.Header.Get("Retry-After") == "" {
			t.Errorf("%d %v", res.StatusCode, body)
		}
		if h.threads.asked != asked || h.quotas.total() != used {
			t.Error("a refused question was asked, or counted")
		}
		for range open {
			(<-logs).Close()
		}
		for _, res := range open {
			io.Copy(io.Discard, res.Body)
		}
		if err := h.server.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way, func(d *router.Deps) { d.Bounds.Requests = 1 })
		logs := h.slow()
		// A stream is no request in work: others are served beside it.
		stream1 := h.do("POST", v2, h.assistant, ask)
		h.json(200, "GET", "/v2/agent/acme/jobs", h.admin, "")
		// A request whose body does not come is none either.
		body := `{"prompt":"p"}`
		post := h.dial()
		fmt.Fprintf(post, "POST /v2/agent/acme/job HTTP/1.1\r\nHost: docs\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", h.admin, len(body))
		from := bufio.NewReader(post)
		if res, err := http.ReadResponse(from, nil); err != nil || res.StatusCode != http.StatusContinue {
			t.Fatalf("a request that is to be asked for its body: %v, %v", res, err)
		}
		h.json(200, "GET", "/v2/agent/acme/jobs", h.admin, "")
		// One that is worked on is.
		inside, goOn := h.held()
		answers := make(chan int, 1)
		for held := false; !held; { // the one before may have its place still
			asked := h.dial()
			fmt.Fprint(asked, h.posed(v2, ""))
			go func() {
				status := 0
				if res, err := http.ReadResponse(bufio.NewReader(asked), nil); err == nil {
					status = res.StatusCode
				}
				answers <- status
			}()
			select {
			case <-inside:
				held = true
			case status := <-answers:
				if status != 503 {
					t.Fatalf("a question: %d", status)
				}
			}
		}
		if refusal := h.json(503, "GET", "/v2/agent/acme/jobs", h.admin, ""); refusal["code"] != "overloaded" ||
			refusal["limit"] != "requests" {
			t.Errorf("%v", refusal)
		}
		h.json(200, "GET", "/healthz", "", "") // probes are always answered
		close(goOn)
		(<-logs).Close()
		(<-logs).Close()
		if status := <-answers; status != 200 {
			t.Errorf("the question in work: %d", status)
		}
		until(t, "the place is free", func() bool { return h.do("GET", "/v2/agent/acme/jobs", h.admin, "").StatusCode == 200 })
		io.WriteString(post, body)
		if res, err := http.ReadResponse(from, nil); err != nil || res.StatusCode != 201 {
			t.Errorf("the request whose body came: %v, %v", res, err)
		}
		io.Copy(io.Discard, stream1.Body)
	})
}

func TestAskingIsLimitedInThreeWays(t *testing.T) {
	h := build(t)
	_, res := h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", "2001:db8:1:2:3::9")
	if got, want := res.Header.Get("RateLimit-Policy"),
		`"key-month";q=10000;w=2592000, "org-hour";q=10000;w=3600, "ip-day";q=10000;w=86400, "ip-share";q=500;w=86400`; got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
	// All addresses of one /64 are one caller.
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", "2001:db8:1:2:ffff::1")
	h.text(200, "POST", v2, h.assistant, ask, "X-Forwarded-For", "2001:db8:1:3::1")
	if got := h.quotas.count("ip/2001:db8:1:2::/64ip-day"); got != 2 {
		t.Errorf("%d uses of the network, want 2: %v", got, h.quotas.used)
	}
	for name, set := range map[string]func(*api.Limits){
		"key-month": func(l *api.Limits) { l.KeyMonth = 1 },
		"org-hour":  func(l *api.Limits) { l.OrgHour = 1 },
		"ip-day":    func(l *api.Limits) { l.IPDay = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			h := build(t)
			p := h.catalog.projects["acme"]
			set(&p.Limits)
			h.catalog.projects["acme"] = p
			h.text(200, "POST", v1, h.assistant, ask)
			used := h.quotas.total()
			got := h.json(429, "POST", v1, h.assistant, ask)
			if said := got["error"].(string); got["limit"] != name ||
				!strings.HasSuffix(said, "Please try again in 2 minutes.") || strings.Contains(said, name) ||
				strings.Contains(said, "limit") {
				t.Errorf("%v", got)
			}
			if !strings.Contains(h.log.String(), name) {
				t.Errorf("the log does not say which limit: %s", h.log.String())
			}
			if h.quotas.total() != used {
				t.Error("a refused question was counted")
			}
			// Search and pages are not limited.
			h.text(200, "POST", "/discovery/v1/search/docs.acme.example", h.assistant, `{"query":"x"}`)
		})
	}
}

func TestManyReadersOfManyAnswers(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*router.Deps)) {
		h := build(t, way)
		h.threads.answer = func(cmd thread.Ask, log *stream.Log) {
			go func() {
				for i := range 50 {
					log.Append(stream.Part{Kind: stream.Text, Text: fmt.Sprintf("%s/%d ", cmd.Turn, i)})
				}
				log.Append(stream.Part{Kind: stream.Finish})
				log.Close()
			}()
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				res := h.do("POST", v2, h.assistant, ask)
				for ; res.StatusCode == 503; res = h.do("POST", v2, h.assistant, ask) {
					res.Body.Close() // fifty at once are a burst when the processors have much to do
				}
				d := stream.NewDecoder(stream.UIMessages, res.Body)
				var text strings.Builder
				var turn string
				for {
					p, err := d.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Error(err)
						return
					}
					switch p.Kind {
					case stream.Start:
						turn = p.Message
					case stream.Text:
						text.WriteString(p.Text)
					}
				}
				var want strings.Builder
				for i := range 50 {
					fmt.Fprintf(&want, "%s/%d ", turn, i)
				}
				if text.String() != want.String() {
					t.Errorf("read %q", text.String())
				}
			})
		}
		wg.Wait()
	})
}

func TestTheDocumentationIsSearchedAndRead(t *testing.T) {
	h := build(t)
	server := h.key(api.Key{Kind: api.ServerKey, Org: "org-a", Project: "acme"})
	for _, prefix := range []string{"", "/discovery"} {
		body, _ := h.text(200, "POST", prefix+"/v1/search/docs.acme.example", h.assistant,
			`{"query":" run ","pageSize":3,"scoreThreshold":0.5,"filter":{"tag":"x"}}`)
		want := `[{"content":"Run it.","path":"guide/start.mdx","metadata":{"title":"Start","url":"https://docs.acme.example/guide/start#run","heading":"Run","anchor":"run","breadcrumbs":["Start","Run"],"tags":["how-to"],"score":0.75,"excerpt":"Run it."}}]`
		if body != want {
			t.Errorf("found %s\nwant  %s", body, want)
		}
		if got, want := h.docs.last, (search.Query{Text: "run", Limit: 3, Threshold: .5, Filter: search.Filter{Tag: "x"},
			Box: true}); !reflect.DeepEqual(got, want) {
			t.Errorf("searched %+v, want %+v", got, want)
		}
		if body, _ := h.text(200, "POST", prefix+"/v1/search/docs.acme.example", h.assistant,
			`{"query":"nothing"}`); body != "[]" {
			t.Errorf("found %s", body)
		}
		h.json(200, "POST", prefix+"/v1/page/docs.acme.example", h.assistant, `{"path":"guide/start"}`)
		h.json(200, "POST", prefix+"/v1/page/docs.acme.example", server, `{"path":"staff","groups":["staff"]}`)
		if got := h.json(404, "POST", prefix+"/v1/page/docs.acme.example", h.assistant,
			`{"path":"staff"}`); got["message"] != "there is no such page" {
			t.Errorf("%v", got)
		}
	}
}

func TestBrowsersOnOtherOriginsMayAsk(t *testing.T) {
	h := build(t)
	for _, path := range []string{v1, v2, v2 + "/chat/stream", "/discovery/v1/search/d", "/discovery/v1/page/d",
		"/v1/assistant/d/message", "/v2/assistant/d/message", "/v2/assistant/d/message/x/stream", "/v1/search/d",
		"/v1/page/d"} {
		_, res := h.text(204, "OPTIONS", path, "", "", "Origin", "https://site.example", "Access-Control-Request-Method",
			"POST",
			"Access-Control-Request-Headers", "authorization,content-type,x-trace")
		header(t, res, "Access-Control-Allow-Origin", "*")
		header(t, res, "Access-Control-Allow-Headers", "authorization,content-type,x-trace")
		if allow := res.Header.Get("Access-Control-Allow-Methods"); !strings.Contains(allow, "POST") &&
			!strings.Contains(allow, "GET") {
			t.Errorf("%s allows %q", path, allow)
		}
	}
	_, res := h.text(204, "OPTIONS", v2, "", "", "Access-Control-Request-Headers", "a;b")
	header(t, res, "Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id, X-Thread-Key, X-Docent-Reader, X-Altcha")
	// Errors can be read too: of the key, of the body, of the method.
	for _, res := range []*http.Response{
		h.do("POST", v2, "", ask, "Origin", "https://site.example"),
		h.do("POST", v2, h.assistant, `{}`),
		h.do("DELETE", v2, h.assistant, ""),
	} {
		header(t, res, "Access-Control-Allow-Origin", "*")
		if !strings.Contains(res.Header.Get("Access-Control-Expose-Headers"), "X-Thread-Id") {
			t.Error("the thread's id cannot be read")
		}
	}
	// The agent's operations are not for browsers.
	if res := h.do("POST", "/v2/agent/acme/job", "", `{}`); res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("agent operations may be called from other origins")
	}
	h.json(405, "OPTIONS", "/v2/agent/acme/job", "", "")

	key := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme",
		Origins: []string{"https://docs.acme.example", "http://localhost:3000"}})
	h.text(200, "POST", v2, key, ask, "Origin", "https://docs.acme.example")
	h.text(200, "POST", v2, key, ask, "Origin", "http://LOCALHOST:3000")
	h.text(204, "GET", v2+"/x/stream", key, "", "Referer", "https://docs.acme.example/page?x")
	for _, origin := range []string{"https://evil.example", "https://docs.acme.example.evil.example", "null", ""} {
		res := h.do("POST", v2, key, ask, "Origin", origin)
		if body := decodeJSON(t, res.Body); res.StatusCode != 403 || body["code"] != "forbidden" {
			t.Errorf("origin %q: %d %v", origin, res.StatusCode, body)
		}
	}
}

// An index that is being rebuilt is back in moments, and what is wrong with the old one is not the caller's.
func TestASearchWithoutAnIndexMayBeTriedAgain(t *testing.T) {
	h := build(t)
	body, resp := h.text(503, "POST", "/discovery/v1/search/docs.acme.example", h.assistant, `{"query":"no index"}`)
	if resp.Header.Get("Retry-After") != "2" || !strings.Contains(body, "being indexed") ||
		strings.Contains(body, "damaged") {
		t.Errorf("%v: %s", resp.Header, body)
	}
}
