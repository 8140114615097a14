// Package system provides the pages about the server itself: its state, its logs and the description of its API.
package system

import (
	"html/template"
	"sync"

	"docent/web/console"
)

// Deps is what the pages work with.
type Deps struct {
	Catalog Catalog
	System  System
	Models  LanguageModels
}

type handler struct {
	*console.Server
	Deps
	reference func() (template.HTML, error) // made once
}

// Routes returns the pages, and what their forms do.
func Routes(s *console.Server, d Deps) []console.Route {
	h := &handler{Server: s, Deps: d}
	h.reference = sync.OnceValues(h.makeReference)
	return []console.Route{
		console.Get("/api", console.Anybody, h.showAPI),

		// An organization's people
		console.Get("/console/:org/audit", console.Owner|console.NotKeys, h.showAudit),
		console.Get("/console/:org/audit.csv", console.Owner|console.NotKeys, h.auditCSV),

		// The server itself
		console.Get(systemPath, console.Operator, h.showSystem),
		console.Get(systemPath+"/live", console.Operator, h.liveSystem),
		console.Get(systemPath+"/log", console.Operator, h.liveLog),
		console.Get(modelsPath, console.Operator, h.showModels),
		console.Get(modelsPath+"/one/:name", console.Operator, h.showModel),
		console.Post(modelsPath+"/list", console.Operator, h.listModels),
		console.Post(modelsPath+"/save", console.Operator, h.saveModel),
		console.Post(modelsPath+"/test", console.Operator, h.testModel),
		console.Post(modelsPath+"/remove", console.Operator, h.removeModel),
		console.Post(systemPath+"/retry", console.Operator, h.retryActor),
		console.Post(systemPath+"/backup", console.Operator, h.beginBackup),
		console.Post(systemPath+"/end", console.Operator, h.endOperatorsSession),
		console.Post(systemPath+"/unlink", console.Operator, h.revokeLink),
	}
}
