package forge_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
)

// The system's git judges what was written.
var (
	git   = forgetest.Git
	fsck  = forgetest.Fsck
	write = forgetest.Write
)

// contents reads a folder back, without what belongs to git.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type rig struct {
	*forge.Hub
	dir     string
	project api.Project
	pulls   *forgetest.Pulls
}

func (r *rig) repository() string { return filepath.Join(r.dir, string(r.project.ID)+".git") }

// open starts a hub on a data directory; started again on the same one it is the service after a crash.
func open(t *testing.T, dir string, p api.Project, pulls *forgetest.Pulls, o forge.Options) *rig {
	t.Helper()
	r := &rig{dir: dir, project: p, pulls: pulls}
	pulls.Known = map[api.ProjectID]api.Project{p.ID: p}
	hub, err := forge.Open(dir, pulls, o)
	if err != nil {
		t.Fatal(err)
	}
	r.Hub = hub
	return r
}

func (r *rig) pullOf(t *testing.T, branch string) api.PullRequest {
	t.Helper()
	pull, err := r.pulls.LatestPull(context.Background(), r.project.ID, branch)
	if err != nil {
		t.Fatalf("pull request of %s: %v", branch, err)
	}
	return pull
}

func (r *rig) host(t *testing.T) forgetest.Host {
	return forgetest.Host{
		Forge: r.Hub, Project: r.project,
		Requests: func(t *testing.T, branch string) int {
			all, err := r.pulls.Pulls(t.Context(), r.project.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, p := range all {
				if p.Head == branch {
					n++
				}
			}
			return n
		},
		Commits: func(t *testing.T, branch string) []string { return log(t, r.repository(), branch) },
		Merge: func(t *testing.T, branch string) {
			t.Helper()
			if _, err := r.Merge(t.Context(), r.pullOf(t, branch).ID); err != nil {
				t.Fatal(err)
			}
		},
		Close: func(t *testing.T, branch string) {
			t.Helper()
			if _, err := r.Hub.Close(t.Context(), r.pullOf(t, branch).ID); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// log lists the commits of a branch; none if there is no such branch.
func log(t *testing.T, dir, branch string) []string {
	t.Helper()
	if git(t, dir, "for-each-ref", "refs/heads/"+branch) == "" {
		return nil
	}
	return strings.Fields(git(t, dir, "log", "--format=%H", branch, "--"))
}

// pushTo adds a commit to a branch of a bare repository with git itself.
func pushTo(t *testing.T, bare, branch, path, content string) {
	t.Helper()
	work := t.TempDir()
	git(t, work, "clone", "-q", "--branch", branch, "file://"+bare, ".")
	write(t, work, map[string]string{path: content})
	git(t, work, "add", "-A")
	git(t, work, "commit", "-q", "-m", "by hand")
	git(t, work, "push", "-q", "origin", "HEAD:"+branch)
}

// bareSource is a repository as others have it, with some history.
func bareSource(t *testing.T) string {
	t.Helper()
	bare := filepath.Join(t.TempDir(), "docs.git")
	forgetest.Bare(t, bare, map[string]string{"index.md": "# Old\n"}, forgetest.Files)
	return bare
}

func project(source string) api.Project {
	return api.Project{ID: "docs", Domain: "docs.example.org", Source: source, Host: api.HostBuiltin}
}

func TestFolderKeepsTheContract(t *testing.T) {
	forgetest.Test(t, func(t *testing.T) forgetest.Host {
		folder := t.TempDir()
		write(t, folder, forgetest.Files)
		r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
		h := r.host(t)
		h.Push = func(t *testing.T, branch, path, content string) {
			t.Helper()
			if branch == "main" {
				write(t, folder, map[string]string{path: content}) // a folder's base moves when somebody edits it
				return
			}
			pushTo(t, r.repository(), branch, path, content)
		}
		t.Cleanup(func() {
			fsck(t, r.repository())
			if t.Failed() {
				return
			}
			// What the branch says is what the folder holds.
			want := contents(t, folder)
			work := t.TempDir()
			git(t, work, "clone", "-q", "--branch", "main", "file://"+r.repository(), ".")
			if got := contents(t, work); !maps.Equal(got, want) {
				t.Errorf("main has %v, the folder %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		})
		return h
	})
}

func TestRepositoryWithBuiltinPullRequestsKeepsTheContract(t *testing.T) {
	need.Everything(t, "the contract is kept by the other hosts")
	forgetest.Test(t, func(t *testing.T) forgetest.Host {
		bare := bareSource(t)
		r := open(t, t.TempDir(), project("file://"+bare), &forgetest.Pulls{}, forge.Options{})
		h := r.host(t)
		h.Push = func(t *testing.T, branch, path, content string) {
			t.Helper()
			if branch == "main" {
				pushTo(t, bare, branch, path, content)
				return
			}
			pushTo(t, r.repository(), branch, path, content)
		}
		t.Cleanup(func() {
			fsck(t, r.repository())
			fsck(t, bare)
			if out := git(t, bare, "for-each-ref", "--format=%(refname)"); out != "refs/heads/main" {
				t.Errorf("the source has %s", out)
			}
		})
		return h
	})
}

func TestPlainRemoteKeepsTheContract(t *testing.T) {
	need.Everything(t, "the contract is kept by the other hosts")
	forgetest.Test(t, func(t *testing.T) forgetest.Host {
		bare := bareSource(t)
		p := project("file://" + bare)
		p.Host = api.HostGit
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
		h := r.host(t)
		h.Requests, h.Close = nil, nil
		h.Commits = func(t *testing.T, branch string) []string { return log(t, bare, branch) }
		h.Push = func(t *testing.T, branch, path, content string) { pushTo(t, bare, branch, path, content) }
		h.Merge = func(t *testing.T, branch string) {
			t.Helper()
			work := t.TempDir()
			git(t, work, "clone", "-q", "file://"+bare, ".")
			git(t, work, "merge", "-q", "-m", "merged by hand", "origin/"+branch)
			git(t, work, "push", "-q", "origin", "HEAD:main")
		}
		t.Cleanup(func() {
			if !t.Skipped() {
				fsck(t, r.repository())
				fsck(t, bare)
			}
		})
		return h
	})
}
