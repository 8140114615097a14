package outcomes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/internal/task/tasktest"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/cluster"
)

// A crew are jobs that answer what a test says, and remember what they were told.
type crew struct {
	told []string
	fail map[api.JobID][]error // the next answers
}

func (c *crew) Ask(_ context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	is := cmd.(job.PullIs)
	if next := c.fail[id]; len(next) > 0 {
		c.fail[id] = next[1:]
		return job.Reply{}, next[0]
	}
	c.told = append(c.told, fmt.Sprintf("%s: %s of %s is %s", id, is.Branch, is.Project, is.State))
	return job.Reply{}, nil
}

func open(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(t.Context(), catalogtest.SQLite(t),
		catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/src"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// turn opens a pull request of a job and brings it into a state.
func turn(t *testing.T, c *catalog.Catalog, of api.JobID, state api.PullState) {
	t.Helper()
	p, err := c.FindPull(t.Context(), "docs", "docent/"+string(of))
	if errors.Is(err, api.ErrNotFound) {
		p, err = c.AddPull(t.Context(), api.PullRequest{Project: "docs", Job: of, Head: "docent/" + string(of), Base: "main"})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.State = state
	if _, err := c.UpdatePull(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func TestAJobIsToldOnceWhatBecameOfItsPullRequest(t *testing.T) {
	t.Parallel()
	c, jobs := open(t), &crew{}
	notifier := &PullNotifier{Catalog: c, Jobs: jobs, Owns: cluster.Single{}.Owns}
	turn(t, c, "job_a", api.PullOpen)
	turn(t, c, "job_b", api.PullMerged)
	turn(t, c, "job_c", api.PullClosed)
	turn(t, c, "", api.PullMerged) // of no job
	for range 2 {
		if err := notifier.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	turn(t, c, "job_a", api.PullMerged)
	if err := notifier.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"job_a: docent/job_a of docs is merged", "job_b: docent/job_b of docs is merged",
		"job_c: docent/job_c of docs is closed"}
	slices.Sort(jobs.told)
	if !slices.Equal(jobs.told, want) {
		t.Errorf("told %q, want %q", jobs.told, want)
	}
}

func TestAJobThatDoesNotAnswerIsToldLaterAndHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		busy := &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second}
		jobs := &crew{fail: map[api.JobID][]error{"job_a": {busy, busy}, "job_gone": {api.ErrNotFound}}}
		for _, of := range []api.JobID{"job_a", "job_b", "job_gone"} {
			turn(t, c, of, api.PullMerged)
		}
		var tasks tasktest.Queue
		tasks.Start((&PullNotifier{Catalog: c, Jobs: jobs, Owns: cluster.Single{}.Owns}).Task())
		tasks.Run(t.Context())
		slices.Sort(jobs.told)
		want := []string{"job_a: docent/job_a of docs is merged", "job_b: docent/job_b of docs is merged"}
		if !slices.Equal(jobs.told, want) {
			t.Errorf("told %q, want %q", jobs.told, want)
		}
		if left, err := c.UntoldPulls(t.Context(), "", 10); err != nil || len(left) != 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}
