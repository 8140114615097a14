package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
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
				return search.Report{}, err
			}
			o.stores.source.Forget(p.ID)
			return o.stores.source.Refresh(ctx, project, progress)
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
			return diff.String(), noPull(p.ID, err)
		})
	case opPullMerge:
		return perform(params, func(p pullParams) (api.PullRequest, error) {
			merged, err := o.stores.hub.Merge(ctx, p.ID)
			return merged, noPull(p.ID, err)
		})
	case opPullClose:
		return perform(params, func(p pullParams) (api.PullRequest, error) {
			closed, err := o.stores.hub.Close(ctx, p.ID)
			return closed, noPull(p.ID, err)
		})
	}
	return o.maintain(ctx, name, params, progress)
}

// noPull says which pull request there is not, and where their ids are.
func noPull(id string, err error) error {
	if errors.Is(err, api.ErrNotFound) {
		return fmt.Errorf("pull request %q: %w; `docent pull list` lists them", id, api.ErrNotFound)
	}
	return err
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
	o.stores.source.Forget(p.ID)
	report, err := o.stores.source.Refresh(ctx, p, progress)
	if err == nil {
		err = o.checkDocsDir(ctx, p, report.Commit)
	}
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
	report, err := o.stores.source.Refresh(ctx, project, progress)
	if err != nil {
		return search.Check{}, err
	}
	return o.stores.source.Check(ctx, project, report.Commit)
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

// checkDocsDir says which folders hold pages where the one that a project names holds none: the name is mistyped.
func (o *operations) checkDocsDir(ctx context.Context, p api.Project, commit string) error {
	if p.DocsDir == "" {
		return nil
	}
	tree, err := o.stores.hub.Tree(ctx, p, commit)
	if err != nil {
		return err
	}
	files, err := tree.Files(ctx)
	if err != nil {
		return err
	}
	var pages []string
	for _, f := range files {
		if !site.IsPage(f.Path) {
			continue
		}
		if strings.HasPrefix(f.Path, p.DocsDir+"/") {
			return nil
		}
		pages = append(pages, f.Path)
	}
	message := fmt.Sprintf("the folder %q holds no page", p.DocsDir)
	if len(pages) == 0 {
		message += ", and neither does any other folder of the source"
	} else {
		message += "; these folders do: " + pageFolders(pages)
	}
	return &api.InvalidError{Problems: []api.Problem{{Field: "docsDir", Message: message}}}
}

// pageFolders names the folders that hold pages, those with most first: of each part of the source the deepest folder that has
// all of its pages.
func pageFolders(pages []string) string {
	const most = 5
	parts := map[string][]string{}
	for _, page := range pages {
		part, _, below := strings.Cut(page, "/")
		if !below {
			part = "" // the root
		}
		parts[part] = append(parts[part], page)
	}
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(parts[b]), len(parts[a])), cmp.Compare(a, b))
	})
	var said []string
	for _, part := range names[:min(most, len(names))] {
		folder := "the root (leave out --docs-dir)"
		if part != "" {
			folder = path.Dir(parts[part][0])
			for _, page := range parts[part] {
				for !strings.HasPrefix(page, folder+"/") {
					folder = path.Dir(folder)
				}
			}
		}
		count := "1 page"
		if n := len(parts[part]); n > 1 {
			count = fmt.Sprint(n, " pages")
		}
		said = append(said, folder+": "+count)
	}
	if more := len(names) - most; more > 0 {
		said = append(said, fmt.Sprint("and ", more, " more"))
	}
	return strings.Join(said, ", ")
}

// readAlike is whether two projects' settings differ in nothing that decides what is read and indexed of the documentation.
func readAlike(a, b api.Project) bool {
	a.Name, a.Domain, a.Labels, a.Direct, a.WebhookEnv = b.Name, b.Domain, b.Labels, b.Direct, b.WebhookEnv
	a.Model, a.Deflection, a.Limits, a.Options = b.Model, b.Deflection, b.Limits, b.Options
	a.Org, a.CreatedAt = b.Org, b.CreatedAt
	return reflect.DeepEqual(a, b)
}

func (o *operations) setProject(ctx context.Context, p api.Project, progress Progress) (projectAdded, error) {
	p = p.WithDefaults()
	if err := o.check(p); err != nil {
		return projectAdded{}, err
	}
	old, err := o.stores.catalog.Project(ctx, p.ID)
	if err != nil {
		return projectAdded{}, err
	}
	if commit := o.stores.library.Commit(p.ID); commit != "" && readAlike(old, p) {
		if p, err = o.stores.catalog.UpdateProject(ctx, p); err != nil {
			return projectAdded{}, err
		}
		report, err := o.stores.source.Again(ctx, p, commit, progress)
		return read(p, report, ""), err
	}
	open, err := o.stores.hub.Rights(ctx, p)
	if err != nil {
		return projectAdded{}, err
	}
	if p.DocsDir != "" {
		tip, _, err := o.stores.hub.Sync(ctx, p, func(text string) { progress(text, 0, 0) })
		if err == nil {
			err = o.checkDocsDir(ctx, p, tip.Commit)
		}
		if err != nil {
			return projectAdded{}, err
		}
	}
	if p, err = o.stores.catalog.UpdateProject(ctx, p); err != nil {
		return projectAdded{}, err
	}
	o.stores.source.Forget(p.ID)
	report, err := o.stores.source.Refresh(ctx, p, progress)
	return read(p, report, open), err
}

func (o *operations) removeProject(ctx context.Context, id api.ProjectID) error {
	if err := o.stores.catalog.RemoveProject(ctx, id); err != nil {
		return err
	}
	o.stores.source.Forget(id)
	return o.stores.library.Remove(id)
}

func (o *operations) createKey(ctx context.Context, p keyParams) (keyMade, error) {
	project, err := o.stores.catalog.Project(ctx, p.Project)
	if err != nil {
		return keyMade{}, err
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
