package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/datadir"
	"docent/doctor"
	"docent/forge/forgetest"
	"docent/health"
	"docent/model/modeltest"
	"docent/secrets/given"
)

// examined is what the command says.
func examined(t *testing.T, args ...string) (doctor.Report, string, error) {
	t.Helper()
	out, err := tryDocent(t, append([]string{"doctor", "--json"}, args...)...)
	var r doctor.Report
	if jsonErr := json.Unmarshal([]byte(out), &r); jsonErr != nil {
		t.Fatalf("%v: %s, %v", jsonErr, out, err)
	}
	return r, out, err
}

// says fails where a report has no such finding.
func says(t *testing.T, r doctor.Report, check string, want doctor.Status, text string) {
	t.Helper()
	for _, f := range r.Findings {
		if strings.TrimSpace(f.Check+" "+f.About) == check && f.Status == want && strings.Contains(f.Found+" "+f.Fix, text) {
			return
		}
	}
	t.Errorf("the doctor does not say %s of %s, with %q: %+v", want, check, text, r.Findings)
}

// Beside a server its own environment and limits are looked at, and the way to it; what is well is not called wrong.
func TestTheDoctorBesideARunningServer(t *testing.T) {
	t.Parallel()
	const token, key = "hst_NobodyMaySeeThis", "sk-NobodyMaySeeThisEither"
	ready := modeltest.Script{Steps: []modeltest.Step{{Calls: []modeltest.Call{{Name: "ready", Arguments: "{}"}}}}}
	provider := modeltest.New(ready)
	provider.Key = key
	endpoint := httptest.NewServer(provider)
	defer endpoint.Close()
	host := forgetest.NewStandIn(t)
	host.Do(func() { host.Tokens = []string{token} })
	setenv(t, "DOCTOR_HOST_TOKEN", token)
	setenv(t, "DOCTOR_MODEL_KEY", key)
	config := configFile(t, "[models.big]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \""+endpoint.URL+"/v1\"\nkey_env = \"DOCTOR_MODEL_KEY\"\n")
	data := filepath.Join(t.TempDir(), "data")
	p := newTestProject(t, data, "harbour", "", "--host", "gitea", "--host-url", host.URL, "--repository", "acme/docs", "--token-env", "DOCTOR_HOST_TOKEN")
	docent(t, "backup", "--data", data, filepath.Join(t.TempDir(), "copy"))
	server := newTestServer(t, data, "--config", config)
	var r doctor.Report
	var out string
	var err error
	// A machine that stands still for a moment looks like a proxy that collects what is written: then the doctor looks again.
	until(t, "what is written arrives part by part", func() bool {
		provider.Load(ready)
		r, out, err = examined(t, "--data", data, "--config", config)
		return !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
			return f.Check == "proxy buffering" && strings.Contains(f.Found, "in one piece")
		})
	})
	if err != nil || r.Problems > 0 {
		t.Errorf("%v: %s", err, out)
	}
	says(t, r, "model big", doctor.OK, "calls tools")
	says(t, r, "code host "+p.id, doctor.OK, "acme/docs")
	says(t, r, "public address", doctor.OK, server.url+" leads to this server")
	says(t, r, "proxy buffering", doctor.OK, "part by part")
	says(t, r, "journal", doctor.OK, "written to")
	says(t, r, "quarantine", doctor.OK, "no job")
	says(t, r, "backup", doctor.OK, "copy")
	says(t, r, "keys", doctor.OK, "1 projects")
	says(t, r, "source", doctor.OK, "all 1")
	says(t, r, "version", doctor.OK, buildVersion().Version)

	host.Do(func() { host.Tokens = []string{"another"} })
	provider.Load(modeltest.Script{Steps: []modeltest.Step{{Text: "Yes, I am ready."}}})
	r, out2, err := examined(t, "--data", data, "--config", config)
	if err == nil || r.OK {
		t.Error("the exit status is 0")
	}
	says(t, r, "code host "+p.id, doctor.Problem, "docent project token "+p.id)
	says(t, r, "model big", doctor.Warning, "no tool")
	if strings.Contains(out+out2+server.log.String(), token) || strings.Contains(out+out2, key) {
		t.Error("a secret is shown")
	}
	r, _, err = examined(t, "--data", data, "--config", config, "--offline")
	if err != nil {
		t.Error(err)
	}
	for _, check := range []string{"model", "code host", "embeddings", "public address"} {
		says(t, r, check, doctor.Skipped, "--offline")
	}
}

// Without a server, and without anything at all, the doctor says what it can.
func TestTheDoctorWithoutAServer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	r, _, err := examined(t, "--data", data, "--config", configFile(t, "max_streams = 0\nlissten = 'x'\n"))
	says(t, r, "configuration", doctor.Problem, "max_streams")
	says(t, r, "configuration", doctor.Problem, "write listen for lissten")
	says(t, r, "data directory", doctor.Warning, "docent init")
	says(t, r, "public address", doctor.Skipped, "no server")
	if _, made := os.Stat(data); err == nil || made == nil {
		t.Errorf("%v; a data directory was made: %v", err, made)
	}

	p := newTestProject(t, data, "harbour", writeFiles(t, harbour))
	r, _, err = examined(t, "--data", data)
	if err != nil {
		t.Error(err)
	}
	says(t, r, "server", doctor.Skipped, "no server runs")
	says(t, r, "source", doctor.OK, "all 1")
	says(t, r, "backup", doctor.Warning, "none was made")
	server := newTestServer(t, data)
	server.kill()
	r, _, _ = examined(t, "--data", data, "--offline")
	says(t, r, "journal", doctor.OK, "is whole")

	if os.Getuid() == 0 { // nothing is made in another user's data directory
		if err := os.Chown(data, 54321, 54321); err != nil {
			t.Fatal(err)
		}
		r, _, _ = examined(t, "--data", data, "--offline")
		says(t, r, "stores", doctor.Skipped, "docent doctor --data "+data)
		if err := os.Chown(data, 0, 0); err != nil {
			t.Fatal(err)
		}
	}

	// A page of the journal is damaged, a key revoked, a file readable by others.
	file := filepath.Join(data, datadir.Journal)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * 4096; i < len(text); i++ {
		text[i] ^= 0x55
	}
	keys := docent(t, "key", "list", "--data", data, "--project", p.id, "--json")
	for line := range strings.Lines(keys) {
		var k api.Key
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatal(err)
		}
		docent(t, "key", "revoke", "--data", data, string(k.ID))
	}
	if err := errors.Join(os.WriteFile(file, text, 0o600), os.WriteFile(filepath.Join(data, "mine.txt"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	r, _, err = examined(t, "--data", data, "--offline")
	if err == nil {
		t.Error("the exit status is 0")
	}
	says(t, r, "journal", doctor.Problem, "restore a backup")
	says(t, r, "data directory", doctor.Warning, "chmod -R go-rwx")
	says(t, r, "keys "+p.id, doctor.Warning, "docent key create --project "+p.id)
}

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
	held := func(value string) *given.Secret {
		s, err := given.New("MY_KEY", environment("MY_KEY", value))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		model ModelConfig
		want  doctor.Status
		text  string
	}{
		{ModelConfig{BaseURL: playing.URL + "/v1", Model: "m", KeyEnv: "MY_KEY", key: held("wrong")}, doctor.Problem, "into MY_KEY"},
		{ModelConfig{BaseURL: dead + "/v1", Model: "m"}, doctor.Problem, "curl " + dead + "/v1/models"},
		{ModelConfig{BaseURL: listing.URL + "/v1", Model: "qwen3:7b"}, doctor.Problem, `model = "qwen3:8b"`},
		{ModelConfig{BaseURL: playing.URL, Model: "m", key: held("right")}, doctor.Problem, "ends in /v1"},
		{ModelConfig{BaseURL: playing.URL + "/v1", Model: "m", key: held("right")}, doctor.Warning, "no tool"},
	} {
		c.model.Provider = "openai"
		f := Config{Models: map[string]ModelConfig{"x": c.model}}.modelFinding(t.Context(), "x")
		if f.Status != c.want || !strings.Contains(f.Found+" "+f.Fix, c.text) || f.Fix == "" {
			t.Errorf("%+v, want %s with %q", f, c.want, c.text)
		}
	}
	e := Config{Embeddings: EmbeddingsConfig{Model: "e", BaseURL: dead}}
	if f := e.embeddingFindings(t.Context()); len(f) != 1 || f[0].Status != doctor.Problem {
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
		{api.Key{CreatedAt: *in(-60), LastUsed: in(-1)}, "each of the 1 projects"},
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
	for want, b := range map[doctor.Status]health.Backup{
		doctor.OK:      {Made: &health.Copy{Began: *in(-1)}},
		doctor.Warning: {Made: &health.Copy{Began: *in(-9)}},
		doctor.Problem: {Made: &health.Copy{Began: *in(-1)}, Failed: &health.Copy{Began: *in(0), Error: "no room"}},
	} {
		if f := judgeBackup(b, now); f.Status != want {
			t.Errorf("%+v, want %s", f, want)
		}
	}
}
