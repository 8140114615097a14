package operator_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"docent/agent/affected"
	"docent/api"
	"docent/cmd/docent/operator"
	"docent/forge"
	"docent/forge/forgetest"
)

// A change of a real repository is told without what is left out of its source, and a name that stands elsewhere in the code
// is alive.
func TestCodeIsReadFromItsRepository(t *testing.T) {
	t.Parallel()
	work, bare, dir := t.TempDir(), filepath.Join(t.TempDir(), "code.git"), t.TempDir()
	git := func(args ...string) string { return forgetest.Git(t, work, args...) }
	git("init", "-q", "-b", "main")
	git("init", "-q", "--bare", "-b", "main", bare)
	commit := func(message string, files map[string]string) string {
		forgetest.Write(t, work, files)
		git("add", "-f", "-A")
		git("commit", "-q", "-m", message)
		git("push", "-q", bare, "main")
		return git("rev-parse", "HEAD")
	}
	first := commit("first", map[string]string{
		".gitignore": "/out/\n*.gen.go\n!keep.gen.go\n", "src/.gitignore": "local*\n", "out/a.go": "x\n", "src/a.gen.go": "x\n",
		"src/keep.gen.go": "x\n", "src/local.go": "x\n", "src/old/x.go": "x\n", "src/.env": "K=1\n", "other.go": "x\n",
		"src/serve.go": "flag(\"max-berths\", 12)\nflag(\"quay\")\n", "src/use.go": "get(\"quay\")\n", "src/serve_test.go": "\"max-berths\"\n",
		"src/README.md": "max-berths\n",
	})
	pulls := &forgetest.Pulls{}
	project := api.Project{ID: "docs", Domain: "docs.example.org", Source: bare, Sources: []api.Source{
		{Label: "api", Kind: api.SourceCode, Address: bare, DocsDir: "src", Exclude: []string{"old/"}, Repository: "acme/api"}}}
	source, ok := project.CodeSource("Acme/API")
	if !ok {
		t.Fatal("no source")
	}
	pulls.Known = map[api.ProjectID]api.Project{"docs": project, source.ID: source}
	hub, err := forge.Open(dir, pulls, forge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := operator.Repositories{Hub: hub}
	code, err := r.OpenCode(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, f := range code.Files {
		shown = append(shown, f.Path)
	}
	if got, want := fmt.Sprint(shown), "[src/README.md src/keep.gen.go src/serve.go src/serve_test.go src/use.go]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	second := commit("feat: more AKIAABCDEFGHIJKLMNOP", map[string]string{"src/serve.go": "flag(\"berths\", 12)\n", "src/.env": "K=2\n", "other.go": "y\n",
		"src/local.go": "y\n", "src/old/x.go": "y\n"})
	change, err := r.Change(t.Context(), source, first, second)
	if err != nil || len(change.Commits) != 1 || change.Commits[0].Subject != "feat: more [a secret is left out]" {
		t.Fatalf("%v, %+v", err, change.Commits)
	}
	if got := strings.Count(change.Diff, "diff --git"); got != 1 || !strings.Contains(change.Diff, "+flag(\"berths\", 12)") {
		t.Errorf("%s", change.Diff)
	}
	if change.Alive("max-berths") || !change.Alive("quay") {
		t.Error("max-berths is alive, or quay is not")
	}
	// A pull request that is not merged: what it takes away is gone, and what stands elsewhere is not.
	proposed, err := r.Proposed(t.Context(), source, "docs", "diff --git a/src/use.go b/src/wharf.go\nsimilarity index 50%\nrename from src/use.go\n"+
		"rename to src/wharf.go\n--- a/src/use.go\n+++ b/src/wharf.go\n@@ -1 +1 @@\n-get(\"quay\")\n+get(\"wharf\")\n"+
		"diff --git a/src/.env b/src/.env\n--- a/src/.env\n+++ b/src/.env\n@@ -1 +1 @@\n-K=2\n+K=3\n"+
		"diff --git a/docs/cli.md b/docs/cli.md\n--- a/docs/cli.md\n+++ b/docs/cli.md\n@@ -1 +1 @@\n-a\n+b\n")
	if err != nil {
		t.Fatal(err)
	}
	if proposed.Alive("quay") || !proposed.Alive("wharf") || !proposed.Alive("berths") {
		t.Error("quay is alive, or wharf or berths is not")
	}
	if d := affected.Parse(proposed.Diff); len(d.Files) != 2 {
		t.Errorf("%s", proposed.Diff)
	}
}
