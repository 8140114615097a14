package deploy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"docent/api"
	"docent/tests/harness"
)

func TestWhatDocentMakesIsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o755); err != nil { // as a package or an administrator makes it
		t.Fatal(err)
	}
	theirs := filepath.Join(data, "theirs.toml")
	if err := os.WriteFile(theirs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	loose := func() (list []string) {
		err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			// The server that works there may remove a file meanwhile: what is gone nobody uses.
			if path != data && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || path == data || path == theirs {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				list = append(list, info.Mode().String()+" "+path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	source := harness.WriteFiles(t,
		map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n", "index.md": "# Home\n"})
	p := harness.NewProject(t, data, "tea", source)
	for round := range 2 {
		server := harness.NewServer(t, data)
		var j api.Job
		prompt := []string{`replace "eighty" with "seventy" in tea.md`, `replace "Green" with "Black" in tea.md`}[round]
		if err := json.Unmarshal([]byte(harness.Docent(t, "job", "create", "--wait", "--json", "--url", server.URL,
			"--project", p.ID, "--key", p.Admin, prompt)), &j); err != nil {
			t.Fatal(err)
		}
		if j.Status != api.JobCompleted || j.PRLink == nil {
			t.Fatalf("%+v", j)
		}
		if list := loose(); len(list) > 0 {
			t.Errorf("in round %d others may use %v", round, list)
		}
		server.Stop()
		if list := loose(); len(list) > 0 {
			t.Errorf("after round %d others may use %v", round, list)
		}
		// An earlier version left it so.
		err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			mode := fs.FileMode(0o644)
			if d.IsDir() {
				mode = 0o755
			}
			return os.Chmod(path, mode)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(theirs); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("a file that Docent did not make is %v, %v", info, err)
	}
}
