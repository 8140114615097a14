// Package catalog provides what is asked across actors, in SQL (SQLite or PostgreSQL), and checks, copies and backs it
// up. Its parts are: people (projects, keys, people and what they did), work (automations, pull requests, webhooks),
// insights (questions, searches, gaps, reports), listing (copies of what the journal holds) and nodes (what several
// nodes share), all on one database.
package catalog

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"docent/persistence/catalog/database"
	"docent/persistence/catalog/insights"
	"docent/persistence/catalog/listing"
	"docent/persistence/catalog/nodes"
	"docent/persistence/catalog/people"
	"docent/persistence/catalog/work"
)

// The parts of a catalog, under names that tell them apart when they are embedded.
type (
	PeopleStore  = people.Store
	WorkStore    = work.Store
	InsightStore = insights.Store
	ListingStore = listing.Store
	NodeStore    = nodes.Store
)

// A Catalog is the SQL store: its parts, and the database that they share. Who needs one part takes that.
type Catalog struct {
	*database.DB
	*PeopleStore
	*WorkStore
	*InsightStore
	*ListingStore
	*NodeStore
}

// Open opens the catalog and brings its schema up to date (database.Open).
func Open(ctx context.Context, dsn string, o Options) (*Catalog, error) {
	db, err := database.Open(ctx, dsn, o, people.Part, work.Part, insights.Part, listing.Part)
	if err != nil {
		return nil, err
	}
	listings := listing.New(db)
	c := &Catalog{db, people.New(db), work.New(db), insights.New(db, listings), listings, nodes.New(db)}
	db.Start(ctx)
	return c, nil
}

// Describe implements prometheus.Collector.
func (c *Catalog) Describe(ch chan<- *prometheus.Desc) {
	c.DB.Describe(ch)
	c.InsightStore.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Catalog) Collect(ch chan<- prometheus.Metric) {
	c.DB.Collect(ch)
	c.InsightStore.Collect(ch)
}
