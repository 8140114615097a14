package catalog_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/people"
)

func TestBackupIsConsistentWhileWriting(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := catalogtest.Place{T: t, DSN: "sqlite:" + filepath.Join(folder, "catalog.db")}.Open(catalog.Options{})
	for i := range 20 {
		catalogtest.AddProject(t, c, fmt.Sprintf("before%d", i))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				// Each comes with a key of its own: a copy that has one without the other is torn.
				id := fmt.Sprintf("during%d", i)
				if _, err := c.AddProject(t.Context(), catalogtest.Project(id)); err != nil {
					t.Error(err)
					return
				}
				if _, err := c.AddKey(t.Context(), api.Key{Kind: api.AssistantKey, Project: api.ProjectID(id)},
					api.HashSecret(id)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	target := filepath.Join(folder, "backup ' x.db")
	err := c.Backup(t.Context(), target)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info, err)
	}
	if _, err := os.Stat(target + ".part"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is left behind: %v", err)
	}
	copied := catalogtest.Place{T: t, DSN: "sqlite:" + target}.Open(catalog.Options{})
	projects, keys := catalogtest.Must(copied.Projects(t.Context()))(t), catalogtest.Must(copied.Keys(t.Context(), people.KeyQuery{}))(t)
	if n := len(projects) - 20; n < len(keys) || n > len(keys)+1 {
		t.Errorf("the copy has %d projects made meanwhile and %d keys", n, len(keys))
	}
	if err := c.Backup(t.Context(), target); err == nil || !strings.Contains(err.Error(), target) {
		t.Errorf("over an existing file: error %v", err)
	}
	if _, err := c.Read.Exec("DELETE FROM projects"); err == nil {
		t.Error("after a backup a reading connection can write")
	}
}

func TestBackupOfPostgresIsRefused(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		err := c.Backup(t.Context(), filepath.Join(t.TempDir(), "backup.db"))
		if c.Path == "" && (err == nil || !strings.Contains(err.Error(), "pg_dump")) {
			t.Errorf("error %v, want one that names pg_dump", err)
		}
		if c.Path != "" && err != nil {
			t.Error(err)
		}
	})
}
