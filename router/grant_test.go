package router_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence/journal"
	"docent/router/proof"
)

var errUnsure = fmt.Errorf("append: %w: %w", journal.ErrUnknown, api.ErrUnavailable)

// broken stands for an answer that never comes: who sends the request again finds what it came to.
const broken = 0

// breaks sends a request whose connection ends without an answer.
func (h *house) breaks(path, secret, body string, headers ...string) {
	h.t.Helper()
	req, err := http.NewRequest("POST", h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if res, err := h.web.Client().Do(req); err == nil {
		res.Body.Close()
		h.t.Errorf("POST %s: answered %s", path, res.Status)
	}
}

// Each case lets a question fail at one of its steps. A question is given a proof's use, a stream, a place in the queue
// and uses of quotas: the stream and the place come back in any case, and the rest unless the question was accepted or
// may have been.
func TestEachWayOutOfAQuestionGivesBackWhatItWasGiven(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*house)
		body   string
		status int
		costs  bool
	}{
		"it is no question":           {body: `{}`, status: 400},
		"it names no thread":          {body: strings.Replace(ask, `{`, `{"threadId":"me",`, 1), status: 404},
		"no stream is free":           {spoil: func(h *house) { h.server.TakeStreams() }, status: 503},
		"its solution is of no use":   {spoil: func(h *house) { h.clock.advance(proof.Life) }, status: 403},
		"a quota is used up":          {spoil: func(h *house) { h.quotas.used["ip/127.0.0.1ip-day"] = 1e9 }, status: 429},
		"the thread is another's":     {body: strings.Replace(ask, `{`, `{"threadId":"thr_000000000000000000000000000000",`, 1), status: 404},
		"the thread refuses it":       {spoil: func(h *house) { h.threads.refuse = api.ErrOverloaded }, status: 503},
		"nobody knows of its outcome": {spoil: func(h *house) { h.threads.refuse = errUnsure }, status: broken, costs: true},
		"it was asked before":         {spoil: func(h *house) { h.threads.repeat = true }, status: 200},
		"it is accepted":              {status: 200, costs: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, solve := worked(t)
			solution := solve()
			if c.spoil != nil {
				c.spoil(h)
			}
			streams, uses := h.server.Streams(), h.quotas.total()
			body := c.body
			if body == "" {
				body = ask
			}
			if c.status == broken {
				h.breaks(v2, h.assistant, body, "X-Altcha", solution)
			} else {
				h.text(c.status, "POST", v2, h.assistant, body, "X-Altcha", solution)
			}
			until(t, "no place in the queue is taken", func() bool { working, waiting := h.server.Queue(); return working+waiting == 0 })
			until(t, "its stream has ended", func() bool { return h.server.Streams() == streams })
			costs := 0
			if c.costs {
				costs = 3 // the key's month, the organization's hour, the network's day
			}
			if got := h.quotas.total() - uses; got != costs {
				t.Errorf("it costs %d uses, want %d", got, costs)
			}
			h.threads.refuse, h.threads.repeat = nil, false
			clear(h.quotas.used)
			h.server.FreeStreams()
			again := 200
			if c.costs || c.status == 403 {
				again = 403
			}
			h.text(again, "POST", v2, h.assistant, ask, "X-Altcha", solution)
		})
	}
}

// The same of a question of the console, which can also be turned away by the queue.
func TestEachWayOutOfAQuestionOfTheConsoleGivesBackWhatItWasGiven(t *testing.T) {
	client := netip.MustParseAddr("192.0.2.1")
	for name, c := range map[string]struct {
		spoil func(*house)
		fails bool
		costs bool
	}{
		"the queue is full":           {func(h *house) { h.server.Fill() }, true, false},
		"a quota is used up":          {func(h *house) { h.quotas.used["org/org-aorg-hour"] = 1e9 }, true, false},
		"the thread refuses it":       {func(h *house) { h.threads.refuse = api.ErrOverloaded }, true, false},
		"nobody knows of its outcome": {func(h *house) { h.threads.refuse = errUnsure }, true, true},
		"it was asked before":         {func(h *house) { h.threads.repeat = true }, false, false},
		"it is accepted":              {func(*house) {}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := build(t)
			c.spoil(h)
			before, _ := h.server.Queue()
			uses := h.quotas.total()
			_, err := h.server.Put(t.Context(), client, "", thread.Ask{Project: h.catalog.projects["acme"], Text: "why"})
			if (err != nil) != c.fails {
				t.Fatal(err)
			}
			until(t, "its place in the queue is free", func() bool { working, _ := h.server.Queue(); return working == before })
			if got := h.quotas.total() > uses; got != c.costs {
				t.Errorf("it costs: %v", got)
			}
		})
	}
}

// An instruction for a job is given the same but for a proof and a stream.
func TestEachWayOutOfAnInstructionGivesBackWhatItWasGiven(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*house)
		status int
		costs  int
	}{
		"a quota is used up":          {func(h *house) { h.quotas.used["project/acmeproject-hour"] = 1e9 }, 429, 0},
		"the job refuses it":          {func(h *house) { h.jobs.refuse = api.ErrOverloaded }, 503, 0},
		"nobody knows of its outcome": {func(h *house) { h.jobs.refuse = errUnsure }, broken, 1},
		"it is accepted":              {func(*house) {}, 201, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := build(t)
			c.spoil(h)
			uses := h.quotas.total()
			if c.status == broken {
				h.breaks("/v2/agent/acme/job", h.admin, `{"prompt":"p"}`)
			} else {
				h.text(c.status, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"p"}`)
			}
			until(t, "no place in the queue is taken", func() bool { working, waiting := h.server.Queue(); return working+waiting == 0 })
			if got := h.quotas.total() - uses; got != c.costs {
				t.Errorf("it costs %d uses, want %d", got, c.costs)
			}
		})
	}
}
