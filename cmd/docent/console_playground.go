package main

import (
	"context"
	"net/netip"

	"docent/actors/thread"
	"docent/api"
	"docent/ingest"
	"docent/model/registry"
	"docent/web"
)

// playground gives the pages what they search and ask with.
func (a *app) playground(deps *web.Deps) {
	deps.Readers, deps.Tries, deps.Models = readers{a}, a.knownThreads(), a.models
	deps.Finder = ingest.Documents{Library: a.stores.library, Reader: a.stores.source}
}

// readers puts the console's questions where readers' questions go: through the edge, which is built after the pages.
type readers struct{ app *app }

// Put is the edge's.
func (r readers) Put(ctx context.Context, client netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn,
	error) {
	return r.app.edge.Put(ctx, client, id, ask)
}

// Each port of the playground with what serves it.
var (
	_ web.Readers = readers{}
	_ web.Tries   = knownThreads{}
	_ web.Finder  = ingest.Documents{}
	_ web.Models  = (*registry.Registry)(nil)
)
