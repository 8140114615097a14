// Package work provides the pages about what the agent does: jobs and pull requests, with the comments on them.
package work

import (
	"docent/actors/job"
	"docent/web/console"
)

// Deps is what the pages work with.
type Deps struct {
	Catalog Catalog
	Jobs    job.Asker
	Work    Work
	Models  Models
	Pulls   Pulls
}

type handler struct {
	*console.Server
	Deps
}

const project = console.ProjectPath

// Routes returns the pages, and what their forms do.
func Routes(s *console.Server, d Deps) []console.Route {
	h := &handler{Server: s, Deps: d}
	return []console.Route{
		// Pull requests of the built-in host: anyone with the link may read.
		console.Get("/pulls/:id", console.Anybody, h.showPull),          // also {id}.diff and {id}.patch
		console.Post("/pulls/:id/merge", console.SignedIn, h.mergePull), // and an editor's role in the project's organization
		console.Post("/pulls/:id/close", console.SignedIn, h.closePull),
		console.Post("/pulls/:id/revert", console.SignedIn, h.revertPull),
		console.Post("/pulls/:id/comment", console.SignedIn, h.comment),
		console.Post("/pulls/:id/uncomment", console.SignedIn, h.removeComment),
		console.Post("/pulls/:id/send", console.SignedIn, h.sendComments),

		// The agent
		console.Get(project+"/jobs", console.Viewer, h.showJobs),
		console.Get(project+"/jobs/live", console.Viewer, h.liveJobs),
		console.Get(project+"/jobs/new", console.Editor, h.showNewJob),
		console.Post(project+"/jobs/create", console.Editor, h.createJob),
		console.Get(project+"/jobs/:id", console.Viewer, h.showJob),
		console.Get(project+"/jobs/:id/live", console.Viewer, h.liveJob),
		console.Get(project+"/jobs/:id/steps/:seq", console.Viewer, h.showStep),
		console.Post(project+"/jobs/:id/message", console.Editor, h.followUp),
		console.Post(project+"/jobs/:id/cancel", console.Editor, h.cancelJob),
		console.Post(project+"/jobs/:id/archive", console.Editor, h.archiveJob),
		console.Post(project+"/jobs/:id/carry-out", console.Editor, h.carryOut),
		console.Get(project+"/pulls", console.Viewer, h.showPulls),
		console.Get(project+"/pulls/live", console.Viewer, h.livePulls),
	}
}
