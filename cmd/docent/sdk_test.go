package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// restarts is where a program in another language has the server killed and started again.
func restarts(t *testing.T, server *testServer) *httptest.Server {
	operate := http.NewServeMux()
	operate.HandleFunc("POST /restart", func(w http.ResponseWriter, _ *http.Request) {
		server.kill()
		if err := server.tryStart(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	control := httptest.NewServer(operate)
	t.Cleanup(control.Close)
	return control
}

// TestTheTypeScriptClient runs the client's own tests, which are written against its types, on a real server.
func TestTheTypeScriptClient(t *testing.T) {
	t.Parallel()
	const sdk = "../../sdk/typescript"
	if _, err := os.Stat(filepath.Join(sdk, "build", "server.test.js")); err != nil {
		t.Skip("the TypeScript client is left out: scripts/build-sdk builds it (it needs npm)")
	}
	server, data, harbour, slow := newChatServer(t, 40, 60)
	limited := newTestProject(t, data, "limited", writeFiles(t, map[string]string{"a.md": "# A\n\nThe ferry.\n"}),
		"--limit-project-hour", "1")
	guarded := newTestProject(t, data, "guarded", writeFiles(t, map[string]string{"a.md": "# Ferry\n\nThe ferry is here.\n"}),
		"--proof-of-work", "1000")
	project := func(p testProject) map[string]string {
		return map[string]string{"id": p.id, "domain": p.domain, "admin": p.admin, "assistant": p.assistant}
	}
	settings, err := json.Marshal(map[string]any{"server": server.url, "control": restarts(t, server).URL,
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
		"ask.mjs":  {harbour.assistant, harbour.domain, "When does the ferry leave?", "every hour"},
		"edit.mjs": {harbour.admin, harbour.id, `rename "ferry" to "boat" everywhere`, "completed  "},
	} {
		cmd := exec.CommandContext(ctx, "node", name, example.place, example.text)
		cmd.Dir = "../../examples/node"
		cmd.Env = append(os.Environ(), "DOCENT_URL="+server.url, "DOCENT_KEY="+example.key)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), example.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
