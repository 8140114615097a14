package hosts

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/actors/job"
	"docent/api"
	"docent/cmd/docent/doctor"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/tests/harness"
)

// TestAnOpenPullRequestHasItsBranchAfterEachStart removes branches with their commits. One is made again from what its
// job's journal has; of one whose job is not known any more, the page and the log say that it is lost.
func TestAnOpenPullRequestHasItsBranchAfterEachStart(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t,
		map[string]string{"index.md": "# Home\n\nThree piers.\n"}))
	server := harness.NewServer(t, data)
	cl := server.Client(p.Admin)
	var made [2]api.Job
	for i, page := range []string{"kept", "lost"} {
		path := "/v2/agent/" + p.ID + "/job"
		if err := cl.Post(t.Context(), path, map[string]string{"model": "builtin",
			"prompt": `create page ` + page + `.md titled "A page" with content: "made by job"`}, &made[i]); err != nil {
			t.Fatal(err)
		}
		for made[i].Status == api.JobActive {
			if err := cl.Get(t.Context(), path+"/"+string(made[i].ID)+"?wait=20", &made[i]); err != nil {
				t.Fatal(err)
			}
		}
		if made[i].Status != api.JobCompleted || made[i].PRLink == nil {
			t.Fatalf("the job ended %s: %s", made[i].Status, made[i].Message)
		}
	}
	server.Stop()
	repo := filepath.Join(data, "repos", p.ID+".git")
	var commits [2]string
	for i, j := range made {
		ref := filepath.Join(repo, "refs", "heads", "docent", string(j.ID))
		text, err := os.ReadFile(ref)
		if err != nil {
			t.Fatal(err)
		}
		commits[i] = strings.TrimSpace(string(text))
		if err := errors.Join(os.Remove(ref), os.Remove(filepath.Join(repo, "objects", commits[i][:2], commits[i][2:]))); err != nil {
			t.Fatal(err)
		}
	}
	store, err := journal.Open(filepath.Join(data, datadir.Journal), journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Delete(job.Stream(made[1].ID)), store.Close()); err != nil {
		t.Fatal(err)
	}
	r, _, err := harness.Examine(t, "--data", data, "--offline")
	if err == nil {
		t.Error("the doctor finds nothing")
	}
	for _, j := range made {
		if !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
			return f.Check == "pull requests" && f.Status == doctor.Problem && strings.Contains(f.Found, string(j.ID)+" is not there")
		}) {
			t.Errorf("the doctor does not name the branch of %s: %+v", j.ID, r.Findings)
		}
	}

	server.Start()
	harness.Until(t, "the branch is back", func() bool {
		text, err := os.ReadFile(filepath.Join(repo, "refs", "heads", "docent", string(made[0].ID)))
		return err == nil && strings.TrimSpace(string(text)) == commits[0]
	})
	harness.Until(t, "the log says which branch is lost", func() bool {
		return strings.Contains(server.Log.String(), "lost the branch of an open pull request")
	})
	server.Stop()
	if log := server.Log.String(); !strings.Contains(log, string(made[1].ID)) {
		t.Errorf("the log does not name the job: %s", log)
	}
	out := harness.Docent(t, "pull", "list", "--data", data, "--project", p.ID, "--json")
	if strings.Count(out, "cannot be restored from the journal") != 1 {
		t.Errorf("the pull requests say %s", out)
	}
}
