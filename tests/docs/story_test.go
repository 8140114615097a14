package docs

import (
	"strings"
	"testing"

	"docent/tests/harness"
)

func TestDemoShowsTheWholeOfDocent(t *testing.T) {
	harness.SkipShort(t)
	t.Parallel()
	out := harness.Docent(t, "demo")
	for _, want := range []string{"Thread: thr_", "Sources:", "Pull request: http://127.0.0.1:", "completed",
		"+description:", "is still completed", "goes on", "docent serve"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
}
