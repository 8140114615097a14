package backup

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// none are the repositories of a data directory that has none.
type none struct{}

func (none) Pin() func()                  { return func() {} }
func (none) Quiesce(f func() error) error { return f() }

// TestAKilledBackupLeavesNothingForEver finds beside a new backup what killed ones left, one that is on its way, and a
// folder of somebody else's with such a name.
func TestAKilledBackupLeavesNothingForEver(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	journal, err := journal.Open(filepath.Join(data, datadir.Journal), journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	from := Source{Data: data, Repositories: none{},
		Journal: func(_ context.Context, w io.Writer) error { return journal.Backup(w) }}
	silent := func(string, int, int) {}
	for _, name := range []string{"killed", "running", "other"} {
		if err := os.MkdirAll(filepath.Join(folder, name+partSuffix, "repos"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := markBackup(filepath.Join(folder, "killed"+partSuffix))
	if err != nil {
		t.Fatal(err)
	}
	killed.Close() // as by the end of its process
	running, err := markBackup(filepath.Join(folder, "running"+partSuffix))
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if _, err := Make(t.Context(), filepath.Join(folder, "whole"), from, silent); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"other.part", "running.part", "whole"}; !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
	if _, err := os.Stat(filepath.Join(folder, "whole", partMarker)); err == nil {
		t.Error("the backup is still marked as one on its way")
	}
	if _, err := Make(t.Context(), filepath.Join(folder, "running"), from, silent); err == nil ||
		!strings.Contains(err.Error(), "on its way") {
		t.Errorf("a backup beside one on its way to the same folder: %v", err)
	}
}
