package models

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"docent/api/client"
	"docent/api/stream"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// The story of a follow-up: it is rewritten by a small model, found, answered by a large one, and explained to anyone who
// has an admin key, on the command line and in both streams; the small model fails, and the answer is there and says so.
func TestAFollowUpIsRewrittenAnsweredAndExplained(t *testing.T) {
	t.Parallel()
	const read = `{"question": "When does the ferry to Skarholm leave in winter?", "queries": ["ferry Skarholm winter", "winter timetable"]}`
	peer := harness.NewProvider(t, []modeltest.Script{
		{Match: "The last question:\nWhen does", Shared: true, Steps: []modeltest.Step{{Text: `{"question": "When does it leave?", "queries": ["ferry"]}`}}},
		{Match: "The last question:\nAnd in winter?", Shared: true, Steps: []modeltest.Step{{Text: read}}},
		{Match: "The last question:", Shared: true, Steps: []modeltest.Step{{Fault: "500", Times: 1000}}},
		{Match: "in winter?", Shared: true, Steps: []modeltest.Step{{Text: "It leaves at noon [1]."}}},
		{Match: "", Shared: true, Steps: []modeltest.Step{{Text: "It leaves every hour from pier two [1]."}}},
	}, "--window", "16000")
	config := harness.SettingsFile(t, "default_model = \"large\"\n"+
		strings.Replace(peer.Config("large", "openai"), `rewrite = "off"`, "rewrite = \"small\"\nrewrite_timeout = \"1m\"\nprompt_price = 1.0", 1)+
		peer.Config("small", "openai"))
	data := t.TempDir() + "/data"
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, map[string]string{
		"ferries.md": "# Ferries\n\nThe ferry to Skarholm leaves every hour from pier two.\n",
		"winter.md":  "# Winter timetable\n\nThe ferry to Skarholm leaves at noon.\n\n## Ice\n\nWith ice it does not go.\n",
	}))
	server := harness.NewServer(t, data, "--config", config)
	flags := []string{"--url", server.URL, "--domain", p.Domain}
	ask := func(more ...string) string {
		return harness.Docent(t, append(append([]string{"ask"}, flags...), more...)...)
	}

	var first client.Answer
	out := ask("--key", p.Assistant, "--json", "When does the ferry to Skarholm leave?")
	if err := json.Unmarshal([]byte(out), &first); err != nil || first.Explanation != nil || len(first.Degraded) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for i, form := range [][]string{nil, {"--data-stream"}} {
		var a client.Answer
		// An admin key is another caller's: it has a conversation of its own.
		out := ask(append(form, "--key", p.Admin, "--explain", "--json", "When does the ferry to Skarholm leave?")...)
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out = ask(append(form, "--key", p.Admin, "--explain", "--thread", a.ThreadID, "--thread-key", a.ThreadKey, "--json", "And in winter?")...)
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		x := a.Explanation
		if x == nil || a.Text != "It leaves at noon." || x.Read != "When does the ferry to Skarholm leave in winter?" ||
			x.Rewrite.Model != "small" || len(x.Rewrite.Queries) != 2 || x.Model != "large" || x.Usage.Cost == 0 ||
			len(x.Passages) == 0 || x.Passages[0].Path != "winter.md" || !x.Passages[0].Cited {
			t.Fatalf("form %d: %s", i, out)
		}
	}
	text := ask("--key", p.Admin, "--explain", "And in winter?")
	for _, part := range []string{"How it came about", `"When does the ferry to Skarholm leave in winter?"`, `"rewrite": {`,
		`"searches": [`, `"passages": [`} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}

	// The small model fails: readers are answered, and told in both streams.
	for path, form := range map[string]stream.Form{"/discovery/v1": stream.DataStream, "/discovery/v2": stream.UIMessages} {
		body := map[string]any{"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": "Which pier?"}}}
		resp, err := server.Client(p.Assistant).Do(t.Context(), http.MethodPost, path+"/assistant/"+p.Domain+"/message", body)
		if err != nil {
			t.Fatal(err)
		}
		var end stream.Part
		for d := stream.NewDecoder(form, resp.Body); ; {
			part, err := d.Next()
			if err != nil {
				break
			}
			end = part
		}
		resp.Body.Close()
		if end.Kind != stream.Finish || !slices.Equal(end.Degraded, []string{"rewrite: unavailable"}) {
			t.Errorf("%v ends with %+v", form, end)
		}
	}

	// Readers are not told how an answer came about.
	for key, body := range map[string]map[string]any{p.Assistant: {"explain": true}, p.Admin: {}} {
		body["fp"], body["messages"] = "anonymous", []any{map[string]any{"role": "user", "content": "Why?"}}
		_, err := server.Client(key).Do(t.Context(), http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message", body)
		if err == nil || !strings.Contains(err.Error(), "explain") {
			t.Errorf("a key of the wrong kind: %v", err)
		}
	}
}
