package shared_test

import (
	"database/sql"
	"sync"
	"testing"

	"docent/forge/shared"
	"docent/persistence/catalog/catalogtest"
)

// TestNodesThatStartAtOnceMakeTheTablesOnce opens an empty database from several nodes.
func TestNodesThatStartAtOnceMakeTheTablesOnce(t *testing.T) {
	t.Parallel()
	dsn := catalogtest.Postgres(t)
	begin := make(chan struct{})
	var nodes sync.WaitGroup
	for range 4 {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(1) // what was looked for before is remembered by the connection
		if err := db.Ping(); err != nil {
			t.Fatal(err)
		}
		nodes.Go(func() {
			<-begin
			if _, err := shared.Open(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	nodes.Wait()
}
