// Package postgres implements a journal in a PostgreSQL database that several nodes share.
//
// Each node has one committer: it sends the appends that wait as one batch, in one call of a function of the database.
// That locks the one row of journal_head first, so the commits of all nodes come one after the other and positions rise
// in the order of commits, with no gap that is filled later; then it looks whether the node was given up. So a node that
// was given up under that lock writes nothing any more, whatever it has sent.
//
// A batch has a number, and the database keeps the last number of each writer with what became of the batch. A batch
// whose answer was lost is sent again under its number and takes place once.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"docent/api"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/persistence/journal"
)

// Options change how a journal is opened.
type Options struct {
	Log *slog.Logger // default slog.Default
	// Now decides when claims expire and in which slot a use is stored. If nil, claims go by the machine's clock, as
	// those who make them do, and uses by the database's: nodes whose machines disagree count alike.
	Now func() time.Time
	// Node is the id of this process in cluster_nodes. Once others evict the node, it writes nothing more. Empty
	// if nobody can: for a process that is known to be alone.
	Node string
	// Lost is told, once, that the database has lost what it had acknowledged: what this process remembers is wrong, the
	// journal takes nothing from it any more, and it is to end.
	Lost func(reason string)
	// Application is the application_name of the connections.
	Application string
	// DSN is that of new connections, where user and password may change; nil if they do not.
	DSN func() string
	// CheckpointEvery is how long snapshots are collected before they are written; default 2 s.
	CheckpointEvery time.Duration
	// Patience is how long appends wait for a database that does not answer; default 10 s.
	Patience time.Duration
	// Poll is how often a follower looks by itself whether others have written; default 5 s.
	Poll time.Duration

	wall func() time.Time // the machine's clock, time.Now but in tests
}

// Format is the version of the tables. A program that does not know it refuses the database.
const Format = 1

//go:embed tables.sql
var tables string

// A Journal keeps streams of events in a PostgreSQL database.
type Journal struct {
	opts   Options
	log    *slog.Logger
	config *pgx.ConnConfig
	reads  *pgxpool.Pool
	name   string // of the database, for messages
	id     string
	writer string // this process, in journal_writers
	topic  string // that the database's notifications have
	losses int64  // as counted in the database when this process began

	context context.Context // ends with Close, but for what waits then
	cancel  context.CancelFunc
	stop    chan struct{} // closed by Close
	loops   background.Work
	fenced  atomic.Bool
	ahead   atomic.Int64 // nanoseconds that the database's clock is ahead of the machine's
	lost    atomic.Bool  // the database has lost commits

	position atomic.Uint64
	trimmed  atomic.Uint64

	commits committer
	snaps   snapshots
	follows follows
	quotas  quotas
	metrics metrics
}

var _ journal.Store = (*Journal)(nil)

// tablesLock is the advisory lock that is held while tables are made.
const tablesLock = 7234150850

// Open opens the journal in a database, or makes it.
func Open(ctx context.Context, dsn string, o Options) (_ *Journal, err error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.wall == nil {
		o.wall = time.Now
	}
	if o.Now != nil {
		o.wall = o.Now
	}
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, 2*time.Second)
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	o.Poll = cmp.Or(o.Poll, 5*time.Second)
	pool, err := pgxpool.ParseConfig(dsn)
	if err != nil { // it may repeat parts of the DSN, which holds a password
		return nil, errors.New("open the journal: catalog_dsn is not a valid postgres:// URL")
	}
	j := &Journal{opts: o, log: o.Log, config: pool.ConnConfig, stop: make(chan struct{}), writer: rand.Text(),
		name: fmt.Sprintf("%s on PostgreSQL at %s:%d", pool.ConnConfig.Database, pool.ConnConfig.Host, pool.ConnConfig.Port)}
	j.context, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			j.cancel()
			if j.reads != nil {
				j.reads.Close()
			}
			err = fmt.Errorf("open the journal %s: %w", j.name, err)
		}
	}()
	if o.Application != "" {
		j.config.RuntimeParams["application_name"] = o.Application
	}
	// A role or database with another default would have commits fail that only have to wait.
	j.config.RuntimeParams["default_transaction_isolation"] = "read committed"
	j.metrics.times = journal.NewTimes()
	pool.MaxConns, pool.MinConns = 8, 0
	pool.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error { j.credentials(to); return nil }
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET jit = off; SET synchronous_commit = off") // what is written here loses nothing when it is lost
		return err
	}
	if j.reads, err = pgxpool.NewWithConfig(j.context, pool); err != nil {
		return nil, err
	}
	if err := j.makeTables(ctx); err != nil {
		return nil, err
	}
	if err := j.readState(ctx); err != nil {
		return nil, err
	}
	j.commits.init()
	j.snaps.init()
	j.follows.init()
	if err := j.quotas.init(ctx, j); err != nil {
		return nil, err
	}
	j.loops.Essential("journal commit loop", j.commitLoop)
	j.loops.Essential("journal listen loop", j.listenLoop)
	j.loops.Essential("journal checkpoint loop", j.checkpointLoop)
	j.loops.Essential("journal sweep loop", j.sweepLoop)
	j.loops.Essential("journal quota loop", j.quotas.loop)
	return j, nil
}

func (j *Journal) credentials(to *pgx.ConnConfig) {
	if j.opts.DSN == nil {
		return
	}
	if now, err := pgx.ParseConfig(j.opts.DSN()); err == nil {
		to.User, to.Password = now.User, now.Password
	}
}

// connect makes a connection beside the pool's.
func (j *Journal) connect(ctx context.Context) (*pgx.Conn, error) {
	config := j.config.Copy()
	j.credentials(config)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, config)
}

const connectTimeout = 5 * time.Second

// tablesWait is for how long at most commits wait for a node that makes tables. An autovacuum that is in the way gives
// way after deadlock_timeout, which is a second; the rest is for that.
const tablesWait = "1500ms"

// makeTables makes what is missing. If something is in the way, such as a VACUUM, it lets go of all locks for a while
// and tries again.
func (j *Journal) makeTables(ctx context.Context) error {
	pause := backoff.Exponential(500*time.Millisecond, 8*time.Second)
	for n := 1; ; n++ {
		err := j.tryTables(ctx)
		const lockTimeout = "55P03"
		if code(err) != lockTimeout {
			return err
		}
		if n == 1 {
			j.log.Warn("this node starts once nothing locks the journal's tables; a VACUUM does", "journal", j.name, "error", err)
		}
		if err := backoff.Sleep(ctx, pause(n)); err != nil {
			return err
		}
	}
}

// tryTables makes what is missing, under a lock that other nodes wait for.
func (j *Journal) tryTables(ctx context.Context) error {
	c, err := j.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit there is nothing to roll back
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", tablesLock); err != nil {
		return err
	}
	var made bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass('journal_head') IS NOT NULL").Scan(&made); err != nil {
		return err
	}
	if made {
		var format int
		err := tx.QueryRow(ctx, "SELECT format FROM journal_head").Scan(&format)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if format > Format {
			return fmt.Errorf("its tables have format %d, and this version of docent knows formats up to %d: "+
				"start the newer version again", format, Format)
		}
	}
	if err := runTables(ctx, tx, made); err != nil {
		return err
	}
	// Processes say every few minutes that they are there.
	if _, err := tx.Exec(ctx, "DELETE FROM journal_writers WHERE seen < now() - interval '30 days'"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, registerWriter, j.writer); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// runTables runs the statements of tables.sql if that was not done before. Those that add an index wait for all who
// write to its table, even if the index exists: the lock of the head keeps commits away meanwhile, for tablesWait at
// most, and a node that only starts again holds nobody up.
func runTables(ctx context.Context, tx pgx.Tx, made bool) error {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(tables)))
	if made {
		var done bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass('journal_made') IS NOT NULL").Scan(&done); err != nil {
			return err
		}
		if done {
			if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM journal_made WHERE tables = $1)", sum).Scan(&done); err != nil ||
				done {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+tablesWait+"'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT FROM journal_head FOR UPDATE"); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, tables); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO journal_state VALUES (true, 0, '', 0) ON CONFLICT DO NOTHING"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO journal_head VALUES (true, $1, $2, 0) ON CONFLICT DO NOTHING", Format,
		rand.Text()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO journal_made VALUES ($1) ON CONFLICT DO NOTHING", sum)
	return err
}

const registerWriter = "INSERT INTO journal_writers VALUES ($1, now(), 0, 0, '{}', '{}')"

func (j *Journal) readState(ctx context.Context) error {
	var position, trimmed int64
	asked, began := j.opts.wall(), time.Now()
	var clock time.Time
	err := j.reads.QueryRow(ctx, "SELECT id, position, trimmed, losses, clock_timestamp(), 'docent_journal_' || 'journal_head'::regclass::oid "+
		"FROM journal_head, journal_state").Scan(&j.id, &position, &trimmed, &j.losses, &clock, &j.topic)
	j.position.Store(uint64(position))
	j.trimmed.Store(uint64(trimmed))
	if err != nil {
		return err
	}
	j.tells(clock, asked, time.Since(began))
	return j.count(ctx)
}

// tells takes the time that the database told, who was asked at a time of the machine's clock and has answered after some
// while.
func (j *Journal) tells(clock, asked time.Time, took time.Duration) {
	if took < time.Second || j.ahead.Load() == 0 { // a slow answer says little
		j.ahead.Store(int64(clock.Sub(asked.Add(took / 2))))
	}
}

// now is the time that uses of all nodes go by.
func (j *Journal) now() time.Time { return j.ours(j.opts.wall()) }

// ours is the time that uses of all nodes go by at a time of the machine's clock.
func (j *Journal) ours(at time.Time) time.Time {
	if j.opts.Now != nil {
		return at
	}
	return at.Add(time.Duration(j.ahead.Load()))
}

// Fenced reports whether the node was given up, or ends since the database has lost commits.
func (j *Journal) Fenced() bool { return j.fenced.Load() }

// Close refuses further appends, writes what waits, snapshots included, and closes the connections.
func (j *Journal) Close() error {
	if !j.commits.close() {
		return nil
	}
	close(j.stop)
	j.loops.Wait()
	j.cancel()
	j.reads.Close()
	return nil
}

// unavailable is the error of what the database did not take.
func (j *Journal) unavailable(err error) error {
	return fmt.Errorf("%w: %w", &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second}, err)
}

// Codes of errors that the journal's functions raise.
const (
	codeFenced = "DC001"
	codeBatch  = "DC002"
)

func code(err error) string {
	if at, ok := errors.AsType[*pgconn.PgError](err); ok {
		return at.Code
	}
	return ""
}

// passing reports whether an error may be gone when the same is tried again: the connection is, the server stops or is
// full, it is a replica for now, or others were in the way.
func passing(err error) bool {
	c := code(err)
	if c == "" {
		return true
	}
	switch c[:2] {
	case "08", "25", "40", "53", "55", "57", "58", "XX", "28", "3D":
		return true
	}
	return false
}
