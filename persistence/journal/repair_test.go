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

	"docent/internal/testing/need"
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

// TestRepairLeavesAJournalThatWorks flips bits all over a journal and repairs it. Afterwards nothing is wrong any more,
// and each stream is as it was, or the repair says that it lost something and kept what it took out.
func TestRepairLeavesAJournalThatWorks(t *testing.T) {
	rounds := 400
	if !need.All {
		rounds = 80
	}
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprintf("clean=%v", clean), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "journal.db")
			want, _, pending := richJournal(t, path, clean)
			whole, err := usedPart(path)
			if err != nil {
				t.Fatal(err)
			}
			broken := filepath.Join(t.TempDir(), "broken.db")
			refused, mended, lost, harmless := 0, 0, 0, 0
			for seed := range rounds {
				r := rand.New(rand.NewPCG(uint64(seed), 11))
				b := bytes.Clone(whole)
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
				if err := os.WriteFile(broken, b, 0o600); err != nil {
					t.Fatal(err)
				}
				j, err := Open(broken, Options{Log: quiet, AcceptDamage: true})
				if errors.Is(err, ErrCorrupt) {
					refused++ // its pages cannot be walked: that is for a backup
					continue
				} else if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				kept := 0
				done, err := j.Repair(nil, func(rec Record) error {
					if rec.Bucket == "" || len(rec.Value) == 0 {
						t.Errorf("seed %d: kept %+v", seed, rec)
					}
					kept++
					return nil
				}, nothing)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if err := j.Close(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if err := Check(broken, func(p Problem) bool {
					t.Errorf("seed %d: after the repair %v: %v", seed, done, p)
					return true
				}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				told, records := false, 0
				for _, d := range done {
					told, records = told || d.Lost, records+d.Records
				}
				if records != kept {
					t.Fatalf("seed %d: %d records were taken out and %d kept: %+v", seed, records, kept, done)
				}
				j = openAt(t, broken, Options{}) // without AcceptDamage
				missing := 0
				for s, w := range want {
					rec, err := j.Load(s)
					switch {
					case err != nil:
						t.Fatalf("seed %d: %v: %v", seed, done, err)
					case rec.Seq == 0:
						missing++
					case rec.Seq != w.Seq:
						t.Fatalf("seed %d: %s stands at %d, not %d, after %v", seed, s, rec.Seq, w.Seq, done)
					case rec.SnapSeq == w.SnapSeq && !reflect.DeepEqual(rec, w):
						t.Fatalf("seed %d: %s holds something else after %v", seed, s, done)
					}
				}
				got := list(t, j.Pending)
				for _, s := range pending {
					if mustLoad(t, j, s).Seq > 0 && !slices.Contains(got, s) {
						t.Fatalf("seed %d: %s calls for work no more, after %v", seed, s, done)
					}
				}
				if missing > 0 && !told {
					t.Fatalf("seed %d: %d streams are gone and %v does not say so", seed, missing, done)
				}
				if missing > 1 {
					t.Fatalf("seed %d: one flipped bit costs %d streams: %v", seed, missing, done)
				}
				say(t, j, "job/after", "the repair")
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				switch {
				case told:
					lost++
				case len(done) > 0:
					mended++
				default:
					harmless++
				}
			}
			t.Logf("of %d flips %d are beyond repair, %d are mended without a loss, %d with, %d are harmless", rounds, refused,
				mended, lost, harmless)
		})
	}
}

// TestRepairMendsWhatTheRestStillSays damages single records of a stream that has both a snapshot and the events before
// it.
func TestRepairMendsWhatTheRestStillSays(t *testing.T) {
	for _, c := range []struct {
		name   string
		bucket []byte
		key    func(first, last uint64) []byte
		want   uint64 // sequence number afterwards
		lost   bool
	}{
		{"snapshot of a whole log", bucketSnapshots, func(_, _ uint64) []byte { return []byte("job/a") }, 4, false},
		{"event below the snapshot", bucketEvents, func(first, _ uint64) []byte { return positionKey(first + 1) }, 4, false},
		{"event above the snapshot", bucketEvents, func(_, last uint64) []byte { return positionKey(last) }, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			j := openAt(t, path, Options{})
			if _, err := j.Follow("holds everything"); err != nil {
				t.Fatal(err)
			}
			say(t, j, "job/other", "one")
			first := j.Position() + 1
			say(t, j, "job/a", "one", "two", "three")
			j.Snapshot("job/a", 3, []byte("three so far"))
			flush(t, j)
			say(t, j, "job/a", "four")
			last := j.Position()
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			damageRecord(t, path, c.bucket, c.key(first, last))

			j = openAt(t, path, Options{AcceptDamage: true})
			if _, err := j.Load("job/a"); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("the damage is not seen: %v", err)
			}
			kept := 0
			done, err := j.Repair(nil, func(Record) error { kept++; return nil }, nothing)
			if err != nil || len(done) != 1 || done[0].Lost != c.lost || done[0].Stream != "job/a" {
				t.Fatalf("%v %+v", err, done)
			}
			if kept == 0 || kept != done[0].Records {
				t.Errorf("%d records kept of %d", kept, done[0].Records)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = openAt(t, path, Options{})
			if rec := mustLoad(t, j, "job/a"); rec.Seq != c.want {
				t.Errorf("the stream stands at %d, want %d", rec.Seq, c.want)
			}
			wantTexts(t, j, "job/other", "one")
			say(t, j, "job/a", "goes on")
		})
	}
}

// TestARepairThatCannotKeepChangesNothing fails to store what is to be taken out.
func TestARepairThatCannotKeepChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	say(t, j, "job/a", "one")
	say(t, j, "job/b", "one")
	full := errors.New("no space")
	if _, err := j.Repair([]string{"job/a"}, func(Record) error { return full }, nothing); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if _, err := j.Repair([]string{"job/a"}, func(Record) error { return nil },
		func() error { return full }); !errors.Is(err, full) {
		t.Fatal(err)
	}
	wantTexts(t, j, "job/a", "one")
	if _, err := j.Repair([]string{"job/nobody"}, func(Record) error { return nil }, nothing); err == nil {
		t.Error("a stream that is not there was taken out")
	}
	done, err := j.Repair([]string{"job/a"}, func(Record) error { return nil }, nothing)
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

// TestADamagedIdentityIsTakenOut damages the record of which journal this is, which says nothing of what was
// acknowledged.
func TestADamagedIdentityIsTakenOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	is := Identity{ID: "of the journal", Catalog: "of the catalogue", Revision: 7}
	if err := j.Remember(is); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		body := bytes.Clone(tx.Bucket(bucketMeta).Get(metaIdentity))
		body[len(body)-1] ^= 1
		return tx.Bucket(bucketMeta).Put(metaIdentity, body)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{Log: quiet}); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a damaged identity is taken as it stands: %v", err)
	}
	if j, err = Open(path, Options{Log: quiet, AcceptDamage: true}); err != nil {
		t.Fatal(err)
	}
	var kept []Record
	done, err := j.Repair(nil, func(r Record) error { kept = append(kept, r); return nil }, nothing)
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	if len(kept) != 1 || kept[0].Bucket != "meta" || len(done) != 1 || done[0].Lost {
		t.Errorf("kept %+v, done %+v", kept, done)
	}
	if err := Check(path, func(p Problem) bool { t.Error(p); return true }); err != nil {
		t.Fatal(err)
	}
	if err := openAt(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
}
