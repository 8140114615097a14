package api

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"docent/api/stream"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// TestWhatTheReaderHasSelectedBearsOnTheAnswer asks about a text and about code that a page shows, by both versions of
// the API, of the built-in model and of a language model.
func TestWhatTheReaderHasSelectedBearsOnTheAnswer(t *testing.T) {
	t.Parallel()
	peer := harness.NewProvider(t, []modeltest.Script{{Shared: true, Steps: []modeltest.Step{{Text: "It says so [1]."}}}})
	config := harness.SettingsFile(t, peer.Config("peer", "openai")+"searches = -1\n")
	data := filepath.Join(t.TempDir(), "data")
	pages := harness.WriteFiles(t, map[string]string{
		"index.md":    "# Harbour\n\nThe harbour has three piers and a lighthouse.\n",
		"ferries.md":  "# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n",
		"tickets.md":  "# Tickets\n\nTickets are sold on board and cost four coins.\n",
		"silences.md": "# Silences\n\nA silence mutes the foghorn for a given time. It is made of matchers.\n\n## Expiry\n\nA silence ends by itself.\n",
		"config.md":   "# Configuration\n\nThe setting `beam_interval` says how often the lamp turns, in seconds.\n\n```yaml\nlamp:\n  beam_interval: 15s\n```\n",
	})
	project := harness.NewProject(t, data, "harbour", pages)
	other := harness.NewProject(t, data, "other", pages, "--model", "peer", "--config", config)
	server := harness.NewServer(t, data, "--config", config)
	for name, c := range map[string]struct {
		question, selected, kind string
		want                     string
	}{
		"text": {"What does this mean?", "silence mutes the foghorn", "textSelection", "for a given time"},
		"code": {"Explain this code", "lamp:\n  beam_interval: 15s\n", "code", "how often the lamp turns"},
	} {
		for _, form := range []stream.Form{stream.DataStream, stream.UIMessages} {
			path := map[stream.Form]string{stream.DataStream: "/discovery/v1/assistant/",
				stream.UIMessages: "/discovery/v2/assistant/"}[form]
			put := func(p harness.Project, context any) string {
				t.Helper()
				resp, err := server.Client(p.Assistant).Do(t.Context(), http.MethodPost, path+p.Domain+"/message",
					map[string]any{"fp": "anonymous", "context": context,
						"messages": []any{map[string]any{"role": "user", "content": c.question}}})
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text := ""
				for decoder := stream.NewDecoder(form, resp.Body); ; {
					part, err := decoder.Next()
					if err != nil {
						t.Fatal(err)
					}
					if text += part.Text; part.Kind == stream.Finish {
						return text
					}
				}
			}
			selection := []any{map[string]any{"type": c.kind, "value": c.selected}}
			if without, with := put(project, nil), put(project, selection); strings.Contains(without, c.want) ||
				!strings.Contains(with, c.want) {
				t.Errorf("%s, %v: %q, and with the selection %q", name, form, without, with)
			}
			put(other, selection)
			if asked := peer.Asked(); !strings.Contains(string(asked[len(asked)-1].Body), c.want) {
				t.Errorf("%s, %v: the language model was told %s", name, form, asked[len(asked)-1].Body)
			}
		}
	}
}
