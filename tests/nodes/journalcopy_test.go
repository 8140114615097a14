package nodes

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/cmd/docent/stores"
	"docent/persistence"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/cluster"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/persistence/journal/postgres"
	"docent/persistence/quota"
)

// singleNode makes the data directory of a server that has run and was stopped.
func singleNode(t *testing.T) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	data := filepath.Join(t.TempDir(), "data")
	dir, err := datadir.Open(data, datadir.Server, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	j, err := journal.Open(dir.File(datadir.Journal), journal.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Open(t.Context(), "sqlite:"+dir.File(datadir.Catalog), catalog.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	end, err := persistence.Pair(t.Context(), j, cat, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs"}); err != nil {
		t.Fatal(err)
	}
	follower, err := j.Follow(catalog.JobListing)
	if err != nil {
		t.Fatal(err)
	}
	uses := []quota.Use{{Name: "project-month", Key: "project/docs", Window: quota.CalendarMonth, Limit: 100}}
	for i := range 20 {
		stream := fmt.Sprintf("job/%d", i)
		_, err := j.Append(t.Context(), journal.Append{Stream: stream, Pending: i%3 == 0, Uses: uses,
			Events: []journal.Event{{Type: "a.1", Data: []byte(stream)}, {Type: "b.1", Data: []byte{0, 0xff}}},
			Claim:  &journal.Claim{Key: "key-" + stream + "\x00", Owner: stream, Ref: "r", Expires: time.Now().Add(time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			j.Snapshot(stream, 2, []byte("state of "+stream))
		}
	}
	follower.Ack(11)
	follower.Close()
	if err := j.Delete("job/7"); err != nil {
		t.Fatal(err)
	}
	end()
	is, err := cat.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := cat.RememberJournal(t.Context(), is, is.Journal, 11); err != nil || !ok { // as the listing has acknowledged
		t.Fatal(ok, err)
	}
	if err := errors.Join(j.Close(), cat.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

// told is what a follower of the listings hears next, and what there is of each stream.
func told(t *testing.T, j journal.Store) (changes []string, streams map[string]journal.Recovered, left int) {
	t.Helper()
	streams = map[string]journal.Recovered{}
	err := j.Since(11, func(pos uint64, stream string) bool {
		changes = append(changes, fmt.Sprint(pos, " ", stream))
		return true
	})
	for i := range 20 {
		stream := fmt.Sprintf("job/%d", i)
		rec, lerr := j.Load(stream)
		streams[stream] = rec
		err = errors.Join(err, lerr)
	}
	if err != nil {
		t.Fatal(err)
	}
	left, _ = j.Quotas().Remaining(time.Now(), quota.Use{Key: "project/docs", Window: quota.CalendarMonth, Limit: 100})
	return changes, streams, left
}

func toldByFile(t *testing.T, data string) ([]string, map[string]journal.Recovered, int) {
	t.Helper()
	j, err := journal.Open(filepath.Join(data, datadir.Journal), journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	return told(t, j)
}

// A server's data goes to PostgreSQL and back, and a follower of the journal goes on where it was, with nothing lost and
// nothing repeated. What is in use is not overwritten.
func TestAJournalIsCopiedToPostgreSQLAndBack(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.CatalogDSN, c.Data = catalogtest.Postgres(t), singleNode(t)
	changes, streams, left := toldByFile(t, c.Data)
	if len(changes) < 15 || left != 80 {
		t.Fatalf("the server of this test tells %v, and %d uses are left", changes, left)
	}
	for _, already := range []bool{false, true} {
		done, err := operator.CopyJournal(t.Context(), c, config.JournalPostgres, false)
		if err != nil {
			t.Fatal(err)
		}
		if done.Already != already || done.Journal.Streams != 19 || done.Journal.Claims != 20 || len(done.Catalog) < 20 {
			t.Errorf("copied: %+v", done)
		}
	}
	there := openCopy(t, c.CatalogDSN)
	a, b, n := told(t, there)
	if !slices.Equal(a, changes) || !reflect.DeepEqual(b, streams) || n != left {
		t.Errorf("in PostgreSQL:\n%v\n%v\n%d uses left, not\n%v\n%v\n%d", a, b, n, changes, streams, left)
	}
	last, err := there.Append(t.Context(), journal.Append{Stream: "job/3", After: 2, Events: []journal.Event{{Type: "c.1"}}})
	if err != nil || last != 3 {
		t.Fatalf("the copy goes on with event %d of job/3: %v", last, err)
	}
	_, streams, left = told(t, there)
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.CopyJournal(t.Context(), c, config.JournalPostgres, false); err == nil || !strings.Contains(err.Error(), "another journal") {
		t.Errorf("copied over a journal that has gone on: %v", err)
	}

	back := c
	back.Data = filepath.Join(t.TempDir(), "back")
	for _, already := range []bool{false, true} {
		done, err := operator.CopyJournal(t.Context(), back, config.JournalBolt, false)
		if err != nil || done.Already != already {
			t.Fatalf("back: %+v, %v", done, err)
		}
	}
	if _, b, n := toldByFile(t, back.Data); !reflect.DeepEqual(b, streams) || n != left {
		t.Errorf("back in a file:\n%v\n%d uses left, not\n%v\n%d", b, n, streams, left)
	}
	if _, err := operator.CopyJournal(t.Context(), c, config.JournalBolt, false); err == nil {
		t.Error("copied over the data directory of before")
	}
}

func openCopy(t *testing.T, dsn string) *postgres.Journal {
	t.Helper()
	j, err := postgres.Open(t.Context(), dsn, postgres.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestNothingIsCopiedWhileANodeServes(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.CatalogDSN, c.Data = catalogtest.Postgres(t), singleNode(t)
	node, err := cluster.Join(t.Context(), cluster.Config{DSN: func() string { return c.CatalogDSN }, Name: "alpha", Address: "127.0.0.1:1",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	if _, err := operator.CopyJournal(t.Context(), c, config.JournalPostgres, false); err == nil || !strings.Contains(err.Error(), "the node alpha: stop all") {
		t.Errorf("copied while a node serves: %v", err)
	}
}

// What is for a journal in a file leaves an older one alone that lies in the data directory of a node.
func TestCommandsForAFileAreRefusedOnANode(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Data, c.Journal = singleNode(t), config.JournalPostgres
	_, inspected := operator.InspectHere(t.Context(), c, operator.OpJournalCheck, nil, nil)
	_, compacted := operator.CompactJournal(c)
	_, dropped := operator.DropStreams(c, nil, true)
	for what, err := range map[string]error{"check": inspected, "compact": compacted, "drop": dropped} {
		var refused *stores.InFileError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
