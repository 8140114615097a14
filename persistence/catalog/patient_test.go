package catalog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uptrace/bun"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
)

// A gate is a database that can be reached from a moment on.
type gate struct {
	driver.Connector
	opens time.Time
	tries int
	fails error
}

type noConn struct{ driver.Conn }

func (g *gate) Connect(context.Context) (driver.Conn, error) {
	if g.tries++; time.Now().Before(g.opens) {
		return nil, g.fails
	}
	return noConn{}, nil
}

// TestConnectionsWaitForADatabaseThatRestarts goes through a short outage, a long one, and errors that no waiting
// mends.
func TestConnectionsWaitForADatabaseThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		g := &gate{fails: refused}
		s := &patientConnector{Connector: g}
		took := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			_, err := s.Connect(ctx)
			return time.Since(began), err
		}
		g.opens = time.Now().Add(3 * time.Second)
		if d, err := took(t.Context()); err != nil || d < 3*time.Second || d > 4*time.Second {
			t.Errorf("a restart of three seconds: %v after %v", err, d)
		}
		g.opens = time.Now().Add(time.Hour)
		if d, err := took(t.Context()); !errors.Is(err, refused) || d < outageWait || d > outageWait+time.Second {
			t.Errorf("an outage: %v after %v", err, d)
		}
		if d, err := took(t.Context()); !errors.Is(err, refused) || d != 0 {
			t.Errorf("an outage that lasts: %v after %v", err, d)
		}
		time.Sleep(time.Hour)
		if _, err := took(t.Context()); err != nil {
			t.Error(err)
		}
		g.opens = time.Now().Add(time.Hour)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d, err := took(short); !errors.Is(err, refused) || d != time.Second {
			t.Errorf("who waits for a second: %v after %v", err, d)
		}
		time.Sleep(2 * time.Hour) // it is back, and nobody has connected
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		s.since = time.Time{}
		g.opens = time.Now().Add(time.Hour) // for who does not wait, it is gone
		if _, err := took(gone); !errors.Is(err, refused) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		g.opens = time.Now().Add(3 * time.Second)
		if d, err := took(t.Context()); err != nil || d < 3*time.Second {
			t.Errorf("a restart, after somebody has gone who did not wait: %v after %v", err, d)
		}
		g.opens = time.Now().Add(time.Hour)
		for _, err := range []error{errors.New("no such database"), errors.Join(api.ErrUnavailable, refused)} {
			g.fails, s.since = err, time.Time{}
			if d, got := took(t.Context()); !errors.Is(got, err) || d != 0 {
				t.Errorf("%v: %v after %v", err, got, d)
			}
		}
	})
}

// TestNodesOutlastTheEndOfTheirConnections has the database end all connections of a node, as a restart does, before
// each of several requests.
func TestNodesOutlastTheEndOfTheirConnections(t *testing.T) {
	t.Parallel()
	dsn := catalogtest.Postgres(t)
	c, err := Open(t.Context(), dsn, Options{Nodes: true, Application: "docent " + t.Name()})
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
	err = c.change(t.Context(), "try", func(ctx context.Context, tx bun.Tx) error {
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
