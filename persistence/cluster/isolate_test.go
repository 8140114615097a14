package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// reachOf makes what nodes say of each other from the ways that are cut, such as "a>b": a does not reach b.
func reachOf(ids []string, isolated string, cuts ...string) map[string]standing {
	reach := map[string]standing{}
	for _, id := range ids {
		s := standing{Sees: map[string]string{}}
		for _, other := range ids {
			s.Sees[other] = ""
		}
		if strings.Contains(isolated, id) {
			s.Isolated = "before"
		}
		reach[id] = s
	}
	for _, cut := range cuts {
		from, to, _ := strings.Cut(cut, ">")
		reach[from].Sees[to] = "cut"
	}
	return reach
}

func TestTheNodeThatIsCutOffIsIsolatedAndNotTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, isolated string
		cuts            []string
		want            string
	}{
		"all reach each other":                          {nodes: "abc"},
		"nobody reaches one":                            {nodes: "abc", cuts: []string{"b>a", "c>a"}, want: "a"},
		"one reaches nobody":                            {nodes: "abc", cuts: []string{"a>b", "a>c"}, want: "a"},
		"one is cut off both ways":                      {nodes: "abc", cuts: []string{"a>b", "a>c", "b>a", "c>a"}, want: "a"},
		"of two the one that is not reached":            {nodes: "ab", cuts: []string{"b>a"}, want: "a"},
		"of two the one that does not reach itself":     {nodes: "ab", cuts: []string{"a>b", "b>a", "a>a"}, want: "a"},
		"of two that are alike the later one":           {nodes: "ab", cuts: []string{"a>b", "b>a"}, want: "b"},
		"of two the one that is isolated stays so":      {nodes: "ab", isolated: "a", cuts: []string{"a>b", "b>a"}, want: "a"},
		"nobody for not reaching itself alone":          {nodes: "ab", cuts: []string{"a>a", "b>b"}},
		"one of two that do not reach each other":       {nodes: "abc", cuts: []string{"a>b", "b>a"}, want: "b"},
		"the smaller part":                              {nodes: "abcde", cuts: []string{"a>c", "a>d", "a>e", "b>c", "b>d", "b>e"}, want: "ab"},
		"a node that is alone never":                    {nodes: "a", isolated: "a", cuts: []string{"a>a"}},
		"one that was isolated for what is over is not": {nodes: "abc", isolated: "c"},
	} {
		ids := strings.Split(c.nodes, "")
		out := isolate(ids, reachOf(ids, c.isolated, c.cuts...))
		if got := strings.Join(slices.Sorted(maps.Keys(out)), ""); got != c.want {
			t.Errorf("%s: isolated are %q, want %q", name, got, c.want)
		}
	}
}

// Whatever is cut, those that are left reach each other, and there is one at least.
func TestThoseThatAreNotIsolatedReachEachOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		var ids, cuts []string
		for n := range 1 + random.IntN(7) {
			ids = append(ids, string(rune('a'+n)))
		}
		isolated := ""
		for _, from := range ids {
			if random.IntN(5) == 0 {
				isolated += from
			}
			for _, to := range ids {
				if random.IntN(4) == 0 {
					cuts = append(cuts, from+">"+to)
				}
			}
		}
		reach := reachOf(ids, isolated, cuts...)
		out := isolate(ids, reach)
		if len(out) == len(ids) {
			t.Fatalf("nobody of %v is left with the cuts %v", ids, cuts)
		}
		for _, from := range ids {
			for _, to := range ids {
				if !out[from] && !out[to] && from != to && reach[from].Sees[to] != "" {
					t.Fatalf("%s is left, and does not reach %s: cuts %v", from, to, cuts)
				}
			}
		}
	}
}

func TestOneProbeThatFailsChangesNothing(t *testing.T) {
	c := new(contact)
	try := func(why string, times int) string {
		for range times {
			c.took(why)
		}
		return fmt.Sprint(c.known, " ", c.why)
	}
	for _, step := range []struct {
		why   string
		times int
		want  string
	}{
		{"refused", probesLost - 1, "false "}, {"", 1, "true "}, {"late", probesLost - 1, "true "}, {"", 1, "true "},
		{"late", probesLost, "true late"}, {"", probesFound - 1, "true late"}, {"refused", 1, "true late"},
		{"", probesFound - 1, "true late"}, {"", 1, "true "},
	} {
		if got := try(step.why, step.times); got != step.want {
			t.Fatalf("after %d probes that say %q it is %q, want %q", step.times, step.why, got, step.want)
		}
	}
}

func TestTheStateOfANodeIsWhatMattersMost(t *testing.T) {
	for want, n := range map[string]member{"ready": {Ready: true, Silence: 1}, "starting": {}, "leaving": {Ready: true, Leaving: true},
		"silent": {Ready: true, Leaving: true, Silence: 2}} {
		if got := n.state(""); got != want {
			t.Errorf("%+v is %s", n, got)
		}
	}
	if got := (member{Ready: true}).state("a does not reach it"); got != "isolated" {
		t.Errorf("a node that is isolated is %s", got)
	}
}
