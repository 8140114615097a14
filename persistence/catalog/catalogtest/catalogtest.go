// Package catalogtest gives tests databases for catalogs: a SQLite file, and a schema of PostgreSQL if there is a
// server.
package catalogtest

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Each runs a test with the DSN of an empty SQLite catalog, and with that of an empty one on PostgreSQL if there
// is a server.
func Each(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "catalog.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
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
