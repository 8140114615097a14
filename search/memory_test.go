package search

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"docent/api"
	"docent/internal/testing/need"
)

// folderTree is a tree in a folder.
type folderTree struct{ dir string }

func (t folderTree) Commit() string { return "folder" }

func (t folderTree) Files(context.Context) ([]api.File, error) {
	var out []api.File
	err := filepath.WalkDir(t.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(t.dir, p)
		out = append(out, api.File{Path: filepath.ToSlash(rel), Hash: fmt.Sprint(info.ModTime().UnixNano()),
			Size: info.Size()})
		return err
	})
	return out, err
}

func (t folderTree) Read(_ context.Context, p string) ([]byte, error) {
	return os.ReadFile(filepath.Join(t.dir, filepath.FromSlash(p)))
}

// indexFolder indexes a folder as a server does that was just started, and tells what it took.
func indexFolder(dir string) {
	l, err := Open(filepath.Join(dir, "index"), Options{Log: quiet()})
	if err != nil {
		panic(err)
	}
	begin := time.Now()
	rep, err := l.Update(context.Background(), api.Project{ID: "large"}, folderTree{filepath.Join(dir, "docs")}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("sections %d took %v peak %s\n", rep.Sections, time.Since(begin).Round(time.Millisecond), peakMemory())
	if err := l.Close(); err != nil {
		panic(err)
	}
}

// Indexing takes less than 5 KB of memory for each section, all that the process has counted, beyond what a small site
// takes: about twice of what it does take. BenchmarkLarge tells the peak for 100,000.
func TestIndexingIsBoundedInMemory(t *testing.T) {
	need.Everything(t, "indexes 20,000 sections in a process of its own")
	const small, big = 1_000, 20_000
	base, peak := indexedPeak(t, small), indexedPeak(t, big)
	each := float64(peak-base) / (big - small)
	t.Logf("%d kB for %d sections, %d kB for %d: %.2f kB each", base, small, peak, big, each)
	if each > 5 {
		t.Errorf("indexing took %.2f kB a section", each)
	}
}

// indexedPeak is the most memory, in kB, that a process takes that indexes so many sections.
func indexedPeak(t *testing.T, sections int) int {
	dir := t.TempDir()
	for p, body := range large(sections).files {
		file := filepath.Join(dir, "docs", filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	// less of what the collector leaves for later
	cmd.Env = append(os.Environ(), "DOCENT_TEST_INDEX_FOLDER="+dir, "GOGC=50")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	peak := regexp.MustCompile(`peak (\d+) kB`).FindSubmatch(out)
	if peak == nil {
		t.Skip("the system does not tell the peak of a process's memory")
	}
	kb, err := strconv.Atoi(string(peak[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb
}
