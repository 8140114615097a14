package models

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api/stream"
	"docent/bench/lab"
	"docent/internal/health"
	"docent/model"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// TestTheAssistantAnswersWithALanguageModel asks the real server, whose models are played by another process in both
// providers' forms.
func TestTheAssistantAnswersWithALanguageModel(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			peer := harness.NewProvider(t, []modeltest.Script{{Match: "ferry", Shared: true, Steps: []modeltest.Step{
				{Fault: "429", RetryAfter: "0"},
				{Fault: modeltest.Drop},
				{Text: "It leaves every hour [1], from pier two [9]."},
				{Text: "It leaves every hour [1]. Half of it is not said, and nothing of the rest is either ", Fault: modeltest.Cut},
				{Text: "Every hour [1]."},
			}}}, "--window", "16000")
			dir := t.TempDir()
			config := filepath.Join(dir, "docent.toml")
			// Where the built-in model may answer instead, a try that fails is not repeated later than five seconds after the
			// question, for which a machine may stand still.
			if err := os.WriteFile(config, []byte("default_model = \"peer\"\n"+peer.Config("peer", provider)+"fallback = false\n"),
				0o600); err != nil {
				t.Fatal(err)
			}
			data := filepath.Join(dir, "data")
			project := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, map[string]string{
				"ferries.md": "---\ntitle: Ferries\n---\n\nThe ferry to the island leaves every hour from pier two.\n",
			}))
			server := harness.NewServer(t, data, "--config", config)
			cl := server.Client(project.Assistant)
			first, err := harness.Ask(t.Context(), cl, project, "", "When does the ferry leave?")
			if err != nil || first.Answer != "It leaves every hour, from pier two." {
				t.Errorf("%+v, %v", first, err)
			}
			// The reader has seen a part of the second answer: it is not made again but told as what it is.
			if broken, err := harness.Ask(t.Context(), cl, project, string(first.Thread), "And the last ferry?"); err == nil ||
				!strings.HasPrefix(broken.Answer, "It leaves") {
				t.Errorf("%+v, %v", broken, err)
			}
			if last, err := harness.Ask(t.Context(), cl, project, string(first.Thread), "And the ferry after it?"); err != nil ||
				last.Answer != "Every hour." {
				t.Errorf("%+v, %v", last, err)
			}
			outcomes := ""
			for _, a := range peer.Asked() {
				outcomes += a.Outcome + " "
				if a.Model != "stand-in" || a.Provider != provider ||
					!strings.Contains(string(a.Body), "leaves every hour from pier two") {
					t.Errorf("asked %s", a.Body)
				}
			}
			if outcomes != "429 drop answer cut answer " {
				t.Errorf("outcomes %s\n%s", outcomes, server.Log)
			}
		})
	}
}

// TestAnEndpointThatFailsShows looks at what an operator sees of it.
func TestAnEndpointThatFailsShows(t *testing.T) {
	t.Parallel()
	peer := harness.NewProvider(t,
		[]modeltest.Script{{Shared: true,
			Steps: []modeltest.Step{{Text: "It leaves every hour [1]."}, {Fault: "503", RetryAfter: "90", Times: 1000}}}})
	config := harness.SettingsFile(t, "default_model = \"peer\"\n"+peer.Config("peer", "openai")+
		"prompt_price = 2.5\ncompletion_price = 10\nattempts = 5\n")
	data := filepath.Join(t.TempDir(), "data")
	project := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, map[string]string{
		"ferries.md": "---\ntitle: Ferries\n---\n\nThe ferry to the island leaves every hour from pier two.\n",
	}))
	server := harness.NewServer(t, data, "--config", config)
	cl := server.Client(project.Assistant)
	if _, err := harness.Ask(t.Context(), cl, project, "", "When does the ferry leave?"); err != nil {
		t.Fatal(err)
	}
	// It asks for more time than a reader has, so that the built-in model answers at once: to five questions until it is
	// left alone, and to one that is not let through.
	for range 6 {
		q, err := harness.Ask(t.Context(), cl, project, "", "When does the ferry leave?")
		if text, marked := strings.CutPrefix(q.Answer, model.Instead("en")); err != nil || !marked ||
			!strings.Contains(text, "leaves every hour from pier two") {
			t.Errorf("answered %q, %v", q.Answer, err)
		}
	}
	if asked := len(peer.Asked()); asked != 6 {
		t.Errorf("the endpoint was asked %d times: the last question should not have reached it", asked)
	}
	var s health.Status
	if err := json.Unmarshal([]byte(harness.Docent(t, "status", "--data", data, "--config", config, "--json")),
		&s); err != nil {
		t.Fatal(err)
	}
	if len(s.Models) != 1 {
		t.Fatalf("models %+v", s.Models)
	}
	m := s.Models[0]
	if m.Name != "peer" || m.Endpoint != peer.URL || m.State != "open" || m.Again <= 0 || m.Calls != 7 ||
		m.Failures != 6 || m.Tokens == 0 || m.CostCents <= 0 {
		t.Errorf("%+v", m)
	}
	text := harness.Docent(t, "status", "--data", data, "--config", config)
	if !strings.Contains(text, "CIRCUIT OPEN") ||
		!strings.Contains(text, "the built-in model answered in its place: 6") {
		t.Error(text)
	}
	const instead = "the built-in model answered because another model failed"
	harness.Until(t, "the log tells of six questions", func() bool {
		return strings.Count(server.Log.String(),
			instead) >= 6
	})
	if said := server.Log.String(); strings.Count(said, instead) != 6 || !strings.Contains(said, "status 503") {
		t.Error(said)
	}
	page, err := lab.Get(t.Context(), server.URL+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`docent_model_endpoint_open{endpoint="` + peer.URL + `",models="peer"} 1`,
		`docent_model_failures_total{model="peer"} 6`,
		`docent_model_requests_total{model="peer"} 6`, `docent_model_cost_dollars_total{model="peer"} 0.0`,
		`docent_model_fallbacks_total{model="peer"} 6`} {
		if !strings.Contains(string(page), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// TestTheAnswerOfTheBuiltinModelShowsInTheHistory follows one answer from a model that cannot be reached through
// analytics.
func TestTheAnswerOfTheBuiltinModelShowsInTheHistory(t *testing.T) {
	t.Parallel()
	const table = "[models.%s]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nattempts = 1\n"
	settings := harness.SettingsFile(t, "default_model = \"away\"\n"+fmt.Sprintf(table, "away"))
	data := filepath.Join(t.TempDir(), "data")
	project := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, map[string]string{
		"ferries.md": "---\ntitle: Ferries\n---\n\nThe ferry to the island leaves every hour from pier two.\n",
	}))
	running := harness.NewServer(t, data, "--config", settings)
	cl := running.Client(project.Assistant)
	for _, form := range []stream.Form{stream.DataStream, stream.UIMessages} {
		path := map[stream.Form]string{stream.DataStream: "/discovery/v1/assistant/",
			stream.UIMessages: "/discovery/v2/assistant/"}[form]
		resp, err := cl.Do(t.Context(), http.MethodPost, path+project.Domain+"/message",
			map[string]any{"fp": "anonymous",
				"messages": []any{map[string]any{"role": "user", "content": "When does the ferry leave?"}}})
		if err != nil {
			t.Fatal(err)
		}
		var end stream.Part
		decoder := stream.NewDecoder(form, resp.Body)
		for end.Kind != stream.Finish {
			if end, err = decoder.Next(); err != nil {
				t.Fatal(err)
			}
		}
		resp.Body.Close()
		if end.Model != "builtin" || !end.Fallback {
			t.Errorf("%v ends with %+v", form, end)
		}
	}
	var shown struct {
		Conversations []struct{ Model, FallbackFor string }
	}
	page, err := running.Client(project.Admin).Do(t.Context(), http.MethodGet, "/v1/analytics/harbour/assistant", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	if err := json.NewDecoder(page.Body).Decode(&shown); err != nil || len(shown.Conversations) != 2 ||
		shown.Conversations[0].Model != "builtin" || shown.Conversations[0].FallbackFor != "away" {
		t.Errorf("%+v, %v", shown, err)
	}
}

// TestAKillWhileTheModelIsAsked kills the server in the middle of a call. The question is answered after the start, and
// the provider can tell by the key that it was asked the same again.
func TestAKillWhileTheModelIsAsked(t *testing.T) {
	t.Parallel()
	peer := harness.NewProvider(t,
		[]modeltest.Script{{Shared: true, Steps: []modeltest.Step{{Hold: "answer", Text: "It leaves every hour [1]."}}}})
	config := harness.SettingsFile(t, "default_model = \"peer\"\n"+peer.Config("peer", "anthropic"))
	data := filepath.Join(t.TempDir(), "data")
	project := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, map[string]string{
		"ferries.md": "---\ntitle: Ferries\n---\n\nThe ferry to the island leaves every hour from pier two.\n",
	}))
	server := harness.NewServer(t, data, "--config", config)
	path := "/discovery/v2/assistant/" + project.Domain + "/message"
	resp, err := server.Client(project.Assistant).Do(t.Context(), http.MethodPost, path,
		map[string]any{"fp": "anonymous",
			"messages": []any{map[string]any{"role": "user", "content": "When does the ferry leave?"}}})
	if err != nil {
		t.Fatal(err)
	}
	thread := resp.Header.Get("X-Thread-Id")
	peer.Held("answer")
	server.Kill()
	if text, err := harness.ReadAnswer(resp); err == nil {
		t.Errorf("an answer ended without its server: %q", text)
	}
	server.Start()
	peer.Release("answer")
	resp, err = server.Client(project.Assistant).Do(t.Context(), http.MethodGet, path+"/"+thread+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := harness.ReadAnswer(resp); err != nil || text != "It leaves every hour." {
		t.Errorf("%q, %v", text, err)
	}
	asked := peer.Asked()
	if len(asked) != 2 || asked[0].Key == "" || asked[0].Key != asked[1].Key {
		t.Errorf("asked %d times", len(asked))
	}
}

// TestTheAssistantsModelSearchesByItself follows an answer whose model looked for more than it was given: what it
// found is cited, shown to clients that want to see it, and what it cost is stored.
func TestTheAssistantsModelSearchesByItself(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			peer := harness.NewProvider(t, []modeltest.Script{{Shared: true, Steps: []modeltest.Step{
				{Calls: []modeltest.Call{{Name: "search_docs", Arguments: `{"query":"fare coins"}`}}},
				{Text: "Four coins [2]."},
			}}})
			config := harness.SettingsFile(t, "default_model = \"peer\"\n"+peer.Config("peer", provider)+
				"prompt_price = 2\ncompletion_price = 10\n")
			data := filepath.Join(t.TempDir(), "data")
			project := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, map[string]string{
				"ferries.md": "---\ntitle: Ferries\n---\n\nThe ferry to the island leaves every hour from pier two.\n",
				"tariffs.md": "---\ntitle: Tariffs\n---\n\nThe fare is four coins.\n",
			}))
			server := harness.NewServer(t, data, "--config", config)
			resp, err := server.Client(project.Assistant).Do(t.Context(), http.MethodPost,
				"/discovery/v2/assistant/"+project.Domain+"/message",
				map[string]any{"fp": "anonymous",
					"messages": []any{map[string]any{"role": "user", "content": "When does the ferry leave?"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var text, sources string
			decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
			for kind := stream.Start; kind != stream.Finish; {
				part, err := decoder.Next()
				if err != nil {
					t.Fatal(err)
				}
				if kind = part.Kind; kind == stream.Text {
					text += part.Text
				} else if kind == stream.Source {
					sources += part.Title + " "
				}
			}
			if text != "Four coins." || sources != "Tariffs " {
				t.Errorf("%q from %q", text, sources)
			}
			asked := peer.Asked()
			if len(asked) != 2 || strings.Contains(string(asked[0].Body), "four coins") ||
				!strings.Contains(string(asked[1].Body), "four coins") {
				t.Errorf("asked %d times", len(asked))
			}
			shown := harness.Docent(t, "journal", "show", resp.Header.Get("X-Thread-Id"), "--data", data, "--config", config,
				"--json")
			prompt := fmt.Sprintf(`"Prompt":%d}`, asked[0].Tokens+asked[1].Tokens)
			if flat := strings.Join(strings.Fields(shown), ""); !strings.Contains(flat, prompt) ||
				!strings.Contains(flat, `"Cost":`) || !strings.Contains(flat, `"Cached":`) {
				t.Errorf("the journal lacks %s: %s", prompt, shown)
			}
		})
	}
}

// TestAModelsKeyShowsNowhere lets providers fail in all ways, one of which quotes the key, and looks for the key in all
// that the server wrote and said.
func TestAModelsKeyShowsNowhere(t *testing.T) {
	t.Parallel()
	const secret = "sk-live-0123456789abcdefghij"
	steps := []modeltest.Step{}
	for _, fault := range modeltest.Faults() {
		if fault != modeltest.Stall { // it says nothing, for a minute
			// which is no row of failures
			steps = append(steps, modeltest.Step{Fault: fault}, modeltest.Step{Fault: modeltest.Page})
		}
	}
	harness.Setenv(t, "PEER_KEY", secret)
	for _, provider := range []string{"openai", "anthropic"} {
		for name, accepted := range map[string]string{"faults": secret, "refused": "another"} {
			t.Run(provider+" "+name, func(t *testing.T) {
				t.Parallel()
				peer := harness.NewProvider(t, []modeltest.Script{{Shared: true, Steps: steps}}, "--key", accepted)
				config := harness.SettingsFile(t, "default_model = \"peer\"\nlog_level = \"debug\"\n"+peer.Config("peer", provider)+
					"key_env = \"PEER_KEY\"\nattempts = 1\n")
				data := filepath.Join(t.TempDir(), "data")
				project := harness.NewProject(t, data, "harbour",
					harness.WriteFiles(t, map[string]string{"ferries.md": "# Ferries\n\nThe ferry leaves every hour.\n"}))
				server := harness.NewServer(t, data, "--config", config)
				cl := server.Client(project.Assistant)
				said := ""
				for range len(steps) {
					q, err := harness.Ask(t.Context(), cl, project, "", "When does the ferry leave?")
					said += q.Answer + fmt.Sprint(err)
				}
				for _, step := range steps { // a question that may be asked again meets more than one
					if name == "faults" &&
						!slices.ContainsFunc(peer.Asked(), func(a modeltest.Asked) bool { return a.Outcome == step.Fault }) {
						t.Errorf("no question met the fault %s", step.Fault)
					}
				}
				said += harness.Docent(t, "status", "--data", data, "--config", config, "--json")
				server.Stop()
				if said := server.Log.String(); !strings.Contains(said, "a turn failed") &&
					!strings.Contains(said, "because another model failed") {
					t.Errorf("nothing failed: %s", server.Log)
				}
				err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
					if err != nil || !d.Type().IsRegular() {
						return err
					}
					b, err := os.ReadFile(path)
					if strings.Contains(string(b), secret) {
						t.Errorf("the key is in %s", path)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
				if strings.Contains(said, secret) || strings.Contains(server.Log.String(), secret) {
					t.Error("the key shows")
				}
			})
		}
	}
}
