package deploy

import (
	"path/filepath"
	"strings"
	"testing"

	"docent/tests/harness"
)

// What is made up is stored as what readers and the agent leave: the journal is whole, and everything is listed.
func TestASeededDataDirectoryIsLikeAnyOther(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	harness.Docent(t, "project", "add", "docs", "--data", data, "--domain", "docs.example.com", "--source",
		harness.WriteFiles(t, harness.OnePage))
	said := harness.Docent(t, "bench", "seed", "--data", data, "--project", "docs", "--conversations", "300", "--jobs",
		"40")
	if !strings.HasPrefix(said, "300 conversations with ") || !strings.Contains(said, " and 40 jobs in ") {
		t.Errorf("it says %q", said)
	}
	if said := harness.Docent(t, "journal", "check", "--data", data); strings.Contains(said, "damaged") {
		t.Errorf("the journal is checked: %s", said)
	}
	threads := harness.Docent(t, "thread", "list", "--data", data, "--project", "docs", "--json")
	if n := strings.Count(threads, "\n"); n != 300 {
		t.Errorf("%d threads are there, want 300", n)
	}
	harness.Docent(t, "catalog", "rebuild", "--data", data)
	harness.Docent(t, "catalog", "check", "--data", data)
}
