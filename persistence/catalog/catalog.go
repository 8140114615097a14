// Package catalog keeps what is asked across actors, in SQL through bun (SQLite, or PostgreSQL): organizations, projects, keys,
// pull requests of the built-in host, automations, runs that read documentation anew, what was searched for, and listings of
// jobs and of answered questions, which are copies that the journal can rebuild.
package catalog

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"docent/api"

	"github.com/uptrace/bun"
)

// ErrCorrupt says that a stored row, or the whole file, is damaged.
var ErrCorrupt = errors.New("a stored record is damaged")

// DefaultOrg owns every project that names no other organization. It is made when the catalogue is first opened.
const DefaultOrg api.OrgID = "default"

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
}

// A Catalog is the SQL store. It may be used by many goroutines at once, and a SQLite or PostgreSQL catalogue by several
// processes. A change that returned without an error is on disk; last use of keys and searches are the exception, they are
// written every few seconds and at Close.
//
// Errors wrap those of package api: ErrNotFound, ErrConflict, *InvalidError, and ErrUnavailable where trying again later
// may help. They never show the password of a DSN.
type Catalog struct {
	name  string  // for errors and logs; holds no password
	path  string  // of the SQLite file; empty for PostgreSQL
	read  *bun.DB // any number of connections; the same as write on PostgreSQL
	write *bun.DB // one connection on SQLite: inside a transaction only that transaction is used, or it would wait for itself
	log   *slog.Logger
	now   func() time.Time

	projects *lookup[api.ProjectID, api.Project]
	domains  *lookup[string, api.Project]
	keys     *lookup[[32]byte, api.Key]
	touched  touches
	revision atomic.Uint64 // the number of the last change that is known here

	projector atomic.Pointer[Projector] // of jobs
	threads   atomic.Pointer[Projector]
	searched  searchLog

	stop    context.CancelFunc
	flushed chan struct{}  // closed when the background flush of touches has ended
	work    sync.WaitGroup // what else goes on in the background
	closing sync.Once
	closed  error
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
	if o.Stale == 0 {
		o.Stale = time.Second
	}
	if o.TouchEvery == 0 {
		o.TouchEvery = 5 * time.Second
	}
	if o.LockWait == 0 {
		o.LockWait = 5 * time.Second
	}
	c := &Catalog{log: o.Log, now: o.Now, flushed: make(chan struct{})}
	if err := c.open(ctx, dsn, o); err != nil {
		return nil, err
	}
	c.projects = newLookup(o, c.loadProject)
	c.domains = newLookup(o, c.loadDomain)
	c.keys = newLookup(o, c.loadKey)
	c.touched.at = make(map[api.KeyID]time.Time)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go c.flushTouches(background, o.TouchEvery)
	c.work.Go(func() { c.flushSearches(background) })
	return c, nil
}

// Close writes what is buffered and lets the database go.
func (c *Catalog) Close() error {
	c.closing.Do(func() {
		c.stop()
		<-c.flushed
		c.work.Wait()
		if err := c.writeTouches(context.Background()); err != nil {
			c.log.Warn("the last use of keys is not written", "error", err)
		}
		if err := c.writeSearches(context.Background(), true); err != nil {
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

// An Organization owns projects and keys.
type Organization struct {
	ID        api.OrgID
	Name      string
	CreatedAt time.Time
}

type organizationRow struct {
	bun.BaseModel `bun:"table:organizations"`

	ID        api.OrgID `bun:"id,pk"`
	Name      string    `bun:"name"`
	CreatedAt time.Time `bun:"created_at"`
	Checksum  int64     `bun:"checksum"`
}

// Organizations lists all organizations.
func (c *Catalog) Organizations(ctx context.Context) ([]Organization, error) {
	var rows []organizationRow
	if err := c.read.NewSelect().Model(&rows).Order("id").Scan(ctx); err != nil {
		return nil, c.fail("list organizations", err)
	}
	rows = good(c, rows)
	out := make([]Organization, len(rows))
	for i, r := range rows {
		out[i] = Organization{ID: r.ID, Name: r.Name, CreatedAt: r.CreatedAt.UTC()}
	}
	return out, nil
}

// AddOrganization makes an organization.
func (c *Catalog) AddOrganization(ctx context.Context, o Organization) (Organization, error) {
	if o.CreatedAt.IsZero() {
		o.CreatedAt = c.now()
	}
	o.CreatedAt = stamp(o.CreatedAt)
	if o.ID == "" || o.Name == "" {
		return Organization{}, &api.InvalidError{Problems: []api.Problem{{Field: "organization", Message: "needs an id and a name"}}}
	}
	row := &organizationRow{ID: o.ID, Name: o.Name, CreatedAt: o.CreatedAt}
	setChecksum(row)
	err := c.change(ctx, "add organization", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(row).Exec(ctx)
		if violates(err, unique) {
			return conflict("an organization with the id %q exists already", o.ID)
		}
		return err
	})
	return o, err
}

type settingRow struct {
	bun.BaseModel `bun:"table:settings"`

	Name     string `bun:"name,pk"`
	Value    []byte `bun:"value"`
	Checksum int64  `bun:"checksum"`
}

// Secret is the installation's random secret of that name: 32 bytes, made on first use and the same ever after. A damaged one is
// made anew: what it has signed is worth nothing then, and whoever was signed in signs in again.
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

// stamp is the time as it is stored and shown: UTC with milliseconds.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func stampPtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	s := stamp(*t)
	return &s
}

func conflict(format string, args ...any) error {
	return &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf(format, args...)}
}

func encodeBody(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b, nil
}

func decodeBody(body json.RawMessage, v any, what string) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	return nil
}

// askable reports whether a text from outside can be asked for at all: PostgreSQL refuses a statement with other bytes.
func askable(s string) bool {
	return len(s) <= 1024 && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}
