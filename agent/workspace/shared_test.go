package workspace

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"docent/site/markup"
)

// What a run has parsed is there for the next one, and is gone some time after the last.
func TestPagesWaitForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &SharedPages{}
		name := pageName{"docs", "a.md", "1", 4}
		s.keep(name, markup.Parse("a.md", []byte("# A\n")))
		big := pageName{"docs", "b.md", "2", heldBytes}
		s.keep(big, markup.Parse("b.md", append(make([]byte, heldBytes), '\n')))
		held := func(name pageName) bool {
			runtime.GC()
			runtime.GC()
			return s.find(name) != nil
		}
		if !held(name) || held(big) {
			t.Error("the next run parses what was parsed, or all is held")
		}
		for range 8 { // runs that find it
			time.Sleep(heldFor * 3 / 4)
			if !held(name) {
				t.Fatal("it is gone though it is in use")
			}
		}
		time.Sleep(heldFor + time.Second)
		if held(name) {
			t.Error("it is there though nobody needs it")
		}
	})
}
