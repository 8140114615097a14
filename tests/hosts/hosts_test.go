package hosts

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"docent/api"
	"docent/forge/forgetest"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// TestJobsPublishToCodeHosts connects each kind of code host from the command line alone, and lets jobs publish there:
// the answer to the creation is lost, a follow-up comes, the pull request is merged and another follow-up comes. The
// token shows in nothing that the server says or keeps.
func TestJobsPublishToCodeHosts(t *testing.T) {
	t.Parallel()
	const secret = "hst_TheTokenThatNobodyMaySee"
	for _, kind := range []api.HostKind{api.HostGitHub, api.HostGitLab, api.HostGitea} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			host := forgetest.NewStandIn(t)
			host.Do(func() {
				host.Tokens, host.Prune, host.People = []string{secret}, true, map[string]string{"lea": "write"}
			})
			harness.Setenv(t, "HOSTED_DOCS_TOKEN", "wrong-"+secret)
			data := filepath.Join(t.TempDir(), "data")
			flags := []string{"--host", string(kind), "--host-url", host.URL, "--repository", "acme/docs", "--token-env",
				"HOSTED_DOCS_TOKEN", "--labels", "docs", "--author", "Docs Bot <docs@acme.example>", "--sign-off",
				"--pull-title", "docs({scope}): {title}", "--reviewers", "lea", "--draft", "--pull-body", "For #1\n\n{report}"}
			if out, err := harness.TryDocent(t,
				append([]string{"project", "add", "--data", data, "--id", "harbour", "--domain", "harbour.example.com"},
					flags...)...); err == nil ||
				!strings.Contains(err.Error(), "does not accept") || strings.Contains(err.Error()+out, secret) {
				t.Errorf("with a wrong token the project is added, or the reason is not plain: %v", err)
			}
			harness.Setenv(t, "HOSTED_DOCS_TOKEN", secret)
			s := &harness.ModelledServer{Project: harness.NewProject(t, data, "harbour", "", flags...)}
			var key struct{ Key string }
			if err := json.Unmarshal([]byte(harness.Docent(t, "key", "create", "--data", data, "--project", "harbour", "--kind",
				"admin", "--name", "Ann Example <ann@example.org>", "--json")), &key); err != nil {
				t.Fatal(err)
			}
			s.Project.Admin = key.Key
			s.Server = harness.NewServer(t, data, "--log-level", "debug")

			var lost atomic.Int32
			host.Do(func() {
				host.Fault = func(r *http.Request) forgetest.Fault {
					if r.Method == http.MethodPost &&
						(strings.HasSuffix(r.URL.Path, "/pulls") || strings.HasSuffix(r.URL.Path, "/merge_requests")) &&
						lost.Add(1) == 1 {
						return forgetest.Fault{Act: true, Drop: true}
					}
					return forgetest.Fault{}
				}
			})
			job := s.Settled(s.Create(`replace "Run it." with "Start it." in guide/setup.md`).ID)
			branch := "docent/" + string(job.ID)
			pulls := host.Pulls("")
			if job.Status != api.JobCompleted || job.PRLink == nil || len(pulls) != 1 || pulls[0].Head != branch ||
				lost.Load() == 0 {
				t.Fatalf("job %+v, pull requests %+v", job, pulls)
			}
			if !strings.HasPrefix(*job.PRLink, host.URL+"/acme/docs/") || len(pulls[0].Labels) != 1 {
				t.Errorf("linked to %s, labels %v", *job.PRLink, pulls[0].Labels)
			}
			if text := host.Git(t, "log", "-1", "--format=%an <%ae>%n%B", branch); !strings.HasSuffix(text,
				"Co-authored-by: Ann Example <ann@example.org>\nSigned-off-by: Docs Bot <docs@acme.example>") ||
				!strings.HasPrefix(text, "Docs Bot <docs@acme.example>\ndocs(guide): ") {
				t.Errorf("the commit says %q", text)
			}
			if p := pulls[0]; !strings.Contains(p.Title, "docs(guide): ") || !p.Draft || !strings.HasPrefix(p.Body, "For #1\n\n<!--") ||
				!slices.Equal(p.Reviewers, []string{"lea"}) {
				t.Errorf("the pull request is %+v", p)
			}
			if diff := host.Git(t, "diff", "main", branch); !strings.Contains(diff, "-Run it.\n+Start it.") ||
				strings.Count(diff, "diff --git") != 1 {
				t.Errorf("the diff is\n%s", diff)
			}
			first := *job.PRLink

			s.Follow(job.ID, `replace "Use it." with "Work with it." in guide/use.md`)
			if job = s.Settled(job.ID); job.PRLink == nil || *job.PRLink != first || len(host.Pulls("")) != 1 ||
				len(host.Commits(t, branch)) != 3 {
				t.Errorf("after a follow-up: %+v, pull requests %+v", job, host.Pulls(""))
			}
			host.Merge(t, branch)
			s.Follow(job.ID, `replace "Start it." with "Begin." in guide/setup.md`)
			job = s.Settled(job.ID)
			if pulls = host.Pulls(""); job.PRLink == nil || *job.PRLink == first || len(pulls) != 2 || pulls[1].Head == branch ||
				pulls[1].State != api.PullOpen {
				t.Errorf("after the merge: %+v, pull requests %+v", job, pulls)
			}

			host.Do(func() { host.Tokens, host.ReadOnly = nil, []string{secret} })
			job = s.Settled(s.Create(`replace "Welcome" with "Hello" in index.md`).ID)
			if job.Status == api.JobCompleted || !strings.Contains(job.Message, "not write") {
				t.Errorf("with a reading token: %+v", job)
			}
			host.Fsck(t)
			s.Stop()
			if strings.Contains(s.Log.String(), secret) {
				t.Error("the token is in the log")
			}
			err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				text, err := os.ReadFile(path)
				if strings.Contains(string(text), secret) {
					t.Errorf("%s holds the token", filepath.Base(path))
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A model that deletes every page and says that it fixed a typo leaves no trace, and what a person asks to be deleted
// in words waits for a review, also in a project whose changes are committed directly.
func TestADirectProjectIsNeverEmptied(t *testing.T) {
	t.Parallel()
	var deletions []modeltest.Call
	for name := range forgetest.Files {
		deletions = append(deletions, harness.ToolCall("delete_file", map[string]any{"path": name, "unlink": true}))
	}
	typo := harness.ToolCall("finish", map[string]any{"summary": "Fixed a typo.", "title": "fix a typo"})
	steps := []modeltest.Step{harness.Calling(deletions...), harness.Calling(deletions...), harness.Calling(typo),
		harness.Calling(typo)}
	peer := harness.NewProvider(t, []modeltest.Script{{Match: "typo", Steps: steps}, {Match: "all pages", Steps: steps}})
	host := forgetest.NewStandIn(t)
	dir := t.TempDir()
	config, data := filepath.Join(dir, "docent.toml"), filepath.Join(dir, "data")
	if err := os.WriteFile(config, []byte("default_model = \"peer\"\n"+peer.Config("peer", "openai")), 0o600); err != nil {
		t.Fatal(err)
	}
	host.Do(func() { host.Tokens = []string{"hst_any"} })
	harness.Setenv(t, "HOSTED_DOCS_TOKEN", "hst_any")
	flags := []string{"--direct", "--host", "gitea", "--host-url", host.URL, "--repository", "acme/docs", "--token-env",
		"HOSTED_DOCS_TOKEN"}
	s := &harness.ModelledServer{Project: harness.NewProject(t, data, "harbour", "", flags...)}
	s.Server = harness.NewServer(t, data, "--config", config)
	before := host.Commits(t, "main")

	job := s.Settled(s.Create("Fix the typo in index.md").ID)
	if job.Outcome != api.OutcomeNeedsDetail || job.PRLink != nil || !strings.Contains(job.Message, "wanted to delete") ||
		!strings.Contains(job.Message, "does not ask for") {
		t.Errorf("%+v", job)
	}
	if now := host.Commits(t, "main"); !slices.Equal(now, before) || len(host.Pulls("")) > 0 {
		t.Errorf("main has %v, was %v; pull requests %+v", now, before, host.Pulls(""))
	}
	job = s.Settled(s.Create("Delete all pages").ID)
	if job.Outcome != api.OutcomeChanged || job.PRLink == nil || !strings.Contains(job.Message, "waits for a review") {
		t.Errorf("%+v\n%s", job, s.Log)
	}
	if now := host.Commits(t, "main"); !slices.Equal(now, before) || len(host.Pulls("")) != 1 {
		t.Errorf("main has %v, was %v; pull requests %+v", now, before, host.Pulls(""))
	}
	// What is no deletion goes to main as before.
	if job = s.Settled(s.CreateWith(`replace "Welcome" with "Hello" in index.md`,
		"builtin").ID); job.Outcome != api.OutcomeChanged || job.PRLink != nil ||
		len(host.Commits(t, "main")) != len(before)+1 {
		t.Errorf("%+v, main has %v", job, host.Commits(t, "main"))
	}
}
