package journal

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestACompactedJournalIsTheSameAndSmaller also leaves what a compaction that broke off would leave.
func TestACompactedJournalIsTheSameAndSmaller(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	want, claims, pending := richJournal(t, path, true)
	j := openAt(t, path, Options{CheckpointEvery: time.Hour})
	var last uint64
	for range 100 { // pages that the removal of the stream leaves free
		last = mustAppend(t, j, Append{Stream: "job/large", After: last, Events: events(strings.Repeat("x", 500_000))})
	}
	if err := j.Delete("job/large"); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	position := j.Position()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+compactSuffix, []byte("half a journal"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, after, err := Compact(path, Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != after || after > before/2 {
		t.Fatalf("from %d to %d bytes, %v", before, after, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	j = openAt(t, path, Options{})
	if j.Position() != position {
		t.Fatalf("it ends at %d, not %d", j.Position(), position)
	}
	for s, w := range want {
		if rec := mustLoad(t, j, s); !reflect.DeepEqual(rec, w) {
			t.Fatalf("%s: %+v, want %+v", s, rec, w)
		}
	}
	if got := streamNames(t, j, ""); len(got) != len(want) {
		t.Fatalf("%d streams, want %d", len(got), len(want))
	}
	for k, w := range claims {
		if c, ok, err := j.Claim(k, time.Now()); err != nil || !ok || c != w {
			t.Fatalf("claim %s: %v %v %+v", k, ok, err, c)
		}
	}
	got := list(t, j.Pending)
	slices.Sort(got)
	slices.Sort(pending)
	if !slices.Equal(got, pending) {
		t.Fatal(got, pending)
	}
	if err := j.Check(func(p Problem) bool { t.Error(p); return true }); err != nil {
		t.Fatal(err)
	}
	say(t, j, "job/new", "it goes on")
}

func TestCompactRefusesWhatIsNoWholeJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	if _, _, err := Compact(path, Options{Log: quiet}); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	j := openAt(t, path, Options{})
	say(t, j, "job/a", "one")
	if _, _, err := Compact(path, Options{Log: quiet, LockTimeout: time.Millisecond}); err == nil ||
		!strings.Contains(err.Error(), "another process") {
		t.Fatal(err)
	}
	wantTexts(t, j, "job/a", "one")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole := mustUsedPart(t, path)
	if err := os.WriteFile(path, whole[:len(whole)-5000], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Compact(path, Options{Log: quiet}); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != int64(len(whole)-5000) {
		t.Fatal("the damaged file was changed", err)
	}
}
