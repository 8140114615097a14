// Package catalogtest gives tests databases for catalogs: a SQLite file, and a schema of PostgreSQL if there is a
// server.
package catalogtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"docent/persistence/catalog"
)

// Each runs a test with the DSN of an empty SQLite catalog, whose tables are there, and with that of an empty one on
// PostgreSQL if there is a server.
func Each(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
}

// made is the file of an empty catalog whose tables are there.
var made = sync.OnceValues(func() ([]byte, error) {
	return Made(catalog.Options{Log: slog.New(slog.DiscardHandler)}, func(*catalog.Catalog) error { return nil })
})

// Made is the file of a catalog with what fill has put into it, for tests to begin with: making the tables takes a process
// longer than most tests do, above all under the race detector.
func Made(o catalog.Options, fill func(*catalog.Catalog) error) (content []byte, err error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "catalog.db")
	c, err := catalog.Open(context.Background(), "sqlite:"+file, o)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fill(c), c.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// SQLite gives the DSN of an empty SQLite catalog, whose tables are there.
func SQLite(t testing.TB) string {
	t.Helper()
	content, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return Copy(t, content)
}

// Copy gives the DSN of the test's own copy of a catalog that was made.
func Copy(t testing.TB, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "catalog.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + file
}

// Postgres makes an empty database for the test and gives its DSN. It is dropped with the connections that a test left there:
// what a closed one still runs on the server may not meet the drop. The test is skipped if DOCENT_TEST_POSTGRES holds no DSN.
func Postgres(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("DOCENT_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("PostgreSQL is left out: DOCENT_TEST_POSTGRES holds no DSN")
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}
