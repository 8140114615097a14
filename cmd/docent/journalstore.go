package main

import (
	"context"
	"fmt"
	"log/slog"

	"docent/cluster"
	"docent/datadir"
	"docent/persistence/journal"
	"docent/persistence/journal/postgres"
)

// openJournal opens the journal where the settings say that it is. Nodes are nil for a process that is known to be alone.
func openJournal(ctx context.Context, dir *datadir.Dir, c *Config, nodes *cluster.Members, log *slog.Logger) (
	journal.Store, error) {
	if c.shared() {
		o := postgres.Options{Log: log, Now: c.now, Node: nodes.Fence(), Lost: nodes.End}
		if o.Node != "" {
			o.Application = cluster.Application(o.Node)
		}
		if c.catalog != nil {
			o.DSN = c.catalog.Value
		}
		return postgres.Open(ctx, c.CatalogDSN, o)
	}
	return journal.Open(dir.File(datadir.Journal), journal.Options{Log: log, Now: c.now})
}

// An inFileError refuses what can be done to a journal in a file alone.
type inFileError struct{ what, instead string }

func (e *inFileError) Error() string {
	return fmt.Sprintf("the journal is in PostgreSQL, where docent cannot %s: %s", e.what, e.instead)
}

// journalFile is the journal where it is in a file; else the error says what to do in place of what was asked for.
func journalFile(j journal.Store, what, instead string) (*journal.Journal, error) {
	if file, ok := j.(*journal.Journal); ok {
		return file, nil
	}
	return nil, &inFileError{what, instead}
}
