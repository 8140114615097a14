// Package insights provides the pages about what readers ask and are answered: conversations, the playground, analytics,
// gaps and weekly reports.
package insights

import (
	"docent/web/console"
)

// Deps is what the pages work with.
type Deps struct {
	Catalog Catalog
	Threads Threads
	Eraser  Eraser
	Readers console.Readers
	Tries   console.Tries
	Finder  Finder
	Models  Models
	Topics  Topics
	Reports Reports
}

type handler struct {
	*console.Server
	Deps
	counts counts // of analytics
}

const project = console.ProjectPath

// Routes returns the pages, and what their forms do.
func Routes(s *console.Server, d Deps) []console.Route {
	h := &handler{Server: s, Deps: d}
	return []console.Route{
		// What readers ask, and what the documentation lacks
		console.Get(project+"/analytics", console.Viewer, h.showAnalytics),
		console.Get(project+"/analytics.csv", console.Viewer, h.analyticsCSV),
		console.Get(project+"/gaps", console.Viewer, h.showGaps),
		console.Get(project+"/gaps/:id", console.Viewer, h.showGap),
		console.Post(project+"/gaps/:id/open", console.Editor, h.openGap),
		console.Post(project+"/gaps/:id/dismiss", console.Editor, h.dismissGap),
		console.Post(project+"/gaps/:id/restore", console.Editor, h.restoreGap),
		console.Get(project+"/report", console.Viewer, h.showReport),
		console.Get(project+"/report.csv", console.Viewer, h.reportCSV),
		console.Get(project+"/conversations", console.Viewer, h.showConversations),
		console.Get(project+"/conversations/live", console.Viewer, h.liveConversations),
		console.Get(project+"/conversations.csv", console.Viewer, h.conversationsCSV),
		console.Get(project+"/conversations.ndjson", console.Viewer, h.conversationsNDJSON),
		console.Get(project+"/conversations/forget", console.Owner, h.showForget),
		console.Get(project+"/conversations/forget/live", console.Owner, h.liveForget),
		console.Post(project+"/conversations/forget/begin", console.Owner, h.forget),
		console.Get(project+"/conversations/:thread", console.Viewer, h.showThread),
		console.Get(project+"/conversations/:thread/live", console.Viewer, h.liveThread),
		console.Post(project+"/conversations/:thread/delete", console.Owner, h.deleteThread),

		// Playground: everyone who may see the project may also ask, as any reader can.
		console.Get(project+"/playground", console.Viewer, h.playground),
		console.Post(project+"/playground/try", console.Viewer, h.tryIt),
		console.Get(project+"/playground/answers/:thread", console.Viewer, h.tryAnswer),
		console.Post(project+"/playground/answers/:thread/stop", console.Viewer, h.stopTry),
	}
}
