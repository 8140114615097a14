package hosts

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/forge/forgetest"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// TestAJobReadsTheCode lets a model that another process plays read a real repository of code by the agent's tools. The code
// is never changed, and no reader is answered from it.
func TestAJobReadsTheCode(t *testing.T) {
	t.Parallel()
	work, bare := t.TempDir(), filepath.Join(t.TempDir(), "code.git")
	git := func(args ...string) string { return forgetest.Git(t, work, args...) }
	git("init", "-q", "-b", "main")
	git("init", "-q", "--bare", "-b", "main", bare)
	for _, files := range []map[string]string{
		{".gitignore": "/out\n", "ferry/timetable.go": "package ferry\n\nconst everyMinutes = 60 // zanzibar\n", "ferry/.env": "TOKEN=wotan\n", "out/x.go": "// wotan\n"},
		{"ferry/timetable.go": "package ferry\n\nconst everyMinutes = 30 // zanzibar\n"},
	} {
		forgetest.Write(t, work, files)
		git("add", "-f", "-A")
		git("commit", "-q", "-m", "feat: a ferry each half hour")
		git("push", "-q", bare, "main")
	}
	tool := func(name, path string, more ...string) modeltest.Step {
		a := map[string]any{"path": path}
		for i := 0; i < len(more); i += 2 {
			a[more[i]] = more[i+1]
		}
		return harness.Calling(harness.ToolCall(name, a))
	}
	s := harness.NewModelledServer(t, "openai", "", modeltest.Script{Match: "Make the pages true", Steps: []modeltest.Step{
		tool("list_files", "code:api"), tool("grep", "code:api", "pattern", "everyMinutes"), tool("grep", "code:api", "pattern", "wotan"),
		tool("read_file", "code:api/ferry/timetable.go"), tool("git_log", "code:api/ferry/timetable.go"), tool("git_diff", "code:api", "to", "HEAD"),
		tool("read_file", "code:api/ferry/.env"), harness.Calling(harness.EditCall("code:api/ferry/timetable.go", "30", "60")),
		harness.Calling(harness.ReadCall("ferries.md")),
		harness.Calling(harness.EditCall("ferries.md", "leaves every hour", "leaves every half hour")),
		harness.Calling(harness.FinishCall), harness.Calling(harness.FinishCall),
	}})
	out := harness.Docent(t, "source", "add", s.Project.ID, "api", "--data", s.Data, "--kind", "code", "--address", bare, "--repository", "acme/api", "--json")
	if !strings.Contains(out, `"pages":0`) {
		t.Errorf("%s", out)
	}
	before := git("--git-dir", bare, "rev-parse", "main")
	job := s.Settled(s.Create("Make the pages true to the code.").ID)
	if job.Status != api.JobCompleted || !strings.Contains(s.Diff(job), "+The ferry to the island leaves every half hour") {
		t.Fatalf("%+v\n%v\n%s", job, s.Outcomes("Make the pages true"), s.Log)
	}
	if now := git("--git-dir", bare, "for-each-ref"); strings.Count(now, "\n") != 0 || !strings.HasPrefix(now, before) {
		t.Errorf("the code is changed: %s", now)
	}
	// The tools are in the job's log, and what the model was shown holds no secret.
	log := harness.Docent(t, "job", "watch", string(job.ID), "--events", "--project", s.Project.ID, "--url", s.URL, "--key", s.Project.Admin)
	for _, want := range []string{"Listing code:api", "Looking for “everyMinutes” in code:api", "Reading code:api/ferry/timetable.go",
		"Reading the history of code:api/ferry/timetable.go", "Reading the change of HEAD in code:api"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not tell %q:\n%s", want, log)
		}
	}
	shown, err := json.Marshal(s.Peer.Asked())
	if err != nil || !strings.Contains(string(shown), "everyMinutes = 30") || strings.Contains(string(shown), "TOKEN=wotan") || strings.Contains(string(shown), "// wotan") {
		t.Errorf("%v, %s", err, shown)
	}
	var found any
	if err := s.Client(s.Project.Assistant).Post(t.Context(), "/discovery/v1/search/"+s.Project.Domain, map[string]string{"query": "zanzibar"}, &found); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(found); err != nil || strings.Contains(string(text), "timetable") {
		t.Errorf("readers find code: %s, %v", text, err)
	}
}
