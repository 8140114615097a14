package automation

import (
	"context"
	"errors"
	"os"
	"strings"

	"docent/api"
	"docent/internal/secret"
)

// DocumentationAt says that the documentation of a project is at a commit now. The same commit may be reported again,
// and commits in between may be left out.
func (r *Runner) DocumentationAt(ctx context.Context, project api.ProjectID, commit string) {
	if !r.Owns("task/documentation/" + string(project)) {
		return // another node sees the same commits
	}
	list, err := r.Catalog.Automations(ctx, project)
	for _, au := range list {
		if !au.OnPush || au.Seen == commit || err != nil {
			continue
		}
		see := func(au *api.Automation) { au.Seen = commit }
		if au.Seen == "" || au.Paused {
			err = r.Catalog.ChangeAutomation(ctx, au.ID, see)
			continue
		}
		err = r.Accept(ctx, api.AutomationRun{Automation: au.ID, Trigger: api.TriggerPush, Commit: commit,
			Key: string(au.ID) + " push " + commit}, see)
	}
	if err != nil && ctx.Err() == nil {
		r.Log.Warn("an automation missed a push; it runs at the next check of the documentation", "project", project,
			"error", err)
	}
}

// Pause has an automation run only when it is told to, or lets it go on. What came meanwhile is not made up for.
func (r *Runner) Pause(ctx context.Context, id api.AutomationID, paused bool) error {
	var failed error
	err := r.Catalog.ChangeAutomation(ctx, id, func(au *api.Automation) {
		if au.Paused == paused {
			return
		}
		au.Paused, au.Next = paused, nil
		if !paused && au.Cron != "" {
			next, err := NextTime(*au, r.Now())
			au.Next, failed = &next, err
		}
	})
	r.Wake()
	return errors.Join(err, failed)
}

// Push takes what a code host's webhook says. It starts the automations that wait for pushes to that repository. Where
// the push may be to the documentation itself, that is read again: the returned update says how that goes.
func (r *Runner) Push(ctx context.Context, project api.ProjectID, push api.Push) (api.UpdateID, error) {
	p, err := r.Catalog.Project(ctx, project)
	if err != nil {
		return "", err
	}
	list, err := r.Catalog.Automations(ctx, project)
	if err != nil {
		return "", err
	}
	for _, au := range list {
		if au.Paused || au.Check || au.Repository == "" || !concerns(push, au.Repository, au.Branch) {
			continue
		}
		run := api.AutomationRun{Automation: au.ID, Trigger: api.TriggerPush, Repository: push.Repository,
			Commit: push.Commit,
			Key:    string(au.ID) + " push " + strings.ToLower(push.Repository) + " " + push.Commit}
		if err := r.Accept(ctx, run, func(*api.Automation) {}); err != nil && !errors.Is(err, api.ErrNotFound) {
			return "", err
		}
	}
	if !concerns(push, p.Repository, p.Branch) {
		return "", nil
	}
	return r.Updates.Start(ctx, project)
}

// concerns reports whether a push is to a branch of a repository: to any repository where that is empty, and to the
// default branch where the branch is.
func concerns(push api.Push, repository, branch string) bool {
	return (repository == "" || strings.EqualFold(repository, push.Repository)) &&
		(branch == push.Branch || branch == "" && push.Default)
}

// Delivered remembers the last delivery to a project's webhook: one that was signed with its secret in the catalog, one
// that was refused in memory, since anybody can send these.
func (r *Runner) Delivered(ctx context.Context, project api.ProjectID, d api.Delivery) {
	d.At = r.Now()
	if !d.Accepted() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.refused == nil {
			r.refused = map[api.ProjectID]api.Delivery{}
		}
		r.refused[project] = d
		return
	}
	if err := r.Catalog.SaveDelivery(ctx, project, d); err != nil && ctx.Err() == nil {
		r.Log.Warn("could not record a webhook delivery", "project", project, "error", err)
	}
}

// Refused is the last delivery to a project's webhook that was refused since the server's start.
func (r *Runner) Refused(project api.ProjectID) (api.Delivery, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.refused[project]
	return d, ok
}

// Secret is what the project's code host signs its pushes with; empty if the project takes none.
func (r *Runner) Secret(ctx context.Context, project api.ProjectID) (string, error) {
	p, err := r.Catalog.Project(ctx, project)
	if err != nil {
		return "", err
	}
	if p.WebhookFile != "" && r.Stored != nil {
		value, err := r.Stored(p.WebhookFile)
		if err != nil {
			r.Log.Warn("the webhook's stored secret cannot be read: create a new one on the Sources page or with `docent project webhook`",
				"project", project, "error", err)
			return "", nil
		}
		return value, nil
	}
	if p.WebhookEnv == "" {
		return "", nil
	}
	value, err := secret.Read(p.WebhookEnv, os.LookupEnv)
	if err != nil {
		r.Log.Warn("no secret for the webhook", "project", project, "variable", p.WebhookEnv, "error", err)
		return "", nil
	}
	return value, nil
}
