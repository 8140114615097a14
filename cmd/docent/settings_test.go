package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var updateFiles = flag.Bool("update", false, "write the expected files again")

func noEnviron(string) (string, bool) { return "", false }

// settingsFile writes a configuration file.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
