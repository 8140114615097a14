package main

import (
	"context"
	"log/slog"

	"docent/forge"
	"docent/health"
	"docent/persistence/catalog"
	"docent/web"
	"docent/web/oidc"
)

// newPages builds the pages over the rooms below.
func (a *app) newPages(secret []byte) (*web.Server, error) {
	ops := a.stores.operations()
	ops.app = a
	deps := web.Deps{
		Catalog: a.stores.catalog, Pulls: a.stores.hub, People: a.stores.catalog, System: ownSystem{a},
		Setup: projectSetup{app: a, ops: ops}, Tasks: a.tasks, Sources: projectSources{a}, Asker: tryingAsker{a},
		Log: a.log, Now: a.config.now, Version: buildVersion().Version, Secret: secret, PublicURL: a.config.PublicURL,
	}
	a.config.signIn(&deps)
	return web.New(deps)
}

// ownSystem is this server, as its operator looks after it.
type ownSystem struct{ *app }

func (s ownSystem) Status() (health.Status, error)              { return s.status() }
func (s ownSystem) Log(n int, level slog.Level) []health.Record { return s.tail.Newest(n, level) }
func (s ownSystem) FollowLog() (<-chan struct{}, func())        { return s.tail.Follow() }
func (s ownSystem) Retry(ctx context.Context, id string) error  { return s.system.Retry(ctx, id) }
func (s ownSystem) BackUp() (dir string, err error)             { return s.backups.Start() }

// Each port of the pages with what serves it.
var (
	_ web.Catalog  = (*catalog.Catalog)(nil)
	_ web.Pulls    = (*forge.Hub)(nil)
	_ web.People   = (*catalog.Catalog)(nil)
	_ web.System   = ownSystem{}
	_ web.Provider = (*oidc.Provider)(nil)
)
