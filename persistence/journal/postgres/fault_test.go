package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

// patience is how long appends wait for a database that is away, in tests in which each has to take place: longer than it
// takes to come back on a machine that stands still now and then.
const patience = time.Minute

func said(texts ...string) (list []journal.Event) {
	for _, s := range texts {
		list = append(list, journal.Event{Type: "test.said.1", Data: []byte(s)})
	}
	return list
}

func say(t *testing.T, j *Journal, stream string, after uint64, text string) {
	t.Helper()
	last, err := j.Append(t.Context(), journal.Append{Stream: stream, After: after, Events: said(text)})
	if err != nil || last != after+1 {
		t.Fatal(last, err)
	}
}

func TestANodeThatWasGivenUpWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	b.cluster()
	node := b.node()
	j := open(t, b.dsn, Options{Node: node})
	say(t, j, "job/a", 0, "one")
	say(t, j, "job/a", 1, "two")
	head := b.giveUp(node) // between two batches
	refused := func(j *Journal) {
		t.Helper()
		for range 2 {
			if _, err := j.Append(t.Context(), journal.Append{Stream: "job/a", After: 2, Events: said("three"),
				Claim: &journal.Claim{Key: "k", Owner: "job/a", Expires: time.Now().Add(time.Hour)},
				Uses:  []quota.Use{{Name: "n", Key: "k", Window: quota.SlidingHour, Limit: 9}}}); !errors.Is(err, journal.ErrFenced) {
				t.Errorf("an append: %v", err)
			}
		}
		if err := j.Delete("job/a"); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("a removal: %v", err)
		}
		j.Snapshot("job/a", 2, []byte("state"))
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if !j.Fenced() {
			t.Error("it does not say so")
		}
	}
	refused(j)
	refused(open(t, b.dsn, Options{Node: node}))
	never := open(t, b.dsn, Options{Node: "node_that_never_was"})
	if err := never.Delete("job/a"); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a removal as the first thing: %v", err)
	}
	refused(never)
	for what, query := range map[string]string{
		"the end of the journal": "SELECT position - $1 FROM journal_head",
		"events":                 "SELECT count(*) - $1 FROM journal_events",
	} {
		if n := b.number(query, head); n != 0 {
			t.Errorf("%s: changed by %d", what, n)
		}
	}
	for _, table := range []string{"journal_snapshots", "journal_claims", "journal_uses"} {
		if n := b.number("SELECT count(*) FROM " + table); n != 0 {
			t.Errorf("%s: %d rows", table, n)
		}
	}
	say(t, open(t, b.dsn, Options{Node: b.node()}), "job/a", 2, "three")
}

// Many appends are under way when the node is given up. Those that were acknowledged are there, and nothing comes after.
func TestNothingIsWrittenAfterANodeWasGivenUp(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("connections are ended too: %v", cut), func(t *testing.T) {
			t.Parallel()
			b := newBase(t, catalogtest.Postgres(t))
			b.cluster()
			node := b.node()
			o := Options{Node: node, Patience: patience}
			if cut {
				o.Application = "docent " + node
			}
			j := open(t, b.dsn, o)
			var writing sync.WaitGroup
			var done atomic.Int64
			var acknowledged [16]uint64
			enough := make(chan struct{})
			for i := range acknowledged {
				writing.Go(func() {
					for done.Load() < 5000 { // without a fence it would go on
						last, err := j.Append(t.Context(), journal.Append{Stream: fmt.Sprint("job/", i), After: acknowledged[i],
							Events: said("x"), Urgency: journal.Urgency(i % 3)})
						if err != nil {
							if !errors.Is(err, journal.ErrFenced) {
								t.Error(err)
							}
							return
						}
						acknowledged[i] = last
						if done.Add(1) == 500 {
							close(enough)
						}
					}
				})
			}
			<-enough
			head := b.giveUp(node)
			writing.Wait()
			if at := b.number("SELECT position FROM journal_head"); at != head {
				t.Errorf("the journal ended at %d and grew to %d", head, at)
			}
			if n := b.number("SELECT count(*) FROM journal_events"); n != head {
				t.Errorf("%d events of %d", n, head)
			}
			for i, want := range acknowledged {
				// The answer of the last one may have been lost with the connection.
				if is := uint64(b.number("SELECT last FROM journal_streams WHERE stream = $1", fmt.Sprint("job/", i))); is != want &&
					(!cut || is != want+1) {
					t.Errorf("stream %d: %d acknowledged, %d there", i, want, is)
				}
			}
		})
	}
}

// The database carries a batch out, and its answer is lost. It is sent again, and each gets the answer of the first time.
func TestABatchWhoseAnswerIsLostTakesPlaceOnce(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	between, dsn := newWire(t, b.dsn)
	j := open(t, dsn, Options{Patience: patience})
	life := time.Now().Add(time.Hour)
	use := []quota.Use{{Name: "n", Key: "k", Window: quota.SlidingHour, Limit: 2}}
	say(t, j, "job/moved", 0, "one")
	say(t, j, "job/moved", 1, "two")
	if _, err := j.Append(t.Context(), journal.Append{Stream: "job/holder", Events: said("x"), Uses: use,
		Claim: &journal.Claim{Key: "held", Owner: "job/holder", Expires: life}}); err != nil {
		t.Fatal(err)
	}
	var limit *api.LimitError
	var held *journal.ClaimedError
	for i, test := range []struct {
		a    journal.Append
		want func(last uint64, err error) bool
	}{
		{journal.Append{Stream: "job/new", Events: said("a", "b"), Uses: use,
			Claim: &journal.Claim{Key: "new", Owner: "job/new", Expires: life}},
			func(last uint64, err error) bool { return last == 2 && err == nil }},
		{journal.Append{Stream: "job/moved", After: 1, Events: said("x")},
			func(_ uint64, err error) bool { return errors.Is(err, journal.ErrSequence) }},
		{journal.Append{Stream: "job/late", Events: said("x"), Claim: &journal.Claim{Key: "held", Owner: "job/late", Expires: life}},
			func(_ uint64, err error) bool { return errors.As(err, &held) && held.Claim.Owner == "job/holder" }},
		{journal.Append{Stream: "job/late", Events: said("x"), Uses: use},
			func(_ uint64, err error) bool { return errors.As(err, &limit) && limit.Limit == 2 }},
	} {
		between.shut()
		between.lose.Store(1)
		answer := make(chan struct{})
		go func() {
			defer close(answer)
			if last, err := j.Append(t.Context(), test.a); !test.want(last, err) {
				t.Errorf("append %d is answered %d, %v", i, last, err)
			}
		}()
		<-between.lost
		select {
		case <-answer:
			t.Fatal("it is answered before the database did")
		default:
		}
		if n := b.number("SELECT count(*) FROM journal_events WHERE stream = 'job/new'"); n != 2 {
			t.Fatalf("the batch was carried out: %d events", n)
		}
		between.open()
		<-answer
	}
	if n := b.number("SELECT count(*) FROM journal_events"); n != 5 {
		t.Errorf("%d events", n)
	}
	if n := b.number("SELECT sum(count) FROM journal_uses"); n != 2 {
		t.Errorf("%d uses are counted", n)
	}
	say(t, j, "job/new", 2, "c")
}

// A node that is given up after its batch was stored, and before it has heard so, is told that it was stored.
func TestWhatWasStoredBeforeANodeWasGivenUpIsSaidToBe(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	b.cluster()
	node := b.node()
	between, dsn := newWire(t, b.dsn)
	j := open(t, dsn, Options{Node: node, Patience: patience})
	say(t, j, "job/a", 0, "one")
	between.shut()
	between.lose.Store(1)
	answer := make(chan error, 1)
	go func() {
		_, err := j.Append(t.Context(), journal.Append{Stream: "job/a", After: 1, Events: said("two")})
		answer <- err
	}()
	<-between.lost
	b.giveUp(node)
	between.open()
	if err := <-answer; err != nil {
		t.Errorf("it is stored, and answered %v", err)
	}
	if _, err := j.Append(t.Context(), journal.Append{Stream: "job/a", After: 2, Events: said("three")}); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the next append: %v", err)
	}
}

// The caller was told that the journal cannot be reached, after the database had carried the append out. What the node
// writes next is not taken for that batch.
func TestABatchThatWasGivenUpIsNotTakenForTheNext(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	between, dsn := newWire(t, b.dsn)
	j := open(t, dsn, Options{Patience: time.Millisecond})
	say(t, j, "job/a", 0, "one")
	between.refuses.Store(true) // the attempts to connect again fail
	between.lose.Store(1)
	_, err := j.Append(t.Context(), journal.Append{Stream: "job/a", After: 1, Events: said("two")})
	if !errors.Is(err, api.ErrUnavailable) || errors.Is(err, journal.ErrFenced) || !errors.Is(err, journal.ErrUnknown) {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), journal.Append{Stream: "job/b", Events: said("one")}); !errors.Is(err, api.ErrUnavailable) ||
		errors.Is(err, journal.ErrUnknown) {
		t.Fatalf("what was not sent: %v", err)
	}
	if n := b.number("SELECT count(*) FROM journal_events"); n != 2 {
		t.Fatalf("%d events", n)
	}
	between.refuses.Store(false)
	for errors.Is(err, api.ErrUnavailable) { // until it has connected
		time.Sleep(5 * time.Millisecond)
		_, err = j.Append(t.Context(), journal.Append{Stream: "job/a", After: 1, Events: said("two")})
	}
	if !errors.Is(err, journal.ErrSequence) {
		t.Errorf("the same again: %v", err)
	}
	say(t, j, "job/a", 2, "three")
	if n := b.number("SELECT count(*) FROM journal_events"); n != 3 {
		t.Errorf("%d events", n)
	}
}

// Whether a use was stored is not known when its append fails. Afterwards it counts as the database has it: once.
func TestAUseWhoseAppendHasAnUnknownEndCountsOnce(t *testing.T) {
	t.Parallel()
	between, dsn := newWire(t, catalogtest.Postgres(t))
	j := open(t, dsn, Options{Patience: time.Millisecond})
	use := []quota.Use{{Name: "n", Key: "k", Window: quota.SlidingHour, Limit: 9}} // a month might end just now
	say(t, j, "job/a", 0, "one")
	if err := j.Quotas().Reserve(time.Now(), use); err != nil {
		t.Fatal(err)
	}
	between.refuses.Store(true)
	between.lose.Store(1)
	_, err := j.Append(t.Context(), journal.Append{Stream: "job/a", After: 1, Events: said("two"), Uses: use})
	if !errors.Is(err, journal.ErrUnknown) {
		t.Fatal(err)
	}
	between.refuses.Store(false)
	back := time.Now()
	for read := false; !read; time.Sleep(5 * time.Millisecond) {
		j.Quotas().Remaining(time.Now(), use[0]) // has the counts read
		j.quotas.mu.Lock()
		read = j.quotas.counts[countKey{use[0].Window, use[0].Key}].read.After(back)
		j.quotas.mu.Unlock()
	}
	if left, _ := j.Quotas().Remaining(time.Now(), use[0]); left != 8 {
		t.Errorf("after one use of nine %d are left", left)
	}
}

// A scout follows a journal while it is written, and compares in the end.
type scout struct {
	t      *testing.T
	j      *Journal
	follow journal.Follower
	log    []journal.Logged
	since  []uint64
}

// read reads on from where it was.
func (r *scout) read() {
	r.t.Helper()
	at := uint64(0)
	if n := len(r.log); n > 0 {
		at = r.log[n-1].Pos
	}
	if err := r.follow.Log(at, func(string) bool { return true }, func(e journal.Logged) bool {
		if e.Pos != at+1 { // nothing is removed here: no position is left out
			r.t.Errorf("position %d follows %d", e.Pos, at)
		}
		at = e.Pos
		r.log = append(r.log, e)
		return true
	}); err != nil && !errors.Is(err, api.ErrUnavailable) {
		r.t.Error(err)
	}
	at = 0
	if n := len(r.since); n > 0 {
		at = r.since[n-1]
	}
	if err := r.follow.Since(at, func(pos uint64, _ string) bool {
		if pos != at+1 {
			r.t.Errorf("since: position %d follows %d", pos, at)
		}
		at = pos
		r.since = append(r.since, pos)
		return true
	}); err != nil && !errors.Is(err, api.ErrUnavailable) {
		r.t.Error(err)
	}
}

// until reads whenever it is told, up to a position.
func (r *scout) until(pos func() uint64, done <-chan struct{}) {
	for {
		select {
		case <-r.follow.Changed():
			r.read()
			continue
		case <-done:
		}
		for uint64(len(r.log)) < pos() || len(r.since) < len(r.log) {
			<-r.follow.Changed()
			r.read()
		}
		return
	}
}

// load has journals written by many at once, while a scout follows, until enough has happened. Every append is answered
// by what took place; in the end everything is there once.
func load(t *testing.T, b *base, journals []*Journal, goOn func(done int64) bool) {
	t.Helper()
	f, err := journals[0].Follow("reader")
	if err != nil {
		t.Fatal(err)
	}
	r := &scout{t: t, j: journals[0], follow: f}
	const writers = 6
	use := []quota.Use{{Name: "n", Key: "all", Window: quota.CalendarMonth, Limit: 1 << 20}}
	var writing, reading sync.WaitGroup
	var done atomic.Int64
	var mu sync.Mutex
	want := make(map[string]int)
	for n, j := range journals {
		for w := range writers {
			writing.Go(func() {
				stream := fmt.Sprintf("thread/%d.%d", n, w)
				after := uint64(0)
				for goOn(done.Load()) {
					last, err := j.Append(t.Context(), journal.Append{Stream: stream, After: after, Events: said(fmt.Sprint(after)),
						Uses: use, Urgency: journal.Urgency(w % 3)})
					if err != nil || last != after+1 {
						t.Errorf("%s after %d: %d, %v", stream, after, last, err)
						break
					}
					after = last
					done.Add(1)
				}
				mu.Lock()
				want[stream] = int(after)
				mu.Unlock()
			})
		}
	}
	ended := make(chan struct{})
	reading.Go(func() { r.until(func() uint64 { return uint64(done.Load()) }, ended) })
	writing.Wait()
	close(ended)
	reading.Wait()
	if n := b.number("SELECT count(*) FROM journal_events"); n != done.Load() {
		t.Errorf("%d events of %d", n, done.Load())
	}
	if n := b.number("SELECT sum(count) FROM journal_uses"); n != done.Load() {
		t.Errorf("%d uses of %d", n, done.Load())
	}
	seen := make(map[string]int)
	for _, e := range r.log {
		if text := fmt.Sprint(seen[e.Stream]); string(e.Event.Data) != text || int(e.Seq) != seen[e.Stream]+1 {
			t.Fatalf("%s: event %d is %q after %s events", e.Stream, e.Seq, e.Event.Data, text)
		}
		seen[e.Stream]++
	}
	for stream, n := range want {
		if seen[stream] != n {
			t.Errorf("%s: %d events were seen of %d", stream, seen[stream], n)
		}
	}
}

func TestJournalsOnOneDatabaseAreReadInTheOrderOfTheirCommits(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	journals := []*Journal{open(t, b.dsn, Options{}), open(t, b.dsn, Options{}), open(t, b.dsn, Options{})}
	load(t, b, journals, func(done int64) bool { return done < 2000 })
}

func TestNothingIsLostOrDoneTwiceWhenAnswersAreLost(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	var journals []*Journal
	var wires []*wire
	for range 3 {
		w, dsn := newWire(t, b.dsn)
		wires = append(wires, w)
		journals = append(journals, open(t, dsn, Options{Patience: patience}))
	}
	var lost atomic.Int64
	load(t, b, journals, func(done int64) bool {
		for _, w := range wires {
			select {
			case <-w.lost:
				lost.Add(1)
			default:
			}
			if done%5 == 0 {
				w.lose.Store(1)
			}
		}
		return lost.Load() < 15
	})
}

func TestNothingIsLostOrDoneTwiceWhenBackendsAreEnded(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	const application = "docent test of ended backends"
	o := Options{Application: application, Patience: patience}
	journals := []*Journal{open(t, b.dsn, o), open(t, b.dsn, o), open(t, b.dsn, o)}
	faults(t, b, journals, 12, func() {
		if n := b.number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1",
			application); n == 0 {
			t.Error("no backend was there")
		}
	})
}

// faults has a fault happen n times while journals are written, each time after more appends.
func faults(t *testing.T, b *base, journals []*Journal, n int, fault func()) {
	t.Helper()
	progress, over, ended := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	var stop atomic.Bool
	go func() {
		defer close(ended)
		defer stop.Store(true)
		for range n {
			for range 60 {
				select {
				case <-progress:
				case <-over:
					t.Error("the writers ended before the faults")
					return
				}
			}
			fault()
		}
	}()
	load(t, b, journals, func(int64) bool {
		select {
		case progress <- struct{}{}:
		default:
		}
		return !stop.Load()
	})
	close(over)
	<-ended
}

// Of two that do the same at once, one has done it.
func TestOfTwoThatWriteTheSameOneWins(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	dsn := b.dsn + "&default_transaction_isolation=serializable" // as a careful operator may have it
	var complaints bytes.Buffer
	var journals []*Journal
	log := slog.New(slog.NewTextHandler(&complaints, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for range 2 {
		j, err := Open(t.Context(), dsn, Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		journals = append(journals, j)
	}
	both := func(make func(n int) journal.Append) (winner int, refusal error) {
		t.Helper()
		var errs [2]error
		var all sync.WaitGroup
		for n, j := range journals {
			all.Go(func() { _, errs[n] = j.Append(t.Context(), make(n)) })
		}
		all.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("both are answered alike: %v, %v", errs[0], errs[1])
		}
		if errs[0] == nil {
			return 0, errs[1]
		}
		return 1, errs[0]
	}
	for i := range 50 {
		_, err := both(func(int) journal.Append {
			return journal.Append{Stream: "job/same", After: uint64(i), Events: said("x")}
		})
		if !errors.Is(err, journal.ErrSequence) {
			t.Fatal(err)
		}
		owner := func(n int) string { return fmt.Sprintf("job/%d.%d", i, n) }
		winner, err := both(func(n int) journal.Append {
			return journal.Append{Stream: owner(n), Events: said("x"),
				Claim: &journal.Claim{Key: fmt.Sprint("key ", i), Owner: owner(n), Expires: time.Now().Add(time.Hour)}}
		})
		var held *journal.ClaimedError
		if !errors.As(err, &held) || held.Claim.Owner != owner(winner) {
			t.Fatalf("%s has it, and the other is told: %v", owner(winner), err)
		}
	}
	if n := b.number("SELECT count(*) FROM journal_events"); n != 100 {
		t.Errorf("%d events", n)
	}
	for _, j := range journals {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
	if complaints.Len() > 0 {
		t.Errorf("the journals complain: %s", complaints.String())
	}
}

// Three nodes use up one limit at once, as requests do: first reserved, then appended.
func TestALimitIsExactOverAllNodes(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	const most = 25
	use := []quota.Use{{Name: "wide", Key: "w", Window: quota.CalendarMonth, Limit: 1000},
		{Name: "questions", Key: "k", Window: quota.SlidingHour, Limit: most}}
	var all sync.WaitGroup
	var taken, refused atomic.Int64
	for n := range 3 {
		j := open(t, b.dsn, Options{})
		for i := range most {
			all.Go(func() {
				err := j.Quotas().Reserve(time.Now(), use)
				if err == nil {
					if _, err = j.Append(t.Context(), journal.Append{Stream: fmt.Sprintf("thread/%d.%d", n, i), Events: said("x"),
						Uses: use}); err != nil {
						j.Quotas().Release(time.Now(), use)
					}
				}
				var limit *api.LimitError
				switch {
				case err == nil:
					taken.Add(1)
				case errors.As(err, &limit) && limit.Name == "questions" && limit.Limit == most && limit.RetryAfter > 0:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if taken.Load() != most || refused.Load() != 2*most {
		t.Errorf("%d were taken and %d refused", taken.Load(), refused.Load())
	}
	for _, key := range []string{"w", "k"} {
		if n := b.number("SELECT sum(count) FROM journal_uses WHERE key = $1", []byte(key)); n != most {
			t.Errorf("%d uses of %s are counted", n, key)
		}
	}
}

// Machines' clocks are hours apart. What is used up on one node is used up on all, and free again when the hour is over.
func TestUsesCountAlikeOnNodesWhoseClocksDisagree(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	use := []quota.Use{{Name: "n", Key: "k", Window: quota.SlidingHour, Limit: 2}}
	began := b.number("SELECT extract(epoch FROM now())::bigint")
	for i, off := range []time.Duration{3 * time.Hour, -3 * time.Hour, 3 * time.Hour, 0} {
		wall := func() time.Time { return time.Now().Add(off) }
		j := open(t, b.dsn, Options{wall: wall})
		if left, reset := j.Quotas().Remaining(wall(), use[0]); left != max(0, 2-i) || reset > time.Hour {
			t.Errorf("node %d: %d are left until %v", i, left, reset)
		}
		_, err := j.Append(t.Context(), journal.Append{Stream: fmt.Sprint("thread/", i), Events: said("x"), Uses: use})
		if limit := new(api.LimitError); (i < 2) != (err == nil) || err != nil && (!errors.As(err, &limit) || limit.RetryAfter > time.Hour) {
			t.Errorf("node %d, use %d of 2: %v", i, i+1, err)
		}
	}
	if n := b.number("SELECT count(*) FROM journal_uses WHERE ends NOT BETWEEN $1 + 3590 "+
		"AND extract(epoch FROM now()) + 3670", began); n != 0 {
		t.Error("a use counts for longer or shorter than an hour and a minute")
	}
}

// Hundreds come at once while a limit has room for a few. They do not go through the lock of all nodes one by one.
func TestALimitThatManyCrossAtOnceTakesAFewCommits(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	j := open(t, b.dsn, Options{})
	const many, most = 300, 5
	lock, err := b.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "SELECT FROM journal_head FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	use := func(i int) (uses []quota.Use) {
		if i%2 == 0 { // counted toward the second limit as well, even if it is over the first
			uses = append(uses, quota.Use{Name: "narrow", Key: "narrow", Window: quota.SlidingDay, Limit: 1})
		}
		return append(uses, quota.Use{Name: "wide", Key: "wide", Window: quota.SlidingHour, Limit: most}) // a month might end just now
	}
	var all sync.WaitGroup
	var taken atomic.Int64
	queued := func() int {
		j.commits.mu.Lock()
		defer j.commits.mu.Unlock()
		return len(j.commits.queue)
	}
	await := func(holds func() bool) {
		for !holds() {
			time.Sleep(5 * time.Millisecond)
		}
	}
	// The committer waits with an append of its own while they come.
	await(j.commits.idle.Load)
	all.Go(func() { say(t, j, "job/a", 0, "x") })
	await(func() bool { return !j.commits.idle.Load() && queued() == 0 })
	for i := range many {
		all.Go(func() {
			_, err := j.Append(t.Context(), journal.Append{Stream: fmt.Sprint("thread/", i), Events: said("x"), Uses: use(i)})
			if err == nil {
				taken.Add(1)
			} else if limit := new(api.LimitError); !errors.As(err, &limit) || limit.RetryAfter <= 0 {
				t.Error(err)
			}
		})
	}
	await(func() bool { return queued() == many })
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if n := b.number("SELECT sum(count) FROM journal_uses WHERE key = 'wide'"); taken.Load() != most || n != most {
		t.Errorf("%d were taken and %d counted", taken.Load(), n)
	}
	if n := j.Stats().Commits; n > 7 {
		t.Errorf("it took %d commits", n)
	}
	if s := j.Stats(); s.Refused != many-most || s.Appends != most+1 {
		t.Errorf("%d are said to be refused and %d taken", s.Refused, s.Appends)
	}
}

// Nodes start, of this version and of another one that brings its own statements, while others write.
func TestANodeThatStartsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	journals := []*Journal{open(t, b.dsn, Options{}), open(t, b.dsn, Options{}), open(t, b.dsn, Options{})}
	faults(t, b, journals, 15, func() {
		if _, err := b.conn.Exec(t.Context(), "DELETE FROM journal_made"); err != nil {
			t.Error(err)
		}
		for range 2 {
			j, err := Open(t.Context(), b.dsn, Options{Log: quiet})
			if err != nil {
				t.Error(err)
				continue
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A crash loses what a new follower has written of itself. Its mark is stored all the same, so that nothing it has yet
// to read is removed.
func TestAFollowersMarkIsStoredWhereNothingIsKnownOfTheFollower(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	j := open(t, b.dsn, Options{})
	f, err := j.Follow("reader")
	if err != nil {
		t.Fatal(err)
	}
	say(t, j, "job/a", 0, "one")
	say(t, j, "job/a", 1, "two")
	if _, err := b.conn.Exec(t.Context(), "DELETE FROM journal_followers"); err != nil {
		t.Fatal(err)
	}
	f.Ack(2)
	flush(t, j)
	if n := b.number("SELECT coalesce(max(acked), -1) FROM journal_followers"); n != 2 {
		t.Errorf("its mark is at %d", n)
	}
	f.Ack(1) // late, from another node
	flush(t, j)
	if n := b.number("SELECT max(acked) FROM journal_followers"); n != 2 {
		t.Errorf("its mark goes back to %d", n)
	}
}

// A follower lags behind by many streams. They are looked at when it has come further, and not once a second.
func TestEventsThatAFollowerHasYetToReadAreNotLookedAtUntilItHas(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	j := open(t, b.dsn, Options{})
	f, err := j.Follow("reader")
	if err != nil {
		t.Fatal(err)
	}
	held := func() int {
		t.Helper()
		if err := j.checkpoint(true); err != nil {
			t.Fatal(err)
		}
		j.snaps.writing.Lock()
		defer j.snaps.writing.Unlock()
		return len(j.snaps.held)
	}
	say(t, j, "job/a", 0, "one")
	j.Snapshot("job/a", 1, []byte("state"))
	if n := held(); n != 1 {
		t.Fatalf("%d streams wait", n)
	}
	if _, err := b.conn.Exec(t.Context(), "DELETE FROM journal_events WHERE stream = 'job/a'"); err != nil { // a look would see it
		t.Fatal(err)
	}
	say(t, j, "job/b", 0, "one")
	j.Snapshot("job/b", 1, []byte("state"))
	if n := held(); n != 2 {
		t.Errorf("%d streams wait: those of before were looked at", n)
	}
	f.Ack(2)
	if n := held(); n != 0 {
		t.Errorf("the follower has read all, and %d streams wait", n)
	}
	if n := b.number("SELECT count(*) FROM journal_events"); n != 0 {
		t.Errorf("%d events stay", n)
	}
}

// Two remove events of streams whose events lie between each other's, in two orders. Neither waits for the other.
func TestASweepDoesNotWaitForWhoRemovesTheSameEvents(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	j := open(t, b.dsn, Options{})
	for i, stream := range []string{"job/b", "job/a", "job/b"} {
		say(t, j, stream, uint64(i/2), "x")
	}
	for _, stream := range []string{"job/a", "job/b"} {
		if _, err := b.conn.Exec(t.Context(), "INSERT INTO journal_snapshots SELECT stream, last, 3, '' FROM journal_streams "+
			"WHERE stream = $1", stream); err != nil {
			t.Fatal(err)
		}
	}
	other, err := b.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), "DELETE FROM journal_events WHERE stream = 'job/a'"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := j.sweepLog(ctx); err != nil {
		t.Error(err)
	}
	if _, err := other.Exec(t.Context(), "DELETE FROM journal_events WHERE stream = 'job/b'"); err != nil {
		t.Error(err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.number("SELECT count(*) FROM journal_events"); n != 0 {
		t.Errorf("%d events stay", n)
	}
}

// The first of two appends to a stream is withdrawn while it waits. The second goes with the next batch, since nothing
// else may come that wakes the committer.
func TestAWithdrawnAppendHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	var c committer
	c.init()
	claim := &journal.Claim{Key: "k"}
	gone, stays := &request{a: &journal.Append{Stream: "job/a", Claim: claim}}, &request{a: &journal.Append{Stream: "job/a", Claim: claim}}
	gone.taken.Store(true)
	c.queue = []*request{gone, stays}
	if reqs, _, _ := c.take(); len(reqs) != 1 || reqs[0] != stays {
		t.Errorf("%d appends are taken", len(reqs))
	}
}

func TestALimitMayBeHigherThanTheDatabaseCounts(t *testing.T) {
	t.Parallel()
	j := open(t, catalogtest.Postgres(t), Options{})
	if _, err := j.Append(t.Context(), journal.Append{Stream: "job/a", Events: said("x"),
		Uses: []quota.Use{{Name: "n", Key: "k", Window: quota.CalendarMonth, Limit: 1 << 32}}}); err != nil {
		t.Error(err)
	}
}

// lose takes from the database what came after a position, as when a lagging replica takes over: events, and what
// it knows of the batches of a journal. Others have written some events since then.
func (b *base) lose(after int64, of *Journal, batches, since int) {
	b.t.Helper()
	tx, err := b.conn.Begin(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	exec := func(statement string, args ...any) {
		b.t.Helper()
		if _, err := tx.Exec(b.t.Context(), statement, args...); err != nil {
			b.t.Fatal(err)
		}
	}
	exec("DELETE FROM journal_events WHERE position > $1", after)
	exec("UPDATE journal_streams s SET last = (SELECT coalesce(max(seq), 0) FROM journal_events e WHERE e.stream = s.stream)")
	exec("UPDATE journal_writers SET batch = batch - $1::bigint WHERE writer = $2", batches, of.writer)
	exec("INSERT INTO journal_events SELECT 'job/since', n, $1 + n, 'test.said.1', '' FROM generate_series(1, $2::bigint) n", after, since)
	exec("INSERT INTO journal_streams SELECT 'job/since', $1::bigint, false, 0 WHERE $1 > 0", since)
	exec("UPDATE journal_head SET position = $1::bigint + $2::bigint", after, since)
	if err := tx.Commit(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// A node has heard of events that a failover then loses. It goes by none of what it remembers, and ends, however many
// events have come in their place; a node that starts goes on from what there is.
func TestANodeEndsWhereAFailoverHasLostCommits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose    func(t *testing.T, b *base, j, other *Journal)
		noticed func(j *Journal, f journal.Follower) error
	}{
		"others' events": {func(t *testing.T, b *base, j, other *Journal) {
			b.lose(2, other, 0, 0)
		}, func(_ *Journal, f journal.Follower) error { _, err := f.End(); return err }},
		"its own, and as many have come since": {func(t *testing.T, b *base, j, other *Journal) {
			b.lose(1, j, 1, 5)
		}, func(_ *Journal, f journal.Follower) error { _, err := f.End(); return err }},
		"its own, seen by its next append": {func(t *testing.T, b *base, j, other *Journal) {
			b.lose(1, j, 1, 0)
		}, func(j *Journal, _ journal.Follower) error {
			_, err := j.Append(context.Background(), journal.Append{Stream: "job/a", After: 1, Events: said("x")})
			return err
		}},
		"its own, seen by its next snapshot": {func(t *testing.T, b *base, j, other *Journal) {
			b.lose(1, j, 1, 0)
		}, func(j *Journal, _ journal.Follower) error { return j.checkpoint(true) }},
		"those of another node, which tells": {func(t *testing.T, b *base, j, other *Journal) {
			b.lose(2, other, 2, 5)
			if _, err := other.Append(t.Context(), journal.Append{Stream: "job/b", Events: said("x")}); !errors.Is(err, journal.ErrFenced) {
				t.Errorf("an append of the node whose events are lost: %v", err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBase(t, catalogtest.Postgres(t))
			ends := make(chan string, 2)
			j := open(t, b.dsn, Options{Poll: time.Hour, Lost: func(reason string) { ends <- reason }})
			other := open(t, b.dsn, Options{Poll: time.Hour})
			say(t, j, "job/a", 0, "one")
			say(t, j, "job/a", 1, "two")
			say(t, other, "job/b", 0, "one")
			say(t, other, "job/b", 1, "two")
			f, err := j.Follow("reader")
			if err != nil {
				t.Fatal(err)
			}
			if head, err := f.End(); head != 4 || err != nil {
				t.Fatal(head, err)
			}
			j.Snapshot("job/a", 2, []byte("of lost events"))
			f.Ack(4)
			test.lose(t, b, j, other)
			written := func() int64 {
				return b.number("SELECT count(*) FROM journal_snapshots") + b.number("SELECT max(acked) FROM journal_followers")
			}
			before := written() // marks are written each second, so they may be there
			if test.noticed != nil {
				if err := test.noticed(j, f); !errors.Is(err, journal.ErrFenced) {
					t.Errorf("what is lost is not noticed: %v", err)
				}
			}
			select {
			case <-ends:
			case <-time.After(time.Minute):
				t.Fatal("the node does not end")
			}
			if _, err := j.Append(t.Context(), journal.Append{Stream: "job/new", Events: said("x")}); !errors.Is(err, journal.ErrFenced) {
				t.Errorf("an append: %v", err)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			if after := written(); after != before && test.noticed != nil {
				t.Error("something is written that it knew of lost events")
			}
			again := open(t, b.dsn, Options{Lost: func(string) { t.Error("the node that starts ends as well") }})
			say(t, again, "job/new", 0, "one")
			if got, want := again.Position(), uint64(b.number("SELECT position FROM journal_head")); got != want {
				t.Errorf("the new node is at %d of %d", got, want)
			}
			if seen := again.Identity().Seen; seen != 0 {
				t.Errorf("the catalog is to have seen position %d, which it may have lost", seen)
			}
			if len(ends) > 0 {
				t.Error("the end is told twice")
			}
		})
	}
}

// A node of another version starts while a VACUUM runs, which its statements wait for.
func TestANodeThatStartsDuringAVacuumHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := newBase(t, catalogtest.Postgres(t))
	j := open(t, b.dsn, Options{})
	if _, err := b.conn.Exec(t.Context(), "DELETE FROM journal_made"); err != nil {
		t.Fatal(err)
	}
	vacuum, err := b.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vacuum.Exec(t.Context(), "LOCK TABLE journal_events IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		j, err := Open(t.Context(), b.dsn, Options{Log: quiet})
		if err == nil {
			err = j.Close()
		}
		started <- err
	}()
	for waits := false; !waits; time.Sleep(5 * time.Millisecond) {
		if err := vacuum.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'journal_events'::regclass "+
			"AND NOT granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	go func() {
		_, err := j.Append(t.Context(), journal.Append{Stream: "job/a", Events: said("one")})
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil {
			t.Error(err)
		}
	case err := <-started:
		t.Errorf("the node starts before the VACUUM has ended: %v", err)
	case <-time.After(time.Minute):
		t.Error("nothing can be written while the node waits")
	}
	if err := vacuum.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Errorf("the node does not start: %v", err)
	}
}
