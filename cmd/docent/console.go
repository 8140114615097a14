package main

import (
	"docent/forge"
	"docent/persistence/catalog"
	"docent/web"
)

// newPages builds the pages over the rooms below.
func (a *app) newPages(secret []byte) (*web.Server, error) {
	return web.New(web.Deps{
		Catalog: a.stores.catalog, Pulls: a.stores.hub, People: a.stores.catalog,
		Log: a.log, Now: a.config.now, Version: buildVersion().Version, Secret: secret, PublicURL: a.config.PublicURL,
	})
}

// Each port of the pages with what serves it.
var (
	_ web.Catalog = (*catalog.Catalog)(nil)
	_ web.Pulls   = (*forge.Hub)(nil)
	_ web.People  = (*catalog.Catalog)(nil)
)
