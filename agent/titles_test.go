package agent_test

import (
	"strings"
	"testing"

	"docent/api"
)

// Titles and the first lines of commits follow the project's pattern; the scope is the folder that all changes are in.
func TestTitlesFollowTheProjectsPattern(t *testing.T) {
	j := newJob(t, map[string]string{"index.md": "# Start\n\nSee berth.\n", "guide/a.md": "# A\n\nA berth and a mooring.\n",
		"guide/b.md": "# B\n\nA mooring.\n"})
	j.project.Pulls = api.PullForm{Title: "docs({scope}): {title}"}
	for prompt, want := range map[string]string{
		`replace "mooring" with "pier"`: "docs(guide): ",
		`replace "berth" with "quay"`:   "docs: ",
	} {
		res := j.must(prompt)
		first, _, _ := strings.Cut(res.Commit, "\n")
		if !strings.HasPrefix(res.Title, want) || !strings.HasPrefix(first, want) || strings.Contains(res.Title, "{") {
			t.Errorf("%s: %q, %q", prompt, res.Title, first)
		}
	}
}
