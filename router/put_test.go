package router_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence/journal"
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

// TestAQuestionOfTheConsoleCountsWhereItMayBeStored has the database's answer to a question of the console be lost.
func TestAQuestionOfTheConsoleCountsWhereItMayBeStored(t *testing.T) {
	h := build(t)
	used := h.quotas.total()
	h.threads.refuse = fmt.Errorf("append: %w: %w", journal.ErrUnknown, api.ErrUnavailable)
	_, err := h.server.Put(t.Context(), netip.MustParseAddr("192.0.2.1"), "", thread.Ask{Project: api.Project{ID: "acme", Org: "org-a"}, Text: "why"})
	if !errors.Is(err, journal.ErrUnknown) {
		t.Fatal(err)
	}
	if got := h.quotas.total(); got <= used {
		t.Errorf("%d uses, had %d", got, used)
	}
}
