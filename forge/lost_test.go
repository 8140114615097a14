package forge_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// A branch that had lost its commit used to be re-created from the default branch, silently and without the first edit.
func TestALostBranchIsBroughtBack(t *testing.T) {
	const branch = "docent/job_1"
	for _, lose := range []string{"reference removed", "reference empty", "reference set back", "repository put aside"} {
		t.Run(lose, func(t *testing.T) {
			source := bareSource(t)
			r := open(t, t.TempDir(), project(source), &forgetest.Pulls{}, forge.Options{})
			first := r.publish(t, branch, put("first.md", "# First\n"))
			ref := filepath.Join(r.repository(), "refs/heads", branch)
			var err error
			switch lose {
			case "reference removed":
				err = os.Remove(ref)
			case "reference empty":
				err = os.WriteFile(ref, nil, 0o600)
			case "reference set back":
				git(t, r.repository(), "update-ref", "refs/heads/"+branch, "main")
			case "repository put aside": // by an earlier version, which then made a new one without the branch
				aside := filepath.Join(r.dir, "docs.damaged-1795389550911520331")
				if err = os.Rename(r.repository(), aside); err == nil {
					git(t, r.dir, "clone", "-q", "--bare", "file://"+source, r.repository())
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			r = open(t, r.dir, r.project, r.pulls, forge.Options{})
			tip, err := r.TipAfter(t.Context(), r.project, branch, first.Commit)
			if err != nil {
				t.Fatal(err)
			}
			if tip.Commit != first.Commit || !tip.Restored || tip.Pull != api.PullOpen {
				t.Errorf("the branch stands at %+v, want %s", tip, first.Commit)
			}
			r.publish(t, branch, put("second.md", "# Second\n"))
			d, err := r.Diff(t.Context(), r.pullOf(t, branch).ID)
			if err != nil || len(d.Files) != 2 {
				t.Errorf("the pull request shows %+v, %v", d, err)
			}
			if tip, err = r.TipAfter(t.Context(), r.project, branch, first.Commit); err != nil || tip.Restored {
				t.Errorf("a branch that holds the commit is %+v, %v", tip, err)
			}
			fsck(t, r.repository())
		})
	}
}

func TestACommitThatIsLostIsSaidToBe(t *testing.T) {
	const branch = "docent/job_1"
	for _, lose := range []string{"objects removed", "other commits"} {
		t.Run(lose, func(t *testing.T) {
			r := open(t, t.TempDir(), project(bareSource(t)), &forgetest.Pulls{}, forge.Options{})
			first := r.publish(t, branch, put("first.md", "# First\n"))
			switch lose {
			case "objects removed":
				git(t, r.repository(), "update-ref", "-d", "refs/heads/"+branch)
				if err := os.Remove(filepath.Join(r.repository(), "objects", first.Commit[:2], first.Commit[2:])); err != nil {
					t.Fatal(err)
				}
			case "other commits":
				other := r.publish(t, "docent/other", put("other.md", "# Other\n"))
				git(t, r.repository(), "update-ref", "refs/heads/"+branch, other.Commit)
			}
			before := git(t, r.repository(), "for-each-ref")
			r = open(t, r.dir, r.project, r.pulls, forge.Options{})
			_, err := r.TipAfter(t.Context(), r.project, branch, first.Commit)
			var said *forge.HostError
			if !errors.Is(err, forge.ErrLost) || !errors.As(err, &said) || !strings.Contains(said.Say, first.Commit[:12]) {
				t.Errorf("got %v", err)
			}
			if now := git(t, r.repository(), "for-each-ref"); now != before {
				t.Errorf("the references were\n%s\nand are\n%s", before, now)
			}
		})
	}
}

// On a host of others, people decide what becomes of a branch.
func TestABranchThatPeopleRemovedStaysAway(t *testing.T) {
	bare := bareSource(t)
	p := project(bare)
	p.Host = api.HostGit
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	first := r.publish(t, "docent/job_1", put("first.md", "# First\n"))
	git(t, bare, "update-ref", "-d", "refs/heads/docent/job_1")
	tip, err := r.TipAfter(t.Context(), p, "docent/job_1", first.Commit)
	if err != nil || tip.Commit != git(t, bare, "rev-parse", "HEAD") {
		t.Errorf("the branch stands at %+v, %v", tip, err)
	}
}

// An operator may have git pack a repository while the server is stopped, references too.
func TestARepositoryThatGitHasPackedIsRead(t *testing.T) {
	const n = 30
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	long := strings.Repeat("A line that is the same in each version.\n", 400)
	for i := range n {
		r.publish(t, "docent/long", put("long.md", fmt.Sprintf("%s%d\n%s", long, i, long)))
	}
	r.pages(t, 3)
	git(t, r.repository(), "gc", "-q", "--aggressive", "--prune=now")
	if out := git(t, r.repository(), "count-objects", "-v"); !strings.Contains(out, "count: 0\n") ||
		!strings.Contains(git(t, r.repository(), "for-each-ref"), "docent/long") {
		t.Fatal(out)
	}
	r = open(t, r.dir, r.project, r.pulls, forge.Options{})
	r.complete(t, 3)
	tip := r.tip(t, "docent/long")
	if text := r.files(t, tip.Commit)["long.md"]; text != fmt.Sprintf("%s%d\n%s", long, n-1, long) {
		t.Errorf("the page has %d bytes", len(text))
	}
	// each through its differences
	for _, commit := range strings.Fields(git(t, r.repository(), "log", "--format=%H", "docent/long")) {
		if got, want := r.files(t, commit)["long.md"],
			git(t, r.repository(), "ls-tree", commit, "long.md"); (want == "") != (got == "") {
			t.Errorf("at %s the page has %d bytes, git says %q", commit, len(got), want)
		}
	}
	r.publish(t, "docent/long", put("long.md", "short\n"))
	fsck(t, r.repository())
}

func TestWhatIsFetchedAsDifferencesIsWhatGitHas(t *testing.T) {
	work := t.TempDir()
	git(t, work, "init", "-q")
	files := map[string]string{}
	for i := range 600 { // more than are kept one by one
		files[fmt.Sprintf("guide/page-%d.md", i)] = fmt.Sprintf("# Page %d\n\n%s%d\n",
			i, strings.Repeat(fmt.Sprintf("A line of group %d.\n", i%7), 60), i)
	}
	write(t, work, files)
	git(t, work, "add", "-A")
	git(t, work, "commit", "-q", "-m", "one")
	git(t, work, "gc", "-q", "--aggressive")
	r := open(t, t.TempDir(), project("file://"+work), &forgetest.Pulls{}, forge.Options{})
	tip, _ := r.sync(t)
	if list := git(t, r.repository(), "cat-file", "--batch-all-objects",
		"--batch-check=%(deltabase)"); !strings.ContainsAny(strings.ReplaceAll(list, strings.Repeat("0", 40), ""),
		"123456789abcdef") {
		t.Fatal("nothing came as a difference")
	}
	if got := r.files(t, tip.Commit); !maps.Equal(got, files) {
		t.Errorf("%d files, not those that were committed", len(got))
	}
	fsck(t, r.repository())
}
