package api

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/testing/need"
	"docent/tests/harness"
)

// TestAProgramSolvesAProofOfWorkAsDocumented runs the page's own lines with altcha's library, and asks with what they give.
func TestAProgramSolvesAProofOfWorkAsDocumented(t *testing.T) {
	t.Parallel()
	const clients = "../testdata/clients"
	need.Installed(t, "altcha's library", "scripts/install-clients", clients+"/node_modules/altcha-lib")
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "guarded", harness.WriteFiles(t, map[string]string{"a.md": "# Boats\n\nA boat is moored with a rope.\n"}),
		"--proof-of-work", "5000")
	ask := func(solution string) int {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/discovery/v2/assistant/"+p.Domain+"/message",
			strings.NewReader(`{"fp":"anonymous","messages":[{"role":"user","parts":[{"type":"text","text":"How is a boat moored?"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+p.Assistant)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Altcha", solution)
		res, err := (&http.Client{Transport: harness.Patient{}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if status := ask(""); status != 403 {
		t.Errorf("without a solution it is answered %d", status)
	}
	// An agent in an editor has a program's key, or none: the server never does the work for one who asks.
	editor, err := harness.Connect(t, overHTTP(server.URL+"/mcp/"+p.Domain, p.Assistant))
	if err != nil {
		t.Fatal(err)
	}
	if text, result := harness.CallTool(t, editor, "ask",
		map[string]any{"question": "How is a boat moored?"}); !result.IsError || !strings.Contains(text, "proof of work") {
		t.Errorf("over MCP it is answered %s", text)
	}
	for _, f := range harness.ReadFences(t, "docs/api/limits.mdx") {
		if f.Language != "javascript" {
			continue
		}
		program := strings.NewReplacer("https://docent.example.com", server.URL, "docs.example.com", p.Domain,
			"dct_pub_...", p.Assistant).Replace(f.Text) + "\nprocess.stdout.write(solution)"
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", program)
		cmd.Dir = clients
		solution, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{200, 403} {
			if status := ask(string(solution)); status != want {
				t.Errorf("time %d it is answered %d, not %d", i+1, status, want)
			}
		}
		return
	}
	t.Error("the page does not show how")
}
