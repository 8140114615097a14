package journal_test

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"docent/persistence/journal"
	"docent/persistence/journal/journaltest"
)

func TestTheContractOfJournals(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, journaltest.Kind{
		New: func(t *testing.T) func(func() time.Time) journal.Store {
			path := filepath.Join(t.TempDir(), "journal.db")
			return func(now func() time.Time) journal.Store {
				j, err := journal.Open(path, journal.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: now})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = j.Close() })
				return j
			}
		},
		Flush:   func(t *testing.T, j journal.Store) { journal.Flush(t, j.(*journal.Journal)) },
		Records: func(t *testing.T, j journal.Store) int { return journal.LogLength(t, j.(*journal.Journal)) },
	})
}
