package agent_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/agent"
	"docent/api"
)

// A memTree is a repository with its history in memory; commits are numbered.
type memTree struct {
	commits []map[string]string
	at      int
}

func tree(files map[string]string) *memTree { return &memTree{commits: []map[string]string{files}} }

func (m *memTree) Commit() string { return fmt.Sprint("c", m.at) }

func (m *memTree) list(n int) []api.File {
	var out []api.File
	for p, c := range m.commits[n] {
		out = append(out, api.File{Path: p, Hash: hashOf(c), Size: int64(len(c))})
	}
	slices.SortFunc(out, func(a, b api.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

var hashes sync.Map // of contents: whole documentation sets are listed again and again

func hashOf(content string) string {
	if h, ok := hashes.Load(content); ok {
		return h.(string)
	}
	h := sha256.Sum256([]byte(content))
	hashes.Store(content, hex.EncodeToString(h[:]))
	return hex.EncodeToString(h[:])
}

func (m *memTree) Files(context.Context) ([]api.File, error) { return m.list(m.at), nil }

func (m *memTree) Read(_ context.Context, p string) ([]byte, error) {
	c, ok := m.commits[m.at][p]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(c), nil
}

func (m *memTree) number(commit string) (n int) {
	if _, err := fmt.Sscanf(commit, "c%d", &n); err != nil || n >= len(m.commits) {
		panic(commit)
	}
	return n
}

func (m *memTree) Parent(_ context.Context, commit string) (string, error) {
	n := m.number(commit)
	if n == 0 {
		return "", errors.New("no parent")
	}
	return fmt.Sprint("c", n-1), nil
}

func (m *memTree) FilesAt(_ context.Context, commit string) ([]api.File, error) {
	return m.list(m.number(commit)), nil
}

func (m *memTree) ReadAt(_ context.Context, commit, p string) ([]byte, error) {
	return []byte(m.commits[m.number(commit)][p]), nil
}

// commit makes a result's changes as a publisher would.
func (m *memTree) commit(t testing.TB, res agent.Result) {
	t.Helper()
	next := map[string]string{}
	maps.Copy(next, m.commits[m.at])
	for _, c := range res.Changes {
		if c.Delete {
			if _, ok := next[c.Path]; !ok {
				t.Fatalf("%s is deleted but was not there", c.Path)
			}
			delete(next, c.Path)
		}
	}
	for _, c := range res.Changes {
		if !c.Delete {
			if old, ok := m.commits[m.at][c.Path]; ok && old == string(c.Content) {
				t.Fatalf("%s is a change without one", c.Path)
			}
			next[c.Path] = string(c.Content)
		}
	}
	m.commits = append(m.commits[:m.at+1], next)
	m.at++
}

func (m *memTree) files() map[string]string { return m.commits[m.at] }

// editor is the agent of all jobs, as in a server: their runs share the pages that they have parsed.
var editor = agent.New(agent.Options{})

// A job carries out one instruction after another, each on what the ones before left.
type job struct {
	t       testing.TB
	tree    *memTree
	docs    string
	project api.Project
	earlier []agent.Instruction
	last    agent.Result
	once    bool // do not look whether the same instruction gives the same result again
}

func newJob(t testing.TB, files map[string]string) *job { return &job{t: t, tree: tree(files)} }

func (j *job) do(prompt string) agent.Result {
	j.t.Helper()
	res, err := editor.Edit(context.Background(), agent.Task{
		Project: j.project, Job: "job_1", Prompt: prompt, Earlier: j.earlier, Tree: j.tree, DocsDir: j.docs,
		Now: time.Unix(0, 0),
	}, nil)
	if err != nil {
		j.t.Fatalf("%q: %v", prompt, err)
	}
	again := res
	if !j.once {
		again, err = agent.New(agent.Options{}).Edit(context.Background(), agent.Task{
			Project: j.project, Job: "job_1", Prompt: prompt, Earlier: j.earlier, Tree: j.tree, DocsDir: j.docs,
			Now: time.Unix(99, 0),
		}, nil)
	}
	if err != nil || fmt.Sprint(again) != fmt.Sprint(res) {
		j.t.Fatalf("%q gave two different results", prompt)
	}
	if res.Model != "rules-1" || res.Message == "" {
		j.t.Fatalf("%q: %+v", prompt, res)
	}
	in := agent.Instruction{Prompt: prompt, Message: res.Message}
	if len(res.Changes) > 0 {
		j.tree.commit(j.t, res)
		in.Commit = j.tree.Commit()
		if res.Title == "" || res.Body == "" || res.Commit == "" || !strings.HasPrefix(res.Commit, "docs") {
			j.t.Fatalf("%q: title %q, commit %q", prompt, res.Title, res.Commit)
		}
	}
	j.earlier = append(j.earlier, in)
	j.last = res
	return res
}

// must carries out an instruction that has to change something.
func (j *job) must(prompt string) agent.Result {
	j.t.Helper()
	res := j.do(prompt)
	if len(res.Changes) == 0 {
		j.t.Fatalf("%q changed nothing: %s", prompt, res.Message)
	}
	return res
}

// corpus reads a real documentation set that lies beside a checkout.
func corpus(t testing.TB, name string) map[string]string {
	t.Helper()
	const root = "../../shared/corpora"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no documentation sets beside the checkout: " + root)
	}
	files := map[string]string{}
	if name == "prometheus" {
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("no git to clone a bundle with")
		}
		dir := filepath.Join(t.TempDir(), "prometheus")
		if out, err := exec.Command("git", "clone", "-q", filepath.Join(root, "prometheus-docs.bundle"),
			dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == ".git" {
				return fs.SkipDir
			}
			if !d.Type().IsRegular() {
				return nil
			}
			b, err := os.ReadFile(p)
			rel, _ := filepath.Rel(dir, p)
			files[filepath.ToSlash(rel)] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	f, err := os.Open(filepath.Join(root, name+"-docs.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(h.Name, "./")] = string(b)
		}
	}
}
