package people

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An address is typed into a form and may be as long as one: who guesses must not fill the memory with it.
func TestAttemptsAreRememberedInFewBytes(t *testing.T) {
	a := &attempts{now: time.Now, failed: map[attempted]attempt{}}
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const typed, guesses = 128 << 10, 200
	before := memory()
	for i := range guesses {
		if wait, err := a.Take(t.Context(), attemptWindow, bound("account "+strconv.Itoa(i)+strings.Repeat("a", typed), 1)); wait > 0 || err != nil {
			t.Fatal(i, wait, err)
		}
	}
	if grown := int64(memory()) - int64(before); grown > guesses*typed/10 {
		t.Errorf("%d guesses are remembered in %d bytes", guesses, grown)
	}
	last := bound("account 0"+strings.Repeat("a", typed), 1)
	if wait, err := a.Take(t.Context(), attemptWindow, last); wait == 0 || err != nil {
		t.Error("a second guess:", wait, err)
	}
}
