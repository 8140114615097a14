package grant_test

import (
	"slices"
	"testing"

	"docent/internal/grant"
)

type place func()

func (p place) Done() { p() }

func TestAGrantGivesBackWhatItHoldsOnceAndTheLastFirst(t *testing.T) {
	for name, c := range map[string]struct {
		keep bool
		want []string
	}{
		"refused":  {false, []string{"d", "c", "b", "a"}},
		"accepted": {true, []string{"d", "b"}},
	} {
		var g grant.Grant
		var got []string
		give := func(name string) func() { return func() { got = append(got, name) } }
		g.Add(give("a"))
		g.Hold(place(give("b")))
		g.Add(give("c"))
		g.Hold(place(give("d")))
		if c.keep {
			g.Keep()
		}
		g.Close()
		g.Close()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: gave back %q, want %q", name, got, c.want)
		}
	}
}

func TestAGrantOfNothingCanBeKeptAndClosed(t *testing.T) {
	var g grant.Grant
	g.Keep()
	g.Close()
}

// What is kept counts from then on; what is taken afterwards is a cost of its own.
func TestACostThatIsAddedAfterKeepIsGivenBack(t *testing.T) {
	var g grant.Grant
	given := 0
	g.Add(func() { t.Error("what was kept is given back") })
	g.Keep()
	g.Add(func() { given++ })
	g.Close()
	if given != 1 {
		t.Errorf("given back %d times", given)
	}
}
