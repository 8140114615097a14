package docs

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/api/openapi"
	"docent/api/openapi/openapitest"
	"docent/tests/harness"
)

// exampleIDs are the ids in the document's examples. They stand for those that the server has given.
var exampleIDs = regexp.MustCompile(`\b(job|thr|msg|upd)_01JD8Q7W3N5YB2K4M6P8R0S2T4V6X8\b`)

// TestExamplesOfTheAPIAreAnsweredAsDescribed sends every example of the document to a real server, in the document's
// order, and holds the answers against the document.
func TestExamplesOfTheAPIAreAnsweredAsDescribed(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "docs", harness.WriteFiles(t, map[string]string{
		"index.md":       "# Docs\n\nAlertmanager sends alerts.\n",
		"guides/keys.md": "# Keys\n\n## Rotate\n\nTo rotate a key, make the new key before you revoke the old one.\n",
	}), "--site-url", "https://docs.example.com", "--file", harness.SettingsFile(t, `{"widget": {"contact": "form"}}`))
	keys := map[string]string{"admin": p.Admin, "assistant": p.Assistant}
	refused := map[string]int{
		"push":      http.StatusUnauthorized, // only the code host can sign it; router's tests do
		"cancelJob": http.StatusConflict,     // the job has ended
	}
	client := &http.Client{Transport: openapitest.Checked{T: t, Base: http.DefaultTransport}}
	known := map[string]string{} // ids by their prefix
	learn := func(text string) {
		for _, m := range regexp.MustCompile(`"(?:id|sessionId|statusId|threadId|messageId)":"((job|thr|msg|upd)_\w+)"`).
			FindAllStringSubmatch(text, -1) {
			known[m[2]] = m[1]
		}
	}
	real := func(text string) string {
		return exampleIDs.ReplaceAllStringFunc(text, func(id string) string {
			kind, _, _ := strings.Cut(id, "_")
			if known[kind] == "" {
				t.Errorf("nothing has given an id %s_ yet", kind)
			}
			return known[kind]
		})
	}
	sent, streams := 0, 0
	try := func(o openapi.Operation, example openapi.Example) {
		path := o.Path
		for _, parameter := range o.Parameters {
			switch {
			case parameter.In == "path":
				path = strings.ReplaceAll(path, "{"+parameter.Name+"}", real(parameter.Example))
			case parameter.In == "query" && parameter.Required:
				path += "?" + parameter.Name + "=" + url.QueryEscape(real(parameter.Example))
			}
		}
		var body io.Reader
		if o.Body != nil {
			body = strings.NewReader(real(example.Text))
		}
		req, err := http.NewRequestWithContext(t.Context(), o.Method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Keys) > 0 && !o.Open {
			key := o.Keys[0]
			if o.Body != nil && strings.Contains(example.Text, `"explain"`) {
				key = "admin"
			}
			req.Header.Set("Authorization", "Bearer "+keys[key])
		} else if o.ID == "readLLMS" {
			req.Header.Set("Authorization", "Bearer "+p.Assistant)
		}
		if body != nil {
			req.Header.Set("Content-Type", o.Body.Kind)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		sent++
		if want := refused[o.ID]; want != res.StatusCode && (want != 0 || res.StatusCode >= 400) {
			t.Errorf("%s %s: %d %s", o.ID, example.Name, res.StatusCode, answer)
		}
		learn(string(answer))
		for _, r := range o.Responses {
			for _, c := range r.Content {
				if c.Events == "" || r.Status != "200" || res.StatusCode != http.StatusOK ||
					strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") { // it was not asked for as a stream
					continue
				}
				streams++
				n, err := openapitest.Document().Events("#/components/schemas/"+c.Events, string(answer))
				if err != nil || n == 0 {
					t.Errorf("%s %s: %d events, %v", o.ID, example.Name, n, err)
				}
			}
		}
	}
	for _, g := range openapi.Read().Groups {
		for _, o := range g.Operations {
			if o.Body == nil {
				try(o, openapi.Example{})
				continue
			}
			for _, example := range o.Body.Examples {
				try(o, example)
			}
		}
	}
	if sent < 38 || streams < 9 {
		t.Errorf("only %d requests were sent, and %d streams read", sent, streams)
	}
}
