// Package journaltest provides tests of what every journal.Store promises.
package journaltest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

// A Kind is how journals of a kind are made for a test.
type Kind struct {
	// New makes a place for an empty journal, and gives what opens the journal there, each time it is called. What it
	// opened before was closed.
	New func(t *testing.T) (open func(now func() time.Time) journal.Store)
	// Flush returns once the snapshots that wait are written and what they cover is removed, as far as followers let it.
	Flush func(t *testing.T, j journal.Store)
	// Records counts the records of the log, marks of removed streams included.
	Records func(t *testing.T, j journal.Store) int
}

// Run tests journals of a kind.
func Run(t *testing.T, k Kind) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *subject)
	}{
		{"what was appended is there after reopening", reopening},
		{"a stale writer is refused and harms nobody", staleWriter},
		{"what cannot be stored is refused", unstorable},
		{"snapshots replace the events they cover", snapshots},
		{"close writes the snapshots that wait", closing},
		{"one of many claims wins", claims},
		{"a claim is released by its holder", releases},
		{"delete leaves nothing but is heard of", deletion},
		{"a follower misses nothing", following},
		{"the log has what a follower has not seen", log},
		{"events since a position are those that came later", since},
		{"counts survive and reservations do not", counts},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &subject{Kind: k, T: t, open: k.New(t)}
			s.reopen()
			test.run(t, s)
			if err := s.j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A subject is the journal that a test is about.
type subject struct {
	Kind
	*testing.T
	open  func(now func() time.Time) journal.Store
	clock atomic.Pointer[time.Time] // nil is the machine's; a journal may look at it at any time
	j     journal.Store
}

func (s *subject) set(now time.Time) { s.clock.Store(&now) }

func (s *subject) now() time.Time {
	if at := s.clock.Load(); at != nil {
		return *at
	}
	return time.Now()
}

func (s *subject) reopen() {
	s.Helper()
	if s.j != nil {
		if err := s.j.Close(); err != nil {
			s.Fatal(err)
		}
	}
	s.j = s.open(s.now)
}

func (s *subject) flush() { s.Helper(); s.Flush(s.T, s.j) }

func (s *subject) append(a journal.Append) uint64 {
	s.Helper()
	last, err := s.j.Append(s.Context(), a)
	if err != nil {
		s.Fatal(err)
	}
	return last
}

func (s *subject) load(stream string) journal.Recovered {
	s.Helper()
	rec, err := s.j.Load(stream)
	if err != nil {
		s.Fatal(err)
	}
	return rec
}

// say appends texts to a stream, wherever it stands.
func (s *subject) say(stream string, texts ...string) uint64 {
	s.Helper()
	return s.append(journal.Append{Stream: stream, After: s.load(stream).Seq, Events: events(texts...)})
}

func (s *subject) want(stream string, want ...string) {
	s.Helper()
	if got := texts(s.load(stream).Events); !slices.Equal(got, want) {
		s.Fatalf("%s holds %q, want %q", stream, got, want)
	}
}

func (s *subject) pending() (list []string) {
	s.Helper()
	if err := s.j.Pending(func(stream string) bool { list = append(list, stream); return true }); err != nil {
		s.Fatal(err)
	}
	return list
}

// streams are the names of the streams that begin with prefix, in their order.
func (s *subject) streams(prefix string) (names []string) {
	s.Helper()
	if err := s.j.Streams(func(stream string, _ journal.Recovered) bool {
		if strings.HasPrefix(stream, prefix) {
			names = append(names, stream)
		}
		return true
	}); err != nil {
		s.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func (s *subject) follow(name string) journal.Follower {
	s.Helper()
	f, err := s.j.Follow(name)
	if err != nil {
		s.Fatal(err)
	}
	return f
}

func events(texts ...string) (list []journal.Event) {
	for _, s := range texts {
		list = append(list, journal.Event{Type: "test.said.1", Data: []byte(s)})
	}
	return list
}

func texts(events []journal.Event) (list []string) {
	for _, e := range events {
		list = append(list, string(e.Data))
	}
	return list
}

func reopening(t *testing.T, s *subject) {
	if last := s.append(journal.Append{Stream: "job/a", Events: events("one", "two"), Pending: true}); last != 2 {
		t.Fatalf("last is %d", last)
	}
	if last := s.append(journal.Append{Stream: "job/a", After: 2, Events: events("three"), Pending: true}); last != 3 {
		t.Fatalf("last is %d", last)
	}
	s.append(journal.Append{Stream: "thread/b", Events: []journal.Event{{Type: "thread.empty.1"}}})
	id := s.j.Identity()
	id.Catalog, id.Revision = "catalog", 7
	if err := s.j.Remember(id); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.want("job/a", "one", "two", "three")
		rec := s.load("thread/b")
		if rec.Seq != 1 || rec.SnapSeq != 0 || rec.Snapshot != nil || rec.Events[0].Type != "thread.empty.1" {
			t.Fatalf("%+v", rec)
		}
		if rec := s.load("job/none"); rec.Seq != 0 || rec.Events != nil {
			t.Fatalf("%+v", rec)
		}
		if got := s.pending(); !slices.Equal(got, []string{"job/a"}) {
			t.Fatalf("pending %q", got)
		}
		if st := s.j.Stats(); s.j.Position() != 4 || st.Position != 4 || st.Pending != 1 || st.Down {
			t.Fatalf("%+v", st)
		}
		if is := s.j.Identity(); is.ID == "" || is.ID != id.ID || is.Catalog != "catalog" || is.Revision != 7 || is.Position != 4 {
			t.Fatalf("%+v", is)
		}
		s.reopen()
	}
	s.append(journal.Append{Stream: "job/a", After: 3, Events: events("four")})
	if got := s.pending(); got != nil {
		t.Fatalf("pending %q", got)
	}
	if err := s.j.Moves(t.Context()); err != nil {
		t.Error(err)
	}
}

func staleWriter(t *testing.T, s *subject) {
	s.append(journal.Append{Stream: "job/a", Events: events("one")})
	for _, after := range []uint64{0, 2, 7} {
		_, err := s.j.Append(t.Context(), journal.Append{Stream: "job/a", After: after, Events: events("x")})
		if !errors.Is(err, journal.ErrSequence) {
			t.Fatalf("after %d: %v", after, err)
		}
	}
	// In one group: of many that want to be number 2, one wins; the writers of other streams all do.
	var wg background.Work
	var mu sync.Mutex
	won := 0
	for i := range 32 {
		wg.Go("persistence/journal/journaltest.staleWriter", func() {
			_, err := s.j.Append(t.Context(), journal.Append{Stream: "job/a", After: 1, Events: events("two")})
			switch {
			case err == nil:
				mu.Lock()
				won++
				mu.Unlock()
			case !errors.Is(err, journal.ErrSequence):
				t.Error(err)
			}
		})
		wg.Go("persistence/journal/journaltest.staleWriter", func() {
			_, err := s.j.Append(t.Context(), journal.Append{Stream: fmt.Sprint("job/", i), Events: events("x"),
				Urgency: journal.Urgency(i % 3)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Fatalf("%d writers won", won)
	}
	s.want("job/a", "one", "two")
	if at := s.j.Position(); at != 34 {
		t.Fatalf("position %d", at)
	}
}

func unstorable(t *testing.T, s *subject) {
	long := strings.Repeat("x", 5000)
	for name, a := range map[string]journal.Append{
		"no stream":      {Events: events("x")},
		"a long stream":  {Stream: long, Events: events("x")},
		"no events":      {Stream: "job/a"},
		"a long type":    {Stream: "job/a", Events: []journal.Event{{Type: long}}},
		"an empty claim": {Stream: "job/a", Events: events("x"), Claim: &journal.Claim{}},
		"too much":       {Stream: "job/a", Events: []journal.Event{{Type: "x", Data: make([]byte, 32<<20)}}},
		"a long claim":   {Stream: "job/a", Events: events("x"), Claim: &journal.Claim{Key: long}},
		"a long owner":   {Stream: "job/a", Events: events("x"), Claim: &journal.Claim{Key: "k", Owner: long}},
		"a use of none":  {Stream: "job/a", Events: events("x"), Uses: []quota.Use{{Window: quota.SlidingHour}}},
		"a window":       {Stream: "job/a", Events: events("x"), Uses: []quota.Use{{Key: "k", Window: 77}}},
	} {
		if _, err := s.j.Append(t.Context(), a); err == nil || errors.Is(err, api.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rec := s.load("job/\x00\xff"); rec.Seq != 0 {
		t.Error("a name that nobody can have written is found")
	}
	if n := s.Records(t, s.j); n != 0 {
		t.Errorf("%d records", n)
	}
}

func snapshots(t *testing.T, s *subject) {
	for i := range 10 {
		s.append(journal.Append{Stream: "job/a", After: uint64(i), Events: events(fmt.Sprint(i))})
	}
	s.append(journal.Append{Stream: "job/b", Events: events("b")})
	s.j.Snapshot("job/a", 3, []byte("three"))
	s.j.Snapshot("job/a", 8, []byte("eight"))
	s.j.Snapshot("job/a", 5, []byte("five")) // superseded
	s.j.Snapshot("job/b", 2, []byte("from an append that never was"))
	s.j.Snapshot("job/none", 1, []byte("of nothing"))
	s.flush()
	for range 2 {
		rec := s.load("job/a")
		if rec.Seq != 10 || rec.SnapSeq != 8 || string(rec.Snapshot) != "eight" {
			t.Fatalf("%+v", rec)
		}
		s.want("job/a", "8", "9")
		if rec := s.load("job/b"); rec.Snapshot != nil || rec.Seq != 1 {
			t.Fatalf("%+v", rec)
		}
		if got := s.streams("job/"); !slices.Equal(got, []string{"job/a", "job/b"}) {
			t.Fatalf("%q", got)
		}
		if n := s.Records(t, s.j); n != 3 {
			t.Fatalf("%d events are left", n)
		}
		s.reopen()
	}
	s.j.Snapshot("job/a", 10, []byte("ten"))
	s.flush()
	// A stream at rest resumes where it was.
	if _, err := s.j.Append(t.Context(), journal.Append{Stream: "job/a", Events: events("x")}); !errors.Is(err,
		journal.ErrSequence) {
		t.Fatal(err)
	}
	if last := s.append(journal.Append{Stream: "job/a", After: 10, Events: events("eleven")}); last != 11 {
		t.Fatal(last)
	}
	s.want("job/a", "eleven")
}

func closing(t *testing.T, s *subject) {
	const streams = 150
	for i := range streams {
		name := fmt.Sprintf("thread/%03d", i)
		s.append(journal.Append{Stream: name, Events: events("x")})
		s.j.Snapshot(name, 1, []byte("state"))
	}
	s.reopen()
	if got := s.streams("thread/"); len(got) != streams {
		t.Fatalf("%d streams", len(got))
	}
	if rec := s.load("thread/007"); rec.SnapSeq != 1 || len(rec.Events) != 0 {
		t.Fatalf("%+v", rec)
	}
	s.append(journal.Append{Stream: "thread/000", After: 1, Events: events("y")})
	if err := s.j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.j.Append(t.Context(), journal.Append{Stream: "thread/000", After: 2, Events: events("z")}); !errors.Is(err,
		api.ErrShuttingDown) {
		t.Fatal(err)
	}
}

func claims(t *testing.T, s *subject) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	s.set(now)
	digest := sha256.Sum256([]byte("body"))
	claim := func(i int) *journal.Claim {
		return &journal.Claim{Key: "key/create/\x00\xff", Digest: digest, Owner: fmt.Sprint("job/", i), Ref: "r",
			Expires: now.Add(time.Hour)}
	}
	var wg background.Work
	var mu sync.Mutex
	var winner string
	var holders []string
	for i := range 50 {
		wg.Go("persistence/journal/journaltest.claims", func() {
			c := claim(i)
			_, err := s.j.Append(t.Context(), journal.Append{Stream: c.Owner, Events: events("x"), Claim: c})
			mu.Lock()
			defer mu.Unlock()
			var held *journal.ClaimedError
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
	if got := s.streams(""); !slices.Equal(got, []string{winner}) {
		t.Fatalf("%q", got)
	}
	key := claim(0).Key
	c, ok, err := s.j.Claim(key, now)
	if err != nil || !ok || c.Key != key || c.Owner != winner || c.Digest != digest || c.Ref != "r" ||
		!c.Expires.Equal(now.Add(time.Hour)) {
		t.Fatal(c, ok, err)
	}
	// An expired claim is as good as none.
	now = now.Add(time.Hour)
	s.set(now)
	if _, ok, err := s.j.Claim(key, now); ok || err != nil {
		t.Fatal(ok, err)
	}
	c2 := claim(99)
	s.append(journal.Append{Stream: c2.Owner, Events: events("x"), Claim: c2})
	if c, ok, err := s.j.Claim(key, now); err != nil || !ok || c.Owner != "job/99" {
		t.Fatal(c, ok, err)
	}
}

func releases(t *testing.T, s *subject) {
	life := time.Now().Add(time.Hour)
	claim := func(key, owner string) *journal.Claim {
		return &journal.Claim{Key: key, Owner: owner, Expires: life, Replaces: true}
	}
	s.append(journal.Append{Stream: "thread/a", Events: events("x"), Claim: claim("chat/1", "thread/a")})
	s.append(journal.Append{Stream: "thread/a", After: 1, Events: events("x"), Claim: claim("chat/2", "thread/a"),
		Release: "chat/1"})
	s.append(journal.Append{Stream: "thread/b", Events: events("x"), Release: "chat/2"}) // another's
	s.append(journal.Append{Stream: "thread/b", After: 1, Events: events("x"), Release: "chat/none"})
	s.append(journal.Append{Stream: "thread/c", Events: events("x"), Claim: claim("chat/3", "thread/c")})
	s.append(journal.Append{Stream: "thread/d", Events: events("x"), Claim: claim("chat/3", "thread/d")}) // takes it over
	for key, owner := range map[string]string{"chat/1": "", "chat/2": "thread/a", "chat/3": "thread/d"} {
		if c, _, err := s.j.Claim(key, time.Now()); err != nil || c.Owner != owner {
			t.Errorf("%s is held by %q, %v, want %q", key, c.Owner, err, owner)
		}
	}
	if err := s.j.Delete("thread/d", "chat/3", "chat/2"); err != nil {
		t.Fatal(err)
	}
	for key, owner := range map[string]string{"chat/2": "thread/a", "chat/3": ""} {
		if c, _, err := s.j.Claim(key, time.Now()); err != nil || c.Owner != owner {
			t.Errorf("after a removal %s is held by %q, %v, want %q", key, c.Owner, err, owner)
		}
	}
}

func deletion(t *testing.T, s *subject) {
	f := s.follow("catalog")
	for i := range 5 {
		s.append(journal.Append{Stream: "thread/a", After: uint64(i), Events: events("secret"), Pending: true})
	}
	s.append(journal.Append{Stream: "thread/b", Events: events("kept")})
	s.j.Snapshot("thread/a", 3, []byte("secret"))
	s.flush()
	f.Ack(6)
	s.j.Snapshot("thread/a", 5, []byte("secret"))
	for _, stream := range []string{"thread/a", "thread/none"} {
		if err := s.j.Delete(stream); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		s.flush()
		if rec := s.load("thread/a"); rec.Seq != 0 || rec.Snapshot != nil || rec.Events != nil {
			t.Fatalf("%+v", rec)
		}
		if p := s.pending(); p != nil {
			t.Fatal(p)
		}
		if got := s.streams(""); !slices.Equal(got, []string{"thread/b"}) {
			t.Fatal(got)
		}
		var heard []string
		if err := s.j.Since(6, func(_ uint64, name string) bool { heard = append(heard, name); return true }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(heard, []string{"thread/a"}) {
			t.Fatal(heard)
		}
		if n := s.Records(t, s.j); n != 2 { // what is kept, and the mark
			t.Fatalf("%d records", n)
		}
		s.reopen()
	}
	s.follow("catalog").Ack(s.j.Position())
	s.flush()
	if n := s.Records(t, s.j); n != 1 {
		t.Fatalf("%d records", n)
	}
	if last := s.say("thread/a", "again"); last != 1 {
		t.Fatal(last)
	}
}

func following(t *testing.T, s *subject) {
	f := s.follow("catalog")
	<-f.Changed()
	for i := range 100 {
		name := fmt.Sprintf("job/%02d", i%10)
		s.say(name, fmt.Sprint(i))
		if i%7 == 6 {
			s.j.Snapshot(name, s.load(name).Seq, []byte("state"))
		}
	}
	<-f.Changed()
	s.flush()
	if s.j.Trimmed() != 0 {
		t.Fatal("events were removed that the follower has not acknowledged")
	}
	f.Ack(50)
	s.flush()
	if tr := f.Trimmed(); tr == 0 || tr > 50 {
		t.Fatalf("trimmed up to %d", tr)
	}
	s.named()
	for i := range 10 {
		s.j.Snapshot(fmt.Sprintf("job/%02d", i), 10, []byte("state"))
	}
	s.flush()
	s.named()
	s.reopen() // before anyone follows, its mark holds
	s.flush()
	if tr := s.j.Trimmed(); tr > 50 {
		t.Fatalf("trimmed up to %d", tr)
	}
	f = s.follow("catalog")
	if n := s.Records(t, s.j); n < 50 {
		t.Fatalf("%d records are left", n)
	}
	f.Ack(100)
	f.Ack(3) // what is acknowledged stays so
	s.flush()
	if s.j.Trimmed() != 100 || s.Records(t, s.j) != 0 {
		t.Fatalf("trimmed up to %d, %d records", s.j.Trimmed(), s.Records(t, s.j))
	}
	s.named()
}

// named checks that from wherever one begins, every stream that changed after it is named at its last position.
func (s *subject) named() {
	s.Helper()
	lastOf := func(i int) uint64 { return uint64(91 + i) }
	for from := uint64(0); from <= 100; from += 9 {
		at := make(map[string]uint64)
		prev := from
		if err := s.j.Since(from, func(pos uint64, name string) bool {
			if pos < prev || pos <= from {
				s.Fatalf("from %d: position %d after %d", from, pos, prev)
			}
			prev, at[name] = pos, pos
			return true
		}); err != nil {
			s.Fatal(err)
		}
		for i := range 10 {
			if name := fmt.Sprintf("job/%02d", i); at[name] != lastOf(i) && lastOf(i) > from {
				s.Fatalf("from %d: %s is named at %d", from, name, at[name])
			}
		}
	}
}

// A follower that comes back reads on from where it was, even when snapshots cover everything and a stream is gone.
func log(t *testing.T, s *subject) {
	f := s.follow("hooks")
	defer f.Close()
	all := func(string) bool { return true }
	read := func(pos uint64, wanted func(string) bool) (got []string) {
		t.Helper()
		last := pos
		err := f.Log(pos, wanted, func(e journal.Logged) bool {
			if e.Pos <= last {
				t.Errorf("position %d comes after %d", e.Pos, last)
			}
			last = e.Pos
			text := e.Stream + " gone"
			if !e.Removed {
				text = fmt.Sprintf("%s %d %s", e.Stream, e.Seq, e.Event.Data)
			}
			got = append(got, text)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	s.say("a", "1", "2")
	at := s.j.Position()
	s.say("b", "x")
	s.say("a", "3")
	s.j.Snapshot("a", 3, []byte("state"))
	s.j.Snapshot("b", 1, []byte("state"))
	for range 5 {
		s.say("c", "y")
	}
	s.flush() // which would remove what the snapshots cover
	if got := read(at, all); len(got) != 7 || !slices.Equal(got[:2], []string{"b 1 x", "a 3 3"}) {
		t.Errorf("read is %q", got)
	}
	if got := read(0, func(string) bool { return false }); len(got) != 0 {
		t.Errorf("unwanted events are read: %q", got)
	}
	if err := s.j.Delete("b"); err != nil {
		t.Fatal(err)
	}
	if got := read(at, all); len(got) != 7 || got[0] != "a 3 3" || got[len(got)-1] != "b gone" {
		t.Errorf("after a stream has gone: %q", got)
	}
	n := 0
	if err := f.Log(0, all, func(journal.Logged) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("it goes on after %d: %v", n, err)
	}
}

func since(t *testing.T, s *subject) {
	s.say("a", "1", "2")
	s.say("b", "x")
	at := s.j.Position()
	for _, c := range []struct {
		stream string
		since  uint64
		first  uint64
		want   []string
	}{
		{"a", 0, 1, []string{"1", "2"}}, {"a", 1, 2, []string{"2"}}, {"a", at, 3, nil}, {"b", 1, 1, []string{"x"}},
		{"nobody", 0, 0, nil},
	} {
		first, events, err := s.j.LoadSince(c.stream, c.since)
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(events); !slices.Equal(got, c.want) || len(got) > 0 && first != c.first {
			t.Errorf("%s since %d: %v from %d", c.stream, c.since, got, first)
		}
	}
	s.say("a", "3")
	s.say("b", "y")
	s.say("a", "4")
	first, events, err := s.j.LoadSince("a", at)
	if err != nil || first != 3 || !slices.Equal(texts(events), []string{"3", "4"}) {
		t.Errorf("%v from %d: %v", events, first, err)
	}
	if err := s.j.Delete("a"); err != nil {
		t.Fatal(err)
	}
	if _, events, err := s.j.LoadSince("a", 0); err != nil || len(events) > 0 {
		t.Errorf("of a removed stream: %v, %v", events, err)
	}
}

func counts(t *testing.T, s *subject) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	uses := []quota.Use{
		{Name: "project-hour", Key: "project/p", Window: quota.SlidingHour, Limit: 10},
		{Name: "key-month", Key: "key/k", Window: quota.CalendarMonth, Limit: 10},
		{Name: "ip-day", Key: "ip/i", Window: quota.SlidingDay, Limit: 10},
		{Name: "none", Key: "x", Window: quota.SlidingHour, Limit: -1},
	}
	var seq uint64
	for i := range 6 {
		s.set(noon.Add(time.Duration(i) * 20 * time.Minute))
		if err := s.j.Quotas().Reserve(s.now(), uses); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // the others crash before they are accepted
			seq = s.append(journal.Append{Stream: "job/a", After: seq, Events: events("x"), Uses: uses})
		}
	}
	// Accepted at 12:00, 12:40 and 13:20; it is 13:40.
	if left, _ := s.j.Quotas().Remaining(s.now(), uses[1]); left != 4 {
		t.Errorf("%d are left while reservations count, want 4", left)
	}
	s.reopen()
	for i, want := range []int{8, 7, 7, -1} {
		if left, _ := s.j.Quotas().Remaining(s.now(), uses[i]); left != want {
			t.Errorf("%s: %d left, want %d", uses[i].Name, left, want)
		}
	}
	q := s.j.Quotas()
	for range 7 {
		if err := q.Reserve(s.now(), uses); err != nil {
			t.Fatal(err)
		}
	}
	var limit *api.LimitError
	if err := q.Reserve(s.now(), uses); !errors.As(err, &limit) || limit.Limit != 10 {
		t.Errorf("the eleventh use: %v", err)
	}
	q.Release(s.now(), uses)
	if err := q.Reserve(s.now(), uses); err != nil {
		t.Errorf("after one was given back: %v", err)
	}
}
