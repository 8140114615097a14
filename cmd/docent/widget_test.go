package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTheWidgetInABrowser has readers use the widget on a page with the strictest policy, over a reload and a killed
// server, and with answers that want to do harm.
func TestTheWidgetInABrowser(t *testing.T) {
	t.Parallel()
	const clients = "../../clients"
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("the widget is left out: there is no chromium; scripts/install-browser installs it")
	}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(clients, "node_modules", name)); err != nil {
			t.Skip("the widget is left out: scripts/install-browser installs what drives the browser (it needs npm)")
		}
	}
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data, "--config",
		configFile(t, "[models.slow]\nprovider = \"scripted\"\nrate = 20\nparts = 60\n"))
	pages := map[string]string{
		"index.md": "# Harbour\n\nHarbour keeps boats.\n",
		"guides/mooring.md": "---\ntitle: Mooring\n---\n# Mooring\n\nTo moor a boat, run `harbour moor BOAT`. It takes a minute.\n\n" +
			"## Leaving\n\nTo leave, run `harbour leave BOAT` and untie the rope.\n",
	}
	p := newTestProject(t, data, "harbour", writeFiles(t, pages), "--site-url", "https://harbour.example.com")
	slow := newTestProject(t, data, "slow", writeFiles(t, pages), "--model", "slow")
	operate := http.NewServeMux()
	operate.HandleFunc("POST /restart", func(w http.ResponseWriter, _ *http.Request) {
		server.kill()
		if err := server.tryStart(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	control := httptest.NewServer(operate)
	defer control.Close()
	settings, err := json.Marshal(map[string]string{"server": server.url, "control": control.URL, "domain": p.domain,
		"key": p.assistant, "slowDomain": slow.domain, "slowKey": slow.assistant, "chromium": chromium})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "widget.mjs")
	cmd.Dir = clients
	cmd.Env = append(os.Environ(), "DOCENT_WIDGET="+string(settings))
	var problems, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &problems, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("widget.mjs: %v\n%s", err, wrong.String())
	}
	if problems.Len() > 0 {
		t.Errorf("the widget is not as it should be:\n%s", problems.String())
	}
}

// TestTheWidgetIsAsDocumented holds the page about the widget against its sources: attributes, variables and parts.
func TestTheWidgetIsAsDocumented(t *testing.T) {
	t.Parallel()
	read := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		var all strings.Builder
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	page, sources := read("docs/assistant/widget.mdx"), read("widget/src/*.ts*")
	named := func(pattern, text string) []string {
		var names []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	camel := func(name string) string {
		return regexp.MustCompile(`-[a-z]`).ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
	}
	siteThemes := []string{"theme", "color-mode", "bs-theme", "md-color-scheme", "docent-open"}
	for _, name := range named(`data-([a-z-]+[a-z])`, page) {
		if !slices.Contains(siteThemes, name) && !strings.Contains(sources, "dataset."+camel(name)) &&
			!strings.Contains(sources, "d."+camel(name)) && !strings.Contains(sources, "data-"+name) {
			t.Errorf("the page has data-%s, which the widget does not know", name)
		}
	}
	for _, name := range named(`(?:dataset|\bd)\.([a-zA-Z]+)`, read("widget/src/loader.ts")) {
		known := slices.ContainsFunc(named(`data-([a-z-]+[a-z])`, page), func(n string) bool { return camel(n) == name })
		if !known {
			t.Errorf("the widget knows the attribute %s, which the page does not name", name)
		}
	}
	variables := named(`var\(--docent-([a-z-]+)`, sources)
	for _, name := range named(`--docent-([a-z-]+)`, page) {
		if !slices.Contains(variables, name) {
			t.Errorf("the page has --docent-%s, which the widget does not know", name)
		}
	}
	parts := named(`part(?:=|", )"([a-z-]+)"`, sources)
	listed := named("`([a-z-]+)`", regexp.MustCompile(`Parts for your own rules: (.*)`).FindString(page))
	if !slices.Equal(parts, listed) {
		t.Errorf("the parts are %q, the page has %q", parts, listed)
	}
}
