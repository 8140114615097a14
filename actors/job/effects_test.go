package job

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/forge"
	"docent/persistence/cluster"
)

// free is slots for all.
type free struct{}

func (free) Acquire(context.Context, api.ProjectID, time.Time) (func(), error) { return func() {}, nil }

// patient is an effect that tries again every second for two minutes.
func patient() *effect {
	return &effect{deps: &Deps{
		Deps: persistent.Deps{Place: cluster.Single{}, Log: slog.New(slog.DiscardHandler),
			Backoff: func(int) time.Duration { return time.Second }},
		Patience: 2 * time.Minute,
	}, slot: persistent.Slot{Slots: free{}}}
}

func TestACodeHostThatAsksForTimeIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := patient()
		busy := func(after time.Duration) error {
			return fmt.Errorf("publish: %w", &forge.HostError{Kind: forge.ErrTemporary, Say: "Busy.", After: after})
		}
		began, tries := time.Now(), 0
		err := e.patiently(context.Background(), "try", func(context.Context) error {
			if tries++; tries == 1 {
				return busy(40 * time.Second)
			}
			return nil
		})
		if err != nil || tries != 2 || time.Since(began) != 40*time.Second {
			t.Errorf("%d tries in %v: %v", tries, time.Since(began), err)
		}
		began, tries = time.Now(), 0
		err = e.patiently(context.Background(), "try", func(context.Context) error { tries++; return busy(time.Hour) })
		if tries != 1 || time.Since(began) != 0 {
			t.Errorf("%d tries in %v of what takes longer than patience lasts", tries, time.Since(began))
		}
		if f := failed(err, began); f.Message != "Busy. Send the instruction again later." {
			t.Errorf("the job says %q", f.Message)
		}
	})
}

func TestADatabaseThatIsAwayIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := patient()
		away := fmt.Errorf("update the pull request: %w: bad connection", api.ErrUnavailable)
		tries := 0
		err := e.patiently(context.Background(), "try", func(context.Context) error {
			if tries++; tries == 1 {
				return away
			}
			return nil
		})
		if err != nil || tries != 2 {
			t.Errorf("%d tries: %v", tries, err)
		}
		err = e.patiently(context.Background(), "try", func(context.Context) error { return away })
		if f := failed(err, time.Now()); f.Message != "The database did not answer for a long time. Send the instruction again later." {
			t.Errorf("the job says %q", f.Message)
		}
		e.deps.Projects = projectsAway{new(int)}
		if _, err := e.project(context.Background()); err != nil {
			t.Errorf("the project was not waited for: %v", err)
		}
	})
}

// projectsAway cannot be read the first time.
type projectsAway struct{ tries *int }

func (p projectsAway) Project(_ context.Context, id api.ProjectID) (api.Project, error) {
	if *p.tries++; *p.tries == 1 {
		return api.Project{}, fmt.Errorf("read a project: %w", api.ErrUnavailable)
	}
	return api.Project{ID: id}, nil
}
