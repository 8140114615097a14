package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"docent/persistence/quota"
)

// richJournal makes a file with some of everything, and says what is in it.
func richJournal(t *testing.T, path string, clean bool) (map[string]Recovered, map[string]Claim, []string) {
	j := openAt(t, path, Options{CheckpointEvery: time.Hour})
	r := rand.New(rand.NewPCG(1, 2))
	claims := make(map[string]Claim)
	if _, err := j.Follow("catalog"); err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		s := fmt.Sprintf("thread/%03d", r.IntN(120))
		rec := mustLoad(t, j, s)
		c := Claim{Key: fmt.Sprint("key/", i), Owner: s, Ref: fmt.Sprint(i),
			Expires: time.Now().Add(time.Hour).UTC().Round(0)}
		mustAppend(t, j, Append{Stream: s, After: rec.Seq,
			Events:  events(strings.Repeat(fmt.Sprint(i, " "), 1+r.IntN(60)), "b"),
			Pending: r.IntN(4) == 0, Claim: &c, Uses: []quota.Use{{Key: "ip/" + s, Window: quota.SlidingDay, Limit: 10}}})
		claims[c.Key] = c
		if r.IntN(3) == 0 {
			j.Snapshot(s, rec.Seq+uint64(r.IntN(3)), bytes.Repeat([]byte{byte(i)}, r.IntN(3000)))
		}
		if i%100 == 50 {
			flush(t, j)
			f, err := j.Follow("catalog")
			if err != nil {
				t.Fatal(err)
			}
			f.Ack(j.Position() - 20)
		}
	}
	flush(t, j)
	want := make(map[string]Recovered)
	for _, s := range streamNames(t, j, "") {
		want[s] = mustLoad(t, j, s)
	}
	pending := list(t, j.Pending)
	if clean {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return want, claims, pending
}

// TestADroppedStreamLeavesAJournalThatWorks flips bits all over a journal and drops what can then not be read. Every other
// stream is as it was.
func TestADroppedStreamLeavesAJournalThatWorks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	want, _, _ := richJournal(t, path, true)
	whole := mustUsedPart(t, path)
	broken := filepath.Join(t.TempDir(), "broken.db")
	dropped := 0
	for seed := range 80 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		b := bytes.Clone(whole)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if err := os.WriteFile(broken, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(broken, Options{Log: quiet})
		if errors.Is(err, ErrCorrupt) {
			continue // that is for a backup
		} else if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var bad []string
		for s := range want {
			if _, err := j.Load(s); err != nil {
				bad = append(bad, s)
			}
		}
		kept, records := 0, 0
		done, err := j.Drop(bad, func(Record) error { kept++; return nil }, nothing)
		for _, d := range done {
			records += d.Records
		}
		if err != nil || len(done) != len(bad) || kept != records || len(bad) > 0 && kept == 0 {
			t.Fatalf("seed %d: %v: %d records kept, %+v", seed, err, kept, done)
		}
		dropped += len(done)
		if err := j.Close(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		j = openAt(t, broken, Options{})
		for s, w := range want {
			switch rec, err := j.Load(s); {
			case err != nil:
				t.Fatalf("seed %d: %v: %v", seed, done, err)
			case slices.Contains(bad, s) && rec.Seq != 0 || !slices.Contains(bad, s) && !sameStream(rec, w):
				t.Fatalf("seed %d: %s is not as it was after %v", seed, s, done)
			}
		}
		if len(bad) > 0 {
			say(t, j, bad[0], "begins again")
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if dropped == 0 {
		t.Error("no stream was dropped")
	}
}

// TestADropThatCannotKeepChangesNothing fails to store what is to be taken out.
func TestADropThatCannotKeepChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	say(t, j, "job/a", "one")
	say(t, j, "job/b", "one")
	full := errors.New("no space")
	if _, err := j.Drop([]string{"job/a"}, func(Record) error { return full }, nothing); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if _, err := j.Drop([]string{"job/a"}, func(Record) error { return nil },
		func() error { return full }); !errors.Is(err, full) {
		t.Fatal(err)
	}
	wantTexts(t, j, "job/a", "one")
	if _, err := j.Drop([]string{"job/nobody"}, func(Record) error { return nil }, nothing); err == nil {
		t.Error("a stream that is not there was taken out")
	}
	done, err := j.Drop([]string{"job/a"}, func(Record) error { return nil }, nothing)
	if err != nil || len(done) != 1 || done[0].Records != 1 {
		t.Fatalf("%v %+v", err, done)
	}
	wantTexts(t, j, "job/a")
	wantTexts(t, j, "job/b", "one")
}

// TestInspectionShowsEverythingOfAStream reads records as they stand, the damaged ones too, without changing the file.
func TestInspectionShowsEverythingOfAStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	say(t, j, "thread/a", "one", "two")
	j.Snapshot("thread/a", 2, []byte("two so far"))
	flush(t, j)
	say(t, j, "thread/a", "three", "four")
	say(t, j, "thread/b", "one")
	last := j.Position()
	var live []string
	if err := j.Inspect().Records("thread/a", func(r Record) bool {
		live = append(live, r.Bucket+" "+string(r.State)+string(r.Event.Data))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"snapshots two so far", "events three", "events four"}
	if !slices.Equal(live, want) {
		t.Errorf("%q, want %q", live, want)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	damageRecord(t, path, bucketEvents, positionKey(last-1))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged, streams := 0, []string{}
	if err := errors.Join(in.Records("thread/a", func(r Record) bool {
		if r.Err != nil {
			damaged++
			if r.Position != last-1 || r.Stream != "thread/a" {
				t.Errorf("%+v", r)
			}
		}
		return true
	}), in.Streams(func(s string, rec Recovered) bool {
		streams = append(streams, fmt.Sprint(s, " ", rec.Seq))
		return true
	}), in.Close()); err != nil {
		t.Fatal(err)
	}
	if damaged != 1 || strings.Join(streams, ",") != "thread/b 1" {
		t.Errorf("%d damaged, streams %q", damaged, streams)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the inspection changed the file: %v", err)
	}
}

func nothing() error { return nil }

// damageRecord flips a bit in the last byte of a stored value.
func damageRecord(t testing.TB, path string, bucket, key []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		v := bytes.Clone(b.Get(key))
		if len(v) == 0 {
			return fmt.Errorf("nothing stands under %q", key)
		}
		v[len(v)-1] ^= 1
		return b.Put(key, v)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// sameStream compares what is known of a stream. A snapshot that cannot be found is no loss if all the events that
// it covers are still there.
func sameStream(got, want Recovered) bool {
	if got.Snapshot == nil && want.Snapshot != nil && uint64(len(got.Events)) == got.Seq {
		got.Snapshot, got.SnapSeq, got.Events = want.Snapshot, want.SnapSeq, got.Events[want.SnapSeq:]
		return got.Seq == want.Seq && slices.EqualFunc(got.Events, want.Events, func(a, b Event) bool {
			return a.Type == b.Type && bytes.Equal(a.Data, b.Data)
		})
	}
	return reflect.DeepEqual(got, want)
}
