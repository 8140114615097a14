package forge_test

import (
	"path/filepath"
	"testing"

	"docent/bench/corpora"
)

// prometheus is a bare repository with real history.
func prometheus(t *testing.T) string {
	t.Helper()
	bundle := corpora.File(t, "corpora/prometheus-docs.bundle")
	bare := filepath.Join(t.TempDir(), "prometheus.git")
	git(t, t.TempDir(), "clone", "-q", "--bare", "--branch", "main", bundle, bare)
	return bare
}

// mintlify is a folder of real pages.
func mintlify(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := corpora.Site(t, "mintlify").Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
