package persistence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"docent/api"
)

// TestStoresThatDoNotBelongTogetherAreToldApart goes through what may have become of either store.
func TestStoresThatDoNotBelongTogetherAreToldApart(t *testing.T) {
	j := journalIdentity{id: "j", catalog: "c", revision: 5, position: 57, seen: 50}
	c := catalogIdentity{id: "c", revision: 6, journal: "j", position: 55}
	for name, of := range map[string]struct {
		change   func(*journalIdentity, *catalogIdentity)
		restored bool
		want     string // what the reason says; empty where they belong together
	}{
		"as a crash leaves them": {func(*journalIdentity, *catalogIdentity) {}, false, ""},
		"both new": {func(j *journalIdentity, c *catalogIdentity) {
			*j, *c = journalIdentity{id: "j"}, catalogIdentity{id: "c"}
		}, false, ""},
		"projects before the server": {func(j *journalIdentity, c *catalogIdentity) {
			*j, *c = journalIdentity{id: "j"}, catalogIdentity{id: "c", revision: 9}
		}, false, ""},
		"both of an older version": {func(j *journalIdentity, c *catalogIdentity) {
			*j, *c = journalIdentity{position: 57, seen: 50}, catalogIdentity{id: "c", position: 55}
		}, false, ""},
		"of an older version, a rebuild broken off": {func(j *journalIdentity, c *catalogIdentity) {
			*j, *c = journalIdentity{position: 57, seen: 50}, catalogIdentity{id: "c", position: 20, partial: true}
		}, false, ""},
		"a pair half made":                     {func(j *journalIdentity, c *catalogIdentity) { j.catalog, j.revision = "", 0 }, false, ""},
		"restored, the catalogue copied later": {func(j *journalIdentity, c *catalogIdentity) { c.position = 60 }, true, ""},
		"the journal new":                      {func(j *journalIdentity, c *catalogIdentity) { *j = journalIdentity{id: "k"} }, false, "the journal is new"},
		"the journal new after an upgrade":     {func(j *journalIdentity, c *catalogIdentity) { *j, c.journal = journalIdentity{id: "k"}, "" }, false, "last 55 events"},
		"the journal another one's":            {func(j *journalIdentity, c *catalogIdentity) { j.id, j.catalog = "k", "d" }, false, "another journal"},
		"the journal's end lost":               {func(j *journalIdentity, c *catalogIdentity) { j.position = 52 }, false, "last 3 events"},
		"the catalogue new":                    {func(j *journalIdentity, c *catalogIdentity) { *c = catalogIdentity{id: "d"} }, false, "the catalogue is new"},
		"the catalogue new after an upgrade":   {func(j *journalIdentity, c *catalogIdentity) { j.catalog, *c = "", catalogIdentity{id: "d"} }, false, "older copy"},
		"the catalogue another one's": {func(j *journalIdentity, c *catalogIdentity) {
			*c = catalogIdentity{id: "d", journal: "j", position: 57}
		}, false, "another catalogue"},
		"the catalogue without its last change": {func(j *journalIdentity, c *catalogIdentity) { c.revision = 3 }, false, "last 2 changes"},
		"the catalogue an older copy":           {func(j *journalIdentity, c *catalogIdentity) { c.position = 49 }, false, "position 49"},
		"restored, the catalogue older":         {func(j *journalIdentity, c *catalogIdentity) { c.revision = 3 }, true, "last 2 changes"},
		"restored, the catalogue another one's": {func(j *journalIdentity, c *catalogIdentity) { c.journal = "k" }, true, "another journal"},
	} {
		j, c := j, c
		of.change(&j, &c)
		if got := disagreement(j, c, of.restored); (got == "") != (of.want == "") || !strings.Contains(got, of.want) {
			t.Errorf("%s: %q, want %q", name, got, of.want)
		}
	}
}

// TestAStoreIsNotTakenForANewOne pairs a journal and a catalogue, and then offers each an older copy, a new one and another's.
func TestAStoreIsNotTakenForANewOne(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(CatalogOptions{})
		path := filepath.Join(t.TempDir(), "journal.db")
		j := openAt(t, path, JournalOptions{})
		pairs := func(what string, j *Journal) {
			t.Helper()
			end, err := Pair(t.Context(), j, c, false)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			end()
		}
		refused := func(what string, j *Journal, want string) {
			t.Helper()
			_, err := Pair(t.Context(), j, c, false)
			if mismatch := new(MismatchError); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		pairs("new ones", j)
		pairs("once more", j)
		addProject(t, c, "docs")
		seq := mustAppend(t, j, Append{Stream: "job/a", Events: events("x")})
		pairs("with a project and a job", j)
		if is := j.identity(); is.revision != must(c.identity(t.Context()))(t).revision || is.revision == 0 {
			t.Errorf("the journal has not heard of the project: %+v", is)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		older, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		j = openAt(t, path, JournalOptions{})
		pairs("reopened", j)
		mustAppend(t, j, Append{Stream: "job/a", After: seq, Events: events("y")})
		source, end, err := FollowJournal(j)
		if err != nil {
			t.Fatal(err)
		}
		projector := NewProjector(c, source, func(ctx context.Context, stream string) (api.JobRow, bool, error) {
			return api.JobRow{Project: "docs", Seq: 1}, true, nil
		}, nil)
		if err := projector.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		end()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(t.TempDir(), "older.db")
		if err := os.WriteFile(other, older, 0o600); err != nil {
			t.Fatal(err)
		}
		refused("an older copy of the journal", openAt(t, other, JournalOptions{}), "last 1 events")
		refused("a new journal", openAt(t, filepath.Join(t.TempDir(), "new.db"), JournalOptions{}), "the journal is new")
		j = openAt(t, path, JournalOptions{})
		pairs("the right one", j)

		if _, err := c.write.Exec("UPDATE stores SET position = position - 1 WHERE name = 'catalog'"); err != nil {
			t.Fatal(err)
		}
		c = p.open(CatalogOptions{}) // which has not heard of it
		refused("a catalogue without its last change", j, "last 1 changes")
		if err := Adopt(t.Context(), j, c); err != nil {
			t.Fatal(err)
		}
		pairs("adopted", j)
		if got := listed(t, c, JobQuery{Project: "docs"}); len(got) != 0 {
			t.Errorf("after the adoption the listing has %v before it is made anew", got)
		}
	})
}

// TestStoresOfAnOlderVersionBecomeAPair takes from both stores what they know of each other. They become a pair once; from then on
// another journal is refused.
func TestStoresOfAnOlderVersionBecomeAPair(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		path := filepath.Join(t.TempDir(), "journal.db")
		j, c := openAt(t, path, JournalOptions{}), p.open(CatalogOptions{})
		mustAppend(t, j, Append{Stream: "job/a", Events: events("x")})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Delete(metaIdentity) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"at first", "again"} {
			j := openAt(t, path, JournalOptions{})
			end, err := Pair(t.Context(), j, c, false)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			end()
			wantTexts(t, j, "job/a", "x")
			mustAppend(t, j, Append{Stream: "job/b-" + what, Events: events("y")})
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_, err = Pair(t.Context(), openAt(t, filepath.Join(t.TempDir(), "other.db"), JournalOptions{}), c, false)
		if mismatch := new(MismatchError); !errors.As(err, &mismatch) {
			t.Errorf("another journal afterwards: %v", err)
		}
	})
}
