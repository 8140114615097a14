package api

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/forge/forgetest"
	"docent/tests/harness"
)

// typed runs one command with a text on its standard input, and returns all that it printed.
func typed(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := commands.New(cli.Program{})
	command.SetArgs(args)
	command.SetIn(strings.NewReader(input))
	command.SetOut(&out)
	command.SetErr(&out)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		out.WriteString(err.Error())
	}
	return out.String(), err
}

// TestATokenThatWasEnteredIsKeptForTheServerAlone stores a code host's token: it opens pull requests while the server
// runs, a wrong one does not take its place, and it is in one file and nowhere else. Backups leave it out and say so; a
// variable takes its place; with the project it is gone.
func TestATokenThatWasEnteredIsKeptForTheServerAlone(t *testing.T) {
	t.Parallel()
	const secret, wrong = "tok_TheTokenThatNobodyMaySee", "tok_WhichTheHostRefuses"
	host := forgetest.NewStandIn(t)
	host.Do(func() { host.Tokens, host.Prune = []string{secret}, true })
	harness.Setenv(t, "ENTERED_DOCS_TOKEN", secret)
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	s := &harness.ModelledServer{Project: harness.NewProject(t, data, "harbour", "", "--host", "gitea", "--host-url",
		host.URL, "--repository", "acme/docs", "--token-env", "ENTERED_DOCS_TOKEN")}
	s.Server = harness.NewServer(t, data, "--log-level", "debug")
	var said strings.Builder
	token := func(input string, args ...string) error {
		out, err := typed(t, input, append([]string{"project", "token", "harbour", "--data", data}, args...)...)
		said.WriteString(out)
		return err
	}
	if err := token(secret + "\n"); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	harness.Setenv(t, "ENTERED_DOCS_TOKEN", "")
	if err := token(wrong); err == nil || !strings.Contains(said.String(), "does not accept the stored token") {
		t.Errorf("a token that the host refuses: %v\n%s", err, said.String())
	}
	if err := token(" \n"); err == nil || !strings.Contains(said.String(), "is empty") {
		t.Errorf("no token: %v", err)
	}
	if job := s.Settled(s.Create(`replace "Run it." with "Start it." in guide/setup.md`).ID); job.PRLink == nil {
		t.Errorf("no pull request with the stored token: %+v", job)
	}
	if list := harness.Holders(t, data, secret); len(list) != 1 || !strings.HasPrefix(list[0], "secrets/harbour.") {
		t.Errorf("the token is in %q", list)
	} else if info, err := os.Stat(filepath.Join(data, list[0])); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v, %v", info, err)
	}
	if list := harness.Holders(t, data, wrong); len(list) > 0 {
		t.Errorf("the refused token is in %q", list)
	}
	if out := harness.Docent(t, "backup", "--data", data, filepath.Join(folder, "copy")); !strings.Contains(out, "not in the backup") ||
		len(harness.Holders(t, filepath.Join(folder, "copy"), secret)) > 0 {
		t.Errorf("the backup holds the token or does not say that it is left out: %s", out)
	}
	said.WriteString(harness.Docent(t, "project", "list", "--data", data, "--json"))
	for _, text := range []string{secret, wrong} {
		if strings.Contains(s.Log.String()+said.String(), text) {
			t.Errorf("%s was logged or printed", text)
		}
	}
	harness.Docent(t, "project", "set", "harbour", "--data", data, "--token-env",
		"ENTERED_DOCS_TOKEN") // the server has it still
	if list := harness.Holders(t, data, secret); len(list) > 0 {
		t.Errorf("after a variable has taken its place: %q", list)
	}
	if err := token(secret); err != nil {
		t.Errorf("stored again: %v", err)
	}
	harness.Docent(t, "project", "remove", "harbour", "--data", data)
	if list := harness.Holders(t, data, secret); len(list) > 0 {
		t.Errorf("after the project is removed: %q", list)
	}
}

// TestAWebhooksSecretIsMadeAndShownOnce gives a project's webhook a secret: pushes that are signed with it are taken in,
// and after another one was made those with the first are not.
func TestAWebhooksSecretIsMadeAndShownOnce(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "tea", harness.WriteFiles(t, map[string]string{"index.md": "# Tea\n\nGreen.\n"}))
	server := harness.NewServer(t, data)
	secret := func() string { return strings.TrimSpace(harness.Docent(t, "project", "webhook", p.ID, "--data", data)) }
	push := func(secret string) int { return pushedWith(t, server, p.ID, secret) }
	first := secret()
	if status := push(first); status == http.StatusUnauthorized {
		t.Errorf("a push with the secret: %d", status)
	}
	second := secret()
	if first == second || push(first) != http.StatusUnauthorized || push(second) == http.StatusUnauthorized {
		t.Errorf("after a second secret was made: %d with the first, %d with the second", push(first), push(second))
	}
	if list := append(harness.Holders(t, data, first), harness.Holders(t, data, second)...); len(list) != 1 {
		t.Errorf("the secrets are in %q", list)
	}
	harness.Docent(t, "project", "webhook", p.ID, "--data", data, "--remove")
	if status := push(second); status != http.StatusUnauthorized {
		t.Errorf("after it was removed: %d", status)
	}
	if strings.Contains(server.Log.String(), first) || strings.Contains(server.Log.String(), second) {
		t.Error("a secret is in the log")
	}
}

// pushedWith sends a webhook of a push with a secret, as GitLab does, and returns the status of the answer.
func pushedWith(t *testing.T, server *harness.Server, project, secret string) int {
	t.Helper()
	body := `{"ref":"refs/heads/main","after":"` + strings.Repeat("a", 40) + `","repository":{"full_name":"a/tea","default_branch":"main"}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/webhook/"+project+"/push",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Gitlab-Event", "Push Hook")
	req.Header.Set("X-Gitlab-Token", secret)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
