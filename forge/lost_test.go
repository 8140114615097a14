package forge_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// A branch that has lost its commit was made anew from the default branch, without a word and without the first edit.
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
