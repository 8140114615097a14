package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"docent/internal/testing/need"
	"docent/model/modeltest"
	"docent/tests/harness"
	"docent/web"
)

// The console in a real browser: Chromium, the program itself, a real repository. scripts/install-browser installs what
// this needs; without it these tests say that they are left out.

// A consoleSite is a server with what a documentation team has after a while: questions and answers, ratings, jobs with
// their pull requests, keys.
type consoleSite struct {
	*harness.Server
	project harness.Project
	source  string
}

// newConsoleSite fills a data directory through the program's own commands and its public API. So many conversations and
// jobs of the last half year are made up.
func newConsoleSite(t *testing.T, conversations, jobs int) *consoleSite {
	t.Helper()
	source := filepath.Join(t.TempDir(), "docs")
	if err := errors.Join(harness.Tidepool(source), os.Mkdir(filepath.Join(source, ".docent"), 0o755),
		os.WriteFile(filepath.Join(source, ".docent", "typos.md"), []byte("fix typos\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	s := &consoleSite{source: source, project: harness.NewProject(t, data, "tidepool", source)}
	seed := exec.CommandContext(t.Context(), harness.Self(t), "bench", "seed", "--data", data, "--project", s.project.ID,
		"--conversations", strconv.Itoa(conversations), "--jobs", strconv.Itoa(jobs))
	seed.Env = harness.Environment(t)
	out, err := seed.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", harness.LastLines(string(out), 1))
	s.Server = harness.NewServer(t, data)
	readers := s.Client(s.project.Assistant)
	thread := ""
	for i, question := range []string{"How do I install Tidepool?", "And on a second machine?", "Which ports does it need?",
		"Does it run on the moon?", "How do I bake sourdough bread with it?", "What is <script>alert(1)</script> for?"} {
		if i != 1 {
			thread = ""
		}
		q, err := harness.Ask(t.Context(), readers, s.project, thread, question)
		if err != nil {
			t.Fatal(err)
		}
		thread = string(q.Thread)
	}
	for _, prompt := range []string{`replace "Tidepool" with "Tide Pool" everywhere`, "Make everything better, please.",
		`create page trying-tidepool.md titled "Trying <b>Tidepool</b>" with content: The agent made this page.`} {
		_, err := harness.TryDocent(t, "job", "create", "--url", s.URL, "--project", s.project.ID, "--key", s.project.Admin,
			"--wait", prompt)
		if err != nil && !strings.Contains(err.Error(), "was not understood") { // which one of them is not
			t.Fatal(err)
		}
	}
	harness.Docent(t, "automation", "add", "--data", data, "--project", s.project.ID, "--name", "typos", "--cron",
		"0 6 * * 1", "--prompt", ".docent/typos.md")
	hook, _, _ := strings.Cut(harness.Docent(t, "webhook", "add", "https://hooks.example.com/docs", "--data", data, "--project", s.project.ID), "\n")
	if _, err := harness.TryDocent(t, "webhook", "test", hook, "--data", data); err == nil {
		t.Fatal("hooks.example.com took an event") // a delivery that failed is there to be looked at
	}
	return s
}

// notVisited are the routes for reading that the browser does not look at, each with the reason.
var notVisited = map[string]string{
	"/assets/:file":    "it is loaded by every page",
	"/favicon.svg":     "it is loaded by every page",
	"/favicon.ico":     "it is the same picture",
	"/login/oidc":      "it leads to a provider, where one is configured; web's own tests have one",
	"/login/callback":  "a provider leads to it",
	"/oauth/authorize": "a program leads to it, with what it wants; the tests of OAuth have one",
	"/console/:org/:domain/playground/answers/:thread": "events for the playground",
	"/console/:org/:domain/jobs/:id/steps/:seq":        "a part of the job's page, which the first hour opens",
	"/console/setup/:id/indexing":                      "it leads on when the reading has ended; the first hour passes it",
	"/console/:org/:domain/sources/task/:task":         "it leads on when the task has ended, which here it has at once",
}

// Every page that the program has is looked at in a browser: those that are added later are looked at by themselves. In
// full this is axe in light and dark, the width of a phone, layout shifts, weight, the keyboard, and no JavaScript;
// otherwise it is what one look in light shows. DOCENT_TEST_LOOK=keyboard keeps to that.
func TestEveryPageInABrowser(t *testing.T) {
	t.Parallel()
	chromium := harness.NeedsBrowser(t)
	site := newConsoleSite(t, 300, 60)
	settings := site.settings(chromium)
	if !need.All && settings["only"] == "" {
		settings["only"] = "light"
	}
	harness.InBrowser(t, "pages.mjs", settings, site.Server)
}

// settings are what a script needs to find every page.
func (s *consoleSite) settings(chromium string) map[string]any {
	var routes []string
	for method, pattern := range new(web.Server).Routes() {
		if method == http.MethodGet && !slices.Contains(routes, pattern) {
			routes = append(routes, pattern)
		}
	}
	return map[string]any{"chromium": chromium, "enter": s.link(), "paths": []string{strings.TrimPrefix(s.link(), s.URL)},
		"routes": routes, "left": notVisited, "org": "default", "domain": s.project.Domain, "folder": s.source,
		"only": os.Getenv("DOCENT_TEST_LOOK")}
}

// link is one that lets the operator in once.
func (s *consoleSite) link() string {
	s.T.Helper()
	out := harness.Docent(s.T, "console", "--data", s.Data)
	link := harness.OneTimeLink.FindString(out)
	if link == "" {
		s.T.Fatalf("docent console prints no link: %s", out)
	}
	return link
}

// pictures are those that the documentation shows, with the page that each is of.
var pictures = [][]string{
	{"overview", "…"}, {"keys", "…/keys"}, {"conversations", "…/conversations"}, {"conversation", "…/conversations/:thread"},
	{"analytics", "…/analytics"}, {"gaps", "…/gaps"}, {"jobs", "…/jobs"}, {"job", "…/jobs/:id"}, {"pulls", "…/pulls"},
	{"pull", "/pulls/:id"}, {"automations", "…/automations"}, {"playground", "…/playground"}, {"sources", "…/sources"},
	{"settings", "…/settings"}, {"people", "/console/:org/people"}, {"audit", "/console/:org/audit"},
	{"system", "/console/system"},
}

// TestScreenshots makes pictures of every page, in bin/screenshots, and those of the documentation. It is run by
// scripts/screenshots.
func TestScreenshots(t *testing.T) {
	if os.Getenv("DOCENT_TEST_SCREENSHOTS") == "" {
		t.Skip("scripts/screenshots runs this")
	}
	chromium := harness.NeedsBrowser(t)
	site := newConsoleSite(t, 300, 60)
	settings := site.settings(chromium) // DOCENT_TEST_LOOK=docs makes those of the documentation alone
	for name, dir := range map[string]string{"out": "../../bin/screenshots", "docs": "../../docs/images/console"} {
		path, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		settings[name] = path
	}
	settings["pictures"] = pictures
	harness.InBrowser(t, "screenshots.mjs", settings, site.Server)
}

// TestConsoleFigures measures the pages on a busy site. It is run by scripts/console-figures.
func TestConsoleFigures(t *testing.T) {
	var conversations, jobs int
	if _, err := fmt.Sscan(os.Getenv("DOCENT_TEST_FIGURES"), &conversations, &jobs); err != nil {
		t.Skip("scripts/console-figures runs this")
	}
	chromium := harness.NeedsBrowser(t)
	site := newConsoleSite(t, conversations, jobs)
	harness.InBrowser(t, "figures.mjs", site.settings(chromium), site.Server)
}

// TestTheFirstHourInABrowser is what somebody does who has just started the server: from the link that it prints to an
// answer that a merged pull request has changed.
func TestTheFirstHourInABrowser(t *testing.T) {
	t.Parallel()
	chromium := harness.NeedsBrowser(t)
	harness.BuildReactPage(t)
	repository := harness.NewGitServer(t, map[string]string{
		"index.md": "---\ntitle: Harbour\n---\n\n# Harbour\n\nThe harbour has three piers. See [ferries](ferries.md).\n",
		"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n" +
			"## Tickets\n\nTickets cost four coins and are sold on board.\n",
		"lighthouse.md": "---\ntitle: Lighthouse\n---\n\n# Lighthouse\n\nThe lighthouse stands at the end of the north mole.\n",
	}, nil)
	// A language model that stops before each step until the script lets it go on.
	writer := harness.NewProvider(t, []modeltest.Script{{Steps: []modeltest.Step{
		{Calls: []modeltest.Call{harness.ReadCall("lighthouse.md")}},
		{Hold: "edit", Calls: []modeltest.Call{harness.EditCall("lighthouse.md", "The lighthouse stands", "The lighthouse is white and stands")}},
		{Hold: "finish", Calls: []modeltest.Call{harness.FinishCall}},
		{Calls: []modeltest.Call{harness.FinishCall}},
	}}})
	config := harness.SettingsFile(t, writer.Config("writer", "openai")+"prompt_price = 2.0\ncompletion_price = 8.0\n")
	server := harness.NewServer(t, filepath.Join(t.TempDir(), "data"), "--config", config)
	link := server.Printed(harness.OneTimeLink)
	pages := httptest.NewServer(http.StripPrefix("/react", http.FileServer(http.Dir(filepath.Join(harness.ReactDir,
		"dist")))))
	defer pages.Close()
	harness.InBrowser(t, "firsthour.mjs", map[string]any{"chromium": chromium, "enter": link, "repository": repository.URL,
		"model": writer.URL, "chat": pages.URL, "foreign": []string{pages.URL}}, server)
	if page := repository.Git(t, "show", "main:ferries.md"); !strings.Contains(page, "free of charge, on a leash") {
		t.Errorf("the merge is not in the repository:\n%s", page)
	}
}
