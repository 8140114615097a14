package main

import (
	"time"

	"docent/actors"
	"docent/api"
	"docent/forge"
	"docent/gaps/tracker"
	"docent/ingest"
	"docent/model/registry"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/review"
	"docent/search"
	"docent/secrets"
	"docent/startjob"
	"docent/web"
	"docent/weekly"
)

// jobPatience is how long a page waits for a job's actor.
const jobPatience = 15 * time.Second

// openInsights makes what gives jobs to the agent from pages, follows what the documentation lacks, and reports on it
// each week.
func (a *app) openInsights(ids *api.IDs, docs ingest.Documents) (err error) {
	a.starter = startjob.Starter{
		Gate:   startjob.Gate{Jobs: a.system.Jobs(), Claims: a.journal, Now: a.config.now, Timeout: jobPatience},
		Quotas: a.journal.Quotas(), Models: a.models, IDs: ids, ProjectHour: a.config.Limits.ProjectHour,
	}
	a.topics, err = tracker.New(tracker.Deps{Catalog: a.stores.catalog, Documents: docs, Model: a.models, Starter: a.starter,
		Jobs: a.knownJobs(), Pulls: repositories{a.stores.hub}, Now: a.config.now, Log: a.log})
	if err != nil {
		return err
	}
	a.reports, err = weekly.New(weekly.Deps{Catalog: a.stores.catalog, Topics: a.topics, Secrets: a.stores.secrets,
		Now: a.config.now, Log: a.log, PublicURL: a.config.PublicURL, Loopback: a.config.ReportLoopback,
		Alone: a.nodes.Alone})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, a.reports.Close)
	a.reviews, err = review.New(review.Deps{Catalog: a.stores.catalog, Hosts: a.stores.hub, Jobs: a.system.Jobs(),
		Starter: a.starter, IDs: ids, Now: a.config.now, Log: a.log, Here: a.here()})
	if err != nil {
		return err
	}
	a.upkeep.metrics.MustRegister(a.reviews)
	a.closers = append(a.closers, a.reviews.Close)
	return a.openWebhooks()
}

// insights gives the pages what those on questions, gaps and reports need.
func (a *app) insights(deps *web.Deps) {
	deps.Usage, deps.Topics, deps.Indexes, deps.Kinds = a.stores.catalog, a.topics, a.stores.library, a.models
	deps.Reports, deps.ReportStore, deps.ReportSecrets = a.reports, a.stores.catalog, a.stores.secrets
}

// Each port with what serves it.
var (
	_ startjob.Jobs     = (*actors.Jobs)(nil)
	_ startjob.Claims   = journal.Store(nil)
	_ startjob.Quotas   = journal.Quotas(nil)
	_ startjob.Models   = (*registry.Registry)(nil)
	_ tracker.Catalog   = (*catalog.Catalog)(nil)
	_ tracker.Documents = ingest.Documents{}
	_ tracker.Model     = (*registry.Registry)(nil)
	_ tracker.Starter   = startjob.Starter{}
	_ tracker.Jobs      = (*actors.Jobs)(nil)
	_ tracker.Pulls     = repositories{(*forge.Hub)(nil)}
	_ review.Catalog    = (*catalog.Catalog)(nil)
	_ review.Hosts      = (*forge.Hub)(nil)
	_ review.Jobs       = (*actors.Jobs)(nil)
	_ review.Starter    = startjob.Starter{}
	_ weekly.Catalog    = (*catalog.Catalog)(nil)
	_ weekly.Topics     = (*tracker.Tracker)(nil)
	_ weekly.Secrets    = (*secrets.Store)(nil)
	_ web.Usage         = (*catalog.Catalog)(nil)
	_ web.Topics        = (*tracker.Tracker)(nil)
	_ web.Indexes       = (*search.Library)(nil)
	_ web.Kinds         = (*registry.Registry)(nil)
	_ web.Reports       = (*weekly.Reports)(nil)
	_ web.ReportStore   = (*catalog.Catalog)(nil)
	_ web.ReportSecrets = (*secrets.Store)(nil)
)
