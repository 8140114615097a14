package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"docent/internal/testing/need"
)

// reactPage builds the example's page, once for all tests.
var reactPage = sync.OnceValue(func() error {
	build := exec.Command("npm", "run", "build")
	build.Dir = "../../examples/react-chat"
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the React page: %w\n%s", err, out)
	}
	return nil
})

// BuildReactPage builds the example page of React.
func BuildReactPage(t testing.TB) {
	t.Helper()
	if err := reactPage(); err != nil {
		t.Fatal(err)
	}
}

const (
	ClientsDir = "../testdata/clients"
	ReactDir   = "../../examples/react-chat"
)

// NeedsBrowser returns Chromium's path, or skips the test.
func NeedsBrowser(t testing.TB) (chromium string) {
	t.Helper()
	return need.Peer(t, "a browser", "scripts/install-browser", "chromium", ClientsDir+"/node_modules/playwright-core",
		ClientsDir+"/node_modules/axe-core", ReactDir+"/node_modules/esbuild")
}

// InBrowser runs one of the console's scripts and returns what it printed. What it finds wrong fails the test.
func InBrowser(t testing.TB, script string, settings map[string]any, server *Server) string {
	t.Helper()
	settings["server"] = server.URL
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir = filepath.Join(ClientsDir, "console")
	cmd.Env = append(os.Environ(), "DOCENT_CONSOLE="+string(text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s\nthe end of the server's log:\n%s", script, err, &out, LastLines(server.Log.String(), 40))
	} else {
		t.Logf("%s", &out)
	}
	return out.String()
}

// LastLines is the end of a server's log, without the lines of requests that went well.
func LastLines(text string, n int) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(text), "\n"), func(line string) bool {
		return strings.Contains(line, "level=INFO msg=request ")
	})
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// OneTimeLink finds the link by which an operator signs in.
var OneTimeLink = regexp.MustCompile(`https?://[^\s"]+/enter/[^\s"]+`)
