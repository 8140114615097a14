package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/forge/failure"
)

// A tracker opens issues, and fails as often as a test says.
type tracker struct {
	mu     sync.Mutex
	fails  int
	status int               // of a failure; 502 if it is 0
	opened map[string]string // texts, by key
	asked  int
}

func (k *tracker) OpenIssue(_ context.Context, _ api.Project, key, title, body string, _ time.Time) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.fails--; k.fails >= 0 {
		return "", &failure.Error{Kind: failure.ErrTemporary, Say: "GitHub does not answer.", Status: cmp.Or(k.status, 502)}
	}
	if k.opened == nil {
		k.opened = map[string]string{}
	}
	k.opened[key] = title + "\n" + body
	return "https://github.com/acme/docs/issues/1", nil
}

func (h *house) addIssues() api.Webhook {
	h.t.Helper()
	w, err := h.hooks.AddIssues(h.t.Context(), "docs", h.journal.Position())
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

// A conversation that is handed over is an event with what was said until then, and an issue if the project's settings say
// so: without the reader's name and address, and with nothing that calls anybody.
func TestAConversationThatIsHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.add(url1)
		w := h.addIssues()
		h.tracker.fails, h.tracker.status = 1, 410 // issues are turned off in the repository
		now := time.Now()
		if _, _, err := h.hooks.Add(t.Context(), "docs", api.IssuesURL, nil, h.journal.Position()); !errors.As(err, new(*api.InvalidError)) {
			t.Errorf("added like a receiver: %v", err)
		}
		over := func(id api.ThreadID, turn api.TurnID) {
			h.said(id, thread.Opened{Project: "docs", Caller: "u1", At: now},
				thread.Asked{Exchange: thread.Exchange{Turn: "msg_1", Question: "How?", Asked: now, Channel: api.ChannelWeb}},
				thread.Answered{Turn: "msg_1", Text: strings.Repeat("y", 3000), Answered: true, At: now, Channel: api.ChannelWeb},
				thread.Asked{Exchange: thread.Exchange{Turn: "msg_2", Question: "Why?", Asked: now, Channel: api.ChannelWeb}},
				thread.TurnFailed{Turn: "msg_2", Reason: "failed", Text: "Bec", At: now},
				thread.HandedOver{Turn: turn, Contact: thread.Contact{Name: "Ann", Email: "ann@example.com",
					Message: "Please help, @acme/team! See #12.\n<img src=x>\n    indented", At: now}})
		}
		over("thr_a", "msg_1")
		settle()
		sent := h.post.messages()
		var p Payload
		if len(sent) != 1 || json.Unmarshal(sent[0].Body, &p) != nil {
			t.Fatalf("sent are %v", sent)
		}
		if c := p.Data.Contact; p.Type != api.EventContactRequested || c == nil || c.Email != "ann@example.com" || c.Reader != "u1" ||
			p.Data.Question.ID != "msg_1" || len(p.Data.Conversation) != 1 || len(p.Data.Conversation[0].Answer) > maxText+3 {
			t.Errorf("the event is %s", sent[0].Body)
		}
		if len(h.tracker.opened) != 0 {
			t.Fatal("an issue without the setting")
		}
		if err := h.hooks.Remove(t.Context(), w.ID); err != nil {
			t.Fatal(err)
		}
		docs, err := h.catalog.Project(t.Context(), "docs")
		if err != nil {
			t.Fatal(err)
		}
		docs.Host, docs.Repository, docs.TokenEnv = api.HostGitHub, "acme/docs", "DOCS_TOKEN"
		docs.Widget = api.Widget{Contact: api.ContactForm, ContactIssues: true}
		if _, err := h.catalog.UpdateProject(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		w = h.addIssues()
		over("thr_b", "msg_2")
		time.Sleep(time.Minute)
		if h.status(w.ID).Off {
			t.Error("what the code host answers has turned the webhook off")
		}
		if len(h.tracker.opened) != 1 || h.tracker.asked != 2 {
			t.Fatalf("opened are %q, asked %d times", h.tracker.opened, h.tracker.asked)
		}
		for id, text := range h.tracker.opened {
			title, body, _ := strings.Cut(text, "\n")
			if id != EventID(thread.Stream("thr_b"), 6, api.EventContactRequested, now) || title != "Asked in the documentation: Please help, @acme/team! See #12. <img src=x> indented" {
				t.Errorf("%s is titled %s", id, title)
			}
			for _, want := range []string{"> Please help, @\u2060acme/team", "See \\#\u206012", "> \\<img src\\=x\\>", "> indented  \n", "Bec"} {
				if !strings.Contains(body, want) {
					t.Errorf("the issue lacks %q:\n%s", want, body)
				}
			}
			if strings.Contains(text, "ann@") || strings.Contains(body, "Ann") || strings.Contains(text, "thr_") {
				t.Errorf("the issue says who asks, or the thread's id, which is the reader's secret:\n%s", text)
			}
		}
		if _, err := h.hooks.Test(t.Context(), w.ID); !errors.Is(err, api.ErrConflict) {
			t.Errorf("a test: %v", err)
		}
		if err := h.hooks.Remove(t.Context(), w.ID); !errors.Is(err, api.ErrConflict) {
			t.Errorf("removed while the setting is on: %v", err)
		}
	})
}
