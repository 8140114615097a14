package work_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
)

func addReviewed(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	catalogtest.Must(c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/src"}))(t)
}

func TestAPullRequestIsFollowedOnceAndLookedAtInItsTurn(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		ctx := t.Context()
		addReviewed(t, c)
		l := catalogtest.NewLog()
		projector, stop := catalogtest.RunProjector(t, c, l)
		for n, link := range []string{"https://x.example/acme/docs/pulls/1", "https://x.example/acme/docs/pulls/2",
			"/pulls/pr_1", "", "https://x.example/acme/docs/pulls/2"} {
			l.Change(catalogtest.JobStream(n), func(r *api.JobRow) {
				r.Project, r.Job.Status = "docs", api.JobCompleted
				if link != "" {
					r.Job.PRLink = &link
				}
			})
		}
		catalogtest.Reach(t, projector)
		stop()
		open := catalogtest.Must(c.UnfollowedPulls(ctx, "docs", 10))(t)
		if len(open) != 3 {
			t.Fatalf("%d are not followed", len(open))
		}
		if other := catalogtest.Must(c.UnfollowedPulls(ctx, "blog", 10))(t); len(other) != 0 {
			t.Errorf("another project has %+v", other)
		}
		now := clock.Now()
		for i := range 2 {
			pull := api.ReviewPull{Project: "docs", Number: i + 1, Job: open[i].Job.ID, Link: *open[i].Job.PRLink,
				State: api.PullOpen, Next: now.Add(time.Duration(i) * time.Minute)}
			for range 2 {
				if err := c.FollowPull(ctx, pull); err != nil {
					t.Fatal(err)
				}
				pull.Job = "job_other"
			}
		}
		if left := catalogtest.Must(c.UnfollowedPulls(ctx, "docs", 10))(t); len(left) != 0 {
			t.Errorf("still not followed: %+v", left)
		}
		if got := catalogtest.Must(c.NextPull(ctx, "docs"))(t); got.Number != 1 || got.Job != open[0].Job.ID || !got.Next.Equal(database.Stamp(now)) {
			t.Errorf("first comes %+v", got)
		}
		if ok, err := c.HintPull(ctx, "docs", 2); !ok || err != nil {
			t.Error(ok, err)
		}
		if ok, err := c.HintPull(ctx, "docs", 3); ok || err != nil {
			t.Errorf("a hint at one that is not followed: %v, %v", ok, err)
		}
		got := catalogtest.Must(c.NextPull(ctx, "docs"))(t)
		if got.Number != 2 || !got.Hinted {
			t.Errorf("after a hint comes %+v", got)
		}
		if err := c.BeginLook(ctx, "docs", 2, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if next := catalogtest.Must(c.NextPull(ctx, "docs"))(t); next.Number != 1 {
			t.Errorf("while it is looked at, %+v comes", next)
		}
		// A hint during a look causes another look, even if the pull request is closed.
		catalogtest.Must(c.HintPull(ctx, "docs", 2))(t)
		got.Hinted, got.State, got.Next, got.Seen = false, api.PullMerged, time.Time{}, []string{"issue/1"}
		if err := c.EndLook(ctx, got, nil); err != nil {
			t.Fatal(err)
		}
		if next := catalogtest.Must(c.NextPull(ctx, "docs"))(t); next.Number != 2 || next.State != api.PullMerged || next.Seen[0] != "issue/1" {
			t.Errorf("after a hint in a look, %+v comes", next)
		}
		if err := c.RemoveProject(ctx, "docs"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.NextPull(ctx, "docs"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("of a project that was removed: %v", err)
		}
	})
}

func TestAnInstructionFromACommentIsStoredOnceUntilItIsAnswered(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		ctx := t.Context()
		addReviewed(t, c)
		pull := api.ReviewPull{Project: "docs", Number: 1, State: api.PullOpen, Next: c.Now()}
		if err := c.FollowPull(ctx, pull); err != nil {
			t.Fatal(err)
		}
		ask := func(id, key string) api.ReviewAsk {
			return api.ReviewAsk{ID: id, Key: key, Project: "docs", Number: 1, State: api.ReviewTaken,
				Comments: []api.ReviewComment{{ID: "issue/1", Text: "a\x00b \xff"}}}
		}
		for i := range 2 { // the same comments are found again, as after a crash
			if err := c.EndLook(ctx, pull, []api.ReviewAsk{ask(fmt.Sprint("msg_a", i), "k1"), ask(fmt.Sprint("msg_b", i), "k2")}); err != nil {
				t.Fatal(err)
			}
		}
		ids := func() string {
			var out []string
			for _, a := range catalogtest.Must(c.OpenAsks(ctx, 10))(t) {
				out = append(out, a.ID+" "+string(a.State))
			}
			return strings.Join(out, ", ")
		}
		if got := ids(); got != "msg_a0 taken, msg_b0 taken" {
			t.Errorf("open are %s", got)
		}
		a := catalogtest.Must(c.OpenAsks(ctx, 1))(t)[0]
		a.State, a.Answer = api.ReviewEnded, "Done."
		if err := c.SaveAsk(ctx, a); err != nil {
			t.Fatal(err)
		}
		if got := catalogtest.Must(c.OpenAsks(ctx, 1))(t)[0]; got.State != api.ReviewEnded || got.Answer != "Done." || got.Comments[0].ID != "issue/1" {
			t.Errorf("%+v", got)
		}
		a.State = api.ReviewAnswered
		if err := c.SaveAsk(ctx, a); err != nil {
			t.Fatal(err)
		}
		if got := ids(); got != "msg_b0 taken" {
			t.Errorf("open are %s", got)
		}
		since := catalogtest.Must(c.ReviewsSince(ctx))(t)
		if d := time.Since(since); d < 0 || d > time.Minute {
			t.Errorf("comments are followed since %v", since)
		}
	})
}
