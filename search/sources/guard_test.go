package sources

import (
	"log/slog"
	"testing"
	"time"
)

func TestWhatEndedTheProcessIsReadAgainWhenItMayHelp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	// died leaves what a process leaves behind that ends while it reads.
	open := func(version string, crashed bool) *Guard {
		t.Helper()
		g, err := OpenGuard(dir, version, crashed, func() time.Time { return now }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	reads := func(g *Guard, step readStep, commit string) (func(), bool) {
		end, err := g.begin("docs", step, commit)
		return end, err == nil
	}
	die := func(n int, crashed bool, step readStep, commit string) *Guard {
		t.Helper()
		g := open("1", false)
		for range n {
			if _, ok := reads(g, step, commit); !ok {
				t.Fatal("it is left out too early")
			}
			g = open("1", crashed)
		}
		return g
	}

	g := die(maxCrashes, true, stepIndex, "c1")
	if _, ok := reads(g, stepIndex, "c1"); ok {
		t.Error("after two crashes it is read again")
	}
	if end, ok := reads(open("2", false), stepIndex, "c1"); !ok {
		t.Error("another version does not read it")
	} else {
		end()
	}
	g = die(maxCrashes, true, stepIndex, "c1")
	if end, ok := reads(g, stepIndex, "c2"); !ok {
		t.Error("another commit is not read")
	} else {
		end()
	}
	g = die(maxCrashes, true, stepIndex, "c1")
	g.Forget("docs")
	if end, ok := reads(g, stepIndex, "c1"); !ok || len(open("1", false).LeftOut()) > 0 {
		t.Error("an operator cannot have it read again")
	} else {
		end()
	}
	g = die(maxKills-1, false, stepIndex, "c1")
	if end, ok := reads(g, stepIndex, "c1"); !ok {
		t.Error("a few kills from outside leave it out")
	} else {
		end()
	}
	if left := open("1", true).LeftOut(); len(left) > 0 {
		t.Errorf("what was read whole is under suspicion: %v", left)
	}
	g = die(maxKills, false, stepFetch, "")
	if _, ok := reads(g, stepFetch, ""); ok {
		t.Error("after five kills it is fetched again")
	}
	now = now.Add(retryUnknown)
	if end, ok := reads(g, stepFetch, ""); !ok {
		t.Error("after an hour it is not fetched again")
	} else {
		end()
	}
}
