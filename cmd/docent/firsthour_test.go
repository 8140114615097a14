package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/cmd/docent/config"
)

// A server that listens everywhere gives links that open, and one without projects says what to do next.
func TestAServerWithoutProjectsSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	setenv(t, "DOCENT_PUBLIC_ULR", "https://docent.example.com")
	setenv(t, "DOCENT_WIKI_TOKEN", "x") // a project names it
	data := filepath.Join(t.TempDir(), "data")
	server := newTestServer(t, data)
	server.stop() // and its log is whole
	log := server.log.String()
	for _, line := range []string{"docent project add docs --data " + data + " --domain", "docent key create --data " +
		data + " --project docs --kind assistant", "--kind admin",
		"DOCENT_PUBLIC_ULR is no setting and has no effect (did you mean DOCENT_PUBLIC_URL?)",
		"DOCENT_WIKI_TOKEN is no setting"} {
		if !strings.Contains(log, line) {
			t.Errorf("the server does not say %q:\n%s", line, log)
		}
	}
	source := writeFiles(t, map[string]string{"index.md": "# Wiki\n"})
	docent(t, "project", "add", "wiki", "--data", data, "--domain", "wiki.example.com", "--source", source,
		"--webhook-env", "DOCENT_WIKI_TOKEN")
	server.log = new(lockedBuffer)
	_, port, _ := net.SplitHostPort(server.listen)
	server.listen = ":" + port
	server.start()
	status := docent(t, "status", "--data", data)
	if !strings.Contains(status, "http://localhost:"+port) {
		t.Error(status)
	}
	server.stop()
	log = server.log.String()
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
	setenv(t, "DOCENT_LOG_LEVEL", "error")
	setenv(t, "DOCENT_LISTEN", "127.0.0.1:2")
	setenv(t, "DOCENT_CATALOG_DSN", "postgres://me:pa55word@db.example.com/x")
	setenv(t, "SMALL_KEY", "hidden")
	out := docent(t, "config", "--json", "--config", file, "--listen", "127.0.0.1:3")
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
	table := docent(t, "config", "--config", file)
	for _, line := range []string{"models.small", "openai, tiny, http://me:xxxxx@127.0.0.1:9/v1, key from SMALL_KEY"} {
		if !strings.Contains(table, line) {
			t.Errorf("%q is not in\n%s", line, table)
		}
	}
	if strings.Contains(out+table, "pa55word") || strings.Contains(out+table, "hidden") {
		t.Error("a secret is shown")
	}
}

func TestOnlyVariablesWithoutAnEffectAreUnknown(t *testing.T) {
	c := config.Default()
	c.Models = map[string]config.Model{"m": {KeyEnv: "DOCENT_MODEL_TOKEN"}}
	environ := []string{"PATH=/bin", "DOCENT_LISTEN=x", "DOCENT_LIMITS_IP_DAY=1", "DOCENT_CONFIG=f", "DOCENT_KEY=k",
		"DOCENT_MODEL_TOKEN=t",
		"DOCENT_HUB_FILE=f", "DOCENT_HOOK=h", "DOCENT_SERVICE_PORT_HTTP=80", "DOCENT_PORT=tcp://10.0.0.1:80",
		"DOCENT_IPDAY=1", "DOCENT_LIMITS_IP_DAYS=1"}
	got := c.UnknownVariables(environ, []api.Project{{TokenEnv: "DOCENT_HUB", WebhookEnv: "DOCENT_HOOK"}})
	want := []string{"the environment variable DOCENT_IPDAY is no setting and has no effect",
		"the environment variable DOCENT_LIMITS_IP_DAYS is no setting and has no effect (did you mean DOCENT_LIMITS_IP_DAY?)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Every command and flag is told from its neighbours, and what a command takes is in its usage.
func TestCommandsNameThingsInOneWay(t *testing.T) {
	root := commands.New(cli.Program{})
	for path, use := range map[string]string{"project add": "add NAME", "project set": "set NAME",
		"project check": "check NAME", "project remove": "remove NAME",
		"index": "index PROJECT", "job show": "show ID", "pull merge": "merge ID", "key revoke": "revoke ID",
		"thread delete":  "delete [ID]",
		"automation add": "add NAME", "automation run": "run NAME|ID", "automation remove": "remove NAME|ID"} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || cmd.Use != use {
			t.Errorf("%s: %q, %v", path, cmd.Use, err)
		}
	}
	root.SetArgs([]string{"project", "add", "--domain", "x.example.com", "--source", "."})
	if err := root.ExecuteContext(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "needs the project's NAME") {
		t.Error(err)
	}
}
