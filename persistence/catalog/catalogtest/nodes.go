package catalogtest

import (
	"testing"
	"time"

	"docent/persistence/catalog"
)

// TwoNodes are catalogs of two nodes on one database. What they remember they remember for an hour, unless the other
// says that it has changed.
func TwoNodes(t *testing.T) (a, b *catalog.Catalog) {
	t.Helper()
	a, b, _ = TwoNodesOn(t)
	return a, b
}

// TwoNodesOn is TwoNodes, with the DSN of their database.
func TwoNodesOn(t *testing.T) (a, b *catalog.Catalog, dsn string) {
	t.Helper()
	dsn = Postgres(t)
	open := func() *catalog.Catalog {
		c := Must(catalog.Open(t.Context(), dsn, catalog.Options{Nodes: true, Stale: time.Hour}))(t)
		t.Cleanup(func() { c.Close() })
		hears(t, c)
		return c
	}
	return open(), open(), dsn
}

// hears waits until a node listens to the others: it has everybody look once then.
func hears(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	select {
	case <-c.Changes():
	case <-time.After(time.Minute):
		t.Fatal("the node does not listen to the others")
	}
}
