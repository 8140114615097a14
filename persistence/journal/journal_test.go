package journal

import (
	"context"
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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// What a follower of the log waits for stays in memory; a stream that its snapshot covers does not, from then on and
// after the next start.
func TestStreamsAtRestAreNotInMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{CheckpointEvery: time.Hour})
	f, err := j.Follow("catalog")
	if err != nil {
		t.Fatal(err)
	}
	in := func(want int) {
		t.Helper()
		if s := j.Stats(); s.Streams != want {
			t.Fatalf("%d streams in memory, want %d", s.Streams, want)
		}
	}
	for i := range 10 {
		s := fmt.Sprint("thread/", i)
		say(t, j, s, "x")
		j.Snapshot(s, 1, []byte("state"))
	}
	flush(t, j)
	in(10)
	f.Ack(j.Position())
	flush(t, j)
	in(0)
	say(t, j, "thread/3", "y")
	in(1)
	j.Snapshot("thread/3", 2, []byte("state"))
	f.Ack(j.Position())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openAt(t, path, Options{})
	if at := j.followers["catalog"].acked; at != 11 {
		t.Errorf("the follower is at %d", at)
	}
	flush(t, j)
	in(0)
}

func TestAReleasedClaimIsNotCounted(t *testing.T) {
	j := openNew(t, Options{})
	claim := func(key string) *Claim {
		return &Claim{Key: key, Owner: "thread/a", Expires: time.Now().Add(time.Hour), Replaces: true}
	}
	mustAppend(t, j, Append{Stream: "thread/a", Events: events("x"), Claim: claim("chat/1")})
	mustAppend(t, j, Append{Stream: "thread/a", After: 1, Events: events("x"), Claim: claim("chat/2"), Release: "chat/1"})
	if n := j.state.counts[nClaims]; n != 1 {
		t.Errorf("%d claims are counted", n)
	}
}

func logLength(t testing.TB, j *Journal) (n uint64) {
	t.Helper()
	if err := j.do(func(c *commit) error { n = c.state.counts[nEvents]; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestExpiredClaimsAndCountsAreSwept(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var clock atomic.Pointer[time.Time] // the journal may look at it at any time
	set := func(to time.Time) { now = to; clock.Store(&to) }
	set(now)
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{Now: func() time.Time { return *clock.Load() }, UnsafeNoSync: true})
	for i := range 3000 {
		s := fmt.Sprint("job/", i)
		expires := now.Add(time.Hour)
		if i%1000 == 0 {
			expires = now.Add(100 * time.Hour)
		}
		mustAppend(t, j, Append{Stream: s, Events: events("x"), Claim: &Claim{Key: s, Owner: s, Expires: expires},
			Uses: []quota.Use{{Name: "ip-day", Key: "ip/" + s, Window: quota.SlidingDay, Limit: 10}}})
	}
	set(now.Add(60 * time.Hour))
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

// A committer that hangs is noticed, even if nothing waits behind it. One that is idle is not taken for one.
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
