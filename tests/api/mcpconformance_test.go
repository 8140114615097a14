package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/internal/testing/need"
	"docent/tests/harness"
)

// conformed are the scenarios of the protocol's conformance suite that readers' tools are held to, and whether the agent's
// tools are as well.
var conformed = map[string]bool{
	"server-initialize": true, "ping": true, "logging-set-level": true, "tools-list": true, "prompts-list": true,
	"server-sse-multiple-streams": true, "tools-call-error": true, "tools-call-simple-text": true,
	"tools-call-with-progress": false, "resources-list": true, "resources-read-text": false,
	"resources-templates-read": false,
}

// notConformed are the others, each with the reason.
var notConformed = map[string]string{
	"completion-complete":          "no argument of ours is completed, and the server does not say that it can",
	"tools-call-image":             "our tools give text",
	"tools-call-audio":             "our tools give text",
	"tools-call-embedded-resource": "our tools give text; pages are resources of their own",
	"tools-call-mixed-content":     "our tools give text",
	"tools-call-with-logging":      "our tools log nothing to clients",
	"tools-call-sampling":          "our tools ask no model of the client",
	"tools-call-elicitation":       "our tools ask the user nothing",
	"elicitation-sep1034-defaults": "our tools ask the user nothing",
	"elicitation-sep1330-enums":    "our tools ask the user nothing",
	"json-schema-2020-12":          "it looks for a tool of the suite's own server by its whole schema",
	"server-sse-polling": "it needs a tool that closes its own connection; testdata/clients/mcp.mjs breaks one from outside and " +
		"resumes",
	"resources-read-binary":         "pages are text",
	"resources-subscribe":           "changes of pages are not announced, and the server does not say that it can",
	"resources-unsubscribe":         "changes of pages are not announced, and the server does not say that it can",
	"prompts-get-simple":            "there are no prompts",
	"prompts-get-with-args":         "there are no prompts",
	"prompts-get-embedded-resource": "there are no prompts",
	"prompts-get-with-image":        "there are no prompts",
	"dns-rebinding-protection":      "it is run against a project without a key alone: a page that has a key may be of any site",
}

// asOurs is the MCP server behind a key, under the names that the suite's scenarios use: they are those of a server of
// its own, so each call of such a tool becomes a call of one of ours that behaves as the scenario asks for.
func asOurs(t *testing.T, address, key string, names map[string]string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
		r.Out.URL.Path = target.Path
		r.Out.Header.Set("Authorization", "Bearer "+key)
		if r.In.Method != http.MethodPost {
			return
		}
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			return // the request fails with it
		}
		for theirs, ours := range names {
			body = bytes.ReplaceAll(body, []byte(theirs), []byte(ours))
		}
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// A conformanceCheck is what a scenario has found.
type conformanceCheck struct {
	ID, Status   string
	ErrorMessage string `json:"errorMessage"`
}

// TestMCPConforms runs the protocol's own conformance suite against both servers. scripts/install-mcp-conformance
// installs it.
func TestMCPConforms(t *testing.T) {
	t.Parallel()
	const suite = "../../router/mcp/conformance/node_modules"
	need.Peer(t, "the conformance suite of MCP", "scripts/install-mcp-conformance", suite+"/.installed")
	data := t.TempDir()
	server := harness.NewServer(t, data, "--config", harness.SettingsFile(t,
		"default_model = \"slow\"\n[models.slow]\nprovider = \"scripted\"\nrate = 100\ntext = \"Run harbour moor BOAT and wait. \"\nparts = 20\n"))
	pages := maps.Clone(mcpPages)
	pages["guides/piers.md"] = "# Piers\n\nThere are 123 piers.\n"
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, pages))

	program := func(args ...string) *exec.Cmd {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, filepath.Join(suite, ".bin", "node"),
			slices.Concat([]string{filepath.Join(suite, ".bin", "conformance")}, args)...)
		cmd.Env = append(os.Environ(), "NO_COLOR=1")
		return cmd
	}
	list, err := program("list", "--server").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	text, _, _ := strings.Cut(string(list), "Client scenarios")
	var scenarios []string
	for _, m := range regexp.MustCompile(`(?m)^\s+- (\S+)`).FindAllStringSubmatch(text, -1) {
		scenarios = append(scenarios, m[1])
		_, runs := conformed[m[1]]
		if reason := notConformed[m[1]]; runs == (reason != "") {
			t.Errorf("the scenario %s is neither run nor left out with a reason, or both", m[1])
		} else if !runs {
			t.Logf("%s is left out: %s", m[1], reason)
		}
	}
	if len(scenarios) != len(conformed)+len(notConformed) {
		t.Errorf("the suite has %d scenarios, and here are %d", len(scenarios), len(conformed)+len(notConformed))
	}

	resource := "docs://" + p.Domain + "/guides/piers.md"
	conforms := func(name, address string, all bool) {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			// It fails with those that are left out: what each one has found is read.
			said, _ := program("server", "--url", address, "--suite", "all", "--output-dir", out).CombinedOutput()
			for scenario, both := range conformed {
				if !all && !both {
					continue
				}
				judge(t, out, scenario, said)
			}
		})
	}
	conforms("readers", asOurs(t, server.URL+"/mcp/"+p.Domain, p.Assistant, map[string]string{
		`"name":"test_simple_text"`:                       `"name":"read_page","arguments":{"path":"guides/piers"}`,
		`"name":"test_error_handling","arguments":{}`:     `"name":"read_page","arguments":{"path":"nowhere"}`,
		`"name":"test_tool_with_progress","arguments":{}`: `"name":"ask","arguments":{"question":"How do I moor a boat?"}`,
		`test://static-text`:                              resource, `test://template/123/data`: resource,
	}), true)
	conforms("agent", asOurs(t, server.URL+"/mcp/agent/"+p.ID, p.Admin, map[string]string{
		`"name":"test_simple_text"`:                   `"name":"list_jobs","arguments":{}`,
		`"name":"test_error_handling","arguments":{}`: `"name":"job_status","arguments":{"job":"job_nowhere"}`,
	}), false)
	t.Run("everybody", func(t *testing.T) {
		target, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		// The scenario runs on localhost alone: requests go on with the hosts and origins that it gives them.
		local := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		}})
		t.Cleanup(local.Close)
		public := harness.NewProject(t, data, "public", harness.WriteFiles(t, pages), "--public", "--public-origins", local.URL)
		out := t.TempDir()
		const rebinding = "dns-rebinding-protection"
		said, _ := program("server", "--url", local.URL+"/mcp/"+public.Domain, "--scenario", rebinding, "--output-dir", out).CombinedOutput()
		judge(t, out, rebinding, said)
	})
}

// judge holds a scenario to what its checks have found.
func judge(t *testing.T, out, scenario string, said []byte) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(out, "server-"+scenario+"-20*", "checks.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s was not run: %v %v\n%s", scenario, found, err, said)
	}
	content, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []conformanceCheck
	if err := json.Unmarshal(content, &checks); err != nil {
		t.Fatalf("%s: %v\n%s", scenario, err, content)
	}
	passed := 0
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING":
			t.Errorf("%s: %s: %s", scenario, c.ID, c.ErrorMessage)
		}
	}
	if passed == 0 {
		t.Errorf("%s has checked nothing: %s", scenario, content)
	}
}
