package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"docent/api"
	"docent/forge"
	"docent/persistence"
	"docent/search"
	"docent/site"
)

// The operations of the operator's commands, by name.
const (
	opProjectAdd    = "project.add"
	opProjectSet    = "project.set"
	opProjectList   = "project.list"
	opProjectRemove = "project.remove"
	opProjectCheck  = "project.check"
	opKeyCreate     = "key.create"
	opKeyList       = "key.list"
	opKeyRevoke     = "key.revoke"
	opIndex         = "index"
	opPullList      = "pull.list"
	opPullDiff      = "pull.diff"
	opPullMerge     = "pull.merge"
	opPullClose     = "pull.close"
)

type (
	projectParams struct {
		ID api.ProjectID `json:"id"`
	}
	projectAdded struct {
		api.Project
		Commit   string `json:"commit"`
		Pages    int    `json:"pages"`
		Sections int    `json:"sections"`
		// What the site's files say.
		LeftOut     int            `json:"leftOut"`
		Address     string         `json:"address,omitempty"` // where readers find the documentation
		AddressFrom string         `json:"addressFrom,omitempty"`
		Warnings    []site.Warning `json:"warnings,omitempty"`
		// Open is what the code host does not tell of the credentials.
		Open string `json:"open,omitempty"`
	}
	keyParams struct {
		ID        api.KeyID     `json:"id,omitempty"`
		Project   api.ProjectID `json:"project"`
		Kind      api.KeyKind   `json:"kind"`
		Name      string        `json:"name"`
		ExpiresAt *time.Time    `json:"expiresAt"`
		AllowIP   []string      `json:"allowIp"`
		Scopes    []string      `json:"scopes"`
		Origins   []string      `json:"origins"`
	}
	keyMade struct {
		ID   api.KeyID   `json:"id"`
		Key  string      `json:"key"`
		Kind api.KeyKind `json:"kind"`
		Name string      `json:"name,omitempty"`
	}
	pullParams struct {
		ID      string        `json:"id,omitempty"`
		Project api.ProjectID `json:"project,omitempty"`
		State   api.PullState `json:"state,omitempty"`
	}
)

// operations are what an operator does to a data directory. They act on the stores of the process that they run in.
type operations struct {
	stores *stores
	app    *app // where they run in the serving process
}

// run performs one operation by name.
func (o *operations) run(ctx context.Context, name string, params json.RawMessage, progress Progress) (json.RawMessage, error) {
	switch name {
	case opProjectAdd:
		return perform(params, func(p api.Project) (projectAdded, error) { return o.addProject(ctx, p, progress) })
	case opProjectSet:
		return perform(params, func(p api.Project) (projectAdded, error) { return o.setProject(ctx, p, progress) })
	case opProjectList:
		return perform(params, func(struct{}) ([]api.Project, error) { return o.stores.catalog.Projects(ctx) })
	case opProjectCheck:
		return perform(params, func(p projectParams) (search.Check, error) { return o.checkProject(ctx, p.ID, progress) })
	case opProjectRemove:
		return perform(params, func(p projectParams) (struct{}, error) { return struct{}{}, o.removeProject(ctx, p.ID) })
	case opKeyCreate:
		return perform(params, func(p keyParams) (keyMade, error) { return o.createKey(ctx, p) })
	case opKeyList:
		return perform(params, func(p projectParams) ([]api.Key, error) {
			return o.stores.catalog.Keys(ctx, persistence.KeyQuery{Project: p.ID})
		})
	case opKeyRevoke:
		return perform(params, func(p keyParams) (struct{}, error) {
			return struct{}{}, o.stores.catalog.RevokeKey(ctx, p.ID, time.Now())
		})
	case opIndex:
		return perform(params, func(p projectParams) (search.Report, error) {
			project, err := o.stores.catalog.Project(ctx, p.ID)
			if err != nil {
				return search.Report{}, fmt.Errorf("project %q: %w", p.ID, err)
			}
			o.stores.source.guard.forget(p.ID)
			return o.stores.source.refresh(ctx, project, progress)
		})
	case opAutomationAdd:
		return perform(params, func(a api.Automation) (api.Automation, error) { return o.addAutomation(ctx, a) })
	case opAutomationList:
		return perform(params, func(p automationParams) ([]api.Automation, error) {
			return o.stores.catalog.Automations(ctx, p.Project)
		})
	case opAutomationRemove:
		return perform(params, func(p automationParams) (struct{}, error) { return struct{}{}, o.removeAutomation(ctx, p) })
	case opAutomationRun:
		return perform(params, func(p automationParams) (api.Automation, error) { return o.runAutomation(ctx, p) })
	case opEvaluate:
		return perform(params, func(p evaluateParams) ([]search.Outcome, error) { return o.evaluate(ctx, p) })
	case opPullList:
		return perform(params, func(p pullParams) ([]api.PullRequest, error) {
			return o.stores.catalog.Pulls(ctx, p.Project, p.State)
		})
	case opPullDiff:
		return perform(params, func(p pullParams) (string, error) {
			diff, err := o.stores.hub.Diff(ctx, p.ID)
			return diff.String(), err
		})
	case opPullMerge:
		return perform(params, func(p pullParams) (api.PullRequest, error) { return o.stores.hub.Merge(ctx, p.ID) })
	case opPullClose:
		return perform(params, func(p pullParams) (api.PullRequest, error) { return o.stores.hub.Close(ctx, p.ID) })
	}
	return o.maintain(ctx, name, params, progress)
}

// perform decodes the parameters of an operation and encodes its result.
func perform[P, R any](params json.RawMessage, do func(P) (R, error)) (json.RawMessage, error) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("decode the operation's parameters: %w", err)
	}
	result, err := do(p)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// addProject reads and indexes the documentation before the project is in the catalogue: a source that cannot be read
// leaves no project behind.
func (o *operations) addProject(ctx context.Context, p api.Project, progress Progress) (projectAdded, error) {
	o.stores.adding.Lock() // two additions of one id must not both read into its repository
	defer o.stores.adding.Unlock()
	p = p.WithDefaults()
	if err := o.check(p); err != nil {
		return projectAdded{}, err
	}
	for _, taken := range []func() (api.Project, error){
		func() (api.Project, error) { return o.stores.catalog.Project(ctx, p.ID) },
		func() (api.Project, error) { return o.stores.catalog.ProjectByDomain(ctx, p.Domain) },
	} {
		if _, err := taken(); err == nil {
			_, err = o.stores.catalog.AddProject(ctx, p) // says what is taken
			return projectAdded{}, err
		} else if !errors.Is(err, api.ErrNotFound) {
			return projectAdded{}, err
		}
	}
	open, err := o.stores.hub.Rights(ctx, p)
	if err != nil {
		return projectAdded{}, err
	}
	o.stores.source.guard.forget(p.ID)
	report, err := o.stores.source.refresh(ctx, p, progress)
	if err != nil {
		return projectAdded{}, errors.Join(err, o.stores.library.Remove(p.ID))
	}
	added, err := o.stores.catalog.AddProject(ctx, p)
	return read(added, report, open), err
}

// read is a project with what reading its documentation has found.
func read(p api.Project, r search.Report, open string) projectAdded {
	return projectAdded{Project: p, Commit: r.Commit, Pages: r.Pages, Sections: r.Sections,
		LeftOut: r.LeftOut, Address: r.SiteURL, AddressFrom: r.SiteURLFrom, Warnings: r.Warnings, Open: open}
}

// checkProject brings the index up to date and says what is public of the same commit.
func (o *operations) checkProject(ctx context.Context, id api.ProjectID, progress Progress) (search.Check, error) {
	project, err := o.stores.catalog.Project(ctx, id)
	if err != nil {
		return search.Check{}, err
	}
	report, err := o.stores.source.refresh(ctx, project, progress)
	if err != nil {
		return search.Check{}, err
	}
	return o.stores.source.check(ctx, project, report.Commit)
}

// check says what is wrong with a project's settings.
func (o *operations) check(p api.Project) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := site.CheckPatterns(p); err != nil {
		return err
	}
	if err := forge.Check(p); err != nil {
		return err
	}
	return o.stores.checkModel(p.Model)
}

func (o *operations) setProject(ctx context.Context, p api.Project, progress Progress) (projectAdded, error) {
	p = p.WithDefaults()
	if err := o.check(p); err != nil {
		return projectAdded{}, err
	}
	open, err := o.stores.hub.Rights(ctx, p)
	if err != nil {
		return projectAdded{}, err
	}
	p, err = o.stores.catalog.UpdateProject(ctx, p)
	if err != nil {
		return projectAdded{}, err
	}
	o.stores.source.guard.forget(p.ID)
	report, err := o.stores.source.refresh(ctx, p, progress)
	return read(p, report, open), err
}

func (o *operations) removeProject(ctx context.Context, id api.ProjectID) error {
	if err := o.stores.catalog.RemoveProject(ctx, id); err != nil {
		return err
	}
	o.stores.source.guard.forget(id)
	return o.stores.library.Remove(id)
}

func (o *operations) createKey(ctx context.Context, p keyParams) (keyMade, error) {
	project, err := o.stores.catalog.Project(ctx, p.Project)
	if err != nil {
		return keyMade{}, fmt.Errorf("project %q: %w", p.Project, err)
	}
	now := time.Now().UTC()
	key := api.Key{
		ID: api.KeyID(api.NewID(api.KeyPrefix, now)), Kind: p.Kind, Org: project.Org, Project: project.ID, Name: p.Name,
		Scopes: p.Scopes, AllowIP: p.AllowIP, Origins: p.Origins, CreatedAt: now, ExpiresAt: p.ExpiresAt,
	}
	if err := key.Validate(now); err != nil {
		return keyMade{}, err
	}
	secret := api.NewSecret(p.Kind)
	key.Hint = api.SecretHint(secret)
	if _, err := o.stores.catalog.AddKey(ctx, key, api.HashSecret(secret)); err != nil {
		return keyMade{}, err
	}
	return keyMade{ID: key.ID, Key: secret, Kind: key.Kind, Name: key.Name}, nil
}
