package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/client"
)

func TestADryRunShowsTheDiffAndPublishesNothing(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n", "index.md": "# Home\n"})
	p := newTestProject(t, data, "tea", source)
	server := newTestServer(t, data)
	at := []string{"--url", server.url, "--project", p.id, "--key", p.admin}
	job := func(args ...string) string { return docent(t, append(append([]string{"job"}, args...), at...)...) }

	diff := job("create", "--dry-run", `replace "eighty" with "seventy" in tea.md`)
	if want := "--- a/tea.md\n+++ b/tea.md\n"; !strings.HasPrefix(diff, want) || !strings.Contains(diff, "-Green tea is brewed at eighty degrees.\n+Green tea is brewed at seventy degrees.\n") {
		t.Errorf("the diff is\n%s", diff)
	}
	patch := exec.Command("git", "apply", "--check", "-")
	patch.Dir, patch.Stdin = source, strings.NewReader(diff)
	if out, err := patch.CombinedOutput(); err != nil {
		t.Errorf("git does not take the diff: %v\n%s", err, out)
	}
	var dry struct {
		api.Job
		Files []client.File
		Diff  string
	}
	if err := json.Unmarshal([]byte(job("create", "--dry-run", "--json", `replace "eighty" with "seventy" in tea.md`)), &dry); err != nil {
		t.Fatal(err)
	}
	if dry.PRLink != nil || dry.Status != api.JobCompleted || !strings.Contains(dry.Message, "dry run") || dry.Diff != diff || len(dry.Files) != 1 {
		t.Errorf("%+v", dry)
	}
	if pulls := docent(t, "pull", "list", "--data", data, "--project", p.id, "--json"); strings.TrimSpace(pulls) != "" {
		t.Errorf("a dry run made a pull request: %s", pulls)
	}
	if text, err := os.ReadFile(filepath.Join(source, "tea.md")); err != nil || !strings.Contains(string(text), "eighty") {
		t.Errorf("%v: %s", err, text)
	}

	// The same for good, followed after it has ended: the whole log is there. What it works on and with was right at once.
	var first, made api.Job
	if err := server.client(p.admin).Post(t.Context(), "/v2/agent/"+p.id+"/job", map[string]string{"prompt": `replace "eighty" with "seventy" in tea.md`}, &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(job("watch", "--json", string(first.ID))), &made); err != nil {
		t.Fatal(err)
	}
	if want := (api.Source{Repository: "tea", Ref: "main"}); first.Source != want || made.Source != want || first.Model != "rules-1" || made.Model != first.Model {
		t.Errorf("the job works on %+v with %q, and later on %+v with %q", first.Source, first.Model, made.Source, made.Model)
	}
	lines := strings.Split(strings.TrimSpace(job("watch", "--events", "--json", string(made.ID))), "\n")
	var types []string
	for _, line := range lines[:len(lines)-1] { // the last one is the job
		var e client.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Type != "" && e.Type != "progress" {
			types = append(types, e.Type)
		}
	}
	if got := strings.Join(types, " "); got != "created prompt edited published finished" || !strings.Contains(lines[len(lines)-1], `"prLink":"http://`) {
		t.Errorf("%s\n%s", got, strings.Join(lines, "\n"))
	}
	job("archive", string(made.ID))
	if out := job("list", "--archived", "true", "--json"); strings.Count(out, "\n") != 1 || !strings.Contains(out, string(made.ID)) {
		t.Errorf("the archived jobs are\n%s", out)
	}
	if out := job("show", "--json", string(made.ID)); !strings.Contains(out, `"archivedAt":"2`) {
		t.Errorf("%s", out)
	}
	if _, err := tryDocent(t, append([]string{"job", "cancel", string(made.ID)}, at...)...); err == nil || !strings.Contains(err.Error(), "conflict") {
		t.Errorf("cancel of a job that has ended: %v", err)
	}
}

// TestWatchGoesOnWhereItWasCutOff breaks the connection twice: once between two events and once in the middle of one.
func TestWatchGoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	id := api.NewID(api.JobPrefix, time.Now())
	var asked []string
	event := func(n int, kind, status string) string {
		return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"id\":%d,\"type\":%q,\"at\":\"2026-11-21T10:00:00.000Z\",\"status\":%q,\"text\":\"x\"}\n\n", n, kind, n, kind, status)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/v2/agent/p/job/"+id+"/events" || req.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s %v", req.URL, req.Header)
		}
		asked = append(asked, req.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		switch len(asked) {
		case 1:
			fmt.Fprint(w, "retry: 1000\n\n: ping\n\n"+event(1, "created", "active")+event(2, "progress", "active"))
		case 2:
			text := event(3, "progress", "active")
			fmt.Fprint(w, text[:len(text)-20])
		default:
			fmt.Fprint(w, event(3, "progress", "active")+event(4, "finished", "completed")+
				"event: end\ndata: {\"id\":\""+id+"\",\"status\":\"completed\",\"title\":\"t\"}\n\n")
		}
	}))
	defer server.Close()
	out := docent(t, "job", "watch", id, "--events", "--json", "--url", server.URL, "--project", "p", "--key", "k")
	if got := strings.Join(asked, " "); got != "0 2 2" {
		t.Errorf("asked from %s", got)
	}
	for n := 1; n <= 4; n++ {
		if strings.Count(out, fmt.Sprintf(`{"id":%d,`, n)) != 1 {
			t.Errorf("event %d is not shown once:\n%s", n, out)
		}
	}
}

// TestASessionOfVersionOneWorksOnTheBranchThatItNames creates one as earlier clients do, and reads its run to the end.
func TestASessionOfVersionOneWorksOnTheBranchThatItNames(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n", "index.md": "# Home\n"})
	p := newTestProject(t, data, "tea", source)
	server := newTestServer(t, data)
	create := func(branch string) (string, http.Header) {
		t.Helper()
		body := map[string]any{"messages": []any{map[string]any{"role": "system", "content": `replace "eighty" with "seventy" in tea.md`}}, "asDraft": "true", "branch": branch}
		resp, err := server.client(p.admin).Do(t.Context(), http.MethodPost, "/v1/agent/tea/job", body)
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
	if header.Get("X-Branch-Name") != "docs/cooler" || !strings.Contains(text, "/pulls/pr_") || !strings.Contains(text, `d:{"finishReason":"stop"`) {
		t.Fatalf("%v\n%s", header, text)
	}
	if _, again := create("docs/cooler"); again.Get("X-Session-Id") != header.Get("X-Session-Id") {
		t.Errorf("a repeat is the session %s, not %s", again.Get("X-Session-Id"), header.Get("X-Session-Id"))
	}
	var pull api.PullRequest
	if err := json.Unmarshal([]byte(docent(t, "pull", "list", "--data", data, "--project", p.id, "--json")), &pull); err != nil {
		t.Fatal(err)
	}
	if pull.Head != "docs/cooler" || !pull.Draft {
		t.Errorf("%+v", pull)
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
	source := writeFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n", "index.md": "# Home\n"})
	p := newTestProject(t, data, "tea", source)
	server := newTestServer(t, data)
	at := []string{"--url", server.url, "--project", p.id, "--key", p.admin}
	var made api.Job
	for _, c := range []struct {
		prompt  string
		status  int
		outcome api.Outcome
	}{
		{`Hi team, we have warmer tea now. Please replace "eighty" with "ninety" in tea.md. Thanks!`, 0, api.OutcomeChanged},
		{`replace "nowhere" with "x" everywhere`, exitNothingToDo, api.OutcomeNothingToDo},
		{"make the docs better please", exitNotUnderstood, api.OutcomeNotUnderstood},
		{`change the heading "Tea" to "Teas" on the nowhere page`, exitNeedsDetail, api.OutcomeNeedsDetail},
	} {
		for _, flag := range []string{"--wait", "--dry-run"} {
			out, err := tryDocent(t, append([]string{"job", "create", flag, "--json", c.prompt}, at...)...)
			var exit *exec.ExitError
			status := 0
			if errors.As(err, &exit) {
				status = exit.ExitCode()
			}
			var j api.Job
			if jerr := json.Unmarshal([]byte(out), &j); jerr != nil || status != c.status || j.Outcome != c.outcome || j.Status != api.JobCompleted {
				t.Errorf("%q %s: status %d, %v, %v\n%s", c.prompt, flag, status, err, jerr, out)
			}
			made = j
		}
		// Who comes later learns the same.
		_, err := tryDocent(t, append([]string{"job", "watch", string(made.ID)}, at...)...)
		var exit *exec.ExitError
		if errors.As(err, &exit) != (c.status != 0) || exit != nil && exit.ExitCode() != c.status {
			t.Errorf("watch %q: %v", c.prompt, err)
		}
	}
	_, err := tryDocent(t, append([]string{"job", "message", string(made.ID), "--wait", "make it shine"}, at...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitNotUnderstood || !strings.Contains(err.Error(), "was not understood") {
		t.Errorf("a follow-up: %v", err)
	}
	// The list has a line for each job, whatever its message is.
	lines := strings.Split(strings.TrimSpace(docent(t, append([]string{"job", "list"}, at...)...)), "\n")
	if len(lines) != 8 {
		t.Fatalf("%d lines for 8 jobs:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, want := range []string{"not_understood", "needs_detail", "not_understood", "not_understood", "nothing_to_do", "nothing_to_do", "changed", "changed"} {
		if !strings.HasPrefix(lines[i], "job_") || !strings.Contains(lines[i], "  completed  "+want) {
			t.Errorf("line %d is not %s: %s", i+1, want, lines[i])
		}
	}
	if !strings.Contains(lines[7], "/pulls/pr_") {
		t.Errorf("no link: %s", lines[7])
	}
	// The list of forms is where messages say that it is.
	if help := docent(t, "job", "create", "--help"); !strings.Contains(help, `rename "Old Name" to "New Name" everywhere`) || !strings.Contains(help, "exit status") {
		t.Error(help)
	}
}
