package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api/client"
	"docent/bench/corpora"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/cmd/docent/config"
	"docent/deploy"
	"docent/internal/testing/need"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// What the documentation prints is typed as it is printed, page by page and block by block, in a shell, on a
// documentation set that is somebody else's.

// publishedPages are the pages that people read commands from.
func publishedPages(t testing.TB) []string {
	t.Helper()
	list := []string{"README.md", "examples/README.md", "examples/plain-chat/README.md", "examples/react-chat/README.md"}
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".mdx") {
			list = append(list, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// notTyped are commands that this test does not run, each with the reason. page may be empty: in all pages. Those of
// docent are parsed all the same.
var notTyped = []struct{ page, begins, reason string }{
	{"", "make ", "the target is looked up in the Makefile; CI builds, tests and runs the demo with it"},
	{"docs/deploy/install.mdx", "sudo ",
		"it changes the system, as root; deploy's tests install, upgrade and remove the package, and the commands of docent are parsed"},
	{"docs/deploy/install.mdx", "curl ", "it asks the service that systemd has started"},
	{"docs/deploy/install.mdx", "docent init", "TestFromTheBinaryToTheFirstAnswer types it at a terminal"},
	{"docs/deploy/containers.mdx", "scripts/build-image", "TestTheContainerImage runs it"},
	{"docs/deploy/containers.mdx", "docker ", "it needs a container engine; TestTheContainerImage runs the image and compose.yaml without one"},
	{"docs/deploy/containers.mdx", "skopeo ", "it needs a registry"},
	{"docs/deploy/containers.mdx", "kubectl ", "it needs a cluster; TestTheManifestsAreSound builds and checks what it applies"},
	{"docs/deploy/containers.mdx", "helm ", "it needs a cluster; TestTheChartMakesWhatTheManifestsMake renders the chart with Helm's engine"},
	{"docs/deploy/download.mdx", "brew ", "it needs Homebrew and a tap; TestTheFormulaOfAReleaseInstallsIt reads the formula"},
	{"docs/deploy/download.mdx", "go install ", "it needs a published module; TestAForkIsPublishedUnderItsOwnName installs one"},
	{"docs/deploy/download.mdx", "sha256sum ", "it needs a release; TestChecksumsOfAReleaseFit checks the sums of one"},
	{"docs/deploy/download.mdx", "tar ", "it needs a release; TestArchivesOfAReleaseHoldWhatPeopleNeed opens its archives"},
	{"docs/deploy/download.mdx", "sudo ", "it changes the system, as root; the same test"},
	{"docs/deploy/code-hosts.mdx", "docent project add docs",
		"it needs a code host; TestJobsPublishToCodeHosts plays all of them"},
	{"docs/deploy/code-hosts.mdx", "docent project token docs",
		"it needs a token; TestATokenThatWasEnteredIsKeptForTheServerAlone stores one"},
	{"docs/assistant/chat-apps.mdx", "printf ", "it needs tokens of Slack; TestTheAssistantAnswersInSlack plays Slack"},
	{"docs/assistant/chat-apps.mdx", "docent project chat docs", "it needs a token of Discord; TestTheAssistantAnswersInDiscord plays Discord"},
	{"docs/deploy/web-sites.mdx", "docent crawl preview",
		"it asks a site on the internet; TestAWebSiteIsPreviewedAddedAndFollowed asks one of its own"},
	{"docs/deploy/web-sites.mdx", "docent project add", "it reads a site on the internet; the same test"},
	{"docs/agent/follow-code.mdx", "docent check-docs", "it needs the history of a project; TestCheckDocs runs it"},
	{"docs/agent/follow-code.mdx", "docent source add docs api", "it needs a code host; TestAJobReadsTheCode has a repository"},
	{"docs/agent/follow-code.mdx", "docent job create", "it needs a language model; the same test plays one"},
	{"docs/agent/follow-code.mdx", "docent automation add pages",
		"it needs a code host; the tests of actors/automation run what it adds"},
	{"docs/deploy/web-sites.mdx", "docent source add", "it reads a site on the internet; the same test"},
	{"docs/assistant/private.mdx", "docent project set docs --reader-jwks",
		"it asks an address on the internet; TestAnAddressOfReaderKeysIsLookedAtWhenItIsSet sets others"},
	{"docs/deploy/sources.mdx", "docent source",
		"it needs a folder, a zip and issues; TestOneProjectOfFourSources has all of them"},
	{"docs/deploy/cluster.mdx", "docent serve",
		"it needs PostgreSQL; TestADatabaseServesOneDataDirectory starts servers on it where there is one"},
	{"docs/deploy/cluster.mdx", "docent journal copy",
		"it needs PostgreSQL; TestAJournalIsCopiedToPostgreSQLAndBack copies one where there is one"},
	{"docs/deploy/cluster.mdx", "openssl ", "it is for a container engine; TestTheComposeFileOfAClusterIsSound reads the file"},
	{"docs/deploy/cluster.mdx", "docker ", "it needs a container engine; the same test"},
	{"docs/deploy/cluster.mdx", "kubectl ", "it needs a cluster; TestTheManifestsAreSound builds and checks what it applies"},
	{"docs/operate/load.mdx", "docent bench", "it measures for minutes; TestScripts has the bench at work on small loads"},
	{"README.md", "make bench", "it measures for minutes; TestScripts has the bench at work on small loads"},
	{"examples/plain-chat/README.md", "python3 -m http.server",
		"it serves until it is stopped; TestExamplePagesInABrowser serves the page"},
	{"examples/plain-chat/README.md", "xdg-open ", "it opens a browser; TestExamplePagesInABrowser has one"},
	{"examples/react-chat/README.md", "npm ", "TestExamplePagesInABrowser runs the build"},
	{"examples/react-chat/README.md", "xdg-open ", "it opens a browser; TestExamplePagesInABrowser has one"},
	{"docs/operate/evaluation.mdx", "docent eval make", "it needs rated answers; TestScripts makes a file of them and asks it"},
	{"docs/operate/troubleshooting.mdx", "docent journal adopt",
		"a journal and a catalog that belong together are not adopted; TestNoStoreIsTakenForANewOne adopts others"},
}

// otherLanguages are the blocks that are no commands, and what holds them to the truth.
var otherLanguages = map[string]string{
	"html": "TestTheWidgetIsAsDocumented", "css": "TestTheWidgetIsAsDocumented",
	"toml": "read as a configuration", "json": "parsed", "ini": "TestThePageAboutInstallingGoesWithTheUnits; deploy's tests have systemd read each",
	"js":  "TestDocumentedReceiversVerifyDeliveries, TestTheDocumentedSignerIsAccepted, TestThePageOfSitesShowsTheExamples",
	"go":  "TestThePageAboutClientsRuns",
	"tsx": "TestRealChatClients has useChat of these versions",
	"ts":  "TestThePageOfSitesShowsTheExamples", "jsx": "TestThePageOfSitesShowsTheExamples",
	"yaml":       "TestTheDashboardShowsARunningServer; TestThePageOfSitesShowsTheExamples; TestTheActionIsAsDocumented; TestTheFileOfQuestionsIsAsDocumented",
	"javascript": "TestAProgramSolvesAProofOfWorkAsDocumented runs it",
	"typescript": "TestThePageAboutClientsRuns",
	"http":       "the router's contract with openapi.yaml", "text": "shown, not typed",
	"nginx": "TestChatClientsBehindRealProxies", "caddy": "TestChatClientsBehindRealProxies",
	"": "shown, not typed",
}

// A playground is a folder with somebody's documentation, a shell that keeps its variables, and the server that it has
// started.
type playground struct {
	t      *testing.T
	dir    string
	listen string
	server *exec.Cmd
	log    *harness.LockedBuffer
	ended  chan struct{}
	used   map[int]bool // of notTyped
}

// newSandbox has the documentation at ./docs and ./my-docs, and docent in ./bin, on the PATH where installed.
func newSandbox(t *testing.T, documentation func(dir string) error, installed bool) *playground {
	t.Helper()
	harness.SkipShort(t)
	need.Installed(t, "the documentation's commands", "scripts/install-test-needs", "bash", "curl", "jq")
	address := harness.OwnAddress(t)
	s := &playground{t: t, dir: t.TempDir(), listen: address, used: map[int]bool{}}
	for _, name := range []string{"docs", "my-docs"} {
		if err := documentation(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(s.dir, "bin"), 0o755),
		os.Symlink(harness.Self(t), filepath.Join(s.dir, "bin", "docent")),
		os.Mkdir(filepath.Join(s.dir, "backup"), 0o755)); err != nil {
		t.Fatal(err)
	}
	state := "DOCENT_LISTEN=" + address + "\nDOCENT_URL=http://" + address + "\n"
	if installed {
		state += "PATH=" + filepath.Join(s.dir, "bin") + ":$PATH\n"
	}
	s.write("state", state)
	s.write("folder", s.dir)
	t.Cleanup(s.stopServer)
	return s
}

func (s *playground) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "."+name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// shell is a command that runs a script as the next lines of the terminal.
func (s *playground) shell(script string) *exec.Cmd {
	const terminal = `set -aeuo pipefail; . "$0/.state"; cd "$(cat "$0/.folder")"
trap 'declare -p | grep -E "^declare -[a-z]*x[a-z]* " | sed "s/^declare/declare -g/" | grep -vE " (SHLVL|PWD|OLDPWD|_)=" > "$0/.state"; pwd > "$0/.folder"' EXIT
`
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", terminal+script, s.dir)
	cmd.Env = harness.Environment(s.t)
	return cmd
}

// typed replaces what a user who types the commands has other names for: the address, folders of the system, and ids.
func (s *playground) typed(text string) string {
	text = strings.NewReplacer("127.0.0.1:8080", s.listen, "/var/lib/docent", filepath.Join(s.dir, "data"), "/backup/",
		filepath.Join(s.dir, "backup")+"/").Replace(text)
	for _, kind := range []struct{ id, list string }{
		{"pr", "pull list --project docs --state open"}, {"job", "job list --project docs --key $ADMIN_KEY"},
		{"key", "key list"}, {"thr", "thread list --project docs"}, {"rds", "reader-secret list docs"},
	} {
		if strings.Contains(text, kind.id+"_…") {
			text = strings.ReplaceAll(text, kind.id+"_…", s.newest(kind.list))
		}
	}
	return text
}

// newest is the id in the last line of a list that is in the order of time, or in the first where it is the other way
// round.
func (s *playground) newest(list string) string {
	s.t.Helper()
	out, err := s.shell("docent " + list + " --json").Output()
	if err != nil {
		s.t.Fatalf("docent %s: %v", list, err)
	}
	var ids []string
	for line := range strings.Lines(string(out)) {
		var row struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			s.t.Fatalf("docent %s: %v: %s", list, err, line)
		}
		ids = append(ids, row.ID)
	}
	if len(ids) == 0 {
		s.t.Fatalf("docent %s lists nothing", list)
	}
	return slices.Max(ids)
}

var serves = regexp.MustCompile(`^(bin/)?docent serve\b`)

var comment = regexp.MustCompile(`(?m) +# .*$`)

// commandsIn are the lines of a block, with those that a backslash or an open quote goes on in put together.
func commandsIn(text string) []string {
	var list []string
	whole := ""
	for line := range strings.Lines(text) {
		whole += line
		if strings.HasSuffix(line, "\\\n") || strings.Count(comment.ReplaceAllString(whole, ""), "'")%2 == 1 {
			continue
		}
		list = append(list, whole)
		whole = ""
	}
	if whole != "" {
		list = append(list, whole)
	}
	return list
}

// run types a block, and returns what it printed.
func (s *playground) run(f harness.Fence) string {
	s.t.Helper()
	var script strings.Builder
	serving := ""
	for _, command := range commandsIn(f.Text) {
		at := slices.IndexFunc(notTyped, func(n struct{ page, begins, reason string }) bool {
			return (n.page == "" || n.page == f.Page) && strings.HasPrefix(command, n.begins)
		})
		switch {
		case at >= 0:
			s.used[at] = true
			s.parse(f, command)
		case serves.MatchString(command):
			serving = command
		case serving != "":
			s.t.Fatalf("%s: %q comes after the command that serves, in the same terminal", f, command)
		default:
			script.WriteString(command)
		}
	}
	cmd := s.shell(s.typed(script.String()))
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: %v\n%s\nsays:\n%s\nthe server:\n%v", f, err, f.Text, &both, s.log)
	}
	if serving != "" {
		s.serve(s.typed(serving))
	}
	return both.String()
}

var docentWords = regexp.MustCompile(`(^|[ (/])docent ([^|)]*)`)

// inContainer is what stands before a command of docent's that an engine runs.
var inContainer = regexp.MustCompile(`^(docker( compose)? exec docent|kubectl .*exec docent-0 --) `)

// parse has the program itself read the arguments of a command that is not run.
func (s *playground) parse(f harness.Fence, command string) {
	s.t.Helper()
	if target, ok := strings.CutPrefix(command, "make "); ok {
		makefile, err := os.ReadFile("../../Makefile")
		if err != nil {
			s.t.Fatal(err)
		}
		if name := strings.Fields(target)[0]; !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `:`).Match(makefile) {
			s.t.Errorf("%s: the Makefile has no %s", f, name)
		}
		return
	}
	inside := inContainer.ReplaceAllString(command, "")
	m := docentWords.FindStringSubmatch(strings.Replace(inside, "sudo -u docent ", "", 1))
	if m == nil || strings.HasPrefix(inside, "docker ") || strings.HasPrefix(inside, "kubectl ") || strings.HasPrefix(inside, "helm ") || strings.HasPrefix(command, "sudo install") || strings.HasPrefix(command, "sudo useradd") ||
		strings.HasPrefix(command, "sudo systemctl") || strings.HasPrefix(command, "curl") {
		return
	}
	out, err := exec.CommandContext(s.t.Context(), "bash", "-c", `docent() { printf '%s\0' "$@"; }; docent `+m[2]).Output()
	if err != nil {
		s.t.Fatalf("%s: %v", f, err)
	}
	args := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	root := commands.New(cli.Program{})
	found, rest, err := root.Find(args)
	if err == nil {
		err = found.ParseFlags(rest)
	}
	if err == nil && found.Args != nil {
		err = found.Args(found, found.Flags().Args())
	}
	if err != nil || found == root {
		s.t.Errorf("%s: %q: %v", f, command, err)
	}
}

// serve runs a command that serves in a terminal of its own, until the next one does.
func (s *playground) serve(command string) {
	s.t.Helper()
	s.stopServer()
	s.log, s.ended = new(harness.LockedBuffer), make(chan struct{})
	s.server = s.shell("trap - EXIT\nexec " + command)
	s.server.Stdout, s.server.Stderr = s.log, s.log
	if err := s.server.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func(server *exec.Cmd, ended chan struct{}) {
		_ = server.Wait()
		close(ended)
	}(s.server, s.ended)
	ready := &harness.Server{T: s.t, URL: "http://" + s.listen, Log: s.log, Ended: s.ended, Cmd: s.server}
	if err := ready.AwaitReady(); err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
}

func (s *playground) stopServer() {
	if s.server == nil {
		return
	}
	_ = s.server.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		_ = s.server.Process.Kill()
		<-s.ended
	}
	s.server = nil
}

// The quickstart and the README's first minutes work as they are printed, on documentation that Docent has never seen.
func TestTheQuickstartWorksOnAnyDocumentation(t *testing.T) {
	t.Parallel()
	sets := map[string]func(*testing.T,
		string) error{"tidepool": func(_ *testing.T, dir string) error { return harness.Tidepool(dir) }}
	prometheus := func(t *testing.T, dir string) error {
		out, err := exec.Command("git", "clone", "--quiet", corpora.File(t, "corpora/prometheus-docs.bundle"),
			dir).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if need.All {
		sets["prometheus"] = prometheus
		for _, name := range []string{"vite", "mintlify"} {
			sets[name] = func(t *testing.T, dir string) error {
				site := corpora.Site(t, name)
				if name == "mintlify" { // the copy has English alone, and what a navigation leaves out is never guessed
					for _, language := range []string{"es", "fr", "zh"} {
						site[language+".json"] = []byte(`{"language": "` + language + `"}`)
					}
				}
				return site.Write(dir)
			}
		}
	}
	for name, documentation := range sets {
		for _, page := range []string{"docs/quickstart.mdx", "README.md"} {
			if page == "README.md" && name != "tidepool" {
				continue
			}
			t.Run(name+"/"+filepath.Base(page), func(t *testing.T) {
				t.Parallel()
				s := newSandbox(t, func(dir string) error { return documentation(t, dir) }, false)
				said := ""
				for _, f := range harness.ReadFences(t, page) {
					if f.Language == "bash" {
						said += s.run(f)
					}
				}
				for _, want := range []string{"pages, ", "dct_adm_", "Thread: thr_", "Created ",
					"http://" + s.listen + "/pulls/pr_"} {
					if page == "README.md" && want == "dct_adm_" {
						continue // it goes into a variable, and is not shown
					}
					if !strings.Contains(said, want) {
						t.Errorf("nothing says %q:\n%s", want, said)
					}
				}
				if page == "README.md" {
					return
				}
				if !strings.Contains(said, "merged") || !strings.Contains(said, "-title: Trying Docent") &&
					!strings.Contains(said, "Trying Docent") {
					t.Errorf("it was not merged, or the last command shows no diff:\n%s", said)
				}
				written, err := filepath.Glob(filepath.Join(s.dir, "my-docs", "*", "trying-docent.md"))
				if _, at := os.Stat(filepath.Join(s.dir, "my-docs", "trying-docent.md")); at != nil &&
					(err != nil || len(written) != 1) {
					t.Errorf("the page was not written into the folder: %v %v", written, err)
				}
			})
		}
	}
}

// Every other page begins where the quickstart ends: with a project, keys, a server, and a pull request that is open.
func TestEveryCommandOfTheDocumentationRuns(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	used := map[int]bool{}
	ran, expected := 0, 0
	t.Cleanup(func() {
		if t.Failed() || ran < expected { // some were left out
			return
		}
		for i, n := range notTyped {
			if !used[i] {
				t.Errorf("no page has %q any more (%s)", n.page+": "+n.begins, n.reason)
			}
		}
	})
	reasons := slices.Collect(maps.Values(otherLanguages))
	for _, n := range notTyped {
		reasons = append(reasons, n.reason)
	}
	tests := testNames(t)
	for _, name := range regexp.MustCompile(`Test[A-Z]\w+`).FindAllString(strings.Join(reasons, "\n"), -1) {
		if !tests[name] {
			t.Errorf("there is no %s any more", name)
		}
	}
	for _, page := range publishedPages(t) {
		var blocks []harness.Fence
		settings := ""
		for _, f := range harness.ReadFences(t, page) {
			switch {
			case f.Language == "bash":
				blocks = append(blocks, f)
			case otherLanguages[f.Language] == "":
				t.Errorf("%s: nothing is known of blocks in %q: say in this test what holds them to the truth", f, f.Language)
			case page == "docs/assistant/sites.mdx": // parts of files: TestThePageOfSitesShowsTheExamples
			case f.Language == "toml" && page == "docs/deploy/tls.mdx": // one way or another
				readSettings(t, page, f.Text)
			case f.Language == "toml":
				settings += f.Text // a page's blocks make one file
			case f.Language == "json" && !json.Valid([]byte(f.Text)):
				t.Errorf("%s: it is not JSON", f)
			case f.Language != "bash" && regexp.MustCompile(`(?m)^(\$ )?(bin/)?(docent|make|curl) `).MatchString(f.Text):
				t.Errorf("%s: it holds commands: begin it with ```bash", f)
			}
		}
		if settings != "" {
			readSettings(t, page, settings)
		}
		if len(blocks) == 0 || page == "docs/quickstart.mdx" || page == "README.md" {
			for _, f := range blocks { // which the test of the quickstart runs
				for i, n := range notTyped {
					used[i] = used[i] || (n.page == "" || n.page == page) && strings.Contains("\n"+f.Text, "\n"+n.begins)
				}
			}
			continue
		}
		expected++
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, harness.Tidepool, true)
			s.begin()
			for _, f := range blocks {
				s.run(f)
			}
			mu.Lock()
			defer mu.Unlock()
			ran++
			for i := range s.used {
				used[i] = true
			}
		})
	}
}

// testNames are the tests of the program, of its packages and of deploy.
func testNames(t testing.TB) map[string]bool {
	t.Helper()
	var files []string
	for _, folder := range []string{"../*", "../../cmd/docent/*", "../../deploy"} {
		found, err := filepath.Glob(folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}

// begin does what the quickstart does.
func (s *playground) begin() {
	s.t.Helper()
	s.serve("docent serve")
	s.run(harness.Fence{Page: "the beginning", Text: `
docent project add docs --domain docs.example.com --source ./my-docs
ADMIN_KEY=$(docent key create --project docs --kind admin)
ASSISTANT_KEY=$(docent key create --project docs --kind assistant)
docent key create --project docs --kind assistant # that can be revoked
docent ask --domain docs.example.com --key "$ASSISTANT_KEY" "How do I rotate a key?"
docent job create --wait --project docs --key "$ADMIN_KEY" 'append "Thank you." to index.md'
`})
}

func readSettings(t *testing.T, page, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(file, func(name string) (string, bool) {
		if name == config.NodeSecretEnv {
			return strings.Repeat("x", config.LeastNodeSecret), true
		}
		if strings.HasPrefix(name, config.EnvPrefix) {
			return "", false
		}
		return "x", true
	}, nil); err != nil {
		t.Errorf("%s: %v", page, err)
	}
}

// The page about installing goes with the units that it speaks of: the service serves the data that the commands name, as
// the user that they are run as, and what is put over a unit names settings that systemd has. deploy's tests have systemd
// judge the units, and install the package.
func TestThePageAboutInstallingGoesWithTheUnits(t *testing.T) {
	t.Parallel()
	const page = "docs/deploy/install.mdx"
	units := map[string]string{}
	for _, name := range []string{"docent.service", "docent.socket"} {
		text, err := deploy.Files.ReadFile("systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		units[name] = string(text)
	}
	value := func(key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(units["docent.service"])
		if m == nil {
			t.Fatalf("the unit has no %s", key)
		}
		return m[1]
	}
	start := strings.Fields(value("ExecStart"))
	root := commands.New(cli.Program{})
	cmd, rest, err := root.Find(start[1:])
	if err != nil || cmd.Name() != datadir.Server || cmd.ParseFlags(rest) != nil {
		t.Errorf("%q is no command that serves: %v", start, err)
	}
	data, _ := cmd.Flags().GetString("data")
	if state, _, _ := strings.Cut(value("StateDirectory"), " "); data != "/var/lib/"+state {
		t.Errorf("the server's data is in %s, and systemd makes /var/lib/%s", data, state)
	}
	place, _ := cmd.Flags().GetString("config")
	settings, err := deploy.Files.ReadFile("packages/" + filepath.Base(place))
	if err != nil {
		t.Fatal(err)
	}
	// Every setting in it is one, also those that are commented out.
	open := regexp.MustCompile(`(?m)^#(\[?[a-z_]+[].= ])`).ReplaceAllString(string(settings), "$1")
	file := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(file, []byte(open), 0o644); err != nil {
		t.Fatal(err)
	}
	environ := func(name string) (string, bool) { return "x", name == "MODEL_KEY" }
	c, err := config.Load(file, environ, nil)
	set := slices.DeleteFunc(c.Show(file).Settings, func(s config.ShownSetting) bool { return s.From == config.FromDefault })
	if err != nil || len(set) < 9 {
		t.Errorf("the commented settings of %s: %d are set: %v\n%s", place, len(set), err, open)
	}
	steps := 0
	for _, f := range harness.ReadFences(t, page) {
		for line := range strings.Lines(f.Text) {
			switch line = strings.TrimSpace(line); {
			case f.Language == "bash" && (strings.Contains(line, "docent project") || strings.Contains(line, "docent key")):
				steps++
				if !strings.HasPrefix(line, "sudo -u "+value("User")+" ") || !strings.Contains(line, "--data "+data+" ") {
					t.Errorf("%q makes files that the service cannot open, or elsewhere", line)
				}
			case f.Language == "bash" && strings.Contains(line, "deploy/"):
				for _, file := range regexp.MustCompile(`deploy/\S+`).FindAllString(line, -1) {
					steps++
					if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
						t.Errorf("%q: %v", line, err)
					}
				}
			}
		}
	}
	if steps < 7 {
		t.Errorf("only %d steps were found on the page", steps)
	}
	for _, path := range []string{place, strings.TrimPrefix(value("EnvironmentFile"), "-"), data, "/var/lib/docent-backups"} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil || !strings.Contains(string(text), "`"+path+"`") {
			t.Errorf("the page does not name %s: %v", path, err)
		}
	}
}

// What `--suggestions` adds to an answer is what the widget of the hosted platform reads, and asking it gives an
// answer.
func TestSuggestionsAreAnswered(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := harness.NewServer(t, data)
	source := filepath.Join(t.TempDir(), "docs")
	if err := harness.Tidepool(source); err != nil {
		t.Fatal(err)
	}
	p := harness.NewProject(t, data, "tidepool", source, "--suggestions")
	ask := func(question string) client.Answer {
		t.Helper()
		var a client.Answer
		out := harness.Docent(t, "ask", "--url", server.URL, "--domain", p.Domain, "--key", p.Assistant, "--json", question)
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := ask("What is an alert?")
	if len(a.Suggestions) == 0 || strings.Contains(a.Text, "```suggestions") {
		t.Fatalf("%+v", a)
	}
	for _, s := range a.Suggestions {
		if !strings.HasSuffix(s.Text, "?") || !strings.HasPrefix(s.URL, "https://tidepool.acme.dev/manual/") ||
			strings.Contains(s.Text, "the docs say") {
			t.Errorf("%+v", s)
		}
		if next := ask(s.Text); len(next.Sources) == 0 {
			t.Errorf("%q is not answered: %q", s.Text, next.Text)
		}
	}
	people := harness.Docent(t, "ask", "--url", server.URL, "--domain", p.Domain, "--key", p.Assistant,
		"What is an alert?")
	if strings.Contains(people, "suggestions") ||
		!strings.Contains(people, "\nYou can also ask:\n  "+a.Suggestions[0].Text+"\n") {
		t.Errorf("people are shown:\n%s", people)
	}
	// The hosted platform's widget reads the block from the stream as it is.
	resp, err := server.Client(p.Assistant).Do(t.Context(), "POST", "/discovery/v1/assistant/"+p.Domain+"/message",
		map[string]any{"fp": "anonymous", "messages": []map[string]any{{"role": "user", "content": "What is an alert?"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text := ""
	stream, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(stream)) {
		var part string
		if code, value, ok := strings.Cut(line, ":"); ok && code == "0" && json.Unmarshal([]byte(value), &part) == nil {
			text += part
		}
	}
	_, block, found := strings.Cut(text, "```suggestions\n")
	block, _, closed := strings.Cut(block, "```")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if !found || !closed || len(lines) != len(a.Suggestions) {
		t.Fatalf("the stream has %q", text)
	}
	for i, line := range lines {
		// The widget's own expression.
		m := regexp.MustCompile(`\(([^)]*)\)\[([^\]]*)\]`).FindStringSubmatch(line)
		if m == nil || m[1] != a.Suggestions[i].Text || m[2] != a.Suggestions[i].URL {
			t.Errorf("%q", line)
		}
	}
}
