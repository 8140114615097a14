package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"docent/api"
)

func testEvent(n int, project string, kind api.EventKind, at time.Time) api.WebhookEvent {
	return api.WebhookEvent{ID: fmt.Sprintf("evt_%s_%d", project, n), Position: uint64(n), Project: api.ProjectID(project), Kind: kind,
		Stream: fmt.Sprintf("job/%d", n), At: stamp(at), Payload: []byte(fmt.Sprintf(`{"b": %d,"a":  "<&>"}`, n))}
}

func addWebhook(t *testing.T, c *Catalog, w api.Webhook, position uint64) {
	t.Helper()
	if err := c.AddWebhook(t.Context(), w, position); err != nil {
		t.Fatal(err)
	}
}

func TestEventsWaitForTheirWebhooks(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		clock := newTestClock()
		c := p.open(Options{Now: clock.now})
		addProject(t, c, "docs")
		addProject(t, c, "blog")
		w := api.Webhook{ID: "whk_1", Project: "docs", URL: "https://a.example/x", Events: []api.EventKind{api.EventJobEnded},
			Secret: "docs.s", CreatedAt: stamp(clock.now()), UpdatedAt: stamp(clock.now())}
		addWebhook(t, c, w, 3)
		addWebhook(t, c, api.Webhook{ID: "whk_2", Project: "docs", URL: "https://b.example/"}, 3)
		got := must(c.Webhook(t.Context(), "whk_1"))(t)
		if !reflect.DeepEqual(got.Webhook, w) || got.State.Position != 3 {
			t.Errorf("stored is %+v", got)
		}
		now := clock.now()
		events := []api.WebhookEvent{testEvent(4, "docs", api.EventPullOpened, now), testEvent(5, "docs", api.EventJobEnded, now),
			testEvent(6, "blog", api.EventJobEnded, now), testEvent(7, "docs", api.EventJobEnded, now)}
		for range 2 { // the process ended before the position was known to be stored
			if err := c.AddEvents(t.Context(), events, nil, 9); err != nil {
				t.Fatal(err)
			}
		}
		if pos, begun, err := c.WebhookPosition(t.Context()); pos != 9 || !begun || err != nil {
			t.Errorf("the position is %d, %v, %v", pos, begun, err)
		}
		next := func(kinds []api.EventKind, after uint64) api.WebhookEvent {
			t.Helper()
			return must(c.NextEvent(t.Context(), "docs", kinds, after))(t)
		}
		if e := next(w.Kinds(), 3); !reflect.DeepEqual(e, events[1]) {
			t.Errorf("next is %+v, want %+v", e, events[1])
		}
		if e := next(api.EventKinds, 3); e.Position != 4 {
			t.Errorf("next of all kinds is %+v", e)
		}
		if _, err := c.NextEvent(t.Context(), "docs", w.Kinds(), 7); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("after the last: %v", err)
		}
		newest := must(c.NewestEvents(t.Context()))(t)
		if want := map[api.EventKind]uint64{api.EventJobEnded: 7, api.EventPullOpened: 4}; !reflect.DeepEqual(newest["docs"], want) ||
			newest["blog"] != nil {
			t.Errorf("the newest are %v; events of a project without webhooks are stored", newest)
		}
		if n := must(c.Waiting(t.Context(), "docs", w.Kinds(), 3))(t); n != 2 {
			t.Errorf("%d wait", n)
		}
		if err := c.AddEvents(t.Context(), nil, []string{"job/5"}, 10); err != nil { // the thread was erased
			t.Fatal(err)
		}
		if e := next(w.Kinds(), 3); e.Position != 7 {
			t.Errorf("after its stream has gone: %+v", e)
		}
		for _, id := range []string{"whk_1", "whk_2"} {
			if err := c.RemoveWebhook(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if n := must(c.Waiting(t.Context(), "docs", api.EventKinds, 0))(t); n != 0 {
			t.Errorf("%d events are left of a project without webhooks", n)
		}
		if err := c.RemoveWebhook(t.Context(), "whk_1"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("removed again: %v", err)
		}
	})
}

// What somebody did to a webhook while an attempt went on is not undone by how that went.
func TestAnAttemptDoesNotUndoAReplay(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		addProject(t, c, "docs")
		addWebhook(t, c, api.Webhook{ID: "whk_1", Project: "docs"}, 0)
		start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		var events []api.WebhookEvent
		for n := 1; n <= 5; n++ {
			events = append(events, testEvent(n, "docs", api.EventJobEnded, start.Add(time.Duration(n)*time.Hour)))
		}
		if err := c.AddEvents(t.Context(), events, nil, 5); err != nil {
			t.Fatal(err)
		}
		state := func() api.WebhookState { return must(c.Webhook(t.Context(), "whk_1"))(t).State }
		s := state()
		d := api.WebhookDelivery{Webhook: "whk_1", Event: "evt_docs_4", Status: api.DeliveryDelivered, At: start}
		s.Position = 4
		if err := c.SaveAttempt(t.Context(), s, &d); err != nil {
			t.Fatal(err)
		}
		s = state()
		if n := must(c.Rewind(t.Context(), "whk_1", start.Add(150*time.Minute)))(t); n != 2 {
			t.Errorf("%d events are sent again, want those of hours 3 and 4", n)
		}
		s.Position = 5
		d.Event, d.Code = "evt_docs_5", 200
		if err := c.SaveAttempt(t.Context(), s, &d); !errors.Is(err, api.ErrConflict) {
			t.Errorf("an old state is stored: %v", err)
		}
		if s = state(); s.Position != 2 {
			t.Errorf("the position is %d", s.Position)
		}
		if list := must(c.Deliveries(t.Context(), "whk_1", 10))(t); len(list) != 2 {
			t.Errorf("deliveries are %+v", list)
		}
		if n := must(c.Rewind(t.Context(), "whk_1", start.Add(99*time.Hour)))(t); n != 0 || state().Position != 2 {
			t.Errorf("%d are sent again from position %d", n, state().Position)
		}
	})
}

func TestOldEventsGoAndWhoLacksThemIsNamed(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		addProject(t, c, "docs")
		addWebhook(t, c, api.Webhook{ID: "whk_late", Project: "docs"}, 0)
		addWebhook(t, c, api.Webhook{ID: "whk_other", Project: "docs", Events: []api.EventKind{api.EventPullOpened}}, 0)
		start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		var events []api.WebhookEvent
		for n := 1; n <= 10; n++ {
			events = append(events, testEvent(n, "docs", api.EventJobEnded, start.Add(time.Duration(n)*time.Hour)))
		}
		if err := c.AddEvents(t.Context(), events, nil, 10); err != nil {
			t.Fatal(err)
		}
		lost := must(c.TrimEvents(t.Context(), start.Add(3*time.Hour), 100))(t)
		if want := map[string]int{"whk_late": 2}; !reflect.DeepEqual(lost, want) {
			t.Errorf("by age: lost %v, want %v", lost, want)
		}
		lost = must(c.TrimEvents(t.Context(), start, 5))(t)
		if want := map[string]int{"whk_late": 3}; !reflect.DeepEqual(lost, want) {
			t.Errorf("by number: lost %v, want %v", lost, want)
		}
		w := must(c.Webhook(t.Context(), "whk_late"))(t)
		if w.State.Missed != 5 || w.State.Position != 5 {
			t.Errorf("its state is %+v", w.State)
		}
		if n := must(c.Waiting(t.Context(), "docs", api.EventKinds, 0))(t); n != 5 {
			t.Errorf("%d are left", n)
		}
		if lost := must(c.TrimEvents(t.Context(), start, 5))(t); len(lost) != 0 {
			t.Errorf("again: %v", lost)
		}
		if err := c.RestartEvents(t.Context(), 42); err != nil {
			t.Fatal(err)
		}
		pos, begun, err := c.WebhookPosition(t.Context())
		if w = must(c.Webhook(t.Context(), "whk_late"))(t); w.State.Position != 42 || pos != 42 || !begun || err != nil {
			t.Errorf("begun anew at %+v, %d, %v", w.State, pos, err)
		}
		if err := c.EmptyListings(t.Context()); err != nil { // another journal is taken
			t.Fatal(err)
		}
		if _, begun, err := c.WebhookPosition(t.Context()); begun || err != nil {
			t.Errorf("with another journal it goes on: %v", err)
		}
		addWebhook(t, c, api.Webhook{ID: "whk_new", Project: "docs", URL: "https://a.example/"}, 3)
		for _, position := range []uint64{7, 9} { // by two nodes
			if err := c.BeginEvents(t.Context(), position); err != nil {
				t.Fatal(err)
			}
		}
		pos, _, err = c.WebhookPosition(t.Context())
		if w = must(c.Webhook(t.Context(), "whk_late"))(t); w.State.Position != 7 || pos != 7 || err != nil {
			t.Errorf("begun with another journal at %+v, %d, %v", w.State, pos, err)
		}
	})
}

func TestAProjectHasSoManyWebhooksAndDeliveriesAreBounded(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		addProject(t, c, "docs")
		for n := range webhooksMost {
			addWebhook(t, c, api.Webhook{ID: fmt.Sprintf("whk_%02d", n), Project: "docs"}, 0)
		}
		if err := c.AddWebhook(t.Context(), api.Webhook{ID: "whk_x", Project: "docs"}, 0); !errors.Is(err, api.ErrConflict) {
			t.Errorf("one more: %v", err)
		}
		if err := c.AddWebhook(t.Context(), api.Webhook{ID: "whk_x", Project: "nobody"}, 0); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("of a project that there is not: %v", err)
		}
		start := time.Now()
		for n := range deliveriesKept + 10 {
			d := api.WebhookDelivery{Webhook: "whk_00", Event: fmt.Sprint("evt_", n), At: start.Add(time.Duration(n) * time.Second)}
			if err := c.SaveSingle(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		got := must(c.Deliveries(t.Context(), "whk_00", 1000))(t)
		if len(got) != deliveriesKept || got[0].Event != fmt.Sprint("evt_", deliveriesKept+9) {
			t.Errorf("%d are kept, the newest is %s", len(got), got[0].Event)
		}
		if err := c.SaveSingle(t.Context(), api.WebhookDelivery{Webhook: "whk_gone", Event: "evt_1"}); err != nil {
			t.Errorf("of a webhook that was removed: %v", err)
		}
	})
}

func TestTheFirstWebhookSaysFromWhereEventsAreMade(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		addProject(t, c, "docs")
		addWebhook(t, c, api.Webhook{ID: "whk_1", Project: "docs", URL: "https://a.example/"}, 3)
		addWebhook(t, c, api.Webhook{ID: "whk_2", Project: "docs", URL: "https://a.example/"}, 5)
		if err := c.BeginEvents(t.Context(), 9); err != nil {
			t.Fatal(err)
		}
		first, second := must(c.Webhook(t.Context(), "whk_1"))(t), must(c.Webhook(t.Context(), "whk_2"))(t)
		if pos, begun, err := c.WebhookPosition(t.Context()); pos != 3 || !begun || err != nil ||
			first.State.Position != 3 || second.State.Position != 5 {
			t.Errorf("begun at %d, %v, %v, with %+v and %+v", pos, begun, err, first.State, second.State)
		}
	})
}
