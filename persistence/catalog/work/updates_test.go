package work_test

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/work"
)

func TestUpdatesAreKeptUntilTheyEnd(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		add := func(project string) (api.Update, bool) {
			t.Helper()
			clock.Add(time.Second)
			u, added, err := c.AddUpdate(t.Context(), api.ProjectID(project))
			if err != nil {
				t.Fatal(err)
			}
			return u, added
		}
		first, added := add("docs")
		if !added || first.Status != api.UpdateQueued || !api.ValidID(api.UpdatePrefix, string(first.ID)) {
			t.Fatalf("%+v, %v", first, added)
		}
		if again, added := add("docs"); added || !reflect.DeepEqual(again, first) {
			t.Errorf("a second one joins: %+v, %v", again, added)
		}
		other, added := add("blog")
		if !added {
			t.Error("another project's joins")
		}
		now := clock.Now()
		first.Status, first.StartedAt = api.UpdateInProgress, database.StampPtr(&now)
		if err := c.SaveUpdate(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		second, added := add("docs")
		if !added || second.ID == first.ID {
			t.Error("what has begun is joined: it may have read what there was before")
		}
		c.Close()
		c = p.Open(catalog.Options{Now: clock.Now})
		open := catalogtest.Must(c.OpenUpdates(t.Context()))(t)
		if len(open) != 3 || !reflect.DeepEqual(open[0], first) || open[1].ID != other.ID || open[2].ID != second.ID {
			t.Errorf("open are %+v", open)
		}
		first.Status, first.EndedAt, first.Logs, first.Summary = api.UpdateSuccess, database.StampPtr(&now), []string{"a", "b"}, "fine"
		first.Commit = api.UpdateCommit{SHA: "c0", Ref: "main", Message: "m", Added: []string{"a"}, Modified: []string{"b"},
			Removed: []string{"c"}}
		if err := c.SaveUpdate(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if got := catalogtest.Must(c.Update(t.Context(), first.ID))(t); !reflect.DeepEqual(got, first) {
			t.Errorf("stored\n%+v, want\n%+v", got, first)
		}
		if got := catalogtest.Must(c.LastUpdate(t.Context(), "docs"))(t); got.ID != first.ID {
			t.Errorf("the last success is %+v", got)
		}
		if _, err := c.LastUpdate(t.Context(), "blog"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the last success of a project without one: %v", err)
		}
		first.Status = api.UpdateInProgress
		if err := c.SaveUpdate(t.Context(), first); !errors.Is(err, api.ErrConflict) {
			t.Errorf("what has ended starts over: %v", err)
		}
		for _, id := range []api.UpdateID{"upd_none", "", "a\x00"} {
			if _, err := c.Update(t.Context(), id); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("update %q: %v", id, err)
			}
		}
		// Old ones go, open ones stay.
		for range work.UpdatesKept + 10 {
			u, _ := add("wiki")
			u.Status = api.UpdateFailure
			if err := c.SaveUpdate(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		var kept int
		if err := c.Read.NewRaw("SELECT COUNT(*) FROM updates WHERE project_id = 'wiki'").Scan(t.Context(),
			&kept); err != nil || kept != work.UpdatesKept {
			t.Errorf("%d are kept, want %d (%v)", kept, work.UpdatesKept, err)
		}
		if got := catalogtest.Must(c.OpenUpdates(t.Context()))(t); len(got) != 2 {
			t.Errorf("%d are open", len(got))
		}
	})
}

func TestUpdatesAskedForAtOnceAreOne(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen, fresh := map[api.UpdateID]bool{}, 0
		for range 16 {
			wg.Go(func() {
				u, added, err := c.AddUpdate(t.Context(), "docs")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				seen[u.ID] = true
				if added {
					fresh++
				}
			})
		}
		wg.Wait()
		if len(seen) != 1 || fresh != 1 {
			t.Errorf("%d updates, %d of them new", len(seen), fresh)
		}
	})
}
