package api

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/tests/harness"
)

// TestASessionOfVersionOneWorksOnTheBranchThatItNames creates one as earlier clients do, and reads its run to the end.
func TestASessionOfVersionOneWorksOnTheBranchThatItNames(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := harness.WriteFiles(t,
		map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n", "index.md": "# Home\n"})
	p := harness.NewProject(t, data, "tea", source)
	server := harness.NewServer(t, data)
	create := func(branch string, prompt ...string) (string, http.Header) {
		t.Helper()
		body := map[string]any{"messages": []any{map[string]any{"role": "system",
			"content": strings.Join(append(prompt, `replace "eighty" with "seventy" in tea.md`), "\n")}}, "asDraft": "true", "branch": branch}
		resp, err := server.Client(p.Admin).Do(t.Context(), http.MethodPost, "/v1/agent/tea/job", body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), resp.Header
	}
	text, header := create("docs/cooler")
	if header.Get("X-Branch-Name") != "docs/cooler" || !strings.Contains(text, "/pulls/pr_") ||
		!strings.Contains(text, `d:{"finishReason":"stop"`) {
		t.Fatalf("%v\n%s", header, text)
	}
	if _, again := create("docs/cooler"); again.Get("X-Session-Id") != header.Get("X-Session-Id") {
		t.Errorf("a repeat is the session %s, not %s", again.Get("X-Session-Id"), header.Get("X-Session-Id"))
	}
	var pull api.PullRequest
	if err := json.Unmarshal([]byte(harness.Docent(t, "pull", "list", "--data", data, "--project", p.ID, "--json")),
		&pull); err != nil {
		t.Fatal(err)
	}
	if pull.Head != "docs/cooler" || !pull.Draft {
		t.Errorf("%+v", pull)
	}
	// A branch that the job didn't make is somebody's: what it holds would be published without a review.
	text, other := create("docs/cooler", "Please:")
	if other.Get("X-Session-Id") == header.Get("X-Session-Id") || !strings.Contains(text, "Name a branch that doesn't exist yet") ||
		!strings.Contains(text, `d:{"finishReason":"error"`) {
		t.Errorf("another session on the same branch:\n%s", text)
	}
	// The branch that pull requests are meant for is never worked on.
	text, _ = create(pull.Base)
	if !strings.Contains(text, "name another one") || !strings.Contains(text, `d:{"finishReason":"error"`) {
		t.Errorf("a session on %s:\n%s", pull.Base, text)
	}
}

// A script tells by the exit status what became of an instruction, and a person by a short message.
func TestTheExitStatusSaysWhatBecameOfTheInstruction(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := harness.WriteFiles(t,
		map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n", "index.md": "# Home\n"})
	p := harness.NewProject(t, data, "tea", source)
	server := harness.NewServer(t, data)
	at := []string{"--url", server.URL, "--project", p.ID, "--key", p.Admin}
	var made api.Job
	for _, c := range []struct {
		prompt  string
		status  int
		outcome api.Outcome
	}{
		{`Hi team, we have warmer tea now. Please replace "eighty" with "ninety" in tea.md. Thanks!`, 0, api.OutcomeChanged},
		{`replace "nowhere" with "x" everywhere`, cli.ExitNothingToDo, api.OutcomeNothingToDo},
		{"make the docs better please", cli.ExitNotUnderstood, api.OutcomeNotUnderstood},
		{`change the heading "Tea" to "Teas" on the nowhere page`, cli.ExitNeedsDetail, api.OutcomeNeedsDetail},
	} {
		for _, flag := range []string{"--wait", "--dry-run"} {
			out, err := harness.TryDocent(t, append([]string{"job", "create", flag, "--json", c.prompt}, at...)...)
			status := cli.ExitStatus(err)
			var j api.Job
			if jerr := json.Unmarshal([]byte(out), &j); jerr != nil || status != c.status || j.Outcome != c.outcome ||
				j.Status != api.JobCompleted {
				t.Errorf("%q %s: status %d, %v, %v\n%s", c.prompt, flag, status, err, jerr, out)
			}
			made = j
		}
		// Who comes later learns the same.
		_, err := harness.TryDocent(t, append([]string{"job", "watch", string(made.ID)}, at...)...)
		if cli.ExitStatus(err) != c.status {
			t.Errorf("watch %q: %v", c.prompt, err)
		}
	}
	_, err := harness.TryDocent(t, append([]string{"job", "message", string(made.ID), "--wait", "make it shine"},
		at...)...)
	if cli.ExitStatus(err) != cli.ExitNotUnderstood || !strings.Contains(err.Error(), "was not understood") {
		t.Errorf("a follow-up: %v", err)
	}
	// The list has a line for each job, whatever its message is.
	lines := strings.Split(strings.TrimSpace(harness.Docent(t, append([]string{"job", "list"}, at...)...)), "\n")
	if len(lines) != 8 {
		t.Fatalf("%d lines for 8 jobs:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, want := range []string{"not_understood", "needs_detail", "not_understood", "not_understood", "nothing_to_do",
		"nothing_to_do", "changed", "changed"} {
		if !strings.HasPrefix(lines[i], "job_") || !strings.Contains(lines[i], "  completed  "+want) {
			t.Errorf("line %d is not %s: %s", i+1, want, lines[i])
		}
	}
	if !strings.Contains(lines[7], "/pulls/pr_") {
		t.Errorf("no link: %s", lines[7])
	}
	// The list of forms is where messages say that it is.
	if help := harness.Docent(t, "job", "create", "--help"); !strings.Contains(help,
		`rename "Old Name" to "New Name" everywhere`) || !strings.Contains(help, "exit status") {
		t.Error(help)
	}
}
