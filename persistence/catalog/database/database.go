// Package database provides the one SQL database, SQLite or PostgreSQL, of all parts of the catalog, through bun. It
// owns how the database is opened and migrated, transactions and how changes are counted and told to other nodes, the
// identity of the catalog, rows with checksums, errors, what is remembered of lookups, and the organizations and
// settings of the installation. Migrations of all parts are here, since they are one sequence.
package database

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"docent/api"
	"docent/internal/background"
)

// ErrCorrupt says that a stored row, or the whole file, is damaged.
var ErrCorrupt = errors.New("a stored record is damaged")

// Options change how a catalog is kept; the zero value is right for serving.
type Options struct {
	Log *slog.Logger // default slog.Default
	Now func() time.Time
	// Stale is how long a lookup may be answered from memory when another process changes the same database: 1 s if
	// zero. A change made through this DB is seen at once.
	Stale time.Duration
	// TouchEvery is how often the last use of keys is written: default 5 s.
	TouchEvery time.Duration
	// LockWait is how long to wait for another process that holds the database; default 5 s.
	LockWait time.Duration
	// DSN is the address as it is given now, whose user and password each new connection to PostgreSQL has: they may
	// change while the server runs. If nil, those of the address that is opened.
	DSN func() string
	// Nodes says that several nodes serve from the same database, PostgreSQL: each tells the others of its changes.
	Nodes bool
	// Journal says that the journal is in the same database. How far it has been followed is then not stored beyond its
	// end: a server that has lost commits may take the place of the one that they were read from.
	Journal bool
	// Application is what connections to PostgreSQL bear as their application_name, if not empty; Admit looks at each
	// new one before it is used, if not nil.
	Application string
	Admit       func(ctx context.Context, conn *pgx.Conn) error
	// CloseWait is how long Close tries to write what is buffered; default 5 s.
	CloseWait time.Duration
}

// A DB is the SQL database of a catalog. It may be used by many goroutines at once, and a SQLite or PostgreSQL
// database by several processes. A change that returned without an error is on disk; what a part writes by Every is the
// exception.
//
// Errors wrap those of package api: ErrNotFound, ErrConflict, *InvalidError, and ErrUnavailable when trying again
// later may help. They never show the password of a DSN.
type DB struct {
	Name  string  // for errors and logs; holds no password
	Path  string  // of the SQLite file; empty for PostgreSQL
	Read  *bun.DB // any number of connections; the same as Write on PostgreSQL
	Write *bun.DB // one connection on SQLite: a second use inside a transaction would wait for the first
	Log   *slog.Logger
	Now   func() time.Time
	Work  background.Work // what goes on in the background until Close
	// Say tells the other nodes something, as part of a transaction or by itself. A single node has nobody to tell.
	Say func(ctx context.Context, tx bun.IDB, what Message) error

	options  Options
	tables   []Table
	lookups  []registered
	hearers  []hearer
	written  []written
	revision atomic.Uint64 // the number of the last change that is known here
	watched  watchers
	nodes    otherNodes            // that share the database
	listen   func(context.Context) // hears them until ctx ends

	stop    context.CancelFunc
	closing sync.Once
	closed  error
}

// A Part says what a part of the catalog brings to its schema, beside the migrations: the tables whose rows carry
// checksums, and what a migration leaves to the program.
type Part struct {
	Tables []Table
	Steps  []Step
}

// A Step does what SQL alone cannot, once, in the transaction of a migration and after its statements.
type Step struct {
	Migration string // its number
	// Do changes what is stored. What it returns, if anything, is called once all of that is on disk.
	Do func(ctx context.Context, tx bun.IDB, now time.Time) (done func(*DB), err error)
}

// Open opens the database and brings its schema up to date. The dsn is "sqlite:PATH", for a file that is made
// if it does not exist, or "postgres://…". Several processes may open the same catalog at once. Nothing goes on in
// the background before Start.
func Open(ctx context.Context, dsn string, o Options, parts ...Part) (*DB, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Stale = cmp.Or(o.Stale, time.Second)
	o.TouchEvery = cmp.Or(o.TouchEvery, 5*time.Second)
	o.LockWait = cmp.Or(o.LockWait, 5*time.Second)
	o.CloseWait = cmp.Or(o.CloseWait, 5*time.Second)
	db := &DB{Log: o.Log, Now: o.Now, options: o, listen: func(context.Context) {},
		Say:    func(context.Context, bun.IDB, Message) error { return nil },
		tables: []Table{TableOf[OrganizationRow]("id"), TableOf[SettingRow]("name")}}
	var steps []Step
	for _, p := range parts {
		db.tables, steps = append(db.tables, p.Tables...), append(steps, p.Steps...)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.Migration, b.Migration) })
	if err := db.open(ctx, dsn, o, steps); err != nil {
		return nil, err
	}
	return db, nil
}

// written is what is kept in memory for a while and then stored.
type written struct {
	name, late, lost string // of the work, and what the log says while it is late and when it is lost
	every            time.Duration
	write            func(ctx context.Context, closing bool) error
}

// Every calls a part's function to store what it holds now and then, from Start on, and a last time at Close. What
// could not be written is tried again.
func (db *DB) Every(pause time.Duration, name, late, lost string, write func(ctx context.Context, closing bool) error) {
	db.written = append(db.written, written{name, late, lost, pause, write})
}

// EveryTouch is Every at the pace at which last uses are stored.
func (db *DB) EveryTouch(name, late, lost string, write func(context.Context) error) {
	db.Every(db.options.TouchEvery, name, late, lost, func(ctx context.Context, _ bool) error { return write(ctx) })
}

// Start begins what goes on in the background: all parts are made by then.
func (db *DB) Start(ctx context.Context) {
	ctx, db.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, w := range db.written {
		db.Work.Essential(w.name, func() { db.every(ctx, w) })
	}
	db.Work.Essential("hear other nodes", func() { db.listen(ctx) })
}

func (db *DB) every(ctx context.Context, w written) {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := background.Guard(func() error { return w.write(ctx, false) }); err != nil && ctx.Err() == nil {
				db.Log.Warn(w.late, "error", err)
			}
		}
	}
}

// CloseWait is how long Close tries to write what is buffered.
func (db *DB) CloseWait() time.Duration { return db.options.CloseWait }

// Close writes what is buffered, as far as it can within Options.CloseWait, and lets the database go.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.stop()
		db.Work.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), db.options.CloseWait)
		defer cancel()
		for _, w := range db.written {
			if err := w.write(ctx, true); err != nil {
				db.Log.Warn(w.lost, "error", err)
			}
		}
		if db.Read != db.Write {
			db.Read.Close()
		}
		db.closed = db.Fail("close", db.Write.Close())
	})
	return db.closed
}

// Ping reports whether the catalog answers and takes writes: a database that failed over to a replica, or that is
// guarded, may only be read.
func (db *DB) Ping(ctx context.Context) error {
	if db.Postgres() == nil {
		var one int
		return db.Fail("ask", db.Read.NewRaw("SELECT 1").Scan(ctx, &one))
	}
	var only string
	err := db.Read.NewRaw("SELECT current_setting('transaction_read_only')").Scan(ctx, &only)
	if err == nil && only == "on" {
		err = fmt.Errorf("%w: the database takes no writes: it is read-only", api.ErrUnavailable)
	}
	return db.Fail("ask", err)
}

// String names the catalog for people, without its password.
func (db *DB) String() string { return db.Name }

// InTx runs fn in one transaction on the writing connection.
func (db *DB) InTx(ctx context.Context, doing string, fn func(context.Context, bun.Tx) error) error {
	return db.Fail(doing, db.Write.RunInTx(ctx, nil, fn))
}

// An OrganizationRow owns projects and keys. There is one at first, api.DefaultOrg.
type OrganizationRow struct {
	bun.BaseModel `bun:"table:organizations"`

	ID        api.OrgID `bun:"id,pk"`
	Name      string    `bun:"name"`
	CreatedAt time.Time `bun:"created_at"`
	Checked
}

// Organization says how an organization is called, or fails with api.ErrNotFound.
func (db *DB) Organization(ctx context.Context, id api.OrgID) (name string, err error) {
	none := fmt.Errorf("organization %q: %w", id, api.ErrNotFound)
	if !Askable(string(id)) {
		return "", none
	}
	var row OrganizationRow
	err = db.Read.NewSelect().Model(&row).Where("id = ?", id).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", none
	case err == nil:
		err = CheckRow(&row)
	}
	return row.Name, db.Fail("find organization", err)
}

// A SettingRow is a setting or a secret of the installation, by its name.
type SettingRow struct {
	bun.BaseModel `bun:"table:settings"`

	Name  string `bun:"name,pk"`
	Value []byte `bun:"value"`
	Checked
}

// ReadSetting reads a setting, for a change of it if db is a transaction. There may be none, as sql.ErrNoRows says.
func ReadSetting(ctx context.Context, db bun.IDB, name string, into any) error {
	row := SettingRow{Name: name}
	query := db.NewSelect().Model(&row).WherePK()
	if _, changes := db.(bun.Tx); changes {
		query = ForUpdate(query)
	}
	if err := query.Scan(ctx); err != nil {
		return err
	}
	if err := CheckRow(&row); err != nil {
		return err
	}
	return DecodeBody(row.Value, into, name)
}

// SaveSetting stores a setting, in the place of one of its name.
func SaveSetting(ctx context.Context, db bun.IDB, name string, v any) error {
	return insertSetting(ctx, db, name, v, func(q *bun.InsertQuery) *bun.InsertQuery {
		return q.On("CONFLICT (name) DO UPDATE").Set("value = EXCLUDED.value").Set("checksum = EXCLUDED.checksum")
	})
}

// MakeSetting stores a setting if there is none of its name, so that it can be read for a change.
func MakeSetting(ctx context.Context, db bun.IDB, name string, v any) error {
	return insertSetting(ctx, db, name, v, func(q *bun.InsertQuery) *bun.InsertQuery { return q.On("CONFLICT (name) DO NOTHING") })
}

func insertSetting(ctx context.Context, db bun.IDB, name string, v any, conflict func(*bun.InsertQuery) *bun.InsertQuery) error {
	body, err := EncodeBody(v)
	if err != nil {
		return err
	}
	row := SettingRow{Name: name, Value: body}
	SetChecksum(&row)
	_, err = conflict(db.NewInsert().Model(&row)).Exec(ctx)
	return err
}

// Secret is the installation's random secret of that name: 32 bytes, made on first use and the same ever after. A
// damaged one is replaced: what it has signed is no longer valid, and users sign in again.
func (db *DB) Secret(ctx context.Context, name string) ([]byte, error) {
	row := SettingRow{Name: "secret/" + name}
	err := db.Read.NewSelect().Model(&row).WherePK().Scan(ctx)
	if err == nil && CheckRow(&row) == nil {
		return row.Value, nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, db.Fail("read the secret "+name, err)
	}
	err = db.Change(ctx, "keep the secret "+name, func(ctx context.Context, tx bun.Tx) error {
		fresh := SettingRow{Name: row.Name, Value: make([]byte, 32)}
		rand.Read(fresh.Value)
		SetChecksum(&fresh)
		if _, err := tx.NewInsert().Model(&fresh).On("CONFLICT (name) DO NOTHING").Exec(ctx); err != nil {
			return err
		}
		if err := tx.NewSelect().Model(&row).WherePK().Scan(ctx); err != nil { // another process may have been first
			return err
		}
		if err := CheckRow(&row); err != nil {
			db.Log.Error("damaged secret replaced", "error", err)
			row = fresh
			_, err = tx.NewUpdate().Model(&fresh).WherePK().Exec(ctx)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return row.Value, nil
}

// AddOrganization creates an organization. It fails with a *api.StateError of kind api.ErrConflict if there is one of
// that id.
func (db *DB) AddOrganization(ctx context.Context, id api.OrgID, name string) error {
	row := &OrganizationRow{ID: id, Name: name, CreatedAt: Stamp(db.Now())}
	SetChecksum(row)
	return db.Change(ctx, "add organization", func(ctx context.Context, tx bun.Tx) error {
		return Insert(ctx, tx, row, Conflict("an organization with the id %q exists already", id), nil)
	})
}

// Postgres is the database of a catalog that is in PostgreSQL, for what else is kept there; nil for SQLite. The
// catalog closes it.
func (db *DB) Postgres() *sql.DB {
	if db.Write.Dialect().Name() != dialect.PG {
		return nil
	}
	return db.Write.DB
}
