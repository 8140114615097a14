package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that is wrong is said at once, with the line of the file, where syntax is among it too.
func TestConfigCheckSaysEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	file := configFile(t, `lissten = ":8080"
idle_after = "soon"
max_streams = "many"
listen =
public_url = "docent.example.com"
trusted_proxies = ["0.0.0.0/0"]
memory_limit = 1000000
drain_timeout = 30

[limits]
key_day = 3
backup_dir = "b"

[model.big]
provider = "openai"

[models.small]
provider = "openai"
modle = "x"
timeout = "10m"
key_env = "NO_KEY"

[oidc]
client_id = "x"
`)
	report := checkConfig(file, []string{"DOCENT_MAX_TURNS=none", "DOCENT_PUBLIC_ULR=x"}, nil)
	if report.OK {
		t.Error("it is called usable")
	}
	for _, want := range []struct {
		setting  string
		line     int
		severity string
		text     string // of the message or of the fix
	}{
		{"lissten", 1, severityProblem, "write listen for lissten"},
		{"idle_after", 2, severityProblem, `"soon" is not a duration`},
		{"max_streams", 3, severityProblem, "must be a whole number without quotes"},
		{"", 4, severityProblem, "start of value"},
		{"public_url", 5, severityProblem, "is not an http or https URL"},
		{"trusted_proxies", 6, severityWarning, "name the proxy's own address"},
		{"index_memory", 0, severityWarning, "raise memory_limit"},
		{"drain_timeout", 8, severityProblem, `with its unit`},
		{"limits.key_day", 11, severityProblem, "unknown setting"},
		{"limits.backup_dir", 12, severityProblem, "move backup_dir above the first [table]"},
		{"model.big", 14, severityProblem, "write [models.big]"},
		{"models.small.model", 17, severityProblem, "must name the endpoint's model"},
		{"models.small.modle", 19, severityProblem, "model for modle"},
		{"models.small.timeout", 20, severityWarning, "turn_timeout"},
		{"models.small.key_env", 21, severityProblem, "NO_KEY is empty or not set"},
		{"oidc.issuer", 23, severityWarning, "there is no provider"},
		{"max_turns", 0, severityProblem, "not a whole number"},
		{"", 0, severityWarning, "DOCENT_PUBLIC_ULR is no setting"},
	} {
		found := false
		for _, p := range report.Problems {
			found = found || p.Setting == want.setting && p.Line == want.line && p.Severity == want.severity &&
				strings.Contains(p.Message+" "+p.Fix, want.text)
		}
		if !found {
			t.Errorf("not said: %+v", want)
		}
	}
	if len(report.Problems) != 18 {
		t.Errorf("%d are said, which are not those 18", len(report.Problems))
	}
	// The server's own words for the same file are the same.
	_, err := LoadConfig(file, environment("DOCENT_MAX_TURNS", "none"), nil)
	for _, p := range report.Problems {
		if p.Severity == severityProblem && !strings.Contains(err.Error(), p.Error()) {
			t.Errorf("serve does not say %q", p.Error())
		}
	}
}

// A broken table leaves out nothing that follows from it: what it had is not called unknown.
func TestABrokenTableIsOneProblem(t *testing.T) {
	t.Parallel()
	report := checkConfig(configFile(t, "listen = \":1\"\n[models.x\nprovider = \"openai\"\nmodel = \"m\"\n"), nil, nil)
	if len(report.Problems) != 1 || report.Problems[0].Line != 2 || report.OK {
		var b bytes.Buffer
		_ = report.print(&b)
		t.Errorf("%s", &b)
	}
}

func TestSettingsThatContradictEachOtherAreDoubted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"data = '" + dir + "'\nbackup_dir = '" + filepath.Join(dir, "b") + "'":                               "backup_dir",
		"profile_listen = '127.0.0.1:6060'":                                                                  "profile_listen", // deprecated
		"metrics_from = ['::/0']":                                                                            "metrics_from",
		"public_url = 'https://example.com/docent'":                                                          "public_url",
		"listen = '0.0.0.0:80'":                                                                              "public_url",
		"[checks.docs]\ncommand = ['no-such-program-x']":                                                     "checks.docs.command",
		"[oidc]\nissuer = 'https://id.example.com'\nclient_id = 'x'":                                         "oidc.client_secret_env",
		"[models.m]\nprovider='openai'\nmodel='m'\nbase_url='http://models.example.com/v1'\nkey_env='M_KEY'": "models.m.base_url",
		"[models.m]\nprovider='openai'\nmodel='m'\ntimeout='20s'\nfallback_after='30s'":                      "models.m.fallback_after",
		"default_model='m'\nagent_cost=5\n[models.m]\nprovider='openai'\nmodel='m'":                          "agent_cost",
	} {
		report := checkConfig(configFile(t, text), []string{"M_KEY=secret-key"}, nil)
		if len(report.Problems) != 1 || report.Problems[0].Setting != want || report.Problems[0].Fix == "" || !report.OK {
			var b bytes.Buffer
			_ = report.print(&b)
			t.Errorf("%q is not doubted for %s alone:\n%s", text, want, &b)
		}
	}
	file := configFile(t, "catalog_dsn = 'postgres://me:pa55word@db.example.com/x'")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	report := checkConfig(file, nil, nil)
	if len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Fix, "chmod o-r") {
		t.Errorf("%+v", report.Problems)
	}
}

func TestConfigCheckHasAnExitStatusAndJSON(t *testing.T) {
	t.Parallel()
	good := configFile(t, "listen = '127.0.0.1:1'")
	if out := docent(t, "config", "check", "--config", good); !strings.Contains(out, "nothing is wrong") {
		t.Error(out)
	}
	doubted := configFile(t, "metrics_from = ['0.0.0.0/0']")
	docent(t, "config", "check", "--config", doubted)
	if _, err := tryDocent(t, "config", "check", "--strict", "--config", doubted); err == nil {
		t.Error("a warning passes under --strict")
	}
	out, err := tryDocent(t, "config", "check", "--json", "--config", configFile(t, "catalog_dsn = 'mysql://me:pa55word@x/y'"))
	var report configReport
	if json.Unmarshal([]byte(out), &report) != nil || err == nil || report.OK || len(report.Problems) != 1 ||
		report.Problems[0].Line != 1 || strings.Contains(out, "pa55word") {
		t.Errorf("%v %s", err, out)
	}
}

// The example of the documentation and the defaults are above every doubt.
func TestTheDefaultsAreAboveEveryDoubt(t *testing.T) {
	t.Parallel()
	if report := checkConfig("", nil, nil); len(report.Problems) > 0 {
		t.Errorf("%v", report.Problems[0])
	}
}
