package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// What is made up is stored as what readers and the agent leave: the journal is whole, and everything is listed.
func TestASeededDataDirectoryIsLikeAnyOther(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	docent(t, "project", "add", "docs", "--data", data, "--domain", "docs.example.com", "--source", writeFiles(t, onePage))
	said := docent(t, "bench", "seed", "--data", data, "--project", "docs", "--conversations", "300", "--jobs", "40")
	if !strings.HasPrefix(said, "300 conversations with ") || !strings.Contains(said, " and 40 jobs in ") {
		t.Errorf("it says %q", said)
	}
	if said := docent(t, "journal", "check", "--data", data); strings.Contains(said, "damaged") {
		t.Errorf("the journal is checked: %s", said)
	}
	threads := docent(t, "thread", "list", "--data", data, "--project", "docs", "--json")
	if n := strings.Count(threads, "\n"); n != 300 {
		t.Errorf("%d threads are there, want 300", n)
	}
	docent(t, "catalog", "rebuild", "--data", data)
	docent(t, "catalog", "check", "--data", data)
}
