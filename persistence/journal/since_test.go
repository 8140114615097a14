package journal

import (
	"fmt"
	"slices"
	"testing"
)

func TestEventsSinceAPositionAreThoseThatCameLater(t *testing.T) {
	j := openNew(t, Options{})
	say(t, j, "a", "1", "2")
	say(t, j, "b", "x")
	at := j.Position()
	for _, c := range []struct {
		stream string
		since  uint64
		first  uint64
		want   []string
	}{{"a", 0, 1, []string{"1", "2"}}, {"a", 1, 2, []string{"2"}}, {"a", at, 3, nil}, {"b", 1, 1,
		[]string{"x"}}, {"nobody", 0, 0, nil}} {
		first, events, err := j.LoadSince(c.stream, c.since)
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(Recovered{Events: events}); !slices.Equal(got, c.want) || len(got) > 0 && first != c.first {
			t.Errorf("%s since %d: %v from %d", c.stream, c.since, got, first)
		}
	}
	say(t, j, "a", "3")
	say(t, j, "b", "y")
	say(t, j, "a", "4")
	first, events, err := j.LoadSince("a", at)
	if err != nil || first != 3 || !slices.Equal(texts(Recovered{Events: events}), []string{"3", "4"}) {
		t.Errorf("%v from %d: %v", events, first, err)
	}
	if err := j.Delete("a"); err != nil {
		t.Fatal(err)
	}
	if _, events, err := j.LoadSince("a", 0); err != nil || len(events) > 0 {
		t.Errorf("of a removed stream: %v, %v", events, err)
	}
}

// A follower that comes back reads on where it was, also when everything is covered by snapshots and a stream has gone.
func TestTheLogHasWhatAFollowerHasNotSeen(t *testing.T) {
	j := openNew(t, Options{})
	f, err := j.Follow("hooks")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := func(string) bool { return true }
	read := func(pos uint64, wanted func(string) bool) (got []string) {
		t.Helper()
		last := pos
		err := f.Log(pos, wanted, func(e Logged) bool {
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
	say(t, j, "a", "1", "2")
	at := j.Position()
	say(t, j, "b", "x")
	say(t, j, "a", "3")
	j.Snapshot("a", 3, []byte("state"))
	j.Snapshot("b", 1, []byte("state"))
	for range 5 { // commits that would remove what the snapshots cover
		say(t, j, "c", "y")
	}
	if got := read(at, all); !slices.Equal(got[:2], []string{"b 1 x", "a 3 3"}) || len(got) != 7 {
		t.Errorf("read is %q", got)
	}
	if got := read(0, func(string) bool { return false }); len(got) != 0 {
		t.Errorf("unwanted events are read: %q", got)
	}
	if err := j.Delete("b"); err != nil {
		t.Fatal(err)
	}
	if got := read(at, all); got[0] != "a 3 3" || got[len(got)-1] != "b gone" || len(got) != 7 {
		t.Errorf("after a stream has gone: %q", got)
	}
	n := 0
	if err := f.Log(0, all, func(Logged) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("it goes on after %d: %v", n, err)
	}
}
