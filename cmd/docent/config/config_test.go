package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"docent/api"
	"docent/router"
)

var update = flag.Bool("update", false, "write the expected files again")

func noEnvironment(string) (string, bool) { return "", false }

func environment(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

func configFile(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	t.Parallel()
	file := configFile(t, "listen = \"127.0.0.1:1\"\nlog_level = \"warn\"\nidle_after = \"3s\"\n[limits]\nkey_month = 7\n")
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.String("listen", "", "")
	if err := flags.Parse([]string{"--listen", "127.0.0.1:3"}); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file,
		environment("DOCENT_LISTEN", "127.0.0.1:2", "DOCENT_IDLE_AFTER", "4s", "DOCENT_LIMITS_IP_DAY", "9"), flags)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:3" || c.IdleAfter.Duration != 4*time.Second || c.LogLevel != "warn" ||
		c.Limits.KeyMonth != 7 || c.Limits.IPDay != 9 || c.Limits.OrgHour != 10_000 {
		t.Errorf("the strengths are wrong: %+v", c)
	}
}

func TestUnusableSettingIsNamed(t *testing.T) {
	t.Parallel()
	cases := []struct{ file, env, want string }{
		{"listen = \"nowhere\"", "", "setting listen"},
		{"listen = \"127.0.0.1:99999\"", "", "setting listen"},
		{"operator_listen = \"9090\"", "", "setting operator_listen: \"9090\" is not HOST:PORT"},
		{"operator_listen = \"unix:operator.sock\"", "", "setting operator_listen: \"operator.sock\" is no path from the root"},
		{"nonsense = 1", "", "unknown setting nonsense"},
		{"[limits]\nkey_day = 1", "", "unknown setting limits.key_day"},
		{"idle_after = \"soon\"", "", "not a duration"},
		{"idle_after = \"1ms\"", "", "setting idle_after: 1ms is less than 1s"},
		{"max_streams = 0", "", "setting max_streams: 0 is less than 1"},
		{"stream_writer = \"pen\"", "", "setting stream_writer: \"pen\" is neither sockets nor handler"},
		{"max_streams = \"many\"", "", "line 1"},
		{"public_url = \"docent.example.com\"", "", "setting public_url"},
		{"log_format = \"xml\"", "", "setting log_format"},
		{"log_level = \"loud\"", "", "setting log_level"},
		{"trusted_proxies = [\"proxy\"]", "", "setting trusted_proxies"},
		{"catalog_dsn = \"mysql://user:secret@host/db\"", "", "setting catalog_dsn"},
		{"[oidc]\nissuer = \"https://id.example.com\"", "", "setting oidc.client_id"},
		{"[oidc]\nissuer = \"http://id.example.com\"\nclient_id = \"d\"", "", "setting oidc.issuer: must begin with https://"},
		{"[oidc]\nissuer = \"id\"\nclient_id = \"d\"", "", "setting oidc.issuer"},
		{"[oidc]\nissuer = \"https://id.example.com\"\nclient_id = \"d\"\nrole = \"root\"", "", "setting oidc.role"},
		{"[oidc]\nissuer = \"https://id.example.com\"\nclient_id = \"d\"\nallowed_domains = [\"*\"]", "",
			"setting oidc.allowed_domains"},
		{"default_model = \"large\"", "", "there is no [models.large]"},
		{"[models.x]\nprovider = \"other\"", "", "setting models.x.provider"},
		{"[models.x]\nprovider = \"openai\"", "", "setting models.x.model"},
		{"[models.x]\nprovider = \"openai\"\nmodel = \"m\"\nkey_env = \"NO_SUCH\"", "", "NO_SUCH is empty or not set"},
		{"[models.x]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h/v1\"\nextra_body = { messages = 1 }", "", "extra_body.messages"},
		{"[models.x]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h/v1\"\nextra_headers = { \"a b\" = \"c\" }", "", "extra_headers.a b"},
		{"[models.x]\nprovider = \"anthropic\"\nmodel = \"m\"\nbase_url = \"http://h\"\napi = \"chat\"", "", "neither chat nor responses"},
		{"", "DOCENT_MAX_BODY=big", "environment variable DOCENT_MAX_BODY"},
		{"", "DOCENT_ACME_ACCEPT_TERMS=maybe", "environment variable DOCENT_ACME_ACCEPT_TERMS"},
		{"listen = ", "", "line 1"},
	}
	for _, c := range cases {
		name, value, _ := strings.Cut(c.env, "=")
		_, err := Load(configFile(t, c.file), environment(name, value), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: the error is %v, it should name %q", c.file, c.env, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows the password: %v", c.file, err)
		}
	}
}

func TestEveryUnusableSettingIsListed(t *testing.T) {
	t.Parallel()
	_, err := Load(configFile(t, "listen = \"x\"\nlog_format = \"xml\"\nmax_turns = 0"), noEnvironment, nil)
	for _, want := range []string{"setting listen", "setting log_format", "setting max_turns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not name %s", err, want)
		}
	}
}

func TestModelFromTheEnvironmentBecomesTheDefault(t *testing.T) {
	t.Parallel()
	c, err := Load("",
		environment("DOCENT_MODEL_BASE_URL", "http://127.0.0.1:1/v1", "DOCENT_MODEL", "m", "DOCENT_MODEL_API_KEY", "k"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Models["default"]; c.Model != "default" || m.BaseURL != "http://127.0.0.1:1/v1" || m.Model != "m" ||
		m.Key.Value() != "k" {
		t.Errorf("the model is %q %+v", c.Model, m)
	}
}

// settingsTable is the table of docs/deploy/configuration.mdx.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("| Setting, flag | Default | What it is |\n| --- | --- | --- |\n")
	c := Default()
	for _, s := range c.Settings() {
		name, standard, flag := s.Name, s.Default, ""
		if s.Flag != "" {
			flag = ", `--" + s.Flag + "`"
		}
		switch {
		case name == "max_running_jobs":
			standard = "twice the processors"
		case standard != "":
			standard = "`" + standard + "`"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s |\n", name, flag, standard, s.Usage)
	}
	return b.String()
}

func TestDocumentedSettingsAreTheRealOnes(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/deploy/configuration.mdx"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), "write it again */}\n")
	_, tail, ok2 := strings.Cut(rest, "{/* end of settings */}")
	if !ok1 || !ok2 {
		t.Fatal("the page has lost the marks around its table")
	}
	want := head + "write it again */}\n\n" + settingsTable() + "\n{/* end of settings */}" + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not show the settings as they are: run go test ./cmd/docent/config -update", path)
	}
}

// Each default stands in one place. The edge's bounds are router's, which the settings take over.
func TestEachDefaultStandsInOnePlace(t *testing.T) {
	c, edge := Default(), router.DefaultBounds()
	if c.MaxBody != edge.BodyBytes || c.MaxRequests != edge.Requests || c.MaxStreams != edge.Streams ||
		c.Limits != router.DefaultLimits() {
		t.Errorf("the settings have %d, %d, %d, %+v; the edge has %+v", c.MaxBody, c.MaxRequests, c.MaxStreams, c.Limits,
			edge)
	}
	for _, s := range c.Settings() {
		if least, ok := leastValues[s.Name]; ok && least > 0 {
			if n, _ := s.number(); n < least {
				t.Errorf("%s is %s where nothing is set", s.Name, s)
			}
		}
	}
}

func TestANodeSecretIsGivenOrThereIsNone(t *testing.T) {
	t.Parallel()
	file := configFile(t, "journal = \"postgres\"\ncatalog_dsn = \"postgres://db.example.com/docent\"\n")
	c, err := Load(file, noEnvironment, nil)
	if err != nil || c.nodeSecret != nil {
		t.Errorf("without a secret there is one, %v: what is entered on pages would be sealed under nothing", err)
	}
	c, err = Load(file, environment(NodeSecretEnv, strings.Repeat("s", LeastNodeSecret)), nil)
	if err != nil || c.nodeSecret.Value() == "" {
		t.Errorf("a secret that is given is not there: %v", err)
	}
	for _, secret := range []string{"short", strings.Repeat("s", LeastNodeSecret) + " short"} {
		if _, err = Load(file, environment(NodeSecretEnv, secret), nil); err == nil || !strings.Contains(err.Error(), NodeSecretEnv) {
			t.Errorf("the error of a secret that can be guessed is %v", err)
		}
	}
}

// An address alone would have a node count as one that others can speak to.
func TestANodesAddressNeedsAListener(t *testing.T) {
	t.Parallel()
	shared := "journal = \"postgres\"\ncatalog_dsn = \"postgres://db.example.com/docent\"\nnode_address = \"db.example.com:8093\"\n"
	for name, text := range map[string]string{"shared": shared, "alone": "node_address = \"db.example.com:8093\"\n"} {
		_, err := Load(configFile(t, text), noEnvironment, nil)
		if err == nil || !strings.Contains(err.Error(), "set node_listen to HOST:PORT as well, or leave node_address out") {
			t.Errorf("%s: %v", name, err)
		}
	}
	listening := environment(NodeSecretEnv, strings.Repeat("s", LeastNodeSecret))
	if _, err := Load(configFile(t, shared+"node_listen = \":8093\"\n"), listening, nil); err != nil {
		t.Errorf("with a listener: %v", err)
	}
}

func TestOnlyVariablesWithoutAnEffectAreUnknown(t *testing.T) {
	c := Default()
	c.Models = map[string]Model{"m": {KeyEnv: "DOCENT_MODEL_TOKEN"}}
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

// What goes beside a model's requests comes from its table as it stands there.
func TestWhatGoesWithRequestsIsConfigured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docent.toml")
	text := "[models.x]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h/v1\"\napi = \"responses\"\nreasoning_effort = \"low\"\n" +
		"extra_headers = { X-Team = \"docs\" }\n[models.x.extra_body]\ntop_k = 4\nthinking = { type = \"disabled\" }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := Registry(c).Models[0].Remote
	body, err := json.Marshal(m.ExtraBody)
	if err != nil || m.API != "responses" || m.Effort != "low" || m.ExtraHeaders["X-Team"] != "docs" || string(body) != `{"thinking":{"type":"disabled"},"top_k":4}` {
		t.Errorf("%+v, %s, %v", m, body, err)
	}
}
