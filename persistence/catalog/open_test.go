package catalog

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"docent/persistence/catalog/catalogtest"
)

// TestNewConnectionsHaveTheUserAsGivenNow changes the address that a catalogue is given while it is open: its next
// connections have the user and the password of the address as it is then.
func TestNewConnectionsHaveTheUserAsGivenNow(t *testing.T) {
	t.Parallel()
	first := catalogtest.Postgres(t)
	var at atomic.Value
	at.Store(first)
	p := place{t, first}
	c := p.open(Options{DSN: func() string { return at.Load().(string) }})
	role := "role_" + strings.ToLower(rand.Text())
	if _, err := c.write.ExecContext(t.Context(), "CREATE ROLE "+role+" LOGIN SUPERUSER PASSWORD 'second'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.write.ExecContext(context.Background(), "DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "second")
	at.Store(u.String())
	user := func() (name string) {
		t.Helper()
		if err := c.read.NewRaw("SELECT current_user").Scan(t.Context(), &name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if user() == role {
		t.Error("an open connection has changed its user")
	}
	c.write.SetMaxIdleConns(0) // what is idle ends
	if got := user(); got != role {
		t.Errorf("a new connection is of %s, wanted %s", got, role)
	}
	at.Store("postgres://%zz") // half written
	if got := user(); got == role {
		t.Errorf("with no address that can be read, a new connection is of %s: wanted the one of the start", got)
	}
}
