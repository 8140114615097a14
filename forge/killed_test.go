package forge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
)

var errDied = errors.New("the process ends")

// A process that dies can do so many operations on files, and then none any more.
type dying struct {
	left atomic.Int64
	dead atomic.Bool
}

func (d *dying) fault(op, name string) error {
	if op != "open" && op != "read" && d.left.Add(-1) < 0 {
		d.dead.Store(true)
	}
	if d.dead.Load() {
		return errDied
	}
	return nil
}

// killed carries out a deed in a process that dies before its first operation on a file, before its second and so on,
// until it lives long enough. Each time git judges what is left, the deed is carried out by the next process, and git
// judges again. The repository is not sound if the deed is to mend it.
func killed(
	t *testing.T, sound bool, prepare func(t *testing.T) *rig, deed func(ctx context.Context, r *rig) error,
	check func(t *testing.T, r *rig),
) {
	step := int64(1)
	if !need.All {
		step = 9
	}
	made := prepare(t)
	before, source := keep(t, made.dir), keep(t, made.project.Source)
	for n := int64(0); ; n += step {
		before(t)
		source(t)
		r := &rig{dir: made.dir, project: made.project, pulls: made.pulls.Copy()}
		var d dying
		d.left.Store(n)
		hub, err := forge.Open(r.dir, r.pulls, forge.OnDisk(quick, d.fault))
		if err == nil {
			err = deed(t.Context(), &rig{Hub: hub, dir: r.dir, project: r.project, pulls: r.pulls})
			forge.Packed(hub, r.project.ID)
		}
		died := d.dead.Load()
		if !died && err != nil {
			t.Fatalf("with %d operations: %v", n, err)
		}
		if _, err := os.Stat(r.repository()); err == nil && sound {
			forgetest.FsckOnly(t, r.repository())
		}
		r = open(t, r.dir, r.project, r.pulls, quick)
		if err := deed(t.Context(), r); err != nil {
			t.Fatalf("after a process that died with %d operations: %v", n, err)
		}
		check(t, r)
		if n%4 == 0 || !died {
			fsck(t, r.repository())
		}
		if t.Failed() {
			t.Fatalf("the process died with %d operations", n)
		}
		if !died {
			if n < 5 {
				t.Errorf("only %d operations", n)
			}
			return
		}
	}
}

// keep remembers a folder as it is, and makes it so again.
func keep(t *testing.T, dir string) (restore func(t *testing.T)) {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(copied))); err != nil {
			t.Fatal(err)
		}
	}
}

// history is what a branch's first line of commits says, newest first.
func history(t *testing.T, dir, branch string) []string {
	t.Helper()
	return strings.Fields(git(t, dir, "log", "--first-parent", "--format=%H", branch))
}

// moves makes a rig whose source has moved on by two commits since it was read, and that has an open pull request.
func moved(t *testing.T) (r *rig, bare string) {
	t.Helper()
	bare = bareSource(t)
	r = open(t, t.TempDir(), project(bare), &forgetest.Pulls{}, quick)
	r.publish(t, "docent/job_0", put("page-0.md", "# Page 0\n"))
	pushTo(t, bare, "main", "index.md", "# Second\n")
	pushTo(t, bare, "main", "guide/use.md", "# Third\n")
	return r, bare
}

// mergeable merges a pull request that was open before, and looks whether the source has all of it.
func mergeable(t *testing.T, r *rig, bare string) {
	t.Helper()
	r.complete(t, 1)
	merged, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_0").ID)
	if err != nil || merged.State != api.PullMerged {
		t.Errorf("merge: %v, %v", merged.State, err)
	}
	if here, there := history(t, r.repository(), "main"), history(t, bare, "main"); here[0] != there[0] ||
		len(here) < len(there)-1 {
		t.Errorf("main has %d commits from %s on, at the source %d from %s on", len(here), here[0], len(there), there[0])
	}
}

func TestAKillAnywhereInAFetchLosesNothing(t *testing.T) {
	t.Parallel()
	t.Run("first", func(t *testing.T) {
		killed(t, true, func(t *testing.T) *rig {
			return &rig{dir: t.TempDir(), project: project(bareSource(t)), pulls: &forgetest.Pulls{}}
		}, syncing, func(t *testing.T, r *rig) {
			if n := len(history(t, r.repository(), "main")); n != 1 {
				t.Errorf("main has %d commits", n)
			}
		})
	})
	t.Run("later", func(t *testing.T) {
		var bare string
		killed(t, true, func(t *testing.T) (r *rig) {
			r, bare = moved(t)
			return r
		}, syncing, func(t *testing.T, r *rig) { mergeable(t, r, bare) })
	})
}

func syncing(ctx context.Context, r *rig) error {
	_, _, err := r.Sync(ctx, r.project, nil)
	return err
}

func TestAKillAnywhereInAPublicationLosesNothing(t *testing.T) {
	t.Parallel()
	journal := map[*forgetest.Pulls][]forge.Publication{} // what jobs have begun, of each process and the one after it
	killed(t, true, func(t *testing.T) *rig {
		r, _ := moved(t)
		return r
	}, func(ctx context.Context, r *rig) error {
		for i, branch := range []string{"docent/job_1", "docent/job_1", "docent/job_2"} {
			if i == len(journal[r.pulls]) {
				tip, err := r.Tip(ctx, r.project, branch)
				if err != nil {
					return err
				}
				p, page := forgetest.Publication(r.project, tip, ""), fmt.Sprintf("page-%d.md", i)
				p.Changes = []forge.Change{put(page, "# New\n"), put("deep/er/"+page, "# Newer\n")}
				journal[r.pulls] = append(journal[r.pulls], p)
			}
			if _, err := r.Publish(ctx, journal[r.pulls][i]); err != nil {
				return err
			}
		}
		return nil
	}, func(t *testing.T, r *rig) {
		r.complete(t, 1)
		for branch, files := range map[string]int{"docent/job_1": 4, "docent/job_2": 2} {
			d, err := r.Diff(t.Context(), r.pullOf(t, branch).ID)
			if err != nil || len(d.Files) != files {
				t.Errorf("%s shows %d files, %v", branch, len(d.Files), err)
			}
		}
	})
}

func TestAKillAnywhereInAMergeLosesNothing(t *testing.T) {
	t.Parallel()
	merging := func(ctx context.Context, r *rig) error {
		pull, err := r.pulls.LatestPull(ctx, r.project.ID, "docent/job_0")
		if err == nil {
			_, err = r.Merge(ctx, pull.ID)
		}
		return err
	}
	t.Run("repository", func(t *testing.T) {
		var bare string
		killed(t, true, func(t *testing.T) (r *rig) {
			r, bare = moved(t)
			return r
		}, merging, func(t *testing.T, r *rig) { mergeable(t, r, bare) })
	})
	t.Run("folder", func(t *testing.T) {
		var folder string
		killed(t, true, func(t *testing.T) *rig {
			folder = t.TempDir()
			write(t, folder, forgetest.Files)
			r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, quick)
			r.pages(t, 1)
			return r
		}, merging, func(t *testing.T, r *rig) {
			if got := contents(t, folder)["page-0.md"]; got != "# Page 0\n" {
				t.Errorf("the folder has %q", got)
			}
			r.complete(t, 1)
		})
	})
}

func TestAKillAnywhereInARepackLosesNothing(t *testing.T) {
	t.Parallel()
	killed(t, true, func(t *testing.T) *rig {
		r, _ := moved(t)
		r.many(t, 1, 5)
		return r
	}, func(ctx context.Context, r *rig) error {
		return forge.Pack(ctx, r.Hub, r.project.ID)
	}, func(t *testing.T, r *rig) {
		r.complete(t, 1)
		for n := 1; n < 5; n++ {
			tip := r.tip(t, fmt.Sprintf("docent/job_%d", n))
			if got := r.files(t, tip.Commit)[fmt.Sprintf("made/%d.md", n)]; got != fmt.Sprintf("# Page %d\n", n) {
				t.Errorf("the page of job %d is %q", n, got)
			}
		}
		if n := looseObjects(t, r.dir); n > 0 {
			t.Errorf("%d objects are in files of their own", n)
		}
	})
}

func TestAKillAnywhereInARebuildLosesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"folder", "repository"} {
		t.Run(kind, func(t *testing.T) {
			var bare string
			killed(t, false, func(t *testing.T) *rig {
				var r *rig
				if kind == "repository" {
					r, bare = moved(t)
				} else {
					folder := t.TempDir()
					write(t, folder, forgetest.Files)
					r = open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, quick)
					r.pages(t, 1)
				}
				r.publish(t, "docent/job_1", put("page-1.md", "# Page 1\n"))
				var err error
				if kind == "repository" {
					err = os.WriteFile(filepath.Join(r.repository(), "refs/heads/main"), nil, 0o600)
				} else {
					err = os.Remove(filepath.Join(r.repository(), "HEAD"))
				}
				if err != nil {
					t.Fatal(err)
				}
				return r
			}, syncing, func(t *testing.T, r *rig) {
				r.complete(t, 2)
				if kind == "repository" {
					mergeable(t, r, bare)
				}
				if list := r.asides(t); len(list) != 1 {
					t.Errorf("put aside: %v", list)
				}
			})
		})
	}
}

// A branch is brought back out of a repository that was put aside: a copy from one repository to another.
func TestAKillAnywhereInACopyLosesNothing(t *testing.T) {
	t.Parallel()
	var published string
	killed(t, true, func(t *testing.T) *rig {
		r, bare := moved(t)
		published = git(t, r.repository(), "rev-parse", "docent/job_0")
		if err := os.Rename(r.repository(), filepath.Join(r.dir, "docs.damaged-1795389550911520331")); err != nil {
			t.Fatal(err)
		}
		git(t, r.dir, "clone", "-q", "--bare", "file://"+bare, r.repository())
		return r
	}, func(ctx context.Context, r *rig) error {
		_, err := r.TipAfter(ctx, r.project, "docent/job_0", published)
		return err
	}, func(t *testing.T, r *rig) {
		r.complete(t, 1)
		if head := git(t, r.repository(), "rev-parse", "docent/job_0"); head != published {
			t.Errorf("the branch is at %s, not %s", head, published)
		}
	})
}

// leave copies the objects of the source's newest commit into a repository, and nothing of the commit before it: that is
// what versions before left of a fetch that was killed.
func leave(t *testing.T, r *rig, bare string) string {
	t.Helper()
	head := git(t, bare, "rev-parse", "main")
	objects := []string{head}
	for _, line := range strings.Split(git(t, bare, "ls-tree", "-r", "-t", head), "\n") {
		objects = append(objects, strings.Fields(line)[2])
	}
	objects = append(objects, git(t, bare, "rev-parse", head+"^{tree}"))
	for _, object := range objects {
		kind := git(t, bare, "cat-file", "-t", object)
		file := filepath.Join(t.TempDir(), "object")
		raw := forgetest.Raw(t, bare, "cat-file", kind, object)
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if made := git(t, r.repository(), "hash-object", "-t", kind, "-w", "--literally", file); made != object {
			t.Fatalf("%s became %s", object, made)
		}
	}
	return head
}

func TestTheRestOfAFetchThatWasKilledIsNotTakenForHistory(t *testing.T) {
	r, bare := moved(t)
	leave(t, r, bare)
	r = open(t, r.dir, r.project, r.pulls, quick)
	r.sync(t)
	if n := len(history(t, r.repository(), "main")); n != 3 {
		t.Errorf("main has %d commits, want the first and two more", n)
	}
	mergeable(t, r, bare)
	fsck(t, r.repository())
	if list := r.asides(t); len(list) > 0 {
		t.Errorf("rebuilt: %v", list)
	}
}

// Versions before moved the branch onto such a commit, and their rebuild cut the history there.
func TestARepositoryWithAHoleInItsHistoryIsFoundAndMended(t *testing.T) {
	for _, left := range []string{"a commit without its parent", "a history that ends twice"} {
		t.Run(left, func(t *testing.T) {
			r, bare := moved(t)
			head := leave(t, r, bare)
			if err := os.WriteFile(filepath.Join(r.repository(), "refs/heads/main"), []byte(head+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if left == "a history that ends twice" {
				ends := git(t, r.repository(), "rev-parse", "docent/job_0~1") + "\n" + head + "\n"
				if err := os.WriteFile(filepath.Join(r.repository(), "shallow"), []byte(ends), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(filepath.Join(r.repository(), "docent-verified")); err != nil {
				t.Fatal(err)
			}
			// Nothing is made shorter while the source does not answer.
			aside := bare + ".away"
			if err := os.Rename(bare, aside); err != nil {
				t.Fatal(err)
			}
			away := r.project
			away.Source = "http://127.0.0.1:1/docs.git"
			before := git(t, r.repository(), "for-each-ref")
			r = open(t, r.dir, away, r.pulls, quick)
			_, _, _ = r.Sync(t.Context(), away, nil)
			if now := git(t, r.repository(), "for-each-ref"); now != before || len(r.asides(t)) > 0 {
				t.Errorf("without its source the repository became\n%s", now)
			}
			if err := os.Rename(aside, bare); err != nil {
				t.Fatal(err)
			}
			r = open(t, r.dir, project(bare), r.pulls, quick)
			r.sync(t)
			if n := len(history(t, r.repository(), "main")); n != 3 {
				t.Errorf("main has %d commits, want the first and two more", n)
			}
			mergeable(t, r, bare)
			fsck(t, r.repository())
			if list := r.asides(t); len(list) != 1 {
				t.Errorf("put aside: %v", list)
			}
			r = open(t, r.dir, r.project, r.pulls, quick) // and not again
			r.sync(t)
			if list := r.asides(t); len(list) != 1 {
				t.Errorf("rebuilt again: %v", list)
			}
		})
	}
}
