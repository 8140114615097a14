package api

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"docent/internal/testing/need"
	"docent/tests/harness"
)

// restarts is where a program finds harness.NewControl.
func restarts(t *testing.T, server *harness.Server) *httptest.Server {
	control := httptest.NewServer(harness.NewControl(server))
	t.Cleanup(control.Close)
	return control
}

// TestTheTypeScriptClient runs the client's own tests, which are written against its types, on a real server.
func TestTheTypeScriptClient(t *testing.T) {
	t.Parallel()
	const sdk = "../../api/typescript"
	need.Installed(t, "the TypeScript client", "scripts/build-sdk", sdk+"/build/server.test.js")
	server, data, harbour, slow := harness.NewChatServer(t, 40, 60)
	limited := harness.NewProject(t, data, "limited", harness.WriteFiles(t,
		map[string]string{"a.md": "# A\n\nThe ferry.\n"}), "--limit-project-hour", "1")
	guarded := harness.NewProject(t, data, "guarded", harness.WriteFiles(t,
		map[string]string{"a.md": "# Ferry\n\nThe ferry is here.\n"}), "--proof-of-work", "1000")
	project := func(p harness.Project) map[string]string {
		return map[string]string{"id": p.ID, "domain": p.Domain, "admin": p.Admin, "assistant": p.Assistant}
	}
	private := harness.NewProject(t, data, "private", harness.WriteFiles(t, privatePages))
	secret := newReaderSecret(t, data, "private").Secret
	settings, err := json.Marshal(map[string]any{"private": project(private), "secret": secret, "server": server.URL, "control": restarts(t, server).URL,
		"harbour": project(harbour), "slow": project(slow), "limited": project(limited), "guarded": project(guarded)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "build/")
	cmd.Dir = sdk
	cmd.Env = append(os.Environ(), "DOCENT_SDK="+string(settings))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for name, example := range map[string]struct{ key, place, text, want string }{
		"ask.mjs":  {harbour.Assistant, harbour.Domain, "When does the ferry leave?", "every hour"},
		"edit.mjs": {harbour.Admin, harbour.ID, `rename "ferry" to "boat" everywhere`, "completed  "},
	} {
		cmd := exec.CommandContext(ctx, "node", name, example.place, example.text)
		cmd.Dir = "../../examples/node"
		cmd.Env = append(os.Environ(), "DOCENT_URL="+server.URL, "DOCENT_KEY="+example.key)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), example.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestThePageAboutClientsRuns takes the code of the page as it is, and runs it with the keys of a server: TypeScript under
// strict rules, and Go in a module of somebody else's that names a checkout of ours, and needs no other module.
func TestThePageAboutClientsRuns(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	project := harness.NewProject(t, data, "docs", harness.WriteFiles(t, map[string]string{
		"keys.md": "# Keys\n\n## Rotate a key\n\nRotate a key with `docent key rotate`. Do it every ninety days.\n"}))
	server := harness.NewServer(t, data)
	environment := append(os.Environ(), "DOCENT_ADMIN_KEY="+project.Admin, "DOCENT_ASSISTANT_KEY="+project.Assistant)
	page, err := os.ReadFile("../../docs/api/clients.mdx")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		_, rest, _ := strings.Cut(string(page), "```"+language+"\n")
		code, _, found := strings.Cut(rest, "```")
		if !found || len(code) < 500 {
			t.Fatalf("the page has no code in %s", language)
		}
		return strings.NewReplacer("https://docent.example.com", server.URL, "docs.example.com", project.Domain).Replace(code)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := harness.WriteFiles(t, map[string]string{
		"go.mod": "module example.com/theirs\n\ngo 1.26\n\nrequire docent v0.0.0\n\nreplace docent => " + checkout + "\n",
		"main.go": "package main\n\nimport (\n\"context\"\n\"errors\"\n\"fmt\"\n\"log\"\n\"os\"\n\n\"docent/api/client\"\n)\n\n" +
			"func main() {\n" + block("go") + "}\n",
	})
	theirs := exec.CommandContext(t.Context(), "go", "vet", ".")
	theirs.Dir, theirs.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=mod")
	if out, err := theirs.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), "go", "run", ".")
	run.Dir, run.Env = theirs.Dir, append(environment, theirs.Env[len(theirs.Env)-3:]...)
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "docent key rotate") {
		t.Errorf("the page's Go: %v\n%s", err, out)
	}
	deps := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	deps.Dir, deps.Env = theirs.Dir, theirs.Env
	out, err := deps.Output()
	if got := strings.Fields(string(out)); err != nil || len(got) != 6 {
		t.Errorf("it takes along %q, %v", got, err)
	}

	const sdk = "../../api/typescript"
	need.Installed(t, "the page's TypeScript", "scripts/build-sdk", sdk+"/build/server.test.js")
	text := strings.Replace(block("typescript"), `"docent-client"`, strconv.Quote(filepath.Join(checkout, "api/typescript/dist/index.js")), 1)
	file := filepath.Join(dir, "page.mts")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tsc := exec.CommandContext(t.Context(), "node", "node_modules/typescript/bin/tsc", "--outDir", dir, "--strict", "--target", "es2022",
		"--module", "nodenext", "--typeRoots", filepath.Join(checkout, "api/typescript/node_modules/@types"), "--types", "node", file)
	tsc.Dir = sdk
	if out, err := tsc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	node := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "page.mjs"))
	node.Env = environment
	if out, err := node.CombinedOutput(); err != nil || !strings.Contains(string(out), "docent key rotate") {
		t.Errorf("the page's TypeScript: %v\n%s", err, out)
	}
}
