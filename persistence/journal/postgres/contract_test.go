package postgres

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"docent/persistence/catalog/catalogtest"
	"docent/persistence/journal"
	"docent/persistence/journal/journaltest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func open(t testing.TB, dsn string, o Options) *Journal {
	t.Helper()
	o.Log = quiet
	if o.CheckpointEvery == 0 {
		o.CheckpointEvery = time.Hour // tests flush
	}
	j, err := Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestTheContractOfJournals(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, journaltest.Kind{
		New: func(t *testing.T) func(func() time.Time) journal.Store {
			dsn := catalogtest.Postgres(t)
			return func(now func() time.Time) journal.Store { return open(t, dsn, Options{Now: now}) }
		},
		Flush: func(t *testing.T, store journal.Store) { flush(t, store.(*Journal)) },
		Records: func(t *testing.T, store journal.Store) (n int) {
			t.Helper()
			if err := store.(*Journal).reads.QueryRow(t.Context(), "SELECT count(*) FROM journal_events").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		},
	})
}

// flush writes what waits, and removes what that makes superfluous.
func flush(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.checkpoint(true); err != nil {
		t.Fatal(err)
	}
	if err := j.sweepLog(t.Context()); err != nil {
		t.Fatal(err)
	}
}
