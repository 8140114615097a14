package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// TestAProgramSolvesAProofOfWorkAsDocumented runs the page's own lines with altcha's library, and asks with what they give.
func TestAProgramSolvesAProofOfWorkAsDocumented(t *testing.T) {
	t.Parallel()
	const clients = "testdata/clients"
	need.Installed(t, "altcha's library", "scripts/install-clients", clients+"/node_modules/altcha-lib")
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data)
	p := newTestProject(t, data, "guarded", writeFiles(t, map[string]string{"a.md": "# Boats\n\nA boat is moored with a rope.\n"}),
		"--proof-of-work", "5000")
	ask := func(solution string) int {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.url+"/discovery/v2/assistant/"+p.domain+"/message",
			strings.NewReader(`{"fp":"anonymous","messages":[{"role":"user","parts":[{"type":"text","text":"How is a boat moored?"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+p.assistant)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Altcha", solution)
		res, err := (&http.Client{Transport: patient{}}).Do(req)
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
	editor, err := connect(t, overHTTP(server.url+"/mcp/"+p.domain, p.assistant))
	if err != nil {
		t.Fatal(err)
	}
	if text, result := callTool(t, editor, "ask", map[string]any{"question": "How is a boat moored?"}); !result.IsError ||
		!strings.Contains(text, "proof of work") {
		t.Errorf("over MCP it is answered %s", text)
	}
	for _, f := range readFences(t, "docs/api/limits.mdx") {
		if f.language != "javascript" {
			continue
		}
		program := strings.NewReplacer("https://docent.example.com", server.url, "docs.example.com", p.domain,
			"dct_pub_...", p.assistant).Replace(f.text) + "\nprocess.stdout.write(solution)"
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
