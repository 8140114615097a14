package kill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/api/client"
	"docent/cmd/docent/operator"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// TestNoStoreIsTakenForANewOne puts in the place of the journal, and then of the catalog, nothing, an empty file and
// an older copy. The server refuses to start and says why; what was acknowledged is there when the right one is put
// back.
func TestNoStoreIsTakenForANewOne(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), harness.Unlimited...)
	server := harness.NewServer(t, data)
	var jobs []*acceptedJob
	create := func() {
		t.Helper()
		prompt := fmt.Sprintf(`create page made/%d.md titled "Page" with content: "made"`, len(jobs))
		made, err := server.Client(p.Admin).CreateJob(t.Context(), p.ID, client.CreateJob{Prompt: prompt})
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, &acceptedJob{id: made.ID})
		awaitJobs(t, server, p, jobs)
	}
	listed := func(what string) {
		t.Helper()
		out := harness.Docent(t, "job", "list", "--url", server.URL, "--project", p.ID, "--key", p.Admin, "--limit", "0",
			"--json")
		if got := strings.Count(out, "\n"); got != len(jobs) {
			t.Errorf("%s: %d jobs are listed, want %d", what, got, len(jobs))
		}
	}
	stores := []string{datadir.Journal, "catalog.db", "catalog.db-wal", "catalog.db-shm"}
	keep := func() map[string][]byte {
		t.Helper()
		kept := map[string][]byte{}
		for _, name := range stores {
			text, err := os.ReadFile(filepath.Join(data, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if err == nil {
				kept[name] = text
			}
		}
		return kept
	}
	put := func(name string, text []byte) { // nil for no file
		t.Helper()
		path := filepath.Join(data, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if text != nil {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	create()
	listed("at first")
	server.Stop()
	older := keep()
	server.Start()
	create()
	harness.Docent(t, "key", "create", "--data", data, "--project", p.ID, "--kind", "admin")
	listed("with a second job")
	server.Stop()
	newest := keep()

	refused := func(what string, change func(), want string) {
		t.Helper()
		for _, name := range stores {
			put(name, newest[name])
		}
		change()
		began := keep()
		err := server.TryStart()
		if err == nil {
			server.Kill()
			t.Errorf("%s: the server started", what)
			return
		}
		if text := err.Error(); !strings.Contains(text, want) || !strings.Contains(text, "docent journal adopt") {
			t.Errorf("%s: %v, want %q and what to do", what, err, want)
		}
		if text, err := harness.TryDocent(t, "journal", "adopt", "--data", data); err == nil ||
			!strings.Contains(err.Error(), "--yes") || text == "" {
			t.Errorf("%s: an adoption without --yes: %v, %s", what, err, text)
		}
		for name, text := range began {
			if now := keep(); len(text) == 0 && len(now[name]) > 0 || now[name] == nil {
				t.Errorf("%s: %s had %d bytes and has %d", what, name, len(text), len(now[name]))
			}
		}
		for _, name := range []string{datadir.Journal, "catalog.db"} {
			if _, err := os.Stat(filepath.Join(data, name)); err == nil && began[name] == nil {
				t.Errorf("%s: %s was made", what, name)
			}
		}
	}
	refused("no journal", func() { put(datadir.Journal, nil) }, "journal.db is missing or empty")
	if _, err := harness.TryDocent(t, "project", "list", "--data", data); err == nil ||
		!strings.Contains(err.Error(), "missing or empty") {
		t.Errorf("a command without the journal: %v", err)
	}
	refused("an empty journal", func() { put(datadir.Journal, []byte{}) }, "journal.db is missing or empty")
	refused("an older journal", func() { put(datadir.Journal, older[datadir.Journal]) }, "events are lost")
	refused("no catalog", func() { put("catalog.db", nil) }, "catalog.db is missing or empty")
	if _, err := harness.TryDocent(t, "project", "list", "--data", data); err == nil ||
		!strings.Contains(err.Error(), "missing or empty") {
		t.Errorf("a command without the catalog: %v", err)
	}
	refused("an empty catalog", func() { put("catalog.db", []byte{}) }, "catalog.db is missing or empty")
	refused("an older catalog", func() { put("catalog.db", older["catalog.db"]) }, "the catalog is an older copy")

	for _, name := range stores {
		put(name, newest[name])
	}
	server.Start()
	listed("with the right stores put back")
	server.Stop()

	// Without a backup of the journal: what was listed is kept, and the server starts.
	put(datadir.Journal, nil)
	done := harness.DecodeOutput[operator.Adoption](t, harness.Docent(t, "journal", "adopt", "--data", data, "--yes",
		"--json"))
	kept, err := os.ReadFile(done.Kept)
	if err != nil || !done.Adopted || done.Listed != len(jobs) {
		t.Errorf("%+v, %v", done, err)
	}
	for _, j := range jobs {
		if !strings.Contains(string(kept), string(j.id)) {
			t.Errorf("what was listed of %s is not kept:\n%s", j.id, kept)
		}
	}
	server.Start()
	jobs = nil
	listed("with a new journal")
	create()
	listed("after a job in the new journal")
	server.Stop()

	// Nor one of the catalog: the jobs are in the journal.
	for _, name := range stores[1:] {
		put(name, nil)
	}
	harness.Docent(t, "journal", "adopt", "--data", data, "--yes")
	p = harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), harness.Unlimited...)
	server.Start()
	listed("with a new catalog")
}

// TestADatabaseServesOneDataDirectory points a second data directory at the catalog of a first one.
func TestADatabaseServesOneDataDirectory(t *testing.T) {
	t.Parallel()
	shared := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	if os.Getenv("DOCENT_TEST_POSTGRES") != "" {
		shared = catalogtest.Postgres(t)
	}
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	harness.Docent(t, "project", "add", "--data", first, "--catalog-dsn", shared, "--id", "harbour", "--domain",
		"harbour.example.com", "--source", harness.WriteFiles(t, harness.Harbour))
	server := harness.NewServer(t, first, "--catalog-dsn", shared)
	server.Stop()
	if _, err := harness.TryDocent(t, "serve", "--data", second, "--catalog-dsn", shared, "--listen",
		"127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "journal.db is missing or empty") {
		t.Errorf("a server on a second directory: %v", err)
	}
	if _, err := harness.TryDocent(t, "project", "list", "--data", second, "--catalog-dsn", shared); err == nil {
		t.Error("a command on a second directory works")
	}
	harness.NewServer(t, second).Stop() // with a catalog of its own
	if _, err := harness.TryDocent(t, "serve", "--data", second, "--catalog-dsn", shared, "--listen",
		"127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "works with another") {
		t.Errorf("a server on a second directory with a journal: %v", err)
	}
	server.Start()
}
