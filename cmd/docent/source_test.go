package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"docent/api"
)

// What one project's documentation makes the program panic with is no other project's concern.
func TestAProjectWhoseReadingPanicsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	dir, err := openDataDir(t.TempDir(), serveCommand, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	stores, err := openStores(t.Context(), dir, DefaultConfig(), logger)
	if err != nil {
		t.Fatal(err)
	}
	defer stores.Close()
	for _, id := range []api.ProjectID{"bad", "good"} {
		_, err := stores.catalog.AddProject(t.Context(), api.Project{ID: id, Domain: string(id), Source: writeFiles(t, map[string]string{"index.md": "# Ferries\n"})}.WithDefaults())
		if err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan api.ProjectID, 2)
	stores.source.listen(func(_ context.Context, id api.ProjectID, _ string) {
		if id == "bad" {
			panic("an odd repository")
		}
		read <- id
	})
	stores.source.merged("bad")
	stores.source.work.Wait()
	stores.source.merged("good")
	stores.source.work.Wait()
	if id := <-read; id != "good" {
		t.Errorf("%s was read", id)
	}
	if !strings.Contains(log.String(), "an odd repository") {
		t.Errorf("the log says %q", log.String())
	}
}
