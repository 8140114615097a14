package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"docent/cmd/docent/config"
	"docent/internal/testing/freeport"
	"docent/tests/harness"
)

// A server that listens everywhere gives links that open, and one without projects says what to do next.
func TestAServerWithoutProjectsSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	harness.Setenv(t, "DOCENT_PUBLIC_ULR", "https://docent.example.com")
	harness.Setenv(t, "DOCENT_WIKI_TOKEN", "x") // a project names it
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	server.Stop() // and its log is whole
	log := server.Log.String()
	for _, line := range []string{"docent project add docs --data " + data + " --domain", "docent key create --data " +
		data + " --project docs --kind assistant", "--kind admin",
		"DOCENT_PUBLIC_ULR is no setting and has no effect (did you mean DOCENT_PUBLIC_URL?)",
		"DOCENT_WIKI_TOKEN is no setting"} {
		if !strings.Contains(log, line) {
			t.Errorf("the server does not say %q:\n%s", line, log)
		}
	}
	source := harness.WriteFiles(t, map[string]string{"index.md": "# Wiki\n"})
	harness.Docent(t, "project", "add", "wiki", "--data", data, "--domain", "wiki.example.com", "--source", source,
		"--webhook-env", "DOCENT_WIKI_TOKEN")
	server.Log = new(harness.LockedBuffer)
	port := strconv.Itoa(freeport.On(t, "")) // on all addresses: servers of other tests are on some of them
	server.Listen, server.URL = ":"+port, "http://localhost:"+port
	server.Start()
	status := harness.Docent(t, "status", "--data", data)
	if !strings.Contains(status, "http://localhost:"+port) {
		t.Error(status)
	}
	server.Stop()
	log = server.Log.String()
	if strings.Contains(log, "no project yet") || strings.Contains(log, "WIKI_TOKEN") ||
		!strings.Contains(log, "url=http://localhost:"+port) || !strings.Contains(log, "set public_url") {
		t.Errorf("the server says:\n%s", log)
	}
}

func TestConfigSaysWhereEachValueComesFrom(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(file,
		[]byte("listen = '127.0.0.1:1'\nlog_level = 'warn'\nmax_turns = 7\n[limits]\nip_day = 3\n"+
			"[models.small]\nprovider = 'openai'\nmodel = 'tiny'\nbase_url = 'http://me:pa55word@127.0.0.1:9/v1'\nkey_env = 'SMALL_KEY'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Setenv(t, "DOCENT_LOG_LEVEL", "error")
	harness.Setenv(t, "DOCENT_LISTEN", "127.0.0.1:2")
	harness.Setenv(t, "DOCENT_CATALOG_DSN", "postgres://me:pa55word@db.example.com/x")
	harness.Setenv(t, "SMALL_KEY", "hidden")
	out := harness.Docent(t, "config", "--json", "--config", file, "--listen", "127.0.0.1:3")
	var shown config.Shown
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	want := map[string][2]any{"listen": {"127.0.0.1:3", config.FromFlag}, "log_level": {"error", config.FromEnvironment},
		"max_turns":     {7.0, config.FromFile},
		"limits.ip_day": {3.0, config.FromFile}, "limits.org_hour": {10000.0, config.FromDefault}, "idle_after": {"2m0s", config.FromDefault},
		"catalog_dsn": {"(set)", config.FromEnvironment}}
	for _, s := range shown.Settings {
		if w, ok := want[s.Name]; ok && (s.Value != w[0] || s.From != w[1]) {
			t.Errorf("%s is %v from %s, not %v", s.Name, s.Value, s.From, w)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 || shown.File != file {
		t.Errorf("not there: %v; %s", want, shown.File)
	}
	if m := shown.Models["small"]; !m.Key || m.KeyEnv != "SMALL_KEY" || m.Model != "tiny" {
		t.Errorf("%+v", m)
	}
	table := harness.Docent(t, "config", "--config", file)
	for _, line := range []string{"models.small", "openai, tiny, http://me:xxxxx@127.0.0.1:9/v1, key from SMALL_KEY"} {
		if !strings.Contains(table, line) {
			t.Errorf("%q is not in\n%s", line, table)
		}
	}
	if strings.Contains(out+table, "pa55word") || strings.Contains(out+table, "hidden") {
		t.Error("a secret is shown")
	}
}
