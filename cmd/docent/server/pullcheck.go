package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/forge"
	"docent/internal/backoff"
	"docent/internal/task"
	"docent/persistence/journal"
)

// A pullCheck looks at each start whether every open pull request of the built-in host has its branch. One that has not
// gets it back from what its job's journal has, or its owner is told.
type pullCheck struct{ app *Server }

// task checks each project once. What fails in a start that is still on its way, or on a machine in trouble, is tried
// again.
func (c pullCheck) task() task.Task {
	checked := map[api.ProjectID]bool{}
	return task.Task{Name: "pulls", Pause: backoff.Exponential(time.Second, 10*time.Minute),
		Handle: func(ctx context.Context, _ int) (time.Duration, error) {
			projects, failed := c.app.Stores.Catalog.Projects(ctx)
			for _, p := range projects {
				if p.Kind.Collected() || checked[p.ID] || ctx.Err() != nil {
					continue
				}
				if err := c.project(ctx, p); err != nil {
					failed = errors.Join(failed, fmt.Errorf("check the open pull requests of project %s: %w", p.ID, err))
				} else {
					checked[p.ID] = true
				}
			}
			return task.Done, failed
		}}
}

func (c pullCheck) project(ctx context.Context, p api.Project) error {
	hub := c.app.Stores.Hub
	broken, err := hub.Broken(ctx, p)
	if err != nil {
		return err
	}
	var failed []error
	for _, pull := range broken {
		failed = append(failed, c.pull(ctx, p, pull))
	}
	return errors.Join(failed...)
}

func (c pullCheck) pull(ctx context.Context, p api.Project, pull api.PullRequest) error {
	if pull.Job != "" && !c.app.nodes.Owns(job.Stream(pull.Job)) {
		return nil
	}
	var records []forge.Record
	if pull.Job != "" {
		var err error
		if records, err = recordsOf(c.app.Journal, p, pull); err != nil {
			return err
		}
	}
	err := c.app.Stores.Hub.Restore(ctx, p, pull, records)
	if errors.Is(err, forge.ErrLost) {
		return c.tell(ctx, pull, err)
	}
	return err
}

// recordsOf lists what a pull request's job has published to its branch.
func recordsOf(store journal.Store, p api.Project, pull api.PullRequest) ([]forge.Record, error) {
	recovered, err := store.Load(job.Stream(pull.Job))
	if err != nil {
		return nil, err
	}
	return job.Records(pull.Job, p, recovered, pull.Head)
}

// tell says in the log, in the job and on the pull request's page that a branch is lost, once.
func (c pullCheck) tell(ctx context.Context, pull api.PullRequest, why error) error {
	c.app.Log.Error("lost the branch of an open pull request", "project", pull.Project, "job", pull.Job, "pull", pull.ID,
		"branch", pull.Head, "error", why)
	note := fmt.Sprintf("The branch `%s` of this pull request is lost and cannot be restored from the journal. Restore the "+
		"repository from a backup, or close this pull request and send the instructions again as a new job.", pull.Head)
	fresh, err := c.app.Stores.Hub.TellLost(ctx, pull, note)
	if err != nil || !fresh || pull.Job == "" {
		return err
	}
	_, err = c.app.System.Jobs().Ask(ctx, pull.Job, job.Note{Project: pull.Project, Text: note})
	if errors.Is(err, api.ErrNotFound) {
		return nil // a job of before
	}
	return err
}
