package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/forge"
	"docent/health"
	"docent/persistence/catalog"
	"docent/persistence/quota"
	"docent/router"
	"docent/startjob"
	"docent/web"
	"docent/web/oidc"
)

// newPages builds the pages over the rooms below.
func (a *app) newPages(secret []byte) (*web.Server, error) {
	ops := a.stores.operations()
	ops.app = a
	erasing := &erasures{app: a}
	a.closers = append(a.closers, func() error { erasing.running.Wait(); return nil })
	deps := web.Deps{
		Catalog: a.stores.catalog, Pulls: a.stores.hub, People: a.stores.catalog, System: ownSystem{a},
		Setup: projectSetup{app: a, ops: ops}, Tasks: a.tasks, Sources: projectSources{a},
		Figures: a.stores.catalog, Projects: conditions{a},
		Keys: a.stores.catalog, Allowances: allowances{a},
		Conversations: a.stores.catalog, Threads: a.system.Threads(), Eraser: erasing,
		Jobs: a.system.Jobs(), Work: a.starter, Listings: a.stores.catalog, Automations: ownAutomations{a.stores.catalog, a},
		Webhooks: ownWebhooks{a.stores.catalog, a},
		Log:      a.log, Now: a.config.now, Version: buildVersion().Version, Secret: secret, PublicURL: a.config.PublicURL,
		PreviewKey: func(p api.Project, now time.Time) string { return router.PreviewKey(secret, p, now) },
	}
	a.config.signIn(&deps)
	a.playground(&deps)
	a.insights(&deps)
	a.amongNodes(&deps)
	return web.New(deps)
}

// allowances are what is left of the quotas that the API counts.
type allowances struct{ *app }

func (a allowances) left(uses []quota.Use, of ...string) []web.Allowance {
	now := time.Now()
	if a.config.now != nil {
		now = a.config.now()
	}
	out := make([]web.Allowance, len(uses))
	for i, u := range uses {
		left, reset := a.journal.Quotas().Remaining(now, u)
		out[i] = web.Allowance{Of: of[i], Limit: u.Limit, Left: left, Reset: reset.Round(time.Second)}
	}
	return out
}

func (a allowances) OfProject(p api.Project) []web.Allowance {
	jobs, organization := router.ProjectUses(p, a.config.Limits)
	return a.left([]quota.Use{jobs, organization}, "Instructions to the agent, this hour",
		"Questions of the organization, this hour")
}

func (a allowances) OfKey(p api.Project, k api.Key) []web.Allowance {
	if k.Kind != api.AssistantKey {
		return nil
	}
	return a.left([]quota.Use{router.KeyUse(p, a.config.Limits, k.ID)}, "questions this month")
}

// ownSystem is this server, as its operator looks after it.
type ownSystem struct{ *app }

func (s ownSystem) Status() (health.Status, error)              { return s.status() }
func (s ownSystem) Log(n int, level slog.Level) []health.Record { return s.tail.Newest(n, level) }
func (s ownSystem) FollowLog() (<-chan struct{}, func())        { return s.tail.Follow() }
func (s ownSystem) Retry(ctx context.Context, id string) error  { return s.system.Retry(ctx, id) }
func (s ownSystem) BackUp() (dir string, err error)             { return s.backups.Start() }

// conditions tells how what projects stand on is.
type conditions struct{ *app }

func (c conditions) Condition(ctx context.Context, p api.Project) (web.Condition, error) {
	out := web.Condition{Commit: c.stores.library.Commit(p.ID), Address: c.stores.library.Address(p.ID),
		Model: cmp.Or(p.Model, c.config.Model)}
	out.Pages, out.Sections = c.stores.library.Size(p.ID)
	if r, ok := c.stores.source.LastReading(p.ID); ok {
		out.Read = r.At
		if r.Err != nil {
			out.Failure = r.Err.Error()
		}
	}
	if check, _, ok := c.tasks.LastCheck(p.ID); ok {
		out.DeadLinks = len(check.DeadLinks)
	}
	for _, e := range c.models.Endpoints() {
		if slices.Contains(e.Models, out.Model) {
			out.ModelState = e.State
		}
	}
	for _, m := range c.meaningStatus() {
		if id, _ := api.SplitSource(api.ProjectID(m.Index)); id == p.ID {
			if m.Problem != "" {
				m.Problem = "the endpoint gives none" // whoever runs the server sees why
			}
			out.Meaning = append(out.Meaning, strings.TrimPrefix(m.Index+": ", string(p.ID)+": ")+meaningLine(m))
		}
	}
	var err error
	out.Limits, err = c.limits(ctx, p)
	return out, err
}

// limits are those of questions and jobs, as they are used now.
func (c conditions) limits(ctx context.Context, p api.Project) ([]web.LimitUse, error) {
	keys, err := c.stores.catalog.Keys(ctx, catalog.KeyQuery{Project: p.ID})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if c.config.now != nil {
		now = c.config.now()
	}
	var out []web.LimitUse
	add := func(name string, key api.KeyID, use quota.Use) {
		if use.Limit > 0 {
			left, _ := c.journal.Quotas().Remaining(now, use)
			out = append(out, web.LimitUse{Name: name, Used: use.Limit - left, Limit: use.Limit, Key: key})
		}
	}
	add("Jobs of the project in an hour", "", quota.Use{Key: "project/" + string(p.ID), Window: quota.SlidingHour,
		Limit: cmp.Or(p.Limits.ProjectHour, c.config.Limits.ProjectHour)})
	add("Questions of the organization in an hour", "", quota.Use{Key: "org/" + string(p.Org), Window: quota.SlidingHour,
		Limit: cmp.Or(p.Limits.OrgHour, c.config.Limits.OrgHour)})
	for _, k := range keys {
		if k.Kind == api.AssistantKey && k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt)) {
			add("Questions with the key "+cmp.Or(k.Name, string(k.ID))+" in this month", k.ID, quota.Use{
				Key: "key/" + string(k.ID), Window: quota.CalendarMonth,
				Limit: cmp.Or(p.Limits.KeyMonth, c.config.Limits.KeyMonth)})
		}
	}
	return out, nil
}

// ownAutomations are the automations of this server.
type ownAutomations struct {
	*catalog.Catalog
	app *app
}

func (o ownAutomations) operations() *operations {
	ops := o.app.stores.operations()
	ops.app = o.app
	return ops
}

func (o ownAutomations) AddAutomation(ctx context.Context, a api.Automation) (api.Automation, error) {
	return o.operations().addAutomation(ctx, a, nil)
}

func (o ownAutomations) RunAutomation(ctx context.Context, id api.AutomationID) error {
	_, err := o.operations().runAutomation(ctx, automationParams{ID: string(id)}, nil)
	return err
}

func (o ownAutomations) PauseAutomation(ctx context.Context, id api.AutomationID, paused bool) error {
	return o.app.automations.Pause(ctx, id, paused)
}

// Each port of the pages with what serves it.
var (
	_ web.Catalog  = (*catalog.Catalog)(nil)
	_ web.Pulls    = (*forge.Hub)(nil)
	_ web.People   = (*catalog.Catalog)(nil)
	_ web.System   = ownSystem{}
	_ web.Provider = (*oidc.Provider)(nil)
	_ web.Figures  = (*catalog.Catalog)(nil)
	_ web.Projects = conditions{}
	_ web.Keys     = (*catalog.Catalog)(nil)

	_ web.Work        = startjob.Starter{}
	_ web.Listings    = (*catalog.Catalog)(nil)
	_ web.Automations = ownAutomations{}
)
