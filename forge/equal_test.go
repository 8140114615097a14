package forge_test

import (
	"errors"
	"strings"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// TestAnInterruptedPublicationJoinsTheOneThatCameMeanwhile lets a job's publication break off between its branch and its
// pull request, and another job publish the same before the first one goes on.
func TestAnInterruptedPublicationJoinsTheOneThatCameMeanwhile(t *testing.T) {
	for _, step := range []string{"objects", "branch", "store latest", "store find", "store add"} {
		t.Run(step, func(t *testing.T) {
			armed := false
			fault := func(at string) error {
				if at == step && armed {
					armed = false
					return errStop
				}
				return nil
			}
			folder := t.TempDir()
			write(t, folder, forgetest.Files)
			p, pulls := project(folder), &forgetest.Pulls{Fault: func(call string) error { return fault("store " + call) }}
			r := open(t, t.TempDir(), p, pulls, forge.Failing(forge.Options{}, fault))
			publication := func(branch string) forge.Publication {
				q := forgetest.Publication(p, r.tip(t, branch), "# Set up\n\nNew.\n")
				q.Join = true
				return q
			}
			first, second := publication("docent/job_1"), publication("docent/job_2")
			armed = true
			if _, err := r.Publish(t.Context(), first); !errors.Is(err, errStop) {
				t.Fatalf("the first publication: %v", err)
			}
			other, err := r.Publish(t.Context(), second)
			if err != nil || !other.New {
				t.Fatalf("the second: %+v, %v", other, err)
			}
			done, err := r.Publish(t.Context(), first)
			if err != nil || done.Joined != second.Branch || done.Link != other.Link {
				t.Errorf("the first goes on as %+v, %v", done, err)
			}
			if list, err := r.Pulls(t.Context(), p.ID, api.PullOpen); err != nil || len(list) != 1 {
				t.Errorf("open are %+v, %v", list, err)
			}
		})
	}
}

func TestEachCommitOfAPullRequestHasItsOwnDiff(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	p, pulls := project(folder), &forgetest.Pulls{}
	r := open(t, t.TempDir(), p, pulls, forge.Options{})
	tip := r.tip(t, "docent/job_1")
	var commits []string
	for i, path := range []string{"guide/setup.md", "guide/use.md"} {
		q := forgetest.Publication(p, r.tip(t, "docent/job_1"), "")
		q.Changes = []forge.Change{{Path: path, Content: []byte("# New\n\nPage.\n")}}
		done, err := r.Publish(t.Context(), q)
		if err != nil {
			t.Fatal(i, err)
		}
		commits = append(commits, done.Commit)
	}
	id := r.pullOf(t, "docent/job_1").ID
	for i, path := range []string{"guide/setup.md", "guide/use.md"} {
		d, err := r.CommitDiff(t.Context(), id, commits[i])
		if err != nil || len(d.Files) != 1 || d.Files[0].Path != path {
			t.Errorf("commit %d changes %+v, %v", i, d.Files, err)
		}
	}
	for _, other := range []string{tip.Commit, "", "main", strings.Repeat("0", 40), strings.Repeat("a", 40)} {
		if _, err := r.CommitDiff(t.Context(), id, other); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%q: %v", other, err)
		}
	}
}
