package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"docent/agent"
	"docent/api"
	"docent/persistence/journal"
)

// TestTheLogTellsTheWholeJob plays a job with a follow-up and looks at what who follows it sees.
func TestTheLogTellsTheWholeJob(t *testing.T) {
	edits := edits
	edits.edited.Files = []FileChange{{Path: "a.md", Status: "modified", Added: 1, Removed: 1}}
	edits.edited.Diff = "--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-x\n+y\n"
	s, err := play(t, state{id: testID}, create("Rename a"), progressed{Progress: agent.Progress{Text: "looking"}}, edits,
		publish, follow, edits,
		publishDone{err: errors.New("gone")}, Archive{"p"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	diffs := 0
	for i, e := range s.log {
		if e.Seq != uint64(i)+1 || e.At.IsZero() {
			t.Errorf("entry %d: %+v", i, e)
		}
		if e.Diff != "" {
			diffs++
		}
		got = append(got, fmt.Sprintf("%s %s", e.Type, e.Status))
	}
	want := []string{"created active", "prompt active", "progress active", "edited active", "published active",
		"finished completed",
		"prompt active", "edited active", "failed failed", "archived failed"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if diffs != 1 || s.log[7].Diff == "" || len(s.log[3].Files) != 1 {
		t.Errorf("%d diffs are kept", diffs)
	}
	if s.seq != uint64(len(want)) {
		t.Errorf("the state is at event %d of %d", s.seq, len(want))
	}
	if tail := s.entries(8); len(tail) != 2 || tail[0].Type != EntryFailed {
		t.Errorf("beyond event 8: %+v", tail)
	}
	if len(s.entries(100)) != 0 || len(s.entries(0)) != len(want) {
		t.Error("the ends of the log are not where they should be")
	}
}

func TestALogThatOverflowsSaysSo(t *testing.T) {
	s, err := play(t, state{id: testID}, create("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"x", strings.Repeat("y", maxText)} {
		for range 3 * maxLog {
			s = s.apply(Progressed{Text: text, At: t0})
			if len(s.log) > maxLog || s.logBytes > maxLogBytes || s.logBytes != logBytes(s.log) {
				t.Fatalf("%d entries of %d bytes are kept, counted as %d", len(s.log), logBytes(s.log), s.logBytes)
			}
			if s.dropped > 0 && s.dropped+1 != s.log[0].Seq || s.log[len(s.log)-1].Seq != s.seq {
				t.Fatalf("dropped up to %d, kept %d to %d of %d", s.dropped, s.log[0].Seq, s.log[len(s.log)-1].Seq, s.seq)
			}
		}
	}
	if s.dropped == 0 {
		t.Error("nothing was dropped")
	}
	data, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	got, err := kind.Recovered(string(testID), journal.Recovered{Seq: s.seq, SnapSeq: s.seq, Snapshot: data})
	if err != nil || !reflect.DeepEqual(normal(got), normal(s)) {
		t.Errorf("the log does not survive a restart: %v", err)
	}
}

// TestAnEarlierSnapshotHasALog reads one that was written when a job kept its progress only.
func TestAnEarlierSnapshotHasALog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "snapshot-without-log.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	if _, err := fmt.Sscanf(string(text), "snapshot %x", &data); err != nil {
		t.Fatal(err)
	}
	finished, err := codec.Encode(Finished{Message: "Done.", At: t0})
	if err != nil {
		t.Fatal(err)
	}
	s, err := kind.Recovered(string(testID), journal.Recovered{Seq: 6, SnapSeq: 5, Snapshot: data,
		Events: []journal.Event{finished}})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.log) != 2 || s.log[0].Seq != 5 || s.log[0].Text != "l" || s.log[1].Seq != 6 || s.dropped != 4 || s.seq != 6 {
		t.Errorf("at %d, dropped %d: %+v", s.seq, s.dropped, s.log)
	}
}

func TestADryRunPublishesNothing(t *testing.T) {
	cmd := create("x")
	cmd.DryRun = true
	s, err := play(t, state{id: testID}, cmd, edits)
	if err != nil {
		t.Fatal(err)
	}
	if _, pending := s.pending(); pending || s.status != api.JobCompleted || s.link != "" ||
		!strings.Contains(s.message, "dry run") {
		t.Errorf("%s, %v, link %q: %s", s.status, s.phase, s.link, s.message)
	}
	if s, err = play(t, s, follow, edits); err != nil || s.status != api.JobCompleted {
		t.Errorf("its follow-up: %v, %s", err, s.status)
	}
}

func TestABranchOfTheCallersChoice(t *testing.T) {
	cmd := create("x")
	cmd.Branch = "docs/next"
	s, err := play(t, state{id: testID}, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if s.row(1).Branch != "docs/next" || s.branchName(2) != "docs/next-2" {
		t.Errorf("%q, then %q", s.branch, s.branchName(2))
	}
}

type files map[string]string

func (files) Commit() string                            { return "c0" }
func (files) Files(context.Context) ([]api.File, error) { return nil, nil }
func (f files) Read(_ context.Context, path string) ([]byte, error) {
	if text, ok := f[path]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func TestAnEditIsDescribed(t *testing.T) {
	tree := files{"a.md": "one\ntwo\nthree\n", "gone.md": "x\n", "old.md": "same\nbody\n", "image.png": "\x00"}
	changes := []agent.Change{
		{Path: "a.md", Content: []byte("one\n2\nthree\n")},
		{Path: "gone.md", Delete: true},
		{Path: "new.md", Content: []byte("hello\nthere\n")},
		{Path: "old.md", Delete: true},
		{Path: "sub/old.md", From: "old.md", Content: []byte("same\ntext\n")},
		{Path: "image.png", Content: []byte("\x00\x01")},
	}
	got, diff, err := describe(t.Context(), tree, changes, maxDiff)
	if err != nil {
		t.Fatal(err)
	}
	want := []FileChange{
		{Path: "a.md", Status: "modified", Added: 1, Removed: 1},
		{Path: "gone.md", Status: "deleted", Removed: 1},
		{Path: "new.md", Status: "added", Added: 2},
		{Path: "sub/old.md", From: "old.md", Status: "moved", Added: 1, Removed: 1},
		{Path: "image.png", Status: "modified"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for _, part := range []string{"--- a/a.md\n+++ b/a.md\n", "-two\n+2\n", "+++ /dev/null\n",
		"--- /dev/null\n+++ b/new.md\n", "rename from old.md\nrename to sub/old.md\n",
		"# 1 more files are not shown\n"} {
		if !strings.Contains(diff, part) {
			t.Errorf("no %q in\n%s", part, diff)
		}
	}
	if _, short, err := describe(t.Context(), tree, changes, 80); err != nil || len(short) > 80+60 ||
		!strings.Contains(short, "more files are not shown") {
		t.Errorf("%v: %q", err, short)
	}
}
