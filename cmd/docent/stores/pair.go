package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"docent/cmd/docent/config"
	"docent/persistence"
	"docent/persistence/backup"
	"docent/persistence/catalog"
	"docent/persistence/cluster"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// CatalogDSN names the catalog of a data directory.
func CatalogDSN(dir *datadir.Dir, c config.Config) string {
	if c.CatalogDSN != "" {
		return c.CatalogDSN
	}
	return "sqlite:" + dir.File(datadir.Catalog)
}

// CatalogOptions are how the settings have the catalog opened.
func CatalogOptions(c config.Config, log *slog.Logger) catalog.Options {
	o := catalog.Options{Log: log, Now: c.Now, Nodes: c.Shared(), Journal: c.Shared()}
	if c.CatalogSecret != nil {
		o.DSN = c.CatalogSecret.Value
	}
	if id := c.NodeID; id != "" {
		o.Application = cluster.Application(id)
		o.Admit = func(ctx context.Context, conn *pgx.Conn) error { return cluster.Admit(ctx, conn, id) }
	}
	return o
}

// CatalogFile is the catalog's file; empty if it is on PostgreSQL.
func CatalogFile(dsn string) string {
	path, ok := strings.CutPrefix(dsn, "sqlite:")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(path, "//")
}

// FileSize is 0 if there is no file.
func FileSize(path string) (int64, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// whatNow says what to do about stores that do not belong together.
func whatNow(dir *datadir.Dir, err error) error {
	var mismatch *persistence.MismatchError
	if !errors.As(err, &mismatch) {
		return err
	}
	return fmt.Errorf("%w. Put both back from the same backup; or, to go on with what is there, look at what `docent journal adopt --data %s` says", err, dir.Path)
}

// catalogInPlace refuses a journal beside which the catalog's file is missing or empty, before a new one is made in
// its place.
func catalogInPlace(dir *datadir.Dir, dsn string) error {
	file := CatalogFile(dsn)
	if file == "" {
		return nil
	}
	catalog, err := FileSize(file)
	if err != nil {
		return err
	}
	journal, err := FileSize(dir.File(datadir.Journal))
	if err != nil || catalog > 0 || journal == 0 {
		return err
	}
	return whatNow(dir, &persistence.MismatchError{Reason: fmt.Sprintf(
		"there is a journal, and the catalog's file %s is missing or empty", file)})
}

// journalInPlace refuses a catalog that has worked with a journal which is not there, before a new one is made in
// its place.
func journalInPlace(ctx context.Context, dir *datadir.Dir, c *catalog.Catalog) error {
	size, err := FileSize(dir.File(datadir.Journal))
	if err != nil || size > 0 {
		return err
	}
	seen, worked, err := c.SeenJournal(ctx)
	if err != nil || !worked {
		return err
	}
	return whatNow(dir, &persistence.MismatchError{Reason: fmt.Sprintf(
		"the journal %s is missing or empty, and %s has seen one up to position %d",
		dir.File(datadir.Journal), c, seen)})
}

// Pair makes sure that the journal and the catalog of a data directory belong together; restored says whether they
// were put back from a backup.
func Pair(ctx context.Context, dir *datadir.Dir, j journal.Store, c *catalog.Catalog) (end func(), err error) {
	restored := false
	text, err := os.ReadFile(dir.File(datadir.Backup))
	switch {
	case err == nil:
		restored = true
		var report backup.Report
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, fmt.Errorf("read %s: %w", datadir.Backup, err)
		}
		if at := j.Position(); at < report.Position {
			return nil, whatNow(dir,
				&persistence.MismatchError{Reason: fmt.Sprintf(
					"the backup's journal ends at position %d, and this one at position %d", report.Position, at)})
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	end, err = persistence.Pair(ctx, j, c, restored)
	return end, whatNow(dir, err)
}
