package markup_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// corpora reads the pages of the real documentation sets that lie beside a checkout, by set and path.
func corpora(t testing.TB) map[string]map[string][]byte {
	t.Helper()
	const root = "../../shared/corpora"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no documentation sets beside the checkout: " + root)
	}
	sets := map[string]map[string][]byte{}
	for _, name := range []string{"mintlify-docs", "vite-docs"} {
		pages := map[string][]byte{}
		f, err := os.Open(filepath.Join(root, name+".tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg && isPage(h.Name) {
				if pages[h.Name], err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.Close()
		sets[name] = pages
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Log("no git: the Prometheus pages are left out")
		return sets
	}
	dir := filepath.Join(t.TempDir(), "prometheus")
	if out, err := exec.Command("git", "clone", "-q", filepath.Join(root, "prometheus-docs.bundle"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pages := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && isPage(p) {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, p)
			pages[filepath.ToSlash(rel)] = b
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sets["prometheus-docs"] = pages
	return sets
}

func isPage(name string) bool {
	return strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".mdx")
}
