package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/model/modeltest"
)

// TestTheAssistantAnswersWithALanguageModel asks the real server, whose models are played by another process in both
// providers' forms.
func TestTheAssistantAnswersWithALanguageModel(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			peer := newTestProvider(t, []modeltest.Script{{Match: "ferry", Shared: true, Steps: []modeltest.Step{
				{Fault: "429", RetryAfter: "0"},
				{Fault: modeltest.Drop},
				{Text: "It leaves every hour [1], from pier two [9]."},
				{Text: "Half of it ", Fault: modeltest.Cut},
				{Text: "Every hour [1]."},
			}}}, "--window", "16000")
			dir := t.TempDir()
			config := filepath.Join(dir, "docent.toml")
			if err := os.WriteFile(config, []byte("default_model = \"peer\"\n"+peer.config("peer", provider)), 0o600); err != nil {
				t.Fatal(err)
			}
			data := filepath.Join(dir, "data")
			project := newTestProject(t, data, "harbour", writeFiles(t, map[string]string{
				"ferries.md": "---\ntitle: Ferries\n---\n\nThe ferry to the island leaves every hour from pier two.\n",
			}))
			server := newTestServer(t, data, "--config", config)
			cl := server.client(project.assistant)
			first, err := ask(t.Context(), cl, project, "", "When does the ferry leave?")
			if err != nil || first.answer != "It leaves every hour, from pier two." {
				t.Errorf("%+v, %v", first, err)
			}
			// The reader has seen a part of the second answer: it is not made again but told as what it is.
			if broken, err := ask(t.Context(), cl, project, string(first.thread), "And the last ferry?"); err == nil || !strings.HasPrefix(broken.answer, "Half") {
				t.Errorf("%+v, %v", broken, err)
			}
			if last, err := ask(t.Context(), cl, project, string(first.thread), "And the ferry after it?"); err != nil || last.answer != "Every hour." {
				t.Errorf("%+v, %v", last, err)
			}
			outcomes := ""
			for _, a := range peer.asked() {
				outcomes += a.Outcome + " "
				if a.Model != "stand-in" || a.Provider != provider || !strings.Contains(string(a.Body), "leaves every hour from pier two") {
					t.Errorf("asked %s", a.Body)
				}
			}
			if outcomes != "429 drop answer cut answer " {
				t.Errorf("outcomes %s\n%s", outcomes, server.log)
			}
		})
	}
}
