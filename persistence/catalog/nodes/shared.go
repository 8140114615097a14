package nodes

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/uptrace/bun/dialect"

	"docent/api"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/persistence/catalog/database"
)

// Shared is what several nodes have in common beside the rows of the catalog and the journal: large values by name,
// who is at work on what, and how far each node follows the sources of documentation. It is in PostgreSQL alone.
type Shared struct{ db *database.DB }

// sharedTables are made when they are first needed: a catalog that one node uses by itself has none of them. A column
// that comes later is added with ALTER TABLE … ADD COLUMN IF NOT EXISTS at the end.
var sharedTables = []string{
	`SELECT pg_advisory_xact_lock(7234150848)`,
	`CREATE SEQUENCE IF NOT EXISTS shared_numbers`,
	`CREATE TABLE IF NOT EXISTS shared_values (name TEXT COLLATE "C" PRIMARY KEY, version BIGINT NOT NULL,
		size BIGINT NOT NULL, hash TEXT NOT NULL, stored_at TIMESTAMPTZ NOT NULL DEFAULT now())`,
	`CREATE TABLE IF NOT EXISTS shared_chunks (name TEXT COLLATE "C" NOT NULL, version BIGINT NOT NULL,
		part INTEGER NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (name, version, part))`,
	`ALTER TABLE shared_chunks ALTER COLUMN data SET STORAGE EXTERNAL`, // what is stored is packed already
	`CREATE TABLE IF NOT EXISTS shared_leases (name TEXT COLLATE "C" PRIMARY KEY, holder TEXT NOT NULL,
		ends_at TIMESTAMPTZ NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS shared_heads (source TEXT COLLATE "C" PRIMARY KEY, number BIGINT NOT NULL,
		commit TEXT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS shared_serving (source TEXT COLLATE "C" NOT NULL, node TEXT COLLATE "C" NOT NULL,
		number BIGINT NOT NULL, PRIMARY KEY (source, node))`,
	`CREATE TABLE IF NOT EXISTS shared_vectors (key BYTEA PRIMARY KEY, vector BYTEA NOT NULL,
		used_on DATE NOT NULL DEFAULT CURRENT_DATE)`,
}

// Shared is what nodes share in this catalog's database. It fails on SQLite.
func (s *Store) Shared(ctx context.Context) (*Shared, error) {
	if s.db.Write.Dialect().Name() != dialect.PG {
		return nil, errors.New("nodes share what is in PostgreSQL: set catalog_dsn to postgres://…")
	}
	shared := &Shared{s.db}
	return shared, shared.in(ctx, "make the tables that nodes share", nil, func(tx *sql.Tx) error {
		var there bool // asking first: a role that may not make tables needs none of the rest once they are there
		if err := tx.QueryRowContext(ctx, "SELECT to_regclass('shared_vectors') IS NOT NULL").Scan(&there); err != nil || there {
			return err
		}
		for _, statement := range sharedTables {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// in runs f in a transaction. A process that is stopped inside it holds its locks for few seconds.
func (s *Shared) in(ctx context.Context, doing string, o *sql.TxOptions, f func(*sql.Tx) error) error {
	tx, err := s.db.Write.DB.BeginTx(ctx, o)
	if err != nil {
		return s.db.Fail(doing, err)
	}
	_, err = tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = '20s'")
	if err == nil {
		err = f(tx)
	}
	if err == nil {
		err = tx.Commit()
	} else {
		_ = tx.Rollback()
	}
	return s.db.Fail(doing, err)
}

// exec runs one statement and says how many rows it changed.
func (s *Shared) exec(ctx context.Context, doing, statement string, args ...any) (int64, error) {
	res, err := s.db.Write.DB.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, s.db.Fail(doing, err)
	}
	n, err := res.RowsAffected()
	return n, s.db.Fail(doing, err)
}

// each runs a query and hands each of its rows to scan.
func (s *Shared) each(ctx context.Context, doing string, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.db.Write.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return s.db.Fail(doing, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.db.Fail(doing, err)
		}
	}
	return s.db.Fail(doing, rows.Err())
}

// A Blob is a large value as it is known without reading it.
type Blob struct {
	Name    string
	Version int64 // rises with each change of any value
	Size    int64
	Hash    string        // SHA-256, in hex
	Age     time.Duration // since it was stored, by the database's clock; only in lists
}

// blobChunk is how much of a value one row holds.
const blobChunk = 1 << 20

// Put stores a value under a name, in the place of the one before, whole or not at all: it is in the database when Put
// returns. With a lease, nothing is stored unless it is still held.
func (s *Shared) Put(ctx context.Context, name string, from io.Reader, held *Lease) (Blob, error) {
	b := Blob{Name: name}
	err := s.in(ctx, "store "+name, nil, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT nextval('shared_numbers')").Scan(&b.Version); err != nil {
			return err
		}
		hash, chunk := sha256.New(), make([]byte, blobChunk)
		for part := 0; ; part++ {
			n, err := io.ReadFull(from, chunk)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return err
			}
			if n == 0 {
				break
			}
			hash.Write(chunk[:n])
			b.Size += int64(n)
			if _, err := tx.ExecContext(ctx, "INSERT INTO shared_chunks (name, version, part, data) VALUES ($1, $2, $3, $4)",
				name, b.Version, part, chunk[:n]); err != nil {
				return err
			}
		}
		b.Hash = hex.EncodeToString(hash.Sum(nil))
		if held != nil {
			if err := held.check(ctx, tx); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO shared_values (name, version, size, hash) VALUES ($1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET version = excluded.version, size = excluded.size, hash = excluded.hash,
			stored_at = now()`, name, b.Version, b.Size, b.Hash)
		if err != nil {
			return err
		}
		// The row of the value is locked from here: of several at once, the chunks of the last one stay.
		_, err = tx.ExecContext(ctx, "DELETE FROM shared_chunks WHERE name = $1 AND version <> $2", name, b.Version)
		return err
	})
	return b, err
}

// Get writes the value of a name. It fails with api.ErrNotFound if there is none, and with ErrCorrupt if it is not
// what was stored; what was written until then is worth nothing.
func (s *Shared) Get(ctx context.Context, name string, to io.Writer) (b Blob, err error) {
	return b, s.in(ctx, "read "+name, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, func(tx *sql.Tx) error {
		b = Blob{Name: name}
		err := tx.QueryRowContext(ctx, "SELECT version, size, hash FROM shared_values WHERE name = $1", name).
			Scan(&b.Version, &b.Size, &b.Hash)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%s: %w", name, api.ErrNotFound)
		}
		if err != nil {
			return err
		}
		hash := sha256.New()
		out := io.MultiWriter(to, hash)
		for part := 0; int64(part)*blobChunk < b.Size; part++ {
			var data []byte
			err := tx.QueryRowContext(ctx, "SELECT data FROM shared_chunks WHERE name = $1 AND version = $2 AND part = $3",
				name, b.Version, part).Scan(&data)
			if errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("%w: a part of %s is missing", database.ErrCorrupt, name)
			}
			if err == nil {
				_, err = out.Write(data)
			}
			if err != nil {
				return err
			}
		}
		if hex.EncodeToString(hash.Sum(nil)) != b.Hash {
			return fmt.Errorf("%w: the hash of %s does not match", database.ErrCorrupt, name)
		}
		return nil
	})
}

// Read is a value that fits into memory.
func (s *Shared) Read(ctx context.Context, name string) ([]byte, error) {
	var out bytes.Buffer
	_, err := s.Get(ctx, name, &out)
	return out.Bytes(), err
}

// Blobs lists the values whose names begin with a prefix, in the order of their names.
func (s *Shared) Blobs(ctx context.Context, prefix string) (list []Blob, err error) {
	err = s.each(ctx, "list "+prefix, func(rows *sql.Rows) error {
		var b Blob
		var age float64
		if err := rows.Scan(&b.Name, &b.Version, &b.Size, &b.Hash, &age); err != nil {
			return err
		}
		b.Age = time.Duration(age * float64(time.Second))
		list = append(list, b)
		return nil
	}, `SELECT name, version, size, hash, extract(epoch FROM clock_timestamp() - stored_at)::float8
		FROM shared_values WHERE starts_with(name, $1) ORDER BY name`, prefix)
	return list, err
}

// Blob is what is known of one value; api.ErrNotFound if there is none.
func (s *Shared) Blob(ctx context.Context, name string) (Blob, error) {
	b := Blob{Name: name}
	err := s.db.Write.DB.QueryRowContext(ctx, "SELECT version, size, hash FROM shared_values WHERE name = $1", name).
		Scan(&b.Version, &b.Size, &b.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return b, fmt.Errorf("%s: %w", name, api.ErrNotFound)
	}
	return b, s.db.Fail("look for "+name, err)
}

// Remove removes a value. One that is not there is removed already.
func (s *Shared) Remove(ctx context.Context, name string) error {
	return s.in(ctx, "remove "+name, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM shared_values WHERE name = $1", name)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM shared_chunks WHERE name = $1", name)
		}
		return err
	})
}

// A Lease says that one process is at work on something. It ends with its work, or a while after the process was last
// heard of: by the clock of the database, so that no clocks are compared.
type Lease struct {
	s            *Shared
	name, holder string
}

const (
	leaseTerm  = 20 * time.Second // after which what a process began that is gone is anybody's
	leaseRenew = 5 * time.Second
	leaseAsk   = 500 * time.Millisecond // between two looks at one that another has
)

// ErrLeaseLost says that a piece of work was taken from a process that was not heard of for too long.
var ErrLeaseLost = errors.New("another node has taken over this work")

// Alone runs f while no other process, and nobody else in this one, runs one under the same name. It waits for its turn
// if wait is set; otherwise ran is false if somebody is at it. The context of f ends when the lease is lost.
func (s *Shared) Alone(ctx context.Context, name string, wait bool, f func(context.Context, *Lease) error) (ran bool, err error) {
	l := &Lease{s: s, name: name, holder: strings.ToLower(rand.Text())}
	for {
		got, err := s.exec(ctx, "begin "+name, `INSERT INTO shared_leases (name, holder, ends_at)
			VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3)) ON CONFLICT (name) DO UPDATE
			SET holder = excluded.holder, ends_at = excluded.ends_at WHERE shared_leases.ends_at < clock_timestamp()`,
			name, l.holder, leaseTerm.Seconds())
		if err != nil {
			return false, err
		}
		if got > 0 {
			break
		}
		if !wait {
			return false, nil
		}
		if backoff.Sleep(ctx, leaseAsk) != nil {
			return false, ctx.Err()
		}
	}
	inner, cancel := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	background.Essential("renew a lease", func() {
		defer close(kept)
		l.keep(inner, cancel)
	})
	err = f(inner, l)
	if cause := context.Cause(inner); errors.Is(cause, ErrLeaseLost) {
		err = errors.Join(err, cause)
	}
	cancel(nil)
	<-kept
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), leaseRenew)
	defer stop()
	if _, endErr := s.exec(end, "end "+name, "DELETE FROM shared_leases WHERE name = $1 AND holder = $2", name, l.holder); endErr != nil {
		s.db.Log.Debug("a lease ends by itself", "name", name, "error", endErr)
	}
	return true, err
}

// keep renews a lease until ctx ends, or ends the work when that fails.
func (l *Lease) keep(ctx context.Context, lost context.CancelCauseFunc) {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		n, err := l.s.exec(ctx, "go on with "+l.name, `UPDATE shared_leases
			SET ends_at = clock_timestamp() + make_interval(secs => $3)
			WHERE name = $1 AND holder = $2 AND ends_at > clock_timestamp()`, l.name, l.holder, leaseTerm.Seconds())
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && n > 0:
			last = began
		case err == nil, time.Since(last) > leaseTerm:
			lost(ErrLeaseLost)
			return
		}
	}
}

// check fails in a transaction if the lease is no longer held, and keeps it until the transaction ends.
func (l *Lease) check(ctx context.Context, tx *sql.Tx) error {
	var holder string
	err := tx.QueryRowContext(ctx, `SELECT holder FROM shared_leases
		WHERE name = $1 AND holder = $2 AND ends_at > clock_timestamp() FOR SHARE`, l.name, l.holder).Scan(&holder)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrLeaseLost
	}
	return err
}
