package doctor

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/internal/health"
	"docent/internal/secret"
	"docent/model/modeltest"
)

func TestTheDoctorSaysWhyAModelCannotBeAsked(t *testing.T) {
	t.Parallel()
	provider := modeltest.New(modeltest.Script{Steps: []modeltest.Step{{Text: "yes"}}})
	provider.Key = "right"
	playing := httptest.NewServer(provider)
	defer playing.Close()
	listing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			_, _ = w.Write([]byte(`{"data":[{"id":"qwen3:8b"},{"id":"llama3.2"}]}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"message":"model not found"}}`))
	}))
	defer listing.Close()
	const dead = "http://127.0.0.1:1" // where nobody listens; the address of a server that was closed somebody else may get
	held := func(value string) *secret.Secret {
		s, err := secret.New("MY_KEY", func(name string) (string, bool) { return value, name == "MY_KEY" })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		model config.Model
		want  Status
		text  string
	}{
		{config.Model{BaseURL: playing.URL + "/v1", Model: "m", KeyEnv: "MY_KEY", Key: held("wrong")}, Problem, "into MY_KEY"},
		{config.Model{BaseURL: dead + "/v1", Model: "m"}, Problem, "curl " + dead + "/v1/models"},
		{config.Model{BaseURL: listing.URL + "/v1", Model: "qwen3:7b"}, Problem, `model = "qwen3:8b"`},
		{config.Model{BaseURL: playing.URL, Model: "m", Key: held("right")}, Problem, "ends in /v1"},
		{config.Model{BaseURL: playing.URL + "/v1", Model: "m", Key: held("right")}, Warning, "no tool"},
	} {
		c.model.Provider = "openai"
		f := AskModel(t.Context(), "x", c.model)
		if f.Status != c.want || !strings.Contains(f.Found+" "+f.Fix, c.text) || f.Fix == "" {
			t.Errorf("%+v, want %s with %q", f, c.want, c.text)
		}
	}
	// Of one that was connected in the console, it is said where that is mended.
	bad := api.LanguageModel{Name: "house", Provider: "openai", BaseURL: playing.URL + "/v1", Model: "m", KeyFile: "file"}
	f := AskConnected(t.Context(), bad, func(string) (string, error) { return "wrong", nil })
	if f.Status != Problem || f.Fix != "console, Models, house: enter a valid key" {
		t.Errorf("%+v", f)
	}
	found := modelFindings(t.Context(), config.Config{}, []api.LanguageModel{bad}, func(string) (string, error) { return "right", nil })
	if len(found) != 1 || found[0].About != "house" || strings.Contains(found[0].Found+found[0].Fix, "[models.") {
		t.Errorf("%+v", found)
	}
	e := config.Config{Embeddings: config.Embeddings{Model: "e", BaseURL: dead}}
	if f := embeddingFindings(t.Context(), e, nil, nil); len(f) != 1 || f[0].Status != Problem {
		t.Errorf("%+v", f)
	}
}

func TestTheDoctorLooksAtKeysAndBackups(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	in := func(days int) *time.Time { at := now.AddDate(0, 0, days); return &at }
	p := []api.Project{{ID: "docs"}}
	for _, c := range []struct {
		key  api.Key
		want string
	}{
		{api.Key{CreatedAt: *in(-60), LastUsed: in(-1)}, "the only project has an active one"},
		{api.Key{CreatedAt: *in(-60)}, "never used"},
		{api.Key{CreatedAt: *in(-60), LastUsed: in(-1), ExpiresAt: in(3)}, "ends on 2026-05-04"},
		{api.Key{CreatedAt: *in(-60), LastUsed: in(-1), ExpiresAt: in(-3)}, "no assistant key is active"},
		{api.Key{CreatedAt: *in(-60), LastUsed: in(-1), RevokedAt: in(-3)}, "no assistant key is active"},
	} {
		c.key.Project, c.key.Kind = "docs", api.AssistantKey
		if f := judgeKeys(p, []api.Key{c.key}, now); len(f) != 1 || !strings.Contains(f[0].Found, c.want) {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
	for want, b := range map[Status]health.Backup{
		OK:      {Made: &health.Copy{Began: *in(-1)}},
		Warning: {Made: &health.Copy{Began: *in(-9)}},
		Problem: {Made: &health.Copy{Began: *in(-1)}, Failed: &health.Copy{Began: *in(0), Error: "no room"}},
	} {
		if f := judgeBackup(b, now); f.Status != want {
			t.Errorf("%+v, want %s", f, want)
		}
	}
}

func TestTheDoctorKnowsWhatNodesNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		commit     string
		most, used int
		pooled     bool
		says       string
	}{
		{"on", 100, 30, false, "keeps what it acknowledges"},
		{"remote_apply", 100, 30, false, "keeps what it acknowledges"},
		{"off", 100, 30, false, "synchronous_commit is off"},
		{"local", 100, 30, false, "synchronous_commit is local"},
		{"on", 100, 80, false, "20 of 100 connections are free"},
		{"on", 100, 30, true, "a pooler gives each transaction another session"},
	} {
		if found := judgeDatabase(c.commit, c.most, c.used, c.pooled); len(found) != 1 || !strings.Contains(fmt.Sprint(found), c.says) {
			t.Errorf("%+v: %v", c, found)
		}
	}
	there, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	const gone = "127.0.0.1:1" // where nobody listens; one that was closed somebody else may get
	found := judgeNodes(t.Context(), []health.Node{{Name: "a", Self: true, Version: "1"}, {Name: "b", Version: "1", Address: there.Addr().String()},
		{Name: "c", Version: "2", Address: gone}})
	var says []string
	for _, f := range found {
		says = append(says, fmt.Sprint(f))
	}
	if len(found) != 4 || !strings.Contains(says[1], "can be reached") || !strings.Contains(says[2], "cannot be reached") ||
		!strings.Contains(says[3], "2 versions") {
		t.Errorf("found are %q", says)
	}
}
