package sources

import (
	"log/slog"
	"strings"
	"testing"

	"docent/api"
	"docent/forge/forgetest"
)

// Who adds a project is told that its repository asks for commits that are signed off; how pull requests look is no reason
// to read the documentation again.
func TestARepositoryThatAsksForSignOffs(t *testing.T) {
	host := forgetest.NewStandIn(t)
	host.Tokens = []string{"secret"}
	t.Setenv("DOCENT_TEST_FORM_TOKEN", "secret")
	host.Push(t, "main", ".github/CONTRIBUTING.md", "Each commit ends with\n\n    Signed-off-by: You <you@example.org>\n")
	reader := newTestReader(t, slog.New(slog.DiscardHandler))
	p := host.Project(api.HostGitHub, "DOCENT_TEST_FORM_TOKEN")
	added, err := reader.Add(t.Context(), p, func(string, int, int) {})
	if err != nil || !strings.Contains(added.Open, "--sign-off") {
		t.Errorf("%q, %v", added.Open, err)
	}
	p = added.Project
	p.Pulls = api.PullForm{Author: "Docs <docs@acme.example>", SignOff: true}
	if reader.Rereads(added.Project, p) {
		t.Error("the documentation is read again")
	}
	p.ID, p.Domain = "other", "other.example.org"
	if added, err = reader.Add(t.Context(), p, func(string, int, int) {}); err != nil || strings.Contains(added.Open, "--sign-off") {
		t.Errorf("%q, %v", added.Open, err)
	}
}
