package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealChatClients drives the server with the real hooks of every release line of the chat SDK, the strict first
// releases among them. scripts/install-clients installs them; without them this says that they are left out.
func TestRealChatClients(t *testing.T) {
	t.Parallel()
	const dir = "../../clients"
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ai7")); err != nil {
		t.Skip("the real chat clients are left out: scripts/install-clients installs them (it needs Node.js and npm)")
	}
	for _, client := range [][]string{{"v4.mjs"}, {"modern.mjs", "5"}, {"modern.mjs", "500"}, {"modern.mjs", "6"}, {"modern.mjs", "600"}, {"modern.mjs", "7"}} {
		t.Run(strings.Join(client, " "), func(t *testing.T) {
			t.Parallel() // each has a server of its own, which it restarts
			server, _, harbour, slow := newChatServer(t, 40, 60)
			control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				server.kill()
				if err := server.tryStart(); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
			}))
			defer control.Close()
			settings, err := json.Marshal(map[string]string{"url": server.url, "domain": harbour.domain, "key": harbour.assistant,
				"slowDomain": slow.domain, "slowKey": slow.assistant, "control": control.URL})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node", client...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "DOCENT_CLIENTS="+string(settings))
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Errorf("%v\nthe server's log:\n%s", err, server.log)
			}
		})
	}
}

// newChatServer starts a server for chats: one project answers at once, the other from a model that writes parts pieces, so
// many a second.
func newChatServer(t *testing.T, rate, parts int) (server *testServer, data string, harbour, slow testProject) {
	t.Helper()
	config := configFile(t, fmt.Sprintf("[models.slow]\nprovider = \"scripted\"\nrate = %d\nparts = %d\n", rate, parts))
	data = filepath.Join(t.TempDir(), "data")
	server = newTestServer(t, data, "--config", config)
	source := writeFiles(t, map[string]string{
		"ferries.md":    "# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n## Tickets\n\nTickets cost four coins and are sold on board.\n",
		"lighthouse.md": "# Lighthouse\n\nThe lighthouse stands at the end of the north mole.\n",
	})
	harbour = newTestProject(t, data, "harbour", source, "--site-url", "https://harbour.example.com")
	slow = newTestProject(t, data, "slow", source, "--site-url", "https://slow.example.com", "--model", "slow")
	return server, data, harbour, slow
}
