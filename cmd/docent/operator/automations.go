package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"docent/actors/automation"
	"docent/agent/affected"
	"docent/agent/check"
	"docent/agent/codebase"
	"docent/api"
	"docent/forge"
	"docent/internal/glob"
	"docent/persistence/catalog"
)

// AutomationParams name an automation.
type AutomationParams struct {
	Project api.ProjectID `json:"project,omitempty"`
	ID      string        `json:"id,omitempty"` // or its name
}

// AddAutomation adds an automation, whose prompt file has to be there.
func (o *Service) AddAutomation(ctx context.Context, a api.Automation) (api.Automation, error) {
	now := time.Now().UTC()
	a.ID, a.CreatedAt = api.AutomationID(api.NewID(api.AutomationPrefix, now)), now
	if err := a.Validate(); err != nil {
		return a, err
	}
	project, err := o.stores.Catalog.Project(ctx, a.Project)
	if err != nil {
		return a, err
	}
	if a, err = automation.Check(ctx, Repositories{o.stores.Hub}, project, a, now); err != nil {
		return a, err
	}
	if code, ok := project.CodeSource(a.Repository); ok && !a.Check { // what is pushed from now on counts
		if tip, _, err := o.stores.Hub.Sync(ctx, code, func(string) {}); err == nil {
			a.SeenCode = tip.Commit
		}
	}
	if err := o.stores.Catalog.AddAutomation(ctx, a); err != nil {
		return a, err
	}
	if o.server != nil {
		o.server.Automations.Wake()
	}
	return a, nil
}

// findAutomation takes an id, or the name of one of a project.
func (o *Service) findAutomation(ctx context.Context, p AutomationParams) (api.Automation, error) {
	if api.ValidID(api.AutomationPrefix, p.ID) {
		return o.stores.Catalog.Automation(ctx, api.AutomationID(p.ID))
	}
	list, err := o.stores.Catalog.Automations(ctx, p.Project)
	if err != nil {
		return api.Automation{}, err
	}
	var found []api.Automation
	for _, a := range list {
		if a.Name == p.ID {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return api.Automation{}, fmt.Errorf("automation %q: %w", p.ID, api.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return api.Automation{}, &api.StateError{Kind: api.ErrConflict,
		Reason: fmt.Sprintf("%d projects have an automation %q: name one with --project", len(found), p.ID)}
}

func (o *Service) listAutomations(ctx context.Context, p AutomationParams) ([]api.Automation, error) {
	return o.stores.Catalog.Automations(ctx, p.Project)
}

func (o *Service) removeAutomation(ctx context.Context, p AutomationParams) error {
	a, err := o.findAutomation(ctx, p)
	if err != nil {
		return err
	}
	return o.stores.Catalog.RemoveAutomation(ctx, a.ID)
}

// runAutomation accepts a run now. Without a server, the next one carries it out.
func (o *Service) runAutomation(ctx context.Context, p AutomationParams) (api.Automation, error) {
	a, err := o.findAutomation(ctx, p)
	if err != nil {
		return a, err
	}
	now := time.Now().UTC()
	run := api.AutomationRun{Automation: a.ID, Trigger: api.TriggerManual, At: now, Commit: a.Seen,
		Key: string(a.ID) + " manual " + api.NewID("", now)}
	unchanged := func(*api.Automation) {}
	if o.server != nil {
		err = o.server.Automations.Accept(ctx, run, unchanged)
	} else {
		_, _, err = o.stores.Catalog.BeginRun(ctx, run, unchanged)
	}
	if err != nil {
		return a, err
	}
	return o.stores.Catalog.Automation(ctx, a.ID)
}

// ownAutomations are the automations of this server.
type ownAutomations struct {
	*catalog.Catalog
	ops *Service
}

func (o ownAutomations) AddAutomation(ctx context.Context, a api.Automation) (api.Automation, error) {
	return o.ops.AddAutomation(ctx, a)
}

func (o ownAutomations) RunAutomation(ctx context.Context, id api.AutomationID) error {
	_, err := o.ops.runAutomation(ctx, AutomationParams{ID: string(id)})
	return err
}

func (o ownAutomations) PauseAutomation(ctx context.Context, id api.AutomationID, paused bool) error {
	return o.ops.server.Automations.Pause(ctx, id, paused)
}

// Repositories give automations what they need of the documentation's repositories.
type Repositories struct{ *forge.Hub }

func (r Repositories) File(ctx context.Context, p api.Project, path string) ([]byte, string, error) {
	tip, _, err := r.Sync(ctx, p, func(string) {})
	if err != nil {
		return nil, "", err
	}
	tree, err := r.Tree(ctx, p, tip.Commit)
	if err != nil {
		return nil, "", err
	}
	data, err := tree.Read(ctx, path)
	return data, tip.Commit, err
}

// Pages are the files of the documentation's folder.
func (r Repositories) Pages(ctx context.Context, p api.Project) (affected.Docs, error) {
	tip, _, err := r.Sync(ctx, p, func(string) {})
	if err != nil {
		return affected.Docs{}, err
	}
	tree, err := r.Tree(ctx, p, tip.Commit)
	if err != nil {
		return affected.Docs{}, err
	}
	files, err := tree.Files(ctx)
	docs := affected.Docs{Read: func(path string) ([]byte, error) { return tree.Read(ctx, path) }}
	leftOut := glob.NewList(p.Exclude...)
	for _, f := range files {
		rel, inside := strings.CutPrefix("/"+f.Path, path.Join("/", p.DocsDir, "/")+"/")
		if p.DocsDir == "" || p.DocsDir == "." {
			rel, inside = f.Path, true
		}
		if by := leftOut.LastAsGit(rel); inside && f.Size <= maxCheckedPage && (by == nil || by.Keep) {
			docs.Files = append(docs.Files, f.Path)
		}
	}
	return docs, err
}

// OpenCode reads a source of code: as it is now.
func (r Repositories) OpenCode(ctx context.Context, source api.Project) (*codebase.Code, error) {
	code, _, err := r.codeAt(ctx, source, "")
	return code, err
}

// PullDiff is what a pull request of a source's repository changes.
func (r Repositories) PullDiff(ctx context.Context, source api.Project, number int) (string, error) {
	_, diff, err := r.PullChange(ctx, source, number)
	return diff, err
}

// codeAt is the code of a source at a commit, or at the head of its branch if that is not there.
func (r Repositories) codeAt(ctx context.Context, source api.Project, commit string) (*codebase.Code, *forge.Tree, error) {
	tip, _, err := r.Sync(ctx, source, func(string) {})
	if err != nil {
		return nil, nil, err
	}
	tree, err := r.Tree(ctx, source, cmp.Or(commit, tip.Commit))
	if errors.Is(err, api.ErrNotFound) {
		tree, err = r.Tree(ctx, source, tip.Commit)
	}
	if err != nil {
		return nil, nil, err
	}
	code, err := codebase.Open(ctx, tree, source)
	return code, tree, err
}

// Change is what a commit of a code source changes. A commit that is not on the source's branch is told as the branch's head.
func (r Repositories) Change(ctx context.Context, source api.Project, from, to string) (automation.Change, error) {
	code, tree, err := r.codeAt(ctx, source, to)
	if err != nil {
		return automation.Change{}, err
	}
	diff, commits, err := tree.Since(ctx, from, maxCommits)
	for i := range commits {
		commits[i].Subject = check.WithoutSecrets(commits[i].Subject)
	}
	return automation.Change{Diff: code.Diff(diff.String()), Commits: commits, Alive: code.Alive(ctx, affected.Diff{}, "")}, err
}

// Proposed is a change that a pull request for the code's branch makes.
func (r Repositories) Proposed(ctx context.Context, source api.Project, docs, diff string) (automation.Change, error) {
	code, _, err := r.codeAt(ctx, source, "")
	if err != nil {
		return automation.Change{}, err
	}
	diff = affected.Only(diff, func(file string) bool { return code.Shows(file) || !affected.IsCode(file) && !affected.Secret(file) })
	return automation.Change{Diff: diff, Alive: code.Alive(ctx, affected.Parse(diff), docs)}, nil
}

// maxCommits is how many commits of a change are read.
const maxCommits = 200

// maxCheckedPage is the size of the largest page that changes of code are held against.
const maxCheckedPage = 2 << 20

func (r Repositories) PullState(ctx context.Context, p api.Project, branch string) (api.PullState, error) {
	tip, err := r.Tip(ctx, p, branch)
	return tip.Pull, err
}
