package work_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/work"
)

func TestEventsWaitForTheirWebhooks(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		catalogtest.AddProject(t, c, "docs")
		catalogtest.AddProject(t, c, "blog")
		w := api.Webhook{ID: "whk_1", Project: "docs", URL: "https://a.example/x", Events: []api.EventKind{api.EventJobEnded},
			Secret: "docs.s", CreatedAt: database.Stamp(clock.Now()), UpdatedAt: database.Stamp(clock.Now())}
		catalogtest.AddWebhook(t, c, w, 3)
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_2", Project: "docs", URL: "https://b.example/"}, 3)
		got := catalogtest.Must(c.Webhook(t.Context(), "whk_1"))(t)
		if !reflect.DeepEqual(got.Webhook, w) || got.State.Position != 3 {
			t.Errorf("stored is %+v", got)
		}
		now := clock.Now()
		events := []api.WebhookEvent{catalogtest.Event(4, "docs", api.EventPullOpened, now), catalogtest.Event(5, "docs", api.EventJobEnded, now),
			catalogtest.Event(6, "blog", api.EventJobEnded, now), catalogtest.Event(7, "docs", api.EventJobEnded, now)}
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
			return catalogtest.Must(c.NextEvent(t.Context(), "docs", kinds, after))(t)
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
		newest := catalogtest.Must(c.NewestEvents(t.Context()))(t)
		if want := map[api.EventKind]uint64{api.EventJobEnded: 7, api.EventPullOpened: 4}; !reflect.DeepEqual(newest["docs"], want) ||
			newest["blog"] != nil {
			t.Errorf("the newest are %v; events of a project without webhooks are stored", newest)
		}
		if n := catalogtest.Must(c.Waiting(t.Context(), "docs", w.Kinds(), 3))(t); n != 2 {
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
		if n := catalogtest.Must(c.Waiting(t.Context(), "docs", api.EventKinds, 0))(t); n != 0 {
			t.Errorf("%d events are left of a project without webhooks", n)
		}
		if err := c.RemoveWebhook(t.Context(), "whk_1"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("removed again: %v", err)
		}
	})
}

// What somebody did to a webhook while an attempt went on is not undone by how that went.
func TestAnAttemptDoesNotUndoAReplay(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_1", Project: "docs"}, 0)
		start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		var events []api.WebhookEvent
		for n := 1; n <= 5; n++ {
			events = append(events, catalogtest.Event(n, "docs", api.EventJobEnded, start.Add(time.Duration(n)*time.Hour)))
		}
		if err := c.AddEvents(t.Context(), events, nil, 5); err != nil {
			t.Fatal(err)
		}
		state := func() api.WebhookState { return catalogtest.Must(c.Webhook(t.Context(), "whk_1"))(t).State }
		s := state()
		d := api.WebhookDelivery{Webhook: "whk_1", Event: "evt_docs_4", Status: api.DeliveryDelivered, At: start}
		s.Position = 4
		if err := c.SaveAttempt(t.Context(), s, &d); err != nil {
			t.Fatal(err)
		}
		s = state()
		if n := catalogtest.Must(c.Rewind(t.Context(), "whk_1", start.Add(150*time.Minute)))(t); n != 2 {
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
		if list := catalogtest.Must(c.Deliveries(t.Context(), "whk_1", 10))(t); len(list) != 2 {
			t.Errorf("deliveries are %+v", list)
		}
		if n := catalogtest.Must(c.Rewind(t.Context(), "whk_1", start.Add(99*time.Hour)))(t); n != 0 || state().Position != 2 {
			t.Errorf("%d are sent again from position %d", n, state().Position)
		}
	})
}

func TestOldEventsGoAndWhoLacksThemIsNamed(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_late", Project: "docs"}, 0)
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_other", Project: "docs", Events: []api.EventKind{api.EventPullOpened}}, 0)
		start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		var events []api.WebhookEvent
		for n := 1; n <= 10; n++ {
			events = append(events, catalogtest.Event(n, "docs", api.EventJobEnded, start.Add(time.Duration(n)*time.Hour)))
		}
		if err := c.AddEvents(t.Context(), events, nil, 10); err != nil {
			t.Fatal(err)
		}
		lost := catalogtest.Must(c.TrimEvents(t.Context(), start.Add(3*time.Hour), 100))(t)
		if want := map[string]int{"whk_late": 2}; !reflect.DeepEqual(lost, want) {
			t.Errorf("by age: lost %v, want %v", lost, want)
		}
		lost = catalogtest.Must(c.TrimEvents(t.Context(), start, 5))(t)
		if want := map[string]int{"whk_late": 3}; !reflect.DeepEqual(lost, want) {
			t.Errorf("by number: lost %v, want %v", lost, want)
		}
		w := catalogtest.Must(c.Webhook(t.Context(), "whk_late"))(t)
		if w.State.Missed != 5 || w.State.Position != 5 {
			t.Errorf("its state is %+v", w.State)
		}
		if n := catalogtest.Must(c.Waiting(t.Context(), "docs", api.EventKinds, 0))(t); n != 5 {
			t.Errorf("%d are left", n)
		}
		if lost := catalogtest.Must(c.TrimEvents(t.Context(), start, 5))(t); len(lost) != 0 {
			t.Errorf("again: %v", lost)
		}
		if err := c.RestartEvents(t.Context(), 42); err != nil {
			t.Fatal(err)
		}
		pos, begun, err := c.WebhookPosition(t.Context())
		if w = catalogtest.Must(c.Webhook(t.Context(), "whk_late"))(t); w.State.Position != 42 || pos != 42 || !begun || err != nil {
			t.Errorf("started over at %+v, %d, %v", w.State, pos, err)
		}
		if err := c.EmptyListings(t.Context()); err != nil { // another journal is taken
			t.Fatal(err)
		}
		if _, begun, err := c.WebhookPosition(t.Context()); begun || err != nil {
			t.Errorf("with another journal it goes on: %v", err)
		}
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_new", Project: "docs", URL: "https://a.example/"}, 3)
		for _, position := range []uint64{7, 9} { // by two nodes
			if err := c.BeginEvents(t.Context(), position); err != nil {
				t.Fatal(err)
			}
		}
		pos, _, err = c.WebhookPosition(t.Context())
		if w = catalogtest.Must(c.Webhook(t.Context(), "whk_late"))(t); w.State.Position != 7 || pos != 7 || err != nil {
			t.Errorf("begun with another journal at %+v, %d, %v", w.State, pos, err)
		}
	})
}

func TestAProjectHasSoManyWebhooksAndDeliveriesAreBounded(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		for n := range work.WebhooksMost {
			catalogtest.AddWebhook(t, c, api.Webhook{ID: fmt.Sprintf("whk_%02d", n), Project: "docs"}, 0)
		}
		if err := c.AddWebhook(t.Context(), api.Webhook{ID: "whk_x", Project: "docs"}, 0); !errors.Is(err, api.ErrConflict) {
			t.Errorf("one more: %v", err)
		}
		if err := c.AddWebhook(t.Context(), api.Webhook{ID: "whk_x", Project: "nobody"}, 0); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("of a project that does not exist: %v", err)
		}
		start := time.Now()
		for n := range work.DeliveriesKept + 10 {
			d := api.WebhookDelivery{Webhook: "whk_00", Event: fmt.Sprint("evt_", n), At: start.Add(time.Duration(n) * time.Second)}
			if err := c.SaveSingle(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		got := catalogtest.Must(c.Deliveries(t.Context(), "whk_00", 1000))(t)
		if len(got) != work.DeliveriesKept || got[0].Event != fmt.Sprint("evt_", work.DeliveriesKept+9) {
			t.Errorf("%d are kept, the newest is %s", len(got), got[0].Event)
		}
		if err := c.SaveSingle(t.Context(), api.WebhookDelivery{Webhook: "whk_gone", Event: "evt_1"}); err != nil {
			t.Errorf("of a webhook that was removed: %v", err)
		}
	})
}

func TestTheFirstWebhookSaysFromWhereEventsAreMade(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_1", Project: "docs", URL: "https://a.example/"}, 3)
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_2", Project: "docs", URL: "https://a.example/"}, 5)
		if err := c.BeginEvents(t.Context(), 9); err != nil {
			t.Fatal(err)
		}
		first, second := catalogtest.Must(c.Webhook(t.Context(), "whk_1"))(t), catalogtest.Must(c.Webhook(t.Context(), "whk_2"))(t)
		if pos, begun, err := c.WebhookPosition(t.Context()); pos != 3 || !begun || err != nil ||
			first.State.Position != 3 || second.State.Position != 5 {
			t.Errorf("begun at %d, %v, %v, with %+v and %+v", pos, begun, err, first.State, second.State)
		}
	})
}
