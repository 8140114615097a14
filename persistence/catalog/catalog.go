// Package catalog keeps what is asked across actors, in SQL through bun (SQLite, or PostgreSQL): organizations,
// projects, keys, people and their sessions, who did what, pull requests of the built-in host, automations, updates of
// documentation, what was searched for, and listings of jobs and of answered questions, which are copies that the
// journal can rebuild.
package catalog

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/api"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// ErrCorrupt says that a stored row, or the whole file, is damaged.
var ErrCorrupt = errors.New("a stored record is damaged")

// DefaultOrg owns every project that names no other organization. It is made when the catalogue is first opened.
const DefaultOrg = api.DefaultOrg

// Options change how a catalogue is kept; the zero value is right for serving.
type Options struct {
	Log *slog.Logger // slog.Default where nil
	Now func() time.Time
	// Stale is how long a look-up may be answered from memory when another process changes the same database: 1 s where
	// zero. A change made through this Catalog is seen at once.
	Stale time.Duration
	// TouchEvery is how often the last use of keys is written: every 5 s where zero.
	TouchEvery time.Duration
	// LockWait is how long to wait for another process that holds the database: 5 s where zero.
	LockWait time.Duration
	// DSN is the address as it is given now, whose user and password each new connection to PostgreSQL has: they may change
	// while the server runs. Those of the address that is opened where nil.
	DSN func() string
	// Nodes says that several nodes serve from the same database, PostgreSQL: each tells the others of its changes.
	Nodes bool
	// Journal says that the journal is in the same database. How far it has been followed is then not stored beyond its
	// end: a server that has lost commits may take the place of the one that they were read from.
	Journal bool
	// Application is what connections to PostgreSQL bear as their application_name, where not empty; Admit looks at each
	// new one before it is used, where not nil.
	Application string
	Admit       func(ctx context.Context, conn *pgx.Conn) error
	// CloseWait is how long Close tries to write what is buffered: 5 s where zero.
	CloseWait time.Duration
}

// A Catalog is the SQL store. It may be used by many goroutines at once, and a SQLite or PostgreSQL catalogue by
// several processes. A change that returned without an error is on disk; last use of keys, when sessions were seen,
// and searches are the exception, they are written every few seconds and at Close.
//
// Errors wrap those of package api: ErrNotFound, ErrConflict, *InvalidError, and ErrUnavailable where trying again
// later may help. They never show the password of a DSN.
type Catalog struct {
	name  string  // for errors and logs; holds no password
	path  string  // of the SQLite file; empty for PostgreSQL
	read  *bun.DB // any number of connections; the same as write on PostgreSQL
	write *bun.DB // one connection on SQLite: a second use inside a transaction would wait for the first
	log   *slog.Logger
	now   func() time.Time

	projects *lookup[api.ProjectID, api.Project]
	domains  *lookup[string, api.Project]
	keys     *lookup[[32]byte, api.Key]
	touched  touches
	people   *lookup[api.PersonID, api.Person]
	sessions *lookup[[32]byte, api.SignIn]
	seen     seen
	audited  ascending
	revision atomic.Uint64 // the number of the last change that is known here

	projector atomic.Pointer[Projector] // of jobs
	threads   atomic.Pointer[Projector]
	searched  searchLog
	texts     chan struct{} // receives when words of questions are to be written
	watched   watchers
	journaled bool        // Options.Journal
	nodes     *otherNodes // that share the database; nil for a single one
	days      quarters    // of questions
	cited     quarters    // of pages that answers cite

	stop      context.CancelFunc
	work      sync.WaitGroup // what goes on in the background
	closeWait time.Duration
	closing   sync.Once
	closed    error
}

// Open opens the catalogue and brings its schema up to date. The dsn is "sqlite:PATH", for a file that is made
// where it does not exist, or "postgres://…". Several processes may open the same catalogue at once.
func Open(ctx context.Context, dsn string, o Options) (*Catalog, error) {
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
	c := &Catalog{log: o.Log, now: o.Now, journaled: o.Journal, closeWait: o.CloseWait, texts: make(chan struct{}, 1)}
	if err := c.open(ctx, dsn, o); err != nil {
		return nil, err
	}
	c.projects = newLookup(o, func(id api.ProjectID) string { return string(id) }, c.loadProject)
	c.domains = newLookup(o, func(domain string) string { return domain }, c.loadDomain)
	c.keys = newLookup(o, func(hash [32]byte) string { return string(hash[:]) }, c.loadKey)
	c.people = newLookup(o, func(id api.PersonID) string { return string(id) }, c.loadPerson)
	c.sessions = newLookup(o, func(hash [32]byte) string { return string(hash[:]) }, c.loadSession)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.work.Go(func() { c.every(background, o.TouchEvery, "the last use of keys is not written yet", c.writeTouches) })
	c.work.Go(func() { c.every(background, o.TouchEvery, "when sessions were seen is not written yet", c.writeSeen) })
	if c.nodes != nil {
		c.work.Go(func() { c.hearNodes(background) })
	}
	c.work.Go(func() {
		c.every(background, searchWait, "searches are not counted yet", func(ctx context.Context) error {
			return c.writeSearches(ctx, false)
		})
	})
	return c, nil
}

// every does something now and then until ctx ends. What could not be written is tried again; Close writes the rest.
func (c *Catalog) every(ctx context.Context, pause time.Duration, trouble string, do func(context.Context) error) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn(trouble, "error", err)
			}
		}
	}
}

// Close writes what is buffered, as far as it can within CloseWait, and lets the database go.
func (c *Catalog) Close() error {
	c.closing.Do(func() {
		c.stop()
		c.work.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), c.closeWait)
		defer cancel()
		if err := c.writeTouches(ctx); err != nil {
			c.log.Warn("the last use of keys is not written", "error", err)
		}
		if err := c.writeSeen(ctx); err != nil {
			c.log.Warn("when sessions were last seen is not written", "error", err)
		}
		if err := c.writeSearches(ctx, true); err != nil {
			c.log.Warn("the last searches are not counted", "error", err)
		}
		if c.read != c.write {
			c.read.Close()
		}
		c.closed = c.fail("close", c.write.Close())
	})
	return c.closed
}

// Ping reports whether the catalogue answers.
func (c *Catalog) Ping(ctx context.Context) error {
	var one int
	return c.fail("ask", c.read.NewRaw("SELECT 1").Scan(ctx, &one))
}

// String names the catalogue for people, without its password.
func (c *Catalog) String() string { return c.name }

// update runs fn in one transaction on the writing connection.
func (c *Catalog) update(ctx context.Context, doing string, fn func(context.Context, bun.Tx) error) error {
	return c.fail(doing, c.write.RunInTx(ctx, nil, fn))
}

// An organizationRow owns projects and keys. There is one, DefaultOrg.
type organizationRow struct {
	bun.BaseModel `bun:"table:organizations"`

	ID        api.OrgID `bun:"id,pk"`
	Name      string    `bun:"name"`
	CreatedAt time.Time `bun:"created_at"`
	checked
}

// Organization says how an organization is called, or fails with api.ErrNotFound.
func (c *Catalog) Organization(ctx context.Context, id api.OrgID) (name string, err error) {
	none := fmt.Errorf("organization %q: %w", id, api.ErrNotFound)
	if !askable(string(id)) {
		return "", none
	}
	var row organizationRow
	err = c.read.NewSelect().Model(&row).Where("id = ?", id).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", none
	case err == nil:
		err = checkRow(&row)
	}
	return row.Name, c.fail("find organization", err)
}

type settingRow struct {
	bun.BaseModel `bun:"table:settings"`

	Name  string `bun:"name,pk"`
	Value []byte `bun:"value"`
	checked
}

// Secret is the installation's random secret of that name: 32 bytes, made on first use and the same ever after. A
// damaged one is replaced: what it has signed is no longer valid, and users sign in again.
func (c *Catalog) Secret(ctx context.Context, name string) ([]byte, error) {
	row := settingRow{Name: "secret/" + name}
	err := c.read.NewSelect().Model(&row).WherePK().Scan(ctx)
	if err == nil && checkRow(&row) == nil {
		return row.Value, nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, c.fail("read the secret "+name, err)
	}
	err = c.change(ctx, "keep the secret "+name, func(ctx context.Context, tx bun.Tx) error {
		fresh := settingRow{Name: row.Name, Value: make([]byte, 32)}
		rand.Read(fresh.Value)
		setChecksum(&fresh)
		if _, err := tx.NewInsert().Model(&fresh).On("CONFLICT (name) DO NOTHING").Exec(ctx); err != nil {
			return err
		}
		if err := tx.NewSelect().Model(&row).WherePK().Scan(ctx); err != nil { // another process may have been first
			return err
		}
		if err := checkRow(&row); err != nil {
			c.log.Error("a secret is damaged and made anew", "error", err)
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

// AddOrganization makes an organization. It fails with a *api.StateError of kind api.ErrConflict where there is one of
// that id.
func (c *Catalog) AddOrganization(ctx context.Context, id api.OrgID, name string) error {
	row := &organizationRow{ID: id, Name: name, CreatedAt: stamp(c.now())}
	setChecksum(row)
	return c.change(ctx, "add organization", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		if violates(err, unique) {
			return conflict("an organization with the id %q exists already", id)
		}
		return err
	})
}

// Postgres is the database of a catalogue that is in PostgreSQL, for what else is kept there; nil for SQLite. The
// catalogue closes it.
func (c *Catalog) Postgres() *sql.DB {
	if c.write.Dialect().Name() != dialect.PG {
		return nil
	}
	return c.write.DB
}
