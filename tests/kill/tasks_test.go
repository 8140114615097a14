package kill

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/secrets"
	"docent/tests/harness"
)

// TestTasksSurviveKills kills the real server at random moments while it has background work of every kind: webhooks tell
// of jobs that an automation starts, people comment on a pull request, and weekly reports are due. Whatever was accepted is
// done, what goes to one target in order, and what comes again has the id that it had.
func TestTasksSurviveKills(t *testing.T) {
	harness.SkipShort(t)
	t.Parallel()
	comments, kills, reporting := 4, 2, 3
	if need.All {
		comments, kills = 10, 4
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)

	host := forgetest.NewStandIn(t)
	host.Do(func() { host.Tokens, host.People = []string{"a-token"}, map[string]string{"maria": "write"} })
	harness.Setenv(t, "COMMENTED_TOKEN", "a-token")
	harness.Setenv(t, "COMMENTED_WEBHOOK", reviewSecret)
	data, config := filepath.Join(t.TempDir(), "data"), harness.AllowLoopback(t)
	commentedOn := harness.NewProject(t, data, "harbour", "", "--host", string(api.HostGitHub), "--host-url", host.URL, "--repository",
		"acme/docs", "--token-env", "COMMENTED_TOKEN", "--webhook-env", "COMMENTED_WEBHOOK")
	daily := harness.NewProject(t, data, "daily", harness.WriteFiles(t, map[string]string{"index.md": "# Daily\n\nNews.\n",
		".docent/fresh.md": `append "Again." to index.md`}))
	harness.Docent(t, "automation", "add", "fresh", "--data", data, "--project", daily.ID, "--prompt", ".docent/fresh.md", "--on-push-of",
		"acme/code", "--daily-cap", "1000")
	readers := harness.NewReportReceiver(t)
	for n := range reporting {
		p := harness.NewProject(t, data, fmt.Sprintf("reported%d", n), harness.WriteFiles(t,
			map[string]string{"index.md": "# Page\n"}))
		addOldWebhook(t, data, p.ID, readers.URL+"/"+p.ID, api.EventReportWeekly)
	}
	holdJournal(t, data)

	c := &commented{ModelledServer: &harness.ModelledServer{Server: harness.NewServer(t, data, "--config", config),
		Project: commentedOn}, host: host, kind: api.HostGitHub, random: rand.New(rand.NewPCG(seed, 1))}
	host.Do(func() { host.Fault = c.fault })
	receiver := harness.NewHookReceiver(t, nil, seed)
	var hook string
	hook, receiver.Secret = harness.AddTestWebhook(t, data, config, daily.ID, receiver.URL)
	job := c.Settled(c.Create(`replace "Run it." with "Word 0." in guide/setup.md`).ID)
	number, accepted := host.Pulls("")[0].Number, 0
	for n := range comments {
		for range 2 {
			if _, err := harness.TryDocent(t, "automation", "run", "fresh", "--data", data); err == nil {
				accepted++
			}
		}
		host.Say(number, "maria", fmt.Sprintf(`@docent replace "Word %d." with "Word %d." in guide/setup.md`, n, n+1))
		c.answered(number, n+1, kills)
	}
	host.Do(func() { host.Fault = nil })
	c.Settled(job.ID)
	harness.Until(t, "every report is taken", func() bool { return len(readers.Taken()) == reporting })
	harness.Until(t, "every run has a job", func() bool {
		return !strings.Contains(harness.Docent(t, "automation", "list", "--data", data, "--json"), `"status":"accepted"`)
	})
	awaitIdle(t, c.Server, daily)
	awaitDelivered(t, data, config, hook)
	c.Stop()

	if got := host.Replies(number); len(got) != comments {
		t.Errorf("%d answers to %d comments: %+v", len(got), comments, got)
	}
	if got, want := host.Git(t, "show", host.Pulls("")[0].Head+":guide/setup.md"), fmt.Sprintf("Word %d.", comments); !strings.Contains(got, want) {
		t.Errorf("after the comments the page says %q, want %q", got, want)
	}
	for id, weeks := range readers.Taken() {
		if len(weeks) != 1 {
			t.Errorf("%s was sent the reports %v", id, weeks)
		}
	}
	runs := runsOf(t, data, daily.ID)
	facts := slices.DeleteFunc(journaledFacts(t, data, c.URL), func(f fact) bool {
		return !slices.ContainsFunc(runs, func(r api.AutomationRun) bool { return strings.Contains(f.key, string(r.Job)) })
	})
	ended := 0
	for _, f := range facts {
		if f.kind == api.EventJobEnded {
			ended++
		}
	}
	if len(runs) < accepted || accepted == 0 || ended != len(runs) {
		t.Errorf("%d runs were accepted, %d are stored, and jobs ended %d instructions", accepted, len(runs), ended)
	}
	for _, problem := range checkDeliveries(facts, receiver.All()) {
		t.Error(problem)
	}
}

// runsOf lists what became of the runs of a project's automation, where no server runs.
func runsOf(t *testing.T, data, project string) []api.AutomationRun {
	t.Helper()
	store, err := catalog.Open(t.Context(), "sqlite:"+filepath.Join(data, datadir.Catalog), catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	list, err := store.Automations(t.Context(), api.ProjectID(project))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	runs, err := store.Runs(t.Context(), list[0].ID, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Status != api.RunStarted {
			t.Errorf("the run %s is %s: %s", r.Key, r.Status, r.Reason)
		}
	}
	return runs
}

// addOldWebhook adds a webhook that is older than a week: if it wants weekly reports, that of the last one is due.
func addOldWebhook(t *testing.T, data, project, url string, kinds ...api.EventKind) {
	t.Helper()
	secret, err := secrets.Open(filepath.Join(data, datadir.Secrets)).Keep(api.ProjectID(project), "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz")
	if err != nil {
		t.Fatal(err)
	}
	store, err := catalog.Open(t.Context(), "sqlite:"+filepath.Join(data, datadir.Catalog), catalog.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	created := time.Now().AddDate(0, 0, -30)
	if err := store.AddWebhook(t.Context(), api.Webhook{ID: api.NewID(api.WebhookPrefix, created), Project: api.ProjectID(project),
		URL: url, Events: kinds, Secret: secret, CreatedAt: created}, 0); err != nil {
		t.Fatal(err)
	}
}
