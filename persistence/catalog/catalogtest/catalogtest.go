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

// made is the file of an empty catalog whose tables are there: making them takes a process longer than most tests do,
// above all under the race detector.
var made = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "catalog.db")
	c, err := catalog.Open(context.Background(), "sqlite:"+file, catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// SQLite gives the DSN of an empty SQLite catalog, whose tables are there.
func SQLite(t testing.TB) string {
	t.Helper()
	content, err := made()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "catalog.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + file
}

// Postgres makes an empty schema for the test and gives the DSN that uses it. The test is skipped if
// DOCENT_TEST_POSTGRES holds no DSN.
func Postgres(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("DOCENT_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("PostgreSQL is left out: DOCENT_TEST_POSTGRES holds no DSN")
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if _, err := db.Exec("CREATE SCHEMA " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.Exec("DROP SCHEMA " + name + " CASCADE")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}
