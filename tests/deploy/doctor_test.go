package deploy

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/cmd/docent/build"
	"docent/cmd/docent/doctor"
	"docent/forge/forgetest"
	"docent/model/modeltest"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

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
	harness.Setenv(t, "DOCTOR_HOST_TOKEN", token)
	harness.Setenv(t, "DOCTOR_MODEL_KEY", key)
	config := harness.SettingsFile(t, "[models.big]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \""+endpoint.URL+"/v1\"\nkey_env = \"DOCTOR_MODEL_KEY\"\n")
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", "", "--host", "gitea", "--host-url", host.URL, "--repository", "acme/docs", "--token-env", "DOCTOR_HOST_TOKEN")
	harness.Docent(t, "backup", "--data", data, filepath.Join(t.TempDir(), "copy"))
	server := harness.NewServer(t, data, "--config", config)
	var r doctor.Report
	var out string
	var err error
	// A machine that stands still for a moment looks like a proxy that collects what is written: then the doctor looks again.
	harness.Until(t, "what is written arrives part by part", func() bool {
		provider.Load(ready)
		r, out, err = harness.Examine(t, "--data", data, "--config", config)
		return !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool {
			return f.Check == "proxy buffering" && strings.Contains(f.Found, "in one piece")
		})
	})
	if err != nil || r.Problems > 0 {
		t.Errorf("%v: %s", err, out)
	}
	harness.Says(t, r, "model big", doctor.OK, "called a tool")
	harness.Says(t, r, "code host "+p.ID, doctor.OK, "acme/docs")
	harness.Says(t, r, "public address", doctor.OK, server.URL+" leads to this server")
	harness.Says(t, r, "proxy buffering", doctor.OK, "part by part")
	harness.Says(t, r, "journal", doctor.OK, "written to")
	harness.Says(t, r, "quarantine", doctor.OK, "no job")
	harness.Says(t, r, "backup", doctor.OK, "copy")
	harness.Says(t, r, "keys", doctor.OK, "the only project")
	harness.Says(t, r, "source", doctor.OK, "all 1")
	harness.Says(t, r, "version", doctor.OK, build.Get().Version)

	host.Do(func() { host.Tokens = []string{"another"} })
	provider.Load(modeltest.Script{Steps: []modeltest.Step{{Text: "Yes, I am ready."}}})
	r, out2, err := harness.Examine(t, "--data", data, "--config", config)
	if err == nil || r.OK {
		t.Error("the exit status is 0")
	}
	harness.Says(t, r, "code host "+p.ID, doctor.Problem, "docent project token "+p.ID)
	harness.Says(t, r, "model big", doctor.Warning, "no tool")
	if strings.Contains(out+out2+server.Log.String(), token) || strings.Contains(out+out2, key) {
		t.Error("a secret is shown")
	}
	r, _, err = harness.Examine(t, "--data", data, "--config", config, "--offline")
	if err != nil {
		t.Error(err)
	}
	for _, check := range []string{"model", "code host", "embeddings", "public address"} {
		harness.Says(t, r, check, doctor.Skipped, "--offline")
	}
}

// Without a server, and without anything at all, the doctor says what it can.
func TestTheDoctorWithoutAServer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	r, _, err := harness.Examine(t, "--data", data, "--config", harness.SettingsFile(t,
		"max_streams = 0\nlissten = 'x'\n"))
	harness.Says(t, r, "configuration", doctor.Problem, "max_streams")
	harness.Says(t, r, "configuration", doctor.Problem, "write listen for lissten")
	harness.Says(t, r, "data directory", doctor.Warning, "docent init")
	harness.Says(t, r, "public address", doctor.Skipped, "no server")
	if _, made := os.Stat(data); err == nil || made == nil {
		t.Errorf("%v; a data directory was made: %v", err, made)
	}

	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	r, _, err = harness.Examine(t, "--data", data)
	if err != nil {
		t.Error(err)
	}
	harness.Says(t, r, "server", doctor.Skipped, "no server runs")
	harness.Says(t, r, "source", doctor.OK, "all 1")
	harness.Says(t, r, "backup", doctor.Warning, "none was made")
	server := harness.NewServer(t, data)
	server.Kill()
	r, _, _ = harness.Examine(t, "--data", data, "--offline")
	harness.Says(t, r, "journal", doctor.OK, "is whole")

	if os.Getuid() == 0 { // nothing is made in another user's data directory
		if err := os.Chown(data, 54321, 54321); err != nil {
			t.Fatal(err)
		}
		r, _, _ = harness.Examine(t, "--data", data, "--offline")
		harness.Says(t, r, "stores", doctor.Skipped, "docent doctor --data "+data)
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
	keys := harness.Docent(t, "key", "list", "--data", data, "--project", p.ID, "--json")
	for line := range strings.Lines(keys) {
		var k api.Key
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatal(err)
		}
		harness.Docent(t, "key", "revoke", "--data", data, string(k.ID))
	}
	if err := errors.Join(os.WriteFile(file, text, 0o600), os.WriteFile(filepath.Join(data, "mine.txt"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	r, _, err = harness.Examine(t, "--data", data, "--offline")
	if err == nil {
		t.Error("the exit status is 0")
	}
	harness.Says(t, r, "journal", doctor.Problem, "restore a backup")
	harness.Says(t, r, "data directory", doctor.Warning, "chmod -R go-rwx")
	harness.Says(t, r, "keys "+p.ID, doctor.Warning, "docent key create --project "+p.ID)
}
