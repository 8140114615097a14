// Package corpora is for tests: it reads the documentation sets that lie beside a checkout, in ../shared. A test that
// needs one that is not there is skipped.
package corpora

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api"
)

// A Tree is a documentation set in memory, by path. It has what the search and the agent read.
type Tree map[string][]byte

// Commit is the same for all trees.
func (Tree) Commit() string { return "1" }

// Files lists the files in the order of their paths.
func (t Tree) Files(context.Context) ([]api.File, error) {
	var out []api.File
	for _, name := range slices.Sorted(maps.Keys(t)) {
		out = append(out, api.File{Path: name, Hash: fmt.Sprintf("%x", sha256.Sum256(t[name])), Size: int64(len(t[name]))})
	}
	return out, nil
}

// Read gives one file.
func (t Tree) Read(_ context.Context, name string) ([]byte, error) {
	body, ok := t[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return body, nil
}

// Write makes files of the tree in a folder.
func (t Tree) Write(dir string) error {
	for name, body := range t {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, body, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// File is the path of a file beside the checkout, such as "relevance/queries.jsonl".
func File(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(dir, "..", "shared", filepath.FromSlash(name))
	if _, err := os.Stat(file); err != nil {
		tb.Skipf("%s is not beside the checkout", path.Join("shared", name))
	}
	return file
}

// Judged is one of the sets that search and answers are judged with: docusaurus, electron, fastapi, hugo, mintlify,
// prometheus or vite.
func Judged(tb testing.TB, name string) Tree {
	tb.Helper()
	return archive(tb, File(tb, "relevance/"+name+".tar.gz"))
}

// Queries are what the sets are judged with, of a type that has the fields which the test looks at.
func Queries[Q any](tb testing.TB) []Q {
	tb.Helper()
	f, err := os.Open(File(tb, "relevance/queries.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var out []Q
	for in := json.NewDecoder(f); in.More(); {
		var q Q
		if err := in.Decode(&q); err != nil {
			tb.Fatal(err)
		}
		out = append(out, q)
	}
	return out
}

// Site is a whole set as its repository has it: mintlify, vite or, where there is a git, prometheus.
func Site(tb testing.TB, name string) Tree {
	tb.Helper()
	if name != "prometheus" {
		return archive(tb, File(tb, "corpora/"+name+"-docs.tar.gz"))
	}
	bundle := File(tb, "corpora/prometheus-docs.bundle")
	if _, err := exec.LookPath("git"); err != nil {
		tb.Skip("no git to clone a bundle with")
	}
	dir := filepath.Join(tb.TempDir(), name)
	if out, err := exec.CommandContext(tb.Context(), "git", "clone", "-q", bundle, dir).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	tree := Tree{}
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return fs.SkipDir
		case d.Type().IsRegular():
			tree[name], err = fs.ReadFile(files, name)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

func archive(tb testing.TB, file string) Tree {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	tree := Tree{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return tree
		}
		if err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if tree[strings.TrimPrefix(h.Name, "./")], err = io.ReadAll(r); err != nil {
			tb.Fatal(err)
		}
	}
}
