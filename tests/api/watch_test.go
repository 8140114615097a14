package api

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/tests/harness"
)

// A page that is written, changed, put into a new folder or removed where the documentation lies is found, or not found
// any more, without anybody asking for it: sources are not polled here.
func TestFolderIsFollowed(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	files := harness.WriteFiles(t,
		map[string]string{"docs/tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n",
			"docent.toml": "poll_interval = \"0s\"\n"})
	folder := filepath.Join(files, "docs")
	server := harness.NewServer(t, data, "--config", filepath.Join(files, "docent.toml"))
	p := harness.NewProject(t, data, "tea", folder)
	client := server.Client(p.Assistant)
	finds := func(query, want string) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for {
			var hits []struct {
				Path    string `json:"path"`
				Content string `json:"content"`
			}
			if err := client.Post(t.Context(), "/discovery/v1/search/"+p.Domain, map[string]any{"query": query},
				&hits); err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(hits) > 0 && strings.Contains(hits[0].Content, query) {
				got = hits[0].Path
			}
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%q finds %q, not %q\n%s", query, got, want, server.Log)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	finds("eighty", "tea.md")
	write("tea.md", "# Tea\n\nGreen tea is brewed at seventy degrees.\n")
	finds("seventy", "tea.md")
	finds("eighty", "")
	write("new/deep/mate.md", "# Mate\n\nIt has caffeine.\n")
	finds("caffeine", "new/deep/mate.md")
	write("new/deep/mate.md", "# Mate\n\nIt has theobromine.\n")
	finds("theobromine", "new/deep/mate.md")
	if err := os.RemoveAll(filepath.Join(folder, "new")); err != nil {
		t.Fatal(err)
	}
	finds("theobromine", "")
}
