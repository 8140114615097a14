package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"docent/api"
)

// A constraint is a rule of the schema, in the names that each database has for it.
type constraint struct {
	sqlite   []int
	postgres string
}

var (
	unique    = constraint{[]int{sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}, "23505"}
	reference = constraint{[]int{sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY}, "23503"}
)

func violates(err error, c constraint) bool {
	var lite *sqlite.Error
	var pg *pgconn.PgError
	return errors.As(err, &lite) && slices.Contains(c.sqlite, lite.Code()) || errors.As(err, &pg) && pg.Code == c.postgres
}

// sqliteCode is the primary code of an error of SQLite; SQLITE_OK of any other.
func sqliteCode(err error) int {
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return sqlite3.SQLITE_OK
	}
	return lite.Code() & 0xff
}

// isBusy says that another process holds the SQLite file.
func isBusy(err error) bool {
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// noRoom says that SQLite could not make or enlarge a file.
func noRoom(err error) bool {
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR || code == sqlite3.SQLITE_CANTOPEN
}

// Fail says what was being done to which catalog, and sorts the driver's error: damage is ErrCorrupt, what may pass
// by itself is api.ErrUnavailable. Errors that are the caller's own pass as they are.
func (db *DB) Fail(doing string, err error) error {
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, api.ErrNotFound), errors.Is(err, api.ErrConflict), errors.Is(err, api.ErrInvalid):
		return err
	case errors.As(err, &connect) && !errors.Is(err, context.Canceled): // a connection that takes too long has a time of its own
		return fmt.Errorf("%s in %s: %w: %w", doing, db.Name, api.ErrUnavailable, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, api.ErrUnavailable):
		return fmt.Errorf("%s in %s: %w", doing, db.Name, err)
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s: %s is damaged, restore it from a backup: %w: %w", doing, db.Name, ErrCorrupt, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%s: %s is locked by another process: %w: %w", doing, db.Name, api.ErrUnavailable, err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("%s in %s: %w: %w", doing, db.Name, api.ErrUnavailable, err)
	}
	if passes(err) {
		return fmt.Errorf("%s in %s: %w: %w", doing, db.Name, api.ErrUnavailable, err)
	}
	return fmt.Errorf("%s in %s: %w", doing, db.Name, err)
}

// passes reports whether the server or the way to it is what failed, and not the statement.
func passes(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Connection exceptions, out of resources, operator intervention, serialization failures, read-only stand-by.
		classes := []string{"08", "53", "57", "40", "25006"}
		return slices.ContainsFunc(classes, func(class string) bool { return strings.HasPrefix(pg.Code, class) })
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed)
}
