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
	"docent/persistence/catalog/database"
)

func TestPullIsStoredInFull(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		p1 := catalogtest.Pull("docs", "docent/1")
		p1.Draft, p1.Body = true, "nul \x00 and ' and ?0 {{x}}"
		added := catalogtest.Must(c.AddPull(t.Context(), p1))(t)
		if !api.ValidID(api.PullPrefix, added.ID) || added.Number != 1 || added.State != api.PullOpen ||
			!added.CreatedAt.Equal(database.Stamp(clock.Now())) {
			t.Errorf("the pull request became %+v", added)
		}
		again := p.Open(catalog.Options{})
		for what, got := range map[string]api.PullRequest{
			"Pull":       catalogtest.Must(again.Pull(t.Context(), added.ID))(t),
			"FindPull":   catalogtest.Must(again.FindPull(t.Context(), "docs", "docent/1"))(t),
			"LatestPull": catalogtest.Must(again.LatestPull(t.Context(), "docs", "docent/1"))(t),
			"Pulls":      catalogtest.Must(again.Pulls(t.Context(), "docs", ""))(t)[0],
		} {
			if !reflect.DeepEqual(got, added) {
				t.Errorf("%s answered\n%+v, want\n%+v", what, got, added)
			}
		}
		for what, err := range map[string]error{
			"another id":      catalogtest.Second(c.Pull(t.Context(), "pr_none")),
			"an odd id":       catalogtest.Second(c.Pull(t.Context(), "pr_\x00\xff")),
			"another branch":  catalogtest.Second(c.FindPull(t.Context(), "docs", "docent/2")),
			"another project": catalogtest.Second(c.LatestPull(t.Context(), "blog", "docent/1")),
		} {
			if !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%s: error %v, want not found", what, err)
			}
		}
	})
}

func TestPullOfABranchIsOpenedOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		catalogs := []*catalog.Catalog{p.Open(catalog.Options{}), p.Open(catalog.Options{})} // as two processes
		const openers, heads = 12, 4
		var mu sync.Mutex
		ids, numbers := map[string]map[string]bool{}, map[int]string{}
		var wg sync.WaitGroup
		for o := range openers {
			wg.Go(func() {
				for h := range heads {
					head := fmt.Sprintf("docent/%d", (h+o)%heads)
					got, err := catalogs[o%2].AddPull(t.Context(), catalogtest.Pull("docs", head))
					if err != nil {
						t.Error(err)
						continue
					}
					mu.Lock()
					if ids[head] == nil {
						ids[head] = map[string]bool{}
					}
					ids[head][got.ID] = true
					numbers[got.Number] = head
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for head, got := range ids {
			if len(got) != 1 {
				t.Errorf("%s has the pull requests %v", head, got)
			}
		}
		for n := 1; n <= heads; n++ {
			if numbers[n] == "" {
				t.Errorf("no pull request has the number %d: %v", n, numbers)
			}
		}
		if len(numbers) != heads {
			t.Errorf("numbers %v, want 1 to %d", numbers, heads)
		}
	})
}

func TestPullNumbersCountWithinTheProject(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		for i, want := range []struct {
			project string
			number  int
		}{{"docs", 1}, {"blog", 1}, {"docs", 2}, {"docs", 3}, {"blog", 2}} {
			if got := catalogtest.Must(c.AddPull(t.Context(), catalogtest.Pull(want.project,
				fmt.Sprintf("docent/%d", i))))(t); got.Number != want.number {
				t.Errorf("pull request %d of %s has the number %d, want %d", i, want.project, got.Number, want.number)
			}
		}
	})
}

func TestPullLifeCycle(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		update := func(p api.PullRequest) {
			t.Helper()
			if _, err := c.UpdatePull(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
		first := catalogtest.Must(c.AddPull(t.Context(), catalogtest.Pull("docs", "docent/1")))(t)
		at := first.CreatedAt.Add(time.Hour)

		closed := first
		closed.State, closed.ClosedAt, closed.UpdatedAt, closed.Title = api.PullClosed, &at, at, "Closed"
		changed := closed
		changed.Project, changed.Number, changed.Head, changed.CreatedAt = "blog", 99, "elsewhere", at // these stay
		update(changed)
		if got := catalogtest.Must(c.Pull(t.Context(), first.ID))(t); !reflect.DeepEqual(got, closed) {
			t.Errorf("closed, it is\n%+v, want\n%+v", got, closed)
		}
		if _, err := c.FindPull(t.Context(), "docs", "docent/1"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("an open one is found: %v", err)
		}

		again := catalogtest.Must(c.AddPull(t.Context(), catalogtest.Pull("docs", "docent/1")))(t)
		if again.ID == first.ID || again.Number != 2 {
			t.Errorf("the branch's next pull request is %+v", again)
		}
		if got := catalogtest.Must(c.LatestPull(t.Context(), "docs", "docent/1"))(t); got.ID != again.ID {
			t.Errorf("the latest one is %+v", got)
		}
		reopened := closed
		reopened.State, reopened.ClosedAt = api.PullOpen, nil
		if _, err := c.UpdatePull(t.Context(), reopened); !errors.Is(err, api.ErrConflict) {
			t.Errorf("opening a second one for the branch: error %v", err)
		}

		merged := again
		merged.State, merged.MergedAs, merged.ClosedAt = api.PullMerged, "0123abcd", &at
		update(merged)
		update(merged) // a repeat changes nothing
		if _, err := c.UpdatePull(t.Context(), again); !errors.Is(err, api.ErrConflict) {
			t.Errorf("a stale update of a merged one: error %v", err)
		}
		if got := catalogtest.Must(c.Pull(t.Context(), again.ID))(t); !reflect.DeepEqual(got, merged) {
			t.Errorf("stored is\n%+v, want\n%+v", got, merged)
		}

		for state, want := range map[api.PullState]int{"": 2, api.PullOpen: 0, api.PullClosed: 1, api.PullMerged: 1} {
			if got := catalogtest.Must(c.Pulls(t.Context(), "docs", state))(t); len(got) != want {
				t.Errorf("%d pull requests in state %q, want %d", len(got), state, want)
			}
		}
		unknown := first
		unknown.ID = "pr_none"
		if _, err := c.UpdatePull(t.Context(), unknown); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("updating an unknown one: error %v", err)
		}
		unknown.State = "lost"
		if _, err := c.UpdatePull(t.Context(), unknown); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("an unknown state: error %v", err)
		}
		if _, err := c.AddPull(t.Context(), api.PullRequest{Project: "docs"}); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("a pull request without branches: error %v", err)
		}
	})
}

// Equal pull requests are found by the digest of their change. Those of before it was kept come along until they have one.
func TestEqualPullsAreFoundByTheirDigest(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		for i, change := range []string{"a", "b", "a", "a"} {
			pull := catalogtest.Pull("docs", fmt.Sprint("docent/", i))
			pull.Change = change
			pull = catalogtest.Must(c.AddPull(t.Context(), pull))(t)
			if i == 3 {
				pull.State = api.PullClosed
				catalogtest.Must(c.UpdatePull(t.Context(), pull))(t)
			}
		}
		found := func(digest string) (heads string) {
			for _, pull := range catalogtest.Must(c.EqualPulls(t.Context(), "docs", digest, 10))(t) {
				heads += pull.Head + "=" + pull.Change + " "
			}
			return heads
		}
		if got := found("a") + "| " + found("c"); got != "docent/2=a docent/0=a | " {
			t.Errorf("found %q", got)
		}

		// An older catalog has no digests.
		c = p.BackTo(t, c, "20261124000004")
		if got := found("a"); got != "docent/2= docent/1= docent/0= " {
			t.Errorf("found %q", got)
		}
		pull := catalogtest.Must(c.FindPull(t.Context(), "docs", "docent/1"))(t)
		pull.Change = "b"
		catalogtest.Must(c.UpdatePull(t.Context(), pull))(t)
		if got := found("a"); got != "docent/2= docent/0= " {
			t.Errorf("found %q", got)
		}
	})
}
