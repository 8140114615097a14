package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/stores"
	"docent/forge"
	"docent/forge/shared"
	"docent/persistence"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/persistence/journal/postgres"
)

// A JournalCopied says what was copied, or was found to be the same already.
type JournalCopied struct {
	From    string                `json:"from"`
	To      string                `json:"to"`
	Already bool                  `json:"alreadyThere"` // the journal: an earlier copy is complete
	Journal journal.Contained     `json:"journal"`
	Catalog []catalog.CopiedTable `json:"catalog,omitempty"`      // empty if the catalog stays where it is
	Host    []forge.Moved         `json:"repositories,omitempty"` // of the built-in host
	Notes   []string              `json:"notes,omitempty"`
}

// A journalCopy is one run of the command.
type journalCopy struct {
	config config.Config
	dir    *datadir.Dir
	dsn    string // of PostgreSQL
	log    *slog.Logger
	done   JournalCopied
	alone  bool // without the catalog
}

// CopyJournal copies the journal and, unless alone is set, the catalog into PostgreSQL or back. All servers must be stopped.
func CopyJournal(ctx context.Context, c config.Config, to string, alone bool) (_ JournalCopied, err error) {
	k := &journalCopy{config: c, dsn: c.CatalogDSN, log: slog.New(slog.DiscardHandler), alone: alone}
	if !strings.HasPrefix(k.dsn, "postgres") {
		return k.done, errors.New("catalog_dsn names no PostgreSQL database: set it to the one that nodes share, postgres://…")
	}
	if to == config.JournalPostgres {
		k.dir, err = openStopped(c, "journal copy")
	} else {
		k.dir, err = datadir.Open(c.Data, "journal copy", 10*time.Second)
	}
	if err != nil {
		return k.done, err
	}
	defer k.dir.Close()
	if !alone && to == config.JournalPostgres {
		size, err := stores.FileSize(k.dir.File(datadir.Catalog))
		if err != nil {
			return k.done, err
		}
		k.alone = size == 0 // the catalog is on PostgreSQL already
	}
	conn, err := pgx.Connect(ctx, k.dsn)
	if err != nil {
		return k.done, errors.New("connect to the database of catalog_dsn: " + withoutDSN(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := nobodyServes(ctx, conn); err != nil {
		return k.done, err
	}
	if to == config.JournalPostgres {
		err = k.toPostgres(ctx, conn)
	} else {
		err = k.toFile(ctx, conn)
	}
	return k.done, err
}

// withoutDSN is what went wrong with a connection, without what the error repeats of the address.
func withoutDSN(err error) string {
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return "it is not a valid postgres:// URL"
	}
	return err.Error()
}

// nobodyServes refuses a database that a node has open.
func nobodyServes(ctx context.Context, conn *pgx.Conn) error {
	var had bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('cluster_nodes') IS NOT NULL").Scan(&had); err != nil || !had {
		return err
	}
	rows, err := conn.Query(ctx, `SELECT DISTINCT n.name FROM cluster_nodes n JOIN pg_stat_activity a
		ON a.datname = current_database() AND a.application_name = 'docent ' || n.id ORDER BY 1`)
	if err != nil {
		return fmt.Errorf("look for nodes that use the database: %w", err)
	}
	nodes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(nodes) > 0 {
		err = fmt.Errorf("the database is in use by the node %s: stop all nodes first", strings.Join(nodes, ", "))
	}
	return err
}

// openBoth opens the catalog and the journal on PostgreSQL, which makes the tables where there are none.
func (k *journalCopy) openBoth(ctx context.Context) (*catalog.Catalog, *postgres.Journal, error) {
	cat, err := catalog.Open(ctx, k.dsn, stores.CatalogOptions(k.config, k.log))
	if err != nil {
		return nil, nil, fmt.Errorf("open the catalog: %w", err)
	}
	j, err := postgres.Open(ctx, k.dsn, postgres.Options{Log: k.log, Now: k.config.Now, Application: "docent journal copy"})
	if err != nil {
		return nil, nil, errors.Join(err, cat.Close())
	}
	return cat, j, nil
}

// paired refuses two stores that do not belong together.
func paired(ctx context.Context, which string, j journal.Store, c *catalog.Catalog) error {
	reason, err := persistence.Disagreement(ctx, j, c)
	if err == nil && reason != "" {
		err = fmt.Errorf("%s: %w", which, &persistence.MismatchError{Reason: reason})
	}
	return err
}

// toPostgres copies journal and catalog in one transaction: both are there in the end, or neither.
func (k *journalCopy) toPostgres(ctx context.Context, conn *pgx.Conn) (err error) {
	if err := hasJournal(k.dir.Path); err != nil {
		return err
	}
	path := k.dir.File(datadir.Journal)
	k.done.From, k.done.To = k.dir.Path, "database "+conn.Config().Database
	target, there, err := k.openBoth(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := there.Close(); err != nil { // from here on this command alone writes
		return err
	}
	from := target
	if !k.alone {
		if from, err = catalog.Open(ctx, "sqlite:"+k.dir.File(datadir.Catalog), stores.CatalogOptions(k.config, k.log)); err != nil {
			return fmt.Errorf("open the catalog to copy from: %w", err)
		}
		defer func() { err = errors.Join(err, from.Close()) }()
	}
	if err := k.sourcePaired(ctx, path, from); err != nil {
		return err
	}
	in, err := journal.Inspect(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		empty, err := postgres.Empty(ctx, tx)
		if err != nil {
			return err
		}
		if k.done.Already = !empty; empty {
			if err := postgres.Import(ctx, tx, in.Contents); err != nil {
				return err
			}
		}
		copied := func(yield func(any) error) error { return postgres.Contents(ctx, tx, yield) }
		if k.done.Journal, err = journal.Compare(in.Contents, copied); err != nil {
			return k.differs(err)
		}
		if !k.alone {
			k.done.Catalog, err = catalog.CopyToPostgres(ctx, from, tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	k.done.Notes = append(k.done.Notes, `Next: set journal = "postgres", and start one node with this data directory.`)
	if err := k.hosted(ctx, target, forge.ToShared); err != nil {
		return err
	}
	return k.targetPaired(ctx)
}

// hosted copies the repositories of the built-in host, and compares them.
func (k *journalCopy) hosted(ctx context.Context, on *catalog.Catalog,
	move func(ctx context.Context, dir string, projects []api.Project, store *shared.Store, o forge.Options) ([]forge.Moved, error),
) error {
	projects, err := on.Projects(ctx)
	if err != nil {
		return err
	}
	var sources []api.Project
	for _, p := range projects {
		sources = append(sources, p.Parts()...)
	}
	store, err := shared.Open(ctx, on.Postgres())
	if err == nil {
		k.done.Host, err = move(ctx, k.dir.File(datadir.Repos), sources, store, forge.Options{Log: k.log, Now: k.config.Now})
	}
	if err != nil {
		err = fmt.Errorf("copy the repositories of the built-in host: %w", err)
	}
	return err
}

// sourcePaired opens the journal as a server would, and looks whether it is the catalog's.
func (k *journalCopy) sourcePaired(ctx context.Context, path string, c *catalog.Catalog) error {
	j, err := journal.Open(path, journal.Options{Log: k.log})
	if err != nil {
		return fmt.Errorf("open the journal: %w; `docent journal check` says more", err)
	}
	return errors.Join(paired(ctx, "what is to be copied", j, c), j.Close())
}

// targetPaired looks at the copies on PostgreSQL as a node will.
func (k *journalCopy) targetPaired(ctx context.Context) error {
	cat, j, err := k.openBoth(ctx)
	if err != nil {
		return err
	}
	return errors.Join(paired(ctx, "the copy", j, cat), j.Close(), cat.Close())
}

func (k *journalCopy) differs(err error) error {
	if k.done.Already {
		return fmt.Errorf("%s holds another journal: nothing was changed (%w)", k.done.To, err)
	}
	return fmt.Errorf("the copy of the journal differs, and was thrown away: %w", err)
}

// toFile copies the catalog first: a catalog without its journal is refused at the start, and is found to be the
// same when this is run again.
func (k *journalCopy) toFile(ctx context.Context, conn *pgx.Conn) (err error) {
	path := k.dir.File(datadir.Journal)
	k.done.From, k.done.To = "database "+conn.Config().Database, k.dir.Path
	from, there, err := k.openBoth(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if err := errors.Join(paired(ctx, "what is to be copied", there, from), there.Close()); err != nil {
		return err
	}
	// One state of the database for all that is read.
	frozen := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, conn, frozen, func(tx pgx.Tx) error { return k.frozenToFile(ctx, tx, path) })
	if err != nil {
		return err
	}
	k.done.Notes = append(k.done.Notes,
		"Secrets that were entered in the console and uploads stay in the database: copy the folders secrets and sources from the first "+
			"node's data directory, or enter and upload them again.",
		`Next: set journal = "bbolt", take catalog_dsn out unless the catalog stays there, and start the server.`)
	return k.hosted(ctx, from, func(ctx context.Context, dir string, projects []api.Project, store *shared.Store, o forge.Options) (
		[]forge.Moved, error) {
		return forge.FromShared(ctx, store, dir, projects, o)
	})
}

func (k *journalCopy) frozenToFile(ctx context.Context, tx pgx.Tx, path string) error {
	contents := func(yield func(any) error) error { return postgres.Contents(ctx, tx, yield) }
	size, err := stores.FileSize(path)
	if err != nil {
		return err
	}
	if k.done.Already = size > 0; k.done.Already { // before the catalog is touched
		if err := k.compareFile(path, contents); err != nil {
			return err
		}
	}
	if !k.alone {
		to, err := catalog.Open(ctx, "sqlite:"+k.dir.File(datadir.Catalog), stores.CatalogOptions(k.config, k.log))
		if err != nil {
			return fmt.Errorf("open the catalog to copy to: %w", err)
		}
		k.done.Catalog, err = catalog.CopyFromPostgres(ctx, tx, to)
		if err := errors.Join(err, to.Close()); err != nil {
			return err
		}
	}
	if k.done.Already {
		return nil
	}
	if err := journal.Import(path, contents); err != nil {
		return err
	}
	return k.compareFile(path, contents)
}

func (k *journalCopy) compareFile(path string, contents func(yield func(any) error) error) error {
	in, err := journal.Inspect(path)
	if err != nil {
		return err
	}
	k.done.Journal, err = journal.Compare(contents, in.Contents)
	if err != nil {
		err = k.differs(err)
	}
	return errors.Join(err, in.Close())
}
