package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"docent/api/client"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// A gitHubComments is GitHub's API as far as comments on an issue or pull request go.
type gitHubComments struct {
	mu       sync.Mutex
	comments []map[string]any
	requests []string
}

func (g *gitHubComments) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests = append(g.requests, req.Method)
	if req.Header.Get("Authorization") != "Bearer ghs_token" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message":"Bad credentials"}`)
		return
	}
	if req.URL.Path == "/repos/acme/code/pulls/7" && strings.HasSuffix(req.Header.Get("Accept"), ".diff") {
		fmt.Fprint(w, "diff --git a/serve.go b/serve.go\n--- a/serve.go\n+++ b/serve.go\n@@ -4 +4 @@\n-\tflags.Int(\"max-berths\", 12, \"\")\n+\tflags.Int(\"max-berths\", 20, \"\")\n")
		return
	}
	var body struct{ Body string }
	if req.Method != http.MethodGet && json.NewDecoder(req.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	var id int
	switch {
	case req.Method == http.MethodGet && req.URL.Path == "/repos/acme/code/issues/7/comments":
		page := 1
		_, _ = fmt.Sscan(req.URL.Query().Get("page"), &page)
		from := min(100*(page-1), len(g.comments))
		_ = json.NewEncoder(w).Encode(append([]map[string]any{}, g.comments[from:min(from+100, len(g.comments))]...))
	case req.Method == http.MethodPost && req.URL.Path == "/repos/acme/code/issues/7/comments":
		g.comments = append(g.comments, map[string]any{"id": len(g.comments), "body": body.Body, "user": map[string]any{"type": "Bot"}})
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "{}")
	case req.Method == http.MethodPatch && scans(req.URL.Path, "/repos/acme/code/issues/comments/%d", &id):
		g.comments[id]["body"] = body.Body
		fmt.Fprint(w, "{}")
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found"}`)
	}
}

func scans(text, format string, into ...any) bool {
	_, err := fmt.Sscanf(text, format, into...)
	return err == nil
}

// An actionRun is what a step of a workflow leaves.
type actionRun struct {
	failed          bool
	log, summary    string
	output          map[string]string
	errors, notices []string
}

var heredoc = regexp.MustCompile(`(?s)([a-z-]+)<<(\S+)\n(.*?)\n(?:end-\S+)\n`)

// runAction runs the committed bundle as GitHub's runner does.
func runAction(t *testing.T, github string, event any, environment, inputs map[string]string) (r actionRun) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	payload, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"event": string(payload), "output": "", "summary": "",
		"prompt.md": `replace "four coins" with "five coins" in ferries.md`} {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := map[string]string{"GITHUB_EVENT_PATH": file("event"), "GITHUB_OUTPUT": file("output"),
		"GITHUB_STEP_SUMMARY": file("summary"), "GITHUB_WORKSPACE": dir, "GITHUB_API_URL": github,
		"GITHUB_REPOSITORY": "acme/code", "GITHUB_WORKFLOW": "docs", "GITHUB_JOB": "update", "GITHUB_ACTION": "__docent",
		"GITHUB_RUN_ID": "1", "GITHUB_RUN_ATTEMPT": "1", "PATH": os.Getenv("PATH"), "INPUT_GITHUB-TOKEN": "ghs_token"}
	maps.Copy(set, environment)
	for name, input := range actionFile(t).Inputs {
		if !strings.Contains(input.Default, "${{") {
			set["INPUT_"+strings.ToUpper(name)] = input.Default
		}
	}
	for name, value := range inputs {
		set["INPUT_"+strings.ToUpper(name)] = value
	}
	cmd := exec.CommandContext(t.Context(), "node", "../../deploy/action/"+actionFile(t).Runs.Main)
	for name, value := range set {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	r = actionRun{failed: err != nil, log: string(out), output: map[string]string{}}
	written, err := os.ReadFile(file("output"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range heredoc.FindAllStringSubmatch(string(written), -1) {
		r.output[m[1]] = m[3]
	}
	text, err := os.ReadFile(file("summary"))
	if err != nil {
		t.Fatal(err)
	}
	r.summary = string(text)
	for line := range strings.Lines(r.log) {
		if text, ok := strings.CutPrefix(line, "::error title=Docent::"); ok {
			r.errors = append(r.errors, text)
		}
		if text, ok := strings.CutPrefix(line, "::notice title=Docent::"); ok {
			r.notices = append(r.notices, text)
		}
	}
	return r
}

type actionDescription struct {
	Inputs map[string]struct {
		Default string
	}
	Outputs map[string]struct{ Description string }
	Runs    struct{ Using, Main string }
}

type actionStep struct {
	Uses string
	With map[string]any
}

func actionFile(t *testing.T) (a actionDescription) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/action/action.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTheGitHubAction runs the committed bundle against a real server and a stand-in of GitHub.
func TestTheGitHubAction(t *testing.T) {
	t.Parallel()
	need.Installed(t, "the GitHub Action", "scripts/install-clients", "node")
	server, _, harbour, _ := harness.NewChatServer(t, 40, 60)
	admin := server.Client(harbour.Admin)
	github := &gitHubComments{}
	for i := range 120 { // a long discussion, with somebody who forges the mark of Docent's comments
		github.comments = append(github.comments, map[string]any{"id": i, "body": "Hello <!-- docent:0123 -->"})
	}
	stand := httptest.NewServer(github)
	defer stand.Close()
	pull := map[string]any{"pull_request": map[string]any{"number": 7}}
	jobs := func() (n int) {
		for _, err := range admin.Jobs(t.Context(), harbour.ID, client.JobFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	run := func(environment map[string]string, more ...string) actionRun {
		t.Helper()
		inputs := map[string]string{"server": server.URL, "key": harbour.Admin, "project": harbour.ID}
		for i := 0; i+1 < len(more); i += 2 {
			inputs[more[i]] = more[i+1]
		}
		r := runAction(t, stand.URL, pull, environment, inputs)
		if strings.Contains(strings.ReplaceAll(r.log, "::add-mask::"+harbour.Admin, ""), harbour.Admin) || strings.Contains(r.summary, harbour.Admin) {
			t.Errorf("the key is shown:\n%s", r.log)
		}
		return r
	}

	first := run(nil, "prompt-file", "prompt.md", "comment", "true")
	if first.failed || first.output["status"] != "completed" || first.output["outcome"] != "changed" ||
		!strings.Contains(first.output["pr-link"], "/pulls/pr_") || !strings.Contains(first.summary, first.output["pr-link"]) ||
		len(first.notices) != 1 || !strings.Contains(first.log, "::add-mask::"+harbour.Admin+"\n::add-mask::ghs_token\n") {
		t.Fatalf("%+v", first)
	}
	if n := len(github.comments); n != 121 || !strings.Contains(github.comments[120]["body"].(string), first.output["pr-link"]) {
		t.Fatalf("%d comments", n)
	}
	again := run(map[string]string{"GITHUB_RUN_ATTEMPT": "2"}, "prompt-file", "prompt.md", "comment", "true")
	if again.failed || again.output["job-id"] != first.output["job-id"] || jobs() != 1 || len(github.comments) != 121 {
		t.Errorf("a re-run: %+v, %d jobs, %d comments", again.output, jobs(), len(github.comments))
	}
	anew := run(map[string]string{"GITHUB_RUN_ATTEMPT": "2"}, "prompt-file", "prompt.md", "comment", "true", "rerun", "new")
	if anew.output["job-id"] == first.output["job-id"] || jobs() != 2 || len(github.comments) != 121 ||
		!strings.Contains(github.comments[120]["body"].(string), anew.output["job-id"]) {
		t.Errorf("a re-run that starts over: %+v, %d jobs, %d comments", anew.output, jobs(), len(github.comments))
	}

	dry := run(nil, "prompt", `rename "ferry" to "boat" everywhere`, "dry-run", "true")
	if dry.failed || !strings.Contains(dry.output["diff"], "+The boat to the island") || dry.output["pr-link"] != "" ||
		!strings.Contains(dry.summary, "+The boat to the island") {
		t.Errorf("a dry run: %+v", dry)
	}
	branch := run(nil, "prompt", `replace "pier two" with "pier three" in ferries.md`, "branch", "docs/pier")
	if branch.failed || !strings.Contains(branch.log, "docs/pier") || branch.output["outcome"] != "changed" {
		t.Errorf("on a branch: %+v", branch)
	}
	left := run(nil, "prompt", `rename "lighthouse" to "beacon" everywhere`, "wait", "0")
	if left.failed || left.output["job-id"] == "" || left.output["status"] == "" {
		t.Errorf("not waited for: %+v", left)
	}

	// What the agent does not understand is said, as the workflow wants it; what it says is no command and no Markdown.
	hostile := "Sing a song\n::error::of mine\n::set-output name=x::y\n``` @everyone <!-- -->"
	lost := run(nil, "prompt", hostile, "comment", "true")
	if !lost.failed || lost.output["outcome"] != "not_understood" || len(lost.errors) != 1 ||
		!strings.Contains(lost.errors[0], "not understood") {
		t.Errorf("not understood: %+v", lost)
	}
	if inside := between(lost.log, "::stop-commands::", "::endgroup::"); !strings.Contains(inside, "Sing a song") ||
		strings.Contains(strings.ReplaceAll(lost.log, inside, ""), "\n::error::of mine") {
		t.Errorf("what others wrote is a command:\n%s", lost.log)
	}
	if well := run(nil, "prompt", hostile, "fail-on", "failed"); well.failed || len(well.errors) != 0 {
		t.Errorf("not understood, and that is well: %+v", well)
	}

	for want, more := range map[string][]string{
		"prompt: is required":           {},
		"prompt-file: give either":      {"prompt", "x", "prompt-file", "prompt.md"},
		"none.md cannot be read":        {"prompt-file", "none.md"},
		"wait: \"soon\" must be a time": {"prompt", "x", "wait", "soon"},
		"fail-on: \"rain\" is none of":  {"prompt", "x", "fail-on", "rain"},
		"draft: \"maybe\" must be":      {"prompt", "x", "draft", "maybe"},
		"server: \"nowhere\" is not":    {"prompt", "x", "server", "nowhere"},
		"there is no such project":      {"prompt", "x", "project", "none"},
		"this API key is not valid":     {"prompt", "x", "key", "dct_adm_wrong"},
		"the connection failed":         {"prompt", "x", "server", "http://127.0.0.1:1"},
	} {
		if r := run(nil, more...); !r.failed || len(r.errors) != 1 || !strings.Contains(r.errors[0], want) {
			t.Errorf("%q: %q, want %q", more, r.log, want)
		}
	}
	if r := run(nil, "prompt", "fix broken internal links", "comment", "true", "github-token", "wrong"); r.failed && len(r.errors) != 0 ||
		!strings.Contains(r.log, "::warning title=Docent::The comment could not be written: GitHub answered 401: Bad credentials") {
		t.Errorf("a comment that fails: %s", r.log)
	}
}

// The mode that names pages needs no server and no key: it runs the program on the runner, and keeps one comment.
func TestTheGitHubActionNamesPages(t *testing.T) {
	t.Parallel()
	need.Installed(t, "the GitHub Action", "scripts/install-clients", "node")
	dir := t.TempDir()
	docent := filepath.Join(dir, "docent")
	if err := os.Symlink(harness.Self(t), docent); err != nil {
		t.Skip("no symbolic links here")
	}
	docs := filepath.Join(dir, "docs")
	if err := os.MkdirAll(docs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "cli.md"), []byte("# Flags\n\n`--max-berths` is 12.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	github := &gitHubComments{}
	github.comments = append(github.comments, map[string]any{"id": 0, "body": "Hello"})
	stand := httptest.NewServer(github)
	defer stand.Close()
	pull := map[string]any{"pull_request": map[string]any{"number": 7, "title": "feat: more berths"}}
	inputs := map[string]string{"check-docs": docs, "binary": docent, "comment": "true", "sarif": filepath.Join(dir, "docs.sarif")}
	for range 2 {
		r := runAction(t, stand.URL, pull, nil, inputs)
		if r.failed || !strings.HasSuffix(r.output["pages"], "docs/cli.md") || !strings.Contains(r.log, "::warning file=") ||
			!strings.Contains(r.summary, "was `12` and is now `20`") {
			t.Fatalf("%+v", r)
		}
	}
	if sarif, err := os.ReadFile(inputs["sarif"]); err != nil || !strings.Contains(string(sarif), `"ruleId": "docs/outdated"`) {
		t.Errorf("%s, %v", sarif, err)
	}
	if n := len(github.comments); n != 2 || !strings.Contains(github.comments[1]["body"].(string), "docs/cli.md") {
		t.Errorf("%d comments: %v", n, github.comments)
	}
	inputs["check-fail-on"] = "outdated"
	if r := runAction(t, stand.URL, pull, nil, inputs); !r.failed || len(r.errors) != 1 || !strings.Contains(r.errors[0], "1 pages") {
		t.Errorf("%+v", r)
	}
	for want, more := range map[string]map[string]string{
		"cannot be run":                         {"binary": filepath.Join(dir, "none")},
		"check-fail-on: \"rain\" must be":       {"check-fail-on": "rain"},
		"github-token: is required to read the": {"github-token": ""},
	} {
		with := maps.Clone(inputs)
		maps.Copy(with, more)
		if r := runAction(t, stand.URL, pull, nil, with); !r.failed || len(r.errors) != 1 || !strings.Contains(r.errors[0], want) {
			t.Errorf("%q: %+v", want, r)
		}
	}
}

// between is the text from one mark up to another.
func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	inside, _, _ := strings.Cut(rest, to)
	return inside
}

// TestTheActionIsAsDocumented holds its page, its description and its source together.
func TestTheActionIsAsDocumented(t *testing.T) {
	t.Parallel()
	a := actionFile(t)
	page, err := os.ReadFile("../../docs/agent/github-action.mdx")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../deploy/action/src/main.ts")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains([]string{"node20", "node24"}, a.Runs.Using) {
		t.Errorf("it runs with %q", a.Runs.Using)
	}
	for name := range a.Inputs {
		if !strings.Contains(string(page), "- `"+name+"`") || !strings.Contains(string(source), `"`+name+`"`) {
			t.Errorf("the input %s is not on the page, or not read", name)
		}
	}
	for name := range a.Outputs {
		if !strings.Contains(string(page), "`"+name+"`") || !strings.Contains(string(source), `output("`+name+`"`) {
			t.Errorf("the output %s is not on the page, or not written", name)
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, b := range blocks {
		var workflow struct {
			Steps []actionStep
			Jobs  map[string]struct{ Steps []actionStep }
		}
		if err := yaml.Unmarshal([]byte(b[1]), &workflow); err != nil {
			t.Errorf("%v:\n%s", err, b[1])
		}
		steps := workflow.Steps
		for _, job := range workflow.Jobs {
			steps = append(steps, job.Steps...)
		}
		used := 0
		for _, s := range steps {
			if !strings.Contains(s.Uses, "/docent/deploy/action@") {
				continue
			}
			used++
			for name := range s.With {
				if _, ok := a.Inputs[name]; !ok {
					t.Errorf("a workflow of the page gives the input %s, which there is not", name)
				}
			}
		}
		if used != 1 {
			t.Errorf("a workflow of the page uses the action %d times:\n%s", used, b[1])
		}
	}
	if len(blocks) < 3 {
		t.Errorf("the page has %d workflows", len(blocks))
	}
	for _, m := range regexp.MustCompile(`(?:input|required|flag)\("([a-z-]+)"\)`).FindAllStringSubmatch(string(source), -1) {
		if _, ok := a.Inputs[m[1]]; !ok {
			t.Errorf("the action reads %s, which action.yml does not have", m[1])
		}
	}
}
