package main

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
	config := settingsFile(t, "[models.big]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \""+endpoint.URL+"/v1\"\nkey_env = \"DOCTOR_MODEL_KEY\"\n")
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
	says(t, r, "version", doctor.OK, build.Get().Version)

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
	r, _, err := examined(t, "--data", data, "--config", settingsFile(t, "max_streams = 0\nlissten = 'x'\n"))
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
