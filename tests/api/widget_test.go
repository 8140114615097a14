package api

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/tests/harness"
)

// TestTheWidgetInABrowser has readers use the widget on a page with the strictest policy, over a reload and a killed
// server, and with answers that want to do harm.
func TestTheWidgetInABrowser(t *testing.T) {
	t.Parallel()
	chromium := harness.NeedsBrowser(t)
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data, "--config",
		harness.SettingsFile(t, "[models.slow]\nprovider = \"scripted\"\nrate = 20\nparts = 60\n"+harness.EndlessModel))
	pages := map[string]string{
		"index.md": "# Harbour\n\nHarbour keeps boats.\n",
		"guides/mooring.md": "---\ntitle: Mooring\n---\n# Mooring\n\nTo moor a boat, run `harbour moor BOAT`. It takes a minute.\n\n" +
			"## Leaving\n\nTo leave, run `harbour leave BOAT` and untie the rope.\n",
	}
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, pages), "--site-url", "https://harbour.example.com",
		"--file", harness.SettingsFile(t, `{"widget": {"contact": "form"}}`))
	slow := harness.NewProject(t, data, "slow", harness.WriteFiles(t, pages), "--model", "slow")
	guarded := harness.NewProject(t, data, "guarded", harness.WriteFiles(t, pages), "--proof-of-work", "20000",
		"--file", harness.SettingsFile(t, `{"widget": {"accent": "#7A0000", "button": "start", "label": "Ask <us>", "greeting": "Ahoy.",
			"suggestions": ["How do I moor a boat?"], "language": "de"}}`))
	endless := harness.NewEndlessProject(t, data)
	control := restarts(t, server)
	settings, err := json.Marshal(map[string]string{"server": server.URL, "control": control.URL, "domain": p.Domain,
		"endlessDomain": endless.Domain, "endlessKey": endless.Assistant,
		"key": p.Assistant, "slowDomain": slow.Domain, "slowKey": slow.Assistant, "guardedDomain": guarded.Domain, "guardedKey": guarded.Assistant, "chromium": chromium,
		"enter": harness.OneTimeLink.FindString(harness.Docent(t, "console", "--data", data))})
	if err != nil {
		t.Fatal(err)
	}
	if problems := runBrowser(t, "widget.mjs", "DOCENT_WIDGET="+string(settings)); problems != "" {
		t.Errorf("the widget is not as it should be:\n%s", problems)
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
	page, sources := read("docs/assistant/widget.mdx"), read("router/widget/src/*.ts*")
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
	for _, name := range named(`(?:dataset|\bd)\.([a-zA-Z]+)`, read("router/widget/src/loader.ts")) {
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

// TestWhatAScreenReaderHearsOfTheWidget holds Chromium's accessibility tree of the widget in each of its states, what its
// live regions say, and where the Tab key leads, against what was read and found right. With -update that is written again.
func TestWhatAScreenReaderHearsOfTheWidget(t *testing.T) {
	t.Parallel()
	chromium := harness.NeedsBrowser(t)
	dist, err := filepath.Abs(filepath.Join("..", "..", "router", "widget", "dist"))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(map[string]string{"chromium": chromium, "dist": dist})
	if err != nil {
		t.Fatal(err)
	}
	const heard = "testdata/widget-heard.txt"
	got := runBrowser(t, "heard.mjs", "DOCENT_HEARD="+string(settings))
	if *harness.Update {
		if err := os.WriteFile(heard, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(heard)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	is, was := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	state := ""
	for i := range is {
		if strings.HasPrefix(is[i], "== ") {
			state = is[i]
		}
		if i >= len(was) || is[i] != was[i] {
			t.Fatalf("%s\nline %d is %q, and was %q; where that is right, write it with -update:\n%s", state, i+1, is[i],
				strings.Join(was[min(i, len(was)):min(i+1, len(was))], ""), got)
		}
	}
	t.Fatalf("it ends early, at %s", state)
}

// runBrowser runs one of them and gives what it prints.
func runBrowser(t *testing.T, script string, environment ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", script)
	cmd.Dir = harness.ClientsDir
	cmd.Env = append(os.Environ(), environment...)
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, wrong.String())
	}
	return out.String()
}
