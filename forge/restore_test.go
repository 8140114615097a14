package forge_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/forge"
	"docent/forge/forgetest"
)

// A branch is gone with its commits, and the journal has what was published to it.
func TestABranchThatIsGoneIsMadeAgainFromTheJournal(t *testing.T) {
	const branch = "docent/job_1"
	r := open(t, t.TempDir(), project(bareSource(t)), &forgetest.Pulls{}, quick)
	r.pages(t, 1)
	var records []forge.Record
	for _, page := range []string{"first.md", "second.md"} {
		p := forgetest.Publication(r.project, r.tip(t, branch), "")
		p.Changes = []forge.Change{put(page, "# A page\n")}
		done, err := r.Publish(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, forge.Record{Publication: p, Commit: done.Commit})
	}
	pull := r.pullOf(t, branch)
	lose := func() {
		t.Helper()
		git(t, r.repository(), "update-ref", "-d", "refs/heads/"+branch)
		for _, rec := range records {
			if err := os.Remove(filepath.Join(r.repository(), "objects", rec.Commit[:2], rec.Commit[2:])); err != nil {
				t.Fatal(err)
			}
		}
		r = open(t, r.dir, r.project, r.pulls, quick)
		broken, err := r.Broken(t.Context(), r.project)
		if err != nil || len(broken) != 1 || broken[0].ID != pull.ID {
			t.Fatalf("broken are %v, %v", broken, err)
		}
	}
	lose()
	if err := r.Restore(t.Context(), r.project, pull, records); err != nil {
		t.Fatal(err)
	}
	if head := git(t, r.repository(), "rev-parse", branch); head != records[1].Commit {
		t.Errorf("the branch is at %s, not %s", head, records[1].Commit)
	}
	if d, err := r.Diff(t.Context(), pull.ID); err != nil || len(d.Files) != 2 {
		t.Errorf("the pull request shows %d files, %v", len(d.Files), err)
	}
	fsck(t, r.repository())
	if broken, err := r.Broken(t.Context(), r.project); err != nil || len(broken) > 0 {
		t.Errorf("broken are %v, %v", broken, err)
	}

	// What cannot be made again is said, once.
	lose()
	for name, cannot := range map[string][]forge.Record{"none": nil, "one of two": records[1:]} {
		if err := r.Restore(t.Context(), r.project, pull, cannot); !errors.Is(err, forge.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range 2 {
		fresh, err := r.TellLost(t.Context(), pull, "The branch is lost.")
		if err != nil || fresh != (i == 0) {
			t.Errorf("told: %v, %v", fresh, err)
		}
	}
	if body := r.pullOf(t, branch).Body; strings.Count(body, "The branch is lost.") != 1 {
		t.Errorf("the pull request says %q", body)
	}
	if _, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_0").ID); err != nil {
		t.Errorf("another one is not merged: %v", err)
	}
}
