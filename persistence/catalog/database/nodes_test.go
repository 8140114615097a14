package database_test

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

func TestAKeyRevokedOnOneNodeIsRefusedOnAnother(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	hash := [32]byte{7}
	good := func() bool {
		key, err := b.KeyByHash(t.Context(), hash)
		return err == nil && key.RevokedAt == nil
	}
	if good() { // b remembers that there is none
		t.Fatal("a key that nobody has made is good")
	}
	key := catalogtest.Must(a.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, hash))(t)
	catalogtest.Soon(t, "the other node knows the key", good)
	if err := a.RevokeKey(t.Context(), key.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	catalogtest.Soon(t, "the other node refuses the key", func() bool { return !good() })
}

func TestATokenReplacedOnOneNodeIsLookedUpOnAnother(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	end := time.Now().Add(time.Hour)
	catalogtest.Must(a.AddSession(t.Context(), api.SignIn{Kind: api.SessionOfClient, Key: make([]byte, 32), ExpiresAt: end,
		Idle: time.Hour}, [32]byte{1}))(t)
	finds := func(token byte) bool {
		_, err := b.SessionByHash(t.Context(), [32]byte{token})
		return err == nil
	}
	if finds(2) { // b remembers that there is none
		t.Fatal("a token that nobody has is good")
	}
	if err := a.ReplaceToken(t.Context(), [32]byte{1}, [32]byte{2}, end); err != nil {
		t.Fatal(err)
	}
	catalogtest.Soon(t, "the other node knows the new token", func() bool { return finds(2) })
}

func TestWatchersHearOfChangesOfOtherNodes(t *testing.T) {
	t.Parallel()
	a, b := catalogtest.TwoNodes(t)
	changed, stop := b.Watch("docs")
	defer stop()
	catalogtest.Must(a.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, [32]byte{7}))(t)
	for _, c := range []<-chan struct{}{changed, b.Changes()} {
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal("the other node does not hear of a change")
		}
	}
}

func TestANodeThatHeardNothingForAWhileForgetsWhatItKnew(t *testing.T) {
	t.Parallel()
	a, b, dsn := catalogtest.TwoNodesOn(t)
	hash := [32]byte{7}
	key := catalogtest.Must(a.AddKey(t.Context(), api.Key{Kind: api.AdminKey}, hash))(t)
	catalogtest.Soon(t, "the other node knows the key", func() bool {
		_, err := b.KeyByHash(t.Context(), hash)
		return err == nil
	})
	// The connections of all nodes that hear are cut, and the key is revoked by a process that tells nobody.
	catalogtest.Must(a.Write.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = ?",
		`LISTEN "`+b.Channel()+`"`))(t)
	c := catalogtest.Must(catalog.Open(t.Context(), dsn, catalog.Options{}))(t)
	defer c.Close()
	if err := c.RevokeKey(t.Context(), key.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	catalogtest.Soon(t, "the key is refused", func() bool {
		key, err := b.KeyByHash(t.Context(), hash)
		return err == nil && key.RevokedAt != nil
	})
}

// TestNodesOutlastTheEndOfTheirConnections has the database end all connections of a node, as a restart does, before
// each of several requests.
func TestNodesOutlastTheEndOfTheirConnections(t *testing.T) {
	t.Parallel()
	dsn := catalogtest.Postgres(t)
	c, err := catalog.Open(t.Context(), dsn, catalog.Options{Nodes: true, Application: "docent " + t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	aside, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { aside.Close() })
	end := func() {
		t.Helper()
		var ended int
		if err := aside.QueryRow("SELECT count(*) FROM (SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "+
			"WHERE application_name = $1) ended", "docent "+t.Name()).Scan(&ended); err != nil || ended == 0 {
			t.Fatalf("%d connections have ended: %v", ended, err)
		}
	}
	for n := range 5 {
		end()
		if _, err := c.Organization(t.Context(), api.DefaultOrg); err != nil {
			t.Errorf("what is read after restart %d: %v", n, err)
		}
	}
	end()
	docs := api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}
	if _, err := c.AddProject(t.Context(), docs); err != nil {
		t.Errorf("what is changed after a restart: %v", err)
	}
	// In the midst of a transaction it is refused as what may be tried again.
	err = c.Change(t.Context(), "try", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
			return err
		}
		end()
		_, err := tx.QueryContext(ctx, "SELECT 1")
		return err
	})
	if !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a transaction in whose midst the database restarts: %v", err)
	}
}
