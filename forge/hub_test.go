package forge_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
	"docent/persistence/datadir"
)

func (r *rig) tip(t *testing.T, branch string) forge.Tip {
	t.Helper()
	tip, err := r.Tip(t.Context(), r.project, branch)
	if err != nil {
		t.Fatalf("tip of %s: %v", branch, err)
	}
	return tip
}

func (r *rig) sync(t *testing.T) (forge.Tip, bool) {
	t.Helper()
	tip, changed, err := r.Sync(t.Context(), r.project, nil)
	if err != nil {
		t.Fatalf("sync: %v", err)
	}
	return tip, changed
}

func (r *rig) publish(t *testing.T, branch string, changes ...forge.Change) forge.Published {
	t.Helper()
	p := forgetest.Publication(r.project, r.tip(t, branch), "")
	p.Changes = changes
	done, err := r.Publish(t.Context(), p)
	if err != nil {
		t.Fatalf("publish %s: %v", branch, err)
	}
	return done
}

func (r *rig) files(t *testing.T, commit string) map[string]string {
	t.Helper()
	tree, err := r.Tree(t.Context(), r.project, commit)
	if err != nil {
		t.Fatal(err)
	}
	files, err := tree.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		data, err := tree.Read(t.Context(), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Path] = string(data)
	}
	return out
}

func put(path, content string) forge.Change {
	return forge.Change{Path: path, Content: []byte(content)}
}

func del(path string) forge.Change { return forge.Change{Path: path, Delete: true} }

func TestFolderIsImportedWithoutWhatToolsLeaveBehind(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.md": "outside"})
	write(t, folder, map[string]string{
		"index.md": "# Home\n", "guide/a.md": "a\n", "node_modules/x/readme.md": "no", ".git-not/x.md": "yes\n",
		".gitignore": "/build/\n*.tmp\n!keep.tmp\n", "build/page.md": "no", "x.tmp": "no", "keep.tmp": "yes\n",
		"guide/.gitignore": "drafts\n", "guide/drafts/d.md": "no", "drafts/d.md": "yes\n", ".next/cache": "no",
		"run.sh": "#!/bin/sh\n",
	})
	if err := os.Chmod(filepath.Join(folder, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link.md": filepath.Join(outside, "secret.md"), "linked": outside,
		"guide/here.md": "a.md"} {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	tip, changed := r.sync(t)
	if !changed || tip.Branch != "main" || tip.Commit == "" {
		t.Errorf("first sync = %+v, %v", tip, changed)
	}
	got := slices.Sorted(maps.Keys(r.files(t, tip.Commit)))
	want := []string{".git-not/x.md", ".gitignore", "drafts/d.md", "guide/.gitignore", "guide/a.md", "index.md",
		"keep.tmp", "run.sh"}
	if !slices.Equal(got, want) {
		t.Errorf("imported %v, want %v", got, want)
	}
	if mode, _, _ := strings.Cut(git(t, r.repository(), "ls-tree", "main", "run.sh"), " "); mode != "100755" {
		t.Errorf("run.sh has mode %s", mode)
	}
	fsck(t, r.repository())

	if again, changed := r.sync(t); changed || again.Commit != tip.Commit {
		t.Error("an unchanged folder is imported again")
	}
	write(t, folder, map[string]string{"index.md": "# Home!\n"})
	os.Remove(filepath.Join(folder, "drafts/d.md"))
	next, changed := r.sync(t)
	if !changed {
		t.Error("a change is not seen")
	}
	if files := r.files(t, next.Commit); files["index.md"] != "# Home!\n" || files["drafts/d.md"] != "" {
		t.Errorf("files = %v", files)
	}
	if subjects := git(t, r.repository(), "log", "--format=%s",
		"main"); subjects != "Import from folder\nImport from folder" {
		t.Errorf("history = %s", subjects)
	}
}

// What a job shows before it has begun is what it shows later on, and costs no look at the source.
func TestTheSourceOfAProjectIsKnownAtOnce(t *testing.T) {
	folder, bare := t.TempDir(), bareSource(t)
	write(t, folder, forgetest.Files)
	git(t, bare, "branch", "-m", "main", "trunk")
	named := func(p api.Project, repository, branch string) api.Project {
		p.Repository, p.Branch = repository, branch
		return p
	}
	for name, c := range map[string]struct {
		project api.Project
		before  api.JobSource
		after   api.JobSource
	}{
		"a folder": {project(folder), api.JobSource{Repository: "acme", Ref: "main"},
			api.JobSource{Repository: "acme", Ref: "main"}},
		"a folder and a branch": {named(project(folder), "", "docs"), api.JobSource{Repository: "acme", Ref: "docs"},
			api.JobSource{Repository: "acme", Ref: "docs"}},
		"a repository": {project("file://" + bare), api.JobSource{Repository: "acme"},
			api.JobSource{Repository: "acme", Ref: "trunk"}},
		"a repository and branch": {named(project("file://"+bare), "acme/docs", "trunk"),
			api.JobSource{Repository: "acme/docs", Ref: "trunk"}, api.JobSource{Repository: "acme/docs", Ref: "trunk"}},
	} {
		r := open(t, t.TempDir(), c.project, &forgetest.Pulls{}, forge.Options{})
		r.project.ID = "acme"
		if got := r.Source(r.project); got != c.before {
			t.Errorf("%s: %+v before it was read, want %+v", name, got, c.before)
		}
		tip, _ := r.sync(t)
		if got := r.Source(r.project); got != c.after || got != (api.JobSource{Repository: tip.Repo, Ref: tip.Base}) {
			t.Errorf("%s: %+v, want %+v, and a job will say %s, %s", name, got, c.after, tip.Repo, tip.Base)
		}
	}
}

// Data within the folder that is read would be read again and again, each time with what was read before.
func TestDataOfDocentIsNoDocumentation(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"index.md": "# Home\n", "data/readme.md": "no"})
	dir, err := datadir.Open(filepath.Join(folder, "data"), "test", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	write(t, folder, map[string]string{"data/" + datadir.Journal: "x"})
	r := open(t, dir.File(datadir.Repos), project(folder), &forgetest.Pulls{}, forge.Options{})
	tip, _ := r.sync(t)
	if got := slices.Sorted(maps.Keys(r.files(t, tip.Commit))); !slices.Equal(got, []string{"index.md"}) {
		t.Errorf("imported %v", got)
	}
	if _, changed := r.sync(t); changed {
		t.Error("what was read changes what is read")
	}
	r = open(t, t.TempDir(), project(dir.Path), &forgetest.Pulls{}, forge.Options{})
	if _, _, err := r.Hub.Sync(t.Context(), r.project, func(string) {}); !errors.Is(err, forge.ErrMisconfigured) ||
		!strings.Contains(err.Error(), "data directory") {
		t.Errorf("a data directory as a source: %v", err)
	}
}

func TestFolderThatVanishesTakesNothingAlong(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	tip, _ := r.sync(t)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Sync(t.Context(), r.project, nil); !errors.Is(err, forge.ErrMisconfigured) {
		t.Errorf("a missing folder: %v, want ErrMisconfigured", err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Sync(t.Context(), r.project, nil); !errors.Is(err, forge.ErrTemporary) {
		t.Errorf("an emptied folder: %v, want ErrTemporary", err)
	}
	if got := log(t, r.repository(), "main"); got[0] != tip.Commit {
		t.Error("the branch moved")
	}
}

func TestAWorkingTreeGivesTheFilesThatGitDoesNotIgnore(t *testing.T) {
	folder := t.TempDir()
	git(t, folder, "init", "-q")
	write(t, folder, map[string]string{"index.md": "# Home\n", "guide/a.md": "a\n", ".gitignore": "*.log\n",
		"kept.log": "tracked all the same\n", "gone.md": "x"})
	git(t, folder, "add", "-f", ".")
	git(t, folder, "commit", "-q", "-m", "start")
	write(t, folder, map[string]string{"new.md": "not tracked\n", "guide/new.md": "# New\n", "b.log": "ignored",
		"index.md":         "# Edited, not committed\n",
		"guide/.gitignore": "**/a/b\n/secret/\n", "guide/a/a/b": "ignored", "guide/secret/x.md": "ignored",
		"secret/x.md":              "not ignored here\n",
		"node_modules/x/README.md": "never", ".git/info/exclude": "# mine\nmine.md\n", "mine.md": "ignored",
		"renamed.md": "x"})
	os.Remove(filepath.Join(folder, "gone.md"))
	head := git(t, folder, "rev-parse", "HEAD")

	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	tip, _ := r.sync(t)
	files := r.files(t, tip.Commit)
	if got, want := slices.Sorted(maps.Keys(files)),
		[]string{".gitignore", "guide/.gitignore", "guide/a.md", "guide/new.md", "index.md", "kept.log", "new.md",
			"renamed.md", "secret/x.md"}; !slices.Equal(got, want) {
		t.Errorf("imported %v, want %v", got, want)
	}
	if files["index.md"] != "# Edited, not committed\n" {
		t.Errorf("index.md = %q", files["index.md"])
	}
	// What is ignored from now on is no longer there, though it was imported before.
	write(t, folder, map[string]string{".gitignore": "*.log\nnew.md\n"})
	if tip, _ = r.sync(t); r.files(t, tip.Commit)["new.md"] != "" || r.files(t, tip.Commit)["guide/new.md"] != "" {
		t.Errorf("imported %v though new.md is ignored", slices.Sorted(maps.Keys(r.files(t, tip.Commit))))
	}
	// A page that a merge brought is not tracked by the working tree's git, and is there all the same.
	r.publish(t, "docent/job_1", put("guide/b.md", "b\n"))
	if _, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_1").ID); err != nil {
		t.Fatal(err)
	}
	merged, changed := r.sync(t)
	if changed || r.files(t, merged.Commit)["guide/b.md"] != "b\n" || contents(t, folder)["guide/b.md"] != "b\n" {
		t.Errorf("after the merge: changed %v, files %v", changed, r.files(t, merged.Commit))
	}
	if git(t, folder, "rev-parse", "HEAD") != head || git(t, folder, "stash", "list") != "" {
		t.Error("the working tree's own repository was touched")
	}
}

func TestMergeWritesTheFolder(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	write(t, folder, map[string]string{"untouched.md": "\ufeffstays\r\nas it is  \r\n", "tool.sh": "#!/bin/sh\n"})
	if err := os.Chmod(filepath.Join(folder, "tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	var told []api.ProjectID
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{},
		forge.Options{Merged: func(p api.ProjectID) { told = append(told, p) }})
	before := r.tip(t, "docent/job_1")
	stat, err := os.Stat(filepath.Join(folder, "untouched.md"))
	if err != nil {
		t.Fatal(err)
	}
	told = nil
	r.publish(t, "docent/job_1", put("index.md", "# New\n"), del("guide/setup.md"), del("guide/use.md"),
		put("deep/er/setup.md", forgetest.Files["guide/setup.md"]), put("tool.sh", "#!/bin/sh\nexit\n"))
	if len(told) != 0 {
		t.Error("a pull request alone is not news for the index")
	}
	pull, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_1").ID)
	if err != nil {
		t.Fatal(err)
	}
	if pull.State != api.PullMerged || pull.ClosedAt == nil || pull.MergedAs == "" {
		t.Errorf("merged = %+v", pull)
	}
	if !slices.Equal(told, []api.ProjectID{"docs"}) {
		t.Errorf("told = %v", told)
	}
	want := map[string]string{
		"index.md": "# New\n", "deep/er/setup.md": forgetest.Files["guide/setup.md"],
		"docs.json":    forgetest.Files["docs.json"],
		"untouched.md": "\ufeffstays\r\nas it is  \r\n", "tool.sh": "#!/bin/sh\nexit\n",
	}
	if got := contents(t, folder); !maps.Equal(got, want) {
		t.Errorf("folder = %q", got)
	}
	if _, err := os.Stat(filepath.Join(folder, "guide")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an empty folder is left")
	}
	if info, err := os.Stat(filepath.Join(folder, "tool.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("tool.sh: %v, %v", info.Mode(), err)
	}
	if now, err := os.Stat(filepath.Join(folder, "untouched.md")); err != nil || !now.ModTime().Equal(stat.ModTime()) ||
		!os.SameFile(stat, now) {
		t.Error("an untouched file was written")
	}
	after, changed := r.sync(t)
	if changed || after.Commit != pull.MergedAs {
		t.Errorf("after the merge the folder is imported again: %+v", after)
	}
	if parents := git(t, r.repository(), "log", "-1", "--format=%P %s", "main"); !strings.HasPrefix(parents,
		before.Commit+" ") || !strings.Contains(parents, "Merge pull request #1 from docent/job_1") {
		t.Errorf("the merge is %s", parents)
	}
	if again, err := r.Merge(t.Context(), pull.ID); err != nil || again.MergedAs != pull.MergedAs {
		t.Errorf("merging again = %+v, %v", again, err)
	}
	if _, err := r.Hub.Close(t.Context(), pull.ID); !errors.Is(err, api.ErrConflict) {
		t.Errorf("closing what is merged: %v", err)
	}
	fsck(t, r.repository())
}

func TestMergeKeepsWhatTheFolderChangedMeanwhile(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"page.md": "one\ntwo\nthree\nfour\nfive\n", "other.md": "x\n"})
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	r.publish(t, "docent/job_1", put("page.md", "ONE\ntwo\nthree\nfour\nfive\n"))
	r.publish(t, "docent/job_2", put("page.md", "one\ntwo\nthree\nfour\nFÜNF\n"), put("other.md", "y\n"))
	write(t, folder, map[string]string{"page.md": "one\ntwo\nthree\nfour\n5\n"})
	if _, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_1").ID); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, folder)["page.md"]; got != "ONE\ntwo\nthree\nfour\n5\n" {
		t.Errorf("page.md = %q", got)
	}
	head, _ := r.sync(t)
	pull, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_2").ID)
	if !errors.Is(err, forge.ErrMergeConflict) || !strings.Contains(err.Error(), "page.md") ||
		strings.Contains(err.Error(), "other.md") {
		t.Errorf("merging what conflicts: %v", err)
	}
	if pull.State != api.PullOpen || r.pullOf(t, "docent/job_2").State != api.PullOpen {
		t.Error("the pull request is no longer open")
	}
	if now, changed := r.sync(t); changed || now.Commit != head.Commit || contents(t, folder)["other.md"] != "x\n" {
		t.Error("a refused merge has changed something")
	}
}

func TestPullRequestShowsItsDiffAndCommits(t *testing.T) {
	folder := t.TempDir()
	long := strings.Repeat("a line of the page\n", 40)
	write(t, folder, forgetest.Files)
	write(t, folder, map[string]string{"old/name.md": "# A title\n\n" + long, "same.md": "the same\n",
		"bin.png": "\x89PNG\x00\x01", "noeol.md": "a\nb", "big.md": strings.Repeat("x\n", 1<<20)})
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	r.publish(t, "docent/job_1", put("index.md", "# Welcome\n\nThe very first page.\n"), del("docs.json"),
		put("new.md", "1\n2\n3\n"),
		del("old/name.md"), put("new/name.md", "# Another title\n\n"+long), del("same.md"), put("moved.md", "the same\n"),
		put("bin.png", "\x89PNG\x00\x02"), put("noeol.md", "a\nB"), put("big.md", strings.Repeat("y\n", 1<<20)))
	r.publish(t, "docent/job_1", put("new.md", "1\n2\n3\n4\n"))
	write(t, folder, map[string]string{"index.md": "# Changed in the folder\n"}) // the base's own news are no part of it
	r.sync(t)
	pull := r.pullOf(t, "docent/job_1")
	check := func() {
		t.Helper()
		d, err := r.Diff(t.Context(), pull.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]forge.FileDiff{}
		added, deleted := 0, 0
		for _, f := range d.Files {
			got[f.Path] = f
			added, deleted = added+f.Added, deleted+f.Deleted
		}
		if added != d.Added || deleted != d.Deleted {
			t.Errorf("the sum says +%d -%d, the files +%d -%d", d.Added, d.Deleted, added, deleted)
		}
		if len(d.Files) != 8 {
			t.Errorf("%d files", len(d.Files))
		}
		for path, want := range map[string]string{
			"index.md": "modified  +1 -1 false", "docs.json": "deleted  +0 -1 false", "new.md": "added  +4 -0 false",
			"new/name.md": "moved old/name.md +1 -1 false", "moved.md": "moved same.md +0 -0 false",
			"bin.png": "modified  +0 -0 true", "noeol.md": "modified  +1 -1 false", "big.md": "modified  +0 -0 false",
		} {
			f := got[path]
			if s := fmt.Sprintf("%s %s +%d -%d %v", f.Status, f.From, f.Added, f.Deleted, f.Binary); s != want {
				t.Errorf("%s: %s, want %s", path, s, want)
			}
		}
		if want := "@@ -1,3 +1,3 @@\n # Welcome\n \n-The first page.\n+The very first page.\n"; got["index.md"].Unified != want {
			t.Errorf("index.md:\n%s", got["index.md"].Unified)
		}
		if want := "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n"; got["noeol.md"].Unified != want {
			t.Errorf("noeol.md:\n%s", got["noeol.md"].Unified)
		}
		if got["big.md"].Note == "" || d.Note == "" {
			t.Error("no word about what is left out")
		}
		commits, err := r.Commits(t.Context(), pull.ID)
		if err != nil {
			t.Fatal(err)
		}
		if len(commits) != 2 || commits[0].Subject != "docs: explain the setup" ||
			!commits[1].Time.Equal(time.Date(2026, 11, 3, 10, 20, 30, 0, time.UTC)) {
			t.Errorf("commits = %+v", commits)
		}
		if base, head, err := r.Ends(t.Context(), pull.ID); err != nil || head != commits[1].Hash || base == head {
			t.Errorf("it goes from %s to %s, %v; its commits are %+v", base, head, err, commits)
		}
		for _, side := range []struct {
			path   string
			before bool
			want   string
		}{
			{"index.md", true, forgetest.Files["index.md"]}, {"index.md", false, "# Welcome\n\nThe very first page.\n"},
			{"new.md", true, ""}, {"new.md", false, "1\n2\n3\n4\n"}, {"same.md", true, "the same\n"}, {"same.md", false, ""},
			{"../index.md", true, ""}, {"", false, ""},
		} {
			got, err := r.PullFile(t.Context(), pull.ID, side.path, side.before)
			if string(got) != side.want || (side.want == "") != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%+v is %.40q, %v", side, got, err)
			}
		}
	}
	check()
	// Merged, and the branch gone on by hand: the pull request still shows what it was.
	write(t, folder, map[string]string{"index.md": forgetest.Files["index.md"]})
	if _, err := r.Merge(t.Context(), pull.ID); err != nil {
		t.Fatal(err)
	}
	check()
	for _, id := range []string{"", "pr_", "x", "../x", api.NewID(api.PullPrefix, time.Now())} {
		if _, err := r.Diff(t.Context(), id); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("diff of %q: %v", id, err)
		}
	}
}

// What git counts, we count: over the changes that a real rename of a term makes.
func TestDiffCountsAgreeWithGit(t *testing.T) {
	bare := prometheus(t)
	r := open(t, t.TempDir(), project(bare), &forgetest.Pulls{}, forge.Options{})
	tip := r.tip(t, "docent/job_1")
	var changes []forge.Change
	for path, text := range r.files(t, tip.Commit) {
		if now := strings.ReplaceAll(text, "Alertmanager", "Alert Manager"); now != text {
			changes = append(changes, put(path, now))
		}
	}
	if len(changes) < 10 {
		t.Fatalf("%d files name the term", len(changes))
	}
	done := r.publish(t, "docent/job_1", changes...)
	d, err := r.Diff(t.Context(), r.pullOf(t, "docent/job_1").ID)
	if err != nil {
		t.Fatal(err)
	}
	stat := git(t, r.repository(), "diff", "--shortstat", tip.Commit, done.Commit)
	if want := fmt.Sprintf("%d files changed, %d insertions(+), %d deletions(-)", len(d.Files), d.Added,
		d.Deleted); stat != want {
		t.Errorf("git says %s, we %s", stat, want)
	}
}

func TestLinksAndSubmodulesAreNoFiles(t *testing.T) {
	work, bare := t.TempDir(), filepath.Join(t.TempDir(), "docs.git")
	git(t, work, "init", "-q")
	write(t, work, map[string]string{"index.md": "# Home\n", "run.sh": "#!/bin/sh\n", "guide/a.md": "a\n"})
	for name, to := range map[string]string{"link.md": "/etc/passwd", "folder": "guide", "guide/up": "../.."} {
		if err := os.Symlink(to, filepath.Join(work, name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	os.Chmod(filepath.Join(work, "run.sh"), 0o755)
	git(t, work, "add", "-A")
	git(t, work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
	git(t, work, "commit", "-q", "-m", "start")
	git(t, work, "clone", "-q", "--bare", ".", bare)

	r := open(t, t.TempDir(), project(bare), &forgetest.Pulls{}, forge.Options{})
	tip := r.tip(t, "docent/job_1")
	if got, want := slices.Sorted(maps.Keys(r.files(t, tip.Commit))),
		[]string{"guide/a.md", "index.md", "run.sh"}; !slices.Equal(got, want) {
		t.Errorf("files = %v, want %v", got, want)
	}
	tree, err := r.Tree(t.Context(), r.project, tip.Commit)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.Links(t.Context()); err != nil ||
		!slices.Equal(got, []string{"folder", "guide/up", "link.md", "sub"}) {
		t.Errorf("links = %v, %v", got, err)
	}
	for _, path := range []string{"link.md", "folder", "folder/a.md", "guide/up/index.md", "sub", "sub/x"} {
		if _, err := tree.Read(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading %s: %v", path, err)
		}
		for _, change := range []forge.Change{put(path, "x"), del(path)} {
			p := forgetest.Publication(r.project, tip, "")
			p.Changes = []forge.Change{change}
			if _, err := r.Publish(t.Context(), p); !errors.Is(err, forge.ErrRefused) {
				t.Errorf("changing %s: %v, want ErrRefused", path, err)
			}
		}
	}
	done := r.publish(t, "docent/job_1", put("run.sh", "#!/bin/sh\nexit\n"), put("guide/a.md", "b\n"))
	want := strings.NewReplacer(
		git(t, bare, "rev-parse", "main:run.sh"), git(t, r.repository(), "rev-parse", done.Commit+":run.sh"),
		git(t, bare, "rev-parse", "main:guide/a.md"), git(t, r.repository(), "rev-parse", done.Commit+":guide/a.md"),
	).Replace(git(t, bare, "ls-tree", "-r", "main"))
	if got := git(t, r.repository(), "ls-tree", "-r", done.Commit); got != want {
		t.Errorf("the tree is\n%s\nwant\n%s", got, want)
	}
}

// A folder's own links lead nowhere when a merge is written back.
func TestWriteBackFollowsNoLink(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	write(t, folder, map[string]string{"index.md": "a\n", "guide/page.md": "page\n", "single.md": "single\n"})
	write(t, outside, map[string]string{"page.md": "page\n", "single.md": "single\n"})
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	r.sync(t)
	r.publish(t, "docent/job_1", put("guide/page.md", "changed\n"), put("single.md", "changed\n"),
		put("guide/new.md", "new\n"))
	r.publish(t, "docent/job_2", put("guide/sub/new.md", "new\n"))
	// The folder changes in the worst way: what was a folder is a link out now.
	os.RemoveAll(filepath.Join(folder, "guide"))
	os.Remove(filepath.Join(folder, "single.md"))
	if err := os.Symlink(outside, filepath.Join(folder, "guide")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	os.Symlink(filepath.Join(outside, "single.md"), filepath.Join(folder, "single.md"))
	for _, branch := range []string{"docent/job_1", "docent/job_2"} {
		if _, err := r.Merge(t.Context(), r.pullOf(t, branch).ID); err == nil {
			t.Errorf("%s was merged through a link", branch)
		}
	}
	if got := contents(t, outside); !maps.Equal(got, map[string]string{"page.md": "page\n", "single.md": "single\n"}) {
		t.Errorf("outside = %q", got)
	}
}

var errStop = errors.New("stopped here")

// Wherever a publication stops, and whether the service lives on or starts again: the repeat completes it, once.
func TestPublicationIsCompletedAfterAFailureAnywhere(t *testing.T) {
	builtIn := []string{"objects", "branch", "pull", "store latest", "store find", "store add", "store update"}
	for kind, steps := range map[string][]string{
		"folder":       append([]string{"import written"}, builtIn...),
		"repository":   append([]string{"fetched"}, builtIn...),
		"plain remote": {"fetched", "objects", "pushed", "branch"},
	} {
		for _, crash := range []bool{false, true} {
			for i, step := range steps {
				if !need.All && (crash || i%3 != 1) {
					continue // a sample
				}
				t.Run(fmt.Sprintf("%s/crash=%v/%s", kind, crash, step), func(t *testing.T) {
					var p api.Project
					var where string
					dir, pulls := t.TempDir(), &forgetest.Pulls{}
					if kind == "folder" {
						folder := t.TempDir()
						write(t, folder, forgetest.Files)
						p = project(folder)
					} else {
						where = bareSource(t)
						p = project(where)
						if kind == "plain remote" {
							p.Host = api.HostGit
						}
					}
					armed, reached := true, false
					fault := func(at string) error {
						if at == step && armed {
							armed, reached = false, true
							return errStop
						}
						return nil
					}
					pulls.Fault = func(call string) error { return fault("store " + call) }
					r := open(t, dir, p, pulls, forge.Failing(forge.Options{}, fault))
					again := func() {
						if crash {
							r = open(t, dir, p, pulls, forge.Failing(forge.Options{}, fault))
						}
					}
					tip, err := r.Tip(t.Context(), p, "docent/job_1")
					if errors.Is(err, errStop) {
						again()
						tip = r.tip(t, "docent/job_1")
					} else if err != nil {
						t.Fatal(err)
					}
					first := forgetest.Publication(p, tip, "# Set up\n\nNew.\n")
					publish := func(q forge.Publication) forge.Published {
						t.Helper()
						done, err := r.Publish(t.Context(), q)
						if errors.Is(err, errStop) {
							again()
							done, err = r.Publish(t.Context(), q)
						}
						if err != nil {
							t.Fatal(err)
						}
						return done
					}
					one := publish(first)
					tip, err = r.Tip(t.Context(), p, first.Branch)
					if errors.Is(err, errStop) {
						tip, err = r.Tip(t.Context(), p, first.Branch)
					}
					if err != nil || tip.Commit != one.Commit {
						t.Fatalf("tip = %+v, %v", tip, err)
					}
					next := forgetest.Publication(p, tip, "# Set up\n\nNewer.\n")
					next.Body = "What was asked then."
					two := publish(next)
					if !reached {
						t.Errorf("the step %q was never reached", step)
					}
					judge := r.repository()
					if kind == "plain remote" {
						judge = where
					} else {
						all, err := pulls.Pulls(t.Context(), p.ID, "")
						if err != nil || len(all) != 1 || all[0].Body != next.Body || all[0].State != api.PullOpen {
							t.Errorf("pull requests = %+v, %v", all, err)
						}
						if one.Link != two.Link || one.Link != "/pulls/"+all[0].ID || one.Number != 1 {
							t.Errorf("links %q and %q", one.Link, two.Link)
						}
					}
					got := log(t, judge, "docent/job_1")
					if len(got) < 3 || got[0] != two.Commit || got[1] != one.Commit || got[2] != first.Parent {
						t.Errorf("the branch has %v, want %s, %s on %s", got, two.Commit, one.Commit, first.Parent)
					}
					fsck(t, judge)
					if judge != r.repository() {
						fsck(t, r.repository())
					}
				})
			}
		}
	}
}

// Wherever a merge stops: the repeat completes it, once, and what it changed reaches the source.
func TestMergeIsCompletedAfterAFailureAnywhere(t *testing.T) {
	for kind, steps := range map[string][]string{
		"folder": {"merge written", "merge set", "file written back", "file written back 3", "merge back", "store pull",
			"store update"},
		"repository": {"fetched", "merge written", "merge pushed", "merge set", "merge back", "store pull", "store update"},
	} {
		for _, crash := range []bool{false, true} {
			for i, step := range steps {
				if !need.All && (crash || i%3 != 1) {
					continue // a sample
				}
				t.Run(fmt.Sprintf("%s/crash=%v/%s", kind, crash, step), func(t *testing.T) {
					var p api.Project
					var source string
					dir, pulls := t.TempDir(), &forgetest.Pulls{}
					if kind == "folder" {
						source = t.TempDir()
						write(t, source, forgetest.Files)
					} else {
						source = bareSource(t)
					}
					p = project(source)
					r := open(t, dir, p, pulls, forge.Options{})
					r.publish(t, "docent/job_1", put("index.md", "# New\n"), del("guide/setup.md"), put("guide/new.md", "new\n"),
						put("docs.json", "{}\n"))
					pull := r.pullOf(t, "docent/job_1")
					seen := map[string]int{}
					armed := true
					fault := func(at string) error {
						seen[at]++
						if armed && (at == step || fmt.Sprintf("%s %d", at, seen[at]) == step) {
							armed = false
							return errStop
						}
						return nil
					}
					start := func() { r = open(t, dir, p, pulls, forge.Failing(forge.Options{}, fault)) }
					start()
					pulls.Fault = func(call string) error { return fault("store " + call) }
					_, err := r.Merge(t.Context(), pull.ID)
					if armed || !errors.Is(err, errStop) {
						t.Fatalf("the step was not reached, or its fault swallowed: %v", err)
					}
					if crash {
						start()
					}
					if kind == "folder" && seen["merge set"] > 0 {
						// Reading the source again must not take a half-written folder for an edit.
						if _, _, err := r.Sync(t.Context(), p, nil); err != nil {
							t.Fatal(err)
						}
					}
					done, err := r.Merge(t.Context(), pull.ID)
					if err != nil {
						t.Fatal(err)
					}
					if done.State != api.PullMerged {
						t.Errorf("merged = %+v", done)
					}
					want := map[string]string{"index.md": "# New\n", "guide/new.md": "new\n", "docs.json": "{}\n",
						"guide/use.md": forgetest.Files["guide/use.md"]}
					tip, changed := r.sync(t)
					if got := r.files(t, tip.Commit); changed || tip.Commit != done.MergedAs || !maps.Equal(got, want) {
						t.Errorf("afterwards %+v (changed %v) has %q", tip, changed, got)
					}
					if kind == "folder" {
						if got := contents(t, source); !maps.Equal(got, want) {
							t.Errorf("folder = %q", got)
						}
					} else if got := log(t, source, "main"); got[0] != tip.Commit {
						t.Errorf("the source has %v", got)
					}
					if n := git(t, r.repository(), "rev-list", "--count", "--merges", "main"); n != "1" {
						t.Errorf("%s merges", n)
					}
					d, err := r.Diff(t.Context(), pull.ID)
					if err != nil || len(d.Files) != 4 {
						t.Errorf("diff of %d files, %v", len(d.Files), err)
					}
					fsck(t, r.repository())
				})
			}
		}
	}
}

// Bytes that rot, files that go: what is read is what was written, or an error; the next sync rebuilds
// the repository.
func TestDamageIsFoundAndMended(t *testing.T) {
	for _, harm := range []string{"flip", "truncate", "remove"} {
		for _, kind := range []string{"folder", "repository"} {
			t.Run(harm+"/"+kind, func(t *testing.T) {
				var source string
				if kind == "folder" {
					source = t.TempDir()
					write(t, source, forgetest.Files)
				} else {
					source = bareSource(t)
				}
				var logged bytes.Buffer
				r := open(t, t.TempDir(), project(source), &forgetest.Pulls{},
					forge.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
				r.publish(t, "docent/job_1", put("index.md", "# New\n"))
				files := func() []string {
					var out []string
					filepath.WalkDir(filepath.Join(r.repository(), "objects"), func(path string, d fs.DirEntry, err error) error {
						if err == nil && d.Type().IsRegular() {
							out = append(out, path)
						}
						return err
					})
					return out
				}
				kept, all := 0, len(files())
				for i := range all {
					list := files()
					if i >= len(list) {
						break
					}
					data, err := os.ReadFile(list[i])
					if err != nil {
						t.Fatal(err)
					}
					os.Chmod(list[i], 0o644)
					switch harm {
					case "flip":
						data[len(data)/2] ^= 0x10
						err = os.WriteFile(list[i], data, 0o644)
					case "truncate":
						err = os.WriteFile(list[i], data[:len(data)/2], 0o644)
					case "remove":
						err = os.Remove(list[i])
					}
					if err != nil {
						t.Fatal(err)
					}
					r = open(t, r.dir, r.project, r.pulls, forge.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
					tip, _, err := r.Sync(t.Context(), r.project, nil)
					if err != nil {
						t.Fatalf("%s: %v", filepath.Base(list[i]), err)
					}
					tree, err := r.Tree(t.Context(), r.project, tip.Commit)
					if err != nil {
						t.Fatal(err)
					}
					found := false
					for path, want := range forgetest.Files {
						if got, err := tree.Read(t.Context(), path); err == nil && string(got) != want {
							t.Errorf("%s reads %q", path, got)
						} else if err != nil {
							if found = true; !errors.Is(err, forge.ErrTemporary) {
								t.Errorf("reading %s: %v", path, err)
							}
						}
					}
					if found { // a file's content is checked when it is read; from then on it is known
						tip, _ = r.sync(t)
					}
					if got := r.files(t, tip.Commit); !maps.Equal(got, forgetest.Files) {
						t.Errorf("though the source has it, the repository holds %q", got)
					}
					// The branch was only here: if it is left, it is whole.
					read := func() (string, error) {
						tip := r.tip(t, "docent/job_1")
						tree, err := r.Tree(t.Context(), r.project, tip.Commit)
						if err != nil {
							return "", err
						}
						text, err := tree.Read(t.Context(), "index.md")
						if err == nil {
							_, err = tree.Files(t.Context())
						}
						return string(text), err
					}
					text, err := read()
					for try := 0; errors.Is(err, forge.ErrTemporary) && try < 2; try++ {
						text, err = read()
					}
					switch {
					case err != nil:
						t.Error(err)
					case text == "# New\n":
						kept++
					case text == forgetest.Files["index.md"]: // lost: the next publication creates it again
						r.publish(t, "docent/job_1", put("index.md", "# New\n"))
					default:
						t.Errorf("the branch holds %q", text)
					}
					fsck(t, r.repository())
					if t.Failed() {
						t.Fatalf("after harm to %s", list[i])
					}
				}
				t.Logf("the branch survived %d of %d", kept, all)
			})
		}
	}
}

func TestProjectsDoNotWaitForEachOther(t *testing.T) {
	pulls := &forgetest.Pulls{Known: map[api.ProjectID]api.Project{}}
	hold, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hub, err := forge.Open(t.TempDir(), pulls, forge.Failing(forge.Options{}, func(step string) error {
		first := false
		once.Do(func() { first = true })
		if first {
			close(entered)
			<-hold
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	var list []api.Project
	for _, id := range []api.ProjectID{"one", "two"} {
		folder := t.TempDir()
		write(t, folder, forgetest.Files)
		p := project(folder)
		p.ID = id
		pulls.Known[id] = p
		list = append(list, p)
	}
	done := make(chan error, 1)
	go func() { _, _, err := hub.Sync(t.Context(), list[0], nil); done <- err }()
	<-entered
	if _, _, err := hub.Sync(t.Context(), list[1], nil); err != nil { // hangs here if projects share a lock
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := hub.Sync(ctx, list[0], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a turn with a cancelled context: %v", err)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := hub.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, _, err := hub.Sync(t.Context(), list[0], nil); err == nil {
		t.Error("a hub that was shut down works on")
	}
}

func TestCheckRefusesWhatCannotBeServed(t *testing.T) {
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "docs.bundle")
	write(t, filepath.Dir(file), map[string]string{"docs.bundle": "x"})
	t.Setenv("DOCENT_TEST_EMPTY", "")
	bad := map[string]func(*api.Project){
		"no source":         func(p *api.Project) { p.Source = " " },
		"missing folder":    func(p *api.Project) { p.Source = filepath.Join(folder, "no") },
		"a file":            func(p *api.Project) { p.Source = file },
		"github":            func(p *api.Project) { p.Host = api.HostGitHub },
		"gitlab":            func(p *api.Project) { p.Host = api.HostGitLab },
		"gitea":             func(p *api.Project) { p.Host = api.HostGitea },
		"unknown host":      func(p *api.Project) { p.Host = "sourceforge" },
		"git with a folder": func(p *api.Project) { p.Host = api.HostGit },
		"password in URL":   func(p *api.Project) { p.Source = "https://me:hunter2@example.org/a/b.git" },
		"user in URL":       func(p *api.Project) { p.Source = "https://hunter2@example.org/a/b.git" },
		"query":             func(p *api.Project) { p.Source = "https://example.org/a/b.git?token=hunter2" },
		"ftp":               func(p *api.Project) { p.Source = "ftp://example.org/a/b.git" },
		"ext":               func(p *api.Project) { p.Source = "ext::sh -c hunter2" },
		"no host":           func(p *api.Project) { p.Source = "https:///a" },
		"branch":            func(p *api.Project) { p.Branch = "a..b" },
		"docs folder":       func(p *api.Project) { p.DocsDir = "../x" },
		"docs folder, git":  func(p *api.Project) { p.DocsDir = "x/.git" },
	}
	for name, change := range bad {
		p := project(folder)
		change(&p)
		err := forge.Check(p)
		if !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("%s: %v, want ErrMisconfigured", name, err)
		} else if strings.Contains(err.Error(), "hunter2") && name != "ext" {
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
	good := map[string]string{
		"https": "https://example.org/a/b.git", "http": "http://localhost:3000/a/b.git",
		"ssh": "ssh://git@example.org:2222/a/b.git",
		"scp": "git@example.org:a/b.git", "file": "file:///srv/docs.git", "folder": folder,
	}
	for name, source := range good {
		if err := forge.Check(project(source)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	for _, id := range []api.ProjectID{"", "..", "a/b", ".x", "a b", "a\x00", ".git", "a:b"} {
		p := project(folder)
		p.ID = id
		if _, _, err := r.Sync(t.Context(), p, nil); !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("project id %q: %v", id, err)
		}
	}
	p := project("https://127.0.0.1:1/a/b.git")
	p.TokenEnv = "DOCENT_TEST_EMPTY"
	if _, _, err := r.Sync(t.Context(), p, nil); !errors.Is(err, forge.ErrMisconfigured) ||
		!strings.Contains(err.Error(), p.TokenEnv) {
		t.Errorf("an empty token: %v", err)
	}
}

// What git says of a path's history and of two commits, we say.
func TestHistoryAgreesWithGit(t *testing.T) {
	work, bare := t.TempDir(), filepath.Join(t.TempDir(), "code.git")
	git(t, work, "init", "-q", "-b", "main")
	git(t, work, "init", "-q", "--bare", "-b", "main", bare)
	var at []string
	commit := func(message string, files map[string]string) {
		t.Helper()
		forgetest.Write(t, work, files)
		git(t, work, "add", "-A")
		git(t, work, "commit", "-q", "--allow-empty", "-m", message, "--date", fmt.Sprintf("2026-01-01T00:00:%02dZ", len(at)))
		at = append(at, git(t, work, "rev-parse", "HEAD"))
	}
	commit("first", map[string]string{"a/x.go": "1\n", "b.go": "1\n"})
	// A clone begins with its newest commit: history is there from then on.
	git(t, work, "push", "-q", bare, "main")
	r := open(t, t.TempDir(), project(bare), &forgetest.Pulls{}, forge.Options{})
	r.sync(t)
	git(t, work, "checkout", "-q", "-b", "side")
	commit("side", map[string]string{"a/y.go": "1\n"})
	git(t, work, "checkout", "-q", "main")
	commit("b alone", map[string]string{"b.go": "2\n"})
	git(t, work, "merge", "-q", "--no-ff", "-m", "merge", "side")
	commit("x", map[string]string{"a/x.go": "2\n"})
	git(t, work, "push", "-q", bare, "main")
	tip, _ := r.sync(t)
	tree, err := r.Tree(t.Context(), r.project, tip.Commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a/x.go", "a/y.go", "a", "b.go", "none.go", ""} {
		log, err := tree.Log(t.Context(), path, 20)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range log {
			got = append(got, c.Hash+" "+c.Subject)
		}
		args := []string{"log", "--format=%H %s"}
		if path != "" {
			args = append(args, "--", path)
		}
		if want := git(t, work, args...); strings.Join(got, "\n") != want && path != "" || len(got) != len(strings.Split(want, "\n")) && want != "" {
			t.Errorf("%q: got\n%s\nwant\n%s", path, strings.Join(got, "\n"), want)
		}
	}
	for _, between := range [][2]string{{"", ""}, {at[0], ""}, {at[0][:10], at[2][:7]}, {"HEAD~2", "HEAD"}, {"", "HEAD^"}} {
		got, err := tree.Between(t.Context(), between[0], between[1])
		to := cmp.Or(between[1], "HEAD")
		want := git(t, work, "diff", "--no-color", "--no-ext-diff", cmp.Or(between[0], to+"~1"), to)
		plain := regexp.MustCompile(`(?m)^(?:index .*|(@@ -[^@]*@@).*)\n`)
		if plain.ReplaceAllString(got, "$1") != plain.ReplaceAllString(want+"\n", "$1") || err != nil {
			t.Errorf("%q: %v, got\n%s\nwant\n%s", between, err, got, want)
		}
	}
	for _, bad := range []string{"abc", "HEAD~99", "HEAD~x", "main; rm", "0000000", strings.Repeat("a", 40), "--output=x"} {
		if _, err := tree.Between(t.Context(), bad, ""); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
