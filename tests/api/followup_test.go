package api

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/tests/harness"
)

// A pull request's text describes the whole of it: after a message to its job it lists what the job has changed in it
// by all instructions, against its base, and after one that was closed without being merged only what the new one
// holds.
func TestThePullRequestsTextDescribesAllThatItHolds(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := harness.WriteFiles(t, map[string]string{
		"tea.md":  "# Tea\n\nGreen tea is brewed at eighty degrees.\n\n[Herbs](herbs.md)\n",
		"mate.md": "# Mate\n\nIt is brewed at seventy degrees.\n", "herbs.md": "# Herbs\n\nThey steep for long.\n",
		"index.md": "# Home\n",
	})
	p := harness.NewProject(t, data, "tea", source)
	server := harness.NewServer(t, data)
	var j api.Job
	do := func(prompt string) api.PullRequest {
		t.Helper()
		args := []string{"job", "create", "--wait", "--json", "--url", server.URL, "--project", p.ID, "--key", p.Admin}
		if j.ID != "" {
			args[1] = "message"
			args = append(args, string(j.ID))
		}
		if err := json.Unmarshal([]byte(harness.Docent(t, append(args, prompt)...)), &j); err != nil {
			t.Fatal(err)
		}
		if j.PRLink == nil {
			t.Fatalf("%q: %+v", prompt, j)
		}
		list := json.NewDecoder(strings.NewReader(harness.Docent(t, "pull", "list", "--data", data, "--project", p.ID,
			"--json")))
		for {
			var pull api.PullRequest
			if err := list.Decode(&pull); err != nil {
				break
			}
			if pull.State == api.PullOpen {
				return pull
			}
		}
		t.Fatalf("%q: no open pull request", prompt)
		return api.PullRequest{}
	}
	says := func(pull api.PullRequest, words ...string) {
		t.Helper()
		for _, w := range words {
			if want, not := strings.CutPrefix(w, "not "); strings.Contains(pull.Body, want) == not {
				t.Errorf("the text and %q:\n%s", w, pull.Body)
			}
		}
	}
	says(do(`replace "eighty" with "ninety" in tea.md`), "1 file:", "`tea.md`: replaced: 1")
	says(do(`replace "seventy" with "sixty" in mate.md`), "as a whole, with its earlier instructions, changes 2 files:",
		"- `mate.md`: 1 line added, 1 removed", "- `tea.md`: 1 line added, 1 removed", "Before that, in this pull request:",
		"eighty")
	says(do(`move herbs.md to plants/herbs.md`), "changes 3 files:",
		"`plants/herbs.md` (moved from `herbs.md`): 0 lines added, 0 removed", "- `tea.md`: 2 lines added, 2 removed")
	last := do(`replace "sixty" with "seventy" in mate.md`)
	says(last, "changes 2 files:", "`plants/herbs.md` (moved from `herbs.md`)", "not - `mate.md`:")

	harness.Docent(t, "pull", "close", "--data", data, last.ID)
	says(do(`replace "Home" with "Start" in index.md`), "1 file:", "- `index.md`",
		"Not in this pull request, since the one that held it was closed without being merged:", "not as a whole",
		"not Before that", "not - `tea.md`")
	says(do(`replace "Start" with "Begin" in index.md`), "Before that, in this pull request:", "changes 1 file:",
		"- `index.md`: 1 line added, 1 removed")
}
