package agent_test

import (
	"strings"
	"testing"
)

// A reviewer's suggestion names lines by what stands in them; their number decides only where that stands several times.
func TestASuggestionIsCarriedOutWhereItsLinesStand(t *testing.T) {
	const page = "# A\n\nOne line.\nTwo lines.\n\n- same\n- same\n"
	suggest := func(where, old, now string) string {
		return "In docs/a.md, replace " + where + ":\n```text\n" + old + "\n```\nwith\n```suggestion\n" + now + "```\n"
	}
	for _, c := range []struct{ name, prompt, want, said string }{
		{"two lines", suggest("lines 3 to 4", "One line.\nTwo lines.", "Three lines.\n"), strings.Replace(page, "One line.\nTwo lines.", "Three lines.", 1), "Replaced lines 3 to 4"},
		{"lines that moved", suggest("line 1", "Two lines.", "Two.\n"), strings.Replace(page, "Two lines.", "Two.", 1), "Replaced line 4"},
		{"a line that goes", suggest("line 3", "One line.", ""), strings.Replace(page, "One line.\n", "", 1), "Replaced line 3"},
		{"the second of two", suggest("line 7", "- same", "- other\n"), "# A\n\nOne line.\nTwo lines.\n\n- same\n- other\n", "line 7"},
		{"one of two, moved", suggest("line 9", "- same", "- other\n"), page, "stands twice"},
		{"what is gone", suggest("line 3", "Not there.", "x\n"), page, "stands 0 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, map[string]string{"docs/a.md": page, "docs/b.md": "# B\n"})
			j.docs = "docs"
			res := j.do(c.prompt)
			if got := j.tree.files()["docs/a.md"]; got != c.want || !strings.Contains(res.Message, c.said) {
				t.Errorf("%s\ngot  %q\nwant %q", res.Message, got, c.want)
			}
		})
	}
}
