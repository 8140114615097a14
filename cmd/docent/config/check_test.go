package config

import (
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
	report := Check(file, []string{"DOCENT_MAX_TURNS=none", "DOCENT_PUBLIC_ULR=x"}, nil)
	if report.OK {
		t.Error("it is called usable")
	}
	for _, want := range []struct {
		setting  string
		line     int
		severity string
		text     string // of the message or of the fix
	}{
		{"lissten", 1, SeverityProblem, "write listen for lissten"},
		{"idle_after", 2, SeverityProblem, `"soon" is not a duration`},
		{"max_streams", 3, SeverityProblem, "must be a whole number without quotes"},
		{"", 4, SeverityProblem, "start of value"},
		{"public_url", 5, SeverityProblem, "is not an http or https URL"},
		{"trusted_proxies", 6, severityWarning, "name the proxy's own address"},
		{"index_memory", 0, severityWarning, "raise memory_limit"},
		{"drain_timeout", 8, SeverityProblem, `with its unit`},
		{"limits.key_day", 11, SeverityProblem, "unknown setting"},
		{"limits.backup_dir", 12, SeverityProblem, "move backup_dir above the first [table]"},
		{"model.big", 14, SeverityProblem, "write [models.big]"},
		{"models.small.model", 17, SeverityProblem, "must name the endpoint's model"},
		{"models.small.modle", 19, SeverityProblem, "model for modle"},
		{"models.small.timeout", 20, severityWarning, "turn_timeout"},
		{"models.small.key_env", 21, SeverityProblem, "NO_KEY is empty or not set"},
		{"oidc.issuer", 23, severityWarning, "there is no provider"},
		{"max_turns", 0, SeverityProblem, "not a whole number"},
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
	_, err := Load(file, environment("DOCENT_MAX_TURNS", "none"), nil)
	for _, p := range report.Problems {
		if p.Severity == SeverityProblem && !strings.Contains(err.Error(), p.Error()) {
			t.Errorf("serve does not say %q", p.Error())
		}
	}
}

// A broken table leaves out nothing that follows from it: what it had is not called unknown.
func TestABrokenTableIsOneProblem(t *testing.T) {
	t.Parallel()
	report := Check(configFile(t, "listen = \":1\"\n[models.x\nprovider = \"openai\"\nmodel = \"m\"\n"), nil, nil)
	if len(report.Problems) != 1 || report.Problems[0].Line != 2 || report.OK {
		t.Errorf("%+v", report.Problems)
	}
}

func TestSettingsThatContradictEachOtherAreDoubted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"data = '" + dir + "'\nbackup_dir = '" + filepath.Join(dir, "b") + "'":                               "backup_dir",
		"profile_listen = '127.0.0.1:6060'":                                                                  "profile_listen", // gone
		"metrics_from = ['::/0']":                                                                            "metrics_from",
		"public_url = 'https://example.com/docent'":                                                          "public_url",
		"listen = '0.0.0.0:80'":                                                                              "public_url",
		"[checks.docs]\ncommand = ['no-such-program-x']":                                                     "checks.docs.command",
		"[oidc]\nissuer = 'https://id.example.com'\nclient_id = 'x'":                                         "oidc.client_secret_env",
		"[models.m]\nprovider='openai'\nmodel='m'\nbase_url='http://models.example.com/v1'\nkey_env='M_KEY'": "models.m.base_url",
		"[models.m]\nprovider='openai'\nmodel='m'\ntimeout='20s'\nfallback_after='30s'":                      "models.m.fallback_after",
		"default_model='m'\nagent_cost=5\n[models.m]\nprovider='openai'\nmodel='m'":                          "agent_cost",
	} {
		report := Check(configFile(t, text), []string{"M_KEY=secret-key"}, nil)
		if len(report.Problems) != 1 || report.Problems[0].Setting != want || report.Problems[0].Fix == "" || !report.OK {
			t.Errorf("%q is not doubted for %s alone: %+v", text, want, report.Problems)
		}
	}
	file := configFile(t, "catalog_dsn = 'postgres://me:pa55word@db.example.com/x'")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	report := Check(file, nil, nil)
	if len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Fix, "chmod o-r") {
		t.Errorf("%+v", report.Problems)
	}
}

// The example of the documentation and the defaults are above every doubt.
func TestTheDefaultsAreAboveEveryDoubt(t *testing.T) {
	t.Parallel()
	if report := Check("", nil, nil); len(report.Problems) > 0 {
		t.Errorf("%v", report.Problems[0])
	}
}
