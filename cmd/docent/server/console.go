package server

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/cmd/docent/build"
	"docent/cmd/docent/config"
	"docent/internal/health"
	"docent/persistence/catalog"
	"docent/persistence/quota"
	"docent/router"
	"docent/router/oauth"
	"docent/router/ownkey"
	"docent/router/readertoken"
	"docent/search/sources"
	"docent/web"
	"docent/web/oidc"
	"docent/web/people"
	"docent/web/projects"
)

// newPages builds the pages over the packages below.
func (a *Server) newPages(secret []byte) (*web.Server, error) {
	c := a.config
	a.readerTokens = readertoken.New(a.Stores.Secrets.Read, c.Targets(), c.Now, a.Log)
	a.clients = oauth.New(oauth.Deps{Catalog: a.Stores.Catalog, Readers: a.readerTokens, Secret: secret,
		PublicURL: c.PublicURL, Now: c.Now})
	a.closers = append(a.closers, func() error { a.Operator.Wait(); return nil })
	deps := web.Deps{
		Catalog: a.Stores.Catalog, Pulls: a.Stores.Hub, Projects: conditions{a}, Allowances: allowances{a},
		Threads: a.System.Threads(), Jobs: a.System.Jobs(), Work: a.starter,
		Log: a.Log, Now: a.config.Now, Version: build.Get().Version, Secret: secret, PublicURL: a.config.PublicURL, Clients: a.clients,
		Cell:       a.Stores.Cells.Pages.Do,
		PreviewKey: func(p api.Project, now time.Time) string { return ownkey.Preview(secret, p, now) },
	}
	a.Operator.Console(&deps)
	signIn(a.config, &deps)
	a.playground(&deps)
	a.insights(&deps)
	a.amongNodes(&deps)
	return web.New(deps)
}

// allowances are what is left of the quotas that the API counts.
type allowances struct{ *Server }

func (a *Server) now() time.Time {
	if a.config.Now != nil {
		return a.config.Now()
	}
	return time.Now()
}

func (a allowances) left(uses []quota.Use, of ...string) []projects.Allowance {
	out := make([]projects.Allowance, len(uses))
	for i, u := range uses {
		left, reset := a.Journal.Quotas().Remaining(a.now(), u)
		out[i] = projects.Allowance{Of: of[i], Limit: u.Limit, Left: left, Reset: reset.Round(time.Second)}
	}
	return out
}

func (a allowances) OfProject(p api.Project) []projects.Allowance {
	jobs, organization := router.ProjectUses(p, a.config.Limits)
	return a.left([]quota.Use{jobs, organization}, "Instructions to the agent, this hour",
		"Questions of the organization, this hour")
}

func (a allowances) OfKey(p api.Project, k api.Key) []projects.Allowance {
	if !k.Reads() {
		return nil
	}
	return a.left([]quota.Use{router.KeyUse(p, a.config.Limits, k.ID)}, "questions this month")
}

// conditions tells how what projects stand on is.
type conditions struct{ *Server }

func (c conditions) Condition(ctx context.Context, p api.Project) (projects.Condition, error) {
	out := projects.Condition{Commit: c.Stores.Library.Commit(p.ID), Address: c.Stores.Library.Address(p.ID),
		Model: c.models.Name(p.Model)}
	out.Pages, out.Sections = c.Stores.Library.Size(p.ID)
	if r, ok := c.Stores.Source.LastReading(p.ID); ok {
		out.Read = r.At
		if r.Err != nil {
			out.Failure = r.Err.Error()
		}
	}
	if check, _, ok := c.Tasks.LastCheck(p.ID); ok {
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
				m.Problem = "the endpoint gives none" // the operator sees why
			}
			out.Meaning = append(out.Meaning, strings.TrimPrefix(m.Index+": ", string(p.ID)+": ")+health.MeaningLine(m))
		}
	}
	for _, q := range c.questionsStatus() {
		if id, _ := api.SplitSource(api.ProjectID(q.Index)); id == p.ID {
			out.Questions = append(out.Questions, strings.TrimPrefix(q.Index+": ", string(p.ID)+": ")+health.QuestionsLine(q))
		}
	}
	var err error
	out.Limits, err = c.limits(ctx, p)
	return out, err
}

// limits are those of questions and jobs, as they are used now.
func (c conditions) limits(ctx context.Context, p api.Project) ([]projects.Allowance, error) {
	keys, err := c.Stores.Catalog.Keys(ctx, catalog.KeyQuery{Project: p.ID})
	if err != nil {
		return nil, err
	}
	jobs, organization := router.ProjectUses(p, c.config.Limits)
	out := allowances(c).left([]quota.Use{jobs, organization}, "Jobs of the project in an hour",
		"Questions of the organization in an hour")
	for _, k := range keys {
		if k.Reads() && k.RevokedAt == nil && (k.ExpiresAt == nil || c.now().Before(*k.ExpiresAt)) {
			of := allowances(c).left([]quota.Use{router.KeyUse(p, c.config.Limits, k.ID)},
				"Questions with the key "+cmp.Or(k.Name, string(k.ID))+" in this month")
			of[0].Key = k.ID
			out = append(out, of...)
		}
	}
	return out, nil
}

// playground gives the pages what they search and ask with.
func (a *Server) playground(deps *web.Deps) {
	deps.Readers, deps.Tries, deps.Models = readers{a}, a.knownThreads(), a.models
	deps.Finder = sources.Documents{Library: a.Stores.Library, Reader: a.Stores.Source}
}

// readers puts the console's questions where readers' questions go: through the edge, which is built after the pages.
type readers struct{ app *Server }

// Put is the edge's.
func (r readers) Put(ctx context.Context, client netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn,
	error) {
	return r.app.Edge.Put(ctx, client, id, ask)
}

// signIn gives the pages the provider of OpenID Connect, where there is one.
func signIn(c config.Config, d *web.Deps) {
	if c.OIDC.Issuer == "" {
		return
	}
	d.Provider = oidc.New(oidc.Config{Name: c.OIDC.Name, Issuer: c.OIDC.Issuer, ClientID: c.OIDC.ClientID,
		ClientSecret: c.OIDC.Secret.Value, Scopes: c.OIDC.Scopes, Now: c.Now})
	d.Newcomers = people.Newcomers{Domains: c.OIDC.Domains, Org: api.OrgID(c.OIDC.Organization), Role: api.Role(c.OIDC.Role)}
}
