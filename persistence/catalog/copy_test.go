package catalog_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

// A catalog goes to PostgreSQL and back, and every row arrives as it was: those that carry checksums, those of the
// listings, and what each store knows of the other.
func TestACopiedCatalogIsTheSameThereAndBack(t *testing.T) {
	t.Parallel()
	target := catalogtest.Place{T: t, DSN: catalogtest.Postgres(t)}
	from := catalogtest.Place{T: t, DSN: "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.Open(catalog.Options{})
	key, pull := withOneOfEach(t, from)
	threads := catalogtest.NewThreads()
	threads.Put(api.ThreadRow{ID: "thr_1", Project: "docs", Questions: []api.QuestionRow{{ID: "msg_1", Question: "Q", Answer: "A", Answered: true,
		Asked: time.Now(), Ended: time.Now(), Rating: api.RatedUp, Rated: time.Now(), Comment: "because",
		Sources: []api.PageRef{{URL: "https://docs.example.com/a", Title: "A"}}}}})
	p := from.NewThreadProjector(threads, threads.Load, nil)
	if err := p.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ok, err := from.RememberJournal(t.Context(), catalogtest.Must(from.Identity(t.Context()))(t), "the journal", 42); err != nil || !ok {
		t.Fatal(ok, err)
	}

	there := target.Open(catalog.Options{})
	conn := catalogtest.Must(pgx.Connect(t.Context(), target.DSN))(t)
	defer conn.Close(t.Context())
	inTx := func(f func(tx pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), conn, f) }
	var done []catalog.CopiedTable
	toPostgres := func(tx pgx.Tx) (err error) {
		done, err = catalog.CopyToPostgres(t.Context(), from, tx)
		return err
	}
	broken := errors.New("broken off")
	if err := inTx(func(tx pgx.Tx) error { return errors.Join(toPostgres(tx), broken) }); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if n := len(catalogtest.Must(there.Projects(t.Context()))(t)); n != 0 {
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
	same := func(c *catalog.Catalog) {
		t.Helper()
		if found := catalogtest.Problems(t, c); len(found) != 0 {
			t.Errorf("damaged in the copy: %v", found)
		}
		if a, b := catalogtest.Must(from.Identity(t.Context()))(t), catalogtest.Must(c.Identity(t.Context()))(t); a != b {
			t.Errorf("the copy's identity is %+v, not %+v", b, a)
		}
		if got := catalogtest.Must(c.KeyByHash(t.Context(), [32]byte{1}))(t); got.Name != key.Name || !got.CreatedAt.Equal(key.CreatedAt) {
			t.Errorf("the key is %+v, not %+v", got, key)
		}
		if got := catalogtest.Must(c.Pull(t.Context(), pull.ID))(t); got.Title != pull.Title || !got.CreatedAt.Equal(pull.CreatedAt) {
			t.Errorf("the pull request is %+v, not %+v", got, pull)
		}
	}
	same(there)

	back := catalogtest.Place{T: t, DSN: "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.Open(catalog.Options{})
	fromPostgres := func(tx pgx.Tx) error {
		_, err := catalog.CopyFromPostgres(t.Context(), tx, back)
		return err
	}
	if err := inTx(fromPostgres); err != nil {
		t.Fatal(err)
	}
	same(back)

	// What is in use is not overwritten.
	catalogtest.AddProject(t, there, "news")
	var occupied *catalog.OccupiedError
	if err := inTx(toPostgres); !errors.As(err, &occupied) {
		t.Errorf("copied over a catalog that holds something else: %v", err)
	}
	if err := inTx(fromPostgres); !errors.As(err, &occupied) {
		t.Errorf("copied over a catalog that holds something else: %v", err)
	}
}
