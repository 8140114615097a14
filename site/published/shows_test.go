package published_test

import (
	"testing"

	"docent/site/published"
)

// A page shows a change by what is new in it, and what was before by what is old: what no reader sees tells nothing.
func TestAPageShowsAChangeOrWhatWasBefore(t *testing.T) {
	t.Parallel()
	const old, now = "Wait for 30 seconds before the **first** retry of a call.", "Wait for 90 seconds before the **first** retry of a call."
	for _, c := range []struct {
		name, page, change string
		after, before      bool
	}{
		{"built again", "Retries. Wait for 90 seconds before the first retry of a call. Then stop.", "@@ -1 +1 @@\n # Retries\n-" + old + "\n+" + now + "\n", true, false},
		{"not yet", "Retries. Wait for 30 seconds before the first retry of a call. Then stop.", "@@ -1 +1 @@\n # Retries\n-" + old + "\n+" + now + "\n", false, true},
		{"a paragraph", "Retries. Call again after a while, and no sooner.", "@@ -1 +1 @@\n # Retries\n+\n+Call again after a while, and no sooner.\n", true, false},
		{"a paragraph that is not there", "Retries. Nothing else.", "@@ -1 +1 @@\n # Retries\n+\n+Call again after a while, and no sooner.\n", false, false},
		{"a paragraph less", "Retries. Call again after a while, and no sooner.", "@@ -1 +1 @@\n # Retries\n-\n-Call again after a while, and no sooner.\n", false, true},
		{"front matter", "Retries. Wait for 30 seconds.", "@@ -1 +1 @@\n----\n-sidebar_position: 4 of all\n+sidebar_position: 5 of all\n", false, false},
		{"nothing", "Retries.", "", false, false},
	} {
		if after, before := published.Shows([]byte(c.page), c.change); after != c.after || before != c.before {
			t.Errorf("%s: after %v, before %v", c.name, after, before)
		}
	}
}
