package api

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api/client"
	"docent/api/stream"
	"docent/tests/harness"
)

// A reader gets their version and their language by every way of asking: both forms of the assistant, the search, and
// the command line.
func TestReadersAreAnsweredInTheirVersionAndLanguage(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	page := func(title, text string) string { return "---\ntitle: " + title + "\n---\n\n" + text + "\n" }
	p := harness.NewProject(t, data, "kettle", harness.WriteFiles(t, map[string]string{
		"docusaurus.config.js":                 "export default { i18n: { defaultLocale: 'en', locales: ['en', 'fr'] }, presets: [['classic', { docs: { lastVersion: 'current', versions: { current: { label: '2.0' } } } }]] }",
		"versions.json":                        `["1.0"]`,
		"docs/kettle.md":                       page("Kettle", "The kettle boils water at ninety degrees in Acme 2."),
		"versioned_docs/version-1.0/kettle.md": page("Kettle", "The kettle boils water at seventy degrees in Acme 1."),
		"i18n/fr/docusaurus-plugin-content-docs/current/kettle.md": page("Bouilloire",
			"La bouilloire chauffe l'eau à quatre-vingt-dix degrés dans Acme 2."),
	}))
	const now, old, french = "/docs/kettle", "/docs/1.0/kettle", "/fr/docs/kettle"
	const english = "At how many degrees does the kettle boil water in Acme?"
	const question = "La bouilloire chauffe l'eau à quatre-vingt-dix degrés dans Acme ?"

	cl := server.Client(p.Assistant)
	post := func(path string, body map[string]any) *http.Response {
		t.Helper()
		resp, err := cl.Do(t.Context(), http.MethodPost, path, body)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	without := func(url string) string { url, _, _ = strings.Cut(url, "#"); return url }
	ways := map[string]func(text string, more map[string]any) []string{
		"search": func(text string, more map[string]any) (urls []string) {
			more["query"] = text
			var hits []struct {
				Metadata struct{ URL string }
			}
			if err := json.NewDecoder(post("/discovery/v1/search/"+p.Domain, more).Body).Decode(&hits); err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				urls = append(urls, without(h.Metadata.URL))
			}
			return urls
		},
	}
	for version, form := range map[string]stream.Form{"v1": stream.DataStream, "v2": stream.UIMessages} {
		ways["assistant "+version] = func(text string, more map[string]any) (urls []string) {
			more["fp"], more["messages"] = "anonymous", []any{map[string]any{"role": "user", "content": text}}
			decoder := stream.NewDecoder(form, post("/discovery/"+version+"/assistant/"+p.Domain+"/message", more).Body)
			for {
				part, err := decoder.Next()
				if err != nil {
					t.Fatal(err)
				}
				switch part.Kind {
				case stream.Source:
					urls = append(urls, without(part.URL))
				case stream.Error:
					t.Fatal(part.Text)
				case stream.Finish:
					return urls
				}
			}
		}
	}
	for way, ask := range ways {
		for _, c := range []struct {
			text string
			more map[string]any
			want string
		}{
			{english, map[string]any{}, now},
			{question, map[string]any{}, french},
			{english, map[string]any{"filter": map[string]any{"version": "1.0"}}, old},
			{question, map[string]any{"filter": map[string]any{"language": "fr"}}, french},
			{english, map[string]any{"filter": map[string]any{"version": "3.0"}}, ""},
			{english, map[string]any{"filter": map[string]any{"language": "fr", "version": "1.0"}}, ""},
			{english, map[string]any{"currentPath": old}, old},
			{question, map[string]any{"currentPath": french}, french},
		} {
			want := []string{c.want}
			if c.want == "" {
				want = nil
			}
			if got := ask(c.text, c.more); !slices.Equal(got, want) {
				t.Errorf("%s: %q with %v is answered from %v, want %v", way, c.text, c.more, got, want)
			}
		}
	}
	command := func(flags ...string) string {
		out := harness.Docent(t, append([]string{"ask", "--url", server.URL, "--domain", p.Domain, "--key", p.Assistant,
			"--json", english}, flags...)...)
		return harness.DecodeOutput[client.Answer](t, out).Text
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, "ninety"}, {[]string{"--version", "1.0"}, "seventy"}, {[]string{"--language", "en"}, "ninety"},
		{[]string{"--current-path", old}, "seventy"}} {
		if text := command(c.flags...); !strings.Contains(text, c.want) {
			t.Errorf("docent ask %v answers %q", c.flags, text)
		}
	}
}
