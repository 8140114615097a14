package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/operator"
	"docent/model/modeltest"
	"docent/search"
	"docent/tests/harness"
)

// An operator connects a model, tests it, and readers are answered by it without a restart, and after one. Its key is shown
// to nobody.
func TestAModelIsConnectedInTheConsole(t *testing.T) {
	t.Parallel()
	const secret = "sk-live-of-the-console-page"
	peer := modeltest.New()
	peer.Key, peer.Models = secret, []string{"another", "stand-in"}
	peer.Answer = func(a modeltest.Asked) modeltest.Step {
		for _, tool := range a.Tools {
			if tool == "ready" {
				return modeltest.Step{Calls: []modeltest.Call{{Name: "ready", Arguments: "{}"}}}
			}
		}
		return modeltest.Step{Text: "The ferry leaves every hour [1]."}
	}
	endpoint := httptest.NewServer(peer)
	t.Cleanup(endpoint.Close)
	data := filepath.Join(t.TempDir(), "data")
	h, stop := openConsoleHouse(t, data)
	withProject(h, "harbour", map[string]string{"ferries.md": "# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n"})
	key, err := h.App.Operator.CreateKey(t.Context(), operator.KeyParams{Project: "harbour", Kind: api.AssistantKey})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		t.Helper()
		q, err := harness.Ask(t.Context(), &client.Client{Base: h.URL, Key: key.Key},
			harness.Project{Domain: "harbour.example.com"}, "", "When does the ferry leave?")
		if err != nil {
			t.Fatal(err)
		}
		return q.Answer
	}
	if ask() == "The ferry leaves every hour." {
		t.Fatal("the model answers before it is connected")
	}
	const page = "/console/system/models"
	for _, role := range []api.Role{api.RoleOwner, api.RoleViewer} {
		if status, _, _ := h.As(role).Do("GET", page, nil); status != 403 && status != 404 {
			t.Errorf("%s sees the models: %d", role, status)
		}
	}
	b := h.As("")
	form := url.Values{"name": {"house"}, "provider": {"openai"}, "base_url": {endpoint.URL + "/v1"}, "model": {"stand-in"},
		"window": {"16000"}, "max_tokens": {"2000"}, "answers": {"on"}, "extra_headers": {"X-Team: docs"}, "extra_body": {"[1]"}}
	status, text, _ := b.Send(page, page+"/save", form)
	if status != 400 || !strings.Contains(text, `id="extra_body-fault"`) || !strings.Contains(text, "X-Team: docs") {
		t.Errorf("a body that is no object: %d\n%s", status, text)
	}
	form.Set("extra_body", `{"seed": 7}`)
	if status, text, _ = b.Send(page, page+"/save", form); status != 303 {
		t.Fatalf("connecting it: %d\n%s", status, text)
	}
	test := func(want string) {
		t.Helper()
		status, _, to := b.Send(page, page+"/test", url.Values{"name": {"house"}})
		if said := b.Open(to); status != 303 || !strings.Contains(said, want) {
			t.Errorf("the test does not say %q: %d\n%s", want, status, said)
		}
	}
	test("refuses its key")
	form.Set("old", "house")
	if status, text, _ = b.Send(page+"/one/house", page+"/list", form); status != 400 || !strings.Contains(text, `id="model-fault"`) {
		t.Errorf("the models of an endpoint that wants a key: %d", status)
	}
	form.Set("key", secret)
	if status, text, _ = b.Send(page+"/one/house", page+"/list", form); status != 200 || !strings.Contains(text, `<option value="another">`) ||
		!strings.Contains(text, `<option value="stand-in" selected>`) || strings.Contains(text, secret) {
		t.Errorf("the endpoint's models: %d\n%s", status, text)
	}
	if status, text, _ = b.Send(page+"/one/house", page+"/save", form); status != 303 {
		t.Fatalf("its key: %d\n%s", status, text)
	}
	test("called a tool")
	test(" tokens")
	if got := ask(); got != "The ferry leaves every hour." {
		t.Errorf("answered %q", got)
	}
	if last := string(peer.Asked()[len(peer.Asked())-1].Body); !strings.Contains(last, `"seed":7`) {
		t.Errorf("the further field was not sent: %s", last)
	}
	// Another address does not get the key.
	form.Del("key")
	form.Set("base_url", "http://127.0.0.1:1/v1")
	if status, text, _ = b.Send(page+"/one/house", page+"/save", form); status != 400 || !strings.Contains(text, `id="key-fault"`) {
		t.Errorf("another address with the key of the first: %d", status)
	}
	stop()
	if list := harness.Holders(t, data, secret); len(list) != 1 || !strings.Contains(list[0], "secrets") || strings.Contains(h.Log.String(), secret) {
		t.Errorf("the key is in the log or in %v", list)
	}
	h, stop = openConsoleHouse(t, data)
	defer stop()
	if got := ask(); got != "The ferry leaves every hour." {
		t.Errorf("answered %q after a restart", got)
	}
	b = h.As("")
	if strings.Contains(b.Open(page)+b.Open(page+"/one/house"), secret) {
		t.Error("a page shows the key")
	}
	if status, _, _ := b.Send(page, page+"/remove", url.Values{"name": {"house"}}); status != 303 || strings.Contains(b.Open(page), "stand-in") {
		t.Errorf("removing it: %d", status)
	}
	if got := ask(); got == "The ferry leaves every hour." {
		t.Error("it answers after it was removed")
	}
}

// An operator connects an embeddings model, and it is asked for the vectors of questions: without a restart, and not after it was
// removed.
func TestAnEmbeddingsModelIsConnectedInTheConsole(t *testing.T) {
	t.Parallel()
	var questions atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Input []string `json:"input"`
		}
		if r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&asked) != nil {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		type one struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var all struct {
			Data []one `json:"data"`
		}
		for i, text := range asked.Input {
			if strings.Contains(text, "vessel") {
				questions.Add(1)
			}
			all.Data = append(all.Data, one{i, []float32{1, 0, 0.1}})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all)
	}))
	t.Cleanup(endpoint.Close)
	h, stop := openConsoleHouse(t, filepath.Join(t.TempDir(), "data"))
	defer stop()
	withProject(h, "harbour", map[string]string{"ferries.md": "# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n",
		"bread.md": "# Bread\n\nBread is baked each morning.\n"})
	const page = "/console/system/models"
	b := h.As("")
	form := url.Values{"name": {"vectors"}, "kind": {"embeddings"}, "provider": {"openai"}, "base_url": {endpoint.URL + "/v1"}, "model": {"small"},
		"answers": {"on"}}
	if status, text, _ := b.Send(page, page+"/save", form); status != 303 {
		t.Fatalf("connecting it: %d\n%s", status, text)
	}
	_, _, to := b.Send(page, page+"/test", url.Values{"name": {"vectors"}})
	if said := b.Open(to); !strings.Contains(said, "vectors of 3 numbers") || !strings.Contains(said, "search by meaning") {
		t.Errorf("the test says\n%s", said)
	}
	isAsked := func() bool {
		before := questions.Load()
		_, err := h.App.Stores.Library.Search(t.Context(), "harbour", search.Query{Text: fmt.Sprint("When does vessel ", before, " depart?"), Limit: 1})
		return err == nil && questions.Load() > before
	}
	harness.Until(t, "questions are searched by what they mean", isAsked)
	form.Set("name", "more")
	if status, text, _ := b.Send(page, page+"/save", form); status != 400 || !strings.Contains(text, `id="kind-fault"`) {
		t.Errorf("a second one: %d", status)
	}
	if status, _, _ := b.Send(page, page+"/remove", url.Values{"name": {"vectors"}}); status != 303 || isAsked() {
		t.Errorf("removing it: %d, or it is still asked", status)
	}
	if _, on := h.App.Stores.Library.Meaning("harbour"); on {
		t.Error("vectors are made by an endpoint that was removed")
	}
}
