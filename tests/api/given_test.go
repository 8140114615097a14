package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"docent/forge/forgetest"
	"docent/model"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// A lockedProvider is a provider of language models that takes one key at a time, and quotes a wrong one as some do.
type lockedProvider struct {
	mu   sync.Mutex
	key  string
	peer http.Handler
}

func (g *lockedProvider) accept(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = key
}

func (g *lockedProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	right := r.Header.Get("Authorization") == "Bearer "+g.key
	g.mu.Unlock()
	if !right {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","type":"invalid_request_error"}}`,
			strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return
	}
	g.peer.ServeHTTP(w, r)
}

// secretFile gives a test's servers a secret in a file, and returns what changes it.
func secretFile(t *testing.T, variable, secret string) (change func(string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	change = func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change(secret)
	harness.Setenv(t, variable+"_FILE", path)
	return change
}

// TestSecretsChangeWithoutARestartAndStayHidden gives a server its secrets in files: a model's key, a code host's token
// and one of a webhook. Each is changed while the server runs, wrong in between, and the server is aborted at the end.
// None of them, and none of the API keys, is in what it logs, in what commands print, in the lists of processes, in the
// trace of the crash, in the data directory or in a backup.
func TestSecretsChangeWithoutARestartAndStayHidden(t *testing.T) {
	t.Parallel()
	const first, wrong, second = "kEy-OfTheFirstWeekNobodySees", "kEy-ThatIsWrongNobodySees", "kEy-OfTheSecondWeekNobodySees"
	const token, newToken = "tOk-OfTheFirstWeekNobodySees", "tOk-OfTheSecondWeekNobodySees"
	const hook, newHook = "hOok-OfTheFirstWeekNobodySees", "hOok-OfTheSecondWeekNobodySees"
	hidden := []string{first, wrong, second, token, newToken, hook, newHook}

	peer := modeltest.New(modeltest.Script{Shared: true, Steps: []modeltest.Step{
		{Text: "It leaves every hour from pier two [1]."}, {Text: "It leaves every hour from pier two [1]."}}})
	provider := &lockedProvider{peer: peer, key: first}
	endpoint := httptest.NewServer(provider)
	t.Cleanup(endpoint.Close)
	host := forgetest.NewStandIn(t)
	host.Do(func() { host.Tokens, host.Prune = []string{token}, true })

	changeKey := secretFile(t, "FERRY_MODEL_KEY", first)
	changeToken := secretFile(t, "FERRY_DOCS_TOKEN", token)
	changeHook := secretFile(t, "FERRY_HOOK", hook)
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	s := &harness.ModelledServer{Project: harness.NewProject(t, data, "harbour", "", "--host", "gitea", "--host-url",
		host.URL, "--repository", "acme/docs", "--token-env", "FERRY_DOCS_TOKEN", "--webhook-env", "FERRY_HOOK")}
	s.Server = harness.NewServer(t, data, "--log-level", "debug", "--config", harness.SettingsFile(t, fmt.Sprintf(
		"default_model = \"m\"\n[models.m]\nprovider = \"openai\"\nbase_url = \"%s/v1\"\nmodel = \"m-1\"\nkey_env = \"FERRY_MODEL_KEY\"\nrewrite = \"off\"\nclaims = \"off\"\n",
		endpoint.URL)))
	hidden = append(hidden, s.Project.Admin, s.Project.Assistant)

	answeredBy := func() string {
		t.Helper()
		out := harness.Docent(t, "ask", "--url", s.URL, "--key", s.Project.Assistant, "--domain", s.Project.Domain, "--json", "How do I run the setup?")
		if strings.Contains(out, "every hour") {
			return "m"
		}
		return "builtin"
	}
	changed := func(what string, by string) {
		t.Helper()
		if got := answeredBy(); got != by {
			t.Errorf("%s: answered by %s, wanted %s", what, got, by)
		}
	}
	changed("the first key", "m")
	changeKey(wrong)
	changed("a wrong key", "builtin")
	provider.accept(second)
	changeKey(second)
	changed("the second key", "m")

	if job := s.Settled(s.CreateWith(`replace "Run it." with "Start it." in guide/setup.md`, model.Builtin).ID); job.PRLink == nil {
		t.Errorf("no pull request with the first token: %+v", job)
	}
	host.Do(func() { host.Tokens = []string{newToken} })
	changeToken(newToken)
	if job := s.Settled(s.CreateWith(`replace "Run it." with "Begin." in guide/setup.md`, model.Builtin).ID); job.PRLink == nil {
		t.Errorf("no pull request with the second token: %+v", job)
	}

	if status := pushedWith(t, s.Server, s.Project.ID, hook); status == http.StatusUnauthorized {
		t.Errorf("a push with the first secret: %d", status)
	}
	changeHook(newHook)
	was, is := pushedWith(t, s.Server, s.Project.ID, hook), pushedWith(t, s.Server, s.Project.ID, newHook)
	if was != http.StatusUnauthorized || is == http.StatusUnauthorized {
		t.Errorf("after the change: %d with the first secret, %d with the second", was, is)
	}

	copied := filepath.Join(folder, "copy")
	said := harness.Docent(t, "backup", "--data", data, copied) + harness.Docent(t, "config", "--data", data, "--json") +
		harness.Docent(t, "project", "list", "--data", data, "--json") + harness.Docent(t, "key", "list", "--data", data,
		"--json") +
		harness.Docent(t, "status", "--data", data, "--json")
	processes := commandLines(t)
	if err := s.Cmd.Process.Signal(syscall.SIGABRT); err != nil { // the runtime writes the stacks of all goroutines
		t.Fatal(err)
	}
	<-s.Ended
	if !strings.Contains(s.Log.String(), "SIGABRT") {
		t.Error("the abort left no trace")
	}
	for _, secret := range hidden {
		for where, text := range map[string]string{"the log and the trace of the abort": s.Log.String(),
			"what commands print": said, "the list of processes": processes} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s", where, secret)
			}
		}
		for _, dir := range []string{data, copied} {
			if list := harness.Holders(t, dir, secret); len(list) > 0 {
				t.Errorf("%s is in %q", secret, list)
			}
		}
	}
}

// commandLines are the command lines and the titles of this machine's processes, as ps shows them to everybody.
func commandLines(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("this system has no /proc")
	}
	var all strings.Builder
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil { // it may have ended meanwhile
			all.Write(text)
			all.WriteByte('\n')
		}
	}
	return all.String()
}
