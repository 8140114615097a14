package kill

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/model/modeltest"
	"docent/tests/harness"
)

// servedGeneration is the folder of a project's index.
func servedGeneration(t *testing.T, data, project string) string {
	t.Helper()
	name, err := os.ReadFile(filepath.Join(data, "index", project, "CURRENT"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(data, "index", project, strings.TrimSpace(string(name)))
}

// What can befall an index.
var indexFaults = map[string]func(t *testing.T, data, project string){
	"an older version made it": func(t *testing.T, data, project string) {
		file := filepath.Join(servedGeneration(t, data, project), "manifest")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(raw), "\n")
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		m["schema"] = 1
		changed, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		sum := crc32.Checksum(changed, crc32.MakeTable(crc32.Castagnoli))
		if err := os.WriteFile(file, fmt.Appendf(nil, "%08x\n%s", sum, changed), 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"CURRENT is cut": func(t *testing.T, data, project string) {
		if err := os.Truncate(filepath.Join(data, "index", project, "CURRENT"), 3); err != nil {
			t.Fatal(err)
		}
	},
	"a bit of the text is flipped": func(t *testing.T, data, project string) {
		file := filepath.Join(servedGeneration(t, data, project), "text")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"the folder is gone": func(t *testing.T, data, project string) {
		if err := os.RemoveAll(filepath.Join(data, "index", project)); err != nil {
			t.Fatal(err)
		}
	},
}

// TestQuestionsInHandOutliveAnUpgradeOfTheIndex kills the server while it answers, and has the next one find an index
// that it cannot use. The question that was accepted is answered all the same.
func TestQuestionsInHandOutliveAnUpgradeOfTheIndex(t *testing.T) {
	t.Parallel()
	for name, befall := range indexFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := harness.NewProvider(t,
				[]modeltest.Script{{Shared: true, Steps: []modeltest.Step{{Hold: "answer", Text: "It leaves every hour [1]."}}}})
			config := harness.SettingsFile(t, "default_model = \"peer\"\n"+peer.Config("peer", "openai"))
			data := filepath.Join(t.TempDir(), "data")
			project := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
			server := harness.NewServer(t, data, "--config", config)
			path := "/discovery/v2/assistant/" + project.Domain + "/message"
			resp, err := server.Client(project.Assistant).Do(t.Context(), http.MethodPost, path,
				map[string]any{"fp": "anonymous",
					"messages": []any{map[string]any{"role": "user", "content": "When does the ferry leave?"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			peer.Held("answer")
			server.Kill()
			befall(t, data, "harbour")
			server.Start()
			peer.Release("answer")
			resumed, err := server.Client(project.Assistant).Do(t.Context(), http.MethodGet,
				path+"/"+resp.Header.Get("X-Thread-Id")+"/stream", nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := harness.ReadAnswer(resumed); err != nil || text != "It leaves every hour." {
				t.Errorf("%q, %v\n%s", text, err, server.Log)
			}
		})
	}
}

// TestAnIndexThatIsDamagedWhileItIsServedIsMadeAnewForWhoAsks damages an index that is not open. The sources are not
// looked at again by themselves.
func TestAnIndexThatIsDamagedWhileItIsServedIsMadeAnewForWhoAsks(t *testing.T) {
	t.Parallel()
	for name, befall := range indexFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := harness.SettingsFile(t, "poll_interval = \"0s\"\nmax_open_indexes = 1\n")
			data := filepath.Join(t.TempDir(), "data")
			project := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
			other := harness.NewProject(t, data, "other",
				harness.WriteFiles(t, map[string]string{"lamps.md": "# Lamps\n\nThe lamp is lit at dusk.\n"}))
			server := harness.NewServer(t, data, "--config", config)
			asked := func(p harness.Project, question, want string) {
				t.Helper()
				if q, err := harness.Ask(t.Context(), server.Client(p.Assistant), p, "", question); err != nil ||
					!strings.Contains(q.Answer, want) {
					t.Errorf("%q, %v\n%s", q.Answer, err, server.Log)
				}
			}
			asked(project, "When does the ferry leave?", "every hour")
			asked(other, "When is the lamp lit?", "at dusk") // which takes the place of the first one's index
			befall(t, data, "harbour")
			served := func() string { // empty if there is none
				name, _ := os.ReadFile(filepath.Join(data, "index", "harbour", "CURRENT"))
				return string(name)
			}
			damaged := served()
			missed := func() bool {
				return strings.Contains(server.Log.String(), "a turn is waiting for its project's index")
			}
			asked(project, "When does the ferry leave?", "every hour")
			for tries := 0; tries < 20 && !missed(); tries++ { // what looks at questions afterwards had opened it again
				asked(other, "When is the lamp lit?", "at dusk")
				if served() != damaged { // or had missed it first, so that it is made again
					befall(t, data, "harbour")
					damaged = served()
				}
				asked(project, "When does the ferry leave?", "every hour")
			}
			if !missed() {
				t.Errorf("the index was not missed: %s", server.Log)
			}
		})
	}
}
