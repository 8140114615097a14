package forge_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

// What a publication costs does not depend on how many pull requests are open: those that change something else are
// neither listed nor opened.
func TestAPublicationLooksAtNoPullRequestThatChangesSomethingElse(t *testing.T) {
	cost := func(others int) (files int64, listed int) {
		folder := t.TempDir()
		write(t, folder, forgetest.Files)
		pulls := &forgetest.Pulls{}
		var counting atomic.Bool
		var opened atomic.Int64
		r := open(t, t.TempDir(), project(folder), pulls, forge.OnDisk(quick, func(op, _ string) error {
			if op == "open" && counting.Load() {
				opened.Add(1)
			}
			return nil
		}))
		r.many(t, 0, others)
		p := forgetest.Publication(r.project, r.tip(t, "docent/new"), "# Set up\n\nNew.\n")
		p.Join = true
		pulls.Fault = func(call string) error {
			if call == "pulls" {
				listed++
			}
			return nil
		}
		counting.Store(true)
		if done, err := r.Publish(t.Context(), p); err != nil || done.Joined != "" {
			t.Fatalf("published as %+v, %v", done, err)
		}
		return opened.Load(), listed
	}
	few, _ := cost(2)
	many, listed := cost(40)
	if few != many || listed != 0 {
		t.Errorf("with 2 open pull requests %d files are opened, with 40 %d; all are listed %d times", few, many, listed)
	}
}

// Pull requests of before digests were kept are found too, and get theirs when they are first looked at.
func TestAPullRequestWithoutADigestIsJoinedAndGetsOne(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, quick)
	r.many(t, 0, 3)
	want := map[string]string{}
	for n := range 3 {
		pull := r.pullOf(t, fmt.Sprintf("docent/job_%d", n))
		if want[pull.Head] = pull.Change; pull.Change == "" {
			t.Fatalf("%s has no digest", pull.Head)
		}
		pull.Change = ""
		if _, err := r.pulls.UpdatePull(t.Context(), pull); err != nil {
			t.Fatal(err)
		}
	}
	p := forgetest.Publication(r.project, r.tip(t, "docent/new"), "")
	p.Join, p.Changes = true, []forge.Change{put("made/0.md", "# Page 0\n")}
	done, err := r.Publish(t.Context(), p)
	if err != nil || done.Joined != "docent/job_0" {
		t.Errorf("published as %+v, %v", done, err)
	}
	for head, digest := range want {
		if pull := r.pullOf(t, head); pull.Change != digest {
			t.Errorf("%s has the digest %q, want %q", head, pull.Change, digest)
		}
	}
}
