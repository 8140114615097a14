package journal_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"docent/persistence/journal"
	"docent/persistence/quota"
)

// moved makes a journal with everything that one can hold.
func moved(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(path, journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	events := []journal.Event{{Type: "a.1", Data: []byte("one")}, {Type: "b.1"}, {Type: "c.1", Data: []byte{0, 255}}}
	uses := []quota.Use{{Name: "project-month", Key: "project/docs", Window: quota.CalendarMonth, Limit: 100}}
	for i, stream := range []string{"job/a", "thread/b", "thread/gone", "job/c"} {
		_, err := j.Append(t.Context(), journal.Append{Stream: stream, Events: events, Pending: i%2 == 0, Uses: uses,
			Claim: &journal.Claim{Key: "key/" + stream, Owner: stream, Ref: "r", Digest: [32]byte{1, byte(i)},
				Expires: time.Now().Add(time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	j.Snapshot("job/a", 2, []byte("a state"))
	f, err := j.Follow("jobs")
	if err != nil {
		t.Fatal(err)
	}
	f.Ack(5)
	f.Close()
	err = errors.Join(j.Delete("thread/gone"), j.Remember(journal.Identity{ID: j.Identity().ID, Catalog: "cat", Revision: 7}),
		j.Close())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func contentsOf(t *testing.T, path string) (all []any) {
	t.Helper()
	in, err := journal.Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(in.Contents(func(of any) error { all = append(all, of); return nil }), in.Close())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func from(contents []any) func(func(any) error) error {
	return func(yield func(any) error) error {
		for _, of := range contents {
			if err := yield(of); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestAnImportedJournalIsTheOneThatWasRead(t *testing.T) {
	path := moved(t)
	want := contentsOf(t, path)
	kinds := map[string]int{}
	for _, of := range want {
		kinds[fmt.Sprintf("%T", of)]++
	}
	if len(kinds) < 6 || kinds["journal.PendingStream"] == 0 {
		t.Fatalf("the journal of this test holds only %v", kinds)
	}
	copied := filepath.Join(t.TempDir(), "journal.db")
	if err := journal.Import(copied, from(want)); err != nil {
		t.Fatal(err)
	}
	if got := contentsOf(t, copied); !reflect.DeepEqual(got, want) {
		t.Errorf("the copy holds\n%+v, not\n%+v", got, want)
	}
	if n, err := journal.Compare(from(want), from(contentsOf(t, copied))); err != nil || n.Streams != 3 || n.Events == 0 {
		t.Errorf("compared: %+v, %v", n, err)
	}
	for i := range want {
		if _, err := journal.Compare(from(want), from(slices.Delete(slices.Clone(want), i, i+1))); err == nil {
			t.Errorf("that %+v is missing is not noticed", want[i])
		}
		if _, err := journal.Compare(from(slices.Delete(slices.Clone(want), i, i+1)), from(want)); err == nil {
			t.Errorf("that %+v is too much is not noticed", want[i])
		}
	}
	a, b := openAt(t, path), openAt(t, copied)
	if x, y := a.Identity(), b.Identity(); x != y {
		t.Errorf("the copy's identity is %+v, not %+v", y, x)
	}
	for _, stream := range []string{"job/a", "thread/b", "thread/gone", "job/c"} {
		x, err1 := a.Load(stream)
		y, err2 := b.Load(stream)
		if err := errors.Join(err1, err2); err != nil || !reflect.DeepEqual(x, y) {
			t.Errorf("%s is %+v in the copy, not %+v: %v", stream, y, x, err)
		}
	}
	if last, err := b.Append(t.Context(), journal.Append{Stream: "thread/b", After: 3,
		Events: []journal.Event{{Type: "d.1"}}}); err != nil || last != 4 {
		t.Errorf("the copy appends %d, %v", last, err)
	}
	var claimed *journal.ClaimedError
	if _, err := b.Append(t.Context(), journal.Append{Stream: "job/new", Events: []journal.Event{{Type: "d.1"}},
		Claim: &journal.Claim{Key: "key/job/a", Expires: time.Now().Add(time.Hour)}}); !errors.As(err, &claimed) {
		t.Errorf("a key that was taken before is given again: %v", err)
	}
}

func TestAnImportThatBreaksOffLeavesNoJournal(t *testing.T) {
	want := contentsOf(t, moved(t))
	path := filepath.Join(t.TempDir(), "journal.db")
	broken := errors.New("broken off")
	for n := range want {
		err := journal.Import(path, func(yield func(any) error) error {
			return errors.Join(from(want[:n])(yield), broken)
		})
		if _, missing := os.Stat(path); !errors.Is(err, broken) || !errors.Is(missing, os.ErrNotExist) {
			t.Fatalf("after %d entries: %v, %v", n, err, missing)
		}
	}
	if err := os.WriteFile(path+".copy", []byte("left by a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := journal.Import(path, from(want)); err != nil {
		t.Fatal(err)
	}
	if err := journal.Import(path, from(want)); err == nil {
		t.Error("a journal is overwritten")
	}
	// What a journal could not have written itself is refused: here an event between others is left out.
	gap := slices.DeleteFunc(slices.Clone(want), func(of any) bool {
		e, ok := of.(journal.Entry)
		return ok && e.Stream == "job/c" && e.Seq == 2
	})
	if err := journal.Import(path+"2", from(gap)); len(gap) != len(want)-1 || err == nil {
		t.Errorf("a journal of %d entries with a gap is made: %v", len(gap), err)
	}
}

func openAt(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}
