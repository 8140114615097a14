package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/migrate"
	"github.com/uptrace/bun/schema"

	"docent/api"
	"docent/internal/backoff"
)

// checkedSize is how big a SQLite file may be to be checked for damage at every open; a bigger one would take long.
const checkedSize = 16 << 20

func (db *DB) open(ctx context.Context, dsn string, o Options, steps []Step) error {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return db.openSQLite(ctx, path, o, steps)
	}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return db.openPostgres(ctx, dsn, o, steps)
	}
	return errors.New("a catalog's DSN begins with sqlite: or postgres://") // it may hold a password: not shown
}

func (db *DB) openSQLite(ctx context.Context, path string, o Options, steps []Step) error {
	path = strings.TrimPrefix(path, "//")
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return errors.New("a SQLite catalog is a file: sqlite:PATH")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open the catalog: %w", err)
	}
	db.Name, db.Path = "the catalog "+path, path
	size, err := prepareFile(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", db.Name, err)
	}
	deadline := time.Now().Add(o.LockWait)
	for {
		err := db.trySQLite(ctx, size, o.LockWait, steps, "")
		if noRoom(err) {
			// A file beside the database, which processes share, cannot be made on a full disk. If no other process has
			// the database, its contents can be kept in memory.
			err = db.trySQLite(ctx, size, o.LockWait, steps, "unix-excl")
		}
		if err == nil {
			return nil
		}
		// Turning a new file to WAL does not wait for another process that is doing the same.
		if !isBusy(err) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		_ = backoff.Sleep(ctx, 20*time.Millisecond)
	}
}

// prepareFile creates the file if there is none, readable by its owner alone, and refuses what is no SQLite database.
func prepareFile(path string) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		var at *fs.PathError // the path is in the catalog's name already
		if errors.As(err, &at) {
			err = at.Err
		}
		return 0, err
	}
	defer f.Close()
	head := make([]byte, 16)
	n, err := io.ReadFull(f, head)
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil // new
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0, err
	case string(head[:n]) != "SQLite format 3\x00":
		return 0, fmt.Errorf("%w: the file is not a SQLite database", ErrCorrupt)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (db *DB) trySQLite(ctx context.Context, size int64, wait time.Duration, steps []Step, vfs string) (err error) {
	dsn := func(pragmas ...string) string {
		pragmas = append(pragmas, fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()))
		q := url.Values{"_txlock": {"immediate"}, "_pragma": pragmas}
		if vfs != "" {
			q.Set("vfs", vfs)
		}
		return (&url.URL{Scheme: "file", Path: db.Path, RawQuery: q.Encode()}).String()
	}
	// FULL: the commit of a WAL is synced, so that what was acknowledged survives a power cut.
	writing := dsn("journal_mode(wal)", "synchronous(full)", "foreign_keys(1)")
	write, err := sql.Open("sqlite", writing)
	if err != nil {
		return db.Fail("open", err)
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", dsn("query_only(1)"))
	if err != nil {
		write.Close()
		return db.Fail("open", err)
	}
	read.SetMaxOpenConns(8)
	read.SetMaxIdleConns(8)
	defer func() {
		if err != nil {
			read.Close()
			write.Close()
		}
	}()
	if err := write.PingContext(ctx); err != nil {
		return db.Fail("open", err)
	}
	if size > 0 && size <= checkedSize {
		var verdict string
		if err := read.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
			return db.Fail("check", err)
		}
		if verdict != "ok" {
			return fmt.Errorf("open: %s is damaged, restore it from a backup: %w: %s", db.Name, ErrCorrupt, verdict)
		}
	}
	db.Write, db.Read = bun.NewDB(write, sqlitedialect.New()), bun.NewDB(read, sqlitedialect.New())
	types := columnTypes{
		Text: "TEXT", Time: "TEXT", JSON: "TEXT", Bytes: "BLOB", Int: "INTEGER", Bool: "INTEGER", Strict: "STRICT",
	}
	connect := func(context.Context) (driver.Conn, error) { return write.Driver().Open(writing) }
	return db.migrate(ctx, sqlitedialect.New(), types, steps, connect, "BEGIN IMMEDIATE")
}

func (db *DB) openPostgres(ctx context.Context, dsn string, o Options, steps []Step) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The parser's error repeats parts of the DSN, and if the DSN is malformed it cannot know which is the password.
		return errors.New("the catalog's DSN is not a valid postgres:// URL")
	}
	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	db.Name = "the catalog " + config.Database + " on PostgreSQL at " + server
	// bun writes values into the statement, so hardly a statement comes twice: preparing each would fill the server's
	// memory.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if o.Application != "" {
		config.RuntimeParams["application_name"] = o.Application
	}
	admit := o.Admit
	if admit == nil {
		admit = func(context.Context, *pgx.Conn) error { return nil }
	} else {
		admit = func(ctx context.Context, conn *pgx.Conn) error {
			err := o.Admit(ctx, conn)
			if err != nil && !passes(err) { // others serve what this node may not
				err = fmt.Errorf("%w: %w", api.ErrUnavailable, err)
			}
			return err
		}
	}
	before := func(_ context.Context, to *pgx.ConnConfig) error {
		o.credentials(to)
		return nil
	}
	connector := stdlib.GetConnector(*config, stdlib.OptionAfterConnect(admit), stdlib.OptionBeforeConnect(before))
	pooled := connector
	if o.Nodes {
		pooled = &patientConnector{Connector: connector}
	}
	pool := sql.OpenDB(pooled)
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(8)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	db.Write = bun.NewDB(pool, pgdialect.New())
	db.Read = db.Write
	types := columnTypes{
		Text: `TEXT COLLATE "C"`, Time: "TIMESTAMPTZ", JSON: "JSON", Bytes: "BYTEA", Int: "BIGINT", Bool: "BOOLEAN",
	}
	err = db.awaitAnswer(ctx, server, func(ctx context.Context) (io.Closer, error) {
		conn, err := connector.Connect(ctx)
		return conn, err
	})
	if err != nil {
		pool.Close()
		return err
	}
	// The lock is released with the transaction, and so with a process that dies.
	err = db.migrate(ctx, pgdialect.New(), types, steps, connector.Connect, "BEGIN", "SELECT pg_advisory_xact_lock(7234150846)")
	if err == nil && o.Nodes {
		err = db.openNodes(ctx, func(ctx context.Context) (*pgx.Conn, error) {
			to := config.Copy()
			return pgx.ConnectConfig(ctx, o.credentials(to))
		})
	}
	if err != nil {
		pool.Close()
		return err
	}
	return nil
}

// How long a database may say nothing until the log tells of it, and until that is an error.
const (
	silenceTold  = 5 * time.Second
	silenceEnded = time.Minute
)

// awaitAnswer waits until a database accepts a connection, or says why not: that is for what connects next to tell.
func (db *DB) awaitAnswer(ctx context.Context, server string, connect func(context.Context) (io.Closer, error)) error {
	errSilent := fmt.Errorf("PostgreSQL at %s accepts no connection within %s: look at catalog_dsn, at the database, and at firewalls on the way to it",
		server, silenceEnded)
	ctx, cancel := context.WithTimeoutCause(ctx, silenceEnded, errSilent)
	defer cancel()
	told := time.AfterFunc(silenceTold, func() { db.Log.Warn("waiting for the database, which says nothing", "address", server) })
	defer told.Stop()
	conn, err := connect(ctx)
	if err == nil {
		return conn.Close()
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return ctx.Err()
}

// credentials gives a connection the user and password that hold now.
func (o Options) credentials(to *pgx.ConnConfig) *pgx.ConnConfig {
	if o.DSN != nil {
		if now, err := pgx.ParseConfig(o.DSN()); err == nil {
			to.User, to.Password = now.User, now.Password
		}
	}
	return to
}

// ChecksMigration is the migration that brings the checksums of rows and the identities of stores. The program fills
// them in.
const ChecksMigration = "20261122000001"

// ConversationsMigration is the migration that brings what pages of conversations and jobs are listed by.
const ConversationsMigration = "20261123000002"

// ForUpdate keeps others from changing the rows until the transaction ends. SQLite has one writer anyway.
func ForUpdate(q *bun.SelectQuery) *bun.SelectQuery {
	if q.Dialect().Name() == dialect.PG {
		return q.For("UPDATE")
	}
	return q
}

// Migrations are the statements of all migrations, in their order.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// columnTypes are the names that a database has for what the migrations need.
type columnTypes struct{ Text, Time, JSON, Bytes, Int, Bool, Strict string }

// migrate brings the schema up to date: all of it or nothing, and by one process at a time. bun's migrator works on a
// pool and has a lock that a killed process leaves behind; here it gets a pool of one connection that is inside a
// transaction, which holds the database's own lock.
func (db *DB) migrate(ctx context.Context, dialect schema.Dialect, types columnTypes, steps []Step,
	connect func(context.Context) (driver.Conn, error), begin ...string) (err error) {
	files, err := fs.Sub(Migrations, "migrations")
	if err != nil {
		return err
	}
	migrations := migrate.NewMigrations()
	if err := migrations.Discover(files); err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	options := []migrate.MigratorOption{migrate.WithTemplateData(types), migrate.WithMarkAppliedOnSuccess(true)}
	reading := migrate.NewMigrator(db.Read, migrations, options...)
	if current, err := reading.MigrationsWithStatus(ctx); err == nil && len(current.Unapplied()) == 0 {
		return db.refuseNewer(ctx, reading)
	}

	pool := sql.OpenDB(&onceConnector{connect: connect})
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	tx := bun.NewDB(pool, dialect)
	migrator := migrate.NewMigrator(tx, migrations, options...)
	for _, statement := range begin {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return db.Fail("lock for migration", err)
		}
	}
	defer func() {
		if err != nil {
			tx.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	if err := migrator.Init(ctx); err != nil {
		return db.Fail("prepare migration", err)
	}
	if err := db.refuseNewer(ctx, migrator); err != nil {
		return err
	}
	group, err := migrator.Migrate(ctx)
	if err != nil {
		return db.Fail("migrate", err)
	}
	brought := func(name string) bool {
		return slices.ContainsFunc(group.Migrations, func(m migrate.Migration) bool { return m.Name == name })
	}
	if brought(ChecksMigration) {
		if err := errors.Join(identify(ctx, tx), sealAll(ctx, tx, db.tables)); err != nil {
			return db.Fail("migrate", err)
		}
	}
	var done []func(*DB)
	for _, step := range steps {
		if !brought(step.Migration) {
			continue
		}
		told, err := step.Do(ctx, tx, db.Now())
		if err != nil {
			return db.Fail("migrate", err)
		}
		if told != nil {
			done = append(done, told)
		}
	}
	first := &OrganizationRow{ID: api.DefaultOrg, Name: "Default", CreatedAt: Stamp(db.Now())}
	SetChecksum(first)
	if _, err := tx.NewInsert().Model(first).On("CONFLICT (id) DO NOTHING").Exec(ctx); err != nil {
		return db.Fail("make the default organization", err)
	}
	if _, err := tx.ExecContext(ctx, "COMMIT"); err != nil {
		return db.Fail("migrate", err)
	}
	if !group.IsZero() {
		db.Log.Info("catalog migrated", "catalog", db.Name, "migrations", group.Migrations.String())
	}
	for _, told := range done {
		told(db)
	}
	return nil
}

func (db *DB) refuseNewer(ctx context.Context, m *migrate.Migrator) error {
	unknown, err := m.MissingMigrations(ctx)
	if err != nil {
		return db.Fail("read the migrations", err)
	}
	if len(unknown) > 0 {
		return fmt.Errorf("open: %s was written by a newer version of Docent (migration %s is not known here): nothing was "+
			"changed; use that version or a newer one, or restore the backup that was made before the upgrade",
			db.Name, unknown[0].Name)
	}
	return nil
}

// onceConnector opens one connection and no second one: what comes after a lost one would run outside its transaction.
type onceConnector struct {
	connect func(context.Context) (driver.Conn, error)
	used    atomic.Bool
}

func (o *onceConnector) Driver() driver.Driver { return nil }

func (o *onceConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if o.used.Swap(true) {
		return nil, errors.New("the connection was lost during migration")
	}
	conn, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := conn.(interface {
		driver.Conn
		driver.ExecerContext
		driver.QueryerContext
	})
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("driver connection %T cannot run statements", conn)
	}
	return steadyConn{inner, inner, inner}, nil
}

// steadyConn hides that a connection could be reset between two uses, which would end its transaction.
type steadyConn struct {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
}
