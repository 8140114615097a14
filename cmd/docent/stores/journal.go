package stores

import (
	"context"
	"fmt"
	"log/slog"

	"docent/cmd/docent/config"
	"docent/persistence/cluster"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/persistence/journal/postgres"
)

// OpenJournal opens the journal where the settings say that it is. Lost is told if the database has lost what it had
// acknowledged to this process; nil if nobody asks.
func OpenJournal(ctx context.Context, dir *datadir.Dir, c *config.Config, lost func(reason string), log *slog.Logger) (
	journal.Store, error) {
	if c.Shared() {
		o := postgres.Options{Log: log, Now: c.Now, Node: c.NodeID, Lost: lost}
		if o.Node != "" {
			o.Application = cluster.Application(o.Node)
		}
		if c.CatalogSecret != nil {
			o.DSN = c.CatalogSecret.Value
		}
		return postgres.Open(ctx, c.CatalogDSN, o)
	}
	return journal.Open(dir.File(datadir.Journal), journal.Options{Log: log, Now: c.Now})
}

// An InFileError refuses what can be done to a journal in a file alone.
type InFileError struct{ what, instead string }

// InFile refuses what cannot be done to a journal in PostgreSQL.
func InFile(what, instead string) error { return &InFileError{what, instead} }

func (e *InFileError) Error() string {
	return fmt.Sprintf("the journal is in PostgreSQL, where docent cannot %s: %s", e.what, e.instead)
}

// JournalFile is the journal where it is in a file; else the error says what to do in place of what was asked for.
func JournalFile(j journal.Store, what, instead string) (*journal.Journal, error) {
	if file, ok := j.(*journal.Journal); ok {
		return file, nil
	}
	return nil, InFile(what, instead)
}
