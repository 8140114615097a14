package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"docent/api"
	"docent/tests/harness"
)

// aPublishedSite plays the site that is built of a repository: values are filled in, a page is shown elsewhere than its file
// says, and one is made by the generator alone. It can be rebuilt.
func aPublishedSite(t *testing.T) (address string, rebuild func(release string)) {
	t.Helper()
	var release atomic.Value
	release.Store("7.4.1")
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := func(title, file, body string) {
			edit := ""
			if file != "" {
				edit = `<a class="theme-edit-this-page" href="https://code.example.com/acme/kettle/edit/main/docs/` + file + `">Edit this page</a>`
			}
			fmt.Fprintf(w, `<html lang="en"><head><title>%s | Kettle</title></head><body><nav>Menu</nav><main><article><h1>%[1]s</h1>%s%s</article></main></body></html>`, title, body, edit)
		}
		switch strings.TrimSuffix(r.URL.Path, "/") {
		case "/manual":
			page("Kettle", "index.md", "<p>The kettle boils water.</p>")
		case "/manual/setup/unpack":
			page("Unpack the kettle", "install.md", fmt.Sprintf(
				`<h2 id="which-release">Which release</h2><p>Take release %s of the tarball out of its box.</p>`, release.Load()))
		case "/manual/boil":
			page("Boil water", "", "<p>Press the blue button, wait until the kettle whistles, and pour the water into the cup at once.</p>")
		case "/manual/api":
			page("Functions", "", `<dl><dt id="kettle.whistle">kettle.whistle()</dt><dd>Blows the whistle for nine seconds.</dd></dl>`)
		case "/manual/plans":
			page("Plans", "internal/plans.md", "<p>The secret name of the next kettle is Vesuvius.</p>")
		case "/manual/sitemap.xml":
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, `<urlset>`)
			for _, at := range []string{"", "setup/unpack/", "boil/", "api/", "plans/"} {
				fmt.Fprintf(w, "<url><loc>%s/manual/%s</loc></url>", server.URL, at)
			}
			fmt.Fprint(w, `</urlset>`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/manual", func(to string) { release.Store(to) }
}

// Readers are answered from what the site publishes; jobs edit the file that a page is made of.
func TestReadersSeeThePublishedSiteAndJobsEditItsFiles(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	site, rebuild := aPublishedSite(t)
	repository := harness.WriteFiles(t, map[string]string{
		"mkdocs.yml":             "site_name: Kettle\nplugins: [macros]\nextra: {release: 7.4.1}\n",
		"docs/index.md":          "# Kettle\n\nThe kettle boils water.\n",
		"docs/install.md":        "# Unpack\n\n## Which release\n\nTake release {{ unknown(release) }} of the tarball out of its box.\n",
		"docs/boil.md":           "# Boil water\n\nPress the blue button, wait until the kettle whistles, and pour the water into the cup at once.\n",
		"docs/internal/plans.md": "# Plans\n\nThe secret name of the next kettle is Vesuvius.\n",
		"docs/fragment.md":       "# A fragment\n\nThis is on no page of the site.\n",
	})
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "kettle", repository, "--docs-dir", "docs", "--exclude", "internal/**", "--public",
		"--site-url", site, "--allow-private", "--answers-from", "site")
	ask := func(question string) (string, []string) { t.Helper(); return harness.Answer(t, server, p, question) }
	const which = "Which release of the tarball do I take out of its box?"
	if text, sources := ask(which); !strings.Contains(text, "7.4.1") || len(sources) == 0 || !strings.HasPrefix(sources[0], site+"/setup/unpack/") {
		t.Errorf("%s\n%v", text, sources)
	}
	if text, sources := ask("What is the secret name of the next kettle?"); strings.Contains(text+strings.Join(sources, " "), "Vesuvius") {
		t.Errorf("what the project leaves out is answered: %s", text)
	}

	out := harness.Docent(t, "project", "check", p.ID, "--data", data)
	for _, want := range []string{
		"5 pages on the site, 4 files; 3 mapped, 1 file publishes nothing, 2 pages generated",
		"Readers are answered from the site, as the project says",
		site + "/setup/unpack/", "fragment.md", "On the site, and never answered: 2",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the check does not say %q:\n%s", want, out)
		}
	}

	// The job is given the page's address, and changes the file that the page is made of.
	harness.Docent(t, "job", "create", "--wait", "--url", server.URL, "--project", p.ID, "--key", p.Admin,
		fmt.Sprintf(`In %s/setup/unpack/, replace "tarball" with "package".`, site))
	pull := harness.DecodeOutput[api.PullRequest](t, harness.Docent(t, "pull", "list", "--data", data, "--project", p.ID, "--json"))
	if diff := harness.Docent(t, "pull", "diff", string(pull.ID), "--data", data); !strings.Contains(diff, "+++ b/docs/install.md") ||
		!strings.Contains(diff, "+Take release {{ unknown(release) }} of the package") || strings.Count(diff, "+++ ") != 1 {
		t.Errorf("the pull request changes:\n%s", diff)
	}

	// What was pushed and is not on the site yet is told from what is.
	told := func(want string) {
		t.Helper()
		if out := harness.Docent(t, "project", "check", p.ID, "--data", data); !strings.Contains(out, want) {
			t.Errorf("the check does not say %q:\n%s", want, out)
		}
	}
	boil := filepath.Join(repository, "docs", "boil.md")
	for _, step := range [][2]string{
		{"# Boil water\n\nPress the blue button, wait until the kettle whistles, and pour the water into the cup at once.\n\nThen rinse it.\n\nIt is done.\n", ""},
		{"# Boil water\n\nPress the red lever, hold it down, and pour the water into the cup at once.\n\nThen rinse it.\n", "Not on the site yet: 1 change"},
		{"# Boil water\n\nPress the blue button, wait until the kettle whistles, and pour the water into the cup at once.\n", "The newest change that is seen on the site is commit "},
	} {
		if err := os.WriteFile(boil, []byte(step[0]), 0o644); err != nil {
			t.Fatal(err)
		}
		told(step[1])
	}

	// The site is the truth until it is built again.
	rebuild("8.0.0")
	if text, _ := ask(which); !strings.Contains(text, "7.4.1") {
		t.Errorf("before the site is read again: %s", text)
	}
	harness.Docent(t, "index", p.ID, "--data", data)
	if text, _ := ask(which); !strings.Contains(text, "8.0.0") {
		t.Errorf("after the site was built again: %s", text)
	}

	// Switching reads nothing again.
	if out := harness.Docent(t, "project", "set", p.ID, "--data", data, "--answers-from", "source"); !strings.Contains(out, "Readers are answered from the repository") {
		t.Errorf("switched: %s", out)
	}
	if text, _ := ask(which); strings.Contains(text, "8.0.0") {
		t.Errorf("from the source: %s", text)
	}
}

// A site that cannot be read takes nothing from readers, and fails no command.
func TestReadersAreAnsweredFromTheRepositoryWhereTheSiteCannotBeRead(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	site, _ := aPublishedSite(t) // on this machine, which only --allow-private opens
	out := harness.Docent(t, "project", "add", "tea", "--data", data, "--domain", "tea.example.com", "--site-url", site,
		"--source", harness.WriteFiles(t, harness.OnePage))
	check := func() string { t.Helper(); return harness.Docent(t, "project", "check", "tea", "--data", data) }
	first := check()
	harness.Docent(t, "index", "tea", "--data", data)
	harness.NewServer(t, data, "--config", harness.SettingsFile(t, "poll_interval = \"1s\"\n"))
	harness.Until(t, "the server has indexed what it has of the site, which is no page", func() bool {
		list, err := os.ReadDir(filepath.Join(data, "index"))
		return err == nil && len(list) == 2
	})
	for _, step := range []string{out, first, check()} {
		if !strings.Contains(step, "Readers are answered from the repository: the site couldn't be read") || !strings.Contains(step, "--allow-private") {
			t.Errorf("it is not said that the site could not be read:\n%s", step)
		}
	}
}
