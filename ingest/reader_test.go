package ingest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/persistence"
	"docent/search"
)

// What one project's documentation makes the program panic with is no other project's concern.
func TestAProjectWhoseReadingPanicsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	dir := t.TempDir()
	catalog, err := persistence.OpenCatalog(t.Context(), "sqlite:"+filepath.Join(dir, "catalog.db"), persistence.CatalogOptions{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer catalog.Close()
	hub, err := forge.Open(filepath.Join(dir, "repos"), catalog, forge.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Shutdown(context.Background())
	library, err := search.OpenLibrary(filepath.Join(dir, "index"), search.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	guard, err := OpenGuard(filepath.Join(dir, "reading"), "1", false, time.Now, logger)
	if err != nil {
		t.Fatal(err)
	}
	reader := New(Deps{Catalog: catalog, Repositories: hub, Index: library, Guard: guard, Log: logger})
	defer reader.Close()
	for _, id := range []api.ProjectID{"bad", "good"} {
		source := t.TempDir()
		if err := os.WriteFile(filepath.Join(source, "index.md"), []byte("# Ferries\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := catalog.AddProject(t.Context(), api.Project{ID: id, Domain: string(id), Source: source}.WithDefaults()); err != nil {
			t.Fatal(err)
		}
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
