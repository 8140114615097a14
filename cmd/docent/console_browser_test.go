package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/model/modeltest"
)

// The console in a real browser: Chromium, the program itself, a real repository. scripts/install-browser installs what
// this needs; without it these tests say that they are left out.

const clientsDir = "../../clients"

// needsBrowser returns Chromium's path, or leaves the test out and says why.
func needsBrowser(t testing.TB) (chromium string) {
	t.Helper()
	leftOutWhenShort(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("the console in a browser is left out: there is no chromium; scripts/install-browser installs it")
	}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(clientsDir, "node_modules", name)); err != nil {
			t.Skip("the console in a browser is left out: scripts/install-browser installs what drives it (it needs npm)")
		}
	}
	return chromium
}

// inBrowser runs one of the console's scripts and returns what it printed. What it finds wrong fails the test.
func inBrowser(t testing.TB, script string, settings map[string]any, server *testServer) string {
	t.Helper()
	settings["server"] = server.url
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir = filepath.Join(clientsDir, "console")
	cmd.Env = append(os.Environ(), "DOCENT_CONSOLE="+string(text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s\nthe end of the server's log:\n%s", script, err, &out, lastLines(server.log.String(), 40))
	} else {
		t.Logf("%s", &out)
	}
	return out.String()
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

var oneTimeLink = regexp.MustCompile(`https?://[^\s"]+/enter/[^\s"]+`)

// TestTheFirstHourInABrowser is what somebody does who has just started the server: from the link that it prints to an
// answer that a merged pull request has changed.
func TestTheFirstHourInABrowser(t *testing.T) {
	t.Parallel()
	chromium := needsBrowser(t)
	const react = "../../examples/react-chat"
	if _, err := os.Stat(filepath.Join(react, "node_modules", "esbuild")); err != nil {
		t.Skip("the console in a browser is left out: scripts/install-browser installs what builds the chat page (it needs npm)")
	}
	buildReactPage(t)
	repository := newGitServer(t, map[string]string{
		"index.md": "---\ntitle: Harbour\n---\n\n# Harbour\n\nThe harbour has three piers. See [ferries](ferries.md).\n",
		"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n" +
			"## Tickets\n\nTickets cost four coins and are sold on board.\n",
		"lighthouse.md": "---\ntitle: Lighthouse\n---\n\n# Lighthouse\n\nThe lighthouse stands at the end of the north mole.\n",
	}, nil)
	// A language model that stops before each step until the script lets it go on.
	writer := newTestProvider(t, []modeltest.Script{{Steps: []modeltest.Step{
		{Calls: []modeltest.Call{readCall("ferries.md")}},
		{Hold: "edit", Calls: []modeltest.Call{editCall("ferries.md", "Tickets cost four coins and are sold on board.",
			"Tickets cost four coins and are sold on board. Dogs travel free of charge on a leash.")}},
		{Hold: "finish", Calls: []modeltest.Call{finishCall}},
		{Calls: []modeltest.Call{finishCall}},
	}}})
	config := configFile(t, writer.config("writer", "openai")+"prompt_price = 2.0\ncompletion_price = 8.0\n")
	server := newTestServer(t, filepath.Join(t.TempDir(), "data"), "--config", config)
	link := oneTimeLink.FindString(server.log.String())
	if link == "" {
		t.Fatalf("the first start prints no link:\n%s", server.log)
	}
	pages := httptest.NewServer(http.StripPrefix("/react", http.FileServer(http.Dir(filepath.Join(react, "dist")))))
	defer pages.Close()
	inBrowser(t, "firsthour.mjs", map[string]any{"chromium": chromium, "enter": link, "repository": repository.url,
		"model": writer.url, "chat": pages.URL, "foreign": []string{pages.URL}}, server)
}
