package api

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"docent/internal/testing/need"
	"docent/tests/harness"
)

// TestRealChatClients drives the server with the real hooks of every release line of the chat SDK, the strict first
// releases among them.
func TestRealChatClients(t *testing.T) {
	t.Parallel()
	const dir = "../testdata/clients"
	need.Installed(t, "the real chat clients", "scripts/install-clients", dir+"/node_modules/ai7")
	for _, client := range [][]string{{"v4.mjs"}, {"modern.mjs", "5"}, {"modern.mjs", "500"}, {"modern.mjs", "6"},
		{"modern.mjs", "600"}, {"modern.mjs", "7"}} {
		t.Run(strings.Join(client, " "), func(t *testing.T) {
			t.Parallel() // each has a server of its own, which it restarts
			server, data, harbour, slow := harness.NewChatServer(t, 40, 60)
			locked := harness.NewProject(t, data, "locked", harness.WriteFiles(t, map[string]string{"a.md": "# A\n\nText.\n"}),
				"--model", "slow", "--require-thread-key")
			endless := harness.NewEndlessProject(t, data)
			control := httptest.NewServer(harness.ChatControl(server, harbour, slow))
			defer control.Close()
			settings, err := json.Marshal(map[string]string{"url": server.URL,
				"otherUrl": harness.FromAddress(t, server.URL, "127.0.0.2"), "domain": harbour.Domain, "key": harbour.Assistant,
				"slowDomain": slow.Domain, "slowKey": slow.Assistant, "lockedDomain": locked.Domain, "lockedKey": locked.Assistant,
				"endlessDomain": endless.Domain, "endlessKey": endless.Assistant, "control": control.URL})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node", client...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "DOCENT_CLIENTS="+string(settings))
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Errorf("%v\nthe server's log:\n%s", err, server.Log)
			}
		})
	}
}
