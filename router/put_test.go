package router_test

import (
	"errors"
	"net/netip"
	"testing"

	"docent/actors/thread"
	"docent/api"
)

// What is asked in the console counts as readers' questions do, but for a key's quota, and a refused one counts not.
func TestAQuestionOfTheConsoleIsLimitedAsOthersAre(t *testing.T) {
	h := build(t)
	client := netip.MustParseAddr("10.1.2.3")
	p := h.catalog.projects["acme"]
	p.Limits.OrgHour = 2
	for range 2 {
		turn, err := h.server.Put(t.Context(), client, "", thread.Ask{Project: p, Text: "why", Channel: api.ChannelPlayground})
		if err != nil || turn.Thread == "" || turn.ID == "" || turn.Log == nil || !turn.Fresh {
			t.Fatalf("%+v, %v", turn, err)
		}
	}
	if h.threads.last.Channel != api.ChannelPlayground || !h.threads.last.New || h.threads.last.Key != "" ||
		len(h.threads.last.Uses) != 2 {
		t.Errorf("asked %+v", h.threads.last)
	}
	first := h.threads.last
	if _, err := h.server.Put(t.Context(), client, "thr_1", thread.Ask{Project: p, Text: "and then"}); err == nil ||
		!errors.Is(err, api.ErrLimited) {
		t.Errorf("a follow-up beyond the limit: %v", err)
	}
	if first.Text != h.threads.last.Text {
		t.Error("it was asked all the same")
	}
	used := h.quotas.total()
	if used != 4 {
		t.Errorf("%d uses: %v", used, h.quotas.used)
	}
	var limit *api.LimitError
	if _, err := h.server.Put(t.Context(), client, "", thread.Ask{Project: p, Text: "why"}); !errors.As(err, &limit) {
		t.Errorf("beyond the limit: %v", err)
	}
	h.json(200, "GET", "/healthz", "", "") // the queue is free
	p.Limits.OrgHour = 10
	h.threads.refuse = api.ErrOverloaded
	if _, err := h.server.Put(t.Context(), client, "", thread.Ask{Project: p, Text: "why"}); !errors.Is(err,
		api.ErrOverloaded) || h.quotas.total() != used {
		t.Errorf("refused: %v, %d uses", err, h.quotas.total())
	}
}
