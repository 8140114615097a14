package main

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
			peer := newTestProvider(t,
				[]modeltest.Script{{Shared: true, Steps: []modeltest.Step{{Hold: "answer", Text: "It leaves every hour [1]."}}}})
			config := settingsFile(t, "default_model = \"peer\"\n"+peer.config("peer", "openai"))
			data := filepath.Join(t.TempDir(), "data")
			project := newTestProject(t, data, "harbour", writeFiles(t, harbour))
			server := newTestServer(t, data, "--config", config)
			path := "/discovery/v2/assistant/" + project.domain + "/message"
			resp, err := server.client(project.assistant).Do(t.Context(), http.MethodPost, path,
				map[string]any{"fp": "anonymous",
					"messages": []any{map[string]any{"role": "user", "content": "When does the ferry leave?"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			peer.held("answer")
			server.kill()
			befall(t, data, "harbour")
			server.start()
			peer.release("answer")
			resumed, err := server.client(project.assistant).Do(t.Context(), http.MethodGet,
				path+"/"+resp.Header.Get("X-Thread-Id")+"/stream", nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := readAnswer(resumed); err != nil || text != "It leaves every hour." {
				t.Errorf("%q, %v\n%s", text, err, server.log)
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
			config := settingsFile(t, "poll_interval = \"0s\"\nmax_open_indexes = 1\n")
			data := filepath.Join(t.TempDir(), "data")
			project := newTestProject(t, data, "harbour", writeFiles(t, harbour))
			other := newTestProject(t, data, "other",
				writeFiles(t, map[string]string{"lamps.md": "# Lamps\n\nThe lamp is lit at dusk.\n"}))
			server := newTestServer(t, data, "--config", config)
			asked := func(p testProject, question, want string) {
				t.Helper()
				if q, err := ask(t.Context(), server.client(p.assistant), p, "", question); err != nil ||
					!strings.Contains(q.answer, want) {
					t.Errorf("%q, %v\n%s", q.answer, err, server.log)
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
				return strings.Contains(server.log.String(), "a turn waits for its project's index")
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
				t.Errorf("the index was not missed: %s", server.log)
			}
		})
	}
}
