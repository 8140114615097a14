// Package projects provides the pages about projects: their overview, setup, sources, settings, keys, widget, webhooks
// and automations.
package projects

import (
	"time"

	"docent/api"
	"docent/web/console"
)

// Deps is what the pages work with.
type Deps struct {
	Catalog     Catalog
	Setup       Setup
	Tasks       Tasks
	Sources     Sources
	Conditions  Conditions
	Allowances  Allowances
	Automations Automations
	Webhooks    Webhooks
	Secrets     Secrets
	// Readers and Tries put the first question of a new project, and read its answer.
	Readers console.Readers
	Tries   console.Tries
	// PreviewKey is a key with which the widget's preview asks; the preview does not ask if it is nil.
	PreviewKey func(p api.Project, now time.Time) string
}

type handler struct {
	*console.Server
	Deps
	drafts   drafts        // projects that are on their way
	previews chan struct{} // places for reading a site before it is added
}

const project = console.ProjectPath

// Routes returns the pages, and what their forms do.
func Routes(s *console.Server, d Deps) []console.Route {
	h := &handler{Server: s, Deps: d, previews: make(chan struct{}, maxPreviews)}
	return []console.Route{
		console.Get("/", console.Anybody, h.index),

		// The agent
		console.Get(project+"/automations", console.Viewer, h.showAutomations),
		console.Get(project+"/automations/new", console.Owner, h.showNewAutomation),
		console.Post(project+"/automations/create", console.Owner, h.createAutomation),
		console.Get(project+"/automations/:id", console.Viewer, h.showAutomation),
		console.Post(project+"/automations/:id/run", console.Editor, h.runAutomation),
		console.Post(project+"/automations/:id/pause", console.Owner, h.pauseAutomation),
		console.Post(project+"/automations/:id/remove", console.Owner, h.removeAutomation),

		// What other systems are told
		console.Get(project+"/webhooks", console.Owner, h.showHooks),
		console.Post(project+"/webhooks/create", console.Owner, h.addHook),
		console.Get(project+"/webhooks/:id", console.Owner, h.showHook),
		console.Post(project+"/webhooks/:id/test", console.Owner, h.testHook),
		console.Post(project+"/webhooks/:id/pause", console.Owner, h.pauseHook),
		console.Post(project+"/webhooks/:id/replay", console.Owner, h.replayHook),
		console.Post(project+"/webhooks/:id/rotate", console.Owner, h.rotateHook),
		console.Post(project+"/webhooks/:id/remove", console.Owner, h.removeHook),

		// The console
		console.Get("/console", console.SignedIn, h.chooseProject),
		console.Get(project, console.Viewer, h.overview),
		console.Get(project+"/live", console.Viewer, h.liveOverview),
		console.Get(project+"/keys", console.Viewer|console.NotKeys, h.showKeys),
		console.Post(project+"/keys/create", console.Owner|console.NotKeys, h.createKey),
		console.Post(project+"/keys/rotate", console.Owner|console.NotKeys, h.rotateKey),
		console.Post(project+"/keys/revoke", console.Owner|console.NotKeys, h.revokeKey),
		console.Post(project+"/keys/reader-secret", console.Owner|console.NotKeys, h.newReaderSecret),
		console.Post(project+"/keys/reader-secret/retire", console.Owner|console.NotKeys, h.retireReaderSecret),

		// A project, from its source to its keys
		console.Get("/console/setup", console.Operator, h.showSetup),
		console.Post("/console/setup/source", console.Operator, h.setupSource),
		console.Get("/console/setup/:id", console.Operator, h.showDraft),
		console.Get("/console/setup/:id/live", console.Operator, h.setupLive),
		console.Post("/console/setup/:id/look", console.Operator, h.setupLook),
		console.Post("/console/setup/:id/add", console.Operator, h.setupAdd),
		console.Post("/console/setup/:id/cancel", console.Operator, h.setupCancel),
		console.Post("/console/setup/:id/discard", console.Operator, h.setupDiscard),
		console.Get("/console/setup/:id/indexing", console.Operator, h.showIndexing),
		console.Get("/console/setup/:id/question", console.Operator, h.showQuestion),
		console.Post("/console/setup/:id/ask", console.Operator, h.setupAsk),
		console.Get("/console/setup/:id/answer", console.Operator, h.setupAnswer),
		console.Get("/console/setup/:id/model", console.Operator, h.showModelStep),
		console.Get("/console/setup/:id/keys", console.Operator, h.showKeysStep),
		console.Post("/console/setup/:id/create", console.Operator, h.makeKeys),

		// Where the documentation comes from
		console.Get(project+"/sources", console.Viewer, h.showSources),
		console.Post(project+"/sources/reindex", console.Editor, h.reindex),
		console.Post(project+"/sources/check", console.Editor, h.recheck),
		console.Post(project+"/sources/token", console.Owner, h.setToken),
		console.Post(project+"/sources/further", console.Operator, h.addFurther),
		console.Post(project+"/sources/preview", console.Owner, h.previewSite),
		console.Post(project+"/sources/site", console.Owner, h.addSite),
		console.Upload(project+"/sources/upload", console.Owner, h.uploadZip),
		console.Post(project+"/sources/further/:label/set", console.Owner, h.setFurther),
		console.Post(project+"/sources/further/:label/read", console.Editor, h.readFurther),
		console.Post(project+"/sources/further/:label/remove", console.Owner, h.removeFurther),
		console.Get(project+"/sources/task/:task", console.Viewer, h.sourceTask),
		console.Get(project+"/sources/task/:task/live", console.Viewer, h.sourceTaskLive),
		console.Get(project+"/sources/updates/:update", console.Viewer, h.showUpdate),
		console.Get(project+"/sources/updates/:update/live", console.Viewer, h.liveUpdate),
		console.Get(project+"/sources/webhook", console.Viewer, h.showWebhook),
		console.Post(project+"/sources/webhook/new", console.Owner, h.newWebhook),
		console.Post(project+"/sources/webhook/remove", console.Owner, h.removeWebhook),
		console.Post(project+"/sources/webhook/test", console.Owner, h.tryWebhook),
		console.Get(project+"/settings", console.Viewer, h.showSettings),
		console.Post(project+"/settings/change", console.Owner, h.changeSettings),
		console.Post(project+"/settings/remove", console.Owner, h.removeProject),
		console.Post(project+"/settings/chat", console.Operator, h.setChat),
		console.Get(project+"/widget", console.Viewer, h.showWidget),
		console.Post(project+"/widget/preview", console.Viewer, h.previewWidget),
		console.Post(project+"/widget/change", console.Owner, h.changeWidget),
	}
}
