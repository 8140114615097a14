package server

import (
	"runtime"
	"testing"
)

func TestTheServerRunsOneThreadMoreThanThereAreProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	oneThreadMore("4") // the operator has said it, and Go has done so
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d threads where it was said how many, %d before", got, before)
	}
	oneThreadMore("")
	if got := runtime.GOMAXPROCS(0); got != before+1 {
		t.Errorf("%d threads, %d before", got, before)
	}
}
