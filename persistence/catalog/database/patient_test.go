package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
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
