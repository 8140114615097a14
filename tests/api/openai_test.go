package api

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"docent/internal/testing/need"
	"docent/tests/harness"
)

// TestPublishedClientsAsk drives the packages that people already have: OpenAI's for Node.js and Go, and AG-UI's, which CopilotKit uses.
// scripts/install-clients installs them.
func TestPublishedClientsAsk(t *testing.T) {
	t.Parallel()
	need.Installed(t, "published clients", "scripts/install-clients", clients+"/node_modules/openai", clients+"/node_modules/@ag-ui/client", clients+"/node_modules/.bin/openai-go")
	askWith(t, map[string][]string{"Node.js": {"node", "openai.mjs"}, "AG-UI": {"node", "agui.mjs"}, "Go": {"node_modules/.bin/openai-go"}})
}

// TestFrameworksAsk drives LangChain and Continue. scripts/install-frameworks installs them.
func TestFrameworksAsk(t *testing.T) {
	t.Parallel()
	const frameworks = clients + "/frameworks/node_modules"
	need.Peer(t, "frameworks", "scripts/install-frameworks", frameworks+"/@langchain/openai", frameworks+"/@continuedev/openai-adapters")
	askWith(t, map[string][]string{"LangChain and Continue": {"node", "frameworks/frameworks.mjs"}})
}

const clients = harness.ClientsDir

// askWith runs programs that ask a real server, and print what is wrong.
func askWith(t *testing.T, programs map[string][]string) {
	t.Helper()
	server, _, harbour, slow := harness.NewChatServer(t, 40, 60)
	settings, err := json.Marshal(map[string]any{"url": server.URL, "key": harbour.Assistant, "domain": harbour.Domain,
		"slow": map[string]string{"domain": slow.Domain, "key": slow.Assistant}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for name, program := range programs {
		cmd := exec.CommandContext(ctx, program[0], append(program[1:], server.URL, harbour.Assistant, harbour.Domain)...)
		cmd.Dir = clients
		cmd.Env = append(os.Environ(), "DOCENT_OPENAI="+string(settings), "DOCENT_AGUI="+string(settings))
		var problems, wrong bytes.Buffer
		cmd.Stdout, cmd.Stderr = &problems, &wrong
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, wrong.String())
		}
		if problems.Len() > 0 {
			t.Errorf("the client %s is not served as it should be:\n%s", name, problems.String())
		}
	}
}
