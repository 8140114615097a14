package forge_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// corpus finds a file of real documentation beside the project.
func corpus(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "shared", "corpora", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the corpus %s is not here", name)
	}
	return path
}

// prometheus is a bare repository with real history.
func prometheus(t *testing.T) string {
	t.Helper()
	bundle := corpus(t, "prometheus-docs.bundle")
	bare := filepath.Join(t.TempDir(), "prometheus.git")
	git(t, t.TempDir(), "clone", "-q", "--bare", "--branch", "main", bundle, bare)
	return bare
}

// mintlify is a folder of real pages.
func mintlify(t testing.TB) string {
	t.Helper()
	f, err := os.Open(corpus(t, "mintlify-docs.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
