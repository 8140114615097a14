package server

import (
	"time"

	"docent/actors"
	"docent/actors/gaps"
	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/actors/pulls/review"
	"docent/actors/reports"
	"docent/actors/written"
	"docent/api"
	"docent/cmd/docent/operator"
	"docent/forge"
	"docent/model/registry"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/search"
	"docent/search/sources"
	"docent/web"
)

// jobPatience is how long a page waits for a job's actor.
const jobPatience = 15 * time.Second

// openInsights makes what gives jobs to the agent from pages, follows what the documentation lacks, and reports on it
// each week.
func (a *Server) openInsights(ids *api.IDs, docs sources.Documents) (err error) {
	a.starter = startjob.Starter{
		Gate:   startjob.Gate{Jobs: a.System.Jobs(), Claims: a.Journal, Now: a.config.Now, Timeout: jobPatience},
		Quotas: a.Journal.Quotas(), Models: a.models, IDs: ids, ProjectHour: a.config.Limits.ProjectHour,
	}
	a.topics, err = gaps.New(gaps.Deps{Catalog: a.Stores.Catalog, Documents: docs, Model: a.models, Starter: a.starter,
		Jobs: a.knownJobs(), Pulls: operator.Repositories{Hub: a.Stores.Hub}, Now: a.config.Now, Log: a.Log})
	if err != nil {
		return err
	}
	a.reports, err = reports.New(reports.Deps{Catalog: a.Stores.Catalog, Topics: a.topics, Journal: a.Journal,
		Now: a.config.Now, Log: a.Log, PublicURL: a.config.PublicURL, Tasks: a.System.Tasks()})
	if err != nil {
		return err
	}
	a.reviews, err = review.New(review.Deps{Catalog: a.Stores.Catalog, Hosts: a.Stores.Hub, Jobs: a.System.Jobs(),
		Starter: a.starter, IDs: ids, Now: a.config.Now, Log: a.Log, Owns: a.nodes.Owns, Tasks: a.System.Tasks(), Cell: a.Stores.Cells.Reading.Do})
	if err != nil {
		return err
	}
	a.upkeep.metrics.MustRegister(a.reviews)
	if q := a.config.Questions; q.Model != "" {
		a.written, err = written.New(written.Deps{Catalog: a.Stores.Catalog, Library: a.Stores.Library, Models: a.models,
			Model: q.Model, DayTokens: q.DayTokens, DayCost: int64(q.DayCost * 1e4), Tasks: a.System.Tasks(), Now: a.config.Now, Log: a.Log})
		if err != nil {
			return err
		}
	}
	return a.openWebhooks()
}

// insights gives the pages what those on questions, gaps and reports need.
func (a *Server) insights(deps *web.Deps) {
	deps.Topics, deps.Reports, deps.Secrets = a.topics, a.reports, a.Stores.Secrets
}

// Each port with what serves it.
var (
	_ job.Asker       = (*actors.Jobs)(nil)
	_ startjob.Claims = journal.Store(nil)
	_ startjob.Quotas = journal.Quotas(nil)
	_ startjob.Models = (*registry.Registry)(nil)
	_ gaps.Catalog    = (*catalog.Catalog)(nil)
	_ gaps.Documents  = sources.Documents{}
	_ gaps.Model      = (*registry.Registry)(nil)
	_ gaps.Starter    = startjob.Starter{}
	_ gaps.Pulls      = operator.Repositories{Hub: (*forge.Hub)(nil)}
	_ review.Catalog  = (*catalog.Catalog)(nil)
	_ review.Hosts    = (*forge.Hub)(nil)
	_ review.Starter  = startjob.Starter{}
	_ reports.Catalog = (*catalog.Catalog)(nil)
	_ reports.Topics  = (*gaps.Tracker)(nil)
	_ reports.Journal = journal.Store(nil)
	_ written.Catalog = (*catalog.Catalog)(nil)
	_ written.Library = (*search.Library)(nil)
)
