package job

import (
	"errors"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
)

// What a job's events say of a branch is what was published to it, word for word.
func TestRecordsAreThePublicationsOfABranch(t *testing.T) {
	project := api.Project{ID: "p"}
	first, second, other := edit("docent/job_1", 1, "a.md"), edit("docent/job_1", 1, "b.md"), edit("docent/job_1-2", 2, "c.md")
	second.Parent = "c1"
	var stored []journal.Event
	for _, ev := range []Event{
		Created{Project: "p", Job: testID, User: "key_1", Draft: true, At: t0},
		first, Published{Result: forge.Published{Commit: "c1"}},
		second, Stale{}, second, Published{Result: forge.Published{Commit: "c2"}},
		other, Published{Result: forge.Published{Commit: "c3"}},
		edit("docent/job_1", 1, "d.md"), Published{Result: forge.Published{Commit: "c4", Joined: "docent/job_0"}},
	} {
		e, err := Encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, e)
	}
	list, err := Records(testID, project, stored, "docent/job_1")
	if err != nil || len(list) != 2 {
		t.Fatalf("%d records, %v", len(list), err)
	}
	for i, want := range []struct{ commit, parent, path string }{{"c1", "c0", "a.md"}, {"c2", "c1", "b.md"}} {
		got := list[i]
		if got.Commit != want.commit || got.Parent != want.parent || got.Changes[0].Path != want.path || !got.Draft ||
			got.Asker != "key_1" || got.Message != "Commit" || got.Job != testID {
			t.Errorf("record %d is %+v", i, got)
		}
	}
	if list, err := Records(testID, project, stored[1:], "docent/job_1"); err != nil || len(list) > 0 {
		t.Errorf("without the beginning there are %d records, %v", len(list), err)
	}
}

func TestANoteIsTheJobsMessageOnce(t *testing.T) {
	s, err := play(t, state{id: testID}, create("x"), Note{"p", "The branch is lost."}, Note{"p", "The branch is lost."})
	if err != nil || s.message != "The branch is lost." {
		t.Errorf("the message is %q, %v", s.message, err)
	}
	seq := s.seq
	if s, err = play(t, s, Note{"p", "The branch is lost."}); err != nil || s.seq != seq {
		t.Errorf("a repeat makes %d events, %v", s.seq-seq, err)
	}
	if _, err := play(t, s, Note{"q", "The branch is lost."}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("of another project: %v", err)
	}
}
