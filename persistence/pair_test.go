package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/journal"
)

func openJournal(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Log: slog.New(slog.DiscardHandler), CheckpointEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func openCatalog(t *testing.T, dsn string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(t.Context(), dsn, catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// say appends an event that holds a text, and returns its sequence number.
func say(t *testing.T, j *journal.Journal, stream, text string) uint64 {
	t.Helper()
	was, err := j.Load(stream)
	if err != nil {
		t.Fatal(err)
	}
	last, err := j.Append(t.Context(), journal.Append{Stream: stream, After: was.Seq,
		Events: []journal.Event{{Type: "test.said.1", Data: []byte(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// jobs lists all jobs of the project docs, as the journal knows them now.
func jobs(t *testing.T, c *catalog.Catalog) []api.JobRow {
	t.Helper()
	rows, err := c.Jobs(t.Context(), catalog.JobQuery{Project: "docs", MinPos: catalog.Newest})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func jobOf(n int) string { return fmt.Sprintf("job/job_%04d", n) }

// exec changes a catalog behind its back.
func exec(t *testing.T, dsn, statement string) {
	t.Helper()
	driver, path := "pgx", dsn
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, path = "sqlite", file
	}
	db, err := sql.Open(driver, path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(statement)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestStoresThatDoNotBelongTogetherAreToldApart goes through what may have become of either store.
func TestStoresThatDoNotBelongTogetherAreToldApart(t *testing.T) {
	j := journal.Identity{ID: "j", Catalog: "c", Revision: 5, Position: 57, Seen: 50}
	c := catalog.Identity{ID: "c", Revision: 6, Journal: "j", Position: 55}
	for name, of := range map[string]struct {
		change   func(*journal.Identity, *catalog.Identity)
		restored bool
		want     string // what the reason says; empty if they belong together
	}{
		"as a crash leaves them": {func(*journal.Identity, *catalog.Identity) {}, false, ""},
		"both new": {func(j *journal.Identity, c *catalog.Identity) {
			*j, *c = journal.Identity{ID: "j"}, catalog.Identity{ID: "c"}
		}, false, ""},
		"projects before the server": {func(j *journal.Identity, c *catalog.Identity) {
			*j, *c = journal.Identity{ID: "j"}, catalog.Identity{ID: "c", Revision: 9}
		}, false, ""},
		"both of an older version": {func(j *journal.Identity, c *catalog.Identity) {
			*j, *c = journal.Identity{Position: 57, Seen: 50}, catalog.Identity{ID: "c", Position: 55}
		}, false, ""},
		"of an older version, a rebuild broken off": {func(j *journal.Identity, c *catalog.Identity) {
			*j, *c = journal.Identity{Position: 57, Seen: 50}, catalog.Identity{ID: "c", Position: 20, Partial: true}
		}, false, ""},
		"a pair half made": {func(j *journal.Identity, c *catalog.Identity) {
			j.Catalog, j.Revision = "",
				0
		}, false, ""},
		"restored, the catalog copied later": {func(j *journal.Identity, c *catalog.Identity) { c.Position = 60 }, true,
			""},
		"the journal new": {func(j *journal.Identity,
			c *catalog.Identity) {
			*j = journal.Identity{ID: "k"}
		}, false, "the journal is new"},
		"the journal new after an upgrade": {func(j *journal.Identity, c *catalog.Identity) {
			*j,
				c.Journal = journal.Identity{ID: "k"}, ""
		}, false, "last 55 events"},
		"the journal another one's": {func(j *journal.Identity, c *catalog.Identity) {
			j.ID, j.Catalog = "k",
				"d"
		}, false, "another journal"},
		"the journal's end lost": {func(j *journal.Identity, c *catalog.Identity) { j.Position = 52 }, false,
			"last 3 events"},
		"the catalog new": {func(j *journal.Identity,
			c *catalog.Identity) {
			*c = catalog.Identity{ID: "d"}
		}, false, "the catalog is new"},
		"the catalog new after an upgrade": {func(j *journal.Identity, c *catalog.Identity) {
			j.Catalog, *c = "",
				catalog.Identity{ID: "d"}
		}, false, "older copy"},
		"the catalog another one's": {func(j *journal.Identity, c *catalog.Identity) {
			*c = catalog.Identity{ID: "d", Journal: "j", Position: 57}
		}, false, "another catalog"},
		"the catalog without its last change": {func(j *journal.Identity, c *catalog.Identity) { c.Revision = 3 }, false,
			"last 2 changes"},
		"the catalog an older copy": {func(j *journal.Identity, c *catalog.Identity) { c.Position = 49 }, false,
			"position 49"},
		"restored, the catalog older": {func(j *journal.Identity, c *catalog.Identity) { c.Revision = 3 }, true,
			"last 2 changes"},
		"restored, the catalog another one's": {func(j *journal.Identity, c *catalog.Identity) { c.Journal = "k" }, true,
			"another journal"},
	} {
		j, c := j, c
		of.change(&j, &c)
		if got := disagreement(j, c, of.restored); (got == "") != (of.want == "") || !strings.Contains(got, of.want) {
			t.Errorf("%s: %q, want %q", name, got, of.want)
		}
	}
}

// TestAStoreIsNotTakenForANewOne pairs a journal and a catalog, and then offers each an older copy, a new one and
// another's.
func TestAStoreIsNotTakenForANewOne(t *testing.T) {
	catalogtest.Each(t, func(t *testing.T, dsn string) {
		c := openCatalog(t, dsn)
		path := filepath.Join(t.TempDir(), "journal.db")
		j := openJournal(t, path)
		pairs := func(what string, j *journal.Journal) {
			t.Helper()
			end, err := Pair(t.Context(), j, c, false)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			end()
		}
		refused := func(what string, j *journal.Journal, want string) {
			t.Helper()
			_, err := Pair(t.Context(), j, c, false)
			if mismatch := new(MismatchError); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		pairs("new ones", j)
		pairs("once more", j)
		if _, err := c.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com",
			Source: "/srv/docs"}); err != nil {
			t.Fatal(err)
		}
		say(t, j, "job/a", "x")
		pairs("with a project and a job", j)
		has, err := c.Identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if is := j.Identity(); is.Revision != has.Revision || is.Revision == 0 {
			t.Errorf("the journal has not heard of the project: %+v", is)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		older, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		j = openJournal(t, path)
		pairs("reopened", j)
		say(t, j, "job/a", "y")
		follower, err := j.Follow(catalog.JobListing)
		if err != nil {
			t.Fatal(err)
		}
		projector := c.NewProjector(follower, func(ctx context.Context, stream string) (api.JobRow, bool, error) {
			return api.JobRow{Project: "docs", Seq: 1}, true, nil
		}, nil)
		running, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			projector.Run(running)
		}()
		if err := projector.Wait(t.Context(), catalog.Newest); err != nil {
			t.Fatal(err)
		}
		stop()
		<-ended
		follower.Close()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(t.TempDir(), "older.db")
		if err := os.WriteFile(other, older, 0o600); err != nil {
			t.Fatal(err)
		}
		refused("an older copy of the journal", openJournal(t, other), "last 1 events")
		refused("a new journal", openJournal(t, filepath.Join(t.TempDir(), "new.db")), "the journal is new")
		j = openJournal(t, path)
		pairs("the right one", j)

		exec(t, dsn, "UPDATE stores SET position = position - 1 WHERE name = 'catalog'")
		c = openCatalog(t, dsn) // which has not heard of it
		refused("a catalog without its last change", j, "last 1 changes")
		if err := Adopt(t.Context(), j, c); err != nil {
			t.Fatal(err)
		}
		pairs("adopted", j)
		left, err := c.Jobs(t.Context(), catalog.JobQuery{Project: "docs"})
		if err != nil || len(left) != 0 {
			t.Errorf("after the adoption the listing has %v before it is rebuilt: %v", left, err)
		}
	})
}

// A sharedJournal is a journal that other nodes write to as well: what this node has heard of it comes late.
type sharedJournal struct {
	journal.Store
	heard uint64 // the position that this node knows without asking
	asked int
	then  func() // what others do once this node has asked for the first time
}

func (s *sharedJournal) Position() uint64 { return s.heard }

func (s *sharedJournal) Identity() journal.Identity {
	s.asked++
	if s.asked == 2 && s.then != nil {
		s.then()
	}
	return s.Store.Identity()
}

// TestNodesThatStartAtOnceBecomeOnePair has another process pair the new catalog while this one does: with the same
// journal both go on, with another one the later is refused.
func TestNodesThatStartAtOnceBecomeOnePair(t *testing.T) {
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("same=%t", same), func(t *testing.T) {
			catalogtest.Each(t, func(t *testing.T, dsn string) {
				j, c := openJournal(t, filepath.Join(t.TempDir(), "journal.db")), openCatalog(t, dsn)
				others := j
				if !same {
					others = openJournal(t, filepath.Join(t.TempDir(), "another.db"))
				}
				end, err := Pair(t.Context(), &sharedJournal{Store: j, then: func() {
					end, err := Pair(t.Context(), others, c, false)
					if err != nil {
						t.Fatalf("the faster one: %v", err)
					}
					end()
				}}, c, false)
				if err == nil {
					end()
				}
				mismatch := new(MismatchError)
				if same && err != nil || !same && !errors.As(err, &mismatch) {
					t.Errorf("the later one: %v", err)
				}
			})
		})
	}
}

// TestANodeThatHearsLateIsNotTakenForAnOlderCopy has the listings see what another node wrote before this one
// heard of it.
func TestANodeThatHearsLateIsNotTakenForAnOlderCopy(t *testing.T) {
	catalogtest.Each(t, func(t *testing.T, dsn string) {
		j, c := openJournal(t, filepath.Join(t.TempDir(), "journal.db")), openCatalog(t, dsn)
		say(t, j, "job/a", "x")
		exec(t, dsn, "UPDATE stores SET position = 1 WHERE name = 'journal'")
		end, err := Pair(t.Context(), &sharedJournal{Store: j, heard: 0}, c, false)
		if err != nil {
			t.Fatal(err)
		}
		end()
	})
}

// TestStoresOfAnOlderVersionBecomeAPair takes from both stores what they know of each other. They become a pair once;
// from then on another journal is refused.
func TestStoresOfAnOlderVersionBecomeAPair(t *testing.T) {
	catalogtest.Each(t, func(t *testing.T, dsn string) {
		path := filepath.Join(t.TempDir(), "journal.db")
		j, c := openJournal(t, path), openCatalog(t, dsn)
		say(t, j, "job/a", "x")
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("identity")) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"at first", "again"} {
			j := openJournal(t, path)
			end, err := Pair(t.Context(), j, c, false)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			end()
			if rec, err := j.Load("job/a"); err != nil || len(rec.Events) != 1 || string(rec.Events[0].Data) != "x" {
				t.Fatalf("%s: %+v, %v", what, rec, err)
			}
			say(t, j, "job/b-"+what, "y")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_, err = Pair(t.Context(), openJournal(t, filepath.Join(t.TempDir(), "other.db")), c, false)
		if mismatch := new(MismatchError); !errors.As(err, &mismatch) {
			t.Errorf("another journal afterwards: %v", err)
		}
	})
}

// TestListingFollowsTheJournal runs the projector on the real journal, over snapshots, trimming, removal and restarts.
func TestListingFollowsTheJournal(t *testing.T) {
	catalogtest.Each(t, func(t *testing.T, dsn string) {
		path := filepath.Join(t.TempDir(), "store.db")
		var store *journal.Journal
		load := func(_ context.Context, stream string) (api.JobRow, bool, error) {
			rec, err := store.Load(stream)
			if err != nil || rec.Seq == 0 {
				return api.JobRow{}, false, err
			}
			row := api.JobRow{Project: "docs", Seq: rec.Seq}
			row.Job.Status, row.Job.Title = api.JobActive, string(rec.Snapshot)
			for _, e := range rec.Events {
				row.Job.Title += string(e.Data)
			}
			return row, true, nil
		}
		// start opens both stores and runs the projector; stop ends it all, in order.
		start := func() (*catalog.Catalog, *catalog.Projector, func()) {
			store = openJournal(t, path)
			c := openCatalog(t, dsn)
			follower, err := store.Follow(catalog.JobListing)
			if err != nil {
				t.Fatal(err)
			}
			projector := c.NewProjector(follower, load, slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				projector.Run(ctx)
			}()
			return c, projector, func() {
				cancel()
				<-done
				follower.Close()
				if err := errors.Join(c.Close(), store.Close()); err != nil {
					t.Error(err)
				}
			}
		}
		want := map[string]string{}
		write := func(n int, text string) {
			say(t, store, jobOf(n), text)
			want[jobOf(n)] += text
		}
		check := func(c *catalog.Catalog, projector *catalog.Projector) {
			t.Helper()
			// A listing waits for the journal's end by itself, but not for as long as a machine may stand still.
			if err := projector.Wait(t.Context(), catalog.Newest); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, r := range jobs(t, c) {
				got["job/"+string(r.Job.ID)] = r.Job.Title
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("listed %v, want %v", got, want)
			}
		}

		c, projector, stop := start()
		for n := range 60 {
			write(n, "a")
			say(t, store, "thread/thr_1", "x")
		}
		check(c, projector)
		for n := range 20 {
			write(n, "b")
			store.Snapshot(jobOf(n), 2, []byte("ab"))
		}
		check(c, projector)                     // stores the position, so that the journal may let go
		for n := 0; store.Trimmed() == 0; n++ { // each append lets the journal remove what it may
			if n == 10_000 {
				t.Fatal("the journal has removed nothing: the listing holds it back")
			}
			say(t, store, "thread/thr_1", "x")
		}
		check(c, projector)
		stop()

		// Meanwhile, without a listing: changes, snapshots that replace them, and a removal.
		store = openJournal(t, path)
		for n := range 40 {
			write(n, "c")
		}
		for n := 30; n < 40; n++ {
			store.Snapshot(jobOf(n), 2, []byte("ac"))
		}
		if err := store.Delete(jobOf(50)); err != nil {
			t.Fatal(err)
		}
		delete(want, jobOf(50))
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}

		c, projector, stop = start()
		check(c, projector)
		if err := projector.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(c, projector)
		write(7, "d")
		check(c, projector)
		stop()
	})
}
