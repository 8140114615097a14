package catalog

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
)

// A catalogue goes to PostgreSQL and back, and every row arrives as it was: those that carry checksums, those of the
// listings, and what each store knows of the other.
func TestACopiedCatalogueIsTheSameThereAndBack(t *testing.T) {
	t.Parallel()
	target := place{t, catalogtest.Postgres(t)}
	from := place{t, "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.open(Options{})
	key, pull := withOneOfEach(t, from)
	threads := catalogtest.NewThreads()
	threads.Put(api.ThreadRow{ID: "thr_1", Project: "docs", Questions: []api.QuestionRow{asked("1", 1,
		rated(api.RatedUp, 2, "https://docs.example.com/a"))}})
	p := NewThreadProjector(from, threads, threads.Load, nil)
	if err := p.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ok, err := from.RememberJournal(t.Context(), must(from.Identity(t.Context()))(t), "the journal", 42); err != nil || !ok {
		t.Fatal(ok, err)
	}

	there := target.open(Options{})
	conn := must(pgx.Connect(t.Context(), target.dsn))(t)
	defer conn.Close(t.Context())
	inTx := func(f func(tx pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), conn, f) }
	var done []CopiedTable
	toPostgres := func(tx pgx.Tx) (err error) {
		done, err = CopyToPostgres(t.Context(), from, tx)
		return err
	}
	broken := errors.New("broken off")
	if err := inTx(func(tx pgx.Tx) error { return errors.Join(toPostgres(tx), broken) }); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if n := len(must(there.Projects(t.Context()))(t)); n != 0 {
		t.Fatalf("a copy that broke off left %d projects", n)
	}
	for range 2 { // the second finds everything there
		if err := inTx(toPostgres); err != nil {
			t.Fatal(err)
		}
	}
	rows := map[string]int{}
	for _, t := range done {
		rows[t.Name] = t.Rows
	}
	for _, table := range []string{"organizations", "projects", "keys", "questions", "stores", "webhook_events", "sessions"} {
		if rows[table] == 0 {
			t.Errorf("nothing of %s was copied: %v", table, rows)
		}
	}
	same := func(c *Catalog) {
		t.Helper()
		if found := problems(t, c); len(found) != 0 {
			t.Errorf("damaged in the copy: %v", found)
		}
		if a, b := must(from.Identity(t.Context()))(t), must(c.Identity(t.Context()))(t); a != b {
			t.Errorf("the copy's identity is %+v, not %+v", b, a)
		}
		if got := must(c.KeyByHash(t.Context(), [32]byte{1}))(t); got.Name != key.Name || !got.CreatedAt.Equal(key.CreatedAt) {
			t.Errorf("the key is %+v, not %+v", got, key)
		}
		if got := must(c.Pull(t.Context(), pull.ID))(t); got.Title != pull.Title || !got.CreatedAt.Equal(pull.CreatedAt) {
			t.Errorf("the pull request is %+v, not %+v", got, pull)
		}
	}
	same(there)

	back := place{t, "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.open(Options{})
	fromPostgres := func(tx pgx.Tx) error {
		_, err := CopyFromPostgres(t.Context(), tx, back)
		return err
	}
	if err := inTx(fromPostgres); err != nil {
		t.Fatal(err)
	}
	same(back)

	// What is in use is not overwritten.
	addProject(t, there, "news")
	var occupied *OccupiedError
	if err := inTx(toPostgres); !errors.As(err, &occupied) {
		t.Errorf("copied over a catalogue that holds something else: %v", err)
	}
	if err := inTx(fromPostgres); !errors.As(err, &occupied) {
		t.Errorf("copied over a catalogue that holds something else: %v", err)
	}
}
