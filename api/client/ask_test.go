package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a server that gives each request to the assistant the next of its answers. What is asked is kept, a line a
// request.
type answers struct {
	asked []string
	next  []func(http.ResponseWriter, *http.Request)
}

func (a *answers) serve(w http.ResponseWriter, req *http.Request) {
	a.asked = append(a.asked, req.Method+" "+strings.TrimPrefix(req.URL.RequestURI(), "/discovery/"))
	a.next[min(len(a.asked), len(a.next))-1](w, req)
}

// text is an answer in events: a source, pieces of text, and its end, if it comes to one.
func text(whole bool, pieces ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Thread-Id", "thr_1")
		event := func(format string, values ...any) { fmt.Fprintf(w, "data: "+format+"\n\n", values...) }
		event(`{"type":"start","messageId":"msg_1","messageMetadata":{"threadId":"thr_1"}}`)
		event(`{"type":"source-url","sourceId":"s1","url":"/a","title":"A"}`)
		event(`{"type":"text-start","id":"t"}`)
		for _, p := range pieces {
			event(`{"type":"text-delta","id":"t","delta":%q}`, p)
		}
		if whole {
			event(`{"type":"text-end","id":"t"}`)
			event(`{"type":"finish","messageMetadata":{"threadId":"thr_1"}}`)
			event(`[DONE]`)
		}
	}
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// lose is a server that takes the question and whose answer is lost.
func lose(http.ResponseWriter, *http.Request) { panic(io.ErrUnexpectedEOF) }

// RoundTrip of a server that panics with an error fails with it.
type lossy struct{ inMemory }

func (l lossy) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		if e, ok := recover().(error); ok {
			err = e
		}
	}()
	return l.inMemory.RoundTrip(req)
}

// TestAnAnswerComesWholeAndOnce breaks connections in each place that they can break in.
func TestAnAnswerComesWholeAndOnce(t *testing.T) {
	t.Parallel()
	type serve = func(http.ResponseWriter, *http.Request)
	ask, resume := "POST v2/assistant/d/message", "GET v2/assistant/d/message/thr_1/stream"
	for name, test := range map[string]struct {
		next  []serve
		asked []string // when the ids of the client are left out
		shown string   // what a reader has seen, | for a restart
		fails string
	}{
		"at once":               {next: []serve{text(true, "Tea is ", "hot.")}, asked: []string{ask}, shown: "Tea is hot."},
		"broken in the middle":  {next: []serve{text(false, "Tea is "), text(true, "Tea ", "is hot.")}, asked: []string{ask, resume}, shown: "Tea is hot."},
		"broken twice":          {next: []serve{text(false, "Tea "), text(false, "T"), text(true, "Tea is hot.")}, asked: []string{ask, resume, resume}, shown: "Tea is hot."},
		"rewritten":             {next: []serve{text(false, "Tea is "), text(true, "Hot is tea.")}, asked: []string{ask, resume}, shown: "Tea is |Hot is tea."},
		"shorter than it was":   {next: []serve{text(false, "Tea is hot."), text(true, "Tea.")}, asked: []string{ask, resume}, shown: "Tea is hot.|Tea."},
		"its beginning is lost": {next: []serve{lose, text(true, "Tea.")}, asked: []string{ask, "GET chat"}, shown: "Tea."},
		"the question is lost":  {next: []serve{lose, status(204), text(true, "Tea.")}, asked: []string{ask, "GET chat", ask}, shown: "Tea."},
		"refused":               {next: []serve{status(429)}, asked: []string{ask}, fails: "429"},
		"overloaded":            {next: []serve{status(503)}, asked: []string{ask}, fails: "503"},
		"gone while it is read": {next: []serve{text(false, "Tea"), status(404)}, asked: []string{ask, resume}, shown: "Tea", fails: "thread thr_1 has the answer"},
		"with suggestions": {next: []serve{text(true, "Tea.\n\n```sugg", "estions\n(What?)[/b]\n```\n")}, asked: []string{ask},
			shown: "Tea."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &answers{next: test.next}
				c := Client{Base: "http://docent.test", HTTP: &http.Client{Transport: lossy{server.serve}}}
				var shown, fault string
				var end *Answer
				sources := 0
				for part, err := range c.AskStream(t.Context(), Question{Domain: "d", Text: "What is tea?"}) {
					if err != nil {
						fault = err.Error()
					}
					switch part.Kind {
					case PartText:
						shown += part.Text
					case PartSource:
						sources++
					case PartRestart:
						shown, sources = shown+"|", 0
					case PartFinish:
						end = &part.Answer
					}
				}
				for i, line := range server.asked {
					if strings.HasPrefix(line, "GET v2/assistant/d/message/") && !strings.Contains(line, "thr_1") {
						server.asked[i] = "GET chat"
					}
				}
				if shown != test.shown || strings.Join(server.asked, ", ") != strings.Join(test.asked, ", ") {
					t.Errorf("shown %q after %q", shown, server.asked)
				}
				if test.fails != "" {
					if end != nil || !strings.Contains(fault, test.fails) {
						t.Errorf("%+v, %s", end, fault)
					}
					return
				}
				if end == nil || !strings.HasSuffix("|"+shown, "|"+end.Text) || end.ThreadID != "thr_1" || end.MessageID != "msg_1" ||
					sources != 1 ||
					len(end.Sources) != 1 ||
					end.Sources[0] != (Source{"A", "/a"}) {
					t.Errorf("%+v, %d sources, %s", end, sources, fault)
				}
				if name == "with suggestions" && (len(end.Suggestions) != 1 || end.Suggestions[0].URL != "/b") {
					t.Errorf("%+v", end.Suggestions)
				}
			})
		})
	}
}

// TestAReaderWhoLeavesEndsTheConnection leaves after the first piece, and another waits in vain.
func TestAReaderWhoLeavesEndsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &answers{next: []func(http.ResponseWriter, *http.Request){text(false, "Tea", " is"), text(false)}}
		c := Client{Base: "http://docent.test", HTTP: &http.Client{Transport: inMemory(server.serve)}}
		for part := range c.AskStream(t.Context(), Question{Domain: "d", Text: "x"}) {
			if part.Kind == PartText {
				break
			}
		}
		if len(server.asked) != 1 {
			t.Errorf("asked %q", server.asked)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Ask(
			ctx,
			Question{Domain: "d", Text: "x"},
			io.Discard,
		); !errors.Is(
			err,
			context.DeadlineExceeded,
		) {
			t.Errorf("%v", err)
		}
	})
}

// TestOnlyWhatDoesNothingTwiceIsRepeated has a server that is not there for two requests.
func TestOnlyWhatDoesNothingTwiceIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		requests, keys := 0, map[string]bool{}
		c := New("http://docent.test", "k")
		c.HTTP = &http.Client{Transport: inMemory(func(w http.ResponseWriter, req *http.Request) {
			requests++
			keys[req.Header.Get("Idempotency-Key")] = true
			body, err := io.ReadAll(req.Body)
			if req.Method == http.MethodPost && (err != nil || len(body) == 0) {
				t.Errorf("request %d has no body", requests)
			}
			if requests < 3 {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(w, `{"status":"active"}`)
		})}
		j, err := c.CreateJob(t.Context(), "p", CreateJob{Prompt: "x"})
		if err != nil || j.Status != "active" || requests != 3 || len(keys) != 1 || keys[""] {
			t.Errorf("%+v, %v after %d requests with the keys %v", j, err, requests, keys)
		}
		if waited := time.Since(began); waited < 14*time.Second {
			t.Errorf("the server asked for 7 seconds each time: %v", waited)
		}
		requests = 0
		if _, err := c.Search(t.Context(), "d", Search{Query: "x"}); !errors.Is(err, ErrOverloaded) || requests != 1 {
			t.Errorf("%v after %d requests", err, requests)
		}
		refused := new(Error)
		requests, c.Retries = 0, 1
		if _, err := c.ReadJob(
			t.Context(),
			"p",
			"x",
		); !errors.As(err, &refused) || refused.RetryAfter != 7*time.Second ||
			requests != 2 {
			t.Errorf("%v after %d requests", err, requests)
		}
	})
}
