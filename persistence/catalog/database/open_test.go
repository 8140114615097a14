package database_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
)

func TestCatalogOpenedAtOnceIsMigratedOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		if strings.HasPrefix(p.DSN, "sqlite:") {
			p.DSN = "sqlite:" + filepath.Join(t.TempDir(), "catalog.db") // without tables
		}
		const openers = 8
		errs := make([]error, openers)
		var wg sync.WaitGroup
		for i := range openers {
			wg.Go(func() {
				c, err := catalog.Open(t.Context(), p.DSN, catalog.Options{Log: slog.New(slog.DiscardHandler), LockWait: time.Minute})
				if err == nil {
					_, err = c.AddProject(t.Context(), catalogtest.Project(fmt.Sprintf("docs%d", i)))
					err = errors.Join(err, c.Close())
				}
				errs[i] = err
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		c := p.Open(catalog.Options{})
		var migrations int
		if err := c.Read.NewRaw("SELECT count(*) FROM bun_migrations").Scan(t.Context(), &migrations); err != nil {
			t.Fatal(err)
		}
		files, err := database.Migrations.ReadDir("migrations")
		if err != nil {
			t.Fatal(err)
		}
		if migrations != len(files) {
			t.Errorf("%d migrations are recorded, want %d", migrations, len(files))
		}
		if got := catalogtest.Must(c.Projects(t.Context()))(t); len(got) != openers {
			t.Errorf("%d projects, want %d", len(got), openers)
		}
	})
}

func TestCatalogOfANewerVersionIsRefused(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		if _, err := c.Write.Exec("INSERT INTO bun_migrations (name, group_id) VALUES ('29990101000000', 9)"); err != nil {
			t.Fatal(err)
		}
		if _, err := catalog.Open(t.Context(), p.DSN, catalog.Options{}); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("error %v", err)
		}
	})
}

func TestSecretIsMadeOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		const askers = 8
		secrets := make([]string, askers)
		var wg sync.WaitGroup
		for i := range askers {
			wg.Go(func() {
				s, err := c.Secret(t.Context(), "cookie")
				if err != nil {
					t.Error(err)
				}
				secrets[i] = string(s)
			})
		}
		wg.Wait()
		for _, s := range secrets {
			if s != secrets[0] || len(s) != 32 {
				t.Errorf("secrets %x", secrets)
				break
			}
		}
		if other := catalogtest.Must(c.Secret(t.Context(), "other"))(t); string(other) == secrets[0] {
			t.Error("two secrets are the same")
		}
		if again := catalogtest.Must(p.Open(catalog.Options{}).Secret(t.Context(), "cookie"))(t); string(again) != secrets[0] {
			t.Error("the secret is another one after the catalog was opened again")
		}
	})
}

func TestErrorsNeverShowThePassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://docent:hunter2@127.0.0.1:1/docent?connect_timeout=1",
		"postgres://docent@127.0.0.1:1/docent?connect_timeout=1&password=hunter2",
		"postgres://docent:hunter2@127.0.0.1:notaport/docent",
		"postgres://docent:hunter2@[::1/docent",
		"postgres://docent:hunter2%zz@127.0.0.1/docent",
		"postgresql://docent:hunter2@127.0.0.1/docent?sslmode=perhaps",
		"mysql://docent:hunter2@127.0.0.1/docent",
		"host=127.0.0.1 password=hunter2",
		"docent:hunter2@tcp(127.0.0.1)/docent",
	} {
		_, err := catalog.Open(t.Context(), dsn, catalog.Options{})
		if err == nil {
			t.Errorf("a catalog was opened")
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), "hunter2") {
				t.Errorf("the error shows the password: %#v", e)
			}
		}
	}
	_, err := catalog.Open(t.Context(), "postgres://docent:hunter2@127.0.0.1:1/docent?connect_timeout=1", catalog.Options{})
	if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a server that does not answer: error %v", err)
	}
}

// TestNewConnectionsHaveTheUserAsGivenNow changes the address that a catalog is given while it is open: its next
// connections have the user and the password of the address as it is then.
func TestNewConnectionsHaveTheUserAsGivenNow(t *testing.T) {
	t.Parallel()
	first := catalogtest.Postgres(t)
	var at atomic.Value
	at.Store(first)
	p := catalogtest.Place{T: t, DSN: first}
	c := p.Open(catalog.Options{DSN: func() string { return at.Load().(string) }})
	role := "role_" + strings.ToLower(rand.Text())
	if _, err := c.Write.ExecContext(t.Context(), "CREATE ROLE "+role+" LOGIN SUPERUSER PASSWORD 'second'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.Write.ExecContext(context.Background(), "DROP ROLE "+role); err != nil {
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
		if err := c.Read.NewRaw("SELECT current_user").Scan(t.Context(), &name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if user() == role {
		t.Error("an open connection has changed its user")
	}
	c.Write.SetMaxIdleConns(0) // what is idle ends
	if got := user(); got != role {
		t.Errorf("a new connection is of %s, wanted %s", got, role)
	}
	at.Store("postgres://%zz") // half written
	if got := user(); got == role {
		t.Errorf("with no address that can be read, a new connection is of %s: wanted the one of the start", got)
	}
}
