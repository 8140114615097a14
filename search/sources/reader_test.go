package sources

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/internal/task/tasktest"
	"docent/persistence/catalog"
	"docent/search"
)

// newTestReader makes a Reader of a data directory of its own.
func newTestReader(t *testing.T, logger *slog.Logger) *Reader {
	t.Helper()
	dir := t.TempDir()
	catalog, err := catalog.Open(t.Context(), "sqlite:"+filepath.Join(dir, "catalog.db"), catalog.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	hub, err := forge.Open(filepath.Join(dir, "repos"), catalog, forge.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	library, err := search.Open(filepath.Join(dir, "index"), search.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := OpenGuard(filepath.Join(dir, "reading"), "1", false, time.Now, logger)
	if err != nil {
		t.Fatal(err)
	}
	reader := New(Deps{Nodes: Single{}, Catalog: catalog, Repositories: hub, Index: library, Guard: guard, Log: logger})
	t.Cleanup(func() {
		reader.Close()
		if err := errors.Join(hub.Shutdown(context.Background()), library.Close(), catalog.Close()); err != nil {
			t.Error(err)
		}
	})
	return reader
}

// addProject puts a project with one page into the catalog.
func addProject(t *testing.T, reader *Reader, id api.ProjectID) api.Project {
	t.Helper()
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "index.md"), []byte("# Ferries\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := reader.Catalog.AddProject(t.Context(),
		api.Project{ID: id, Domain: string(id), Source: source}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What one project's documentation makes the program panic with is no other project's concern.
func TestAProjectWhoseReadingPanicsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	reader := newTestReader(t, logger)
	for _, id := range []api.ProjectID{"bad", "good"} {
		addProject(t, reader, id)
	}
	read := make(chan api.ProjectID, 2)
	reader.Listen(func(_ context.Context, id api.ProjectID, _ string) {
		if id == "bad" {
			panic("an odd repository")
		}
		read <- id
	})
	reader.Merged("bad")
	reader.work.Wait()
	reader.Merged("good")
	reader.work.Wait()
	if id := <-read; id != "good" {
		t.Errorf("%s was read", id)
	}
	if !strings.Contains(log.String(), "an odd repository") {
		t.Errorf("the log says %q", log.String())
	}
}

// A reading that is called off does not wait for the one before it.
func TestAReadingThatIsCalledOffDoesNotWaitForItsTurn(t *testing.T) {
	t.Parallel()
	reader := newTestReader(t, slog.New(slog.DiscardHandler))
	p := addProject(t, reader, "docs")
	end, err := reader.turn(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reader.Refresh(ctx, p, func(string, int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	end()
	if _, err := reader.Refresh(t.Context(), p, func(string, int, int) {}); err != nil {
		t.Error(err)
	}
	if len(reader.turns) > 0 {
		t.Errorf("turns that nobody has or wants are kept: %v", reader.turns)
	}
}

// The folder of a project that is removed, or that has another source by now, is no longer watched.
func TestAFolderIsWatchedAsLongAsAProjectComesFromIt(t *testing.T) {
	t.Parallel()
	reader := newTestReader(t, slog.New(slog.DiscardHandler))
	reader.watch = newFolderWatch(reader.Log, func(api.ProjectID) {})
	defer reader.watch.Close()
	silent := func(string, int, int) {}
	for _, id := range []api.ProjectID{"one", "two"} {
		if _, err := reader.Refresh(t.Context(), addProject(t, reader, id), silent); err != nil {
			t.Fatal(err)
		}
	}
	watched := func() int { return len(reader.watch.system.WatchList()) }
	if n := watched(); n != 2 {
		t.Fatalf("%d folders are watched", n)
	}
	moved, err := reader.Catalog.Project(t.Context(), "two")
	if err != nil {
		t.Fatal(err)
	}
	moved.Source = t.TempDir()
	reader.watch.add(moved)
	if got := reader.watch.system.WatchList(); len(got) != 2 || !slices.Contains(got, moved.Source) {
		t.Errorf("after a change of the source %v are watched", got)
	}
	if err := reader.Remove(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if got := reader.watch.system.WatchList(); len(got) != 1 || got[0] != moved.Source {
		t.Errorf("after a project was removed %v are watched", got)
	}
}

// The updates of a project come one after the other, and what one server did not finish the next one does.
func TestUpdatesArePendingUntilTheyEnd(t *testing.T) {
	t.Parallel()
	reader := newTestReader(t, slog.New(slog.DiscardHandler))
	addProject(t, reader, "docs")
	first := NewUpdates(reader, new(tasktest.Queue))
	id, err := first.Start(t.Context(), "docs") // and the process dies
	if err != nil {
		t.Fatal(err)
	}
	var tasks tasktest.Queue
	next := NewUpdates(reader, &tasks)
	next.Wake()
	ended := func(id api.UpdateID) {
		t.Helper()
		tasks.Run(t.Context())
		up, err := next.Status(t.Context(), id)
		if err != nil || up.Status != api.UpdateSuccess || up.Attempts != 1 || up.Commit.SHA == "" {
			t.Fatal(up, err)
		}
	}
	ended(id)
	again, err := next.Start(t.Context(), "docs")
	if err != nil || again == id {
		t.Fatal(again, err)
	}
	ended(again)
}

// A page can say when a project was read and why not, without asking the log.
func TestTheLastReadingIsRemembered(t *testing.T) {
	t.Parallel()
	reader := newTestReader(t, slog.New(slog.DiscardHandler))
	p := addProject(t, reader, "harbour")
	if r, ok := reader.LastReading(p.ID); ok {
		t.Errorf("before the first: %+v", r)
	}
	silent := func(string, int, int) {}
	tip, _, err := reader.refreshTo(t.Context(), p, silent)
	if err != nil {
		t.Fatal(err)
	}
	first, ok := reader.LastReading(p.ID)
	if !ok || first.Err != nil || first.Commit != tip.Commit || first.Commit == "" || first.At.IsZero() {
		t.Errorf("after it: %+v", first)
	}
	p.Source += "/gone"
	if _, _, err := reader.refreshTo(t.Context(), p, silent); err == nil {
		t.Fatal("a source that is gone is read")
	}
	if r, _ := reader.LastReading(p.ID); r.Err == nil || r.Commit != "" {
		t.Errorf("after one that failed: %+v", r)
	}
	failed, _ := reader.LastReading(p.ID)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := reader.refreshTo(over, p, silent); err == nil {
		t.Fatal("it is read for nobody")
	}
	if r, _ := reader.LastReading(p.ID); r != failed {
		t.Errorf("one that was called off is remembered: %+v", r)
	}
}
