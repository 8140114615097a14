package kill

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/tests/harness"
)

// A repository of six objects that stand for a million files harms its own project alone.
func TestAHostileRepositoryHarmsItsOwnProjectAlone(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	run := func(dir, stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %s: %v", args[0], err)
		}
		return strings.TrimSpace(string(out))
	}
	hostile := filepath.Join(t.TempDir(), "hostile.git")
	run(t.TempDir(), "", "init", "-q", "--bare", "-b", "main", hostile)
	commit := func(tree string) {
		run(hostile, "", "update-ref", "refs/heads/main", run(hostile, "", "commit-tree", "-m", "docs", tree))
	}
	id, kind := run(hostile, "# Page\n\nA page.\n", "hash-object", "-w", "--stdin"), "100644 blob"
	commit(run(hostile, kind+" "+id+"\tpage.md\n", "mktree"))

	data := filepath.Join(t.TempDir(), "data")
	good := harness.NewProject(t, data, "good",
		harness.WriteFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"}))
	bad := harness.NewProject(t, data, "bad", hostile)
	server := harness.NewServer(t, data)
	job := func(p harness.Project, prompt string) (j api.Job) {
		t.Helper()
		out, _ := harness.TryDocent(t, "job", "create", "--wait", "--json", "--url", server.URL, "--project", p.ID, "--key",
			p.Admin, prompt)
		if err := json.Unmarshal([]byte(out), &j); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return j
	}
	for range 6 {
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "%s %s\tn%d.md\n", kind, id, i)
		}
		id, kind = run(hostile, b.String(), "mktree"), "040000 tree"
	}
	commit(id)
	for round := range 2 {
		if j := job(bad, fmt.Sprintf(`replace "A page" with "The page %d" in page.md`, round)); j.Status != api.JobFailed ||
			!strings.Contains(j.Message, "bad") || !strings.Contains(j.Message, "200000 files") {
			t.Errorf("a job of the hostile project ended as %+v", j)
		}
		if j := job(good, fmt.Sprintf(`replace "eighty" with "%d" in tea.md`, round)); j.Status != api.JobCompleted ||
			j.PRLink == nil {
			t.Errorf("a job of the good project ended as %+v", j)
		}
		if answer := harness.Docent(t, "ask", "--url", server.URL, "--domain", good.Domain, "--key", good.Assistant,
			"How is green tea brewed?"); !strings.Contains(answer, "eighty") {
			t.Errorf("the good project answers %s", answer)
		}
		server.Stop()
		server.Start()
	}
	if aside, _ := filepath.Glob(filepath.Join(data, "repos", "*.damaged-*")); len(aside) > 0 {
		t.Errorf("put aside: %v", aside)
	}
	if out, err := harness.TryDocent(t, "index", "--data", data, "--project", "bad"); err == nil ||
		!strings.Contains(err.Error(), "200000 files") {
		t.Errorf("an update of the hostile project says %s, %v", out, err)
	}
}
