package search

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"docent/api"
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
		out = append(out, api.File{Path: filepath.ToSlash(rel), Hash: fmt.Sprint(info.ModTime().UnixNano()), Size: info.Size()})
		return err
	})
	return out, err
}

func (t folderTree) Read(_ context.Context, p string) ([]byte, error) {
	return os.ReadFile(filepath.Join(t.dir, filepath.FromSlash(p)))
}

// indexFolder indexes a folder as a server does that was just started, and tells what it took.
func indexFolder(dir string) {
	l, err := OpenLibrary(filepath.Join(dir, "index"), Options{Log: quiet()})
	if err != nil {
		panic(err)
	}
	begin := time.Now()
	rep, err := l.Update(context.Background(), api.Project{ID: "large"}, folderTree{filepath.Join(dir, "docs")}, nil)
	if err != nil {
		panic(err)
	}
	took := time.Since(begin)
	peak := peakMemory()
	if _, err := l.Search(context.Background(), "large", Query{Text: "w1"}); err != nil {
		panic(err)
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Printf("sections %d took %v peak %s, then heap %d MB\n", rep.Sections, took.Round(time.Millisecond), peak, stats.HeapAlloc>>20)
	if err := l.Close(); err != nil {
		panic(err)
	}
}

// Indexing 100,000 sections takes less than 400 MB of memory, all that the process has counted, in a process that does
// nothing else.
func TestIndexingIsBoundedInMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("indexes 100,000 sections")
	}
	if raceDetector {
		t.Skip("the race detector's own memory would be measured")
	}
	dir := t.TempDir()
	for p, body := range large(100_000).files {
		file := filepath.Join(dir, "docs", filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "DOCENT_TEST_INDEX_FOLDER="+dir)
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
	if kb > 400_000 {
		t.Errorf("indexing took %d MB", kb/1000)
	}
}
