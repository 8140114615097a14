package docs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// An exampleSite is a folder of examples/sites: a site as its owner would write it, how its generator builds it, and
// what a reader does on it.
type exampleSite struct {
	name  string // of the folder
	kind  api.SiteKind
	flags []string // of `docent project add`, where the site's own configuration does not say enough
	host  string   // its configuration says that readers find it at https://HOST
	// needs is what builds it: a command, or a file relative to the repository. scripts/install-generators installs it.
	needs string
	build []string // the command, in the site's folder; none if the folder itself is the site
	out   string   // where the command writes the site, relative to the folder
	visit siteVisit
}

// A siteVisit is what testdata/clients/sites.mjs does on a site.
type siteVisit struct {
	Start    string `json:"start"`    // the page where the reader begins
	Shortcut string `json:"shortcut"` // that opens the assistant
	// OwnSearch is the site's own search as a CSS selector, where there is one: Control+k opens it, and not the assistant.
	OwnSearch string `json:"ownSearch,omitempty"`
	Question  string `json:"question"`
	Says      string `json:"says"`   // in the answer
	Cites     string `json:"cites"`  // the first source: path and heading
	Next      string `json:"next"`   // a link of the site's navigation that is on the cited page, as it is read
	Leads     string `json:"leads"`  // the heading of the page that it leads to
	Client    bool   `json:"client"` // the generator's own program changes pages, without a load
	Toggle    string `json:"toggle"` // the site's button or select for light and dark, as a CSS selector
	// Choices says that the button opens a list to choose from.
	Choices bool `json:"choices,omitempty"`
}

var exampleSites = []exampleSite{
	{name: "plain-html", kind: api.SitePlain, host: "kilnhand.test",
		flags: []string{"--site-url", "https://kilnhand.test"},
		visit: siteVisit{Start: "/index.html", Shortcut: "Control+k", Question: "What happens on a runaway alarm?",
			Says: "25 degrees above its target", Cites: "/guides/alarms.html#runaway", Next: "Error codes", Leads: "Error codes",
			Toggle: "#theme"}},
	{name: "vitepress", kind: api.SiteVitePress, host: "hivelog.test",
		needs: "examples/sites/vitepress/node_modules/.bin/vitepress", build: []string{"npm", "run", "build"},
		out: "docs/.vitepress/dist",
		visit: siteVisit{Start: "/guide/install", Shortcut: "Control+i", OwnSearch: ".VPLocalSearchBox",
			Question: "When does the swarm alarm fire?", Says: "between 225 and 285 Hz", Cites: "/guide/swarming#the-swarm-alarm", Next: "Data format", Leads: "Data format",
			Client: true, Toggle: ".VPNavBarAppearance .VPSwitchAppearance"}},
	{name: "docusaurus", kind: api.SiteDocusaurus, host: "switchyard.test",
		needs: "examples/sites/docusaurus/node_modules/.bin/docusaurus", build: []string{"npm", "run", "build"}, out: "build",
		visit: siteVisit{Start: "/guides/connect", Shortcut: "Control+k", Question: "How fast does the fast clock run?",
			Says: "six times as fast as yours", Cites: "/guides/timetable#the-fast-clock", Next: "Faults", Leads: "Faults",
			Client: true, Toggle: "button[aria-label*='dark and light mode']"}},
	{name: "starlight", kind: api.SiteStarlight, host: "lantern.test",
		needs: "examples/sites/starlight/node_modules/.bin/astro", build: []string{"npm", "run", "build"}, out: "dist",
		visit: siteVisit{Start: "/start/install/", Shortcut: "Control+k", Question: "How do I turn a feature off at once?",
			Says: "lantern kill new-checkout", Cites: "/guides/kill-switches/#turn-a-feature-off-at-once",
			Next: "Clean up old flags", Leads: "Clean up old flags", Toggle: "starlight-theme-select select"}},
	{name: "nextra", kind: api.SiteNext, host: "ferry.test", flags: []string{"--site-url", "https://ferry.test"},
		needs: "examples/sites/nextra/node_modules/.bin/next", build: []string{"npm", "run", "build"}, out: "out",
		visit: siteVisit{Start: "/start/installation/", Shortcut: "Control+k",
			Question: "How do I change how often a job is retried?", Says: "Set attempts and backoff",
			Cites: "/guides/retries/#change-how-often-a-job-is-retried", Next: "Schedules", Leads: "Schedules", Client: true,
			Toggle: "button[title='Change theme']", Choices: true}},
	{name: "mkdocs", kind: api.SiteMkDocs, host: "sieve.test",
		needs: "mkdocs", build: []string{"mkdocs", "build", "--strict"}, out: "site",
		visit: siteVisit{Start: "/start/install/", Shortcut: "Control+k", Question: "How do I skip bad rows?",
			Says: "--quarantine", Cites: "/guides/dirty-files/#quarantine", Next: "Large files", Leads: "Large files",
			Client: true, Toggle: "form[data-md-component=palette] label"}},
	{name: "hugo", kind: api.SiteHugo, host: "beacon.test",
		needs: "bin/hugo", build: []string{"../../../bin/hugo", "--cleanDestinationDir"}, out: "public",
		visit: siteVisit{Start: "/start/install/", Shortcut: "Control+k", Question: "How do I silence a check for an hour?",
			Says: "beacon silence shop --for 1h", Cites: "/guides/maintenance/#silence-a-check-for-an-hour", Next: "Alerts",
			Leads: "Alerts", Toggle: "#theme"}},
}

// TestExampleSites builds every example site with its real generator and reads it in Chromium, in light and dark: the
// site and Docent are two hosts behind TLS, the site keeps to the policy of its own _headers file, and only the key is
// put into the place where its owner would put it.
func TestExampleSites(t *testing.T) {
	t.Parallel()
	chromium := harness.NeedsBrowser(t)
	folders, err := os.ReadDir("../../examples/sites")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		known := slices.ContainsFunc(exampleSites, func(s exampleSite) bool { return s.name == f.Name() })
		if f.IsDir() && !known {
			t.Errorf("examples/sites/%s is not tested: it needs an entry of exampleSites", f.Name())
		}
	}
	for _, s := range exampleSites {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			built := s.built(t)
			data := filepath.Join(t.TempDir(), "data")
			server := harness.NewServer(t, data)
			p := harness.Project{ID: s.name, Domain: s.host}
			harness.Docent(t, append([]string{"project", "add", p.ID, "--data", data, "--domain", p.Domain, "--source",
				s.folder()}, s.flags...)...)
			p.Assistant = harness.NewKey(t, data, p.ID, "assistant", "--origin", "https://"+s.host)
			site := httptest.NewUnstartedServer(builtSite{built, p.Assistant})
			quiet := log.New(io.Discard, "", 0) // browsers break connections off
			behind := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, ErrorLog: quiet,
				Rewrite: func(r *httputil.ProxyRequest) {
					r.SetURL(&url.URL{Scheme: "http", Host: server.Listen})
					r.SetXForwarded()
				}})
			for _, s := range []*httptest.Server{site, behind} {
				s.EnableHTTP2, s.Config.ErrorLog = true, quiet
				s.StartTLS()
				defer s.Close()
			}
			s.addressesAreTheGenerators(t, data, server, p, site, built)
			s.inChromium(t, chromium, site.Listener.Addr().String(), behind.Listener.Addr().String())
		})
	}
}

func (s exampleSite) folder() string {
	folder, err := filepath.Abs(filepath.Join("../../examples/sites", s.name))
	if err != nil {
		panic(err)
	}
	return folder
}

// built is the folder with the built site. What was built of the same sources before is taken from bin/sites.
func (s exampleSite) built(t *testing.T) string {
	t.Helper()
	if len(s.build) == 0 {
		return s.folder()
	}
	needed := filepath.Join("../..", s.needs)
	if !strings.Contains(s.needs, "/") {
		needed = s.needs // a command
	}
	need.Peer(t, "the site", "scripts/install-generators", needed)
	sources := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	sources.Dir = s.folder()
	names, err := sources.Output()
	if err != nil {
		t.Skipf("the site is left out: git lists its sources: %v", err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, s.build)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(s.folder(), name))
		if err != nil {
			continue // it is removed and not yet committed
		}
		fmt.Fprintln(sum, name, len(text))
		sum.Write(text)
	}
	kept := filepath.Join("../../bin/sites", fmt.Sprintf("%s-%x", s.name, sum.Sum(nil)[:8]))
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, s.build[0], s.build[1:]...)
	build.Dir = s.folder()
	build.Env = append(os.Environ(), "CI=1", "DOCUSAURUS_NO_PERSISTENT_CACHE=true", "NO_UPDATE_NOTIFIER=1", "NEXT_TELEMETRY_DISABLED=1",
		"ASTRO_TELEMETRY_DISABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", s.build, err, out)
	}
	older, err := filepath.Glob(filepath.Join("../../bin/sites", s.name+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range older {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	part := kept + ".part" // a copy that was cut off is not taken for the site
	if err := os.CopyFS(part, os.DirFS(filepath.Join(s.folder(), s.out))); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

// A builtSite serves the files of a site as static hosts do, with the headers that its _headers file names for all
// pages. The key takes the place of the one that examples print.
type builtSite struct{ dir, key string }

func (b builtSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers, err := os.ReadFile(filepath.Join(b.dir, "_headers"))
	if err != nil {
		http.Error(w, "the site has no _headers file: "+err.Error(), http.StatusInternalServerError)
		return
	}
	for line := range strings.Lines(string(headers)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			w.Header().Set(name, value)
		}
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	info, err := os.Stat(filepath.Join(b.dir, filepath.FromSlash(name)))
	switch {
	case err == nil && info.IsDir() && !strings.HasSuffix(r.URL.Path, "/"):
		http.Redirect(w, r, r.URL.Path+"/", http.StatusMovedPermanently)
		return
	case err == nil && info.IsDir():
		name = path.Join(name, "index.html")
	case err != nil:
		name += ".html"
	}
	status := http.StatusOK
	text, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name)))
	if err != nil || name == "_headers" {
		status = http.StatusNotFound
		name = "404.html"
		text, _ = os.ReadFile(filepath.Join(b.dir, name)) // not every site has one
	}
	if ext := path.Ext(name); ext == ".html" || ext == ".js" {
		text = bytes.ReplaceAll(text, []byte("dct_pub_..."), []byte(b.key))
	}
	if kind := contentTypes[path.Ext(name)]; kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// contentTypes are said whatever the system has; others are found by what is in the file.
var contentTypes = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".json": "application/json", ".xml": "application/xml", ".wasm": "application/wasm", ".woff2": "font/woff2"}

// addressesAreTheGenerators holds what Docent makes of the sources against what the generator made of them: the kind of
// site, the address of every page, and the anchor of every section.
func (s exampleSite) addressesAreTheGenerators(t *testing.T, data string, server *harness.Server, p harness.Project,
	site *httptest.Server, built string) {
	t.Helper()
	var check struct {
		Site      api.SiteKind
		Address   string
		Pages     []struct{ Path, URL, Title, State string }
		DeadLinks []any
		Warnings  []any
	}
	if err := json.Unmarshal([]byte(harness.Docent(t, "project", "check", p.ID, "--data", data, "--json")),
		&check); err != nil {
		t.Fatal(err)
	}
	if check.Site != s.kind || check.Address != "https://"+s.host || len(check.DeadLinks)+len(check.Warnings) > 0 {
		t.Errorf("the site is %s at %s, want %s at %s; dead links %v, warnings %v", check.Site, check.Address, s.kind, s.host,
			check.DeadLinks, check.Warnings)
	}
	bodies := map[string]string{} // of pages, by their addresses
	get := func(address string) (int, string) {
		client := *site.Client()
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		resp, err := client.Get(strings.Replace(address, "https://"+s.host, site.URL, 1))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	var published []string
	for _, page := range check.Pages {
		if page.State != "published" {
			continue
		}
		published = append(published, strings.TrimSuffix(page.URL, "/"))
		status, body := get(page.URL)
		if status != http.StatusOK || !strings.Contains(body, page.Title) {
			t.Errorf("%s: the site answers %s with %d, or does not have %q", page.Path, page.URL, status, page.Title)
		}
		bodies[page.URL] = body
		var hits []struct {
			Path, Content string
			Metadata      struct{ URL string }
		}
		body2 := map[string]any{"query": page.Title, "pageSize": 50}
		if err := server.Client(p.Assistant).Post(t.Context(), "/v1/search/"+p.Domain, body2, &hits, client.Header("Origin", "https://"+s.host)); err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			address, fragment, ok := strings.Cut(h.Metadata.URL, "#")
			if bodies[address] == "" {
				_, bodies[address] = get(address)
			}
			if ok && !hasID(bodies[address], fragment) {
				t.Errorf("the page has no anchor of that name: %s", h.Metadata.URL)
			}
			if strings.HasSuffix(h.Path, ".html") && strings.Contains(h.Content, "</") {
				t.Errorf("readers get the tags of an HTML page: %s", h.Content)
			}
		}
	}
	if len(published) < 6 {
		t.Errorf("the site has %d pages, want at least 6", len(published))
	}
	s.pagesAreTheGenerators(t, built, published)
	var sitemap struct {
		URL []struct {
			Loc string `xml:"loc"`
		} `xml:"url"`
	}
	if status, text := get("https://" + s.host + "/sitemap.xml"); status == http.StatusOK {
		if err := xml.Unmarshal([]byte(text), &sitemap); err != nil {
			t.Fatal(err)
		}
		var listed []string
		for _, u := range sitemap.URL {
			listed = append(listed, strings.TrimSuffix(u.Loc, "/"))
		}
		slices.Sort(listed)
		slices.Sort(published)
		if !slices.Equal(listed, published) {
			t.Errorf("the generator's sitemap has\n%q\nDocent has\n%q", listed, published)
		}
	}
}

// pagesAreTheGenerators holds the addresses that Docent publishes against the pages that the generator wrote, those for
// addresses that do not exist left aside.
func (s exampleSite) pagesAreTheGenerators(t *testing.T, built string, published []string) {
	t.Helper()
	bare := func(address string) string {
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(address, "https://"+s.host), ".html"), "/index")
	}
	var wrote, docents []string
	for _, address := range published {
		docents = append(docents, bare(address))
	}
	err := fs.WalkDir(os.DirFS(built), ".", func(name string, d fs.DirEntry, err error) error {
		first, _, _ := strings.Cut(strings.TrimSuffix(name, ".html"), "/")
		if err == nil && !d.IsDir() && path.Ext(name) == ".html" && first != "404" && first != "_not-found" {
			wrote = append(wrote, bare("/"+name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(wrote)
	slices.Sort(docents)
	if !slices.Equal(wrote, docents) {
		t.Errorf("the generator wrote\n%q\nDocent has\n%q", wrote, docents)
	}
}

// hasID tells whether a page has an element with that id, as a fragment of an address names it.
func hasID(page, fragment string) bool {
	id, err := url.PathUnescape(fragment)
	return err == nil && regexp.MustCompile(`\sid=["']?`+regexp.QuoteMeta(id)+`["'\s>]`).MatchString(page)
}

// inChromium has a reader use the site. Only its host and Docent's are there; both are this test's servers.
func (s exampleSite) inChromium(t *testing.T, chromium, site, behind string) {
	t.Helper()
	settings, err := json.Marshal(struct {
		siteVisit
		Site     string `json:"site"`
		Docent   string `json:"docent"`
		Hosts    string `json:"hosts"`
		Chromium string `json:"chromium"`
	}{s.visit, "https://" + s.host, "https://docent.example.com",
		fmt.Sprintf("MAP %s %s, MAP docent.example.com %s, MAP * ~NOTFOUND", s.host, site, behind), chromium})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "sites.mjs")
	cmd.Dir = harness.ClientsDir
	cmd.Env = append(os.Environ(), "DOCENT_SITE="+string(settings))
	var problems, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &problems, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("sites.mjs: %v\n%s%s", err, problems.String(), wrong.String())
	}
	if problems.Len() > 0 {
		t.Errorf("the widget on the site is not as it should be:\n%s", problems.String())
	}
}

var siteFence = regexp.MustCompile("(?ms)^```[a-z]+ ([^ \\n]+)\\n(.*?)^```$")

// TestThePageOfSitesShowsTheExamples holds the page about generators against the sites of examples/sites: what its sections
// show of a file is in that file, and each shows the script, as it is added there.
func TestThePageOfSitesShowsTheExamples(t *testing.T) {
	t.Parallel()
	lines := func(text string) string {
		var all strings.Builder
		for line := range strings.Lines(text) {
			all.WriteString(strings.TrimSpace(line) + "\n")
		}
		return all.String()
	}
	page, err := os.ReadFile("../../docs/assistant/sites.mdx")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	if len(sections) != len(exampleSites) {
		t.Errorf("the page has %d sections, and there are %d sites", len(sections), len(exampleSites))
	}
	for _, s := range exampleSites {
		i := slices.IndexFunc(sections, func(section string) bool { return strings.Contains(section, s.host) })
		if i < 0 {
			t.Errorf("docs/assistant/sites.mdx has no section of %s", s.name)
			continue
		}
		shown := ""
		for _, m := range siteFence.FindAllStringSubmatch(sections[i], -1) {
			file, err := os.ReadFile(filepath.Join(s.folder(), filepath.FromSlash(m[1])))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(lines(string(file)), lines(m[2])) {
				t.Errorf("docs/assistant/sites.mdx shows of %s/%s what is not there:\n%s", s.name, m[1], m[2])
			}
			shown += m[2]
		}
		for _, want := range []string{"https://docent.example.com/widget/v1.js", s.host, "dct_pub_..."} {
			if !strings.Contains(shown, want) {
				t.Errorf("docs/assistant/sites.mdx shows of %s no file with %q", s.name, want)
			}
		}
	}
}
