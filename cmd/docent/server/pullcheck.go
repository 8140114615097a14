package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/forge"
	"docent/internal/backoff"
	"docent/persistence/journal"
)

// A pullCheck looks at each start whether every open pull request of the built-in host has its branch. One that has not
// gets it back from what its job's journal has, or its owner is told.
type pullCheck struct {
	app  *Server
	here func(stream string) bool
}

func (c pullCheck) run(ctx context.Context) {
	log := c.app.Log
	projects, err := c.app.Stores.Catalog.Projects(ctx)
	if err != nil {
		log.Warn("open pull requests not checked", "error", err)
		return
	}
	// What fails in a start that is still on its way, or on a machine in trouble, is tried again.
	for wait := time.Second; len(projects) > 0 && ctx.Err() == nil; wait = min(2*wait, 10*time.Minute) {
		projects = slices.DeleteFunc(slices.Clone(projects), func(p api.Project) bool {
			if p.Kind.Collected() || ctx.Err() != nil {
				return true
			}
			err := c.project(ctx, p)
			if err != nil && ctx.Err() == nil {
				log.Warn("open pull requests not checked", "project", p.ID, "error", err)
			}
			return err == nil
		})
		if len(projects) > 0 {
			_ = backoff.Sleep(ctx, wait)
		}
	}
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
	if pull.Job != "" && c.here != nil && !c.here(job.Stream(pull.Job)) {
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
	c.app.Log.Error("branch of an open pull request lost", "project", pull.Project, "job", pull.Job, "pull", pull.ID,
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
