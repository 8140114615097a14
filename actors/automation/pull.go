package automation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"docent/agent/affected"
	"docent/api"
	"docent/forge"
	"docent/forge/host"
)

// Code is what code hosts have of the repositories with the code.
type Code interface {
	// PullChange is a pull request, and what it changes, as git writes it.
	PullChange(ctx context.Context, p api.Project, number int) (host.Pull, string, error)
	// Authors are the accounts of those who wrote commits of the repository, as far as it knows them.
	Authors(ctx context.Context, p api.Project, commits []forge.Commit) ([]string, error)
	// Say writes the comment with a key into a pull request's conversation, or gives the one that is there this text. If
	// first is false it writes none.
	Say(ctx context.Context, p api.Project, number int, key, body string, first bool) error
}

// Pull takes a code host's word that a pull request of a code repository was opened or changed. It starts the checks of
// that repository, durably once it has returned; it is false if there are none. Several words before a check is carried
// out are one.
func (r *Runner) Pull(ctx context.Context, project api.ProjectID, hint api.PullHint) (bool, error) {
	if e := hint.Event; e != "pull_request" && e != "pull_request_sync" && e != "merge request hook" {
		return false, nil // what somebody said there
	}
	list, err := r.Catalog.Automations(ctx, project)
	if err != nil {
		return false, err
	}
	open, err := r.Catalog.OpenRuns(ctx)
	if err != nil {
		return false, err
	}
	waiting := map[api.AutomationID]bool{}
	for _, run := range open {
		waiting[run.Automation] = waiting[run.Automation] || run.Pull == hint.Number
	}
	found := false
	for _, au := range list {
		if !au.Check || au.Paused || !strings.EqualFold(au.Repository, hint.Repository) {
			continue
		}
		found = true
		if waiting[au.ID] {
			continue
		}
		run := api.AutomationRun{Automation: au.ID, Trigger: api.TriggerPull, Repository: au.Repository, Pull: hint.Number,
			Key: fmt.Sprintf("%s pull %d %s", au.ID, hint.Number, r.IDs.New("", r.Now()))}
		if err := r.Accept(ctx, run, func(*api.Automation) {}); err != nil && !errors.Is(err, api.ErrNotFound) {
			return false, err
		}
	}
	return found, nil
}

// codeOf is a code repository as the project reaches it: with the credentials of its source of that repository, otherwise
// with its own, on its own host. It is false if the project has nothing that its files are read from.
func codeOf(p api.Project, repository string) (api.Project, bool) {
	if code, ok := p.CodeSource(repository); ok {
		return code, true
	}
	if strings.EqualFold(p.Repository, repository) {
		return p, p.Kind.Editable()
	}
	for _, s := range p.Sources {
		if strings.EqualFold(s.Repository, repository) {
			return p.Of(s.Label), s.Kind.Editable()
		}
	}
	p.Repository = repository
	return p, false
}

// proposed is what a pull request changes, as far as it is shown.
func (r *Runner) proposed(ctx context.Context, code api.Project, readable bool, docs, diff string) (Change, error) {
	if !readable {
		return Change{Diff: affected.Only(diff, func(file string) bool { return !affected.Secret(file) })}, nil
	}
	if code.Kind != api.SourceCode { // its patterns choose pages, and it begins at the root
		code.Include, code.Exclude, code.DocsDir = nil, nil, ""
	}
	return r.Documentation.Proposed(ctx, code, docs, diff)
}

// check says on a pull request which pages it concerns: in one comment, which is kept up to date. Where it concerns none,
// nothing is said that was not said before.
func (r *Runner) check(ctx context.Context, p api.Project, au api.Automation, run *api.AutomationRun) error {
	run.Status = api.RunChecked
	if run.Pull == 0 {
		run.Reason = "a check runs when a pull request is opened or changed"
		return nil
	}
	code, readable := codeOf(p, au.Repository)
	pull, diff, err := r.Code.PullChange(ctx, code, run.Pull)
	if err != nil {
		return fmt.Errorf("read #%d of %s: %w", run.Pull, au.Repository, err)
	}
	same := strings.EqualFold(p.Repository, au.Repository)
	switch {
	case pull.State != api.PullOpen:
		run.Reason = fmt.Sprintf("#%d is %s", run.Pull, pull.State)
		return nil
	case au.Branch != "" && pull.Base != au.Branch:
		run.Reason = fmt.Sprintf("#%d is not for %s", run.Pull, au.Branch)
		return nil
	case same && strings.HasPrefix(pull.Head, "docent/"):
		run.Reason = fmt.Sprintf("#%d is a job's own", run.Pull)
		return nil
	}
	docs, err := r.Documentation.Pages(ctx, p)
	if err != nil {
		return fmt.Errorf("read the documentation of %s: %w", p.ID, err)
	}
	x, err := affected.NewIndex(ctx, docs)
	if err != nil {
		return err
	}
	o := affected.Options{Message: pull.Title}
	if same {
		o.Docs = p.DocsDir
	}
	change, err := r.proposed(ctx, code, readable, o.Docs, diff)
	if err != nil {
		return fmt.Errorf("read the code of %s: %w", au.Repository, err)
	}
	o.Alive = change.Alive
	found := x.Find(affected.Parse(change.Diff), o)
	run.Commit = pull.Commit
	run.Reason = fmt.Sprintf("#%d at %.12s: %d pages named", run.Pull, pull.Commit, len(found.Findings))
	r.Log.Info("commented on a pull request with the pages it affects", "project", p.ID, "automation", au.ID, "pull", pull.Link, "commit", pull.Commit,
		"pages", len(found.Findings))
	return r.Code.Say(ctx, code, run.Pull, "check-"+string(au.ID), found.Markdown(nil), len(found.Findings) > 0)
}
