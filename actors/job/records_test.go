package job

import (
	"errors"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
)

// What a job keeps of a branch is what was published to it, word for word, also after a sleep: its events are gone then.
func TestRecordsAreThePublicationsOfABranch(t *testing.T) {
	project := api.Project{ID: "p"}
	first, second, other := edit("docent/job_1", 1, "a.md"), edit("docent/job_1", 1, "b.md"), edit("docent/job_1-2", 2, "c.md")
	second.Parent = "c1"
	at := func(commit, joined string) Published {
		return Published{Result: forge.Published{Commit: commit, Joined: joined, Link: "/pulls/1"}}
	}
	s := state{id: testID}
	for _, ev := range []Event{
		Created{Project: "p", Job: testID, User: "key_1", Draft: true, At: t0},
		first, at("c1", ""), second, Stale{}, second, at("c2", ""), other, at("c3", ""),
		edit("docent/job_1", 1, "d.md"), at("c4", "docent/job_0"), Finished{},
	} {
		s = s.apply(ev)
	}
	snapshot, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	rec := journal.Recovered{Seq: s.seq, SnapSeq: s.seq, Snapshot: snapshot}
	list, err := Records(testID, project, rec, "docent/job_1")
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
	merged, err := Encode(PullChanged{Branch: "docent/job_1", State: api.PullMerged})
	if err != nil {
		t.Fatal(err)
	}
	rec.Seq, rec.Events = rec.Seq+1, []journal.Event{merged}
	if list, err := Records(testID, project, rec, "docent/job_1"); err != nil || len(list) > 0 {
		t.Errorf("of a merged one there are %d records, %v", len(list), err)
	}
	s = state{id: testID}.apply(Created{Job: testID})
	for n := range 3 { // too much to be kept whole
		large := edit("docent/job_1", 1, "a.md")
		large.Result.Changes[0].Content = make([]byte, maxRecorded*2/5+n)
		s = s.apply(large).apply(at("c", "")).apply(Finished{})
	}
	if len(s.records) != 2 || len(s.records[1].Edited.Result.Changes[0].Content) != maxRecorded*2/5+2 {
		t.Errorf("%d records of much are kept", len(s.records))
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
