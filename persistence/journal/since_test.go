package journal

import (
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
