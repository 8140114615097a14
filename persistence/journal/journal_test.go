package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/api"
	"docent/persistence/quota"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func openAt(t testing.TB, path string, o Options) *Journal {
	t.Helper()
	if o.Log == nil {
		o.Log = quiet
	}
	j, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func openNew(t testing.TB, o Options) *Journal {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "journal.db"), o)
}

func events(texts ...string) []Event {
	var es []Event
	for _, s := range texts {
		es = append(es, Event{"test.said.1", []byte(s)})
	}
	return es
}

func mustAppend(t testing.TB, j *Journal, a Append) uint64 {
	t.Helper()
	last, err := j.Append(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// say appends texts to a stream, wherever it stands.
func say(t testing.TB, j *Journal, stream string, texts ...string) uint64 {
	t.Helper()
	rec := mustLoad(t, j, stream)
	return mustAppend(t, j, Append{Stream: stream, After: rec.Seq, Events: events(texts...)})
}

func mustLoad(t testing.TB, j *Journal, stream string) Recovered {
	t.Helper()
	rec, err := j.Load(stream)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func texts(rec Recovered) []string {
	var out []string
	for _, e := range rec.Events {
		out = append(out, string(e.Data))
	}
	return out
}

// flush waits until the queued snapshots are written and what they cover is removed, as far as followers let it.
func flush(t testing.TB, j *Journal) {
	t.Helper()
	for {
		j.snapMu.Lock()
		j.snapSince = time.Time{}
		j.snapMu.Unlock()
		var round, trim int
		if err := j.do(func(c *commit) error {
			round, trim = len(j.round), j.trimmable(groupTrim)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		j.snapMu.Lock()
		queued := len(j.snaps)
		j.snapMu.Unlock()
		if queued+round+trim == 0 {
			return
		}
	}
}

func wantTexts(t testing.TB, j *Journal, stream string, want ...string) {
	t.Helper()
	if got := texts(mustLoad(t, j, stream)); !slices.Equal(got, want) {
		t.Fatalf("%s holds %q, want %q", stream, got, want)
	}
}

func list(t testing.TB, f func(func(string) bool) error) []string {
	t.Helper()
	var out []string
	if err := f(func(s string) bool { out = append(out, s); return true }); err != nil {
		t.Fatal(err)
	}
	return out
}

// streamNames are the names of the streams that begin with prefix, in their order.
func streamNames(t testing.TB, j *Journal, prefix string) []string {
	t.Helper()
	var names []string
	err := j.Inspect().Streams(func(stream string, _ Recovered) bool {
		if strings.HasPrefix(stream, prefix) {
			names = append(names, stream)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestWhatWasAppendedIsThereAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	if last := mustAppend(t, j, Append{Stream: "job/a", Events: events("one", "two"), Pending: true}); last != 2 {
		t.Fatalf("last is %d", last)
	}
	if last := mustAppend(t, j, Append{Stream: "job/a", After: 2, Events: events("three"), Pending: true}); last != 3 {
		t.Fatalf("last is %d", last)
	}
	mustAppend(t, j, Append{Stream: "thread/b", Events: []Event{{"thread.empty.1", nil}}})
	for range 2 {
		wantTexts(t, j, "job/a", "one", "two", "three")
		rec := mustLoad(t, j, "thread/b")
		if rec.Seq != 1 || rec.SnapSeq != 0 || rec.Snapshot != nil || rec.Events[0].Type != "thread.empty.1" {
			t.Fatalf("%+v", rec)
		}
		if rec := mustLoad(t, j, "job/none"); rec.Seq != 0 || rec.Events != nil {
			t.Fatalf("%+v", rec)
		}
		if got := list(t, j.Pending); !slices.Equal(got, []string{"job/a"}) {
			t.Fatalf("pending %q", got)
		}
		if j.Position() != 4 {
			t.Fatalf("position %d", j.Position())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = openAt(t, path, Options{})
	}
	mustAppend(t, j, Append{Stream: "job/a", After: 3, Events: events("four")})
	if got := list(t, j.Pending); got != nil {
		t.Fatalf("pending %q", got)
	}
}

func TestAStaleWriterIsRefusedAndHarmsNobody(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, Append{Stream: "job/a", Events: events("one")})
	for _, after := range []uint64{0, 2, 7} {
		if _, err := j.Append(t.Context(), Append{Stream: "job/a", After: after, Events: events("x")}); !errors.Is(err,
			ErrSequence) {
			t.Fatalf("after %d: %v", after, err)
		}
	}
	// In one group: of many that want to be number 2, one wins; the writers of other streams all do.
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 64 {
		wg.Go(func() {
			_, err := j.Append(t.Context(), Append{Stream: "job/a", After: 1, Events: events("two")})
			switch {
			case err == nil:
				mu.Lock()
				won++
				mu.Unlock()
			case !errors.Is(err, ErrSequence):
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := j.Append(t.Context(), Append{Stream: fmt.Sprint("job/", i), Events: events("x")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Fatalf("%d writers won", won)
	}
	wantTexts(t, j, "job/a", "one", "two")
}

func TestAppendsThatWaitShareACommit(t *testing.T) {
	j := openNew(t, Options{})
	started, release := make(chan struct{}), make(chan struct{})
	go j.do(func(*commit) error { close(started); <-release; return nil })
	<-started
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := j.Append(t.Context(), Append{Stream: fmt.Sprint("job/", i), Events: events("x")}); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := 0; waiting < n; {
		j.mu.Lock()
		waiting = len(j.queue)
		j.mu.Unlock()
	}
	before := j.Stats().Commits
	close(release)
	wg.Wait()
	if s := j.Stats(); s.Commits-before != 1 || s.Appends != n {
		t.Fatalf("%d commits for %d appends", s.Commits-before, s.Appends)
	}
}

// TestSnapshotsKeepUpWithTheAppends has far more snapshots wait than one commit takes otherwise: each group writes at
// least as many as it has appends, or else the queue would run over and drop some.
func TestSnapshotsKeepUpWithTheAppends(t *testing.T) {
	j := openNew(t, Options{CheckpointEvery: time.Hour})
	const streams, n = roundLong + 1000, 300
	many := func(kind string, count int) *sync.WaitGroup {
		var wg sync.WaitGroup
		for i := range count {
			wg.Go(func() {
				if _, err := j.Append(t.Context(), Append{Stream: fmt.Sprint(kind, i), Events: events("x")}); err != nil {
					t.Error(err)
				}
			})
		}
		return &wg
	}
	many("thread/", streams).Wait()
	started, release := make(chan struct{}), make(chan struct{})
	go j.do(func(*commit) error { close(started); <-release; return nil })
	<-started
	waiting := many("job/", n)
	for j.queued.Load() < n {
		runtime.Gosched()
	}
	for i := range streams {
		j.Snapshot(fmt.Sprint("thread/", i), 1, []byte("state"))
	}
	j.snapMu.Lock()
	j.snapSince = time.Time{} // with the next commit
	j.snapMu.Unlock()
	before := j.Stats()
	close(release)
	waiting.Wait()
	if err := j.do(func(*commit) error {
		now := j.Stats()
		others := now.Commits - before.Commits - 1 // without appends
		if got := now.Snapshots - before.Snapshots - others*groupSnapshots; got < n {
			return fmt.Errorf("%d snapshots were written with %d appends", got, n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAContextThatEndsWithdrawsAnAppendThatWaits(t *testing.T) {
	j := openNew(t, Options{})
	started, release := make(chan struct{}), make(chan struct{})
	go j.do(func(*commit) error { close(started); <-release; return nil })
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := j.Append(ctx, Append{Stream: "job/a", Events: events("x")})
		result <- err
	}()
	for waiting := 0; waiting == 0; {
		j.mu.Lock()
		waiting = len(j.queue)
		j.mu.Unlock()
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(release)
	mustAppend(t, j, Append{Stream: "job/b", Events: events("x")})
	if rec := mustLoad(t, j, "job/a"); rec.Seq != 0 {
		t.Fatalf("%+v", rec)
	}
}

func TestAppendsThatCannotBeStoredAreRefused(t *testing.T) {
	j := openNew(t, Options{})
	long := string(make([]byte, 5000))
	for name, a := range map[string]Append{
		"no stream":        {Events: events("x")},
		"long stream":      {Stream: long, Events: events("x")},
		"no events":        {Stream: "job/a"},
		"long type":        {Stream: "job/a", Events: []Event{{Type: long}}},
		"too large":        {Stream: "job/a", Events: []Event{{Type: "x", Data: make([]byte, maxAppendBytes)}}},
		"claim of nothing": {Stream: "job/a", Events: events("x"), Claim: &Claim{}},
		"long claim":       {Stream: "job/a", Events: events("x"), Claim: &Claim{Key: long}},
		"unknown window":   {Stream: "job/a", Events: events("x"), Uses: []quota.Use{{Key: "k", Limit: 1}}},
	} {
		if _, err := j.Append(t.Context(), a); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if j.Position() != 0 {
		t.Fatal("something was written")
	}
}

func TestSnapshotsReplaceTheEventsTheyCover(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	for i := range 10 {
		mustAppend(t, j, Append{Stream: "job/a", After: uint64(i), Events: events(fmt.Sprint(i))})
	}
	mustAppend(t, j, Append{Stream: "job/b", Events: events("b")})
	j.Snapshot("job/a", 3, []byte("three"))
	j.Snapshot("job/a", 8, []byte("eight"))
	j.Snapshot("job/a", 5, []byte("five")) // superseded
	j.Snapshot("job/b", 2, []byte("from an append that never was"))
	j.Snapshot("job/none", 1, []byte("of nothing"))
	flush(t, j)
	for range 2 {
		rec := mustLoad(t, j, "job/a")
		if rec.Seq != 10 || rec.SnapSeq != 8 || string(rec.Snapshot) != "eight" {
			t.Fatalf("%+v", rec)
		}
		wantTexts(t, j, "job/a", "8", "9")
		if rec := mustLoad(t, j, "job/b"); rec.Snapshot != nil || rec.Seq != 1 {
			t.Fatalf("%+v", rec)
		}
		if got := streamNames(t, j, "job/"); !slices.Equal(got, []string{"job/a", "job/b"}) {
			t.Fatalf("%q", got)
		}
		if n := logLength(t, j); n != 3 {
			t.Fatalf("%d events are left", n)
		}
		j.Close()
		j = openAt(t, path, Options{})
	}
	j.Snapshot("job/a", 10, []byte("ten"))
	flush(t, j)
	if s := j.Stats(); s.Streams != 1 {
		t.Fatalf("%d streams in memory", s.Streams)
	}
	// A stream at rest goes on where it was.
	if _, err := j.Append(t.Context(), Append{Stream: "job/a", Events: events("x")}); !errors.Is(err, ErrSequence) {
		t.Fatal(err)
	}
	if last := mustAppend(t, j, Append{Stream: "job/a", After: 10, Events: events("eleven")}); last != 11 {
		t.Fatal(last)
	}
	wantTexts(t, j, "job/a", "eleven")
}

func logLength(t testing.TB, j *Journal) (n uint64) {
	t.Helper()
	if err := j.do(func(c *commit) error { n = c.state.counts[nEvents]; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCloseWritesTheSnapshotsThatWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{CheckpointEvery: time.Hour})
	for i := range 300 {
		s := fmt.Sprintf("thread/%03d", i)
		mustAppend(t, j, Append{Stream: s, Events: events("x")})
		j.Snapshot(s, 1, []byte("state"))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openAt(t, path, Options{})
	if s := j.Stats(); s.Streams != 0 {
		t.Fatalf("%d streams in memory", s.Streams)
	}
	if got := streamNames(t, j, "thread/"); len(got) != 300 || !slices.IsSorted(got) {
		t.Fatalf("%d streams", len(got))
	}
	if _, err := j.Append(t.Context(), Append{Stream: "thread/000", After: 1, Events: events("y")}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if _, err := j.Append(t.Context(), Append{Stream: "thread/000", After: 2, Events: events("z")}); !errors.Is(err,
		api.ErrShuttingDown) {
		t.Fatal(err)
	}
}

func TestOneOfManyClaimsWins(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	j := openNew(t, Options{Now: func() time.Time { return now }})
	digest := sha256.Sum256([]byte("body"))
	claim := func(i int) *Claim {
		return &Claim{Key: "key/create/1", Digest: digest, Owner: fmt.Sprint("job/", i), Ref: "r",
			Expires: now.Add(time.Hour)}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var winner string
	var holders []string
	for i := range 50 {
		wg.Go(func() {
			c := claim(i)
			_, err := j.Append(t.Context(), Append{Stream: c.Owner, Events: events("x"), Claim: c})
			mu.Lock()
			defer mu.Unlock()
			var held *ClaimedError
			switch {
			case err == nil && winner == "":
				winner = c.Owner
			case errors.As(err, &held):
				holders = append(holders, held.Claim.Owner)
			default:
				t.Error(c.Owner, err)
			}
		})
	}
	wg.Wait()
	for _, h := range holders {
		if h != winner {
			t.Fatalf("%s won, %s is named", winner, h)
		}
	}
	if got := streamNames(t, j, ""); !slices.Equal(got, []string{winner}) {
		t.Fatalf("%q", got)
	}
	c, ok, err := j.Claim("key/create/1", now)
	if err != nil || !ok || c.Owner != winner || c.Digest != digest || c.Ref != "r" ||
		!c.Expires.Equal(now.Add(time.Hour)) {
		t.Fatal(c, ok, err)
	}
	// An expired claim is as good as none.
	now = now.Add(time.Hour)
	if _, ok, err := j.Claim("key/create/1", now); ok || err != nil {
		t.Fatal(ok, err)
	}
	c2 := claim(99)
	c2.Expires = now.Add(time.Hour)
	mustAppend(t, j, Append{Stream: c2.Owner, Events: events("x"), Claim: c2})
	if c, ok, err := j.Claim("key/create/1", now); err != nil || !ok || c.Owner != "job/99" {
		t.Fatal(c, ok, err)
	}
}

// TestAClaimIsReleasedByItsHolder gives keys up in the append that takes another: only those that the stream holds.
func TestAClaimIsReleasedByItsHolder(t *testing.T) {
	j := openNew(t, Options{})
	life := time.Now().Add(time.Hour)
	claim := func(key, owner string) *Claim { return &Claim{Key: key, Owner: owner, Expires: life, Replaces: true} }
	mustAppend(t, j, Append{Stream: "thread/a", Events: events("x"), Claim: claim("chat/1", "thread/a")})
	mustAppend(t, j, Append{Stream: "thread/a", After: 1, Events: events("x"), Claim: claim("chat/2", "thread/a"),
		Release: "chat/1"})
	mustAppend(t, j, Append{Stream: "thread/b", Events: events("x"), Release: "chat/2"}) // another's
	mustAppend(t, j, Append{Stream: "thread/b", After: 1, Events: events("x"), Release: "chat/none"})
	for key, owner := range map[string]string{"chat/1": "", "chat/2": "thread/a"} {
		if c, _, err := j.Claim(key, time.Now()); err != nil || c.Owner != owner {
			t.Errorf("%s is held by %q, %v, want %q", key, c.Owner, err, owner)
		}
	}
	if n := j.state.counts[nClaims]; n != 1 {
		t.Errorf("%d claims are counted", n)
	}
}

func TestExpiredClaimsAndCountsAreSwept(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{Now: func() time.Time { return now }, UnsafeNoSync: true})
	for i := range 3000 {
		s := fmt.Sprint("job/", i)
		expires := now.Add(time.Hour)
		if i%1000 == 0 {
			expires = now.Add(100 * time.Hour)
		}
		mustAppend(t, j, Append{Stream: s, Events: events("x"), Claim: &Claim{Key: s, Owner: s, Expires: expires},
			Uses: []quota.Use{{Name: "ip-day", Key: "ip/" + s, Window: quota.SlidingDay, Limit: 10}}})
	}
	now = now.Add(60 * time.Hour)
	j.sweep()
	var state fileState
	if err := j.do(func(c *commit) error { state = c.state; return nil }); err != nil {
		t.Fatal(err)
	}
	if state.counts[nClaims] != 3 || state.counts[nUses] != 0 {
		t.Fatalf("%d claims and %d counts are left", state.counts[nClaims], state.counts[nUses])
	}
	if _, ok, err := j.Claim("job/1000", now); !ok || err != nil {
		t.Fatal(ok, err)
	}
	j.Close()
	openAt(t, path, Options{})
}

func TestDeleteLeavesNothingButIsHeardOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	f, err := j.Follow("catalog")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		mustAppend(t, j, Append{Stream: "thread/a", After: uint64(i), Events: events("secret"), Pending: true})
	}
	mustAppend(t, j, Append{Stream: "thread/b", Events: events("kept")})
	j.Snapshot("thread/a", 3, []byte("secret"))
	flush(t, j)
	f.Ack(6)
	j.Snapshot("thread/a", 5, []byte("secret"))
	if err := j.Delete("thread/a"); err != nil {
		t.Fatal(err)
	}
	if err := j.Delete("thread/none"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		flush(t, j)
		if rec := mustLoad(t, j, "thread/a"); rec.Seq != 0 || rec.Snapshot != nil || rec.Events != nil {
			t.Fatalf("%+v", rec)
		}
		if p := list(t, j.Pending); p != nil {
			t.Fatal(p)
		}
		if got := streamNames(t, j, ""); !slices.Equal(got, []string{"thread/b"}) {
			t.Fatal(got)
		}
		var heard []string
		if err := j.Since(6, func(_ uint64, s string) bool { heard = append(heard, s); return true }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(heard, []string{"thread/a"}) {
			t.Fatal(heard)
		}
		if n := logLength(t, j); n != 2 { // what is kept, and the mark
			t.Fatalf("%d records", n)
		}
		j.Close()
		j = openAt(t, path, Options{})
	}
	if f, err = j.Follow("catalog"); err != nil {
		t.Fatal(err)
	}
	f.Ack(j.Position())
	flush(t, j)
	if n := logLength(t, j); n != 1 {
		t.Fatalf("%d records", n)
	}
	if last := say(t, j, "thread/a", "anew"); last != 1 {
		t.Fatal(last)
	}
}

func TestAFollowerMissesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	f, err := j.Follow("catalog")
	if err != nil {
		t.Fatal(err)
	}
	<-f.Changed()
	for i := range 100 {
		s := fmt.Sprintf("job/%02d", i%10)
		say(t, j, s, fmt.Sprint(i))
		if i%7 == 6 {
			j.Snapshot(s, mustLoad(t, j, s).Seq, []byte("state"))
		}
	}
	<-f.Changed()
	flush(t, j)
	if j.Trimmed() != 0 {
		t.Fatal("events were removed that the follower has not acknowledged")
	}
	f.Ack(50)
	flush(t, j)
	if tr := j.Trimmed(); tr == 0 || tr > 50 {
		t.Fatalf("trimmed up to %d", tr)
	}
	// From wherever one begins, every stream that changed after it is named at its last position or later.
	lastOf := func(i int) uint64 { return uint64(91 + i) }
	check := func() {
		t.Helper()
		for from := range uint64(101) {
			at := make(map[string]uint64)
			prev := from
			if err := j.Since(from, func(pos uint64, s string) bool {
				if pos < prev || pos <= from {
					t.Fatalf("from %d: position %d after %d", from, pos, prev)
				}
				prev, at[s] = pos, pos
				return true
			}); err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				if s := fmt.Sprintf("job/%02d", i); at[s] != lastOf(i) && lastOf(i) > from {
					t.Fatalf("from %d: %s is named at %d", from, s, at[s])
				}
			}
		}
	}
	check()
	for i := range 10 {
		s := fmt.Sprintf("job/%02d", i)
		j.Snapshot(s, 10, []byte("state"))
	}
	flush(t, j)
	check()
	j.Close()
	j = openAt(t, path, Options{}) // before anyone follows, its mark holds
	flush(t, j)
	if tr := j.Trimmed(); tr > 50 {
		t.Fatalf("trimmed up to %d", tr)
	}
	if f, err = j.Follow("catalog"); err != nil || j.followers["catalog"].acked != 50 {
		t.Fatal(err, j.followers)
	}
	f.Ack(100)
	flush(t, j)
	if j.Trimmed() != 100 || j.Stats().Streams != 0 {
		t.Fatalf("trimmed up to %d, %d streams in memory", j.Trimmed(), j.Stats().Streams)
	}
	check()
}

func TestASecondProcessIsTold(t *testing.T) {
	j := openNew(t, Options{})
	_, err := Open(j.Path(), Options{Log: quiet, LockTimeout: 100 * time.Millisecond})
	if err == nil || errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	t.Log(err)
}

func TestBackgroundWorkHappensByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		j, err := Open(path, Options{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		f, err := j.Follow("catalog")
		if err != nil {
			t.Fatal(err)
		}
		used := time.Now()
		for i := range 200 {
			s := fmt.Sprint("job/", i)
			mustAppend(t, j, Append{Stream: s, Events: events("x"),
				Claim: &Claim{Key: s, Owner: s, Expires: time.Now().Add(24 * time.Hour)},
				Uses:  []quota.Use{{Key: s, Window: quota.SlidingHour, Limit: 5}}})
			j.Snapshot(s, 1, []byte("state"))
		}
		time.Sleep(3 * time.Second)
		if s := j.Stats(); s.Snapshots != 200 || s.Trimmed != 0 {
			t.Fatalf("%+v", s)
		}
		f.Ack(j.Position())
		time.Sleep(3 * time.Second)
		if s := j.Stats(); s.Trimmed != 200 || s.Streams != 0 {
			t.Fatalf("%+v", s)
		}
		time.Sleep(3 * 24 * time.Hour)
		var state fileState
		if err := j.do(func(c *commit) error { state = c.state; return nil }); err != nil {
			t.Fatal(err)
		}
		// A use that is not forgotten would count again when the clock goes back.
		left, _ := j.Quotas().Remaining(used, quota.Use{Key: "job/0", Window: quota.SlidingHour, Limit: 5})
		if state.counts[nClaims] != 0 || state.counts[nUses] != 0 || left != 5 {
			t.Fatalf("%+v, %d uses left", state, left)
		}
	})
}

func TestMetricsAreCollected(t *testing.T) {
	j := openNew(t, Options{})
	say(t, j, "job/a", "x")
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(j); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil || len(families) != 13 {
		t.Fatal(len(families), err)
	}
}

func TestAnotherFormatIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	if err := j.do(func(c *commit) error {
		body := append(head(nil), "docent journal 7"...)
		seal(metaFormat, body)
		c.wrote = true
		return c.tx.Bucket(bucketMeta).Put(metaFormat, body)
	}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	_, err := Open(path, Options{Log: quiet})
	if err == nil || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), `"docent journal 7"`) {
		t.Fatal(err)
	}
}

func copyFile(t testing.TB, to, from string) {
	t.Helper()
	if err := os.WriteFile(to, mustUsedPart(t, from), 0o600); err != nil {
		t.Fatal(err)
	}
}

// usedPart reads a file without the space at its end that bbolt has reserved.
func usedPart(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	metas := make([]byte, 2*os.Getpagesize())
	if _, err := io.ReadFull(f, metas); err != nil {
		return nil, err
	}
	m, err := readMeta(metas)
	if err != nil {
		return nil, err
	}
	if m2, err := readMeta(metas[m.pageSize:]); err == nil && m2.tx > m.tx {
		m = m2
	}
	b := make([]byte, int(m.high)*m.pageSize)
	_, err = f.ReadAt(b, 0)
	return b, err
}

func mustUsedPart(t testing.TB, path string) []byte {
	t.Helper()
	b, err := usedPart(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCountsSurviveAndReservationsDoNot(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now := noon
	path := filepath.Join(t.TempDir(), "journal.db")
	o := Options{Now: func() time.Time { return now }}
	j := openAt(t, path, o)
	uses := []quota.Use{
		{Name: "project-hour", Key: "project/p", Window: quota.SlidingHour, Limit: 10},
		{Name: "key-month", Key: "key/k", Window: quota.CalendarMonth, Limit: 10},
		{Name: "ip-day", Key: "ip/i", Window: quota.SlidingDay, Limit: 10},
		{Name: "none", Key: "x", Window: quota.SlidingHour, Limit: -1},
	}
	var seq uint64
	for i := range 6 {
		now = noon.Add(time.Duration(i) * 20 * time.Minute)
		if err := j.Quotas().Reserve(now, uses); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // the others crash before they are accepted
			seq = mustAppend(t, j, Append{Stream: "job/a", After: seq, Events: events("x"), Uses: uses})
		}
	}
	// Accepted at 12:00, 12:40 and 13:20; it is 13:40.
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openAt(t, path, o)
	for i, want := range []int{8, 7, 7, -1} {
		if left, _ := j.Quotas().Remaining(now, uses[i]); left != want {
			t.Errorf("%s: %d left, want %d", uses[i].Name, left, want)
		}
	}
}

// A committer that hangs is noticed, also where nothing waits behind it, and one that has nothing to do is none.
func TestACommitterThatHangsIsNoticed(t *testing.T) {
	t.Parallel()
	j := openNew(t, Options{})
	if err := j.Moves(t.Context()); err != nil {
		t.Errorf("one with nothing to do: %v", err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- j.do(func(*commit) error { close(entered); <-leave; return nil })
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := j.Moves(ctx); err == nil {
		t.Error("one that hangs counts as one that moves")
	}
	close(leave)
	if err := errors.Join(<-ended, j.Moves(t.Context())); err != nil {
		t.Errorf("one that goes on: %v", err)
	}
}
