package work_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/work"
)

func anAutomation(project api.ProjectID, name string, cap int) api.Automation {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return api.Automation{ID: api.AutomationID(api.NewID(api.AutomationPrefix, now)), Project: project, Name: name,
		Prompt: ".docent/fresh.md",
		Cron:   "0 6 * * 1", DailyCap: cap, CreatedAt: now}
}

func TestAutomationsAreKeptAndRunOnceForAKey(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		ctx := t.Context()
		c := p.Open(catalog.Options{})
		if _, err := c.AddProject(ctx, api.Project{ID: "p", Domain: "p.example.com", Source: "/src"}); err != nil {
			t.Fatal(err)
		}
		a := anAutomation("p", "fresh", 2)
		if err := c.AddAutomation(ctx, a); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []struct {
			a    api.Automation
			want error
		}{
			{anAutomation("p", "fresh", 2), api.ErrConflict},
			{anAutomation("q", "fresh", 2), api.ErrNotFound},
			{anAutomation("p", "", 0), api.ErrInvalid},
		} {
			if err := c.AddAutomation(ctx, bad.a); !errors.Is(err, bad.want) {
				t.Errorf("%q: %v, want %v", bad.a.Name, err, bad.want)
			}
		}
		if got, err := c.Automations(ctx, "p"); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], a) {
			t.Fatalf("%+v, %v", got, err)
		}
		if none, err := c.Automations(ctx, "q"); err != nil || len(none) != 0 {
			t.Errorf("%v, %v", none, err)
		}

		at := time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)
		next := at.Add(time.Hour)
		run := api.AutomationRun{Key: "k1", Automation: a.ID, Trigger: api.TriggerSchedule, At: at}
		begun := make(chan bool, 8)
		var wait sync.WaitGroup
		for range cap(begun) { // several servers at once
			wait.Go(func() {
				_, ok, err := c.BeginRun(ctx, run, func(a *api.Automation) { a.Next = &next })
				if err != nil {
					t.Error(err)
				}
				begun <- ok
			})
		}
		wait.Wait()
		close(begun)
		n := 0
		for ok := range begun {
			if ok {
				n++
			}
		}
		if n != 1 {
			t.Errorf("a run was begun %d times", n)
		}
		begin := func(key string, at time.Time) api.RunStatus {
			t.Helper()
			r, ok, err := c.BeginRun(ctx, api.AutomationRun{Key: key, Automation: a.ID, At: at}, func(*api.Automation) {})
			if err != nil || !ok {
				t.Fatalf("%s: %v, %v", key, ok, err)
			}
			return r.Status
		}
		if got := begin("k2", at); got != api.RunAccepted {
			t.Errorf("the second run of the day is %s", got)
		}
		if got := begin("k3", at); got != api.RunSkipped {
			t.Errorf("one more than the cap is %s", got)
		}
		if got := begin("k4", at.Add(time.Minute)); got != api.RunAccepted {
			t.Errorf("the first run of the next day is %s", got)
		}
		open, err := c.OpenRuns(ctx)
		if err != nil || len(open) != 3 || open[0].Key != "k1" || open[0].Project != "p" {
			t.Fatalf("%+v, %v", open, err)
		}
		done := open[0]
		done.Status, done.Job = api.RunStarted, "job_1"
		last := open[2]
		last.Status, last.Reason = api.RunFailed, "no such file"
		for _, r := range []api.AutomationRun{done, last} {
			if err := c.SaveRun(ctx, r); err != nil {
				t.Fatal(err)
			}
		}

		// All of it is there after a restart.
		c.Close()
		c = p.Open(catalog.Options{})
		if open, err = c.OpenRuns(ctx); err != nil || len(open) != 1 || open[0].Key != "k2" {
			t.Errorf("%+v, %v", open, err)
		}
		got, err := c.Automation(ctx, a.ID)
		if err != nil || got.Job != "job_1" || got.Next == nil || !got.Next.Equal(next) || got.Last == nil ||
			got.Last.Key != "k4" || got.Last.Status != api.RunFailed {
			t.Errorf("%+v, %v", got, err)
		}
		if runs, err := c.Runs(ctx, a.ID, 2); err != nil || len(runs) != 2 || runs[0].Key != "k4" || runs[1].Key != "k3" {
			t.Errorf("%+v, %v", runs, err)
		}
		for i := range work.RunsKept + 10 {
			begin(fmt.Sprintf("many%d", i), at.Add(time.Duration(i+2)*24*time.Hour))
			if err := c.SaveRun(ctx, api.AutomationRun{Key: fmt.Sprintf("many%d", i), Automation: a.ID,
				Status: api.RunStarted}); err != nil {
				t.Fatal(err)
			}
		}
		if runs, err := c.Runs(ctx, a.ID, 10_000); err != nil || len(runs) > work.RunsKept+2 {
			t.Errorf("%d runs are kept, %v", len(runs), err)
		}
		if open, err = c.OpenRuns(ctx); err != nil || len(open) != 1 {
			t.Errorf("an open run was forgotten: %v, %v", open, err)
		}
		if err := c.RemoveAutomation(ctx, a.ID); err != nil {
			t.Fatal(err)
		}
		if err := c.RemoveAutomation(ctx, a.ID); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if open, err = c.OpenRuns(ctx); err != nil || len(open) != 0 {
			t.Errorf("a removed automation still runs: %v, %v", open, err)
		}
	})
}
